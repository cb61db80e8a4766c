"""What checkers know of final answers: of any type, by a type variable, and as patterns take them."""

from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

from pydantic import BaseModel, Field
from typing_extensions import assert_never, assert_type

from lutum_py import (
    Answer,
    AssistantTurn,
    Finished,
    NeedsTools,
    NoAnswer,
    Session,
    ToolRoundPlan,
    Toolset,
)
from lutum_py.testing import ScriptedModel


class Invoice(BaseModel):
    total: float


class Refund(BaseModel):
    reason: str


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Box(BaseModel, Generic[T]):
    item: T


@dataclass
class Point:
    x: int


class Pair(TypedDict):
    a: int


class Row(NamedTuple):
    a: int


Verdict: TypeAlias = Literal["yes", "no"]
Either: TypeAlias = Invoice | Refund
Score = Annotated[int, Field(ge=0)]


class App(Toolset): ...


def ask_for(session: Session, model: ScriptedModel, kind: type[M]) -> M | None:
    outcome = session.text_turn(model).tools(App).answer(kind).collect_sync()
    match outcome:
        case Finished(result):
            return result.answer
        case NeedsTools(round):
            return round.answer
        case NoAnswer():
            return None
        case _:
            assert_never(outcome)


def ask_any(session: Session, model: ScriptedModel, answer: Answer[T]) -> T | None:
    outcome = session.text_turn(model).answer(answer).collect_sync()
    if isinstance(outcome, Finished):
        return outcome.answer
    if isinstance(outcome, NeedsTools):
        return outcome.round.answer
    assert_type(outcome, NoAnswer)
    return None


def kinds(session: Session, model: ScriptedModel) -> None:
    turn = session.text_turn(model).tools(App)
    assert_type(ask_for(session, model, Invoice), Invoice | None)
    assert_type(ask_any(session, model, Answer(list[Tree])), list[Tree] | None)
    match turn.answer(Tree).collect_sync():
        case Finished(result):
            assert_type(result.answer, Tree)
            assert_type(result.answer.children, list[Tree])
        case _:
            ...
    match turn.answer(Box[int]).collect_sync():
        case Finished(boxed):
            assert_type(boxed.answer.item, int)
        case _:
            ...
    match turn.answer(Point).collect_sync():
        case Finished(point):
            assert_type(point.answer, Point)
        case _:
            ...
    match turn.answer(Pair).collect_sync():
        case Finished(pair):
            assert_type(pair.answer["a"], int)
        case _:
            ...
    match turn.answer(Row).collect_sync():
        case Finished(row):
            assert_type(row.answer, Row)
        case _:
            ...
    match turn.answer(Either).collect_sync():
        case Finished(either):
            assert_type(either.answer, Invoice | Refund)
        case _:
            ...
    match turn.answer(int | None).collect_sync():
        case Finished(maybe):
            assert_type(maybe.answer, int | None)
        case _:
            ...
    match turn.answer(Literal["yes", "no"]).collect_sync():
        case Finished(said):
            assert_type(said.answer, Literal["yes", "no"])
        case _:
            ...
    match turn.answer(Verdict).collect_sync():
        case Finished(said2):
            assert_type(said2.answer, Literal["yes", "no"])
        case _:
            ...
    match turn.answer(dict[str, list[Invoice]]).collect_sync():
        case Finished(listed):
            assert_type(listed.answer, dict[str, list[Invoice]])
        case _:
            ...
    match turn.answer(str).collect_sync():
        case Finished(text):
            assert_type(text.answer, str)
        case _:
            ...
    match turn.answer(tuple[int, str]).collect_sync():
        case Finished(tup):
            assert_type(tup.answer, tuple[int, str])
        case _:
            ...
    match turn.answer(Answer(Invoice, by="format")).collect_sync():
        case Finished(result2):
            assert_type(result2.answer, Invoice)
        case _:
            ...
    match App.read_turn(AssistantTurn(text="x"), answer=Answer(Invoice | Refund, by="format")):
        case Finished(result3):
            assert_type(result3.answer, Invoice | Refund)
        case _:
            ...
    match turn.answer(Score).collect_sync():
        case Finished(scored):
            assert_type(scored.answer, int)
        case _:
            ...


def built(session: Session, model: ScriptedModel) -> None:
    turn = session.text_turn(model).temperature(0.5).tools(App).answer(Invoice).require_any_tool()
    outcome: NeedsTools[App, Invoice] | Finished[Invoice] | NoAnswer = turn.max_output_tokens(
        5
    ).collect_sync()
    plain: NeedsTools[App] | Finished = session.text_turn(model).tools(App).collect_sync()
    match outcome:
        case Finished(answer=value):
            assert_type(value, Invoice)
        case NeedsTools(round=r):
            assert_type(r.answer, Invoice | None)
        case NoAnswer(reason="refused", text=text):
            assert_type(text, str)
        case NoAnswer(reason=reason):
            print(reason)
    print(plain)
    session.text_turn(model).answer(5)  # error
    session.text_turn(model).answer(Invoice(total=1))  # error
    Answer(Invoice, name=5)  # error
    Answer(3)  # error


class Other(Toolset): ...


def over(session: Session, plan: ToolRoundPlan[App], other: ToolRoundPlan[Other]) -> None:
    assert_type(session.finished(), Finished[str] | None)
    assert_type(session.finished(Invoice), Finished[Invoice] | None)
    assert_type(session.finished(Answer(Invoice | Refund)), Finished[Invoice | Refund] | None)
    if finished := session.finished(tuple[int, str]):
        assert_type(finished.answer, tuple[int, str])
    session.finished(5)  # error
    text = App.dump_session(session, plan, key=b"k")
    assert_type(App.load_session(text).plan, ToolRoundPlan[App] | None)
    _mine: ToolRoundPlan[App] = other  # error
    App.dump_session(session.transcript)  # error
