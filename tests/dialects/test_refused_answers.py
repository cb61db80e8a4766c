"""An answer that the model refused, or that a filter took: one rule for all dialects."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    Answer,
    AssistantTurn,
    Finished,
    Message,
    NoAnswer,
    Session,
    ToolMetadata,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import gemini_generate_content, openai_chat
from lutum_py.errors import TranscriptError
from lutum_py.testing import ScriptedClient
from lutum_py.turns import RefusalItem, TextItem, ToolCallItem, TranscriptItem
from tests.cases import over

from .every_dialect import DIALECTS, OF_LIBRARY, REFUSED, TRUNCATED, key_of, response_of, wire_of
from .wire_laws import MODULES as OTHERS

SAID = "I was about to s"


class Invoice(BaseModel):
    total: float


@tool_fn
def clean(path: str = ".") -> str:
    """Delete what is in a folder."""
    return f"cleaned {path}"


class Files(Toolset):
    clean = tool(clean)


def filtered(dialect: ModuleType, reason: str = "", *calls: ToolMetadata) -> dict[str, Any]:
    """A response that a filter ended."""
    reason = reason or REFUSED[dialect.NAME][0]
    said = response_of(dialect.NAME, AssistantTurn(text=SAID, tool_calls=calls))
    made: dict[str, Any] = wire_of(dialect.NAME).ended(said, reason)
    return made


def streamed(dialect: ModuleType, response: dict[str, Any]) -> AssistantTurn:
    """The turn of the stream that says what a response says."""
    decoder = dialect.StreamDecoder()
    for event in ScriptedClient([response], dialect, check=False).create(stream=True):
        decoder.feed(event)
    turn: AssistantTurn = decoder.finish()
    return turn


@DIALECTS
def test_a_filtered_answer_is_refused_by_whoever_filtered_it(dialect: ModuleType) -> None:
    """Whole or streamed, by tool or by format: the reason is `refused`, and the turn says so."""
    for reason in REFUSED[dialect.NAME]:
        response = filtered(dialect, reason)
        turn = dialect.decode(response)
        assert (turn.finish_reason, turn.items) == (reason, (TextItem(SAID), RefusalItem("")))
        assert streamed(dialect, response).items == turn.items
        for answer in (Answer(Invoice), Answer(Invoice, by="format")):
            outcome = Toolset.read_turn(turn, answer=answer)
            assert isinstance(outcome, NoAnswer)
            assert (outcome.reason, outcome.result.refusal) == ("refused", "")
            assert outcome.text.startswith("The answer was refused or filtered. ")
        assert isinstance(Toolset.read_turn(turn), Finished)


@DIALECTS
@over("arguments", ["", "{}"])
def test_a_call_that_a_filter_cut_off_is_not_run(dialect: ModuleType, arguments: str) -> None:
    """Where the wire tells that arguments are missing, a filter cut them off as a limit does."""
    calls = [
        ToolMetadata(id=id, name="clean", arguments=text)
        for id, text in (("c1", "{}"), ("c2", arguments))
    ]
    turn = dialect.decode(filtered(dialect, "", *calls))
    text = turn.tool_calls[1].arguments
    is_missing = not text or wire_of(dialect.NAME).EMPTY_IS_MISSING
    assert (turn.cut_off, turn.is_truncated) == ("arguments" if is_missing else None, is_missing)
    assert blocked_in(Files.read_turn(turn)) == [call.id for call in turn.tool_calls]
    whole = ToolMetadata(id="c1", name="clean", arguments='{"path": "x"}')
    assert dialect.decode(filtered(dialect, "", whole)).cut_off is None


def blocked_in(outcome: Any) -> list[str]:
    """The ids of the calls of a round, none of which can be run; the round is given up."""
    opened = outcome.round
    with opened:
        assert opened.tool_calls == opened.plan().pending == ()
    issues = opened.recoverable_tool_call_issues
    assert {issue.reason for issue in issues} == {"blocked"}
    assert all("was refused or filtered, so the tool was not run" in each.text for each in issues)
    return [issue.metadata.id for issue in issues]


WHOLE = [
    ToolMetadata(id="c1", name="clean", arguments='{"path":"/srv/data"}'),
    ToolMetadata(id="c2", name="clean", arguments="{}"),
]


@DIALECTS
def test_no_call_of_a_blocked_turn_can_be_run(dialect: ModuleType) -> None:
    """Whatever its arguments, each call is an issue that the model reads, and what it sent is kept
    exactly: whole or streamed, saved or not, the conversation goes on at every provider.
    """
    for reason in REFUSED[dialect.NAME]:
        response = filtered(dialect, reason, *WHOLE)
        for turn in (dialect.decode(response), streamed(dialect, response)):
            assert turn.is_blocked
            sent = [(call.name, call.arguments) for call in turn.tool_calls]
            assert sent == [(call.name, call.arguments) for call in WHOLE]
            assert blocked_in(Files.read_turn(turn)) == [call.id for call in turn.tool_calls]
            outcome: Any = Files.read_turn(turn)
            session = Session()
            session.push_user("Go")
            Files.load_plan(outcome.round.plan().dump_json()).commit(session)
            loaded: Any = Transcript.load_json(session.transcript.dump_json())
            assert loaded == session.transcript
            assert loaded[1].is_blocked
            assert [each.code for each in loaded[2:]] == ["blocked", "blocked"]
            items = [*loaded, Message("user", "And?")]
            for other in (dialect, *OTHERS):
                body = other.encode_request(TurnRequest(items=items))
                assert other.check(body) == []
                assert json.dumps(body).count("was refused or filtered") == 2


@DIALECTS
def test_a_blocked_turn_gives_no_answer_of_a_type(dialect: ModuleType) -> None:
    """The call of an answer's tool is an issue as any other is, and none once it is committed."""
    call = ToolMetadata(id="c1", name="answer", arguments='{"total":3.5}')
    turn = dialect.decode(filtered(dialect, "", call))
    assert blocked_in(Files.read_turn(turn, answer=Invoice)) == [turn.tool_calls[0].id]
    outcome: Any = Files.read_turn(turn, answer=Invoice)
    session = Session()
    session.push_user("Go")
    outcome.round.commit(session)
    assert session.finished(Invoice) is None


def test_the_words_for_a_blocked_turn_are_known() -> None:
    """A turn that was made by hand, or saved without its refusal, is known by its finish reason,
    and one of any host by its refusal.
    """
    turns = [AssistantTurn(items=(RefusalItem(""), *map(ToolCallItem, WHOLE)))]
    turns += [
        AssistantTurn(tool_calls=WHOLE, finish_reason=reason)
        for name in OF_LIBRARY
        for reason in REFUSED[name]
    ]
    for turn in turns:
        assert turn.is_blocked
        assert blocked_in(Files.read_turn(turn)) == ["c1", "c2"]
        said = AssistantTurn(text='{"total": 1}', finish_reason=turn.finish_reason)
        outcome = Files.read_turn(said, answer=Answer(Invoice, by="format"))
        assert isinstance(outcome, NoAnswer) == said.is_blocked
    for calm in ("stop", "length", "OTHER", "", None):
        assert not AssistantTurn(tool_calls=WHOLE, finish_reason=calm).is_blocked


@DIALECTS
def test_the_testing_kit_says_blocked_turns(dialect: ModuleType) -> None:
    """What a model is let say by hand is blocked in every dialect, whatever word it was given."""
    said = AssistantTurn(tool_calls=WHOLE, finish_reason="SAFETY")
    turn = dialect.decode(response_of(dialect.NAME, said))
    assert turn.is_blocked
    assert blocked_in(Files.read_turn(turn)) == [call.id for call in turn.tool_calls]


def test_a_call_of_no_tool_is_told_as_that() -> None:
    """In a blocked turn, too, the model hears that there is no such tool."""
    call = ToolMetadata(id="c1", name="cleanse", arguments="{}")
    outcome: Any = Files.read_turn(AssistantTurn(tool_calls=[call], finish_reason="refusal"))
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert (issue.reason, issue.suggestion) == ("unknown_tool", "clean")
    outcome.round.discard()


def test_a_blocked_turn_is_shown_as_one() -> None:
    """The page of a conversation names the word of the provider."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text=SAID, finish_reason="SPII"))
    assert "blocked" in transcript.__rich__().plain


@DIALECTS
def test_a_saved_turn_keeps_the_refusal_of_its_filter(dialect: ModuleType) -> None:
    """A refusal without words is loaded as it was, and a text that lost it is damaged."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_turn(dialect.decode(filtered(dialect)))
    saved = json.loads(transcript.dump_json())
    assert Transcript.load_json(json.dumps(saved))[1] == transcript[1]
    saved["items"][1]["items"].pop()
    with pytest.raises(TranscriptError, match="another text than its payload"):
        Transcript.load_json(json.dumps(saved))


@DIALECTS
def test_a_refusal_without_words_says_nothing_elsewhere(dialect: ModuleType) -> None:
    """Another provider is sent what was said before, and no empty message for the refusal."""
    turn = AssistantTurn(items=(TextItem(SAID), RefusalItem("")), finish_reason="SAFETY")
    said: list[TranscriptItem] = [Message("user", "Go"), turn, Message("user", "And?")]
    body = dialect.encode_request(TurnRequest(items=said))
    assert dialect.check(body) == []
    assert len(body[key_of(dialect)]) == 3
    assert "refusal" not in json.dumps(body)


@over(
    "response",
    [
        {"finishReason": "SAFETY", "finishMessage": "It is not safe."},
        {"finishReason": "SAFETY", "finishMessage": "It is not safe.", "content": {"parts": []}},
    ],
)
def test_gemini_says_why_an_answer_was_filtered(response: dict[str, Any]) -> None:
    """The words that Google has for its filter are those of the refusal, and only of one."""
    turn = gemini_generate_content.decode({"candidates": [response]})
    assert turn.items == (RefusalItem("It is not safe."),)
    other = {"candidates": [{**response, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    assert gemini_generate_content.decode(other).items == ()


def test_a_filter_may_leave_no_message() -> None:
    """A choice that only says why it ended, as Google's hosts send it, is a turn of no words."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}
    turn = openai_chat.decode({"choices": [{**choice, "message": None, "logprobs": None}]})
    assert turn == openai_chat.decode({"choices": [choice]})
    assert turn.items == (RefusalItem(""),)
    (said,) = openai_chat.messages([turn])
    assert said == {"role": "assistant", "content": ""}


def test_a_router_passes_on_why_the_provider_behind_it_ended_the_turn() -> None:
    """A word for a failure, a limit or a filter that stands beside a calm one counts as the reason,
    whole or streamed; a calm word, or one beside a word of the router's own, changes nothing.
    """
    for calm in ("stop", "tool_calls"):
        for behind in [word for name in OF_LIBRARY for word in (*TRUNCATED[name], *REFUSED[name])]:
            response = filtered(openai_chat, calm, *WHOLE)
            choice = response["choices"][0]
            choice["native_finish_reason"] = behind
            decoder = openai_chat.StreamDecoder()
            decoder.feed({"choices": [{"delta": choice["message"], "native_finish_reason": None}]})
            decoder.feed({"choices": [{"delta": {}, **choice, "message": None}]})
            for turn in (openai_chat.decode(response), decoder.finish()):
                said = AssistantTurn(finish_reason=behind)
                assert turn.finish_reason == behind
                assert turn.is_blocked == said.is_blocked == (turn.refusal is not None)
                assert turn.is_truncated == said.is_truncated == (turn.cut_off is not None)
                outcome: Any = Files.read_turn(turn)
                kept = [call.id for call in outcome.round.tool_calls]
                assert kept == ([] if turn.is_blocked else ["c1"])
                outcome.round.discard()
    for ends in ("stop", "length", "content_filter"):
        for calm_or_later in ("STOP", "completed", "", None, "error" if ends != "stop" else None):
            choice = {"message": {"content": SAID}, "finish_reason": ends}
            choice |= {"native_finish_reason": calm_or_later}
            assert openai_chat.decode({"choices": [choice]}).finish_reason == ends
    silent = {"finish_reason": "stop", "native_finish_reason": "network_error"}
    assert openai_chat.decode({"choices": [silent]}).is_truncated


def test_a_blocked_prompt_blocks_what_was_said_beside_it() -> None:
    """Gemini may name a block beside candidates: no call of them runs."""
    for message in ("not this", None):
        call = ToolMetadata(id="c1", name="clean", arguments="{}")
        response = response_of(gemini_generate_content.NAME, AssistantTurn(tool_calls=[call]))
        response["promptFeedback"] = {"blockReason": "SAFETY", "blockReasonMessage": message}
        for turn in (
            gemini_generate_content.decode(response),
            streamed(gemini_generate_content, response),
        ):
            assert turn.is_blocked
            assert turn.refusal == (message or "")
            outcome: Any = Files.read_turn(turn)
            with outcome.round as opened:
                assert not opened.plan().pending
            (issue,) = opened.recoverable_tool_call_issues
            assert issue.reason == "blocked"


@over("word", ["CONTENT_FILTER", "Content-Filter", "safety", "content_filter : SAFETY", "Refusal"])
def test_a_word_for_a_block_is_known_in_any_spelling(word: str) -> None:
    """Hosts that pass on what a provider said write its word in their way."""
    call = ToolMetadata(id="c1", name="clean", arguments="{}")
    assert AssistantTurn(tool_calls=[call], finish_reason=word).is_blocked
