"""The laws of generated hook names."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import HookSet, Toolset, tool, toolset
from lutum_py.errors import ToolDefinitionError
from tests.sample_tools import AppTools, DataTools, list_orders, ping


def define(**body: Any) -> Any:
    meta: Any = type(Toolset)
    return meta("Sample", (Toolset,), body)


PHASES: dict[str, Any] = {
    "hook": "execution",
    "gate": "gate",
    "before_hook": "before",
    "after_hook": "after",
    "description_hook": "description",
}


def slots_of(toolset: Any, name: str) -> list[tuple[str, str]]:
    """The members and phases for which a generated name registers a hook."""
    hooks: HookSet[Any] = toolset.HookSet()
    getattr(hooks, f"register_{name}")(lambda *args: None)
    return [
        (".".join(selector.path), phase)
        for selector in toolset
        for phase in PHASES.values()
        if hooks._hooks_for(selector, phase)
    ]


WEATHER = define(weather=tool(ping), storm_description=tool(list_orders))


def test_a_name_stands_for_a_member_and_a_phase() -> None:
    """Each member has a name for each phase; the longest ending that fits counts."""
    expected = {
        f"{member}_{ending}": [(member, phase)]
        for member in ("weather", "storm_description")
        for ending, phase in PHASES.items()
    }
    assert len(expected) == 10
    assert {name: slots_of(WEATHER, name) for name in expected} == expected


def test_no_other_name_is_generated() -> None:
    """What is no member with an ending of a phase is no name of a hook."""
    hooks: Any = WEATHER.HookSet()
    names = ("_hook", "weather", "wether_hook", "weather_hooks", "storm_hook")
    assert [name for name in names if hasattr(hooks, f"register_{name}")] == []


@pytest.mark.parametrize("ending", ["description", "before", "after"])
def test_names_that_meet_are_refused(ending: str) -> None:
    """Two members whose generated names meet are an error that names both and the name."""
    other = f"x_{ending}"
    for body in (
        {"x": tool(ping), other: tool(list_orders)},
        {other: tool(list_orders), "x": tool(ping)},
    ):
        with pytest.raises(ToolDefinitionError) as caught:
            define(**body)
        assert f"`x_{ending}_hook`" in str(caught.value)
        assert "`x`" in str(caught.value)
        assert f"`{other}`" in str(caught.value)


def test_names_that_do_not_meet_are_fine() -> None:
    """Endings that only look alike, and groups, which have no hooks of their own, do no harm."""
    made = define(
        x=tool(ping), x_gate=tool(list_orders), x_description=toolset(AppTools, prefix="p_")
    )
    assert len(made) == 6
    assert made.HookSet().x_description.toolset is AppTools


@pytest.mark.parametrize(
    "name",
    ["register_ping_hook", "with_ping_gate", "register_ping_description_hook", "with_hooks"],
)
def test_a_member_is_not_named_like_a_generated_method(name: str) -> None:
    """A member cannot have the name of a method that its hook set generates."""
    for member in (tool(list_orders), toolset(DataTools)):
        with pytest.raises(ToolDefinitionError, match=f"`{name}`"):
            define(**{"ping": tool(ping), name: member})


def refuses(name: str) -> bool:
    try:
        define(**{name: toolset(DataTools)})
    except ToolDefinitionError:
        return True
    return False


def test_no_group_is_called_like_what_a_hook_set_has() -> None:
    """A group, whose hook set is an attribute of the outer one, has none of its names."""
    names = {*dir(HookSet), *dir(type(HookSet))}
    assert [name for name in names if not name.startswith("_") and not refuses(name)] == []
    assert not refuses("anything_else")
