"""Plans with lines of steps, a clock that tests put back, and short forms of what lines say."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutum_py import Block, HookSet, RunNormally, Suspend, SuspendTicket, Toolset, tool, tool_fn
from lutum_py.typing import CallStep
from tests.round_tools import Call, ask, opened


class Receipt(BaseModel):
    """What a payment gives."""

    paid: int


MEANWHILE: list[Callable[[], object]] = []
"""What happens while a bag is filled."""


@tool_fn
def fill(items: list[str]) -> int:
    """Fill a bag, and put one thing more into it."""
    items.append("of the tool")
    while MEANWHILE:
        MEANWHILE.pop()()
    return len(items)


@tool_fn
def pay(cents: int) -> Receipt:
    """Pay an amount."""
    return Receipt(paid=cents)


@tool_fn
def enter(user: str, password: SecretStr) -> str:
    """Enter a site."""
    return user


@tool_fn
def fall() -> int:
    """Fall."""
    raise ValueError("fell")


class Desk(Toolset):
    fill = tool(fill)
    pay = tool(pay, needs_approval=True)
    enter = tool(enter)
    fall = tool(fall)
    ask = tool(ask)


FILL: Call = ("c1", "fill", {"items": ["a"]})
PAY: Call = ("c1", "pay", {"cents": 500})


def desk(*calls: Call) -> Any:
    """A round of these calls, by default one that fills a bag."""
    return opened(*(calls or (FILL,)), toolset=Desk)


def one(plan: Any) -> Any:
    """The only call of a plan, wherever it stands."""
    waiting = [each.call for each in plan.suspended]
    settled = [each.call for each in (*plan.rejected, *plan.handled) if hasattr(each, "call")]
    found: list[Any] = [*plan.pending, *plan.in_doubt, *waiting, *settled]
    (call,) = found
    return call


def hooks(**named: Any) -> HookSet[Any]:
    """Hooks of `fill`, by phase; each is named after its phase."""
    made: Any = Desk.HookSet()
    for phase, function in named.items():
        getattr(made, phase)(Desk.fill)(_named(phase, function))
    return made  # type: ignore[no-any-return]


def _named(name: str, function: Any) -> Any:
    def hook(first: Any, second: Any) -> Any:
        return function(first, second)

    hook.__name__ = hook.__qualname__ = name
    return hook


def blocked() -> HookSet[Any]:
    """Hooks whose gate blocks."""
    return hooks(gate=lambda metadata, input: Block("closed"))


def waiting(id: str = "t", **fields: Any) -> HookSet[Any]:
    """Hooks whose gate lets calls wait."""
    return hooks(gate=lambda metadata, input: Suspend(SuspendTicket(id=id, **fields)))


def rewritten(*items: str) -> HookSet[Any]:
    """Hooks that give another input."""
    return hooks(on=lambda metadata, input: RunNormally(fill.Input(items=[*items])))


def let_pass() -> HookSet[Any]:
    """Hooks that let all go on as it is."""
    return hooks(on=lambda metadata, input: RunNormally(input))


def history(steps: Iterable[CallStep]) -> list[str]:
    """Steps in a short form: the kind, who, in which phase, and what was said."""
    shown = []
    for step in steps:
        said = "/".join(each or "" for each in (step.by, step.phase, step.verdict)).rstrip("/")
        shown.append(f"{step.kind} {said}".rstrip())
    return shown


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 2_000_000_000.0
        self.per_look = 0.0

    def __call__(self) -> float:
        self.now += self.per_look
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let the library read a clock that the test sets."""
    made = Clock()
    for name, module in list(sys.modules.items()):
        if name.startswith("lutum_py") and vars(module).get("time") is time.time:
            monkeypatch.setattr(module, "time", made)
    return made
