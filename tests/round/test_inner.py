"""The laws of calls within calls: they are calls of the same plan, and the tool comes back."""

from __future__ import annotations

import asyncio
import copy
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    Answer,
    AnyToolCall,
    AwaitingCall,
    Block,
    CallStatus,
    Complete,
    Decision,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.context import CancellationToken, ToolRequestedCalls
from lutum_py.errors import (
    CommitError,
    HookError,
    LifecycleError,
    MissingResult,
    MisuseError,
    ResumeError,
    RoundClosedError,
)
from lutum_py.execution import execute, execute_all_sync, run, run_sync
from lutum_py.testing import ScriptedModel
from lutum_py.tools import ResultCap
from lutum_py.typing import CallEvent, CallGate, Inner
from tests.cases import over
from tests.inner_tools import Asking, Desk, asks, let_pass, note, opened, states, step, steps
from tests.private import finish


class Nothing(BaseModel):
    """An answer."""


def started(*calls: Any, toolset: type[Toolset] = Desk) -> ToolRoundPlan[Any]:
    """A plan of which each call was run once."""
    plan = opened(*calls, toolset=toolset)
    step(plan)
    return plan


def run_to_its_end(plan: ToolRoundPlan[Any], hooks: Any = let_pass) -> ToolRoundPlan[Any]:
    while plan.unreviewed or plan.pending:
        plan = plan.apply_hooks_sync(hooks) if plan.unreviewed else plan
        step(plan)
    return plan


def only(results: tuple[ToolResult, ...]) -> ToolResult:
    (result,) = results
    return result


def test_a_call_that_asks_waits_until_each_call_within_has_its_result() -> None:
    """It is in `awaiting`, suspended, and pending again, resuming, once each has a result."""
    plan = started(asks([("note", {"text": "a"}), ("fail", {"why": "b"})]))
    (asking,) = plan.awaiting
    assert (asking.id, asking.status) == ("c1", CallStatus.SUSPENDED)
    assert [call.id for call in plan.unreviewed] == ["c1/1", "c1/2"]
    assert not plan.is_settled
    assert "1 awaiting, 2 unreviewed" in repr(plan)
    plan = plan.apply_hooks_sync(let_pass)
    assert states(plan) == {"c1": "awaiting", "c1/1": "pending", "c1/2": "pending"}
    first, second = plan.pending
    plan.record(asyncio.run(execute(first)))
    assert states(plan)["c1"] == "awaiting"
    plan.record(asyncio.run(execute(second)))
    assert [(call.id, call.status) for call in plan.pending] == [("c1", CallStatus.RESUMING)]
    assert only(run_to_its_end(plan).finished[:1]).output == [["c1/1 success", "c1/2 error"]]
    committed = plan.commit(Session())
    assert [each.id for each in committed.results] == ["c1"]


def test_ids_go_on_counting_past_those_of_the_turn() -> None:
    """A path is the place among all that the call asked for, but for ids that the turn has."""
    plan = opened(
        asks([("note", {"text": "a"})], [("note", {"text": "b"})]),
        ("note", {"text": "c"}),
        ids=("c1", "c1/2"),
    )
    plan = run_to_its_end(plan)
    assert [row.id for row in plan.calls] == ["c1", "c1/2", "c1/1", "c1/3"]
    assert " ".join(each.kind for each in plan.calls[0].steps) == (
        "proposed started requested started requested started ended recorded"
    )
    assert plan.calls[0].steps[2].reason == "c1/1"
    plan.discard()


def test_what_was_asked_cannot_run_before_hooks_were_asked() -> None:
    """Nobody decides by default: not by running it, trying again or copying it."""
    plan = started(asks([("note", {"text": "a"})]))
    (asked,) = plan.unreviewed
    assert asked.status is CallStatus.NEW
    for way in (asked.call_sync, asked.retry, copy.copy(asked).call_sync):
        with pytest.raises(LifecycleError, match="nobody reviewed"):
            way()
    assert plan.batches() == []
    plan.discard()


@over("raises", [False, True])
def test_what_a_gate_was_shown_of_a_call_within_is_not_run_beside_it(raises: bool) -> None:
    """A gate that keeps the draft it was shown cannot start the call with it after the pass."""
    kept: list[AnyToolCall] = []

    class Keeping(CallGate):
        def __call__(self, call: AnyToolCall, _decision: Decision | None, /) -> None:
            kept.append(call)
            assert not raises

    hooks = Desk.HookSet()
    hooks.gate()(Keeping())
    plan = started(asks([("note", {"text": "a"})]))
    refused: Any = pytest.raises(HookError) if raises else nullcontext()
    with refused:
        plan = plan.apply_hooks_sync(hooks)
    with pytest.raises(LifecycleError):
        kept[0].call_sync()
    assert "started" not in [each.kind for each in plan.calls[1].steps]
    assert states(plan)["c1/1"] == ("unreviewed" if raises else "pending")
    plan.discard()


def test_deciding_about_what_was_asked_leaves_others_alone_and_is_one_in_all_plans() -> None:
    """`apply_hooks` is about those alone, once, and older plans see what was decided."""
    seen: list[str] = []

    def hooks(call: AnyToolCall) -> Any:
        seen.append(call.id)
        return call.reject("no") if call.id == "c1/2" else call

    plan = opened(asks([("note", {"text": "a"}), ("note", {"text": "b"})]), ("pay", {"cents": 1}))
    plan.record(asyncio.run(execute(plan.pending[0])))
    told: list[CallEvent] = []
    newer = plan.apply_hooks_sync(hooks, on_event=told.append)
    assert seen == ["c1/1", "c1/2"]
    assert [(each.kind, each.row.id) for each in told] == [("decided", "c1/1"), ("decided", "c1/2")]
    assert states(plan) == states(newer)
    assert states(newer)["c1/2"] == "rejected"
    assert [each.call_id for each in newer.decisions] == ["c1/1", "c1/2"]
    newer.apply_hooks_sync(hooks)
    assert seen[2:] == ["c2"]
    step(newer)
    newer.apply_hooks_sync(hooks)  # `c1` comes back, and was decided on before
    assert seen[3:] == []
    plan.discard()


def test_a_hook_that_raises_decides_nothing() -> None:
    """All that was asked is still asked, also what was let pass before."""

    def hooks(call: AnyToolCall) -> AnyToolCall:
        if call.id == "c1/2":
            raise ValueError("broken")
        return call

    plan = started(asks([("note", {"text": "a"}), ("note", {"text": "b"})]))
    before = plan.steps
    with pytest.raises(HookError):
        plan.apply_hooks_sync(hooks)
    assert plan.steps == before
    plan.discard()


def test_an_answer_that_comes_while_hooks_are_asked_counts() -> None:
    """A call that was answered by hand meanwhile keeps that, the others get what hooks said."""
    plan = started(asks([("note", {"text": "a"}), ("note", {"text": "b"})]))

    def hooks(call: AnyToolCall) -> AnyToolCall:
        if call.id == "c1/2":
            plan.record(plan.unreviewed[0].reject("never mind"))
        return call

    with pytest.raises(LifecycleError, match=r"'c1/1'.* was ended while hooks reviewed it"):
        plan.apply_hooks_sync(hooks)
    assert states(plan) == {"c1": "awaiting", "c1/1": "finished", "c1/2": "pending"}
    plan.discard()


def test_a_run_that_comes_while_hooks_are_asked_counts() -> None:
    """What others decided about and ran meanwhile is not asked about, and keeps its result."""
    plan = started(asks([("note", {"text": "a"}), ("note", {"text": "b"})]))

    def hooks(call: AnyToolCall) -> Any:
        if call.id == "c1/2":
            pytest.fail("it has its result")
        run_sync(plan, hooks=let_pass)
        return call.reject("too late")

    with pytest.raises(LifecycleError, match=r"'c1/1'.* was reviewed .*while hooks reviewed it"):
        plan.apply_hooks_sync(hooks)
    assert states(plan) == {"c1": "finished", "c1/1": "finished", "c1/2": "finished"}
    loaded = Desk.load_plan(plan.dump_json())
    assert states(loaded) == {"c1": "finished", "c1/1": "finished", "c1/2": "finished"}
    loaded.discard()


def test_the_line_of_a_call_within_says_who_asked_and_who_decided() -> None:
    """It starts with the awaiting call; a `reviewed` without a name stands where there was
    nobody.
    """
    hooks = Desk.HookSet()

    @hooks.gate(Desk.pay)
    def guard(metadata: ToolMetadata, input: Any) -> Suspend | None:
        return Suspend(SuspendTicket(id="t", message="Pay?"))

    plan = started(asks([("note", {"text": "a"}), ("pay", {"cents": 5})]))
    plan = plan.apply_hooks_sync(hooks)
    noted, paid = plan.calls[1:]
    assert [(s.kind, s.by, s.phase) for s in noted.steps] == [
        ("proposed", "c1", None),
        ("reviewed", None, "gate"),
    ]
    assert [(s.kind, s.by) for s in paid.steps] == [
        ("proposed", "c1"),
        ("reviewed", plan.suspended[0].by),
        ("suspended", plan.suspended[0].by),
    ]
    (waiting,) = plan.suspended
    assert plan.resume(waiting.approve()) is not None
    assert plan.ancestors("c1/2") == paid.ancestors
    assert [(each.id, each.tool) for each in paid.ancestors] == [("c1", "steps")]
    assert paid.ancestors[0].arguments["each"][0][1] == ["pay", {"cents": 5}]
    assert plan.ancestors("c1") == ()
    with pytest.raises(MisuseError, match="no call 'c9'"):
        plan.ancestors("c9")
    assert not run_to_its_end(plan).awaiting
    plan.discard()


def test_an_approval_within_is_about_that_call_alone() -> None:
    """The same arguments once more are another question, and the asking call's is a third."""
    pays: Any = ("pay", {"cents": 5})
    plan = started(asks([pays, pays]), toolset=Asking).apply_hooks_sync(let_pass)
    first, second = plan.suspended
    readdressed = replace(first.approve(), call_id=second.call.id, ticket=None)
    with pytest.raises(ResumeError, match="it carries digest"):
        plan.resume(readdressed)
    events: list[CallEvent] = []
    plan.resume(first.approve(), on_event=events.append)
    assert states(plan) == {"c1": "awaiting", "c1/1": "pending", "c1/2": "suspended"}
    plan.resume(second.cancel("too much"), on_event=events.append)
    assert [each.row.ancestors for each in events] == [
        plan.ancestors("c1/1"),
        plan.ancestors("c1/2"),
    ]
    result = only(run_to_its_end(plan).finished[:1])
    assert result.output == [["c1/1 success", "c1/2 cancelled"]]
    plan.discard()


def test_nobody_may_know_what_a_call_did_before_it_asked() -> None:
    """Its tool was started, also where it comes back."""
    plan = started(asks([("nix", {})]))
    (call,) = plan.pending
    assert call.status is CallStatus.RESUMING
    assert call.indeterminate("lost").status == "indeterminate"
    plan.discard()


def test_an_approved_call_within_passes_its_hooks_as_any_call() -> None:
    """Before-hooks are told once of a call that was approved, and a gate may block it by now."""
    plan = opened(asks([("pay", {"cents": 1}), ("pay", {"cents": 2})]), ("pay", {"cents": 3}))
    hooks, told, is_over = Desk.HookSet(), list[str](), list[str]()

    @hooks.gate(Desk.pay)
    def gate(metadata: ToolMetadata, input: Any) -> Block | Suspend:
        if input.cents == 3 and is_over == ["raise"]:
            raise ValueError
        return Block("closed") if metadata.id in is_over else Suspend(SuspendTicket())

    @hooks.before()
    def tell(metadata: ToolMetadata, input: Any) -> None:
        told.append(metadata.id)

    plan.record(asyncio.run(execute(plan.pending[0])))
    older = plan.apply_hooks_sync(hooks)
    plan = older.apply_hooks_sync(hooks)
    for waiting in plan.suspended:
        plan.resume(waiting.approve())
    is_over.append("raise")
    before = plan.steps
    with pytest.raises(HookError):
        plan.apply_hooks_sync(hooks)
    assert (plan.steps, told) == (before, [])
    is_over[:] = ["c1/2"]
    for _ in range(2):
        plan = plan.apply_hooks_sync(hooks)
        assert sorted(told) == ["c1/1", "c2"]
        assert states(plan) == states(older) | {"c2": "pending"}
        assert states(older)["c1/2"] == "rejected"
    run_to_its_end(plan)
    assert plan.finished[0].output == [["c1/1 success", "c1/2 rejected"]]
    plan.discard()


@over("is_started", (False, True))
def test_another_try_that_asks_is_told_as_the_one_that_asked(is_started: bool) -> None:
    """It comes back as any other, also in a plan that was saved meanwhile."""
    plan = opened(asks([("note", {"text": "a"})]))
    (call,) = plan.pending
    if is_started:
        call.start()
    (left,) = execute_all_sync([call.retry()])
    plan.record(left)
    kinds = [step.kind for step in plan.calls[0].steps]
    assert kinds == ["proposed", *["started", "retried"] * is_started, "started", "requested"]
    plan = plan.apply_hooks_sync(let_pass)
    step(plan)
    plan = Desk.load_plan(plan.dump_json())
    assert states(plan) == {"c1": "pending", "c1/1": "finished"}
    assert only(run_to_its_end(plan).finished[:1]).output == [["c1/1 success"]]
    plan.discard()


@over("parsed_anew", (False, True))
def test_one_in_doubt_that_asks_elsewhere_is_told_as_tried_again(parsed_anew: bool) -> None:
    """The outcome is that of another try, also where this plan did not make it."""
    kept = opened(asks([("nix", {})]))
    kept.pending[0].start()
    text = kept.dump_json()
    plan, other = (Desk.load_plan(text) for _ in range(2))
    (doubted,) = other.in_doubt
    elsewhere = Desk.parse_tool_call(doubted.metadata) if parsed_anew else doubted.retry()
    plan.record(asyncio.run(execute(elsewhere)))
    kinds = [each.kind for each in plan.calls[0].steps]
    assert kinds == ["proposed", "started", "abandoned", "retried", "started", "requested"]
    assert ([call.id for call in plan.pending], plan.in_doubt) == (["c1"], ())
    plan.discard()
    other.discard()


@over("again", (False, True))
def test_a_call_that_was_answered_since_asks_for_nothing(again: bool) -> None:
    """The call is as it was, but for a step that says what came too late."""
    plan = opened(asks([("note", {"text": "a"})]))
    (call,) = plan.pending
    asking = call.retry() if again else call
    (left,) = execute_all_sync([asking])
    asking.fail("no")
    before = plan.calls
    with pytest.raises(LifecycleError, match="is failed by now"):
        plan.record(left)
    assert plan.calls == before
    assert plan.calls[0].steps[:-1] == before[0].steps
    late = plan.calls[0].steps[-1]
    assert (late.kind, late.verdict) == ("late", "requested")
    plan.discard()


def test_what_cannot_be_used_has_its_result_at_once() -> None:
    """An unknown tool and unfit arguments come back as what a model would read."""
    plan = started(asks([("nix", {}), ("pay", {"cents": "many"})]))
    assert states(plan) == {"c1": "pending", "c1/1": "unusable", "c1/2": "unusable"}
    with pytest.raises(CommitError):
        plan.record(ToolResult(id="c1/1", name="nix", arguments="{}", result="1"))
    row = plan.calls[1]
    assert [each.id for each in row.ancestors] == ["c1"]
    step(plan)
    assert only(plan.finished).output == [["c1/1 rejected", "c1/2 rejected"]]
    plan.discard()


def test_three_deep_and_a_hundred_within_one_is_the_end() -> None:
    """Beyond, the step is an error result of its own code, and nothing more is asked for."""
    nested: Any = ("note", {"text": "a"})
    for _ in range(4):
        nested = asks([nested])
    plan = run_to_its_end(opened(nested))
    deepest = plan.calls[3]
    assert (deepest.id, deepest.result and deepest.result.code) == ("c1/1/1/1", "too_deep")
    assert [each.id for each in deepest.ancestors] == ["c1", "c1/1", "c1/1/1"]
    plan.discard()
    many: Any = [("note", {"text": "a"})] * 50
    plan = run_to_its_end(opened(asks(many, many, many[:1])))
    result = plan.calls[0].result
    assert result is not None
    assert (result.code, len(plan.calls)) == ("too_many_calls", 101)
    plan.discard()


def test_a_commit_wants_the_calls_of_the_turn_and_names_what_is_open_within() -> None:
    """An asking call is missing, and so is one for which a result is given; both say what waits."""
    plan = started(asks([("pay", {"cents": 5}), ("note", {"text": "b"})]), toolset=Asking)
    plan = plan.apply_hooks_sync(let_pass)
    (asking,) = plan.awaiting
    given = ToolResult(id="c1", name="steps", arguments=asking.metadata.arguments, result="1")
    within = ("'c1/1' of tool 'pay' (suspended)", "'c1/2' of tool 'note' (pending)")
    for results in ([], [given]):
        with pytest.raises(CommitError) as caught:
            plan.commit(Session(), results)
        assert {*caught.value.faults} == {MissingResult("c1", "steps", nested=within)}
    assert "c1/1" in str(caught.value)
    with pytest.raises(CommitError) as caught:
        plan.record(given)
    assert caught.value.faults == (MissingResult("c1", "steps", nested=within),)
    for move in (asking.start, lambda: asking.reject("no")):
        with pytest.raises(LifecycleError, match="c1/1, c1/2"):
            move()
    plan.discard()


@pytest.mark.parametrize("hooks", [None, let_pass])
def test_a_result_for_an_asking_call_ends_no_round(hooks: Any) -> None:
    """Also where it answers all of the turn, and nothing but the calls within is open."""
    plan = started(asks([("note", {"text": "a"})]))
    plan = plan if hooks is None else plan.apply_hooks_sync(hooks)
    sent = plan.awaiting[0].metadata.arguments
    given = ToolResult(id="c1", name="steps", arguments=sent, result="1")
    state = "unreviewed" if hooks is None else "pending"
    faults = (MissingResult("c1", "steps", nested=(f"'c1/1' of tool 'note' ({state})",)),)
    for end in (plan.resolve, partial(plan.abort, Session(), "enough")):
        with pytest.raises(CommitError) as caught:
            end([given])
        assert caught.value.faults == faults
    plan.discard()


def test_an_outcome_that_the_plan_was_not_told_is_no_result() -> None:
    """A commit with it is refused, and an abort knows that the call was started."""
    plan = opened(asks([("note", {"text": "a"})]))
    outcome = asyncio.run(execute(plan.pending[0]))
    assert isinstance(outcome, AwaitingCall)
    assert (outcome.is_pending, outcome.is_success, outcome.is_error) == (True, False, False)
    with pytest.raises(CommitError) as caught:
        plan.commit(Session(), [outcome])
    assert caught.value.faults == (MissingResult("c1", "steps", is_running=True),)
    aborted = plan.abort(Session(), "enough", [outcome])
    assert aborted.results[0].status == "indeterminate"


def test_an_abort_says_how_each_call_within_ended() -> None:
    """The asking call is indeterminate, and its text names the calls within."""
    each = [("note", {"text": t}) for t in "abcd"]
    plan = started(asks([*each])).apply_hooks_sync(let_pass)
    first, second, third, _ = plan.pending
    plan.record(asyncio.run(execute(first)))
    third.start()
    told = asyncio.run(execute(second))
    (result,) = plan.abort(Session(), "enough", [told]).results
    assert result.status == "indeterminate"
    assert result.model_text.endswith(
        "enough Within it, c1/1 of tool note: success; c1/2 of tool note: success; "
        "c1/3 of tool note: indeterminate; c1/4 of tool note: not executed."
    )


def test_a_turn_or_round_of_a_model_may_be_asked_for() -> None:
    """A round is closed by it, and what it could not use stays unusable; a session comes back."""
    model = ScriptedModel.tool_calls(
        ("m1", "shop_buy", {"item": "tea"}), ("m2", "note", {"text": "x"})
    )

    @tool_fn
    def buy(item: str) -> str:
        return f"{item} " * 999

    rounds: list[Any] = []

    @tool_fn(idempotent=True)
    def agent(kind: str, ctx: ToolContext) -> str:
        if ctx.inner is not None:
            assert ctx.inner.state is None
            if kind == "turn":
                with pytest.raises(MisuseError, match="left no session"):
                    ctx.inner.session()
                return "done"
            session: Session = ctx.inner.session()
            turn, first, second = list(session.transcript)[1:]
            assert (session.id, turn) == ("sub", model)
            assert isinstance(first, ToolResult)
            assert isinstance(second, ToolResult)
            assert (first.id, second.id) == ("m1", "m2")
            assert (first.status, second.status) == ("success", "rejected")
            assert first.model_text.startswith("[The arguments of this call were edited: item")
            assert len(first.model_text) < 600 < len(ctx.inner.results[0].model_text)
            return "done"
        if kind == "turn":
            ctx.request_calls(model)
        session = Session(id="sub")
        session.push_user("go")
        rounds.append(Whole.shop.read_turn(model).round)  # type: ignore[union-attr]
        return ctx.request_calls(rounds[0], state=session)

    class Shop(Toolset):
        buy_ = tool(buy, needs_approval=True)

    class Whole(Toolset, result_cap=ResultCap(400)):
        shop = toolset(Shop, prefix="shop_")
        note_ = tool(note)
        agent_ = tool(agent)

    plan = opened(("agent", {"kind": "round"}), ("agent", {"kind": "turn"}), toolset=Whole)
    step(plan)
    with pytest.raises(RoundClosedError, match="requested"):
        rounds[0].discard()
    plan = plan.apply_hooks_sync(let_pass)
    first, second = plan.suspended
    assert states(plan)["c1/2"] == "unusable"
    assert plan.amend_sync(first.edit({"item": "milk"}), let_pass) is not None
    plan.resume(second.approve())
    plan = run_to_its_end(plan)
    assert [each.output for each in plan.finished[:2]] == ["done", "done"]
    told = plan.commit(Session()).results[0].model_text
    assert told.startswith('[The arguments of call c1/1 were edited: item = "milk"]\n')


class Raising(dict[str, Any]):
    """Arguments that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("no items today")


UNFIT: list[tuple[Any, str]] = [
    ([("note", Raising(text="a"))], "no items today"),
    ([], "requests no calls"),
    (5, "requests 5. Pass pairs"),
    ({"note": 1}, "Pass pairs"),
    (["x"], "Pass pairs"),
    ([("note", 5)], "dict of arguments"),
    ([(None, {})], "dict of arguments"),
    ([("note", {"text": {1}})], "not JSON"),
    ("twice", "two calls of one id"),
    ("started", "started or answered already"),
    ("state", "as its state"),
]


@pytest.mark.parametrize(("asked", "says"), UNFIT)
def test_what_cannot_be_asked_for_is_an_error_of_the_tool(asked: Any, says: str) -> None:
    """The call fails with what to write instead, and nothing is asked for."""
    turn = ScriptedModel.tool_calls(("m1", "note", {"text": "x"}))
    rounds: list[Any] = []

    @tool_fn(idempotent=True)
    def wrong(ctx: ToolContext) -> str:
        if asked == "twice":
            ctx.request_calls(type(turn)(items=[*turn.items, *turn.items]))
        if asked == "started":
            rounds.append(Desk.read_turn(turn).round)  # type: ignore[union-attr]
            rounds[0].tool_calls[0].call_sync()
            ctx.request_calls(rounds[0])
        state: Any = 5 if asked == "state" else None
        ctx.request_calls(turn if asked == "state" else asked, state)

    plan = opened(("wrong", {}), toolset=Toolset.of("Wrong", wrong))
    step(plan)
    assert says in only(plan.finished).model_text
    assert len(plan.calls) == 1
    for each in (plan, *rounds):
        each.discard()


@pytest.mark.parametrize("asked", ["round", "selector"])
def test_another_tool_of_the_same_name_is_not_mixed_up(asked: str) -> None:
    """What is asked of another tool than the plan has under that name is not run."""

    @tool_fn(name="note")
    def other(text: str) -> str:
        return text

    @tool_fn(idempotent=True)
    def agent(ctx: ToolContext) -> list[str]:
        elsewhere = Toolset.of("Elsewhere", other)
        if ctx.inner is None and asked == "selector":
            ctx.request_calls([(each["note"], {"text": "x"}) for each in (elsewhere, Desk)])
        if ctx.inner is None:
            turn = ScriptedModel.tool_calls(("m1", "note", {"text": "x"}))
            ctx.request_calls(elsewhere.read_turn(turn).round)  # type: ignore[union-attr]
        return [each.status for each in ctx.inner.results]

    plan = run_to_its_end(opened(("agent", {}), toolset=Toolset.of("Both", note, agent)))
    told = only(plan.resolve().results).output
    assert told == (["rejected"] if asked == "round" else ["rejected", "success"])


def test_a_round_of_a_toolset_that_the_plan_does_not_have_is_no_fault_of_its_model() -> None:
    """The tool fails with what to nest; what a model made up is still told to the model."""
    turn = ScriptedModel.tool_calls(("m1", "nix", {}), ("m2", "note", {"text": "x"}))

    @tool_fn(idempotent=True)
    def agent(ctx: ToolContext) -> list[str]:
        if ctx.inner is None:
            ctx.request_calls(Desk.read_turn(turn).round)  # type: ignore[union-attr]
        return [each.status for each in ctx.inner.results]

    class Beside(Toolset):
        desk = toolset(Desk, off=True)
        agent_ = tool(agent)

    class Prefixed(Toolset):
        desk = toolset(Desk, prefix="desk_")
        agent_ = tool(agent)

    assert only(run_to_its_end(opened(("agent", {}), toolset=Beside)).resolve().results).output == [
        "rejected",
        "success",
    ]
    for missing in (Prefixed, Toolset.of("Alone", agent)):
        plan = run_to_its_end(opened(("agent", {}), toolset=missing))
        (row,) = plan.calls
        told = only(plan.resolve().results).model_text
        assert row.state == "finished"
        assert f"`note`, and {missing.__qualname__}, the toolset of the plan, has no tool" in told
        assert "inner = toolset(Desk, off=True)" in told


def test_the_answer_beside_calls_of_a_round_has_its_result() -> None:
    """A final answer that came beside calls is no call to be decided on."""

    @tool_fn(idempotent=True)
    def agent(ctx: ToolContext) -> list[str]:
        if ctx.inner is None:
            turn = ScriptedModel.tool_calls(("m1", "note", {"text": "x"}), ("m2", "nothing", {}))
            outcome: Any = Desk.read_turn(turn, answer=Answer(Nothing, name="nothing"))
            ctx.request_calls(outcome.round)
        return [each.status for each in ctx.inner.results]

    plan = opened(("agent", {}), toolset=Toolset.of("Agents", note, agent))
    step(plan)
    assert sorted(states(plan).values()) == ["awaiting", "finished", "unreviewed"]
    result = only(run_to_its_end(plan).finished[:1])
    assert result.output == ["success", "success"]
    plan.discard()


def test_after_hooks_see_a_result_within_before_the_asking_call_does() -> None:
    """By hand too: what they have not seen is not recorded, and a hook's own answer is shown."""
    hooks = Desk.HookSet()
    seen: list[str] = []

    @hooks.after(Desk.note)
    def shown(call: AnyToolCall, result: ToolResult) -> Complete[str] | None:
        seen.append(result.id)
        return None if result.id == "c1/2" else Complete("hidden")

    @hooks.on(Desk.note)
    def answer(metadata: ToolMetadata, input: Any) -> Any:
        return Complete("by hook") if input.text == "a" else RunNormally(input)

    plan = started(asks([("note", {"text": "a"}), ("note", {"text": "b"})]))
    plan = plan.apply_hooks_sync(hooks)
    assert seen == ["c1/1"]
    result = asyncio.run(execute(plan.pending[0]))
    with pytest.raises(MisuseError, match="c1/2"):
        plan.record(result)
    (again,) = plan.apply_after_hooks_sync(hooks, [result])
    plan.record(again)
    step(plan)
    assert seen == ["c1/1", "c1/2"]
    assert plan.calls[1].result == plan.handled[0].result
    assert plan.handled[0].result.output == "hidden"
    assert plan.commit(Session()).results[0].output == [["c1/1 success", "c1/2 success"]]


def test_a_call_that_comes_back_may_be_answered_by_hand_and_not_be_changed() -> None:
    """What has started keeps its input, and is run again from what it left: not tried again."""
    plan = started(asks([("nix", {})]))
    (call,) = plan.pending
    with pytest.raises(LifecycleError, match="comes back"):
        call.input = {"each": []}
    with pytest.raises(LifecycleError, match="comes back"):
        call.retry()
    plan.record(call.fail("enough"))
    assert plan.commit(Session()).results[0].is_error


def test_what_was_asked_elsewhere_or_in_another_try_is_taken_in() -> None:
    """A call that was run by another object, or that was in doubt, asks by what that came to."""
    plan = opened(asks([("note", {"text": "a"})]), asks([("note", {"text": "b"})]))
    first, second = plan.pending
    elsewhere = Desk.parse_tool_call(first.metadata)
    plan.record(asyncio.run(execute(elsewhere)))
    second.start()
    kept = opened(asks([("note", {"text": "c"})]))
    kept.pending[0].start()
    loaded = Desk.load_plan(kept.dump_json())
    loaded.record(asyncio.run(execute(loaded.in_doubt[0].retry())))
    assert (states(plan)["c1"], states(loaded)["c1"]) == ("awaiting", "awaiting")
    assert [each.kind for each in loaded.calls[0].steps][-4:] == [
        "abandoned",
        "retried",
        "started",
        "requested",
    ]
    plan.discard()
    loaded.discard()


def test_another_try_of_what_was_in_doubt_is_in_no_doubt() -> None:
    """Once it came back and was answered, its row says what the list does."""
    kept = opened(asks([("nix", {})]))
    kept.pending[0].start()
    plan = Desk.load_plan(kept.dump_json())
    plan.record(asyncio.run(execute(plan.in_doubt[0].retry())))
    plan.pending[0].fail("enough")
    for each in (plan, plan.apply_hooks_sync(let_pass)):
        assert ([call.id for call in each.pending], each.in_doubt) == (["c1"], ())
        assert each.calls[0].state == "pending"
    plan.discard()


@pytest.mark.parametrize("verdict", [None, Suspend(SuspendTicket(message="May it?"))])
def test_what_a_gate_says_of_a_call_that_asks_meanwhile_is_void(verdict: Suspend | None) -> None:
    """It has started, and comes back: what the gate said is refused, and the plan loads."""
    first = opened(asks([("nix", {})]))
    hooks = Desk.HookSet()

    @hooks.gate(Desk.steps)
    async def slow(_metadata: ToolMetadata, _input: Any) -> Suspend | None:
        first.record(await execute(first.pending[0]))
        return verdict

    with pytest.raises(LifecycleError, match=r"'c1'.* was started while hooks reviewed it"):
        asyncio.run(first.apply_hooks(hooks))
    assert (states(first)["c1"], first.pending[0].status) == ("pending", CallStatus.RESUMING)
    assert [step.kind for step in first.calls[0].steps] == ["proposed", "started", "requested"]
    loaded = Desk.load_plan(first.dump_json())
    assert states(loaded)["c1"] == "pending"
    loaded.discard()


def test_only_a_pending_call_of_the_plan_asks() -> None:
    """An outcome of another plan is refused, and changes nothing."""
    plan, other = opened(asks([("nix", {})])), opened(asks([("nix", {})]), ids=("c7",))
    outcome = asyncio.run(execute(other.pending[0]))
    with pytest.raises(LifecycleError, match="c7"):
        plan.record(outcome)
    plan.discard()
    other.discard()


def test_what_was_asked_once_is_not_asked_again() -> None:
    """An outcome that is delivered a second time is refused, also once the call is back."""
    plan = opened(asks([("note", {"text": "a"})], [("note", {"text": "b"})]))
    first = asyncio.run(execute(plan.pending[0]))
    plan.record(first)
    plan = plan.apply_hooks_sync(let_pass)
    step(plan)
    elsewhere = asyncio.run(execute(Desk.parse_tool_call(plan.pending[0].metadata)))
    again = r"requested calls 1 times in this plan.*done so 0 times"
    for late, said in ((first, "the run that this is the outcome of is over"), (elsewhere, again)):
        with pytest.raises(LifecycleError, match=said):
            plan.record(late)
        assert states(plan) == {"c1": "pending", "c1/1": "finished"}
    assert len(run_to_its_end(plan).finished) == 3
    plan.discard()


def test_what_was_asked_shows_in_displays() -> None:
    """A notebook tells what a call asked for, and that there was nobody to be asked about it."""
    hooks = Desk.HookSet()

    @hooks.gate(Desk.pay)
    def guard(metadata: ToolMetadata, input: Any) -> None:
        return None

    plan = started(asks([("note", {"text": "a"}), ("pay", {"cents": 5})]))
    shown = plan.apply_hooks_sync(hooks).__rich__().plain
    assert "for c1/1, c1/2" in shown
    assert "nobody had to review it" in shown
    plan.discard()


def test_a_call_that_is_asking_has_no_results_yet() -> None:
    """What it came to so far is told in the order asked, without those that are open."""
    plan = started(asks([("note", {"text": "a"}), ("pay", {"cents": 5})]))
    inner = ToolContext.for_call(plan.awaiting[0]).inner
    assert inner is not None
    assert inner.results == ()
    plan.discard()


def test_leaving_a_tool_by_hand_is_an_exception() -> None:
    """`call.call()` lets it out, as it does a suspension, with what was asked and left."""
    plan = opened(asks([("note", {"text": "a"})]))
    with pytest.raises(ToolRequestedCalls) as caught:
        plan.pending[0].call_sync()
    assert (caught.value.state, caught.value.calls) == ("1", [("note", {"text": "a"})])
    assert "`execution.run(plan, hooks=hooks)`" in str(caught.value)
    assert Inner(None, ()).rounds == ()
    plan.discard()


def test_a_context_made_by_hand_may_come_back_to_something() -> None:
    """A tool is tried without a plan: with what it left, and the results that it asked for."""
    asked = ("note", {"text": "a"})
    result = ToolResult(id="1", name="note", arguments="{}", result='"noted a"')
    inner = Inner("1", ((result,),))
    context = ToolContext("c1", "steps", inner=inner).with_cancellation(CancellationToken())
    assert context.inner is inner
    assert steps([[asked]], context) == [["1 success"]]


def test_a_person_who_answers_in_the_place_of_a_tool_within_is_heard() -> None:
    """A decision that is the result lets the asking call go on with it."""
    hooks = Desk.HookSet()

    @hooks.gate(Desk.pay)
    def guard(metadata: ToolMetadata, input: Any) -> Suspend:
        mode = ResumeMode.USE_DECISION_AS_TOOL_RESULT
        return Suspend(SuspendTicket(resume_mode=mode))

    plan = started(asks([("pay", {"cents": 1})])).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve(result="by hand"))
    assert plan.calls[1].result is not None
    seen: list[str] = []

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(result.id)

    asyncio.run(run(plan, hooks=hooks))
    assert (seen, only(plan.finished).output) == (["c1/1", "c1"], [["c1/1 success"]])
    plan.discard()


def test_a_call_whose_id_is_empty_comes_back_as_any_other() -> None:
    """A model of one's own may give any text as an id."""
    plan = opened(asks([("note", {"text": "a"})]), ids=("",))
    step(plan)
    plan = run_to_its_end(plan)
    (outer, inner) = plan.calls
    assert (outer.id, outer.state, inner.state) == ("", "finished", "finished")
    plan.discard()


def test_a_late_outcome_of_another_try_leaves_a_call_that_waits_as_it_is() -> None:
    """It changes no stage: the call still comes back once those that it requested have results."""
    plan = opened(asks([("note", {"text": "a"})]))
    call: Any = plan.pending[0]
    waits = list[Any]()

    def meanwhile(**_: Any) -> Any:
        call.retry()
        plan.record(asyncio.run(execute(call)))
        waits.append(states(plan)["c1"])
        return []

    with pytest.raises(LifecycleError, match="is over"):
        finish(call._record, call.apply(meanwhile), 1)
    assert waits == ["awaiting"]
    assert [each.kind for each in call.steps][-2:] == ["requested", "late"]
    plan = Desk.load_plan(plan.dump_json())
    assert states(plan) == {"c1": "awaiting", "c1/1": "unreviewed"}
    plan = plan.apply_hooks_sync(let_pass)
    step(plan)
    assert states(plan) == {"c1": "pending", "c1/1": "finished"}
    assert plan.pending[0].status is CallStatus.RESUMING
    plan.discard()


def test_what_a_commit_says_of_a_call_goes_by_those_within_as_they_are() -> None:
    """Its own history is the same while it waits and when it comes back."""
    plan = opened(asks([("note", {"text": "a"})]))
    step(plan)
    plan.apply_hooks_sync(let_pass)
    nested: list[tuple[str, ...]] = []
    for _ in range(2):
        with pytest.raises(CommitError) as caught:
            plan.commit(Session())
        (fault,) = caught.value.faults
        assert isinstance(fault, MissingResult)
        nested.append(fault.nested)
        step(plan)
    assert nested == [("'c1/1' of tool 'note' (pending)",), ()]
    assert plan.commit(Session()).results[0].is_success
