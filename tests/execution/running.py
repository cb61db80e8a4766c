"""Tools that do what a test hands them, and calls and rounds of them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    NeedsTools,
    Selector,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.context import CancellationToken
from lutum_py.execution import Outcome

Act: TypeAlias = Callable[[int, ToolContext], Coroutine[Any, Any, object]]
ActAlone: TypeAlias = Callable[[int], Coroutine[Any, Any, object]]
ActSync: TypeAlias = Callable[[int], object]
ActHearing: TypeAlias = Callable[[int, ToolContext], object]

R = TypeVar("R")

SOON = 0.01
"""A deadline that is meant to pass."""

LATE = 30.0
"""A deadline that is not."""


@tool_fn(skip=("act",))
async def do(n: int, ctx: ToolContext, act: Act) -> int:
    """Do what the test says."""
    return await act(n, ctx)  # type: ignore[return-value]


@tool_fn(skip=("act",))
async def do_alone(n: int, act: ActAlone) -> int:
    """Do what the test says, with nothing by which anybody could reach it."""
    return await act(n)  # type: ignore[return-value]


@tool_fn(skip=("act",))
def do_sync(n: int, act: ActSync) -> int:
    """Do what the test says, deaf to any request."""
    return act(n)  # type: ignore[return-value]


@tool_fn(skip=("act",))
def do_hearing(n: int, ctx: ToolContext, act: ActHearing) -> int:
    """Do what the test says, and hear requests to stop."""
    return act(n, ctx)  # type: ignore[return-value]


class Tools(Toolset):
    doing = tool(do)
    doing_alone = tool(do_alone)
    doing_sync = tool(do_sync)
    doing_hearing = tool(do_hearing)


def sent(selector: Selector[Any, Any], n: int = 1, id: str = "c1") -> ToolMetadata:
    """A call as a model sends it."""
    return ToolMetadata(id=id, name=selector.name, arguments=f'{{"n": {n}}}')


def call_of(selector: Selector[Any, Any] = Tools.doing, n: int = 1, id: str = "c1") -> AnyToolCall:
    return Tools.parse_tool_call(sent(selector, n, id))


def calls_of(count: int, selector: Selector[Any, Any] = Tools.doing) -> list[AnyToolCall]:
    return [call_of(selector, n, f"c{n}") for n in range(count)]


def turn_of(count: int, selector: Selector[Any, Any] = Tools.doing) -> AssistantTurn:
    return AssistantTurn(tool_calls=[sent(selector, n, f"c{n}") for n in range(count)])


def plan_of(count: int, selector: Selector[Any, Any] = Tools.doing) -> ToolRoundPlan[Tools]:
    """A plan of a turn with so many calls."""
    match Tools.read_turn(turn_of(count, selector)):
        case NeedsTools(round):
            return round.apply_hooks_sync(Tools.HookSet())
        case other:
            raise AssertionError(other)


def result_of(outcome: Outcome) -> ToolResult:
    assert isinstance(outcome, ToolResult)
    return outcome


def seen(outcomes: list[Outcome] | tuple[Outcome, ...]) -> list[tuple[str, str, object]]:
    """The id, status and output of each result."""
    results = [result_of(outcome) for outcome in outcomes]
    return [(each.id, each.status, each.output) for each in results]


def statuses(outcomes: list[Outcome] | tuple[Outcome, ...]) -> list[str]:
    return [result_of(outcome).status for outcome in outcomes]


def running(work: Coroutine[Any, Any, R]) -> R:
    """Run to the end; what the loop complains of is an error, and so is a task that is left."""
    complaints: list[dict[str, Any]] = []

    async def main() -> R:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        try:
            return await work
        finally:
            await settled()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            complaints.extend({"left": task} for task in left)

    try:
        return asyncio.run(main())
    finally:
        gc.collect()
        assert complaints == []


async def settled() -> None:
    """Let all other tasks run until none of them can go on by itself."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds."""
    while not condition():  # noqa: ASYNC110 - the condition is no event of this loop
        await asyncio.sleep(0)


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the collector of cycles out."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def hang(n: int, ctx: ToolContext) -> int:
    await asyncio.Event().wait()
    return n


async def returning_late(n: int, ctx: ToolContext) -> int:
    """Swallow the cancellation, and return all the same."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return n
    return -1


def raising(error: BaseException) -> Act:
    async def act(n: int, ctx: ToolContext) -> int:
        raise error

    return act


def raising_sync(error: BaseException) -> ActSync:
    def act(n: int) -> int:
        raise error

    return act


class Stubborn:
    """A tool that swallows every cancellation and goes on until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.release = asyncio.Event()
        self.requests = 0
        self.ended = False
        self.error = error

    async def __call__(self, n: int, ctx: ToolContext) -> int:
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.requests += 1
        self.ended = True
        if self.error is not None:
            raise self.error
        return n


class Deaf:
    """A function in a thread that goes on until it is let go."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()

    def __call__(self, n: int) -> int:
        self.started.set()
        self.release.wait(LATE)
        self.ended.set()
        return n


def with_token(token: CancellationToken, call: AnyToolCall) -> ToolContext:
    return ToolContext.for_call(call, cancellation=token)
