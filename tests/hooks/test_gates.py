"""The laws of gates: who may stop a call, when they are asked, and whose answer counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Decision,
    HandledCall,
    Reject,
    RejectedCall,
    RunNormally,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
)
from lutum_py.errors import HookError, LifecycleError
from lutum_py.typing import CallGate, HookOutcome
from tests.cases import over
from tests.hooks.asked import returned
from tests.round_tools import Till
from tests.sample_tools import (
    ALICE,
    AppTools,
    DeepTools,
    GetUserArgs,
    User,
    input_of,
    opened,
    sent,
    web_search,
)

USER = sent("get_user", "u1", user_id="alice")
SEARCH = sent("web_search", "s1", query="x")
TICKET = SuspendTicket(id="t1", action="approve_user")
RESULT = ToolResult(id="u1", name="get_user", arguments=USER.arguments, result='{"name":"Zoe"}')


def parse(metadata: ToolMetadata = USER) -> AnyToolCall:
    return AppTools.parse_tool_call(metadata)


def gated(*answers: Any) -> Any:
    """A hook set with one gate for each answer."""
    hooks = AppTools.HookSet()
    for answer in answers:
        hooks.gate(AppTools.data.get_user)(lambda metadata, input, given=answer: given)
    return hooks


def test_a_gate_that_says_nothing_lets_the_call_pass() -> None:
    """Where every gate answers None, the call stays pending, and nothing is recorded."""
    with opened(AppTools, USER) as asked:
        plan = asked.apply_hooks_sync(gated(None, None))
        assert plan.pending == asked.tool_calls
        assert plan.decisions == ()
        assert plan.blocked is None


def test_gates_see_the_final_validated_input() -> None:
    """Gates are asked after all execution hooks, whenever they were registered."""
    seen: list[Any] = []
    hooks = AppTools.HookSet()
    hooks.gate()(lambda metadata, input: seen.append(input))
    hooks.gate(AppTools.data.get_user)(lambda metadata, input: seen.append(metadata))
    hooks.on(AppTools.data.get_user)(
        lambda metadata, input: RunNormally(GetUserArgs(user_id=input.user_id.upper()))
    )
    assert isinstance(parse().hook_sync(hooks), AnyToolCall)
    assert seen == [GetUserArgs(user_id="ALICE"), USER]


@over(
    "answers, winner",
    [
        ((Complete(ALICE), Suspend(TICKET), Block("b")), "block"),
        ((Block("b"), Suspend(TICKET), Complete(ALICE)), "block"),
        ((Complete(ALICE), None, Suspend(TICKET)), "suspend"),
        ((Suspend(TICKET), RESULT), "suspend"),
        ((None, Complete(ALICE)), "complete"),
        ((RESULT,), "complete"),
    ],
)
def test_the_strictest_gate_wins(answers: tuple[Any, ...], winner: str) -> None:
    """Block counts more than Suspend, and Suspend more than a result."""
    outcome = parse().hook_sync(gated(*answers))
    kinds = {"block": RejectedCall, "suspend": SuspendedCall, "complete": HandledCall}
    assert isinstance(outcome, kinds[winner])


def test_all_gates_are_asked_and_recorded() -> None:
    """Each gate is asked, also after a Block, and each decision is on the plan."""
    with opened(AppTools, USER) as asked:
        plan = asked.apply_hooks_sync(
            gated(Complete(ALICE), Block("first"), None, Suspend(TICKET), Block("second"))
        )
        assert [(r.decision, r.reason) for r in plan.decisions] == [
            ("complete", None),
            ("block", "first"),
            ("suspend", "approve_user"),
            ("block", "second"),
        ]
        assert {(r.call_id, r.tool, r.phase) for r in plan.decisions} == {
            ("u1", "get_user", "gate")
        }


@pytest.mark.parametrize("is_outer_first", [True, False])
def test_among_equals_the_first_registered_wins(is_outer_first: bool) -> None:
    """At equal rank the gate that was registered first wins, across levels of nesting."""
    hooks: Any = DeepTools.HookSet()

    def outer() -> None:
        hooks.gate()(lambda metadata, input: Block("outer"))

    def inner() -> None:
        hooks.app.data.register_get_user_gate(lambda metadata, input: Block("inner"))

    for register in (outer, inner) if is_outer_first else (inner, outer):
        register()
    call = DeepTools.parse_tool_call(sent("app_get_user", user_id="x"))
    outcome = call.hook_sync(hooks)
    assert isinstance(outcome, RejectedCall)
    assert outcome.reason == ("outer" if is_outer_first else "inner")


def test_results_of_equal_rank_go_by_registration() -> None:
    """A `ToolResult` and a `Complete` are equals: the first one counts."""
    first = parse().hook_sync(gated(RESULT, Complete(ALICE)))
    second = parse().hook_sync(gated(Complete(ALICE), RESULT))
    assert isinstance(first, HandledCall)
    assert isinstance(second, HandledCall)
    assert (first.result, first.output) == (RESULT, {"name": "Zoe"})
    assert second.output == ALICE


def test_a_block_is_a_rejection_that_ends_the_run() -> None:
    """A blocked call is among the rejected, `plan.blocked` has the reason, and a commit works."""
    hooks = AppTools.HookSet()
    hooks.gate()(lambda metadata, input: Block(f"no {metadata.id}"))
    with opened(AppTools, SEARCH, USER) as asked:
        plan = asked.apply_hooks_sync(hooks)
        assert plan.blocked == "no s1"
        assert [(each.reason, each.source) for each in plan.rejected] == [
            ("no s1", "gate"),
            ("no u1", "gate"),
        ]
        results = plan.resolve([]).results
        assert [result.rejection_reason for result in results] == ["no s1", "no u1"]


def test_blocked_keeps_the_first_reason_over_passes() -> None:
    """A later pass leaves the reason of the first Block; a rejection is no Block."""
    with opened(AppTools, SEARCH, USER) as asked:
        hooks = AppTools.HookSet()
        hooks.on(AppTools.web_search)(lambda metadata, input: Reject("r"))
        first = asked.apply_hooks_sync(hooks)
        assert first.blocked is None
        second = first.apply_hooks_sync(gated(Block("")))
        assert second.blocked == ""
        assert second.apply_hooks_sync(gated(Block("later"))).blocked == ""


def test_siblings_of_a_suspended_call_go_on() -> None:
    """A suspended call waits with its ticket and digest; the others are pending."""
    with opened(AppTools, USER, SEARCH) as asked:
        plan = asked.apply_hooks_sync(gated(Suspend(TICKET)))
        assert [call.id for call in plan.pending] == ["s1"]
        (waiting,) = plan.suspended
        assert (waiting.ticket, waiting.call.id, waiting.was_started) == (TICKET, "u1", False)
        assert waiting.digest == asked.tool_calls[0].digest


def test_a_gate_may_give_a_whole_result() -> None:
    """A `ToolResult` of a gate is the call's result as it is, with its status and message."""
    answer = parse().fail("not today", code="closed")
    outcome = parse().hook_sync(gated(answer))
    assert isinstance(outcome, HandledCall)
    assert outcome.result is answer
    assert outcome.input == GetUserArgs(user_id="alice")


def test_a_gate_cannot_answer_another_call() -> None:
    """A result of another call is refused."""
    other = ToolResult(id="zz", name="get_user", arguments=USER.arguments, result="1")
    with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
        parse().hook_sync(gated(other))


@over("answer", [RunNormally(3), Reject("no"), "no", False, Block, Suspend])
def test_a_gate_gives_a_gates_answer(answer: Any) -> None:
    """What is none of a gate's answers is a HookError that lists them."""
    with pytest.raises(HookError, match=returned(answer, "Block(reason), Suspend(ticket)")):
        parse().hook_sync(gated(answer))


def test_a_reason_is_a_text() -> None:
    """A Block whose reason is no text is refused, also where another gate would win."""
    with pytest.raises(HookError):
        parse().hook_sync(gated(Block("fine"), Block(None)))  # type: ignore[arg-type]


def test_an_output_of_a_gate_has_to_fit() -> None:
    """`Complete` of a gate is validated like any output, where it counts."""
    with pytest.raises(HookError):
        parse().hook_sync(gated(Complete({"name": 3})))
    assert isinstance(parse().hook_sync(gated(Complete(3), Block("no"))), RejectedCall)


def test_gates_may_be_async() -> None:
    """An async gate is awaited; the sync twin names it."""

    async def slow(metadata: ToolMetadata, input: Any) -> Block:
        await asyncio.sleep(0)
        return Block("slow")

    hooks = AppTools.HookSet()
    hooks.gate()(slow)
    assert isinstance(asyncio.run(parse().hook(hooks)), RejectedCall)
    with pytest.raises(TypeError, match="slow` is async"):
        parse().hook_sync(hooks)


def test_a_gate_that_raises_is_a_hook_error() -> None:
    """A gate that fails lets nothing pass: it is a HookError."""

    def broken(metadata: ToolMetadata, input: Any) -> None:
        raise OSError("no database")

    hooks = AppTools.HookSet()
    hooks.gate()(broken)
    with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
        parse().hook_sync(hooks)


class TestDecisions:
    """Gates that are asked with the decision by which a suspended call goes on."""

    @staticmethod
    def given(gate: Any) -> list[Any]:
        """What a gate got beyond metadata and input."""
        seen: list[Any] = []
        hooks = AppTools.HookSet()
        hooks.gate()(gate(seen))
        parse().hook_sync(hooks)
        return seen

    @pytest.mark.parametrize(
        ("gate", "expected"),
        [
            (lambda seen: lambda metadata, input, decision: seen.append(decision), [None]),
            (lambda seen: lambda metadata, input, decision=1: seen.append(decision), [None]),
            (lambda seen: lambda metadata, input, limit=7: seen.append(limit), [7]),
            (lambda seen: lambda metadata, input, *more: seen.append(more), [(None,)]),
            (lambda seen: lambda *all: seen.append(len(all)), [3]),
            (lambda seen: lambda metadata, input, *, decision=7: seen.append(decision), [7]),
            (lambda seen: lambda metadata, input, d, x=8: seen.append((d, x)), [(None, 8)]),
        ],
    )
    def test_the_third_parameter_is_the_decision(self, gate: Any, expected: list[Any]) -> None:
        """A gate gets the decision as a third argument where its signature asks for it."""
        assert self.given(gate) == expected

    def test_a_function_without_a_signature_gets_two(self) -> None:
        """What has no signature that can be read is asked with metadata and input."""

        class Opaque:
            __signature__ = "none"

            def __call__(self, metadata: ToolMetadata, input: Any) -> Block:
                return Block("opaque")

        hooks = AppTools.HookSet()
        hooks.gate()(Opaque())
        assert isinstance(parse().hook_sync(hooks), RejectedCall)

    @staticmethod
    def resumed(hooks: Any, plan: Any) -> Decision:
        decision: Decision = plan.suspended[0].approve(by="ann")
        plan.resume(decision)
        return decision

    def test_gates_are_asked_again_on_resume(self) -> None:
        """A resumed call skips execution hooks; its gates see the decision that answered them."""
        seen: list[Any] = []
        hooks = AppTools.HookSet()

        @hooks.on(AppTools.data.get_user)
        def rename(metadata: ToolMetadata, input: GetUserArgs) -> RunNormally[GetUserArgs]:
            seen.append("hook")
            return RunNormally(GetUserArgs(user_id=input.user_id + "!"))

        @hooks.gate(AppTools.data.get_user)
        def approve(metadata: ToolMetadata, input: Any, decision: Decision | None) -> Suspend:
            seen.append((input.user_id, decision))
            return Suspend(TICKET)

        hooks.before()(lambda metadata, input: seen.append("before"))
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert seen == ["hook", ("alice!", None)]
            decision = self.resumed(hooks, plan)
            seen.clear()
            again = plan.apply_hooks_sync(hooks)
            assert seen == [("alice!", decision), "before"]
            assert [input_of(call).user_id for call in again.pending] == ["alice!"]
            assert again.suspended == ()
            assert [record.decision for record in again.decisions] == [
                "run_normally",
                "suspend",
                "suspend",
            ]

    def test_a_block_wins_on_resume(self) -> None:
        """What was approved is still stopped by a gate that blocks now."""
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(gated(Suspend(TICKET)))
            self.resumed(None, plan)
            again = plan.apply_hooks_sync(gated(Suspend(TICKET), Block("too late")))
            assert again.blocked == "too late"
            assert again.pending == ()

    def test_a_suspend_of_a_plain_function_is_answered_too(self) -> None:
        """A plain function that suspends a call that was approved does not suspend it for ever."""

        def approve(call: AnyToolCall) -> HookOutcome:
            return call.suspend(TICKET)

        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(approve)
            self.resumed(None, plan)
            again = plan.apply_hooks_sync(approve)
            assert [call.approval is not None for call in again.pending] == [True]
            assert again.suspended == ()

    def test_an_approved_input_is_frozen_for_functions(self) -> None:
        """A plain function cannot change what was approved."""
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(gated(Suspend(TICKET)))
            self.resumed(None, plan)

            def assign(call: AnyToolCall) -> HookOutcome:
                call.input = GetUserArgs(user_id="mallory")
                return call

            def swap(call: AnyToolCall) -> HookOutcome:
                made: AnyToolCall = GetUserArgs.Call(call.metadata, GetUserArgs(user_id="mallory"))
                return made

            for hooks in (assign, swap):
                with pytest.raises(HookError):
                    plan.apply_hooks_sync(hooks)

    def test_nothing_done_to_an_approved_input_reaches_the_call(self) -> None:
        """What was approved runs, whatever is done to an input that somebody was given."""
        hooks = Till.HookSet()
        hooks.gate(Till.charge)(lambda metadata, input: Suspend(TICKET))
        with opened(Till, sent("charge", "u1", slip={"amount": 20})) as asked:
            plan = asked.apply_hooks_sync(hooks)
            approved = plan.suspended[0].digest
            plan.resume(plan.suspended[0].approve())
            input_of(plan.pending[0]).slip.amount = 2000
            again = plan.apply_hooks_sync(hooks)
            assert (again.suspended, again.pending) == ((), plan.pending)
            assert input_of(again.pending[0]).slip.amount == 20
            assert again.pending[0].digest == approved


def test_a_cancelled_call_is_told_why() -> None:
    """A decision to cancel gives a result that the model reads, and the call is never run."""
    with opened(AppTools, USER) as asked:
        plan = asked.apply_hooks_sync(gated(Suspend(TICKET)))
        plan.resume(Decision(call_id="u1", action="cancel", reason="too late"))
        (result,) = plan.resolve([]).results
        assert (result.status, result.model_text) == ("cancelled", "Cancelled: too late")
        assert plan.rejected[0].source == "decision"


class TestCallGates:
    def test_a_call_gate_sees_the_whole_call(self) -> None:
        """A stock gate is asked with the call and the decision, not with metadata and input."""
        seen: list[Any] = []

        class Careful(CallGate):
            def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> Block:
                seen.append((call, decision))
                return Block("careful")

        hooks = AppTools.HookSet()
        hooks.gate()(Careful())
        call = parse(SEARCH)
        assert isinstance(call.hook_sync(hooks), RejectedCall)
        ((given, decision),) = seen
        assert (given.metadata, decision) == (call.metadata, None)
        assert given.input == web_search.Input(query="x")

    @pytest.mark.parametrize("act", ["assign", "complete", "reject", "suspend"])
    def test_what_a_gate_does_to_the_call_does_not_count(self, act: str) -> None:
        """A gate is given a draft: only what it returns is the call's."""
        acts: dict[str, Any] = {
            "assign": lambda call: setattr(call, "input", GetUserArgs(user_id="bob")),
            "complete": lambda call: call.complete(ALICE),
            "reject": lambda call: call.reject("no"),
            "suspend": lambda call: call.suspend(TICKET),
        }

        class Meddling(CallGate):
            def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> None:
                acts[act](call)

        hooks = AppTools.HookSet()
        hooks.gate()(Meddling())
        call = parse()
        assert call.hook_sync(hooks) is call
        assert (call.status, input_of(call).user_id) == ("new", "alice")
        assert [(step.kind, step.phase) for step in call.steps[1:]] == [("reviewed", "gate")]

    @pytest.mark.parametrize("is_kept", [False, True])
    def test_a_gate_cannot_start_the_call(self, is_kept: bool) -> None:
        """Neither while it is asked nor afterwards, with a draft that it kept."""
        kept: list[AnyToolCall] = []

        class Eager(CallGate):
            def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> None:
                kept.append(call)
                if not is_kept:
                    call.start()

        hooks = AppTools.HookSet()
        hooks.gate()(Eager())
        with opened(AppTools, SEARCH) as asked:
            if is_kept:
                asked.apply_hooks_sync(hooks)
                with pytest.raises(LifecycleError, match=r"draft.*`plan\.pending`"):
                    kept[0].start()
            else:
                with pytest.raises(HookError, match=r"draft.*`plan\.pending`"):
                    asked.apply_hooks_sync(hooks)
            assert asked.tool_calls[0].status == "new"

    def test_the_base_decides_nothing(self) -> None:
        """The base class is there to be inherited from."""
        with pytest.raises(NotImplementedError):
            CallGate()(parse(), None)


def test_the_output_of_a_gate_keeps_its_type() -> None:
    """A call that a gate completed has its output validated into the output type's JSON."""
    outcome = parse().hook_sync(gated(Complete(User(name="Ann"))))
    assert isinstance(outcome, HandledCall)
    assert outcome.result.result == '{"name":"Ann"}'
