"""The laws of calls of function tools: what another function of the same parameters is given."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from lutum_py import (
    CallStatus,
    FnSelector,
    RunNormally,
    Skip,
    ToolContext,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import LifecycleError, MisuseError, ToolInputError
from lutum_py.typing import FnCall
from tests.declared import call_of


class Question(BaseModel):
    text: str


class Plain(ToolInput[str]):
    text: str


@tool_fn
def search(query: str, limit: int = 5) -> str:
    """Search."""
    return query * limit


@tool_fn
def odd(
    first: int,
    /,
    _count: int,
    context: ToolContext,
    named: Annotated[str, Field(alias="Named")] = "x",
    db: Annotated[str, Skip()] = "main",
) -> str:
    """Take parameters of every kind."""
    return f"{first}{_count}{context.call_id}{named}{db}"


@tool_fn
def stored(db: Annotated[str, Skip()], key: str) -> str:
    return db + key


@tool_fn
async def ask(question: Question) -> str:
    return question.text


class Inner(Toolset):
    search = tool(search)
    plain = tool(Plain)


class Outer(Toolset):
    odd = tool(odd)
    ask = tool(ask)
    inner = toolset(Inner, prefix="in_")


def test_another_function_gets_what_the_tools_own_would() -> None:
    """Renamed fields, positions, a context and passed values arrive as in the tool itself."""

    def other(first: int, /, _count: int, context: Any, named: str, db: str = "other") -> str:
        return f"{first}|{_count}|{context.call_id}|{named}|{db}"

    arguments = {"first": 1, "_count": 2, "Named": "n"}
    assert call_of(odd, arguments).apply(other) == "1|2|c1|n|other"
    assert call_of(odd, arguments).apply(other, db="mine") == "1|2|c1|n|mine"
    assert call_of(ask, {"text": "why"}).apply(lambda question: question.text) == "why"


def test_applying_begins_the_call_and_leaves_the_answer_open() -> None:
    """As after `invoke`, the call runs until it is answered, and gives what the function gives."""
    call = call_of(search, {"query": "q"})
    assert call.apply(lambda query, limit: [query, limit]) == ["q", 5]
    assert call.status is CallStatus.RUNNING
    assert call.complete("done").is_success
    with pytest.raises(LifecycleError):
        call.apply(lambda query, limit: None)
    awaited = call_of(ask, {"text": "t"}).apply(ask)
    assert asyncio.run(awaited) == "t"


def test_what_is_no_function_is_not_applied() -> None:
    """It is refused before the call starts, which can still be run."""
    call = call_of(search, {"query": "q"})
    with pytest.raises(MisuseError):
        call.apply(3)
    assert call.status is CallStatus.NEW


def test_applying_needs_the_hidden_parameters_that_have_no_default() -> None:
    """What the model does not fill in is passed, or nothing has happened."""
    call = call_of(stored, {"key": "k"})
    with pytest.raises(MisuseError):
        call.apply(lambda db, key: db)
    assert call.status is CallStatus.NEW
    assert call.apply(lambda db, key: db + key, db="d") == "dk"


def test_selectors_and_calls_of_functions_are_known_as_such() -> None:
    """Function tools have selectors and calls of a kind of their own, input models have not."""
    assert isinstance(Outer.odd, FnSelector)
    assert isinstance(Outer.inner.search, FnSelector)
    assert isinstance(Outer.inner.search, Outer.Selector)
    assert not isinstance(Outer.inner.plain, FnSelector)
    assert isinstance(call_of(search, {"query": "q"}), FnCall)
    assert not isinstance(call_of(Plain, {"text": "q"}), FnCall)
    for selector in (Outer.odd, Outer.inner.search, search.Call.spec.free_selector):
        assert pickle.loads(pickle.dumps(selector)) is selector
        assert copy.deepcopy(selector) is selector


def test_with_args_takes_what_the_function_takes() -> None:
    """Arguments by position or name become a validated input, with the function's defaults."""
    decision = Outer.inner.search.with_args("tea", limit=3)
    assert decision == RunNormally(search.Input(query="tea", limit=3))
    assert Outer.inner.search.with_args(query="tea").input == search.Input(query="tea")
    renamed: Any = Outer.odd
    assert renamed.with_args(1, 2, named="n").input == odd.Input(first=1, _count=2, Named="n")
    question = Question(text="why")
    assert Outer.ask.with_args(question).input == question
    assert Outer.ask.with_args(question=question).input == question


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'query'"),
        (("x",), {"lmit": 3}, "unexpected keyword argument 'lmit'"),
        (("x", 1, 2), {}, "too many positional arguments"),
    ],
)
def test_with_args_refuses_what_the_function_does_not_take(
    args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> None:
    """A wrong argument is the program's mistake, and the error says what there is."""
    selector: Any = Outer.inner.search
    with pytest.raises(MisuseError, match=said) as caught:
        selector.with_args(*args, **kwargs)
    assert str(caught.value).startswith("These are not arguments of tool `in_search`: ")
    assert str(caught.value).endswith("What the model fills in: `query`, `limit`.")


def test_with_args_passes_over_what_the_model_does_not_send() -> None:
    """A context, by place or by name, and hidden parameters by name change nothing of the input."""
    context = ToolContext.noop(call_of(search, {"query": "x"}))
    odd_one: Any = Outer.odd
    expected = odd.Input(first=1, _count=2, Named="n")
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1, 2, context), {}),
        ((1, 2), {"context": context}),
        ((1, 2), {"db": "mine"}),
        ((1, 2), {"context": context, "db": "mine"}),
    ]
    for args, kwargs in given:
        assert odd_one.with_args(*args, **kwargs, named="n").input == expected


def test_with_args_refuses_values_that_do_not_fit() -> None:
    """An argument of the wrong type names its field."""
    selector: Any = Outer.inner.search
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["limit"]
    ):
        selector.with_args("x", limit="many")
