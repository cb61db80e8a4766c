"""The laws of rows that somebody else wrote: they are refused, or they change nothing."""

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
from typing import Any

import pytest

from lutum_py.errors import LutumError, PlanError, StaleError, StoreError
from lutum_py.store import Store, Stored, open_store
from tests.cases import over
from tests.store.beside import Clock, Row, last, sealed
from tests.store.beside import others as somebody
from tests.store.desk import KEY, LOOK, Desk, claimed, plan_of, started

TABLES = {
    "lutum_store": ("one",),
    "lutum_conversation": ("id",),
    "lutum_call": ("conversation", "place"),
}
CALLS = [
    ("c0", "pay", {"cents": 1}),
    ("c1", "pay", {"cents": 2}),
    ("c2", "pay", {"cents": 3}),
    ("c3", "look", {"place": "Rome"}),
    ("c4", "pay", {"cents": 4}),
    ("c5", "pay", {"cents": 5}),
]


def filled(store: Store) -> None:
    """A conversation with calls in every state: waiting, ready, claimed, started, lost and done."""
    store.save("one", plan_of(*CALLS), note="note")
    for waiting in store.waiting()[1:]:
        store.decide("one", waiting.approve(by="mia"), Desk)
    lost = claimed(store, lease=1)
    started(store, lost)
    claim = claimed(store)
    store.finish(claim, started(store, claim).call_sync())
    claimed(store)
    started(store, claimed(store))
    store.save("two", plan_of(LOOK), note="other")


@cache
def image() -> bytes:
    """Such a store, as bytes."""
    with open_store(":memory:", key=KEY) as store:
        clock = Clock()
        filled(store)
        clock.move(10)
        return bytes(last().serialize())


def restored() -> Store:
    saved = image()
    store = open_store(":memory:", key=KEY)
    last().deserialize(saved)
    clock = Clock()
    clock.move(10)
    return store


def values() -> Iterator[tuple[str, str, str, Any]]:
    """Each value: its table, what finds its row, its column, and itself."""
    connection = last()
    for table, keys in TABLES.items():
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [each[0] for each in cursor.description]
        for row in cursor.fetchall():
            values = dict(zip(names, row, strict=True))
            found = " AND ".join(f"{key} = {values[key]!r}" for key in keys)
            for name in names:
                yield table, found, name, values[name]


def others(value: Any) -> Iterator[Any]:
    """Other values for one, and for each leaf of what is JSON."""
    if isinstance(value, int):
        yield from (value + 1, value - 1, 10**12)
        return
    if value is None:
        yield from ("", 0)
        return
    yield from (value + "x", value[1:], "")
    with suppress(ValueError):
        data = json.loads(value)
        if not isinstance(data, int):
            yield from (json.dumps(each, separators=(",", ":")) for each in edited(data))


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


def run_to_the_end(store: Store) -> tuple[list[Any], list[Any]]:
    """Decide, run and look at all there is; give the payments, and what was seen."""
    log: list[Any] = []
    seen: list[Any] = []

    def attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except LutumError as error:
            seen.append(type(error).__name__)
            return None

    def decide() -> None:
        for waiting in store.waiting():
            seen.append(waiting)
            if waiting.arguments == {"cents": 1, "payee": "Acme"}:
                store.decide(waiting.id, waiting.approve(), Desk)

    def run() -> bool:
        claim = store.claim(Desk)
        if claim is None:
            return False
        seen.append((claim.key, claim.in_doubt))
        if claim.in_doubt and not claim.idempotent:
            store.finish(claim, claim.call.indeterminate("lost"))
        else:
            call = store.start(claim)
            skipped = {"log": log} if call.name == "pay" else {}
            store.finish(claim, call.call_sync(**skipped))
        return True

    def look(id: str) -> None:
        stored = store.load(id, Desk)
        seen.append((stored.id, stored.note))
        if stored.plan is not None:
            seen.append(stored.plan.finished)

    attempt(decide)
    for _ in range(12):
        if attempt(run) is False:
            break
    for id in attempt(store.ids) or ():
        attempt(partial(look, id))
    return log, seen


@pytest.mark.slow
def test_every_leaf_of_every_row_counts(tmp_path: Path) -> None:
    """Whatever is edited in any row, one leaf at a time: it is refused, or changes nothing; and
    nothing is paid that was not approved, or twice.
    """
    with restored() as store:
        paid, seen = run_to_the_end(store)
    assert sorted(paid) == [("Acme", 1), ("Acme", 5)]
    with restored() as store:
        edits = [
            (table, found, column, other)
            for table, found, column, value in values()
            for other in others(value)
            if other != value
        ]
    assert len(edits) > 500
    with_effect = []
    for table, found, column, other in edits:
        with restored() as store:
            try:
                last().execute(f"UPDATE {table} SET {column} = ? WHERE {found}", (other,))
            except sqlite3.IntegrityError:  # the database itself refuses it
                continue
            if table == "lutum_store":
                tables = tmp_path / "edited.db"
                tables.write_bytes(last().serialize())
                with pytest.raises(StoreError):
                    open_store(tables, key=KEY)
                continue
            now, then = run_to_the_end(store)
            refused = any(isinstance(each, str) for each in then)
            once = len(now) == len(set(now)) and set(now) <= set(paid)
            if not once or not (refused or (now, then) == (paid, seen)):
                with_effect.append((table, found, column, other, now))
    assert with_effect == []


def row_at(place: int) -> Row:
    return next(row for row in every_row() if row["place"] == place)


def write(row: Row) -> None:
    """Add a row as somebody would who has the key."""
    made = sealed(row, KEY)
    with somebody() as rows:
        marks = ", ".join("?" * len(made))
        rows.run(f"INSERT INTO lutum_call ({', '.join(made)}) VALUES ({marks})", *made.values())


def forge(place: int, **fields: Any) -> None:
    """Change a row as somebody would who has the key."""
    row = row_at(place)
    with somebody() as rows:
        rows.run("DELETE FROM lutum_call WHERE place = ? AND conversation = 'one'", place)
    write({**row, **fields})


def with_body(place: int, **fields: Any) -> str:
    return json.dumps({**json.loads(row_at(place)["body"]), **fields})


def test_a_row_that_its_plan_does_not_allow_is_not_run(store: Store, clock: Clock) -> None:
    """A row that says otherwise than the plan is a PlanError, whoever sealed it; the others are
    run meanwhile.
    """
    store.save("one", plan_of(*CALLS[:2], LOOK), note="")
    for state, begun_by in (("ready", 0), ("started", 3)):
        forge(0, state=state, token=3, started=begun_by, until=0)
        with pytest.raises(PlanError):
            store.claim(Desk)
        with pytest.raises(PlanError, match=f"does not fit the plan: it is {state}, the call is"):
            store.load("one", Desk)
    assert claimed(store).call.name == "look"


def test_a_row_of_other_arguments_is_not_run(store: Store) -> None:
    """A row whose digest is not that of the call is a PlanError."""
    store.save("one", plan_of(LOOK), note="")
    forge(0, body=with_body(0, digest="sha256:0"))
    with pytest.raises(PlanError):
        store.claim(Desk)


def test_a_call_that_was_begun_is_not_made_ready(store: Store) -> None:
    """A row that says ready of a call that the plan itself has as started is a PlanError."""
    plan = plan_of(LOOK)
    plan.pending[0].start()
    store.save("one", plan, note="")
    forge(0, state="ready")
    with pytest.raises(PlanError):
        store.claim(Desk)


def test_a_result_of_another_call_is_not_recorded(store: Store) -> None:
    """A row whose result is of another call is a PlanError when its plan is loaded."""
    store.save("one", plan_of(LOOK, ("c9", "look", {"place": "Rome"})), note="")
    claim = claimed(store)
    store.finish(claim, started(store, claim).call_sync())
    steps = json.loads(row_at(0)["body"])["steps"]
    steps[-1]["result"]["name"] = "pay"
    forge(0, body=with_body(0, steps=steps))
    with pytest.raises(PlanError):
        store.load("one", Desk)


def test_a_decision_needs_the_row_of_its_call(store: Store) -> None:
    """Where plan and row say otherwise of what waits, nothing is decided."""
    store.save("one", plan_of(*CALLS[:1]), note="")
    (waiting,) = store.waiting()
    forge(0, state="done")
    with pytest.raises(PlanError):
        store.decide("one", waiting.approve(), Desk)


def test_rows_are_those_of_the_plan(store: Store) -> None:
    """A row that was removed or added is missed, or one too many."""
    store.save("one", plan_of(*CALLS[:2]), note="")
    row = row_at(1)
    with somebody() as rows:
        rows.run("DELETE FROM lutum_call WHERE place = 1")
    with pytest.raises(PlanError):
        store.load("one", Desk)
    for place in (1, 2):
        write({**row, "place": place})
    with pytest.raises(PlanError):
        store.load("one", Desk)


def test_rows_are_not_moved(store: Store) -> None:
    """A row of another conversation, or of another round, is none of this one."""
    store.save("one", plan_of(LOOK), note="")
    (old,) = every_row()
    store.save("one", plan_of(LOOK), note="", version=1)
    forge(0, round=old["round"])
    with pytest.raises(StoreError):
        store.claim(Desk)
    with somebody() as rows:
        rows.run("UPDATE lutum_call SET conversation = 'two', until = 0")
    with pytest.raises(StoreError):
        store.claim(Desk)
    assert store.claim(Desk) is None  # it is left alone for the length of the lease


@pytest.mark.parametrize("with_digest", [False, True])
def test_an_older_plan_is_not_put_back(store: Store, with_digest: bool) -> None:
    """A plan that this store once wrote itself does not count in the place of the present one."""
    store.save("one", plan_of(LOOK), note="")

    def plan() -> Any:
        with somebody() as rows:
            return rows.all("SELECT plan, plan_digest FROM lutum_conversation")[0]

    older = plan()
    store.save("one", plan_of(LOOK, ("c9", "look", {"place": "Rome"})), note="", version=1)
    text, digest = older if with_digest else (older[0], plan()[1])
    with somebody() as rows:
        rows.run("UPDATE lutum_conversation SET plan = ?, plan_digest = ?", text, digest)
    for step in (lambda: store.claim(Desk), lambda: store.load("one", Desk)):
        with pytest.raises(StoreError):
            step()


@over("column", ["token", "started", "until", "round", "place"])
@pytest.mark.parametrize("move", ["start", "renew", "release", "finish"])
def test_a_row_that_was_edited_after_it_was_claimed(store: Store, column: str, move: str) -> None:
    """Whoever claimed a row goes on only while it is as the store wrote it."""
    store.save(column, plan_of(LOOK), note="")
    claim = claimed(store, id=column)
    steps: dict[str, Callable[[], object]] = {
        "start": lambda: store.start(claim),
        "renew": lambda: store.renew(claim),
        "release": lambda: store.release(claim),
        "finish": lambda: store.finish(claim, claim.call.complete("seen")),
    }
    with somebody() as rows:
        rows.run(f"UPDATE lutum_call SET {column} = {column} + 1 WHERE conversation = ?", column)
    with pytest.raises((StoreError, StaleError)):
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
    store.save("one", plan_of(LOOK), note="")
    store.save("two", plan_of(LOOK), note="")
    before = every_row()
    with open_store(where, key=key) as other:
        for _ in range(2):
            with pytest.raises(StoreError):
                other.claim(Desk)
        assert other.claim(Desk) is None  # each was an error once, and is left alone
        assert other.claim(Desk, id="two") is None
    assert every_row() == before
    assert {claimed(store).id, claimed(store).id} == {"one", "two"}


def test_a_row_that_does_not_fit_is_tried_again(store: Store, clock: Clock) -> None:
    """A row that is left alone is claimed once the lease is over and it is as it was."""
    store.save("one", plan_of(LOOK), note="")
    (row,) = every_row()
    for token, found in ((1, None), (row["token"], "c2")):
        with somebody() as rows:
            rows.run("UPDATE lutum_call SET token = ?", token)
        clock.move(10)
        if found is None:
            with pytest.raises(StoreError):
                store.claim(Desk, lease=10)
            assert store.claim(Desk) is None
        else:
            assert claimed(store).call.id == found


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("lutum_conversation", "note"),
        ("lutum_conversation", "plan"),
        ("lutum_conversation", "version"),
        ("lutum_call", "body"),
        ("lutum_call", "token"),
    ],
)
def test_without_a_key_careless_edits_are_found(where: str, table: str, column: str) -> None:
    """Without a key, an edit by somebody who leaves the seal as it is is refused as well."""
    with open_store(where) as store:
        store.save("one", plan_of(*CALLS[:1]), note="note")
        store.waiting()
        with somebody() as rows:
            changed = f"{column} + 1" if column in ("version", "token") else f"{column} || ' '"
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


def sealed_again(table: str) -> None:
    """Seal the rows of a table anew, as somebody would who has the key, where they have a seal."""
    for row in list(last().execute(f"SELECT rowid, * FROM {table}")):
        names = [each[0] for each in last().execute(f"SELECT rowid, * FROM {table}").description]
        cells = dict(zip(names, row, strict=True))
        place = cells.pop("rowid")
        if table == "lutum_conversation":
            cells = {name: cell for name, cell in cells.items() if name not in ("note", "plan")}
        try:
            seal = sealed(cells, KEY)["seal"]
        except TypeError:
            seal = ""
        last().execute(f"UPDATE {table} SET seal = ? WHERE rowid = ?", (seal, place))


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
        lambda: looked(store.load("one", Desk)),
        lambda: [store.decide("one", each.approve(), Desk) for each in store.waiting("one")],
        lambda: [store.claim(Desk) for _ in range(9)],
        lambda: looked(asyncio.run(store.run("one", Desk))),
        lambda: store.save("one", None, note="", version=store.load("one").version),
    ]


def is_of_its_column(column: str, cell: Any) -> bool:
    """Whether a store may write this there, whatever it means."""
    if column in ("version", "round", "place", "token", "started", "until"):
        is_count = isinstance(cell, int) and 0 <= cell <= 2**62
        return is_count or (column == "until" and cell is None)
    if column == "conversation" or (column in ("owner", "plan") and cell is None):
        return True  # a row of another conversation is missed by this one
    return isinstance(cell, str) and column != "state" and (column != "body" or cell[:1] == "{")


@pytest.mark.slow
def test_a_value_that_no_store_writes_is_refused() -> None:
    """Wrong types, bytes and numbers out of range, in any cell, sealed by whoever has the key: each
    way to read them gives a `StoreError`, or never saw them; so does JSON of another shape.
    """
    with restored():
        cells = [
            each for each in values() if each[0] != "lutum_store" and not each[2].endswith("seal")
        ]
    edits = list(product(cells, ODD))
    for cell in cells:
        if cell[2] in ("body", "note"):
            edits += [(cell, json.dumps(each)) for each in misshapen(json.loads(cell[3]))]
    bad: list[Any] = []
    for (table, found, column, value), other in edits:
        if other == value:
            continue
        with restored() as store:
            with suppress(sqlite3.IntegrityError):  # the database itself refuses it
                last().execute(f"UPDATE {table} SET {column} = ? WHERE {found}", (other,))
            if column in ("note", "plan"):
                digest = "" if other is None else sha256(str(other).encode()).hexdigest()
                last().execute(f"UPDATE {table} SET {column}_digest = ? WHERE {found}", (digest,))
            kept = last().execute(f"SELECT {column} FROM {table} WHERE {found}").fetchone()
            fits = is_of_its_column(column, other if kept is None else kept[0])
            sealed_again(table)
            for at, step in enumerate(steps_of(store)):
                try:
                    step()
                except LutumError as error:
                    if not fits and not isinstance(error, StoreError | StaleError):
                        bad.append((column, other, at, error))
                except Exception as error:  # noqa: BLE001 - all are told
                    bad.append((column, other, at, error))
    assert bad == []


@over("column", ["token", "started", "round", "until", "place"])
def test_a_number_out_of_range_is_an_edit(where: str, column: str) -> None:
    """A number that cannot be counted on is refused on both databases, whoever sealed it."""
    with open_store(where, key=KEY) as store:
        for at, number in enumerate((-1, 2**63 - 1)):
            id = f"{column}{at}"
            store.save(id, plan_of(LOOK), note="")
            with somebody() as rows:
                (row,) = [row for row in rows.named("lutum_call") if row["conversation"] == id]
                rows.run("DELETE FROM lutum_call WHERE conversation = ?", id)
            write({**row, column: number})
            with pytest.raises(StoreError, match="was edited by somebody else"):
                store.load(id, Desk)


def test_a_row_without_a_seal_is_none_of_ours() -> None:
    """What cannot be sealed, such as bytes, and carries no seal is not taken for sealed."""
    with restored() as store:
        body = last().execute("SELECT body FROM lutum_call WHERE place = 3").fetchone()[0]
        last().execute("UPDATE lutum_call SET body = ?, seal = ''", (body.encode(),))
        for step in (store.waiting, lambda: store.claim(Desk), lambda: store.load("one", Desk)):
            with pytest.raises(StoreError):
                step()


def test_steps_of_a_row_follow_those_of_its_plan(store: Store) -> None:
    """A row whose steps are not those that its plan has since is a PlanError."""
    store.save("one", plan_of(LOOK), note="")
    started(store, claimed(store))
    forge(0, body=with_body(0, after=0))
    with pytest.raises(PlanError):
        store.load("one", Desk)
