"""The laws of claims: one worker at a time, and nothing is run that is not on record."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import SuspendTicket, ToolResult, execution
from lutum_py.errors import (
    CommitError,
    InvalidValueError,
    LifecycleError,
    MisuseError,
    StaleError,
)
from lutum_py.store import Claim, Store, open_store
from tests.cases import over
from tests.store.beside import Clock, others
from tests.store.desk import (
    ASK,
    KEY,
    LOOK,
    PAY,
    Desk,
    approve,
    claimed,
    plan_of,
    read_again,
    started,
    states,
)


def paying(store: Store, **options: Any) -> Claim:
    """The claim of a payment that was approved."""
    store.save("one", plan_of(PAY), note="")
    approve(store)
    return claimed(store, **options)


def test_a_call_is_claimed_by_one(store: Store, clock: Clock) -> None:
    """What is claimed is nobody else's before its lease ran out; then it is the next one's."""
    store.save("one", plan_of(LOOK), note="")
    first = claimed(store, lease=10)
    clock.move(9.999)
    assert store.claim(Desk) is None
    clock.move(0.001)
    second = claimed(store)
    assert (first.token, second.token, second.in_doubt) == (1, 2, False)
    assert (first.key, first.idempotent) == (second.key, True)
    started(store, second)


def test_a_claimed_call_is_to_be_looked_at(store: Store) -> None:
    """The call of a claim has its arguments and its answer, refuses to run, and begins once."""
    claim = paying(store)
    pay = Desk.pay.match(claim.call)
    assert pay is not None
    assert (claim.id, pay.input.cents, claim.in_doubt) == ("one", 500, False)
    assert claim.key == claim.call.idempotency_key
    with pytest.raises(LifecycleError):
        claim.call.call_sync()
    log: list[Any] = []
    call = started(store, claim)
    with pytest.raises(MisuseError):
        store.start(claim)
    store.finish(claim, call.call_sync(log=log))
    assert (log, states(store)) == ([("Acme", 500)], {"c1": "success"})


def test_the_longest_free_is_claimed_first(store: Store, clock: Clock) -> None:
    """Calls are claimed in the order in which they became free, those given back at the end."""
    store.save("b", plan_of(LOOK, ("c4", "look", {"place": "Rome"})), note="")
    clock.move(1)
    store.save("a", plan_of(LOOK), note="")
    clock.move(1)
    first = claimed(store)
    store.release(first)
    found = [claimed(store) for _ in range(3)]
    assert [(each.id, each.call.id) for each in found] == [("b", "c4"), ("a", "c2"), ("b", "c2")]
    assert store.claim(Desk) is None


def test_a_conversation_can_be_asked_for(store: Store) -> None:
    """With an id, calls of other conversations are left alone."""
    store.save("a", plan_of(LOOK), note="")
    store.save("b", plan_of(LOOK), note="")
    assert claimed(store, id="b").id == "b"
    assert store.claim(Desk, id="b") is None
    assert claimed(store).id == "a"


def test_what_waits_or_has_ended_is_not_claimed(store: Store, clock: Clock) -> None:
    """Neither a suspended call is claimed, nor one with its result, however long it is."""
    store.save("one", plan_of(PAY, LOOK), note="")
    claim = claimed(store)
    store.finish(claim, started(store, claim).call_sync())
    clock.move(10**6)
    assert store.claim(Desk) is None


def test_what_was_begun_is_in_doubt_when_its_lease_ran_out(store: Store, clock: Clock) -> None:
    """A call that was started and not finished is claimed as in doubt, and not run again."""
    lost = paying(store, lease=10)
    clock.move(9)
    started(store, lost)  # the lease begins anew
    clock.move(9)
    assert store.claim(Desk) is None
    clock.move(1)
    found = claimed(store)
    assert (found.in_doubt, found.idempotent, found.key) == (True, False, lost.key)
    assert found.token > lost.token
    with pytest.raises(MisuseError):
        store.start(found)
    with pytest.raises(LifecycleError):
        found.call.call_sync()
    store.finish(found, found.call.indeterminate("a worker was lost"))
    assert states(store) == {"c1": "indeterminate"}
    with pytest.raises(StaleError):
        store.finish(lost, lost.call.complete("paid"))


def test_a_doubt_that_was_cleared_up_is_a_result(store: Store, clock: Clock) -> None:
    """Whoever finds out what a lost worker did finishes with that, and need not begin."""
    started(store, paying(store, lease=10))
    clock.move(10)
    found = claimed(store)
    store.finish(found, found.call.complete("paid Acme 500"))
    assert states(store) == {"c1": "success"}


def test_an_idempotent_call_is_run_again(store: Store, clock: Clock) -> None:
    """What is in doubt and idempotent begins anew, under the same key and a larger token."""
    store.save("one", plan_of(LOOK), note="")
    lost = claimed(store, lease=10)
    started(store, lost)
    clock.move(10)
    found = claimed(store)
    assert (found.in_doubt, found.key) == (True, lost.key)
    store.finish(found, started(store, found).call_sync())
    assert states(store) == {"c2": "success"}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_call_that_was_saved_in_doubt_is_run_again(store: Store, is_loaded: bool) -> None:
    """That it was left is on record once: each load reads the history of the call, to its end."""
    plan = plan_of(LOOK)
    plan.pending[0].start()
    if is_loaded:
        plan = Desk.load_plan(plan.dump_json())
    store.save("one", plan)
    claim = claimed(store)
    call = started(store, claim)
    assert states(store) == {"c2": "in doubt"}
    store.finish(claim, call.call_sync())
    assert states(store) == {"c2": "success"}


@pytest.mark.parametrize("kills", [1, 2])
def test_a_plan_is_saved_while_a_call_is_run_again(store: Store, clock: Clock, kills: int) -> None:
    """Who loads, changes and saves it meanwhile leaves the row as it is, which fits ever after."""
    store.save("one", plan_of(LOOK, PAY))
    for _ in range(kills):
        started(store, claimed(store, lease=10))
        clock.move(10)
    for is_again in (False, True):
        claim = claimed(store, lease=10)
        call = started(store, claim)
        stored = store.load("one", Desk)
        assert stored.plan is not None
        store.save("one", stored.plan, note=f"{is_again}", version=stored.version)
        clock.move(0 if is_again else 10)
    store.finish(claim, call.call_sync())
    assert states(store) == {"c2": "success", "c1": "suspended"}


def test_a_doubt_is_given_back(store: Store, clock: Clock) -> None:
    """A claim of a call in doubt that is released leaves the doubt to the next."""
    started(store, paying(store, lease=10))
    clock.move(10)
    store.release(claimed(store))
    assert states(store) == {"c1": "in doubt"}
    assert claimed(store).in_doubt


def test_what_was_begun_is_not_given_back(store: Store) -> None:
    """A claim that has started cannot be released."""
    claim = paying(store)
    started(store, claim)
    with pytest.raises(MisuseError):
        store.release(claim)
    assert states(store) == {"c1": "in doubt"}


def test_a_lease_is_renewed(store: Store, clock: Clock) -> None:
    """A lease that is renewed begins anew, also when it had run out and nobody came."""
    claim = paying(store, lease=10)
    for seconds in (9, 9, 11):
        clock.move(seconds)
        store.renew(claim)
        assert store.claim(Desk) is None
    started(store, claim)
    clock.move(9)
    store.renew(claim)
    clock.move(9)
    assert store.claim(Desk) is None


def test_a_result_counts_after_the_lease_where_nobody_came(store: Store, clock: Clock) -> None:
    """A worker that took too long still finishes, unless somebody claimed its call."""
    claim = paying(store, lease=10)
    call = started(store, claim)
    clock.move(100)
    store.finish(claim, call.call_sync())
    assert states(store) == {"c1": "success"}


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "start": lambda store, claim: store.start(claim),
    "renew": lambda store, claim: store.renew(claim),
    "release": lambda store, claim: store.release(claim),
    "finish": lambda store, claim: store.finish(claim, read_again(claim).fail("no")),
    "wait": lambda store, claim: store.finish(claim, read_again(claim).suspend(SuspendTicket())),
}
ENDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "claimed": lambda store, claim, clock: clock.move(100) or claimed(store, id=claim.id),
    "started": lambda store, claim, clock: (
        clock.move(100) or store.start(claimed(store, id=claim.id))
    ),
    "released": lambda store, claim, clock: store.release(claim),
    "finished": lambda store, claim, clock: store.finish(claim, read_again(claim).fail("no")),
    "waits": lambda store, claim, clock: store.finish(
        claim, read_again(claim).suspend(SuspendTicket())
    ),
    "over": lambda store, claim, clock: store.save(
        claim.id, None, note="", version=store.load(claim.id).version
    ),
    "anew": lambda store, claim, clock: store.save(
        claim.id, plan_of(LOOK), note="", version=store.load(claim.id).version
    ),
    "decided": lambda store, claim, clock: [
        store.finish(claim, read_again(claim).suspend(SuspendTicket())),
        [store.decide(claim.id, each.approve(), Desk) for each in store.waiting(claim.id)],
    ],
}


@over("end", ENDS)
@pytest.mark.parametrize("move", MOVES)
def test_a_claim_that_is_not_the_last_one_does_nothing(
    store: Store, clock: Clock, move: str, end: str
) -> None:
    """Whatever ends a claim, each later move by it is stale, and changes nothing."""
    store.save(end, plan_of(LOOK), note="")
    claim = claimed(store, id=end, lease=10)
    ENDS[end](store, claim, clock)

    def told() -> Any:
        with others() as rows:
            tables = ("lutum_conversation", "lutum_call")
            return [sorted(rows.all(f"SELECT * FROM {table}")) for table in tables]

    before = told()
    with pytest.raises(StaleError):
        MOVES[move](store, claim)
    assert told() == before


def test_whoever_claimed_since_is_named(where: str) -> None:
    """A worker that woke too late reads who has its call."""
    with open_store(where, key=KEY, owner="me") as store:
        clock = Clock()
        late = paying(store, lease=1)
        clock.move(1)
        with open_store(where, key=KEY, owner="somebody else") as other:
            claimed(other)
            with pytest.raises(StaleError):
                store.start(late)


def test_a_tool_that_asks_waits_again(store: Store) -> None:
    """A call that suspended itself waits for a decision, and goes on with it."""
    store.save("one", plan_of(ASK), note="")
    claim = claimed(store)
    store.finish(claim, execution.execute_sync(started(store, claim)))
    assert states(store) == {"c3": "suspended"}
    (waiting,) = store.waiting()
    assert waiting.ticket.id == "t9"
    store.decide("one", waiting.approve(result="because"), Desk)
    again = claimed(store)
    assert (again.in_doubt, again.key, again.token > claim.token) == (False, claim.key, True)
    store.finish(again, execution.execute_sync(started(store, again)))
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert [each.model_text for each in plan.resolve().results] == ["why: because"]


def test_a_call_that_asked_and_went_on_is_in_doubt_when_it_is_lost(
    store: Store, clock: Clock
) -> None:
    """A call that was started again after its question was answered is in doubt like any other."""
    store.save("one", plan_of(ASK), note="")
    claim = claimed(store, lease=10)
    store.finish(claim, execution.execute_sync(started(store, claim)))
    approve(store)
    started(store, claimed(store, lease=10))
    clock.move(10)
    found = claimed(store)
    assert found.in_doubt
    store.finish(found, found.call.indeterminate("lost"))
    assert states(store) == {"c3": "indeterminate"}


def test_a_result_of_something_else_is_refused(store: Store) -> None:
    """What answers another call, or another tool or other arguments, is no outcome of a claim."""
    store.save("one", plan_of(LOOK), note="")
    claim = claimed(store)
    right: dict[str, Any] = {"id": "c2", "name": "look", "arguments": claim.call.metadata.arguments}
    for wrong in ({"id": "c1"}, {"name": "pay"}, {"arguments": "{}"}):
        with pytest.raises(CommitError):
            store.finish(claim, ToolResult(**{**right, **wrong}, result="1"))
    other = plan_of(("c9", "look", {"place": "Rome"}))
    with pytest.raises(LifecycleError):
        store.finish(claim, other.pending[0].suspend(SuspendTicket()))
    other.discard()
    with pytest.raises(MisuseError):
        store.finish(claim, "seen")  # type: ignore[arg-type]
    assert states(store) == {"c2": "pending"}
    store.finish(claim, ToolResult(**right, result="1"))
    assert states(store) == {"c2": "success"}


def test_a_wait_of_something_else_is_refused(store: Store) -> None:
    """A call that waits is no outcome of the claim of another one, and takes nothing from it."""
    store.save("one", plan_of(LOOK, ASK), note="")
    look, ask = claimed(store), claimed(store)
    waiting = execution.execute_sync(started(store, ask))
    with pytest.raises(LifecycleError):
        store.finish(look, waiting)
    assert states(store) == {"c2": "pending", "c3": "in doubt"}
    store.finish(ask, waiting)
    store.finish(look, execution.execute_sync(started(store, look)))
    assert states(store) == {"c2": "success", "c3": "suspended"}


@pytest.mark.parametrize("step", ["start", "renew", "release", "finish"])
def test_what_is_no_claim_is_refused(store: Store, step: str) -> None:
    """Each step of a claim says what it takes, and where that comes from."""
    given = (None, None) if step == "finish" else (None,)
    with pytest.raises(MisuseError, match=f"store.{step} takes a claim"):
        getattr(store, step)(*given)


def test_a_call_that_was_answered_does_not_begin(store: Store) -> None:
    """Once a claimed call has its answer, it is that which is put on record."""
    store.save("one", plan_of(LOOK), note="")
    claim = claimed(store)
    answer = claim.call.reject("not today")
    with pytest.raises(LifecycleError):
        store.start(claim)
    store.finish(claim, answer)
    assert states(store) == {"c2": "rejected"}


def test_a_claim_that_is_over_does_not_begin(store: Store, clock: Clock) -> None:
    """A claim after `finish`, or after a later claim, is stale, whatever else it could not do."""
    store.save("one", plan_of(LOOK), note="")
    claim = claimed(store)
    store.finish(claim, execution.execute_sync(started(store, claim)))
    for step in (store.start, store.renew, store.release):
        with pytest.raises(StaleError):
            step(claim)
    store.save("two", plan_of(PAY), note="")
    approve(store, "two")
    first = claimed(store)
    started(store, first)
    clock.move(first.lease)
    second = claimed(store)
    clock.move(second.lease)
    third = claimed(store)
    with pytest.raises(StaleError):
        store.start(second)
    store.finish(third, third.call.indeterminate("lost"))


def test_a_call_that_begins_on_record_may_end_in_doubt(store: Store, clock: Clock) -> None:
    """Who runs a call by other means, after `begin`, may say that nobody knows what it did."""
    store.save("one", plan_of(LOOK, PAY), note="")
    approve(store)
    look, pay = claimed(store, lease=10), claimed(store)
    with pytest.raises(LifecycleError, match="was not started"):
        pay.call.indeterminate("no answer")
    store.finish(pay, started(store, pay).indeterminate("no answer"))
    started(store, look)
    clock.move(10)
    again = claimed(store)
    store.finish(again, started(store, again).indeterminate("no answer"))
    assert states(store) == {"c1": "indeterminate", "c2": "indeterminate"}


@over("lease", [0, -1, float("nan"), float("inf"), "60", None])
def test_a_lease_is_a_number_of_seconds(store: Store, lease: Any) -> None:
    """A lease that ends at once, never, or is no number is refused."""
    with pytest.raises(InvalidValueError):
        store.claim(Desk, lease=lease)


def test_a_worker_whose_clock_is_behind_does_not_turn_a_line_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done on another machine counts as done at the last step's time at the earliest."""
    store.save("one", plan_of(LOOK))
    claim = claimed(store)
    for module in list(sys.modules.values()):
        if module.__name__.startswith("lutum_py") and vars(module).get("time") is time.time:
            monkeypatch.setattr(module, "time", lambda: 1_000_000.0)
    result = started(store, claim).call_sync()
    store.finish(claim, result)
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert [step.kind for step in plan.steps] == ["proposed", "started", "ended", "recorded"]
    assert len({step.at for step in plan.steps}) == 1
    plan.discard()
