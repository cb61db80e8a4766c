"""The laws of toolset classes: an enum-like group of tools."""

from __future__ import annotations

import copy
import pickle
import traceback
import typing
from types import new_class
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Finished,
    HandledCall,
    HookSet,
    NeedsTools,
    Selector,
    ToolDef,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import (
    HookError,
    InvalidArgumentsError,
    ToolConstraintError,
    ToolDefinitionError,
    UnknownToolError,
)
from tests.cases import over
from tests.declare.defining import define
from tests.sample_tools import (
    AppTools,
    DataTools,
    PingTools,
    delete_file,
    input_of,
    opened,
    ping,
    said,
    sent,
    web_search,
)


class Empty(Toolset):
    pass


def test_a_toolset_iterates_like_an_enum() -> None:
    """Iteration gives the selectors in the order of declaration, nested ones in place."""
    assert [selector.name for selector in AppTools] == [
        "web_search",
        "delete_file",
        "get_user",
        "list_orders",
    ]
    assert list(reversed(AppTools)) == list(AppTools)[::-1]
    assert len(AppTools) == 4
    assert sorted(set(AppTools)) == list(AppTools)


def test_membership_goes_by_selector_and_wire_name() -> None:
    """A selector or wire name of the toolset is in it, and nothing else is."""
    assert AppTools.web_search in AppTools
    assert "get_user" in AppTools
    assert AppTools.data.get_user in AppTools
    assert "nothing" not in AppTools
    assert DataTools.get_user not in AppTools
    assert PingTools.ping not in AppTools
    assert 3 not in AppTools
    assert [] not in AppTools


def test_a_wire_name_looks_a_selector_up() -> None:
    """Indexing by wire name gives the selector, and a wrong name is told which is near."""
    assert AppTools["get_user"] is AppTools.data.get_user
    with pytest.raises(
        UnknownToolError,
        check=lambda error: (error.name, error.suggestion) == ("get_usr", "get_user"),
    ) as caught:
        AppTools["get_usr"]
    assert (caught.value.name, caught.value.suggestion) == ("get_usr", "get_user")
    with pytest.raises(UnknownToolError, check=lambda error: error.name == "zzzzzz"):
        AppTools["zzzzzz"]
    with pytest.raises(UnknownToolError, check=lambda error: error.name == "3"):
        AppTools[typing.cast("Any", 3)]


def test_an_empty_toolset_is_still_true() -> None:
    """A toolset is a class, so it is true, also where it has no tools."""
    assert bool(Empty)
    assert len(Empty) == 0
    assert repr(Empty) == "<toolset Empty: no tools>"


def test_the_repr_shows_members_and_what_is_off() -> None:
    """The repr names each path, and says which tools are off."""
    assert repr(AppTools) == (
        "<toolset AppTools: web_search, delete_file (off), data.get_user, data.list_orders>"
    )


def test_members_are_fixed() -> None:
    """Members can neither be assigned nor deleted nor added."""
    closed: Any = AppTools
    for name in ("web_search", "anything", "_offer"):
        with pytest.raises(AttributeError, match=f"AppTools.{name}"):
            setattr(closed, name, 1)
    with pytest.raises(AttributeError, match=r"AppTools.web_search"):
        del closed.web_search
    assert AppTools.web_search.name == "web_search"


@over(
    "given, meant",
    [
        ((AppTools, "delete_fil"), "AppTools.delete_file"),
        ((AppTools, "get_usr"), "AppTools.data.get_user"),
        ((AppTools, "get_user"), "AppTools.data.get_user"),
        ((AppTools.data, "get_usr"), "AppTools.data.get_user"),
        ((AppTools, "dat"), "AppTools.data"),
        ((AppTools, "read_trn"), "AppTools.read_turn"),
    ],
)
def test_a_misspelt_member_is_told_what_was_meant(given: tuple[Any, str], meant: str) -> None:
    """What is no member is an AttributeError that names the nearest one, also a nested one."""
    toolset, name = given
    with pytest.raises(AttributeError, match=f"`{name}`. Did you mean `{meant}`\\?") as caught:
        getattr(toolset, name)
    assert "Did you mean" not in traceback.format_exception_only(caught.value)[-1].split("?", 1)[1]


def test_what_is_like_no_member_is_told_the_members() -> None:
    """Without a near name the error lists the members; names of others' protocols are passed by."""
    with pytest.raises(AttributeError, match=r"no `zzz`\. Its members: `web_search`, .*`data`\.$"):
        _ = AppTools.zzz  # type: ignore[attr-defined]
    assert not hasattr(AppTools, "_zzz")
    assert not hasattr(AppTools, "__wrapped__")


def test_the_docstring_of_a_toolset_can_be_set() -> None:
    """Dunder attributes are Python's own business."""
    made = define({"ping": tool(ping)})
    made.__doc__ = "Ping."
    assert made.__doc__ == "Ping."


def test_a_toolset_has_no_instances() -> None:
    """Calling a toolset is an error that says what to do instead."""
    for given in ((), (1,)):
        with pytest.raises(TypeError, match=r"AppTools has no instances.*AppTools\.HookSet\(\)"):
            typing.cast("Any", AppTools)(*given)


def test_methods_are_allowed_in_the_body() -> None:
    """Functions, class and static methods, properties, and private names may stand in the body."""

    class Sample(Toolset):
        _cache = 3
        ping = tool(ping)

        @classmethod
        def count(cls) -> int:
            return len(cls) + cls._cache

        @staticmethod
        def two() -> int:
            return 2

        def plain(self) -> None: ...

        @property
        def shown(self) -> str: ...  # type: ignore[empty-body]

    assert (Sample.count(), Sample.two()) == (4, 2)


def test_a_tool_def_is_a_member() -> None:
    """A tool that is known by its schema only is declared like any other."""
    made = define(
        {"echo": tool(ToolDef.from_json_schema(name="echo-it", input_schema={"type": "object"}))}
    )
    assert made["echo-it"] is made.echo


def test_a_toolset_defined_in_a_function_works() -> None:
    """A class in a function has members whose names differ from those of the tools around it."""

    @tool_fn
    def local(x: int) -> int:
        return x

    class Local(Toolset):
        held = tool(local)

    assert Local.held.path == ("held",)
    call = Local.parse_tool_call(sent("local", x=3))
    assert call.call_sync().result == "3"
    assert copy.deepcopy(call).input == call.input
    assert repr(Local.held).startswith(
        "<Selector test_a_toolset_defined_in_a_function_works.<locals>"
    )


def test_toolsets_selectors_and_calls_pickle() -> None:
    """A toolset pickles by name, a selector by its toolset, and a call by its selector."""
    call = AppTools.parse_tool_call(sent("get_user", user_id="alice"))
    for thing in (AppTools, AppTools.data, AppTools.data.get_user, AppTools.Selector):
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert copy.deepcopy(thing) is thing
    again = pickle.loads(pickle.dumps(call))
    assert again.selector is AppTools.data.get_user
    assert again.parts == call.parts


def test_calls_and_handled_calls_of_all_tools() -> None:
    """`Call` and `Handled` stand for those of all tools, for annotations and `isinstance`."""
    call = AppTools.parse_tool_call(sent("get_user", user_id="alice"))
    other = PingTools.parse_tool_call(sent("ping"))
    assert isinstance(call, AppTools.Call)
    assert not isinstance(other, AppTools.Call)
    handled = call.handled({"name": "Alice"})
    assert isinstance(handled, AppTools.Handled)
    assert not isinstance(other.handled("x"), AppTools.Handled)
    assert not isinstance(call, Empty.Call)
    assert Empty.Handled is HandledCall


def test_the_base_of_policies_is_one_class() -> None:
    """`Hooks` is the same class at each access, for the toolset and for a view of it."""
    assert AppTools.Hooks is AppTools.Hooks
    assert AppTools.data.Hooks is DataTools.Hooks
    assert AppTools.Hooks.__qualname__ == "AppTools.Hooks"
    assert AppTools.Hooks.__module__ == "tests.sample_tools"
    text = str(AppTools.Hooks.__doc__)
    assert "`delete_file_gate`" in text
    assert "data_hook" not in text


def test_a_hook_set_is_made_by_the_toolset() -> None:
    """`HookSet()` makes an empty hook set, and checks what is nested in it."""
    hooks = AppTools.HookSet()
    assert isinstance(hooks, HookSet)
    assert hooks.toolset is AppTools
    assert repr(hooks) == "<HookSet of AppTools: 0 hooks>"
    with pytest.raises(HookError):
        AppTools.HookSet(data=AppTools.HookSet())
    with pytest.raises(HookError):
        AppTools.HookSet(data=typing.cast("Any", None))
    with pytest.raises(HookError):
        AppTools.HookSet(web_search=DataTools.HookSet())


def test_a_nested_member_may_be_called_cls() -> None:
    """The names of members do not meet those of the library's own parameters."""
    made = define({"cls": toolset(DataTools), "self": toolset(PingTools)})
    inner = DataTools.HookSet()
    assert made.HookSet(cls=inner, self=PingTools.HookSet())[made.cls] is inner


def test_definitions_come_in_the_order_of_declaration() -> None:
    """`definitions` lists every tool, those that are off included, nested ones in place."""
    assert [each.name for each in AppTools.definitions()] == [
        "web_search",
        "delete_file",
        "get_user",
        "list_orders",
    ]
    assert AppTools.definitions() is AppTools.definitions()
    assert AppTools.definitions()[0] == web_search.definition


def test_definitions_for_some_tools() -> None:
    """`definitions_for` takes selectors and names, and gives each tool once, in order."""
    found = AppTools.definitions_for([DataTools.get_user, "delete_file", AppTools.data.get_user])
    assert [each.name for each in found] == ["delete_file", "get_user"]
    assert [each.name for each in AppTools.definitions_for("web_search")] == ["web_search"]
    with pytest.raises(UnknownToolError):
        AppTools.definitions_for(["nothing"])


def test_default_selectors_are_those_that_are_on() -> None:
    """`default_selectors` leaves out what is off."""
    assert AppTools.default_selectors() == (
        AppTools.web_search,
        AppTools.data.get_user,
        AppTools.data.list_orders,
    )
    assert DataTools.default_selectors() == tuple(DataTools)


def test_parsing_ignores_availability() -> None:
    """`parse_tool_call` decodes a call whether its tool is on or off."""
    call = AppTools.parse_tool_call(sent("delete_file", path="notes.txt"))
    assert call.selector is AppTools.delete_file
    assert call.input == delete_file.Input(path="notes.txt")


def test_parsing_raises_what_the_model_got_wrong() -> None:
    """An unknown name and unfit arguments are errors of their own."""
    with pytest.raises(
        UnknownToolError,
        check=lambda error: (error.name, error.suggestion) == ("websearch", "web_search"),
    ):
        AppTools.parse_tool_call(sent("websearch"))
    with pytest.raises(
        InvalidArgumentsError, check=lambda error: [each.path for each in error.fields] == ["path"]
    ) as caught:
        AppTools.parse_tool_call(sent("delete_file", "c7"))
    assert (caught.value.tool, caught.value.call_id) == ("delete_file", "c7")


@over("reason", ["tool_calls", "stop", "length", "STOP", None])
def test_a_turn_needs_tools_whatever_its_finish_reason(reason: str | None) -> None:
    """A turn with calls or issues needs tools, whatever its finish reason says."""
    for call in (sent("web_search", query="x"), sent("nothing")):
        outcome = AppTools.read_turn(said(call, finish_reason=reason))
        assert isinstance(outcome, NeedsTools)
        assert outcome.round.finish_reason == reason
        outcome.round.discard()


def test_a_turn_without_calls_is_finished() -> None:
    """A turn without calls is an answer, also where its finish reason says otherwise."""
    turn = AssistantTurn(text="Hello.", finish_reason="tool_calls")
    outcome = AppTools.read_turn(turn)
    assert isinstance(outcome, Finished)
    result = outcome.result
    assert (result.text, result.finish_reason, result.usage, result.refusal) == (
        "Hello.",
        "tool_calls",
        None,
        None,
    )
    assert result.turn is turn


def test_several_hundred_calls_in_a_turn() -> None:
    """A turn may have any number of calls, and they keep their order."""
    calls = [sent("web_search", f"c{number}", query=str(number)) for number in range(500)]
    with opened(AppTools, *calls) as asked:
        assert [input_of(call).query for call in asked.tool_calls] == [str(n) for n in range(500)]


def test_a_plan_is_loaded_by_the_toolset() -> None:
    """`load_plan` takes up what `dump_json` saved, with calls of this toolset."""
    with opened(AppTools, sent("get_user", user_id="alice")) as asked:
        text = asked.plan().dump_json()
    plan = AppTools.load_plan(text)
    assert plan.toolset is AppTools
    assert [call.selector for call in plan.pending] == [AppTools.data.get_user]
    plan.discard()


def test_selecting_finds_every_member() -> None:
    """`select` takes a wire name, an own selector, or an inner one; anything else is an error."""
    assert AppTools.select("get_user") == (AppTools.data.get_user,)
    assert AppTools.select(AppTools.web_search) == (AppTools.web_search,)
    assert AppTools.select(DataTools.get_user) == (AppTools.data.get_user,)
    with pytest.raises(UnknownToolError, check=lambda error: error.name == "get_user"):
        DataTools.select(AppTools.data.get_user)
    with pytest.raises(UnknownToolError, check=lambda error: error.name == "web_search") as caught:
        AppTools.select(typing.cast("Any", web_search))
    assert caught.value.name == "web_search"


def test_runtime_toolsets_keep_odd_names_under_brackets() -> None:
    """A name that is no free Python name is reached by `[]`, and hooks by the selector."""
    names = ["it's", "copy", "definitions", "x", "x_description", "_hidden", "class"]
    made = Toolset.from_definitions(
        "Odd",
        [ToolDef.from_json_schema(name=name, input_schema={"type": "object"}) for name in names],
    )
    assert [selector.name for selector in made] == names
    assert made["copy"].path == ("copy",)
    assert callable(made.definitions)
    assert made.x is made["x"]  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(made)) is made
    hooks = made.HookSet()
    for name in names:
        hooks.before(made[name])(lambda metadata, input: None)
    assert repr(hooks) == "<HookSet of Odd: 7 hooks>"


def test_a_selector_type_is_generic_for_checkers_only() -> None:
    """Selectors are instances of `Selector` and of the toolset's own selector class."""
    assert isinstance(AppTools.data.get_user, Selector)
    assert isinstance(AppTools.data.get_user, AppTools.Selector)
    assert not isinstance(DataTools.get_user, AppTools.Selector)


@pytest.mark.parametrize("given", [[1], {}, None, 3])
def test_what_names_no_tool_is_told_what_would(given: Any) -> None:
    """Anything but a wire name is an error that lists the members, hashable or not."""
    with pytest.raises(UnknownToolError, match=r"nor the name of one\. It has "):
        AppTools[given]


def test_methods_may_come_from_anywhere() -> None:
    """What a decorator made, a method of another class and private helpers are no tools."""

    def loud(function: Any) -> Any:
        def inner(cls: Any) -> str:
            return str(function(cls)).upper()

        return inner

    class Mixin:
        def greet(self) -> str:
            return "hello"

    def body(names: dict[str, Any]) -> None:
        names["ping"] = tool(ping)
        names["shout"] = classmethod(loud(lambda cls: "hey"))
        names["raw"] = loud(lambda cls: "hey")
        names["greet"] = Mixin.greet
        names["_join"] = copy.copy
        names["plain"] = lambda self: 1

    made: Any = new_class("Made", (Toolset,), {}, body)
    assert made.shout() == "HEY"
    assert made.greet(None) == "hello"


def test_a_turn_is_not_read_with_tools_that_are_not_there() -> None:
    """A name in `available` is the program's, so a wrong one is no mistake of the model's."""
    with pytest.raises(ToolConstraintError):
        AppTools.read_turn(AssistantTurn(text="Hi"), ["nope"])


def test_functions_that_were_meant_as_tools_are_named() -> None:
    """A body of plain functions, and beside members one that is no method, is no silent nothing."""
    with pytest.raises(ToolDefinitionError):

        class Kit(Toolset):
            def read(self, path: str) -> str: ...  # type: ignore[empty-body]

            def write(path: str) -> str: ...  # type: ignore[empty-body,misc]

            @staticmethod
            def helper() -> None: ...

    for source in ("def fetch(url: str): ...", "def fetch(): ...", "def fetch(*, url): ..."):
        names: dict[str, Any] = {}
        exec(f"class Box:\n    {source}", names)
        body = {"ping": tool(ping), "fetch": names["Box"].fetch}
        with pytest.raises(ToolDefinitionError):
            define(body)
    for source in ("def fetch(self): ...", "def fetch(*args): ...", "def fetch(_self): ..."):
        names = {}
        exec(f"class Box:\n    {source}", names)
        assert len(define({"ping": tool(ping), "fetch": names["Box"].fetch})) == 1


def test_an_unknown_name_is_a_key_error_that_can_be_read() -> None:
    """Looking up a name that is not there is what it is for a mapping, and says what there is."""

    class Sample(Toolset):
        ping = tool(ping)

    with pytest.raises(KeyError) as raised:
        Sample["no"]
    assert isinstance(raised.value, UnknownToolError)
    assert str(raised.value).startswith("test_an_unknown_name")
    assert "\\n" not in str(raised.value)
    assert pickle.loads(pickle.dumps(raised.value)).name == "no"
