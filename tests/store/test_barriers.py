"""The laws of what two do at once: each rule over two steps is held in an order that is forced.

One thread is stopped at a statement until the other has come to its end, or waits for it.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lutum_py import NeedsTools, ToolContext, ToolRoundPlan, Toolset, execution, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import MisuseError, ResumeError, StaleError, StoreError
from lutum_py.store import Claim, Store, open_store
from lutum_py.testing import ScriptedModel
from tests.private import Wanted, store_database
from tests.store.beside import PIPELINE, Clock, between, others
from tests.store.desk import KEY, LOOK, PAY, Desk, approve, claimed, look, plan_of, states
from tests.store.servers import Postgres, Proxy

PATIENCE = 0.4
"""How long a thread that waits for the other one is watched, in seconds."""


class Stop:
    """Stop one thread at a statement.

    Args:
        sql: A part of the statement.
        is_done: Whether it is stopped after it.
    """

    def __init__(self, sql: str, *, is_done: bool = False) -> None:
        self.sql, self.is_done = sql, is_done
        self.thread: int | None = None
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self, _: Any, sql: str, is_done: bool) -> None:
        is_here = self.thread == threading.get_ident() and self.sql in sql.replace("COMMITTED", "")
        if is_here and is_done == self.is_done and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(20)


class Writes(Stop):
    """Stop one thread before its first transaction that writes."""

    def __init__(self) -> None:
        super().__init__("BEGIN")

    def __call__(self, connection: Any, sql: str, is_done: bool) -> None:
        if "IMMEDIATE" in sql or "READ WRITE" in sql:
            super().__call__(connection, sql, is_done)


def at_once(
    first: Callable[[], object],
    second: Callable[[], object],
    stop: Stop,
    back: Stop | None = None,
) -> list[Any]:
    """Run two functions: the first stops until the second has ended or waits for it.

    Args:
        first: The first one.
        second: The second one.
        stop: Where the first one stops.
        back: Where the second one stops in turn, until the first has ended or waits for it.

    Returns:
        What each of them gave or raised.
    """
    came: list[Any] = [None, None]

    def run(number: int, does: Callable[[], object], at: Stop | None) -> None:
        if at is not None:
            at.thread = threading.get_ident()
        try:
            came[number] = does()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            came[number] = error

    one, two = (
        threading.Thread(target=run, args=each, daemon=True)
        for each in ((0, first, stop), (1, second, back))
    )
    with between(stop), between(back or stop):
        one.start()
        assert stop.reached.wait(20), came
        two.start()
        if back is None:
            two.join(PATIENCE)
            stop.go.set()
        else:
            assert back.reached.wait(20), came
            stop.go.set()
            one.join(PATIENCE)
            back.go.set()
        for thread in (one, two):
            thread.join(20)
            assert not thread.is_alive()
    return came


@pytest.fixture
def other(store: Store, where: str) -> Iterator[Store]:
    """The same store, opened by somebody else."""
    with open_store(where, key=KEY) as opened:
        yield opened


def raised(came: list[Any]) -> list[type[Exception]]:
    return [type(each) for each in came if isinstance(each, Exception)]


def kinds(store: Store, id: str = "one") -> list[str]:
    """Name the steps of the first call."""
    plan = store.load(id, Desk).plan
    assert plan is not None
    return [step.kind for step in plan.calls[0].steps]


# The id of the round.


def test_a_conversation_that_begins_again_gives_other_keys(store: Store) -> None:
    """A payment of a conversation that was deleted does not swallow one of the next."""
    keys = []
    for _ in range(2):
        store.save("one", plan_of(PAY))
        approve(store)
        claim = claimed(store)
        keys.append(claim.key)
        store.finish(claim, store.start(claim).call_sync())
        store.delete("one")
    assert len({*keys}) == 2
    assert len({key.partition("/")[2] for key in keys}) == 1


def test_a_claim_of_a_round_that_is_gone_writes_nothing_to_the_next(
    store: Store, other: Store
) -> None:
    """Whoever claimed a call of a conversation that was given up cannot start that of the new."""
    store.save("one", plan_of(LOOK))
    old = claimed(other)
    store.save("one", plan_of(LOOK), version=1)
    for step in (lambda: other.start(old), lambda: other.finish(old, old.call.fail("no"))):
        with pytest.raises(StaleError):
            step()
    assert states(store) == {"c2": "pending"}
    assert not claimed(store).in_doubt


# The ids of claims and entries.


@pytest.mark.parametrize("is_first", [True, False])
def test_two_slots_of_one_worker_start_a_call_once(where: str, is_first: bool) -> None:
    """Of two claims of a call by the same owner, the later one starts it, and no other."""
    with (
        open_store(where, key=KEY, owner="w") as store,
        open_store(where, key=KEY, owner="w") as other,
    ):
        store.save("one", plan_of(LOOK))
        clock = Clock()
        early = claimed(other, lease=1)
        clock.move(2)
        late = claimed(store, lease=60)
        steps = [lambda: other.start(early), lambda: store.start(late)]
        first, second = steps if is_first else reversed(steps)
        came = at_once(first, second, Stop("UPDATE lutum_call"))
        assert raised(came) == [StaleError]
        assert isinstance(came[0 if is_first else 1], StaleError)
        assert kinds(store).count("started") == 1


def test_a_claim_that_is_used_twice_starts_a_call_once(store: Store) -> None:
    """Two copies of one claim, as in two processes, have the entry of one of them."""
    store.save("one", plan_of(LOOK))
    taken = store._claims.claim(Desk, Wanted("one"), 60, 1)[0]
    with patch("lutum_py.store._claims.uuid4") as made_id:
        made_id.return_value.hex = taken.claim
        with others() as rows:  # the same claim, as it would be read by somebody else
            rows.run("UPDATE lutum_call SET slot = 0, due = NULL, claim = NULL")
        copy = store._claims.claim(Desk, Wanted("one"), 60, 1)[0]
    assert copy.claim == taken.claim
    came = at_once(lambda: store.start(taken), lambda: store.start(copy), Stop("UPDATE lutum_call"))
    assert raised(came) == [StaleError]
    assert kinds(store).count("started") == 1


class Losing:
    """Lose the answer to the COMMIT of the next transaction that writes, once that is asked for.

    Args:
        proxy: What stands before the server; None for SQLite.
    """

    def __init__(self, proxy: Proxy | None) -> None:
        self.proxy = proxy
        self.is_asked = self.writes = False

    def __call__(self, _: Any, sql: str, is_done: bool) -> None:
        if sql.startswith("BEGIN"):
            self.writes = "IMMEDIATE" in sql or "READ WRITE" in sql
        is_end = sql == "COMMIT" and self.writes
        if self.proxy is None and is_end and is_done and self.is_asked:
            self.is_asked = False
            raise sqlite3.OperationalError("the answer was lost")
        # One statement may be a transaction by itself.
        is_end = is_end or "WITH changed" in sql
        if self.proxy is not None and is_end and not is_done and self.is_asked:
            self.is_asked = False
            self.proxy.loses = b""  # whatever is sent next


@contextmanager
def losing(server: Postgres | None, path: Path) -> Iterator[tuple[str, Losing]]:
    """Give the place of a store, and what loses answers there."""
    if server is None:
        loses = Losing(None)
        with between(loses):
            yield str(path / "store.db"), loses
        return
    proxy = Proxy(server.port)
    loses = Losing(proxy)
    try:
        with between(loses):
            yield server.fresh().replace(f":{server.port}/", f":{proxy.port}/"), loses
    finally:
        proxy.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_step_whose_answer_was_lost_counts_once(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Whoever repeats a start, a finish or a decision whose COMMIT took effect finds it done."""
    server = None if kind == "sqlite" else request.getfixturevalue("postgres")
    with losing(server, tmp_path) as (where, loses), open_store(where, key=KEY) as store:
        store.save("one", plan_of(PAY))
        (waiting,) = store.waiting()
        loses.is_asked = True
        decision = waiting.approve()
        with suppress(StoreError):  # it is looked for at once, if the database answers
            store.decide("one", decision, Desk)
        assert store.decide("one", decision, Desk) is None
        claim = claimed(store)
        loses.is_asked = True
        with pytest.raises(StoreError):
            store.start(claim)
        call = store.start(claim)
        log: list[Any] = []
        result = call.call_sync(log=log)
        loses.is_asked = True
        with pytest.raises(StoreError):
            store.finish(claim, result)
        store.finish(claim, result)
        assert log == [("Acme", 500)]
        assert states(store) == {"c1": "success"}
        steps = kinds(store)
        for step in ("decided", "started", "ended"):
            assert steps.count(step) == 1, steps
        assert "late" not in steps
        assert store.settled() == ["one"]


# The number of blockers.


@tool_fn
def asks(context: ToolContext) -> str:
    """Request two looks, once."""
    if context.inner is None:
        context.request_calls([("look", {"place": "Oslo"}), ("look", {"place": "Rome"})])
    return "done"


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("write_file", "path")]))
def edit(path: str) -> str:
    """Edit a file."""
    return "edited"


class Asking(Toolset):
    look = tool(look)
    asks = tool(asks)
    edit = tool(edit)


hooks = Asking.HookSet()


def asking(*calls: Any) -> ToolRoundPlan[Asking]:
    outcome = Asking.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.apply_hooks_sync(hooks)


def taken(store: Store, id: str | None = None) -> Claim:
    claim = store.claim(Asking, id=id)
    assert claim is not None
    return claim


def two_ends(store: Store, other: Store) -> tuple[Callable[[], object], Callable[[], object]]:
    """A call that awaits two others, each of which is about to end at another worker."""
    store.save("one", asking(("c1", "asks", {})))
    claim = taken(store)
    store.finish(claim, execution.execute_sync(store.start(claim)), hooks=hooks)
    ends = []
    for worker in (store, other):
        claim = taken(worker)
        result = worker.start(claim).call_sync()
        ends.append(lambda worker=worker, claim=claim, result=result: worker.finish(claim, result))
    return ends[0], ends[1]


def test_two_ends_at_once_release_what_follows_both(store: Store, other: Store) -> None:
    """The last of the calls that a call awaits releases it, in whichever order they end."""
    came = at_once(*two_ends(store, other), Stop("COMMIT"))
    assert came == [None, None]
    assert taken(store).call.id == "c1"


def test_two_ends_at_once_release_what_follows_in_the_order(store: Store, other: Store) -> None:
    """A call that follows two others in the order of the turn is released by the last of them."""
    calls = [(f"c{at}", "edit", {"path": path}) for at, path in enumerate(("a", "b", "."))]
    store.save("one", asking(*calls), in_order=True)

    def end_of(worker: Store) -> Callable[[], object]:
        claim = taken(worker)
        result = worker.start(claim).call_sync()
        return lambda: worker.finish(claim, result)

    first, second = end_of(store), end_of(other)
    assert store.claim(Asking) is None
    assert at_once(first, second, Stop("COMMIT")) == [None, None]
    assert taken(store).call.id == "c2"


# The number of entries, and the last of them.


@pytest.mark.parametrize("what", ["refusal", "start"])
def test_the_last_entry_leaves_a_trace(store: Store, what: str) -> None:
    """A refusal or a start that was deleted is missed: the call is neither run nor shown."""
    store.save("one", plan_of(PAY, LOOK))
    (waiting,) = store.waiting()
    if what == "refusal":
        store.decide("one", waiting.cancel("no"), Desk)
        call = "c1"
    else:
        store.start(claimed(store))
        call = "c2"
    with others() as rows:
        rows.run(
            "DELETE FROM lutum_entry WHERE call = ? AND n = "
            "(SELECT MAX(n) FROM lutum_entry WHERE call = ?)",
            *(call, call),
        )
        rows.run("UPDATE lutum_call SET state = 'ready', slot = 0 WHERE call = ?", call)
    for step in (lambda: store.claim(Desk), lambda: store.load("one", Desk)):
        with pytest.raises(StoreError, match="its entries are not those that were written"):
            step()


# The version of a plan.


def test_a_plan_that_lost_is_stale(store: Store, other: Store) -> None:
    """A plan is not saved over what somebody put on record since it was loaded, and says so."""
    store.save("one", plan_of(PAY))
    (waiting,) = other.waiting()
    stored = store.load("one", Desk)
    plan: Any = stored.plan
    plan.resume(plan.suspended[0].cancel("no"))

    def save() -> object:
        return store.save("one", plan, version=stored.version)

    came = at_once(save, lambda: other.decide("one", waiting.approve(), Desk), Stop("BEGIN"))
    assert raised(came) == [StaleError]
    assert plan.closed_by is None
    assert states(store) == {"c1": "pending"}


def test_of_two_decisions_at_once_one_counts(store: Store, other: Store) -> None:
    """The one that loses is made again from what is there, and finds nothing that waits."""
    store.save("one", plan_of(PAY))
    (waiting,) = store.waiting()
    yes, no = waiting.approve(), waiting.cancel("no")
    came = at_once(
        lambda: store.decide("one", yes, Desk), lambda: other.decide("one", no, Desk), Writes()
    )
    assert raised(came) == [ResumeError]
    assert states(store) == {"c1": "rejected"}
    assert kinds(store).count("decided") == 1


# What PostgreSQL does with two transactions.


@contextmanager
def repeats() -> Iterator[list[float]]:
    """Note how often a transaction is repeated."""
    found: list[float] = []
    with patch.object(store_database, "pause", found.append):
        yield found


def test_a_save_and_an_end_that_wait_for_each_other_both_come_out(postgres: Postgres) -> None:
    """A save locks a call that awaits before those within it, and an end after: the one that the
    database gives up is repeated.
    """
    where = postgres.fresh()
    with open_store(where, key=KEY) as store, open_store(where, key=KEY) as other:
        end, _ = two_ends(store, other)
        stored = other.load("one", Asking)
        with others() as rows, repeats() as repeated:
            # The end has its own row, and waits for that of the call that awaits it.
            rows.run("BEGIN")
            rows.run("SELECT 1 FROM lutum_call WHERE call = 'c1' FOR UPDATE")

            def save() -> None:
                time.sleep(PATIENCE)  # until the end waits
                rows.run("SET LOCAL deadlock_timeout = '20s'")
                rows.run("SELECT 1 FROM lutum_call WHERE call = 'c1/1' FOR UPDATE")
                rows.run("COMMIT")

            stop = Stop(PIPELINE, is_done=False)
            stop.go.set()
            came = at_once(end, save, stop)
        assert came == [None, None]
        assert len(repeated) == 1
        with pytest.raises(StaleError):
            other.save("one", stored.plan, version=stored.version)


def test_a_save_in_a_deadlock_is_repeated(postgres: Postgres) -> None:
    """A save that the database gives up, since it waits for somebody who waits for it."""
    where = postgres.fresh()
    with open_store(where, key=KEY) as store:
        store.save("one", plan_of(PAY, LOOK))
        stored = store.load("one", Desk)
        with others() as rows, repeats() as repeated:
            rows.run("BEGIN")
            rows.run("SET LOCAL deadlock_timeout = '20s'")
            rows.run("SELECT 1 FROM lutum_call WHERE call = 'c2' FOR UPDATE")

            def cross() -> None:
                time.sleep(PATIENCE)  # until the save waits
                rows.run("SELECT 1 FROM lutum_call WHERE call = 'c1' FOR UPDATE")
                rows.run("COMMIT")

            def save() -> int:
                return store.save("one", stored.plan, note="saved", version=stored.version)

            stop = Stop("SELECT call FROM lutum_call")
            stop.go.set()
            came = at_once(save, cross, stop)
        assert came == [2, None]
        assert len(repeated) == 1
        assert store.load("one").note == "saved"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_default_of_a_server_makes_nobody_lose(postgres: Postgres, level: str) -> None:
    """Each step is READ COMMITTED, so that of two ends at once none is to be repeated."""
    name = level.replace(" ", "\\%20")
    where = f"{postgres.fresh()}%20-cdefault_transaction_isolation%3D{name}"
    with open_store(where, key=KEY) as store, open_store(where, key=KEY) as other:
        ends = two_ends(store, other)
        with repeats() as repeated:
            assert at_once(*ends, Stop("COMMIT")) == [None, None]
        assert repeated == []
        assert taken(store).call.id == "c1"


# What a round shares with others.


@pytest.mark.parametrize(
    ("sql", "is_done"),
    [
        ("WITH lost", True),
        ("WHERE shared = 1 AND", False),
        ("WHERE shared = 1 AND", True),
    ],
)
def test_of_two_claims_of_the_same_one_is_made(
    store: Store, other: Store, sql: str, is_done: bool
) -> None:
    """Two calls that access the same, in conversations that share it, are never claimed both; and
    one of them is.
    """
    for id in ("one", "two"):
        store.save(id, asking(("c1", "edit", {"path": "a"})), across=["files"])
    came = at_once(
        lambda: store.claim(Asking, id="one"),
        lambda: other.claim(Asking, id="two"),
        Stop(sql, is_done=is_done),
    )
    claims = [each for each in came if each is not None]
    assert [isinstance(each, Claim) for each in claims] == [True], came
    (claim,) = claims
    worker = store if claim is came[0] else other
    assert store.claim(Asking) is None
    worker.finish(claim, worker.start(claim).call_sync())
    assert taken(store).id != claim.id


def test_of_two_claims_of_the_same_not_both_give_way(store: Store, other: Store) -> None:
    """Whoever looks while another one is about to give way waits until it did."""
    for id in ("one", "two"):
        store.save(id, asking(("c1", "edit", {"path": "a"})), across=["files"])
    claims = at_once(
        lambda: store.claim(Asking, id="one"),
        lambda: other.claim(Asking, id="two"),
        Stop("WITH lost" if store._claims.database.is_postgres else "COMMIT", is_done=True),
        Stop("WHERE shared = 1 AND", is_done=True),
    )
    assert sorted(isinstance(each, Claim) for each in claims) == [False, True]


# The lease of a worker.


@contextmanager
def seen() -> Iterator[list[str]]:
    """Note each statement."""
    found: list[str] = []
    with between(lambda _, sql, is_done: None if is_done else found.append(sql)):
        yield found


def test_a_worker_has_one_lease_for_all_its_calls(store: Store, other: Store) -> None:
    """While it is renewed, nobody takes a call of the worker; when it runs out, all are free."""
    clock = Clock()
    store.save("one", plan_of(LOOK, ("c4", "look", {"place": "Rome"})))
    with store._claims.leases.held(10) as beat:
        beat.begin()
        assert len(store._claims.claim(Desk, Wanted("one", beat.id), 10, 2)) == 2
        for _ in range(3):
            clock.move(9)
            with seen() as statements:
                beat._renew()
            writes = [sql for sql in statements if "UPDATE" in sql]
            assert len(writes) == 1
            assert "lutum_worker" in writes[0]
            assert other.claim(Desk) is None
        clock.move(11)
        assert {claimed(other).call.id, claimed(other).call.id} == {"c2", "c4"}


def test_a_renewal_waits_for_no_end(postgres: Postgres) -> None:
    """A renewal goes through while the calls of the worker end: it touches none of their rows."""
    where = postgres.fresh()
    with open_store(where, key=KEY) as store, store._claims.leases.held(60) as beat:
        beat.begin()
        # In an order, so that an end counts down those that follow in the same transaction.
        store.save("one", asking(("c1", "edit", {"path": "a"})), in_order=True)
        (claim,) = store._claims.claim(Asking, Wanted("one", beat.id), 60, 1)
        result = store.start(claim).call_sync()
        renewed: list[bool] = []
        stop = Stop("COMMIT")

        def renew() -> None:
            beat._renew()
            renewed.append(not stop.go.is_set())

        assert at_once(lambda: store.finish(claim, result), renew, stop) == [None, None]
        assert renewed == [True]


# A round that is gone.


@pytest.mark.parametrize("how", ["given up", "begun again"])
def test_an_outcome_of_a_round_that_is_gone_is_dropped(
    store: Store, other: Store, how: str
) -> None:
    """An end that waits for the end of its round writes nothing: no row is left of it."""
    store.save("one", plan_of(LOOK))
    claim = claimed(other)
    result = other.start(claim).call_sync()
    version = store.load("one").version
    plan = None if how == "given up" else plan_of(LOOK)
    came = at_once(
        lambda: store.save("one", plan, version=version),
        lambda: other.finish(claim, result),
        Stop("COMMIT"),
    )
    assert came[0] == version + 1
    assert raised(came) == [StaleError]
    with others() as rows:
        found = rows.all("SELECT call, n FROM lutum_entry")
        assert found == ([] if plan is None else [("c2", 0)])
        assert rows.all("SELECT n FROM lutum_call") == ([] if plan is None else [(1,)])


def test_a_conversation_is_not_deleted_under_a_claim(store: Store, other: Store) -> None:
    """Either it is deleted, and nothing is claimed, or it is claimed, and stays."""
    store.save("one", plan_of(LOOK))
    came = at_once(lambda: store.delete("one"), lambda: other.claim(Desk), Stop("COMMIT"))
    assert came == [None, None]
    assert store.ids() == []
    store.save("one", plan_of(LOOK))
    came = at_once(lambda: other.claim(Desk), lambda: store.delete("one"), Stop("WITH lost"))
    claim, refused = came
    assert isinstance(claim, Claim) == isinstance(refused, MisuseError)
    assert store.ids() == ([] if claim is None else ["one"])
    if claim is not None:
        other.start(claim)
