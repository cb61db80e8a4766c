"""Toolsets that are written out at run time."""

from __future__ import annotations

from typing import Any

from lutum_py import (
    Toolset,
)


def define(body: dict[str, Any], name: str = "Sample", *bases: type) -> Any:
    """Write a toolset class with this body."""
    meta: Any = type(Toolset)
    return meta(name, bases or (Toolset,), {"__qualname__": name, **body})
