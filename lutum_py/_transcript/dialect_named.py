"""The module of the dialect that a turn names: dialects stand in a layer above."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def dialect_named(name: str | None) -> Any:
    """Give the module of a dialect in the list; None for one that is not in it."""
    known = None if name is None else import_module("lutum_py.dialects").DIALECTS.get(name)
    return None if known is None else import_module(known)
