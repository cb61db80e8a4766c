"""What can be proven of two schemas, keyword by keyword, and what is left open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from lutum_py._compat.fits import Fitting
from lutum_py._compat.samples import samples_of
from lutum_py._compat.verdict import Proof, judge
from tests.profiles import scaled

from .schemas import PAIRS, is_valid

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
LIST, MAP = {"type": "array"}, {"type": "object"}
NEST = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "$ref": "#/$defs/A"}
OWN = {**MAP, "properties": {"k": {"const": "a"}}, "required": ["k"]}
OTHER = {**MAP, "properties": {"k": {"const": "b"}}, "required": ["k"]}

TREE: dict[str, Any] = {
    "$ref": "#/$defs/T",
    "$defs": {"T": {**MAP, "properties": {"n": WHOLE, "next": {"$ref": "#/$defs/T"}}}},
}
WIDER = {
    "$ref": "#/$defs/T",
    "$defs": {"T": {**MAP, "properties": {"n": NUMBER, "next": {"$ref": "#/$defs/T"}}}},
}
ENDLESS = {
    "$ref": "#/$defs/T",
    "$defs": {"T": {**MAP, "properties": {"next": {"$ref": "#/$defs/T"}}, "required": ["next"]}},
}
PROVEN: list[tuple[Any, Any]] = [
    (False, TEXT),
    ({"allOf": [TEXT, WHOLE]}, False),
    ({"enum": []}, False),
    (TEXT, True),
    (WHOLE, {}),
    ({"enum": [1, "a"]}, {"type": ["string", "integer"]}),
    ({"const": 1.0}, WHOLE),
    ({**WHOLE, "multipleOf": 6}, {"multipleOf": 3}),
    (WHOLE, {"multipleOf": 1}),
    ({"enum": [4, "a"]}, {"multipleOf": 2}),
    ({**TEXT, "minLength": 3}, {**TEXT, "minLength": 2}),
    ({**TEXT, "pattern": "a", "maxLength": 2}, {**TEXT, "pattern": "a"}),
    ({**TEXT, "format": "date", "maxLength": 9}, {**TEXT, "format": "date"}),
    ({**LIST, "minItems": 2, "maxItems": 3}, {**LIST, "minItems": 1, "maxItems": 4}),
    ({**LIST, "uniqueItems": True, "minItems": 1}, {**LIST, "uniqueItems": True}),
    ({**LIST, "items": WHOLE, "maxItems": 9}, {**LIST, "items": NUMBER}),
    ({**LIST, "prefixItems": [TEXT], "items": False}, {**LIST, "prefixItems": [TEXT, WHOLE]}),
    ({**MAP, "maxProperties": 2}, {**MAP, "maxProperties": 3}),
    ({**MAP, "additionalProperties": WHOLE}, {**MAP, "properties": {"a": NUMBER}}),
    ({**MAP, "patternProperties": {"a": WHOLE}}, {**MAP, "properties": {"b": True}}),
    ({**MAP, "propertyNames": TEXT, "minProperties": 1}, {**MAP, "propertyNames": TEXT}),
    ({"not": TEXT, "type": "integer"}, {"not": TEXT}),
    ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE, {"type": "null"}, TEXT]}),
    ({"anyOf": [TEXT]}, TEXT),
    ({"type": ["string", "integer"]}, {"anyOf": [TEXT, NUMBER]}),
    (True, {"type": ["null", "boolean", "object", "array", "number", "string"]}),
    (TEXT, {"oneOf": [TEXT, WHOLE]}),
    (OWN, {"oneOf": [OWN, OTHER]}),
    ({"oneOf": [OWN, OTHER]}, {"oneOf": [OTHER, OWN]}),
    (NEST, {**NEST}),
    (TREE, WIDER),
    ({"if": TEXT, "then": WHOLE}, {"if": TEXT, "then": WHOLE}),
    ({"$ref": "#/x~1y/a%20b", "x/y": {"a b": WHOLE}}, NUMBER),
    (WHOLE, {"$comment": "any", "x-own": 1}),
    ({"$ref": "elsewhere", **WHOLE}, NUMBER),
]
LEFT_OPEN: list[tuple[Any, Any]] = [
    (TEXT, {"$ref": "elsewhere"}),
    (TEXT, {"$ref": "#/gone"}),
    (TEXT, {**TEXT, "pattern": "("}),
    (TEXT, {**TEXT, "format": "date"}),
    ({**NUMBER, "maximum": 3}, {**NUMBER, "maximum": 3, "exclusiveMaximum": True}),
    (NUMBER, {**NUMBER, "multipleOf": 0.1}),
    (LIST, {**LIST, "items": [TEXT]}),
    ({**TEXT, "minLength": 20_000}, {**TEXT, "maxLength": 30_000}),
    (NEST, TEXT),
    (ENDLESS, {**MAP, "required": ["z"]}),
    ({**MAP, "patternProperties": {"(": TEXT}}, {**MAP, "additionalProperties": TEXT}),
    (OWN, {"oneOf": [OWN, {**MAP, "properties": {"x": TEXT}, "not": {"required": ["k"]}}]}),
    ({**MAP, "properties": {"a": TEXT}}, {**MAP, "patternProperties": {"(": TEXT}}),
    # They hold, but in other words.
    ({"enum": ["a", 1], "type": "integer"}, WHOLE),
    ({"type": ["boolean", "null"]}, {"enum": [None, True, False]}),
    ({**WHOLE, "minimum": 1}, {**WHOLE, "exclusiveMinimum": 0}),
    ({**NUMBER, "exclusiveMaximum": 1}, {**NUMBER, "maximum": 1}),
    ({**WHOLE, "maximum": 1.5}, {**WHOLE, "maximum": 1}),
    (TEXT, {"minimum": 3}),
    ({**WHOLE, "exclusiveMinimum": 0, "exclusiveMaximum": 4}, {"minimum": 1, "maximum": 3}),
    ({**LIST, "maxItems": 1}, {**LIST, "uniqueItems": True}),
    (LIST, {**LIST, "uniqueItems": False}),
    (
        {**LIST, "prefixItems": [TEXT], "items": WHOLE, "maxItems": 2},
        {**LIST, "prefixItems": [TEXT, NUMBER], "items": False},
    ),
    ({**MAP, "required": ["a", "b"]}, {**MAP, "minProperties": 2, "required": ["b"]}),
    (
        {**MAP, "properties": {"a": TEXT}, "additionalProperties": False},
        {**MAP, "maxProperties": 1},
    ),
    (
        {**MAP, "properties": {"a": TEXT}, "additionalProperties": False},
        {**MAP, "properties": {"a": {}}, "patternProperties": {"b": WHOLE}},
    ),
    (
        {**MAP, "properties": {"ab": WHOLE}, "additionalProperties": False},
        {**MAP, "patternProperties": {"a": NUMBER}, "additionalProperties": False},
    ),
]
REFUTED: list[tuple[Any, Any]] = [
    (TEXT, {"if": TEXT, "then": {"minLength": 1}}),
    (LIST, {**LIST, "contains": {"const": 7}}),
    ({"type": ["string", "integer"]}, {"enum": ["a"]}),
    ({"const": [1, {"a": True}]}, {"const": [1, {"a": 1}]}),
    ({"enum": [True]}, {"enum": [1]}),
    (NUMBER, WHOLE),
    ({**WHOLE, "minimum": 0}, {**WHOLE, "exclusiveMinimum": 0}),
    ({**WHOLE, "exclusiveMaximum": 4}, {**WHOLE, "maximum": 2}),
    (LIST, {**LIST, "uniqueItems": True, "maxItems": 3}),
    (NUMBER, {**NUMBER, "multipleOf": 2}),
    (WIDER, TREE),
    ({**MAP, "properties": {"a": TEXT}}, {**MAP, "properties": {"b": WHOLE}, "if": {}}),
    (NUMBER, {**NUMBER, "exclusiveMinimum": 0}),
    ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 4}),
    (LIST, {**LIST, "uniqueItems": True}),
    ({**LIST, "items": TEXT, "minItems": 2}, {**LIST, "uniqueItems": True}),
    (WHOLE, {**WHOLE, "multipleOf": 2}),
    (TEXT, {"oneOf": [TEXT, {}]}),
    (OWN, {"oneOf": [OWN, MAP]}),
    (OWN, OTHER),
    ({**MAP, "patternProperties": {"x": TEXT}}, {**MAP, "additionalProperties": WHOLE}),
    ({**MAP, "properties": {"extra": TEXT}}, {**MAP, "patternProperties": {"^e": WHOLE}}),
    ({**LIST, "prefixItems": [TEXT], "minItems": 1}, {**LIST, "prefixItems": [WHOLE]}),
    (
        {**LIST, "items": {**MAP, "additionalProperties": TEXT}},
        {**LIST, "items": MAP | {"maxProperties": 0}},
    ),
    ({**MAP, "additionalProperties": TEXT}, {**MAP, "additionalProperties": WHOLE}),
]


def test_what_is_proven() -> None:
    """Each of these pairs is a yes, and no value says otherwise."""
    for old, new in PROVEN:
        assert judge(old, new).answer == "yes", (old, new)
        fitting = Fitting(new)
        for value in samples_of(old, new):
            assert fitting.fits(value, new) is not False, (old, new, value)


def test_what_is_left_open() -> None:
    """Where something is not understood, or no small value shows it, the answer is maybe."""
    for old, new in LEFT_OPEN:
        verdict = judge(old, new)
        assert verdict.answer == "maybe", (old, new)
        assert verdict.reason.endswith("cannot be told from here"), (old, new)


def test_what_is_refuted() -> None:
    """Each of these pairs is a no, with a value that the reference validator judges alike."""
    for old, new in REFUTED:
        verdict = judge(old, new)
        assert verdict.answer in ("no", "maybe"), (old, new)
        assert is_valid(verdict.example, old), (old, new)
        assert not is_valid(verdict.example, new), (old, new)
        assert Fitting(new).misfit(verdict.example) in verdict.reason, (old, new)


def test_a_schema_without_end_is_left_open() -> None:
    """A schema that leads back to itself, or is far too deep, ends in a maybe and no error."""
    endless: Any = {"$ref": "#/$defs/A", "$defs": {"A": {"not": {}, "anyOf": [{"$ref": "#"}]}}}
    assert Fitting(endless).fits("x", endless) is not True
    assert judge(endless, {"type": "string", "minLength": 1}).answer in ("yes", "maybe")
    deep: Any = TEXT
    for _ in range(400):
        deep = {"type": "array", "minItems": 1, "items": deep}
    assert judge(deep, {"type": "array", "items": deep}).answer == "maybe"


def test_a_huge_schema_is_given_up_in_time() -> None:
    """Proof and search have a budget: many unions in many fields end in a maybe."""
    branches = [{"type": "array", "items": {"const": number}} for number in range(20)]
    fields = {f"f{number}": {"anyOf": branches} for number in range(30)}
    old = {"type": "object", "properties": fields}
    new = {"type": "object", "properties": {n: {"anyOf": branches[::-1]} for n in fields}}
    new["not"] = {"required": ["g"]}
    proof = Proof(old, new)
    assert not proof.holds()
    assert len(samples_of(old, new)) <= 600


@settings(max_examples=scaled(60))
@given(PAIRS)
def test_samples_fit_the_old_schema(pair: tuple[Any, Any]) -> None:
    """Every sample is valid under the old schema, for the reference validator too."""
    assert all(is_valid(value, pair[0]) for value in samples_of(*pair))


class PanicException(BaseException):
    """Named like what the package `rpds` raises where the stack ends."""


@pytest.mark.parametrize("error", [RecursionError, KeyError, PanicException])
def test_what_a_validator_cannot_tell_is_left_open(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the validator is no answer, also where Rust finds the end of the stack."""
    raised: type[BaseException] = error

    def faults(*_: Any) -> Any:
        raise raised

    fitting = Fitting({})
    monkeypatch.setattr(fitting, "_faults", faults)
    assert fitting.fits(1, {}) is None
    raised = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        fitting.fits(1, {})
