"""The laws of decisions: on what was shown, once, and by whoever has no tool and no model."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutum_py import (
    Decision,
    HandledCall,
    RejectedCall,
    ResumeMode,
    RunNormally,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import InvalidValueError, LifecycleError, MisuseError, ResumeError
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallEvent
from tests.store.beside import between, last
from tests.store.desk import KEY, LOOK, PAY, Desk, claimed, hooks, plan_of, started, states


def test_what_waits_is_plain_data(store: Store) -> None:
    """A question has the final arguments with defaults, what the model wrote, and its ticket."""
    store.save("a", plan_of(PAY, LOOK), note="")
    store.save("b", plan_of(("c1", "pay", {"payee": "Bob", "cents": 1})), note="")
    first, second = store.waiting()
    assert (first.id, first.call_id, first.tool) == ("a", "c1", "pay")
    assert first.proposed == '{"cents":500}'
    assert first.arguments == {"cents": 500, "payee": "Acme"}
    assert first.ticket == SuspendTicket(id="t1", message="Pay?")
    assert first.question == "Pay?"
    assert store.waiting("b") == [second]
    loaded = store.load("a", Desk).plan
    assert loaded is not None
    assert loaded.suspended[0].digest == first.digest
    loaded.discard()


def test_what_is_approved_is_run(store: Store) -> None:
    """An approved call is claimed with the arguments that were shown, and the decision with it."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    decision = waiting.approve(by="mia", reason="it is due")
    call = store.decide("one", decision, Desk)
    assert isinstance(call, Desk.pay.Call)
    with pytest.raises(LifecycleError):
        call.call_sync()
    assert store.waiting() == []
    claim = claimed(store)
    assert (claim.call.approval, claim.call.digest) == (decision, waiting.digest)
    log: list[Any] = []
    store.finish(claim, started(store, claim).call_sync(log=log))
    assert log == [("Acme", 500)]


def test_what_is_cancelled_is_not_run(store: Store) -> None:
    """A cancelled call has its result, and is not claimed."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    outcome = store.decide("one", waiting.cancel("too much", by="mia"), Desk)
    assert isinstance(outcome, RejectedCall)
    assert (store.claim(Desk), store.settled(), states(store)) == (
        None,
        ["one"],
        {"c1": "rejected"},
    )
    stored = store.load("one", Desk)
    assert stored.plan is not None
    assert stored.plan.resolve().results[0].model_text == "Cancelled: too much"


def test_a_decision_is_told_of_once_it_is_on_record(store: Store) -> None:
    """A listener hears of it when everybody may know, and not where it changed nothing."""
    store.save("one", plan_of(PAY, ("c4", "pay", {"cents": 2})), note="")
    told: list[tuple[str, str, str, str | None, int]] = []

    def hear(event: CallEvent) -> None:
        row = event.row
        told.append((event.kind, row.id, row.state, row.by, store.load("one").version))

    first, second = store.waiting()
    decision = first.cancel("no", by="mia")
    deaf: Any = 5
    with pytest.raises(MisuseError):
        store.decide("one", decision, Desk, on_event=deaf)
    for _ in range(2):
        store.decide("one", decision, Desk, on_event=hear)
    edit = second.edit({"cents": 3}, by="ann")
    store.decide("one", edit, Desk, hooks=hooks, on_event=hear)
    with pytest.raises(ResumeError):
        store.decide("one", first.approve(), Desk, on_event=hear)
    assert told == [
        ("resumed", "c1", "rejected", "mia", 2),
        ("edited", "c4", "pending", "ann", 3),
    ]


def test_a_decision_is_taken_in_once(store: Store) -> None:
    """A decision that is delivered again changes nothing, and gives None."""
    store.save("one", plan_of(PAY, ("c4", "pay", {"cents": 2})), note="")
    waiting = store.waiting()[0]
    decision = waiting.approve()
    assert store.decide("one", decision, Desk) is not None
    assert store.decide("one", decision, Desk) is None
    assert store.load("one").version == 2
    with pytest.raises(ResumeError):
        store.decide("one", waiting.cancel(), Desk)


def test_a_decision_on_something_else_is_refused(store: Store) -> None:
    """A decision of another digest, without one, or of a round that is over changes nothing."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    other = Decision(call_id="c1", action="resume", digest="sha256:0")
    for wrong in (other, Decision(call_id="c1", action="resume")):
        with pytest.raises(ResumeError):
            store.decide("one", wrong, Desk)
    assert store.load("one").version == 1
    store.save("one", None, note="", version=1)
    with pytest.raises(ResumeError):
        store.decide("one", waiting.approve(), Desk)


def test_a_decision_is_the_result_where_the_ticket_says_so(store: Store) -> None:
    """A decision that answers a call in the tool's place leaves nothing to be run."""

    def gate(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(SuspendTicket(resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT))

    hooks = Desk.HookSet()
    hooks.gate(Desk.look)(gate)
    plan = plan_of(LOOK).apply_hooks_sync(hooks)
    store.save("one", plan, note="")
    (waiting,) = store.waiting()
    with pytest.raises(ResumeError):
        store.decide("one", waiting.approve(result=3), Desk)
    outcome = store.decide("one", waiting.approve(result="seen by hand"), Desk)
    assert isinstance(outcome, HandledCall)
    assert (store.settled(), states(store)) == (["one"], {"c2": "handled"})


def test_a_decision_and_workers_do_not_wait_for_each_other(store: Store, where: str) -> None:
    """What is started and finished while somebody decides is not lost, nor is the decision."""
    store.save("one", plan_of(PAY, LOOK, ("c4", "pay", {"cents": 2})), note="")
    claim = claimed(store)
    first, second = store.waiting()
    mine, come = last(), list[str]()
    with open_store(where, key=KEY) as other:

        def meanwhile(connection: Any, sql: str, is_done: bool) -> None:
            """The plan was read; now the other call is decided on, and a third finished."""
            if connection is mine and sql == "COMMIT" and is_done and not come:
                come.append(sql)
                other.decide("one", second.cancel("no"), Desk)
                other.finish(claim, started(other, claim).call_sync())

        with between(meanwhile):
            assert store.decide("one", first.approve(), Desk) is not None
    assert states(store) == {"c1": "pending", "c2": "success", "c4": "rejected"}


def test_an_edit_goes_through_the_hooks(store: Store) -> None:
    """Edited arguments are validated, sent through the hooks, and what comes of that is run."""
    store.save("one", plan_of(PAY, LOOK), note="")
    (waiting,) = store.waiting()
    decision = waiting.edit({"cents": 400}, by="mia")
    with pytest.raises(MisuseError):
        store.decide("one", decision, Desk)
    with pytest.raises(ResumeError):
        store.decide("one", waiting.edit({"cents": "much"}), Desk, hooks=hooks)
    assert store.load("one").version == 1
    call = store.decide("one", decision, Desk, hooks=hooks)
    assert isinstance(call, Desk.pay.Call)
    assert store.decide("one", decision, Desk, hooks=hooks) is None
    log: list[Any] = []
    while claim := store.claim(Desk):
        call = started(store, claim)
        store.finish(claim, call.call_sync(**({"log": log} if call.name == "pay" else {})))
    assert log == [("Acme", 400)]
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert [(edit.by, edit.final["cents"]) for edit in plan.edits] == [("mia", 400)]
    assert plan.resolve().results[0].model_text.endswith("\npaid Acme 400")


def test_an_edit_that_a_hook_changes_waits_again(store: Store) -> None:
    """What a hook changed after an edit is shown as it is by then, and needs another decision."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    rounding = Desk.HookSet()

    @rounding.on(Desk.pay)
    def whole(metadata: ToolMetadata, input: Any) -> Any:
        return Desk.pay.with_args(cents=input.cents // 100 * 100)

    outcome = store.decide("one", waiting.edit({"cents": 450}), Desk, hooks=rounding)
    assert isinstance(outcome, SuspendedCall)
    (again,) = store.waiting()
    assert (again.arguments["cents"], again.digest) == (400, outcome.digest)
    assert again.digest != waiting.digest
    assert (store.claim(Desk), again.proposed) == (None, waiting.proposed)
    store.decide("one", again.approve(), Desk)
    claim = claimed(store)
    assert claim.key == claim.call.idempotency_key


def test_an_edit_that_must_be_awaited_is_sent_to_the_plan(store: Store) -> None:
    """There is no async `decide`: the error says how such an edit goes, and that way it goes."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    decision = waiting.edit({"cents": 400})
    asking = Desk.HookSet()

    @asking.on(Desk.pay)
    async def slow(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input)

    with pytest.raises(MisuseError, match=r"(?s)slow` is async.*stored\.plan\.amend.*store\.load"):
        store.decide("one", decision, Desk, hooks=asking)
    assert store.waiting() == [waiting]
    stored = store.load("one", Desk)
    assert stored.plan is not None
    asyncio.run(stored.plan.amend(decision, asking))
    store.save("one", stored.plan, version=stored.version)
    pay = Desk.pay.match(claimed(store).call)
    assert pay is not None
    assert pay.input.cents == 400


def test_two_edits_at_once_count_once(store: Store) -> None:
    """Where somebody else decided on a call while hooks reviewed it, that one counts."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    slow = Desk.HookSet()
    asked: list[int] = []

    @slow.on(Desk.pay)
    def meanwhile(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        asked.append(input.cents)
        store.decide("one", waiting.edit({"cents": 2}), Desk, hooks=hooks)
        return RunNormally(input)

    with pytest.raises(ResumeError):
        store.decide("one", waiting.edit({"cents": 1}), Desk, hooks=slow)
    claim = claimed(store)
    pay = Desk.pay.match(claim.call)
    assert pay is not None
    assert (pay.input.cents, asked, store.load("one").version) == (2, [1], 2)


def test_what_can_be_decided_is_decided_alike_here_and_there(store: Store) -> None:
    """A question of a store makes the decisions that the suspended call itself makes."""
    plan = plan_of(PAY)
    (here,) = plan.suspended
    told: list[Any] = []
    store.save("one", plan, note="")
    (there,) = store.waiting()
    for waiting in (here, there):
        made = [
            waiting.approve(by="mia", result=1, reason="due"),
            waiting.cancel("no", by="mia"),
            waiting.edit({"cents": 1}, by="mia"),
        ]
        told.append([replace(each, decision_id="", at="", requested_in="") for each in made])
        with pytest.raises(InvalidValueError):
            waiting.edit([])  # type: ignore[arg-type]
    assert told[0] == told[1]


@tool_fn
def log_in(user: str, password: SecretStr) -> str:
    """Log in."""
    return f"{user} with {password.get_secret_value()}"


class Gate(Toolset):
    log_in = tool(log_in)


def test_secrets_are_masked_where_they_are_shown_and_run_as_they_are(where: str) -> None:
    """What waits shows no secret, neither as it will be run nor as it was proposed."""
    hooks = Gate.HookSet()
    hooks.gate(Gate.log_in)(lambda metadata, input: Suspend(SuspendTicket()))
    call = ("c1", "log_in", {"user": "mia", "password": "sesame"})
    opened = Gate.read_turn(ScriptedModel.tool_calls(call)).round  # type: ignore[union-attr]
    with open_store(where, key=KEY) as store:
        store.save("one", opened.apply_hooks_sync(hooks), note="")
        (waiting,) = store.waiting()
        assert "sesame" not in repr(waiting)
        assert waiting.arguments == {"user": "mia", "password": "**********"}
        assert waiting.proposed == '{"user":"mia","password":"**********"}'
        store.decide("one", waiting.approve(), Gate)
        claim = store.claim(Gate)
        assert claim is not None
        assert store.start(claim).call_sync().model_text == "mia with sesame"


class Login(BaseModel):
    user: str
    password: SecretStr


@tool_fn
def log_in_as(login: Login, why: str = "") -> str:
    """Log in."""
    return login.password.get_secret_value()


class Door(Toolset):
    log_in_as = tool(log_in_as)


def test_a_secret_in_a_text_that_had_to_be_mended_is_masked(where: str) -> None:
    """Where an object came as a text, that is masked as a whole."""
    login = '{"user": "mia", "password": "sesame"}'
    hooks = Door.HookSet()
    hooks.gate(Door.log_in_as)(lambda metadata, input: Suspend(SuspendTicket()))
    call = ("c1", "log_in_as", {"login": login})
    opened = Door.read_turn(ScriptedModel.tool_calls(call)).round  # type: ignore[union-attr]
    with open_store(where, key=KEY) as store:
        store.save("one", opened.apply_hooks_sync(hooks), note="")
        (waiting,) = store.waiting()
        assert waiting.proposed == '{"login":"**********"}'
        assert "sesame" not in repr(waiting)


def test_what_waits_in_a_plan_is_told_as_what_waits_in_a_store(store: Store) -> None:
    """One code shows both to a person: by the same names, the same words."""
    plan = plan_of(PAY)
    (suspended,) = plan.suspended
    names = ("call_id", "tool", "proposed", "arguments", "digest", "ticket", "question")
    shown = {name: getattr(suspended, name) for name in names}
    store.save("one", plan)
    (waiting,) = store.waiting()
    assert shown == {name: getattr(waiting, name) for name in names}


def test_an_edit_that_hooks_take_back_is_asked_about_again_and_loads(store: Store) -> None:
    """What waits is what waited before, and its row knows what was done between."""
    changes = Desk.HookSet()
    changes.on(Desk.pay)(lambda _m, input: RunNormally(input.model_copy(update={"cents": 500})))
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    store.decide("one", waiting.edit({"cents": 1}, by="mia"), Desk, hooks=changes)
    (again,) = store.waiting()
    assert (again.digest, again.arguments) == (waiting.digest, waiting.arguments)
    loaded = store.load("one", Desk).plan
    assert loaded is not None
    assert loaded.suspended[0].call.steps == again.steps
    loaded.discard()
