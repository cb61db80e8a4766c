"""Turn arguments from the form of a strict schema back into the form of the author's own.

In strict mode a property that the author made optional is required and nullable, and `null` stands
for "left out". It is turned back only if the author's type has no null of its own. If a union
leaves it open which alternative a value belongs to, the first that takes the value as it stands is
taken, then the first that takes it once its nulls are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, Final

from ..._schema.patterns import is_found
from ..._schema.schema_reader import UNIONS, JsonSchema, Node, alternatives, types_in
from ..._text.json import compact_json, is_mapping, is_number, is_sequence, parse_json
from .nodes import resolve

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
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

    def decode(arguments: Any) -> Any:
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

    def unwrap(value: Any) -> Any:
        if wrapper is not None and is_mapping(value) and list(value) == [wrapper]:
            return value[wrapper]
        return value

    return decode


def fits(node: Node, value: Any, defs: Mapping[str, Node]) -> bool:
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
        self._restored: dict[tuple[int, int], tuple[Any, Node, Any]] = {}
        self._fitting: dict[tuple[int, int], tuple[bool, Node, Any]] = {}

    def restore(self, node: Node, value: Any) -> Any:
        """Leave out each null for a property which the author's type has no null for."""
        key = (id(node), id(value))
        if key not in self._restored:
            self._restored[key] = (self._restore(node, value), node, value)
        return self._restored[key][0]

    def _restore(self, node: Node, value: Any) -> Any:
        schema = resolve(node, self._defs)
        for part in schema.get("allOf", ()):
            value = self.restore(part, value)
        if is_mapping(value):
            value = self._restore_object(schema, value)
        elif is_sequence(value):
            value = [self.restore(part, item) for part, item in _items(schema, value)]
        branches = alternatives(schema)
        return self._restore_branch(branches, value) if branches else value

    def _restore_branch(self, branches: list[Node], value: Any) -> Any:
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

    def _restore_object(self, schema: JsonSchema, value: Mapping[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        restored: dict[str, Any] = {}
        for name, item in value.items():
            if name not in properties:
                restored[name] = item
                continue
            stands_for_nothing = item is None and name not in required
            if stands_for_nothing and not takes_null(properties[name], self._defs):
                continue
            restored[name] = self.restore(properties[name], item)
        return restored

    def fits(self, node: Node, value: Any) -> bool:
        """Say whether a value is of a node, as far as its structure and plain bounds go."""
        key = (id(node), id(value))
        if key not in self._fitting:
            self._fitting[key] = (self._fits(node, value), node, value)
        return self._fitting[key][0]

    def _fits(self, node: Node, value: Any) -> bool:
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
            return is_long_enough and is_found(schema.get("pattern", ""), value)
        return not is_number(value) or _obeys(_BOUNDS, schema, value)

    def _fits_object(self, schema: JsonSchema, value: Mapping[str, Any]) -> bool:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", ())) and all(
            self.fits(properties.get(name, others), item) for name, item in value.items()
        )


def _items(schema: JsonSchema, value: Sequence[Any]) -> Iterator[tuple[Node, Any]]:
    """Yield each item with the node that describes it."""
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for index, item in enumerate(value):
        yield first[index] if index < len(first) else rest, item


def _obeys(rules: Mapping[str, Callable[[Any, Any], bool]], schema: JsonSchema, value: Any) -> bool:
    return all(rule(value, schema[key]) for key, rule in rules.items() if key in schema)


def _is_of(kind: str, value: Any) -> bool:
    test = _TYPES.get(kind)
    return test is None or test(value)


def _same(value: Any, other: Any) -> bool:
    # In Python 1 == True, and in JSON they are two values.
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)
