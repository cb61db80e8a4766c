"""The laws of rows that somebody else wrote: they are refused, or let nothing run that may not.

What says what happened to a call is sealed: its entries, how many there are, and what is needed to
read them. What only says who may look at a call next is not: edited, it may cost time.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pytest

from lutum_py import (
    NeedsTools,
    Skip,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    execution,
    tool,
    tool_fn,
)
from lutum_py.errors import LutumError, PlanError, ResumeError, StaleError, StoreError
from lutum_py.store import Claim, Store, Stored, open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.store import desk
from tests.store.beside import SEALED, Clock, Row, last, sealed
from tests.store.beside import others as somebody
from tests.store.desk import KEY, LOOK, started


@tool_fn
def agent(log: Annotated[Any, Skip()], context: ToolContext) -> str:
    """Request a payment and a look, once."""
    if context.inner is None:
        context.request_calls([("pay", {"cents": 9}), ("look", {"place": "Rome"})])
    return "done"


class Desk(Toolset):
    pay = tool(desk.pay)
    look = tool(desk.look)
    agent = tool(agent)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
def may_it_be_paid(_metadata: ToolMetadata, _input: Any) -> Suspend:
    return Suspend(SuspendTicket(id="t1", message="Pay?"))


def plan_of(*calls: desk.Call) -> ToolRoundPlan[Desk]:
    """A plan whose payments wait."""
    outcome = Desk.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.apply_hooks_sync(hooks)


def claimed(store: Store, **options: Any) -> Claim:
    claim = store.claim(Desk, **options)
    assert claim is not None
    return claim


KEYS = {
    "lutum_store": ("one",),
    "lutum_conversation": ("id",),
    "lutum_entry": ("conversation", "call", "n"),
    "lutum_call": ("conversation", "call"),
    "lutum_worker": ("id",),
    "lutum_follower": ("conversation", "call", "follower"),
}
CALLS = [
    ("c0", "pay", {"cents": 1}),
    ("c1", "pay", {"cents": 2}),
    ("c2", "pay", {"cents": 3}),
    ("c3", "look", {"place": "Rome"}),
    ("c4", "pay", {"cents": 4}),
    ("c5", "pay", {"cents": 5}),
    ("c6", "pay", {"cents": 6}),
]
MAY_PAY = {1, 5, 6}
"""What is approved and was not started, or is approved when all is run to its end."""


def filled(store: Store) -> None:
    """A store with calls in every state: waiting, ready, claimed, started, lost, awaiting, done."""
    store.save("one", plan_of(*CALLS), note="note")
    for waiting in store.waiting()[1:]:
        store.decide("one", waiting.approve(by="mia"), Desk)
    for id, lease in (("c1", 1), ("c2", 60), ("c4", 60)):
        claim = claimed(store, id="one", lease=lease)
        assert claim.call.id == id
        call = started(store, claim)
        if id == "c2":
            store.finish(claim, call.call_sync())
    assert claimed(store, id="one").call.id == "c5"
    last().execute("UPDATE lutum_call SET worker = 'w1', due = due - 59999 WHERE call = 'c5'")
    last().execute("INSERT INTO lutum_worker VALUES ('w1', 1060000)")
    # In the order of the turn: the last one follows the others, of which one waits.
    calls = [("d0", *LOOK[1:]), ("d1", "pay", {"cents": 7}), ("d2", *LOOK[1:])]
    store.save("two", plan_of(*calls), note="other", in_order=True)
    # A call that requested others, of which one waits and one may run.
    store.save("three", plan_of(("e0", "agent", {})))
    claim = claimed(store, id="three")
    outcome = execution.execute_sync(store.start(claim), skipped={"log": None})
    store.finish(claim, outcome, hooks=hooks)


@cache
def image() -> bytes:
    """Such a store, as bytes."""
    with open_store(":memory:", key=KEY) as store:
        Clock()
        filled(store)
        return bytes(last().serialize())


def restored() -> Store:
    saved = image()
    store = open_store(":memory:", key=KEY)
    last().deserialize(saved)
    Clock().move(10)
    return store


def cells() -> Iterator[tuple[str, str, str, Any]]:
    """Each cell: its table, what finds its row, its column, and its value."""
    for table, found, row in rows_of(*KEYS):
        yield from ((table, found, name, value) for name, value in row.items())


def rows_of(*tables: str) -> Iterator[tuple[str, str, Row]]:
    for table in tables:
        cursor = last().execute(f"SELECT * FROM {table}")
        names = [each[0] for each in cursor.description]
        for cells in cursor.fetchall():
            row = dict(zip(names, cells, strict=True))
            yield table, " AND ".join(f"{key} = {row[key]!r}" for key in KEYS[table]), row


def others(value: Any, *, in_leaves: bool) -> Iterator[Any]:
    """Other values for one, and for each leaf of what is JSON."""
    if isinstance(value, int):
        yield from (value + 1, value - 1, 0, 10**12)
        return
    if value is None:
        yield from ("", 0, "w1")
        return
    yield from (value + "x", value[1:], "")
    if value in STATES:
        yield from STATES
    with suppress(ValueError):
        data = json.loads(value)
        if in_leaves and not isinstance(data, int):
            yield from (json.dumps(each, separators=(",", ":")) for each in edited(data))


STATES = ("ready", "started", "waiting", "awaiting", "unreviewed", "ended", "done")


def edited(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        for name in data:
            yield from ({**data, name: each} for each in edited(data[name]))
            yield {other: each for other, each in data.items() if other != name}
    elif isinstance(data, list):
        for index in range(len(data)):
            yield from ([*data[:index], each, *data[index + 1 :]] for each in edited(data[index]))
            yield [*data[:index], *data[index + 1 :]]
    elif isinstance(data, bool):
        yield not data
    elif isinstance(data, int):
        yield data + 1
    else:
        yield "x" if data is None else f"{data}x"


class Seen:
    """What comes of a store whose rows somebody edited."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.other: list[Any] = []
        self.errors: list[LutumError] = []

    def attempt(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except LutumError as error:
            self.errors.append(error)
            return None

    @property
    def is_safe(self) -> bool:
        """Whether nothing was paid twice, nor what nobody approved, nor what may have been paid."""
        return len(self.paid) == len({*self.paid}) and MAY_PAY.issuperset(self.paid)

    @property
    def is_refused(self) -> bool:
        return any(isinstance(error, StoreError | PlanError) for error in self.errors)


def run_to_the_end(store: Store) -> Seen:
    """Approve one payment, run all that may run, and look at everything."""
    seen = Seen()
    log: list[Any] = []

    def decide() -> None:
        for waiting in store.waiting():
            seen.other.append(waiting)
            if waiting.arguments == {"cents": 1, "payee": "Acme"}:
                store.decide(waiting.id, waiting.approve(), Desk)

    def run() -> bool:
        claim = store.claim(Desk)
        if claim is None:
            return False
        seen.other.append((claim.key, claim.in_doubt))
        if claim.in_doubt and not claim.idempotent:
            store.finish(claim, claim.call.indeterminate("lost"))
        else:
            call = store.start(claim)
            store.finish(claim, execution.execute_sync(call, skipped={"log": log}), hooks=hooks)
        return True

    def look(id: str) -> None:
        stored = store.load(id, Desk)
        seen.other.append((stored.id, stored.note))
        if stored.plan is not None:
            seen.other.append(stored.plan.finished)
            stored.plan.discard()

    seen.attempt(decide)
    for _ in range(12):
        if seen.attempt(run) is False:
            break
    for id in seen.attempt(store.ids) or ():
        seen.attempt(partial(look, id))
    seen.paid = [cents for _, cents in log]
    return seen


def after(*statements: str, values: tuple[Any, ...] = ()) -> Seen | None:
    """Say what comes of some statements of somebody else; None if the database refuses them."""
    with restored() as store:
        try:
            for statement in statements:
                last().execute(statement, values)
        except sqlite3.IntegrityError:
            return None
        return run_to_the_end(store)


def steps_in(seen: Seen) -> tuple[Any, ...]:
    return seen.paid, seen.other, [*map(type, seen.errors)]


@pytest.fixture
def untouched() -> Seen:
    seen = after()
    assert seen is not None
    assert sorted(seen.paid) == [1, 6]
    assert seen.errors == []
    return seen


@pytest.mark.slow
def test_every_cell_that_is_sealed_counts(untouched: Seen) -> None:
    """Whatever is edited in a sealed cell, one leaf at a time: it is refused, or changes nothing;
    and nothing is paid that was not approved, or twice.
    """
    edits = [each for each in edits_of() if is_sealed(*each[:3])]
    assert len(edits) > 500
    with_effect = []
    for table, found, column, other in edits:
        seen = after(f"UPDATE {table} SET {column} = ? WHERE {found}", values=(other,))
        if seen is None:
            continue
        is_noticed = seen.is_refused or steps_in(seen) == steps_in(untouched)
        if not (seen.is_safe and is_noticed):
            with_effect.append((table, found, column, other, seen.paid))
    assert with_effect == []


@pytest.mark.slow
def test_a_cell_that_is_not_sealed_costs_no_more_than_time() -> None:
    """Whatever is edited in a cell that says who may look at a call next: nothing is paid twice,
    nothing that nobody approved, and nothing that may have been paid before.
    """
    edits = [each for each in edits_of() if not is_sealed(*each[:3])]
    assert len(edits) > 500
    unsafe = []
    for table, found, column, other in edits:
        if table == "lutum_store":
            continue
        seen = after(f"UPDATE {table} SET {column} = ? WHERE {found}", values=(other,))
        if not (seen is None or seen.is_safe):
            unsafe.append((table, found, column, other, seen.paid))
    assert unsafe == []


def is_sealed(table: str, _found: str, column: str) -> bool:
    """Whether a seal covers a cell, which it may do by a digest."""
    return column in (*SEALED.get(table, ()), "seal", "note", "session", "record")


def edits_of() -> list[tuple[str, str, str, Any]]:
    with restored():
        return [
            (table, found, column, other)
            for table, found, column, value in cells()
            for other in others(value, in_leaves="'c1'" in found or "'one'" in found)
            if other != value
        ]


def test_a_version_that_was_edited_is_refused(tmp_path: Path) -> None:
    """What the tables say of themselves is believed by nobody."""
    for column, value in (("one", 2), ("version", 7), ("version", "x"), ("one", 0)):
        with restored():
            last().execute(f"UPDATE lutum_store SET {column} = ?", (value,))
            path = tmp_path / f"{column}{value}.db"
            path.write_bytes(last().serialize())
        with pytest.raises(StoreError):
            open_store(path, key=KEY)


def test_a_row_that_was_deleted_is_missed(untouched: Seen) -> None:
    """Whichever entry, call or conversation is deleted, the last entry of a call included: it is
    refused. Without a follower or a worker, a call is looked at earlier, or not at all.
    """
    with restored():
        gone = [(table, found) for table, found, _ in rows_of(*KEYS) if table != "lutum_store"]
    assert len(gone) > 30
    for table, found in gone:
        seen = after(f"DELETE FROM {table} WHERE {found}")
        assert seen is not None
        assert seen.is_safe, found
        assert seen.is_refused or table in ("lutum_follower", "lutum_worker"), (table, found)


def test_a_call_that_was_deleted_whole_is_missed() -> None:
    """Without its row and its entries, a call of the turn is not taken for a new one."""
    for call in ("c0", "c1", "c2", "c4", "d1"):
        gone = [f"DELETE FROM lutum_{table} WHERE call = '{call}'" for table in ("entry", "call")]
        seen = after(*gone)
        assert seen is not None
        assert (seen.is_safe, seen.is_refused) == (True, True), call


@pytest.mark.slow
def test_a_row_that_was_copied_is_refused(untouched: Seen) -> None:
    """A row in the place of another one, in the same conversation or another, is refused; an entry
    of another round is not even looked at.
    """
    copies = []
    with restored():
        entries = [row for _, _, row in rows_of("lutum_entry")]
        calls = [row for _, _, row in rows_of("lutum_call")]
        heads = [row for _, _, row in rows_of("lutum_conversation")]
    for row in entries:
        others = [{"n": row["n"] + 1}, {"n": 9}, {"call": "c3"}, {"call": "e0/1"}]
        copies += [("lutum_entry", row, changed) for changed in others]
        copies.append(("lutum_entry", row, {"conversation": "two", "call": "d0"}))
    for row in calls:
        copies += [("lutum_call", row, {"call": name}) for name in ("c0", "c3", "new")]
        copies.append(("lutum_call", row, {"conversation": "two"}))
    for row in heads:
        copies += [("lutum_conversation", row, {"id": id}) for id in ("one", "two", "new")]
    assert len(copies) > 100
    for table, row, changed in copies:
        made = {**row, **changed}
        if made == row:
            continue
        marks = ", ".join("?" * len(made))
        seen = after(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values=(*made.values(),))
        assert seen is not None
        assert seen.is_safe, (table, row, changed)
        is_other_round = table == "lutum_entry" and "conversation" in changed
        is_unseen = is_other_round and steps_in(seen) == steps_in(untouched)
        assert seen.is_refused or is_unseen, (table, row, changed)


def test_a_row_of_an_older_state_is_refused() -> None:
    """A row as it once was does not count beside those that were written since. One of the
    conversation brings back what you noted, and runs nothing.
    """
    before: dict[tuple[str, str], Row] = {}
    older = []
    with open_store(":memory:", key=KEY) as store:
        Clock()
        store.save("one", plan_of(*CALLS), note="note")
        watched = ("lutum_conversation", "lutum_entry", "lutum_call")

        def note(_: Any = None) -> None:
            for table, found, row in rows_of(*watched):
                known = before.setdefault((table, found), row)
                if {name: known[name] for name in SEALED[table]} != {
                    name: row[name] for name in SEALED[table]
                }:
                    older.append((table, found, known))
                    before[table, found] = row

        note()
        for waiting in store.waiting()[1:4]:
            store.decide("one", waiting.approve(), Desk)
            note()
        for _ in range(2):
            claim = claimed(store)
            call = started(store, claim)
            note()
        store.finish(claim, call.call_sync())
        note()
        stored = store.load("one", Desk)
        store.save("one", stored.plan, note="later", version=stored.version)
        note()
        now = bytes(last().serialize())
    assert len(older) >= 7
    for table, found, row in older:
        with open_store(":memory:", key=KEY) as store:
            last().deserialize(now)
            Clock().move(100)
            sets = ", ".join(f"{name} = ?" for name in row)
            last().execute(f"UPDATE {table} SET {sets} WHERE {found}", (*row.values(),))
            seen = run_to_the_end(store)
        assert {2, 3}.isdisjoint(seen.paid), (found, row)
        assert seen.is_refused or table == "lutum_conversation", (table, found, row)


def forge(call: str, **cells: Any) -> None:
    """Change the row of a call as somebody would who has the key."""
    (row,) = [each for each in every_row() if each["call"] == call]
    made = sealed({**row, **cells}, KEY)
    with somebody() as rows:
        rows.run("DELETE FROM lutum_call WHERE call = ?", call)
        marks = ", ".join("?" * len(made))
        rows.run(f"INSERT INTO lutum_call ({', '.join(made)}) VALUES ({marks})", *made.values())


def forge_entries(call: str, change: Callable[[list[Any]], object]) -> None:
    """Change the steps of a call as somebody would who has the key."""
    with somebody() as rows:
        found = [each for each in rows.named("lutum_entry") if each["call"] == call]
        entries = sorted(found, key=lambda each: each["n"])
        steps = [json.loads(each["body"]) for each in entries]
        change(steps)
        rows.run("DELETE FROM lutum_entry WHERE call = ?", call)
        seal = ""
        for n, body in enumerate(steps):
            own = entries[min(n, len(entries) - 1)]
            row = {**own, "n": n, "id": f"{own['id']}{n}", "body": json.dumps(body)}
            made = sealed(row, KEY, seal)
            seal = made["seal"]
            marks = ", ".join("?" * len(made))
            names = ", ".join(made)
            rows.run(f"INSERT INTO lutum_entry ({names}) VALUES ({marks})", *made.values())
    forge(call, n=len(steps), last=seal)


def test_a_row_that_its_entries_do_not_allow_is_not_run(store: Store) -> None:
    """A row that is to be claimed of a call that waits is a PlanError; the others run meanwhile."""
    store.save("one", plan_of(*CALLS[:2], LOOK))
    forge("c0", state="ready", slot=0)
    with pytest.raises(PlanError, match="says that it may be run, and its entries do not"):
        store.claim(Desk)
    assert claimed(store).call.name == "look"
    assert [each.call_id for each in store.waiting()] == ["c1"]


def test_a_call_of_another_schema_is_not_run(store: Store) -> None:
    """A row whose tool had another schema is a PlanError."""
    store.save("one", plan_of(LOOK))
    (row,) = every_row()
    body = json.loads(row["body"])
    body["record"]["calls"][0]["schema_digest"] = "sha256:0"
    forge("c2", body=json.dumps(body))
    with pytest.raises(PlanError):
        store.claim(Desk)


def test_what_a_call_came_to_is_read_from_its_entries_alone(store: Store) -> None:
    """A call that was started is in doubt, and one that waits is decided on, once, whatever the
    cells of their rows report that are not sealed.
    """
    plan = plan_of(LOOK, *CALLS[:1])
    plan.pending[0].start()
    store.save("one", plan)
    (waiting,) = store.waiting()
    forge("c2", state="ready", slot=0, due=None)
    forge("c0", state="done")
    assert claimed(store).in_doubt
    assert store.waiting() == []
    assert store.decide("one", waiting.approve(), Desk) is not None
    with pytest.raises(ResumeError):
        store.decide("one", waiting.cancel("no"), Desk)
    assert claimed(store).call.id == "c0"


def test_a_result_of_another_call_is_not_recorded(store: Store) -> None:
    """An entry whose result is of another call is a PlanError, whoever sealed it."""
    store.save("one", plan_of(LOOK, ("c9", "look", {"place": "Rome"})))
    claim = claimed(store)
    store.finish(claim, started(store, claim).call_sync())

    def change(entries: list[Any]) -> None:
        (ended,) = [step for steps in entries for step in steps if step["kind"] == "ended"]
        ended["result"]["name"] = "pay"

    forge_entries("c2", change)
    with pytest.raises(PlanError):
        store.load("one", Desk)


def test_what_cannot_have_happened_is_not_believed(store: Store) -> None:
    """Entries that no history has, such as two starts or a step that is none, are a PlanError."""
    store.save("one", plan_of(LOOK))
    started(store, claimed(store))
    for change in (
        lambda entries: entries.append(entries[-1]),
        lambda entries: entries.pop(0),
        lambda entries: entries[-1][0].update(kind="paid"),
        lambda entries: entries.append([]),
    ):
        forge_entries("c2", change)
        with pytest.raises(PlanError):
            store.load("one", Desk)


def test_rows_are_not_moved(store: Store) -> None:
    """A row of another conversation, or of another round, is none of this one."""
    store.save("one", plan_of(LOOK))
    (old,) = every_row()
    store.save("one", plan_of(LOOK), version=1)
    forge("c2", round=old["round"])
    with pytest.raises(StoreError):
        store.claim(Desk)
    with somebody() as rows:
        rows.run("UPDATE lutum_call SET conversation = 'two'")
    with pytest.raises(StoreError):
        store.claim(Desk)
    assert store.claim(Desk) is None  # it is left alone for the length of the lease


@pytest.mark.parametrize("columns", ["record", "record, record_digest", "all"])
def test_an_older_round_is_not_put_back(store: Store, columns: str) -> None:
    """The record of a round, which this store once wrote itself, does not count for another one."""
    store.save("one", plan_of(LOOK))

    def head() -> Row:
        with somebody() as rows:
            return rows.named("lutum_conversation")[0]

    older = head()
    store.save("one", plan_of(LOOK, ("c9", "look", {"place": "Rome"})), version=1)
    cells = older if columns == "all" else {name: older[name] for name in columns.split(", ")}
    with somebody() as rows:
        sets = ", ".join(f"{name} = ?" for name in cells)
        rows.run(f"UPDATE lutum_conversation SET {sets}", *cells.values())
    with pytest.raises(StoreError):
        store.load("one", Desk)
    if columns != "record":  # a claim does not read it
        with pytest.raises(StoreError):
            store.claim(Desk)


@pytest.mark.parametrize(
    ("column", "move"),
    [
        *product(("claim", "n", "round", "call"), ("start", "finish")),
        *product(("claim", "call"), ("renew", "release")),
    ],
)
def test_a_row_that_was_edited_after_it_was_claimed(store: Store, column: str, move: str) -> None:
    """Whoever claimed a row goes on only while the claim, and what has happened, are the same."""
    store.save("one", plan_of(LOOK))
    claim = claimed(store)
    steps: dict[str, Callable[[], object]] = {
        "start": lambda: store.start(claim),
        "renew": lambda: store.renew(claim),
        "release": lambda: store.release(claim),
        "finish": lambda: store.finish(claim, claim.call.complete("seen")),
    }
    with somebody() as rows:
        changed = "n + 1" if column == "n" else f"{column} || 'x'"
        rows.run(f"UPDATE lutum_call SET {column} = {changed}")
    with pytest.raises(StaleError):
        steps[move]()


def every_row() -> list[Row]:
    with somebody() as rows:
        return rows.named("lutum_call")


def test_the_key_decides(where: str) -> None:
    """What was saved with a key is read with that key only, and what was saved without, without."""
    with open_store(where, key=KEY) as store:
        store.save("one", plan_of(LOOK, CALLS[0]), note="")
    told = {None: "was saved with a key. Pass the same `key=`", b"x": "or sealed with another key"}
    for key, said in told.items():
        with open_store(where, key=key) as store:
            for step in (
                lambda store=store: store.load("one"),
                lambda store=store: store.waiting(),
                lambda store=store: store.save("one", None, note="", version=1),
            ):
                with pytest.raises(StoreError, match=said):
                    step()
    with open_store(where) as store:
        with pytest.raises(StoreError, match=told[None]):
            store.claim(Desk)
        store.save("two", None, note="")
        store.load("two")
    with (
        open_store(where, key=KEY) as store,
        pytest.raises(StoreError),
    ):
        store.load("two")


@pytest.mark.parametrize("key", [None, b"another"])
def test_whoever_has_another_key_spoils_nothing(
    store: Store, where: str, key: bytes | None
) -> None:
    """A worker that was given another key, or none, is refused, and the others go on as before."""
    store.save("one", plan_of(LOOK))
    store.save("two", plan_of(LOOK))
    passing = ("token", "slot")  # that it was looked at
    before = [{name: row[name] for name in row if name not in passing} for row in every_row()]
    with open_store(where, key=key) as other:
        for _ in range(2):
            with pytest.raises(StoreError):
                other.claim(Desk)
        assert other.claim(Desk) is None  # each was an error once, and is left alone
        assert other.claim(Desk, id="two") is None
    after = [{name: row[name] for name in row if name not in passing} for row in every_row()]
    assert after == before
    assert {claimed(store).id, claimed(store).id} == {"one", "two"}


def test_a_row_that_does_not_fit_is_tried_again(store: Store, monkeypatch: Any) -> None:
    """A row that is left alone is claimed once the lease is over and it is as it was."""
    store.save("one", plan_of(LOOK))
    now = 100.0
    monkeypatch.setattr("lutum_py.store._claims.monotonic", lambda: now)
    with somebody() as rows:
        rows.run("UPDATE lutum_call SET place = 9")
    with pytest.raises(StoreError):
        store.claim(Desk, lease=10)
    with somebody() as rows:
        rows.run("UPDATE lutum_call SET place = 0")
    assert store.claim(Desk) is None
    now += 10
    assert claimed(store).call.id == "c2"


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("lutum_conversation", "note"),
        ("lutum_conversation", "record"),
        ("lutum_conversation", "version"),
        ("lutum_entry", "body"),
        ("lutum_call", "body"),
        ("lutum_call", "n"),
    ],
)
def test_without_a_key_careless_edits_are_found(where: str, table: str, column: str) -> None:
    """Without a key, an edit by somebody who leaves the seal as it is is refused as well."""
    with open_store(where) as store:
        store.save("one", plan_of(*CALLS[:1]), note="note")
        store.waiting()
        with somebody() as rows:
            changed = f"{column} + 1" if column in ("version", "n") else f"{column} || ' '"
            rows.run(f"UPDATE {table} SET {column} = {changed}")
        with pytest.raises(StoreError):
            store.load("one", Desk)
        if table == "lutum_call":
            with pytest.raises(StoreError):
                store.waiting()


ODD: list[Any] = [
    *(None, -1, -(2**63), 2**63 - 1, 1.5, float("inf")),
    *("", "x", "0", "[]", "{}", "[" * 100_000, b"", b"\x00\xff", b"{}", b"one"),
]
"""What no store writes, in one column or another."""


def sealed_again() -> None:
    """Seal all rows anew, as somebody would who has the key, where their cells can be sealed."""
    last_seals: dict[Any, Any] = {}
    for row in named("lutum_entry", "ORDER BY n"):
        call = row["conversation"], row["round"], row["call"]
        last_seals[call] = seal_again("lutum_entry", row, last_seals.get(call, ""))
    for row in named("lutum_call"):
        call = row["conversation"], row["round"], row["call"]
        kept = row["last"]
        if isinstance(kept, str) and kept.startswith("hmac"):
            last().execute(
                "UPDATE lutum_call SET last = ? WHERE rowid = ?",
                (last_seals.get(call, kept), row["rowid"]),
            )
    for table in ("lutum_call", "lutum_conversation"):
        for row in named(table):
            seal_again(table, row)


def named(table: str, order: str = "") -> list[Row]:
    cursor = last().execute(f"SELECT rowid, * FROM {table} {order}")
    names = [each[0] for each in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def seal_again(table: str, row: Row, behind: str | None = None) -> Any:
    with suppress(TypeError):  # bytes
        row = sealed(row, KEY, behind)
    last().execute(f"UPDATE {table} SET seal = ? WHERE rowid = ?", (row["seal"], row["rowid"]))
    return row["seal"]


def misshapen(data: Any) -> Iterator[Any]:
    """The same JSON with a part of it in another shape."""
    yield from (None, 7, "x", [], {}, [[]])
    if isinstance(data, dict):
        for name in data:
            yield from ({**data, name: each} for each in misshapen(data[name]))
    elif isinstance(data, list):
        for index in range(len(data)):
            yield from (
                [*data[:index], each, *data[index + 1 :]] for each in misshapen(data[index])
            )


def looked(stored: Stored[Any]) -> Stored[Any]:
    """Give up the plan of what was only looked at."""
    if stored.plan is not None:
        stored.plan.discard()
    return stored


def steps_of(store: Store) -> list[Callable[[], Any]]:
    """Every public way to read what is stored."""
    return [
        store.ids,
        store.settled,
        store.waiting,
        *(partial(look_at, store, id) for id in ("two", "three")),
        *(partial(decide_in, store, id) for id in ("two", "three")),
        lambda: [store.claim(Desk) for _ in range(9)],
        *(partial(run_in, store, id) for id in ("two", "three")),
        lambda: store.save("two", None, version=store.load("two").version),
    ]


def look_at(store: Store, id: str) -> None:
    looked(store.load(id, Desk))


def decide_in(store: Store, id: str) -> None:
    for waiting in store.waiting(id):
        store.decide(id, waiting.approve(), Desk)


def run_in(store: Store, id: str) -> None:
    looked(asyncio.run(store.run(id, Desk, hooks=hooks, skipped={"log": None})))


COUNTS = ("version", "counted", "changed", "place", "n", "since", "blockers", "token")
MAYBE = ("slot", "due", "claim", "worker", "owner")


def is_of_its_column(table: str, column: str, cell: Any) -> bool:
    """Whether a store may write this there, whatever it means."""
    if cell is None and column in (*MAYBE, "session", "record"):
        return True
    if column in (*COUNTS, "slot", "due"):
        return isinstance(cell, int) and 0 <= cell <= 2**62
    if column == "shared":
        return cell in (0, 1)
    if column == "state":
        return cell in STATES
    return isinstance(cell, str)


@pytest.mark.slow
def test_a_value_that_no_store_writes_is_refused() -> None:
    """Wrong types, bytes and numbers out of range, in any cell, sealed by whoever has the key: each
    way to read them gives an error of the library, a `StoreError` where no store writes the like,
    or never saw them; so does JSON of another shape.
    """
    with restored():
        found = [
            each
            for each in cells()
            if each[0] in SEALED and each[2] != "seal" and ("'two'" in each[1] or "'e0'" in each[1])
        ]
    edits = list(product(found, ODD))
    for cell in found:
        if cell[2] in ("body", "note", "shown", "record") and cell[3]:
            edits += [(cell, json.dumps(each)) for each in misshapen(json.loads(cell[3]))]
    bad: list[Any] = []
    for (table, found_by, column, value), other in edits:
        if other == value:
            continue
        with restored() as store:
            with suppress(sqlite3.IntegrityError):  # the database itself refuses it
                last().execute(f"UPDATE {table} SET {column} = ? WHERE {found_by}", (other,))
            if column in ("note", "session", "record"):
                digest = "" if other is None else sha256(str(other).encode()).hexdigest()
                last().execute(
                    f"UPDATE {table} SET {column}_digest = ? WHERE {found_by}", (digest,)
                )
            kept = last().execute(f"SELECT {column} FROM {table} WHERE {found_by}").fetchone()
            fits = is_of_its_column(table, column, other if kept is None else kept[0])
            sealed_again()
            for at, step in enumerate(steps_of(store)):
                try:
                    step()
                except LutumError as error:
                    if not fits and not isinstance(error, StoreError | StaleError):
                        bad.append((column, other, at, error))
                except Exception as error:  # noqa: BLE001 - all are reported
                    bad.append((column, other, at, error))
    assert bad == []


@over("column", ["n", "place", "since", "blockers", "token", "slot", "due"])
def test_a_number_out_of_range_is_an_edit(where: str, column: str) -> None:
    """A number that cannot be counted on is refused on both databases, whoever sealed it."""
    with open_store(where, key=KEY) as store:
        for at, number in enumerate((-1, 2**63 - 1)):
            id = f"{column}{at}"
            store.save(id, plan_of((id, *LOOK[1:])))
            forge(id, **{column: number})
            with pytest.raises(StoreError, match="was edited by somebody else"):
                store.load(id, Desk)


def test_a_row_without_a_seal_is_none_of_ours() -> None:
    """What cannot be sealed, such as bytes, and carries no seal is not taken for sealed."""
    with restored() as store:
        body = last().execute("SELECT body FROM lutum_call WHERE call = 'c0'").fetchone()[0]
        last().execute(
            "UPDATE lutum_call SET body = ?, seal = '' WHERE call = 'c0'", (body.encode(),)
        )
        (row,) = [each for each in named("lutum_call") if each["call"] == "c0"]
        last().execute("UPDATE lutum_call SET slot = 0, state = 'ready' WHERE call = 'c0'")
        for step in (store.waiting, lambda: store.claim(Desk), lambda: store.load("one", Desk)):
            last().execute(f"UPDATE lutum_call SET state = '{row['state']}' WHERE call = 'c0'")
            with pytest.raises(StoreError):
                step()
