"""Rules over the whole of a request, of which no message alone shows whether it breaks them.

A rule is given the request with its list in its field, and fixes it in place after it noted a
breach. The encoders keep the same rules: they count with the functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..._text.json import is_mapping, shorten
from .._facts import Facts
from .._schema.property_keys import refused_keys, with_keys_sent
from .repairing import Repairing, along

MOST_MARKS: Final = 4
"""How many marks of the prompt cache a request may have: "A maximum of 4 blocks with cache_control
may be provided. Found 5." (anthropics/claude-code and many others, 2024 to 2026.)"""


def property_keys(facts: Facts) -> Callable[[dict[str, Any], Repairing], None]:
    """Make the rule that the keys of tools' parameters are those that the provider takes."""

    def rule(request: dict[str, Any], repairing: Repairing) -> None:
        for way in facts.schemas_at:
            for holder, key, position in along(way, request):
                refused = refused_keys(holder[key], facts.property_keys)
                for name, sent in refused.items():
                    repairing.note(
                        f"{position}.properties",
                        "invalid_property_key",
                        f"the provider refuses all tools because of the key {shorten(name)}",
                        "Send keys of letters, digits, `_`, `.` and `-`, at most 64 characters",
                        f"the key is {sent!r} in the request",
                    )
                holder[key] = with_keys_sent(holder[key], refused)

    return rule


def cache_marks(marker: str, *ways: str) -> Callable[[dict[str, Any], Repairing], None]:
    """Make the rule that a request has at most four marks of the prompt cache.

    Args:
        marker: The field that is a mark.
        ways: The ways to the blocks that may have it; those of the conversation last.
    """

    def rule(request: dict[str, Any], repairing: Repairing) -> None:
        found = marks_in(request, marker, ways)
        surplus = len(found) + (marker in request) - MOST_MARKS
        if surplus <= 0:
            return
        # What stands earlier in the conversation is in the beginning that a later mark keeps;
        # tools and instructions change less, and their entries serve other conversations too.
        key = repairing.facts.key
        found.sort(key=lambda mark: not mark[2].startswith(key))
        gone: list[tuple[list[Any], Any]] = []
        for holder, place, position in found[:surplus]:
            repairing.note(
                f"{position}.{marker}",
                "too_many_cache_marks",
                f"the request has more than {MOST_MARKS} marks of the prompt cache",
                f"Mark at most {MOST_MARKS} places",
                "removed the mark",
            )
            block = holder[place]
            if len(block) > 1:
                del block[marker]
            else:
                gone.append((holder, block))
        for holder, block in gone:
            holder[:] = [each for each in holder if each is not block]

    return rule


def marks_in(request: Any, marker: str, ways: tuple[str, ...]) -> list[tuple[Any, Any, str]]:
    """Find the blocks with a mark: what holds each, where, and where that is in the request."""
    return [
        (holder, place, position)
        for way in ways
        for holder, place, position in along(way, request)
        if is_mapping(holder[place]) and holder[place].get(marker) is not None
    ]
