"""What a request has besides the tools on offer: those that a search of the model may load."""

from __future__ import annotations

from .._schema.definition import ToolDef
from .._text.immutable import dataclass
from .._text.json import is_array
from .result import ToolResult


@dataclass(frozen=True, slots=True)
class DeferredTools:
    """Say which tools can be loaded; for providers that know such tools themselves.

    Attributes:
        definitions: All of them, in the order of declaration, also those that are on offer.
        loaded: The names of those that were loaded, in that order; they are the last of the tools
            on offer.
        searches: The names of the tools whose results load them.
    """

    definitions: tuple[ToolDef, ...]
    loaded: tuple[str, ...]
    searches: frozenset[str]


def names_loaded_by(result: ToolResult) -> list[str]:
    """Give the names that the result of a search has, whoever made or edited it."""
    output = result.output if result.is_success else None
    return [name for name in output if isinstance(name, str)] if is_array(output) else []
