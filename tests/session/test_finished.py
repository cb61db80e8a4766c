"""The laws of `session.finished`: a conversation that is over says so, and gives its answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lutum_py import (
    Answer,
    AssistantTurn,
    Finished,
    NeedsTools,
    NoAnswer,
    Session,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.testing import ScriptedModel
from lutum_py.turns import RefusalItem, TextItem
from tests.cases import over


class Invoice(BaseModel):
    """What is to be paid."""

    total: float


@tool_fn
def look(text: str) -> str:
    """Look something up."""
    return text


class Tools(Toolset):
    look = tool(look)


PAID = ("c1", "answer", {"total": 3})
LOOK = ("c2", "look", {"text": "a"})
FORMAT: Answer[Invoice] = Answer(Invoice, by="format")


def asked(*turns: AssistantTurn, answer: Any = None) -> tuple[Session, Any]:
    """A conversation after these turns, and what the last of them came to."""
    session, model, last = Session(), ScriptedModel(turns), None
    session.push_user("Hello")
    for _ in turns:
        builder = session.text_turn(model).tools(Tools)
        last = builder.answer(answer).collect_sync() if answer else builder.collect_sync()
        if isinstance(last, NeedsTools):
            plan = last.round.plan()
            plan.commit(session, [call.call_sync() for call in plan.pending])
    return session, last


def saved(session: Session) -> Session:
    return Session(Transcript.load_json(session.transcript.dump_json()))


@over(
    "turn, answer",
    [
        (ScriptedModel.text("Hi!"), None),
        (ScriptedModel.tool_calls(PAID), Invoice),
        (ScriptedModel.tool_calls(PAID), Answer(Invoice)),
        (ScriptedModel.text('{"total": 3}'), FORMAT),
    ],
)
def test_a_finished_turn_is_found_again(turn: AssistantTurn, answer: Any) -> None:
    """What `collect` gave is what the conversation ends with, saved and loaded as well."""
    session, outcome = asked(ScriptedModel.tool_calls(LOOK), turn, answer=answer)
    assert isinstance(outcome, Finished)
    assert session.finished(answer) == outcome
    assert saved(session).finished(answer) == outcome


def test_an_answer_beside_calls_finishes_the_conversation() -> None:
    """Once the round is committed, the answer that came with it counts."""
    session, outcome = asked(ScriptedModel.tool_calls(PAID, LOOK), answer=Invoice)
    assert outcome.round.answer == Invoice(total=3)
    found = saved(session).finished(Invoice)
    assert found is not None
    assert found.answer == Invoice(total=3)
    assert found.result.committed is not None
    assert [*found.result.committed] == [*session.transcript[1:]]


@over(
    "turn, answer",
    [
        (ScriptedModel.tool_calls(LOOK), None),
        (ScriptedModel.tool_calls(LOOK), Invoice),
        (ScriptedModel.tool_calls(LOOK), FORMAT),
        (ScriptedModel.text("Three."), Invoice),
        (ScriptedModel.text("Three."), FORMAT),
        (ScriptedModel.tool_calls(("c1", "answer", {"total": "much"})), Invoice),
        (ScriptedModel.tool_calls(PAID, ("c3", "answer", {"total": 4})), Invoice),
        (AssistantTurn(items=(RefusalItem("No."),)), Invoice),
    ],
)
def test_a_conversation_that_goes_on_has_no_answer(turn: AssistantTurn, answer: Any) -> None:
    """Calls, other words, an answer that does not fit, two of them, a refusal: not over."""
    session, outcome = asked(turn, answer=answer)
    assert isinstance(outcome, NeedsTools | NoAnswer)
    assert session.finished(answer) is None


def test_an_answer_that_was_cut_off_is_none() -> None:
    """Arguments that never came are no answer, whatever their type has for defaults."""

    class Anything(BaseModel):
        total: float = 0

    turn = AssistantTurn(
        items=ScriptedModel.tool_calls(("c1", "answer", "")).items,
        finish_reason="length",
        cut_off="arguments",
    )
    session, _ = asked(turn, answer=Anything)
    assert session.finished(Anything) is None


def test_what_is_said_afterwards_opens_the_conversation_again() -> None:
    """The last word counts; before the first one there is no answer either."""
    session, _ = asked(ScriptedModel.text("Hi!"))
    session.push_user("And?")
    assert session.finished() is None
    assert Session().finished() is None


def test_a_call_of_an_answer_that_was_refused_gives_none() -> None:
    """The result says whether the answer was accepted, not the arguments alone."""
    session = Session()
    turn = ScriptedModel.tool_calls(PAID)
    outcome = Tools.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    outcome.round.plan().commit(session)
    assert session.finished(Invoice) is None


def test_a_text_is_an_answer_where_it_is_asked_for_as_one() -> None:
    """The same last words are an answer or none, by what was asked."""
    session = Session()
    session.transcript.append_turn(AssistantTurn(items=(TextItem('{"total": 3}'),)))
    found = session.finished(FORMAT)
    assert found is not None
    assert found.answer == Invoice(total=3)
    assert session.finished(Invoice) is None
