"""Chat Completions: the body of a request."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import Message, ToolDef, Toolset, TurnRequest, tool_fn
from lutum_py import tool as member
from lutum_py.dialects import openai_chat as dialect
from lutum_py.errors import MisuseError
from lutum_py.models import ToolChoice
from tests.cases import over

from .chat_wire import ECHO


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
