"""The tables of a store, and the seals of their rows.

A conversation is one row, with your text and the plan of its open round. Each call that was open
when that plan was saved has a row of its own: how far it is, who has it until when, and its
outcome. The text of the plan is the truth of what may be done, the rows of what was done.

Every row is sealed as a whole, and says itself which conversation, round and call it is of.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args
from uuid import uuid4

from .._text.json import refuse_constant, shorten
from .._transcript.saved import DIGEST, HMAC, Saved, seal_of
from ..errors import StaleError, StoreError
from ._database import Database, Row, Rows

VERSION = 1
"""The version of the tables."""

TABLES = (
    "CREATE TABLE lutum_store (one INTEGER PRIMARY KEY, version INTEGER NOT NULL)",
    f"INSERT INTO lutum_store VALUES (1, {VERSION})",
    """
    CREATE TABLE lutum_conversation (
        id TEXT PRIMARY KEY, version BIGINT NOT NULL, round BIGINT NOT NULL,
        note_digest TEXT NOT NULL, plan_digest TEXT NOT NULL, seal TEXT NOT NULL,
        note TEXT NOT NULL, plan TEXT)
    """,
    """
    CREATE TABLE lutum_call (
        conversation TEXT NOT NULL, place BIGINT NOT NULL, round BIGINT NOT NULL,
        state TEXT NOT NULL, token BIGINT NOT NULL, started BIGINT NOT NULL, owner TEXT, until
        BIGINT, body TEXT NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (conversation, place))
    """,
    "CREATE INDEX lutum_call_until ON lutum_call (until, conversation, place)",
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
    """Return what the store says of its tables; None if they were not there, and were made."""
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


def _digest(text: str | None) -> str:
    """Name a text, so that a step need not read it to seal its row again."""
    return "" if text is None else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# A database holds in any cell what somebody else may have put there, so each is looked at as it is
# read, before it is compared, counted on or sealed.


# By `type`: True would be an integer to `isinstance`, and a cell of another type than was written
# means that somebody else wrote it.
def _is_text(cell: object) -> bool:
    return type(cell) is str


def _is_count(cell: object) -> bool:
    return type(cell) is int and 0 <= cell <= _MOST


_MOST = 2**62
"""What may be added to a number in a cell, such as a lease, leaves it one that a cell can hold."""

_Kind: TypeAlias = Callable[[object], bool]


def _read(cells: Row, kinds: Mapping[str, _Kind], what: str) -> Row:
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
    """Return the ids of conversations that a query found, in order.

    Raises:
        StoreError: One is not a text.
    """
    return sorted(_read(row, {"id": _is_text}, "A conversation")[0] for row in found)


# Anybody who can write to the database could mark a call as approved. The seal is an HMAC over the
# cells of the row; without a key it is a digest, which shows accidents alone.
def _sealed(row: Any, rows: Rows) -> Any:
    return row._replace(seal=":".join(seal_of(row._asdict(), rows.key)))


def _check_seal(row: Any, rows: Rows, what: str) -> None:
    given, made, key = row.seal, _sealed(row, rows).seal, rows.key
    if hmac.compare_digest(made.encode(), given.encode("utf-8", "replace")):
        return
    kind = given.partition(":")[0]
    if kind == (DIGEST if key is not None else HMAC):
        raise StoreError(
            f"{what} was saved without a key, so it cannot be authenticated. Open the store "
            "without `key=` if you trust whoever can write to it."
            if kind == DIGEST
            else f"{what} was saved with a key. Pass the same `key=` to `open_store`, or name the "
            "variable that holds it with `--key-env` at the command line."
        )
    why = " or sealed with another key" if key is not None else ""
    raise StoreError(
        f"{what} was edited by somebody else{why}, so nothing of it counts. Put the database back "
        "as it was, or give the conversation up."
    )


HEAD = "id, version, round, note_digest, plan_digest, seal"


class Head(NamedTuple):
    """The row of a conversation, without its texts.

    Attributes:
        version: Raised with whatever changes what the conversation comes to.
        round: The number of the last round.
        note_digest: Names the note.
        plan_digest: Names the plan; empty if no round is open.
    """

    id: str
    version: int
    round: int
    note_digest: str
    plan_digest: str
    seal: str = ""

    @classmethod
    def at(cls, rows: Rows, id: str, *, locked: bool = True) -> Self | None:
        """Read it; if it is locked, nobody else writes to it before this transaction ends.

        Raises:
            StoreError: A store did not write it.
        """
        lock = "{lock}" if locked else ""
        found = rows.one(f"SELECT {HEAD} FROM lutum_conversation WHERE id = ? {lock}", id)
        if found is None:
            return None
        what = f"Conversation {id!r}"
        head = cls(*_read(found, _HEAD_CELLS, what))
        _check_seal(head, rows, what)
        return head

    def next(self) -> Self:
        """Give it at the version that a change makes."""
        return self._replace(version=self.version + 1)

    def note_text(self, rows: Rows) -> str:
        """Read the note alone."""
        return self._text(rows, "note", self.note_digest) or ""

    def plan_text(self, rows: Rows) -> str | None:
        """Read the plan alone."""
        return self._text(rows, "plan", self.plan_digest)

    def _text(self, rows: Rows, column: str, digest: str) -> str | None:
        found = rows.one(f"SELECT {column} FROM lutum_conversation WHERE id = ?", self.id)
        text = None if found is None else found[0]
        if not isinstance(text, str | None) or _digest(text) != digest:
            raise StoreError(
                f"The {column} of conversation {self.id!r} was edited by somebody else, so nothing "
                "of it counts. Put the database back as it was."
            )
        return text

    def write(self, rows: Rows) -> None:
        """Put it in place of what is there."""
        rows.run(
            "UPDATE lutum_conversation SET version = ?, round = ?, note_digest = ?, "
            "plan_digest = ?, seal = ? WHERE id = ?",
            *(*_sealed(self, rows)[1:], self.id),
        )

    def write_texts(self, rows: Rows, note: str, plan: str | None) -> None:
        """Put it in place of what is there, with these texts."""
        # The row is sealed with the digests of the texts, and not with the texts: a step of a call
        # writes a new seal without reading a transcript that may be megabytes.
        self._replace(note_digest=_digest(note), plan_digest=_digest(plan)).write(rows)
        rows.run(
            "UPDATE lutum_conversation SET note = ?, plan = ? WHERE id = ?", note, plan, self.id
        )


_HEAD_CELLS: Mapping[str, _Kind] = {
    **dict.fromkeys(Head._fields, _is_text),
    "version": _is_count,
    "round": _is_count,
}

State: TypeAlias = Literal["ready", "started", "waiting", "awaiting", "unreviewed", "ended", "done"]

COLUMNS = "conversation, place, round, state, token, started, owner, until, body, seal"


# `("ticket-7", 0, 3, "started", 2, 2, "worker-1", 1767268860000, "{…}", "hmac-sha256:…")`: the
# first call of round 3 runs, under the second claim, until a minute from now. One row a call, so
# that workers on calls of one conversation do not wait for each other.
class SavedCall(NamedTuple):
    """How far one call is.

    Attributes:
        place: Its place among the calls of the turn, after which stand those within them.
        round: The number of the round.
        state: Whether it may be started, was started, waits for a decision, awaits calls that
            have no result yet, is requested and unreviewed, has ended with a result that
            after-hooks are still to see, or has its result.
        token: Grows with each claim, and with all that makes an earlier claim void.
        started: The token under which it was started last; 0 if it was not.
        owner: Who claimed it last.
        until: When it may be claimed, in milliseconds; None if it may not be.
        body: The rest, as JSON.
    """

    conversation: str
    place: int
    round: int
    state: State
    token: int
    started: int
    owner: str | None
    until: int | None
    body: str
    seal: str = ""

    def check(self, rows: Rows) -> None:
        """Make sure that a store wrote this.

        Raises:
            StoreError: It did not.
        """
        what = f"What is stored of call {self.place} of conversation {self.conversation!r}"
        _check_seal(self, rows, what)

    @property
    def parsed_body(self) -> Saved:
        """The body as data.

        Raises:
            StoreError: It is not an object of JSON.
        """
        try:
            data = json.loads(self.body, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            data = None
        return Saved(data, f"call {self.place}", StoreError)

    @property
    def requested_by(self) -> int | None:
        """The place of the call that requested this one; None for one of the turn."""
        by: object = None
        with suppress(StoreError):  # whoever edited a row holds up no other
            by = self.parsed_body.data.get("requested_by")
        return by if isinstance(by, int) and by < self.place else None

    @classmethod
    def _where(cls, rows: Rows, which: str, *values: object) -> list[Self]:
        """Read the rows for which a condition holds.

        Raises:
            StoreError: A cell is such as a store never writes.
        """
        of = "What is stored of call {} of conversation {}"
        return [
            cls(*_read(row, _CALL_CELLS, of.format(shorten(row[1]), shorten(row[0]))))
            for row in rows.all(f"SELECT {COLUMNS} FROM lutum_call WHERE {which}", *values)
        ]

    @classmethod
    def at(cls, rows: Rows, id: str, place: int) -> Self | None:
        """Read the row of one call."""
        return next(iter(cls._where(rows, "conversation = ? AND place = ?", id, place)), None)

    @classmethod
    def still_open(cls, rows: Rows, id: str) -> list[Self]:
        """Read those of a conversation that have no result, in the order of the turn."""
        return cls._where(rows, "conversation = ? AND state <> 'done' ORDER BY place", id)

    @classmethod
    def checked(cls, rows: Rows, id: str) -> list[Self]:
        """Read all of a conversation, in the same order, and make sure that a store wrote each.

        Raises:
            StoreError: It did not.
        """
        found = cls._where(rows, "conversation = ? ORDER BY place", id)
        for row in found:
            row.check(rows)
        return found

    @classmethod
    def waiting(cls, rows: Rows, id: str | None) -> list[Self]:
        """Read those that wait for a decision, of one conversation or of all."""
        which, values = ("", ()) if id is None else ("AND conversation = ?", (id,))
        found = cls._where(rows, f"state = 'waiting' {which}", *values)
        return sorted(found, key=lambda row: row[:2])

    @classmethod
    def under_lease(cls, rows: Rows) -> list[Self]:
        """Read those of all conversations that somebody has claimed and not given up."""
        return cls._where(rows, "until > {now}")

    @staticmethod
    def claimable(rows: Rows, id: str | None, most: int) -> list[tuple[str, int]]:
        """Say which may be claimed now, by conversation and place: the longest free first."""
        which, values = ("", ()) if id is None else ("AND conversation = ?", (id,))
        return rows.all(
            f"SELECT conversation, place FROM lutum_call WHERE until <= {{now}} {which} "
            f"ORDER BY until, conversation, place LIMIT {most}",
            *values,
        )

    def write(self, rows: Rows) -> None:
        """Put it in place of what is there."""
        rows.run(
            "UPDATE lutum_call SET round = ?, state = ?, token = ?, started = ?, owner = ?, "
            "until = ?, body = ?, seal = ? WHERE conversation = ? AND place = ?",
            *(*_sealed(self, rows)[2:], self.conversation, self.place),
        )

    def insert(self, rows: Rows) -> None:
        """Insert it: there is no row of this call."""
        marks = ", ".join("?" * len(self))
        rows.run(f"INSERT INTO lutum_call ({COLUMNS}) VALUES ({marks})", *_sealed(self, rows))


_CALL_CELLS: Mapping[str, _Kind] = {
    **dict.fromkeys(SavedCall._fields, _is_text),
    **dict.fromkeys(("place", "round", "token", "started"), _is_count),
    "state": get_args(State).__contains__,
    "owner": lambda cell: cell is None or _is_text(cell),
    "until": lambda cell: cell is None or _is_count(cell),
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
    """Take a hold that nobody has, or whose lease ran out; say whether it was taken."""
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
