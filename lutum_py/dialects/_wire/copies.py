"""Copies of what was rendered, which a caller may change.

Where the objects and lists in a value stand is its plan. It is made once for what is kept, so that
a copy goes from one to the next without a look at the texts and numbers between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """Where the objects and lists in plain JSON data stand.

    Attributes:
        way: Goes from each one to the only one that it holds.
        parts: Where the last of them holds others, and their plans; none, or at least two.
    """

    way: tuple[str | int, ...] = ()
    parts: tuple[tuple[str | int, Plan], ...] = ()


FLAT = Plan()
"""The plan of what holds texts and numbers only: its `copy` is one."""


def plan_of(value: Any) -> Plan:
    """Find the objects and lists in plain JSON data.

    Example:
        >>> plan_of({"role": "user", "content": [{"type": "text", "text": "Hi"}]})
        Plan(way=('content', 0), parts=())
    """
    # Most values hold one object in another, as a message its list of one block. A way of keys says
    # that without a plan inside a plan for each step.
    way: list[str | int] = []
    while True:
        found = _held(value)
        if not (found or way):
            return FLAT
        if len(found) != 1:
            return Plan(tuple(way), tuple([(key, plan_of(part)) for key, part in found]))
        key, value = found[0]
        way.append(key)


def _held(value: dict[str, Any] | list[Any]) -> list[tuple[str | int, Any]]:
    entries: Iterable[tuple[str | int, Any]]
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return [(key, part) for key, part in entries if part.__class__ in (dict, list)]


def copied(value: Any, plan: Plan) -> Any:
    """Copy plain JSON data by its plan; texts and numbers are shared."""
    way, parts = plan
    made = last = value.copy()
    for key in way:
        part = last[key].copy()
        last[key] = part
        last = part
    for key, inner in parts:
        last[key] = copied(last[key], inner)
    return made
