"""Prove that every value of one JSON schema is also one of another.

A proof that succeeds holds; one that fails says nothing but where it got stuck. Whatever is not
understood in the old schema only narrows it, so it is left out; in the new one it ends the proof.
The idea: each keyword of the new schema is a goal, shown from the old keywords of the same place;
where one goal fails, the old schema is split into cases, which have to fit one by one. A recursive
schema is proven by induction: below a property or an item, what is being shown may be assumed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from .._schema.schema_reader import UNIONS
from .._text.json import canonical_json, is_array
from .fits import Fitting, join
from .parts import EVERY_TYPE, NEVER, Part, parts_of, types_named, types_of, without_keyword

_BUDGET: Final = 5_000
"""Steps of one proof, after which it is given up."""

_NUMBERS: Final = frozenset({"integer", "fraction"})
_GROUPS: Final = {
    "number": _NUMBERS,
    **{name: frozenset({name}) for name in sorted(EVERY_TYPE - _NUMBERS)},
}
_ALONE: Final = frozenset({"not", "propertyNames", "dependentRequired", "dependentSchemas"})
"""Keywords that say the same wherever they stand."""


_ANNOTATIONS: Final = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""What a validator takes for a remark unless it is told otherwise."""


class Proof:
    """Try to prove that every value of an old schema fits a new one.

    Attributes:
        stuck: Where the proof failed: the path of the value and the keyword of the new schema.
    """

    def __init__(self, old: Any, new: Any) -> None:
        self.stuck: tuple[str, str] | None = None
        self._old, self._new = old, new
        self._left = _BUDGET
        self._of_old, self._of_new = Fitting(old), Fitting(new)
        self._are_alike = canonical_json(old) == canonical_json(new)

    def holds(self) -> bool:
        """Whether the proof succeeds."""
        nothing: frozenset[str] = frozenset()
        try:
            return self._implies(parts_of(self._old, self._old), self._new, "", nothing, nothing)
        except (OverflowError, RecursionError, re.error):
            return self._give_up("", "$ref")

    def _implies(
        self,
        old: list[Part],
        new: Any,
        path: str,
        trail: frozenset[str],
        guarded: frozenset[str],
    ) -> bool:
        self._left -= 1
        key = canonical_json([old, new])
        if key in guarded:
            return True  # by induction: the values here lie deeper than those it was assumed for
        if key in trail or self._left < 0:
            return self._give_up(path, "$ref")
        if _is_empty(old):
            return True
        goals = [part for part in parts_of(new, self._new) if not self._is_given(part, old)]
        values = _values(old)
        if values is not None:
            kept = [
                v for v in values if all(self._of_old.fits(v, part) is not False for part in old)
            ]
            fitting = (self._of_new.fits(v, goal) is True for goal in goals for v in kept)
            return all(fitting) or self._give_up(path, "enum")
        step = _Step(self, old, path, trail | {key}, guarded)
        before = self.stuck
        if all(step.proves(goal) for goal in goals):
            return True
        split = list(step.split())
        if not split:
            return False
        self.stuck = before
        return all(self._implies(each, new, path, trail | {key}, guarded) for each in split)

    def _is_given(self, goal: Part, old: list[Part]) -> bool:
        """Whether a new part is word for word one of the old parts."""
        if _has_reference(goal) and not self._are_alike:
            return False
        written = canonical_json(goal)  # in Python 1 is True
        return any(canonical_json(part) == written for part in old)

    def _give_up(self, path: str, keyword: str) -> bool:
        self.stuck = self.stuck or (path, keyword)
        return False


def _is_empty(parts: list[Part]) -> bool:
    return NEVER in parts or not types_of(parts)


def _values(parts: list[Part]) -> list[Any] | None:
    """Give every value that the parts can have, where these are few and known."""
    for part in parts:
        if "enum" in part:
            return list(part["enum"])
        if "const" in part:
            return [part["const"]]
    types = types_of(parts)
    if types <= {"boolean", "null"}:
        return [
            *([None] if "null" in types else []),
            *([False, True] if "boolean" in types else []),
        ]
    return None


def _has_reference(schema: Any) -> bool:
    text = canonical_json(schema)
    return any(f'"{key}"' in text for key in ("$ref", "$dynamicRef", "$recursiveRef"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Step:
    """The goals at one place: what the old parts say, and whether a new part follows."""

    def __init__(
        self,
        proof: Proof,
        old: list[Part],
        path: str,
        trail: frozenset[str],
        guarded: frozenset[str],
    ) -> None:
        self.proof, self.old, self.path = proof, old, path
        self.trail, self.guarded = trail, guarded
        self.types = types_of(old)

    def proves(self, new: Part) -> bool:
        for key in new:
            if key not in self.proof._of_new.keywords and key not in _ANNOTATIONS:
                continue
            before = self.proof.stuck
            if not self._goal(key, new):
                if key in UNIONS:
                    self.proof.stuck = before  # that one branch failed tells nothing
                return self.proof._give_up(self.path, key)
        return True

    def split(self) -> Iterator[list[Part]]:
        """Give cases that together cover the old parts."""
        for at, part in enumerate(self.old):
            for key in UNIONS:
                if key in part:
                    rest = [*self.old[:at], without_keyword(part, key), *self.old[at + 1 :]]
                    for branch in part[key]:
                        yield [*rest, *parts_of(branch, self.proof._old)]
                    return
        names = [name for name, group in _GROUPS.items() if group & self.types]
        if len(names) > 1:
            for name in names:
                yield [*self.old, {"type": name}]

    def _goal(self, key: str, new: Part) -> bool:
        operand = new[key]
        if key == "type":
            return self.types <= types_named(operand)
        if key in _APPLIES and not self.types & _APPLIES[key]:
            return True
        if key in _BOUNDS:
            return self._bounded(key, operand)
        if key in _COUNTS:
            return self._counted(key, operand)
        if key in ("properties", "additionalProperties", "patternProperties"):
            return self._properties(new)
        if key in ("items", "prefixItems"):
            return self._items(new)
        if key == "anyOf":
            return any(self._inner(self.old, branch) for branch in operand)
        if key == "oneOf":
            return self._one_of(operand)
        if key == "required":
            return set(operand) <= set(self._required())
        if key == "multipleOf":
            return self._multiple(operand)
        if key == "uniqueItems" and (operand is False or self._least("maxItems") in (0, 1)):
            return True
        if key in ("pattern", "uniqueItems", *_ANNOTATIONS, *_ALONE):
            return not _has_reference(operand) and any(
                key in part and canonical_json(part[key]) == canonical_json(operand)
                for part in self.old
            )
        return False

    def _inner(self, old: list[Part], new: Any) -> bool:
        return self.proof._implies(old, new, self.path, self.trail, self.guarded)

    def _deeper(self, old: list[Part], new: Any, path: str) -> bool:
        return self.proof._implies(old, new, path, self.trail, self.guarded | self.trail)

    # Numbers and lengths.

    def _bounded(self, key: str, operand: Any) -> bool:
        sign = 1 if key in ("minimum", "exclusiveMinimum") else -1
        if not _is_number(operand):
            return False  # as draft 4 had it
        wanted = self._bound(sign, operand, key.startswith("exclusive"))
        names = ("minimum", "exclusiveMinimum") if sign > 0 else ("maximum", "exclusiveMaximum")
        return any(
            self._bound(sign, part[name], name.startswith("exclusive")) >= wanted
            for part in self.old
            for name in names
            if _is_number(part.get(name))
        )

    def _bound(self, sign: int, value: Any, is_strict: bool) -> tuple[Any, bool]:
        """Give a lower bound that compares: an upper one is the lower one of the negative."""
        low = value * sign
        if "fraction" in self.types:
            return (low, is_strict)
        return (math.floor(low) + 1 if is_strict else math.ceil(low), False)

    def _multiple(self, operand: Any) -> bool:
        if not isinstance(operand, int):
            return False
        own = [part["multipleOf"] for part in self.old if isinstance(part.get("multipleOf"), int)]
        if "fraction" not in self.types:
            own.append(1)
        return any(each % operand == 0 for each in own)

    def _counted(self, key: str, operand: int) -> bool:
        if key.startswith("max"):
            least = self._least(key)
            if key == "maxProperties" and least is None:
                least = self._closed_size()
            return least is not None and least <= operand
        own: list[int] = [part[key] for part in self.old if key in part]
        if key == "minProperties":
            own.append(len(set(self._required())))
        return max(own, default=0) >= operand

    def _least(self, key: str) -> int | None:
        return min((part[key] for part in self.old if key in part), default=None)

    def _closed_size(self) -> int | None:
        sizes = [
            len(part.get("properties", {}))
            for part in self.old
            if part.get("additionalProperties") is False and "patternProperties" not in part
        ]
        return min(sizes, default=None)

    # Objects and arrays.

    def _required(self) -> Iterator[str]:
        return chain.from_iterable(part.get("required", ()) for part in self.old)

    def _properties(self, new: Part) -> bool:
        named, patterns = new.get("properties", {}), new.get("patternProperties", {})
        rest = new.get("additionalProperties", True)
        known = {name for part in self.old for name in part.get("properties", ())}
        for name in sorted({*known, *named}):
            matching = [re.search(pattern, name) is not None for pattern in patterns]
            goals = [named[name]] if name in named else []
            goals += [s for s, hit in zip(patterns.values(), matching, strict=True) if hit]
            place = join(self.path, name)
            own = [part for s in self._at(name) for part in parts_of(s, self.proof._old)]
            if not all(self._deeper(own, goal, place) for goal in goals or [rest]):
                return False
        others = self._others()
        if others is not None and _is_empty(others):
            return True
        if patterns or (others is None and rest is not True):
            return False
        return self._deeper(others or [], rest, join(self.path, "*"))

    def _at(self, name: str) -> Iterator[Any]:
        """Give what the old parts say of one property."""
        for part in self.old:
            named, patterns = part.get("properties", {}), part.get("patternProperties", {})
            if name in named:
                yield named[name]
            elif not patterns and "additionalProperties" in part:
                yield part["additionalProperties"]

    def _others(self) -> list[Part] | None:
        """Give what the old parts say of properties that they do not name; None for too much."""
        found: list[Part] = []
        for part in self.old:
            if part.get("patternProperties"):
                return None
            found += parts_of(part.get("additionalProperties", True), self.proof._old)
        return found

    def _items(self, new: Part) -> bool:
        first, rest = new.get("prefixItems", []), new.get("items", True)
        own = [part.get("prefixItems", []) for part in self.old]
        if is_array(rest):
            return False  # as drafts before 2020-12 had it
        most = self._least("maxItems")
        # The last round stands for every item behind those that are named one by one.
        for at in range(max(map(len, [first, *own])) + 1):
            if most is not None and at >= most:
                break
            said = [
                prefix[at] if at < len(prefix) else part.get("items", True)
                for part, prefix in zip(self.old, own, strict=True)
            ]
            parts = [each for schema in said for each in parts_of(schema, self.proof._old)]
            if _is_empty(parts):
                break  # there is no such item, and so none behind it
            goal = first[at] if at < len(first) else rest
            if not self._deeper(parts, goal, f"{self.path}[]"):
                return False
        return True

    # Unions.

    def _one_of(self, branches: list[Any]) -> bool:
        return any(
            self._inner(self.old, branch)
            and all(self._is_apart(other) for at, other in enumerate(branches) if at != chosen)
            for chosen, branch in enumerate(branches)
        )

    def _is_apart(self, other: Any) -> bool:
        """Whether no value of the old parts can fit another schema."""
        theirs = parts_of(other, self.proof._new)
        if not self.types & types_of(theirs):
            return True
        if self.types - {"object"}:
            return False
        for name in set(self._required()):
            own = [part for s in self._at(name) for part in parts_of(s, self.proof._old)]
            values = _values(own)
            said = [p["properties"][name] for p in theirs if name in p.get("properties", {})]
            if values is not None and all(
                any(self.proof._of_new.fits(value, schema) is False for schema in said)
                for value in values
            ):
                return True
        return False


_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)
_APPLIES: Final = {
    **dict.fromkeys([*_BOUNDS, "multipleOf"], _NUMBERS),
    **dict.fromkeys(["minLength", "maxLength", "pattern", "format"], frozenset({"string"})),
    **dict.fromkeys(
        ["minItems", "maxItems", "items", "prefixItems", "uniqueItems"], frozenset({"array"})
    ),
    **dict.fromkeys(
        [
            "additionalProperties",
            "maxProperties",
            "minProperties",
            "patternProperties",
            "properties",
            "propertyNames",
            "required",
        ],
        frozenset({"object"}),
    ),
}
"""The types of values that a keyword says anything about."""
