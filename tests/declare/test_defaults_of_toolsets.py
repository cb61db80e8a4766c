"""The laws of what a toolset says for all its tools: the nearest word counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import AnyToolCall, ToolMetadata, Toolset, tool, tool_fn, toolset
from lutum_py.errors import ToolDefinitionError
from lutum_py.execution import execute
from lutum_py.tools import ResultCap
from tests.cases import over


@tool_fn
async def sleep(seconds: float) -> str:
    """Sleep."""
    await asyncio.Event().wait()
    return "awake"


@tool_fn(timeout=5)
def own() -> str:
    """Have a timeout."""
    return ""


@tool_fn
def free() -> str:
    """Be lifted."""
    return ""


class Inner(Toolset, timeout=3):
    sleep = tool(sleep)
    own = tool(own)
    free = tool(free, timeout=None)


class Base(Toolset, timeout=1, result_cap=ResultCap(1000)):
    pass


class Desk(Base, needs_approval=True):
    plain = toolset(Inner, prefix="plain_")
    lifted = toolset(Inner, prefix="lifted_", timeout=9)
    alone = tool(free)


def timeouts(of: type[Toolset]) -> dict[str, float | None]:
    return {each.name: each.timeout for each in of}


def test_the_nearest_word_on_time_counts() -> None:
    """`tool(timeout=)` comes first, then the tool's own declaration, then what is around it."""
    assert timeouts(Inner) == {"sleep": 3, "own": 5, "free": None}
    assert timeouts(Desk) == {
        "plain_sleep": 3,
        "plain_own": 5,
        "plain_free": None,
        "lifted_sleep": 3,
        "lifted_own": 5,
        "lifted_free": None,
        "free": 1,
    }
    made = Toolset.of("Made", sleep, own, tool(free, timeout=None), timeout=4)
    assert timeouts(made) == {"sleep": 4, "own": 5, "free": None}
    assert made is Toolset.of("Made", sleep, own, tool(free, timeout=None), timeout=4)


def test_a_definition_tells_the_time_that_counts() -> None:
    """What is shown of a member is what holds for it, and its digest does not change by it."""
    for each in (*Inner, *Desk):
        assert each.definition.timeout == each.timeout
    assert Inner.sleep.definition.digest == tool_digest()


def tool_digest() -> str:
    return sleep.definition.digest


def test_words_of_several_heads_add_up() -> None:
    """A class that says one thing keeps what its base says of another."""
    assert Desk.alone.options.result_cap == ResultCap(1000)
    assert Desk.alone.approval == (True,)
    assert Desk.alone.timeout == 1


def called(of: type[Toolset]) -> AnyToolCall:
    return of.parse_tool_call(ToolMetadata(id="c1", name="sleep", arguments='{"seconds": 1}'))


class Quick(Toolset, timeout=0.01):
    sleep = tool(sleep)


def test_the_time_holds_for_every_way_to_run() -> None:
    """`call()`, `invoke()` and `execute()` all end the run then."""
    for method in ("call", "invoke"):
        with pytest.raises(Exception, match=r"0\.01 seconds"):
            asyncio.run(getattr(called(Quick), method)())
    outcome: Any = asyncio.run(execute(called(Quick), default_timeout=100))
    assert outcome.code == "timed_out"


@over("given", [0, -1, True, "2", float("inf"), float("nan")])
def test_a_time_is_a_positive_number(given: Any) -> None:
    """Anything else is refused, wherever it is said."""
    for declare in (
        lambda: tool(free, timeout=given),
        lambda: toolset(Inner, timeout=given),
        lambda: Toolset.of("Made", free, timeout=given),
    ):
        with pytest.raises(ToolDefinitionError):
            declare()
