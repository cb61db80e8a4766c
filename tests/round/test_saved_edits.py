"""The laws of plans that are saved with edits in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    Block,
    Complete,
    SuspendTicket,
    ToolRoundPlan,
)
from lutum_py.errors import (
    LifecycleError,
    PlanError,
)
from tests.cases import over
from tests.round.edits import capped
from tests.round.saved_plans import at, leaves, sealed, step
from tests.round_tools import Shop, adds, close, gated, opened


def edited_plan() -> ToolRoundPlan[Any]:
    """A plan with edited calls in several places: approved, waiting again, blocked, handled."""
    plan = opened(*adds(5)).apply_hooks_sync(gated(SuspendTicket(id="gate"), Shop.add))
    first, second, third, fourth, _ = plan.suspended
    blocking, completing = Shop.HookSet(), Shop.HookSet()
    blocking.gate(Shop.add)(lambda metadata, input: Block("no"))
    completing.gate(Shop.add)(lambda metadata, input: Complete(3))
    plan.amend_sync(first.edit({"a": 41}, by="ann", reason="less"), Shop.HookSet())
    plan.amend_sync(second.edit({"a": 99}, by="bob"), capped())
    plan.amend_sync(third.edit({"a": 3}), blocking)
    plan.amend_sync(fourth.edit({"a": 4}), completing)
    return plan


SAVED = edited_plan().dump_json()


def test_a_plan_with_edits_comes_back_whole() -> None:
    """What is loaded is what was saved, to the letter."""
    plan = Shop.load_plan(SAVED)
    assert [edit.call_id for edit in plan.edits] == ["c0", "c1", "c2", "c3"]
    assert plan.dump_json() == SAVED


def test_every_leaf_of_a_plan_with_edits_is_sealed() -> None:
    """Whichever one value of the text is edited, the plan is refused."""
    places = list(leaves(json.loads(SAVED)))
    assert len(places) > 200
    for path in places:
        changed = json.loads(SAVED)
        at(changed, path[:-1])[path[-1]] = "edited"
        with pytest.raises(PlanError):
            Shop.load_plan(json.dumps(changed))


def test_a_leaf_under_a_new_seal_approves_nothing_else() -> None:
    """Without a key anyone can seal anew: even so only what a decision approved begins to run."""
    plan = Shop.load_plan(SAVED)
    approved = {call.id: call.digest for call in plan.pending}
    close(plan)
    for path in leaves(json.loads(SAVED)):
        changed = json.loads(SAVED)
        old = at(changed, path)
        at(changed, path[:-1])[path[-1]] = old + 1 if isinstance(old, int) else "edited"
        try:
            plan = Shop.load_plan(json.dumps(sealed(changed)))
        except PlanError:
            continue
        for call in plan.pending:
            try:
                call.start()
            except LifecycleError:
                continue
            assert call.digest == approved[call.id]
        close(plan)


def test_all_changes_of_an_edit_are_steps() -> None:
    """What a person changed and what a hook made of it are steps of their own, in this order."""
    steps = json.loads(SAVED)["entries"][1]["steps"]
    kinds = [(each["kind"], each.get("phase"), each.get("by")) for each in steps]
    assert kinds[3:] == [
        ("decided", None, "bob"),
        ("changed", "decision", "bob"),
        ("reviewed", "execution", "capped.<locals>.cap"),
        ("changed", "execution", "capped.<locals>.cap"),
        ("reviewed", "gate", "gated.<locals>.gate"),
        ("suspended", "gate", "gated.<locals>.gate"),
    ]
    assert [each["arguments"]["a"] for each in steps if "arguments" in each] == [1, 99, 10]


RESEALED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "cancelled edit": (
        lambda data: step(data, "c0", "decided")["decision"].update(action="cancel"),
        r"steps\[3\]\.decision\.edit: it does not go with 'cancel'",
    ),
    "no object": (
        lambda data: step(data, "c0", "decided")["decision"].update(edit=[1]),
        r"steps\[3\]\.decision\.edit: expected dict",
    ),
    "no decision": (
        lambda data: step(data, "c0", "decided").pop("decision"),
        r"steps\[3\]\.decision: it is missing",
    ),
    "no call": (
        lambda data: step(data, "c0", "decided")["decision"].update(call_id="zz"),
        r"steps\[3\]\.decision\.call_id: it is about another call, 'zz'",
    ),
    "arguments": (
        lambda data: step(data, "c0", "changed").update(arguments=3),
        r"steps\[4\]\.arguments: it is not an object",
    ),
    "arguments of the person": (
        lambda data: data["entries"][1]["steps"][4].update(arguments="x"),
        r"steps\[4\]\.arguments: it is not an object",
    ),
}


@over("case", RESEALED)
def test_nonsense_about_edits_is_told_by_its_place(case: str) -> None:
    """A text that is sealed but makes no sense is told by its place."""
    change, message = RESEALED[case]
    data = json.loads(SAVED)
    change(data)
    with pytest.raises(PlanError, match=message):
        Shop.load_plan(json.dumps(sealed(data)))
