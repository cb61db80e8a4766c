"""The laws of `assert_transcript_valid`: silent when all is well, complete when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, Session, ToolMetadata, Transcript, TurnRequest
from lutum_py.dialects import openai_chat
from lutum_py.errors import MisuseError
from lutum_py.testing import ScriptedModel, assert_transcript_valid

from ..round_tools import adds, done, forged, opened, turn

HELLO = Message("user", "Hello")
TURN = turn(*adds(2))
FIRST, SECOND = (forged(call) for call in TURN.tool_calls)


def whole() -> Session:
    session = Session()
    session.push_user("Add")
    found = opened(*adds(2))
    found.commit(session, done(found.tool_calls))
    return session


def test_a_valid_conversation_passes_in_every_form() -> None:
    """A session, transcript, view, request, committed round and plain list pass silently."""
    session = whole()
    request = session.text_turn(ScriptedModel([])).request()
    items = list(session.transcript)
    for form in (session, session.transcript, session.transcript.view(), request, items):
        assert_transcript_valid(form)
        assert_transcript_valid(form, "openai_chat")
        assert_transcript_valid(form, openai_chat)
    assert_transcript_valid([])
    found = opened(*adds(1))
    assert_transcript_valid(found.resolve(done(found.tool_calls)))


def test_an_ephemeral_message_counts_where_it_stands() -> None:
    """A request is judged with its ephemeral messages, not only by its transcript."""
    session = whole()
    session.push_ephemeral_user("aside")
    assert_transcript_valid(session._request_items())
    assert_transcript_valid(TurnRequest(items=session._request_items()))


BROKEN: list[tuple[list[Any], list[str]]] = [
    (
        [TURN],
        [
            "items[0].tool_calls[0]: the call 'c0' of `add` has no result",
            "items[0].tool_calls[1]: the call 'c1' of `add` has no result",
        ],
    ),
    ([TURN, FIRST], ["items[0].tool_calls[1]: the call 'c1' of `add` has no result"]),
    (
        [TURN, HELLO, FIRST, SECOND],
        [
            "items[2]: the result belongs right after items[0], which made the call",
            "items[3]: the result belongs right after items[0], which made the call",
        ],
    ),
    (
        [TURN, SECOND, FIRST],
        [
            "items[1]: the results of items[0] are not in the order of its calls",
            "items[2]: the results of items[0] are not in the order of its calls",
        ],
    ),
    (
        [TURN, FIRST, FIRST, SECOND, HELLO, "no item", HELLO],
        [
            "items[2]: the result 'c0' answers a call that has a result already",
            "items[5]: 'no item' is not an item of a transcript",
        ],
    ),
    (
        [turn(*adds(1), *adds(1)), forged(TURN.tool_calls[0])],
        [
            "items[0].tool_calls[1]: two calls of the turn share the id 'c0'",
            "items[0].tool_calls[1]: the call 'c0' of `add` has no result",
        ],
    ),
]


@pytest.mark.parametrize(("items", "expected"), BROKEN)
def test_every_violation_is_told_with_its_place(items: list[Any], expected: list[str]) -> None:
    """Each violation is told once, the ones behind the first too."""
    with pytest.raises(AssertionError) as caught:
        assert_transcript_valid(items)
    head, *lines = str(caught.value).split("\n- ")
    count = "1 place" if len(expected) == 1 else f"{len(expected)} places"
    assert head == f"The conversation is invalid, in {count}:"
    assert len(lines) == len(expected)
    assert all(line.startswith(text) for line, text in zip(lines, expected, strict=True))


def test_a_tampered_session_is_found() -> None:
    """What was pushed past the checks of a transcript is found."""
    session = whole()
    session.transcript._items.append(TURN)
    with pytest.raises(AssertionError, match="has no result"):
        assert_transcript_valid(session, "openai_chat")


def test_a_providers_messages_are_judged_by_its_rules() -> None:
    """A list of messages or a whole body is checked by the dialect, violations with their paths."""
    orphan = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    for form in ([orphan, orphan], {"messages": [orphan, orphan]}):
        with pytest.raises(AssertionError) as caught:
            assert_transcript_valid(form, "openai_chat")
        text = str(caught.value)
        assert text.startswith("The conversation is invalid as openai_chat, in 2 places:")
        assert "messages[0]" in text
        assert "messages[1]" in text
        assert "(orphan_result)" in text
    assert_transcript_valid([{"role": "user", "content": "Hello"}], "openai_chat")


def test_a_conversation_is_also_judged_as_it_is_rendered() -> None:
    """With a dialect, what a transcript becomes on that wire is checked too."""

    class Refusing:
        NAME = "openai_chat"

    with pytest.raises(AssertionError, match="as openai_chat, in 1 place"):
        assert_transcript_valid([Message("user", "x"), turn(*adds(1))], Refusing)  # type: ignore[arg-type]


@pytest.mark.parametrize("said", [[], [AssistantTurn(text="I begin")]])
def test_how_a_conversation_begins_is_a_rule_of_the_provider(said: list[Any]) -> None:
    """What cannot be written for a provider, since the user has to begin, is a broken rule too."""
    with pytest.raises(AssertionError, match=r"in 1 place:\n- .* the user first"):
        assert_transcript_valid(said, "anthropic_messages")


@pytest.mark.parametrize(
    "strange", [[{"role": "user"}], {"messages": []}, "text", b"text", 7, None]
)
def test_what_is_no_conversation_is_told_so(strange: Any) -> None:
    """Plain messages without a dialect, and what is no conversation at all, are a misuse."""
    with pytest.raises(MisuseError):
        assert_transcript_valid(strange)


def test_an_unknown_dialect_is_told_with_those_there_are() -> None:
    """A wrong dialect is refused with the names of the right ones."""
    with pytest.raises(MisuseError, match=r"'openai' is not a dialect\. There are openai_chat, "):
        assert_transcript_valid([], "openai")
    with pytest.raises(MisuseError, match="not a dialect"):
        assert_transcript_valid([], pytest)


def test_a_turn_without_calls_needs_no_result() -> None:
    """A turn that only says something leaves nothing open."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text="Hi"))
    assert_transcript_valid(transcript)
    assert ToolMetadata(id="a", name="b", arguments="").id == "a"
