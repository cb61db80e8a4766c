"""Markers of the prompt cache in the Messages API, and that entries are found again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    Session,
    ToolMetadata,
    Transcript,
    TurnRequest,
)
from lutum_py.dialects import (
    anthropic_messages,
)
from lutum_py.turns import Cache

from .plain import ONE_AND_TWO, done

EPHEMERAL = "said once"

# What happens between two requests; a request is sent after each.
steps = st.sampled_from(["round", "rounds", "answer", "blank", "system", "note", "rule", "aside"])
caches = st.builds(
    Cache,
    tools=st.booleans(),
    system=st.booleans(),
    turns=st.integers(0, 2),
    ttl=st.sampled_from([None, "5m", "1h"]),
)


def play(session: Session, step: str, number: int) -> None:
    """Let one thing happen to a session."""
    transcript = session.transcript
    if step in ("round", "rounds"):
        calls = [
            ToolMetadata(id=f"c{number}_{at}", name="one", arguments="{}")
            for at in range(1 if step == "round" else 3)
        ]
        results = [done(call) for call in calls]
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=calls), results))
    elif step == "answer":
        transcript.append_turn(AssistantTurn(text="Well."))
        session.push_user(f"And {number}?")
    elif step == "blank":
        transcript.append_turn(AssistantTurn(text=" "))
        session.push_user(f"So {number}?")
    elif step == "system":
        session.push_system(f"Rule {number}.")
    elif step == "note":
        session.push_ephemeral_user(f"{EPHEMERAL} {number}")
    elif step == "rule":
        session.push_ephemeral_system(f"{EPHEMERAL} {number}")
    else:
        # What is said once stands in front of what lasts, twice.
        transcript.append_turn(AssistantTurn(text="Well."))
        for _ in range(2):
            session.push_ephemeral_user(f"{EPHEMERAL} {number}")
            session.push_ephemeral_system(f"{EPHEMERAL} {number}")
        session.push_system(f"Rule {number}.")
        session.push_user(f"And {number}?")


def requests(played: list[str], cache: Cache | None) -> Iterator[TurnRequest]:
    """Give the request after each step; what is ephemeral is in one of them."""
    session = Session()
    session.push_system("Be brief.")
    session.push_user("Hello")
    for number, step in enumerate(["start", *played]):
        if step != "start":
            play(session, step, number)
        items = session._request_items()
        yield TurnRequest(items=items, tools=ONE_AND_TWO, cache=cache)
        session._drop_ephemeral(items)


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """All that stands in a body before the answer, in the order in which it is cached."""
    system = body.get("system", [])
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    blocks = [*body.get("tools", []), *system]
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks += [{**block, "role": message["role"]} for block in content]
    return blocks


def marked(body: dict[str, Any]) -> list[int]:
    """The places of the markers."""
    return [at for at, block in enumerate(blocks_of(body)) if "cache_control" in block]


def beginnings(body: dict[str, Any]) -> set[str]:
    """The beginnings that are marked, as what the provider compares."""
    plain = [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in blocks_of(body)
    ]
    return {json.dumps(plain[: at + 1]) for at in marked(body)}


@given(st.lists(steps, max_size=8), caches)
def test_markers_change_nothing_else(played: list[str], cache: Cache) -> None:
    """A body with markers has no more than 4, and is the one without them otherwise."""
    with_markers = requests(played, cache)
    for one, other in zip(with_markers, requests(played, None), strict=True):
        body, plain = (anthropic_messages.encode_request(each) for each in (one, other))
        places = marked(body)
        assert len(places) <= cache.tools + cache.system + cache.turns <= 4
        assert anthropic_messages.check(body) == anthropic_messages.check(plain)
        expected = {"type": "ephemeral"} | ({"ttl": cache.ttl} if cache.ttl else {})
        for block in blocks_of(body):
            assert block.pop("cache_control", expected) == expected
        strip(body)
        assert blocks_of(body) == blocks_of(plain)
        assert {key: body[key] for key in ("tool_choice", "max_tokens")} == {
            key: plain[key] for key in ("tool_choice", "max_tokens")
        }


def strip(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("cache_control", None)
        for each in value.values():
            strip(each)
    elif isinstance(value, list):
        for each in value:
            strip(each)


@given(st.lists(steps, max_size=8))
def test_nothing_ephemeral_is_marked_nor_what_comes_after_it(played: list[str]) -> None:
    """Where something is said once, no later request begins the same way: no marker is wasted."""
    for request in requests(played, Cache()):
        body = anthropic_messages.encode_request(request)
        blocks = blocks_of(body)
        of_user = [at for at, each in enumerate(blocks) if EPHEMERAL in each.get("text", "")]
        said = [at for at in of_user if blocks[at].get("role")]
        front = [at for at in of_user if not blocks[at].get("role")]
        for place in marked(body):
            assert place not in of_user
            assert not said or place < min(said)
            if front and not blocks[place].get("role"):
                assert place < min(front)


@given(st.lists(st.sampled_from(["round", "rounds", "answer"]), min_size=1, max_size=9))
def test_the_next_request_finds_what_this_one_wrote(played: list[str]) -> None:
    """Each request marks the end of the one before: what that wrote is read, byte for byte."""
    before: set[str] = set()
    for request in requests(played, Cache()):
        now = beginnings(anthropic_messages.encode_request(request))
        if before:
            assert max(before, key=len) in now
        before = now


def test_the_places_of_the_markers() -> None:
    """The last tool, the last instruction and the last two user messages are marked."""
    (*_, request) = requests(["round", "answer", "rounds"], Cache(ttl="1h"))
    body = anthropic_messages.encode_request(request)
    assert [("cache_control" in tool) for tool in body["tools"]] == [False, True]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    users = [each["content"] for each in body["messages"] if each["role"] == "user"]
    ends = ["cache_control" in content[-1] for content in users if isinstance(content, list)]
    assert ends[-2:] == [True, True]
    assert not any(ends[:-2])
    assert users[-1][-1]["type"] == "tool_result"
    assert len(marked(body)) == 4


def test_only_what_lasts_is_marked() -> None:
    """Behind what is said once neither instructions nor user messages are marked."""
    (*_, request) = requests(["answer", "aside"], Cache(turns=1))
    body = anthropic_messages.encode_request(request)
    front = ["cache_control" in block for block in body["system"]]
    assert front == [True, False, False, False]
    users = [each["content"] for each in body["messages"] if each["role"] == "user"]
    assert ["cache_control" in content[-1] for content in users[1:]] == [True, False]


def test_what_was_marked_is_in_no_transcript() -> None:
    """A marker stands in one body only: the transcript, and the next body, know nothing of it."""
    transcript = Transcript()
    transcript.push(Message("user", "Hello"))
    before = transcript.dump_json()
    request = TurnRequest(items=transcript, tools=ONE_AND_TWO, cache=Cache())
    anthropic_messages.encode_request(request)
    assert transcript.dump_json() == before
    plain = TurnRequest(items=transcript, tools=ONE_AND_TWO)
    assert marked(anthropic_messages.encode_request(plain)) == []


def test_without_tools_and_instructions_only_messages_are_marked() -> None:
    """What is not in a request is not marked, nor what the user's own extras put there."""
    request = TurnRequest(
        items=[Message("user", "Hello")],
        cache=Cache(),
        extra={"system": "Mine", "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    )
    body = anthropic_messages.encode_request(request)
    assert body["system"] == "Mine"
    assert len(marked(body)) == 1


def test_the_mark_stays_where_a_turn_before_it_is_not_sent() -> None:
    """What was said for good is marked, also where a search that never ended goes before it."""
    ran = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    session = Session()
    session.push_user("Go")
    session.transcript.append_turn(anthropic_messages.decode({"content": [ran]}))
    session.push_user("And?")
    session.transcript.append_turn(AssistantTurn(text="Hm."))
    session.push_user("So?")
    session.push_ephemeral_user(EPHEMERAL)
    request = TurnRequest(items=session._request_items(), cache=Cache(turns=1))
    body = anthropic_messages.encode_request(request)
    (at,) = marked(body)
    assert [block["text"] for block in blocks_of(body)[at:]] == ["So?", EPHEMERAL]
