"""Read a JSON schema: its references, its branches, and what kinds of value a node takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..._schema.definition import ToolDef
from ..._schema.schema_reader import (
    JsonSchema,
    Node,
    fault_in,
    follow,
    is_old,
    localized,
    reference_to,
    subschemas,
    with_subschemas,
)
from ..._text.json import copy_json, is_mapping, is_object, is_sequence
from ...errors import ToolDefinitionError

DEFS: Final = "#/$defs/"
_DEFINITIONS: Final = ("definitions", "$defs")
_UNTOLD: Final = frozenset(
    {
        *_DEFINITIONS,
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$vocabulary",
    }
)
"""What says how the author's own document is to be read."""
_DYNAMIC: Final = frozenset({"$dynamicRef", "$recursiveRef"})
_SPECIAL: Final = re.compile("[~/%]")

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
    }
)
"""Keywords that say something about a value and refuse none."""

STRUCTURE: Final = frozenset(
    {
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
    }
)
"""Keywords that every provider takes in one way or another."""


@dataclass(frozen=True, slots=True)
class SchemaLoss:
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


def plain_schema(definition: ToolDef, losses: list[SchemaLoss]) -> JsonSchema:
    """Copy the input schema of a tool as the draft of 2020 has it, whatever its own draft is.

    Every reference has the one form `#/$defs/NAME`, so that no identifier is left.

    Args:
        definition: The tool.
        losses: Takes what cannot be told so.

    Raises:
        ToolDefinitionError: A reference leads out of the schema, or back to itself without end.
    """
    source = definition.input_schema
    fault = fault_in(source)
    if fault is not None:
        raise refusal(definition.name, fault.path, f"{fault.problem}.", fault.remedy)
    return _Copier(copy_json(localized(source)), losses).plain()


class _Copier:
    """Copy nodes, and make a definition of whatever a reference leads to."""

    def __init__(self, source: JsonSchema, losses: list[SchemaLoss]) -> None:
        self._source = source
        self._is_old = is_old(source)
        self._losses = losses
        self._names: dict[str, str] = {}
        self._waiting: dict[str, Any] = {}

    def plain(self) -> JsonSchema:
        for key in _DEFINITIONS:
            for name, part in self._source.get(key, {}).items():
                self._define(reference_to((key, name)), name, part)
        # Copying a definition may lead to more of them, so `_waiting` grows while it is gone
        # through. What is under `#/properties/a` becomes a definition too if somebody refers to it.
        plain, defs = self.copy(self._source), dict[str, Any]()
        while len(defs) < len(self._waiting):
            name, part = next(item for item in self._waiting.items() if item[0] not in defs)
            defs[name] = self.copy(part)
        # Something refers to the root, as in a tree: {"properties": {"children": {"items": {"$ref":
        # "#"}}}}. A provider's subset knows definitions only, so the root becomes one, named
        # `Arguments`.
        if "#" in self._names:
            plain = {"$ref": DEFS + self._names["#"]}
        return {**plain, "$defs": defs} if defs else plain

    def copy(self, node: Any) -> Any:
        if not is_mapping(node):
            return node
        # Before the draft of 2019, whatever was beside a reference was ignored. It must not begin
        # to count because the schema is told in a newer draft.
        hidden = node.keys() - {"$ref", *ANNOTATIONS} if self._is_old and "$ref" in node else ()
        copied = with_subschemas(
            {key: part for key, part in node.items() if key not in _UNTOLD and key not in hidden},
            self.copy,
        )
        self._modernise(copied)
        # Everything below reads one union in a node; the second becomes a part of a conjunction.
        if "anyOf" in copied and "oneOf" in copied:
            copied["allOf"] = [*copied.get("allOf", ()), {"oneOf": copied.pop("oneOf")}]
        if "$ref" in node:
            reference = node["$ref"]
            if reference not in self._names:
                name = "Arguments" if reference == "#" else reference.rpartition("/")[2]
                self._define(reference, name, follow(reference, self._source))
            copied["$ref"] = DEFS + self._names[reference]
            # A reference with rules beside it is a conjunction, and is written as one: then only
            # texts stand beside a `$ref`, and one place, `Writer._conjoined`, knows how to put
            # rules together.
            if copied.keys() - {"$ref", *ANNOTATIONS}:
                copied["allOf"] = [{"$ref": copied.pop("$ref")}, *copied.get("allOf", ())]
        # The other way round: Pydantic once wrote a reference with a description as `allOf` of one,
        # and a provider that takes references should see it as that.
        elif {*copied} - ANNOTATIONS == {"allOf"} and len(copied["allOf"]) == 1:
            only = copied["allOf"][0]
            if is_mapping(only) and {*only} == {"$ref"}:
                copied["$ref"] = copied.pop("allOf")[0]["$ref"]
        return copied

    def _modernise(self, node: JsonSchema) -> None:
        """Say what older drafts say in words of the draft of 2020, without what says nothing."""
        for name, part in node.get("properties", {}).items():  # in draft 3 a property is required
            if is_object(part) and isinstance(part.get("required"), bool) and part.pop("required"):
                node["required"] = [*node.get("required", ()), name]
        others = node.pop("additionalItems", None)
        if is_sequence(node.get("items")):
            listed = node.pop("items")
            node.update({"prefixItems": listed} if listed else {})
            node.update({} if others is None else {"items": others})
        depending = node.pop("dependencies", None)
        for name, needed in depending.items() if self._is_old and is_mapping(depending) else ():
            keyword = "dependentRequired" if is_sequence(needed) else "dependentSchemas"
            node.setdefault(keyword, {})[name] = needed
        if "if" not in node:
            node.pop("then", None)
            node.pop("else", None)
        for keyword in _DYNAMIC & node.keys():
            # Beside it stands a union of all that it may mean.
            del node[keyword]
            text = "which of the schemas of its name is meant, by the way there, is checked locally"
            self._losses.append(SchemaLoss("", keyword, text))

    def _define(self, reference: str, name: str, part: Any) -> None:
        name = _SPECIAL.sub("_", name)
        while name in self._waiting:
            name += "_"
        self._names[reference] = name
        self._waiting[name] = part


def reference_of(node: Node) -> str | None:
    """Return the name of the definition that a node refers to, or None."""
    if isinstance(node, bool) or "$ref" not in node:
        return None
    return str(node["$ref"])[len(DEFS) :]


def resolve(node: Node, defs: Mapping[str, Node]) -> JsonSchema:
    """Follow a node's references; texts beside a reference win over those of the definition.

    A chain of references that only leads back to itself takes any value.
    """
    merged: JsonSchema = {}
    # {"$ref": "#/$defs/A"} with A = {"$ref": "#/$defs/B"} and B = {"$ref": "#/$defs/A"} is a legal
    # schema that says nothing, and must not go round forever.
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


def reachable(schema: Node, defs: Mapping[str, Node]) -> dict[str, Node]:
    """Return the definitions that something in a schema leads to."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        name = reference_of(node)
        if name is not None and name not in found:
            found.add(name)
            waiting.append(defs[name])
        waiting.extend(part for keyword, _, part in subschemas(node) if keyword != "$defs")
    return {name: node for name, node in defs.items() if name in found}


def cycle_in(defs: Mapping[str, Node], *, required_only: bool = False) -> tuple[str, ...]:
    """Return the names of the definitions of one cycle, its first name repeated at the end.

    Args:
        defs: The definitions of a schema.
        required_only: Whether a way through a property that is not required does not count.

    Returns:
        The names in order, or nothing if no definition leads back to itself.
    """
    from graphlib import CycleError, TopologicalSorter  # only where there are definitions

    try:
        TopologicalSorter({n: _targets(node, required_only) for n, node in defs.items()}).prepare()
    except CycleError as error:
        # It goes the other way: of Tree, which refers to Leaf, which refers to Tree, it lists the
        # one that is referred to before the one that refers.
        return tuple(reversed(error.args[1]))
    return ()


def _targets(node: Node, required_only: bool) -> Iterator[str]:
    name = reference_of(node)
    if name is not None:
        yield name
    for keyword, property_name, part in subschemas(node):
        # A value may end where a property may be left out, so a way through one is not an endless
        # one.
        optional = keyword == "properties" and (
            isinstance(node, bool) or property_name not in node.get("required", ())
        )
        if keyword != "$defs" and not (optional and required_only):
            yield from _targets(part, required_only)
