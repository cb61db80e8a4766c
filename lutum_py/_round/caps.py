"""The caps on what a model reads of results, applied where a plan ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._transcript.result import ToolResult
from .._transcript.result_cap import ResultCap

__all__ = ["capped"]


def capped(toolset: Any, results: Iterable[ToolResult]) -> tuple[ToolResult, ...]:
    """Give the results as the caps of their tools leave them; most toolsets have none.

    What is long goes into the caps' stores, so this comes when nothing else can fail any more.
    """
    if not toolset._caps_results:
        return tuple(results)
    return tuple(_capped(toolset, result) for result in results)


def _capped(toolset: Any, result: ToolResult) -> ToolResult:
    selector = toolset._by_name.get(result.name)  # none for a name that the model made up
    cap = None if selector is None else selector.options.result_cap
    return cap.apply(result) if isinstance(cap, ResultCap) else result
