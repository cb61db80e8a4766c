"""The laws of a call's life."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import CallStatus, ToolCall
from lutum_py.errors import LifecycleError, MisuseError
from tests.call.calls import Sum, added
from tests.round.one_story import PAY, Desk
from tests.round_tools import close, opened

STATUSES = st.sampled_from(CallStatus)
ILLEGAL = [
    (current, target)
    for current in CallStatus
    for target in CallStatus
    if target not in current.leads_to
]
NEW, RUNNING, SUSPENDED, RESUMING, SUCCEEDED, FAILED, CANCELLED = CallStatus


def call_in(status: CallStatus) -> ToolCall[Any, Sum]:
    call = added()
    if status is RESUMING:
        call.move_to(SUSPENDED)
    call.move_to(status)
    return call


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


@given(STATUSES, STATUSES)
def test_a_move_is_legal_exactly_when_the_table_or_identity_says_so(
    current: CallStatus, target: CallStatus
) -> None:
    """A move passes when it is in the table or goes nowhere, and is refused otherwise."""
    legal = target in current.leads_to
    call = call_in(current)
    try:
        call.move_to(target)
    except LifecycleError:
        assert not legal
        assert call.status is current
    else:
        assert legal
        assert call.status is target


@given(st.sampled_from(ILLEGAL))
def test_a_refusal_names_call_tool_statuses_and_ways_out(
    move: tuple[CallStatus, CallStatus],
) -> None:
    """The text of a refusal holds the place, both statuses and everything reachable."""
    current, target = move
    with pytest.raises(LifecycleError) as caught:
        call_in(current).move_to(target)
    text = str(caught.value)
    assert text.startswith(f"Call 'c1' of tool 'add' is {current} and cannot become {target}. ")
    listed = text.partition("Reachable from here: ")[2].partition(".")[0]
    assert {word for word in listed.split(", ") if word} == set(current.leads_to) - {current}


@pytest.mark.parametrize("current", [SUCCEEDED, FAILED, CANCELLED])
def test_a_finished_call_is_told_to_start_again(current: CallStatus) -> None:
    """A finished call is replaced and never revived."""
    with pytest.raises(LifecycleError) as caught:
        call_in(current).move_to(RUNNING)
    assert str(caught.value).endswith(
        "That status is final: nothing is reachable from it. `call.again()` makes a new call of "
        "the same metadata and input, in status 'new'."
    )


def test_a_detour_is_named_where_there_is_one() -> None:
    """A refusal says how a call that waits goes on, or names the status that lies between."""
    with pytest.raises(LifecycleError, match=r"Take the decision in with `plan\.resume\("):
        call_in(SUSPENDED).move_to(RUNNING)
    with pytest.raises(LifecycleError, match=r"Move it to suspended first\.$"):
        call_in(RUNNING).move_to(RESUMING)


def test_nothing_leads_back_to_new() -> None:
    """Where no status lies between, the remedy is another call."""
    with pytest.raises(LifecycleError, match=r"in status 'new'\.$"):
        call_in(RUNNING).move_to(NEW)


def test_a_status_is_one_also_as_a_text() -> None:
    """A text goes around no check; what is no status is refused as that."""
    plan = opened(PAY, toolset=Desk).plan()
    (waits,) = plan.suspended
    with pytest.raises(LifecycleError, match="waits for a decision"):
        waits.call.move_to(cast(CallStatus, "resuming"))
    wrong: Any
    for wrong in (5, "gone", [], None):
        with pytest.raises(MisuseError, match="takes a CallStatus"):
            waits.call.move_to(wrong)
    assert waits.call.status is SUSPENDED
    close(plan)
