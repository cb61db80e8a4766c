"""Tools as the Responses API takes them: functions, deferred ones, and the search for these.

A search that the program runs is declared with its parameters and without a name; what it found
goes back as whole tools. (OpenAI API guide: "Tool search".)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..._schema.definition import ToolDef
from ..._text.json import copy_json
from ..._text.suggestion import names_for_message
from ..._transcript.request import TurnRequest
from ..._transcript.result import ToolResult
from ...errors import MisuseError
from .._wire.native_search import native_search_of, native_tools
from .._wire.offered import compiled
from ._decode import SEARCH
from ._facts import FACTS, NAME

__all__ = ["ToolsOfRequest", "tool_of"]

_DEFERRED: Final = {"defer_loading": True}


def tool_of(definition: ToolDef, strict: bool) -> dict[str, Any]:
    """Describe a function tool."""
    tool: dict[str, Any] = {"type": "function", "name": definition.name}
    if definition.description:
        tool["description"] = definition.description
    tool["parameters"] = copy_json(compiled(definition, FACTS, strict).schema)
    tool["strict"] = strict
    return tool


class ToolsOfRequest:
    """The tools of one request, and what the results of searches in it name.

    Args:
        request: The request.
        strict: Whether its tools are offered in strict mode.
        native_search: Whether deferred tools are sent as such.

    Attributes:
        found_by: Gives the tools that a result loads; None where deferred tools go out as others.

    Raises:
        MisuseError: The search has another name than the API's own.
    """

    def __init__(self, request: TurnRequest, *, strict: bool, native_search: bool) -> None:
        self._request = request
        self._strict = strict
        self._native = native = native_search_of(request, native_search)
        self._named: set[str] = set()
        self.found_by: Callable[[ToolResult], list[dict[str, Any]]] | None = None
        if native is None or request.deferred is None:
            return
        if native.searches != frozenset({SEARCH}):
            raise MisuseError(
                f"{NAME} knows a search for tools as `{SEARCH}` only, and this toolset has "
                f"{names_for_message(sorted(native.searches))}. Make one search, by "
                f"`tool_search(name={SEARCH!r})`, or leave `native_search` out."
            )
        definitions = {each.name: each for each in request.deferred.definitions}

        def found_by(result: ToolResult) -> list[dict[str, Any]]:
            names = native.found_by(result)
            self._named.update(names)
            return [tool_of(definitions[name], strict) | _DEFERRED for name in names]

        self.found_by = found_by

    def definitions(self) -> list[ToolDef]:
        """Give the definitions of all tools that are sent."""
        return [each for each, _ in self._listed()]

    def tools(self) -> list[dict[str, Any]]:
        """Describe them; to be asked when the items were rendered."""
        made: list[dict[str, Any]] = []
        for definition, is_deferred in self._listed():
            tool = tool_of(definition, self._strict)
            if self._native is not None and definition.name == SEARCH:
                about: dict[str, Any] = {
                    key: tool[key] for key in ("description", "parameters") if key in tool
                }
                tool = {"type": SEARCH, "execution": "client", **about}
            made.append(tool | _DEFERRED if is_deferred else tool)
        return made

    def _listed(self) -> list[tuple[ToolDef, bool]]:
        return list(native_tools(self._request, self._native, self._named))
