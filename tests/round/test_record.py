"""The laws of answers that live in the plan: recorded once, saved, and committed from there."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AnyToolCall,
    CallStatus,
    Complete,
    ResumeMode,
    Session,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
)
from lutum_py.errors import (
    CommitError,
    DuplicateResult,
    ExtraResult,
    InvalidValueError,
    LifecycleError,
    MismatchedArguments,
    MismatchedToolName,
    MissingResult,
    MisuseError,
    PlanError,
    UnresolvedSuspension,
)
from tests.cases import over
from tests.every_line import every_line
from tests.round.edits import snapshot
from tests.round.saved_plans import at, leaves, sealed
from tests.round_tools import (
    Receipt,
    Shop,
    add,
    adds,
    check_transcript,
    close,
    done,
    forged,
    gated,
    opened,
)


def faults(plan: ToolRoundPlan[Any], outcome: Any) -> tuple[Any, ...]:
    """Why a plan does not take an outcome; nothing of it has changed."""
    before = snapshot(plan)
    with pytest.raises(CommitError) as caught:
        plan.record(outcome)
    assert snapshot(plan) == before
    return caught.value.faults


def reloaded(plan: ToolRoundPlan[Any]) -> ToolRoundPlan[Any]:
    return Shop.load_plan(plan.dump_json())


def test_recorded_results_stand_in_the_order_of_the_turn() -> None:
    """Whatever answers a call is recorded as its result, and a settled plan commits by itself."""
    plan = opened(*adds(4)).plan()
    first, second, third, fourth = plan.pending
    plan.record(fourth.reject("no"))
    plan.record(second.handled(7))
    plan.record(first.call_sync())
    assert [result.id for result in plan.finished] == ["c0", "c1", "c3"]
    assert plan.pending == (third,)
    assert "1 pending, 3 finished" in repr(plan)
    assert not plan.is_settled
    plan.record(third.fail("down"))
    assert plan.is_settled
    session = Session()
    committed = plan.commit(session)
    statuses = [result.status for result in committed.results]
    assert statuses == ["success", "success", "error", "rejected"]
    check_transcript(session.transcript)


def test_a_result_may_be_made_anywhere() -> None:
    """A result of the same metadata ends the call that stands here, so that it cannot run too."""
    plan = opened(*adds(1)).plan()
    (call,) = plan.pending
    plan.record(forged(call.metadata, "5"))
    assert call.status is CallStatus.SUCCEEDED
    with pytest.raises(LifecycleError):
        call.call_sync()
    assert plan.resolve().results[0].result == "5"


def test_a_result_is_recorded_once_and_of_an_open_call() -> None:
    """What answers no open call, or another one, is a fault of its own kind, and is not taken."""
    hooks = gated(SuspendTicket(), Shop.pay)
    hooks.on(Shop.shout)(lambda metadata, input: Complete("A"))
    calls = (*adds(2), ("p", "pay", {"amount": 1}), ("s", "shout", {"text": "a"}))
    plan = opened(*calls).apply_hooks_sync(hooks)
    one, two = plan.pending
    result = one.call_sync()
    plan.record(result)
    before = snapshot(plan)
    plan.record(result)
    assert snapshot(plan) == before  # the same once more changes nothing
    assert faults(plan, forged(one.metadata, "9")) == (DuplicateResult("c0", "add"),)
    stray = forged(ToolMetadata(id="zz", name="add", arguments="{}"))
    assert faults(plan, stray) == (ExtraResult("zz", "add", ("c1",)),)
    assert faults(plan, plan.handled[0]) == (ExtraResult("s", "shout", ("c1",), True),)
    waits = forged(plan.suspended[0].call.metadata)
    assert faults(plan, waits) == (UnresolvedSuspension("p", "pay"),)
    wrong = forged(ToolMetadata(id="c1", name="pay", arguments="{}"))
    assert faults(plan, wrong) == (
        MismatchedToolName("c1", "pay", "add"),
        MismatchedArguments("c1", "add", two.metadata.arguments, "{}"),
    )
    two.suspend(SuspendTicket())
    assert faults(plan, forged(two.metadata)) == (UnresolvedSuspension("c1", "add"),)
    close(plan)


def test_a_recorded_result_is_not_passed_to_the_commit_as_well() -> None:
    """A result that the plan has is a duplicate in `commit`; `abort` takes it, but no other."""
    plan = opened(*adds(2)).plan()
    pending = plan.pending
    first, second = done(pending)
    plan.record(first)
    other = forged(pending[0].metadata, "7")
    wrong: tuple[tuple[Any, Any], ...] = (
        (plan.commit, first),
        (lambda session, results: plan.abort(session, "stop", results), other),
    )
    for end, again in wrong:
        with pytest.raises(CommitError) as caught:
            end(Session(), [again, second])
        assert caught.value.faults == (DuplicateResult("c0", "add"),)
    plan.abort(Session(), "stop", [first, second])


def test_an_issue_may_be_answered_by_record() -> None:
    """A result for a call that cannot be used takes the place of its automatic rejection."""
    plan = opened(("t", "nope", "{}"), ("u", "nope", "{}")).plan()
    plan.record(forged(plan.recoverable_tool_call_issues[1].metadata, '"mine"'))
    assert plan.is_settled
    again = reloaded(plan)
    assert {issue.metadata.id for issue in again.recoverable_tool_call_issues} == {"t", "u"}
    rejected, mine = again.resolve().results
    assert (rejected.status, mine.output) == ("rejected", "mine")


def test_a_call_that_suspended_itself_is_recorded_as_waiting() -> None:
    """`record` of a suspended call is `suspend`; recorded siblings stay."""
    plan = opened(*adds(2)).plan()
    first, second = plan.pending
    first.start()
    plan.record(first.suspend(SuspendTicket()))
    plan.record(second.call_sync())
    assert [each.call for each in plan.suspended] == [first]
    assert (plan.pending, plan.is_settled) == ((), False)
    plan.resume(plan.suspended[0].approve())
    assert plan.pending == (first,)
    close(plan)


def test_a_call_that_was_begun_before_the_dump_is_in_doubt() -> None:
    """It refuses to run, counts as missing, and is answered by whoever finds out."""
    plan = opened(*adds(2)).plan()
    plan.pending[0].start()
    again = reloaded(plan)
    (doubtful,) = again.in_doubt
    assert [call.id for call in again.pending] == ["c1"]
    assert "1 in_doubt" in repr(again)
    with pytest.raises(LifecycleError):
        doubtful.call_sync()
    results = done(again.pending)
    with pytest.raises(
        CommitError, match=r"'c0' .* was started before the plan was saved"
    ) as caught:
        again.resolve(results)
    assert caught.value.faults == (MissingResult("c0", "add", True),)
    again.record(results[0])
    again = reloaded(again)
    assert [call.id for call in again.in_doubt] == ["c0"]
    again.record(again.in_doubt[0].indeterminate("the machine is gone."))
    assert [r.status for r in again.resolve().results] == ["indeterminate", "success"]


def test_a_call_that_was_approved_in_doubt_does_not_fall_back_into_it() -> None:
    """Whoever approved a call knew that it was started: what it says then is to be told as ever."""
    plan = opened(*adds(1)).plan()
    plan.pending[0].start()
    plan = reloaded(plan)
    plan.record(plan.in_doubt[0].suspend(SuspendTicket()))
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    asked = call.suspend(SuspendTicket())
    assert [row.state for row in plan.calls] == ["pending"]
    plan.record(asked)
    assert [each.call.id for each in plan.suspended] == [call.id]
    close(plan)


def test_a_call_in_doubt_may_have_ended_elsewhere() -> None:
    """The result that was made elsewhere, or that the call waits there, ends the doubt."""
    plan = opened(*adds(2)).plan()
    for call in plan.pending:
        call.start()
    again = reloaded(plan)
    elsewhere = again.in_doubt[1].retry()
    elsewhere.start()
    again.record(elsewhere.suspend(SuspendTicket()))
    again.record(forged(again.in_doubt[0].metadata, "9"))
    assert (again.in_doubt, len(again.suspended)) == ((), 1)
    again.resume(again.suspended[0].cancel("no"))
    assert [r.status for r in again.resolve().results] == ["success", "cancelled"]


def test_abort_makes_doubt_indeterminate() -> None:
    """A call in doubt was started, so that nobody can say that it did nothing."""
    plan = opened(*adds(3)).plan()
    plan.pending[0].start()
    plan.record(plan.pending[1].call_sync())
    session = Session()
    committed = reloaded(plan).abort(session, "enough")
    assert [r.status for r in committed.results] == ["indeterminate", "success", "cancelled"]
    check_transcript(session.transcript)


@pytest.mark.parametrize("move", ["call_sync", "suspend"])
def test_a_plan_that_was_not_told_is_not_saved(move: str) -> None:
    """A call that ended or waits here would be forgotten: the dump says what to record."""
    plan = opened(*adds(1)).plan()
    (call,) = plan.pending
    outcome = call.call_sync() if move == "call_sync" else call.suspend(SuspendTicket())
    with pytest.raises(PlanError, match=r"'c0' of tool `add` is s.*`plan\.record\(outcome\)`"):
        plan.dump_json()
    plan.record(outcome)
    close(reloaded(plan))


def test_a_plan_is_bound_to_what_it_belongs_to() -> None:
    """A plan loads with the binding that it was saved with: another or none is refused."""
    bound = opened(*adds(1)).plan().dump_json(binding="conversation 42, turn 7")
    free = opened(*adds(1)).plan().dump_json()
    close(Shop.load_plan(bound, binding="conversation 42, turn 7"), Shop.load_plan(free))
    for text, binding, message in (
        (bound, "conversation 43", "is of 'conversation 42, turn 7', and not of 'conversation 43'"),
        (bound, None, r"no `binding=` was passed"),
        (free, "conversation 42", "saved without a binding"),
    ):
        with pytest.raises(PlanError, match=message):
            Shop.load_plan(text, binding=binding)
    wrong: Any
    for wrong in ("", 3):
        with pytest.raises(InvalidValueError):
            Shop.load_plan(bound, binding=wrong)
    plan = opened(*adds(1)).plan()
    with pytest.raises(InvalidValueError):
        plan.dump_json(binding="")
    close(plan)


def test_a_call_in_doubt_that_was_asked_about_may_have_run() -> None:
    """Whoever was asked about it may not know either; an abort says the same."""
    plan = opened(*adds(2)).plan()
    for call in plan.pending:
        call.start()
    plan = reloaded(plan)
    for call in plan.in_doubt:
        plan.record(call.suspend(SuspendTicket(message="Was it done?")))
    for waits in plan.suspended:
        plan.resume(waits.approve())
    first, _ = plan.pending
    plan.record(first.indeterminate("lost"))
    results = plan.abort(Session(), "stop").results
    assert [each.status for each in results] == ["indeterminate"] * 2


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("key", [3, None])
def test_that_a_hook_was_asked_names_the_hook(phase: str, key: Any) -> None:
    """A text that is sealed but does not say which hook was asked is told by its place."""
    data = json.loads(full_plan().dump_json())
    call_id = {"before": "c2", "after": "c1"}[phase]
    steps = next(each for each in data["entries"] if each["call"] == call_id)["steps"]
    place = next(i for i, each in enumerate(steps) if each.get("phase") == phase)
    assert steps[place]["key"] == f"full_plan.<locals>.{'once' if phase == 'before' else 'after'}"
    steps[place]["key"] = key
    with pytest.raises(PlanError, match=rf"steps\[{place}\]\.key: expected str"):
        Shop.load_plan(json.dumps(sealed(data)))


def test_a_call_that_runs_is_left_by_the_dump() -> None:
    """The dump says that it was left, so that two loads of one text are equal to the microsecond.

    Here the call has moved: it was not left, and goes on where the text is loaded.
    """
    plan = opened(*adds(2)).plan()
    call = plan.pending[0]
    call.start()
    text = plan.dump_json()
    assert [each["kind"] for each in json.loads(text)["entries"][0]["steps"]] == [
        "proposed",
        "started",
        "abandoned",
    ]
    assert [step.kind for step in call.steps] == ["proposed", "started", "moved"]
    one, two = Shop.load_plan(text), Shop.load_plan(text)
    assert [row.steps for row in one.calls] == [row.steps for row in two.calls]
    assert (one.calls, one.in_doubt[0].steps[-1].kind) == (two.calls, "abandoned")
    again = reloaded(one)
    assert again.in_doubt[0].steps == two.in_doubt[0].steps
    close(again, two)


def test_times_in_text_sort_as_they_came() -> None:
    """Each step has its time, in UTC and always to the microsecond: texts sort as times do."""
    seen = 0
    for entry in json.loads(full_plan().dump_json())["entries"]:
        times = [each["at"] for each in entry["steps"]]
        assert times == sorted(times), entry["call"]
        for each in times:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", each)
        seen += len(times)
    assert seen > 30


@pytest.mark.parametrize("move", ["complete", "fail", "suspend"])
def test_what_a_call_in_doubt_came_to_is_recorded_before_the_dump(move: str) -> None:
    """An answer of a call in doubt is not lost in a dump: the plan has to be told of it first."""
    plan = opened(*adds(1)).plan()
    plan.pending[0].start()
    again = reloaded(plan)
    (doubtful,) = again.in_doubt
    outcome: Any
    if move == "complete":
        outcome = doubtful.complete(3)
    elif move == "fail":
        outcome = doubtful.fail("broken")
    else:
        outcome = doubtful.suspend(SuspendTicket())
    with pytest.raises(PlanError, match=r"'c0' of tool `add` .*`plan\.record\(outcome\)`"):
        again.dump_json()
    again.record(outcome)
    last = reloaded(again)
    assert (len(last.finished), len(last.suspended)) == ((0, 1) if move == "suspend" else (1, 0))
    close(last)


def full_plan() -> ToolRoundPlan[Any]:
    """A plan in which everything is there that it can hold."""
    hooks = gated(SuspendTicket(id="t", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL), Shop.ask)

    def once(metadata: ToolMetadata, input: Any) -> None:
        """See a call once."""

    def after(call: AnyToolCall, result: Any) -> None:
        """See a result."""

    hooks.before()(once)
    hooks.after()(after)
    hooks.on(Shop.pay)(lambda metadata, input: Complete(Receipt(paid=1)))
    calls = (
        *adds(3),
        ("p", "pay", {"amount": 1}),
        ("a", "ask", {"question": "?"}),
        ("b", "ask", {"question": "!"}),
        ("u", "nope", "{}"),
        ("v", "nope", "{}"),
    )
    plan = opened(*calls).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve(result="yes", by="ann", reason="fine"))
    first, second, _, asked = plan.pending
    asked.start()
    plan.record(asked.suspend(SuspendTicket(id="own")))
    plan.resume(plan.suspended[-1].approve(by="bob"))
    first.start()
    plan.record(second.call_sync())
    plan.record(forged(plan.recoverable_tool_call_issues[0].metadata))
    plan.apply_after_hooks_sync(hooks)
    return plan


def test_every_leaf_of_a_saved_plan_is_sealed() -> None:
    """Whichever one value of the text is edited, the plan is refused."""
    data = json.loads(full_plan().dump_json(binding="here"))
    places = list(leaves(data))
    assert len(places) > 150
    for path in places:
        changed = json.loads(json.dumps(data))
        at(changed, path[:-1])[path[-1]] = "edited"
        with pytest.raises(PlanError):
            Shop.load_plan(json.dumps(changed), binding="here")


def test_both_decisions_of_a_call_survive() -> None:
    """The gate's answer and the tool's stand beside each other, here and after loading."""
    text = reloaded(full_plan()).dump_json()
    assert reloaded(Shop.load_plan(text)).dump_json() == text
    plan = Shop.load_plan(text)
    call = next(each for each in plan.pending if each.id == "a")
    own, gate = call.approval, call.resume
    assert own is not None
    assert gate is not None
    assert (own.by, gate.by) == ("bob", "ann")
    assert call.ticket is not None
    assert call.ticket.id == "t"
    context = ToolContext.for_call(call)
    assert (context.suspension_id, context.suspension_reason) == ("own", "approve")
    assert context.resume == gate  # the tool's own question asked for no answer
    assert own.at.endswith("+00:00")
    close(plan)


def test_a_gate_does_not_see_the_answer_to_a_tool() -> None:
    """A call whose tool asked has still to pass the gate, which asks by itself and is answered."""
    plan = opened(*adds(1)).plan()
    (call,) = plan.pending
    call.start()
    plan.record(call.suspend(SuspendTicket(id="own")))
    plan.resume(plan.suspended[0].approve())
    seen: list[Any] = []
    hooks = gated(SuspendTicket(id="gate"), Shop.add)
    hooks.gate(Shop.add)(lambda metadata, input, decision: seen.append(decision))
    plan = plan.apply_hooks_sync(hooks)
    assert seen == [None]
    (waiting,) = plan.suspended
    assert (waiting.ticket.id, waiting.was_started) == ("gate", False)
    yes = waiting.approve()
    plan.resume(yes)
    plan = plan.apply_hooks_sync(hooks)
    assert seen == [None, yes]
    assert (plan.suspended, plan.pending[0].suspension_id) == ((), "own")
    assert plan.pending[0].indeterminate("it was started once.").status == "indeterminate"
    close(plan)


def test_what_is_shown_to_whoever_decides() -> None:
    """`arguments` are the final ones as plain data, with defaults; decisions carry the digest."""
    plan = opened(("c", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket()))
    (waiting,) = plan.suspended
    assert waiting.arguments == {"a": 1, "b": 0}
    yes, no = waiting.approve(by="ann", result=1, reason="ok"), waiting.cancel("too much", by="bob")
    assert (yes.action, yes.digest, yes.by, yes.result, yes.reason) == (
        "resume",
        waiting.digest,
        "ann",
        1,
        "ok",
    )
    assert (no.action, no.digest, no.by, no.reason) == (
        "cancel",
        waiting.digest,
        "bob",
        "too much",
    )
    assert plan.resume(no) is plan.rejected[0]
    assert add.definition.name in plan.rejected[0].call.name
    close(plan)


@given(st.data())
def test_plans_sort_their_calls_however_results_come(data: st.DataObject) -> None:
    """Results, waits and looks in any order: each call stands where it belongs, as in the turn."""
    plan = opened(*adds(6)).plan()
    calls = {call.id: call for call in plan.pending}
    recorded: dict[str, Any] = {}
    waiting: list[str] = []
    for call_id in data.draw(st.permutations(list(calls))):
        call = calls[call_id]
        move = data.draw(st.sampled_from(["record", "make", "suspend", "look"]))
        if move == "record":
            recorded[call_id] = call.call_sync()
            plan.record(recorded[call_id])
        elif move == "make":
            recorded[call_id] = forged(call.metadata, "5")
            plan.record(recorded[call_id])
        elif move == "suspend":
            plan.suspend(call.suspend(SuspendTicket()))
            waiting.append(call_id)
        if data.draw(st.booleans()):
            assert len(plan.pending) == 6 - len(recorded) - len(waiting)
    other = plan.apply_hooks_sync(Shop.HookSet())
    for seen in (plan, other):
        assert [call.id for call in seen.pending] == [
            each for each in calls if each not in recorded and each not in waiting
        ]
        assert list(seen.finished) == [recorded[each] for each in calls if each in recorded]
        assert [each.call.id for each in seen.suspended] == waiting
        assert [(row.id, row.result) for row in seen.calls] == [
            (each, recorded.get(each)) for each in calls
        ]
    close(plan)


WRONG: dict[str, tuple[str, Callable[[Any, Any], object]]] = {
    "suspend": ("takes a call that suspended itself", lambda plan, it: plan.suspend(it)),
    "abort": ("is no result|passed as a list", lambda plan, it: plan.abort(Session(), "stop", it)),
    "ancestors": ("no call", lambda plan, it: plan.ancestors(it)),
}


@over("name", WRONG)
def test_what_is_of_a_wrong_type_is_refused_as_that(name: str) -> None:
    """No error of Python's own comes out, and the plan is as it was."""
    plan = opened(*adds(1)).plan()
    text, move = WRONG[name]
    before = snapshot(plan)
    for wrong in (None, 5, forged(plan.pending[0].metadata), [5], {"c0": 1}):
        with pytest.raises(MisuseError, match=text):
            move(plan, wrong)
        assert snapshot(plan) == before
    close(plan)


def test_a_result_of_another_status_is_another_result() -> None:
    """Two statuses of one end, as an error and an unknown outcome, are no one outcome either."""
    plan = opened(*adds(1)).plan()
    call = plan.pending[0]
    call.start()
    call.indeterminate("lost")
    before = snapshot(plan)
    with pytest.raises(CommitError, check=lambda error: "DuplicateResult" in repr(error.faults)):
        plan.record(Shop.parse_tool_call(call.metadata).fail("refused"))
    assert snapshot(plan) == before
    plan.record(call.retry().fail("refused"))
    (row,) = plan.calls
    said = [(step.kind, step.verdict) for step in row.steps[2:]]
    assert said == [("ended", "indeterminate"), ("retried", "spent")] + [
        (kind, "error") for kind in ("ended", "recorded")
    ]
    close(plan)


def test_threads_record_and_look_at_once() -> None:
    """Whoever looks while threads record sees each call once, and in the end all results."""
    plan = opened(*adds(300)).plan()
    calls = plan.pending
    begin = threading.Barrier(5)
    seen: list[bool] = []

    def recording(part: int) -> None:
        begin.wait()
        for call in calls[part::3]:
            plan.record(forged(call.metadata, "5"))

    def looking() -> None:
        begin.wait()
        while len(plan.finished) < len(calls):
            pending = {call.id for call in plan.pending}
            seen.append(len(pending) <= len(calls))

    workers = [threading.Thread(target=recording, args=(part,)) for part in range(3)]
    workers += [threading.Thread(target=looking) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert not any(worker.is_alive() for worker in workers)
    assert all(seen)
    assert [result.id for result in plan.resolve().results] == [call.id for call in calls]


def three_calls() -> tuple[ToolRoundPlan[Any], list[AnyToolCall]]:
    plan = opened(*adds(3)).plan()
    return plan, list(plan.pending)


def closed(made: Any) -> None:
    close(made[0])


def test_what_is_recorded_or_looked_at_meanwhile_is_kept() -> None:
    """Whenever others record or look while a result is recorded, all of it is in the plan."""

    def step(made: Any) -> None:
        plan, (first, *_) = made
        plan.record(forged(first.metadata))

    def meanwhile(made: Any) -> None:
        plan, (_, second, third) = made
        plan.record(forged(second.metadata))
        assert third in plan.pending
        assert second not in plan.pending
        plan.suspend(third.suspend(SuspendTicket()))

    lines = 0
    for line, (plan, (first, second, third)), raised in every_line(
        three_calls, step, meanwhile, in_thread=True, drop=closed
    ):
        where = f"line {line}"
        assert raised is None, where
        assert [result.id for result in plan.finished] == [first.id, second.id], where
        assert [each.call for each in plan.suspended] == [third], where
        assert plan.pending == (), where
        close(plan)
        lines += 1
    assert lines > 10


def test_recording_that_is_interrupted_is_done_again() -> None:
    """An interrupt at any moment while a result is taken in leaves the plan with it, or open for it
    to be recorded again.
    """

    def step(made: Any) -> None:
        plan, (first, *_) = made
        plan.record(forged(first.metadata))

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    missing = 0
    for line, (plan, (first, *others)), raised in every_line(
        three_calls, step, interrupt, drop=closed
    ):
        where = f"line {line}"
        assert isinstance(raised, KeyboardInterrupt), where
        if not plan.finished:
            missing += 1
            plan.record(forged(first.metadata))
        assert plan.pending == tuple(others), where
        assert [result.id for result in plan.finished] == [first.id], where
        close(plan)
    assert missing > 10


def test_a_look_finds_what_is_recorded_meanwhile() -> None:
    """Whenever others record and look while somebody looks, either state is seen, whole."""

    def prepare() -> Any:
        plan, calls = three_calls()
        plan.record(forged(calls[0].metadata))
        return plan, calls, []

    def look(made: Any) -> None:
        plan, _, seen = made
        seen.append([call.id for call in plan.pending])

    def meanwhile(made: Any) -> None:
        plan, (_, second, _), _ = made
        plan.record(forged(second.metadata))
        assert [call.id for call in plan.pending] == ["c2"]

    lines = 0
    for line, (plan, _, (seen,)), raised in every_line(
        prepare, look, meanwhile, in_thread=True, drop=closed
    ):
        assert raised is None, f"line {line}"
        assert seen in (["c1", "c2"], ["c2"]), f"line {line}"
        assert [call.id for call in plan.pending] == ["c2"], f"line {line}"
        assert [result.id for result in plan.finished] == ["c0", "c1"], f"line {line}"
        close(plan)
        lines += 1
    assert lines > 5


def test_a_plan_has_the_attributes_of_a_plan_alone() -> None:
    """A name that is none of its attributes is an AttributeError in Python's own words, also after
    a result was recorded.
    """
    plan, (first, *_) = three_calls()
    plan.record(first.call_sync())
    wrong: Any = plan
    with pytest.raises(AttributeError, match="'ToolRoundPlan' object has no attribute 'pendng'"):
        wrong.pendng  # noqa: B018
    close(plan)
