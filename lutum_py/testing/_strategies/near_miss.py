"""One thing wrong: every way to spoil arguments that fit, found by walking them with their schema.

Each way breaks the schema by its construction, and so that lax reading does not help: a number may
come as text, so it is not replaced by a text of digits, but by an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..._schema.coerced_arguments import path_of
from ..._schema.schema_reader import JsonSchema
from ..._text.json import compact_json, copy_json, is_array, is_object
from .schema import MALFORMED, branches_of, kind_of, kinds_accepted

_GONE: Any = object()
_EXACT = 2**40
"""So many steps from zero, a number still has room for half a step more."""
_WRONG: dict[str, tuple[Any, ...]] = {
    "string": ([], {"an": "object"}),
    "integer": ("not a number", [7], {"a": 1}, 0.5),
    "number": ("not a number", [0.5], {"a": 1}),
    "boolean": ("neither", [True], 7),
    "null": ("something", 1),
    "array": ("not a list", 7, True),
    "object": ("not an object", 7, [[7]]),
}
"""For each JSON type, values that are not of it in any reading."""


@dataclass(frozen=True, slots=True)
class Spoiling:
    """One way to spoil arguments.

    Attributes:
        kind: What is wrong afterwards, as in `missing_field`.
        path: Where, as in `filters[0].name`.
        steps: The same as keys and positions.
        value: What is there instead; a mark of its own where nothing does.
    """

    kind: str
    path: str
    steps: tuple[int | str, ...]
    value: Any

    def apply(self, arguments: Any) -> Any:
        """Return a spoiled copy of the arguments."""
        made = copy_json(arguments)
        parent = made
        for step in self.steps[:-1]:
            parent = parent[step]
        if self.value is _GONE:
            del parent[self.steps[-1]]
        else:
            parent[self.steps[-1]] = self.value
        return made


def spoilings(schema: JsonSchema, arguments: Any) -> Iterator[Spoiling]:
    """List the ways to spoil arguments that fit a schema."""
    yield from _inside(schema, schema, arguments, ())


def _inside(
    root: JsonSchema, schema: Any, value: Any, steps: tuple[int | str, ...]
) -> Iterator[Spoiling]:
    """Walk what is certain: below a union nobody knows which branch a value was meant for."""
    # For {"days": 3} under {"properties": {"days": {"type": "integer", "maximum": 7}}} this gives
    # among others ("wrong_type", "days", [7]) and ("out_of_range", "days", 8).
    nodes = [*branches_of(root, schema)]
    if steps:
        yield from _here(root, nodes, schema, value, steps)
    if len(nodes) != 1:
        return
    node = nodes[0]
    if is_object(value):
        yield from _object(root, node, value, steps)
    elif is_array(value):
        prefix: list[Any] = node.get("prefixItems", [])
        for at, part in enumerate(value):
            inner = prefix[at] if at < len(prefix) else node.get("items", True)
            yield from _inside(root, inner, part, (*steps, at))


def _object(
    root: JsonSchema, node: JsonSchema, value: dict[str, Any], steps: tuple[int | str, ...]
) -> Iterator[Spoiling]:
    properties: dict[str, Any] = node.get("properties", {})
    required: Sequence[str] = node.get("required", ())
    for name in required:
        if name in value:
            yield _spoiling("missing_field", (*steps, name), _GONE)
    if node.get("additionalProperties") is False and not node.get("patternProperties"):
        near = next((f"{name}_" for name in properties if f"{name}_" not in properties), "extra")
        yield _spoiling("extra_field", (*steps, near), 1)
    for name, part in properties.items():
        if name in value:
            place = (*steps, name)
            yield from _inside(root, part, value[name], place)
            if "null" not in kinds_accepted(root, part):
                kind = "null" if name in required else "null_for_optional"
                yield _spoiling(kind, place, None)


def _here(
    root: JsonSchema,
    nodes: list[JsonSchema],
    schema: Any,
    value: Any,
    steps: tuple[int | str, ...],
) -> Iterator[Spoiling]:
    kinds = kinds_accepted(root, schema)
    for wrong in _wrong_for(kinds):
        yield _spoiling("wrong_type", steps, wrong)
    if "string" not in kinds and (is_object(value) or is_array(value)):
        yield _spoiling("container_as_string", steps, compact_json(value))
    if all("enum" in node or "const" in node for node in nodes):
        for wrong in _not_among([each for node in nodes for each in _choices(node)]):
            yield _spoiling("wrong_choice", steps, wrong)
    if len(nodes) == 1:
        for wrong in _out_of_range(nodes[0], value):
            yield _spoiling("out_of_range", steps, wrong)
        if nodes[0].get("format") in MALFORMED:
            yield _spoiling("wrong_format", steps, "(")


def _wrong_for(kinds: frozenset[str]) -> Iterator[Any]:
    """Values that none of the types takes: what is wrong for each of them."""
    every = [_WRONG[kind] for kind in sorted(kinds)]
    for wrong in every[0] if every else ():
        # By type alone: of a union of `int | str`, an array is wrong for both, and 0.5 for one of
        # them only.
        if all(type(wrong) in map(type, others) for others in every):
            yield wrong


def _choices(node: JsonSchema) -> list[Any]:
    choices: list[Any] = node["enum"] if "enum" in node else [node["const"]]
    return choices


def _not_among(known: list[Any]) -> Iterator[Any]:
    texts = [choice for choice in known if isinstance(choice, str)]
    numbers = [choice for choice in known if isinstance(choice, int | float)]
    if texts:
        # One of these is not among them: there is one more than they are.
        longer = (texts[0] + "_" * count for count in range(1, len(known) + 1))
        yield next(made for made in longer if made not in known)
    elif numbers:
        yield max(numbers) + 7


def _out_of_range(node: JsonSchema, value: Any) -> Iterator[Any]:
    kind = kind_of(node)
    if kind in ("integer", "number"):
        step = 1 if kind == "integer" else 0.5
        beyond = {"minimum": -step, "maximum": step, "exclusiveMinimum": 0, "exclusiveMaximum": 0}
        for key, by in beyond.items():
            if key in node:
                yield node[key] + by
        if "multipleOf" in node:
            yield from _between_multiples(kind, node["multipleOf"], value)
    elif kind == "string" and not node.get("format"):
        if node.get("minLength", 0) > 0:
            yield "x" * (node["minLength"] - 1)
        if "maxLength" in node:
            yield "x" * (node["maxLength"] + 1)
        if "pattern" in node:
            yield "\n"
    elif is_array(value):
        if node.get("minItems", 0) > 0:
            yield value[: node["minItems"] - 1]
        if value and "maxItems" in node:
            yield [*value, *[value[-1]] * (node["maxItems"] + 1 - len(value))]


def _between_multiples(kind: str, step: Any, value: Any) -> Iterator[Any]:
    if kind == "integer" and step > 1:
        yield value + 1
    elif kind == "number" and abs(value) < _EXACT * step:
        yield value + step / 2


def _spoiling(kind: str, steps: tuple[int | str, ...], value: Any) -> Spoiling:
    return Spoiling(kind, path_of(steps), steps, value)
