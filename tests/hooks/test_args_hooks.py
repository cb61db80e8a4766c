"""The laws of execution hooks that have the parameters of the tool's own function."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    AnyToolCall,
    Complete,
    HandledCall,
    Reject,
    RejectedCall,
    RunNormally,
    Skip,
    ToolContext,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import HookError
from tests.cases import over
from tests.sample_tools import sent


class Plain(ToolInput[str]):
    text: str


@tool_fn
def search(query: str, /, limit: int = 5) -> str:
    """Search."""
    return query * limit


@tool_fn
def told(_text: str, context: ToolContext, db: Annotated[str, Skip()] = "main") -> str:
    return _text + db


@tool_fn
def stored(db: Annotated[str, Skip()], key: str) -> str:
    return db + key


class Inner(Toolset):
    search = tool(search)


class App(Toolset):
    told = tool(told)
    stored = tool(stored)
    plain = tool(Plain)
    left = toolset(Inner, prefix="l_")
    right = toolset(Inner, prefix="r_")


def decided(hooks: Any, name: str, **arguments: Any) -> Any:
    """What hooks make of one call."""
    call: AnyToolCall = hooks.toolset.parse_tool_call(sent(name, "c1", **arguments))
    return call.hook_sync(hooks)


def test_none_goes_on_and_decisions_count() -> None:
    """None leaves the input, `with_args` gives another, and the others answer or refuse."""
    hooks = Inner.HookSet()

    @hooks.on_args(Inner.search)
    def clipped(query: str, /, limit: int = 5) -> Any:
        decisions = {"short": None, "long": Inner.search.with_args(query, limit=3)}
        return {**decisions, "known": Complete("hit"), "bad": Reject("blank")}[query]

    short, long = decided(hooks, "search", query="short"), decided(hooks, "search", query="long")
    assert (short.input.limit, long.input.limit) == (5, 3)
    known = decided(hooks, "search", query="known")
    assert isinstance(known, HandledCall)
    assert known.output == "hit"
    assert isinstance(decided(hooks, "search", query="bad"), RejectedCall)


def test_a_mapping_names_what_is_changed() -> None:
    """The named arguments are others, validated, and the rest stays; hidden ones pass untouched."""
    hooks = App.HookSet()

    @hooks.on_args(App.left.search)
    def clipped(query: str, /, limit: int = 5) -> dict[str, Any]:
        return {"limit": f"{limit - 1}"} if query == "less" else {"query": "more", "limit": 9}

    @hooks.on_args(App.told)
    async def shouted(_text: str, context: ToolContext, db: str = "main") -> dict[str, str]:
        await asyncio.sleep(0)
        return {"_text": _text.upper()}

    less, more = (decided(hooks, "l_search", query=word) for word in ("less", "any"))
    assert (less.input.query, less.input.limit) == ("less", 4)
    assert (more.input.query, more.input.limit) == ("more", 9)
    call: AnyToolCall = App.parse_tool_call(sent("told", "c1", _text="a"))
    louder: Any = asyncio.run(call.hook(hooks))
    assert louder.call_sync().output == "Amain"


def test_a_mapping_of_a_whole_input_gives_another() -> None:
    """A function of one model has one parameter, which can be changed as a whole."""

    class Note(BaseModel):
        text: str

    @tool_fn
    def keep(note: Note) -> str:
        return note.text

    class Notes(Toolset):
        keep_ = tool(keep)

    for given, kept in (({"note": Note(text="b")}, "b"), ({}, "a")):
        hooks = Notes.HookSet()

        @hooks.on_args(Notes.keep_)
        def other(note: Note, given: Any = given) -> Any:
            return given

        call: Any = Notes.parse_tool_call(sent("keep", "c1", text="a")).hook_sync(hooks)
        assert call.call_sync().output == kept


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limit": "many"}, "does not fit tool `search`"),
        ({"limits": 3}, "`limits` cannot be changed .* `query`, `limit`"),
        (5, "returned 5. Return None, a mapping of the arguments to change, Complete"),
    ],
)
def test_changes_that_do_not_fit_are_the_fault_of_the_hook(changes: Any, said: str) -> None:
    """A wrong value or name is a HookError that says which, and what such a hook returns."""
    hooks = Inner.HookSet()

    @hooks.on_args(Inner.search)
    def wrong(query: str, /, limit: int = 5) -> Any:
        return changes

    with pytest.raises(HookError, match=said):
        decided(hooks, "search", query="a")


def test_async_hooks_are_awaited() -> None:
    """An async hook decides alike, None included."""
    hooks = Inner.HookSet()

    @hooks.on_args(Inner.search)
    async def clipped(query: str, /, limit: int = 5) -> RunNormally[Any] | None:
        await asyncio.sleep(0)
        return Inner.search.with_args(query, 2) if limit > 2 else None

    for limit, expected in ((9, 2), (1, 1)):
        call = Inner.parse_tool_call(sent("search", "c1", query="q", limit=limit))
        outcome: Any = asyncio.run(call.hook(hooks))
        assert outcome.input.limit == expected


def test_the_hook_is_called_as_the_function_would_be() -> None:
    """Renamed fields and a context arrive; a hidden parameter keeps the hook's own default."""
    hooks, seen = App.HookSet(), []

    @hooks.on_args(App.told)
    def look(_text: str, context: ToolContext, db: str = "mine") -> None:
        seen.append((_text, context.call_id, context.tool_name, db))

    decided(hooks, "told", _text="hello")
    assert seen == [("hello", "c1", "told", "mine")]
    assert look.__name__ == "look"


def test_a_nested_tool_stands_for_each_path() -> None:
    """Registered for the inner selector, the hook reviews every path to it."""
    hooks = App.HookSet()
    hooks.on_args(Inner.search)(lambda query, limit=5: Reject(query))
    for name in ("l_search", "r_search"):
        assert decided(hooks, name, query="no").reason == "no"
    extended = App.HookSet().with_extended(hooks)
    assert decided(extended, "l_search", query="no").reason == "no"


@over(
    "selector, hook, said",
    [
        (App.plain, lambda text: None, "has no function with parameters of its own"),
        (App.stored, lambda db, key: None, "takes `db`, which nobody passes to a hook"),
        (
            App.left.search,
            lambda qeury: None,
            r"the parameters of its function, \(query, /, limit=5\), but `<lambda>` takes",
        ),
        (App.told, lambda text, context: None, "missing a required argument: 'text'"),
        (App.told, 3, "is a function, not 3"),
        (App.told, dict, "is a function, not <class 'dict'>"),
        (3, lambda text: None, "cannot be registered for 3"),
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_registered(
    selector: Any, hook: Any, said: str
) -> None:
    """Parameters that nobody can give, and hooks that take others, are found at once."""
    hooks = App.HookSet()
    with pytest.raises(HookError, match=said):
        hooks.on_args(selector)(hook)
    assert repr(hooks) == "<HookSet of App: 0 hooks>"


@tool_fn
def moved(start: str, end: str, /, db: Annotated[str, Skip()], *, context: ToolContext) -> str:
    return start + end + db


class Moving(Toolset):
    moved = tool(moved)
    stored = tool(stored)


@over(
    "name, function, wanted",
    [
        ("stored", lambda key: Reject(f"{key}!"), "b!"),
        ("stored", lambda db="own", *, key: Reject(db + key), "ownb"),
        ("stored", lambda key, /: Reject(key), "b"),
        ("stored", lambda **rest: Reject(str(rest)), "{}"),
        ("stored", lambda: Reject("nothing"), "nothing"),
        ("moved", lambda end: Reject(f"{end}!"), "y!"),
        ("moved", lambda end, start, /, context: Reject(context.call_id + end + start), "c1yx"),
        ("moved", lambda context, start: Reject(context.call_id + start), "c1x"),
    ],
)
def test_a_hook_takes_any_of_the_models_parameters(name: str, function: Any, wanted: str) -> None:
    """A hook names those parameters that it looks at, whatever else the function takes."""
    hooks: Any = Moving.HookSet()
    hooks.on_args(Moving[name])(function)
    arguments = {"stored": {"key": "b"}, "moved": {"start": "x", "end": "y"}}[name]
    assert decided(hooks, name, **arguments).reason == wanted


def test_a_hook_of_some_parameters_changes_them() -> None:
    """A mapping of a hook that names some parameters changes what it has, and leaves the rest."""
    hooks: Any = Moving.HookSet()
    hooks.on_args(Moving.moved)(lambda end: {"end": end * 2})
    call = decided(hooks, "moved", start="x", end="y")
    assert call.final_arguments == {"start": "x", "end": "yy"}
