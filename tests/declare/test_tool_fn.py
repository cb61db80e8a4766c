"""The laws of `@tool_fn`: what becomes a tool, and what stays as it was."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import pickle
import typing
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Annotated, Any, NotRequired

import pytest
from pydantic import AfterValidator, BaseModel
from typing_extensions import TypedDict

import lutum_py
from lutum_py import Skip, tool_fn
from lutum_py.capabilities import ToolCapabilities
from lutum_py.errors import InvalidArgumentsError, MisuseError
from tests.cases import over
from tests.declared import call_of, refusal, schema_of, spec_of


class Hit(BaseModel):
    title: str


@tool_fn
async def web_search(query: str, max_results: int = 5) -> list[Hit]:
    """Search the public web.

    Best for news.

    Args:
        query: What to search for.
        max_results: Upper bound on hits.

    Returns:
        The hits.
    """
    return [Hit(title=query)] * max_results


@tool_fn(
    name="wait",
    description="Wait a while.",
    timeout=2.5,
    category="time",
    capabilities=ToolCapabilities(background_safe=True),
    idempotent=True,
    strict=True,
)
def sleep_well(seconds: float) -> float:
    """Never told."""
    return seconds


class Service:
    """A class whose methods are tools."""

    greeting = "hello"

    class Options(BaseModel):
        loud: bool = False

    @tool_fn
    async def greet(self, name: str, options: Options) -> str:
        """Greet someone."""
        return f"{self.greeting} {name.upper() if options.loud else name}"

    @staticmethod
    @tool_fn
    def double(number: int) -> int:
        return 2 * number


# What a declaration comes to.


def test_a_decorated_function_is_still_the_function() -> None:
    """A tool is called as the function it wraps, and tells of itself what the function tells."""
    assert sleep_well(1) == 1
    assert asyncio.run(web_search("x", max_results=1)) == [Hit(title="x")]
    assert web_search.__wrapped__.__name__ == "web_search"
    assert web_search.__module__ == __name__
    assert web_search.__qualname__ == "web_search"
    assert web_search.__doc__ == web_search.__wrapped__.__doc__
    assert list(inspect.signature(web_search).parameters) == ["query", "max_results"]
    assert typing.get_type_hints(web_search)["return"] == list[Hit]
    assert repr(web_search) == "<tool_fn web_search: 'web_search'>"


def test_a_definition_says_what_the_docstring_says() -> None:
    """The docstring's prose describes the tool, its parameter section the fields."""
    definition = web_search.definition
    assert definition.name == web_search.name == "web_search"
    assert definition.description == "Search the public web.\n\nBest for news."
    assert definition.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": {"type": "string", "description": "What to search for."},
            "max_results": {
                "type": "integer",
                "default": 5,
                "description": "Upper bound on hits.",
            },
        },
        "required": ["query"],
    }
    assert definition.output_schema == {
        "type": "array",
        "items": {"$ref": "#/$defs/Hit"},
        "$defs": {
            "Hit": {
                "type": "object",
                "title": "Hit",
                "properties": {"title": {"type": "string"}},
                "required": ["title"],
            }
        },
    }


def test_options_reach_the_definition() -> None:
    """What the decorator is told stands in the definition, and beats the docstring."""
    told = sleep_well.definition.to_dict()
    assert told["name"] == sleep_well.name == "wait"
    assert told["description"] == "Wait a while."
    assert told["timeout"] == 2.5
    assert told["category"] == "time"
    assert told["capabilities"]["background_safe"] is True
    assert told["idempotent"] is True
    assert told["strict"] is True


def test_generated_classes_have_honest_names() -> None:
    """Each generated class says where it stands, so that it is found there again."""
    assert web_search.Input.__name__ == "WebSearchInput"
    assert web_search.Input.__qualname__ == "web_search.Input"
    assert web_search.Input.__module__ == __name__
    assert web_search.Call.__name__ == "WebSearchInputCall"
    assert web_search.Call.__qualname__ == "web_search.Call"
    assert web_search.Handled.__name__ == "WebSearchInputHandled"
    assert str(inspect.signature(web_search.Input)) == (
        "(*, query: str, max_results: int = 5) -> None"
    )


@over(
    "found",
    [
        web_search,
        web_search.Input,
        web_search.Call,
        web_search.Handled,
        Service.greet,
        Service.greet.Input,
        Service.double,
    ],
)
def test_what_is_generated_pickles_and_copies(found: Any) -> None:
    """A tool and its classes are found again by name, in this process and in any other."""
    assert pickle.loads(pickle.dumps(found)) is found
    assert copy.deepcopy(found) is found
    assert copy.copy(found) is found


def test_inputs_pickle() -> None:
    """An input comes back equal, of the very class."""
    made = Service.greet.Input(name="A", options=Service.Options(loud=True))
    back = pickle.loads(pickle.dumps(made))
    assert back == made
    assert type(back) is type(made) is Service.greet.Input


# Which functions.


def test_a_sync_function_runs() -> None:
    """A plain function is a tool like an async one."""
    assert call_of(sleep_well, {"seconds": 1.5}).call_sync().result == "1.5"


def test_a_method_takes_its_instance_where_the_call_is_run() -> None:
    """`self` is hidden from the model and passed by the program."""
    assert list(schema_of(Service.greet)["properties"]) == ["name", "options"]
    arguments = {"name": "Ann", "options": {"loud": True}}
    result = asyncio.run(call_of(Service.greet, arguments).call(self=Service()))
    assert result.result == '"hello ANN"'
    assert asyncio.run(Service().greet("Bob", Service.Options())) == "hello Bob"
    assert list(inspect.signature(Service().greet).parameters) == ["name", "options"]


def test_a_static_method_is_a_tool() -> None:
    """`@staticmethod` above `@tool_fn` leaves a tool without `self`."""
    assert Service.double(4) == 8
    assert vars(Service)["double"].__func__ is Service.double
    assert call_of(Service.double, {"number": 4}).call_sync().result == "8"


def test_a_bound_method_is_a_tool() -> None:
    """A method of one instance can be decorated where it is bound."""

    class Counter:
        total = 3

        def add(self, number: int) -> int:
            return self.total + number

    assert call_of(tool_fn(Counter().add), {"number": 4}).call_sync().result == "7"


def test_positional_and_keyword_only_parameters() -> None:
    """A call passes each parameter in the way that the function wants it."""

    @tool_fn
    def order(first: int, second: int = 2, /, third: int = 3, *, fourth: int = 4) -> list[int]:
        return [first, second, third, fourth]

    assert call_of(order, {"first": 1}).call_sync().result == "[1,2,3,4]"
    given = {"fourth": 40, "second": 20, "first": 10}
    assert call_of(order, given).call_sync().result == "[10,20,3,40]"


def test_a_hidden_positional_parameter_keeps_its_place() -> None:
    """A positional-only parameter that nobody passes keeps its default, and its place."""

    @tool_fn
    def place(hidden: Annotated[str, Skip()] = "own", shown: str = "b", /) -> list[str]:
        return [hidden, shown]

    assert call_of(place, {"shown": "x"}).call_sync().result == '["own","x"]'
    assert call_of(place, {"shown": "x"}).call_sync(hidden="h").result == '["h","x"]'


def test_an_awaitable_of_a_plain_function_is_awaited() -> None:
    """A plain function that hands out a coroutine gives the coroutine's result."""

    def forward(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    @tool_fn
    @forward
    async def add(a: int, b: int = 2) -> int:
        return a + b

    assert asyncio.run(call_of(add, {"a": 1}).call()).result == "3"
    with pytest.raises(MisuseError):
        call_of(add, {"a": 1}).call_sync()


@pytest.mark.parametrize("kind", [Coroutine[Any, Any, int], Awaitable[int]])
def test_an_annotated_awaitable_is_async(kind: Any) -> None:
    """The output of a function that is annotated with an awaitable is what the awaitable gives."""

    async def inner(a: int) -> int:
        return a

    def outer(a: int) -> Any:
        return inner(a)

    outer.__annotations__["return"] = kind
    tool = tool_fn(outer)
    assert spec_of(tool).output.type is int
    assert asyncio.run(call_of(tool, {"a": 7}).call()).result == "7"
    with pytest.raises(MisuseError):
        call_of(tool, {"a": 7}).call_sync()


# A single object is the input itself.


class Question(BaseModel):
    text: str
    """What is asked."""
    loud: bool = False


@dataclass
class Point:
    x: int
    y: list[int] = dataclass_field(default_factory=list)


class Movement(TypedDict):
    by: int
    times: NotRequired[int]


@tool_fn
def ask(question: Question) -> str:
    return question.text


@tool_fn
def plot(point: Point) -> int:
    return point.x + sum(point.y)


@tool_fn
def move(movement: Movement) -> int:
    return movement["by"] * movement.get("times", 1)


@tool_fn
def ask_annotated(question: Annotated[Question, AfterValidator(lambda q: q)], /) -> str:
    return question.text


def test_a_single_object_is_the_input() -> None:
    """A model, dataclass or `TypedDict` that stands alone is not wrapped once more."""
    assert ask.Input.__name__ == "Question"
    assert ask_annotated.Input is ask.Input
    assert plot.Input is Point  # type: ignore[comparison-overlap]
    assert move.Input is Movement  # type: ignore[comparison-overlap]
    assert ask.Call.__name__ == "QuestionCall"
    assert schema_of(ask) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string", "description": "What is asked."},
            "loud": {"type": "boolean", "default": False},
        },
        "required": ["text"],
    }
    assert call_of(ask, {"text": "t"}).call_sync().result == '"t"'
    assert call_of(ask_annotated, {"text": "t"}).call_sync().result == '"t"'
    assert call_of(plot, {"x": 1, "y": [2, 3]}).call_sync().result == "6"
    assert call_of(move, {"by": 2, "times": 3}).call_sync().result == "6"


def test_an_object_with_company_or_default_is_a_field() -> None:
    """Beside another parameter, or with a default, a model is one field of the input."""

    @tool_fn
    def both(question: Question, times: int = 1) -> str:
        return question.text * times

    @tool_fn
    def maybe(question: Question = Question(text="d")) -> str:  # noqa: B008
        return question.text

    assert list(schema_of(both)["properties"]) == ["question", "times"]
    assert call_of(maybe).call_sync().result == '"d"'
    assert call_of(maybe, {"question": {"text": "q"}}).call_sync().result == '"q"'


def test_strict_tools_do_not_coerce() -> None:
    """A strict tool refuses what would have to be coerced; any other takes it."""
    assert refusal(sleep_well, {"seconds": "1"}) == (
        "- `seconds`: Input should be a valid number (got '1')"
    )

    def pair(point: Point) -> int:
        return 0

    def step(movement: Movement) -> int:
        return 0

    def put(question: Question) -> int:
        return 0

    for function, arguments in (
        (pair, {"x": "1"}),
        (step, {"by": "1"}),
        (put, {"text": "t", "loud": "yes"}),
    ):
        assert call_of(tool_fn(function), arguments).input
        with pytest.raises(InvalidArgumentsError, match="Input should be a valid"):
            call_of(tool_fn(strict=True)(function), arguments)


def test_the_class_of_calls_is_of_a_function() -> None:
    """`ToolFn.Call` is no class of calls, so that tools that document themselves pass over it."""
    assert lutum_py.typing.ToolFn.Call is vars(lutum_py.typing.ToolFn)["Call"]
    assert issubclass(web_search.Call, lutum_py.AnyToolCall)
