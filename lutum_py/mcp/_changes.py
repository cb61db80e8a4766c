"""Digests of what a server lists, by which a change is told from none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from mcp.types import Tool

from .._schema.definition import without_remarks
from .._text.json import canonical_json, digest_of

Change: TypeAlias = Literal["added", "removed", "schema", "text"]
"""What became of a tool: `schema` is anything but words, `text` is words alone."""


def shape_of(tool: Tool) -> str:
    """Give a digest of all that decides what a call means: not of words for models and people.

    Raises:
        ValueError: A schema is no JSON data.
    """
    data = _data_of(tool)
    for key in ("inputSchema", "outputSchema"):
        if key in data:
            data[key] = without_remarks(data[key])
    # Titles stand at two places: of the tool, and among its hints.
    hints = data.pop("annotations", {})
    for key in ("title", "description", "icons"):
        data.pop(key, None)
        hints.pop(key, None)
    return digest_of([data, hints])


def _data_of(tool: Tool) -> dict[str, Any]:
    # What a server puts into `_meta` is for programs that know it, and may differ at each listing.
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})


def digest_of_all(tools: Iterable[Tool]) -> str:
    """Give one digest of tools, words included, whatever their order.

    Raises:
        ValueError: A schema is no JSON data.
    """
    return digest_of(sorted(canonical_json(_data_of(tool)) for tool in tools))


def changes(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> dict[str, Change]:
    """Say what became of each tool that is not what it was."""
    found: dict[str, Change] = {}
    for name in sorted({*before, *now}):
        if name not in before:
            found[name] = "added"
        elif name not in now:
            found[name] = "removed"
        elif shape_of(before[name]) != shape_of(now[name]):
            found[name] = "schema"
        elif _data_of(before[name]) != _data_of(now[name]):
            found[name] = "text"
    return found
