"""The stock tools: to find tools that are not loaded, and to read on in a result that a cap cut.

The search knows no toolset: it searches the toolset of the call that it answers, so that one tool
serves every toolset that it is a member of, nested ones and those of run time included.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Any

from pydantic import Field

from .._call.reply import Reply
from .._call.selector import Selector
from .._call.spec import FnSpec
from .._schema.definition import ToolDef, ToolOptions
from .._schema.invocation import Invocation
from .._schema.schema_reader import subschemas
from .._text.bm25 import Bm25
from .._text.clipping import READER, head_of
from .._text.json import is_object, is_whole, shorten
from .._transcript.result_cap import ResultStore, check_bound, check_store
from ..errors import MisuseError, NotFound, ToolDefinitionError
from .members import members_of
from .tool_fn import ToolFn, tool_fn
from .toolset_meta import ToolsetMeta

_SUMMARY = 200
"""Characters of the description of a found tool that the model is shown, at most."""

_NAME_COUNTS = 3
"""How many times more a word of the name counts than one of the descriptions."""


def search_tools(toolset: type[object], query: str, limit: int = 5) -> tuple[Selector, ...]:
    """Find deferred tools of a toolset, the best first.

    They are ranked by BM25 over their names (split at `_` and at changes of case), their
    descriptions, and the names and descriptions of their parameters.

    Args:
        toolset: The toolset. Tools of it that are off, or always on offer, are not looked for.
        query: What is looked for, in words.
        limit: The most that are given.

    Raises:
        MisuseError: The toolset, the query or the limit is of a wrong type, or the limit below 1.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn
        >>> @tool_fn
        ... def find_customer(name: str) -> str:
        ...     '''Look somebody up.'''
        ...     return name
        >>> class App(Toolset):
        ...     find_customer = tool(find_customer, deferred=True)
        >>> search_tools(App, "customers by name")
        (<Selector App.find_customer: 'find_customer'>,)
    """
    if not isinstance(toolset, ToolsetMeta):
        raise MisuseError(f"Tools are looked for in a Toolset, not in {shorten(toolset)}.")
    MisuseError.check("search_tools", "query", "a text", query, str)
    if not _is_count(limit):
        raise MisuseError.of_field("search_tools", "limit", "a positive whole number", limit)
    offer = members_of(toolset).offer
    deferred = offer.deferred
    # Not under a lock: two threads make the same index at worst.
    offer.index = index = offer.index or Bm25(map(_parts_of, deferred.definitions))
    return tuple(deferred.selectors[number] for number in index.ranked(query, limit))


def _is_count(value: object) -> bool:
    return is_whole(value) and value > 0


def _parts_of(definition: ToolDef) -> Iterator[str]:
    # BM25 weighs a word by how often it is there, so a name counts more by being said more.
    yield from [definition.name] * _NAME_COUNTS
    yield definition.description
    yield from _said_in(definition.input_schema, is_parameter=False)


def _said_in(schema: object, *, is_parameter: bool) -> Iterator[str]:
    """Yield the names and descriptions of parameters, also of those inside of others."""
    # Of `{"order": {"properties": {"id": {"description": "As on the bill."}}}}` both names and the
    # text are found, so that a search for "bill" finds the tool.
    if is_parameter and is_object(schema) and isinstance(schema.get("description"), str):
        yield schema["description"]
    for keyword, step, inner in subschemas(schema):
        is_named = keyword == "properties"
        if is_named:
            yield str(step)
        yield from _said_in(inner, is_parameter=is_parameter or is_named)


def tool_search(
    *, name: str = "search_tools", limit: int = 5, description: str | None = None
) -> ToolSearch:
    """Make a stock tool with which a model looks for the deferred tools of its toolset.

    A member like any other: it is run by `call.call()`, by `execution` or by `Handlers`, and hooks
    see its calls. Its output is a list of wire names. A result that is a success loads the tools
    that it names, from the next turn on: see `Toolset.loaded_tools`.

    Args:
        name: The name on the wire.
        limit: The most tools that one search finds.
        description: What the model is told instead of the stock description.

    Raises:
        ToolDefinitionError: An argument is of the wrong kind.

    Example:
        >>> from lutum_py import ToolMetadata, Toolset, tool, tool_fn
        >>> @tool_fn
        ... def find_customer(name: str) -> str:
        ...     '''Look somebody up.'''
        ...     return name
        >>> class App(Toolset):
        ...     search_tools = tool(tool_search())
        ...     find_customer = tool(find_customer, deferred=True)
        >>> asked = ToolMetadata(id="c1", name="search_tools", arguments='{"query": "customer"}')
        >>> result = App.parse_tool_call(asked).call_sync()
        >>> result.output
        ['find_customer']
        >>> print(result.model_text)
        You can call these tools from your next turn on:
        - find_customer: Look somebody up.
    """
    if not _is_count(limit):
        raise ToolDefinitionError(
            f"`tool_search(limit=...)` takes a positive whole number, not {shorten(limit)}."
        )
    return ToolSearch(name, limit, description)


@tool_fn
def _search(query: str) -> Reply[list[str]]:
    """Search for more tools than those on offer.

    There are tools that you do not see. Search when none of yours fits the task; what is found can
    be called from your next turn on. Search once for each thing that you need to do.

    Args:
        query: What the tool should do, in a few words, as in "refund an order".
    """
    raise MisuseError(
        f"The search for {shorten(query)} belongs to no toolset. Run a call of it, as in `await "
        "call.call()`, or look with `search_tools(AppTools, query)`."
    )


class ToolSearch(ToolFn[[str], Reply[list[str]]]):
    """The tool that `tool_search()` makes."""

    loads_tools = True

    def __init__(self, name: str, limit: int, description: str | None) -> None:
        self._said = (name, limit, description)
        function: Any = _search
        super().__init__(
            function.__wrapped__, ToolOptions(name=name, description=description), None
        )

    @property
    def limit(self) -> int:
        """The most tools that one search finds."""
        return self._said[1]

    def _make(self, frame: FrameType | None) -> FnSpec[Any, Any]:
        """Make the specification: that of the stock function, with another name and another run."""
        del frame
        own: Any = _search.__lutum_fn__()
        told = self._options.checked("A search for tools")
        return FnSpec(
            definition=own.definition.with_name(told["name"]).with_description(told["description"]),
            origin=self,
            arguments=own.arguments,
            output=own.output,
            invocation=_Searching(own.invocation, self.limit),
            named=("ToolSearch", __name__, type(self).__qualname__),
        )

    # Equal for equal words, so that a toolset of run time is known again.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolSearch) and self._said == other._said

    def __hash__(self) -> int:
        return hash((ToolSearch, self._said))

    def __repr__(self) -> str:
        return f"<tool_search: {self.name!r}>"

    def __reduce__(self) -> Any:
        return (ToolSearch, self._said)


# The stock function has no toolset to search. Bound to one, it could not be a member of another
# that nests the first; so each run asks its call.
class _Searching(Invocation):
    """Search the toolset of the call, in place of calling the function."""

    __slots__ = ("_limit",)

    def __init__(self, own: Invocation, limit: int) -> None:
        super().__init__(own.function, own.signature, own.own_fields)
        self._limit = limit

    def start(self, call: Any, input: Any, skipped: dict[str, Any]) -> Any:
        """Return the names of the tools that were found, and say so to the model."""
        member = call.selector
        if call._record.requested_by is not None:
            # What an agent in a tool may call is off in the toolset of the plan. Its model was
            # offered the toolset further in, where the search is on.
            while member.is_off and member.inner is not None:
                member = member.inner
        toolset = member.toolset
        if toolset is None:
            return super().start(call, input, skipped)
        found = search_tools(toolset, input.query, self._limit)
        if not found:
            said = "No tool fits. Try other words for what it should do, or go on without one."
            return Reply(list[str](), message=said)
        lines = [f"- {each.name}{_summary(each.definition.description)}" for each in found]
        said = "\n".join(["You can call these tools from your next turn on:", *lines])
        return Reply([each.name for each in found], message=said)


def _summary(description: str) -> str:
    first = " ".join(description.strip().partition("\n\n")[0].split())
    if not first:
        return ""
    return f": {first if len(first) <= _SUMMARY else first[: _SUMMARY - 1] + '…'}"


def result_reader(store: ResultStore, max_bytes: int = 8_000) -> ToolFn[..., str]:
    """Make the tool `read_more(handle, offset=0)`, a member of a toolset like any other.

    Args:
        store: What the caps keep whole texts in: `ResultCap(20_000, store)`.
        max_bytes: The bound on one answer, in bytes of UTF-8; 400 at least.

    Returns:
        The tool. If its toolset has a smaller cap of its own, lift that for it with
        `tool(result_reader(store), result_cap=None)`. Put it in no group with a prefix: notices
        name it as it is.

    Raises:
        InvalidValueError: The bound is too small.
        MisuseError: The bound is not a number, or the store is not a store.

    Example:
        >>> from lutum_py.tools import MemoryResults
        >>> store = MemoryResults()
        >>> store.put("h1", "a" * 500)
        >>> result_reader(store, max_bytes=400)("h1", 490)
        'aaaaaaaaaa'
    """
    check_store("result_reader", store)
    check_bound("result_reader", max_bytes)

    @tool_fn(name=READER, idempotent=True)
    def read_more(handle: str, offset: Annotated[int, Field(ge=0)] = 0) -> str:
        """Read on in a result that was cut.

        Args:
            handle: The handle that the notice in the cut result names.
            offset: The character to begin with.
        """
        text = store.get(handle)
        if text is None:
            raise NotFound(f"no result is kept under the handle {shorten(handle)}")
        total = len(text)
        if offset >= total:
            raise NotFound(f"the text ends before character {offset}: it has {total} characters")
        # Offsets count characters, so that none is cut in two, and the bound counts bytes, as the
        # cap does. One more than may be given tells whether anything is left.
        rest = text[offset : offset + max_bytes + 1]
        if len(rest.encode()) <= max_bytes:
            return rest
        piece = head_of(rest, max_bytes - len(_note(total, total, total)))
        return piece + _note(offset, offset + len(piece), total)

    return read_more


def _note(start: int, stop: int, total: int) -> str:
    return f"\n[... characters {start} to {stop} of {total}; read on with offset={stop} ...]"
