"""Which rows may be claimed next, by what their calls access.

In a round whose order is kept, rows that have to wait for others cannot be claimed: their `until`
is NULL, like that of rows that wait for a decision. Each step that may release one settles the
round again. Between conversations nothing is written down: a claim looks at all live leases.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple, Self

from .._call.call import AnyToolCall
from .._round.order import waits_for
from .._schema.capabilities import ANY_AREA
from .._schema.resource_access import EVERYTHING, ResourceAccess, meet
from .._text.json import shorten
from ..errors import MisuseError, StoreError
from ..execution._settings import check_flag
from ._checks import check_word
from ._database import Rows
from ._rows import SavedCall


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
        check_flag("in_order", is_kept)
        named = self.across if across is None else tuple(sorted(set(across)))
        for area in named:
            check_word("area", area)
        return type(self)(is_kept, named)

    @classmethod
    def of(cls, row: SavedCall) -> Self:
        """Read what a row says about its round."""
        if "turns" not in row.parsed_body.data:
            return cls()
        said = row.parsed_body.inner("turns")
        return cls(said.get("in_order", bool), said.texts("across"))

    def row_data(self, call: AnyToolCall) -> dict[str, Any]:
        """Return what the body of a row says about what its call accesses; empty if unused."""
        if not (self.in_order or self.across):
            return {}
        accesses = [each._asdict() for each in call.accesses]
        return {"turns": {"in_order": self.in_order, "across": self.across, "accesses": accesses}}


def _touched(row: SavedCall) -> tuple[ResourceAccess, ...]:
    said = row.parsed_body.inner("turns").each("accesses")
    return tuple(
        ResourceAccess(each.get("area", str), each.data.get("target"), each.get("mutating", bool))
        for each in said
    )


def _order_and_touches(row: SavedCall, rows: Rows) -> tuple[ClaimOrder, tuple[ResourceAccess, ...]]:
    """Read a row to compare with; one that was edited is assumed to access everything."""
    try:
        row.check(rows)
        order = ClaimOrder.of(row)
        return order, _touched(row) if order != ClaimOrder() else EVERYTHING
    except StoreError:
        return ClaimOrder(), EVERYTHING


def settle(rows: Rows, id: str) -> None:
    """Make claimable the calls of a round that conflict with no earlier one without a result.

    Args:
        rows: The transaction, in which the conversation is locked.
        id: The conversation, whose round keeps the order.
    """
    found = [
        (row, *_order_and_touches(row, rows))
        for row in _inner_first(SavedCall.still_open(rows, id))
    ]
    clock = rows.now()
    # For read a, write a, read b it gives [[], [0], []]: the earlier calls that each call meets.
    waits = waits_for(touches for _, _, touches in found)
    for (row, order, _), before in zip(found, waits, strict=True):
        if row.state != "ready" or not order.in_order or (row.until or 0) > clock:
            continue
        if bool(before) is not (row.until is None):
            row._replace(until=None if before else clock).write(rows)


def _inner_first(rows: list[SavedCall]) -> list[SavedCall]:
    """Sort rows in the order of the turn, each after those within it, as none waits for it."""
    # Places `0 → 2, 3` and `1` sort as 2, 3, 0, 1: after the paths (0, 2) and (0, 3) comes 0 with
    # infinity at its end, since it comes back when those two have ended.
    requested_by = {row.place: row.requested_by for row in rows}

    def path(place: int) -> tuple[float, ...]:
        by = requested_by.get(place)
        return (place,) if by is None else (*path(by), place)

    return sorted(rows, key=lambda row: (*path(row.place), inf))


def is_unblocked(rows: Rows, row: SavedCall) -> bool:
    """Whether a row that is due may be claimed, as far as other calls go."""
    order = ClaimOrder.of(row)
    if order.in_order:  # an earlier call may have got other arguments since
        settle(rows, row.conversation)
        found = SavedCall.at(rows, row.conversation, row.place)
        if found is None or found.until is None:
            return False
    return not (order.across and _is_busy(rows, row, order.across))


def _is_busy(rows: Rows, row: SavedCall, across: Iterable[str]) -> bool:
    """Whether a call under a live lease accesses what a row shares with all conversations.

    Claims of such rows are taken one after the other.
    """
    # Two claims that meet could each look before the other is written. One row that all of them
    # lock makes them wait for each other; the row of the conversation does not, for there are
    # several.
    rows.one("SELECT one FROM lutum_store WHERE one = 1 {lock}")
    touched = _touched(row)
    for other in [each for each in SavedCall.under_lease(rows) if each[:2] != row[:2]]:
        theirs, touches = _order_and_touches(other, rows)
        for area in set(across).intersection(theirs.across):
            if meet(_within(touched, area), _within(touches, area)):
                return True
    return False


def _within(touches: Iterable[ResourceAccess], area: str) -> list[ResourceAccess]:
    return [touch for touch in touches if touch.area in (area, ANY_AREA)]
