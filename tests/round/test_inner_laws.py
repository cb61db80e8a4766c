"""The laws of calls within calls under any order of moves: every view agrees, and none is lost."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lutum_py import CallStatus, Session, ToolContext, ToolRoundPlan, Toolset, tool_fn
from lutum_py.errors import LutumError, PlanError, RoundClosedError, TranscriptError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from tests.inner_tools import Asked, Asking, Desk, asks, let_pass, note, opened, step
from tests.profiles import scaled
from tests.round.saved_plans import at, leaves, requests, sealed

LISTS = ("pending", "in_doubt", "awaiting", "unreviewed")
STATUS = {"awaiting": CallStatus.SUSPENDED, "unreviewed": CallStatus.NEW, "suspended": "suspended"}


LEAVES: list[Asked] = [
    ("note", {"text": "a"}),
    ("fail", {"why": "b"}),
    ("nix", {}),
    *(("pay", {"cents": cents}) for cents in range(1, 5)),
]


def nests(depth: int) -> st.SearchStrategy[Asked]:
    """Calls that ask for others, so deep at most."""
    leaf = st.sampled_from(LEAVES)
    each: Any = leaf if depth == 0 else st.one_of(leaf, leaf, leaf, nests(depth - 1))
    within: Any = st.lists(st.lists(each, min_size=1, max_size=2), min_size=1, max_size=2)
    found: st.SearchStrategy[Asked] = within.map(_asks)
    return found


def _asks(found: list[list[Asked]]) -> Asked:
    return asks(*found)


def size(call: Asked) -> int:
    """How many calls one is, with those within."""
    each = call[1].get("each", [])
    return 1 + sum(size(one) for asked in each for one in asked)


SMALL = nests(2).filter(lambda call: size(call) < 10)


def ended(call: Asked) -> str:
    """How a call ends: a payment of an odd amount is cancelled by whoever is asked."""
    name, arguments = call
    odd = "cancelled" if arguments.get("cents", 0) % 2 else "success"
    return {"fail": "error", "nix": "rejected"}.get(name, odd)


def told(call: Asked, id: str) -> list[list[str]]:
    """What the tool that asks tells of what it asked for."""
    number = 0
    found: list[list[str]] = []
    for each in call[1]["each"]:
        found.append([])
        for one in each:
            number += 1
            found[-1].append(f"{id}/{number} {ended(tuple(one))}")
    return found


def loaded(text: str) -> ToolRoundPlan[Any]:
    return Asking.load_plan(text)


def views(plan: ToolRoundPlan[Any]) -> Any:
    """All that a plan shows, where every two of its views agree."""
    rows = {row.id: row for row in plan.calls}
    lists = {name: [call.id for call in getattr(plan, name)] for name in LISTS}
    lists["suspended"] = [each.call_id for each in plan.suspended]
    lists["finished"] = [each.id for each in plan.finished]
    lists["rejected"] = [each.metadata.id for each in plan.rejected]
    for name, ids in lists.items():
        assert sorted(ids) == sorted(row.id for row in rows.values() if row.state == name), name
    for name in LISTS:
        for call in getattr(plan, name):
            assert call.status == STATUS.get(name, call.status)
            assert call.steps == rows[call.id].steps
    waits = ("pending", "in_doubt", "suspended", "awaiting", "unreviewed")
    outer = {row.id: [each.id for each in row.ancestors] for row in rows.values()}
    assert all(ids == sorted(ids, key=len) for ids in outer.values())
    held_up = {outer[row.id][-1] for row in rows.values() if outer[row.id] and row.state in waits}
    assert {row.id for row in rows.values() if row.state == "awaiting"} == held_up
    assert plan.is_settled == all(row.state not in waits for row in rows.values())
    assert sorted(step.at for step in plan.steps) == [step.at for step in plan.steps]
    shown = [(row.model_dump(), row.steps) for row in rows.values()]
    return shown, outer, lists, [*map(str, plan.decisions)], plan.order()


def move(plan: ToolRoundPlan[Any], pick: Any) -> ToolRoundPlan[Any]:
    """Do one thing that can be done now."""
    ways: list[Any] = [("run", call) for call in plan.pending]
    ways += [("decide", each) for each in plan.suspended] + [("hooks", None)] * bool(
        plan.unreviewed
    )
    kind, what = pick(ways)
    if kind == "hooks":
        return plan.apply_hooks_sync(let_pass)
    if kind == "decide":
        plan.resume(what.cancel("no") if what.arguments["cents"] % 2 else what.approve())
    else:
        plan.record(execute_sync(what))
    return plan


@settings(max_examples=scaled(40))
@given(st.data(), st.lists(SMALL, min_size=1, max_size=2))
def test_views_agree_under_any_moves_and_all_ends_as_it_was_asked(
    data: st.DataObject, calls: list[Asked]
) -> None:
    """Saved and loaded at any time, a plan is the same."""

    def pick(ways: list[Any]) -> Any:
        return ways[data.draw(st.integers(0, len(ways) - 1))]

    made = [opened(*calls, toolset=Asking)]
    try:
        walk(made, pick, lambda: data.draw(st.sampled_from(["go on", "load"])))
        results = made[-1].commit(Session()).results
    finally:  # a draw may end an example
        for each in made:
            with suppress(RoundClosedError):
                each.discard()
    assert [each.output for each in results] == [
        told(call, f"c{number}") for number, call in enumerate(calls, 1)
    ]


def walk(made: list[ToolRoundPlan[Any]], pick: Any, draw: Any) -> None:
    """Go on with a plan until all its calls have their results; each plan is put behind it."""
    while not made[-1].is_settled:
        plan, way = made[-1], draw()
        seen = views(plan)
        if way == "go on":
            made.append(move(plan, pick))
            continue
        text = plan.dump_json()
        made += [loaded(text), loaded(text)]
        plan, other = made[-2:]
        assert views(plan) == views(other) == seen
        plan.discard()
    views(made[-1])


@tool_fn(idempotent=True)
def keeps(ctx: ToolContext) -> str:
    """Leave bytes, then a session."""
    if ctx.inner is None:
        ctx.request_calls([("note", {"text": "a"})], state=b"\\x00\\xff")
    if len(ctx.inner.rounds) == 1:
        session = Session(id="sub")
        session.push_user(str(ctx.inner.state))
        ctx.request_calls(ScriptedModel.tool_calls(("m1", "note", {"text": "b"})), state=session)
    session = ctx.inner.session()
    return f"{session.transcript[0]} {len(session.transcript)}"


KEY = b"k" * 32
KEEPS = Toolset.of("Keeps", keeps, note)


def kept(steps: int = 1) -> str:
    """A saved plan of which a call asked so often."""
    plan = opened(("keeps", {}), toolset=KEEPS)
    step(plan)
    for _ in range(steps - 1):
        plan = plan.apply_hooks_sync(let_pass)
        step(plan)
        step(plan)
    return plan.dump_json(key=KEY)


SAVED = (kept(), kept(2))


def test_what_was_left_is_there_in_another_process() -> None:
    """Bytes and sessions come back as they were, under a seal, and go when they are done."""
    plan = KEEPS.load_plan(kept(), key=KEY)
    for _ in range(2):
        plan = plan.apply_hooks_sync(let_pass)
        step(plan)
        plan = KEEPS.load_plan(plan.dump_json(key=KEY), key=KEY)
        step(plan)
    text = plan.dump_json(key=KEY)
    assert "session" not in requests(json.loads(text))[-1]
    plan = KEEPS.load_plan(text, key=KEY)
    assert plan.finished[0].output.endswith(" 3")
    plan.discard()
    assert not requests(json.loads(opened(("keeps", {}), toolset=KEEPS).dump_json()))


def test_bytes_need_a_key() -> None:
    """Without one, bytes that a tool left are neither saved nor loaded, whoever sealed the text."""
    plan = opened(("keeps", {}), toolset=KEEPS)
    step(plan)
    with pytest.raises(PlanError, match="key="):
        plan.dump_json()
    plan.discard()
    with pytest.raises(PlanError, match="key="):
        KEEPS.load_plan(json.dumps(sealed(json.loads(kept()))))


@given(st.data(), st.sampled_from(["x", "c1", None, 7, [], {}, "gone"]))
def test_no_edit_of_a_saved_plan_breaks_a_loader(data: st.DataObject, change: Any) -> None:
    """A leaf that is another, or gone, is a `PlanError` or a plan that goes on."""
    edited = json.loads(data.draw(st.sampled_from(SAVED)))
    path = data.draw(st.sampled_from(list(leaves(edited))))
    holder = at(edited, path[:-1])
    if change == "gone":
        del holder[path[-1]]
    else:
        holder[path[-1]] = change
    try:
        plan = KEEPS.load_plan(json.dumps(sealed(edited, KEY)), key=KEY)
    except (PlanError, TranscriptError):
        return
    with suppress(LutumError):
        plan = plan.apply_hooks_sync(let_pass) if plan.unreviewed else plan
        step(plan)
    plan.discard()


ASKED = ("entries", 0, "steps", 2, "requested")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*ASKED, "more"), 1),
        ((*ASKED, "calls", 0, "more"), 1),
        ((*ASKED, "calls", 0, "id"), "c1"),
        ((*ASKED, "calls"), []),
        ((*ASKED, "calls", 1), "first"),
        ((*ASKED, "bytes"), "?"),
        ((*ASKED, "turn", "items", 0, "name"), "pay"),
        (ASKED, None),
        (("entries", 1, "steps", 0, "by"), None),
        (("entries", 0, "steps", 0, "by"), "c1"),
        (("entries", 0, "steps", 2, "kind"), "abandoned"),
        (("entries", 0, "steps", 1, "kind"), "requested"),
        ((*ASKED, "turn"), "gone"),
    ],
)
def test_what_a_saved_plan_cannot_say_of_calls_within_is_refused(path: Any, value: Any) -> None:
    """An unknown word, an id twice, calls that nobody asked for, a turn of others."""
    data = json.loads(kept())
    holder = at(data, path[:-1])
    if value == "gone":
        del holder[path[-1]]
    elif value == "first":
        holder.insert(path[-1], holder[0])
    else:
        holder[path[-1]] = value
    with pytest.raises(PlanError):
        KEEPS.load_plan(json.dumps(sealed(data, KEY)), key=KEY)
    with pytest.raises(PlanError):
        KEEPS.load_plan(json.dumps(data), key=KEY)


def test_a_step_that_asks_for_nothing_is_no_step_of_a_saved_plan() -> None:
    """Where a saved plan does not say what a call asked for, that it asked is refused."""
    plan = opened(("fail", {"why": "no"}))
    with pytest.raises(ValueError, match="no"):
        plan.pending[0].call_sync()
    data = json.loads(plan.dump_json(key=KEY))
    assert data["entries"][0]["steps"][-1]["kind"] == "abandoned"
    data["entries"][0]["steps"][-1]["kind"] = "requested"
    with pytest.raises(PlanError, match="requested: it is missing"):
        Desk.load_plan(json.dumps(sealed(data, KEY)), key=KEY)
