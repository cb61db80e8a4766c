"""Toolsets that are made while the program runs, such as of the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

from .._schema.definition import ToolDef
from .._text.json import digest_of, shorten
from .._text.suggestion import names_for_message
from ..errors import MisuseError, ToolDefinitionError
from .declared import GroupMember, ToolMember
from .member import tool
from .schema_tool import SchemaTool, spec_from_definition
from .toolset_meta import ToolsetMeta, make_toolset

__all__ = ["toolset_from_definitions", "toolset_of"]

# One class for one content, so that a call that was pickled comes back to the selector it had.
_made: WeakValueDictionary[Any, ToolsetMeta] = WeakValueDictionary()


def toolset_from_definitions(
    name: str,
    definitions: tuple[ToolDef, ...],
    functions: Mapping[str, Callable[..., Any]] | None,
) -> ToolsetMeta:
    """Make a toolset of definitions, or return the one that already was made of the same."""
    _check_name(name)
    for each in definitions:
        if not isinstance(each, ToolDef):
            raise ToolDefinitionError(
                f"Toolset `{name}` is made of ToolDefs, not {shorten(each)}. Make one with "
                "`ToolDef.from_json_schema(name=..., input_schema=...)`."
            )
    known = {each.name for each in definitions}
    for other in functions or ():
        if other not in known:
            raise ToolDefinitionError(
                f"Toolset `{name}`: there is a function for {shorten(other)}, but no definition. "
                f"There are definitions of {names_for_message(known)}."
            )
    key = digest_of([name, [each.to_dict() for each in definitions]])
    if functions is None and (found := _made.get(key)) is not None:
        return found
    declared: dict[str, ToolMember | GroupMember] = {}
    for each in definitions:
        if each.name in declared:
            raise ToolDefinitionError(
                f"Toolset `{name}`: two definitions have the name {each.name!r}. Rename one with "
                "`definition.with_name(...)`."
            )
        spec = spec_from_definition(each, (functions or {}).get(each.name))
        declared[each.name] = ToolMember(spec, is_off=False)
    root: Any = ToolsetMeta._root

    def rebuild() -> tuple[Any, ...]:
        if functions is not None:
            raise MisuseError(
                f"Toolset `{name}` is not pickled: it was made with functions. Make it where it is "
                "used."
            )
        return (root.from_definitions, (name, definitions))

    made = make_toolset(name, declared, rebuild=rebuild)
    if functions is not None:
        return made
    _made[key] = made
    return made


def toolset_of(name: str, tools: tuple[Any, ...], prefix: str) -> ToolsetMeta:
    """Make a toolset of what is declared, or return the one that already was made of the same."""
    _check_name(name)
    if not isinstance(prefix, str):
        raise ToolDefinitionError(f"`Toolset.of(prefix=...)` takes a text, not {shorten(prefix)}.")
    listed: list[Any] = [each if isinstance(each, ToolMember) else tool(each) for each in tools]
    members = [ToolMember(each.spec, each.is_off, prefix) for each in listed]
    key = (name, prefix, *((_identity(each.spec.origin), each.is_off) for each in members))
    found = _made.get(key)
    if found is not None:
        return found
    declared: dict[str, ToolMember | GroupMember] = {}
    for each in members:
        if each.name in declared:
            raise ToolDefinitionError(
                f"Toolset `{name}`: two tools are called {each.name!r} on the wire. Rename one "
                "with `name=`."
            )
        declared[each.name] = each

    def rebuild() -> tuple[Any, ...]:
        for each in members:
            if isinstance(each.spec.origin, MethodType):
                raise MisuseError(
                    f"Toolset `{name}` is not pickled: tool `{each.name}` is a method of one "
                    "instance. Make the toolset of functions, or make it where it is used."
                )
        return (_again, (name, tuple((each.spec.origin, each.is_off) for each in members), prefix))

    made = make_toolset(name, declared, rebuild=rebuild)
    _made[key] = made
    return made


def _again(name: str, tools: tuple[tuple[Any, bool], ...], prefix: str) -> ToolsetMeta:
    members: list[Any] = [tool(origin, off=is_off) for origin, is_off in tools]
    return toolset_of(name, tuple(members), prefix)


def _identity(origin: Any) -> Any:
    """Tell tools apart: by what they are, and those of definitions by what those say."""
    if isinstance(origin, SchemaTool):
        return digest_of(origin.definition.to_dict())
    return (
        (type(origin), id(origin.__self__), origin.__func__)
        if isinstance(origin, MethodType)
        else origin
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ToolDefinitionError(f"A toolset needs a Python name, got {shorten(name)}.")
