"""The laws of a call's life."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import CallStatus, SuspendedCall, SuspendTicket
from lutum_py.errors import LifecycleError
from tests.cases import over
from tests.round_tools import close, opened

NEW, RUNNING, SUSPENDED, RESUMING, SUCCEEDED, FAILED, CANCELLED = CallStatus


def resume(plan: Any) -> None:
    """Let a plan know that its call waits, and decide about it."""
    (call,) = plan.pending
    plan.suspend(SuspendedCall(call, SuspendTicket(), call.digest))
    plan.resume(plan.suspended[0].approve())


MOVES: dict[CallStatus, Callable[[Any, Any], object]] = {
    RUNNING: lambda plan, call: call.start(),
    SUSPENDED: lambda plan, call: call.suspend(SuspendTicket()),
    RESUMING: lambda plan, call: resume(plan),
    SUCCEEDED: lambda plan, call: call.complete(3),
    FAILED: lambda plan, call: call.fail("no"),
    CANCELLED: lambda plan, call: call.reject("no"),
}
"""The public move that leads to each status."""


@contextmanager
def call_in(status: CallStatus) -> Iterator[tuple[Any, Any]]:
    """A plan, and its call in a status."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    (call,) = plan.pending
    for each in {NEW: (), RESUMING: (SUSPENDED, RESUMING)}.get(status, (status,)):
        MOVES[each](plan, call)
    try:
        yield plan, call
    finally:
        close(plan)


def test_the_table_is_the_specification() -> None:
    """Every status has its row, with itself in it, and the finished ones lead nowhere else."""
    assert {status: set(status.leads_to) for status in CallStatus} == {
        NEW: {NEW, RUNNING, SUSPENDED, SUCCEEDED, FAILED, CANCELLED},
        RUNNING: {RUNNING, SUSPENDED, SUCCEEDED, FAILED, CANCELLED},
        SUSPENDED: {SUSPENDED, RESUMING, CANCELLED},
        RESUMING: {RESUMING, RUNNING, SUSPENDED, SUCCEEDED, FAILED, CANCELLED},
        SUCCEEDED: {SUCCEEDED},
        FAILED: {FAILED},
        CANCELLED: {CANCELLED},
    }


def test_a_row_of_the_table_cannot_be_changed() -> None:
    """Nobody widens what may follow a status at run time."""
    assert all(isinstance(status.leads_to, tuple) for status in CallStatus)


def test_statuses_are_plain_words() -> None:
    """A status is its own word, in saved data as in code."""
    assert [str(status) for status in CallStatus] == [
        "new",
        "running",
        "suspended",
        "resuming",
        "succeeded",
        "failed",
        "cancelled",
    ]


def test_terminal_statuses_are_the_three_ends() -> None:
    """A status is terminal when its row has nothing but itself."""
    assert {status for status in CallStatus if status.is_terminal} == {SUCCEEDED, FAILED, CANCELLED}


@over("current, target", [(current, target) for current in CallStatus for target in MOVES])
def test_a_public_move_passes_exactly_when_the_table_has_it(
    current: CallStatus, target: CallStatus
) -> None:
    """The table of statuses is what a program can do with a call, and nothing else is."""
    with call_in(current) as (plan, call):
        assert call.status is current
        if target in current.leads_to and target is not current:
            MOVES[target](plan, call)
            assert call.status is target
        else:
            with pytest.raises(LifecycleError):
                MOVES[target](plan, call)
            assert call.status is current


@over("target", [RUNNING, SUSPENDED, SUCCEEDED, FAILED])
def test_a_call_that_waits_is_told_what_goes_on_from_there(target: CallStatus) -> None:
    """The refusal names the call, both statuses, all that is reachable, and the way to it."""
    with call_in(SUSPENDED) as (plan, call), pytest.raises(LifecycleError) as caught:
        MOVES[target](plan, call)
    assert str(caught.value) == (
        f"Call 'c1' of tool 'add' is suspended and cannot become {target}. Reachable from here: "
        "resuming, cancelled. Take the decision in with `plan.resume(decision)`."
    )


@over("current", [SUCCEEDED, FAILED, CANCELLED])
def test_a_finished_call_is_told_to_start_again(current: CallStatus) -> None:
    """What a finished call needs to run again is another try, if it may have one."""
    with call_in(current) as (plan, call), pytest.raises(LifecycleError) as caught:
        MOVES[RUNNING](plan, call)
    assert str(caught.value).endswith(
        "That status is final: nothing is reachable from it."
        if current is CANCELLED
        else "That status is final: nothing is reachable from it. `call.retry()` lets it be tried "
        "again."
    )
