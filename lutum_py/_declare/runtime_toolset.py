"""Toolsets that are made while the program runs, such as of the tools of an MCP server."""

from __future__ import annotations

from weakref import WeakValueDictionary

from .._schema.definition import ToolDef
from .._text.json import digest_of, shorten
from ..errors import ToolDefinitionError
from .declared import GroupMember, ToolMember
from .schema_tool import spec_from_definition
from .toolset_meta import ToolsetMeta, make_toolset

__all__ = ["toolset_from_definitions"]

# One class for one content, so that a call that was pickled comes back to the selector it had.
_made: WeakValueDictionary[str, ToolsetMeta] = WeakValueDictionary()


def toolset_from_definitions(name: str, definitions: tuple[ToolDef, ...]) -> ToolsetMeta:
    """Make a toolset of definitions, or return the one that already was made of the same."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ToolDefinitionError(f"A toolset needs a Python name, got {shorten(name)}.")
    for each in definitions:
        if not isinstance(each, ToolDef):
            raise ToolDefinitionError(
                f"Toolset `{name}` is made of ToolDefs, not {shorten(each)}. Make one with "
                "`ToolDef.from_json_schema(name=..., input_schema=...)`."
            )
    key = digest_of([name, [each.to_dict() for each in definitions]])
    found = _made.get(key)
    if found is not None:
        return found
    declared: dict[str, ToolMember | GroupMember] = {}
    for each in definitions:
        if each.name in declared:
            raise ToolDefinitionError(
                f"Toolset `{name}`: two definitions have the name {each.name!r}. Rename one with "
                "`definition.with_name(...)`."
            )
        declared[each.name] = ToolMember(spec_from_definition(each), is_off=False)
    made = make_toolset(name, declared, rebuild=(name, definitions))
    _made[key] = made
    return made
