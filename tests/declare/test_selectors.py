"""The laws of selectors: names, order, and their use as a field type."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from lutum_py import Selector, ToolAvailability, Toolset
from lutum_py.errors import UnknownToolError
from lutum_py.typing import AnySelector
from tests.sample_tools import AppTools, DataTools, DeepTools, PingTools, offered, sent, web_search


class Empty(Toolset):
    pass


class NextTools(BaseModel):
    """A model can be asked which tools it wants next."""

    tools: list[AppTools.Selector]


def test_a_selector_says_what_it_selects() -> None:
    """A selector has its wire name, path, definition and class of calls."""
    selector = DeepTools.app.data.get_user
    assert isinstance(selector, Selector)
    assert selector.name == str(selector) == "app_get_user"
    assert selector.path == ("app", "data", "get_user")
    assert selector.definition.name == "app_get_user"
    assert selector.Call.__name__ == "GetUserArgsCall"
    assert selector.Call is DataTools.get_user.Call
    assert repr(selector) == "<Selector DeepTools.app.data.get_user: 'app_get_user'>"


def test_selectors_are_hashable_and_ordered_by_declaration() -> None:
    """Selectors work as keys and sort as they are declared, within one toolset."""
    mixed: list[AnySelector] = [AppTools.data.get_user, AppTools.web_search]
    assert len({*AppTools, *mixed}) == 4
    assert sorted(mixed) == [AppTools.web_search, AppTools.data.get_user]
    foreign: list[AnySelector] = [AppTools.web_search, PingTools.ping]
    with pytest.raises(TypeError, match="not supported"):
        sorted(foreign)
    assert copy.copy(AppTools.web_search) is copy.deepcopy(AppTools.web_search)


def test_all_names_every_selector() -> None:
    """`Selector.all()` gives every member, nested ones included."""
    outer: Any = AppTools.Selector
    inner: Any = AppTools.data.Selector
    assert outer.all() == tuple(AppTools)
    assert inner.all() == tuple(AppTools.data)


def test_names_lead_to_selectors() -> None:
    """`try_from_name` gives a selector or None, `from_name` raises; nested ones count."""
    outer: Any = AppTools.Selector
    inner: Any = AppTools.data.Selector
    assert outer.try_from_name("get_user") is AppTools.data.get_user
    assert outer.try_from_name("nothing") is None
    assert outer.from_name("web_search") is AppTools.web_search
    assert inner.try_from_name("web_search") is None
    with pytest.raises(
        UnknownToolError,
        check=lambda error: (error.name, error.suggestion) == ("web-search", "web_search"),
    ):
        outer.from_name("web-search")


def test_a_selector_is_a_field_of_a_model() -> None:
    """As a field, a selector is read from its wire name and written as it."""
    wanted = NextTools.model_validate_json('{"tools": ["get_user", "delete_file"]}')
    assert wanted.tools == [AppTools.data.get_user, AppTools.delete_file]
    assert wanted.model_dump(mode="json") == {"tools": ["get_user", "delete_file"]}
    assert NextTools(tools=[AppTools.web_search]).tools == [AppTools.web_search]
    available = ToolAvailability.only(wanted.tools)
    assert offered(AppTools, available) == ["delete_file", "get_user"]


def test_the_schema_of_a_selector_is_the_enum_of_names() -> None:
    """The JSON schema lists the wire names, for reading and for writing."""
    schema = TypeAdapter(AppTools.Selector).json_schema()
    assert schema["enum"] == ["web_search", "delete_file", "get_user", "list_orders"]
    assert TypeAdapter(AppTools.data.Selector).json_schema()["enum"] == ["get_user", "list_orders"]


@pytest.mark.parametrize("given", ["nothing", 3, PingTools.ping, DataTools.get_user])
def test_a_wrong_name_is_told_which_are_right(given: Any) -> None:
    """What is no selector of the toolset is refused with the names that are right."""
    with pytest.raises(
        ValidationError, match="'web_search', 'delete_file', 'get_user' or 'list_orders'"
    ):
        NextTools(tools=[given])


def test_an_empty_toolset_has_nothing_to_choose() -> None:
    """The selector of a toolset without tools takes no value."""
    with pytest.raises(ValidationError, match="no tools"):
        TypeAdapter(Empty.Selector).validate_python("x")


def test_a_call_made_by_hand_has_a_free_selector() -> None:
    """A call that comes through no toolset matches no member of one."""
    call = web_search.Call(sent("web_search", query="x"), web_search.Input(query="x"))
    assert isinstance(call.selector, AnySelector)
    assert call.selector.toolset is None
    assert not AppTools.web_search.matches(call)
