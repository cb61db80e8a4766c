"""The laws of `@tool_fn`: what becomes a tool, what is refused, and what stays as it was."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import inspect
import pickle
import threading
import typing
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import pytest
from pydantic import AfterValidator, BaseModel, Field, RootModel
from typing_extensions import TypedDict

from lutum_py import CallStatus, Skip, ToolCapabilities, ToolContext, ToolFn, tool_fn
from lutum_py.errors import InvalidArgumentsError, ToolDefinitionError, ToolOutputError

from .declared import call_of, refusal, schema_of, spec_of

if TYPE_CHECKING:
    from nowhere import Database  # type: ignore[import-not-found]


Secret = Annotated[str, Skip()]


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
    assert web_search.__wrapped__.__name__ == "web_search"  # type: ignore[attr-defined]
    assert web_search.__module__ == __name__
    assert web_search.__qualname__ == "web_search"  # type: ignore[attr-defined]
    assert web_search.__doc__ == web_search.__wrapped__.__doc__  # type: ignore[attr-defined]
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


@pytest.mark.parametrize(
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
    assert Service.double(4) == Service().double(4) == 8
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
    with pytest.raises(TypeError, match=r"is async: use `await call\.call"):
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
    with pytest.raises(TypeError, match="is async"):
        call_of(tool, {"a": 7}).call_sync()


# Parameters.


def test_mutable_defaults_are_copied_for_each_call() -> None:
    """What one call does to a default, the next one does not see."""

    @dataclass
    class Box:
        items: list[int] = dataclass_field(default_factory=list)

    class Model(BaseModel):
        items: list[int] = []

    @tool_fn
    def fill(
        _plain: list[int] = [],  # noqa: B006
        box: Box = Box(),  # noqa: B008
        model: Model = Model(),  # noqa: B008
    ) -> list[int]:
        for items in (_plain, box.items, model.items):
            items.append(1)
        return _plain + box.items + model.items

    for _ in range(3):
        assert call_of(fill).call_sync().result == "[1,1,1]"


def test_fields_and_validators_of_annotations_hold() -> None:
    """`Annotated[..., Field(...)]` and validators check arguments, and describe them."""

    @tool_fn
    def pick(
        count: Annotated[int, Field(ge=1, description="How many.")],
        name: Annotated[str, AfterValidator(str.strip)] = "x",
        kind: Literal["a", "b"] = Field("a", description="Which kind."),
        many: list[int] = Field(default_factory=list),  # noqa: B008
        _hidden: int = Field(3, gt=2),
    ) -> str:
        """Pick.

        Args:
            count: Loses against the field's own.
            name: A name.
            kind: Loses too.
            many: Wins.
        """
        return f"{count}{name}{kind}{many}{_hidden}"

    properties = schema_of(pick)["properties"]
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert properties["name"]["description"] == "A name."
    assert properties["kind"]["description"] == "Which kind."
    assert properties["many"]["description"] == "Wins."
    assert call_of(pick, {"count": 2, "name": " y "}).call_sync().result == '"2ya[]3"'
    assert call_of(pick, {"count": 2, "_hidden": 9}).call_sync().result == '"2xa[]9"'
    assert refusal(pick, {"count": 0, "_hidden": 1}) == (
        "- `count`: Input should be greater than or equal to 1 (got 0)\n"
        "- `_hidden`: Input should be greater than 2 (got 1)"
    )


def test_an_alias_of_the_author_is_the_name_on_the_wire() -> None:
    """An alias in `Field` names the argument, also of a parameter that would need one of ours."""

    @tool_fn
    def sort(
        by: Annotated[str, Field(alias="sortBy")], _dir: Annotated[str, Field(alias="dir")] = "up"
    ) -> str:
        return by + _dir

    assert list(schema_of(sort)["properties"]) == ["sortBy", "dir"]
    assert call_of(sort, {"sortBy": "n", "dir": "down"}).call_sync().result == '"ndown"'


HOSTILE = [
    "model_config",
    "_x",
    "x_",
    "__x",
    "_",
    "json",
    "copy",
    "self_",
    "input",
    "model_fields_set",
    "schema",
    "validate",
    "construct",
    "dict",
    "model_dump",
    "model_",
    "__class__",
    "__dict__",
    "mro",
    "args",
    "kwargs",
    "field",
    "call",
    "context",
    "é",
    "class_",
]


def declare(source: str, **names: Any) -> Any:
    """Execute a definition of `f` as in a module of its own, where annotations are values."""
    scope = {**globals(), **names}
    exec(compile(source, "<declared>", "exec", dont_inherit=True), scope)
    return scope["f"]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_parameter_name_works(name: str) -> None:
    """A parameter may be called anything: on the wire, in the constructor and in the call."""
    f = declare(f"@tool_fn\ndef f({name}: int): return {name}")
    call = call_of(f, {name: 3})
    assert call.input == f.Input(**{name: 3})
    assert call.call_sync().result == "3"
    assert schema_of(f)["required"] == [name]
    (field,) = f.Input.model_fields
    assert field == name or field == (name.lstrip("_") or "field") + "_"


def test_hostile_names_do_not_meet() -> None:
    """Names that would become one field become several."""
    parameters = ", ".join(f"{name}: int" for name in HOSTILE)
    f = declare(f"@tool_fn\ndef f({parameters}): return list(locals().values())")
    values = {name: index for index, name in enumerate(HOSTILE)}
    call = call_of(f, values)
    assert call.input == f.Input(**values)
    assert call.call_sync().output == list(range(len(HOSTILE)))
    fields = dict(zip(HOSTILE, f.Input.model_fields, strict=True))
    assert fields["_x"] == "x__"
    assert fields["x_"] == "x_"
    assert fields["__x"] == "x___"
    assert fields["_"] == "field_"
    assert fields["json"] == "json_"
    assert fields["input"] == "input"
    # The wire knows the alias only.
    assert "`json_`: there is no such field" in refusal(f, {**values, "json_": 1})


def test_a_keyword_called_self_reaches_the_function() -> None:
    """A tool takes no keyword away from the function that it wraps."""
    f = declare("@tool_fn\ndef f(a: int, *, self: int): return (a, self)")
    assert f(1, self=2) == (1, 2)
    assert call_of(f, {"a": 1, "self": 2}).call_sync().result == "[1,2]"


# Hidden parameters.


def test_hidden_parameters_are_not_shown() -> None:
    """`skip=`, `Skip()` and `ToolContext` hide a parameter from the model."""

    @tool_fn(skip=["db"])
    def look(
        db: Database,
        key: str,
        ctx: ToolContext,
        cache: Annotated[dict[str, str], Skip()],
        retries: Annotated[int, Skip] = 2,
    ) -> list[Any]:
        return [db, key, ctx.call_id, cache, retries]

    assert list(schema_of(look)["properties"]) == ["key"]
    result = call_of(look, {"key": "k"}).call_sync(db="D", cache={})
    assert result.result == '["D","k","c1",{},2]'
    context = ToolContext("other", "look")
    result = call_of(look, {"key": "k"}).call_sync(db="D", cache={}, ctx=context, retries=0)
    assert result.result == '["D","k","other",{},0]'
    assert repr(Skip()) == "Skip()"


def test_a_context_that_may_be_missing_is_given() -> None:
    """A parameter that is a context or None gets a context, also where None is passed."""

    @tool_fn
    def who(ctx: ToolContext | None = None) -> str:
        return "nobody" if ctx is None else ctx.tool_name

    assert schema_of(who) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert call_of(who).call_sync().result == '"who"'
    assert call_of(who).call_sync(ctx=None).result == '"who"'
    assert who() == "nobody"


def test_hidden_types_may_exist_for_checkers_only() -> None:
    """A hidden parameter's type may be imported under `TYPE_CHECKING`, however it is hidden."""

    @tool_fn(skip=["one"])
    def look(
        key: str,
        one: Database,
        two: Annotated[Database, Skip()],
        three: Annotated[Database, "a note", Skip],
    ) -> list[Any]:
        return [key, one, two, three]

    assert call_of(look, {"key": "k"}).call_sync(one=1, two=2, three=3).result == '["k",1,2,3]'

    @tool_fn
    def quiet(key: str, secret: Secret) -> str:
        return key + secret

    assert call_of(quiet, {"key": "k"}).call_sync(secret="s").result == '"ks"'
    # Where the module does not know it, `ToolContext` is ours.
    scope: dict[str, Any] = {"tool_fn": tool_fn, "__name__": __name__}
    exec("@tool_fn\ndef f(k: int, c: 'ToolContext'): return c.call_id", scope)
    assert call_of(scope["f"], {"k": 1}).call_sync().result == '"c1"'


@pytest.mark.parametrize(
    "annotation",
    ["'list[Skip]'", "'Annotated[int, Skippy]'", "'Skip but no type'", "'Annotated[Skip, 1]'"],
)
def test_what_only_looks_like_a_skip_is_none(annotation: str) -> None:
    """Only `Skip` among the marks of `Annotated` hides a parameter."""
    with pytest.raises(ToolDefinitionError, match=r"Tool function `f`"):
        _ = declare(f"@tool_fn\ndef f(a: {annotation}): 0", Skip=Skip).definition


# Annotations that are strings.


@tool_fn
def later(node: Node, others: list[Node] | None = None) -> Node:
    return node


@tool_fn
def never(node: Nowhere) -> int:  # type: ignore[name-defined] # noqa: F821
    return 0


EARLY = [later._spec is None, never._spec is None]


class Node(BaseModel):
    name: str
    next: Node | None = None


def test_a_class_may_come_later_in_the_module() -> None:
    """A tool whose annotations name what comes later is built on first use."""
    assert EARLY == [True, True]
    assert later.name == "later"
    arguments = {"node": {"name": "a", "next": {"name": "b"}}}
    result = call_of(later, arguments).call_sync()
    assert result.output == {"name": "a", "next": {"name": "b", "next": None}}
    assert spec_of(later) is spec_of(later)


def test_a_name_that_never_comes_is_told() -> None:
    """An annotation that has no value by the time the tool is used is a definition error."""
    expected = (
        "Tool function `never`: an annotation names `Nowhere`, which is not defined. Define it (or "
        "import it, not only under `TYPE_CHECKING`) before the tool is used."
    )
    with pytest.raises(ToolDefinitionError) as caught:
        _ = never.definition
    assert str(caught.value) == expected


def test_local_classes_are_found() -> None:
    """Annotations may name the locals of the function, and of the class body, around the tool."""

    class Local(BaseModel):
        value: int

    class Methods:
        class Inner(BaseModel):
            value: int

        @tool_fn
        def both(self, one: Local, two: Inner) -> int:
            return one.value + two.value

        @tool_fn(name="late")
        def also(self, one: Late, two: int = 1) -> int:
            return one.value + two

    class Late(BaseModel):
        value: int

    arguments = {"one": {"value": 1}, "two": {"value": 2}}
    assert call_of(Methods.both, arguments).call_sync(self=None).result == "3"
    assert call_of(Methods.also, {"one": {"value": 4}}).call_sync(self=None).result == "5"


def test_the_locals_of_a_helper_are_nobody_elses() -> None:
    """Where a helper applies the decorator, its own locals mean nothing to the annotations."""

    def helper(function: Callable[..., Any]) -> Any:
        Hit = int  # noqa: F841
        return tool_fn(function)

    def show(hit: Hit, times: int = 1) -> str:
        return hit.title * times

    assert call_of(helper(show), {"hit": {"title": "t"}}).call_sync().result == '"t"'


def test_a_tool_that_is_built_keeps_no_frame() -> None:
    """The locals around a declaration can go when the declaration is done."""

    class Big:
        """Something that must not stay."""

    def around() -> tuple[Any, weakref.ref[Big]]:
        big = Big()

        @tool_fn
        def small(a: int) -> int:
            return a

        return small, weakref.ref(big)

    tool, reference = around()
    gc.collect()
    assert reference() is None
    assert call_of(tool, {"a": 1}).input.a == 1


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
    assert {ask.Input, ask_annotated.Input} == {Question}
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


# Refused at import.


class Alien:
    """A class that pydantic does not know."""


class NoObject(RootModel[list[int]]):
    """A model that is no object."""


REFUSED = {
    "def f(*args: int): 0": "takes `*args`, which has no schema. Name each parameter, or take one",
    "def f(**more: int): 0": "takes `**more`, which has no schema. Name each",
    "def f(a): 0": "parameter `a` has no annotation. Write `a: str` (or what it is), or hide it",
    "def f(a: int):\n    yield a": "is a generator: a call has exactly one result. Return a list",
    "async def f(a: int):\n    yield a": "is a generator",
    "def f(a: int, b: Alien): 0": "parameter `b` of type `Alien` has no schema (Unable to generate",
    "def f(a: list[Alien]): 0": "parameter `a` of type `list[",
    "def f(a: int, b: Callable[[int], int]): 0": (
        "parameter `b` of type `Callable[[int], int]` has no JSON schema (Cannot generate a "
        "JsonSchema for core_schema.CallableSchema). Use a type that JSON can carry, or hide the "
        "parameter from the model with `skip=('b',)` or `Annotated[..., Skip()]`."
    ),
    "def f(_a: type): 0": "parameter `_a` of type `type` has no JSON schema",
    "def f(a: typing.ClassVar[int]): 0": "parameter `a` of type `ClassVar[int]` is a constant for",
    "def f(a: Literal[()]): 0": "parameter `a` of type `Literal[()]` has no schema",
    "def f(a: 3): 0": "parameter `a` of type `3` has no schema",
    "def f(a: 'b c', d: 'int'): 0": "the annotation of `a` cannot be evaluated (Forward reference",
    "def f(a: 'int.nope'): 0": "an annotation cannot be evaluated (type object 'int' has no",
    "def f(a: int) -> Alien: 0": "its output type `Alien` has no schema (Unable to generate",
    "def f(a: ToolContext, b: 'ToolContext | None'): 0": "takes two contexts, `a` and `b`.",
    "def f(a: NoObject): 0": (
        "the arguments of a tool are always a JSON object, but this input schema is of type "
        "'array'. Put the value into a field of a model, as in `items: list[int]`."
    ),
    'def f(a: int):\n    """Do.\n\n    Args:\n        b: No.\n    """': (
        "the docstring documents `b`, but the function has no such parameter; it has `a`. Rename or"
    ),
    'def f():\n    """Do.\n\n    Args:\n        b: No.\n    """': "it has none.",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_be_a_tool_is_refused(source: str) -> None:
    """A definition error is raised at import, and names function, parameter and remedy."""
    with pytest.raises(ToolDefinitionError) as caught:
        declare(f"@tool_fn\n{source}")
    said = str(caught.value)
    assert said.startswith("Tool function `f`")
    assert REFUSED[source] in said
    assert len(said) < 600


def test_a_dataclass_of_aliens_is_refused() -> None:
    """A single object with a field that has no schema is refused as well."""

    @dataclass
    class Ship:
        crew: Alien

    def board(ship: Ship) -> int:
        return 0

    @dataclass
    class Form:
        back: Callable[[], int]

    def call_me(form: Form) -> int:
        return 0

    with pytest.raises(ToolDefinitionError, match="parameter `ship` of type `Ship` has no schema"):
        tool_fn(board)
    with pytest.raises(ToolDefinitionError, match=r"its arguments have no JSON schema \(Cannot"):
        tool_fn(call_me)


def test_pairs_of_sound_parameters_that_fail_together() -> None:
    """A model that fails as a whole is told as such."""
    from lutum_py._input_model import build_input_model
    from lutum_py._signature import REQUIRED, Parameter

    sound = (Parameter("a", int, REQUIRED, None),)
    with pytest.raises(ToolDefinitionError, match=r"Tool function `f` cannot become a tool: "):
        build_input_model(
            "X",
            sound,
            {"a": "model_config"},
            module=__name__,
            qualname="f.Input",
            strict=False,
        )


def plain(a: int) -> int:
    return a


DECORATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "class": (lambda: tool_fn(Alien), "decorates functions and methods, not <class "),
    "number": (lambda: tool_fn(3), "decorates functions and methods, not 3. For a model of"),  # type: ignore[call-overload]
    "built-in": (lambda: tool_fn(len), "not <built-in function len>"),
    "partial": (lambda: tool_fn(functools.partial(plain, 1)), "write a function."),
    "static": (
        lambda: tool_fn(staticmethod(plain)),
        "`@tool_fn` stands above @staticmethod on `plain`. Write @staticmethod above @tool_fn.",
    ),
    "class method": (
        lambda: tool_fn(classmethod(plain)),  # type: ignore[call-overload]
        (
            "`plain` is a class method, which no tool can be: nobody passes the class where a call is "
            "run. Make it a plain method, a static method or a function."
        ),
    ),
    "twice": (
        lambda: tool_fn(tool_fn(plain)),
        "<tool_fn plain: 'plain'> already is a tool. Remove one `@tool_fn`.",
    ),
    "twice, bound": (lambda: tool_fn(Service().greet), "already is a tool"),
    "skip text": (
        lambda: tool_fn(skip="abc"),
        "skip= takes names in a tuple: write skip=('abc',).",
    ),
    "skip unknown": (
        lambda: tool_fn(skip=["b"])(plain),
        "has no parameter `b` to skip; it has `a`. Correct `skip=`.",
    ),
    "no name": (lambda: tool_fn(name="")(plain), "needs a name, got ''. Pass `name=`"),
    "blank name": (lambda: tool_fn(name=" ")(plain), "needs a name, got ' '"),
    "odd name": (lambda: tool_fn(name=3)(plain), "needs a name, got 3."),  # type: ignore[call-overload]
    "odd text": (lambda: tool_fn(description=3)(plain), "description=3 is no text."),  # type: ignore[call-overload]
    "odd category": (lambda: tool_fn(category=3)(plain), "category=3 is no text."),  # type: ignore[call-overload]
    "odd capabilities": (
        lambda: tool_fn(capabilities={})(plain),  # type: ignore[call-overload]
        "capabilities={} are no `ToolCapabilities`. Write `capabilities=ToolCapabilities(...)`.",
    ),
    "no timeout": (
        lambda: tool_fn(timeout=0)(plain),
        "timeout=0 is no positive number of seconds. Leave it out for none.",
    ),
    "true timeout": (lambda: tool_fn(timeout=True)(plain), "timeout=True is no positive"),
    "endless timeout": (lambda: tool_fn(timeout=float("inf"))(plain), "timeout=inf is no"),
    "nan timeout": (lambda: tool_fn(timeout=float("nan"))(plain), "timeout=nan is no"),
    "text timeout": (lambda: tool_fn(timeout="1")(plain), "timeout='1' is no"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("case", DECORATIONS)
def test_a_wrong_decoration_is_refused(case: str) -> None:
    """A decorator that is misused says how it is used."""
    decorate, expected = DECORATIONS[case]
    with pytest.raises(ToolDefinitionError) as caught:
        decorate()
    assert expected in str(caught.value)


# Running.


@tool_fn
def where() -> int:
    return threading.get_ident()


@tool_fn
async def where_async() -> int:
    return threading.get_ident()


def test_call_runs_sync_functions_in_a_thread() -> None:
    """`call` runs a sync function in a worker thread, `call_sync` and async functions run here."""
    here = threading.get_ident()
    assert asyncio.run(call_of(where).call()).output != here
    assert call_of(where).call_sync().output == here
    assert asyncio.run(call_of(where_async).call()).output == here


def test_invoke_gives_the_raw_output() -> None:
    """`invoke` and `invoke_sync` leave the answer to the program."""
    call = call_of(web_search, {"query": "q", "max_results": 1})
    assert asyncio.run(call.invoke()) == [Hit(title="q")]
    assert call.status is CallStatus.RUNNING
    call = call_of(Service.double, {"number": 2})
    assert asyncio.run(call.invoke()) == call_of(Service.double, {"number": 2}).invoke_sync() == 4


def test_call_sync_of_an_async_tool_names_the_remedy() -> None:
    """An async function cannot be run by `call_sync`, and nothing happened."""
    call = call_of(web_search, {"query": "q"})
    with pytest.raises(TypeError) as caught:
        call.call_sync()
    assert str(caught.value) == (
        "Tool `web_search` (call 'c1') is async: use `await call.call()` instead of "
        "`call.call_sync()`, or `asyncio.run(call.call())` outside of a loop."
    )
    assert call.status is CallStatus.NEW


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        (
            {},
            (
                "Tool `greet` (call 'c1') needs `self`, which the model does not see. Pass it where "
                "you run the call: `await call.call(self=...)`."
            ),
        ),
        (
            {"self": None, "name": "x"},
            (
                "Tool `greet` (call 'c1'): `name` is filled in by the model. What can be passed here: "
                "`self`."
            ),
        ),
        ({"self": None, "nope": 1}, "`nope` is no parameter of the function. What can be passed"),
    ],
)
def test_wrong_hidden_arguments_are_refused(hidden: dict[str, Any], expected: str) -> None:
    """A missing or unknown hidden argument is a `TypeError`, before anything is run."""
    call = call_of(Service.greet, {"name": "Ann", "options": {}})
    with pytest.raises(TypeError) as caught:
        asyncio.run(call.call(**hidden))
    assert expected in str(caught.value)
    assert call.status is CallStatus.NEW


def test_the_whole_input_is_filled_in_by_the_model() -> None:
    """The single object that is the input cannot be passed from outside."""
    call = call_of(ask, {"text": "t"})
    with pytest.raises(TypeError, match=r"`question` is filled in by the model.*here: none"):
        call.call_sync(question=1)
    with pytest.raises(TypeError, match=r"call.call_sync\(db=...\)"):
        call_of(tool_fn(skip=["db"])(lambda db: db)).call_sync()


class Broken(Exception):
    """What the functions below raise."""


def test_exceptions_come_out_unchanged() -> None:
    """What the function raises is what the caller gets, and the call stays `running`."""
    error = Broken("no")

    @tool_fn
    async def fail_async() -> int:
        raise error

    @tool_fn
    def fail() -> int:
        raise error

    for run in (
        lambda: asyncio.run(call_of(fail_async).call()),
        lambda: asyncio.run(call_of(fail).call()),
        lambda: call_of(fail).call_sync(),
    ):
        with pytest.raises(Broken) as caught:
            run()
        assert caught.value is error
        assert error.__cause__ is None
    call = call_of(fail)
    with pytest.raises(Broken):
        call.call_sync()
    assert call.status is CallStatus.RUNNING


def test_an_output_that_does_not_fit_is_an_error() -> None:
    """What the function returns is checked against what it declares."""

    @tool_fn
    def lie() -> int:
        return "x"  # type: ignore[return-value]

    with pytest.raises(ToolOutputError, match="The output of tool `lie` does not fit its output"):
        call_of(lie).call_sync()


def test_none_is_an_output_type() -> None:
    """A function that declares None gives null, and nothing else."""
    f = declare("@tool_fn\ndef f(a: int) -> None:\n    return None if a else a")
    g = tool_fn(lambda: None)
    assert call_of(f, {"a": 1}).call_sync().result == "null"
    with pytest.raises(ToolOutputError, match="output type `NoneType`"):
        call_of(f, {"a": 0}).call_sync()
    assert g.definition.output_schema is None
    assert g.Input.__name__ == "LambdaInput"


def test_unwritten_annotations_of_none() -> None:
    """`-> None` means the same whether annotations are strings or values."""

    def quiet() -> None:
        return None

    quiet.__annotations__["return"] = None
    assert spec_of(tool_fn(quiet)).output.type is type(None)


# Trap: an incomplete model.


class Tree(BaseModel):
    root: Leaf


@tool_fn
def climb(tree: Tree, times: int = 1) -> Tree:
    return tree


@dataclass
class Garden:
    leaf: Leaf


@tool_fn
def rake(garden: Garden) -> str:
    return garden.leaf.color


@tool_fn
def rake_more(garden: Garden, times: int = 1) -> Garden:
    return garden


class Bush(TypedDict):
    leaf: Leaf


@tool_fn
def trim(bush: Bush) -> list[Bush]:
    return [bush]


class Leaf(BaseModel):
    color: str


def test_a_model_may_be_completed_later() -> None:
    """A parameter's model may itself name what comes later in the module."""
    leaf = {"leaf": {"color": "red"}}
    assert call_of(rake, leaf).call_sync().result == '"red"'
    assert call_of(rake_more, {"garden": leaf}).call_sync().output == leaf
    assert call_of(trim, leaf).call_sync().output == [leaf]
    assert isinstance(climb, ToolFn)
    result = call_of(climb, {"tree": {"root": {"color": "red"}}}).call_sync()
    assert result.result == '{"root":{"color":"red"}}'


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
