"""The laws of thinking behind a cut: newer models of Anthropic sign it with all that came before.

The judge is a provider that does so. It is written from the guide "Prefix checks on thinking
blocks" alone: what stood in a request before a block has to stand there again, other thinking
included, markers of the cache aside.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py import AssistantTurn, CommittedRound, Message, ToolResult, Transcript, TurnRequest
from lutum_py.dialects import anthropic_messages
from lutum_py.turns import Cache, ReasoningItem
from lutum_py.window import View
from tests.profiles import scaled

from .format_rules import refused
from .growing import SPOKEN, Tools, cut

DEFINITIONS = Tools.definitions()
CLAUDE = "claude-fable-5-1"
THINKING = ("thinking", "redacted_thinking")


def signed(body: dict[str, Any], said: list[dict[str, Any]]) -> str:
    """What a block is signed with that comes after all this."""
    system = body.get("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    before = [blocks, body.get("tools"), said]
    return hashlib.sha256(json.dumps(before, sort_keys=True).encode()).hexdigest()


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def bound_elsewhere(body: dict[str, Any]) -> list[str]:
    """List the blocks of thinking whose beginning is not the one that they were signed with."""
    body = unmarked(body)
    wrong = []
    for at, message in enumerate(body["messages"]):
        for index, block in enumerate(message["content"]):
            if block["type"] in THINKING:
                inside = {"role": "assistant", "content": message["content"][:index]}
                said = [*body["messages"][:at], inside]
                if block.get("signature", block.get("data")) != signed(body, said):
                    wrong.append(f"messages.{at}.content.{index}")
    return wrong


def answer(body: dict[str, Any], kinds: list[str], number: int, model: str) -> AssistantTurn:
    """What such a provider answers: blocks of these kinds, each signed."""
    body = unmarked(body)
    content: list[dict[str, Any]] = []
    for index, kind in enumerate(kinds):
        inside: dict[str, Any] = {"role": "assistant", "content": list(content)}
        signature = signed(body, [*body["messages"], inside])
        blocks: dict[str, dict[str, Any]] = {
            "thinking": {"thinking": "Hm.", "signature": signature},
            "redacted_thinking": {"data": signature},
            "text": {"text": f"t{number}"},
            "tool_use": {"id": f"c{number}_{index}", "name": "search", "input": {"query": "q"}},
        }
        content.append({"type": kind, **blocks[kind]})
    return anthropic_messages.decode({"model": model, "content": content})


def commit(transcript: Transcript, turn: AssistantTurn, output: str = "x" * 300) -> None:
    results = [
        ToolResult(id=c.id, name=c.name, arguments=c.arguments, result=json.dumps(output))
        for c in turn.tool_calls
    ]
    if results:
        transcript.append_round(CommittedRound(turn, results))
    else:
        transcript.append_turn(turn)


def encoded(view: View, transcript: Transcript, **extra: Any) -> dict[str, Any]:
    request = TurnRequest(items=view.of(transcript), tools=DEFINITIONS, extra=extra)
    return anthropic_messages.encode_request(request, model=CLAUDE)


def thought(body: dict[str, Any]) -> list[str]:
    """The thinking in a body, by the text or call beside it."""
    return [
        message["content"][-1].get("text", message["content"][-1].get("id"))
        for message in body["messages"]
        if message["role"] == "assistant" and message["content"][0]["type"] in THINKING
    ]


def loop(rounds: int, model: str = CLAUDE, view: View | None = None) -> Transcript:
    """A question and rounds in which the model thinks and calls."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    go_on(transcript, view or View(), range(rounds), model)
    return transcript


def go_on(transcript: Transcript, view: View, numbers: range, model: str = CLAUDE) -> None:
    for number in numbers:
        body = encoded(view, transcript)
        commit(transcript, answer(body, ["thinking", "tool_use"], number, model))


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=scaled(80),
)
@given(data=st.data())
def test_no_thinking_is_sent_behind_what_has_changed_since(data: st.DataObject) -> None:
    """Wherever is cut, and however often, a provider that binds thinking to what came before it
    finds all of it as it was; and what the model thinks after the last cut goes back to it.
    """
    transcript, view = Transcript(), View()
    transcript.push(Message("system", "Be brief."))
    transcript.push(Message("user", "Go"))
    kinds = st.lists(st.sampled_from([*THINKING, "text", "tool_use", "tool_use"]), min_size=1)
    fresh = 0
    for number in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            transcript.push(Message("user", data.draw(SPOKEN)))
        request = TurnRequest(
            items=view.of(transcript),
            tools=DEFINITIONS,
            cache=data.draw(st.sampled_from([None, Cache()])),
        )
        body = anthropic_messages.encode_request(request, model=CLAUDE)
        assert refused("anthropic_messages", body) == []
        assert bound_elsewhere(body) == []
        sent = [block for said in body["messages"] for block in said["content"]]
        assert sum(block["type"] in THINKING for block in sent) >= fresh
        turn = answer(body, data.draw(kinds), number, CLAUDE)
        commit(transcript, turn, "x" * data.draw(st.integers(0, 900)))
        thinks = [isinstance(item, ReasoningItem) for item in turn.items]
        # What a turn ends with is not sent: `test_reasoning_at_end`.
        fresh += sum(thinks[: len(thinks) - thinks[::-1].index(False)]) if False in thinks else 0
        if data.draw(st.booleans()):
            before, view = view, cut(data, view, transcript)
            fresh = fresh if view is before else 0


def test_what_was_thought_before_a_cut_goes_and_what_comes_after_it_stays() -> None:
    """The turns that are kept lose their thinking, those in front of the cut and those that come
    later do not; nothing of it is a loss, and a later cut takes the next ones.
    """
    transcript = loop(4)
    assert thought(encoded(View(), transcript)) == ["c0_1", "c1_1", "c2_1", "c3_1"]
    transcript.push(Message("user", "On"))
    view = View().summarise(transcript, (3, 5), "They looked.")
    assert thought(encoded(view, transcript)) == ["c0_1"]
    go_on(transcript, view, range(4, 7))
    body = anthropic_messages.encode_request(TurnRequest(items=view.of(transcript)), model=CLAUDE)
    assert body.losses == ()
    assert thought(body) == ["c0_1", "c4_1", "c5_1", "c6_1"]
    view = view.clear_results(transcript, older_than=2)
    go_on(transcript, view, range(7, 8))
    assert thought(encoded(view, transcript)) == ["c0_1", "c7_1"]
    assert bound_elsewhere(encoded(view, transcript)) == []
    assert [
        block["type"] for block in anthropic_messages.messages(view.of(transcript))[1]["content"]
    ] == [*("thinking", "tool_use")]


def test_manual_thinking_and_that_of_other_vendors_stays_behind_a_cut() -> None:
    """The models that take a budget want the last turn to begin with its thinking, and sign nothing
    that comes before it; nor does who is no Claude. One view is sent in both ways.
    """
    transcript = loop(3)
    view = View().clear_results(transcript, older_than=1)
    manual = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    for _ in range(2):
        assert thought(encoded(view, transcript, **manual)) == ["c0_1", "c1_1", "c2_1"]
        assert thought(encoded(view, transcript, thinking={"type": "adaptive"})) == ["c0_1"]
    other = loop(3, "deepseek-reasoner")
    view = View().clear_results(other, older_than=1)
    items = TurnRequest(items=view.of(other))
    assert len(thought(anthropic_messages.encode_request(items))) == 3


@pytest.mark.parametrize("kinds", [["thinking", "tool_use"], ["tool_use"]])
def test_a_cut_is_lost_from_the_first_turn_that_goes_without_its_thinking(kinds: list[str]) -> None:
    """Where a cut is joined to an earlier one, a turn between them that loses its thinking is the
    first item that goes out otherwise.
    """
    transcript, view = loop(0), View()
    for number, output in enumerate(("x" * 300, "ok", "ok", "x" * 300, "ok")):
        commit(transcript, answer(encoded(view, transcript), kinds, number, CLAUDE), output)
        if number == 1:
            view = view.clear_results(transcript, older_than=1)
    joined = view.clear_results(transcript, older_than=1)
    (last,) = joined.cuts
    bodies = [encoded(each, transcript)["messages"] for each in (view, joined)]
    first = next(at for at, (a, b) in enumerate(zip(*bodies, strict=True)) if a != b)
    assert last.lost_from == first
