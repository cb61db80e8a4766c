"""The laws of what a hook, a plain function or an object may answer about a call."""

from __future__ import annotations

import asyncio
import re
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
    Reject,
    RunNormally,
    Suspend,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
)
from lutum_py.errors import HookError, ToolInputError
from lutum_py.typing import HookOutcome, ToolHooks
from tests.hooks.asked import SEARCH, TICKET, USER, on_user, parse, returned
from tests.sample_tools import (
    ALICE,
    AppTools,
    DeepTools,
    Filter,
    GetUserArgs,
    PingTools,
    QueryArgs,
    input_of,
    opened,
    sent,
)

QUERY = sent("query", "q1", filters=[{"field": "age", "at_least": 3}])


class TestUnfitAnswers:
    @pytest.mark.parametrize(
        "answer", [None, "yes", True, RunNormally, Block("no"), Suspend(TICKET), 3]
    )
    def test_what_is_no_decision_is_a_hook_error(self, answer: Any) -> None:
        """An execution hook returns one of three decisions; anything else names hook and call."""

        def odd(metadata: ToolMetadata, input: GetUserArgs) -> Any:
            return answer

        with pytest.raises(
            HookError, check=lambda error: (error.tool, error.call_id) == ("get_user", "u1")
        ) as caught:
            parse().hook_sync(on_user(odd))
        assert re.search(returned(answer, "RunNormally(input), Complete("), str(caught.value))
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
        with pytest.raises(HookError):
            call.hook_sync(hooks)
        assert input_of(call).filters == [Filter(field="age", at_least=3)]

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
        with pytest.raises(HookError) as caught:
            call.hook_sync(hooks)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def test_an_output_has_to_fit(self) -> None:
        """`Complete` with an output of another type is a HookError that names the field."""
        with pytest.raises(HookError, match=r"returned an unfit output.*`name`"):
            parse().hook_sync(on_user(lambda metadata, input: Complete({"name": 3})))

    def test_a_reason_is_a_text(self) -> None:
        """A reason that is no text is refused before it could reach the model."""
        error: Any = ValueError("x")
        with pytest.raises(HookError):
            parse().hook_sync(on_user(lambda metadata, input: Reject(error)))


class TestPlainFunctions:
    def test_a_function_may_give_the_call_itself(self) -> None:
        """The call itself means unhandled: it stays pending, as the object that it was."""
        with opened(AppTools, USER, SEARCH) as asked:
            plan = asked.apply_hooks_sync(lambda call: call)
            assert plan.pending == asked.tool_calls
            assert [(r.phase, r.decision) for r in plan.decisions] == [
                ("execution", "run_normally")
            ] * 2

    @pytest.mark.parametrize("way", ["assigned", "made"])
    def test_a_function_may_give_another_input(self, way: str) -> None:
        """An input that the function assigned or put into a call by hand counts."""

        def rename(call: AnyToolCall) -> HookOutcome:
            new = GetUserArgs(user_id="bob")
            if way == "assigned":
                call.input = new
                return call
            made: AnyToolCall = GetUserArgs.Call(call.metadata, new)
            return made

        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(rename)
            assert plan.pending[0].input == GetUserArgs(user_id="bob")
            assert plan.pending[0].selector is AppTools.data.get_user
            assert asked.tool_calls == plan.pending

    def test_an_input_made_by_hand_is_validated(self) -> None:
        """A call that a function made by hand cannot smuggle an input past validation."""
        wrong = GetUserArgs.model_construct(user_id=3)
        with pytest.raises(HookError):
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
            statuses = [CallStatus.SUCCEEDED, CallStatus.CANCELLED, CallStatus.SUSPENDED]
            assert [call.status for call in asked.tool_calls] == statuses

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
        with pytest.raises(HookError, match=returned(answer, "the call itself, call.handled(")):
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

        with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
            parse().hook_sync(swapped)

    def test_a_reason_is_a_text(self) -> None:
        """A rejection whose reason is no text is refused."""
        with pytest.raises(HookError):
            parse().hook_sync(lambda call: call.reject(3))

    def test_a_function_that_raises_is_a_hook_error(self) -> None:
        """A plain function that raises is named like any other hook."""

        def broken(call: AnyToolCall) -> HookOutcome:
            raise RuntimeError("boom")

        with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
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
            assert input_of(plan.pending[0]).user_id == "bob"
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

    def test_what_one_call_was_asked_is_on_its_line(self) -> None:
        """Who was asked about a call, without a plan, stands in the history of the call itself."""
        asked: Any = parse().hook_sync(on_user(lambda metadata, input: RunNormally(input)))
        assert [(step.kind, step.verdict) for step in asked.steps[1:]] == [
            ("reviewed", "run_normally")
        ]


class Odd(BaseModel):
    """Only here so that a model that is no input can be returned."""


def test_a_model_of_another_type_is_no_input() -> None:
    """An instance of another model is validated by its fields, and does not fit."""
    with pytest.raises(HookError):
        parse().hook_sync(on_user(lambda metadata, input: RunNormally(Odd())))
