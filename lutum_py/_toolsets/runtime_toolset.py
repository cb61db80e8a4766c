"""Toolsets that are made while the program runs, such as of the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

from .._call.spec import PLAIN, AnySpec, MemberOptions
from .._schema.definition import ToolDef
from .._text.escaping import names_for_message
from .._text.json import digest_of, shorten
from .._text.on_demand import ONCE
from .._transcript.result_cap import ResultCap
from ..errors import MisuseError, ToolDefinitionError
from .member import tool
from .tool_input import SchemaTool, spec_from_definition
from .toolset_meta import GroupMember, ToolMember, ToolsetMeta, make_toolset

# One class for one content, so that a call that was pickled comes back to the selector it had.
_made: WeakValueDictionary[object, ToolsetMeta] = WeakValueDictionary()


def toolset_from_definitions(
    name: str,
    definitions: tuple[ToolDef, ...],
    functions: Mapping[str, Callable[..., Any]] | None,
) -> ToolsetMeta:
    """Make a toolset of definitions, or return the one that was made of the same before."""
    _check_name(name)
    for each in definitions:
        if not isinstance(each, ToolDef):
            raise ToolDefinitionError(
                f"Toolset `{name}` is made of ToolDefs, not {shorten(each)}. Make one with "
                "`ToolDef.from_json_schema(name=..., input_schema=...)`."
            )
    if not isinstance(functions, Mapping | None):
        raise ToolDefinitionError(
            f"Toolset `{name}`: `functions=` takes a mapping of wire names to functions, not "
            f"{shorten(functions)}."
        )
    known = {each.name for each in definitions}
    for other in functions or ():
        if other not in known:
            raise ToolDefinitionError(
                f"Toolset `{name}`: there is a function for {shorten(other)}, but no definition. "
                f"There are definitions of {names_for_message(known)}."
            )
    # Two sessions that list one MCP server make one class. Otherwise each would have selectors of
    # its own, and hooks that are registered for one would not review calls of the other.
    key = digest_of([name, [each.to_dict() for each in definitions]])
    # Two functions that do the same cannot be told from two that do not, so what has functions is
    # never shared.
    if functions is None and (found := _made.get(key)) is not None:
        return found
    given = functions or {}
    specs = [spec_from_definition(each, given.get(each.name)) for each in definitions]
    if functions is not None:
        return toolset_of_specs(name, specs)  # type: ignore[no-any-return]
    root: Any = ToolsetMeta._root
    made = _of_specs(name, specs, lambda: (root.from_definitions, (name, definitions)))
    return _kept(key, made)


def toolset_of_specs(name: str, specs: Iterable[AnySpec]) -> Any:
    """Make a toolset of tools with functions of their own: never shared, never pickled."""
    _check_name(name)

    def rebuild() -> tuple[object, ...]:
        raise MisuseError(
            f"Toolset `{name}` is not pickled: it was made with functions. Make it where it is "
            "used."
        )

    return _of_specs(name, specs, rebuild)


def _of_specs(
    name: str, specs: Iterable[AnySpec], rebuild: Callable[[], tuple[object, ...]]
) -> ToolsetMeta:
    members = [ToolMember(spec, PLAIN) for spec in specs]
    twice = "two definitions have the name {}. Rename one with `definition.with_name(...)`."
    return make_toolset(name, _declared(name, members, twice), rebuild=rebuild)


def _declared(name: str, members: Iterable[ToolMember], twice: str) -> dict[str, ToolMember]:
    """Return members by their wire names; `twice` is the error if two have the same name."""
    declared: dict[str, ToolMember] = {}
    for each in members:
        wire_name = each.options.prefix + each.spec.definition.name
        if wire_name in declared:
            raise ToolDefinitionError(f"Toolset `{name}`: {twice.format(repr(wire_name))}")
        declared[wire_name] = each
    return declared


def toolset_of(name: str, tools: tuple[Any, ...], options: MemberOptions) -> ToolsetMeta:
    """Make a toolset of tools, or return the one that was made of the same before.

    Args:
        name: The name of the class.
        tools: What `tool()` takes, or gave.
        options: What is said about all of them.
    """
    _check_name(name)
    for each in tools:
        group = each.inner if isinstance(each, GroupMember) else each
        if isinstance(group, ToolsetMeta):
            raise ToolDefinitionError(
                f"Toolset `{name}`: `Toolset.of` takes tools, not {shorten(group)}. Nest a toolset "
                f"in a class: `class {name}(Toolset): group = toolset(...)`."
            )
    listed: list[Any] = [each if isinstance(each, ToolMember) else tool(each) for each in tools]
    members = [ToolMember(each.spec, each.options.inside(options)) for each in listed]
    # Keys that are equal if the tools are: the functions themselves, and for a definition its
    # digest. The toolset is held weakly, so one that nobody uses any more is gone.
    key = (name, *((_identity(each.spec.origin), each.options) for each in members))
    if (found := _made.get(key)) is not None:
        return found
    twice = (
        "two tools are called {} on the wire. Rename one where it is declared, as in "
        "`@tool_fn(name=...)`."
    )
    declared = _declared(name, members, twice)

    def rebuild() -> tuple[object, ...]:
        for wire_name, each in declared.items():
            if isinstance(each.spec.origin, MethodType):
                raise MisuseError(
                    f"Toolset `{name}` is not pickled: tool `{wire_name}` is a method of one "
                    "instance. Make the toolset of functions, or make it where it is used."
                )
            cap = each.options.result_cap
            if isinstance(cap, ResultCap) and cap.store is not None:
                raise MisuseError(
                    f"Toolset `{name}` is not pickled: the cap on results of tool `{wire_name}` "
                    "has a store, which is one in this process. Make the toolset where it is used."
                )
        return (_again, (name, tuple((each.spec.origin, each.options) for each in members)))

    return _kept(key, make_toolset(name, declared, rebuild=rebuild))


def _kept(key: object, made: ToolsetMeta) -> ToolsetMeta:
    """Keep a class under its content; return what is kept, as another thread may be first."""
    with ONCE:
        return _made.setdefault(key, made)


def _again(name: str, tools: tuple[tuple[Any, MemberOptions], ...]) -> ToolsetMeta:
    made: list[ToolMember] = [tool(origin) for origin, _ in tools]
    members = [ToolMember(each.spec, said) for each, (_, said) in zip(made, tools, strict=True)]
    return toolset_of(name, tuple(members), PLAIN)


def _identity(origin: object) -> object:
    """Return what tells tools apart: a function itself, or what a definition says."""
    if isinstance(origin, SchemaTool):
        return digest_of(origin.definition.to_dict())
    if isinstance(origin, MethodType):
        return type(origin), id(origin.__self__), origin.__func__
    return origin


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ToolDefinitionError(f"A toolset needs a Python name, got {shorten(name)}.")
