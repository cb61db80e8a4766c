"""Whether the payload of a saved turn says what the turn says: the text may have been edited.

A payload is what goes back to its provider, and results answer the calls of the turn. Where the two
differ, every request would be refused from then on. Only the payload's dialect can tell, which
stands in a layer above: it is asked by its name, and only where there is something to ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._schema.stand_in import own_name
from ..errors import DialectError
from .dialect_named import dialect_named
from .metadata import ToolMetadata


def checked_payload(payload: Any, dialect: str | None, calls: Sequence[ToolMetadata]) -> Any:
    """Give the payload of a saved turn as its dialect reads it.

    Args:
        payload: What was saved.
        dialect: The name of its dialect.
        calls: The calls of the turn.

    Raises:
        ValueError: It is none of its dialect, or makes other calls than the turn.
    """
    module = dialect_named(dialect)
    if module is None or not isinstance(payload, dict):
        return payload  # What no dialect replays goes out in the neutral view.
    try:
        said = module.decode(payload)
    except DialectError as error:
        raise ValueError(f"it is no response of the turn's dialect ({error})") from None
    # The neutral items are what the program reads, the payload is what goes back: an edit of one
    # alone would let the program answer calls that the provider never made.
    asked, found = ([(call.id, call.name) for call in each] for each in (calls, said.tool_calls))
    if len(asked) != len(found) or not all(map(_is_same, asked, found)):
        raise ValueError(f"the turn makes the calls {asked}, and its payload makes {found}")
    return said.payload


def _is_same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Tell whether two calls are one: a tool may have gone out under the stand-in of its name."""
    (id, name), (other_id, other_name) = one, other
    is_same = own_name(name, [other_name]) == other_name or own_name(other_name, [name]) == name
    return id == other_id and is_same
