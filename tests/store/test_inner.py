"""The laws of calls within calls in a store: they are rows, and the asking call comes back."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Complete,
    HookSet,
    Reject,
    ResumeMode,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    HookError,
    LifecycleError,
    MisuseError,
    PlanError,
    StaleError,
)
from lutum_py.execution import execute, outcomes_of
from lutum_py.execution import run as run_plan
from lutum_py.store import Claim, Store, Stored, open_store
from lutum_py.typing import CallEvent
from tests.inner_tools import (
    SAID_BY_TWO,
    TOLD_OF_TWO,
    TWO,
    Asking,
    Desk,
    asks,
    let_pass,
    note,
    opened,
    states,
)
from tests.store.beside import Clock, others, sealed
from tests.store.desk import KEY

NOTE: Any = ("note", {"text": "a"})
PAY: Any = ("pay", {"cents": 5})


def claimed(store: Store, toolset: Any = Desk, **options: Any) -> Claim:
    claim = store.claim(toolset, **options)
    assert claim is not None
    return claim


def outcome_of(store: Store, claim: Claim) -> Any:
    """Begin and run a claim."""
    return asyncio.run(execute(store.start(claim)))


def done(store: Store, claim: Claim, **options: Any) -> None:
    """Begin, run and finish a claim."""
    store.finish(claim, outcome_of(store, claim), **options)


def looked(store: Store, toolset: Any = Desk) -> dict[str, str]:
    """Where each call of the conversation stands."""
    plan: ToolRoundPlan[Any] | None = store.load("one", toolset).plan
    assert plan is not None
    return states(plan)


def run(store: Store, toolset: Any = Desk, **options: Any) -> Stored[Any]:
    return asyncio.run(store.run("one", toolset, **options))


def committed(store: Store, toolset: Any = Desk, hooks: Any = None) -> list[ToolResult]:
    """End the round, and give its results."""
    plan = store.load("one", toolset).plan
    assert plan is not None
    shown = [] if hooks is None else plan.apply_after_hooks_sync(hooks)
    return list(plan.commit(Session(), shown).results)


# By hand.


@pytest.mark.parametrize("ids", [("c1", "c1/1", "c1/2/1"), ("c1/1", "c1", "c1/1/2")])
def test_a_model_may_name_its_calls_as_those_within_another_are_named(
    store: Store, ids: tuple[str, str, str]
) -> None:
    """Those that a call requests then get other ids, as in a plan, and each call runs once."""
    unread = ("note", {"words": 1})
    store.save("one", opened(asks([NOTE, asks([NOTE])]), asks([NOTE, NOTE]), unread, ids=ids))
    stored = run(store, hooks=Desk.HookSet())
    assert stored.plan is not None
    plan = opened(asks([NOTE, asks([NOTE])]), asks([NOTE, NOTE]), unread, ids=ids)
    ran = asyncio.run(run_plan(plan, hooks=Desk.HookSet()))
    stands = states(ran)
    ran.discard()
    assert states(stored.plan) == stands
    stored.plan.discard()
    assert store.settled() == ["one"]
    results = {each.id: each.status for each in committed(store)}
    assert [results[id] for id in ids] == ["success", "success", "rejected"]


def test_what_a_call_requested_for_waits_for_hooks_and_then_for_any_worker(store: Store) -> None:
    """Nobody claims it before hooks let it pass, and the asking call not before its last result."""
    store.save("one", opened(asks([NOTE, NOTE])))
    done(store, claimed(store))
    assert looked(store) == {"c1": "awaiting", "c1/1": "unreviewed", "c1/2": "unreviewed"}
    assert (store.claim(Desk), store.settled(), store.waiting()) == (None, [], [])
    stored = store.load("one", Desk)
    assert stored.plan is not None
    plan = asyncio.run(stored.plan.apply_hooks(let_pass))
    store.save("one", plan, version=stored.version)
    first, second = claimed(store), claimed(store)
    assert {first.call.id, second.call.id} == {"c1/1", "c1/2"}
    done(store, second)
    assert store.claim(Desk) is None
    done(store, first)
    assert looked(store)["c1"] == "pending"
    done(store, claimed(store))
    assert store.settled() == ["one"]
    assert committed(store)[0].output == [["c1/1 success", "c1/2 success"]]


def test_hooks_decide_in_the_step_that_asks(store: Store) -> None:
    """What they let pass can be claimed at once, and what they refuse has its result."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.pay)
    def no(metadata: Any, input: Any) -> Any:
        return Reject("no")

    store.save("one", opened(asks([NOTE, PAY], [PAY])))
    done(store, claimed(store), hooks=hooks)
    assert looked(store) == {"c1": "awaiting", "c1/1": "pending", "c1/2": "rejected"}
    done(store, claimed(store))
    done(store, claimed(store), hooks=hooks)  # all that it asks for is answered at once
    assert looked(store)["c1"] == "pending"
    done(store, claimed(store))
    assert committed(store)[0].output == [["c1/1 success", "c1/2 rejected"], ["c1/3 rejected"]]


def test_others_of_the_round_are_not_touched_by_a_call_that_asks(store: Store) -> None:
    """A claim holds on while another call asks, comes back and asks again."""
    store.save("one", opened(NOTE, asks([NOTE], [NOTE])))
    other = claimed(store)
    for _ in range(4):
        done(store, claimed(store), hooks=let_pass)
    done(store, other)
    done(store, claimed(store))
    assert [each.is_success for each in committed(store)] == [True, True]


def test_what_came_too_late_makes_no_request_void(store: Store, clock: Clock) -> None:
    """Whoever has the call by then goes on with what it requests."""
    store.save("one", opened(asks([NOTE])))
    first = claimed(store, lease=1)
    late = outcome_of(store, first)
    clock.move(2)
    second = claimed(store)
    outcome = outcome_of(store, second)
    with pytest.raises(StaleError):
        store.finish(first, late, hooks=let_pass)
    store.finish(second, outcome, hooks=let_pass)
    assert looked(store) == {"c1": "awaiting", "c1/1": "pending"}
    done(store, claimed(store))
    done(store, claimed(store))
    assert committed(store)[0].output == [["c1/1 success"]]


def test_what_was_asked_without_hooks_is_not_decided_about_by_those_of_another(
    store: Store,
) -> None:
    """Hooks of a step decide about what that step asks for."""
    store.save("one", opened(asks([NOTE]), asks([NOTE])))
    done(store, claimed(store))
    done(store, claimed(store), hooks=let_pass)
    assert looked(store) == {
        "c1": "awaiting",
        "c2": "awaiting",
        "c1/1": "unreviewed",
        "c2/1": "pending",
    }


def test_a_hook_that_raises_or_waits_changes_nothing(store: Store) -> None:
    """The claim still holds, and can be finished otherwise."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.note)
    async def slow(metadata: Any, input: Any) -> Any:
        raise AssertionError

    def broken(call: AnyToolCall) -> Any:
        raise ValueError

    store.save("one", opened(asks([NOTE])))
    claim = claimed(store)
    outcome = outcome_of(store, claim)
    with pytest.raises(MisuseError, match=r"(?s)slow` is async.*store\.run"):
        store.finish(claim, outcome, hooks=hooks)
    with pytest.raises(HookError):
        store.finish(claim, outcome, hooks=broken)
    assert looked(store) == {"c1": "in_doubt"}
    store.finish(claim, outcome)
    with pytest.raises(StaleError):
        store.finish(claim, outcome)
    assert looked(store) == {"c1": "awaiting", "c1/1": "unreviewed"}


def test_another_call_that_asks_is_refused(store: Store) -> None:
    """Each claim is finished with what its own call came to."""
    store.save("one", opened(asks([NOTE]), asks([NOTE])))
    first, second = claimed(store), claimed(store)
    with pytest.raises(LifecycleError, match="its own call"):
        store.finish(first, outcome_of(store, second))


def test_a_call_that_asks_for_too_much_has_ended(store: Store) -> None:
    """Its result is the error, and nothing was asked."""
    store.save("one", opened(asks([NOTE] * 101)))
    done(store, claimed(store), hooks=let_pass)
    assert committed(store)[0].code == "too_many_calls"


def test_a_key_is_the_same_at_every_try(store: Store, clock: Clock) -> None:
    """Also where the step that asked was made again."""
    store.save("one", opened(asks([NOTE])))
    outcome_of(store, claimed(store, lease=1))  # and the worker is killed here
    clock.move(2)
    again = claimed(store, lease=1)
    assert again.in_doubt
    done(store, again, hooks=let_pass)
    keys: set[str] = set()
    for _ in range(2):
        inner = claimed(store)
        keys.add(inner.key)
        store.release(inner)
    inner = claimed(store)
    keys |= {inner.key, store.start(inner).idempotency_key}
    assert len(keys) == 1


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_call_that_is_cut_off_after_it_came_back_goes_on_from_what_it_asked_for(
    store: Store, clock: Clock, is_saved: bool
) -> None:
    """Whoever takes it over asks nobody again: what it requested is on record with its results."""
    store.save("one", opened(asks([NOTE], [NOTE])))
    done(store, claimed(store), hooks=let_pass)
    done(store, claimed(store))
    store.start(claimed(store, lease=1))  # and the worker is killed here
    clock.move(2)
    if is_saved:
        stored = store.load("one", Desk)
        store.save("one", stored.plan, version=stored.version)
    again = claimed(store, lease=1)
    assert (again.call.id, again.in_doubt) == ("c1", True)
    done(store, again, hooks=let_pass)
    assert looked(store) == {"c1": "awaiting", "c1/1": "finished", "c1/2": "pending"}
    run(store)
    assert committed(store)[0].output == [["c1/1 success"], ["c1/2 success"]]


def test_what_a_run_requested_that_a_save_lost_sight_of_goes_on_from_there(store: Store) -> None:
    """Somebody saves the plan while a call that came back is run: it knows its results later."""
    store.save("one", opened(asks([NOTE], [NOTE])))
    done(store, claimed(store), hooks=let_pass)
    done(store, claimed(store))
    claim = claimed(store)
    asked = outcome_of(store, claim)
    stored = store.load("one", Desk)
    store.save("one", stored.plan, version=stored.version)
    store.finish(claim, asked, hooks=let_pass)
    run(store)
    assert committed(store)[0].output == [["c1/1 success"], ["c1/2 success"]]


def test_an_inner_call_in_doubt_waits_for_its_answer_and_the_asking_call_continued(
    store: Store, clock: Clock
) -> None:
    """It is not run again, and the asking call reads that nobody knows."""
    store.save("one", opened(asks([PAY, NOTE])))
    done(store, claimed(store), hooks=let_pass)
    store.start(claimed(store, lease=1))
    clock.move(2)
    assert states(run_open(store)) == {"c1": "awaiting", "c1/1": "in_doubt", "c1/2": "finished"}
    doubtful = claimed(store)
    with pytest.raises(MisuseError, match="not idempotent"):
        store.start(doubtful)
    store.finish(doubtful, doubtful.call.indeterminate("killed"))
    run_open(store)
    assert committed(store)[0].output == [["c1/1 indeterminate", "c1/2 success"]]


def run_open(store: Store, toolset: Any = Desk, **options: Any) -> ToolRoundPlan[Any]:
    """Run what is ready, and give the plan; it is only looked at."""
    plan: ToolRoundPlan[Any] | None = run(store, toolset, **options).plan
    assert plan is not None
    return plan


# Decisions.


def test_a_decision_within_shows_where_it_stands_and_lets_the_asking_call_return(
    store: Store,
) -> None:
    """What waits names the calls around it; a cancelled last one is a result like any other."""
    inner = asks([("pay", {"cents": 5})])
    store.save("one", opened(asks([inner]), toolset=Asking))
    plan = run_open(store, Asking, hooks=let_pass)
    assert states(plan) == {"c1": "awaiting", "c1/1": "awaiting", "c1/1/1": "suspended"}
    (waiting,) = store.waiting()
    assert waiting.call_id == "c1/1/1"
    assert waiting.ancestors == plan.ancestors("c1/1/1")
    assert [each.id for each in waiting.ancestors] == ["c1", "c1/1"]
    store.decide("one", waiting.cancel("no"), Asking)
    run_open(store, Asking, hooks=let_pass)
    assert committed(store, Asking)[0].output == [["c1/1 success"]]


def test_an_edit_within_goes_through_hooks(store: Store) -> None:
    """The edited arguments run, and the asking call comes back."""
    store.save("one", opened(asks([PAY]), toolset=Asking))
    run_open(store, Asking, hooks=let_pass)
    (waiting,) = store.waiting()
    store.decide("one", waiting.edit({"cents": 7}), Asking, hooks=let_pass)
    plan = run_open(store, Asking)
    assert [each.output for each in plan.finished] == [[["c1/1 success"]], "paid 7 to shop"]


def test_an_approval_of_the_asking_call_says_nothing_of_what_it_asks_for(store: Store) -> None:
    """Each waits for its own decision."""
    hooks = Asking.HookSet()

    @hooks.gate(Asking.steps)
    def ask(metadata: Any, input: Any) -> Suspend:
        return Suspend(SuspendTicket(message="Run?"))

    plan = opened(asks([PAY]), toolset=Asking).apply_hooks_sync(hooks)
    store.save("one", plan)
    (waiting,) = store.waiting()
    store.decide("one", waiting.approve(), Asking)
    assert states(run_open(store, Asking, hooks=hooks)) == {"c1": "awaiting", "c1/1": "suspended"}


@tool_fn(idempotent=True)
def asks_then_waits(ctx: ToolContext) -> str:
    """Ask for a call, and then somebody."""
    if ctx.inner is None:
        ctx.request_calls([NOTE])
    if ctx.resume is None:
        ctx.suspend(SuspendTicket(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL))
    return f"{ctx.inner.results[0].output}, {ctx.resume.result}"


class Waits(Toolset):
    """A tool that asks and then waits."""

    note = tool(note)
    asks_then_waits = tool(asks_then_waits)


def test_a_call_that_comes_back_may_wait(store: Store) -> None:
    """What it asked for stays on record, and it goes on from there."""
    store.save("one", opened(("asks_then_waits", {}), toolset=Waits))
    assert states(run_open(store, Waits, hooks=let_pass)) == {"c1": "suspended", "c1/1": "finished"}
    (waiting,) = store.waiting()
    store.decide("one", waiting.approve(result="yes"), Waits)
    run_open(store, Waits)
    assert committed(store, Waits)[0].output == "noted a, yes"


# `store.run`.


def test_a_run_decides_as_it_goes_and_tells_what_a_run_of_a_plan_tells(store: Store) -> None:
    """Until nothing is pending; each thing is told once, in order."""
    told: list[CallEvent] = []
    store.save("one", opened(TWO))
    stored = run(store, hooks=let_pass, on_event=told.append)
    assert stored.plan is not None
    assert stored.plan.commit(Session()).results[0].output == SAID_BY_TWO
    assert [(each.kind, each.row.id) for each in told] == TOLD_OF_TWO
    assert [each.id for each in told[5].row.ancestors] == ["c1"]


def test_without_hooks_a_run_decides_nothing_and_one_with_hooks_goes_on(store: Store) -> None:
    """What was asked elsewhere is decided about by whoever brings hooks, async ones too."""
    store.save("one", opened(asks([NOTE])))
    assert states(run_open(store)) == {"c1": "awaiting", "c1/1": "unreviewed"}
    told: list[CallEvent] = []
    hooks = Desk.HookSet()

    @hooks.on(Desk.note)
    async def slow(metadata: Any, input: Any) -> Any:
        await asyncio.sleep(0)
        return Complete("by hook")

    plan = run_open(store, hooks=hooks, on_event=told.append)
    assert plan.is_settled
    assert told[0].kind == "decided"


def test_of_two_who_decide_at_once_the_first_counts(store: Store) -> None:
    """The other looks again, and finds nothing to decide about."""
    store.save("one", opened(asks([NOTE])))
    run_open(store)
    hooks = Desk.HookSet()

    @hooks.on(Desk.note)
    async def slow(metadata: Any, input: Any) -> Any:
        await asyncio.to_thread(run_open, store, hooks=let_pass)
        return Complete("too late")

    assert run_open(store, hooks=hooks).calls[1].result.output == "noted a"  # type: ignore[union-attr]


def test_a_row_that_does_not_fit_what_was_asked_is_refused(store: Store) -> None:
    """One that may be run by its row, and not by the plan, and one of a call that has ended."""
    store.save("one", opened(asks([NOTE]), NOTE))
    done(store, claimed(store))
    done(store, claimed(store))
    for call, fields in (
        ("c1", {}),
        ("c2", {"state": "ready"}),
        ("c1/1", {"state": "ready", "root": "c1/1"}),
    ):
        before = forged(call, slot=0, **fields)
        with pytest.raises(PlanError, match="is missing" if "root" in fields else "do not"):
            store.claim(Desk)
        forged(call, **before)


def forged(call: str, /, **fields: Any) -> dict[str, Any]:
    """Change a row as somebody would who has the key; return it as it was."""
    with others() as rows:
        (row,) = [each for each in rows.named("lutum_call") if each["call"] == call]
        made = sealed({**row, **fields}, KEY)
        names = ", ".join(f"{name} = ?" for name in made)
        rows.run(f"UPDATE lutum_call SET {names} WHERE call = ?", *made.values(), call)
    return row


def test_a_hook_that_raises_leaves_what_was_asked(store: Store) -> None:
    """The step that asked is on record, so that it is not made again."""
    started: list[str] = []

    def told(event: CallEvent) -> None:
        started.append(event.kind)

    def broken(call: AnyToolCall) -> Any:
        raise ValueError

    store.save("one", opened(asks([NOTE])))
    for _ in range(2):  # where it asks, and where it was asked before
        with pytest.raises(HookError):
            run(store, hooks=broken, on_event=told)
        assert looked(store) == {"c1": "awaiting", "c1/1": "unreviewed"}
    assert started == ["started", "requested", "proposed"]


class Stop(BaseException):
    """What is no error of a program, as what a test runner raises."""


@pytest.mark.parametrize("place", ["on", "gate", "after"])
def test_what_is_no_exception_comes_out_of_a_hook_all_the_same(store: Store, place: str) -> None:
    """One that is cut off has raised, and whatever else comes is not passed over."""
    for number, (raises, error) in enumerate(((asyncio.CancelledError, HookError), (Stop, Stop))):
        hooks = Desk.HookSet()

        async def cut(*_: object, raises: type[BaseException] = raises) -> Any:
            raise raises

        getattr(hooks, place)(Desk.note)(cut)
        store.save(str(number), opened(asks([NOTE])))
        with pytest.raises(error):
            asyncio.run(store.run(str(number), Desk, hooks=hooks))


def test_bytes_that_a_tool_leaves_are_kept_under_a_key_alone(store: Store) -> None:
    """Without one, the step is refused with what to do."""
    with open_store(":memory:") as bare:
        bare.save("one", opened(("leaves", {}), toolset=Leaving))
        with pytest.raises(PlanError, match=r'`key=`.*keep="replay"'):
            run(bare, Leaving, hooks=let_pass)
    store.save("one", opened(("leaves", {}), toolset=Leaving))
    run_open(store, Leaving, hooks=let_pass)
    assert committed(store, Leaving)[0].output == "bytes"


@tool_fn(idempotent=True)
def leaves(ctx: ToolContext) -> str:
    """Leave bytes."""
    if ctx.inner is None:
        ctx.request_calls([NOTE], state=b"bytes")
    assert isinstance(ctx.inner.state, bytes)
    return ctx.inner.state.decode()


class Leaving(Toolset):
    """A tool that leaves bytes."""

    note = tool(note)
    leaves = tool(leaves)


# After-hooks.


def seeing(seen: list[str]) -> HookSet[Any]:
    """A hook set that sees results, and hides the first one within."""
    hooks = Desk.HookSet()

    @hooks.after()
    async def shown(call: AnyToolCall, result: ToolResult) -> Reject | None:
        seen.append(result.id)
        return Reject("hidden") if result.id == "c1/1" else None

    return hooks


def test_after_hooks_see_a_result_within_once_before_the_asking_call_does(store: Store) -> None:
    """What they put in its place is what that one reads; those of the turn are for the commit."""
    seen: list[str] = []
    hooks = seeing(seen)
    store.save("one", opened(asks([NOTE, NOTE], [NOTE])))
    told: list[CallEvent] = []
    stored = run(store, hooks=hooks, on_event=told.append, limit=1)
    assert seen == ["c1/1", "c1/2", "c1/3"]
    assert next(e.row for e in told if e.kind == "ended" and e.row.id == "c1/1").result.is_error  # type: ignore[union-attr]
    plan = stored.plan
    assert plan is not None
    results = asyncio.run(plan.apply_after_hooks(hooks))
    assert seen == ["c1/1", "c1/2", "c1/3", "c1"]
    assert plan.commit(Session(), results).results[0].output == [
        ["c1/1 rejected", "c1/2 success"],
        ["c1/3 success"],
    ]


@pytest.mark.parametrize("is_own", [True, False])
def test_after_hooks_see_a_result_that_was_made_by_hand(
    store: Store, clock: Clock, is_own: bool
) -> None:
    """Also of a call that is in doubt, of which nothing was run here."""
    seen: list[ToolResult] = []
    hooks = Desk.HookSet()

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> None:
        assert call.status.is_terminal
        seen.append(result)

    store.save("one", opened(asks([PAY])))
    done(store, claimed(store), hooks=hooks)
    store.start(claimed(store, lease=1))
    clock.move(2)
    claim = claimed(store)
    call = claim.call if is_own else Desk.parse_tool_call(claim.call.metadata)
    result = call.fail("nothing was paid")
    store.finish(claim, result, hooks=hooks)
    assert seen == [result]
    with pytest.raises(StaleError):
        store.finish(claim, result, hooks=hooks)
    assert seen == [result]


def test_after_hooks_see_what_a_person_answers_within(store: Store) -> None:
    """Before the asking call goes on, in whichever run, and once."""
    seen: list[str] = []
    hooks = seeing(seen)

    @hooks.gate(Desk.pay)
    def ask(metadata: Any, input: Any) -> Suspend:
        mode = ResumeMode.USE_DECISION_AS_TOOL_RESULT
        return Suspend(SuspendTicket(resume_mode=mode))

    store.save("one", opened(asks([PAY], [NOTE])))
    run_open(store, hooks=hooks)
    (waiting,) = store.waiting()
    store.decide("one", waiting.approve(result="paid"), Desk)
    run_open(store, hooks=hooks, limit=1)
    assert seen == ["c1/1", "c1/2"]
    stored = store.load("one", Desk)
    assert stored.plan is not None
    results = asyncio.run(stored.plan.apply_after_hooks(hooks))
    assert seen == ["c1/1", "c1/2", "c1"]
    (result,) = stored.plan.commit(Session(), results).results
    assert result.output == [["c1/1 rejected"], ["c1/2 success"]]


def raising_once(seen: list[ToolResult]) -> HookSet[Any]:
    """A hook set that sees results, and raises at the first."""
    hooks = Desk.HookSet()

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> Reject:
        seen.append(result)
        if len(seen) == 1:
            raise ValueError
        return Reject("hidden")

    return hooks


def test_an_after_hook_that_raises_takes_no_result_away(store: Store) -> None:
    """It is on record, and shown by the next run with hooks; the tool is not run again."""
    seen: list[ToolResult] = []
    hooks = raising_once(seen)
    store.save("one", opened(asks([PAY])), in_order=True)
    with pytest.raises(HookError) as caught:
        run(store, hooks=hooks)
    assert outcomes_of(caught.value)[-1] == seen[0]
    told: list[CallEvent] = []
    run_open(store, hooks=hooks, on_event=told.append)
    assert [(each.kind, each.row.id) for each in told] == [
        ("ended", "c1/1"),
        ("continued", "c1"),
        ("ended", "c1"),
    ]
    assert seen[0] == seen[1]
    stored = store.load("one", Desk)
    assert stored.plan is not None
    inner = stored.plan.calls[1]
    assert [step.kind for step in inner.steps][-4:] == ["started", "ended", "reviewed", "recorded"]
    store.save("one", stored.plan, version=stored.version)
    (result,) = committed(store, hooks=hooks)
    assert result.is_error
    assert [each.id for each in seen] == ["c1/1", "c1/1", "c1"]


def test_a_result_that_after_hooks_are_to_see_is_finished_by_hand(store: Store) -> None:
    """By the same claim, or by the next one, which gives it out."""
    store.save("one", opened(asks([PAY], [PAY])))
    seen: list[ToolResult] = []
    hooks = raising_once(seen)
    for is_same in (True, False):
        seen.clear()
        done(store, claimed(store), hooks=hooks)
        claim = claimed(store)
        assert claim.result is None
        result = outcome_of(store, claim)
        with pytest.raises(HookError):
            store.finish(claim, result, hooks=hooks)
        late, claim = claim, claim if is_same else claimed(store)
        assert claim.in_doubt is False
        if not is_same:
            with pytest.raises(LifecycleError, match=r"`claim\.result`, to `store\.finish`"):
                store.start(claim)
            assert claim.result == result
            with pytest.raises(StaleError):
                store.finish(late, result, hooks=hooks)
        store.finish(claim, result, hooks=hooks)
    done(store, claimed(store))
    assert seen == [result] * 2
    assert committed(store, hooks=hooks)[0].is_error


def test_a_hook_that_raises_too_late_changes_nothing(store: Store, clock: Clock) -> None:
    """Whoever has the call since goes on with it, and the error comes out."""
    hooks = Desk.HookSet()
    theirs: list[Claim] = []

    @hooks.after()
    def late(call: AnyToolCall, result: ToolResult) -> None:
        clock.move(2)
        theirs.append(claimed(store))
        raise ValueError

    store.save("one", opened(asks([PAY])))
    done(store, claimed(store), hooks=hooks)
    with pytest.raises(HookError):
        done(store, claimed(store, lease=1), hooks=hooks)
    assert theirs[0].in_doubt
    assert looked(store) == {"c1": "awaiting", "c1/1": "in_doubt"}


# Held.


def test_a_loop_that_holds_says_that_it_lacks_hooks(store: Store) -> None:
    """Nobody would decide about what was asked, so it would wait forever; with hooks it goes on."""
    hooks = Desk.HookSet()

    @hooks.gate(Desk.pay)
    def gate(metadata: Any, input: Any) -> Any:
        return Suspend(SuspendTicket(message="Pay?"))

    with store.hold("one", Desk) as desk:
        desk.save(opened(asks([NOTE]), asks([PAY])))
        for _ in range(2):
            asked = r"Call 'c(1/1' of tool 'note'|2/1' of tool 'pay') .* conversation 'one', .*"
            with pytest.raises(MisuseError, match=asked + r"`await desk\.run\(hooks=hooks\)`"):
                desk.run_sync()
        assert looked(store) == {
            "c1": "awaiting",
            "c2": "awaiting",
            "c1/1": "unreviewed",
            "c2/1": "unreviewed",
        }
        (waiting,) = desk.run_sync(hooks=hooks)
        assert waiting.call_id == "c2/1"


def test_a_loop_that_holds_runs_to_the_end_with_hooks(store: Store, clock: Clock) -> None:
    """What is in doubt within is answered, and seen by after-hooks, too."""
    seen: list[str] = []
    hooks = seeing(seen)
    with store.hold("one", Desk) as desk:
        desk.save(opened(asks([PAY])))
        with pytest.raises(MisuseError):
            desk.run_sync()
        assert desk.plan is not None
        assert desk.plan.unreviewed
        desk.save(desk.plan.apply_hooks_sync(let_pass))
        store.start(claimed(store, lease=0.001))
        clock.move(1)
        told: list[CallEvent] = []
        assert desk.run_sync(hooks=hooks, on_event=told.append) == []
        assert desk.plan.is_settled
        assert [each.id for each in told[0].row.ancestors] == ["c1"]
    assert seen == ["c1/1"]


def test_of_a_doubt_within_it_is_told_what_is_on_record(store: Store, clock: Clock) -> None:
    """An after-hook that replaces its result has done so in the event as well."""
    hooks = Desk.HookSet()

    @hooks.after(Desk.pay)
    def hidden(call: AnyToolCall, result: ToolResult) -> Reject:
        return Reject("hidden")

    told: list[CallEvent] = []
    store.save("one", opened(asks([PAY])))
    done(store, claimed(store), hooks=hooks)
    store.start(claimed(store, lease=0.001))
    clock.move(1)
    with store.hold("one", Desk) as desk:
        assert desk.run_sync(hooks=hooks, on_event=told.append) == []
        assert desk.plan is not None
        assert (told[0].kind, told[0].row.result) == ("ended", desk.plan.calls[1].result)


@pytest.mark.parametrize("is_held", [False, True])
def test_hooks_may_use_the_threads_of_the_loop(store: Store, clock: Clock, is_held: bool) -> None:
    """A run waits for its hooks in no thread of the pool of the loop, which they may need."""
    asked: list[str] = []
    hooks = Desk.HookSet()

    @hooks.gate()
    async def look_up(metadata: ToolMetadata, _input: Any) -> None:
        asked.append(await asyncio.to_thread(str, metadata.id))

    @hooks.after()
    async def shown(call: AnyToolCall, _result: ToolResult) -> None:
        asked.append(await asyncio.to_thread(str, f"after {call.id}"))

    async def go() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        if not is_held:
            await store.run("one", Desk, hooks=hooks)
            return
        async with store.hold("one", Desk) as desk:
            await desk.run(hooks=hooks)

    store.save("one", opened(asks([PAY])))
    if is_held:  # the payment was cut off, so that it is ended by whoever holds the conversation
        done(store, claimed(store), hooks=let_pass)
        store.start(claimed(store, lease=1))
        clock.move(2)
    asyncio.run(go())
    assert asked == (["after c1/1"] if is_held else ["c1/1", "after c1/1"])
    assert set(looked(store).values()) == {"finished"}
