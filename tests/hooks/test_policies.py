"""The laws of policies: objects whose methods are hooks by their names."""

from __future__ import annotations

import types
from typing import Any

import pytest

from lutum_py import (
    Block,
    Complete,
    HandledCall,
    Reject,
    RejectedCall,
    RunNormally,
    ToolDecision,
    ToolDef,
    ToolMetadata,
    ToolResult,
)
from lutum_py import policy as marks
from lutum_py.errors import HookError
from tests.cases import over
from tests.sample_tools import AppTools, DataTools, GetUserArgs, User, sent, web_search


class DataPolicy:
    """Hooks of all five kinds, and methods that are its own business."""

    def __init__(self, banned: str) -> None:
        self.banned = banned
        self.seen: list[str] = []

    def get_user_hook(
        self, metadata: ToolMetadata, input: GetUserArgs
    ) -> ToolDecision[GetUserArgs, User]:
        return Reject("banned") if input.user_id == self.banned else RunNormally(input)

    async def list_orders_gate(self, metadata: ToolMetadata, input: Any) -> Block | None:
        return Block("no orders") if input.user_id == self.banned else None

    def get_user_before_hook(self, metadata: ToolMetadata, input: Any) -> None:
        self.seen.append(metadata.id)

    def get_user_after_hook(self, call: Any, result: ToolResult) -> None: ...

    def get_user_description_hook(self, definition: ToolDef) -> str:
        return f"Not {self.banned}."

    def helper(self) -> None: ...

    def _private_hook(self) -> None: ...

    def webhooks(self) -> None: ...


def count(hooks: Any) -> str:
    return repr(hooks).split(": ")[1].removesuffix(">")


def functions(hooks: Any, selector: Any, phase: Any = "execution") -> list[Any]:
    return [hook.function for hook in hooks._hooks_for(selector, phase)]


def test_a_policy_registers_what_it_defines() -> None:
    """`register_hooks` registers each method that is a hook, bound to the policy, and no other."""
    policy = DataPolicy("mallory")
    hooks = DataTools.HookSet()
    hooks.register_hooks(policy)
    assert count(hooks) == "5 hooks"
    assert functions(hooks, DataTools.get_user) == [policy.get_user_hook]
    call = DataTools.parse_tool_call(sent("get_user", user_id="mallory"))
    assert isinstance(call.hook_sync(hooks), RejectedCall)
    fine = DataTools.parse_tool_call(sent("get_user", "c9", user_id="alice"))
    assert fine.hook_sync(hooks) is fine
    assert policy.seen == ["c9"]
    assert hooks.description_overrides_sync() == [(DataTools.get_user, "Not mallory.")]


def test_with_hooks_leaves_the_first_as_it_was() -> None:
    """`with_hooks` gives a copy with the policy's hooks."""
    hooks = DataTools.HookSet()
    assert count(hooks.with_hooks(DataPolicy("x"))) == "5 hooks"
    assert count(hooks) == "0 hooks"


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    """A method that ends like a hook of no member is a HookError that suggests a near one."""

    class Typo:
        def get_usr_hook(self, metadata: Any, input: Any) -> None: ...

    hooks = DataTools.HookSet()
    with pytest.raises(HookError, check=lambda error: error.hook == "get_usr_hook") as caught:
        hooks.register_hooks(Typo())
    assert caught.value.hook == "get_usr_hook"
    with pytest.raises(HookError):
        AppTools.HookSet().register_hooks(Typo())


@over(
    "name",
    [
        *("get_user_hok", "get_user_hooks", "get_user_Hook", "get_userhook", "get_user_hoook"),
        *("list_orders_gates", "List_ordersGate", "list_orders_gat"),
    ],
)
def test_a_slip_in_the_ending_is_refused_too(name: str) -> None:
    """A method whose name is nearly that of a hook would never be asked."""
    body = {name: lambda self, metadata, input: Reject("no")}
    hooks: Any = AppTools.HookSet()
    with pytest.raises(HookError, match="The name of another method begins with `_`") as caught:
        hooks.data.register_hooks(type("Policy", (), body)())
    assert caught.value.hook == name
    with pytest.raises(HookError):
        type("Policy", (DataTools.Hooks,), body)


def test_other_words_are_methods_like_any_other() -> None:
    """A word that only looks a little like an ending is no hook."""
    words = ["to_date", "add_book", "webhooks", "hooks", "gate", "navigate", "check_late", "_a_hok"]
    policy = type("Policy", (DataTools.Hooks,), {word: lambda self: None for word in words})()
    assert count(DataTools.HookSet().with_hooks(policy)) == count(DataTools.HookSet())


def test_a_policy_with_a_wrong_name_registers_nothing() -> None:
    """Where one name is wrong, no other method of the policy is registered."""

    class Half:
        def get_user_hook(self, metadata: Any, input: Any) -> None: ...
        def zzz_gate(self, metadata: Any, input: Any) -> None: ...

    hooks = DataTools.HookSet()
    with pytest.raises(HookError, check=lambda error: error.hook == "zzz_gate"):
        hooks.register_hooks(Half())
    assert count(hooks) == "0 hooks"


def test_data_attributes_are_no_hooks() -> None:
    """An attribute that cannot be called is data, and None takes an inherited hook out."""

    class Quiet(DataPolicy):
        slack_hook = "https://example.org"
        get_user_hook = None  # type: ignore[assignment]

    hooks = DataTools.HookSet().with_hooks(Quiet("x"))
    assert count(hooks) == "4 hooks"
    assert functions(hooks, DataTools.get_user) == []


def test_inherited_and_instance_methods_count() -> None:
    """Overridden methods count once, and functions of the instance count too."""

    class More(DataPolicy):
        def get_user_hook(self, metadata: ToolMetadata, input: GetUserArgs) -> Complete[User]:
            return Complete(User(name=self.banned))

    policy: Any = More("x")
    policy.list_orders_hook = lambda metadata, input: RunNormally(input)
    hooks = DataTools.HookSet().with_hooks(policy)
    assert functions(hooks, DataTools.get_user) == [policy.get_user_hook]
    assert functions(hooks, DataTools.list_orders) == [policy.list_orders_hook]
    call = DataTools.parse_tool_call(sent("get_user", user_id="y"))
    outcome = call.hook_sync(hooks)
    assert isinstance(outcome, HandledCall)
    assert outcome.output == User(name="x")


def test_a_module_can_be_a_policy() -> None:
    """Anything with functions of those names is a policy, also a module or an object with slots."""
    module = types.ModuleType("policy")
    module.get_user_gate = lambda metadata, input: None  # type: ignore[attr-defined]

    class Slotted:
        __slots__ = ()

        def get_user_gate(self, metadata: Any, input: Any) -> None: ...

    hooks = DataTools.HookSet().with_hooks(module).with_hooks(Slotted())
    assert count(hooks) == "2 hooks"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (DataPolicy, r"Pass an instance: `DataPolicy\(\)`"),
        (DataTools.HookSet(), r"Use `hooks.extend\(other\)`"),
        (count, r"Register one function by `@hooks.on\(selector\)`"),
        (None, "not None. Write a class with hooks"),
        ([count], "Write a class with hooks, and pass an instance"),
        (object(), "Write a class with hooks"),
    ],
)
def test_what_would_register_nothing_is_refused(given: Any, remedy: str) -> None:
    """A class, a hook set, functions and None are no policies, and each is told the way."""
    with pytest.raises(HookError, match=remedy):
        DataTools.HookSet().register_hooks(given)


def test_the_base_class_checks_when_it_is_inherited() -> None:
    """A class that inherits from `AppTools.Hooks` with a wrong name is refused where it stands."""
    with pytest.raises(HookError, check=lambda error: error.hook == "web_serch_hook"):

        class Wrong(AppTools.Hooks):
            def web_serch_hook(self, metadata: Any, input: Any) -> None: ...

    class Right(AppTools.Hooks):
        plain_hook = "data"

        def web_search_hook(self, metadata: Any, input: Any) -> RunNormally[Any]:
            return RunNormally(web_search.Input(query=input.query.strip()))

        def _own_hook(self) -> None: ...

    hooks = AppTools.HookSet().with_hooks(Right())
    assert count(hooks) == "1 hook"
    call = AppTools.parse_tool_call(sent("web_search", query="  x "))
    outcome: Any = call.hook_sync(hooks)
    assert outcome.input.query == "x"


def test_the_base_class_gives_no_hooks_of_its_own() -> None:
    """What a policy does not define is not registered."""

    class Bare(AppTools.Hooks):
        pass

    assert count(AppTools.HookSet().with_hooks(Bare())) == "0 hooks"
    assert isinstance(Bare(), AppTools.Hooks)


class Marked:
    """Marked hooks of all five kinds, under names that say nothing."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @marks.on(DataTools.get_user)
    def nobody(self, metadata: ToolMetadata, input: GetUserArgs) -> ToolDecision[GetUserArgs, User]:
        return Reject("nobody") if input.user_id == "nobody" else RunNormally(input)

    @marks.gate(DataTools.get_user)
    @marks.gate(DataTools.list_orders)
    async def zzz_gate(self, metadata: ToolMetadata, input: Any) -> Block | None:
        return None

    @marks.before()
    def noted(self, metadata: ToolMetadata, input: Any) -> None:
        self.seen.append(metadata.id)

    @marks.after(DataTools.get_user)
    def looked(self, call: Any, result: ToolResult) -> None: ...

    @marks.describe(DataTools.get_user)
    def told(self, definition: ToolDef) -> str:
        return "Told."

    def get_user_hook(self, metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input)


def test_marked_methods_are_registered_whatever_their_names() -> None:
    """Each mark counts, bound to the policy, in the order of definition and among named ones."""
    policy, hooks = Marked(), DataTools.HookSet()
    hooks.register_hooks(policy)
    assert count(hooks) == "7 hooks"
    assert functions(hooks, DataTools.get_user) == [policy.nobody, policy.get_user_hook]
    assert functions(hooks, DataTools.get_user, "gate") == [policy.zzz_gate]
    assert functions(hooks, DataTools.list_orders, "gate") == [policy.zzz_gate]
    assert functions(hooks, DataTools.list_orders, "before") == [policy.noted]
    assert functions(hooks, DataTools.get_user, "after") == [policy.looked]
    assert hooks.description_overrides_sync() == [(DataTools.get_user, "Told.")]
    call = DataTools.parse_tool_call(sent("get_user", user_id="nobody"))
    assert isinstance(call.hook_sync(DataTools.HookSet().with_hooks(policy)), RejectedCall)


def test_a_mark_of_an_inner_tool_stands_for_each_path() -> None:
    """A policy of inner selectors serves every toolset that nests them."""
    hooks = AppTools.HookSet()

    class Inner:
        @marks.on(DataTools.get_user)
        def nobody(self, metadata: ToolMetadata, input: GetUserArgs) -> Reject:
            return Reject("nobody")

    hooks.register_hooks(Inner())
    assert len(functions(hooks, AppTools.data.get_user)) == 1


def test_a_mark_of_a_nested_toolset_stands_for_its_tools() -> None:
    """A method may be a gate of a group; an execution hook it may not be."""
    hooks = AppTools.HookSet()

    class Closed:
        @marks.gate(AppTools.data)
        def closed(self, metadata: ToolMetadata, input: Any) -> Block:
            return Block("closed")

    hooks.register_hooks(Closed())
    assert len(functions(hooks, AppTools.data.get_user, "gate")) == 1
    assert functions(hooks, AppTools.web_search, "gate") == []
    with pytest.raises(HookError):
        marks.on(AppTools.data)  # type: ignore[call-overload]


def test_marks_are_inherited_taken_out_and_kept_by_static_methods() -> None:
    """An override is the hook still, None takes it out, and a static method may carry a mark."""

    class Less(Marked):
        zzz_gate: Any = None

        def nobody(self, metadata: Any, input: Any) -> Any: ...

        @staticmethod
        @marks.on(DataTools.get_user)  # type: ignore[arg-type]
        def free(metadata: Any, input: Any) -> RunNormally[Any]:
            return RunNormally(input)

    policy, hooks = Less(), DataTools.HookSet()
    hooks.register_hooks(policy)
    found = functions(hooks, DataTools.get_user)
    assert found == [policy.nobody, policy.get_user_hook, policy.free]
    assert functions(hooks, DataTools.get_user, "gate") == []
    assert functions(hooks, DataTools.list_orders, "before") == [policy.noted]
    policy.noted = refined = lambda metadata, input: None  # type: ignore[method-assign]
    hooks = DataTools.HookSet()
    hooks.register_hooks(policy)
    assert functions(hooks, DataTools.list_orders, "before") == [refined]


def test_a_base_of_policies_does_not_look_at_marked_names() -> None:
    """What `Hooks` checks when it is inherited are the names of unmarked methods."""

    class Fine(DataTools.Hooks):
        @marks.gate()
        def any_gate(self, metadata: Any, input: Any) -> None: ...

    class Finer(Fine):
        def any_gate(self, metadata: Any, input: Any) -> None: ...

    hooks = DataTools.HookSet()
    hooks.register_hooks(Fine())
    hooks.register_hooks(Finer())
    assert count(hooks) == "2 hooks"


def test_a_mark_for_a_tool_that_is_not_there_registers_nothing() -> None:
    """Where one mark fits no tool of the toolset, no method is registered."""
    inner: Any = AppTools.web_search

    class Other:
        @marks.before()
        def first(self, metadata: Any, input: Any) -> None: ...

        @marks.on(inner)
        def second(self, metadata: Any, input: Any) -> Any: ...

    hooks = DataTools.HookSet()
    with pytest.raises(HookError):
        hooks.register_hooks(Other())
    assert count(hooks) == "0 hooks"


def test_marks_take_selectors_and_stand_above_methods() -> None:
    """What is no selector, or no method, is refused where it is written."""
    bad: Any = lambda metadata, input: None  # noqa: E731
    with pytest.raises(HookError):
        marks.on(bad)
    bad = None
    for verb in (marks.on, marks.describe):
        with pytest.raises(HookError, match="takes the selector of a tool, not None"):
            verb(bad)
    with pytest.raises(HookError):
        marks.gate()(3)  # type: ignore[call-overload]
    with pytest.raises(HookError, match="marks methods, not <class 'dict'>"):
        marks.gate()(dict)  # type: ignore[call-overload]


def test_one_marked_method_of_two_tools() -> None:
    """A method that is marked with two tools is registered for both."""

    class Both:
        @marks.on(AppTools.web_search, AppTools.data.get_user)
        def rule(self, metadata: ToolMetadata, input: Any) -> Reject:
            return Reject("never")

    hooks = AppTools.HookSet()
    hooks.register_hooks(Both())
    assert repr(hooks) == "<HookSet of AppTools: 2 hooks>"
