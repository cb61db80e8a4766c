"""The laws of `plan.merge`: copies that went on apart become one plan, or nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lutum_py import Complete, Decision, SuspendTicket, ToolRoundPlan
from lutum_py.errors import LifecycleError, MisuseError, PlanError, RoundClosedError
from tests.cases import over
from tests.profiles import scaled
from tests.round.one_story import (
    Clock,
    Desk,
    blocked,
    clock,
    desk,
    history,
    hooks,
    let_pass,
    rewritten,
)
from tests.round_tools import Call, close, forged

__all__ = ["clock"]

Plan = ToolRoundPlan[Any]
CALLS: tuple[Call, ...] = (
    ("c0", "fill", {"items": ["0"]}),
    ("c1", "fill", {"items": ["1"]}),
    ("c2", "fill", {"items": ["2"]}),
    ("c3", "enter", {"user": "ann", "password": "p"}),
    ("u", "nope", {}),
)


def saved() -> str:
    """A plan of calls of which two wait, two are pending, and one cannot be used."""

    def wait(call: Any) -> Any:
        return call.suspend(SuspendTicket(id="t")) if call.id in ("c0", "c1") else call

    return desk(*CALLS).apply_hooks_sync(wait).dump_json()  # type: ignore[no-any-return]


def found(plan: Plan, id: str) -> Any:
    """A call of a plan."""
    waits = [each.call for each in plan.suspended]
    return next(call for call in (*plan.pending, *plan.in_doubt, *waits) if call.id == id)


def _wait_of(plan: Plan, id: str) -> Any:
    return next(each for each in plan.suspended if each.call.id == id)


def _approve(plan: Plan, id: str) -> Plan:
    plan.resume(_wait_of(plan, id).approve(by="ann"))
    return plan


def _approve_and_run(plan: Plan, id: str) -> Plan:
    plan.record(found(_approve(plan, id), id).call_sync())
    return plan


def _cancel(plan: Plan, id: str) -> Plan:
    plan.resume(_wait_of(plan, id).cancel("no", by="ann"))
    return plan


def _edit(plan: Plan, id: str) -> Plan:
    plan.amend_sync(_wait_of(plan, id).edit({"items": ["e"]}, by="ann"), let_pass())
    return plan


def _run(plan: Plan, id: str) -> Plan:
    plan.record(found(plan, id).call_sync())
    return plan


def _begin(plan: Plan, id: str) -> Plan:
    found(plan, id).begin()
    return plan


def _ask(plan: Plan, id: str) -> Plan:
    found(plan, id).begin()
    plan.record(found(plan, id).suspend(SuspendTicket(id="own")))
    return plan


def _block(plan: Plan, id: str) -> Plan:
    return plan.apply_hooks_sync(blocked())


def _complete(plan: Plan, id: str) -> Plan:
    return plan.apply_hooks_sync(hooks(on=lambda m, i: Complete(3)))


def _rewrite(plan: Plan, id: str) -> Plan:
    return plan.apply_hooks_sync(rewritten("r"))


def _answer(plan: Plan, id: str) -> Plan:
    plan.record(forged(plan.recoverable_tool_call_issues[0].metadata))
    return plan


MOVES: dict[str, tuple[Callable[[Plan, str], Plan], ...]] = {
    "c0": (_approve, _approve_and_run, _cancel, _edit),
    "c1": (_approve, _approve_and_run, _cancel, _edit),
    "c2": (_run, _begin, _ask, _block, _complete, _rewrite),
    "c3": (_run, _begin, _ask),
    "u": (_answer,),
}


def told(plan: Plan) -> Any:
    """All that a plan tells of its calls."""
    lists = {
        "pending": [call.id for call in plan.pending],
        "in_doubt": [call.id for call in plan.in_doubt],
        "suspended": sorted(each.call.id for each in plan.suspended),
        "finished": [result.id for result in plan.finished],
        "handled": sorted(each.metadata.id for each in plan.handled),
        "rejected": sorted(each.metadata.id for each in plan.rejected),
    }
    return (
        plan.calls,
        plan.steps,
        lists,
        plan.edits,
        plan.resumed,
        sorted(map(repr, plan.decisions)),
        [call.input for call in plan.pending],
    )


moves = st.fixed_dictionaries(
    {
        id: st.none() | st.tuples(st.integers(0, 2), st.sampled_from(ways))
        for id, ways in MOVES.items()
    }
)


@settings(max_examples=scaled(60))
@given(made=moves, order=st.permutations(range(3)), chained=st.booleans())
def test_copies_merge_in_any_order(
    made: dict[str, Any], order: Sequence[int], chained: bool
) -> None:
    """Copies in which different calls went on become the same, whichever takes in which."""
    text = saved()
    copies = [Desk.load_plan(text) for _ in range(3)]
    for id, move in reversed(made.items()):  # hooks ask about calls that are pending
        if move is not None:
            copies[move[0]] = move[1](copies[move[0]], id)
    texts = []
    rows = {}
    for index, plan in enumerate(copies):
        for row in plan.calls:
            if made[row.id] is None or made[row.id][0] == index:
                rows[row.id] = (row.id, row.arguments, row.by, history(row.steps))
        texts.append(plan.dump_json())
    merged = []
    for each in (range(3), order):
        loaded = [Desk.load_plan(texts[index]) for index in each]
        first, second, third = loaded
        if each is order and chained:
            second.merge(third)
            first.merge(second)
        else:
            first.merge(second)
            first.merge(third)
        merged.append(first)
    one, other = merged
    assert told(one) == told(other)
    for row in one.calls:
        id, arguments, by, steps = rows[row.id]
        running = steps[-1] == "begun"
        assert history(row.steps) == [*steps, "left"] if running else steps
        assert (row.id, row.arguments, row.by) == (id, arguments, by)
    close(one, other)


DECISIONS: dict[str, Callable[[Any], Decision]] = {
    "approve": lambda waiting: waiting.approve(by="ann"),
    "cancel": lambda waiting: waiting.cancel("no", by="ann"),
    "edit": lambda waiting: waiting.edit({"items": ["e"]}, by="ann"),
}


@over("action", DECISIONS)
def test_copies_that_took_in_one_decision_merge(action: str, clock: Clock) -> None:
    """A decision that was delivered to both is one, whenever each took it in."""
    text, texts = saved(), []
    looked_at = Desk.load_plan(text)
    decision = DECISIONS[action](_wait_of(looked_at, "c0"))
    close(looked_at)
    for _ in range(2):
        clock.now += 60
        plan = Desk.load_plan(text)
        if action == "edit":
            plan.amend_sync(decision, Desk.HookSet())
        else:
            plan.resume(decision)
        texts.append(plan.dump_json())
    first = Desk.load_plan(texts[0])
    for order in (texts, texts[::-1]):
        here, there = map(Desk.load_plan, order)
        here.merge(there)
        assert told(here) == told(first)
        close(here)
    close(first)


def test_two_copies_that_ran_by_one_decision_do_not_merge() -> None:
    """What was decided once was done twice, and that is told."""
    text = saved()
    here, there = Desk.load_plan(text), Desk.load_plan(text)
    decision = _wait_of(here, "c0").approve(by="ann")
    for plan in (here, there):
        plan.resume(decision)
        plan.record(found(plan, "c0").call_sync())
    with pytest.raises(PlanError, match=r"was begun at .* here, and begun at .* there"):
        here.merge(there)
    close(here, there)


def test_a_merged_plan_goes_on() -> None:
    """What the other copy came to is here as if it was done here: run, saved and committed."""
    text = saved()
    here, there = Desk.load_plan(text), Desk.load_plan(text)
    _edit(there, "c0")
    _run(there, "c2")
    here.merge(there)
    assert found(here, "c0").input.items == ["e"]
    here.record(found(here, "c0").call_sync())
    assert [result.id for result in here.finished] == ["c0", "c2"]
    loaded = Desk.load_plan(here.dump_json())
    assert [edit.final for edit in loaded.edits] == [{"items": ["e"]}]
    close(loaded)


def test_the_other_plan_is_closed_by_a_merge() -> None:
    """What was taken in is not gone on with, and a closed plan takes in nothing."""
    text = saved()
    here, there = Desk.load_plan(text), Desk.load_plan(text)
    here.merge(there)
    with pytest.raises(RoundClosedError):
        there.discard()
    with pytest.raises(RoundClosedError):
        here.merge(there)
    with pytest.raises(RoundClosedError):
        there.merge(here)
    assert found(here, "c2").call_sync().status == "success"
    close(here)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (_run, _run, "was begun at .* here, and begun at .* there"),
        (_run, _begin, "was begun at .* here, and begun at .* there"),
        (_begin, _block, "was begun at .* here, and asked at .* there"),
        (_block, _complete, "was asked at .* here, and asked at .* there"),
        (_rewrite, _run, "was asked at .* here, and begun at .* there"),
    ],
)
def test_copies_that_went_on_with_one_call_do_not_merge(
    one: Callable[[Plan, str], Plan], other: Callable[[Plan, str], Plan], said: str
) -> None:
    """The error names each such call and both steps; nothing changes in either plan."""
    text = saved()
    here, there = Desk.load_plan(text), Desk.load_plan(text)
    _approve(here, "c0")
    _cancel(there, "c1")
    here, there = one(here, "c2"), other(there, "c2")
    _run(here, "c3")
    _run(there, "c3")
    before = told(here), told(there)
    for first, second in ((here, there), (there, here)):
        with pytest.raises(PlanError) as caught:
            first.merge(second)
        assert "'c0'" not in str(caught.value)
        assert "'c1'" not in str(caught.value)
        assert "call 'c2' of tool `fill`" in str(caught.value)
        assert "call 'c3' of tool `enter`" in str(caught.value)
        assert (told(here), told(there)) == before
    with pytest.raises(PlanError, match=said):
        here.merge(there)
    close(here, there)


def test_two_answers_of_one_moment_do_not_merge(clock: Clock) -> None:
    """Lines that differ in what was answered alone are two stories, also at one moment."""
    text = saved()
    here, there = Desk.load_plan(text), Desk.load_plan(text)
    for plan, words in ((here, "one"), (there, "two")):
        plan.record(found(plan, "c2").fail(words))
        plan.record(forged(plan.recoverable_tool_call_issues[0].metadata, f'"{words}"'))
    with pytest.raises(PlanError):
        here.merge(there)
    close(here, there)


def test_plans_of_other_rounds_do_not_merge() -> None:
    """Another turn, or the same in another toolset, is refused; nothing changes."""
    here, there = Desk.load_plan(saved()), desk().plan()
    before = told(here), told(there)
    with pytest.raises(PlanError):
        here.merge(there)
    with pytest.raises(PlanError):
        there.merge(here)
    again = desk().plan()
    with pytest.raises(PlanError):
        there.merge(again)
    assert (told(here), told(there)) == before
    close(here, there, again)


def test_plans_of_one_round_are_not_merged() -> None:
    """Two plans of one round tell one story already."""
    plan = desk().plan()
    with pytest.raises(MisuseError, match="of one round"):
        plan.merge(plan.apply_hooks_sync(let_pass()))
    wrong: Any = "plan"
    with pytest.raises(MisuseError):
        plan.merge(wrong)
    close(plan)


def test_a_plan_takes_in_no_older_plan_that_would_go_around_a_newer_one() -> None:
    """What hooks blocked in a newer plan of the other round is not open in the merged one."""
    text = saved()
    here, older = (Desk.load_plan(text) for _ in range(2))
    newer = older.apply_hooks_sync(blocked())
    before = [(row, row.steps) for row in (*here.calls, *newer.calls)]
    with pytest.raises(LifecycleError, match="Go on with the newer plan"):
        here.merge(older)
    assert [(row, row.steps) for row in (*here.calls, *newer.calls)] == before
    here.merge(newer)
    assert here.blocked == "closed"
    close(here)


def test_a_plan_takes_in_nothing_that_would_void_a_newer_one() -> None:
    """Where a newer plan of the round goes on with a call, the older one takes in no copy of it."""
    text = desk().plan().dump_json()
    older, copied = Desk.load_plan(text), Desk.load_plan(text)
    newer = older.apply_hooks_sync(blocked())
    copied.record(copied.pending[0].call_sync())
    with pytest.raises(LifecycleError, match="Go on with the newer plan"):
        older.merge(copied)
    assert (newer.blocked, history(newer.steps)[-1]) == ("closed", "ended gate/gate/rejected")
    close(newer)
    close(copied)
