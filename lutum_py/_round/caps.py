"""The caps on what a model reads of results, applied where a plan ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._call.selector import AnySelector
from .._transcript.result import ToolResult
from .._transcript.result_cap import ResultCap

__all__ = ["capped"]


def capped(
    results: Iterable[ToolResult], tools: Mapping[str, AnySelector]
) -> tuple[ToolResult, ...]:
    """Give the results as the caps of their tools leave them.

    Args:
        results: Results of any status.
        tools: The tools by wire name; of a name that the model made up there is none.
    """
    return tuple(_capped(result, tools.get(result.name)) for result in results)


def _capped(result: ToolResult, selector: AnySelector | None) -> ToolResult:
    cap = None if selector is None else selector.options.result_cap
    return cap.apply(result) if isinstance(cap, ResultCap) else result
