"""The law of arguments that were given to a tool: what it does to them is its own business."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Final

import pytest
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict

from lutum_py import (
    AnyToolCall,
    RunNormally,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError, ToolInputError
from lutum_py.execution import execute, execute_all, execute_all_sync, execute_sync, run_sync
from lutum_py.testing import ScriptedModel
from tests.cases import over


class Inner(BaseModel):
    xs: list[int]


@dataclass
class Data:
    xs: list[int]


class Typed(TypedDict):
    xs: list[int]


class Odd:
    """A value without a JSON form."""

    def __init__(self, xs: list[int]) -> None:
        self.xs = xs

    def __repr__(self) -> str:
        return f"Odd({self.xs})"


def odd_of(value: Any) -> Odd:
    return value if isinstance(value, Odd) else Odd(value)


AnOdd = Annotated[Any, BeforeValidator(odd_of), WithJsonSchema({"type": "array"})]


class Whole(ToolInput[str]):
    xs: list[int]
    inner: Inner = Inner(xs=[0])
    others: set[int] = Field(default_factory=set)


def spoil(value: Any) -> None:
    """Change whatever can be changed of a value, in place."""
    if isinstance(value, list):
        value.append(9)
    elif isinstance(value, set):
        value.add(9)
    elif isinstance(value, dict):
        for part in list(value.values()):
            spoil(part)
        value["more"] = 9
    elif isinstance(value, Inner | Data | Whole | Odd):
        for part in vars(value).values():
            spoil(part)


def spoil_all(**given: Any) -> None:
    for part in given.values():
        spoil(part)


@tool_fn
def plain(xs: list[int], ctx: ToolContext) -> str:
    spoil(xs)
    return ctx.idempotency_key


@tool_fn
def nested(inner: Inner, n: int = 1) -> str:
    spoil(inner)
    return ""


@tool_fn
def data(given: Data, n: int = 1) -> str:
    spoil(given)
    return ""


@tool_fn
def typed(given: Typed, n: int = 1) -> str:
    spoil(given)
    return ""


@tool_fn
def anything(given: Any, n: int = 1) -> str:
    spoil(given)
    return ""


@tool_fn
def several(given: set[int], n: int = 1) -> str:
    spoil(given)
    return ""


@tool_fn
def odd(given: AnOdd, n: int = 1) -> str:
    spoil(given)
    return ""


@tool_fn
def asks(xs: list[int], ctx: ToolContext) -> str:
    """Ask in the middle of its work."""
    spoil(xs)
    ctx.suspend(SuspendTicket(id="t1"))


class Tools(Toolset):
    plain = tool(plain)
    nested = tool(nested)
    data = tool(data)
    typed = tool(typed)
    anything = tool(anything)
    several = tool(several)
    odd = tool(odd)
    whole = tool(Whole)
    asks = tool(asks)


handlers = Tools.Handlers()


@handlers.on(Tools.whole)
def do_whole(input: Whole) -> str:
    spoil(input)
    return ""


ARGUMENTS: Final[dict[str, Any]] = {
    "plain": {"xs": [1]},
    "nested": {"inner": {"xs": [1]}},
    "data": {"given": {"xs": [1]}},
    "typed": {"given": {"xs": [1]}},
    "anything": {"given": {"xs": [1], "ys": [[2]]}},
    "several": {"given": [1]},
    "odd": {"given": [1]},
    "whole": {"xs": [1]},
}

WAYS: Final[dict[str, Callable[[Any], Any]]] = {
    "call": lambda call: asyncio.run(call.call()),
    "call_sync": lambda call: call.call_sync(),
    "invoke": lambda call: asyncio.run(call.invoke()),
    "invoke_sync": lambda call: call.invoke_sync(),
    "apply": lambda call: call.apply(spoil_all),
    "handlers": lambda call: asyncio.run(handlers(call)),
    "handlers, sync": handlers.call_sync,
    "execute": lambda call: asyncio.run(execute(call, handlers=handlers)),
    "execute_sync": lambda call: execute_sync(call, handlers=handlers),
    "execute_all": lambda call: asyncio.run(execute_all([call], handlers=handlers)),
    "execute_all_sync": lambda call: execute_all_sync([call], handlers=handlers),
}


def told(call: AnyToolCall) -> list[object]:
    """All that can be seen of what a call is run with."""
    seen: list[object] = [repr(call), repr(call.input), repr(call.retry().input)]
    seen += [step.arguments for step in call.steps if step.kind in ("proposed", "changed")]
    return [*seen, call.idempotency_key, call.digest]


def rewritten(call: AnyToolCall) -> AnyToolCall:
    """The same call with an input that the program put in the place of the model's."""
    if call.name == "odd":
        call.input = {"given": [2]}
    else:
        given: Any = call.spec.arguments.to_data(call.input)
        part = "given" if "given" in given else "inner" if "inner" in given else "xs"
        value = given[part]
        (value["xs"] if isinstance(value, dict) else value).append(2)
        call.input = given
    return call


@over("name", ARGUMENTS)
@over("way", WAYS)
@over("is_rewritten", [False, True])
def test_what_a_tool_does_to_its_arguments_changes_nothing(
    name: str, way: str, is_rewritten: bool
) -> None:
    """Whichever way it is run, and of whatever types its arguments are: neither the key nor what is
    shown or run again.
    """
    if name == "whole" and way in ("call", "call_sync", "invoke", "invoke_sync", "apply"):
        return  # it has no function of its own
    (metadata,) = ScriptedModel.tool_calls(("c1", name, ARGUMENTS[name])).tool_calls
    call = Tools.parse_tool_call(metadata)
    if is_rewritten:
        call = rewritten(call)
    before = told(call)
    WAYS[way](call)
    assert told(call) == before
    assert told(call.retry()) == before


def test_what_a_tool_asks_about_is_what_was_proposed() -> None:
    """A tool that changes its arguments and then asks is approved for what it was called with."""
    plan = Tools.read_turn(ScriptedModel.tool_calls(("c1", "asks", {"xs": [1]}))).round.plan()  # type: ignore[union-attr]
    before = plan.pending[0].digest
    run_sync(plan)
    (waiting,) = plan.suspended
    assert (waiting.arguments, waiting.digest) == ({"xs": [1]}, before)
    assert plan.calls[0].arguments == {"xs": [1]}
    plan.discard()


def test_a_sibling_of_a_call_has_arguments_of_its_own() -> None:
    """A call without a JSON form that is run again is run with what the model sent."""
    call = Tools.parse_tool_call(ToolMetadata(id="c1", name="odd", arguments='{"given": [1]}'))
    seen: list[str] = []

    def look(given: Odd, n: int = 1) -> str:
        seen.append(repr(given))
        spoil(given)
        return ""

    for _ in range(3):
        call.apply(look)  # type: ignore[attr-defined]
        call = call.retry()
    assert seen == ["Odd([1])"] * 3


SEEN: list[str] = []


@tool_fn(name="odd")
def odd_seen(given: AnOdd, n: int = 1) -> str:
    """Take a value without a JSON form."""
    SEEN.append(repr(given))
    return ""


class Asked(Toolset):
    odd = tool(odd_seen, needs_approval=lambda input: len(input.given.xs) > 1)


BEHIND: dict[str, Callable[[Any, Any], Any]] = {
    "by whoever holds the call": lambda call, hooks: spoil(call.input.given),
    "by who was given the parts": lambda call, hooks: spoil(call.parts[1].given),
    "by a gate": lambda call, hooks: call.hook_sync(hooks),
}
RUN_ODD: dict[str, Callable[[Any], object]] = {
    "call": lambda call: call.call_sync(),
    "invoke": lambda call: call.invoke_sync(),
    "execute": execute_sync,
    "apply": lambda call: call.apply(lambda given, n: SEEN.append(repr(given))),
    "again": lambda call: call.retry().call_sync(),
}


@over("way, run", [(way, run) for way in BEHIND for run in RUN_ODD])
def test_nobody_changes_what_was_asked_about_though_it_has_no_json_form(way: str, run: str) -> None:
    """What a condition let pass is run as the model sent it: a gate gets an instance of its own."""
    SEEN.clear()
    metadata = ToolMetadata(id="c1", name="odd", arguments='{"given": [1]}')
    hooks: Any = Asked.HookSet()
    hooks.gate()(lambda metadata, input: spoil(input.given))
    call: Any = Asked.parse_tool_call(metadata).hook_sync(Asked.HookSet())
    BEHIND[way](call, hooks)
    if way != "by a gate":
        with pytest.raises(ToolInputError, match="has no JSON form"):  # and it is as it was
            RUN_ODD[run](call)
    RUN_ODD[run](call)
    assert SEEN == ["Odd([1])"]


@over("given", ["by a hook", "by hand"])
def test_what_a_program_made_without_a_json_form_is_not_let_pass(given: str) -> None:
    """Nobody could be shown what runs, so such an input is refused with the remedy."""
    metadata = ToolMetadata(id="c1", name="odd", arguments='{"given": [1]}')
    hooks: Any = Asked.HookSet()
    call: Any = Asked.parse_tool_call(metadata)
    if given == "by a hook":
        hooks.on(Asked.odd)(lambda metadata, input: RunNormally(odd_seen.Input(given=Odd([2]))))
        with pytest.raises(HookError, match=r"has no JSON form.*serializer"):
            call.hook_sync(hooks)
    else:
        with pytest.raises(ToolInputError, match=r"has no JSON form.*serializer"):
            call.input = odd_seen.Input(given=Odd([2]))
    assert repr(call.input.given) == "Odd([1])"


numbers = count()


class Numbered(BaseModel):
    number: int = Field(default_factory=numbers.__next__)


@tool_fn
def look(given: Numbered, more: int = 1) -> int:
    return given.number


class Looks(Toolset):
    look = tool(look)


def test_a_default_that_is_made_anew_each_time_is_as_the_tool_had_it() -> None:
    """Where a text reads otherwise each time, the call shows the input that its tool was given."""
    metadata = ToolMetadata(id="c1", name="look", arguments='{"given": {}}')
    call = Looks.parse_tool_call(metadata)
    result = call.call_sync()
    assert call.steps[0].arguments == {"given": {"number": result.output}, "more": 1}
