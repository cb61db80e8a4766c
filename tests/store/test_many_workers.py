"""The laws of a store that many workers share: who gets what and when, and what is listed."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from lutum_py import Decision, Session, Toolset, tool, tool_fn
from lutum_py.errors import (
    InvalidValueError,
    MisuseError,
    PlanError,
    ResumeError,
    StaleError,
    StoreError,
)
from lutum_py.execution import execute
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.inner_tools import Desk as InnerDesk
from tests.inner_tools import asks, let_pass, opened
from tests.store.beside import Clock, between, others
from tests.store.desk import ASK, KEY, LOOK, PAY, Desk, approve, claimed, plan_of, started
from tests.store.servers import Postgres

ROME = ("c4", "look", {"place": "Rome"})
BONN = ("c5", "look", {"place": "Bonn"})


def ids(claims: list[Any]) -> list[tuple[str, str]]:
    return [(each.id, each.call.id) for each in claims]


# Claims.


def test_several_calls_are_claimed_at_once(store: Store) -> None:
    """As many as were asked for, in the order in which they became free, and each once."""
    store.save("one", plan_of(LOOK, ROME, BONN), note="")
    first = store.claim_many(Desk, 2)
    assert sorted(ids(first)) == [("one", "c2"), ("one", "c4")]
    assert ids(store.claim_many(Desk, 2)) == [("one", "c5")]
    assert store.claim_many(Desk, 2) == []
    for claim in first:
        store.finish(claim, started(store, claim).call_sync())


@over("limit", [0, -1, 1.5, True, "2", 10**10])
def test_a_number_of_claims_is_a_whole_number(limit: Any) -> None:
    """Anything else is refused before something is claimed."""
    with open_store(":memory:") as store:
        store.save("one", plan_of(LOOK))
        with pytest.raises(InvalidValueError, match="limit="):
            store.claim_many(Desk, limit)
        assert store.claim(Desk) is not None


def test_calls_that_could_be_claimed_are_given_back_beside_one_that_could_not(
    store: Store,
) -> None:
    """The error comes out once; then the others are there for everybody."""
    store.save("one", plan_of(LOOK), note="")
    store.save("two", plan_of(ROME), note="")
    with others() as rows:
        rows.run("UPDATE lutum_call SET body = '{}' WHERE conversation = 'one'")
    with pytest.raises(StoreError, match="edited"):
        store.claim_many(Desk, 16)
    assert ids(store.claim_many(Desk, 16)) == [("two", "c4")]


def test_a_large_round_keeps_no_other_waiting(store: Store, clock: Clock) -> None:
    """A call that is saved later comes after the few calls of a round that stand before it."""
    many = [(f"c{n}", "look", {"place": str(n)}) for n in range(40)]
    store.save("large", plan_of(*many), note="")
    clock.move(2)
    store.save("small", plan_of(LOOK), note="")
    order = [claimed(store).id for _ in range(6)]
    assert order.index("small") in (2, 3)


def test_a_lease_that_ends_before_the_start_writes_nothing(store: Store, clock: Clock) -> None:
    """The call is claimed by the next who asks, and whoever had it starts nothing."""
    store.save("one", plan_of(PAY), note="")
    approve(store)
    version = store.load("one").version
    lost = claimed(store, lease=1)
    clock.move(2)
    found = claimed(store)
    assert (found.call.id, found.in_doubt, store.load("one").version) == ("c1", False, version)
    with pytest.raises(StaleError):
        store.start(lost)
    store.finish(found, started(store, found).call_sync())
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert [row.result and row.result.status for row in plan.calls] == ["success"]


def test_an_outcome_counts_though_somebody_has_claimed_the_call(store: Store, clock: Clock) -> None:
    """Whoever claimed a call that was started has written nothing yet, and finds it finished."""
    store.save("one", plan_of(PAY), note="")
    approve(store)
    slow = claimed(store, lease=1)
    call = started(store, slow)
    clock.move(2)
    other = claimed(store)
    store.finish(slow, call.call_sync())
    with pytest.raises(StaleError):
        store.finish(other, other.call.indeterminate("lost"))
    plan = store.load("one", Desk).plan
    assert plan is not None
    (row,) = plan.calls
    kinds = [step.kind for step in row.steps]
    assert (row.result and row.result.status, "late" in kinds) == ("success", False)


# Waiting for work.


def test_waiting_ends_when_something_is_saved(where: str) -> None:
    """A notice wakes whoever waits, long before the time is over."""
    with open_store(where, key=KEY) as store, open_store(where, key=KEY) as other:
        woken: list[float] = []

        def wait() -> None:
            begun = time.monotonic()
            while not (claims := store.claim_many(Desk, 1)):
                store.wait(20)
            assert ids(claims) == [("one", "c2")]
            woken.append(time.monotonic() - begun)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        other.save("one", plan_of(LOOK))
        thread.join(10)
        assert woken
        assert woken[0] < 5


def test_waiting_ends_with_the_next_lease(store: Store) -> None:
    """A call whose worker is gone is looked for when its lease ends."""
    store.save("one", plan_of(LOOK), note="")
    claimed(store, lease=0.2)
    store.wait(30)
    time.sleep(0.1)
    assert claimed(store).call.id == "c2"


def test_a_time_to_wait_is_a_number(store: Store) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidValueError):
        store.wait(-1)


# Lists.


def test_lists_have_pages(store: Store) -> None:
    """Each page goes on behind the last one, and all of them are the list."""
    for name in "cab":
        store.save(name, plan_of(PAY, LOOK), note="")
    assert store.ids(limit=2) == ["a", "b"]
    assert store.ids(after="b", limit=2) == ["c"]
    waiting = store.waiting()
    first = store.waiting(limit=2)
    rest = store.waiting(after=(first[-1].id, first[-1].call_id))
    assert [each.id for each in first] == ["a", "b"]
    assert [*first, *rest] == waiting
    for name in "ab":
        store.decide(name, store.waiting(name)[0].cancel("no"), Desk)
    while (claim := store.claim(Desk)) is not None:
        store.finish(claim, started(store, claim).call_sync())
    assert store.settled() == ["a", "b"]
    assert store.settled(after="a", limit=1) == ["b"]


def test_what_waits_is_found_by_tool_and_age(store: Store, clock: Clock) -> None:
    """A question has the time at which it was asked, and the tool of its call."""
    store.save("old", plan_of(PAY), note="")
    clock.move(100)
    store.save("new", plan_of(PAY), note="")
    assert [each.id for each in store.waiting(older_than=50)] == ["old"]
    assert [each.id for each in store.waiting("new", older_than=50)] == []
    assert [each.id for each in store.waiting(tool="pay")] == ["new", "old"]
    assert store.waiting(tool="look") == []
    new, old = store.waiting()
    assert new.since - old.since == 100


def test_conversations_that_were_left_alone_are_listed(store: Store, clock: Clock) -> None:
    """By when they were saved last, however old they are."""
    store.save("old", None, note="")
    version = store.save("kept", None, note="")
    clock.move(100)
    store.save("kept", None, note="again", version=version)
    assert store.unchanged_since(50) == ["old"]
    assert store.unchanged_since(0, limit=1) == ["kept"]


# Deleting.


def test_a_conversation_that_was_deleted_begins_anew(store: Store) -> None:
    """Its keys are others, and a decision about its old round is not one about the new one."""
    store.save("one", plan_of(PAY), session=Session(), note="mine")
    (old,) = store.waiting()
    store.decide("one", old.approve(), Desk)
    key = claimed(store).key
    store.release(claimed_again(store))
    store.delete("one")
    assert (store.ids(), store.waiting()) == ([], [])
    with pytest.raises(StoreError, match="no conversation"):
        store.load("one")
    store.save("one", plan_of(PAY))
    assert store.load("one").note == ""
    with pytest.raises(Exception, match="another round"):
        store.decide("one", replace(old.approve(), ticket=None), Desk)
    approve(store)
    assert claimed(store).key != key


def claimed_again(store: Store) -> Any:
    """The claim of a call whose lease is over at once."""
    with others() as rows:
        rows.run("UPDATE lutum_call SET due = 1")
    return claimed(store)


@over("how", ["claimed", "running", "in doubt", "held"])
def test_a_conversation_that_somebody_is_at_is_not_deleted(how: str) -> None:
    """Nothing changes, and the error names what is open."""
    with open_store(":memory:") as store:
        store.save("one", plan_of(LOOK))
        if how == "held":
            with store.hold("one", Desk), pytest.raises(StaleError, match="held by"):
                store.delete("one")
        else:
            claim = claimed(store, lease=0.01 if how == "in doubt" else 60)
            if how != "claimed":
                started(store, claim)
            time.sleep(0.02)
            with pytest.raises(MisuseError, match="'c2' of tool `look` is claimed, runs"):
                store.delete("one")
        assert store.ids() == ["one"]


# Runs.


@tool_fn
def slow(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "done"


class Slow(Toolset):
    slow = tool(slow)


def test_a_run_of_many_conversations_loses_nothing(where: str) -> None:
    """With leases much shorter than all of it takes, each call is run once and succeeds."""

    async def go(store: Store) -> list[Any]:
        for name in map(str, range(12)):
            calls = [(f"c{n}", "slow", {"seconds": 0.01}) for n in range(4)]
            turn = plan_with(Slow, calls)
            await asyncio.to_thread(store.save, name, turn)
        return await asyncio.gather(*(store.run(str(n), Slow, lease=0.5) for n in range(12)))

    with open_store(where, key=KEY) as store:
        done = asyncio.run(go(store))
        statuses = {row.result and row.result.status for each in done for row in each.plan.calls}
        assert statuses == {"success"}
        with others() as rows:
            query = "SELECT COUNT(*) FROM lutum_entry WHERE body LIKE ?"
            assert rows.all(query, "%started%") == [(48,)]
            assert rows.all("SELECT * FROM lutum_worker") == []


def plan_with(toolset: Any, calls: list[Any]) -> Any:
    return toolset.read_turn(ScriptedModel.tool_calls(*calls)).round.plan()


# What is refused, and what comes too late.


def test_a_decision_about_a_call_that_is_not_there_names_those_that_wait(store: Store) -> None:
    """It changes nothing."""
    store.save("one", plan_of(PAY, LOOK), note="")
    with pytest.raises(ResumeError, match=r"'c9'.*Suspended: \['c1'\]"):
        store.decide("one", Decision(call_id="c9", action="cancel"), Desk)
    assert store.load("one").version == 1


def test_an_edited_row_holds_up_no_decision_about_another_call(store: Store) -> None:
    """In a round whose order is kept, it counts as a call that accesses everything."""
    store.save("one", plan_of(PAY, LOOK, ROME), in_order=True)
    with others() as rows:
        rows.run("UPDATE lutum_call SET shown = 'x' WHERE call = 'c2'")
    (waiting,) = store.waiting()
    assert store.decide("one", waiting.cancel("no"), Desk) is not None
    assert store.waiting() == []


def test_two_outcomes_that_come_too_late_at_once_are_both_kept(postgres: Postgres) -> None:
    """Each is an entry of its own, behind the other."""
    with open_store(postgres.fresh(), key=KEY) as store:
        clock = Clock()
        store.save("one", plan_of(LOOK))
        late = []
        for _ in range(2):
            claim = claimed(store, lease=1)
            late.append((claim, started(store, claim)))
            clock.move(2)
        last = claimed(store)
        store.finish(last, started(store, last).call_sync())

        def finish(number: int) -> None:
            claim, call = late[number]
            with pytest.raises(StaleError):
                store.finish(claim, call.call_sync())

        def hook(_connection: Any, sql: str, is_done: bool) -> None:
            if "body = %s, seal" in sql and not is_done and not came:
                came.append(True)
                finish(1)

        came: list[bool] = []
        with between(hook):
            finish(0)
        plan = store.load("one", Desk).plan
        assert plan is not None
        kinds = [step.kind for row in plan.calls for step in row.steps]
        assert kinds.count("late") == 2


def test_a_run_without_a_lease_begins_nothing() -> None:
    """The database failed before anything was claimed."""
    with open_store(":memory:") as store:
        store.save("one", plan_of(LOOK))

        def away(*_: object) -> Any:
            raise StoreError("away")

        with (
            patch.object(store._claims.database, "beat", away),
            pytest.raises(StoreError, match="away"),
        ):
            asyncio.run(store.run("one", Desk))
        assert claimed(store).call.id == "c2"


def test_a_round_that_ends_between_a_claim_and_its_entries_is_left(where: str) -> None:
    """Whoever claimed a call within another finds that there is none any more."""
    with open_store(where, key=KEY) as store, open_store(where, key=KEY) as other:
        store.save("one", opened(asks([("note", {"text": "a"})])))
        claim = store.claim(InnerDesk)
        assert claim is not None
        outcome = asyncio.run(execute(store.start(claim)))
        store.finish(claim, outcome, hooks=let_pass)
        came: list[bool] = []

        def hook(_connection: Any, sql: str, is_done: bool) -> None:
            is_look = sql.startswith("SELECT conversation") and "AND call =" in sql
            if is_look and not is_done and not came:
                came.append(True)
                other.save("one", None, version=other.load("one").version)

        with between(hook):
            assert store.claim(InnerDesk) is None
        assert came


def test_a_cancelled_run_waits_for_no_thread() -> None:
    """If the threads of the loop are all busy, a step that is still to begin is given up."""
    busy, running = threading.Event(), list[asyncio.Event]()

    @tool_fn
    async def occupy(place: str) -> str:
        """Keep the only thread of the loop."""
        asyncio.get_running_loop().run_in_executor(None, busy.wait)
        running[0].set()
        await asyncio.sleep(30)
        return place

    class Busy(Toolset):
        occupy_ = tool(occupy)

    async def go(store: Store) -> float:
        running.append(asyncio.Event())
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        task = asyncio.create_task(store.run("one", Busy))
        await running[0].wait()
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        busy.set()
        return time.monotonic() - begun

    with open_store(":memory:") as store:
        store.save("one", plan_with(Busy, [("c1", "occupy", {"place": "a"})]))
        assert asyncio.run(go(store)) < 5


# What is kept.


def test_a_note_is_any_text(store: Store) -> None:
    """No database takes half of a surrogate pair, and PostgreSQL no NUL."""
    note = "caf\u00e9 \ud83d \0 \U0001f355"
    store.save("one", None, note=note)
    assert store.load("one").note == note


def test_a_plan_with_an_outcome_that_it_was_not_told_is_refused(store: Store) -> None:
    """It stays open, and can be told."""
    plan = plan_of(ASK, LOOK)
    result = plan.pending[1].call_sync()
    with pytest.raises(PlanError, match="was not told"):
        store.save("one", plan)
    plan.record(result)
    assert store.save("one", plan) == 1
