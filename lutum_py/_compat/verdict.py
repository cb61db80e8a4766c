"""Judge whether what was valid under one JSON schema still is under another.

Either a proof says that it is, or an example that it is not; else nobody knows. The proof is one of
the changes that people make. One that succeeds holds; one that fails says nothing but where it got
stuck. Both schemas are gone through side by side, and each keyword of the new one has to follow
from the same keyword of the old one: `{"type": "integer", "maximum": 9}` proves `{"type": "number",
"maximum": 20}`, since integers are numbers and 9 is below 20. What is not understood in the old
schema only narrows it, so it is left out; in the new one it ends the proof. A recursive schema is
proven by induction: below a property or an item, what is being shown may be assumed.

A bound in other words (`exclusiveMinimum: 0` for `minimum: 1`) is not proven: a rule for each pair
of keywords would be most of the code, and few changes of a tool would need one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import ge, le
from typing import Any, Final, Literal

from .._schema.definition import without_remarks
from .._schema.schema_reader import (
    NEVER,
    UNIONS,
    JsonSchema,
    cases_of,
    item_of,
    localized,
    parts_of,
    property_of,
    types_named,
    types_of,
    with_subschemas,
)
from .._text.json import canonical_json, is_object
from .fits import Fitting, join
from .samples import samples_of

_BUDGET: Final = 5_000
"""Steps of one proof, after which it is given up."""

_TYPES: Final = ("array", "boolean", "null", "number", "object", "string")
_FOLLOWS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"], ge),
    **dict.fromkeys(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"], le),
    "multipleOf": lambda old, new: isinstance(old, int) and isinstance(new, int) and old % new == 0,
    "required": lambda old, new: {*old} >= {*new},
}
"""By keyword, whether its new value follows from the old one."""
_REMARKS: Final = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""What a validator takes for a remark unless it is told otherwise."""
_ALONE: Final = _REMARKS | {"not", "pattern", "patternProperties", "propertyNames", "uniqueItems"}
"""Keywords that say the same wherever they stand."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say whether every value of an old schema is also one of a new schema.

    Attributes:
        answer: `yes` where that is proven, `no` where `example` shows otherwise, else `maybe`.
        reason: Why, in a sentence without a full stop.
        example: A value that fits the old schema and not the new one; None if there is none.
    """

    answer: Literal["yes", "no", "maybe"]
    reason: str
    example: Any = None


def judge(old: Any, new: Any) -> Verdict:
    """Compare two schemas.

    Args:
        old: The schema that values were made for.
        new: The schema that they are to fit.

    Returns:
        The verdict; `yes` and `no` are certain.

    Example:
        >>> judge({"type": "integer"}, {"type": "number"}).answer
        'yes'
        >>> judge({"type": "integer"}, {"type": "integer", "maximum": 9})
        Verdict(answer='no', reason='the arguments must be at most 9', example=10)
    """
    old, new = localized(old), localized(new)
    verdict = _judge(old, new)
    if verdict.answer != "no":
        return verdict
    # Most objects take fields that they do not name. That one of those is refused now matters less
    # than what happens to the fields that the old schema did name.
    closed = _judge(_closed(old), new)
    if closed.answer == "no" and Fitting(old).fits(closed.example, old):
        return closed
    if closed.answer == "yes":
        reason = f"{verdict.reason}; only fields that the old schema does not name are concerned"
        return Verdict("maybe", reason, verdict.example)
    return verdict


def _judge(old: Any, new: Any) -> Verdict:
    proof = Proof(old, new)
    if proof.holds():
        return Verdict("yes", "whatever fitted the old schema fits the new one")
    fitting = Fitting(new)
    # The smallest first, so that the example in the message is one that a person reads at a glance.
    for value in samples_of(old, new):
        if fitting.fits(value, new) is False:
            return Verdict("no", fitting.misfit(value), value)
    path, keyword = proof.stuck or ("", "$ref")
    place = f"`{path}`" if path else "the arguments"
    return Verdict("maybe", f"whether {place} still fits `{keyword}` cannot be told from here")


def _closed(schema: Any) -> Any:
    """Return a schema whose objects take no field that they do not name."""
    if not is_object(schema):
        return schema
    made = with_subschemas(schema, _closed)
    if "properties" in made and "patternProperties" not in made:
        made.setdefault("additionalProperties", False)
    return made


class Proof:
    """Try to prove that every value of an old schema fits a new one.

    Attributes:
        stuck: Where the proof failed: the path of the value and the keyword of the new schema.
    """

    def __init__(self, old: Any, new: Any) -> None:
        self.stuck: tuple[str, str] | None = None
        self._old, self._new = without_remarks(old), without_remarks(new)
        self._fitting = Fitting(self._new)
        self._left = _BUDGET

    def holds(self) -> bool:
        """Whether the proof succeeds."""
        try:
            if canonical_json(self._old) == canonical_json(self._new):
                return True
            if not (Fitting(self._old).is_valid and self._fitting.is_valid):
                return self._give_up("", "$schema")
            return self._implies(parts_of(self._old, self._old), self._new, "", {})
        except RecursionError:
            return self._give_up("", "$ref")

    def _implies(
        self, old: list[JsonSchema], new: Any, path: str, trail: Mapping[str, str]
    ) -> bool:
        """Whether a value at a path that fits all old parts fits a new schema.

        `trail` is what is being shown meanwhile, each with the path that it is shown for.
        """
        self._left -= 1
        key = canonical_json([old, new])
        if key in trail and trail[key] != path:
            return True  # by induction: the values here lie deeper than those it is shown for
        if key in trail or self._left < 0:
            return self._give_up(path, "$ref")
        trail = {**trail, key: path}
        # No value fits the old parts, so each of them fits anything.
        if NEVER in old or not types_of(old):
            return True
        for part in old:
            if "enum" in part or "const" in part:
                values = part["enum"] if "enum" in part else [part["const"]]
                fitting = (self._fitting.fits(value, new) is True for value in values)
                return all(fitting) or self._give_up(path, "enum")
        goals = [part for part in parts_of(new, self._new) if not _is_among(part, old)]
        # `{"anyOf": [A, B]}` implies the new schema if A does and B does. Before the keywords are
        # gone through, because no single branch of the new one may take both.
        cases = self._cases(old, goals)
        if cases is not None:
            return all(self._implies(case, new, path, trail) for case in cases)
        for goal in goals:
            for keyword in goal:
                before = self.stuck
                if not self._shows(keyword, goal, old, path, trail):
                    if keyword in UNIONS:
                        self.stuck = before  # that one branch failed tells nothing
                    return self._give_up(path, keyword)
        return True

    def _cases(
        self, old: list[JsonSchema], goals: list[JsonSchema]
    ) -> list[list[JsonSchema]] | None:
        """Return cases that cover the old parts, if these have to be shown one by one."""
        if goals and (cases := cases_of(old, self._old)) is not None:
            return cases
        named = [name for name in _TYPES if types_named(name) & types_of(old)]
        if len(named) > 1 and any(key in goal for goal in goals for key in UNIONS):
            return [[*old, {"type": name}] for name in named]
        return None

    def _shows(
        self,
        keyword: str,
        goal: JsonSchema,
        old: list[JsonSchema],
        path: str,
        trail: Mapping[str, str],
    ) -> bool:
        """Whether one keyword of a new part follows from the old parts."""

        def holds(inner: list[Any], schema: Any, place: str) -> bool:
            return self._implies(self._parts(inner), schema, place, trail)

        def of_property(name: str | None, schema: Any) -> bool:
            return holds(property_of(old, name), schema, join(path, name or "*"))

        def of_item(at: int, schema: Any) -> bool:
            return holds(item_of(old, at), schema, f"{path}[]")

        operand = goal[keyword]
        if keyword not in self._fitting.keywords and keyword not in _REMARKS:
            return True
        if keyword == "type":
            return types_of(old) <= types_named(operand)
        if keyword == "properties":
            return all(of_property(name, schema) for name, schema in operand.items())
        if keyword == "additionalProperties" and "patternProperties" not in goal:
            # A property that only the old schema names falls under the rest of the new one; None
            # stands for the names that neither has.
            known = {name for part in old for name in part.get("properties", ())}
            others = sorted(known - {*goal.get("properties", ())})
            return all(of_property(name, operand) for name in [*others, None])
        if keyword == "prefixItems":
            return all(of_item(at, schema) for at, schema in enumerate(operand))
        if keyword == "items":
            first = len(goal.get("prefixItems", ()))
            behind = max((len(part.get("prefixItems", ())) for part in old), default=0)
            # The last round stands for every item after those that are named one by one.
            return all(of_item(at, operand) for at in range(first, max(first, behind) + 1))
        if keyword in UNIONS:
            return any(
                self._implies(old, branch, path, trail)
                and (
                    keyword == "anyOf"
                    or all(self._is_apart(old, o) for o in operand if o is not branch)
                )
                for branch in operand
            )
        own = [part[keyword] for part in old if keyword in part]
        if keyword == "multipleOf" and "fraction" not in types_of(old):
            own.append(1)
        if keyword in _FOLLOWS:
            return any(_FOLLOWS[keyword](each, operand) for each in own)
        return keyword in _ALONE and _is_among(operand, own)

    def _parts(self, schemas: Iterable[Any]) -> list[JsonSchema]:
        return [part for schema in schemas for part in parts_of(schema, self._old)]

    def _is_apart(self, old: list[JsonSchema], other: Any) -> bool:
        """Whether the type, or a required tag, tells all values of the old parts from another's."""
        theirs = parts_of(other, self._new)
        types = types_of(old)
        if not types & types_of(theirs):
            return True
        required = {name for part in old for name in part.get("required", ())}
        for name in required if types <= {"object"} else ():
            own = self._parts(property_of(old, name))
            tags = [part["const"] for part in own if "const" in part]
            said = property_of(theirs, name)
            if any(self._fitting.fits(tag, schema) is False for tag in tags for schema in said):
                return True
        return False

    def _give_up(self, path: str, keyword: str) -> bool:
        self.stuck = self.stuck or (path, keyword)
        return False


def _is_among(new: Any, old: list[Any]) -> bool:
    """Whether something stands among others word for word, and means the same in each document."""
    written = canonical_json(new)  # in Python 1 is True
    refers = any(f'"{key}"' in written for key in ("$ref", "$dynamicRef", "$recursiveRef"))
    return not refers and any(canonical_json(each) == written for each in old)
