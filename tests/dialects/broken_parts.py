"""Rounds of Anthropic and Gemini with a broken result: results are parts of messages there."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

Place: TypeAlias = tuple[int, int]
"""Which message, and which part of it."""


def results_in(items: list[Any]) -> list[Place]:
    """Where the results stand."""
    return [
        (at, place)
        for at, item in enumerate(items)
        for place, part in enumerate(parts_of(item))
        if is_result(part)
    ]


def dropped(items: list[Any], result: Place) -> list[Any]:
    at, place = result
    parts = parts_of(items[at])
    return with_parts(items, at, [*parts[:place], *parts[place + 1 :]])


def doubled(items: list[Any], result: Place) -> list[Any]:
    at, place = result
    parts = parts_of(items[at])
    return with_parts(items, at, [*parts[: place + 1], *parts[place:]])


def reordered(items: list[Any], result: Place) -> list[Any]:
    """Swap with the result before it, or put it before the turn that made the call."""
    at, place = result
    parts = list(parts_of(items[at]))
    before = parts[place - 1] if place else {}
    if is_result(before) and name_of(before) != name_of(parts[place]):
        parts[place - 1 : place + 1] = reversed(parts[place - 1 : place + 1])
        return with_parts(items, at, parts)
    moved = parts[place]
    key = "content" if "content" in items[at] else "parts"
    rest = dropped(items, result)
    made = at
    while made and items[made - 1]["role"] != "user":
        made -= 1
    return [*rest[:made], {"role": "user", key: [moved]}, *rest[made:]]


def renamed(items: list[Any], result: Place) -> list[Any]:
    at, place = result
    parts = list(parts_of(items[at]))
    parts[place] = copy.deepcopy(parts[place])
    named = inner(parts[place])
    named["tool_use_id" if "tool_use_id" in named else "name"] = "call_of_nobody"
    return with_parts(items, at, parts)


def parts_of(message: Any) -> list[Any]:
    content = message.get("content", message.get("parts"))
    return content if isinstance(content, list) else []


def with_parts(items: list[Any], at: int, parts: list[Any]) -> list[Any]:
    key = "content" if "content" in items[at] else "parts"
    changed = [{**items[at], key: parts}] if parts else []
    return [*items[:at], *changed, *items[at + 1 :]]


def is_result(part: Any) -> bool:
    return part.get("type") == "tool_result" or bool(
        part.keys() & {"functionResponse", "function_response"}
    )


def inner(part: Any) -> Any:
    return part.get("functionResponse", part.get("function_response", part))


def name_of(part: Any) -> Any:
    named = inner(part)
    return named.get("tool_use_id", (named.get("id"), named.get("name")))
