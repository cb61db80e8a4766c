"""The laws of generated hook names."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import HookSet, Toolset, tool, toolset
from lutum_py._declare.hook_names import HOOK_SET_NAMES, generated_names, slot_of
from lutum_py.errors import ToolDefinitionError
from tests.sample_tools import AppTools, DataTools, list_orders, ping


def define(**body: Any) -> Any:
    meta: Any = type(Toolset)
    return meta("Sample", (Toolset,), body)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("weather_hook", ("weather", "execution")),
        ("weather_gate", ("weather", "gates")),
        ("weather_before_hook", ("weather", "before")),
        ("weather_after_hook", ("weather", "after")),
        ("weather_description_hook", ("weather", "description")),
        ("storm_description_hook", ("storm_description", "execution")),
        ("_hook", None),
        ("weather", None),
        ("wether_hook", None),
        ("weather_hooks", None),
    ],
)
def test_a_name_stands_for_a_member_and_a_phase(name: str, slot: object) -> None:
    """A generated name is a member and an ending; the longest ending that fits counts."""
    assert slot_of(["weather", "storm_description"], name) == slot


def test_each_member_has_five_names() -> None:
    """Each member gives one name for each phase, and each leads back to it."""
    names = list(generated_names(["a", "b"]))
    assert len(set(names)) == 10
    assert [slot_of(["a", "b"], name) for name in names[:5]] == [
        ("a", "description"),
        ("a", "before"),
        ("a", "after"),
        ("a", "execution"),
        ("a", "gates"),
    ]


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
        with pytest.raises(ToolDefinitionError, match=f"member `{name}` has the name of"):
            define(**{"ping": tool(ping), name: member})


def test_the_names_of_a_hook_set_are_known_without_it() -> None:
    """What no member may be called is what a hook set has."""
    names = {*dir(HookSet), *dir(type(HookSet))}
    assert {name for name in names if not name.startswith("_")} == HOOK_SET_NAMES
