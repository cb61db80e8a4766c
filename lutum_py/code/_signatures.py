"""Write tools down as a program calls them: `async def` lines made of their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from textwrap import indent
from typing import Any, Final

from .._schema.definition import ToolDef
from .._schema.schema_reader import JsonSchema, alternatives, follow, types_in
from .._text.json import is_object

_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_MOST: Final = 200
"""So many parts of the schemas of one tool are written out; the others are `Any`."""


def signature(tool: ToolDef) -> str:
    """Write a tool as the head of an async function, with what its model is told about it."""
    schema = tool.input_schema
    types = _Types(schema)
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required", ())
    written: list[str] = []
    odd: list[str] = []
    told: list[str] = [tool.description]
    for name, part in properties.items():
        default = part.get("default") if is_object(part) else None
        shown = "" if name in required else f" = {default!r}"
        if not name.isidentifier() or iskeyword(name):
            odd.append(f"{name!r}: {types.of(part)}{shown}")
            continue
        # Python takes no required parameter after one with a default, and JSON schemas have them
        # in any order; after a `*` it does.
        if not shown and any(" = " in each for each in written) and "*" not in written:
            written.append("*")
        written.append(f"{name}: {types.of(part)}{shown}")
        if is_object(part) and part.get("description"):
            told.append(f"{name}: {part['description']}")
    if odd:
        written.append("**others")
        told.append(f"Give by name, as in `**{{name: value}}`: {', '.join(odd)}")
    gives = _Types(tool.output_schema).of(tool.output_schema)
    head = f"async def {tool.name}({', '.join(written)}) -> {gives}:"
    words = "\n".join(filter(None, told)) or "No description."
    return f"{head}\n" + indent(f'"""{words}"""', "    ")


class _Types:
    """Writes the types that the parts of one schema stand for, as far as there are any."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _MOST

    def of(self, schema: Any, within: frozenset[str] = frozenset()) -> str:
        """Write the type of a part.

        Args:
            schema: The part.
            within: The references that led to it: a type that holds itself is written once.
        """
        self._left -= 1
        reference = schema.get("$ref") if is_object(schema) else None
        if isinstance(reference, str):
            schema = None if reference in within else follow(reference, self._root)
            within |= {reference}
        if not is_object(schema) or self._left < 0:
            return "Any"
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(map(repr, values))}]"
        written = [self.of(each, within) for each in alternatives(schema)]
        written = written or [self._one(kind, schema, within) for kind in types_in(schema)]
        return " | ".join(dict.fromkeys(written)) or "Any"

    def _one(self, kind: str, schema: JsonSchema, within: frozenset[str]) -> str:
        if kind == "array":
            parts = schema.get("prefixItems")
            if parts:
                return f"tuple[{', '.join(self.of(each, within) for each in parts)}]"
            return f"list[{self.of(schema.get('items'), within)}]"
        if kind == "object":
            fields: JsonSchema = schema.get("properties", {})
            shown = (f"{name!r}: {self.of(each, within)}" for name, each in fields.items())
            if fields:
                return f"{{{', '.join(shown)}}}"
            return f"dict[str, {self.of(schema.get('additionalProperties'), within)}]"
        return _TYPES[kind]
