"""Deferred tools for providers that know such: all are sent, and the results of searches name them.

So the tools of a conversation stay the same in each request, and what was read of it stays in the
provider's cache. A tool counts as loaded for the provider where a result that names it is sent; one
whose result was cut from the conversation is offered like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..._schema.definition import ToolDef
from ..._schema.stand_in import own_name
from ..._transcript.request import TurnRequest, names_loaded_by
from ..._transcript.result import ToolResult


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """Say what the results of searches may name.

    Attributes:
        searches: The names of the tools that search.
        names: The names of the tools that are deferred in the request.
    """

    searches: frozenset[str]
    names: frozenset[str]

    def found_by(self, result: ToolResult) -> list[str]:
        """Give the deferred tools that a result loads, each once; none where it is no search's."""
        if own_name(result.name, self.searches) not in self.searches:
            return []
        named = dict.fromkeys(own_name(each, self.names) for each in names_loaded_by(result))
        return [name for name in named if name in self.names]


def always_offered(request: TurnRequest) -> tuple[ToolDef, ...]:
    """Give the tools of a request that were not loaded: every request of it all begins so."""
    loaded = len(request.deferred.loaded) if request.deferred else 0
    return request.tools[: len(request.tools) - loaded]


def native_search_of(request: TurnRequest, wanted: bool) -> NativeSearch | None:
    """Give what the results of a request may name; None where its tools go out as ever."""
    deferred = request.deferred
    if not wanted or deferred is None:
        return None
    always = {each.name for each in always_offered(request)}
    names = (each.name for each in deferred.definitions)
    return NativeSearch(deferred.searches, frozenset(name for name in names if name not in always))


def native_tools(
    request: TurnRequest, native: NativeSearch | None, named: Collection[str]
) -> Iterator[tuple[ToolDef, bool]]:
    """Give the tools to send, in order, and whether each is deferred.

    Args:
        request: The request.
        native: What its results may name.
        named: The names that they do name.
    """
    if native is None or request.deferred is None:
        yield from ((each, False) for each in request.tools)
        return
    yield from ((each, False) for each in always_offered(request))
    offered = {each.name: each for each in request.tools}
    for each in request.deferred.definitions:
        if each.name in native.names:
            # Loaded, but no result in this request says so: the search was cut by a view. Sent as
            # deferred, the provider would not show it to the model.
            is_lost = each.name in offered and each.name not in named
            yield offered.get(each.name, each), not is_lost
