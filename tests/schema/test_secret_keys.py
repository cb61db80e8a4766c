"""What stands under a secret is hidden whole: values, and the keys that lead to them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, Secret

from lutum_py import ToolDef, tool_fn
from lutum_py.errors import InvalidArgumentsError
from tests.cases import over
from tests.declared import call_of

KEY = "sk-live-1"
HIDDEN: Any = Field(json_schema_extra={"writeOnly": True})


class Entry(BaseModel):
    count: int = 0


KINDS: list[tuple[Any, Any]] = [
    (Annotated[dict[str, int], HIDDEN], {KEY: "x"}),
    (Annotated[dict[str, dict[str, int]], HIDDEN], {"a": {KEY: "x"}}),
    (Annotated[list[dict[str, int]], HIDDEN], [{KEY: "x"}]),
    (Annotated[dict[str, int] | list[dict[str, int]], HIDDEN], [{KEY: "x"}]),
    (Secret[dict[str, dict[str, int]]], {"a": {KEY: "x"}}),
    (Secret[list[dict[str, int]]], [{KEY: "x"}]),
    (Annotated[dict[str, list[Entry]], HIDDEN], {KEY: [{"count": "x"}]}),
    (dict[str, Annotated[dict[str, dict[str, int]], HIDDEN]], {"a": {"b": {KEY: "x"}}}),
]


@over("kind, value", KINDS)
def test_no_key_under_a_secret_is_shown(kind: Any, value: Any) -> None:
    """A key below something secret is in no message, however deep it stands."""

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = kind
    with pytest.raises(InvalidArgumentsError) as caught:
        call_of(tool_fn(use), {"it": value})
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.fields)


SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({"additionalProperties": {"additionalProperties": {"type": "null"}}}, {"a": {KEY: 1}}),
    ({"items": {"additionalProperties": {"type": "null"}}}, [{KEY: 1}]),
    ({"items": {"patternProperties": {"^s": {"type": "null"}}}}, [{KEY: 1}]),
    ({"items": {"additionalProperties": False}}, [{KEY: 1}]),
    ({"properties": {"a": {"additionalProperties": {"enum": []}}}}, {"a": {KEY: 1}}),
]


@over("schema, value", SCHEMAS)
def test_no_key_under_a_foreign_secret_is_shown(schema: dict[str, Any], value: Any) -> None:
    """The same holds of what a foreign schema calls secret."""
    for secret in ({"writeOnly": True}, {"format": "password"}):
        definition = ToolDef.from_json_schema(
            name="t", input_schema={"properties": {"it": {**schema, **secret}}}
        )
        with pytest.raises(InvalidArgumentsError) as caught:
            call_of(definition, {"it": value})
        assert KEY not in str(caught.value)
