"""A few tools, and the table in which mistakes are entered."""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Any

from lutum_py import (
    Session,
    Suspend,
    SuspendTicket,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.testing import ScriptedModel


@tool_fn
def forecast(city: str, days: int = 1) -> str:
    """Tell what the weather will be."""
    return f"{city}: sunny for {days} day(s)"


@tool_fn
async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


@tool_fn(skip=("db",))
def look_up(key: str, db: Any) -> Any:
    """Look something up."""
    return db[key]


class Desk(Toolset):
    forecast = tool(forecast)
    fetch = tool(fetch)
    look_up = tool(look_up)


class Other(Toolset):
    forecast = tool(forecast)


class Person:
    """What no JSON can be made of."""


OSLO = ("c1", "forecast", {"city": "Oslo"})
ROME = ("c2", "forecast", {"city": "Rome"})
PAGE = ("c3", "fetch", {"url": "https://e.org"})
KEY = ("c4", "look_up", {"key": "k"})

opened: list[ToolRound[Any]] = []


def round_of(*calls: Any) -> Any:
    outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(*calls))
    opened.append(outcome.round)
    return outcome.round


def toolset_of(name: str, **body: Any) -> Any:
    """What `class name(Toolset)` with that body makes, under its plain name."""
    return new_class(name, (Toolset,), {}, lambda to_fill: to_fill.update(body, __qualname__=name))


def turn() -> Any:
    return Session().text_turn(ScriptedModel([]))


MISTAKES: dict[Callable[[], object], str] = {}
"""A function that makes the mistake, and what comes of it: the exception's name and text."""


def comes_to(said: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Enter a mistake with the text that answers it; its lines are joined by single spaces."""

    def enter(mistake: Callable[[], object]) -> Callable[[], object]:
        MISTAKES[mistake] = " ".join(said.split())
        return mistake

    return enter


def suspended() -> Any:
    """A plan whose one call waits for a decision."""
    hooks: Any = Desk.HookSet()
    hooks.register_forecast_gate(lambda metadata, input: Suspend(SuspendTicket()))
    return round_of(OSLO).apply_hooks_sync(hooks)


def hooked(function: Any) -> Any:
    function.__qualname__ = function.__name__
    hooks: Any = Desk.HookSet()
    hooks.register_forecast_hook(function)
    return hooks
