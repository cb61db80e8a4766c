"""The laws of `@tool_fn(input=...)`: one parameter is the whole input, and checkers know it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from lutum_py import FnSelector, Skip, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import ToolDefinitionError
from lutum_py.typing import FnCall
from tests.cases import over
from tests.declared import call_of, declare


class Question(BaseModel):
    text: str


@dataclass
class Point:
    x: int


class Pair(TypedDict):
    a: int


@tool_fn(input=Question, skip=("db",), title="Ask")
async def ask(db: dict[str, str], question: Question, context: ToolContext) -> str:
    """Ask."""
    return db[question.text] + context.call_id


@tool_fn(input=Point)
def move(point: Annotated[Point, Field(description="Where to.")]) -> int:
    return point.x


@tool_fn(input=Pair)
def add(pair: Pair) -> int:
    return pair["a"]


class Tools(Toolset):
    ask = tool(ask)


def test_the_input_is_of_the_type_that_is_named() -> None:
    """Its tool has selectors and calls like those of an input model, and runs as ever."""
    assert ask.Input is Question
    assert not isinstance(Tools.ask, FnSelector)
    call = call_of(ask, {"text": "why"})
    assert type(call) is ask.Call
    assert not isinstance(call, FnCall)
    assert call.input == Question(text="why")
    assert asyncio.run(call.call(db={"why": "so"})).output == "soc1"
    assert call_of(move, {"x": 3}).call_sync().output == 3
    assert call_of(add, {"a": 4}).call_sync().output == 4
    assert repr(ask) == "<tool_fn ask: 'ask'>"
    assert Tools.ask.definition.title == "Ask"


@over(
    "source, said",
    [
        (
            "def f(question: Question, other: int) -> str: ...",
            r"parameter `other` of type `int` is visible .* Hide it with `skip=\('other',\)`",
        ),
        ("def f(point: Point) -> str: ...", "parameter `point` of type `Point` is visible"),
        ("def f(db: Annotated[int, Skip()]) -> str: ...", "but no parameter is visible"),
        ("def f(one: Question, two: Question) -> str: ...", "is not the whole input"),
        ("def f(q: Question = Question(text='')) -> str: ...", "Let one parameter, without a"),
    ],
)
def test_any_other_parameter_is_refused_at_import(source: str, said: str) -> None:
    """What `input=` says is checked where the function is written."""
    scope: dict[str, Any] = {
        "Annotated": Annotated,
        "Point": Point,
        "Question": Question,
        "Skip": Skip,
        "tool_fn": tool_fn,
    }
    with pytest.raises(ToolDefinitionError, match=said) as caught:
        declare(scope, f"@tool_fn(input=Question)\n{source}")
    assert str(caught.value).startswith("Tool function `f`: `input=Question` ")


def test_an_input_that_is_no_object_is_refused() -> None:
    """A number cannot be the whole input of a tool."""
    with pytest.raises(ToolDefinitionError):
        declare({"tool_fn": tool_fn}, "@tool_fn(input=int)\ndef f(number: int) -> str: ...")
