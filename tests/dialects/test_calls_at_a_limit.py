"""The last call of a turn that ended at a limit: one rule for all dialects."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from lutum_py import (
    AssistantTurn,
    Message,
    Session,
    ToolDef,
    ToolMetadata,
    Toolset,
    Transcript,
    TurnRequest,
)
from lutum_py.dialects import openai_chat, openai_responses
from tests.cases import over

from .every_dialect import DIALECTS, OF_LIBRARY, TRUNCATED, response_of, wire_of
from .test_refused_answers import Files, Invoice, streamed
from .wire_laws import MODULES as OTHERS


def calls(*arguments: str) -> list[ToolMetadata]:
    """Calls of one tool, by their arguments."""
    return [
        ToolMetadata(id=f"c{at}", name="clean", arguments=text)
        for at, text in enumerate(arguments, 1)
    ]


# What an SDK makes of `{"path": "/srv/data", "only_em`, what it makes of `{"pa`, and what looks
# complete on every wire.
COMPLETED = ['{"path":"/srv/data"}', "{}", '{"path":""}']


def read(turn: AssistantTurn) -> tuple[list[str], list[str]]:
    """The ids of the calls of a turn that can be run, and of those that were cut off."""
    outcome: Any = Files.read_turn(turn)
    with outcome.round as opened:
        runnable = [call.id for call in opened.plan().pending]
    issues = opened.recoverable_tool_call_issues
    for each in issues:
        assert each.reason == "invalid_arguments"
        assert "cut off by the limit on tokens: its arguments may be incomplete" in each.text
    return runnable, [each.metadata.id for each in issues]


@DIALECTS
def test_the_last_call_of_a_turn_at_a_limit_is_not_run(dialect: ModuleType) -> None:
    """However complete its arguments look, the last call is an issue that says so, and those before
    it can be run; what was sent is kept exactly, and the conversation goes on at every provider.
    """
    for reason in TRUNCATED[dialect.NAME]:
        for text in COMPLETED:
            said = AssistantTurn(tool_calls=calls('{"path":"/a"}', "{}", text))
            response = wire_of(dialect.NAME).ended(response_of(dialect.NAME, said), reason)
            for turn in (dialect.decode(response), streamed(dialect, response)):
                ids = [call.id for call in turn.tool_calls]
                assert turn.finish_reason == reason
                assert turn.is_truncated
                assert turn.tool_calls[-1].arguments == text
                assert read(turn) == (ids[:2], ids[2:])
                outcome: Any = Files.read_turn(turn)
                session = Session()
                session.push_user("Go")
                plan = Files.load_plan(outcome.round.plan().dump_json())
                plan.commit(session, [call.call_sync() for call in plan.pending])
                loaded = Transcript.load_json(session.transcript.dump_json())
                assert loaded == session.transcript
                items = [*loaded, Message("user", "And?")]
                for other in (dialect, *OTHERS):
                    body = other.encode_request(TurnRequest(items=items))
                    assert other.check(body) == []
                    assert json.dumps(body).count("its arguments may be incomplete") == 1


@DIALECTS
def test_an_answer_at_a_limit_is_none(dialect: ModuleType) -> None:
    """An answer by a tool that looks complete may lack what has a default: it is an issue."""

    class Bill(Invoice):
        note: str = ""

    call = ToolMetadata(id="c1", name="answer", arguments='{"total":3.5}')
    for reason in TRUNCATED[dialect.NAME]:
        response = response_of(dialect.NAME, AssistantTurn(tool_calls=[call]))
        turn = dialect.decode(wire_of(dialect.NAME).ended(response, reason))
        outcome: Any = Toolset.read_turn(turn, answer=Bill)
        (issue,) = outcome.round.recoverable_tool_call_issues
        assert "cut off by the limit on tokens" in issue.text
        session = Session()
        session.push_user("Go")
        outcome.round.commit(session)
        assert session.finished(Bill) is None


def test_the_words_for_a_limit_are_known() -> None:
    """A turn that was made by hand, or saved before, is known by its finish reason alone."""
    for name in OF_LIBRARY:
        for reason in TRUNCATED[name]:
            turn = AssistantTurn(tool_calls=calls(*COMPLETED), finish_reason=reason)
            assert read(turn) == (["c1", "c2"], ["c3"])
    calm = AssistantTurn(tool_calls=calls(*COMPLETED), finish_reason="stop")
    assert read(calm) == (["c1", "c2", "c3"], [])


def test_a_response_may_be_incomplete_for_no_reason() -> None:
    """Where a host leaves out why a response is incomplete, its last call is none to run."""
    response = response_of(openai_responses.NAME, AssistantTurn(tool_calls=calls(*COMPLETED)))
    response["status"] = "incomplete"
    turn = openai_responses.decode(response)
    assert turn.is_truncated
    assert read(turn)[1] == [turn.tool_calls[-1].id]


def taken_at(response: Any, *path: Any) -> Any:
    """Take a field of a response away, and what it was."""
    for key in path[:-1]:
        response = response[key]
    return response.pop(path[-1])


MODULE_OF = {module.NAME: module for module in OTHERS}
REASONS: dict[str, tuple[Any, ...]] = {
    "anthropic_messages": ("stop_reason",),
    "bedrock_converse": ("stopReason",),
    "gemini_generate_content": ("candidates", 0, "finishReason"),
    "openai_chat": ("choices", 0, "finish_reason"),
}


@over("name", [*REASONS])
@over("is_null", [True, False])
def test_the_last_call_of_a_response_that_still_grows_is_not_run(name: str, is_null: bool) -> None:
    """The object of an SDK has no finish reason while it grows, and its last call looks whole."""
    dialect = MODULE_OF[name]
    response = response_of(name, AssistantTurn(tool_calls=calls(*COMPLETED)))
    response.pop("usage", None)
    taken_at(response, *REASONS[name])
    if is_null:
        holder = response if len(REASONS[name]) == 1 else response[REASONS[name][0]][0]
        holder[REASONS[name][-1]] = None
    turn = dialect.decode(response)
    ids = [call.id for call in turn.tool_calls]
    assert turn.is_truncated
    assert read(turn) == (ids[:2], ids[2:])
    outcome: Any = Files.read_turn(turn)
    session = Session()
    session.push_user("Go")
    plan = Files.load_plan(outcome.round.plan().dump_json())
    plan.commit(session, [call.call_sync() for call in plan.pending])
    loaded = Transcript.load_json(session.transcript.dump_json())
    assert loaded == session.transcript


def test_a_host_of_chat_may_give_no_finish_reason() -> None:
    """What a call cost is known once it is whole; `[DONE]` ends a stream without either."""
    response = response_of("openai_chat", AssistantTurn(tool_calls=calls("{}")))
    taken_at(response, *REASONS["openai_chat"])
    response["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    assert not openai_chat.decode(response).is_truncated
    decoder = openai_chat.StreamDecoder()
    call = {"index": 0, "id": "c1", "function": {"name": "clean", "arguments": "{}"}}
    decoder.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    decoder.feed("[DONE]")
    assert not decoder.finish().is_truncated


def test_a_text_without_a_finish_reason_is_whole() -> None:
    """It is read by people, and nothing runs by it."""
    for name, path in REASONS.items():
        response = response_of(name, AssistantTurn(text="Hi"))
        response.pop("usage", None)
        taken_at(response, *path)
        assert not MODULE_OF[name].decode(response).is_truncated


@over("status", ["in_progress", "incomplete"])
@over("of_response", ["completed", None])
def test_an_item_that_is_not_whole_is_not_run(status: str, of_response: str | None) -> None:
    """Each item of the Responses API has a status of its own, which counts in any response."""
    response = response_of(openai_responses.NAME, AssistantTurn(tool_calls=calls(*COMPLETED)))
    response["status"] = of_response
    response["output"][-1]["status"] = status
    turn = openai_responses.decode(response)
    ids = [call.id for call in turn.tool_calls]
    assert turn.is_truncated
    assert read(turn) == (ids[:2], ids[2:])


@over("at", [0, 1])
@over("status", ["in_progress", "incomplete"])
def test_no_call_runs_beside_one_that_broke_off_before_it(status: str, at: int) -> None:
    """Where an item before the last call is not whole, no call of the turn is run, loaded or not;
    nor is it the answer.
    """
    response = response_of(openai_responses.NAME, AssistantTurn(tool_calls=calls(*COMPLETED)))
    response["output"][at]["status"] = status
    turn = openai_responses.decode(response)
    assert turn.cut_off == "calls"
    assert read(turn) == ([], ["c1", "c2", "c3"])
    session = Session()
    session.push_user("Go")
    outcome: Any = Files.read_turn(turn)
    outcome.round.commit(session)
    loaded: Any = Transcript.load_json(session.transcript.dump_json())[1]
    assert loaded == turn
    assert read(loaded) == read(turn)
    answers = [ToolMetadata(id="c9", name="answer", arguments='{"total":3.5}'), *calls("{}")]
    response = response_of(openai_responses.NAME, AssistantTurn(tool_calls=answers))
    response["output"][0]["status"] = status
    outcome = Files.read_turn(openai_responses.decode(response), answer=Invoice)
    issues = outcome.round.recoverable_tool_call_issues
    assert [each.metadata.id for each in issues] == ["c9", "c1"]
    outcome.round.discard()


@over("status", ["cancelled", "incomplete"])
def test_a_response_that_is_not_completed_is_cut_off(status: str) -> None:
    """One that stopped early is a turn; one that still runs is none, and has no call to run."""
    response = response_of(openai_responses.NAME, AssistantTurn(tool_calls=calls(*COMPLETED)))
    response["status"] = status
    assert read(openai_responses.decode(response))[1] == ["c3"]


@over(
    "word", ["LENGTH", "Max-Tokens", "max_tokens: 4096", " length ", "Insufficient_System_Resource"]
)
def test_a_word_of_a_host_is_known_in_any_spelling(word: str) -> None:
    """Hosts that pass on what a provider said write its word in their way."""
    turn = AssistantTurn(tool_calls=calls("{}"), finish_reason=word)
    assert turn.is_truncated
    assert read(turn) == ([], ["c1"])


@over(
    "schema, is_run",
    [
        ({"type": "object"}, True),
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "additionalProperties": True}, False),
        ({"type": "object", "additionalProperties": {"type": "string"}}, False),
        ({"type": "object", "additionalProperties": {}}, False),
        ({"type": "object", "patternProperties": {"^a": {}}}, False),
        ({"type": "object", "propertyNames": {"maxLength": 3}}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}}}}, False),
    ],
)
@over("arguments", ["", "{}", " "])
def test_nothing_is_whole_only_for_a_tool_that_takes_nothing(
    schema: dict[str, Any], is_run: bool, arguments: str
) -> None:
    """A tool that takes any names may have been going to get some."""
    tools = Toolset.from_definitions(
        "Tools", [ToolDef(name="clean", description="Clean.", input_schema=schema)]
    )
    turn = AssistantTurn(tool_calls=calls(arguments), finish_reason="length")
    outcome: Any = tools.read_turn(turn)
    with outcome.round as opened:
        assert len(opened.plan().pending) == is_run
