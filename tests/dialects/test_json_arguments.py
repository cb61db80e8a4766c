"""Arguments that are no JSON, for hosts that parse what is sent back to them."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.dialects import openai_chat, openai_responses
from tests.cases import over

ODD = {"name": "f", "arguments": "{odd"}
KEPT = ["{}", ' {"a": 1.10} ', '{"a": 1, "a": null}', '{"a": "\\ud800"}']
WRAPPED = ["[1]", "1", '"{}"', "{a: 1}", '{"a": ', '{"a": 1} {}', '{"a": 1e999}', '{"a": NaN}']


def said(dialect: ModuleType, text: str) -> list[Any]:
    """Calls with these arguments, beside what else a request has under such names."""
    function = {"name": "f", "arguments": text}
    if dialect is openai_responses:
        ran = {"type": "mcp_call", "id": "m", "server_label": "s", **ODD}
        custom = {"call_id": "x", "name": "run", "input": "{odd"}
        call = {"type": "function_call", "call_id": "c", **function}
        return [ran, {"type": "custom_tool_call", **custom}, call]
    calls = [
        {"id": "c", "type": "function", "function": function},
        {"id": "x", "type": "custom", "custom": {"name": "run", "input": "{odd"}},
    ]
    turn = {"role": "assistant", "tool_calls": calls, "function_call": function}
    return [{"role": "user", "content": [{"type": "text", "text": "Hi", **ODD}]}, turn]


@pytest.mark.parametrize("dialect", [openai_chat, openai_responses])
@over(
    "text,sent",
    [
        *((text, text) for text in KEPT),
        *((text, json.dumps({"INVALID_JSON": text}, separators=(",", ":"))) for text in WRAPPED),
        *((text, "{}") for text in ("", " \n", "null", " null ")),
    ],
)
def test_arguments_that_are_no_object_go_inside_of_one(
    dialect: ModuleType, text: str, sent: str
) -> None:
    """An object stays as it was written, all else goes inside of one, and only in calls."""
    listed = said(dialect, text)
    key = "input" if dialect is openai_responses else "messages"
    body = {"model": "m", "tools": [ODD], key: listed}
    assert dialect.with_json_arguments(listed) == said(dialect, sent)
    assert dialect.with_json_arguments(body) == {**body, key: said(dialect, sent)}
    assert listed == said(dialect, text)


@given(text=st.text())
def test_any_text_becomes_arguments_that_parse(text: str) -> None:
    """Whatever a model wrote, it is a JSON object then, and stays so."""
    made = openai_chat.with_json_arguments(said(openai_chat, text))
    assert isinstance(json.loads(made[1]["function_call"]["arguments"]), dict)
    assert openai_chat.with_json_arguments(made) == made
