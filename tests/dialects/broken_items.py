"""Rounds of OpenAI's two dialects with a broken result: each result is an item there."""

from __future__ import annotations

import json
from typing import Any


def results_in(items: list[Any]) -> list[int]:
    """Where the results stand."""
    return [at for at, item in enumerate(items) if is_result(item)]


def dropped(items: list[Any], at: int) -> list[Any]:
    return [*items[:at], *items[at + 1 :]]


def doubled(items: list[Any], at: int) -> list[Any]:
    return [*items[: at + 1], items[at], *items[at + 1 :]]


def reordered(items: list[Any], at: int) -> list[Any]:
    """Swap with the result before it, or move before the turn that made the call."""
    if is_result(items[at - 1]):
        return [*items[: at - 1], items[at], items[at - 1], *items[at + 1 :]]
    rest = dropped(items, at)
    key = items[at].get("tool_call_id", items[at].get("call_id"))
    made = next(n for n, item in enumerate(rest) if f'"{key}"' in json.dumps(item))
    return [*rest[:made], items[at], *rest[made:]]


def renamed(items: list[Any], at: int) -> list[Any]:
    key = "tool_call_id" if "tool_call_id" in items[at] else "call_id"
    return [*items[:at], {**items[at], key: "call_of_nobody"}, *items[at + 1 :]]


def is_result(item: dict[str, Any]) -> bool:
    kinds = (item.get("role"), item.get("type"))
    return "tool" in kinds or "function_call_output" in kinds
