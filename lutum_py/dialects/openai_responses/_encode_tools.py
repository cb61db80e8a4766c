"""Tools as the Responses API takes them: functions, deferred ones, and the search for these.

A search that the program runs is declared with its parameters and without a name; what it found
goes back as whole tools. (OpenAI API guide: "Tool search".)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from ..._schema.definition import ToolDef
from ..._schema.schema_reader import JsonSchema, branches, types_in
from ..._text.json import copy_json
from ..._text.suggestion import names_for_message
from ..._transcript.request import TurnRequest
from ...errors import MisuseError
from .._wire.native_search import NativeSearch, native_search_of, native_tools
from .._wire.offered import as_sent, callers_of, compiled
from ._decode import SEARCH
from ._facts import FACTS, NAME

_DEFERRED: Final = {"defer_loading": True}


def tool_of(definition: ToolDef, schema: JsonSchema, strict: bool) -> dict[str, Any]:
    """Describe a function tool."""
    tool: dict[str, Any] = {"type": "function", "name": definition.name}
    if definition.description:
        tool["description"] = definition.description
    tool["parameters"] = schema
    tool["strict"] = strict
    output = definition.output_schema
    # A program gets a text as it is; what has a schema is read as JSON for it.
    if "program" in definition.callers and output is not None and not _may_be_text(output):
        tool["output_schema"] = copy_json(output)
    return tool | callers_of(definition, FACTS)


def _may_be_text(schema: JsonSchema) -> bool:
    """Tell whether a value of a schema may be a text, as one of unknown type may."""
    parts = branches(schema, [schema])
    named = {kind for part in parts for kind in types_in(part)}
    return "string" in named or not named


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Say what the results of searches in a request may load, and in which form.

    Attributes:
        native: What they may name.
        definitions: The deferred tools.
        strict: Whether tools are offered in strict mode.
    """

    native: NativeSearch
    definitions: tuple[ToolDef, ...]
    strict: bool

    def described(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Describe tools that a result loads."""
        definitions = {each.name: each for each in self.definitions}
        return [self._tool(definitions[name]) | _DEFERRED for name in names]

    def _tool(self, definition: ToolDef) -> dict[str, Any]:
        schema = copy_json(compiled(definition, FACTS, self.strict).schema)
        return tool_of(as_sent(definition, FACTS), schema, self.strict)


def found_of(request: TurnRequest, *, strict: bool, native_search: bool) -> FoundTools | None:
    """Give what the results of searches load; None where deferred tools go out as others.

    Raises:
        MisuseError: The search has another name than the API's own.
    """
    native = native_search_of(request, native_search)
    if native is None or request.deferred is None:
        return None
    if native.searches != frozenset({SEARCH}):
        raise MisuseError(
            f"{NAME} knows a search for tools as `{SEARCH}` only, and this toolset has "
            f"{names_for_message(sorted(native.searches))}. Make one search, by "
            f"`tool_search(name={SEARCH!r})`, or leave `native_search` out."
        )
    return FoundTools(native, tuple(request.deferred.definitions), strict)


def offer_of(
    request: TurnRequest, found: FoundTools | None, loaded: Collection[str]
) -> list[tuple[ToolDef, bool]]:
    """Give the tools to send, and whether each is deferred.

    Args:
        request: The request.
        found: What the results of searches may load.
        loaded: The tools that they do load.
    """
    return list(native_tools(request, None if found is None else found.native, loaded))


def described(tool: dict[str, Any], is_deferred: bool, found: FoundTools | None) -> dict[str, Any]:
    """Describe a tool of a request, the search for others among them."""
    if found is not None and tool["name"] == SEARCH:
        about: dict[str, Any] = {
            key: tool[key] for key in ("description", "parameters") if key in tool
        }
        tool = {"type": SEARCH, "execution": "client", **about}
    return tool | _DEFERRED if is_deferred else tool
