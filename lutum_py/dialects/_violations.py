"""What is wrong with a request, what a repair changed, and the two shapes of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._json import copy_json, shorten
from ._reading import is_array, is_object

__all__ = ["NOT_EXECUTED", "Change", "Violation", "items_of", "with_items"]

NOT_EXECUTED = "Not executed: the conversation holds no result for this call."
"""What a repair answers a call with that nobody answered."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of the provider that a request breaks.

    Attributes:
        position: Where, as in `messages[3].tool_calls[0]`.
        rule: A stable name of the rule, as in `call_without_result`.
        problem: What is wrong, in words.
        remedy: What to do about it.

    Example:
        >>> print(Violation("messages[1]", "orphan_result", "It answers no call", "Remove it"))
        messages[1]: It answers no call. Remove it (orphan_result).
    """

    position: str
    rule: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.position}: {self.problem}. {self.remedy} ({self.rule})."


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a repair did.

    Attributes:
        position: Where, in the request as it was given.
        rule: The rule that was broken there.
        what: What was done, in words.

    Example:
        >>> print(Change("messages[1]", "orphan_result", "Removed the result"))
        messages[1]: Removed the result (orphan_result).
    """

    position: str
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.position}: {self.what} ({self.rule})."


def items_of(request: Any, key: str) -> list[Any]:
    """Give the items of a request that is a whole body or only its list.

    Args:
        request: A request body, or the list that stands in it.
        key: Where the list stands in a body.

    Returns:
        The items themselves, not copied, in a new list; empty where a body has none, or has text.

    Raises:
        TypeError: The request is neither.
    """
    items = request.get(key) if is_object(request) else request
    if is_object(request) and (items is None or isinstance(items, str)):
        return []
    if not is_array(items):
        raise TypeError(
            f"expected a request body with {key!r}, or the list itself, got {shorten(request)}"
        )
    return list(items)


def with_items(request: Any, key: str, items: list[Any]) -> Any:
    """Give a request of the same shape with other items; nothing in it is shared with the first."""
    if not is_object(request):
        return copy_json(items)
    if is_object(request) and not is_array(request.get(key)):
        return copy_json(request)
    return {name: copy_json(items if name == key else value) for name, value in request.items()}
