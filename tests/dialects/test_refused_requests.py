"""What providers refuse: rendered requests never have it, `check` finds it, `repair` ends it."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import pytest

from lutum_py.dialects import anthropic_messages, bedrock_converse, gemini_generate_content
from tests.cases import over

GO = {"role": "user", "content": "Go"}
GO_BEDROCK = {"role": "user", "content": [{"text": "Go"}]}


def repaired(dialect: ModuleType, request: Any, *rules: str) -> Any:
    """Hold that a request breaks these rules, that a repair ends that, and that it is a copy."""
    before = copy.deepcopy(request)
    found = dialect.check(request)
    assert [each.rule for each in found] == [*rules]
    assert all(each.position and each.problem and each.remedy for each in found)
    fixed, changes = dialect.repair(request)
    assert [each.rule for each in changes] == [*rules]
    assert dialect.check(fixed) == []
    assert request == before
    return fixed


def anthropic_call(value: Any) -> list[Any]:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": value}
    said = {"role": "assistant", "content": [call]}
    return [GO, said, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]


def bedrock_call(value: Any, content: Any = None) -> list[Any]:
    call = {"toolUse": {"toolUseId": "a", "name": "f", "input": value}}
    result = {"toolUseId": "a", "content": [{"text": "1"}] if content is None else content}
    said = {"role": "assistant", "content": [call]}
    return [GO_BEDROCK, said, {"role": "user", "content": [{"toolResult": result}]}]


def gemini_call(value: Any) -> list[Any]:
    call = {"functionCall": {"name": "f", "args": value}}
    answer = {"functionResponse": {"name": "f", "response": {"output": 1}}}
    said = {"role": "model", "parts": [call]}
    return [{"role": "user", "parts": [{"text": "Go"}]}, said, {"role": "user", "parts": [answer]}]


def input_in(dialect: ModuleType, messages: list[Any]) -> Any:
    said = messages[1]
    if dialect is anthropic_messages:
        return said["content"][0]["input"]
    if dialect is bedrock_converse:
        return said["content"][0]["toolUse"]["input"]
    return said["parts"][0]["functionCall"]["args"]


OBJECTS = [
    (anthropic_messages, anthropic_call, "input_not_an_object"),
    (bedrock_converse, bedrock_call, "input_not_an_object"),
    (gemini_generate_content, gemini_call, "args_not_an_object"),
]


@pytest.mark.parametrize("dialect, called, rule", OBJECTS)
@over(
    "given, sent",
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("  {} ", {}),
        ("", {}),
        ("null", {}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ([1], {"INVALID_JSON": [1]}),
    ],
)
def test_arguments_as_json_text_are_read(
    dialect: ModuleType, called: Any, rule: str, given: Any, sent: Any
) -> None:
    """A repair reads arguments that are the JSON text of an object, and wraps only what is none."""
    assert input_in(dialect, repaired(dialect, called(given), rule)) == sent
