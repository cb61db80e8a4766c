"""Chat Completions: the body of a request."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import (
    Message,
    ToolDef,
    Toolset,
    TurnRequest,
    tool_fn,
)
from lutum_py import tool as member
from lutum_py.dialects import (
    openai_chat,
)
from lutum_py.dialects import openai_chat as dialect
from lutum_py.errors import MisuseError
from lutum_py.typing import ToolChoice
from tests.cases import over

from .called import BAD, answers
from .chat_wire import ECHO
from .other_model import sent


def test_a_request_has_the_names_of_the_dialect() -> None:
    """Tools, tool choice, parameters and extras stand where the API looks for them."""
    request = TurnRequest(
        items=[Message("system", "Be kind"), Message("user", "Hi")],
        tools=(ECHO,),
        tool_choice=ToolChoice("specific", "echo"),
        temperature=0.5,
        max_output_tokens=9,
        parallel_tool_calls=False,
        extra={"seed": 1, "tools": [{"type": "web_search"}]},
    )
    body = dialect.encode_request(request)
    assert body == {
        "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
        "tools": [*dialect.tools([ECHO]), {"type": "web_search"}],
        "tool_choice": {"type": "function", "function": {"name": "echo"}},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "max_completion_tokens": 9,
        "seed": 1,
    }
    json.dumps(body)


def test_without_tools_nothing_is_said_of_calls() -> None:
    """A request that offers no tools has no tool choice and no word on parallel calls."""
    request = TurnRequest(items=[], parallel_tool_calls=True)
    assert dialect.encode_request(request) == {"messages": []}
    offered = dialect.encode_request(TurnRequest(items=[], tools=(ECHO,)))
    assert (offered["tool_choice"], "parallel_tool_calls" in offered) == ("auto", False)


@over("mode", ["auto", "required", "none"])
def test_a_tool_choice_is_one_word(mode: Any) -> None:
    """What is asked without naming a tool is the API's own word for it."""
    assert dialect.tool_choice(ToolChoice(mode)) == mode
    assert dialect.tool_choice(SimpleNamespace(choice=ToolChoice(mode))) == mode


def test_a_tool_choice_is_nothing_else() -> None:
    """A bare string is no requirement."""
    with pytest.raises(MisuseError):
        dialect.tool_choice("auto")


def test_tools_are_described_with_the_texts_of_the_turn() -> None:
    """An override takes the place of the description; a tool without one has no such field."""
    bare = ToolDef.from_json_schema(name="bare", input_schema={"type": "object"})
    first, second = dialect.tools([ECHO, bare], descriptions=[("echo", "Again!")])
    assert first["function"]["description"] == "Again!"
    assert second == {
        "type": "function",
        "function": {"name": "bare", "parameters": {"type": "object", "properties": {}}},
    }
    first["function"]["parameters"].clear()
    assert dialect.tools([ECHO])[0]["function"]["parameters"]["type"] == "object"


def test_strict_tools_say_so() -> None:
    """A strict tool is marked, and its schema is the one that the compiler made for that."""
    (made,) = dialect.tools([ECHO], strict=True)
    assert made["function"]["strict"] is True
    assert made["function"]["parameters"] == dialect.compile(ECHO, strict=True).schema
    assert made["function"]["parameters"]["additionalProperties"] is False


def test_plain_definitions_are_all_on_offer() -> None:
    """Definitions without a toolset are offered as they are; nothing can be chosen among them."""
    with pytest.raises(MisuseError):
        dialect.tools([ECHO], available=["echo"])
    with pytest.raises(MisuseError):
        dialect.tools(["echo"])


@tool_fn
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool_fn
def quiet() -> None:
    """Say nothing."""


class Tools(Toolset):
    echo = member(echo)
    quiet = member(quiet, off=True)


def test_a_toolset_offers_what_is_on() -> None:
    """Of a toolset the tools that are on are described, or those that are asked for."""
    names = [each["function"]["name"] for each in dialect.tools(Tools)]
    assert names == ["echo"]
    (quiet,) = dialect.tools(Tools, available=[Tools.quiet], descriptions=[(Tools.quiet, "Hush.")])
    assert (quiet["function"]["name"], quiet["function"]["description"]) == ("quiet", "Hush.")


def test_what_a_schema_loses_is_said_with_the_request() -> None:
    """A rule that the provider does not enforce stands on the losses of the request."""
    union = ToolDef.from_json_schema(
        name="either",
        input_schema={
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
            ]
        },
    )
    losses = dialect.encode_request(TurnRequest(items=[], tools=(union,))).losses
    assert [loss.text for loss in losses] == [loss.text for loss in dialect.compile(union).losses]
    assert all(loss.where.startswith("tools.either") for loss in losses)
    assert losses


@over("field", ["reasoning", "reasoning_content", "reasoning_details"])
def test_chat_forgets_reasoning(field: str) -> None:
    """Whatever a host calls it, reasoning goes to no other model."""
    value = [{"type": "reasoning.text", "text": "Hm."}] if field.endswith("details") else "Hm."
    said = {"role": "assistant", "content": "Hi", field: value}
    turn = openai_chat.decode({"model": "qwen/qwen3-32b", "choices": [{"message": said}]})
    assert sent(openai_chat, turn, "qwen/qwen3-32b")["messages"][1] == said
    body = sent(openai_chat, turn, "gpt-5")
    assert body["messages"][1] == {"role": "assistant", "content": "Hi"}
    assert len(body.losses) == 1


@over("rest, content", [([{"type": "text", "text": "Hi"}], None), ([], ""), (["Hi"], None)])
def test_chat_forgets_parts_of_thinking(rest: list[Any], content: Any) -> None:
    """Thinking among the parts of a content is left out, and what remains can be sent."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    bare = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
    plain = openai_chat.decode({"model": "magistral-medium", "choices": [{"message": bare}]})
    assert sent(openai_chat, plain, "mistral-large")["messages"][1] == bare
    said = {"role": "assistant", "content": [thinking, *rest]}
    turn = openai_chat.decode({"model": "magistral-medium-2509", "choices": [{"message": said}]})
    message = sent(openai_chat, turn, "mistral-large")["messages"][1]
    assert message["content"] == ([{"type": "text", "text": "Hi"}] if content is None else content)


def test_a_call_of_the_old_form_is_answered_by_its_name_on_the_wire() -> None:
    """The result of a single-function call names the tool as the call does."""
    said = {"role": "assistant", "function_call": {"name": BAD, "arguments": "{}"}}
    turn = openai_chat.decode({"choices": [{"message": said}]})
    call, result = openai_chat.messages([turn, *answers(turn)])
    assert call["function_call"]["name"] == result["name"] != BAD
    assert openai_chat.check([call, result]) == []


def test_a_custom_call_goes_out_under_another_name_too() -> None:
    """Custom calls are renamed like functions."""
    custom = {"id": "c", "type": "custom", "custom": {"name": BAD, "input": "x"}}
    turn = openai_chat.decode({"choices": [{"message": {"tool_calls": [custom]}}]})
    assert openai_chat.check(openai_chat.messages([turn, *answers(turn)])) == []
