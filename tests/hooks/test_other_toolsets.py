"""What is of another toolset is an error when the program runs, whatever checkers say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    HookSet,
    NeedsTools,
    RunNormally,
    Session,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import HookError, LutumError, ToolConstraintError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import ToolCallItem


@tool_fn
def look(key: str = "x") -> str:
    """Look something up."""
    return key


@tool_fn
def send(text: str = "x") -> str:
    """Send something."""
    return text


class Inner(Toolset):
    look = tool(look)


class Desk(Toolset):
    send = tool(send)
    inner = toolset(Inner)


class Other(Toolset):
    look = tool(look)


def asked(toolset: Any, hooks: HookSet[Any], name: str = "nobody") -> None:
    """Send a round through hooks whose only call is, by default, of no tool."""
    metadata = ToolMetadata(id="c1", name=name, arguments="{}")
    outcome = toolset.read_turn(AssistantTurn(items=(ToolCallItem(metadata),)))
    assert isinstance(outcome, NeedsTools)
    with outcome.round as opened:
        opened.apply_hooks_sync(hooks)


@pytest.mark.parametrize("name", ["nobody", "look"])
def test_hooks_of_an_unrelated_toolset_are_refused(name: str) -> None:
    """Hooks that could be asked about no tool of the round are refused, also where no call is."""
    with pytest.raises(HookError) as caught:
        asked(Desk, Other.HookSet(), name)
    assert "Other" in str(caught.value)
    assert "Desk" in str(caught.value)
    with pytest.raises(HookError):
        asked(Inner, Desk.HookSet(), name)


def test_hooks_of_a_nested_toolset_are_taken() -> None:
    """Hooks of a toolset within are asked about its tools, and in vain about the others."""
    hooks = Inner.HookSet()
    hooks.on(Inner.look)(lambda metadata, input: RunNormally(input))
    for name in ("nobody", "look", "send"):
        asked(Desk, hooks, name)


def test_a_round_without_tools_takes_any_hooks() -> None:
    """A last turn that offers nothing is decided about by the hooks of the others."""
    asked(Toolset, Desk.HookSet())


TURNS: dict[str, Callable[[Any], Any]] = {
    "required": lambda turn: turn.require_tool(Other.look),
    "offered": lambda turn: turn.available_tools([Desk.send, Other.look]),
    "offered besides": lambda turn: turn.available_tools_default_plus([Other.look]),
    "described": lambda turn: turn.describe_tool(Other.look, "Look."),
}


@pytest.mark.parametrize("said", TURNS)
def test_a_turn_takes_tools_of_its_own_toolset(said: str) -> None:
    """A selector of another toolset is refused before anything is sent."""
    model = ScriptedModel([])
    with pytest.raises(ToolConstraintError):
        TURNS[said](Session().text_turn(model).tools(Desk)).collect_sync()
    assert model.requests == []


def test_hooks_take_tools_of_their_own_toolset() -> None:
    """A selector of another toolset gets no hook, alone or beside one that is right."""
    hooks = Desk.HookSet()
    wrong: list[Callable[[], Any]] = [
        lambda: hooks.on(Other.look),
        lambda: hooks.on(Desk.send, Other.look),
        lambda: hooks.gate(Other.look),
        lambda: hooks.before(Other.look),
        lambda: hooks.after(Other.look),
        lambda: hooks.describe(Other.look),
    ]
    for register in wrong:
        with pytest.raises(LutumError):
            register()
