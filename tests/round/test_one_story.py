"""The laws of views: every plan of a round shows the same histories, whoever did what."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Complete,
    Decision,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    CommitError,
    HookError,
    LifecycleError,
    MisuseError,
    ResumeError,
    RoundClosedError,
    ToolInputError,
)
from lutum_py.typing import CallGate
from tests.cases import over
from tests.round.one_story import (
    FILL,
    PAY,
    Desk,
    blocked,
    desk,
    fill,
    history,
    hooks,
    let_pass,
    one,
    rewritten,
    waiting,
)
from tests.round_tools import close, forged, opened


def views(plan: Any) -> list[Any]:
    """What a plan tells of its only call."""
    (row,) = plan.calls
    lists = [
        len(getattr(plan, name))
        for name in ("pending", "in_doubt", "suspended", "finished", "handled", "rejected")
    ]
    return [row, history(row.steps), lists, history(plan.steps)]


# Whatever is done, by hooks, people or the program.


def _blocks(plan: Any) -> None:
    plan.apply_hooks_sync(blocked())


def _waits(plan: Any) -> None:
    plan.apply_hooks_sync(waiting())


def _changes(plan: Any) -> None:
    plan.apply_hooks_sync(rewritten("b"))


def _completes(plan: Any) -> None:
    plan.apply_hooks_sync(hooks(on=lambda m, i: Complete(3)))


def _rejects_by_function(plan: Any) -> None:
    plan.apply_hooks_sync(lambda call: call.reject("no"))


def _passes(plan: Any) -> None:
    plan.apply_hooks_sync(let_pass())


def _begins(plan: Any) -> None:
    one(plan).start()


def _runs(plan: Any) -> None:
    plan.record(one(plan).call_sync())


def _fails(plan: Any) -> None:
    one(plan).fail("no")


def _retries(plan: Any) -> None:
    one(plan).fail("no")
    one(plan).retry()


def _forged(plan: Any) -> None:
    plan.record(forged(one(plan).metadata))


def _suspends(plan: Any) -> None:
    plan.record(one(plan).suspend(SuspendTicket(id="own")))


def _rejects(plan: Any) -> None:
    plan.record(one(plan).reject("no"))


def _decides(plan: Any) -> None:
    _waits(plan)
    plan.resume(plan.suspended[0].approve(by="ann"))


def _edits(plan: Any) -> None:
    _waits(plan)
    plan.amend_sync(plan.suspended[0].edit({"items": ["e"]}, by="ann"), waiting())


def _assigns(plan: Any) -> None:
    one(plan).input = fill.Input(items=["own"])


def _saves(plan: Any) -> None:
    Desk.load_plan(plan.dump_json()).discard()


def _gives_up(plan: Any) -> None:
    plan.abort(Session(), "enough")


def _discards(plan: Any) -> None:
    plan.discard()


ACTS = [
    *(_blocks, _waits, _changes, _completes, _rejects_by_function, _passes, _begins, _runs),
    *(_fails, _retries, _forged, _suspends, _rejects, _decides, _edits, _assigns, _saves),
    *(_gives_up, _discards),
]


def _all_of(plan: Any) -> list[Any]:
    return [*views(plan), plan.decisions, plan.edits, plan.resumed, repr(plan)]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("at", [0, 1])
def test_two_plans_of_a_round_never_disagree(act: Callable[[Any], None], at: int) -> None:
    """What is done in the older or in the newer plan shows in both, also where both were read."""
    round_ = desk()
    plans = [round_.plan(), round_.apply_hooks_sync(let_pass())]
    before = _all_of(plans[0])
    assert _all_of(plans[1]) == before
    act(plans[at])
    assert _all_of(plans[0]) == _all_of(plans[1])
    assert _all_of(plans[0]) != before
    close(plans[0])


@pytest.mark.parametrize("made", [let_pass, lambda: rewritten("b")], ids=["pass", "rewrite"])
def test_an_older_plan_stays_usable(made: Callable[[], Any]) -> None:
    """Calls that were taken from it run, are recorded and committed by it, as hooks left them."""
    older = desk().plan()
    call = one(older)
    newer = older.apply_hooks_sync(made())
    assert one(older) is one(newer) is call
    result = call.call_sync()
    older.record(result)
    session = Session()
    assert older.commit(session).results[0].output == result.output == 2
    assert newer.finished == older.finished == (result,)
    with pytest.raises(RoundClosedError):
        newer.commit(session)


def test_a_copy_of_a_call_is_the_call() -> None:
    """Two objects of one call could both start it."""
    plan = desk().plan()
    assert copy.copy(one(plan)) is copy.deepcopy(one(plan)) is one(plan)
    close(plan)


def test_an_answer_is_a_deed() -> None:
    """A decision that one plan took in counts in all, once; another one comes too late in all."""
    older = desk().plan()
    waits = older.apply_hooks_sync(waiting())
    other = older.apply_hooks_sync(rewritten("b"))
    (suspended,) = waits.suspended
    decision, second = suspended.approve(by="ann"), suspended.approve(by="bob")
    waits.resume(decision)
    for plan in (older, waits, other):
        assert views(plan) == views(waits)
        assert plan.resume(decision) is None
        with pytest.raises(ResumeError):
            plan.resume(second)
        assert plan.resumed == {("c1", decision.decision_id): decision}
    assert one(other).input.items == ["a"]
    assert one(other).approval == decision
    one(other).call_sync()
    assert one(waits).status is CallStatus.SUCCEEDED
    close(older)


def test_an_edit_is_a_deed() -> None:
    """What a person corrected is the input in all plans."""
    older = desk().plan()
    waits = older.apply_hooks_sync(waiting())
    other = older.apply_hooks_sync(blocked())
    waits.amend_sync(waits.suspended[0].edit({"items": ["e"]}, by="ann"), waiting())
    for plan in (older, waits, other):
        assert views(plan) == views(waits)
        assert [each.final for each in plan.edits] == [{"items": ["e"]}]
    assert other.rejected == ()
    close(older)


def test_a_call_is_begun_once_and_answered_once() -> None:
    """Through whichever plan it is reached, it begins once, and has one result."""
    plan = desk().plan()
    first, second = one(plan), one(plan.apply_hooks_sync(let_pass()))
    first.start()
    with pytest.raises(LifecycleError):
        second.start()
    result = second.fail("no")
    with pytest.raises(LifecycleError):
        first.fail("no")
    assert first.steps == second.steps == plan.steps
    plan.record(result)
    plan.record(result)  # changes nothing
    with pytest.raises(CommitError, match="more than one result"):
        plan.record(forged(first.metadata))
    assert history(first.steps)[2:] == ["started", "ended //error", "recorded //error"]
    close(plan)


def test_a_call_is_begun_once_over_threads() -> None:
    """Of threads that start a call through any plan, one does."""
    for _ in range(20):
        older = desk().plan()
        others = [older.apply_hooks_sync(let_pass()) for _ in range(2)]
        calls = [one(plan) for plan in (older, *others, *[older] * 5)]
        started: list[Any] = []
        start = threading.Barrier(len(calls))

        def run(call: Any, started: list[Any] = started, start: threading.Barrier = start) -> None:
            start.wait()
            with suppress(LifecycleError):
                started.append(call.call_sync())

        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(started) == 1
        assert history(older.steps).count("started") == 1
        assert history(older.steps).count("ended //success") == 1
        close(older)


def test_a_decision_is_taken_in_once_over_threads() -> None:
    """Of threads that deliver one decision, one takes it in, and the others are told so."""
    for _ in range(20):
        plan = desk().apply_hooks_sync(waiting())
        decision = plan.suspended[0].approve(by="ann")
        taken: list[Any] = []
        start = threading.Barrier(4)

        def run(
            plan: Any = plan,
            decision: Any = decision,
            taken: list[Any] = taken,
            start: threading.Barrier = start,
        ) -> None:
            start.wait()
            try:
                taken.append(plan.resume(decision))
            except ResumeError:
                taken.append(None)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(each is not None for each in taken) == 1
        assert history(plan.steps).count("decided ann//resume") == 1
        close(plan)


@over("raises", [False, True])
@over("where", ["asked", "edited", "edited, by a gate"])
def test_what_hooks_were_shown_is_not_run_beside_the_call(where: str, raises: bool) -> None:
    """Hooks that keep the draft that they were shown cannot start the call with it afterwards."""
    kept: list[Any] = []

    def keep(shown: Any) -> Any:
        kept.append(shown)
        return shown.nothing if raises else shown

    class Keeping(CallGate):
        def __call__(self, call: AnyToolCall, _decision: Decision | None, /) -> None:
            keep(call)

    by_gate = Desk.HookSet()
    by_gate.gate()(Keeping())
    hooks: Any = by_gate if where.endswith("gate") else keep
    plan = desk().plan() if where == "asked" else desk(PAY).plan()
    refused: Any = pytest.raises(HookError) if raises else nullcontext()
    with refused:
        if where == "asked":
            plan = plan.apply_hooks_sync(hooks)
        else:
            plan.amend_sync(plan.suspended[0].edit({"cents": 5}), hooks)
    before = history(plan.steps)
    for way in (kept[0].start, kept[0].call_sync, kept[0].retry().call_sync):
        with pytest.raises(LifecycleError, match="this is a draft"):
            way()
    kept[0].fail("no")  # of a draft: the call has no part in it
    assert history(plan.steps) == before
    if not raises:
        assert one(plan).call_sync().is_success
    plan.discard()


@over(
    "make, status",
    [(blocked, "rejected"), (waiting, "cancelled"), (lambda: rewritten("b"), "cancelled")],
)
def test_an_older_plan_is_given_up_as_any(make: Callable[[], Any], status: str) -> None:
    """`abort` by any plan gives each call the result that it has, or an honest one."""
    older = desk().plan()
    older.apply_hooks_sync(make())
    assert [each.status for each in older.abort(Session(), "enough").results] == [status]


def test_what_hooks_said_counts_for_nothing_where_one_raised() -> None:
    """Where a hook raises, every call goes on as if no hook had been asked."""
    plan = desk(FILL, ("c2", "fill", {"items": ["z"]})).plan()

    def raise_late(metadata: Any, input: Any) -> Any:
        if metadata.id == "c2":
            raise ValueError("late")
        return Block("no")

    before = plan.steps
    with pytest.raises(HookError):
        plan.apply_hooks_sync(hooks(gate=raise_late))
    assert plan.steps == before
    for call in plan.pending:
        plan.record(call.call_sync())
    assert plan.is_settled
    close(plan)


def test_a_commit_that_failed_changes_nothing_about_what_waits() -> None:
    """A call that waits for an approval goes on by that, and is not asked about twice."""
    round_ = desk(PAY)
    (call,) = round_.tool_calls
    plan = round_.plan()
    with pytest.raises(CommitError):
        round_.commit(Session())
    with pytest.raises(LifecycleError):
        call.start()
    plan.resume(plan.suspended[0].approve())
    plan.pending[0].call_sync()
    assert call.status is CallStatus.SUCCEEDED
    close(round_)


# A call that grows while hooks review it.


@over(
    "said",
    [None, Block("no"), Suspend(SuspendTicket()), Complete(1)],
)
def test_a_pass_writes_to_the_calls_that_did_not_grow_and_raises(said: Any) -> None:
    """What hooks said about a call that went on meanwhile is void; the error names that call."""

    async def run() -> None:
        plan = desk(FILL, ("c2", "fill", {"items": ["z"]})).plan()
        grown, other = plan.pending
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def gate(metadata: Any, input: Any) -> Any:
            asked.set()
            await go_on.wait()
            return said

        deciding = asyncio.create_task(plan.apply_hooks(hooks(gate=gate)))
        await asked.wait()
        grown.start()
        go_on.set()
        with pytest.raises(LifecycleError, match=r"'c1' .* was started while hooks reviewed it"):
            await deciding
        assert history(grown.steps) == ["proposed", "started"]
        assert history(other.steps)[1].startswith("reviewed gate/gate")
        plan.record(grown.fail("no"))
        assert plan.calls[0].state == "finished"
        close(plan)

    asyncio.run(run())


MEANWHILE: dict[str, Callable[[Any], Any]] = {
    "run": lambda call: call.call_sync(),
    "decided": lambda call: call.complete(1),
    "suspended": lambda call: call.suspend(SuspendTicket()),
}


@pytest.mark.parametrize("phase", ["gate", "before"])
@pytest.mark.parametrize("act", MEANWHILE)
def test_hooks_that_let_a_call_pass_that_went_on_leave_no_step(phase: str, act: str) -> None:
    """No hook is asked behind that, what they said is refused, and the plan loads."""
    plan = desk().plan()
    done: list[Any] = []
    asked: list[str] = []
    first = hooks(**{phase: lambda *_: done.append(MEANWHILE[act](one(plan)))})
    first.gate(Desk.fill)(lambda _metadata, _input: asked.append("gate"))
    first.before(Desk.fill)(lambda _metadata, _input: asked.append("before"))
    with pytest.raises(LifecycleError, match="while hooks reviewed it"):
        plan.apply_hooks_sync(first)
    plan.record(done[0])
    assert "before" not in asked
    steps = plan.calls[0].steps
    assert "reviewed" not in [step.kind for step in steps]
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.calls[0].steps == steps
    loaded.discard()


@pytest.mark.parametrize("act", MEANWHILE)
def test_hooks_are_not_asked_about_one_call_that_cannot_begin(act: str) -> None:
    """`call.hook` refuses a call that has ended or waits, asks nobody, and writes nothing."""
    plan = desk().plan()
    call = one(plan)
    plan.record(MEANWHILE[act](call))
    before = call.steps
    for asked in (hooks(before=pytest.fail), let_pass(), pytest.fail):
        with pytest.raises(LifecycleError, match="resume" if act == "suspended" else "retry"):
            call.hook_sync(asked)
    assert call.steps == before
    plan.discard()


def test_a_before_hook_is_asked_once() -> None:
    """That it was asked is in the history: no other pass asks it, also in a plan that was saved."""
    asked: list[str] = []
    older = desk().plan()
    older.apply_hooks_sync(waiting())
    older.resume(older.suspended[0].approve())
    before = hooks(before=lambda m, i: asked.append(m.id))
    for _ in range(2):
        older.apply_hooks_sync(before)
    loaded = Desk.load_plan(older.dump_json())
    loaded.apply_hooks_sync(before)
    assert asked == ["c1"]
    assert history(loaded.steps)[-1] == "reviewed before/before"
    close(loaded)


# Inputs.


def test_what_your_own_code_did_in_place_is_a_step_as_the_call_begins() -> None:
    """An input that was changed in place is validated, and then a `changed` step of nobody."""
    plan = desk().plan()
    call = one(plan)
    key = call.idempotency_key
    call.input.items.append("b")
    assert plan.calls[0].arguments == plan.steps[0].arguments == {"items": ["a"]}
    assert call.idempotency_key == key
    call.call_sync()
    assert history(plan.steps) == ["proposed", "changed", "started", "ended //success"]
    assert [step.arguments for step in plan.steps][:2] == [{"items": ["a"]}, {"items": ["a", "b"]}]
    assert call.idempotency_key == key
    close(plan)


def test_an_assignment_counts_also_where_it_undoes_what_was_done_in_place() -> None:
    """The call runs with what was assigned last, though its history knows that input already."""
    plan = desk().plan()
    call = one(plan)
    call.input.items.append("b")
    call.input = {"items": ["a"]}
    assert call.input.items == ["a"]
    call.start()
    assert (call.input.items, history(plan.steps)) == (["a"], ["proposed", "started"])
    close(plan)


@over("assigned", (False, True))
@over("added", ("b", 7))
@over("way", ("complete", "fail", "finish"))
def test_a_call_that_ends_without_a_start_tells_what_was_done_in_place(
    assigned: bool, added: Any, way: str
) -> None:
    """Row, display and transcript say what the program ran it with, also where that is unfit."""
    plan = desk().plan()
    call = one(plan)
    if assigned:
        call.input = {"items": ["z"]}
    call.input.items.append(added)
    after = {"items": ["z" if assigned else "a", added]}
    is_fit = added == "b"
    expected: Any = nullcontext() if is_fit else pytest.warns(UserWarning, match=r"items\[1\]")
    with expected:
        plan.record(getattr(call, way)("no" if way == "fail" else 1))
    assert history(plan.steps)[-3:] == [
        "changed",
        "ended //error" if way == "fail" else "ended //success",
        "recorded //error" if way == "fail" else "recorded //success",
    ]
    assert call.input.items == after["items"]
    assert plan.calls[0].arguments == after
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.calls[0].arguments == after
    assert loaded.resolve().results[0].ran_with == after


def test_what_has_no_json_form_is_not_told() -> None:
    """Where nothing describes what the program ran a call with, the plan can still be saved."""
    plan = desk().plan()
    one(plan).input.items.append(object())
    with pytest.warns(UserWarning, match="does not fit"):
        plan.record(one(plan).complete(1))
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.calls[0].arguments == {"items": ["a"]}
    loaded.resolve()


BY_HAND: dict[str, Callable[[Any], object]] = {
    "started": lambda call: call.start(),
    "suspended": lambda call: call.suspend(SuspendTicket()),
}


@over("kind", BY_HAND)
def test_what_your_own_code_did_in_place_counts_where_a_call_is_moved_by_hand(kind: str) -> None:
    """It is a step ahead of the move, which is refused where the input is unfit."""
    plan = desk().plan()
    call = one(plan)
    call.input.items.append(7)
    with pytest.raises(ToolInputError):
        BY_HAND[kind](call)
    assert history(plan.steps) == ["proposed"]
    call.input.items.append("b")
    BY_HAND[kind](call)
    assert [step.kind for step in plan.steps] == ["proposed", "changed", kind]
    assert plan.calls[0].arguments == {"items": ["a", "b"]}
    assert call.input.items == ["a", "b"]
    close(plan)


def test_an_input_left_unfit_is_refused_and_the_call_not_begun() -> None:
    """What fits no more is an error as the call starts; input and history stay as they were."""
    plan = desk().plan()
    call = one(plan)
    call.input.items.append(7)
    for _ in range(2):
        with pytest.raises(
            ToolInputError, check=lambda error: [each.path for each in error.fields] == ["items[1]"]
        ):
            call.call_sync()
        call.input.items.append(7)
    assert history(plan.steps) == ["proposed"]
    assert plan.calls[0].arguments == {"items": ["a"]}
    close(plan)


@pytest.mark.parametrize("phase", ["on", "gate", "before"])
def test_no_hook_is_blamed_for_what_your_own_code_did(phase: str) -> None:
    """What was changed in place before hooks are asked is a step of nobody, ahead of theirs."""
    plan = desk().plan()
    one(plan).input.items.append("b")
    answer = let_it if phase == "on" else (lambda m, i: None)
    newer = plan.apply_hooks_sync(hooks(**{phase: answer}))
    first, changed, *asked = newer.steps
    assert (first.kind, changed.kind, changed.by) == ("proposed", "changed", None)
    assert changed.arguments == {"items": ["a", "b"]}
    assert [step.by for step in asked] == [phase]
    close(plan)


def test_nobody_reaches_what_was_approved() -> None:
    """Whoever keeps an instance of the input changes nothing once a decision is bound to it."""
    kept: list[Any] = []

    def keep(metadata: Any, input: Any) -> Any:
        given = fill.Input(items=["b"])
        kept.extend([given, input])
        return RunNormally(given)

    gate = hooks(on=keep, gate=lambda m, i: _kept(kept, i))
    plan = desk().apply_hooks_sync(gate)
    (suspended,) = plan.suspended
    kept.append(suspended.call.input)
    plan.resume(suspended.approve())
    call = one(plan)
    kept.append(call.input)
    _spoil(kept)
    assert call.input.items == suspended.arguments["items"] == ["b"]
    assert call.digest == suspended.digest
    assert call.call_sync().result == "2"
    assert "changed" not in history(plan.steps)[5:]
    close(plan)


def _kept(kept: list[Any], input: Any) -> Any:
    kept.append(input)
    return Suspend(SuspendTicket())


def _spoil(kept: list[Any]) -> None:
    for each in kept:
        each.items.append("spoilt")


def test_nobody_reaches_what_a_person_edited() -> None:
    """Hooks that were shown an edit, and keep it, change nothing of what was approved."""
    kept: list[Any] = []
    before = hooks(
        gate=lambda m, i: _kept(kept, i),
        before=lambda m, i: kept.append(i),
    )
    plan = desk().apply_hooks_sync(before)
    plan.amend_sync(plan.suspended[0].edit({"items": ["e"]}), before)
    _spoil(kept)
    assert one(plan).input.items == ["e"]
    assert one(plan).call_sync().result == "2"
    assert history(plan.steps)[-2:] == ["started", "ended //success"]
    close(plan)


def test_a_call_that_your_own_code_let_wait_is_as_it_was_shown() -> None:
    """What you got of a call's input before it waits does not reach the approved one."""
    plan = desk().plan()
    call = one(plan)
    kept = call.input
    plan.record(call.suspend(SuspendTicket()))
    kept.items.append("spoilt")
    assert plan.suspended[0].arguments == {"items": ["a"]}
    plan.resume(plan.suspended[0].approve())
    assert call.input.items == ["a"]
    assert call.call_sync().result == "2"
    close(plan)


seen: list[tuple[Any, ...]] = []


@tool_fn
def spoil(items: list[str], context: ToolContext) -> int:
    """Spoil what it got."""
    call, plan = SPOILT[-1]
    seen.append(told(call, plan))
    items.clear()
    seen.append(told(call, plan))
    return 0


class Spoiler(Toolset):
    spoil = tool(spoil)


SPOILT: list[tuple[Any, Any]] = []


def told(call: Any, plan: Any) -> tuple[Any, ...]:
    """All that tells of the arguments of a call."""
    row = plan.calls[0]
    return (call.digest, call.idempotency_key, list(call.input.items), row.arguments, row.proposed)


@pytest.mark.parametrize("made", ["as sent", "read", "hooked", "assigned", "loaded"])
def test_the_arguments_are_the_same_before_during_and_after_the_run(made: str) -> None:
    """A tool owns what it gets: nothing that tells of the call changes by what it does to it."""
    seen.clear()
    plan = opened(("c1", "spoil", {"items": ["a"]}), toolset=Spoiler).plan()
    if made == "read":
        assert one(plan).input.items == ["a"]
    if made == "hooked":
        other = Spoiler.HookSet()

        @other.on(Spoiler.spoil)
        def on(metadata: Any, input: Any) -> Any:
            return RunNormally(spoil.Input(items=["h"]))

        plan = plan.apply_hooks_sync(other)
    if made == "assigned":
        one(plan).input = spoil.Input(items=["own"])
    if made == "loaded":
        plan = Spoiler.load_plan(plan.dump_json())
    call = one(plan)
    SPOILT.append((call, plan))
    before = told(call, plan)
    result = call.call_sync(context=ToolContext.for_call(call))
    assert [before, before, before] == [*seen, told(call, plan)]
    again = call.retry()
    assert (again.digest, again.idempotency_key, again.input) == (
        call.digest,
        call.idempotency_key,
        call.input,
    )
    plan.record(result)
    session = Session()
    committed = plan.commit(session)
    ran_with = {"hooked": {"items": ["h"]}, "assigned": {"items": ["own"]}}.get(made)
    assert committed.results[0].ran_with == ran_with


class Free(ToolInput[int]):
    """Takes anything, also what has no JSON form."""

    anything: Any


def test_what_has_no_json_form_is_shown_as_nothing() -> None:
    """A step shows no arguments where there is no JSON form of them, and is there all the same."""
    metadata = ToolMetadata(id="c1", name="free", arguments="{}")
    call: Any = Free.Call(metadata, Free(anything=object()))
    assert [(step.kind, step.arguments) for step in call.steps] == [("proposed", None)]


def test_a_call_that_waited_is_not_made_anew_once_it_was_given_up() -> None:
    """Another try of it would go around the question."""
    plan = desk().apply_hooks_sync(waiting())
    call = plan.suspended[0].call
    call.reject("no")
    with pytest.raises(LifecycleError):
        call.retry()
    close(plan)


def test_a_call_that_waited_and_was_given_up_waits_in_no_plan() -> None:
    """A plan lists it as its rows do: its result is still to be passed."""
    older = Desk.load_plan(desk().apply_hooks_sync(waiting()).dump_json())
    newer = older.apply_hooks_sync(hooks())
    newer.suspended[0].call.reject("no")
    for plan in (newer, older):
        assert [row.state for row in plan.calls] == ["pending"]
        assert (len(plan.pending), plan.suspended) == (1, ())
    close(newer)


def test_after_hooks_see_the_result_of_another_try() -> None:
    """What they saw of the try before is no look at this one: it is owed, and shown."""
    seen: list[str] = []
    made = hooks(after=lambda call, result: seen.append(result.model_text))
    plan = desk().apply_hooks_sync(made)
    call = one(plan)
    plan.apply_after_hooks_sync(made, [call.fail("first try")])
    again = call.retry()
    assert again is call
    plan.record(again.call_sync())
    with pytest.raises(MisuseError, match="has not seen the result"):
        plan.resolve()
    plan.apply_after_hooks_sync(made)
    (result,) = plan.resolve().results
    assert seen == ["first try", result.model_text]


@over("verdict", [None, Block("no")])
def test_a_decision_that_comes_while_gates_are_asked_counts(verdict: Block | None) -> None:
    """The gate has seen the call as it was before, so it reviews it again, or not at all."""
    plan = desk().plan()

    def gate(metadata: Any, input: Any) -> Block | None:
        plan.apply_hooks_sync(waiting())
        plan.resume(plan.suspended[0].approve(by="ann"))
        return verdict

    with pytest.raises(LifecycleError, match="while hooks reviewed it"):
        plan.apply_hooks_sync(hooks(gate=gate))
    call = one(plan)
    assert [step.kind for step in call.steps] == ["proposed", "reviewed", "suspended", "decided"]
    assert call.status is CallStatus.RESUMING
    close(plan)


@over("answer", [RunNormally, lambda input: RunNormally(fill.Input(items=["x"]))])
def test_what_a_hook_says_of_a_call_that_it_began_comes_too_late(answer: Any) -> None:
    """A hook that begins the call itself, in place of the draft, is refused."""
    plan = desk().plan()
    call = plan.pending[0]

    def begins(metadata: Any, input: Any) -> Any:
        call.start()
        return answer(input)

    with pytest.raises(LifecycleError, match="was started while hooks reviewed it"):
        plan.apply_hooks_sync(hooks(on=begins))
    assert history(call.steps) == ["proposed", "started"]
    assert plan.decisions == ()
    close(plan)


def test_a_function_that_leaves_an_unfit_input_is_told() -> None:
    """What it did in place is not the call's, and the error says what does not fit."""

    def spoils(call: Any) -> Any:
        call.input.items.append(3)
        return call

    plan = desk().plan()
    with pytest.raises(HookError, check=lambda error: error.call_id == "c1"):
        plan.apply_hooks_sync(spoils)
    assert plan.pending[0].input == fill.Input(items=["a"])
    close(plan)


def test_a_result_from_elsewhere_ends_the_call_that_after_hooks_are_asked_about() -> None:
    """One that answers this call is its end; one of other arguments changes nothing."""
    plan = desk().plan()
    asked = hooks(after=lambda call, result: None)
    metadata = plan.pending[0].metadata
    other = ToolMetadata(id="c1", name="fill", arguments="{}")
    plan.apply_after_hooks_sync(asked, [forged(other)])
    assert history(plan.pending[0].steps) == ["proposed"]
    plan.apply_after_hooks_sync(asked, [forged(metadata)])
    assert plan.pending[0].status == "succeeded"
    assert [step.phase for step in plan.pending[0].steps][-1] == "after"
    close(plan)


def test_a_function_that_runs_the_tool_runs_the_call_itself() -> None:
    """The run and its result are the call's in every plan, and no other pass runs it again."""
    ran: list[str] = []

    def run(call: Any) -> Any:
        ran.append(call.id)
        return call.handled(call.invoke_sync())

    older = desk().plan()
    newer = older.apply_hooks_sync(run)
    for plan in (older, newer):
        plan.apply_hooks_sync(run)
        assert [each.output for each in plan.finished] == [2]
    assert ran == ["c1"]
    close(newer)


def test_a_result_of_another_try_is_the_end_of_the_call() -> None:
    """A call that failed, and of which another try was recorded, has the status of that."""
    plan = desk().plan()
    call = one(plan)
    call.fail("not now")
    plan.record(call.retry().call_sync())
    (row,) = plan.calls
    assert (call.status, row.result and row.result.status) == (CallStatus.SUCCEEDED, "success")
    assert history(row.steps)[1:] == [
        "ended //error",
        "retried",
        "started",
        "ended //success",
        "recorded //success",
    ]
    close(plan)


def test_a_saved_plan_has_all_decisions() -> None:
    """Those of each pass, in order, also if they let the call pass."""
    plan = desk().plan()
    plan.apply_hooks_sync(hooks(on=let_it))
    plan.apply_hooks_sync(lambda call: call)
    decisions, steps = plan.decisions, history(plan.steps)
    assert [each.decision for each in decisions] == ["run_normally"] * 2
    loaded = Desk.load_plan(plan.dump_json())
    assert (loaded.decisions, history(loaded.steps)) == (decisions, steps)
    close(loaded)


def let_it(metadata: Any, input: Any) -> Any:
    return RunNormally(input)


def test_a_call_pickles_with_what_hooks_said() -> None:
    """A hook travels by its name, or without one: few functions can be pickled."""
    plan = desk().apply_hooks_sync(rewritten("b"))
    back = pickle.loads(pickle.dumps(one(plan)))
    assert (back.steps, back.input, back.digest) == (
        one(plan).steps,
        one(plan).input,
        one(plan).digest,
    )
    close(plan)
