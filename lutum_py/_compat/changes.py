"""Say field by field what differs between two JSON schemas."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from .._schema.schema_reader import REMARKS, UNIONS, JsonSchema, localized, merged_part
from .._text.json import canonical_json, compact_json, cut, is_array, is_object
from .fits import join
from .type_words import type_words

_HANDLED: Final = frozenset(
    {
        *REMARKS,
        *UNIONS,
        "$defs",
        "$schema",
        "additionalProperties",
        "const",
        "default",
        "definitions",
        "discriminator",
        "enum",
        "items",
        "prefixItems",
        "properties",
        "required",
        "type",
    }
)
"""Keywords that are compared in a way of their own, or not at all."""
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference between two schemas.

    Attributes:
        path: The field, as in `options.depth` or `paths[]`; empty for the whole.
        kind: What differs, as a stable word: `added`, `removed`, `required`, `type`, `default`,
            `enum`, `bound`, `description`, `fields` (whether unknown ones are taken), or `schema`
            for anything else.
        text: The difference in words.
    """

    path: str
    kind: str
    text: str


def changes_between(old: Any, new: Any) -> list[FieldChange]:
    """Compare two schemas of the same thing.

    Args:
        old: A schema.
        new: Another.

    Returns:
        Every difference, in the order of the new schema's fields, removed ones last; none if
        the schemas differ in nothing but titles, examples and order.

    Example:
        >>> changes_between({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 5})
        [FieldChange(path='', kind='bound', text='maximum 9 → 5')]
    """
    old, new = localized(old), localized(new)
    return list(dict.fromkeys(_Comparison(old, new).at(old, new, "", frozenset())))


class _Comparison:
    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new

    def at(
        self, old: Any, new: Any, path: str, seen: frozenset[tuple[str, str]]
    ) -> Iterator[FieldChange]:
        # A schema that refers to itself comes to the same pair again, further down.
        pair = (canonical_json(old), canonical_json(new))
        if pair in seen:
            return
        seen |= {pair}
        one, other = merged_part(old, self._old), merged_part(new, self._new)
        same_shape = yield from self._types(one, other, path, seen)
        for key in ["default", *sorted((one.keys() | other.keys()) - _HANDLED)]:
            before, after = one.get(key, _NOTHING), other.get(key, _NOTHING)
            if _differ(before, after):
                kind = "schema" if is_object(after) or is_array(after) else "bound"
                kind = key if key == "default" else kind
                yield FieldChange(path, kind, f"{key} {_shown(before)} → {_shown(after)}")
        if one.get("description") != other.get("description"):
            yield FieldChange(path, "description", "description changed")
        if same_shape:
            yield from self._fields(one, other, path, seen)
            yield from self._items(one, other, path, seen)

    def _types(
        self, one: JsonSchema, other: JsonSchema, path: str, seen: frozenset[tuple[str, str]]
    ) -> Generator[FieldChange, None, bool]:
        """Compare what kind of value it is; give whether it is worth while to look inside."""
        if _values(one) is not None and _values(other) is not None:
            yield from _enum(_values(one) or [], _values(other) or [], path)
            return True
        branches, others = _branches(one), _branches(other)
        if branches is not None and others is not None and len(branches) == len(others):
            labels = [type_words(branch, self._new, 0) for branch in others]
            for before, after, label in zip(branches, others, labels, strict=True):
                # In `Circle | None` a change is at `shape.radius`; only between `Circle | Square`
                # does the path have to say which, as in `shape(Circle).radius`.
                is_alone = sum(_is_nested(branch, self._new) for branch in others) < 2
                yield from self.at(before, after, path if is_alone else f"{path}({label})", seen)
            return True
        before, after = (
            type_words(part, root, 1) for part, root in ((one, self._old), (other, self._new))
        )
        is_same = _kind(one) == _kind(other) and branches is others is None
        if not is_same and before != after:
            yield FieldChange(path, "type", f"type {before} → {after}")
        return is_same

    def _fields(
        self, one: JsonSchema, other: JsonSchema, path: str, seen: frozenset[tuple[str, str]]
    ) -> Iterator[FieldChange]:
        before, after = one.get("properties", {}), other.get("properties", {})
        needed, needs = set(one.get("required", ())), set(other.get("required", ()))
        for name, schema in after.items():
            place = join(path, name)
            if name not in before:
                words = type_words(schema, self._new, 1)
                told = "required" if name in needs else f"optional{_default(schema)}"
                yield FieldChange(place, "added", f"added: {words}, {told}")
                continue
            if (name in needed) != (name in needs):
                text = "optional → required" if name in needs else "required → optional"
                yield FieldChange(place, "required", text)
            yield from self.at(before[name], schema, place, seen)
        for name, schema in before.items():
            if name not in after:
                words = type_words(schema, self._old, 1)
                yield FieldChange(join(path, name), "removed", f"removed: {words}")
        rest, remains = (part.get("additionalProperties", True) for part in (one, other))
        if is_object(rest) and is_object(remains):
            yield from self.at(rest, remains, join(path, "*"), seen)
        elif _differ(rest, remains):
            yield FieldChange(path, "fields", f"unknown fields {_taken(rest)} → {_taken(remains)}")

    def _items(
        self, one: JsonSchema, other: JsonSchema, path: str, seen: frozenset[tuple[str, str]]
    ) -> Iterator[FieldChange]:
        yield from self.at(one.get("items", True), other.get("items", True), f"{path}[]", seen)
        before, after = one.get("prefixItems", []), other.get("prefixItems", [])
        if len(before) != len(after):
            text = f"tuple of {len(before)} → of {len(after)}"
            yield FieldChange(path, "type", text)
        for at, (own, others) in enumerate(zip(before, after, strict=False)):
            yield from self.at(own, others, f"{path}[{at}]", seen)


def _values(part: JsonSchema) -> list[Any] | None:
    if is_array(part.get("enum")):
        return list(part["enum"])
    return [part["const"]] if "const" in part else None


def _enum(before: list[Any], after: list[Any], path: str) -> Iterator[FieldChange]:
    had, has = {compact_json(value) for value in before}, {compact_json(value) for value in after}
    for sign, words in (("removed", had - has), ("added", has - had)):
        for word in sorted(words):
            yield FieldChange(path, "enum", f"value {sign}: {cut(word, 60)}")


def _branches(part: JsonSchema) -> list[Any] | None:
    for key in UNIONS:
        if is_array(part.get(key)):
            return list(part[key])
    return None


def _is_nested(schema: Any, root: Any) -> bool:
    return bool(merged_part(schema, root).keys() & {"properties", "items"})


def _kind(part: JsonSchema) -> str:
    return canonical_json(part.get("type")) + ("one of" if _values(part) is not None else "")


def _differ(before: Any, after: Any) -> bool:
    if before is _NOTHING or after is _NOTHING:
        return before is not after
    return canonical_json(before) != canonical_json(after)


def _shown(value: Any) -> str:
    return "none" if value is _NOTHING else cut(compact_json(value), 60)


def _default(schema: Any) -> str:
    is_given = is_object(schema) and "default" in schema
    return f", default {cut(compact_json(schema['default']), 60)}" if is_given else ""


def _taken(operand: Any) -> str:
    return "refused" if operand is False else "taken" if operand is True else "of one type"
