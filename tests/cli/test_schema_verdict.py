"""Whether old calls still decode: the verdict against the reference validator."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, TypeAdapter

from lutum_py._compat.fits import Fitting
from lutum_py._compat.samples import samples_of
from lutum_py._compat.verdict import judge
from tests.profiles import scaled

from .schemas import PAIRS, SCHEMAS, VALUES, is_valid

SLOW = settings(
    max_examples=scaled(100),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@SLOW
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_a_definite_answer_is_the_validators(schema: Any, values: list[Any]) -> None:
    """Where `fits` says yes or no, the reference validator says the same."""
    fitting = Fitting(schema)
    for value in [*values, *samples_of(schema, {})[:20]]:
        answer = fitting.fits(value, schema)
        assert answer in (None, is_valid(value, schema)), value
        if answer is False:
            assert fitting.misfit(value)


@SLOW
@given(PAIRS, st.lists(VALUES, min_size=4, max_size=12))
def test_yes_and_no_are_certain(pair: tuple[Any, Any], values: list[Any]) -> None:
    """After a yes every value of the old schema fits the new; a no shows one that does not."""
    old, new = pair
    verdict = judge(old, new)
    if verdict.answer == "yes":
        for value in [*values, *samples_of(old, new)]:
            assert not is_valid(value, old) or is_valid(value, new), value
    elif verdict.answer == "no":
        assert is_valid(verdict.example, old)
        assert not is_valid(verdict.example, new)


@SLOW
@given(SCHEMAS)
def test_what_did_not_change_still_decodes(schema: Any) -> None:
    """A schema is never said to refuse what it takes itself."""
    assert judge(schema, copy.deepcopy(schema)).answer == "yes"


OLD: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "order": {"enum": ["asc", "desc"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "inner": {
            "type": "object",
            "properties": {"depth": {"type": "integer"}},
            "required": ["depth"],
        },
    },
    "required": ["path"],
}
LIMIT, TAGS, INNER = (OLD["properties"][name] for name in ("limit", "tags", "inner"))


def but(**properties: Any) -> dict[str, Any]:
    """The schema with other properties; None takes one away."""
    merged = {**OLD["properties"], **properties}
    return {**OLD, "properties": {k: v for k, v in merged.items() if v is not None}}


USUAL = {
    "nothing": (OLD, "yes", None),
    "wider bound": (but(limit={**LIMIT, "maximum": 20}), "yes", None),
    "same bound, said otherwise": (
        but(limit={"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 11}),
        "maybe",
        "whether `limit` still fits `exclusiveMinimum` cannot be told from here",
    ),
    "number for integer": (but(limit={**LIMIT, "type": "number"}), "yes", None),
    "nullable": (but(path={"anyOf": [{"type": "string"}, {"type": "null"}]}), "yes", None),
    "list of types": (but(path={"type": ["string", "null"]}), "yes", None),
    "new optional field": (but(extra={"type": "string"}), "yes", None),
    "new enum value": (but(order={"enum": ["asc", "desc", "none"]}), "yes", None),
    "unknown fields taken": ({**OLD, "additionalProperties": True}, "yes", None),
    "no longer required": ({**OLD, "required": []}, "yes", None),
    "whole numbers as multiples": (but(limit={"type": "integer", "multipleOf": 1}), "yes", None),
    "narrower bound": (
        but(limit={**LIMIT, "maximum": 5}),
        "no",
        "`limit` must be at most 5",
    ),
    "new required field": (
        {**but(extra={"type": "string"}), "required": ["path", "extra"]},
        "no",
        "`extra` is required",
    ),
    "removed field": (but(limit=None), "no", "`limit` is not known"),
    "other type": (but(path={"type": "integer"}), "no", "`path` must be of type integer"),
    "less enum values": (but(order={"enum": ["asc"]}), "no", '`order` must be one of "asc"'),
    "constant": (but(order={"const": "asc"}), "no", '`order` must be one of "asc"'),
    "other items": (
        but(tags={"type": "array", "items": {"type": "integer"}}),
        "no",
        "`tags[0]` must be of type integer",
    ),
    "less items": (
        but(tags={**TAGS, "maxItems": 2}),
        "no",
        "`tags` must have at most 2 items",
    ),
    "nested required": (
        but(inner={**INNER, "required": ["depth", "width"]}),
        "no",
        "`inner.width` is required",
    ),
    "nested type": (
        but(inner={**INNER, "properties": {"depth": {"type": "string"}}}),
        "no",
        "`inner.depth` must be of type string",
    ),
    "nested closed": (
        but(inner={**INNER, "additionalProperties": False}),
        "maybe",
        "`inner.extra` is not known; only fields that the old schema does not name are concerned",
    ),
    "format": (
        but(path={"type": "string", "format": "date"}),
        "maybe",
        "whether `path` still fits `format` cannot be told from here",
    ),
    "pattern": (
        but(path={"type": "string", "pattern": "^/"}),
        "no",
        "`path` must match '^/'",
    ),
    "no branch": (
        but(path={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        "no",
        "`path` fits no branch of `anyOf`",
    ),
}


def test_usual_changes() -> None:
    """The changes that people make are judged as a reader would, and the reason names the field."""
    for case, (new, answer, reason) in USUAL.items():
        verdict = judge(OLD, new)
        assert (verdict.answer, verdict.reason if reason else None) == (answer, reason), case
        if answer == "no":
            assert is_valid(verdict.example, OLD), case
            assert not is_valid(verdict.example, new), case


def test_an_example_has_the_format_that_the_old_tool_reads() -> None:
    """It is a text that decoded before, though to JSON schema a format is a remark."""
    types: tuple[Any, ...] = (date, datetime, time, timedelta, UUID, IPv4Address, IPv6Address)
    for each in (*types, AnyUrl, date | None, list[UUID]):
        adapter = TypeAdapter[Any](each)
        verdict = judge(adapter.json_schema(), {"type": "integer"})
        assert verdict.answer == "no"
        adapter.validate_python(verdict.example)
        within = {"type": "object", "properties": {"a": adapter.json_schema()}}
        samples = [each["a"] for each in samples_of(within, {}) if each.get("a")]
        assert samples
        for sample in samples:
            adapter.validate_json(json.dumps(sample))


def test_no_bound_is_judged_by_a_text_that_has_not_the_format() -> None:
    """What every date fits is not refused because another text does not fit it."""
    day = {"type": "string", "format": "date"}
    assert judge(day, {"type": "string", "maxLength": 10}).answer == "maybe"
    assert judge(day, {"type": "string", "maxLength": 9}).answer == "no"
    for unknown in ({"format": "isbn"}, {"format": "date", "allOf": [{"format": "isbn"}]}):
        old: dict[str, Any] = {"type": "string", **unknown}
        assert judge(old, {"type": "string", "minLength": 12}).answer == "maybe"
    free = {"type": "string", "format": "password"}
    assert judge(free, {"type": "string", "minLength": 12}).answer == "no"
    malformed = {"type": "string", "format": ["date"]}
    assert judge(malformed, {"type": "string", "minLength": 12}).answer == "maybe"


def test_most_pairs_get_a_definite_answer() -> None:
    """Of the usual changes hardly any is left at maybe."""
    answers = Counter(judge(OLD, new).answer for new, _, _ in USUAL.values())
    assert answers["maybe"] <= 3
