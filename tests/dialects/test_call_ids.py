"""The laws of call ids: what goes to a provider has ids that it takes, and each of its own."""

from __future__ import annotations

import re
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn, CommittedRound, Message, ToolMetadata, ToolResult, Transcript
from lutum_py.dialects import gemini_generate_content, openai_chat, openai_responses

from .every_dialect import OF_LIBRARY, WIRES

LONG = "call_" + "x" * 60
ODD = "call:1/ü"
BY_ID = pytest.mark.parametrize(
    "dialect", [name for name in OF_LIBRARY if WIRES[name].TAKEN_IDS is not None], indirect=True
)
"""The dialects in which a call and its result meet by an id."""


def round_of(*ids: str) -> CommittedRound:
    calls = [ToolMetadata(id=id, name="add", arguments="{}") for id in ids]
    results = [
        ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=f'"{call.id}"')
        for call in calls
    ]
    return CommittedRound(AssistantTurn(tool_calls=calls), results)


def transcript_of(*rounds: tuple[str, ...]) -> Transcript:
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    for ids in rounds:
        transcript.append_round(round_of(*ids))
    return transcript


def ids_in(dialect: ModuleType, messages: list[Any]) -> tuple[list[str], list[str]]:
    """Give the ids of the calls and of the results in a request, in order."""
    found: tuple[list[str], list[str]] = WIRES[dialect.NAME].ids_in(messages)
    return found


ROUNDS = (("a", LONG), ("a", "b"), (ODD, LONG), ("a", "a_2", LONG[:50]))


@BY_ID
def test_what_goes_out_has_ids_that_the_provider_takes(dialect: ModuleType) -> None:
    """Call and result alike go out by an id of their own, of the characters that fit."""
    messages = dialect.messages(transcript_of(*ROUNDS))
    calls, results = ids_in(dialect, messages)
    assert calls == results
    assert len(set(calls)) == len(calls) == 9
    assert all(re.fullmatch(WIRES[dialect.NAME].TAKEN_IDS, each) for each in calls)
    assert calls[0] == "a"
    assert calls[3] == "b"
    assert calls[7] == "a_2"
    assert dialect.check(messages) == []


@BY_ID
def test_an_id_without_characters_is_made(dialect: ModuleType) -> None:
    """A call whose id is an empty text goes out by a made one, and its result by the same."""
    messages = dialect.messages(transcript_of(("", "a"), ("",)))
    calls, results = ids_in(dialect, messages)
    assert calls == results
    assert len(set(calls)) == len(calls) == 3
    assert all(re.fullmatch(WIRES[dialect.NAME].TAKEN_IDS, each) for each in calls)
    assert dialect.check(messages) == []


@BY_ID
def test_a_call_has_the_same_id_in_every_later_request(dialect: ModuleType) -> None:
    """What is said later changes no id that went out, with what is kept between requests or not."""
    transcript = transcript_of()
    seen: list[list[str]] = []
    for ids in ROUNDS:
        transcript.append_round(round_of(*ids))
        seen.append(ids_in(dialect, dialect.messages(transcript))[0])
        assert seen[-1] == ids_in(dialect, dialect.messages(list(transcript)))[0]
    assert all(later[: len(before)] == before for before, later in pairwise(seen))


@BY_ID
def test_no_id_is_made_that_a_call_has(dialect: ModuleType) -> None:
    """A call whose id is one that was made for another goes out by a third."""
    first = ids_in(dialect, dialect.messages(transcript_of((LONG + "y",), ("c",), ("c",))))[0]
    calls, results = ids_in(
        dialect, dialect.messages(transcript_of((LONG + "y",), ("c",), ("c",), tuple(first[::2])))
    )
    assert calls == results
    assert len(set(calls)) == len(calls)


def test_a_host_of_chat_gets_its_own_ids_back() -> None:
    """A host may make long ids, and the same in each turn; what another made goes around them."""
    call = {"id": LONG, "type": "function", "function": {"name": "add", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    transcript = transcript_of()
    for _ in range(2):
        turn = openai_chat.decode({"choices": [{"message": message}]})
        (made,) = turn.tool_calls
        result = ToolResult(id=made.id, name="add", arguments="{}", result="1")
        transcript.append_round(CommittedRound(turn, [result]))
    transcript.append_round(round_of(LONG))
    calls, results = ids_in(openai_chat, openai_chat.messages(transcript))
    assert calls == results
    assert calls[:2] == [LONG, LONG]
    assert len(calls[2]) <= 40


def test_an_answer_repeats_who_called() -> None:
    """The output of a call that a program made says so, as the call does."""
    caller = {"type": "program", "caller_id": "p1"}
    call: dict[str, Any] = {
        "type": "function_call",
        "call_id": "c1",
        "name": "add",
        "arguments": "{}",
        "caller": caller,
    }
    turn = openai_responses.decode({"output": [call]})
    result = ToolResult(id="c1", name="add", arguments="{}", result="1")
    sent_back = openai_responses.messages(CommittedRound(turn, [result]))
    assert sent_back[1] == {
        "type": "function_call_output",
        "call_id": "c1",
        "caller": caller,
        "output": "1",
    }
    repaired, _ = openai_responses.repair([call])
    assert repaired[1]["caller"] == caller


def answered(id: str) -> list[Any]:
    call: Any = {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": id, "output": "1"}]


def test_two_calls_of_one_id_are_reported() -> None:
    """Responses wants one id for one call, in whichever turns they stand."""
    module = openai_responses
    request = [*answered("c1"), *answered("c1")]
    assert [each.rule for each in module.check(request)] == ["duplicate_call_id"]
    repaired, changes = module.repair(request)
    assert len(changes) == 1
    assert module.check(repaired) == []
    calls, results = ids_in(module, repaired)
    assert calls == results
    assert len(set(calls)) == 2


def test_too_long_ids_are_reported() -> None:
    """Responses takes 64 characters, and a longer id is replaced where a request is repaired."""
    for request in (
        answered("x" * 65),
        [*answered("x" * 65), *answered("x" * 65)],
        [*answered("x" * 64), *answered("x" * 64)],
    ):
        assert openai_responses.check(request)
        repaired, _ = openai_responses.repair(request)
        assert openai_responses.check(repaired) == []
        calls, results = ids_in(openai_responses, repaired)
        assert calls == results
    rules = [each.rule for each in openai_responses.check(answered("x" * 65))]
    assert rules == ["invalid_call_id"]
    assert openai_responses.check(answered("x" * 64)) == []


def test_gemini_is_sent_no_id_of_another() -> None:
    """Where calls are told apart by their order, ids of another provider stay at home."""
    assert "id" not in str(gemini_generate_content.messages(transcript_of(*ROUNDS))[1]["parts"][0])
