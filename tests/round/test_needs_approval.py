"""The laws of approvals that tools are declared with: asked last, whatever the hooks are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import (
    CommitError,
    HookError,
    LifecycleError,
    MisuseError,
    ToolDefinitionError,
    UnresolvedSuspension,
)
from lutum_py.execution import execute_sync, run_sync
from tests.cases import over
from tests.round_tools import close, opened
from tests.sample_tools import input_of


@tool_fn
def refund(order: str, cents: int, note: str = "") -> str:
    """Refund an order."""
    return f"refunded {cents}"


class SendArgs(BaseModel):
    """Send a mail."""

    to: str
    password: SecretStr = SecretStr("x")


@tool_fn
def send(input: SendArgs) -> str:
    """Send a mail."""
    return "sent"


class Desk(Toolset):
    refund = tool(
        refund,
        needs_approval=lambda input: input.cents > 5000,
        approval_message="Refund {cents} cents of {order}{{!}}?",
    )
    send = tool(send)


def desk(*cents: int, toolset: type[Any] = Desk) -> ToolRound[Any]:
    asked = [(f"c{at}", "refund", {"order": "A", "cents": c}) for at, c in enumerate(cents)]
    return opened(*asked, toolset=toolset)


def desk_call(id: str, cents: int) -> ToolMetadata:
    return ToolMetadata(id=id, name="refund", arguments=json.dumps({"order": "A", "cents": cents}))


def waiting(plan: Any) -> list[str]:
    return [each.call.id for each in plan.suspended]


def test_a_call_waits_where_its_input_says_so() -> None:
    """The condition sees the input; what it does not ask for stays pending."""
    plan = desk(5000, 5001).plan()
    assert (waiting(plan), [call.id for call in plan.pending]) == (["c1"], ["c0"])
    ticket = plan.suspended[0].ticket
    assert (ticket.action, ticket.message) == ("approve", "Refund 5001 cents of A{!}?")
    assert [(each.hook, each.phase, each.decision) for each in plan.decisions] == [
        ("needs_approval", "gate", "suspend")
    ]
    assert plan.calls[1].by == "needs_approval"
    close(plan)


def test_it_is_asked_after_every_kind_of_hooks() -> None:
    """A hook set, a plain function and no hooks at all: the call waits in each."""

    def passes(call: AnyToolCall) -> AnyToolCall:
        return call

    for hooks in (passes, Desk.HookSet()):
        call = Desk.parse_tool_call(desk_call("c0", 6000))
        assert call.hook_sync(hooks).ticket.message  # type: ignore[union-attr]
        plan = desk(6000).apply_hooks_sync(hooks)
        assert waiting(plan) == ["c0"]
        close(plan)


def test_it_sees_what_hooks_made_of_the_input() -> None:
    """An execution hook may bring a call under the limit, or over it."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.refund)
    def other(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input.model_copy(update={"cents": 10_000 - input.cents}))

    plan = desk(6000, 1000).apply_hooks_sync(hooks)
    assert waiting(plan) == ["c1"]
    close(plan)


@over(
    "answer, state, by",
    [
        (Block("no"), "rejected", "gate"),
        (Suspend(SuspendTicket(message="mine")), "suspended", "gate"),
        (Complete("known"), "suspended", "needs_approval"),
        (None, "suspended", "needs_approval"),
    ],
)
def test_it_ranks_among_gates_as_the_last_one(answer: Any, state: str, by: str) -> None:
    """A block wins, another suspension came first, and an answer comes after it."""
    hooks = Desk.HookSet()

    @hooks.gate(Desk.refund)
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        return answer

    plan = desk(6000).apply_hooks_sync(hooks)
    row = plan.calls[0]
    assert row.state == state
    assert (row.by or "").split(".")[-1] == by
    close(plan)


def test_who_is_told_before_a_run_is_not_told_of_what_waits() -> None:
    """Before-hooks are asked once the call is approved and hooks are applied again."""
    asked: list[str] = []
    hooks = Desk.HookSet()

    @hooks.before(Desk.refund)
    def told(metadata: ToolMetadata, input: Any) -> None:
        asked.append(metadata.id)

    plan = desk(6000).apply_hooks_sync(hooks)
    assert asked == []
    plan.resume(plan.suspended[0].decide(True, by="ann"))
    again = plan.apply_hooks_sync(hooks)
    assert asked == ["c0"]
    assert run_sync(again).commit(Session()).results[0].is_success


def test_an_approval_counts_for_the_arguments_that_were_shown() -> None:
    """An edit is asked about as any input, and approved under its own digest."""
    plan = desk(6000).plan()
    plan.amend_sync(plan.suspended[0].edit({"cents": 7000}), Desk.HookSet())
    assert [call.input.cents for call in plan.pending] == [7000]  # type: ignore[attr-defined]
    close(plan)


def test_an_approved_call_survives_saving() -> None:
    """It waits in the saved plan, and goes on from there."""
    plan = Desk.load_plan(desk(6000).plan().dump_json())
    assert waiting(plan) == ["c0"]
    plan.resume(plan.suspended[0].approve())
    loaded = Desk.load_plan(plan.dump_json()).apply_hooks_sync(Desk.HookSet())
    assert [call.id for call in loaded.pending] == ["c0"]
    close(loaded)


class Plain(Toolset):
    refund = tool(refund)


def test_it_is_no_part_of_digests() -> None:
    """What is declared beside the tool changes neither its definition nor its calls."""
    own, other = (each.parse_tool_call(desk_call("c0", 1)) for each in (Desk, Plain))
    assert own.digest == other.digest
    assert Desk.refund.definition.digest == Plain.refund.definition.digest


async def slowly(input: Any) -> bool:
    """A condition that has to look something up."""
    await asyncio.sleep(0)
    return bool(input.cents > 1)


class Slow(Toolset):
    refund = tool(refund, needs_approval=slowly)


def test_an_async_condition_is_awaited_and_refused_in_sync_code() -> None:
    """Sync code is told what to write; giving a round up asks nobody."""
    round_ = desk(2, toolset=Slow)
    with pytest.raises(TypeError, match=r"await round\.apply_hooks\(hooks\)"):
        round_.plan()
    assert "c0" in round_.__rich__().plain
    plan = asyncio.run(round_.apply_hooks(Slow.HookSet()))
    assert waiting(plan) == ["c0"]
    session = Session()
    round_.abort(session, "enough")
    assert len(session.transcript) == 2


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (lambda input: "yes", "returned 'yes'. Return True or False"),
        (lambda input: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_condition_that_breaks_decides_nothing(condition: Any, said: str) -> None:
    """No call passes a gate that failed; the error names tool and call."""
    broken = desk(1, toolset=Toolset.of("Broken", tool(refund, needs_approval=condition)))
    with pytest.raises(HookError, check=lambda error: error.hook == "needs_approval") as caught:
        broken.plan()
    assert said in str(caught.value)
    assert (caught.value.tool, caught.value.call_id) == ("refund", "c0")
    close(broken)


def test_a_condition_cannot_change_the_input() -> None:
    """It judges an input of its own: what it does to that is dropped."""

    @tool_fn
    def keep(names: list[str]) -> str:
        """Keep names."""
        return ""

    def grows(input: Any) -> bool:
        input.names.append("x")
        return False

    keeps = Toolset.of("Keeps", tool(keep, needs_approval=grows))
    kept = opened(("c1", "keep", {"names": ["a"]}), toolset=keeps)
    (call,) = kept.plan().pending
    assert input_of(call).names == ["a"]
    assert [step.kind for step in call.steps] == ["proposed", "reviewed"]
    close(kept)


class Inner(Toolset):
    refund = tool(refund, needs_approval=False)
    send = tool(send)


class Strict(Toolset):
    own = toolset(Inner, prefix="own_", needs_approval=True)
    lax = toolset(Inner, prefix="lax_", needs_approval=False)


class ByDefault(Toolset, needs_approval=True):
    inner = toolset(Inner)
    free = toolset(Inner, prefix="free_", needs_approval=False)


def test_what_a_group_asks_for_is_not_taken_away_within() -> None:
    """A group's demand adds to what its tools say; a class says what holds by default."""
    assert {each.name: each.approval for each in (*Strict, *ByDefault)} == {
        "own_refund": (True,),
        "own_send": (True,),
        "lax_refund": (),
        "lax_send": (),
        "refund": (),
        "send": (True,),
        "free_refund": (),
        "free_send": (),
    }


def test_a_secret_is_masked_in_the_question() -> None:
    """The message shows what the approver is shown, and control characters as they are written."""
    mails = Toolset.of(
        "Mails", tool(send, needs_approval=True, approval_message="{to} with {password}?")
    )
    plan = opened(("c1", "send", {"to": "a\x1b", "password": "hunter2"}), toolset=mails).plan()
    assert plan.suspended[0].ticket.message == "a\\x1b with **********?"
    close(plan)


def test_without_a_message_the_question_names_the_tool() -> None:
    """A person is told what is asked for in any case."""
    plan = desk(2, toolset=ByDefault)
    with plan.plan() as none:
        assert none.suspended == ()
    mails = opened(("c1", "send", {"to": "a"}), toolset=ByDefault).plan()
    assert mails.suspended[0].ticket.message == 'send {"to":"a","password":"**********"}?'
    close(mails)


@over(
    "message, said",
    [
        ("Pay {amount}?", "names 'amount', which is not an argument of the tool. It has"),
        ("Pay {}?", "names '', which"),
        ("Pay {cents:>9}?", "formats `cents`"),
        ("Pay {cents!r}?", "formats `cents`"),
        ("Pay {cents.real}?", "names 'cents.real', which"),
        ("Pay {cents?", "has a brace without its other half"),
        (5, "is not text"),
    ],
)
def test_a_message_names_arguments_of_the_tool_and_nothing_else(message: Any, said: str) -> None:
    """What could not be filled in is refused where the tool is declared."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool(refund, needs_approval=True, approval_message=message)
    assert said in str(caught.value)


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_a_condition_is_a_bool_or_a_function(given: Any) -> None:
    """Anything else is refused, for a tool, a group and a class."""
    for declare in (
        lambda: tool(refund, needs_approval=given),
        lambda: toolset(Inner, needs_approval=given),
        lambda: Toolset.of("Made", refund, needs_approval=given),
    ):
        with pytest.raises(ToolDefinitionError):
            declare()


@pytest.mark.parametrize("yes", ["no", 1, None])
def test_an_answer_is_true_or_false(yes: Any) -> None:
    """A text that says no counts as true almost everywhere, so it is refused here."""
    plan = desk(6000).plan()
    with pytest.raises(MisuseError):
        plan.suspended[0].decide(yes)
    close(plan)


def test_decide_makes_the_decision_that_was_meant() -> None:
    """Yes is what approve makes, no is what cancel makes."""
    plan = desk(6000, 7000).plan()
    first, second = plan.suspended
    yes, no = first.decide(True, by="ann", reason="ok"), second.decide(False, by="bob", reason="no")
    assert (yes.action, yes.by, yes.reason, yes.digest) == ("resume", "ann", "ok", first.digest)
    assert (no.action, no.by, no.reason, no.digest) == ("cancel", "bob", "no", second.digest)
    close(plan)


def test_a_round_that_is_committed_without_a_plan_asks_too() -> None:
    """What was not run waits, and goes on from the plan as any call that waits."""
    opening = desk(6000)
    with pytest.raises(CommitError) as caught:
        opening.commit(Session())
    assert isinstance(caught.value.faults[0], UnresolvedSuspension)
    plan = opening.plan()
    plan.resume(plan.suspended[0].approve())
    assert plan.resolve([plan.pending[0].complete("done")]).results[0].is_success


def test_a_call_that_was_answered_needs_no_approval() -> None:
    """It has its result, so a commit without a plan asks nobody about it."""
    opening = desk(6000)
    committed = opening.resolve([opening.tool_calls[0].complete("done")])
    assert committed.results[0].is_success


def by_function(call: AnyToolCall) -> Any:
    """A question of the program: another than whether the call may run."""
    return call.suspend(SuspendTicket(message="Which account?"))


def by_hook_set(call: AnyToolCall) -> Any:
    """The same, asked by a gate behind a function."""
    hooks = Desk.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(message="Which account?")))
    return call.hook_sync(hooks)


@over("hooks, moved", [(hooks, way) for hooks in (by_function, by_hook_set) for way in (0, 1)])
def test_an_answer_to_another_question_is_no_approval(hooks: Any, moved: int) -> None:
    """What a function of the program asked is answered; whether the call may run is asked then."""
    plan = desk(6000).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve())
    if moved:
        plan = Desk.load_plan(plan.dump_json())
    (call,) = plan.pending
    runs: list[Callable[[], object]] = [
        call.call_sync,
        call.retry().call_sync,
        lambda: execute_sync(call),
    ]
    for run in runs:
        with pytest.raises(LifecycleError, match="nobody reviewed it"):
            run()
    later = plan.apply_hooks_sync(hooks)
    (asked,) = later.suspended
    assert (asked.by, asked.ticket.message) == ("needs_approval", "Refund 6000 cents of A{!}?")
    later.resume(asked.approve())
    later.commit(Session(), [later.pending[0].call_sync()])


def test_an_edit_in_answer_to_another_question_is_no_approval() -> None:
    """Who edits what a function asked about is asked for the approval of what it is then."""
    plan = desk(6000).apply_hooks_sync(by_function)
    plan.amend_sync(plan.suspended[0].edit({"cents": 7000}), lambda call: call)
    (asked,) = plan.suspended
    assert asked.arguments["cents"] == 7000
    plan.resume(asked.approve())
    plan.commit(Session(), [plan.pending[0].call_sync()])


def test_the_approval_of_a_gate_is_one() -> None:
    """Gates are answered once for a call as it is, and this is the last of them."""
    hooks = Desk.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(message="May it?")))
    plan = desk(6000).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve())
    again = plan.apply_hooks_sync(hooks)
    again.commit(Session(), [again.pending[0].call_sync()])
