"""The laws of steps: what happened to a call is told once, in order, and in words for all."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    Answer,
    Complete,
    NeedsTools,
    Reject,
    ResumeMode,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolRoundPlan,
)
from lutum_py.errors import LifecycleError
from lutum_py.typing import CallStep
from tests.round.one_story import (
    FILL,
    PAY,
    Clock,
    Desk,
    blocked,
    clock,
    desk,
    fill,
    history,
    hooks,
    let_pass,
    one,
    rewritten,
    waiting,
)
from tests.round_tools import close, forged, turn

__all__ = ["clock"]

Plan = ToolRoundPlan[Any]


class Weather(BaseModel):
    """What is said of the weather."""

    said: str


def _in_place(metadata: Any, input: Any) -> Any:
    input.items.append("b")
    return RunNormally(input)


def _hooked(made: Any) -> Callable[[], Plan]:
    return lambda: desk().apply_hooks_sync(made)


def _passed_gate() -> Plan:
    return desk().apply_hooks_sync(hooks(gate=lambda m, i: None))  # type: ignore[no-any-return]


def _function(answer: Callable[[Any], Any]) -> Callable[[], Plan]:
    def function(call: Any) -> Any:
        return answer(call)

    function.__name__ = function.__qualname__ = "function"
    return lambda: desk().apply_hooks_sync(function)


def _handed(call: Any) -> Any:
    call.input = fill.Input(items=["f"])
    return call


def _decided(**fields: Any) -> Callable[[], Plan]:
    def made() -> Plan:
        plan = desk().apply_hooks_sync(waiting(**fields.get("ticket", {})))
        (suspended,) = plan.suspended
        plan.resume(getattr(suspended, fields["way"])(by="ann", **fields.get("given", {})))
        return plan  # type: ignore[no-any-return]

    return made


def _edited() -> Plan:
    plan = desk().apply_hooks_sync(waiting())
    plan.amend_sync(plan.suspended[0].edit({"items": ["e"]}, by="ann"), waiting())
    return plan  # type: ignore[no-any-return]


def _needs() -> Plan:
    plan = desk(PAY).plan()
    plan.resume(plan.suspended[0].approve(by="ann"))
    plan.record(plan.pending[0].call_sync())
    return plan  # type: ignore[no-any-return]


def _ran() -> Plan:
    plan = desk().plan()
    plan.record(plan.pending[0].call_sync())
    return plan  # type: ignore[no-any-return]


def _ran_in_place() -> Plan:
    plan = desk().apply_hooks_sync(hooks(on=_in_place))
    plan.record(plan.pending[0].call_sync())
    return plan  # type: ignore[no-any-return]


def _after(answer: Callable[[Any, Any], Any]) -> Callable[[], Plan]:
    def made() -> Plan:
        plan = _ran()
        plan.apply_after_hooks_sync(hooks(after=answer))
        return plan

    return made


def _own_question() -> Plan:
    plan = desk().plan()
    (call,) = plan.pending
    call.start()
    plan.record(call.suspend(SuspendTicket(id="own")))
    return plan  # type: ignore[no-any-return]


def _raised() -> Plan:
    plan = desk(("c1", "fall", {})).plan()
    (call,) = plan.pending
    with pytest.raises(ValueError, match="fell"):
        call.call_sync()
    plan.record(call.fail("fell"))
    return plan  # type: ignore[no-any-return]


def _unknown() -> Plan:
    plan = desk().plan()
    plan.pending[0].start()
    plan.record(plan.pending[0].indeterminate("lost"))
    return plan  # type: ignore[no-any-return]


def _left() -> Plan:
    plan = desk().plan()
    plan.pending[0].start()
    return Desk.load_plan(plan.dump_json())


def _given_up() -> Plan:
    plan = desk().apply_hooks_sync(waiting())
    plan.record(plan.suspended[0].call.reject("gone"))
    return plan  # type: ignore[no-any-return]


def _unusable() -> Plan:
    return desk(("c1", "nope", {})).plan()  # type: ignore[no-any-return]


def _unusable_answered() -> Plan:
    plan = _unusable()
    plan.record(forged(plan.recoverable_tool_call_issues[0].metadata))
    return plan


WAYS: list[tuple[str, Callable[[], Plan], str, list[str]]] = [
    ("untouched", lambda: desk().plan(), "pending", []),
    ("pass", _hooked(let_pass()), "pending", ["reviewed on/execution/run_normally"]),
    (
        "rewritten by return",
        _hooked(rewritten("b")),
        "pending",
        ["reviewed on/execution/run_normally", "changed on/execution"],
    ),
    (
        "changed in place",
        _ran_in_place,
        "finished",
        [
            "reviewed on/execution/run_normally",
            "changed",
            "started",
            "ended //success",
            "recorded //success",
        ],
    ),
    (
        "completed",
        _hooked(hooks(on=lambda m, i: Complete(7))),
        "handled",
        ["reviewed on/execution/complete", "ended on/execution/success"],
    ),
    (
        "rejected",
        _hooked(hooks(on=lambda m, i: Reject("no"))),
        "rejected",
        ["reviewed on/execution/reject", "ended on/execution/rejected"],
    ),
    (
        "blocked",
        _hooked(blocked()),
        "rejected",
        ["reviewed gate/gate/block", "ended gate/gate/rejected"],
    ),
    (
        "gate suspends",
        _hooked(waiting()),
        "suspended",
        ["reviewed gate/gate/suspend", "suspended gate/gate"],
    ),
    (
        "gate completes",
        _hooked(hooks(gate=lambda m, i: Complete(7))),
        "handled",
        ["reviewed gate/gate/complete", "ended gate/gate/success"],
    ),
    ("gate lets pass", _passed_gate, "pending", ["reviewed gate/gate"]),
    ("before", _hooked(hooks(before=lambda m, i: None)), "pending", ["reviewed before/before"]),
    (
        "function",
        _function(lambda call: call),
        "pending",
        ["reviewed function/execution/run_normally"],
    ),
    (
        "function changes",
        _function(_handed),
        "pending",
        ["reviewed function/execution/run_normally", "changed function/execution"],
    ),
    (
        "function answers",
        _function(lambda call: call.handled(1)),
        "handled",
        ["reviewed function/execution/complete", "ended function/execution/success"],
    ),
    (
        "function runs",
        _function(lambda call: call.handled(call.invoke_sync())),
        "finished",
        ["started", "ended //success", "recorded //success"],
    ),
    (
        "function rejects",
        _function(lambda call: call.reject("no")),
        "rejected",
        ["reviewed function/execution/reject", "ended function/execution/rejected"],
    ),
    (
        "function suspends",
        _function(lambda call: call.suspend(SuspendTicket())),
        "suspended",
        ["reviewed function/execution/suspend", "suspended function/execution"],
    ),
    (
        "resumed",
        _decided(way="approve"),
        "pending",
        ["reviewed gate/gate/suspend", "suspended gate/gate", "decided ann//resume"],
    ),
    (
        "cancelled",
        _decided(way="cancel"),
        "rejected",
        [
            *("reviewed gate/gate/suspend", "suspended gate/gate", "decided ann//cancel"),
            "ended ann/decision/cancelled",
        ],
    ),
    (
        "answered as result",
        _decided(
            way="approve",
            ticket={"resume_mode": ResumeMode.USE_DECISION_AS_TOOL_RESULT},
            given={"result": 3},
        ),
        "handled",
        [
            *("reviewed gate/gate/suspend", "suspended gate/gate", "decided ann//resume"),
            "ended ann/decision/success",
        ],
    ),
    (
        "edited",
        _edited,
        "pending",
        [
            *("reviewed gate/gate/suspend", "suspended gate/gate", "decided ann//edit"),
            *("changed ann/decision", "reviewed gate/gate/suspend"),
        ],
    ),
    (
        "needs approval",
        _needs,
        "finished",
        [
            *("reviewed needs_approval/gate/suspend", "suspended needs_approval/gate"),
            *("decided ann//resume", "started", "ended //success", "recorded //success"),
        ],
    ),
    ("run", _ran, "finished", ["started", "ended //success", "recorded //success"]),
    (
        "after",
        _after(lambda call, result: None),
        "finished",
        ["started", "ended //success", "recorded //success", "reviewed after/after"],
    ),
    (
        "after replaced",
        _after(lambda call, result: forged(call.metadata, "9")),
        "finished",
        ["started", "ended //success", "recorded //success", "reviewed after/after/replaced"],
    ),
    ("own question", _own_question, "suspended", ["started", "suspended", "recorded //suspended"]),
    ("error", _raised, "finished", ["started", "ended //error", "recorded //error"]),
    (
        "indeterminate",
        _unknown,
        "finished",
        ["started", "ended //indeterminate", "recorded //indeterminate"],
    ),
    ("abandoned", _left, "in_doubt", ["started", "abandoned"]),
    (
        "given up",
        _given_up,
        "finished",
        [
            *("reviewed gate/gate/suspend", "suspended gate/gate", "ended //rejected"),
            "recorded //rejected",
        ],
    ),
    ("unusable", _unusable, "unusable", ["ended /decode/rejected"]),
    (
        "unusable, answered",
        _unusable_answered,
        "finished",
        ["ended /decode/rejected", "recorded //success"],
    ),
]


@pytest.mark.parametrize(
    ("make", "state", "expected"),
    [each[1:] for each in WAYS],
    ids=[each[0] for each in WAYS],
)
def test_each_way_of_a_call_is_told_by_its_steps(
    make: Callable[[], Plan], state: str, expected: list[str]
) -> None:
    """What happens to a call is written once; row and plan tell it, and a load changes nothing."""
    plan = make()
    (row,) = plan.calls
    assert history(row.steps) == ["proposed", *expected]
    assert row.state == state
    assert plan.steps == row.steps
    assert {(step.call_id, step.tool) for step in plan.steps} == {("c1", row.tool)}
    told = [step.at for step in plan.steps]
    assert None not in told
    assert told == sorted(str(at) for at in told)
    for step in plan.steps:
        assert json.loads(json.dumps(step.model_dump())) == step.model_dump()
        assert list(step.model_dump()) == list(CallStep.__slots__)
        assert len({step, copy.copy(step)}) == 1
        with pytest.raises((AttributeError, TypeError)):
            step.kind = "started"  # type: ignore[misc]
    calls = (*plan.pending, *plan.in_doubt, *(each.call for each in plan.suspended))
    assert all(call.steps == row.steps for call in calls)
    assert len(calls) == (state in ("pending", "in_doubt", "suspended"))
    before = plan.steps
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.steps == before
    assert loaded.calls == (row,)
    close(loaded)


def test_a_final_answer_has_a_line() -> None:
    """The call that gave the final answer beside others ended as such, and its row tells so."""
    sent = turn(("f", "final_answer", {"said": "rain"}), FILL)
    outcome = Desk.read_turn(sent, answer=Answer(Weather, name="final_answer"))
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    answer, other = plan.calls
    assert history(answer.steps) == ["proposed", "ended /reply/success"]
    assert history(other.steps) == ["proposed"]
    before = plan.steps
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.steps == before
    close(loaded)


def test_inputs_stand_in_the_steps_that_made_them() -> None:
    """`proposed` has the arguments with defaults, each `changed` has all of the new ones."""
    plan = desk().apply_hooks_sync(rewritten("b"))
    one(plan).input = fill.Input(items=["own"])
    steps = plan.steps
    assert [step.arguments for step in steps if step.kind in ("proposed", "changed")] == [
        {"items": ["a"]},
        {"items": ["b"]},
        {"items": ["own"]},
    ]
    assert (steps[-1].kind, steps[-1].by, steps[-1].phase) == ("changed", None, None)
    assert all(step.arguments is None for step in steps if step.kind == "reviewed")
    close(plan)


def test_a_question_and_its_answer_carry_ids_reasons_and_digests() -> None:
    """`suspended` says the ticket, `decided` the decision, both under the digest shown."""
    plan = desk().apply_hooks_sync(waiting("gate-7", message="Fill?", action="fill"))
    (suspended,) = plan.suspended
    decision = suspended.approve(by="ann", reason="fine")
    plan.resume(decision)
    wait, answer = plan.steps[-2:]
    assert (wait.id, wait.reason, wait.digest) == ("gate-7", "Fill?", suspended.digest)
    assert (answer.id, answer.reason) == (decision.decision_id, "fine")
    assert answer.digest == suspended.digest
    close(plan)


def test_another_try_goes_on_in_the_same_history() -> None:
    """`retry` returns the call, which is new again, and what was decided and done stays told."""
    plan = desk().apply_hooks_sync(waiting())
    plan.resume(plan.suspended[0].approve(by="ann"))
    call = one(plan)
    call.start()
    call.fail("away")
    assert call.retry() is call.retry() is call  # the second writes nothing
    decided = ["reviewed gate/gate/suspend", "suspended gate/gate", "decided ann//resume"]
    tried = ["proposed", *decided, "started", "ended //error", "retried"]
    assert history(call.steps) == tried
    plan.record(call.call_sync())
    assert history(plan.steps) == [*tried, "started", "ended //success", "recorded //success"]
    close(plan)


SECRET = ("c1", "enter", {"user": "ann", "password": "hunter2"})


def test_no_step_shows_a_secret() -> None:
    """Secrets are masked in the steps of calls, rows, plans, copies and loaded plans."""
    made = Desk.HookSet()

    @made.on(Desk.enter)
    def other(metadata: Any, input: Any) -> Any:
        return RunNormally(input.model_copy(update={"user": "bob"}))

    made.gate(Desk.enter)(lambda metadata, input: Suspend(SuspendTicket()))
    plan = desk(SECRET).apply_hooks_sync(made)
    plan.amend_sync(plan.suspended[0].edit({"user": "eve"}, by="ann"), made)
    while plan.suspended:  # the hook gave another user
        plan.resume(plan.suspended[0].approve(by="ann"))
    plan.record(one(plan).call_sync())
    kinds = [step.kind for step in plan.steps]
    assert kinds.count("changed") >= 2
    text = plan.dump_json()
    loaded = Desk.load_plan(text)
    for each in (plan, loaded):
        (row,) = each.calls
        shown = repr([each.steps, row, row.steps, [s.model_dump() for s in each.steps]])
        assert "hunter2" not in shown
        assert "eve" in shown
    assert "hunter2" in text
    close(loaded)


def test_times_never_go_back(clock: Clock) -> None:
    """A clock that was put back counts as the time of the step before, whoever writes."""
    clock.per_look = -1.5
    for way, make, _, _ in WAYS:
        clock.now = 2_000_000_000.0
        plan = make()
        (row,) = plan.calls
        told = [str(each.at) for each in row.steps]
        assert told == sorted(told), way
        assert plan.steps == row.steps, way
        assert row.duration in (None, 0.0), way
        close(plan)


def test_times_are_utc_text_with_microseconds(clock: Clock) -> None:
    """Each time has microseconds, so that text sorts as time does."""
    clock.now = 2_000_000_000.0
    plan = desk().plan()
    clock.now += 0.5
    one(plan).start()
    assert [step.at for step in plan.steps] == [
        "2033-05-18T03:33:20.000000+00:00",
        "2033-05-18T03:33:20.500000+00:00",
    ]
    close(plan)


def test_steps_of_all_calls_stand_by_time(clock: Clock) -> None:
    """`plan.steps` goes by time, those of one moment by turn, and each call's in their order."""
    plan = desk(FILL, ("c2", "fill", {"items": []})).plan()
    first, second = plan.pending
    clock.now += 1
    second.start()
    clock.now += 1
    first.start()
    second.fail("no")
    assert [(step.call_id, step.kind) for step in plan.steps] == [
        ("c1", "proposed"),
        ("c2", "proposed"),
        ("c2", "started"),
        ("c1", "started"),
        ("c2", "ended"),
    ]
    for row in plan.calls:
        assert tuple(step for step in plan.steps if step.call_id == row.id) == row.steps
    close(plan)


def test_durations_add_up_what_ran(clock: Clock) -> None:
    """A duration is what the tool ran since the last try, without what was waited for."""
    plan = desk().plan()
    (call,) = plan.pending
    assert plan.calls[0].duration is None
    clock.now += 5
    call.start()
    assert plan.calls[0].duration is None
    clock.now += 2
    plan.record(call.suspend(SuspendTicket()))
    assert plan.calls[0].duration == 2
    clock.now += 100
    plan.resume(plan.suspended[0].approve())
    assert plan.calls[0].duration == 2
    clock.now += 100
    call.start()
    assert plan.calls[0].duration is None
    clock.now += 0.25
    plan.record(call.fail("no"))
    clock.now += 100
    assert plan.calls[0].duration == 2.25
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.calls[0].duration == 2.25
    close(loaded)


def test_a_plan_that_is_loaded_says_the_same_durations(clock: Clock) -> None:
    """A duration is told in whole microseconds, before a plan is saved as well as after."""
    clock.now += 2**-21  # half a microsecond
    plan = desk().plan()
    (call,) = plan.pending
    call.start()
    clock.now += 2**-21
    plan.record(call.fail("no"))
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.calls[0].duration == plan.calls[0].duration
    close(loaded)


def test_no_duration_where_it_is_not_known() -> None:
    """What was left, was not run, or was decided without a run has no duration."""
    for way, make, _, expected in WAYS:
        plan = make()
        ran = "started" in expected and "abandoned" not in expected
        assert (plan.calls[0].duration is not None) is ran, way
        close(plan)


def test_rows_are_equal_whatever_their_steps(clock: Clock) -> None:
    """Steps are no part of a row's equality, hash or dump."""
    early = desk().plan()
    clock.now += 60
    late = desk().plan()
    (one_row,), (other_row,) = early.calls, late.calls
    assert one_row == other_row
    assert one_row.steps != other_row.steps
    assert hash(one_row) == hash(other_row)
    assert "steps" not in one_row.model_dump()
    close(early, late)


def test_a_row_keeps_the_steps_of_its_moment() -> None:
    """What happens to a call later is in later rows, and steps that were given stay."""
    plan = desk().plan()
    (row,), steps = plan.calls, plan.steps
    one(plan).start()
    assert history(row.steps) == ["proposed"]
    assert history(steps) == ["proposed"]
    assert history(plan.steps) == ["proposed", "started"]
    close(plan)


def test_a_row_keeps_the_arguments_of_its_moment() -> None:
    """What is assigned or edited later does not change what a step of before says."""
    plan = desk().plan()
    (row,), steps = plan.calls, plan.steps
    one(plan).input = fill.Input(items=["later"])
    assert [each.arguments for each in (*row.steps, *steps)] == [{"items": ["a"]}] * 2
    (_, changed) = plan.steps
    assert changed.arguments == {"items": ["later"]}
    close(plan)


def test_events_tell_the_steps_so_far() -> None:
    """The row of an event has the steps up to what it tells of."""
    told: list[Any] = []
    plan = desk().apply_hooks_sync(waiting(), on_event=told.append)
    plan.resume(plan.suspended[0].approve(by="ann"), on_event=told.append)
    assert [history(event.row.steps)[-1] for event in told] == [
        "suspended gate/gate",
        "decided ann//resume",
    ]
    close(plan)


def test_of_hook_sets_that_review_a_call_at_once_one_counts() -> None:
    """The pass that ends last finds that the call has grown: it raises, and writes nothing."""

    async def asked() -> Any:
        go = asyncio.Event()
        plan = desk().plan()
        call = one(plan)
        slow, quick = Desk.HookSet(), Desk.HookSet()

        @slow.on(Desk.fill)
        @quick.on(Desk.fill)
        def passes(metadata: Any, input: Any) -> RunNormally[Any]:
            return RunNormally(input)

        @slow.on(Desk.fill)
        async def waits(metadata: Any, input: Any) -> RunNormally[Any]:
            await go.wait()
            return RunNormally(input)

        asking = asyncio.ensure_future(call.hook(slow))
        await asyncio.sleep(0)
        await call.hook(quick)
        go.set()
        with pytest.raises(LifecycleError, match=r"'c1'.* was reviewed by .*passes"):
            await asking
        close(plan)
        return call.steps

    steps = asyncio.run(asked())
    assert [(step.by or "").rpartition(".")[2] for step in steps[1:2]] == ["passes"]
    assert [step.kind for step in steps] == ["proposed", "reviewed", "ended", "recorded"]


def test_steps_compare_by_all_they_say() -> None:
    """Steps of two lines are equal where they say the same, arguments included."""
    step = desk_step()
    assert step == desk_step()
    other = CallStep(**{**_fields(step), "arguments": {"items": ["b"]}})
    assert step != other
    assert hash(step) == hash(other)


def desk_step() -> CallStep:
    """A step made by hand."""
    return CallStep(
        "c1", "fill", "proposed", "noon", None, None, None, None, None, None, {"items": ["a"]}
    )


def _fields(step: CallStep) -> dict[str, Any]:
    return {name: getattr(step, name) for name in CallStep.__slots__}
