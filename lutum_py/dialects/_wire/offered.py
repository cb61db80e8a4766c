"""Which tools a request offers, in which form, and what it asks of the model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from ... import ToolDef, ToolResult, TurnRequest
from ..._schema.stand_in import OwnNames, own_name
from ..._text.json import copy_json, shorten
from ..._toolsets.members import offered_definitions
from ..._toolsets.offer import pairs_of
from ..._transcript.request import ToolChoice, names_loaded_by
from ...errors import MisuseError, ToolDefinitionError
from ...typing import Descriptions, JsonSchema
from .._facts import Facts
from .._findings import Loss
from .._schema.compiler import compile_schema


def offered(
    toolset: Any, available: Any = None, descriptions: Descriptions = ()
) -> tuple[ToolDef, ...]:
    """Return the definitions on offer, with the descriptions of this turn.

    Args:
        toolset: A toolset, or an iterable of `ToolDef`.
        available: Which tools of a toolset are on offer; None for those that are on.
        descriptions: Pairs, or a mapping, of a selector or wire name and the text that the model
            reads.

    Raises:
        MisuseError: `toolset` is neither, or `available` is given with plain definitions.
    """
    # A toolset is iterable too: over its selectors, which are not definitions.
    if hasattr(toolset, "_members"):
        return offered_definitions(toolset, available, descriptions)
    given: object = toolset
    if not isinstance(given, Iterable) or isinstance(given, str | type):
        raise _no_tools(shorten(toolset))
    if available is not None:
        raise MisuseError(
            "`available` chooses among the tools of a Toolset. Pass only the ToolDefs on offer."
        )
    definitions = tuple(toolset)
    for definition in definitions:
        if not isinstance(definition, ToolDef):
            raise _no_tools(f"something that holds {shorten(definition)}")
    texts = {str(getattr(tool, "name", tool)): text for tool, text in pairs_of(descriptions)}
    return tuple(
        definition.with_description(texts[definition.name])
        if definition.name in texts
        else definition
        for definition in definitions
    )


def _no_tools(given: str) -> MisuseError:
    return MisuseError(
        f"tools() takes a Toolset or a list of ToolDefs, not {given}. To offer some tools of a "
        "Toolset, choose them with `available=[...]`, as in "
        "`tools(AppTools, available=[AppTools.search])`."
    )


def choice_of(requirement: ToolChoice | Any, facts: Facts) -> ToolChoice:
    """Take a `ToolChoice`, or a requirement that has one, by the names that go out.

    Raises:
        MisuseError: It is neither.
    """
    choice = getattr(requirement, "choice", requirement)
    if isinstance(choice, ToolChoice):
        named = choice.name
        return choice if named is None else replace(choice, name=facts.wire_name(named))
    raise MisuseError(
        f"Expected a ToolRequirement or a ToolChoice, got {shorten(requirement)}. Make one, as in "
        "`ToolRequirement.at_least_one()`."
    )


def callers_of(definition: ToolDef, facts: Facts) -> dict[str, Any]:
    """Return the field that says who may call a tool, if something is said about that."""
    callers = [facts.callers[each] for each in definition.callers]
    return {"allowed_callers": callers} if callers else {}


@lru_cache(maxsize=2048)
def as_sent(definition: ToolDef, facts: Facts) -> ToolDef:
    """Return a tool as the model sees it: under a stand-in, its text begins with its name."""
    name = facts.wire_name(definition.name)
    if name == definition.name:
        return definition
    said = f"{definition.name}: {definition.description}"
    return definition.with_name(name).with_description(said)


def schema_losses(definition: ToolDef, facts: Facts, strict: bool = False) -> Iterator[Loss]:
    """Say what the provider will not enforce of a tool's schema, or that no program can call it."""
    if "program" in definition.callers:
        where = f"tools.{definition.name}.callers"
        if not facts.callers:
            yield Loss(where, f"{facts.name} runs no programs, so the model calls this tool itself")
        elif strict and not facts.calls_strictly:
            yield Loss(where, f"{facts.name} lets no program call a tool that is in strict mode")
            strict = False
    # A compiled schema is shared, and says the path within it only, as in `properties.age`: which
    # tool of which request it is for is said here.
    for loss in compile_schema(definition, facts, strict).losses:
        path = f".{loss.path}" if loss.path else ""
        yield Loss(f"tools.{definition.name}{path}", loss.text)


def answer_schema(answer: Any, facts: Facts, *, strict: bool) -> tuple[ToolDef, JsonSchema]:
    """Return the definition of a final answer, and its schema as the dialect writes it.

    Args:
        answer: An `Answer`, or the definition that a request carries of it.
        facts: What is known of the dialect.
        strict: Whether the provider holds the text to a schema of its strict mode.

    Raises:
        MisuseError: It is neither.
        ToolDefinitionError: Its schema has no form in the dialect.
    """
    definition = answer if isinstance(answer, ToolDef) else getattr(answer, "definition", None)
    if not isinstance(definition, ToolDef):
        raise MisuseError(
            f"A final answer is an Answer, not {shorten(answer)}. Write `Answer(Invoice, "
            "by='format')`."
        )
    sent = definition.with_name(facts.wire_name(definition.name))
    try:
        return sent, copy_json(compile_schema(definition, facts, strict).schema)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(
            f"{facts.name} cannot hold a text to the answer {definition.name!r}. Ask for it with "
            f"`by='tool'`, or correct its type: {error}"
        ) from error


def described(definition: ToolDef, key: str, schema: JsonSchema, strict: bool) -> dict[str, Any]:
    """Describe a tool as most wires do, with its schema under a key of theirs.

    Args:
        definition: The tool.
        key: Where the wire has the schema.
        schema: The schema.
        strict: Whether the tool is offered in strict mode, which is said only then.
    """
    about = {"description": definition.description} if definition.description else {}
    told: dict[str, Any] = {"name": definition.name, **about, key: schema}
    return {**told, "strict": True} if strict else told


@dataclass(frozen=True)
class NativeSearch:
    """Say what the results of searches may name.

    Attributes:
        searches: The names of the tools that search.
        names: The names of the tools that are deferred in the request.
        definitions: These tools, and others that are deferred in the toolset.
        strict: Whether tools are offered in strict mode.
    """

    searches: frozenset[str]
    names: frozenset[str]
    definitions: tuple[ToolDef, ...]
    strict: bool

    @cached_property
    def _own_names(self) -> OwnNames:
        return OwnNames(self.names)

    def found_by(self, result: ToolResult) -> list[str]:
        """Return the deferred tools that a search's result loads, each once."""
        if own_name(result.name, self.searches) not in self.searches:
            return []
        # What a search named may have been said under a stand-in, and twice; `fromkeys` keeps the
        # order of the first.
        named = dict.fromkeys(map(self._own_names.own, names_loaded_by(result)))
        return [name for name in named if name in self.names]


def always_offered(request: TurnRequest) -> tuple[ToolDef, ...]:
    """Return the tools of a request that were not loaded: every request of it all begins so."""
    # Loaded tools stand after all others in a request, newest last: [add, search | weather, news].
    # So the front of the list is the same in each request of a conversation, as the cache wants it.
    loaded = len(request.deferred.loaded) if request.deferred else 0
    return request.tools[: len(request.tools) - loaded]


def native_search_of(request: TurnRequest, *, wanted: bool, strict: bool) -> NativeSearch | None:
    """Return what the results of a request may name; None if its tools go out as usual."""
    deferred = request.deferred
    if not wanted or deferred is None:
        return None
    always = {each.name for each in always_offered(request)}
    definitions = tuple(deferred.definitions)
    names = frozenset(each.name for each in definitions if each.name not in always)
    return NativeSearch(deferred.searches, names, definitions, strict)


def native_tools(
    request: TurnRequest, native: NativeSearch | None, named: Collection[str]
) -> Iterator[tuple[ToolDef, bool]]:
    """Yield the tools to send, in order, and whether each is deferred.

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
