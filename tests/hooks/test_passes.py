"""The laws of one pass of hooks, and of the next: what it writes, and who is asked again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
)
from lutum_py.errors import HookError, LifecycleError
from lutum_py.typing import HookOutcome
from tests.sample_tools import ALICE, AppTools, GetUserArgs, input_of, opened, sent

CALLS = [sent("get_user", id, user_id=id) for id in ("u1", "u2", "u3")]


class Asked:
    """Hooks that write down whom they were asked about."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def execution(self, metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
        self.ids.append(metadata.id)
        return RunNormally(GetUserArgs(user_id=input.user_id + "!"))

    def gate(self, metadata: ToolMetadata, input: GetUserArgs) -> None:
        self.ids.append(f"gate {metadata.id}")

    def function(self, call: AnyToolCall) -> HookOutcome:
        self.ids.append(call.id)
        call.input = GetUserArgs(user_id=input_of(call).user_id + "!")
        return call

    def hook_tool_call(self, call: AnyToolCall) -> HookOutcome:
        return self.function(call)

    def taken(self) -> list[str]:
        """The ids since the last look."""
        found, self.ids = self.ids, []
        return found


def hooks_of(asked: Asked, kind: str) -> Any:
    if kind != "set":
        return asked if kind == "object" else asked.function
    hooks = AppTools.HookSet()
    hooks.on(AppTools.data.get_user)(asked.execution)
    return hooks


KINDS = pytest.mark.parametrize("kind", ["set", "function"])


# A pass writes to every call that has not grown meanwhile (law 6).


@KINDS
@pytest.mark.parametrize("done", ["started", "ended", "changed"])
def test_a_pass_counts_for_every_call_that_is_as_it_was(kind: str, done: str) -> None:
    """Where one call grows while hooks are awaited, the pass names it and what happened to it. What
    was said about the others counts, and those hooks are not asked about them again.
    """
    asked = Asked()
    grow: dict[str, Any] = {
        "started": lambda call: call._record.append("started"),  # an input model has no function
        "ended": lambda call: call.complete(ALICE),
        "changed": lambda call: setattr(call, "input", GetUserArgs(user_id="other")),
    }
    with opened(AppTools, *CALLS) as opened_round:
        grown = opened_round.tool_calls[1]
        inner = hooks_of(asked, kind)

        async def slow(call: AnyToolCall) -> HookOutcome:
            outcome = await call.hook(inner)
            if call.id == "u3":
                grow[done](grown)
            return outcome

        hooks: Any = slow
        if kind == "set":
            hooks = inner

            def late(metadata: ToolMetadata, input: Any) -> None:
                if metadata.id == "u3":
                    grow[done](grown)

            inner.gate()(late)
        with pytest.raises(LifecycleError, match=rf"Call 'u2' of tool `get_user` was {done} while"):
            asyncio.run(opened_round.apply_hooks(hooks))
        assert asked.taken() == ["u1", "u2", "u3"]
        written = [
            any(s.kind == "reviewed" for s in call.steps) for call in opened_round.tool_calls
        ]
        assert written == [True, False, True]
        assert [input_of(call).user_id for call in opened_round.tool_calls][::2] == ["u1!", "u3!"]
        again = AppTools.HookSet() if kind == "function" else inner
        if kind == "function":
            opened_round.apply_hooks_sync(again)
            assert asked.taken() == []
        elif done == "changed":
            grow[done] = lambda call: None
            asyncio.run(opened_round.apply_hooks(inner))
            assert asked.taken() == ["u2"]
            assert input_of(grown).user_id == "other!"


def test_a_pass_goes_through_all_calls_stage_by_stage() -> None:
    """No gate is asked before the execution hooks are done with every call, and no before-hook
    before the gates are.
    """
    asked = Asked()
    hooks = hooks_of(asked, "set")
    hooks.before()(lambda metadata, input: asked.ids.append(f"before {metadata.id}"))
    hooks.gate()(asked.gate)
    with opened(AppTools, *CALLS[:2]) as opened_round:
        opened_round.apply_hooks_sync(hooks)
    assert asked.taken() == ["u1", "u2", "gate u1", "gate u2", "before u1", "before u2"]


def test_a_pass_that_raises_writes_nothing() -> None:
    """Nothing of a pass counts in which a hook raised, also of the calls that it was done with."""
    asked = Asked()
    hooks = hooks_of(asked, "set")

    def broken(metadata: ToolMetadata, input: Any) -> None:
        if metadata.id == "u3":
            raise OSError("down")

    hooks.gate()(broken)
    with opened(AppTools, *CALLS) as opened_round:
        with pytest.raises(HookError):
            opened_round.apply_hooks_sync(hooks)
        assert [len(call.steps) for call in opened_round.tool_calls] == [1, 1, 1]


# An execution hook is asked once per call and try (law 7).


@pytest.mark.parametrize("kind", ["set", "function", "object"])
def test_a_second_pass_asks_no_execution_hook_again(kind: str) -> None:
    """Nor a plain function, or an object in its place, while a gate is asked in every pass."""
    asked = Asked()
    hooks = hooks_of(asked, kind)
    with opened(AppTools, *CALLS) as opened_round:
        plan = opened_round.apply_hooks_sync(hooks)
        assert asked.taken() == ["u1", "u2", "u3"]
        if kind == "set":
            hooks.gate()(asked.gate)
        for _ in range(2):
            plan.apply_hooks_sync(hooks)
            gates = ["gate u1", "gate u2", "gate u3"]
            assert asked.taken() == (gates if kind == "set" else [])
        assert [input_of(call).user_id for call in plan.pending] == ["u1!", "u2!", "u3!"]


@KINDS
def test_another_try_is_reviewed_anew(kind: str) -> None:
    """From the input as it was before the hooks of the last try, once."""
    asked = Asked()
    hooks = hooks_of(asked, kind)
    with opened(AppTools, CALLS[0]) as opened_round:
        (call,) = opened_round.apply_hooks_sync(hooks).pending
        call.complete(ALICE)
        call.retry()
        for _ in range(2):
            opened_round.apply_hooks_sync(hooks)
        assert asked.taken() == ["u1", "u1"]
        assert input_of(call).user_id == "u1!"


def waiting(hooks: Any, opened_round: Any) -> tuple[ToolRoundPlan[Any], Any]:
    """A plan whose call waits for a person."""

    def ask(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(SuspendTicket(id="t1", action="approve"))

    hooks.gate()(ask)
    plan: ToolRoundPlan[Any] = opened_round.apply_hooks_sync(hooks)
    return plan, plan.suspended[0]


def test_an_edit_is_reviewed_and_an_approval_is_not() -> None:
    """What a person changed is asked about again, once; what was approved is not."""
    asked = Asked()
    for edits in (False, True):
        hooks = hooks_of(asked, "set")
        with opened(AppTools, CALLS[0]) as opened_round:
            plan, waits = waiting(hooks, opened_round)
            assert asked.taken() == ["u1"]
            if edits:
                plan.amend_sync(waits.edit({"user_id": "bob"}), hooks)
                assert asked.taken() == ["u1"]
                plan.resume(plan.suspended[0].approve())  # the hook changed what was approved
            else:
                plan.resume(waits.approve())
            for _ in range(2):
                (call,) = plan.apply_hooks_sync(hooks).pending
            assert asked.taken() == []
            assert input_of(call).user_id == ("bob!" if edits else "u1!")


def test_hooks_of_another_set_are_asked() -> None:
    """A hook that was not asked in this try is asked in a later pass, also if it looks the same."""
    asked = Asked()

    def made() -> Any:
        hooks = AppTools.HookSet()

        @hooks.on(AppTools.data.get_user)
        def rename(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
            return asked.execution(metadata, input)

        return hooks

    with opened(AppTools, CALLS[0]) as opened_round:
        opened_round.apply_hooks_sync(made())
        (call,) = opened_round.apply_hooks_sync(made()).pending
        assert input_of(call).user_id == "u1!!"


asked_here: list[str] = []


def named(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
    """A hook that another process finds by its name."""
    asked_here.append(metadata.id)
    return RunNormally(input)


@pytest.mark.parametrize("is_named", [True, False])
def test_after_a_load_a_hook_is_known_by_its_name(is_named: bool) -> None:
    """A function of a module is not asked again; a local one may be any, so it is."""
    asked_here.clear()
    hooks = AppTools.HookSet()

    def local(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
        return named(metadata, input)

    hooks.on(AppTools.data.get_user)(named if is_named else local)
    with opened(AppTools, CALLS[0]) as opened_round:
        text = opened_round.apply_hooks_sync(hooks).dump_json()
    plan = AppTools.load_plan(text)
    for _ in range(2):
        plan.apply_hooks_sync(hooks)
    plan.discard()
    assert asked_here == ["u1"] * (1 if is_named else 2)


class Policy:
    """Hooks that are methods of an object."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def look(self, metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
        self.asked.append(metadata.id)
        return RunNormally(input)


def test_a_method_of_an_object_is_that_of_no_other_object() -> None:
    """In one process each object is asked once; after a load it may be any, so it is asked."""
    policies, sets = (Policy(), Policy()), [AppTools.HookSet(), AppTools.HookSet()]
    for policy, hooks in zip(policies, sets, strict=True):
        hooks.on(AppTools.data.get_user)(policy.look)
    with opened(AppTools, CALLS[0]) as opened_round:
        plan = opened_round.plan()
        for hooks in (*sets, *sets):
            plan.apply_hooks_sync(hooks)
        assert [each.asked for each in policies] == [["u1"], ["u1"]]
        plan = AppTools.load_plan(plan.dump_json())
        plan.apply_hooks_sync(sets[1])
        plan.discard()
    assert [each.asked for each in policies] == [["u1"], ["u1", "u1"]]


def test_an_approved_call_gets_no_execution_hooks() -> None:
    """Also where none was asked before: what was shown to a person is what runs."""
    asked = Asked()
    gates = AppTools.HookSet()
    with opened(AppTools, CALLS[0]) as opened_round:
        plan, waits = waiting(gates, opened_round)
        plan.resume(waits.approve())
        hooks = hooks_of(asked, "set")
        hooks.gate()(asked.gate)
        (call,) = plan.apply_hooks_sync(hooks).pending
        assert asked.taken() == ["gate u1"]
        assert input_of(call).user_id == "u1"


def test_an_approved_call_is_shown_to_a_function_that_has_not_seen_it() -> None:
    """A function stands for gates as well, and what it refuses does not run."""
    with opened(AppTools, CALLS[0]) as opened_round:
        plan, waits = waiting(AppTools.HookSet(), opened_round)
        plan.resume(waits.approve())
        plan.apply_hooks_sync(lambda call: call.reject("no"))
        assert [each.reason for each in plan.rejected] == ["no"]


# A function in place of hooks may run the tool itself.


def test_a_function_that_runs_an_edited_call_takes_the_edit_in() -> None:
    """The edit counts with the start, and what the function gives is the call's result."""
    with opened(AppTools, CALLS[0]) as opened_round:
        plan, waits = waiting(AppTools.HookSet(), opened_round)

        def run(call: AnyToolCall) -> HookOutcome:
            call._record.append("started")  # an input model has no function
            return call.handled(ALICE)

        plan.amend_sync(waits.edit({"user_id": "bob"}), run)
        (result,) = plan.finished
        assert result.result == '{"name":"Alice"}'
        assert [edit.final for edit in plan.edits] == [{"user_id": "bob"}]
        assert plan.resolve().results[0].id == "u1"


@pytest.mark.parametrize("raises", [False, True])
def test_a_draft_cannot_be_started_once_its_function_has_answered(raises: bool) -> None:
    """Nor where it raised: nothing of such a pass is in the history, by whatever way."""
    kept: list[AnyToolCall] = []

    def keep(call: AnyToolCall) -> HookOutcome:
        kept.append(call)
        if raises:
            raise OSError("down")
        return call

    with opened(AppTools, CALLS[0]) as opened_round:
        with suppress(HookError):
            opened_round.apply_hooks_sync(keep)
        steps = opened_round.tool_calls[0].steps
        with pytest.raises(LifecycleError, match=r"draft.*`plan\.pending`"):
            kept[0]._record.append("started")
        assert opened_round.tool_calls[0].steps == steps
