"""What `read_history` gives: the inverse of `messages`, and losses that name their place."""

from __future__ import annotations

import copy
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.errors import DialectError, HistoryError
from lutum_py.testing.strategies import scripts
from lutum_py.turns import TranscriptItem
from tests.cases import over
from tests.profiles import scaled

from .broken_requests import broken_request
from .every_dialect import DIALECTS, as_response, key_of
from .plain import rejected
from .test_every_dialect import calls_of, conversations


def text(item: TranscriptItem) -> str:
    return item.model_text if isinstance(item, ToolResult) else item.text


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_reading_inverts_writing(dialect: ModuleType, conversation: list[TranscriptItem]) -> None:
    """Of a transcript that was written everything is read, in its order, and written the same."""
    written = dialect.messages(conversation)
    before = copy.deepcopy(written)
    transcript, losses = dialect.read_history(written)
    assert (written, losses) == (before, [])
    assert dialect.messages(transcript) == written
    assert said(transcript) == said(dialect.read_history(dialect.messages(transcript))[0])
    turns = [item for item in conversation if isinstance(item, AssistantTurn)]
    read = [item for item in transcript if isinstance(item, AssistantTurn)]
    assert "".join(turn.text for turn in read) == "".join(turn.text for turn in turns)
    calls: list[Any] = [call for turn in turns for call in calls_of(turn)]
    assert [call for turn in read for call in calls_of(turn)] == calls
    assert not any(turn.is_truncated for turn in read)
    results = [item for item in conversation if isinstance(item, ToolResult)]
    answers = [item for item in transcript if isinstance(item, ToolResult)]
    assert [each.name for each in answers] == [each.name for each in results]
    told: list[Any] = [item.text for item in conversation if isinstance(item, Message)]
    kept = [item.text for item in transcript if isinstance(item, Message)]
    assert kept == (told if len(kept) == len(told) else kept)
    assert Transcript.load_json(transcript.dump_json()) == transcript


@DIALECTS
def test_nothing_beside_what_the_model_says_is_lost_in_silence(dialect: ModuleType) -> None:
    """A field of a message of the model, as of a stored response, goes back or is a loss."""
    (said,) = dialect.messages([AssistantTurn(text="Hi")])
    started = [*dialect.messages([Message("user", "Hello")]), {**said, "stored": "Monday"}]
    transcript, losses = dialect.read_history(started)
    goes_back = dialect.messages(transcript)[1].get("stored") == "Monday"
    named = [loss.where for loss in losses]
    assert (goes_back, named) in [(True, []), (False, [f"{key_of(dialect)}[1].stored"])]


def said(items: Any) -> list[tuple[str, str]]:
    return [(type(item).__name__, text(item)) for item in items]


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_a_turn_comes_back_as_it_was_sent(
    dialect: ModuleType, conversation: list[TranscriptItem]
) -> None:
    """What the model said is kept as its payload, and a body is read like its list."""
    items = [
        dialect.decode(as_response(dialect, dialect.messages([item])))
        if isinstance(item, AssistantTurn)
        else item
        for item in conversation
    ]
    body = dialect.encode_request(TurnRequest(items=items))
    transcript, losses = dialect.read_history(body)
    assert losses == []
    assert dict(dialect.encode_request(TurnRequest(items=transcript))) == body
    assert all(
        turn.payload and turn.dialect == dialect.NAME
        for turn in transcript
        if isinstance(turn, AssistantTurn)
    )


@tool_fn
def add(a: int, b: int) -> int:
    return a + b


class Sums(Toolset):
    add = tool(add)


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=scaled(50))
@given(script=scripts(Sums, odd_ids=False))
def test_whatever_a_model_asks_comes_back(
    dialect: ModuleType, script: tuple[AssistantTurn, ...]
) -> None:
    """Calls of any kind, with odd names and broken arguments, are read as they were written."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    for turn in script:
        if turn.tool_calls:
            answers = [rejected(call, "no") for call in turn.tool_calls]
            transcript.append_round(CommittedRound(turn, answers))
        else:
            transcript.append_turn(turn)
    written = dialect.messages(transcript)
    read_again, losses = dialect.read_history(written)
    assert losses == []
    assert dialect.messages(read_again) == written
    assert [type(item) for item in read_again] == [type(item) for item in transcript]


@DIALECTS
def test_whatever_is_given_is_read_or_refused(dialect: ModuleType) -> None:
    """A broken request is refused with all its violations; once it was repaired it is read, or a
    turn of the model in it is named that nobody can read.
    """
    random = Random(17)
    for _ in range(scaled(600)):
        broken = broken_request(dialect.NAME, random)
        found = dialect.check(broken)
        if {each.rule for each in found} - {"empty_conversation"}:
            with pytest.raises(HistoryError) as caught:
                dialect.read_history(broken)
            assert caught.value.dialect == dialect.NAME
            assert list(caught.value.violations) == found
            assert all(str(each) in str(caught.value) for each in found)
        repaired, _ = dialect.repair(broken)
        where = key_of(dialect)
        try:
            transcript, losses = dialect.read_history(repaired)
        except DialectError as error:
            where = error.where
        else:
            assert all(loss.where and loss.text for loss in losses)
            assert Transcript.load_json(transcript.dump_json()) == transcript
        assert where.startswith(key_of(dialect)), broken


@DIALECTS
@over("given", [None, 5, "text", {}, object()])
def test_what_is_no_request_is_refused(dialect: ModuleType, given: Any) -> None:
    """Anything without a conversation is refused as `check` refuses it."""
    assert dialect.check(given)
    with pytest.raises(HistoryError):
        dialect.read_history(given)


@DIALECTS
@over("is_body", [False, True])
def test_a_conversation_that_nobody_has_begun_is_an_empty_transcript(
    dialect: ModuleType, is_body: bool
) -> None:
    """What `messages` gives of nothing is read as nothing, though a provider wants to hear more."""
    written: Any = dialect.messages(Transcript())
    request = {key_of(dialect): written} if is_body else written
    assert dialect.check(request)
    assert dialect.read_history(request) == (Transcript(), [])
