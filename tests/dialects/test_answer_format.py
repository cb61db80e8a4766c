"""The laws of answers by format: what each dialect's request says of one."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import Answer, Message, TurnRequest
from lutum_py.dialects import DIALECTS
from lutum_py.errors import MisuseError, ToolDefinitionError
from tests.cases import over

from .every_dialect import OF_LIBRARY, WIRES


class Invoice(BaseModel):
    total: float
    note: str = ""


STRICT = {
    "type": "object",
    "properties": {
        "total": {"type": "number"},
        "note": {"type": ["string", "null"], "description": '(null: "")'},
    },
    "required": ["total", "note"],
    "additionalProperties": False,
}
AS_DECLARED = {
    "description": "Give the final answer.",
    "type": "object",
    "properties": {"total": {"type": "number"}, "note": {"type": "string", "default": ""}},
    "required": ["total"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_the_request_carries_the_schema(name: str) -> None:
    """`answer_format` gives the fields that a request of such an answer has, beside the others."""
    dialect: Any = import_module(DIALECTS[name])
    answer = Answer(Invoice, by="format")
    fields = dialect.answer_format(answer)
    assert fields == WIRES[name].answer_fields(STRICT, AS_DECLARED)
    assert fields == dialect.answer_format(answer.definition)
    said = [Message("user", "How much?")]
    plain = dialect.encode_request(TurnRequest(items=said, temperature=0.5))
    asked = dialect.encode_request(
        TurnRequest(items=said, temperature=0.5, answer=answer.definition)
    )
    for key, value in fields.items():
        assert asked[key] == ({**value, **plain.get(key, {})} if key in plain else value)
    assert {key: value for key, value in asked.items() if key not in fields} == {
        key: value for key, value in plain.items() if key not in fields
    }
    told = dialect.answer_format(Answer(Invoice, by="format", description="The bill."))
    assert "The bill." in json.dumps(told)
    with pytest.raises(MisuseError):
        dialect.answer_format(3)


@over("name", OF_LIBRARY)
def test_extras_beside_an_answer_leave_its_format(name: str) -> None:
    """What the user says in the field that holds the format is added to it, and may replace it."""
    dialect: Any = import_module(DIALECTS[name])
    answer, extra = Answer(Invoice, by="format"), WIRES[name].BESIDE_ANSWER
    fields = dialect.answer_format(answer)
    said = [Message("user", "How much?")]

    def asked(**more: Any) -> Any:
        request = TurnRequest(items=said, answer=answer.definition, extra=more)
        return dialect.encode_request(request)

    body = asked(**extra)
    for key in (*fields, *extra):
        both = [each[key] for each in (fields, extra) if key in each]
        assert body[key] == ({**both[0], **both[1]} if len(both) > 1 else both[0])
    (field,) = fields
    assert asked(**{field: None})[field] is None
    (inner,) = list(fields[field])[:1]
    assert asked(**{field: {inner: "mine"}})[field][inner] == "mine"


@pytest.mark.parametrize("name", [name for name in OF_LIBRARY if WIRES[name].HAS_STRICT])
def test_a_type_without_a_form_is_refused_with_the_remedy(name: str) -> None:
    """What no strict schema says can be asked for by a tool."""
    dialect: Any = import_module(DIALECTS[name])
    answer = Answer(dict[str, int], by="format")
    with pytest.raises(ToolDefinitionError):
        dialect.answer_format(answer)
    with pytest.raises(ToolDefinitionError):
        dialect.encode_request(TurnRequest(items=[Message("user", "x")], answer=answer.definition))
