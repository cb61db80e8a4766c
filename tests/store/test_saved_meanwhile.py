"""The law of plans that are saved while somebody works on them: each call is in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lutum_py import AnyToolCall, SuspendTicket, ToolRoundPlan
from lutum_py.errors import LifecycleError, LutumError, RoundClosedError, StoreError
from lutum_py.store import Store
from tests.store.beside import between, driver_error
from tests.store.desk import LOOK, Desk, claimed, plan_of, states

DOES: dict[str, tuple[Callable[[AnyToolCall], object], str]] = {
    "starts": (lambda call: call.start(), "in doubt"),
    "runs": (lambda call: call.call_sync(), "success"),
    "fails": (lambda call: call.fail("It is closed."), "error"),
    "refuses": (lambda call: call.reject("It is closed."), "rejected"),
    "waits": (lambda call: (call.start(), call.suspend(SuspendTicket())), "suspended"),
}


class At:
    """Does something to the call of a plan, once, before or after a statement."""

    def __init__(self, number: int, does: Callable[[], object]) -> None:
        self._left = number
        self._does = does
        self.was_done = False

    def __call__(self, connection: Any, sql: str, is_done: bool) -> None:
        self._left -= 1
        if self._left == 0:
            with suppress(LutumError):
                self._does()
                self.was_done = True


@pytest.mark.parametrize("does", DOES)
def test_what_happens_to_a_call_while_it_is_saved_is_refused_or_on_record(
    store: Store, does: str
) -> None:
    """Between any two statements of a save: no call runs here that others may start as well."""
    found: Counter[bool] = Counter()
    act, state = DOES[does]
    for number in range(1, 100):
        plan: ToolRoundPlan[Any] = plan_of(LOOK)
        (call,) = plan.pending
        at = At(number, lambda call=call: act(call))  # type: ignore[misc]
        id = f"saved at {number}"
        with between(at):
            version = store.save(id, plan)
        assert version == 1
        assert plan.closed_by == "handed over"
        found[at.was_done] += 1
        assert states(store, id) == {"c2": state if at.was_done else "pending"}
        if at._left > 0:
            break
        if at.was_done:
            continue
        with pytest.raises(LifecycleError):
            call.start()
        assert store.start(claimed(store, id=id)).call_sync().is_success
    assert found[True] > 10
    assert found[False] > 1


def test_a_plan_whose_save_failed_as_it_ended_is_saved_again_and_not_run(store: Store) -> None:
    """Nobody may know whether it is on record, so that it starts nowhere else."""

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if sql == "COMMIT" and not is_done:
            raise driver_error("no space is left")

    plan = plan_of(LOOK)
    (call,) = plan.pending
    with between(fails), pytest.raises(StoreError):
        store.save("one", plan)
    with pytest.raises(LifecycleError, match="handed over, and goes on elsewhere"):
        call.start()
    with pytest.raises(RoundClosedError, match="handed over"):
        plan.discard()
    assert store.save("one", plan) == 1
    with pytest.raises(RoundClosedError, match="already handed over"):
        store.save("two", plan)
    assert states(store) == {"c2": "pending"}


def test_a_plan_whose_save_was_interrupted_as_it_ended_is_saved_again(store: Store) -> None:
    """Ctrl+C loses no plan, and nobody knows either whether it is on record."""

    def interrupts(connection: Any, sql: str, is_done: bool) -> None:
        if sql == "COMMIT" and not is_done:
            raise KeyboardInterrupt

    plan = plan_of(LOOK)
    with between(interrupts), pytest.raises(KeyboardInterrupt):
        store.save("one", plan)
    assert store.save("one", plan) == 1
    assert states(store) == {"c2": "pending"}


def test_a_plan_that_may_be_on_record_is_saved_as_no_other_conversation(store: Store) -> None:
    """The answer to the COMMIT was lost: its calls are not run in two places."""

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if sql == "COMMIT" and is_done:
            raise driver_error("the answer was lost")

    plan = plan_of(LOOK)
    with between(fails), pytest.raises(StoreError):
        store.save("one", plan)
    with pytest.raises(RoundClosedError, match="already handed over"):
        store.save("two", plan)
    assert store.ids() == ["one"]


def test_a_round_that_has_ended_is_not_saved_after_a_failure_either(store: Store) -> None:
    """A database that fails makes no committed round an open one again."""

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if sql.startswith("BEGIN") and not is_done:
            raise driver_error("the server is away")

    plan = plan_of(LOOK)
    plan.discard()
    with between(fails), pytest.raises(StoreError):
        store.save("one", plan)
    with pytest.raises(RoundClosedError, match="already discarded"):
        store.save("one", plan)
    assert store.ids() == []


def test_what_is_done_in_a_loaded_plan_while_it_is_saved_is_on_record(store: Store) -> None:
    """A decision that a plan takes in is not lost because somebody saves it at this moment."""
    store.save("one", plan_of(("c1", "pay", {"cents": 5})))
    version = 1
    taken = 0
    for number in range(1, 100):
        stored = store.load("one", Desk)
        plan: Any = stored.plan
        (waiting,) = plan.suspended
        at = At(number, lambda plan=plan, waiting=waiting: plan.resume(waiting.approve()))  # type: ignore[misc]
        with between(at):
            version = store.save("one", plan, version=stored.version)
        assert states(store) == {"c1": "pending" if at.was_done else "suspended"}
        if at.was_done:
            taken += 1
            store.save("one", None, version=version)
            version = store.save("one", plan_of(("c1", "pay", {"cents": 5})), version=version + 1)
        if at._left > 0:
            break
    assert taken > 10
