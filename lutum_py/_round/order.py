"""Which calls of a plan wait for which: those that access the same keep the order of the turn.

Accesses are kept in the tree of what can be accessed, see `resource_access`. At each place are the
last call that changed it and those that read it since. A change of a place takes away all that was
at it and below, since whoever accesses any of that conflicts with the change, which waits for it.
So each call is looked up, and not checked against all earlier ones. For example, with `r` and `w`
of files:

    w src/a  r src/b  w src  r src/a      src/a waits for src alone, and src for both before
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .._call.call import AnyToolCall, decoded_calls
from .._schema.resource_access import Place, ResourceAccess, beside, place_of
from .sorted_calls import SortedCalls


class _TouchNode:
    """What was done last at one place, and at those below."""

    __slots__ = ("below", "changed", "read")

    def __init__(self) -> None:
        self.changed: list[int] = []
        self.read: list[int] = []
        self.below: dict[str, _TouchNode] = {}

    def overlapping(self, place: Place) -> Iterator[_TouchNode]:
        """Yield the nodes on the way to a place from here, and all at it and below."""
        node = self
        for step in place:
            yield node
            below = node.below.get(step)
            if below is None:
                return
            node = below
        waiting = [node]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.below.values()

    def note(self, place: Place, number: int, *, mutating: bool) -> None:
        """Write down that a call accesses a place."""
        # In the example above, after `w src` the tree below `src` is empty: call 2 is at `src`, and
        # calls 0 and 1, which were at `src/a` and `src/b`, are reached by waiting for call 2. So a
        # call waits for the few that are nearest, and not for all before it.
        node = self
        for step in place:
            below = node.below.get(step)
            if below is None:
                below = node.below[step] = _TouchNode()
            node = below
        if mutating:
            node.changed, node.read, node.below = [number], [], {}
        else:
            node.read.append(number)


def waits_for(calls: Iterable[Iterable[ResourceAccess]]) -> list[list[int]]:
    """Say which earlier calls each call waits for: the nearest conflicting ones at least.

    Args:
        calls: What each call accesses, in the order of the turn.

    Returns:
        For each call the places of others in that order, ascending. Whoever waits for these, and
        they for theirs, has waited for all that it conflicts with.
    """
    root = _TouchNode()
    found: list[list[int]] = []
    for number, touches in enumerate(calls):
        before: set[int] = set()
        touched = [(place_of(touch), touch.mutating) for touch in touches]
        for place, mutating in touched:
            other = beside(place)
            for each in (place,) if other is None else (place, other):
                for node in root.overlapping(each):
                    before.update(node.changed)
                    if mutating:
                        before.update(node.read)
        for place, mutating in touched:
            root.note(place, number, mutating=mutating)
        found.append(sorted(before))
    return found


def _inner_first(call: AnyToolCall) -> Iterator[AnyToolCall]:
    """Yield a call after those that it requested, so that none of these waits for it."""
    for step in call._history:
        if step.kind == "requested":
            for inner in decoded_calls(step.detail.calls):
                yield from _inner_first(inner)
    yield call


class Order(NamedTuple):
    """The open calls of a plan, in the order of the turn, each after those that it requested.

    Attributes:
        calls: The calls.
        waits: For each the places in this list of those that it waits for.
    """

    calls: list[AnyToolCall]
    waits: list[list[int]]

    @classmethod
    def of(cls, plan: SortedCalls) -> Order:
        """Read what has no result yet; what has one holds nobody up."""
        calls = [
            each for call in plan._calls for each in _inner_first(call) if not each._stage.is_end
        ]
        return cls(calls, waits_for(call.accesses for call in calls))

    def by_id(self) -> dict[str, tuple[str, ...]]:
        """Say by the ids of calls which calls each one waits for."""
        ids = [call.id for call in self.calls]
        return {
            id: tuple(ids[at] for at in waits) for id, waits in zip(ids, self.waits, strict=True)
        }

    def batches(self) -> list[list[int]]:
        """Return the places of those that may be started in groups, each after those it waits for.

        What cannot be started now is in no group, nor is what waits for it.
        """
        # Waits of `[[], [], [0, 1], [2]]` give `[[0, 1], [2], [3]]`. They always point back, so one
        # pass is enough, and there are no cycles to look for.
        groups: list[list[int]] = []
        group_of: dict[int, int] = {}
        for at, (call, waits) in enumerate(zip(self.calls, self.waits, strict=True)):
            if call._stage.may_start and all(each in group_of for each in waits):
                group = group_of[at] = max((group_of[each] + 1 for each in waits), default=0)
                if group == len(groups):
                    groups.append([])
                groups[group].append(at)
        return groups

    def free(self) -> Order:
        """Leave out what cannot be started, and what waits for that."""
        kept = sorted(at for group in self.batches() for at in group)
        now = {at: place for place, at in enumerate(kept)}
        return Order(
            [self.calls[at] for at in kept], [[now[each] for each in self.waits[at]] for at in kept]
        )
