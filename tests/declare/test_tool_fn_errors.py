"""The laws of what cannot be a tool: refused at import, with name and remedy."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import AliasChoices, Field, RootModel

from lutum_py import ToolContext, Toolset, tool, tool_fn, toolset
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.declared import declare

from .test_tool_fn import Service


class Alien:
    """A class that pydantic does not know."""


class NoObject(RootModel[list[int]]):
    """A model that is no object."""


SCOPE = {
    "AliasChoices": AliasChoices,
    "Alien": Alien,
    "Annotated": Annotated,
    "Callable": Callable,
    "Field": Field,
    "Literal": Literal,
    "NoObject": NoObject,
    "ToolContext": ToolContext,
    "tool_fn": tool_fn,
    "typing": typing,
}

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
    "def f(a: Annotated[int, Field(alias='b')], b: int): 0": (
        "parameters `a` and `b` are both called 'b' on the wire. Give one of them another name or"
    ),
    "def f(_a: int, b: Annotated[int, Field(validation_alias=AliasChoices('c', '_a'))]): 0": (
        "parameters `_a` and `b` are both called '_a' on the wire."
    ),
    "def f(days: int = 'x'): 0": (
        "the default of parameter `days` does not fit its type `int`: Input should be a valid "
        "integer, unable to parse string as an integer (got 'x'). Correct one of them, or write "
        "`days: int | None = None` if it may be left out."
    ),
    "def f(_a: int = 'x'): 0": "the default of parameter `_a` does not fit its type `int`",
    "def f(a: int = Field('x')): 0": "the default of parameter `a` does not fit its type `int`",
    "def f(a: Annotated[int, Field(ge=1)] = 0): 0": "greater than or equal to 1 (got 0).",
    "def f(a: list[int] = ['x']): 0": "the default of parameter `a` does not fit its type",
    "def f(a: Literal['x'] = ''): 0": "the default of parameter `a` does not fit its type",
    "def f(a: int) -> [int]: 0": "its output type `[<class 'int'>]` has no schema (Unable to",
    'def f():\n    """Do.\n\n    Args:\n        b: No.\n    """': "it has none.",
}


@over("source", REFUSED)
def test_what_cannot_be_a_tool_is_refused(source: str) -> None:
    """A definition error is raised at import, and names function, parameter and remedy."""
    with pytest.raises(ToolDefinitionError) as caught:
        declare(SCOPE, f"@tool_fn\n{source}")
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

    with pytest.raises(ToolDefinitionError):
        tool_fn(board)
    with pytest.raises(ToolDefinitionError):
        tool_fn(call_me)


def plain(a: int) -> int:
    return a


DECORATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "class": (lambda: tool_fn(Alien), "decorates functions and methods, not <class "),
    "number": (lambda: tool_fn(3), "decorates functions and methods, not 3. For a model of"),  # type: ignore[call-overload]
    "built-in": (lambda: tool_fn(len), "not <built-in function len>"),
    "partial": (lambda: tool_fn(functools.partial(plain, 1)), "write a function."),
    "static": (
        lambda: tool_fn(staticmethod(plain)),
        "`@tool_fn` is above @staticmethod on `plain`. Write @staticmethod above @tool_fn.",
    ),
    "class method": (
        lambda: tool_fn(cast("Any", classmethod)(plain)),
        (
            "`plain` is a class method, which no tool can be: nobody passes the class where a call "
            "is run. Make it a plain method, a static method or a function."
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
    "skip number": (
        lambda: tool_fn(skip=3),  # type: ignore[call-overload]
        "skip= takes names in a tuple, as in skip=('db',), not 3.",
    ),
    "lambda": (
        lambda: tool_fn(lambda: 0),
        (
            "`@tool_fn` got a function without a name, '<lambda>'. Pass one, as in "
            "`tool_fn(name='add')(function)`, or write it with `def`."
        ),
    ),
    "text of half a pair": (
        lambda: tool_fn(description="a\udcff")(plain),
        "the description holds half of a surrogate pair at position 1, which UTF-8 cannot carry",
    ),
    "no name": (lambda: tool_fn(name="")(plain), "needs a name, got ''. Pass `name=`"),
    "blank name": (lambda: tool_fn(name=" ")(plain), "needs a name, got ' '"),
    "odd name": (lambda: tool_fn(name=3)(plain), "needs a name, got 3."),  # type: ignore[call-overload]
    "odd text": (lambda: tool_fn(description=3)(plain), "description=3 is not text."),  # type: ignore[call-overload]
    "odd category": (lambda: tool_fn(category=3)(plain), "category=3 is not text."),  # type: ignore[call-overload]
    "odd capabilities": (
        lambda: tool_fn(capabilities={})(plain),  # type: ignore[call-overload]
        "capabilities={} are not `ToolCapabilities`. Write `capabilities=ToolCapabilities(...)`.",
    ),
    "text flag": (
        lambda: tool_fn(idempotent="no")(plain),  # type: ignore[call-overload]
        "Tool function `plain`: idempotent='no' is neither True nor False.",
    ),
    "number flag": (lambda: tool_fn(strict=0)(plain), "strict=0 is neither True nor False."),  # type: ignore[call-overload]
    "flag of a member": (
        lambda: tool(Service.double, off="no"),  # type: ignore[call-overload]
        "`off=`: 'no' is neither True nor False.",
    ),
    "flag of a group": (
        lambda: toolset(Toolset, deferred=1),  # type: ignore[arg-type]
        "`deferred=`: 1 is neither True nor False.",
    ),
    "no timeout": (
        lambda: tool_fn(timeout=0)(plain),
        "timeout=0 is not a positive number of seconds. Leave it out for none.",
    ),
    "true timeout": (lambda: tool_fn(timeout=True)(plain), "timeout=True is not a positive"),
    "endless timeout": (lambda: tool_fn(timeout=float("inf"))(plain), "timeout=inf is no"),
    "nan timeout": (lambda: tool_fn(timeout=float("nan"))(plain), "timeout=nan is no"),
    "text timeout": (lambda: tool_fn(timeout="1")(plain), "timeout='1' is no"),  # type: ignore[call-overload]
}


@over("case", DECORATIONS)
def test_a_wrong_decoration_is_refused(case: str) -> None:
    """A decorator that is misused says how it is used."""
    decorate, expected = DECORATIONS[case]
    with pytest.raises(ToolDefinitionError) as caught:
        decorate()
    assert expected in str(caught.value)
