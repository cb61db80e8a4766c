"""Turn arguments from the form of a strict schema back into the form of the author's own.

In strict mode a property that the author made optional is required and nullable, and `null` stands
for "left out". It is turned back only if the author's type has no null of its own. If a union
leaves it open which alternative a value belongs to, the first that takes the value as it stands is
taken, then the first that takes it once its nulls are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import ge, gt, le, lt
from typing import Any, Final

from ..._text.json import (
    JsonObject,
    compact_json,
    is_mapping,
    is_number,
    is_sequence,
    parse_json,
    shorten,
)
from ...errors import ToolDefinitionError
from ...schemas import (
    UNIONS,
    Node,
    alternatives,
    matches_pattern,
    subschemas,
    type_of,
    types_in,
)
from ...typing import JsonSchema
from .nodes import (
    ANNOTATIONS,
    STRUCTURE,
    SchemaLoss,
    Writer,
    apart,
    cycle_in,
    reachable,
    reference_of,
    refusal,
    resolve,
)

_TYPES: Final[dict[str, Callable[[object], bool]]] = {
    "object": is_mapping,
    "array": is_sequence,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    # In JSON Schema 3.0 is an integer.
    "integer": lambda value: is_number(value) and value == value // 1,
    "number": is_number,
}
_BOUNDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
_LENGTHS: Final[Mapping[str, dict[str, Callable[[Any, Any], bool]]]] = {
    "string": {"minLength": ge, "maxLength": le},
    "array": {"minItems": ge, "maxItems": le},
}


def decoder_of(author: JsonSchema, wrapper: str | None) -> Callable[[Any], Any]:
    """Make the function that takes arguments back to the form of the author's schema.

    Args:
        author: The author's schema, with the object around its root if there is one.
        wrapper: The name of the one property of that object, or None.

    Returns:
        A function of JSON text or a dict that gives the same kind of thing; text that is not JSON,
        and what has the wrong form, comes back as it was.
    """
    defs: Mapping[str, Node] = author.get("$defs", {})

    def decode(arguments: object) -> Any:
        if not isinstance(arguments, str):
            return unwrap(_Reader(defs).restore(author, arguments))
        try:
            sent = parse_json(arguments)
        except ValueError:
            return arguments
        restored = unwrap(_Reader(defs).restore(author, sent))
        # The model's own text where nothing changes: it is what the transcript has, with its
        # numbers as they were written.
        return arguments if restored == sent else compact_json(restored)

    def unwrap(value: object) -> Any:
        if wrapper is not None and is_mapping(value) and list(value) == [wrapper]:
            return value[wrapper]
        return value

    return decode


def fits(node: Node, value: object, defs: Mapping[str, Node]) -> bool:
    """Say whether a value is of a schema, as far as its structure and plain bounds go."""
    return _Reader(defs).fits(node, value)


def takes_null(node: Node, defs: Mapping[str, Node]) -> bool:
    """Say whether null is among the values of a property in strict mode.

    It is not where the type is left open, for strict mode reads one out of the other keywords.
    """
    says = resolve(node, defs).keys() & {"type", "enum", "const", "allOf", *UNIONS}
    return bool(says) and fits(node, None, defs)


class _Reader:
    """Read one value by one schema.

    What was found for a node and a part of the value is kept by their identities, for unions in
    unions would ask twice as often at each level. The entries hold both, so that no other object
    gets the identity of either.
    """

    def __init__(self, defs: Mapping[str, Node]) -> None:
        self._defs = defs
        self._restored: dict[tuple[int, int], tuple[object, Node, object]] = {}
        self._fitting: dict[tuple[int, int], tuple[bool, Node, object]] = {}

    def restore(self, node: Node, value: object) -> Any:
        """Leave out each null for a property which the author's type has no null for."""
        key = (id(node), id(value))
        if key not in self._restored:
            self._restored[key] = (self._restore(node, value), node, value)
        return self._restored[key][0]

    def _restore(self, node: Node, value: object) -> Any:
        schema = resolve(node, self._defs)
        for part in schema.get("allOf", ()):
            value = self.restore(part, value)
        if is_mapping(value):
            value = self._restore_object(schema, value)
        elif is_sequence(value):
            value = [self.restore(part, item) for part, item in _items(schema, value)]
        branches = alternatives(schema)
        return self._restore_branch(branches, value) if branches else value

    def _restore_branch(self, branches: list[Node], value: object) -> Any:
        # The value as it stands goes first: {"a": null} may be of a branch where null means
        # something, though another branch would take it too, with the null left out.
        for branch in branches:
            if self.fits(branch, value):
                return value
        for branch in branches:
            restored = self.restore(branch, value)
            if self.fits(branch, restored):
                return restored
        return value

    def _restore_object(self, schema: JsonSchema, value: Mapping[str, object]) -> JsonObject:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        restored: JsonObject = {}
        for name, item in value.items():
            if name not in properties:
                restored[name] = item
                continue
            stands_for_nothing = item is None and name not in required
            if stands_for_nothing and not takes_null(properties[name], self._defs):
                continue
            restored[name] = self.restore(properties[name], item)
        return restored

    def fits(self, node: Node, value: object) -> bool:
        """Say whether a value is of a node, as far as its structure and plain bounds go."""
        key = (id(node), id(value))
        if key not in self._fitting:
            self._fitting[key] = (self._fits(node, value), node, value)
        return self._fitting[key][0]

    def _fits(self, node: Node, value: object) -> bool:
        schema = resolve(node, self._defs)
        if schema.get("not") == {}:
            return False
        if "const" in schema and not _same(value, schema["const"]):
            return False
        if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
            return False
        kinds = types_in(schema)
        if kinds and not any(_is_of(each, value) for each in kinds):
            return False
        branches = alternatives(schema)
        if branches and not any(self.fits(branch, value) for branch in branches):
            return False
        if not all(self.fits(part, value) for part in schema.get("allOf", ())):
            return False
        if is_mapping(value):
            return self._fits_object(schema, value)
        if is_sequence(value):
            return _obeys(_LENGTHS["array"], schema, len(value)) and all(
                self.fits(part, item) for part, item in _items(schema, value)
            )
        if isinstance(value, str):
            is_long_enough = _obeys(_LENGTHS["string"], schema, len(value))
            return is_long_enough and matches_pattern(schema.get("pattern", ""), value)
        return not is_number(value) or _obeys(_BOUNDS, schema, value)

    def _fits_object(self, schema: JsonSchema, value: Mapping[str, object]) -> bool:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", ())) and all(
            self.fits(properties.get(name, others), item) for name, item in value.items()
        )


def _items(schema: JsonSchema, value: Sequence[object]) -> Iterator[tuple[Node, object]]:
    """Yield each item with the node that describes it."""
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for index, item in enumerate(value):
        yield first[index] if index < len(first) else rest, item


def _obeys(
    rules: Mapping[str, Callable[[object, object], bool]], schema: JsonSchema, value: object
) -> bool:
    return all(rule(value, schema[key]) for key, rule in rules.items() if key in schema)


def _is_of(kind: str, value: object) -> bool:
    test = _TYPES.get(kind)
    return test is None or test(value)


def _same(value: object, other: object) -> bool:
    # In Python 1 == True, and in JSON they are two values.
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


@dataclass(frozen=True, slots=True)
class Strictness:
    """State what a strict mode takes.

    Attributes:
        provider: Its name, for messages.
        optional_is_nullable: Whether every property has to be required.
        recursion: Whether a definition may lead back to itself.
        keywords: The validating keywords that it takes, beside those of structure.
        formats: The formats of strings that it takes.
        min_items: The values of `minItems` that it takes; None for any.
        kept: Keywords without a meaning for validation that it takes.
        max_optional: How many optional properties it takes; None for any number.
        max_unions: How many properties of more than one type it takes; None for any number.
        check: Refuses a schema of a tool, by its name, that is too large.
    """

    provider: str
    optional_is_nullable: bool
    recursion: bool
    keywords: frozenset[str]
    kept: frozenset[str]
    formats: frozenset[str] = FORMATS
    min_items: frozenset[int] | None = None
    max_optional: int | None = None
    max_unions: int | None = None
    check: Callable[[str, JsonSchema], None] | None = None


ANTHROPIC: Final = Strictness(
    provider="Anthropic",
    optional_is_nullable=False,
    recursion=False,
    keywords=frozenset({"pattern", "format", "minItems"}),
    formats=FORMATS | {"uri"},
    min_items=frozenset({0, 1}),
    kept=frozenset({"title", "description", "default"}),
    max_optional=24,
    max_unions=16,
)
"""What the models of Anthropic take, wherever they are asked."""

# Look-around, back-references and word boundaries have no form in the grammar of either provider.
_HARD_PATTERN: Final = re.compile(r"\(\?[=!<]|\(\?P=|\\[1-9bB]")
_NULL: Final[JsonSchema] = {"type": "null"}


def strict_schema(
    tool: str,
    schema: JsonSchema,
    rules: Strictness,
    losses: list[SchemaLoss],
    unchecked: Mapping[str, str],
) -> JsonSchema:
    """Rewrite a schema, whose root is an object, for a provider's strict mode.

    Args:
        tool: The name of the tool, for messages.
        schema: The author's schema.
        rules: What the provider takes.
        losses: Takes what the provider will not enforce.
        unchecked: The patterns that are not checked locally either, each with why.

    Raises:
        ToolDefinitionError: A part of the schema has no form in strict mode.
    """
    defs: Mapping[str, Node] = schema.get("$defs", {})
    if not rules.recursion and (cycle := cycle_in(defs)):
        raise refusal(
            tool,
            f"$defs.{cycle[0]}",
            f"the definition leads back to itself ({' → '.join(cycle)}), which {rules.provider} "
            "does not take in strict mode.",
            "Offer the tool without `strict`, or say how deep it goes with a class for each level.",
        )
    writer = _Writer(tool, schema, losses, rules, unchecked)
    written = writer.whole()
    # A definition that was put in place everywhere is no longer referred to. Sent all the same, it
    # would count against the provider's limits.
    used = reachable(written, written.pop("$defs", {}))
    if used:
        written["$defs"] = used
    writer.count()
    return written


# For OpenAI an optional `city` of `{"type": "string", "minLength": 2}` becomes a required one of
# `{"type": ["string", "null"]}`, in an object that is closed. `minLength` is a loss: it is checked
# when the call comes.
class _Writer(Writer):
    """Rewrite the nodes of one schema, and count what a provider counts."""

    def __init__(
        self,
        tool: str,
        schema: JsonSchema,
        losses: list[SchemaLoss],
        rules: Strictness,
        unchecked: Mapping[str, str],
    ) -> None:
        super().__init__(tool, schema, losses)
        self.rules = rules
        self.unchecked = unchecked
        self.optional = 0
        self.unions = 0

    def node(self, node: Node, path: str) -> JsonSchema:
        if node is False or node == {"not": {}}:
            raise self.refused(path, "no value is taken", "Leave it out.")
        if node is True or not node.keys() - ANNOTATIONS:
            raise self.refused(
                path, "any value is taken", "Say which types it can have, as in `str | int`."
            )
        written: JsonSchema = super().node(node, path)
        return written

    def plain(self, node: JsonSchema, path: str) -> JsonSchema:
        kept = {key: node[key] for key in node if key in self.rules.kept}
        self.note_losses(node, path)
        # The order matters: values say more than branches or a type, and what else is in the
        # node is used to sort them out (`literal`).
        if "enum" in node or "const" in node:
            return {**self.literal(node, path), **kept}
        if any(key in node for key in UNIONS):
            return {"anyOf": [self.node(branch, path) for branch in self.union(node)], **kept}
        kind = node.get("type")
        if kind is None:
            kind = "object" if "properties" in node else "array" if "items" in node else None
        if kind is None:
            raise self.refused(path, "the type is left open", "Give it a `type`.")
        written: JsonSchema = {"type": kind, **kept}
        kinds = types_in(written)
        if "object" in kinds:
            written.update(self.object(node, path))
        if "array" in kinds:
            written.update(self.array(node, path))
        written.update({key: part for key, part in node.items() if self.takes(key, part)})
        return written

    def union(self, node: JsonSchema) -> Iterator[Node]:
        """Yield the alternatives, each with what is beside the union."""
        beside = {k: part for k, part in node.items() if k not in {*ANNOTATIONS, *UNIONS}}
        for branch in alternatives(node):
            yield {"allOf": [branch, beside]} if beside else branch

    def literal(self, node: JsonSchema, path: str) -> JsonSchema:
        values = node["enum"] if "enum" in node else [node["const"]]
        # Of {"enum": ["a", "bb"], "minLength": 2} only "bb" is a value, and the shorter list needs
        # no `minLength`, which most providers do not take.
        values = [value for value in values if fits(node, value, self.defs)]
        for value in values:
            if is_mapping(value) or is_sequence(value):
                raise self.refused(
                    path,
                    f"the value {shorten(value)} of an enumeration is not a plain one",
                    "Enumerate strings, numbers, booleans or null.",
                )
        if not values:
            raise self.refused(path, "no value is taken", "Enumerate at least one value.")
        for key in ("multipleOf", "format"):
            if key in node and self.takes(key, node[key]):
                self.lose(path, key)
        # `{"enum": ["a", 1]}` becomes `{"type": ["string", "integer"], "enum": ["a", 1]}`: strict
        # modes want a type beside the values.
        kinds = list(dict.fromkeys(type_of(value) for value in values))
        found = node.get("type", kinds if len(kinds) > 1 else kinds[0])
        if "enum" in node:
            return {"type": found, "enum": list(values)}
        return {"type": found, "const": node["const"]}

    def object(self, node: JsonSchema, path: str) -> JsonSchema:
        properties: Mapping[str, Node] = node.get("properties", {})
        further = node.get("additionalProperties", "properties" not in node)
        if further is not False or "patternProperties" in node:
            raise self.refused(
                path,
                "an object may have any property",
                "Take a list of pairs with named fields instead, as in `list[Entry]`, or "
                'refuse further properties with `extra="forbid"`.',
            )
        required = node.get("required", ())
        written: JsonObject = {}
        # The properties in their order, then names that are only required, whose schema is True.
        # The third mapping restores the schemas of names that are both.
        for name, part in {**properties, **dict.fromkeys(required, True), **properties}.items():
            place = f"{path}.{name}" if path else name
            if part is False and name not in required:
                continue  # as it is with any other name that the object does not have
            written[name] = self.node(part, place)
            if name not in required:
                self.optional += 1
                if self.rules.optional_is_nullable and not takes_null(part, self.defs):
                    written[name] = _nullable(written[name], resolve(part, self.defs))
            self.unions += _is_union(written[name])
        # Where all have to be required, null stands for "left out" (`restore`).
        names = list(written) if self.rules.optional_is_nullable else list(required)
        return {"properties": written, "required": names, "additionalProperties": False}

    def array(self, node: JsonSchema, path: str) -> JsonSchema:
        place = f"{path}[]"
        rest: Node = node.get("items", "prefixItems" not in node)
        if rest is True:
            raise self.refused(
                place, "any value is taken", "Say of which type the items are: `list[str]`."
            )
        if "prefixItems" not in node:
            return {"items": self.node(rest, place)}
        # A tuple[int, str] becomes a list whose items are int or str: strict modes know no places.
        parts: list[JsonSchema] = []
        offered: list[Node] = list(node["prefixItems"])
        if not isinstance(rest, bool):
            offered.append(rest)
        for part in offered:
            written = self.node(part, place)
            if written not in parts:
                parts.append(written)
        self.lose(path, "prefixItems", "which type is at which place is checked locally")
        return {"items": parts[0] if len(parts) == 1 else {"anyOf": parts}}

    def takes(self, keyword: str, value: Any) -> bool:
        """Tell whether the provider takes a validating keyword with such a value."""
        if keyword not in self.rules.keywords:
            return False
        if keyword == "format":
            return value in self.rules.formats
        if keyword == "pattern":
            return _HARD_PATTERN.search(value) is None
        if keyword == "minItems" and self.rules.min_items is not None:
            return value in self.rules.min_items
        return True

    def note_losses(self, node: JsonSchema, path: str) -> None:
        for key, value in node.items():
            if not (key in STRUCTURE or key in ANNOTATIONS or self.takes(key, value)):
                self.lose(path, key, self.unchecked.get(value) if key == "pattern" else None)
        if "oneOf" in node and "discriminator" not in node:
            branches = [resolve(branch, self.defs) for branch in node["oneOf"]]
            if any(not apart(one, other) for one, other in combinations(branches, 2)):
                self.lose(path, "oneOf", "that only one alternative fits is checked locally")

    def refused(self, path: str, problem: str, remedy: str) -> ToolDefinitionError:
        return refusal(
            self.tool,
            path,
            f"{problem}, which {self.rules.provider} does not take in strict mode.",
            f"{remedy} Or offer the tool without `strict`.",
        )

    def count(self) -> None:
        """Hold the number of optional and of union properties against the provider's limits."""
        for what, number, limit in (
            ("optional properties", self.optional, self.rules.max_optional),
            ("properties of several types", self.unions, self.rules.max_unions),
        ):
            if limit is not None and number > limit:
                raise self.refused(
                    "", f"there are {number} {what}, and at most {limit} fit", "Require more."
                )


def _nullable(written: JsonSchema, author: JsonSchema) -> JsonSchema:
    """Let a property be null, and tell the model what null stands for."""
    texts: JsonSchema = {
        key: written.pop(key) for key in ("title", "description") if key in written
    }
    nullable: JsonSchema
    if "enum" in written:
        enum = [*written["enum"], None]
        nullable = {**written, "type": [*types_in(written), "null"], "enum": enum}
    elif "anyOf" in written:
        nullable = {"anyOf": [*written["anyOf"], _NULL]}
    # A constant with null among its types would still have to be that constant, so null goes beside
    # it in a union; so it does beside an object. A plain type only gets a second name, as in
    # ["integer", "null"], which is shorter.
    elif "type" not in written or "const" in written or "properties" in written:
        nullable = {"anyOf": [written, _NULL]}
    else:
        nullable = {**written, "type": [*types_in(written), "null"]}
    if author.get("default") is not None:
        default = f"null: {compact_json(author['default'])}"
        about = texts.get("description")
        texts["description"] = f"{about} ({default})" if about else f"({default})"
    return {**nullable, **texts}


def _is_union(written: JsonSchema) -> bool:
    return "anyOf" in written or is_sequence(written.get("type"))


_PROPERTIES: Final = 5_000
_LEVELS: Final = 10
_TEXT: Final = 120_000
_VALUES: Final = 1_000
_LONG_ENUM: Final = 250
_LONG_ENUM_TEXT: Final = 15_000


def check_openai_limits(tool: str, schema: JsonSchema) -> None:
    """Refuse a schema that is too large for OpenAI's strict mode.

    Raises:
        ToolDefinitionError: It has too many properties, levels, enumerated values or letters.
    """
    # Counted here and not left to the API: it refuses the whole request, in the middle of a
    # conversation, and does not say which of its tools is too large.
    properties = values = letters = 0
    waiting: list[Node] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names = [*node.get("properties", ()), *node.get("$defs", ())]
            enumerated = node.get("enum", ())
            texts = [value for value in enumerated if isinstance(value, str)]
            written = sum(map(len, texts))
            properties += len(node.get("properties", ()))
            values += len(enumerated)
            constant = node.get("const")
            letters += sum(map(len, names)) + written
            letters += len(constant) if isinstance(constant, str) else 0
            if len(enumerated) > _LONG_ENUM and written > _LONG_ENUM_TEXT:
                _refuse(
                    tool,
                    f"an enumeration of {len(enumerated)} values",
                    written,
                    "letters in one long enumeration",
                    _LONG_ENUM_TEXT,
                )
        waiting.extend(part for _, _, part in subschemas(node))
    for what, number, limit in (
        ("properties", properties, _PROPERTIES),
        ("enumerated values", values, _VALUES),
        ("letters in names and enumerated values", letters, _TEXT),
        ("levels of objects", _levels(schema, schema.get("$defs", {}), {}), _LEVELS),
    ):
        if number > limit:
            _refuse(tool, "the schema", number, what, limit)


def _levels(node: Node, defs: Mapping[str, Node], known: dict[str, int]) -> int:
    """Count how deep objects stand in each other; a definition that recurs counts once."""
    name = reference_of(node)
    if name is not None:
        if name not in known:
            known[name] = 0  # as long as it is met inside of itself
            known[name] = _levels(defs[name], defs, known)
        return known[name]
    inner = [
        _levels(part, defs, known) for keyword, _, part in subschemas(node) if keyword != "$defs"
    ]
    own = 1 if isinstance(node, dict) and "properties" in node else 0
    return own + max(inner, default=0)


def _refuse(tool: str, where: str, number: int, what: str, limit: int) -> None:
    raise refusal(
        tool,
        "",
        f"{where} has {number} {what}, and OpenAI takes at most {limit} in strict mode.",
        "Make it smaller, split the tool, or offer it without `strict`.",
    )


OPENAI: Final = Strictness(
    provider="OpenAI",
    optional_is_nullable=True,
    recursion=True,
    keywords=frozenset(
        {
            *("pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum"),
            *("exclusiveMinimum", "minItems", "maxItems"),
        }
    ),
    kept=frozenset({"title", "description"}),
    check=check_openai_limits,
)
