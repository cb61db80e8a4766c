"""The laws of handlers: who does each tool, and with what it is called."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    CallStatus,
    Handlers,
    Skip,
    ToolContext,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import LifecycleError, MisuseError, ToolConstraintError, ToolOutputError
from lutum_py.execution import execute, execute_all, execute_all_sync, execute_sync
from tests.cases import over
from tests.sample_tools import sent


class GreetArgs(ToolInput[str]):
    who: str


class Question(BaseModel):
    text: str


@tool_fn
async def shout(text: str, times: int = 1) -> str:
    return text.upper() * times


@tool_fn
def odd(
    first: int,
    note: Annotated[str, Skip()] = "none",
    /,
    _count: int = 2,
    *,
    context: ToolContext,
    db: Annotated[str, Skip()],
) -> str:
    return f"{first}{note}{_count}{context.call_id}{db}"


@tool_fn
def ask(question: Question) -> str:
    return question.text


class Inner(Toolset):
    greet = tool(GreetArgs)
    shout = tool(shout)


class App(Toolset):
    odd = tool(odd)
    ask = tool(ask)
    left = toolset(Inner, prefix="l_")
    right = toolset(Inner, prefix="r_")


def call_of(name: str, **arguments: Any) -> Any:
    """Decode a call of the outer toolset."""
    return App.parse_tool_call(sent(name, "c1", **arguments))


def done(run: Any, name: str, skipped: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """Have a call done from async code, and give its output."""
    return asyncio.run(run(call_of(name, **arguments), **(skipped or {}))).output


def test_a_handler_is_given_back_and_does_every_path() -> None:
    """`on` changes nothing of the function, and a nested tool stands for each path to it."""
    run = App.Handlers()

    def greet(input: GreetArgs) -> str:
        return f"Hello, {input.who}!"

    assert run.on(Inner.greet)(greet) is greet
    assert run.toolset is App
    assert repr(run) == "<handlers of App: 2 of 6 tools>"
    for name in ("l_greet", "r_greet"):
        assert done(run, name, who="Ada") == "Hello, Ada!"
        assert run.call_sync(call_of(name, who="Ada")).output == "Hello, Ada!"


def test_handlers_of_an_inner_toolset_do_its_calls_through_an_outer_one() -> None:
    """Handlers of a nested toolset know its members by either name."""
    run = App.left.Handlers()
    run.on(App.left.greet)(lambda input: input.who)
    assert run.toolset is Inner
    for name in ("l_greet", "r_greet"):
        assert done(run, name, who="Ada") == "Ada"


def test_a_function_tool_is_done_by_its_own_function() -> None:
    """Without a handler the tool's function runs; with one, that one runs in its place."""
    run = Inner.Handlers()
    call = Inner.parse_tool_call(sent("shout", "c1", text="hi", times=2))
    assert asyncio.run(run(call)).output == "HIHI"

    @run.on(Inner.shout)
    async def whisper(text: str, times: int = 1) -> str:
        return text.lower() * times

    call = Inner.parse_tool_call(sent("shout", "c1", text="HI", times=3))
    assert asyncio.run(run(call)).output == "hihihi"


def test_what_nobody_does_is_missing_and_complete_names_it() -> None:
    """Gaps are found when the program starts, all of them, by their paths."""
    run = App.Handlers()
    assert [each.name for each in run.missing()] == ["l_greet", "r_greet"]
    with pytest.raises(ToolConstraintError) as caught:
        run.complete()
    assert str(caught.value) == (
        "These tools of App have no function: `left.greet`, `right.greet`. Write "
        "`@run.on(App.left.greet)` above a function for each."
    )
    with pytest.raises(MisuseError):
        done(run, "l_greet", who="Ada")
    run.on(App.left.greet)(lambda input: input.who)
    assert [each.name for each in run.missing()] == ["r_greet"]
    run.on(App.right.greet)(lambda input: input.who)
    assert run.complete() is run


def test_a_handler_takes_what_a_function_tool_may_take() -> None:
    """A context, passed values and defaults arrive; each handler takes the values that it has."""
    run = App.Handlers()

    @run.on(Inner.greet)
    async def greet(input: GreetArgs, context: ToolContext, *, db: str, end: str = "!") -> str:
        return f"{input.who} {context.call_id} {db}{end}"

    values = {"db": "main", "other": 3}
    assert done(run, "l_greet", values, who="Ada") == "Ada c1 main!"
    assert done(run, "l_greet", {**values, "end": "?"}, who="Ada") == "Ada c1 main?"
    with pytest.raises(MisuseError):
        done(run, "l_greet", who="Ada")


def test_a_handler_of_a_function_is_called_as_the_function_is() -> None:
    """Positions, renamed fields, the tool's context and hidden parameters go where they went."""
    run = App.Handlers()

    @run.on(App.odd)
    def even(
        first: int,
        told: str = "x",
        /,
        _count: int = 2,
        *,
        context: ToolContext,
        db: str,
        more: Any = 4,
    ) -> str:
        return f"{first}|{told}|{_count}|{context.tool_name}|{db}|{more}"

    assert done(run, "odd", {"db": "d"}, first=1, _count=3) == "1|none|3|odd|d|4"
    assert done(run, "odd", {"db": "d", "note": "n", "more": 5}, first=1) == "1|n|2|odd|d|5"
    run.on(App.ask)(lambda question: question.text * 2)
    assert done(run, "ask", text="why") == "whywhy"


class Greeter:
    async def __call__(self, input: GreetArgs, context: ToolContext) -> str:
        return f"{input.who} {context.call_id}"

    def greet(self, input: GreetArgs) -> str:
        return input.who


def test_anything_that_is_called_like_a_function_may_do_a_tool() -> None:
    """Objects, bound methods, partial functions and function tools are handlers too."""
    run = App.Handlers()
    run.on(App.left.greet)(Greeter())
    run.on(App.right.greet)(Greeter().greet)
    run.on(App.left.shout)(partial(lambda prefix, text, times: prefix + text, ">"))
    run.on(App.right.shout)(shout)
    assert done(run, "l_greet", who="Ada") == "Ada c1"
    assert done(run, "r_greet", who="Ada") == "Ada"
    assert done(run, "l_shout", text="a") == ">a"
    assert done(run, "r_shout", text="a") == "A"


def test_an_annotation_without_a_value_is_no_context() -> None:
    """What a handler names for checkers only is a value that the program passes."""
    run = App.Handlers()

    @run.on(Inner.greet)
    def greet(input: GreetArgs, db: Database) -> str:  # type: ignore[name-defined] # noqa: F821
        return f"{input.who}{db}"

    assert done(run, "l_greet", {"db": 1}, who="Ada") == "Ada1"


@over(
    "selector, function, said",
    [
        (Inner.greet, lambda: "x", "it is called with the input of the tool"),
        (App.ask, lambda text: "x", "got an unexpected keyword argument 'question'"),
        (App.left.shout, lambda txt, times: "x", "the parameters of the tool's own function"),
        (Inner.greet, 3, "is run by a function, not by 3"),
        (Inner.greet, int, "is run by a function, not by <class 'int'>"),
        (3, lambda input: "x", "A handler cannot be registered: 3 is no selector of App"),
    ],
)
def test_what_cannot_do_a_tool_is_refused_when_it_is_registered(
    selector: Any, function: Any, said: str
) -> None:
    """Parameters that the tool does not have are found at once, and nothing is registered."""
    run: Any = App.Handlers()
    with pytest.raises(MisuseError, match=said):
        run.on(selector)(function)
    assert len(run.missing()) == 2


def test_a_tool_is_done_by_one_handler() -> None:
    """A second handler of a tool is refused, and names the first."""
    run = App.Handlers()
    run.on(App.left.greet)(Greeter().greet)
    with pytest.raises(MisuseError, match=r"`Greeter.greet`"):
        run.on(Inner.greet)(lambda input: "x")
    assert [each.name for each in run.missing()] == ["r_greet"]


def test_the_call_moves_as_when_its_own_function_runs() -> None:
    """An exception comes out and leaves the call running; a misfit or a second run is refused."""
    run: Any = App.Handlers()
    run.on(App.left.greet)(lambda input: 1 / 0)
    run.on(App.right.greet)(lambda input: 3)
    call = call_of("l_greet", who="Ada")
    with pytest.raises(ZeroDivisionError):
        run.call_sync(call)
    assert call.status is CallStatus.RUNNING
    assert call.fail("no").is_error
    with pytest.raises(LifecycleError):
        run.call_sync(call)
    with pytest.raises(ToolOutputError):
        run.call_sync(call_of("r_greet", who="Ada"))


def test_what_is_missing_is_passed_to_the_table() -> None:
    """The remedy names the way in which a handler is run, not that of the tool's own function."""
    run = Inner.Handlers()

    @run.on(Inner.greet)
    async def greet(input: GreetArgs, *, db: str) -> str:
        return db

    with pytest.raises(MisuseError, match=r"use `await run\(call\)` instead of `run.call_sync"):
        run.call_sync(call_of("r_greet", who="Ada"))
    with pytest.raises(MisuseError, match=r"run the call: `await run\(call, db=\.\.\.\)`"):
        asyncio.run(run(call_of("r_greet", who="Ada")))


def test_calls_of_other_tools_are_refused() -> None:
    """A call of another toolset, or what is no call, is told what to do instead."""
    run: Any = Inner.Handlers()
    with pytest.raises(MisuseError, match=r"Inner.*`odd`"):
        run.call_sync(call_of("odd", first=1))
    with pytest.raises(MisuseError, match="not 3"):
        asyncio.run(run(3))
    with pytest.raises(MisuseError, match="not None"):
        run.call_sync(None)
    free = shout.Call(sent("shout", "c1", text="a"), shout.Input(text="a"))
    assert asyncio.run(run(free)).output == "A"
    with pytest.raises(MisuseError, match="is async"):
        run.call_sync(free.retry())


def test_execution_runs_handlers_under_its_own_rules() -> None:
    """`execute` and its siblings run the handler with the tool's timeout, and make outcomes."""
    run = App.Handlers()

    @run.on(Inner.greet)
    def greet(input: GreetArgs, context: ToolContext, db: str) -> str:
        return f"{input.who} {context.call_id} {db}"

    values = {"db": "main", "other": 3}

    def call() -> Any:
        return call_of("l_greet", who="Ada")

    outcomes: list[Any] = [
        asyncio.run(execute(call(), handlers=run, skipped=values)),
        execute_sync(call(), handlers=run, skipped=values),
        *asyncio.run(execute_all([call()], handlers=run, skipped=values)),
        *execute_all_sync([call()], handlers=run, skipped=values),
    ]
    assert [each.output for each in outcomes] == ["Ada c1 main"] * 4
    with pytest.raises(MisuseError):
        execute_sync(call(), handlers=run)
    with pytest.raises(MisuseError):
        execute_sync(call(), handlers=greet)  # type: ignore[arg-type]
    assert isinstance(run, Handlers)


def test_the_timeout_of_the_tool_holds_for_its_handler() -> None:
    """A tool's own limit stops whoever does it."""

    @tool_fn(timeout=0.01)
    async def slow(text: str) -> str:
        return text

    class Slow(Toolset):
        tool = tool(slow)

    run = Slow.Handlers()

    @run.on(Slow.tool)
    async def forever(text: str) -> str:
        await asyncio.Event().wait()
        return text

    call = Slow.parse_tool_call(sent("slow", "c1", text="a"))
    outcome: Any = asyncio.run(execute(call, handlers=run))
    assert outcome.code == "timed_out"
