"""The laws of execution hooks, plain functions as hooks, before-hooks and after-hooks."""

from __future__ import annotations

import asyncio
import pickle
from itertools import product
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Complete,
    HandledCall,
    Reject,
    RejectedCall,
    RunNormally,
    SuspendedCall,
    ToolDecision,
    ToolMetadata,
    Transcript,
)
from lutum_py.errors import HookError, MisuseError
from lutum_py.typing import HookOutcome
from tests.hooks.asked import SEARCH, TICKET, USER, on_user, parse
from tests.sample_tools import (
    ALICE,
    AppTools,
    DataTools,
    DeepTools,
    GetUserArgs,
    User,
    input_of,
    opened,
    sent,
)


class TestExecutionHooks:
    def test_without_hooks_a_call_stays_as_it_is(self) -> None:
        """No hooks: the call is unhandled, unchanged, and pending."""
        call = parse()
        assert call.hook_sync(AppTools.HookSet()) is call
        with opened(AppTools, USER, SEARCH) as asked:
            plan = asked.apply_hooks_sync(AppTools.HookSet())
            assert plan.pending == asked.tool_calls
            assert (plan.handled, plan.rejected, plan.decisions) == ((), (), ())

    def test_hooks_thread_the_input_in_order_of_registration(self) -> None:
        """Each hook gets the input that the one before gave, and the last one is the call's."""
        seen: list[str] = []

        def adding(text: str) -> Any:
            def hook(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
                seen.append(input.user_id)
                return RunNormally(GetUserArgs(user_id=input.user_id + text))

            return hook

        outcome: Any = parse().hook_sync(on_user(adding("1"), adding("2"), adding("3")))
        assert seen == ["alice", "alice1", "alice12"]
        assert outcome.input == GetUserArgs(user_id="alice123")
        assert outcome.metadata is USER

    @pytest.mark.parametrize("equal", [*product([False, True], repeat=3)])
    @pytest.mark.parametrize("changes", [False, True])
    def test_what_each_hook_said_stands_on_the_line(
        self, equal: tuple[bool, ...], changes: bool
    ) -> None:
        """Each hook that lets a call pass has its step, in order, whichever way it says so, and
        with each gate behind them; also where the last hook gives another input.
        """

        def passing(is_other: bool) -> Any:
            def hook(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
                return RunNormally(input.model_copy() if is_other else input)

            return hook

        hooks = on_user(*map(passing, equal))
        if changes:
            hooks.on(AppTools.data.get_user)(
                lambda metadata, input: RunNormally(GetUserArgs(user_id="bob"))
            )
        hooks.gate()(lambda metadata, input: None)
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(hooks)
            (call,) = plan.pending
            said = [(step.kind, step.phase) for step in call.steps]
        passed = [("reviewed", "execution")] * 3
        changed = [("reviewed", "execution"), ("changed", "execution")] if changes else []
        assert said == [("proposed", None), *passed, *changed, ("reviewed", "gate")]
        assert len(plan.decisions) == 3 + changes

    @pytest.mark.parametrize("decision", [Complete(ALICE), Reject("no")])
    def test_complete_and_reject_stop(self, decision: Any) -> None:
        """After `Complete` or `Reject` no later hook, gate or before-hook is asked."""
        later: list[str] = []
        hooks = on_user(
            lambda metadata, input: RunNormally(GetUserArgs(user_id="new")),
            lambda metadata, input: decision,
            lambda metadata, input: later.append("hook"),
        )
        hooks.gate()(lambda metadata, input: later.append("gate"))
        hooks.before()(lambda metadata, input: later.append("before"))
        outcome = parse().hook_sync(hooks)
        assert later == []
        if isinstance(decision, Complete):
            assert isinstance(outcome, HandledCall)
            assert type(outcome).__name__ == "GetUserArgsHandled"
            assert (outcome.output, outcome.input) == (ALICE, GetUserArgs(user_id="new"))
            assert outcome.result.result == '{"name":"Alice"}'
        else:
            assert isinstance(outcome, RejectedCall)
            assert (outcome.reason, outcome.source, outcome.metadata) == ("no", "hook", USER)
            assert outcome.call.input == GetUserArgs(user_id="new")
            assert outcome.call.status is CallStatus.CANCELLED
            assert outcome.result.rejection_reason == "no"

    def test_a_hook_is_asked_about_its_tool_only(self) -> None:
        """Calls of other tools pass by, and the plan keeps the order of the turn."""
        with opened(AppTools, SEARCH, USER, sent("get_user", "u2", user_id="bob")) as asked:
            plan = asked.apply_hooks_sync(
                on_user(
                    lambda metadata, input: (
                        Complete(ALICE) if metadata.id == "u1" else Reject("not bob")
                    )
                )
            )
            assert [call.id for call in plan.pending] == ["s1"]
            assert [each.metadata.id for each in plan.handled] == ["u1"]
            assert [each.metadata.id for each in plan.rejected] == ["u2"]

    def test_the_raw_arguments_stay_what_the_model_sent(self) -> None:
        """A rewritten input changes what the code sees, not what the transcript keeps."""
        hooks = on_user(lambda metadata, input: RunNormally(GetUserArgs(user_id="bob")))
        transcript = Transcript()
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert input_of(plan.pending[0]).user_id == "bob"
            assert plan.pending[0].metadata.arguments == USER.arguments
            committed = plan.commit(transcript, [plan.pending[0].complete(ALICE)])
        assert committed.results[0].arguments == USER.arguments

    def test_a_second_pass_touches_only_what_is_pending(self) -> None:
        """A second `apply_hooks` sees what is pending, and adds to the other lists, of the older
        plan as well: both show the same round.
        """
        seen: list[str] = []

        def handle(id: str) -> Any:
            def hook(call: AnyToolCall) -> HookOutcome:
                seen.append(call.id)
                return call.reject("no") if call.id == id else call

            return hook

        with opened(AppTools, USER, SEARCH, sent("list_orders", "l1", user_id="x")) as asked:
            first = asked.apply_hooks_sync(handle("u1"))
            second = first.apply_hooks_sync(handle("l1"))
            assert seen == ["u1", "s1", "l1", "s1", "l1"]
            for plan in (first, second):
                assert [each.metadata.id for each in plan.rejected] == ["u1", "l1"]
                assert [call.id for call in plan.pending] == ["s1"]
                said = [record.call_id for record in plan.decisions]
                assert said == ["u1", "s1", "l1", "s1", "l1"]

    def test_async_and_sync_hooks_mix(self) -> None:
        """An async hook is awaited in its place, among sync ones."""
        seen: list[str] = []

        async def slow(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
            await asyncio.sleep(0)
            seen.append("slow")
            return RunNormally(GetUserArgs(user_id=input.user_id.upper()))

        def quick(metadata: ToolMetadata, input: GetUserArgs) -> ToolDecision[GetUserArgs, User]:
            seen.append("quick")
            return Complete(User(name=input.user_id))

        hooks = on_user(slow, quick)
        outcome = asyncio.run(parse().hook(hooks))
        assert isinstance(outcome, HandledCall)
        assert (seen, outcome.output) == (["slow", "quick"], User(name="ALICE"))
        with opened(AppTools, USER) as asked:
            plan = asyncio.run(asked.apply_hooks(hooks))
            assert [each.output for each in plan.handled] == [User(name="ALICE")]

    @pytest.mark.parametrize(
        ("decision", "status"),
        [
            (RunNormally(GetUserArgs(user_id="alice")), CallStatus.NEW),
            (Complete(ALICE), CallStatus.SUCCEEDED),
            (Reject("no"), CallStatus.CANCELLED),
        ],
    )
    def test_what_hooks_decide_is_of_the_call_itself(
        self, decision: Any, status: CallStatus
    ) -> None:
        """`call.hook` gives what became of the call, and writes it into its history."""
        call = parse(sent("get_user", "u1", user_id="bob"))
        outcome = call.hook_sync(
            on_user(
                lambda metadata, input: RunNormally(GetUserArgs(user_id="alice")),
                lambda *_: decision,
            )
        )
        assert (outcome is call) == (status is CallStatus.NEW)
        assert (call.status, input_of(call).user_id) == (status, "alice")

    def test_hooks_of_a_nested_toolset_decide_for_the_outer_one(self) -> None:
        """An outer round goes through the inner hooks, and its outcomes are the outer toolset's."""
        hooks: Any = DeepTools.HookSet()
        hooks.app.data.register_get_user_hook(
            lambda metadata, input: Complete(ALICE) if input.user_id == "alice" else Reject("who?")
        )
        calls = [sent("app_get_user", id, user_id=id) for id in ("alice", "bob")]
        with opened(DeepTools, *calls, available=["app_get_user"]) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert isinstance(plan.handled[0], DeepTools.Handled)
            assert plan.handled[0].result.name == "app_get_user"
            assert plan.rejected[0].call.selector is DeepTools.app.data.get_user


class TestRaisingHooks:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_hook_that_raises_is_a_hook_error(self, is_async: bool) -> None:
        """A raising hook gives a HookError that names hook, tool and call, from the original."""

        def broken(metadata: ToolMetadata, input: GetUserArgs) -> Any:
            raise KeyError("boom")

        async def broken_async(metadata: ToolMetadata, input: GetUserArgs) -> Any:
            raise KeyError("boom")

        hooks = on_user(broken_async if is_async else broken)
        with pytest.raises(
            HookError, check=lambda error: (error.tool, error.call_id) == ("get_user", "u1")
        ) as caught:
            asyncio.run(parse().hook(hooks))
        assert isinstance(caught.value.__cause__, KeyError)

    def test_the_round_is_unchanged_and_can_be_used_again(self) -> None:
        """After a HookError nothing is decided, and the same round goes through other hooks."""
        calls: list[str] = []

        def flaky(metadata: ToolMetadata, input: GetUserArgs) -> ToolDecision[GetUserArgs, User]:
            calls.append(metadata.id)
            if len(calls) == 2:
                raise ConnectionError("down")
            return Complete(ALICE)

        hooks = on_user(flaky)
        transcript = Transcript()
        with opened(AppTools, USER, sent("get_user", "u2", user_id="bob")) as asked:
            before = asked.tool_calls
            with pytest.raises(HookError):
                asked.apply_hooks_sync(hooks)
            assert asked.tool_calls == before
            assert [call.status for call in before] == [CallStatus.NEW, CallStatus.NEW]
            plan = asked.apply_hooks_sync(hooks)
            assert len(plan.handled) == 2
            assert len(plan.decisions) == 2
            plan.commit(transcript, [])
        assert len(transcript) == 3

    def test_a_stop_iteration_is_an_error_like_any_other(self) -> None:
        """A StopIteration of a hook does not end the pipeline in silence."""

        def stops(metadata: ToolMetadata, input: GetUserArgs) -> Any:
            raise StopIteration

        with pytest.raises(HookError):
            parse().hook_sync(on_user(stops))

    def test_cancellation_passes_through(self) -> None:
        """Cancelling the task that applies hooks cancels it: it is no error of the hook."""

        async def main() -> None:
            started = asyncio.Event()

            async def waits(metadata: ToolMetadata, input: GetUserArgs) -> Any:
                started.set()
                await asyncio.Event().wait()

            with opened(AppTools, USER) as asked:
                task = asyncio.create_task(asked.apply_hooks(on_user(waits)))
                await started.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert len(asked.apply_hooks_sync(AppTools.HookSet()).pending) == 1

        asyncio.run(main())

    def test_a_hook_may_raise_cancellation_itself(self) -> None:
        """A CancelledError or KeyboardInterrupt of what is asked comes out as it is."""
        for error in (asyncio.CancelledError, KeyboardInterrupt):

            def stop(metadata: ToolMetadata, input: GetUserArgs, error: Any = error) -> Any:
                raise error

            gates, before = AppTools.HookSet(), AppTools.HookSet()
            gates.gate(AppTools.data.get_user)(stop)
            before.before(AppTools.data.get_user)(stop)
            for asked in (
                on_user(stop),
                gates,
                before,
                lambda call: stop(call.metadata, call.input),
            ):
                with pytest.raises(error):
                    parse().hook_sync(asked)


class TestSyncTwins:
    def test_an_async_hook_is_a_type_error_that_names_it(self) -> None:
        """A sync twin that meets an async hook names it, and leaves no coroutine behind."""

        async def slow(metadata: ToolMetadata, input: GetUserArgs) -> Any: ...

        async def function(call: AnyToolCall) -> HookOutcome:
            return call

        with opened(AppTools, USER) as asked:
            for hooks, name in ((on_user(slow), "slow"), (function, "function")):
                with pytest.raises(
                    TypeError, match=f"Hook `.*{name}` is async, so sync code cannot"
                ):
                    asked.apply_hooks_sync(hooks)
                with pytest.raises(TypeError, match=f"Hook `.*{name}` is async"):
                    asked.tool_calls[0].hook_sync(hooks)
            assert len(asked.apply_hooks_sync(AppTools.HookSet()).pending) == 1

    def test_any_awaitable_is_async(self) -> None:
        """What is awaitable without being a coroutine is met in the same way."""

        class Later:
            def __await__(self) -> Any:
                return asyncio.sleep(0, Complete(ALICE)).__await__()

        hooks = on_user(lambda metadata, input: Later())
        with pytest.raises(MisuseError):
            parse().hook_sync(hooks)
        assert isinstance(asyncio.run(parse().hook(hooks)), HandledCall)


def test_decisions_are_values() -> None:
    """Decisions compare by value, match by position, and show what they hold."""
    same: Any = RunNormally(3)
    assert same == RunNormally(3)
    assert same != RunNormally(4)
    assert same != 3
    assert repr(same) == "RunNormally(3)"
    match same:
        case RunNormally(input):
            assert input == 3
    assert {Complete(1), Complete(1)} == {Complete(1)}
    block: Any = Block("a")
    assert Reject("a") != block
    with pytest.raises(TypeError, match="unhashable"):
        hash(same)


def test_outcomes_can_be_told_apart() -> None:
    """The four outcomes of a call are four types."""
    assert not issubclass(SuspendedCall, RejectedCall | HandledCall | AnyToolCall)
    assert issubclass(DataTools.get_user.Call, AnyToolCall)
    assert isinstance(parse().suspend(TICKET), SuspendedCall)


def test_outcomes_pickle() -> None:
    """What became of a call goes to another process, with the call's own selector."""
    handled = parse().handled(ALICE)
    again = pickle.loads(pickle.dumps(handled))
    assert isinstance(again, HandledCall)
    assert (again.metadata, again.input, again.output, again.result) == (
        handled.metadata,
        handled.input,
        ALICE,
        handled.result,
    )
    rejected = pickle.loads(pickle.dumps(parse().reject("no")))
    assert (rejected.reason, rejected.call.selector) == ("no", AppTools.data.get_user)
