"""What a payload says: only its dialect can tell, which is in a layer above.

So the dialect is asked by its name, and only where there is something to ask.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..errors import DialectError


def dialect_named(name: str | None) -> Any:
    """Return the module of a dialect in the list; None for one that is not in it."""
    known = None if name is None else _module("lutum_py.dialects").DIALECTS.get(name)
    return None if known is None else _module(known)


_module = cache(import_module)  # of this package and its few dialects: asked for each turn


def read_payload(payload: Any, dialect: str | None) -> Any:
    """Return the turn that a saved payload makes; None where no dialect replays it.

    Raises:
        ValueError: It is not a response of its dialect.
    """
    module = dialect_named(dialect)
    # A turn made by hand, or by a dialect of your own, goes out in the neutral form, and has no
    # second half that could differ.
    if module is None or not isinstance(payload, dict):
        return None
    try:
        return module.DIALECT.decode_saved(payload)
    except DialectError as error:
        raise ValueError(f"it is not a response of the turn's dialect ({error})") from None
