"""The signature is the one source of parameters: of their names, types and defaults."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from lutum_py import Skip, ToolContext, tool_fn
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.declared import call_of, schema_of

EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def parameter(name: str, annotation: Any, **options: Any) -> inspect.Parameter:
    return inspect.Parameter(name, EITHER, annotation=annotation, **options)


def signed(function: Any, *parameters: inspect.Parameter, returns: Any = str) -> Any:
    function.__signature__ = inspect.Signature([*parameters], return_annotation=returns)
    return function


def with_limit(function: Callable[..., Any]) -> Any:
    """Add a parameter, as decorators do."""

    @functools.wraps(function)
    def limited(*args: Any, limit: int = 3, **kwargs: Any) -> Any:
        return f"{function(*args, **kwargs)} {limit}"

    known = inspect.signature(function)
    added = inspect.Parameter("limit", inspect.Parameter.KEYWORD_ONLY, annotation=int, default=3)
    made: Any = limited
    made.__signature__ = known.replace(parameters=[*known.parameters.values(), added])
    return made


def bare(q, n):  # type: ignore[no-untyped-def]
    return f"{q} {n}"


def every(**given: Any) -> str:
    return " ".join(map(str, given.values()))


def written(q: str, n: str) -> str:
    return f"{q} {n}"


def quoted(q: str, n: int) -> str:
    return f"{q} {n}"


MADE: list[tuple[Any, str]] = [
    (signed(bare, parameter("q", str), parameter("n", int)), "a 3"),
    (signed(every, parameter("q", "str"), parameter("n", "int | None")), "a 3"),
    (signed(quoted, parameter("q", str), parameter("n", int)), "a 3"),
]


@over("function, text", MADE)
def test_a_generated_signature_is_what_the_tool_has(function: Any, text: str) -> None:
    """Names and types come of the signature, however it was made and whatever it wraps."""
    made = tool_fn(function)
    assert list(schema_of(made)["properties"]) == ["q", "n"]
    assert call_of(made, {"q": "a", "n": "3"}).input.n == 3
    assert call_of(made, {"q": "a", "n": 3}).call_sync().output == text


def test_none_is_none_however_it_is_written() -> None:
    """An annotation in quotes and the type that it means are the same."""

    def take(q: str) -> None: ...

    made = tool_fn(signed(take, parameter("q", str), returns=None))
    assert call_of(made, {"q": "a"}).call_sync().output is None


def test_a_decorator_may_add_a_parameter() -> None:
    """A parameter that only the signature has is one of the tool."""

    def find(q: str) -> str:
        return q

    made = tool_fn(with_limit(find))
    assert schema_of(made)["properties"]["limit"] == {"default": 3, "type": "integer"}
    assert call_of(made, {"q": "a", "limit": 5}).call_sync().output == "a 5"


def test_marks_and_contexts_are_those_of_the_signature() -> None:
    """What a signature hides is hidden, and its context is passed."""

    def take(q, db, ctx):  # type: ignore[no-untyped-def]
        return f"{q} {db} {type(ctx).__name__}"

    parameters = (parameter("q", str), parameter("db", Annotated[object, Skip()]))
    made = tool_fn(signed(take, *parameters, parameter("ctx", ToolContext)))
    assert list(schema_of(made)["properties"]) == ["q"]
    assert call_of(made, {"q": "a"}).call_sync(db=1).output == "a 1 ToolContext"


def stale(q: int) -> str:
    return str(q)


def refined(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(q: Any) -> Any:
        return function(q)

    wrapper.__annotations__ = {"q": bytes}
    return wrapper


UNEQUAL: list[tuple[Any, str]] = [
    (signed(written, parameter("q", str), parameter("n", int)), r"`n`.*`int`.*`str`"),
    (refined(stale), r"`q`.*`int`.*`bytes`"),
]


@over("function, said", UNEQUAL)
def test_what_contradicts_itself_is_no_tool(function: Any, said: str) -> None:
    """A signature and annotations that differ are an error, whichever of them is meant."""
    with pytest.raises(ToolDefinitionError, match=said):
        tool_fn(function).definition  # noqa: B018


def test_a_return_type_may_not_contradict_itself_either() -> None:
    """The output is that of the signature as well."""

    def give() -> int:
        return 3

    with pytest.raises(ToolDefinitionError, match=r"`return`.*`str`.*`int`"):
        tool_fn(signed(give))


def test_annotations_for_checkers_contradict_nothing() -> None:
    """What has no value when the program runs is not held against the signature."""

    def take(q: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
        return str(q)

    made = tool_fn(signed(take, parameter("q", str)))
    assert schema_of(made)["properties"] == {"q": {"type": "string"}}
