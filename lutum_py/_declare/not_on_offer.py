"""What a model is told of a call of a tool that was not on offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._call.outcomes import RecoverableToolCallIssue
from .._text.escaping import quoted
from .._text.suggestion import did_you_mean, names_for_message
from .._transcript.metadata import ToolMetadata
from .._transcript.payload import dialect_named
from .offer import OfferedTools


def not_on_offer(
    toolset: Any,
    metadata: ToolMetadata,
    offered: OfferedTools,
    names: Iterable[str],
    dialect: str | None = None,
) -> RecoverableToolCallIssue:
    """Say what is wrong with a call of a tool that was not on offer.

    Args:
        toolset: The toolset that the call is read with.
        metadata: What was sent.
        offered: The tools that were on offer.
        names: The names that may have been called.
        dialect: The name of the dialect that the call came in, if one did.
    """
    # The model reads names as they went out to it, and may have meant a tool's own.
    module = dialect_named(dialect)
    sent: Callable[[str], str] = str if module is None else module.wire_name
    meant = {name: sent(name) for name in names}
    on_offer = f"Tools on offer: {names_for_message(meant.values())}."
    known = toolset._by_name.get(metadata.name)
    name = quoted(metadata.name if known is None else sent(metadata.name))
    searches = [sent(each.name) for each in offered.selectors if each._loads_tools]
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
    meant |= {name: name for name in meant.values()}
    near = meant.get(did_you_mean(metadata.name, meant) or "")
    hint = f" Did you mean {quoted(near)}?" if near else ""
    text = f"There is no tool {name}, so nothing was run.{hint} {on_offer}"
    return RecoverableToolCallIssue(metadata, "unknown_tool", text, (), near)
