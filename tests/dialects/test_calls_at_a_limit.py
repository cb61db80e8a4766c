"""The last call of a turn that ended at a limit: one rule for all dialects."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from lutum_py import AssistantTurn, Message, Session, ToolMetadata, Toolset, Transcript, TurnRequest
from lutum_py.dialects import openai_responses

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
