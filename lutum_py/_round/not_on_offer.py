"""What a model is told of a call of a tool that was not on offer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._call.outcomes import RecoverableToolCallIssue
from .._declare.offer import OfferedTools
from .._text.escaping import quoted
from .._text.suggestion import did_you_mean, names_for_message
from .._transcript.metadata import ToolMetadata


def not_on_offer(
    toolset: Any, metadata: ToolMetadata, offered: OfferedTools, names: Collection[str]
) -> RecoverableToolCallIssue:
    """Say what is wrong with a call of a tool that was not on offer.

    Args:
        toolset: The toolset that the call is read with.
        metadata: What was sent.
        offered: The tools that were on offer.
        names: The names that may have been called.
    """
    name = quoted(metadata.name)
    on_offer = f"Tools on offer: {names_for_message(names)}."
    known = toolset._by_name.get(metadata.name)
    searches = [each.name for each in offered.selectors if each._loads_tools]
    if known is not None and known.is_deferred and searches:
        text = (
            f"Tool {name} is not loaded, so it was not run. Search for it first, with "
            f"{names_for_message(searches)}; what is found can be called from the next turn on."
        )
        return RecoverableToolCallIssue(metadata, "not_available", text)
    if known is not None:
        is_unfound = known.is_deferred and not toolset._offer.searches
        why = " It is deferred, and there is no search that loads it." if is_unfound else ""
        text = f"Tool {name} is not available in this turn, so it was not run.{why} {on_offer}"
        return RecoverableToolCallIssue(metadata, "not_available", text)
    near = did_you_mean(metadata.name, names)
    hint = f" Did you mean {quoted(near)}?" if near else ""
    text = f"There is no tool {name}, so nothing was run.{hint} {on_offer}"
    return RecoverableToolCallIssue(metadata, "unknown_tool", text, (), near)
