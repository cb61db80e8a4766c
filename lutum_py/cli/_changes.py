"""List the changes between two JSON schemas, and classify each by plain rules.

A new required field breaks callers, a wider bound does not. What no rule covers is reported as
such, with both texts. References are followed within the document; a union is compared branch by
branch, by the types or the names of its branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

from .. import ToolDef
from .._text.json import canonical_json, compact_json, cut, is_array, is_number, is_object
from ._inspect import type_words

_Part: TypeAlias = dict[str, Any]
"""A schema whose reference has been followed."""
Effect: TypeAlias = Literal["breaking", "unclassified", "compatible"]

_WORST_FIRST: Final[tuple[Effect, ...]] = ("breaking", "unclassified", "compatible")
_REMARKS: Final = {"title", "description", "default", "examples", "deprecated", "$comment"}
_NOTES: Final = _REMARKS | {"$defs", "definitions", "$schema"}
"""Keywords that refuse no value."""
_KINDS: Final = {"const", "enum", "type"}
_PARTS: Final = {"additionalProperties", "items", "prefixItems", "properties", "required"}
"""Keywords that are compared together, as `_KINDS` are, and not one by one."""
_SIGNS: Final = {
    **dict.fromkeys(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"], 1),
    **dict.fromkeys(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"], -1),
}
"""By keyword of a bound, the direction in which it narrows."""
_NARROWING: Final = {"format", "multipleOf", "not", "pattern", "uniqueItems"}
"""Keywords that narrow a schema where they are added, and widen it where they are removed."""
_NEAR: Final = {"integer": "number", "number": "integer"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference between two tools.

    Attributes:
        path: The field, as in `input.options.depth`, `input.paths[]` or `input.shape(Circle)`;
            `tool` for the tool itself.
        kind: What differs, as a stable word: `added`, `removed`, `required`, `type`, `default`,
            `enum`, `bound`, `description`, `fields` (whether unknown ones are accepted), or
            `schema` for anything else.
        text: The difference in words.
        effect: `breaking` if input that was accepted may be refused now, or if output may be what
            it never was; `unclassified` if no rule covers the change.
    """

    path: str
    kind: str
    text: str
    effect: Effect = "compatible"


def tool_digest(input_schema: dict[str, Any], name: str = "") -> str:
    """Return the digest of a tool, without titles, descriptions and examples."""
    return ToolDef(name=name, description="", input_schema=input_schema).digest


def worst_of(changes: Iterable[FieldChange]) -> Effect:
    """Return the worst effect of some changes."""
    effects: list[Effect] = ["compatible", *(change.effect for change in changes)]
    return min(effects, key=_WORST_FIRST.index)


def changes_between(area: Literal["input", "output"], old: Any, new: Any) -> list[FieldChange]:
    """Compare two schemas of the same thing.

    Args:
        area: What they describe. A narrower input is breaking, and so is a wider output.
        old: A schema.
        new: Another.

    Returns:
        Every difference, in the order of the new schema's fields, removed ones last; none if
        the schemas differ in nothing but titles, examples and order.

    Example:
        >>> changes_between("input", {"maximum": 9}, {"maximum": 5})
        [FieldChange(path='input', kind='bound', text='maximum 9 → 5', effect='breaking')]
    """
    return list(dict.fromkeys(_Comparison(area, old, new).at(old, new, area)))


class _Comparison:
    def __init__(self, area: str, old: Any, new: Any) -> None:
        self._is_output = area == "output"
        self._old, self._new = old, new
        self._is_same_document = tool_digest(old) == tool_digest(new)
        self._met: dict[str, list[FieldChange]] = {}

    def at(self, old: Any, new: Any, path: str) -> Iterator[FieldChange]:
        one, other = _followed(old, self._old), _followed(new, self._new)
        if one.get("description") != other.get("description"):
            yield FieldChange(path, "description", "description changed")
        if _differ(one, other, "default"):
            yield FieldChange(path, "default", _before_after(one, other, "default"))
        old, new = _bare(old), _bare(new)
        pair = canonical_json([old, new])
        if '"$ref"' not in pair:
            yield from self._values(old, new, path)
        elif pair not in self._met:
            # Schemas that refer to each other have as many paths as their names have orders. So a
            # pair is compared where it is met first, and a schema within itself ends there as well.
            self._met[pair] = []
            changes = list(self._values(old, new, path))
            yield from changes
            if changes:
                self._met[pair] = [
                    FieldChange("", "type", f"changed like {path}", worst_of(changes))
                ]
        else:
            yield from (replace(change, path=path) for change in self._met[pair])

    def _values(self, old: Any, new: Any, path: str) -> Iterator[FieldChange]:
        one, other = _followed(old, self._old), _followed(new, self._new)
        ours, theirs = _branches(one), _branches(other)
        if ours is not None or theirs is not None:
            yield from self._unions(old, new, ours or [old], theirs or [new], path)
            return
        had, has = _types(one), _types(other)
        narrows, widens = not _cover(has, had), not _cover(had, has)
        before, after = _listed(one), _listed(other)
        if before is None or after is None:
            narrows, widens = narrows or after is not None, widens or before is not None
        else:
            for value in sorted(before ^ after):
                is_new = value in after
                words = f"value {'added' if is_new else 'removed'}: {cut(value, 120)}"
                yield self._change(path, "enum", words, not is_new, is_new)
        yield from self._type(old, new, path, narrows, widens)
        for key in sorted((one.keys() | other.keys()) - _NOTES - _KINDS - _PARTS):
            yield from self._keyword(key, one, other, path)
        yield from self._fields(one, other, path)
        yield from self._items(one, other, path)

    def _unions(
        self, old: Any, new: Any, ours: list[Any], theirs: list[Any], path: str
    ) -> Iterator[FieldChange]:
        for by_name in (False, True):
            had = _labelled(ours, self._old, by_name)
            has = _labelled(theirs, self._new, by_name)
            if len(had) == len(ours) and len(has) == len(theirs):
                break
        else:
            yield from self._keyword("union", {"union": old}, {"union": new}, path)
            return
        partners = {
            label: next((each for each in (label, _NEAR.get(label), "any") if each in has), None)
            for label in had
        }
        is_wider = not has.keys() <= {*partners.values()}
        yield from self._type(old, new, path, None in partners.values(), is_wider)
        # In `Circle | None` a change is at `shape.radius`; only in `Circle | Square` does the path
        # have to name the branch, as in `shape(Circle).radius`.
        is_alone = len(has.keys() - {"null"}) < 2
        for label, partner in partners.items():
            if partner is not None:
                place = path if is_alone else f"{path}({partner})"
                yield from self.at(had[label], has[partner], place)

    def _type(
        self, old: Any, new: Any, path: str, narrows: bool, widens: bool
    ) -> Iterator[FieldChange]:
        if narrows or widens:
            words = f"type {type_words(old, self._old, 1)} → {type_words(new, self._new, 1)}"
            yield self._change(path, "type", words, narrows, widens)

    def _keyword(self, key: str, one: _Part, other: _Part, path: str) -> Iterator[FieldChange]:
        # What it refers to may have changed, though it reads the same.
        is_same = self._is_same_document or '"$ref"' not in compact_json({key: one.get(key)})
        if is_same and not _differ(one, other, key):
            return
        text = _before_after(one, other, key)
        given = [part[key] for part in (one, other) if key in part]
        if key in _SIGNS and all(is_number(each) for each in given):
            sign = _SIGNS[key]
            low, now = (sign * part[key] if key in part else -inf for part in (one, other))
            yield self._change(path, "bound", text, now > low, now < low)
        elif key in _NARROWING and len(given) == 1:
            yield self._change(path, "bound", text, key in other, key in one)
        else:
            yield FieldChange(path, "schema", text, "unclassified")

    def _fields(self, one: _Part, other: _Part, path: str) -> Iterator[FieldChange]:
        before, after = one.get("properties", {}), other.get("properties", {})
        needed, needs = one.get("required", ()), other.get("required", ())
        rest, remains = (part.get("additionalProperties", True) for part in (one, other))
        # Any key may have been in use where no fields are named, or where all others are of a type.
        is_map = is_object(rest) or "patternProperties" in one or not (before or rest is False)
        for name in dict.fromkeys([*after, *needs, *needed, *before]):
            place, is_needed = f"{path}.{name}", name in needs
            if name in before and name not in after:
                words = f"removed: {type_words(before[name], self._old, 1)}"
                yield self._change(place, "removed", words, True, True)
            elif name in after and name not in before:
                words = f"added: {type_words(after[name], self._new, 1)}"
                if is_needed:
                    yield self._change(place, "added", f"{words}, required", True, False)
                else:
                    part = _followed(after[name], self._new)
                    default = f", default {_short(part['default'])}" if "default" in part else ""
                    effect: Effect = "unclassified" if is_map else "compatible"
                    yield FieldChange(place, "added", f"{words}, optional{default}", effect)
            else:
                if is_needed != (name in needed):
                    words = "optional → required" if is_needed else "required → optional"
                    yield self._change(place, "required", words, is_needed, not is_needed)
                yield from self.at(before.get(name, True), after.get(name, True), place)
        if is_object(rest) and is_object(remains):
            yield from self.at(rest, remains, f"{path}.*")
        elif _differ(one, other, "additionalProperties"):
            words = f"unknown fields {_accepted(rest)} → {_accepted(remains)}"
            narrows = rest is True or remains is False
            yield self._change(path, "fields", words, narrows, not narrows)

    def _items(self, one: _Part, other: _Part, path: str) -> Iterator[FieldChange]:
        if "items" in {**one, **other}:
            yield from self.at(one.get("items", True), other.get("items", True), f"{path}[]")
        before, after = one.get("prefixItems", []), other.get("prefixItems", [])
        if len(before) != len(after):
            words = f"tuple of {len(before)} → of {len(after)}"
            yield self._change(path, "type", words, True, True)
        for at, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from self.at(old, new, f"{path}[{at}]")

    def _change(self, path: str, kind: str, text: str, narrows: bool, widens: bool) -> FieldChange:
        is_breaking = widens if self._is_output else narrows
        return FieldChange(path, kind, text, "breaking" if is_breaking else "compatible")


def _followed(schema: Any, root: Any) -> _Part:
    """Return a schema, or the one that it refers to with the remarks that stand beside."""
    seen: list[Any] = []
    while is_object(schema) and schema not in seen:
        seen.append(schema)
        parts = _bare(schema)
        held = [_target(parts["$ref"], root)] if "$ref" in parts else parts.get("allOf", ())
        if len(parts) != 1 or len(held) != 1 or not is_object(held[0]):
            return schema
        schema = {**held[0], **{key: schema[key] for key in schema.keys() & _REMARKS}}
    return {} if schema is True else {"schema": schema}


def _target(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not f"{reference}/".startswith("#/"):
        return None
    found = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if is_object(found) else None
    return found


def _bare(schema: Any) -> Any:
    """Return a schema without the keywords that refuse no value."""
    if not is_object(schema):
        return schema
    return {key: value for key, value in schema.items() if key not in _NOTES}


def _branches(part: _Part) -> list[Any] | None:
    """Return the branches of what is a union and no more; None for anything else."""
    # Of `oneOf` exactly one has to fit: rules for single branches hold only where a tag decides.
    key = "oneOf" if "discriminator" in part else "anyOf"
    is_union = is_array(part.get(key)) and _bare(part).keys() <= {key, "discriminator"}
    return [*part[key]] if is_union else None


def _labelled(branches: list[Any], root: Any, by_name: bool) -> dict[str, Any]:
    """Key branches by their types; or by their names, where they have some."""
    labelled: dict[str, Any] = {}
    for branch in branches:
        name = branch.get("$ref", "") if by_name and is_object(branch) else ""
        kinds = " or ".join(_types(_followed(branch, root)))
        labelled[name.rpartition("/")[2] or kinds] = branch
    return labelled


def _types(part: _Part) -> tuple[str, ...]:
    kind = part.get("type", "any")
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _cover(types: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether every value of the others is of one of the types."""
    return "any" in types or all(
        each in types or (each == "integer" and "number" in types) for each in others
    )


def _listed(part: _Part) -> set[str] | None:
    """Return the values that a schema lists, as JSON."""
    values = part["enum"] if "enum" in part else [part["const"]] if "const" in part else None
    return None if values is None else {compact_json(value) for value in values}


def _differ(one: _Part, other: _Part, key: str) -> bool:
    before, after = ([part[key]] if key in part else [] for part in (one, other))
    return canonical_json(before) != canonical_json(after)


def _before_after(one: _Part, other: _Part, key: str) -> str:
    before, after = (_short(part[key]) if key in part else "none" for part in (one, other))
    return f"{key} {before} → {after}"


def _short(value: Any) -> str:
    return cut(compact_json(value), 120)


def _accepted(rest: Any) -> str:
    return "refused" if rest is False else "accepted" if rest is True else "of one type"
