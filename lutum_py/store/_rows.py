"""The tables of a store, and the seals of their rows.

A conversation is one row: your text, your session, and the record of its open round. What happens
to the calls of the round are entries, each a row under (conversation, round, call, n): of two
workers that write the same number, one gets the violation of the key. Nothing is ever changed in
an entry, and the outcome of a call is read from its entries alone.

Beside them, each call has one row for as long as its round is open. It is what workers look for:
whether the call may be claimed, and who has it until when. Of that a worker believes nothing: it
reads the entries. The row also seals how many entries there are and the last of them, so that a
deleted one leaves a trace.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, get_args
from uuid import uuid4

from .._text.json import compact_json, refuse_constant, shorten
from ..errors import InvalidValueError, StaleError, StoreError
from ..saved import Saved
from ._database import Database, Row, Rows, Statement

VERSION = 1
"""The version of the tables."""

TABLES = (
    "CREATE TABLE lutum_store (one INTEGER PRIMARY KEY, version INTEGER NOT NULL)",
    f"INSERT INTO lutum_store VALUES (1, {VERSION})",
    """
    CREATE TABLE lutum_conversation (
        id TEXT PRIMARY KEY, version BIGINT NOT NULL, counted BIGINT NOT NULL, round TEXT NOT NULL,
        note_digest TEXT NOT NULL, session_digest TEXT NOT NULL, record_digest TEXT NOT NULL,
        changed BIGINT NOT NULL, seal TEXT NOT NULL, note TEXT NOT NULL, session TEXT, record TEXT)
    """,
    "CREATE INDEX lutum_conversation_round ON lutum_conversation (id) WHERE round <> ''",
    "CREATE INDEX lutum_conversation_changed ON lutum_conversation (changed)",
    """
    CREATE TABLE lutum_entry (
        conversation TEXT NOT NULL, round TEXT NOT NULL, call TEXT NOT NULL, n BIGINT NOT NULL,
        id TEXT NOT NULL, body TEXT NOT NULL, seal TEXT NOT NULL,
        PRIMARY KEY (conversation, round, call, n))
    """,
    """
    CREATE TABLE lutum_call (
        conversation TEXT NOT NULL, call TEXT NOT NULL, root TEXT NOT NULL, place BIGINT NOT NULL,
        round TEXT NOT NULL, n BIGINT NOT NULL, last TEXT NOT NULL, body TEXT NOT NULL,
        shown TEXT NOT NULL, seal TEXT NOT NULL, state TEXT NOT NULL, tool TEXT NOT NULL,
        shared INTEGER NOT NULL, since BIGINT NOT NULL, blockers BIGINT NOT NULL, slot BIGINT,
        due BIGINT, token BIGINT NOT NULL, claim TEXT, worker TEXT, owner TEXT,
        PRIMARY KEY (conversation, call))
    """,
    # Only what is looked for is in an index: a look that finds nothing costs the same with a
    # hundred thousand calls that wait.
    "CREATE INDEX lutum_call_slot ON lutum_call (slot) WHERE slot IS NOT NULL",
    "CREATE INDEX lutum_call_next ON lutum_call (conversation, slot) WHERE slot IS NOT NULL",
    "CREATE INDEX lutum_call_due ON lutum_call (due) WHERE due IS NOT NULL",
    "CREATE INDEX lutum_call_waiting ON lutum_call (conversation, call) WHERE state = 'waiting'",
    "CREATE INDEX lutum_call_asked ON lutum_call (tool, since) WHERE state = 'waiting'",
    "CREATE INDEX lutum_call_open ON lutum_call (conversation) WHERE state <> 'done'",
    "CREATE INDEX lutum_call_inner ON lutum_call (conversation, root) WHERE root <> call",
    "CREATE TABLE lutum_worker (id TEXT PRIMARY KEY, until BIGINT NOT NULL)",
    # Whoever ends counts down the blockers of those that follow it.
    """
    CREATE TABLE lutum_follower (
        conversation TEXT NOT NULL, call TEXT NOT NULL, follower TEXT NOT NULL,
        PRIMARY KEY (conversation, call, follower))
    """,
    """
    CREATE TABLE lutum_decision (
        conversation TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (conversation, id))
    """,
    """
    CREATE TABLE lutum_hold (
        conversation TEXT PRIMARY KEY, token TEXT NOT NULL, owner TEXT NOT NULL,
        until BIGINT NOT NULL)
    """,
)


def prepare(database: Database, *, is_there: bool = False) -> None:
    """Make the tables if there are none, and make sure that they are of this version.

    Args:
        database: The database.
        is_there: Whether the tables have to be there, so that none are made.

    Raises:
        StoreError: They are of another version, or the database failed.
    """
    found = _read_or_make(database, () if is_there else TABLES)
    if found is None:
        return  # just made, so of this version
    if found != [(1, VERSION)]:
        said = found[0][1] if len(found) == 1 and found[0][0] == 1 else found
        raise StoreError(
            f"The tables at {database.name} are of version {shorten(said)}; this release knows "
            f"version {VERSION}. Use the release that made them, or another database."
        )


def _read_or_make(database: Database, tables: Sequence[str]) -> list[Row] | None:
    """Return what is kept about the tables; None if they were not there, and were made."""
    query = "SELECT one, version FROM lutum_store"
    try:
        return _all(database, query)
    except StoreError:  # no such table, unless whatever failed fails once more
        if not tables:
            raise
    try:
        with database.write() as rows:
            for statement in tables:
                rows.run(statement)
    except StoreError as failed:  # or somebody else made it just now
        try:
            return _all(database, query)
        except StoreError:
            raise failed from failed.__cause__
    return None


def _all(database: Database, query: str) -> list[Row]:
    # While somebody makes the tables, a query of PostgreSQL may find the table, and be too old to
    # see its row; the next one sees both.
    for _ in range(2):
        with database.read() as rows:
            if found := rows.all(query):
                return found
    return []


_LONGEST_WORD = 500
"""A length that the index of either database takes, whichever letters a text has."""


def check_word(what: str, value: object) -> None:
    """Refuse what a database cannot keep as a text."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= _LONGEST_WORD
        or "\0" in value
        or any("\ud800" <= letter <= "\udfff" for letter in value)
    ):
        raise InvalidValueError(
            f"The {what} of a store's entry is {shorten(value)}. Pass a text of 1 to "
            f"{_LONGEST_WORD} characters, without NUL and halves of surrogate pairs."
        )


def _digest(text: str | None) -> str:
    """Name a text, so that its row is sealed and read without it."""
    return "" if text is None else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# A database holds in any cell what somebody else may have put there, so each is looked at as it is
# read, before it is compared, counted on or sealed.


# By `type`: True would be an integer to `isinstance`, and a cell of another type than was written
# means that somebody else wrote it.
def _is_text(cell: object) -> bool:
    return type(cell) is str


def _is_count(cell: object) -> bool:
    return type(cell) is int and 0 <= cell <= _MOST


def _or_null(is_fit: _Kind) -> _Kind:
    return lambda cell: cell is None or is_fit(cell)


_MOST = 2**62
"""What may be added to a number in a cell, such as a lease, leaves it one that a cell can hold."""

_Kind: TypeAlias = Callable[[object], bool]


def _read(cells: Sequence[Any], kinds: Mapping[str, _Kind], what: str) -> Sequence[Any]:
    """Return the cells of a row that a store may have written.

    Raises:
        StoreError: It did not write one of them.
    """
    for (name, is_fit), cell in zip(kinds.items(), cells, strict=True):
        if not is_fit(cell):
            raise StoreError(
                f"{what} was edited by somebody else: its `{name}` is {shorten(cell)}. Put the "
                "database back as it was, or give the conversation up."
            )
    return cells


def ids_in(found: Iterable[Row]) -> list[str]:
    """Return the ids of conversations that a query found.

    Raises:
        StoreError: One is not a text.
    """
    return [_read(row, {"id": _is_text}, "A conversation")[0] for row in found]


# Anybody who can write to the database could mark a call as approved. The seal is an HMAC over the
# cells of the row; without a key it is a digest, which shows accidents alone.
def _seal_of(cells: Mapping[str, Any], key: bytes | None) -> str:
    text = json.dumps(cells, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    encoded = text.encode("utf-8", "surrogatepass")
    if key is None:
        return f"{_DIGEST}:{sha256(encoded).hexdigest()}"
    return f"{_HMAC}:{hmac.new(key, encoded, sha256).hexdigest()}"


_DIGEST: Final = "sha256"
_HMAC: Final = "hmac-sha256"


def _check_seal(given: str, made: str, what: str) -> None:
    if hmac.compare_digest(made.encode(), given.encode("utf-8", "replace")):
        return
    kind, wanted = given.partition(":")[0], made.partition(":")[0]
    if kind != wanted and kind in (_DIGEST, _HMAC):
        raise StoreError(
            f"{what} was saved without a key, so it cannot be authenticated. Open the store "
            "without `key=` if you trust whoever can write to it."
            if kind == _DIGEST
            else f"{what} was saved with a key. Pass the same `key=` to `open_store`, or name the "
            "variable that holds it with `--key-env` at the command line."
        )
    why = " or sealed with another key" if wanted == _HMAC else ""
    raise StoreError(
        f"{what} was edited by somebody else{why}, so nothing of it counts. Put the database back "
        "as it was, or give the conversation up."
    )


HEAD = "id, version, counted, round, note_digest, session_digest, record_digest, changed, seal"


class Head(NamedTuple):
    """The row of a conversation, without its texts.

    Attributes:
        version: Raised with each save.
        counted: How many entries the round had then; each one more raises the version by one.
        round: The id of the open round; empty if none is open.
        note_digest: Names the note.
        session_digest: Names the session.
        record_digest: Names the record of the round.
        changed: When it was saved last, in milliseconds.
    """

    id: str
    version: int
    counted: int
    round: str
    note_digest: str
    session_digest: str
    record_digest: str
    changed: int
    seal: str = ""

    @classmethod
    def of(cls, cells: Sequence[Any], key: bytes | None) -> Self:
        """Take cells that were read for a head.

        Raises:
            StoreError: A store did not write them.
        """
        what = f"Conversation {shorten(cells[0])}"
        head = cls(*_read(cells, _HEAD_CELLS, what))
        _check_seal(head.seal, head.sealed(key).seal, what)
        return head

    def sealed(self, key: bytes | None) -> Self:
        cells = self._asdict()
        del cells["seal"]
        return self._replace(seal=_seal_of(cells, key))

    @classmethod
    def at(cls, rows: Rows, id: str, *, locked: bool = True) -> Self | None:
        """Read it; if it is locked, nobody else saves it before this transaction ends.

        Raises:
            StoreError: A store did not write it.
        """
        lock = "{lock}" if locked else ""
        found = rows.one(f"SELECT {HEAD} FROM lutum_conversation WHERE id = ? {lock}", id)
        return None if found is None else cls.of(found, rows.key)

    def texts(self, rows: Rows, *columns: str) -> list[str | None]:
        """Read some of the texts.

        Raises:
            StoreError: Somebody else wrote one.
        """
        names = ", ".join(columns)
        found = rows.one(f"SELECT {names} FROM lutum_conversation WHERE id = ?", self.id) or ()
        for column, text in zip(columns, found, strict=True):
            is_text = isinstance(text, str | None)
            if not is_text or _digest(text) != getattr(self, f"{column}_digest"):
                raise StoreError(
                    f"The {column} of conversation {self.id!r} was edited by somebody else, so "
                    "nothing of it counts. Put the database back as it was."
                )
        return [*found]

    def write(self, rows: Rows, **texts: str | None) -> Self:
        """Put it in place of what is there, with those texts that are given; return it so."""
        named: dict[str, Any] = {
            f"{column}_digest": _digest(text) for column, text in texts.items()
        }
        head = self._replace(**named).sealed(rows.key)
        cells = {**dict(zip(Head._fields[1:], head[1:], strict=True)), **texts}
        names = ", ".join(f"{name} = ?" for name in cells)
        rows.run(f"UPDATE lutum_conversation SET {names} WHERE id = ?", *cells.values(), self.id)
        return head


_HEAD_CELLS: Mapping[str, _Kind] = {
    **dict.fromkeys(Head._fields, _is_text),
    **dict.fromkeys(("version", "counted", "changed"), _is_count),
}

State: TypeAlias = Literal["ready", "started", "waiting", "awaiting", "unreviewed", "ended", "done"]

ENTRY = "conversation, round, call, n, id, body, seal"


class Entry(NamedTuple):
    """One entry of the history of a call.

    Attributes:
        n: Its number.
        id: Its own id, by which whoever wrote it knows it again.
        body: Its steps, as JSON.
    """

    conversation: str
    round: str
    call: str
    n: int
    id: str
    body: str
    seal: str = ""

    def sealed(self, last: str, key: bytes | None) -> Self:
        """Seal it behind the entry before it.

        Args:
            last: The seal of that entry; empty if there is none.
            key: The key of the store.
        """
        cells = self._asdict()
        cells["seal"] = last
        return self._replace(seal=_seal_of(cells, key))

    def data(self) -> dict[str, Any]:
        """Return it as a plan takes it."""
        return {"call": self.call, "n": self.n, "steps": parsed(self.body, self.call)}

    def insert(self) -> Statement:
        """Return what inserts it."""
        marks = "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return f"INSERT INTO lutum_entry ({ENTRY}) {marks}", tuple(self)

    def insert_if(self, row: SavedCall) -> Statement:
        """Return what inserts it, if the row was put in place that counts it."""
        cells = "?, ?, ?, CAST(? AS BIGINT), ?, ?, ?"
        which = "conversation = ? AND call = ? AND round = ? AND n = ? AND last = ?"
        return (
            (
                f"INSERT INTO lutum_entry ({ENTRY}) SELECT {cells} "
                f"WHERE EXISTS (SELECT 1 FROM lutum_call WHERE {which}) ON CONFLICT DO NOTHING"
            ),
            (*self, row.conversation, row.call, row.round, row.n, row.last),
        )

    @staticmethod
    def insert_after(update: Statement, entries: Sequence[Entry]) -> Statement:
        """Return one statement that puts a row in place, and if it did, inserts what that counts.

        SQLite has no such statement. On PostgreSQL it saves `BEGIN` and `COMMIT`: a start and a
        finish take two thirds of the time.
        """
        cells = ", ".join(["(?, ?, ?, CAST(? AS BIGINT), ?, ?, ?)"] * len(entries))
        return (
            (
                f"WITH changed AS ({update[0]} RETURNING 1) INSERT INTO lutum_entry ({ENTRY}) "
                f"SELECT of.* FROM changed CROSS JOIN (VALUES {cells}) AS of ON CONFLICT DO NOTHING"
            ),
            (*update[1], *chain.from_iterable(entries)),
        )

    @classmethod
    def read(cls, cells: Sequence[Any]) -> Self:
        """Take cells that were read for an entry.

        Raises:
            StoreError: A store did not write them.
        """
        what = f"An entry of call {shorten(cells[2])} of conversation {shorten(cells[0])}"
        return cls(*_read(cells, _ENTRY_CELLS, what))


_ENTRY_CELLS: Mapping[str, _Kind] = {**dict.fromkeys(Entry._fields, _is_text), "n": _is_count}


def dumped(data: Any) -> str:
    """Write plain data as JSON that either database takes: no halves of surrogate pairs."""
    text = compact_json(data)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(data, separators=(",", ":"))
    return text


def parsed(text: str, call: str) -> Any:
    """Read a text of a store.

    Raises:
        StoreError: It is not JSON.
    """
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise StoreError(
            f"What is stored of call {call!r} is not JSON. Put the database back as it was."
        ) from None


CALL = (
    "conversation, call, root, place, round, n, last, body, shown, seal, state, tool, shared, "
    "since, blockers, slot, due, token, claim, worker, owner"
)


# `("ticket-7", "c1", "c1", 0, "5b1d…", 2, "hmac-sha256:…", "{…}", "", "hmac-sha256:…", "started",
# "pay", 0, 1767268800000, 0, None, 1767268860000, 1, "8f0e…", None, "worker-1")`: the first call of
# a round runs, under the first claim, until a minute from now.
class SavedCall(NamedTuple):
    """The row of one call: what workers look for.

    Attributes:
        root: The call of the turn that it is within, or itself.
        place: Its place among the calls of the round.
        round: The id of the round.
        n: How many entries it has.
        last: The seal of the last one.
        body: What is needed to read the entries, as JSON.
        shown: What a person is shown, as JSON, if it waits for a decision.
        state: How its entries leave it: it may be started, was started, waits for a decision,
            awaits calls without a result, is requested and unreviewed, has a result that
            after-hooks are still to see, or has its result.
        tool: The wire name of its tool.
        shared: 1 if it accesses what its round shares with others, see `across`.
        since: When it got this state, in milliseconds.
        blockers: How many calls it follows that have no result yet.
        slot: If it may be claimed, its place in the queue: the time at which it became free,
            and a second more for each call before it in its round.
        due: If it is claimed, when the lease ends, in milliseconds.
        token: Grows with each claim, and with all that makes an earlier claim void.
        claim: The id of the claim.
        worker: Whose lease it also goes by, see `lutum_worker`.
        owner: Who claimed it last.
    """

    conversation: str
    call: str
    root: str
    place: int
    round: str
    n: int
    last: str
    body: str
    shown: str
    seal: str
    state: State
    tool: str
    shared: int
    since: int
    blockers: int = 0
    slot: int | None = None
    due: int | None = None
    token: int = 0
    claim: str | None = None
    worker: str | None = None
    owner: str | None = None

    def check(self, key: bytes | None) -> Self:
        """Make sure that a store wrote this.

        Raises:
            StoreError: It did not.
        """
        what = f"What is stored of call {self.call!r} of conversation {self.conversation!r}"
        _check_seal(self.seal, self.sealed(key).seal, what)
        return self

    def sealed(self, key: bytes | None) -> Self:
        """Seal what does not change with a claim."""
        return self._replace(seal=_seal_of(dict(zip(_SEALED, self, strict=False)), key))

    @property
    def parsed_body(self) -> Saved:
        """The body as data."""
        return Saved(parsed(self.body, self.call), f"call {self.call}", StoreError)

    @property
    def requested_by(self) -> str | None:
        """The id of the call that requested this one; None for one of the turn."""
        by: object = None
        if self.root != self.call:
            with suppress(StoreError):  # whoever edited a row holds up no other
                by = self.parsed_body.data.get("requested_by")
        return by if isinstance(by, str) else None

    @property
    def parsed_shown(self) -> Saved:
        """What a person is shown, as data."""
        return Saved(parsed(self.shown, self.call), f"call {self.call}", StoreError)

    @classmethod
    def of(cls, cells: Sequence[Any]) -> Self:
        """Take cells that were read for a call.

        Raises:
            StoreError: A cell is such as a store never writes.
        """
        what = f"What is stored of call {shorten(cells[1])} of conversation {shorten(cells[0])}"
        return cls(*_read(cells, _CALL_CELLS, what))

    @classmethod
    def where(cls, rows: Rows, which: str, *values: object) -> list[Self]:
        """Read the rows for which a condition holds."""
        return [
            cls.of(row) for row in rows.all(f"SELECT {CALL} FROM lutum_call WHERE {which}", *values)
        ]

    @classmethod
    def at(cls, rows: Rows, id: str, call: str) -> Self | None:
        """Read the row of one call."""
        return next(iter(cls.where(rows, "conversation = ? AND call = ?", id, call)), None)

    def insert(self) -> Statement:
        """Return what inserts it."""
        marks = ", ".join("?" * len(self))
        insert = f"INSERT INTO lutum_call ({CALL}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        return insert, tuple(self)

    def update(
        self, before: SavedCall, *, claim: str | None = None, keeps: int | None = None
    ) -> Statement:
        """Return what puts it in place of what is there, if that is still what was read.

        Args:
            before: The row that was read.
            claim: The claim that the row has to have; None for any.
            keeps: How long that claim goes on, in milliseconds; None gives it back.
        """
        values: tuple[object, ...] = (
            *(self.n, self.last, self.body, self.shown, self.seal, self.state, self.shared),
        )
        sets = (
            "n = ?, last = ?, body = ?, shown = ?, seal = ?, state = ?, shared = ?, since = {now}"
        )
        if keeps is not None:
            sets, values = f"{sets}, slot = NULL, due = {{now}} + ?", (*values, keeps)
        else:
            slot = "CASE WHEN blockers = 0 THEN {now} END" if self.state in CLAIMABLE else "NULL"
            due = "{now}" if self.state in ("started", "ended") else "NULL"
            sets += (
                f", slot = {slot}, due = {due}, claim = NULL, worker = NULL, owner = NULL, "
                "token = token + 1"
            )
        which, found = before.is_there()
        if claim is not None:
            which, found = f"{which} AND claim = ?", (*found, claim)
        return f"UPDATE lutum_call SET {sets} WHERE {which}", (*values, *found)

    def grow(self, before: SavedCall) -> Statement:
        """Return what puts it in place as `update` does, and leaves it to whoever has it."""
        which, found = before.is_there()
        sets = "n = ?, last = ?, body = ?, seal = ?, shared = ?"
        values = (self.n, self.last, self.body, self.seal, self.shared)
        return f"UPDATE lutum_call SET {sets} WHERE {which}", (*values, *found)

    def is_there(self) -> tuple[str, tuple[object, ...]]:
        # By the seal, too: another order of the round is written without an entry.
        which = "conversation = ? AND call = ? AND round = ? AND n = ? AND seal = ?"
        return which, (self.conversation, self.call, self.round, self.n, self.seal)


_SEALED: Final = SavedCall._fields[:9]
CLAIMABLE: Final = ("ready", "awaiting")
"""The states in which a call has a slot once nothing blocks it."""

MAY_BE_DUE: Final = "(blockers = 0 OR state NOT IN ('ready', 'awaiting'))"
"""Of a call that nobody has started, the lease may run out after another has come before it."""

IS_CLAIMED: Final = (
    "(claim IS NOT NULL AND due IS NOT NULL AND (due > {now} "
    "OR worker IN (SELECT id FROM lutum_worker WHERE until > {now})))"
)
"""Somebody has the call under a lease that still runs. What is claimed has a `due`, by an index."""

_CALL_CELLS: Mapping[str, _Kind] = {
    **dict.fromkeys(SavedCall._fields, _is_text),
    **dict.fromkeys(("place", "n", "since", "blockers", "token"), _is_count),
    "shared": (0, 1).__contains__,
    "state": get_args(State).__contains__,
    **dict.fromkeys(("slot", "due"), _or_null(_is_count)),
    **dict.fromkeys(("claim", "worker", "owner"), _or_null(_is_text)),
}


class Holder(NamedTuple):
    """Who has a conversation, and whether the lease still runs."""

    owner: str
    is_live: bool


def holder(rows: Rows, id: str) -> Holder | None:
    """Say who holds a conversation, if anybody does.

    Raises:
        StoreError: Somebody else wrote that.
    """
    found = rows.one("SELECT owner, until, {now} FROM lutum_hold WHERE conversation = ?", id)
    if found is None:
        return None
    kinds = {"owner": _is_text, "until": _is_count}
    owner, until = _read(found[:2], kinds, f"The hold of {id!r}")
    return Holder(owner, until > found[2])


May: TypeAlias = Callable[[Rows], AbstractContextManager[None]]
"""A context around a transaction that saves; it raises if somebody else has the hold."""


# A row `("ticket-7", token, "worker-3", until)`. One statement takes a free hold and one whose
# lease ran out, so that of two who try at once one changes a row and the other none. A lock of the
# database would end with the connection, and a `with` may last hours.
def take_hold(rows: Rows, id: str, token: str, owner: str, lease: float) -> bool:
    """Take a hold that nobody has, or whose lease ran out; return whether it was taken."""
    taken = rows.run(
        "INSERT INTO lutum_hold VALUES (?, ?, ?, {now} + ?) ON CONFLICT (conversation) DO UPDATE "
        "SET token = excluded.token, owner = excluded.owner, until = excluded.until "
        "WHERE lutum_hold.until <= {now}",
        *(id, token, owner, round(1000 * lease)),
    )
    return taken == 1


def give_back(rows: Rows, id: str, token: str) -> None:
    """Give a hold back, if it is still held."""
    rows.run("DELETE FROM lutum_hold WHERE conversation = ? AND token = ?", id, token)


def owner_of(rows: Rows, id: str) -> str:
    """Name who holds a conversation, for messages."""
    found = holder(rows, id)
    return "somebody who has left it since" if found is None else found.owner


def held_by_nobody(id: str, owner: str) -> May:
    """Make a context that holds a conversation for one transaction, if nobody else holds it.

    When it is entered, it raises a `StaleError` if somebody holds it.
    """

    @contextmanager
    def may(rows: Rows) -> Generator[None]:
        token = uuid4().hex
        # A lease of 0 runs out at once. What keeps others out is the row itself, which is locked
        # until this transaction ends; if the program is killed in it, nothing is left that anybody
        # would wait for.
        if not take_hold(rows, id, token, owner, 0):
            raise StaleError(
                f"Conversation {id!r} is held by {owner_of(rows, id)}, so nobody else saves it. "
                "Nothing was changed. Take it with `store.hold(id, toolset)`, which waits for them."
            )
        yield
        give_back(rows, id, token)

    return may
