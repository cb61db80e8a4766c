"""Read a JSON schema: its references, its branches, and what kinds of value a node takes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ... import ToolDef
from ..._text.json import (
    JsonObject,
    compact_json,
    copy_json,
    is_mapping,
    is_object,
    is_sequence,
    json_key,
    parse_json,
)
from ..._text.names import stand_in
from ...errors import ToolDefinitionError
from ...schemas import (
    Node,
    fault_in,
    follow,
    is_before_2019,
    localized,
    reference_to,
    subschemas,
    types_in,
    with_subschemas,
)
from ...typing import JsonSchema

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
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly"),
        *("writeOnly", "discriminator", "$comment"),
    }
)
"""Keywords that say something about a value and refuse none."""

STRUCTURE: Final = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items"),
        *("prefixItems", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
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
        self._is_old = is_before_2019(source)
        self._losses = losses
        self._names: dict[str, str] = {}
        self._waiting: JsonObject = {}

    def plain(self) -> JsonSchema:
        for key in _DEFINITIONS:
            for name, part in self._source.get(key, {}).items():
                self._define(reference_to((key, name)), name, part)
        # Copying a definition may lead to more of them, so `_waiting` grows while it is gone
        # through. What is under `#/properties/a` becomes a definition too if somebody refers to it.
        plain, defs = self.copy(self._source), JsonObject()
        while len(defs) < len(self._waiting):
            name, part = next(item for item in self._waiting.items() if item[0] not in defs)
            defs[name] = self.copy(part)
        # Something refers to the root, as in a tree: {"properties": {"children": {"items": {"$ref":
        # "#"}}}}. A provider's subset knows definitions only, so the root becomes one, named
        # `Arguments`.
        if "#" in self._names:
            plain = {"$ref": DEFS + self._names["#"]}
        return {**plain, "$defs": defs} if defs else plain

    def copy(self, node: object) -> Any:
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

    def _define(self, reference: str, name: str, part: object) -> None:
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


_TOGETHER: Final = (
    frozenset({"if", "then", "else"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"prefixItems", "items"}),
)
"""Keywords that mean something only with each other, so that they are taken from one schema."""
_LEFT: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that go by what other schemas say about the same value."""
_PATTERNS: Final = "patternProperties"
_REST: Final = "additionalProperties"


def conjoined(
    first: JsonSchema, others: Iterable[JsonSchema], lose: Callable[[str], None]
) -> JsonSchema:
    """Make one schema of several without references and `allOf`.

    Args:
        first: The schema that the others stand inside of; its texts win.
        others: The others.
        lose: Is told each keyword of which not everything could be kept.
    """
    lost: dict[str, None] = {}
    merged = first
    for other in others:
        merged = _both(merged, other, lost)
    if lost:
        merged = _without(merged, _LEFT, lost)
    for key in lost:
        lose(key)
    return merged


# {"minimum": 1, "type": "integer"} and {"minimum": 5} are {"minimum": 5, "type": "integer"}. What
# cannot be told in one schema, such as two patterns, stays as the first has it and is lost of the
# second: too wide, never too narrow, because the rest is checked at the call.
def _both(first: JsonSchema, second: JsonSchema, lost: dict[str, None]) -> JsonSchema:
    second = _without(second, _LEFT, lost)
    for together in _TOGETHER:
        ours, theirs = first.keys() & together, second.keys() & together
        if ours and theirs and not ours == theirs == {"items"}:
            second = _without(second, together, lost)
    # `additionalProperties` is about what the patterns of its own schema leave over. Beside the
    # patterns of the other it would refuse, or take, other names than its author meant.
    if (_PATTERNS in first or _PATTERNS in second) and (_REST in first or _REST in second):
        first, second = (_without(each, frozenset({_REST}), lost) for each in (first, second))
    if first.get("const") != second.get("const") or "enum" in first or "enum" in second:
        first, second = _listed(first), _listed(second)
    # First the properties, while each schema still has its own `additionalProperties`.
    merged, added = _held_against(first, second), _held_against(second, first)
    for key, value in added.items():
        known = merged.get(key, value)
        both = known if known == value or key in ANNOTATIONS else _joined(key, known, value)
        if both is None:
            lost[key] = None
        merged[key] = known if both is None else both
    # An empty list of types is not a schema. An empty enumeration is one, which no value fits.
    return {**merged, "enum": []} if merged.get("type") == [] else merged


def _without(schema: JsonSchema, keywords: frozenset[str], lost: dict[str, None]) -> JsonSchema:
    lost.update(dict.fromkeys(key for key in schema if key in keywords))
    return {key: part for key, part in schema.items() if key not in keywords}


def _listed(schema: JsonSchema) -> JsonSchema:
    """Write a constant as an enumeration, so that two of them have values in common, or none."""
    rest = {key: part for key, part in schema.items() if key != "const"}
    return {**rest, "enum": [schema["const"]]} if "const" in schema else rest


def _held_against(schema: JsonSchema, other: JsonSchema) -> JsonSchema:
    """Hold the properties that only one schema names against what the other says about such."""
    # With {"properties": {"a": ..., "b": ...}} here and a closed object there that has only `a`, no
    # value may have `b`: its schema becomes False.
    rest = other.get(_REST, True)
    if rest is True or "properties" not in schema:
        return dict(schema)
    named = other.get("properties", ())
    parts = schema["properties"].items()
    held = {name: part if name in named else _all_of(part, rest) for name, part in parts}
    return {**schema, "properties": held}


def _all_of(one: Node, other: Node) -> Node:
    if one is False or other is False:
        return False
    if one == other or other is True:
        return one
    return other if one is True else {"allOf": [one, other]}


def _joined(key: str, one: Any, other: Any) -> Any:
    """Join what two schemas say by one keyword; None if one schema cannot say both."""
    if key == "type":
        return _types(types_in({key: one}), types_in({key: other}))
    if key == "enum":
        # By their JSON text: in Python 1 == True, and a list cannot be in a set.
        wanted = {json_key(value) for value in other}
        return [value for value in one if json_key(value) in wanted]
    if key == "required":
        return list(dict.fromkeys([*one, *other]))
    if key == "not":
        return {"anyOf": [one, other]}
    if key in ("properties", _PATTERNS, "dependentSchemas"):
        return {**one, **{name: _all_of(one.get(name, True), part) for name, part in other.items()}}
    if key in (_REST, "items", "propertyNames"):
        return _all_of(one, other)
    # Of two bounds the stricter. For `uniqueItems` that is the greater too: True before False.
    if key.startswith(("min", "exclusiveMin", "unique")):
        return max(one, other)
    return min(one, other) if key.startswith(("max", "exclusiveMax")) else None


def _types(one: Sequence[str], other: Sequence[str]) -> str | list[str]:
    """Return the types of both; a number that is wanted whole is an integer."""
    wide = [{*kinds, *(["integer"] if "number" in kinds else ())} for kinds in (one, other)]
    both = [kind for kind in dict.fromkeys([*one, *other]) if all(kind in each for each in wide)]
    kinds = [kind for kind in both if kind != "integer" or "number" not in both]
    return kinds[0] if len(kinds) == 1 else kinds


def apart(one: JsonSchema, other: JsonSchema) -> bool:
    """Whether it is plain to see that no value fits both schemas."""
    # Looks at the tag of a union, as in {"kind": {"const": "a"}} and {"kind": {"const": "b"}},
    # joined to an enumeration of nothing. False only says that it is not plain to see.
    merged = _both(_listed(one), _listed(other), {})
    if merged.get("enum") == []:
        return True
    parts, required = merged.get("properties", {}), {*one.get("required", ())}
    named = required & {*other.get("required", ())} & parts.keys()
    is_object = types_in(one) == types_in(other) == ["object"]
    return is_object and any(
        apart(one["properties"][name], other["properties"][name])
        for name in named
        if all(isinstance(each["properties"].get(name), dict) for each in (one, other))
    )


_MOST: Final = 20_000
"""Nodes of one written schema: definitions that are put in place may double at each level."""


class Writer(ABC):
    """Rewrite the nodes of one schema.

    Args:
        tool: The name of the tool, for messages.
        schema: The author's schema, whose root is an object.
        losses: Takes what the provider will not enforce.
    """

    def __init__(self, tool: str, schema: JsonSchema, losses: list[SchemaLoss]) -> None:
        self.tool = tool
        self.defs: Mapping[str, Node] = schema.get("$defs", {})
        self._schema = schema
        self._losses = losses
        # The definitions that are being put in place, outermost first: one that is met again inside
        # itself stays a reference, or writing would never end.
        self._way: list[str | None] = []
        self._left = _MOST

    def whole(self) -> JsonSchema:
        """Write the schema, its definitions included."""
        written: JsonSchema = self.node(
            {k: part for k, part in self._schema.items() if k != "$defs"}, ""
        )
        if self.defs:
            parts = self.defs.items()
            written["$defs"] = {name: self.node(part, f"$defs.{name}") for name, part in parts}
        return written

    @abstractmethod
    def plain(self, node: JsonSchema, path: str) -> Any:
        """Write a node that is neither a reference nor a conjunction."""

    def node(self, node: Node, path: str) -> Any:
        """Write a node."""
        self._spend(path)
        if isinstance(node, bool):
            return node
        if "$ref" in node:
            return dict(node) if node.keys() == {"$ref"} else self._in_place(node, path)
        if "allOf" in node:
            return self.node(self._conjoined(node, path), path)
        return self.plain(node, path)

    def lose(self, path: str, keyword: str, text: str | None = None) -> None:
        """Note that the provider will not enforce a keyword."""
        said = text or f"{keyword} not enforced by the provider; checked locally"
        self._losses.append(SchemaLoss(path, keyword, said))

    def _spend(self, path: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise refusal(
                self.tool,
                path,
                f"written out, the schema has more than {_MOST:,} parts, because definitions are "
                "put in place of references that have words beside them, and of `allOf`.",
                "Take the words beside `$ref` away, or let the definitions say them.",
            )

    def _in_place(self, node: JsonSchema, path: str) -> Any:
        """Put a definition where words stand beside its reference, which no provider takes.

        Inside itself a definition stays a reference, and the words are lost.
        """
        name = reference_of(node)
        if name in self._way:
            self.lose(
                path, "$ref", "the words beside a reference to a schema that holds it are left out"
            )
            return {"$ref": node["$ref"]}
        self._way.append(name)
        written = self.node(resolve(node, self.defs), path)
        self._way.pop()
        return written

    def _conjoined(self, node: JsonSchema, path: str) -> JsonSchema:
        """Merge the parts of `allOf` into the node that holds them."""
        first, *others = self._parts(node, path)
        text = "the provider takes no `allOf`, and the parts of this one that differ in"

        def lose(keyword: str) -> None:
            self.lose(path, keyword, f"{text} `{keyword}` are checked locally")

        return conjoined(first, others, lose)

    def _parts(self, node: JsonSchema, path: str) -> Iterator[JsonSchema]:
        self._spend(path)
        yield {key: part for key, part in node.items() if key != "allOf"}
        for part in node.get("allOf", ()):
            yield from self._parts(resolve(part, self.defs), path)


def refused_keys(schema: object, taken: re.Pattern[str] | None) -> dict[str, str]:
    """Return the keys of a schema's properties that a provider refuses, with their stand-ins."""
    properties = schema.get("properties") if is_mapping(schema) else None
    if taken is None or not is_mapping(properties):
        return {}
    return {key: stand_in(key) for key in map(str, properties) if taken.fullmatch(key) is None}


def with_keys_sent(schema: JsonSchema, refused: Mapping[str, str]) -> JsonSchema:
    """Return a schema in which stand-ins stand for the keys that are refused."""
    if not refused:
        return schema
    properties = {
        refused.get(key, key): _named(key, node) if key in refused else node
        for key, node in schema["properties"].items()
    }
    required = schema.get("required")
    listed = required if is_sequence(required) else ()
    sent = {"required": [refused.get(key, key) for key in listed]} if listed else {}
    return {**schema, "properties": properties, **sent}


def _named(key: str, node: object) -> Any:
    """Let the text of a property begin with its own key."""
    if not is_mapping(node):
        return node
    about = node.get("description")
    return {**node, "description": f"{key}: {about}" if about else key}


def without_stand_ins(arguments: object, refused: Mapping[str, str]) -> Any:
    """Put the keys themselves where arguments have their stand-ins, in JSON text or a dict."""
    if isinstance(arguments, str):
        try:
            value = parse_json(arguments)
        except ValueError:
            return arguments
        restored = without_stand_ins(value, refused)
        return arguments if restored is value else compact_json(restored)
    own = {sent: key for key, sent in refused.items()}
    if not is_mapping(arguments) or own.keys().isdisjoint(arguments):
        return arguments
    return {own.get(key, key): value for key, value in arguments.items()}
