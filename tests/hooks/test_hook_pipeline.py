"""The laws of execution hooks, plain functions as hooks, before-hooks and after-hooks."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Complete,
    HandledCall,
    HookOutcome,
    Reject,
    RejectedCall,
    RunNormally,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolDecision,
    ToolHooks,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
)
from lutum_py.errors import HookError, ToolInputError
from tests.sample_tools import (
    ALICE,
    AppTools,
    DataTools,
    DeepTools,
    Filter,
    GetUserArgs,
    PingTools,
    QueryArgs,
    User,
    opened,
    sent,
    web_search,
)

USER = sent("get_user", "u1", user_id="alice")
SEARCH = sent("web_search", "s1", query="x")
QUERY = sent("query", "q1", filters=[{"field": "age", "at_least": 3}])
TICKET = SuspendTicket(action="approve")


def parse(metadata: ToolMetadata = USER) -> AnyToolCall:
    return AppTools.parse_tool_call(metadata)


def on_user(*hooks: Any) -> Any:
    """A hook set with execution hooks for `get_user`."""
    made = AppTools.HookSet()
    for hook in hooks:
        made.on(AppTools.data.get_user)(hook)
    return made


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
            assert asked.tool_calls[0].input.user_id == "alice"
            assert plan.pending[0].input.user_id == "bob"
            committed = plan.commit(transcript, [plan.pending[0].complete(ALICE)])
        assert committed.results[0].arguments == USER.arguments

    def test_a_second_pass_touches_only_what_is_pending(self) -> None:
        """A second `apply_hooks` sees what is pending, and adds to the other lists."""
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
            assert [each.metadata.id for each in first.rejected] == ["u1"]
            assert [each.metadata.id for each in second.rejected] == ["u1", "l1"]
            assert [call.id for call in second.pending] == ["s1"]
            assert len(first.decisions) == 3
            assert [record.call_id for record in second.decisions] == ["u1", "s1", "l1", "s1", "l1"]

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

    def test_the_call_that_was_asked_about_is_not_changed(self) -> None:
        """`call.hook` gives what became of the call, and leaves the call as it was."""
        for decision in (RunNormally(GetUserArgs(user_id="b")), Complete(ALICE), Reject("no")):
            call = parse()
            outcome = call.hook_sync(on_user(lambda metadata, input, d=decision: d))
            assert outcome is not call
            assert (call.status, call.input.user_id) == (CallStatus.NEW, "alice")

    def test_hooks_of_a_nested_toolset_decide_for_the_outer_one(self) -> None:
        """An outer round goes through the inner hooks, and its outcomes are the outer toolset's."""
        hooks = DeepTools.HookSet()
        hooks.app.data.register_get_user_hook(
            lambda metadata, input: Complete(ALICE) if input.user_id == "alice" else Reject("who?")
        )
        calls = [sent("app_get_user", id, user_id=id) for id in ("alice", "bob")]
        with opened(DeepTools, *calls, available=["app_get_user"]) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert isinstance(plan.handled[0], DeepTools.Handled)
            assert plan.handled[0].result.name == "app_get_user"
            assert plan.rejected[0].call.selector is DeepTools.app.data.get_user


class TestUnfitAnswers:
    @pytest.mark.parametrize(
        "answer", [None, "yes", True, RunNormally, Block("no"), Suspend(TICKET), 3]
    )
    def test_what_is_no_decision_is_a_hook_error(self, answer: Any) -> None:
        """An execution hook returns one of three decisions; anything else names hook and call."""

        def odd(metadata: ToolMetadata, input: GetUserArgs) -> Any:
            return answer

        with pytest.raises(
            HookError, match=r"odd` for tool `get_user` \(call 'u1'\) returned"
        ) as caught:
            parse().hook_sync(on_user(odd))
        assert "Return RunNormally(input), Complete(output) or Reject(reason)" in str(caught.value)
        assert (caught.value.tool, caught.value.call_id) == ("get_user", "u1")
        assert str(caught.value.hook).endswith("odd")

    @pytest.mark.parametrize(
        ("input", "text"),
        [
            ({"user_id": 3}, "`user_id`: Input should be a valid string"),
            ({}, "`user_id`: "),
            (3, "returned an unfit input"),
            (None, "returned an unfit input"),
            (GetUserArgs.model_construct(), "`user_id`"),
            (GetUserArgs.model_construct(user_id=3), "valid string"),
        ],
    )
    def test_a_rewritten_input_is_validated_through_its_fields(self, input: Any, text: str) -> None:
        """An input that a hook returns must validate, also where it is an instance already."""
        with pytest.raises(HookError, match=text) as caught:
            parse().hook_sync(on_user(lambda metadata, old: RunNormally(input)))
        assert isinstance(caught.value.__cause__, ToolInputError)

    def test_a_plain_dict_is_a_fit_input(self) -> None:
        """A rewritten input is validated into the input type, so plain data will do."""
        outcome: Any = parse().hook_sync(
            on_user(lambda metadata, input: RunNormally({"user_id": "bob"}))
        )
        assert outcome.input == GetUserArgs(user_id="bob")

    @pytest.mark.parametrize(
        "filters",
        [
            [Filter.model_construct(field=3)],
            [Filter(field="a"), Filter.model_construct(at_least="many", field="x")],
            [3],
        ],
    )
    def test_nested_models_are_validated_too(self, filters: Any) -> None:
        """A model inside a model, built without validation, is found by its path."""
        hooks = DeepTools.HookSet()
        hooks.on(DeepTools.query)(
            lambda metadata, input: RunNormally(QueryArgs.model_construct(filters=filters))
        )
        call = DeepTools.parse_tool_call(QUERY)
        with pytest.raises(HookError, match=r"`filters\[\d\]"):
            call.hook_sync(hooks)
        assert call.input.filters == [Filter(field="age", at_least=3)]

    def test_a_validator_that_raises_anything_is_a_hook_error(self) -> None:
        """Whatever goes wrong while a rewritten input is validated comes out as a HookError."""

        class Fragile(ToolInput[str]):
            x: int

            @field_validator("x")
            @classmethod
            def check(cls, value: int) -> int:
                return 10 // value

        class Tools(Toolset):
            fragile = tool(Fragile)

        hooks = Tools.HookSet()
        hooks.on(Tools.fragile)(lambda metadata, input: RunNormally(Fragile.model_construct(x=0)))
        call = Tools.parse_tool_call(sent("fragile", x=1))
        with pytest.raises(HookError, match="returned an unfit input") as caught:
            call.hook_sync(hooks)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def test_an_output_has_to_fit(self) -> None:
        """`Complete` with an output of another type is a HookError that names the field."""
        with pytest.raises(HookError, match=r"returned an unfit output.*`name`"):
            parse().hook_sync(on_user(lambda metadata, input: Complete({"name": 3})))

    def test_a_reason_is_a_text(self) -> None:
        """A reason that is no text is refused before it could reach the model."""
        error: Any = ValueError("x")
        with pytest.raises(HookError, match=r"gave ValueError\('x'\) as a reason. Give a text"):
            parse().hook_sync(on_user(lambda metadata, input: Reject(error)))


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
            HookError, match=r"broken.*` for tool `get_user` \(call 'u1'\) raised KeyError: 'boom'"
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
            with pytest.raises(HookError, match="down"):
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

        with pytest.raises(HookError, match="raised StopIteration"):
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
        """A CancelledError or KeyboardInterrupt of a hook comes out as it is."""
        for error in (asyncio.CancelledError, KeyboardInterrupt):

            def stop(metadata: ToolMetadata, input: GetUserArgs, error: Any = error) -> Any:
                raise error

            with pytest.raises(error):
                parse().hook_sync(on_user(stop))


class TestSyncTwins:
    def test_an_async_hook_is_a_type_error_that_names_it(self) -> None:
        """A sync twin that meets an async hook names it, and leaves no coroutine behind."""

        async def slow(metadata: ToolMetadata, input: GetUserArgs) -> Any: ...

        async def function(call: AnyToolCall) -> HookOutcome:
            return call

        with opened(AppTools, USER) as asked:
            for hooks, name in ((on_user(slow), "slow"), (function, "function")):
                with pytest.raises(TypeError, match=f"Hook `.*{name}` is async, so it cannot"):
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
        with pytest.raises(TypeError, match="is async"):
            parse().hook_sync(hooks)
        assert isinstance(asyncio.run(parse().hook(hooks)), HandledCall)


class TestPlainFunctions:
    def test_a_function_may_give_the_call_itself(self) -> None:
        """The call itself means unhandled: it stays pending, as the object that it was."""
        with opened(AppTools, USER, SEARCH) as asked:
            plan = asked.apply_hooks_sync(lambda call: call)
            assert plan.pending == asked.tool_calls
            assert [(r.phase, r.decision) for r in plan.decisions] == [
                ("function", "run_normally")
            ] * 2

    @pytest.mark.parametrize("way", ["assigned", "with_input", "made"])
    def test_a_function_may_give_another_input(self, way: str) -> None:
        """An input that the function assigned, passed on or put into a call by hand counts."""

        def rename(call: AnyToolCall) -> HookOutcome:
            new = GetUserArgs(user_id="bob")
            if way == "assigned":
                call.input = new
                return call
            if way == "with_input":
                return call.with_input(new)
            made: AnyToolCall = GetUserArgs.Call(call.metadata, new)
            return made

        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(rename)
            assert plan.pending[0].input == GetUserArgs(user_id="bob")
            assert plan.pending[0].selector is AppTools.data.get_user
            assert asked.tool_calls[0].input.user_id == "alice"

    def test_an_input_made_by_hand_is_validated(self) -> None:
        """A call that a function made by hand cannot smuggle an input past validation."""
        wrong = GetUserArgs.model_construct(user_id=3)
        with pytest.raises(HookError, match="returned an unfit input"):
            parse().hook_sync(lambda call: GetUserArgs.Call(call.metadata, wrong))

    def test_a_function_may_answer(self) -> None:
        """`handled`, `reject` and `suspend` are outcomes, and a rejection is a hook's."""

        def decide(call: AnyToolCall) -> HookOutcome:
            if call.id == "u1":
                return call.handled(ALICE)
            return call.suspend(TICKET) if call.id == "u2" else call.reject("blocked query")

        with opened(AppTools, USER, SEARCH, sent("get_user", "u2", user_id="x")) as asked:
            plan = asked.apply_hooks_sync(decide)
            assert [each.output for each in plan.handled] == [ALICE]
            assert [(each.reason, each.source) for each in plan.rejected] == [
                ("blocked query", "hook")
            ]
            assert [each.call.id for each in plan.suspended] == ["u2"]
            assert plan.blocked is None
            assert [(r.decision, r.reason) for r in plan.decisions] == [
                ("complete", None),
                ("reject", "blocked query"),
                ("suspend", "approve"),
            ]
            assert all(call.status is CallStatus.NEW for call in asked.tool_calls)

    def test_async_functions_work(self) -> None:
        """A plain function may be async."""

        async def decide(call: AnyToolCall) -> HookOutcome:
            await asyncio.sleep(0)
            return call.reject("no") if AppTools.web_search.matches(call) else call

        with opened(AppTools, USER, SEARCH) as asked:
            plan = asyncio.run(asked.apply_hooks(decide))
            assert [each.metadata.id for each in plan.rejected] == ["s1"]

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            True,
            Reject("no"),
            parse(SEARCH),
            parse(SEARCH).reject("no"),
            parse(SEARCH).suspend(TICKET),
            PingTools.parse_tool_call(sent("ping")).handled("x"),
        ],
    )
    def test_anything_else_is_a_hook_error(self, answer: Any) -> None:
        """A function that gives no outcome, or that of another call, is told what to give."""
        with pytest.raises(HookError, match=r"Return the call itself, call.handled\(...\)"):
            parse().hook_sync(lambda call: answer)

    @pytest.mark.parametrize("answer", ["reject", "handled", "complete"])
    def test_a_decided_call_is_not_pending(self, answer: str) -> None:
        """A function that decides and gives the call instead of the outcome is told so."""

        def forgetful(call: AnyToolCall) -> HookOutcome:
            getattr(call, answer)("no" if answer == "reject" else ALICE)
            return call

        with pytest.raises(HookError, match=r"returned the call, which is (cancelled|succeeded)"):
            parse().hook_sync(forgetful)

    def test_an_answer_has_to_be_of_this_call(self) -> None:
        """A handled call whose result is of another call is refused."""
        other = parse(sent("get_user", "u9", user_id="x")).complete(ALICE)

        def swapped(call: AnyToolCall) -> HookOutcome:
            return HandledCall(call.metadata, call.input, ALICE, other)

        with pytest.raises(
            HookError, match="returned a result of another call, 'u9' of tool 'get_user'"
        ):
            parse().hook_sync(swapped)

    def test_a_reason_is_a_text(self) -> None:
        """A rejection whose reason is no text is refused."""
        with pytest.raises(HookError, match=r"is 3\. Give a text"):
            parse().hook_sync(lambda call: call.reject(3))

    def test_a_function_that_raises_is_a_hook_error(self) -> None:
        """A plain function that raises is named like any other hook."""

        def broken(call: AnyToolCall) -> HookOutcome:
            raise RuntimeError("boom")

        with pytest.raises(
            HookError, match=r"broken` for tool `get_user` .* raised RuntimeError: boom"
        ):
            parse().hook_sync(broken)

    @pytest.mark.parametrize("hooks", [None, 3, AppTools, object()])
    def test_what_are_no_hooks_is_refused(self, hooks: Any) -> None:
        """Something that is neither a hook set nor a function is refused, with the remedy."""
        with pytest.raises(HookError, match="Hooks are a HookSet, or a function of a call, not"):
            parse().hook_sync(hooks)


class Guarded:
    """An object that decides about calls, as the protocol has it, on top of a hook set."""

    def __init__(self, inner: Any, is_async: bool) -> None:
        self.inner = inner
        self.is_async = is_async

    @property
    def toolset(self) -> type[AppTools]:
        return AppTools

    def hook_tool_call(self, call: AnyToolCall, /) -> HookOutcome | Awaitable[HookOutcome]:
        return call.hook(self.inner) if self.is_async else call.hook_sync(self.inner)


class TestHookObjects:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_an_object_with_the_protocol_decides(self, is_async: bool) -> None:
        """`apply_hooks` accepts any object like a hook set, sync or async."""
        hooks: ToolHooks[AppTools] = Guarded(
            on_user(lambda metadata, input: RunNormally(GetUserArgs(user_id="bob"))), is_async
        )
        with opened(AppTools, USER, SEARCH) as asked:
            plan = asyncio.run(asked.apply_hooks(hooks))
            assert [call.id for call in plan.pending] == ["u1", "s1"]
            assert plan.pending[0].input.user_id == "bob"
            assert plan.decisions[0].hook == "Guarded.hook_tool_call"

    def test_a_block_behind_an_object_still_blocks(self) -> None:
        """A gate that blocks behind an object of the user's is seen as a block by the plan."""
        inner = AppTools.HookSet()
        inner.gate()(lambda metadata, input: Block("stop"))
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(Guarded(inner, False))
            assert plan.blocked == "stop"
            assert plan.rejected[0].source == "gate"
            assert [record.decision for record in plan.decisions] == ["block"]

    def test_a_hook_set_is_one(self) -> None:
        """A hook set has the protocol itself."""
        hooks: ToolHooks[AppTools] = on_user(lambda metadata, input: Complete(ALICE))

        async def ask() -> HookOutcome:
            answer = hooks.hook_tool_call(parse())
            assert isinstance(answer, Awaitable)
            return await answer

        assert isinstance(asyncio.run(ask()), HandledCall)


class TestBeforeHooks:
    def test_before_hooks_see_calls_that_stay_pending(self) -> None:
        """A before-hook is asked about allowed calls only, with their final input."""
        seen: list[tuple[str, Any]] = []
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: seen.append((metadata.id, input)))
        hooks.on(AppTools.web_search)(
            lambda metadata, input: RunNormally(web_search.Input(query="new"))
        )
        hooks.on(AppTools.data.list_orders)(lambda metadata, input: Complete(["a"]))
        hooks.gate(AppTools.data.get_user)(
            lambda metadata, input: {"u1": Block("no"), "u2": Suspend(TICKET)}.get(metadata.id)
        )
        calls = [SEARCH, sent("list_orders", "l1", user_id="x")]
        calls += [sent("get_user", id, user_id="x") for id in ("u1", "u2", "u3")]
        with opened(AppTools, *calls) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert [call.id for call in plan.pending] == ["s1", "u3"]
        assert seen == [("s1", web_search.Input(query="new")), ("u3", GetUserArgs(user_id="x"))]

    def test_a_before_hook_runs_once_for_each_call(self) -> None:
        """A second pass asks a before-hook about no call again, but other before-hooks it asks."""
        seen: list[str] = []
        hooks = AppTools.HookSet()
        hooks.before(AppTools.web_search)(lambda metadata, input: seen.append(metadata.id))
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks.with_web_search_gate(lambda *_: None))
            assert seen == ["s1", "s2"]
            other = AppTools.HookSet()
            other.before()(lambda metadata, input: seen.append("other"))
            plan.apply_hooks_sync(other)
        assert seen == ["s1", "s2", "other", "other"]

    @pytest.mark.parametrize("answer", [Reject("x"), Block("x"), Complete(1), RunNormally(1)])
    def test_a_before_hook_decides_nothing(self, answer: Any) -> None:
        """A decision of a before-hook is an error rather than passed over; another value is not."""
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: answer)
        with pytest.raises(HookError, match=r"a before-hook decides nothing\. Register a gate"):
            parse().hook_sync(hooks)
        harmless = AppTools.HookSet()
        harmless.before()(lambda metadata, input: 3)
        call = parse()
        assert call.hook_sync(harmless) is call

    def test_a_before_hook_may_be_async_and_may_raise(self) -> None:
        """A before-hook is awaited, and one that raises is a HookError like any other."""
        hooks = AppTools.HookSet()

        async def throttle(metadata: ToolMetadata, input: Any) -> None:
            raise TimeoutError("busy")

        hooks.register_web_search_before_hook(throttle)
        with opened(AppTools, SEARCH) as asked, pytest.raises(HookError, match="busy"):
            asyncio.run(asked.apply_hooks(hooks))


class TestAfterHooks:
    def test_after_hooks_see_executed_and_handled_calls(self) -> None:
        """After-hooks see call and result, however the result came about, but no rejection."""
        seen: list[tuple[str, str, Any]] = []
        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after()(lambda call, result: seen.append((call.id, result.id, call.input)))
        hooks.on(AppTools.data.list_orders)(lambda metadata, input: Reject("no"))
        calls = [USER, SEARCH, sent("list_orders", "l1", user_id="x")]
        with opened(AppTools, *calls) as asked:
            plan = asked.apply_hooks_sync(hooks)
            results = plan.apply_after_hooks_sync(hooks, [plan.pending[0].fail("down")])
            assert [result.status for result in results] == ["error"]
        assert sorted(seen, key=lambda entry: entry[0]) == [
            ("s1", "s1", web_search.Input(query="x")),
            ("u1", "u1", GetUserArgs(user_id="alice")),
        ]

    def test_an_after_hook_may_replace_a_result(self) -> None:
        """A result that an after-hook returns is committed, and the next after-hook sees it."""

        def shout(call: AnyToolCall, result: ToolResult) -> ToolResult:
            return call.again().complete({"hits": [result.output["hits"][0].upper()]})

        async def twice(call: AnyToolCall, result: ToolResult) -> ToolResult:
            return call.again().complete({"hits": result.output["hits"] * 2})

        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after(AppTools.web_search)(shout)
        hooks.register_web_search_after_hook(twice)
        hooks.after(AppTools.data.get_user)(
            lambda call, result: call.again().complete(User(name="Bob"))
        )
        with opened(AppTools, USER, SEARCH) as asked:

            async def run() -> Any:
                plan = await asked.apply_hooks(hooks)
                done = plan.pending[0].complete({"hits": ["x"]})
                return plan, await plan.apply_after_hooks(hooks, [done])

            plan, results = asyncio.run(run())
            committed = plan.resolve(results)
            assert [result.result for result in committed.results] == [
                '{"name":"Bob"}',
                '{"hits":["X","X"]}',
            ]
            assert plan.handled[0].output == {"name": "Bob"}

    @pytest.mark.parametrize("answer", [3, Complete(ALICE), Reject("no")])
    def test_an_after_hook_gives_a_result_or_nothing(self, answer: Any) -> None:
        """Anything but a result or None is a HookError, and so is the result of another call."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: answer)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match="Return a ToolResult or None"):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_an_after_hook_cannot_answer_another_call(self) -> None:
        """A result of another call is refused."""
        other = parse(SEARCH).complete({"hits": []})
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: other)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(
                HookError, match="a result of another call, 's1' of tool 'web_search'"
            ):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_after_hooks_are_those_of_a_hook_set(self) -> None:
        """A plain function has no after-hooks, and says so."""
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match="After-hooks are those of a HookSet"):
                plan.apply_after_hooks_sync(lambda call: call, [plan.pending[0].complete(ALICE)])

    def test_a_raising_after_hook_is_a_hook_error(self) -> None:
        """An after-hook that raises is named, and the plan can be used again."""
        hooks = AppTools.HookSet()

        def broken(call: AnyToolCall, result: ToolResult) -> None:
            raise ValueError("boom")

        hooks.after()(broken)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            result = plan.pending[0].complete(ALICE)
            with pytest.raises(HookError, match="broken` for tool `get_user`"):
                plan.apply_after_hooks_sync(hooks, [result])
            assert plan.resolve([result]).results == (result,)


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


class Odd(BaseModel):
    """Only here so that a model that is no input can be returned."""


def test_a_model_of_another_type_is_no_input() -> None:
    """An instance of another model is validated by its fields, and does not fit."""
    with pytest.raises(HookError, match="`user_id`"):
        parse().hook_sync(on_user(lambda metadata, input: RunNormally(Odd())))
