"""The law of decisions: one answers the question that it was made about, and no other."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutum_py import (
    Decision,
    NeedsTools,
    ResumeMode,
    Session,
    Suspend,
    SuspendTicket,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import ResumeError
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.round_tools import close


@tool_fn
def pay(cents: int) -> str:
    """Pay an amount."""
    return f"paid {cents}"


class Desk(Toolset):
    pay = tool(pay)


OWN: Any = Desk.HookSet()
"""A gate whose tickets have an id of its own, which comes again."""
OWN.gate(Desk.pay)(lambda metadata, input: Suspend(SuspendTicket(id="pay")))
FRESH: Any = Desk.HookSet()
FRESH.gate(Desk.pay)(lambda metadata, input: Suspend(SuspendTicket()))
TURN = ScriptedModel.tool_calls(("c1", "pay", {"cents": 500}))


def asked(session: Session, hooks: Any = OWN) -> Any:
    """The plan of a turn that asks to pay: a host repeats the ids of calls."""
    outcome = session.text_turn(ScriptedModel([TURN])).tools(Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round.apply_hooks_sync(hooks)


def said(text: str = "Pay.", id: str | None = None) -> Session:
    """A session in which somebody asked for something."""
    session = Session(id=id)
    session.push_user(text)
    return session


def later(session: Session, hooks: Any = OWN) -> Any:
    """The plan of the next round that asks the same."""
    plan = asked(session, hooks)
    plan.resume(plan.suspended[0].approve())
    plan.commit(session, [plan.pending[0].call_sync()])
    return asked(session, hooks)


def _round_before() -> tuple[Any, Any]:
    session = said()
    first = asked(session)
    waiting = first.suspended[0]
    first.resume(waiting.approve())
    first.commit(session, [first.pending[0].call_sync()])
    return waiting, asked(session)


def _question_before() -> tuple[Any, Any]:
    plan = asked(said(), FRESH)
    waiting = plan.suspended[0]
    plan.resume(waiting.approve())
    call = plan.pending[0]
    call.start()
    plan.record(call.suspend(SuspendTicket()))
    return waiting, plan


def _other_conversation() -> tuple[Any, Any]:
    first = asked(said("Pay Ann."))
    waiting = first.suspended[0]
    close(first)
    return waiting, asked(said("Pay Bob."))


def _other_id() -> tuple[Any, Any]:
    first = asked(said(id="ann"))
    waiting = first.suspended[0]
    close(first)
    return waiting, asked(said(id="bob"))


def _saved(made: Callable[[], tuple[Any, Any]]) -> Callable[[], tuple[Any, Any]]:
    def loaded() -> tuple[Any, Any]:
        waiting, plan = made()
        return waiting, Desk.load_plan(plan.dump_json())

    return loaded


ELSEWHERE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a round before": _round_before,
    "a question before": _question_before,
    "another conversation": _other_conversation,
    "a conversation of another id": _other_id,
}
ELSEWHERE |= {f"{name}, saved": _saved(made) for name, made in ELSEWHERE.items()}
DECIDE: dict[str, Callable[[Any], Decision]] = {
    "approve": lambda waiting: waiting.approve(by="mia"),
    "cancel": lambda waiting: waiting.cancel("no", by="mia"),
    "decide": lambda waiting: waiting.decide(True, by="mia"),
    "edit": lambda waiting: waiting.edit({"cents": 1}, by="mia"),
}


@over("where, way", [(where, way) for where in ELSEWHERE for way in DECIDE])
def test_a_decision_about_another_question_changes_nothing(where: str, way: str) -> None:
    """The same call id, arguments and ticket id of another round are another question."""
    waiting, plan = ELSEWHERE[where]()
    before = plan.steps
    with pytest.raises(ResumeError):
        plan.amend_sync(DECIDE[way](waiting), OWN)
    assert plan.steps == before
    assert plan.suspended[0].call.status == "suspended"
    plan.resume(plan.suspended[0].approve())
    close(plan)


@over("kept", ["here", "saved", "loaded"])
def test_a_decision_is_taken_by_its_question_wherever_that_is(kept: str) -> None:
    """What was shown before a plan was saved is answered after it was loaded, once."""
    plan = asked(said())
    decision = plan.suspended[0].approve(by="mia")
    assert (decision.ticket, decision.requested_in is None) == ("pay", False)
    if kept != "here":
        plan = Desk.load_plan(plan.dump_json())
        assert plan.suspended[0].approve().requested_in == decision.requested_in
    plan.resume(decision)
    if kept == "loaded":
        plan = Desk.load_plan(plan.dump_json())
    assert plan.resume(decision) is None
    assert plan.pending[0].approval == decision
    close(plan)


def test_a_decision_without_a_ticket_goes_by_its_digest() -> None:
    """What was stored before tickets were kept is taken in as it was."""
    plan = asked(said())
    old = replace(plan.suspended[0].approve(), ticket=None, requested_in=None)
    assert plan.resume(old) is plan.pending[0]
    close(plan)


@over("way", ["approve", "cancel"])
@over("is_saved", [False, True])
def test_a_decision_without_a_ticket_answers_no_second_question(way: str, is_saved: bool) -> None:
    """Of a call that waited before, it may be about what was asked then, under the same digest."""
    plan = asked(said())
    first = replace(getattr(plan.suspended[0], way)(), ticket=None, requested_in=None)
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    call.start()
    plan.suspend(call.suspend(SuspendTicket(message="Which account?")))
    plan = Desk.load_plan(plan.dump_json()) if is_saved else plan
    before = plan.steps
    with pytest.raises(ResumeError, match=r"names no ticket, and call .* has waited before"):
        plan.resume(first)
    assert plan.steps == before
    assert plan.resume(plan.suspended[0].approve()) is plan.pending[0]
    close(plan)


@over("mode", [ResumeMode.REPLAY_TOOL_CALL, *ResumeMode])
def test_a_result_that_nobody_would_read_is_refused(mode: ResumeMode) -> None:
    """Where the mode has no use for a result, and at a cancellation, it is not dropped unseen."""
    hooks = Desk.HookSet()
    hooks.gate(Desk.pay)(lambda metadata, input: Suspend(SuspendTicket(resume_mode=mode)))
    plan = asked(said(), hooks)
    waiting = plan.suspended[0]
    refused = [replace(waiting.cancel("no"), result=1)]
    if mode is ResumeMode.REPLAY_TOOL_CALL:
        refused += [waiting.approve(result="yes"), waiting.edit({"cents": 1}, result="yes")]
    for decision in refused:
        with pytest.raises(ResumeError):
            plan.amend_sync(decision, hooks)
    assert plan.suspended[0].call.status == "suspended"
    close(plan)


def test_a_store_takes_a_decision_for_its_own_round_of_its_own_conversation() -> None:
    """Equal conversations, and rounds that ask the same, are told apart where nothing else does."""
    with open_store(":memory:") as store:
        for id in ("a", "b"):
            session = said()
            store.save(id, asked(session), session=session)
        of_a, of_b = (store.waiting(id)[0] for id in ("a", "b"))
        for wrong in (of_b.approve(), of_b.cancel("no")):
            with pytest.raises(ResumeError):
                store.decide("a", wrong, Desk)
        decision = of_a.approve(by="mia")
        store.decide("a", decision, Desk)
        assert store.decide("a", decision, Desk) is None
        claim = store.claim(Desk, id="a")
        assert claim is not None
        store.finish(claim, store.start(claim).call_sync())
        stored = store.load("a", Desk)
        assert stored.plan is not None
        stored.plan.commit(stored.session)
        version = store.save("a", None, session=stored.session, version=stored.version)
        store.save("a", asked(stored.session), version=version)
        for late in (
            decision,
            replace(decision, ticket=None, requested_in=None),
            of_a.cancel("no"),
        ):
            with pytest.raises(ResumeError):
                store.decide("a", late, Desk)
        (again,) = store.waiting("a")
        assert store.decide("a", again.approve(), Desk) is not None


def test_what_was_shown_before_it_was_stored_is_decided_in_the_store() -> None:
    """A decision that the plan made is taken by the store that the plan went to, and back."""
    with open_store(":memory:") as store:
        session = said()
        plan = asked(session)
        decision = plan.suspended[0].approve(by="mia")
        store.save("a", plan, session=session)
        stored = store.load("a", Desk)
        assert stored.plan is not None
        stored.plan.resume(store.waiting("a")[0].approve())
        stored.plan.discard()
        assert store.decide("a", decision, Desk) is not None


def test_a_store_without_a_session_remembers_decisions_too() -> None:
    """Where the program keeps the transcript itself, a round that is over has its decisions too."""
    session = said()
    with open_store(":memory:") as store:
        version = store.save("a", asked(session), note="mine")
        (waiting,) = store.waiting("a")
        old = replace(waiting.approve(), ticket=None, requested_in=None)
        store.decide("a", old, Desk)
        version = store.load("a").version
        version = store.save("a", None, version=version)
        store.save("a", asked(session), version=version)
        assert store.load("a").note == "mine"
        with pytest.raises(ResumeError):
            store.decide("a", old, Desk)


SECRET = "HUNTER2"
PIN: dict[str, Any] = {"pin": {"type": "string", "format": "password"}, "to": {"type": "integer"}}
ANSWERS: dict[str, Any] = {
    "another type": {"pin": [SECRET]},
    "elsewhere": {"to": SECRET, "pin": SECRET},
    "a key": {SECRET: 1, "pin": SECRET},
    "whole": [SECRET],
    "no JSON": {"pin": {SECRET}},
}


@over("answer, mode", [(answer, mode) for answer in ANSWERS for mode in ResumeMode])
def test_what_a_person_answers_with_a_secret_is_shown_nowhere(
    answer: str, mode: ResumeMode
) -> None:
    """A decision shows no result, and what does not fit a schema with secrets is not repeated."""

    class Till(BaseModel):
        pin: SecretStr
        to: int

    @tool_fn
    def unlock(n: int) -> Till:
        """Unlock the till."""
        return Till(pin=SecretStr("x"), to=n)

    schema = {"type": "object", "properties": PIN, "additionalProperties": False}
    as_output = mode is ResumeMode.USE_DECISION_AS_TOOL_RESULT
    ticket = SuspendTicket(response_schema=None if as_output else schema, resume_mode=mode)
    tools = Toolset.of("Tills", tool(unlock))
    turn = ScriptedModel.tool_calls(("c1", "unlock", {"n": 1}))
    outcome: Any = tools.read_turn(turn)
    plan = outcome.round.apply_hooks_sync(lambda call: call.suspend(ticket))
    decision = plan.suspended[0].approve(result=ANSWERS[answer])
    assert SECRET not in repr(decision)
    with pytest.raises(ResumeError) as caught:
        plan.resume(decision)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    plan.discard()
