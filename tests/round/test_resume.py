"""The laws of resolving many suspended calls: any order, several approvers, never crossed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import CallStatus, Decision, Session, SuspendTicket, ToolRoundPlan
from lutum_py.errors import CommitError, ResumeError, UnresolvedSuspension
from tests.round_tools import (
    Shop,
    adds,
    approval,
    check_transcript,
    close,
    done,
    forged,
    gated,
    opened,
)
from tests.sample_tools import input_of


@given(st.data())
def test_calls_are_resolved_in_any_order(data: st.DataObject) -> None:
    """Each decision leaves one call less to decide, and results keep the turn's order."""
    count = data.draw(st.integers(1, 6))
    order = data.draw(st.permutations(range(count)))
    cancelled = data.draw(st.sets(st.sampled_from(range(count))))
    plan = opened(*adds(count)).apply_hooks_sync(gated(SuspendTicket()))
    for left, at in zip(range(count, 0, -1), order, strict=True):
        assert len(plan.suspended) == left
        with pytest.raises(CommitError) as caught:
            plan.resolve([forged(call.metadata) for call in plan.pending])
        assert {type(fault) for fault in caught.value.faults} == {UnresolvedSuspension}
        assert len(caught.value.faults) == left
        waiting = next(each for each in plan.suspended if each.call.id == f"c{at}")
        plan.resume(waiting.cancel() if at in cancelled else waiting.approve())
    assert plan.suspended == ()
    expected = [at for at in range(count) if at not in cancelled]
    assert [input_of(call).a for call in plan.pending] == expected
    committed = plan.resolve(done(plan.pending))
    assert [result.status for result in committed.results] == [
        "cancelled" if at in cancelled else "success" for at in range(count)
    ]


def test_the_reason_of_a_decision_can_be_sent() -> None:
    """Half of a surrogate pair in why a call was cancelled does not reach the transcript."""
    plan = opened(*adds(1)).apply_hooks_sync(gated(SuspendTicket()))
    plan.resume(Decision(call_id="c0", action="cancel", reason="no \ud83d"))
    session = Session()
    (result,) = plan.commit(session).results
    check_transcript(session.transcript)
    assert result.model_text == "Cancelled: no \ufffd"


def test_two_hundred_parallel_calls_of_one_tool() -> None:
    """Half of them suspended, saved, and resolved in random order: each result finds its call."""
    chance = random.Random(7)
    hooks = gated(lambda input: SuspendTicket() if input.a % 2 else None, Shop.add)
    plan: ToolRoundPlan[Shop] = opened(*adds(200)).apply_hooks_sync(hooks)
    assert (len(plan.pending), len(plan.suspended)) == (100, 100)
    waiting = [each.call.id for each in plan.suspended]
    chance.shuffle(waiting)
    for call in plan.pending:
        plan.record(call.call_sync())
    for at, call_id in enumerate(waiting):
        assert plan.resume(approval(plan, call_id)) is not None
        if at == 50:
            plan = Shop.load_plan(plan.dump_json())
            assert {pending.status for pending in plan.pending} == {CallStatus.RESUMING}
    results = done(plan.pending)
    chance.shuffle(results)
    session = Session()
    committed = plan.commit(session, results)
    assert [(r.id, r.result) for r in committed.results] == [(f"c{i}", str(i)) for i in range(200)]
    check_transcript(session.transcript)


def test_several_approvers_decide_on_one_plan() -> None:
    """Approvers in processes of their own each take their part, from the dump of the one before."""
    text = opened(*adds(3)).apply_hooks_sync(gated(SuspendTicket())).dump_json()
    for at, action in ((2, "resume"), (0, "cancel"), (1, "resume")):
        plan: ToolRoundPlan[Shop] = Shop.load_plan(text)
        decision = replace(approval(plan, f"c{at}", decision_id=f"d{at}"), action=action)  # type: ignore[arg-type]
        assert plan.resume(decision) is not None
        text = plan.dump_json()
    plan = Shop.load_plan(text)
    assert plan.suspended == ()
    assert plan.resume(Decision(call_id="c1", action="cancel", decision_id="d1")) is None
    with pytest.raises(ResumeError):
        plan.resume(Decision(call_id="c1", action="cancel", decision_id="other"))
    assert [r.status for r in plan.resolve(done(plan.pending)).results] == [
        "cancelled",
        "success",
        "success",
    ]


def test_a_decision_may_arrive_before_the_siblings_are_run() -> None:
    """Running siblings and deciding may be interleaved in any way."""
    plan = opened(*adds(2), ("p", "pay", {"amount": 1})).apply_hooks_sync(
        gated(SuspendTicket(), Shop.pay)
    )
    first = plan.pending[0].call_sync()
    plan.resume(Decision(call_id="p", action="cancel"))
    second = plan.pending[1].call_sync()
    assert len(plan.resolve([second, first]).results) == 3
    close(plan)
