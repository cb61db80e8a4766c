"""The laws of description hooks."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from lutum_py import ToolDef
from lutum_py.dialects import openai_chat
from lutum_py.errors import HookError, MisuseError
from tests.sample_tools import AppTools, DataTools, DeepTools, TwinTools


def test_without_hooks_there_are_no_overrides() -> None:
    """No description hooks: no overrides."""
    assert AppTools.HookSet().description_overrides_sync() == []


def test_overrides_come_in_order_and_leave_out_none() -> None:
    """Overrides are pairs in the order of declaration; a hook that gives None is left out."""
    hooks: Any = AppTools.HookSet()

    async def later(definition: ToolDef) -> str:
        await asyncio.sleep(0)
        return f"{definition.description} Slowly."

    hooks.describe(AppTools.data.list_orders)(later)
    hooks.register_web_search_description_hook(lambda definition: f"{definition.name}!")
    hooks.describe(AppTools.delete_file)(lambda definition: None)
    hooks.data.register_get_user_description_hook(lambda definition: "")
    assert asyncio.run(hooks.description_overrides()) == [
        (AppTools.web_search, "web_search!"),
        (AppTools.data.get_user, ""),
        (AppTools.data.list_orders, "List what a user ordered. Slowly."),
    ]
    with pytest.raises(MisuseError):
        hooks.description_overrides_sync()


def test_nested_overrides_are_mapped_outward() -> None:
    """An inner description hook describes the outer selectors, on each path."""
    hooks: Any = DeepTools.HookSet()
    hooks.app.data.describe(DataTools.get_user)(lambda definition: definition.name)
    assert hooks.description_overrides_sync() == [(DeepTools.app.data.get_user, "app_get_user")]
    assert hooks.app.data.description_overrides_sync() == [(DataTools.get_user, "get_user")]
    twins = TwinTools.HookSet()
    twins.describe(DataTools.get_user)(lambda definition: definition.name)
    assert twins.description_overrides_sync() == [
        (TwinTools.left.get_user, "left_get_user"),
        (TwinTools.right.get_user, "right_get_user"),
    ]


def test_the_last_registration_wins_with_a_warning() -> None:
    """A tool has one description hook: a second one takes its place, and says so."""
    hooks: Any = AppTools.HookSet()

    def first(definition: ToolDef) -> str:
        return "first"

    def second(definition: ToolDef) -> str:
        return "second"

    empty: Any = AppTools.HookSet()
    hooks.describe(AppTools.web_search)(first)
    with pytest.warns(UserWarning, match=r"second` takes the place of `.*first`") as caught:
        hooks.register_web_search_description_hook(second)
    assert caught[0].filename == __file__
    assert hooks.description_overrides_sync() == [(AppTools.web_search, "second")]
    with pytest.warns(UserWarning, match=r"first` takes the place of `.*second`"):
        hooks.extend(empty.with_web_search_description_hook(first))
    assert hooks.description_overrides_sync() == [(AppTools.web_search, "first")]


def test_hooks_of_two_tools_do_not_warn() -> None:
    """One hook for each tool is no reason for a warning."""
    hooks = AppTools.HookSet()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for selector in AppTools:
            hooks.describe(selector)(lambda definition: definition.name)
    assert len(hooks.description_overrides_sync()) == 4


def test_overrides_go_into_a_turn() -> None:
    """The pairs are what `describe_many_tools` and the dialects take."""
    hooks = AppTools.HookSet()
    hooks.describe(AppTools.data.get_user)(lambda definition: "Who is it?")
    overrides = hooks.description_overrides_sync()
    tools = openai_chat.tools(AppTools, descriptions=overrides)
    described = {each["function"]["name"]: each["function"]["description"] for each in tools}
    assert described["get_user"] == "Who is it?"
    assert described["web_search"] == "Search the public web."


@pytest.mark.parametrize("answer", [3, ["text"], b"text"])
def test_a_description_is_a_text(answer: Any) -> None:
    """A hook that gives neither a text nor None is a HookError that names hook and tool."""
    hooks = AppTools.HookSet()
    hooks.describe(AppTools.web_search)(lambda definition: answer)
    with pytest.raises(HookError, check=lambda error: error.tool == "web_search") as caught:
        hooks.description_overrides_sync()
    assert caught.value.tool == "web_search"
    assert "<lambda>" in str(caught.value.hook)


def test_a_raising_description_hook_is_a_hook_error() -> None:
    """A hook that raises is named, with its tool, from the original."""
    hooks = AppTools.HookSet()

    async def broken(definition: ToolDef) -> str:
        raise LookupError("no catalogue")

    hooks.describe(AppTools.web_search)(broken)
    with pytest.raises(HookError, check=lambda error: error.tool == "web_search") as caught:
        asyncio.run(hooks.description_overrides())
    assert isinstance(caught.value.__cause__, LookupError)
    assert caught.value.tool == "web_search"
    assert str(caught.value.hook).endswith("broken")
