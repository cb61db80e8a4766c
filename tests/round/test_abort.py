"""The laws of giving a round up: every call still gets one honest result."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    CallStatus,
    Session,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    CommitError,
    ExtraResult,
    MismatchedArguments,
    MisuseError,
    RoundClosedError,
)
from lutum_py.execution import execute_all_sync, outcomes_of, run_sync
from tests.cases import over
from tests.instructions import calls
from tests.round_tools import Shop, add, adds, check_transcript, close, forged, gated, opened


def statuses(session: Session) -> dict[str, str]:
    return {item.id: item.status for item in session.transcript[1:]}  # type: ignore[union-attr]


def test_abort_answers_every_call() -> None:
    """Calls that were not started are cancelled, started ones indeterminate, finished ones kept."""
    session = Session()
    plan = opened(*adds(4), ("u", "nope", "{}")).plan()
    untouched, running, failed, finished = plan.pending
    running.start()
    failed.fail("no luck")
    result = finished.call_sync()
    committed = plan.abort(session, "The user left.", [result])
    assert statuses(session) == {
        "c0": "cancelled",
        "c1": "indeterminate",
        "c2": "indeterminate",
        "c3": "success",
        "u": "rejected",
    }
    assert (untouched.status, running.status) == (CallStatus.CANCELLED, CallStatus.FAILED)
    assert committed.results[0].model_text == "Not executed: The user left."
    assert committed.results[1].model_text == (
        "Outcome unknown: the tool was started, and nobody knows what it did. The user left."
    )
    assert committed.results[3] is result
    check_transcript(session.transcript)
    with pytest.raises(RoundClosedError):
        plan.abort(session, "retried")


def test_a_tool_that_raised_is_indeterminate() -> None:
    """A call whose tool raised was started, so nobody can say that it did nothing."""
    session = Session()

    @tool_fn
    def crash() -> None:
        """Fail."""
        raise OSError("halfway")

    class Fragile(Toolset):
        crash_ = tool(crash)

    plan = opened(("a", "crash", "{}"), toolset=Fragile).plan()
    with pytest.raises(OSError, match="halfway"):
        plan.pending[0].call_sync()
    plan.abort(session, "gone")
    assert statuses(session) == {"a": "indeterminate"}


def test_abort_answers_suspended_calls() -> None:
    """A call that a gate suspended is cancelled; one that suspended itself is indeterminate."""
    session = Session()
    plan = opened(*adds(1), ("s", "shout", {"text": "x"})).apply_hooks_sync(
        gated(SuspendTicket(), Shop.add)
    )
    (started,) = plan.pending
    started.start()
    plan.suspend(started.suspend(SuspendTicket()))
    plan.abort(session, "Nobody answered.")
    assert statuses(session) == {"c0": "cancelled", "s": "indeterminate"}
    check_transcript(session.transcript)


@over("saved", [False, True])
@over("again", [False, True])
def test_what_was_started_stays_started(saved: bool, again: bool) -> None:
    """A tool that suspended itself was started, whatever decisions and dumps come after."""
    session = Session()
    plan = opened(*adds(2)).plan()
    call = plan.pending[0]
    call.start()
    plan.suspend(call.suspend(SuspendTicket()))
    plan.resume(plan.suspended[0].approve())
    if again:
        plan.suspend(call.suspend(SuspendTicket()))
        assert not plan.suspended[0].was_started
        assert [each.call.id for each in plan.suspended] == ["c0"]
    if saved:
        plan = Shop.load_plan(plan.dump_json())
    plan.abort(session, "stop")
    assert statuses(session) == {"c0": "indeterminate", "c1": "cancelled"}


def test_all_that_was_started_stays_started() -> None:
    """Of several tools that suspended themselves, each is remembered when decisions come."""
    session = Session()
    plan = opened(*adds(2)).plan()
    for call in plan.pending:
        call.start()
        plan.suspend(call.suspend(SuspendTicket()))
    for waiting in plan.suspended:
        plan.resume(waiting.approve())
    plan.abort(session, "stop")
    assert statuses(session) == {"c0": "indeterminate", "c1": "indeterminate"}


def test_hooks_are_not_asked_about_what_was_begun() -> None:
    """A call that was started is past the hooks: no approval lets it be started a second time."""
    session = Session()
    plan = opened(*adds(1)).plan()
    plan.pending[0].start()
    plan = plan.apply_hooks_sync(lambda call: call.suspend(SuspendTicket()))
    assert [call.id for call in plan.pending] == ["c0"]
    plan.abort(session, "stop")
    assert statuses(session) == {"c0": "indeterminate"}


def test_abort_takes_a_result_for_a_suspended_call() -> None:
    """A suspended call that was answered elsewhere keeps that answer."""
    session = Session()
    plan = opened(*adds(1)).apply_hooks_sync(gated(SuspendTicket()))
    plan.abort(session, "stop", [forged(plan.suspended[0].call.metadata, "7")])
    assert statuses(session) == {"c0": "success"}


@over("way", ["execute_all_sync", "run_sync"])
def test_abort_takes_the_outcomes_of_whatever_was_cut_off(way: str) -> None:
    """Also those that the plan has, since `run` records them: an outcome counts once."""
    session = Session()

    @tool_fn
    def cut_off() -> None:
        raise KeyboardInterrupt

    class Cut(Toolset):
        add = tool(add)
        cut_off_ = tool(cut_off)

    plan = opened(*adds(1), ("k", "cut_off", "{}"), toolset=Cut).plan()
    with pytest.raises(KeyboardInterrupt) as caught:
        run_sync(plan) if way == "run_sync" else execute_all_sync(plan.pending)
    plan.abort(session, "Stopped.", outcomes_of(caught.value))
    assert statuses(session) == {"c0": "success", "k": "indeterminate"}


def test_each_outcome_is_looked_up_once_in_an_abort() -> None:
    """With all outcomes of 1,000 calls given again, none is compared with all that are recorded."""
    plan = opened(*adds(1_000)).plan()
    run_sync(plan)
    with calls(200_000):
        committed = plan.abort(Session(), "stop", plan.finished)
    assert len(committed.results) == 1_000


def test_a_recorded_call_takes_no_other_result_in_an_abort() -> None:
    """Which of two results is right, nobody knows."""
    plan = opened(*adds(1)).plan()
    (call,) = plan.pending
    plan.record(call.call_sync())
    with pytest.raises(CommitError, match="more than one result"):
        plan.abort(Session(), "stop", [forged(call.metadata, "7")])
    close(plan)


def test_abort_with_unfit_results_changes_nothing() -> None:
    """Results that do not fit are refused by `abort` as by `commit`, and it can be tried again."""
    transcript = Transcript()
    plan = opened(*adds(1)).plan()
    stray = forged(ToolMetadata(id="elsewhere", name="add", arguments="{}"))
    wrong = forged(ToolMetadata(id="c0", name="add", arguments="{}"))
    with pytest.raises(CommitError) as caught:
        plan.abort(transcript, "stop", [wrong, stray])
    assert [type(fault) for fault in caught.value.faults] == [MismatchedArguments, ExtraResult]
    assert len(transcript) == 0
    plan.abort(transcript, "stop")
    check_transcript(transcript)


def test_discard_leaves_the_transcript() -> None:
    """A discarded round was never said."""
    session = Session()
    session.push_user("Hi")
    opened(*adds(2)).discard()
    opened(*adds(2)).plan().discard()
    assert len(session.transcript) == 1


def test_a_context_is_made_without_a_decision() -> None:
    """A call that was never suspended has no decision for its tool."""
    tool_round = opened(("a", "ask", {"question": "?"}))
    context = ToolContext.for_call(tool_round.tool_calls[0])
    assert (context.resume, context.suspension_id, context.suspension_reason) == (None, None, None)
    close(tool_round)


def test_a_call_that_suspended_itself_was_started() -> None:
    """What `execute` gave for a call that suspended itself may be handed to `abort` as it is."""
    session = Session()
    plan = opened(*adds(2)).plan()
    for call in plan.pending:
        call.start()
    outcome = plan.pending[0].suspend(SuspendTicket(action="ask"))
    plan.pending[1].suspend(SuspendTicket(action="ask"))
    committed = plan.abort(session, "The user left.", [outcome])
    assert [result.status for result in committed.results] == ["indeterminate"] * 2


def test_an_abort_that_fails_has_changed_nothing() -> None:
    """A suspended call of another round says nothing about the calls of this one."""
    plan, other = opened(*adds(1)).plan(), opened(("c0", "add", {"a": 7})).plan()
    (foreign,) = other.pending
    foreign.start()
    stranger = foreign.suspend(SuspendTicket())
    wrong = forged(other.pending[0].metadata)
    with pytest.raises(CommitError):
        plan.abort(Session(), "stop", [stranger, wrong])
    session = Session()
    plan.abort(session, "stop", [stranger])
    assert statuses(session) == {"c0": "cancelled"}
    close(other)


def test_a_round_is_given_up_as_its_plan_is() -> None:
    """`round.abort` keeps the results that it is given, and tells why the others are missing."""
    tool_round = opened(*adds(2))
    result = tool_round.tool_calls[1].call_sync()
    committed = tool_round.abort(Transcript(), "Enough.", [result])
    assert committed.results[0].model_text == "Not executed: Enough."
    assert committed.results[1] is result


def test_the_reason_is_a_text() -> None:
    """The model reads the reason: what is no text is refused, and the round stays open."""
    session = Session()
    plan = opened(*adds(1)).plan()
    reason: Any = None
    with pytest.raises(MisuseError):
        plan.abort(session, reason)
    assert len(session.transcript) == 0
    plan.abort(session, "over")
