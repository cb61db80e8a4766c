"""The laws of hook sets: who is registered where, in which order."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    HandledCall,
    HookSet,
    Reject,
    RejectedCall,
    RunNormally,
    ToolDecision,
    ToolMetadata,
    Toolset,
    toolset,
)
from lutum_py.errors import HookError, MisuseError
from tests.cases import over
from tests.hooks.asked import parse
from tests.sample_tools import (
    ALICE,
    AppTools,
    DataTools,
    DeepTools,
    GetUserArgs,
    PingTools,
    TwinTools,
    User,
    sent,
)

PHASES = ("hook", "gate", "before_hook", "after_hook", "description_hook")
ENDINGS = dict(zip(PHASES, ("execution", "gate", "before", "after", "description"), strict=True))


def nothing(*_: object) -> None:
    """A hook that is registered, never asked."""


def asked(hooks: HookSet[Any], selector: Any, phase: Any = "gate") -> list[Any]:
    return [hook.function for hook in hooks._hooks_for(selector, phase)]


def tagged(name: str) -> Any:
    def hook(*_: object) -> None: ...

    hook.__qualname__ = name
    return hook


def test_decorators_give_the_function_back() -> None:
    """Each typed decorator registers the function and gives it back as it was."""
    hooks = AppTools.HookSet()

    def hook(metadata: ToolMetadata, input: GetUserArgs) -> ToolDecision[GetUserArgs, User]:
        return RunNormally(input)

    get_user = AppTools.data.get_user
    assert hooks.on(get_user)(hook) is hook
    for register in (hooks.gate, hooks.before, hooks.describe):
        assert register(get_user)(nothing) is nothing
    for register in (hooks.gate, hooks.before):
        assert register()(nothing) is nothing
    assert hooks.after(get_user)(nothing) is nothing
    assert hooks.after()(nothing) is nothing
    assert repr(hooks) == "<HookSet of AppTools: 8 hooks>"
    assert asked(hooks, get_user, "execution") == [hook]
    assert [asked(hooks, get_user, phase) for phase in ("gate", "before", "after")] == [
        [nothing, nothing]
    ] * 3
    assert asked(hooks, get_user, "description") == [nothing]
    assert asked(hooks, AppTools.web_search, "after") == [nothing]


@over("ending", PHASES)
def test_generated_names_register_and_copy(ending: str) -> None:
    """`register_` changes the hook set; `with_` gives another, and leaves the first as it was."""
    hooks: Any = AppTools.HookSet()
    phase = ENDINGS[ending]
    assert getattr(hooks, f"register_web_search_{ending}")(nothing) is None
    more = getattr(hooks, f"with_delete_file_{ending}")(nothing)
    assert more is not hooks
    assert asked(hooks, AppTools.web_search, phase) == [nothing]
    assert asked(hooks, AppTools.delete_file, phase) == []
    assert asked(more, AppTools.web_search, phase) == [nothing]
    assert asked(more, AppTools.delete_file, phase) == [nothing]
    inner: Any = hooks.data
    inner_before = repr(inner)
    assert (
        repr(getattr(inner, f"with_get_user_{ending}")(nothing)) == "<HookSet of DataTools: 1 hook>"
    )
    assert repr(inner) == inner_before == "<HookSet of DataTools: 0 hooks>"


def test_an_unknown_attribute_has_a_suggestion() -> None:
    """A name that is not there is an AttributeError with a near one, as `hasattr` wants it."""
    hooks: Any = AppTools.HookSet()
    with pytest.raises(AttributeError, match="Did you mean `register_web_search_hook`"):
        _ = hooks.register_websearch_hook
    with pytest.raises(
        AttributeError,
        match=r"no `zzz`. Its tools are `web_search`, `delete_file`, its nested sets `data`",
    ):
        _ = hooks.zzz
    assert not hasattr(hooks, "register_data_hook")
    assert not hasattr(hooks, "__wrapped__")
    assert {"data", "with_web_search_gate", "register_hooks"} <= set(dir(hooks))


def test_what_is_no_function_cannot_be_registered() -> None:
    """Registering something that cannot be called is an error that says what a hook is."""
    hooks: Any = AppTools.HookSet()
    with pytest.raises(HookError, match="A gate is a function, not 3"):
        hooks.register_web_search_gate(3)
    with pytest.raises(HookError, match="An execution hook is a function, not None"):
        hooks.on(AppTools.web_search)(None)


def test_a_tool_of_another_toolset_cannot_have_hooks() -> None:
    """Registering for a tool that is not there is a HookError."""
    hooks = AppTools.HookSet()
    with pytest.raises(HookError):
        hooks.on(PingTools.ping)
    with pytest.raises(HookError):
        hooks.gate("nope")  # type: ignore[call-overload]


def test_forgotten_parentheses_are_told() -> None:
    """A decorator without its parentheses is told how to write it."""
    hooks: Any = AppTools.HookSet()
    with pytest.raises(
        HookError,
        match=r"gate cannot .*<function nothing.*`@hooks.gate\(selector\)`, or `@hooks.gate\(\)`",
    ):
        hooks.gate(nothing)
    with pytest.raises(HookError, match=r"Write `@hooks.on\(selector\)` above"):
        hooks.on(nothing)
    with pytest.raises(HookError, match=r"for None. Name a tool, as in `AppTools.web_search`"):
        hooks.on(None)
    with pytest.raises(HookError, match=r"A description hook cannot be registered for None"):
        hooks.describe(None)

    class Empty(Toolset):
        pass

    with pytest.raises(HookError, match=r"as in `Empty.tool`"):
        Empty.HookSet().on(None)  # type: ignore[call-overload]


@over("given", [DeepTools.app.data, AppTools.data, DataTools])
@over("verb", ["gate", "before", "after"])
def test_a_nested_toolset_stands_for_its_tools(verb: Any, given: Any) -> None:
    """A gate, before- or after-hook of a group is asked about the group's tools, and no other."""
    hooks: Any = DeepTools.HookSet()
    getattr(hooks, verb)(given)(nothing)
    phase = "gate" if verb == "gate" else verb
    assert asked(hooks, DeepTools.app.data.get_user, phase) == [nothing]
    assert asked(hooks.app.data, DataTools.list_orders, phase) == [nothing]
    assert asked(hooks, DeepTools.app.web_search, phase) == []
    assert asked(hooks, DeepTools.query, phase) == []


def test_a_group_stands_for_each_path_and_a_whole_for_itself() -> None:
    """A group counts once on each path, a named path alone, and the toolset itself for all."""
    hooks = TwinTools.HookSet()
    hooks.gate(TwinTools.left)(first := tagged("first"))
    hooks.gate(DataTools)(second := tagged("second"))
    hooks.gate(TwinTools)(third := tagged("third"))
    assert asked(hooks, TwinTools.left.get_user) == [first, second, third]
    assert asked(hooks, TwinTools.right.get_user) == [second, third]
    shared = DataTools.HookSet()
    TwinTools.HookSet(left=shared, right=shared).gate(DataTools)(nothing)
    assert asked(shared, DataTools.get_user) == [nothing]
    inner = DeepTools.app.HookSet()
    inner.gate(DeepTools.app.data)(nothing)
    assert asked(inner, AppTools.data.get_user) == [nothing]


@over("verb", ["on", "describe", "on_args"])
def test_what_decides_about_one_tool_takes_no_group(verb: str) -> None:
    """An execution or description hook of a toolset is a HookError that names a tool."""
    hooks = DeepTools.HookSet()
    with pytest.raises(HookError, match=r"Name a tool, as in `DeepTools\.app\.[a-z_.]+`\.$"):
        getattr(hooks, verb)(DeepTools.app)


@over("given", [PingTools, Toolset, TwinTools.left])
def test_a_toolset_that_is_not_nested_is_no_group(given: Any) -> None:
    """A gate for tools that the toolset does not have is a HookError."""
    with pytest.raises(HookError, match=r"or a toolset that DeepTools nests\.$"):
        DeepTools.HookSet().gate(given)


def test_nested_hook_sets_are_reached_by_name_and_by_view() -> None:
    """`hooks.data` and `hooks[AppTools.data]` are the same inner hook set."""
    hooks: Any = DeepTools.HookSet()
    assert hooks[DeepTools.app] is hooks.app
    assert hooks[DeepTools.app.data] is hooks.app.data
    assert hooks.app.data.toolset is DataTools
    assert hooks.app[AppTools.data] is hooks.app.data


@over("inner", [DataTools, AppTools, AppTools.data, TwinTools.left, PingTools])
def test_only_nested_toolsets_have_nested_hook_sets(inner: type[Toolset]) -> None:
    """Indexing by anything but a nested view is a HookError that names those that are nested."""
    hooks = DeepTools.HookSet()
    with pytest.raises(HookError, match=r"is not nested in DeepTools. Name it through .*`app`"):
        hooks[inner]


def test_a_tool_and_a_group_of_one_name_are_told_apart() -> None:
    """A view whose path begins like a tool of another toolset leads nowhere in it."""

    class Other(Toolset):
        app = toolset(PingTools)

    with pytest.raises(HookError):
        Other.HookSet()[DeepTools.app.data]


def test_a_nested_hook_set_is_kept_live() -> None:
    """What is registered in the inner hook set counts in the outer one, and the other way round."""
    inner = DataTools.HookSet()
    hooks: Any = AppTools.HookSet(data=inner)
    assert hooks.data is inner
    inner.gate(DataTools.get_user)(first := tagged("first"))
    hooks.gate(AppTools.data.get_user)(second := tagged("second"))
    assert asked(hooks, AppTools.data.get_user) == [first, second]
    assert asked(inner, DataTools.get_user) == [first, second]


def test_a_hook_of_a_shared_set_counts_at_once_in_every_set() -> None:
    """Who was asked before has no say in who is asked now, in any set that keeps the hook."""
    shared = DataTools.HookSet()
    one, two = AppTools.HookSet(data=shared), AppTools.HookSet(data=shared)
    alone = one.copy()
    for hooks in (one, two, alone):
        assert isinstance(parse().hook_sync(hooks), AnyToolCall)
    shared.on(DataTools.get_user)(lambda metadata, input: Reject("first"))
    for hooks in (one, two):
        outcome = parse().hook_sync(hooks)
        assert isinstance(outcome, RejectedCall)
    assert isinstance(parse().hook_sync(alone), AnyToolCall)
    alone.gate()(lambda metadata, input: Block("second"))
    outcome = parse().hook_sync(alone)
    assert isinstance(outcome, RejectedCall)
    assert outcome.source == "gate"


def test_both_ways_fill_one_list_in_order() -> None:
    """However an inner hook is registered, it stands in one list in the order of registration."""
    hooks: Any = AppTools.HookSet()
    names = ["outer", "inner", "generated", "outer again", "by the inner selector"]
    made = [tagged(name) for name in names]
    hooks.gate(AppTools.data.get_user)(made[0])
    hooks.data.gate(DataTools.get_user)(made[1])
    hooks.data.register_get_user_gate(made[2])
    hooks.gate(AppTools.data.get_user)(made[3])
    hooks.gate(DataTools.get_user)(made[4])
    assert asked(hooks, AppTools.data.get_user) == made
    assert asked(hooks.data, AppTools.data.get_user) == made


def test_order_of_registration_holds_across_levels() -> None:
    """Hooks for all tools and hooks of one tool, outer and inner, are asked as registered."""
    hooks: Any = DeepTools.HookSet()
    made = [tagged(str(number)) for number in range(6)]
    hooks.app.gate()(made[0])
    hooks.gate(DeepTools.app.data.get_user)(made[1])
    hooks.gate()(made[2])
    hooks.app.data.gate()(made[3])
    hooks.app.data.gate(DataTools.get_user)(made[4])
    hooks.gate()(made[5])
    assert asked(hooks, DeepTools.app.data.get_user) == made
    assert asked(hooks, DeepTools.query) == [made[2], made[5]]
    assert asked(hooks.app, DeepTools.app.web_search) == [made[0]]


def test_an_inner_selector_registers_on_every_path_once() -> None:
    """A hook for an inner selector counts on each path, once for each list."""
    hooks = TwinTools.HookSet()
    hooks.gate(DataTools.get_user)(nothing)
    assert asked(hooks, TwinTools.left.get_user) == [nothing]
    assert asked(hooks, TwinTools.right.get_user) == [nothing]
    hooks.gate(TwinTools.left.list_orders)(nothing)
    assert asked(hooks, TwinTools.right.list_orders) == []
    shared = DataTools.HookSet()
    both = TwinTools.HookSet(left=shared, right=shared)
    both.gate(DataTools.get_user)(nothing)
    assert asked(shared, DataTools.get_user) == [nothing]


def test_copies_share_nothing() -> None:
    """A copy has lists of its own at every level, and copies share what the original shared."""
    shared = DataTools.HookSet()
    hooks: Any = TwinTools.HookSet(left=shared, right=shared)
    hooks.gate()(nothing)
    for made in (hooks.copy(), copy.copy(hooks), copy.deepcopy(hooks)):
        assert made.left is made.right
        assert made.left is not shared
        made.gate(DataTools.get_user)(nothing)
        made.gate()(nothing)
    assert asked(hooks, TwinTools.left.get_user) == [nothing]


def test_a_live_inner_hook_set_is_copied_by_with() -> None:
    """`with_*` gives a deep copy: the inner hook set of the copy is another one."""
    inner = DataTools.HookSet()
    hooks: Any = AppTools.HookSet(data=inner)
    more = hooks.with_web_search_gate(nothing)
    inner.gate(DataTools.get_user)(nothing)
    assert asked(hooks, AppTools.data.get_user) == [nothing]
    assert asked(more, AppTools.data.get_user) == []


def test_extending_puts_other_hooks_behind() -> None:
    """`extend` adds the other's hooks after those that are here, in their own order."""
    first, second = AppTools.HookSet(), AppTools.HookSet()
    late, early = tagged("late"), tagged("early")
    second.gate(AppTools.data.get_user)(early)
    second.gate()(late)
    first.gate(AppTools.data.get_user)(nothing)
    extended = first.with_extended(second)
    assert asked(first, AppTools.data.get_user) == [nothing]
    assert asked(extended, AppTools.data.get_user) == [nothing, early, late]
    first.extend(second)
    assert asked(first, AppTools.data.get_user) == [nothing, early, late]
    assert asked(second, AppTools.data.get_user) == [early, late]


def test_extending_by_itself_doubles() -> None:
    """A hook set that is extended by itself has each hook twice, and the extension ends."""
    hooks = AppTools.HookSet()
    hooks.gate()(nothing)
    hooks.gate(DataTools.get_user)(nothing)
    hooks.extend(hooks)
    assert asked(hooks, AppTools.data.get_user) == [nothing] * 4


def test_a_shared_inner_hook_set_is_not_doubled() -> None:
    """An inner hook set that both keep stays as it is; a hook is taken over once for each list."""
    shared = DataTools.HookSet()
    shared.gate()(nothing)
    one, two = AppTools.HookSet(data=shared), AppTools.HookSet(data=shared)
    one.extend(two)
    assert asked(shared, DataTools.get_user) == [nothing]
    twins = TwinTools.HookSet(left=shared, right=shared)
    target = DataTools.HookSet()
    TwinTools.HookSet(left=target, right=target).extend(twins)
    assert asked(target, DataTools.get_user) == [nothing]


@pytest.mark.parametrize("other", [DataTools.HookSet(), None, nothing])
def test_only_hook_sets_of_one_toolset_are_joined(other: Any) -> None:
    """A hook set is extended by one of the same toolset only."""
    with pytest.raises(HookError):
        AppTools.HookSet().extend(other)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (DataTools.HookSet(), r"Write `AppTools\.HookSet\(data=\.\.\.\)`\.$"),
        (AppTools.HookSet(), r"write `hooks\.extend\(other\)`"),
        (nothing, r"for a policy, `hooks\.register_hooks\(policy\)`"),
    ],
)
def test_a_hook_set_is_taken_in_by_name_only(given: Any, remedy: str) -> None:
    """What comes without the name of a member is refused, with what to write."""
    with pytest.raises(MisuseError, match=rf"not <.*>\. .*{remedy}"):
        AppTools.HookSet(given)


def test_hook_sets_of_module_functions_pickle() -> None:
    """A hook set whose hooks are importable goes to another process."""
    hooks = AppTools.HookSet()
    hooks.gate(AppTools.data.get_user)(nothing)
    again = pickle.loads(pickle.dumps(hooks))
    assert repr(again) == "<HookSet of AppTools: 1 hook>"
    assert [
        hook.function.__name__ for hook in again._hooks_for(AppTools.data.get_user, "gate")
    ] == ["nothing"]


def test_hooks_have_names() -> None:
    """A hook is named by its qualified name, or by its type where it has none."""
    hooks = AppTools.HookSet()
    hooks.gate(AppTools.web_search)(nothing)
    hooks.gate(AppTools.web_search)(functools.partial(nothing, 1))
    assert [hook.name for hook in hooks._hooks_for(AppTools.web_search, "gate")] == [
        "nothing",
        "partial",
    ]


def test_a_hook_set_of_a_part_passes_the_rest_by() -> None:
    """The hooks of a nested toolset are asked about its calls only."""
    hooks = DataTools.HookSet()
    hooks.gate()(lambda metadata, input: Block("no"))
    search = AppTools.parse_tool_call(sent("web_search", query="x"))
    user = AppTools.parse_tool_call(sent("get_user", user_id="x"))
    assert search.hook_sync(hooks) is search
    assert isinstance(user.hook_sync(hooks), RejectedCall)


@pytest.mark.parametrize("toolset", [PingTools, AppTools, TwinTools])
def test_hooks_of_another_toolset_are_refused(toolset: type[Toolset]) -> None:
    """Hooks that would never be asked are an error, not a silent pass."""
    call = DataTools.parse_tool_call(sent("get_user", user_id="x"))
    with pytest.raises(
        HookError,
        match=f"hooks are of {toolset.__name__}, but tool `get_user` was called in DataTools",
    ):
        call.hook_sync(toolset.HookSet())


def test_a_call_made_by_hand_finds_its_hooks_by_name() -> None:
    """A call outside of any toolset is decided about as a call of the same tool of that name."""
    hooks = AppTools.HookSet()
    hooks.on(AppTools.data.get_user)(lambda metadata, input: Complete(ALICE))

    def made() -> AnyToolCall:
        call: AnyToolCall = GetUserArgs.Call(
            sent("get_user", user_id="x"), GetUserArgs(user_id="x")
        )
        return call

    assert isinstance(made().hook_sync(hooks), HandledCall)
    with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
        made().hook_sync(PingTools.HookSet())
    with pytest.raises(HookError):
        made().hook_sync(TwinTools.HookSet())


def test_a_name_alone_does_not_make_it_the_same_tool() -> None:
    """Another tool of the same wire name gets none of the hooks."""
    from lutum_py import tool, tool_fn

    @tool_fn(name="get_user")
    def imposter(user_id: str) -> str:
        return user_id

    call = imposter.Call(sent("get_user", user_id="x"), imposter.Input(user_id="x"))
    with pytest.raises(HookError):
        call.hook_sync(AppTools.HookSet())
    assert tool(imposter) is not None


def test_hooks_count_from_their_registration_on() -> None:
    """A hook that is registered after a first round counts in the next one."""
    hooks: Any = AppTools.HookSet()
    call = AppTools.parse_tool_call(sent("get_user", user_id="x"))
    assert call.hook_sync(hooks) is call
    hooks.data.on(DataTools.get_user)(lambda metadata, input: Reject("late"))
    outcome = call.hook_sync(hooks)
    assert isinstance(outcome, RejectedCall)
    assert (outcome.reason, outcome.source) == ("late", "hook")


def test_a_hook_that_wraps_a_function_of_other_parameters_is_asked_as_it_is() -> None:
    """What `functools.wraps` says of the inner function does not decide how the outer is called."""

    def with_store(metadata: ToolMetadata, input: Any, store: dict[str, int]) -> Any:
        store[metadata.id] = 1
        return None

    store: dict[str, int] = {}

    @functools.wraps(with_store)
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        return with_store(metadata, input, store)

    @functools.wraps(with_store)
    def hook(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        with_store(metadata, input, store)
        return RunNormally(input)

    hooks = DataTools.HookSet()
    hooks.on(DataTools.get_user)(hook)
    hooks.gate(DataTools.get_user)(gate)
    hooks.before(DataTools.get_user)(gate)
    call = DataTools.parse_tool_call(sent("get_user", user_id="a"))
    assert call.hook_sync(hooks) is call
    assert store == {"c1": 1}


def test_a_hook_that_passes_all_on_is_known_by_what_it_wraps() -> None:
    """A wrapper of `*args` takes what the function takes that it wraps: here, the decision too."""
    asked: list[Any] = []

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    hooks = DataTools.HookSet()
    hooks.gate(DataTools.get_user)(logged(lambda metadata, input, decision: asked.append(decision)))
    hooks.gate(DataTools.get_user)(logged(lambda metadata, input: asked.append("none")))
    call = DataTools.parse_tool_call(sent("get_user", user_id="a"))
    assert call.hook_sync(hooks) is call
    assert asked == [None, "none"]


@over(
    "register, function, said",
    [
        ("on", lambda call: None, "(metadata, input), but `"),
        ("gate", lambda metadata: None, "takes (metadata)."),
        ("before", lambda: None, "takes ()."),
        ("after", lambda call, result, more: None, "(call, result), but `"),
        ("describe", lambda definition, *, more: None, "takes (definition, *, more)."),
    ],
)
def test_a_hook_of_other_parameters_is_refused(register: str, function: Any, said: str) -> None:
    """The mistake comes out where the hook is registered, with what it should take and takes."""
    decorate = getattr(DataTools.HookSet(), register)(DataTools.get_user)
    with pytest.raises(HookError) as caught:
        decorate(function)
    assert said in str(caught.value)


def test_one_rule_of_two_tools() -> None:
    """A hook of two tools is asked about calls of both, and once where both stand for one place."""
    hooks = AppTools.HookSet()
    seen: list[str] = []

    @hooks.on(AppTools.web_search, AppTools.data.get_user)
    def rule(metadata: ToolMetadata, input: BaseModel) -> Reject:
        seen.append(metadata.name)
        return Reject("never")

    for metadata in (sent("web_search", query="x"), sent("get_user", user_id="x")):
        assert isinstance(AppTools.parse_tool_call(metadata).hook_sync(hooks), RejectedCall)
    assert seen == ["web_search", "get_user"]
    assert asked(hooks, AppTools.delete_file, "execution") == []
    once = AppTools.HookSet()
    once.on(AppTools.web_search, AppTools.web_search)(rule)
    assert asked(once, AppTools.web_search, "execution") == [rule]


def test_a_rule_of_two_tools_is_registered_for_both_or_for_none() -> None:
    """Where one of the tools is of another toolset, the other gets no hook either."""
    hooks = AppTools.HookSet()
    with pytest.raises(HookError):
        hooks.on(AppTools.web_search, PingTools.ping)
    assert repr(hooks) == "<HookSet of AppTools: 0 hooks>"


def test_what_a_decorator_gives_back_is_the_function() -> None:
    """A rule is tested as the function that it is, under one decorator or several."""
    hooks = AppTools.HookSet()

    @hooks.on(AppTools.web_search)
    @hooks.on(AppTools.data.get_user)
    def rule(metadata: ToolMetadata, input: BaseModel) -> Reject:
        return Reject(metadata.name)

    metadata = sent("web_search", query="x")
    assert rule(metadata=metadata, input=GetUserArgs(user_id="x")) == Reject("web_search")


def test_hooks_by_the_name_of_a_tool() -> None:
    """A selector that a toolset gives by name, or in a loop, is one that hooks take."""
    hooks = AppTools.HookSet()
    for each in AppTools:
        hooks.gate(each)(nothing)
    hooks.gate(AppTools["web_search"])(nothing)
    assert asked(hooks, AppTools.web_search) == [nothing, nothing]
    assert asked(hooks, AppTools.data.get_user) == [nothing]
