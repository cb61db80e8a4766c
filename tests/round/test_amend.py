"""The laws of edits: a person corrects the arguments of a call, and exactly that is what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Complete,
    Decision,
    HandledCall,
    Reject,
    RejectedCall,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
)
from lutum_py.errors import (
    HookError,
    InvalidValueError,
    LifecycleError,
    MisuseError,
    ResumeError,
    RoundClosedError,
)
from tests.cases import over
from tests.round.edits import capped, own_question, refused, snapshot, waits
from tests.round_tools import Shop, add, close, done, gated, opened

# What an edit is.


def test_an_edit_goes_with_resume_and_is_a_mapping() -> None:
    """A decision to cancel takes no edit, and an edit is the arguments by their names."""
    with pytest.raises(InvalidValueError, match="goes with the action 'resume' only"):
        Decision(call_id="c", action="cancel", edit={})
    unfit: list[Any] = [[1], "a", {1: 2}]
    for edit in unfit:
        with pytest.raises(InvalidValueError, match=r"Make it with `waiting\.edit\(changes\)`"):
            Decision(call_id="c", action="resume", edit=edit)
    (waiting,) = (plan := waits()).suspended
    wrong: Any = [("a", 1)]
    with pytest.raises(InvalidValueError, match="Pass a dict of arguments by their names"):
        waiting.edit(wrong)
    close(plan)


def test_changes_are_merged_into_what_is_shown() -> None:
    """`waiting.edit` makes a decision with the whole arguments and the digest, all copied."""
    plan = waits()
    (waiting,) = plan.suspended
    changes = {"a": [1]}
    decision = waiting.edit(changes, by="ann", result=3, reason="less")
    changes["a"].append(2)
    assert decision.edit == {"a": [1], "b": 0}
    assert (decision.action, decision.digest, decision.by) == ("resume", waiting.digest, "ann")
    assert (decision.result, decision.reason) == (3, "less")
    close(plan)


# What an edit does.


def test_what_was_edited_is_what_runs() -> None:
    """The edited call is pending again, in its place, approved, and runs with these arguments."""
    hooks = gated(SuspendTicket(), Shop.add)
    plan = waits(hooks=hooks, count=3)
    first, second, third = plan.suspended
    plan.resume(third.approve())
    call = plan.amend_sync(second.edit({"b": 40}), hooks)
    assert plan.pending == (call, third.call)
    assert call is second.call
    assert isinstance(call, AnyToolCall)
    assert (call.status, call.input) == (CallStatus.RESUMING, add.Input(a=1, b=40))
    assert call.approval is not None
    assert call.approval.edit == {"a": 1, "b": 40}
    with pytest.raises(LifecycleError):
        call.input = add.Input(a=9)
    plan.resume(first.cancel())
    results = done(plan.pending)
    assert [result.output for result in results] == [41, 2]
    committed = plan.resolve(results)
    assert [result.arguments for result in committed.results] == [
        asked.arguments for asked in committed.turn.tool_calls
    ]


def test_both_twins_amend_alike() -> None:
    """`amend` and `amend_sync` do the same; only the one asks hooks that are async."""

    async def slow(metadata: ToolMetadata, input: Any) -> Any:
        await asyncio.sleep(0)
        return Suspend(SuspendTicket())

    hooks = Shop.HookSet()
    hooks.gate(Shop.add)(slow)
    plan = waits()
    decision = plan.suspended[0].edit({"a": 5})
    refused(plan, decision, hooks, MisuseError, "is async")
    asyncio.run(plan.amend(decision, hooks))
    assert [call.input for call in plan.pending] == [add.Input(a=5, b=0)]
    close(plan)


def test_gates_get_the_decision_about_the_edit() -> None:
    """A gate sees the edited arguments, and the decision by which they came."""
    seen: list[Any] = []
    hooks = gated(SuspendTicket(), Shop.add)
    hooks.gate(Shop.add)(lambda metadata, input, decision: seen.append((input.a, decision)))
    plan = waits(hooks=hooks)
    decision = plan.suspended[0].edit({"a": 5})
    plan.amend_sync(decision, hooks)
    assert seen == [(0, None), (5, decision)]
    assert [record.decision for record in plan.decisions] == ["suspend", "suspend"]
    close(plan)


OUTCOMES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "block": (lambda hooks: hooks.gate(Shop.add)(lambda m, i: Block("closed")), "rejected"),
    "reject": (lambda hooks: hooks.on(Shop.add)(lambda m, i: Reject("no")), "rejected"),
    "gate completes": (lambda hooks: hooks.gate(Shop.add)(lambda m, i: Complete(7)), "handled"),
    "hook completes": (lambda hooks: hooks.on(Shop.add)(lambda m, i: Complete(7)), "handled"),
}


@over("case", OUTCOMES)
def test_the_outcome_is_sorted(case: str) -> None:
    """What hooks make of an edited call stands where it belongs, a block before an approval."""
    register, place = OUTCOMES[case]
    plan = waits()
    (waiting,) = plan.suspended
    hooks = gated(SuspendTicket(), Shop.add)
    register(hooks)
    outcome = plan.amend_sync(waiting.edit({"a": 5}), hooks)
    assert getattr(plan, place) == (outcome,)
    assert (plan.pending, plan.suspended) == ((), ())
    assert waiting.call.status.is_terminal
    assert [edit.edited for edit in plan.edits] == [{"a": 5, "b": 0}]
    if isinstance(outcome, RejectedCall):
        assert outcome.call is waiting.call
        assert (plan.blocked is not None) is (outcome.source == "gate")
    reloaded = Shop.load_plan(plan.dump_json())
    (result,) = reloaded.resolve().results
    assert result.model_text.startswith("[The arguments") is isinstance(outcome, HandledCall)


def test_where_a_hook_changes_the_edit_the_call_waits_again() -> None:
    """What a hook made of an edit is shown as it is by then, and approved under its new digest."""
    before: list[int] = []
    hooks = capped()
    hooks.before(Shop.add)(lambda metadata, input: before.append(input.a))
    plan = waits(hooks=hooks)
    (first,) = plan.suspended
    again = plan.amend_sync(first.edit({"a": 99}), hooks)
    assert plan.suspended == (again,)
    assert isinstance(again, SuspendedCall)
    assert again.call is first.call
    assert again.ticket.message == "10?"
    assert again.arguments == {"a": 10, "b": 0}
    assert again.digest == again.call.digest != first.digest
    assert (again.call.status, again.call.approval, before) == (CallStatus.SUSPENDED, None, [])
    refused(plan, first.approve(), hooks, ResumeError, "made on another version")
    plan = Shop.load_plan(plan.dump_json())
    plan.resume(plan.suspended[0].approve())
    plan = plan.apply_hooks_sync(hooks)
    assert before == [10]
    (result,) = plan.resolve(done(plan.pending)).results
    assert (result.result, result.model_text) == (
        "10",
        "[The arguments of this call were edited: a = 10]\n10",
    )


def test_an_edit_changed_again_waits_under_its_ticket_where_no_gate_asks() -> None:
    """Where hooks change an edit and no gate suspends it, the question that was asked is asked."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(lambda metadata, input: RunNormally(add.Input(a=input.a + 1)))
    told: list[int] = []
    hooks.before(Shop.add)(lambda metadata, input: told.append(input.a))
    plan = waits()
    (waiting,) = plan.suspended
    again = plan.amend_sync(waiting.edit({"a": 5}), hooks)
    assert isinstance(again, SuspendedCall)
    assert (again.ticket, again.was_started) == (waiting.ticket, False)
    assert again.call.input == add.Input(a=6)
    assert told == []
    close(plan)
    plan = own_question()
    again = plan.amend_sync(plan.suspended[0].edit({"a": 5}), hooks)
    assert isinstance(again, SuspendedCall)
    assert (again.ticket.id, again.was_started) == ("own", True)
    plan.resume(again.cancel())
    close(plan)


def test_before_hooks_are_asked_about_what_runs_once() -> None:
    """Before-hooks see the edited arguments, each once a call, hooks applied again or not."""
    seen: list[int] = []
    hooks = gated(SuspendTicket(), Shop.add)
    hooks.before(Shop.add)(lambda metadata, input: seen.append(input.a))
    plan = waits(hooks=hooks)
    plan.amend_sync(plan.suspended[0].edit({"a": 5}), hooks)
    plan = plan.apply_hooks_sync(hooks)
    assert seen == [5]
    close(plan)


def test_without_an_edit_amend_is_resume() -> None:
    """A decision without an edit asks no hook, in `amend` too."""

    def never(call: AnyToolCall) -> Any:
        raise AssertionError

    plan = waits(count=2)
    first, second = plan.suspended
    assert plan.amend_sync(first.approve(), never) is first.call
    assert plan.amend_sync(second.cancel("no"), never) is plan.rejected[0]
    assert (plan.edits, plan.pending) == ((), (first.call,))
    close(plan)


def test_a_hook_set_that_decided_about_an_edit_has_its_after_hooks_asked() -> None:
    """A commit is refused until the after-hooks of the set that saw the edit were asked."""
    plan = waits()
    hooks = Shop.HookSet()
    hooks.after(Shop.add)(lambda call, result: None)
    plan.amend_sync(plan.suspended[0].edit({"a": 5}), hooks)
    results = done(plan.pending)
    with pytest.raises(MisuseError):
        plan.resolve(results)
    assert plan.resolve(plan.apply_after_hooks_sync(hooks, results)).results[0].result == "5"


# Plain functions as hooks.


def test_a_plain_function_is_asked_about_an_edit() -> None:
    """A function sees the decision, may change the edit, and its suspension counts as answered."""
    seen: list[Any] = []

    def suspends(call: AnyToolCall) -> Any:
        seen.append(call.approval)
        return call.suspend(SuspendTicket())

    def changes(call: AnyToolCall) -> Any:
        call.input = add.Input(a=1)
        return call

    def changes_and_suspends(call: AnyToolCall) -> Any:
        return changes(call).suspend(SuspendTicket(id="other"))

    plan = waits(count=4)
    one, two, three, four = plan.suspended
    decision = one.edit({"a": 5})
    assert plan.amend_sync(decision, suspends) is one.call
    assert seen == [decision]
    again = plan.amend_sync(two.edit({"a": 5}), changes)
    other = plan.amend_sync(three.edit({"a": 5}), changes_and_suspends)
    assert plan.suspended == (four, again, other)
    assert isinstance(again, SuspendedCall)
    assert isinstance(other, SuspendedCall)
    assert (again.ticket, other.ticket.id) == (two.ticket, "other")
    assert again.arguments == other.arguments == {"a": 1, "b": 0}
    asyncio.run(plan.amend(four.edit({"a": 5}), capped(5).hook_tool_call))
    assert plan.pending == (one.call, four.call)
    assert len(plan.suspended) == 2
    close(plan)


# Two who ask about one call.


def test_an_answer_to_the_tool_does_not_pass_a_gate() -> None:
    """An edit that answers the tool's own question has still to pass the gates, which ask."""
    seen: list[Any] = []
    hooks = gated(SuspendTicket(id="gate"), Shop.add)
    hooks.gate(Shop.add)(lambda metadata, input, decision: seen.append(decision))
    plan = own_question(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)
    own = plan.suspended[0].edit({"a": 5}, result="yes")
    waiting = plan.amend_sync(own, hooks)
    assert isinstance(waiting, SuspendedCall)
    assert (waiting.ticket.id, waiting.was_started, seen) == ("gate", False, [None])
    plan = Shop.load_plan(plan.dump_json())
    yes = plan.suspended[0].approve()
    plan.resume(yes)
    (call,) = plan.pending
    assert (call.approval, call.resume) == (yes, own)
    assert call.indeterminate("was started").status == "indeterminate"
    close(plan)


def test_a_gate_that_was_answered_about_an_edit_is_not_asked_about_the_same_again() -> None:
    """An edit that changes nothing answers the tool's own question, and the gate's answer holds."""
    hooks = gated(SuspendTicket(id="gate"), Shop.add)
    plan = waits(hooks=hooks)
    plan.amend_sync(plan.suspended[0].edit({"a": 5}), Shop.HookSet())
    (call,) = plan.pending
    call.start()
    plan.record(call.suspend(SuspendTicket(id="own")))
    assert plan.amend_sync(plan.suspended[0].edit({"a": 5}), hooks) is call
    assert (plan.pending, plan.suspended, call.suspension_id) == ((call,), (), "own")
    close(plan)


def test_an_answer_counts_for_the_arguments_that_it_was_given_about() -> None:
    """Where an edit changes the arguments, what answered the other asker before is spent."""
    hooks = gated(SuspendTicket(id="gate"), Shop.add)
    for changes, kept in (({"a": 5}, "gate"), ({"a": 0}, "own")):
        plan = own_question()
        plan.resume(plan.suspended[0].approve())
        plan = plan.apply_hooks_sync(hooks)
        gate = plan.suspended[0].edit(changes)
        plan.amend_sync(gate, hooks)
        (call,) = plan.pending
        assert (call.approval, call.suspension_id) == (gate, kept)
        close(plan)
    seen: list[Any] = []
    plan = waits(hooks=hooks)
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    call.start()
    plan.record(call.suspend(SuspendTicket(id="own")))
    hooks.gate(Shop.add)(lambda metadata, input, decision: seen.append(decision))
    again = plan.amend_sync(plan.suspended[0].edit({"a": 7}), hooks)
    assert isinstance(again, SuspendedCall)
    assert (again.ticket.id, seen) == ("gate", [None])
    close(plan)


def test_an_answer_to_the_tool_is_spent_where_a_hook_changes_the_edit() -> None:
    """What the tool was told of an edit is not told of what a hook made of it."""
    plan = own_question(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)
    again = plan.amend_sync(plan.suspended[0].edit({"a": 99}, result="yes"), capped())
    assert isinstance(again, SuspendedCall)
    assert (again.ticket.message, again.call.approval) == ("10?", None)
    plan.resume(again.approve())
    assert plan.pending[0].resume is None
    close(plan)


def test_a_started_call_stays_started() -> None:
    """A call whose tool asked was started: an edit does not make it new, and an abort says so."""
    plan = own_question()
    plan.amend_sync(plan.suspended[0].edit({"a": 5}), Shop.HookSet())
    plan = Shop.load_plan(plan.dump_json())
    (result,) = plan.abort(Session(), "enough").results
    assert result.status == "indeterminate"
    assert result.model_text.startswith("[The arguments of this call were edited: a = 5]\nOutcome")


# What is refused, and changes nothing.


def test_what_is_no_decision_is_refused() -> None:
    """`plan.resume` and `plan.amend` name what they were given, and what makes a decision."""
    plan = waits()
    before = snapshot(plan)
    for decide in (plan.resume, lambda given: plan.amend_sync(given, Shop.HookSet())):
        with pytest.raises(MisuseError):
            decide("yes")  # type: ignore[arg-type]
    assert snapshot(plan) == before
    close(plan)


def test_resume_takes_no_edit() -> None:
    """`plan.resume` refuses an edit and names `amend`; one that was taken in already is nothing."""
    plan = waits()
    decision = plan.suspended[0].edit({"a": 5})
    before = snapshot(plan)
    with pytest.raises(ResumeError, match=r"`await plan\.amend\(decision, hooks\)`"):
        plan.resume(decision)
    assert snapshot(plan) == before
    assert plan.amend_sync(decision, Shop.HookSet()) is not None
    assert plan.amend_sync(decision, Shop.HookSet()) is None
    assert plan.resume(decision) is None
    close(plan)


UNFIT: dict[str, tuple[Any, str]] = {
    "type": (
        {"a": "many", "b": 1},
        "does not fit tool `add`: `a`: Input should be a valid integer",
    ),
    "missing": ({"b": 1}, "`a`: this field is required"),
    "unknown": ({"a": 1, "c": 1}, "`c`: there is no such field"),
    "not JSON": ({"a": {1}}, "is not JSON data"),
    "not a number": ({"a": float("nan")}, "is not JSON data"),
}


@over("case", UNFIT)
def test_an_edit_has_to_fit_the_tool(case: str) -> None:
    """An edit that does not fit is refused with what is wrong in it, before any hook is asked."""
    edit, text = UNFIT[case]
    plan = waits()
    asked: list[Any] = []
    decision = replace(plan.suspended[0].approve(), edit=edit)
    refused(plan, decision, asked.append, ResumeError, text)
    assert asked == []
    close(plan)


def test_an_edit_is_checked_like_any_decision() -> None:
    """No call, another version, no digest, an unfit result: all are refused as by `resume`."""
    schema = {"type": "boolean"}
    plan = waits(ticket=SuspendTicket(id="s", response_schema=schema))
    edit = plan.suspended[0].edit({"a": 5}, result=True)
    hooks = Shop.HookSet()
    refused(plan, replace(edit, call_id="zz"), hooks, ResumeError, "is not suspended in this plan")
    refused(plan, replace(edit, digest="sha256:0"), hooks, ResumeError, "on another version")
    refused(plan, replace(edit, digest=None), hooks, ResumeError, "carries no digest")
    refused(plan, replace(edit, result="x"), hooks, ResumeError, "does not fit the response schema")
    close(plan)


def test_nothing_is_edited_where_the_decision_is_the_result() -> None:
    """Where the decision's result answers the call, its arguments are of no use."""
    mode = ResumeMode.USE_DECISION_AS_TOOL_RESULT
    plan = waits(ticket=SuspendTicket(resume_mode=mode))
    edit = plan.suspended[0].edit({"a": 5}, result=3)
    refused(plan, edit, Shop.HookSet(), ResumeError, "its ticket makes the decision's result")
    close(plan)


class Odd(ToolInput[str]):
    """Take anything."""

    what: Any

    @field_validator("what")
    @classmethod
    def read(cls, value: Any) -> Any:
        return object() if value == "odd" else value


class Oddities(Toolset):
    odd = tool(Odd)


def test_what_has_no_json_form_is_approved_by_nobody() -> None:
    """A hook may not give an input without a text; an edit is one itself."""
    suspends, changes = Oddities.HookSet(), Oddities.HookSet()
    suspends.gate()(lambda metadata, input: Suspend(SuspendTicket()))
    changes.on(Oddities.odd)(lambda metadata, input: RunNormally(Odd.model_construct(what="odd")))
    plan = opened(("c", "odd", {"what": 1}), toolset=Oddities).apply_hooks_sync(suspends)
    (waiting,) = plan.suspended
    for hooks in (changes, changes.with_extended(suspends)):
        refused(plan, waiting.edit({"what": 2}), hooks, HookError, "returned an unfit input")
    odd = plan.amend_sync(waiting.edit({"what": "odd"}), suspends)
    assert isinstance(odd, AnyToolCall)
    assert odd.final_arguments == {"what": "odd"}
    close(plan)


def test_what_a_hook_holds_is_not_what_is_approved() -> None:
    """An input that a hook put in the place of an edit is copied before anyone approves it."""
    held = [1]
    hooks = Oddities.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket()))
    plan = opened(("c", "odd", {"what": 1}), toolset=Oddities).apply_hooks_sync(hooks)
    hooks.on(Oddities.odd)(lambda metadata, input: RunNormally(Odd(what=held)))
    again = plan.amend_sync(plan.suspended[0].edit({"what": 2}), hooks)
    assert isinstance(again, SuspendedCall)
    held.append(2)
    plan.resume(again.approve())
    assert Odd.model_validate(plan.pending[0].input).what == [1]
    close(plan)


def test_a_hook_that_raises_changes_nothing() -> None:
    """Whichever hook raises, all is as before, and before-hooks are asked at the next try."""

    def broken(*given: Any) -> Any:
        raise OSError("down")

    plan = waits()
    decision = plan.suspended[0].edit({"a": 5})
    seen: list[int] = []
    for register in ("on", "gate", "before"):
        hooks = Shop.HookSet()
        hooks.before(Shop.add)(lambda metadata, input: seen.append(input.a))
        getattr(hooks, register)(Shop.add)(lambda metadata, input: broken())
        refused(plan, decision, hooks, HookError, "raised OSError: down")
    refused(plan, decision, broken, HookError, "raised OSError: down")
    assert seen == [5, 5]  # once at each try
    hooks = Shop.HookSet()
    hooks.before(Shop.add)(lambda metadata, input: seen.append(input.a))
    plan.amend_sync(decision, hooks)
    assert seen == [5, 5, 5]
    close(plan)


def test_a_closed_round_is_not_amended() -> None:
    """A round that ends before or while hooks are awaited takes in no edit any more."""
    plan = waits()
    decision = plan.suspended[0].edit({"a": 5})

    async def ends(call: AnyToolCall) -> Any:
        plan.discard()
        return call

    with pytest.raises(RoundClosedError):
        asyncio.run(plan.amend(decision, ends))
    assert (plan.calls[0].steps[-1].verdict, plan.edits) == ("cancelled", ())
    with pytest.raises(RoundClosedError):
        plan.amend_sync(decision, ends)
    with pytest.raises(RoundClosedError):
        asyncio.run(plan.amend(decision, ends))


# All of it, for any arguments.


@given(
    st.dictionaries(st.sampled_from("ab"), st.integers(-9, 9)),
    st.sampled_from(["none", "suspends", "caps"]),
)
def test_what_is_approved_is_what_runs(changes: dict[str, int], kind: str) -> None:
    """For any edit: what runs is what a decision saw, and the line names what differs."""
    hooks = {"none": Shop.HookSet, "suspends": lambda: gated(SuspendTicket()), "caps": capped}
    plan = waits()
    given = hooks[kind]()
    shown = dict(plan.suspended[0].arguments)
    outcome = plan.amend_sync(plan.suspended[0].edit(changes), given)
    wanted = {**shown, **changes}
    assert isinstance(outcome, AnyToolCall)
    assert outcome.spec.arguments.to_data(outcome.input) == wanted
    (result,) = plan.resolve(done(plan.pending)).results
    assert result.output == wanted["a"] + wanted["b"]
    names = [name for name in shown if shown[name] != wanted[name]]
    said = ", ".join(f"{name} = {wanted[name]}" for name in names)
    line = f"[The arguments of this call were edited: {said}]\n" if names else ""
    assert result.model_text == f"{line}{result.output}"
