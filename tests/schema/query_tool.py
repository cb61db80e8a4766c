"""A tool with nested input."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lutum_py import tool_fn


class Filter(BaseModel):
    name: str
    at_least: int = 0
    tags: list[str] = []


@tool_fn
def query(
    ids: list[int],
    filters: list[Filter] = [],  # noqa: B006
    table: dict[str, int] | None = None,
    text: str = "x",
    limit: int = 1,
    anything: Any = None,
    either: list[str] | str = "q",
    both: list[int] | dict[str, int] | None = None,
) -> None:
    """Take what comes."""
