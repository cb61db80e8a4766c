"""A round as plain data: what a store of one's own keeps, and what a plan made of it shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

from lutum_py import (
    NeedsTools,
    Session,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError, MisuseError, PlanError, RoundClosedError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from tests.profiles import scaled
from tests.round.test_history_machine import Desk, Machine


def as_text(data: Any) -> Any:
    """What comes back from a text."""
    return json.loads(json.dumps(data))


class Stored(Machine):
    """After each move, plans made of the record and the entries show the same."""

    def __init__(self) -> None:
        super().__init__()
        self.others: tuple[Any, ...] = ()
        self.open_others()

    def open_others(self) -> None:
        others, self.others = self.others, ()
        for each in others[1:]:
            each.discard()
        self.kept_record = as_text(self.plan.round_record())
        self.rows, self.mark = as_text(self.plan.entries_since())
        self.others = (self.plan, Desk.open_plan(self.kept_record, self.rows))

    def teardown(self) -> None:
        for each in self.others[1:]:
            each.discard()
        super().teardown()

    @invariant()
    def what_is_opened_shows_the_same(self) -> None:
        if self.others[0] is not self.plan:  # it was saved and loaded
            self.open_others()
        fresh, self.mark = as_text(self.plan.entries_since(self.mark))
        self.rows += fresh
        brought_up, opened = self.others[1], Desk.open_plan(self.kept_record, reversed(self.rows))
        brought_up.add_entries(fresh)
        brought_up.add_entries(self.rows)  # what is there is passed over
        for made in (brought_up, opened):
            for row, mine in zip(made.calls, self.plan.calls, strict=True):
                assert row.steps == mine.steps
                assert (row.state, row.ancestors) == (mine.state, mine.ancestors)
            assert (made.edits, made.resumed) == (self.plan.edits, self.plan.resumed)
            assert made.entries_since() == self.plan.entries_since()
        opened.discard()


TestStored = Stored.TestCase
TestStored.settings = settings(max_examples=scaled(25), stateful_step_count=20)


@tool_fn
def pay(cents: int) -> str:
    """Pay an amount."""
    return f"paid {cents}"


class Bank(Toolset):
    pay = tool(pay)


def planned() -> ToolRoundPlan[Bank]:
    needed = Bank.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    assert isinstance(needed, NeedsTools)
    return needed.round.plan()


def test_of_two_who_start_a_call_the_second_is_told() -> None:
    """What the first has written is refused by the plan of the second, which started too."""
    plan = planned()
    record, (rows, mark) = plan.round_record(), plan.entries_since()
    other = Bank.open_plan(record, rows)
    for each in (plan, other):
        each.pending[0].start()
    with pytest.raises(LifecycleError, match="Entry 1 of call 'c1' of tool `pay` is another one"):
        other.add_entries(plan.entries_since(mark)[0])
    plan.discard()
    other.discard()


def test_what_was_started_elsewhere_does_not_start_here() -> None:
    """Nor after it was opened again, unless it was abandoned and is tried again."""
    plan = planned()
    record, (rows, mark) = plan.round_record(), plan.entries_since()
    plan.pending[0].start()
    more, _ = plan.entries_since(mark)
    other = Bank.open_plan(record, rows)
    other.add_entries(more)
    opened = Bank.open_plan(record, [*rows, *more])
    for each in (other, opened):
        with pytest.raises(LifecycleError, match="was started already"):
            each.pending[0].call_sync()
        left = {"kind": "abandoned", "at": more[0]["steps"][0]["at"]}
        each.add_entries([{"call": "c1", "n": 2, "steps": [left]}])
        assert each.in_doubt[0].retry().call_sync().output == "paid 5"
        each.discard()
    plan.discard()


def test_a_plan_that_is_handed_over_goes_on_elsewhere() -> None:
    """Nothing starts here any more; what runs here comes late, and whoever goes on may know."""
    plan = planned()
    record, (rows, mark) = plan.round_record(), plan.entries_since()
    (call,) = plan.pending
    call.start()
    plan.hand_over()
    more, mark = plan.entries_since(mark)
    other = Bank.open_plan(record, [*rows, *more])
    assert [step["kind"] for row in more for step in row["steps"]] == ["started"]
    with pytest.raises(LifecycleError, match="goes on elsewhere"):
        call.retry()
    with pytest.raises(RoundClosedError):
        plan.hand_over()
    other.discard()


Damage = Callable[[dict[str, Any], list[dict[str, Any]]], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "form": (lambda record, rows: record.update(format="x"), r"round\.format"),
    "version": (lambda record, rows: record.update(version=2), r"round\.format"),
    "word": (lambda record, rows: record.update(more=1), "more"),
    "no call": (lambda record, rows: rows.pop(0), "first entry of call 'c1' is missing"),
    "gap": (lambda record, rows: rows.pop(1), r"entry 1 of the call comes before it"),
    "twice": (lambda record, rows: rows.append({**rows[1]}), "two of this number"),
    "other call": (lambda record, rows: rows.append({**rows[0], "call": "c9"}), "no call of this"),
    "word of a row": (lambda record, rows: rows[1].update(more=1), "more"),
    "no steps": (lambda record, rows: rows[1].update(steps=[]), "there is none"),
    "not first": (lambda record, rows: rows[0].update(steps=rows[1]["steps"]), "steps"),
    "no arguments": (
        lambda record, rows: rows[0]["steps"][0].pop("arguments"),
        "arguments: it is missing",
    ),
    "kind": (lambda record, rows: rows[1]["steps"][0].update(kind="x"), "kind"),
    "schema": (
        lambda record, rows: record["calls"][0].update(schema_digest="sha256:x"),
        "schema of tool `pay` has changed",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_an_error_that_names_the_place(damage: str) -> None:
    """Nothing of a damaged round is opened."""
    plan = planned()
    plan.pending[0].start()
    plan.pending[0].fail("no")
    plan.pending[0].retry()
    record, (rows, _) = as_text(plan.round_record()), as_text(plan.entries_since())
    change, said = DAMAGES[damage]
    change(record, rows)
    with pytest.raises(PlanError, match=said):
        Bank.open_plan(record, rows)
    plan.discard()


def test_what_is_no_data_is_misuse() -> None:
    """The text of a record is no record, and neither is that of an entry."""
    plan = planned()
    record, (rows, _) = plan.round_record(), plan.entries_since()
    given: Any = json.dumps(record)
    with pytest.raises(MisuseError, match="a dict"):
        Bank.open_plan(given, rows)
    text: Any = [json.dumps(rows[0])]
    with pytest.raises(MisuseError, match="Entries are dicts"):
        Bank.open_plan(record, text)
    plan.discard()
    with pytest.raises(RoundClosedError):
        plan.add_entries(rows)


def test_a_round_is_opened_where_it_stood() -> None:
    """Its place in the conversation is kept, and so is what after-hooks have to see."""
    hooks = Bank.HookSet()
    hooks.after(Bank.pay)(lambda call, result: None)
    session = Session(id="s1")
    session.push_user("Pay.")
    turn = ScriptedModel.tool_calls(("c1", "pay", {"cents": 5}), ("c2", "made_up", {}))
    needed = session.text_turn(ScriptedModel([turn])).tools(Bank).collect_sync()
    assert isinstance(needed, NeedsTools)
    plan = needed.round.apply_hooks_sync(hooks)
    record, (rows, mark) = as_text(plan.round_record()), as_text(plan.entries_since())
    plan.hand_over()
    plan = Bank.open_plan(record, rows)
    issue = plan.recoverable_tool_call_issues[0]
    plan.record(ToolResult(id="c2", name="made_up", arguments="{}", result='"done otherwise"'))
    assert issue.metadata.id == "c2"
    more, _ = as_text(plan.entries_since(mark))
    other = Bank.open_plan(record, rows)
    other.add_entries(more)
    other.record(other.pending[0].call_sync())
    other.apply_after_hooks_sync(hooks)
    assert [each.output for each in other.commit(session).results] == ["paid 5", "done otherwise"]
    plan.discard()


def test_an_entry_that_somebody_wrote_at_the_same_moment_is_compared() -> None:
    """What comes second is taken for what is there, or refused."""
    plan = planned()
    record, (rows, mark) = plan.round_record(), plan.entries_since()
    plan.pending[0].start()
    more, _ = plan.entries_since(mark)
    other = Bank.open_plan(record, rows)
    (call,) = other.pending
    kind = type(call._record)
    append = kind.append_all

    def beaten(self: Any, moves: Any, *since: Any) -> Any:
        append(self, moves, *since)  # by another thread, which has the same entry
        return append(self, moves, *since)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "append_all", beaten)
        other.add_entries(more)
    assert other.entries_since() == plan.entries_since()
    plan.discard()
    other.discard()


def test_what_cannot_be_used_of_what_a_call_requested_is_kept() -> None:
    """Its issue comes with the entries of the call that requested it."""

    @tool_fn
    def ask(ctx: ToolContext) -> str:
        if ctx.inner is None:
            ctx.request_calls([("pay", {"cents": 1}), ("made_up", {})])
        return "asked"

    class Asks(Toolset):
        ask_ = tool(ask)
        pay = tool(pay)

    needed = Asks.read_turn(ScriptedModel.tool_calls(("c1", "ask", {})))
    assert isinstance(needed, NeedsTools)
    plan = needed.round.plan()
    record, (rows, mark) = as_text(plan.round_record()), as_text(plan.entries_since())
    plan.record(execute_sync(plan.pending[0]))
    more, _ = as_text(plan.entries_since(mark))
    other = Asks.open_plan(record, rows)
    other.add_entries(more)
    assert [(row.id, row.state) for row in other.calls] == [
        ("c1", "awaiting"),
        ("c1/1", "unreviewed"),
        ("c1/2", "unusable"),
    ]
    plan.discard()
    other.discard()


def test_what_somebody_else_made_of_the_arguments_is_what_runs() -> None:
    """An input that was replaced elsewhere takes the place of the one that was read here."""
    plan = planned()
    record, (rows, mark) = plan.round_record(), plan.entries_since()
    other = Bank.open_plan(record, rows)
    assert other.calls[0].arguments == {"cents": 5}
    plan.pending[0].input = {"cents": 7}
    other.add_entries(plan.entries_since(mark)[0])
    assert other.pending[0].call_sync().output == "paid 7"
    assert other.calls[0].arguments == {"cents": 7}
    for each in (plan, other):
        each.discard()
