"""Which calls may be claimed next: those that follow no other that is still open.

A call that requested others follows these, and in a round whose order is kept a call follows those
that it conflicts with. Who follows whom is a table, and each call counts how many it follows. A
call that ends counts down those that follow it, in its own transaction; whoever reaches zero may
be claimed. Between conversations nothing is written down: a claim is taken, and gives way if it
meets another one that is live.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple, Self

from .. import AnyToolCall
from .._text.json import shorten
from ..capabilities import ResourceAccess, waits_for
from ..errors import MisuseError, StoreError
from ..saved import Saved
from ._database import Rows, Statement
from ._rows import CLAIMABLE, IS_CLAIMED, SavedCall, check_word


# In a row: `{"turns": {"in_order": true, "across": ["files"], "accesses": [{"area": "files",
# "target": "docs/a.md", "mutating": true}]}}`. Written down, because a worker that claims has the
# rows and not the tools of other conversations.
class ClaimOrder(NamedTuple):
    """In which order the calls of a round may be claimed.

    Attributes:
        in_order: Whether what accesses the same keeps the order of the turn.
        across: The areas that are shared with all conversations that name them.
    """

    in_order: bool = False
    across: tuple[str, ...] = ()

    def with_changes(self, in_order: bool | None, across: Iterable[str] | None) -> Self:
        """Return a copy with these settings; None keeps the present one.

        Raises:
            MisuseError: The areas are not a list, or `in_order` is neither True nor False.
            InvalidValueError: An area is not a word.
        """
        if isinstance(across, str) or not isinstance(across, Iterable | None):
            area = across if isinstance(across, str) else "files"
            raise MisuseError(
                f"across={shorten(across)} is not a list of areas. Pass one, such as [{area!r}]."
            )
        is_kept = self.in_order if in_order is None else in_order
        MisuseError.check_flag("in_order", is_kept)
        named = self.across if across is None else tuple(sorted(set(across)))
        for area in named:
            check_word("area", area)
        return type(self)(is_kept, named)

    @classmethod
    def of(cls, row: SavedCall) -> Self:
        """Read the order of the round of a call."""
        if "turns" not in row.parsed_body.data:
            return cls()
        return cls.read(row.parsed_body.inner("turns"))

    @classmethod
    def read(cls, said: Saved) -> Self:
        """Read what `data` gave."""
        return cls(said.get("in_order", bool), said.texts("across"))

    @property
    def data(self) -> dict[str, Any]:
        """The order as plain data."""
        return {"in_order": self.in_order, "across": list(self.across)}

    def row_data(self, call: AnyToolCall) -> dict[str, Any]:
        """Return what the body of a row keeps of the resources of its call; empty if unused."""
        if not (self.in_order or self.across):
            return {}
        accesses = [each._asdict() for each in call.accesses]
        return {"turns": {**self.data, "accesses": accesses}}


_EVERYTHING = (ResourceAccess("*", None, mutating=True),)
"""What a call is assumed to access if nobody knows better."""


def _touched(row: SavedCall) -> tuple[ResourceAccess, ...]:
    said = row.parsed_body.inner("turns").each("accesses")
    return tuple(
        ResourceAccess(each.get("area", str), each.data.get("target"), each.get("mutating", bool))
        for each in said
    )


def _order_and_touches(row: SavedCall, rows: Rows) -> tuple[ClaimOrder, tuple[ResourceAccess, ...]]:
    """Read a row to compare with; one that was edited is assumed to access everything."""
    try:
        row.check(rows.key)
        order = ClaimOrder.of(row)
        return order, _touched(row) if order != ClaimOrder() else _EVERYTHING
    except StoreError:
        return ClaimOrder(), _EVERYTHING


def lock_calls(rows: Rows, id: str) -> None:
    """Let nobody else write to calls of a conversation before this transaction ends.

    In a statement of its own: a later one sees what others wrote before they let go of a call.
    """
    rows.all("SELECT call FROM lutum_call WHERE conversation = ? ORDER BY call {lock}", id)


def reorder(rows: Rows, id: str) -> None:
    """Write down which open calls of a conversation follow which, and what that blocks.

    A call that requested others follows these. In a round whose order is kept, a call that was not
    started follows the earlier ones that it conflicts with.

    Args:
        rows: The transaction, which has locked these calls, see `lock_calls`.
        id: The conversation.
    """
    found = _inner_first(
        SavedCall.where(rows, "conversation = ? AND state <> 'done' ORDER BY call", id)
    )
    edges = {(row.call, row.requested_by) for row in found if row.requested_by is not None}
    read = [_order_and_touches(row, rows) for row in found]
    # For read a, write a, read b it gives [[], [0], []]: the earlier calls that each call meets.
    waits = waits_for(touches for _, touches in read)
    for row, (order, _), before in zip(found, read, waits, strict=True):
        if order.in_order and row.state in ("ready", "waiting", "unreviewed"):
            edges |= {(found[number].call, row.call) for number in before}
    rows.run("DELETE FROM lutum_follower WHERE conversation = ?", id)
    count = Counter(follower for _, follower in edges)
    statements: list[Statement] = [
        ("INSERT INTO lutum_follower VALUES (?, ?, ?)", (id, *edge)) for edge in sorted(edges)
    ]
    for row in found:
        blockers, is_free = count[row.call], row.due is None
        is_next = row.state in CLAIMABLE and is_free and not blockers
        if blockers != row.blockers or is_next is (row.slot is None):
            slot = "COALESCE(slot, {now})" if is_next else "NULL"
            set_them = f"UPDATE lutum_call SET blockers = ?, slot = {slot}"
            statements.append(
                (f"{set_them} WHERE conversation = ? AND call = ?", (blockers, id, row.call))
            )
    rows.many(statements)


def follow(rows: Iterable[SavedCall]) -> Iterator[Statement]:
    """Yield what lets calls follow those that they just requested, in a round without an order."""
    for row in rows:
        by = row.requested_by
        if by is not None and row.state != "done":
            own = row.conversation
            yield "INSERT INTO lutum_follower VALUES (?, ?, ?)", (own, row.call, by)
            blocked = "UPDATE lutum_call SET blockers = blockers + 1, slot = NULL"
            yield f"{blocked} WHERE conversation = ? AND call = ?", (own, by)


# In the transaction that writes the last result, so that two calls that end at once cannot both
# see the other one open, and leave the follower blocked forever.
def release(row: SavedCall, entry: str) -> Iterator[Statement]:
    """Yield what lets those go on that followed a call, if an entry of it was written.

    Args:
        row: The call, which has its result.
        entry: The id of the entry that ends it.
    """
    of, own = "conversation = ? AND call = ?", (row.conversation, row.call)
    written = (
        "EXISTS (SELECT 1 FROM lutum_entry WHERE conversation = ? AND round = ? AND call = ? "
        "AND n = ? AND id = ?)"
    )
    key = (row.conversation, row.round, row.call, row.n - 1, entry)
    yield (
        (
            "UPDATE lutum_call SET blockers = blockers - 1, slot = CASE WHEN blockers = 1 AND "
            "due IS NULL AND state IN ('ready', 'awaiting') THEN {now} ELSE slot END "
            "WHERE conversation = ? AND call IN "
            f"(SELECT follower FROM lutum_follower WHERE {of}) AND {written}"
        ),
        (row.conversation, *own, *key),
    )
    yield f"DELETE FROM lutum_follower WHERE {of} AND {written}", (*own, *key)
    if row.shared:
        yield wake_shared()


def wake_shared() -> Statement:
    """Return what has those looked at again that gave way to a call of another conversation."""
    return (
        (
            "UPDATE lutum_call SET due = NULL, slot = CASE WHEN blockers = 0 THEN {now} END "
            "WHERE shared = 1 AND claim IS NULL AND due IS NOT NULL "
            "AND state IN ('ready', 'awaiting')"
        ),
        (),
    )


def lock_shared(rows: Rows, *, is_postgres: bool) -> None:
    """Let nobody else look which claims meet before this transaction ends."""
    if is_postgres:
        rows.all(f"SELECT pg_advisory_xact_lock({_SHARED_LOCK})")


_SHARED_LOCK = 0x6C7574756D  # "lutum"


def _inner_first(rows: list[SavedCall]) -> list[SavedCall]:
    """Sort rows in the order of the turn, each after those within it, as none waits for it."""
    # Calls `c1 -> c1/1, c1/2` and `c2` sort as c1/1, c1/2, c1, c2: after the paths (0, 0) and
    # (0, 1) comes 0 with infinity at its end, since c1 comes back when those two have ended.
    by_call = {row.call: row for row in rows}

    def path(row: SavedCall) -> tuple[float, ...]:
        by = by_call.get(row.requested_by or "")
        return (row.place,) if by is None else (*path(by), row.place)

    return sorted(rows, key=lambda row: (*path(row), inf))


def gives_way(rows: Rows, row: SavedCall) -> int | None:
    """Say until when a call that was just claimed gives way to calls of other conversations.

    Args:
        rows: A transaction that has the lock of all such claims.
        row: The row of the call.

    Returns:
        When the first lease of a call ends that accesses the same; None if there is none.
    """
    order, touched = _order_and_touches(row, rows)
    # The rows are locked: what ends right now is written first, or wakes this call when it is.
    which = f"shared = 1 AND {IS_CLAIMED} ORDER BY conversation, call {{lock}}"
    others = SavedCall.where(rows, which)
    soon = rows.now() + 1000
    busy = [
        max(other.due or 0, soon)
        for other in others
        if other[:2] != row[:2] and _meet(order, touched, other, rows)
    ]
    return min(busy, default=None)


def _meet(
    order: ClaimOrder,
    touched: tuple[ResourceAccess, ...],
    other: SavedCall,
    rows: Rows,
) -> bool:
    theirs, touches = _order_and_touches(other, rows)
    return any(
        one.conflicts_with(other_one)
        for area in set(order.across).intersection(theirs.across)
        for one in touched
        for other_one in touches
        if one.may_be_in(area) and other_one.may_be_in(area)
    )
