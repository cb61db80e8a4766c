"""Read a JSON schema: its references, its branches, and what kinds of value a node takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..._schema.definition import JsonSchema, ToolDef
from ..._text.json import copy_json, shorten
from ...errors import ToolDefinitionError
from .._wire.reading import is_array, is_object

__all__ = [
    "ANNOTATIONS",
    "DEFS",
    "Loss",
    "Node",
    "branches_of",
    "kinds_of",
    "plain_schema",
    "reference_of",
    "refusal",
    "resolve",
    "subschemas",
]

Node: TypeAlias = JsonSchema | bool
DEFS: Final = "#/$defs/"

ANNOTATIONS: Final = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "discriminator",
        "$comment",
        "$schema",
        "$id",
    }
)
"""Keywords that say something about a value and refuse none."""

_BY_NAME: Final = ("properties", "$defs", "patternProperties", "dependentSchemas")
_VALUES: Final = frozenset({"enum", "const", "default", "examples"})
_IN_LIST: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE: Final = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Tell of one rule of the author's schema that the provider will not enforce.

    Attributes:
        path: Where in the arguments, as in `filters[].name`; empty for the whole.
        keyword: The keyword of the schema, as in `maximum`.
        text: What that means, for people.
    """

    path: str
    keyword: str
    text: str


def refusal(tool: str, path: str, problem: str, remedy: str) -> ToolDefinitionError:
    """Make the error for a part of a schema that has no form in a dialect."""
    return ToolDefinitionError(f"Tool {tool!r}, at `{path or '(root)'}`: {problem} {remedy}")


def plain_schema(definition: ToolDef) -> JsonSchema:
    """Copy the input schema of a tool, with every reference in the one form `#/$defs/NAME`.

    Raises:
        ToolDefinitionError: A reference leads out of the schema's own definitions.
    """
    source = definition.input_schema
    definitions: dict[str, Any] = {**source.get("definitions", {}), **source.get("$defs", {})}
    reader = _Copier(definition.name, definitions)
    plain: JsonSchema = reader.copy(
        {key: part for key, part in source.items() if key not in ("definitions", "$defs")}, ""
    )
    if definitions:
        plain["$defs"] = {
            name: reader.copy(part, f"$defs.{name}") for name, part in definitions.items()
        }
    if reader.root_name is not None:
        inner = {key: part for key, part in plain.items() if key != "$defs"}
        defs = {**plain.get("$defs", {}), reader.root_name: inner}
        plain = {"$ref": DEFS + reader.root_name, "$defs": defs}
    return plain


class _Copier:
    """Copy nodes, and bring their references into one form."""

    def __init__(self, tool: str, definitions: Mapping[str, Any]) -> None:
        self.tool = tool
        self.definitions = definitions
        self.root_name: str | None = None

    def copy(self, node: Any, path: str, *, by_name: bool = False) -> Any:
        """Copy a node; with `by_name`, an object whose keys are names and no keywords."""
        if is_array(node):
            return [self.copy(part, path) for part in node]
        if not is_object(node):
            return node
        copied: dict[str, Any] = {}
        for key, part in node.items():
            place = f"{path}.{key}" if path else key
            if by_name:
                copied[key] = self.copy(part, place)
            elif key == "$ref" and isinstance(part, str):
                copied[key] = self.reference(part, path)
            elif key in _VALUES:
                copied[key] = copy_json(part)
            else:
                copied[key] = self.copy(part, place, by_name=key in _BY_NAME)
        return copied

    def reference(self, reference: str, path: str) -> str:
        if reference == "#":
            if self.root_name is None:
                self.root_name = "Arguments"
                while self.root_name in self.definitions:
                    self.root_name += "_"
            return DEFS + self.root_name
        for prefix in (DEFS, "#/definitions/"):
            name = reference.removeprefix(prefix)
            if name != reference and name in self.definitions:
                return DEFS + name
        raise refusal(
            self.tool,
            path,
            f"the reference {shorten(reference)} leads nowhere inside the schema.",
            "Put what it means under `$defs`, and refer to it as `#/$defs/NAME`.",
        )


def reference_of(node: Node) -> str | None:
    """Return the name of the definition that a node refers to, or None."""
    if isinstance(node, bool) or "$ref" not in node:
        return None
    return str(node["$ref"])[len(DEFS) :]


def resolve(node: Node, defs: Mapping[str, Node]) -> JsonSchema:
    """Follow a node's references; keywords beside a reference win over those of the definition.

    A chain of references that only leads back to itself takes any value.
    """
    merged: JsonSchema = {}
    seen: set[str] = set()
    current = node
    while True:
        if isinstance(current, bool):
            return merged if current else {**merged, "not": {}}
        for key, part in current.items():
            if key != "$ref":
                merged.setdefault(key, part)
        name = reference_of(current)
        if name is None or name in seen:
            return merged
        seen.add(name)
        current = defs[name]


def branches_of(node: JsonSchema) -> list[Node]:
    """Return the alternatives of a node, whichever keyword holds them."""
    return [*node.get("anyOf", ()), *node.get("oneOf", ())]


def kinds_of(node: JsonSchema) -> list[str]:
    """Return the types of value that a node names; empty where it names none."""
    kind = node.get("type")
    if kind is None:
        return []
    return list(kind) if is_array(kind) else [kind]


def subschemas(node: Node) -> Iterator[tuple[str, str, Node]]:
    """Give every schema directly inside a node, with the keyword and name that it stands under."""
    if isinstance(node, bool):
        return
    for key in _BY_NAME:
        for name, part in node.get(key, {}).items():
            yield key, name, part
    for key in _IN_LIST:
        for part in node.get(key, ()):
            yield key, "", part
    for key in _ALONE:
        part = node.get(key)
        if isinstance(part, dict):
            yield key, "", part
