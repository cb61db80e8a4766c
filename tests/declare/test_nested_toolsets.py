"""The laws of nesting: bound views, prefixes, and which selector stands for which path."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from lutum_py import RunNormally, Selector, ToolMetadata, Toolset, toolset
from lutum_py.errors import HookError, ToolDefinitionError, UnknownToolError
from tests.sample_tools import (
    AppTools,
    DataTools,
    DeepTools,
    GetUserArgs,
    TwinTools,
    input_of,
    opened,
    sent,
)


class Deeper(Toolset):
    deep = toolset(DeepTools, prefix="x_", off=True)


def test_tools_are_flattened_in_place() -> None:
    """Nested tools stand where their toolset is declared, at any depth, under all prefixes."""
    assert [(selector.name, ".".join(selector.path)) for selector in Deeper] == [
        ("x_app_web_search", "deep.app.web_search"),
        ("x_app_delete_file", "deep.app.delete_file"),
        ("x_app_get_user", "deep.app.data.get_user"),
        ("x_app_list_orders", "deep.app.data.list_orders"),
        ("x_query", "deep.query"),
    ]
    assert [selector.index for selector in Deeper] == [0, 1, 2, 3, 4]
    assert [each.name for each in Deeper.definitions()] == [each.name for each in Deeper]


def test_a_nested_member_is_a_bound_toolset() -> None:
    """`Outer.inner` is a toolset class whose selectors are those of the outer toolset."""
    view = DeepTools.app.data
    assert isinstance(view, type)
    assert issubclass(view, DataTools)
    assert view.get_user in DeepTools
    assert view.get_user is not DataTools.get_user
    assert view.get_user.toolset is DeepTools
    assert list(view) == list(DeepTools)[2:4]
    assert "app_get_user" in view
    assert "get_user" not in view
    assert "app_web_search" not in view
    assert repr(view) == "<toolset DeepTools.app.data: app.data.get_user, app.data.list_orders>"
    assert view.__doc__ == "Users and their orders."
    assert view.__module__ == DeepTools.__module__


def test_a_view_has_the_methods_of_its_toolset() -> None:
    """A method of the inner toolset works on the view, and sees the view's members."""
    assert (DataTools.first(), AppTools.data.first(), DeepTools.app.data.first()) == (
        "get_user",
        "get_user",
        "app_get_user",
    )


def test_views_pickle() -> None:
    """A view, its selectors and their calls come back as the same objects."""
    view = DeepTools.app.data
    call = DeepTools.parse_tool_call(sent("app_get_user", user_id="alice"))
    assert pickle.loads(pickle.dumps(view)) is view
    assert pickle.loads(pickle.dumps(view.get_user)) is view.get_user
    assert pickle.loads(pickle.dumps(view.Selector)) is view.Selector
    assert pickle.loads(pickle.dumps(call)).selector is view.get_user


def test_an_inner_selector_matches_through_every_parent() -> None:
    """A selector of the inner toolset matches calls of all paths; a bound one only its own."""
    calls = {
        "inner": DataTools.parse_tool_call(sent("get_user", user_id="a")),
        "app": AppTools.parse_tool_call(sent("get_user", user_id="a")),
        "deep": DeepTools.parse_tool_call(sent("app_get_user", user_id="a")),
        "left": TwinTools.parse_tool_call(sent("left_get_user", user_id="a")),
        "right": TwinTools.parse_tool_call(sent("right_get_user", user_id="a")),
    }
    expected: dict[Selector[Any, Any], set[str]] = {
        DataTools.get_user: {"inner", "app", "deep", "left", "right"},
        AppTools.data.get_user: {"app", "deep"},
        DeepTools.app.data.get_user: {"deep"},
        TwinTools.left.get_user: {"left"},
        TwinTools.right.get_user: {"right"},
        DataTools.list_orders: set(),
    }
    for selector, matched in expected.items():
        assert {key for key, call in calls.items() if selector.matches(call)} == matched
        assert {key for key, call in calls.items() if selector.match(call) is call} == matched
        assert {key for key, call in calls.items() if selector.match(call) is None} == (
            calls.keys() - matched
        )


def test_one_toolset_can_be_nested_twice() -> None:
    """Under two prefixes, each path has selectors and calls of its own."""
    assert [selector.name for selector in TwinTools] == [
        "left_get_user",
        "left_list_orders",
        "right_get_user",
        "right_list_orders",
    ]
    assert TwinTools.left.get_user is not TwinTools.right.get_user
    call = TwinTools.parse_tool_call(sent("right_list_orders", user_id="bob", limit=1))
    result = call.call_sync()
    assert (result.name, result.result) == ("right_list_orders", '["bob-0"]')


def test_nesting_twice_under_one_prefix_is_refused() -> None:
    """Without different prefixes the names meet, and the error names both paths."""
    with pytest.raises(
        ToolDefinitionError,
        match=r"a\.get_user and b\.get_user .*'p_get_user'.*prefix=",
    ):

        class Same(Toolset):
            a = toolset(DataTools, prefix="p_")
            b = toolset(DataTools, prefix="p_")


def test_a_view_can_be_nested_again() -> None:
    """The view of a toolset is nested like the toolset itself, and remembers both."""

    class Again(Toolset):
        users = toolset(DeepTools.app.data, prefix="y_")

    assert [selector.name for selector in Again] == ["y_app_get_user", "y_app_list_orders"]
    call = Again.parse_tool_call(sent("y_app_get_user", user_id="a"))
    assert all(
        selector.matches(call)
        for selector in (Again.users.get_user, DeepTools.app.data.get_user, DataTools.get_user)
    )
    assert Again.HookSet()[Again.users].toolset is DataTools


def test_off_hides_a_tool_or_a_whole_group() -> None:
    """What is off, or within a group that is off, is left out by default and still there."""
    assert [selector.name for selector in TwinTools.default_selectors()] == [
        "left_get_user",
        "left_list_orders",
    ]
    assert Deeper.default_selectors() == ()
    assert [selector.is_off for selector in DeepTools] == [False, True, False, False, False]
    assert [selector.name for selector in DeepTools.app.default_selectors()] == [
        "app_web_search",
        "app_get_user",
        "app_list_orders",
    ]


def test_an_inner_selector_stands_for_every_path() -> None:
    """The outer toolset takes an inner selector for each path to it; none is an error."""
    assert TwinTools.select(DataTools.get_user) == (
        TwinTools.left.get_user,
        TwinTools.right.get_user,
    )
    assert DeepTools.select(AppTools.data.get_user) == (DeepTools.app.data.get_user,)
    assert [each.name for each in TwinTools.definitions_for([DataTools.list_orders])] == [
        "left_list_orders",
        "right_list_orders",
    ]
    for stranger in (DeepTools.query, AppTools.data.get_user):
        with pytest.raises(UnknownToolError, match="TwinTools"):
            TwinTools.select(stranger)


def test_a_turn_can_be_read_with_a_view() -> None:
    """A bound view reads turns by itself; its calls belong to the outer toolset."""
    hooks = DataTools.HookSet()
    hooks.on(DataTools.get_user)(lambda metadata, input: RunNormally(GetUserArgs(user_id="bob")))
    calls = sent("app_get_user", user_id="alice"), sent("app_web_search", "c2", query="x")
    with opened(DeepTools.app.data, *calls) as asked:
        assert [issue.reason for issue in asked.recoverable_tool_call_issues] == ["unknown_tool"]
        for applied in (hooks, DeepTools.app.data.HookSet().with_extended(hooks)):
            plan = asked.apply_hooks_sync(applied)
            assert [input_of(call).user_id for call in plan.pending] == ["bob"]
            assert plan.pending[0].selector is DeepTools.app.data.get_user


def test_a_hook_set_of_a_view_takes_the_views_own_selectors() -> None:
    """Hooks for a bound view are registered by the members of the view, or those of its origin."""
    view = DeepTools.app.data
    for selector in (view.get_user, DataTools.get_user):
        hooks = view.HookSet()
        hooks.on(selector)(lambda metadata, input: RunNormally(GetUserArgs(user_id="bob")))
        with opened(view, sent("app_get_user", user_id="alice")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert [input_of(call).user_id for call in plan.pending] == ["bob"]
    with pytest.raises(HookError):
        view.HookSet().on(DeepTools.query)


def test_prefixes_reach_the_definitions_and_results() -> None:
    """The wire name stands in definitions, calls and results; the schemas are the tool's own."""
    selector = DeepTools.app.data.get_user
    assert selector.definition.name == "app_get_user"
    assert selector.definition.input_schema == DataTools.get_user.definition.input_schema
    assert DataTools.get_user.definition.name == "get_user"
    call = DeepTools.parse_tool_call(
        ToolMetadata(id="c1", name="app_get_user", arguments='{"user_id": "alice"}')
    )
    assert (call.name, call.complete({"name": "Alice"}).name) == ("app_get_user", "app_get_user")
