"""The laws of what may run together: `plan.order()` and `plan.batches()`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Suspend, SuspendTicket, ToolRoundPlan, Toolset, tool, tool_fn
from lutum_py._round.sorted_calls import waits_for
from lutum_py.capabilities import ResourceAccess, ToolCapabilities, ToolEffect
from tests.cases import over
from tests.instructions import calls
from tests.round.worlds import TOOLS, faults, round_of, tools


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("write_file", "path")]))
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("read_file", "path")]))
def look(path: str = "") -> str:
    """Look into a file, or a folder, or into all."""
    return f"looked into {path}"


class Files(Toolset):
    edit = tool(edit)
    look = tool(look)


def plan_of(*calls: str) -> ToolRoundPlan[Files]:
    """A plan of calls such as `edit a`, called c0, c1 and so on."""
    asked = [call.partition(" ") for call in calls]
    return round_of(
        Files, *((f"c{at}", name, {"path": path}) for at, (name, _, path) in enumerate(asked))
    ).plan()


def ids(plan: ToolRoundPlan[Any]) -> list[str]:
    """The groups of a plan, by the numbers of their calls."""
    return [" ".join(call.id[1:] for call in group) for group in plan.batches()]


def test_random_plans_end_as_in_turn() -> None:
    """Whoever begins calls by the order, or by groups, reads the same and leaves the same world as
    whoever runs them one after the other.
    """
    assert faults(1, 2_000, tools()) == []


@over("name, at", [(name, at) for name, (_, known) in TOOLS.items() for at in range(len(known))])
def test_an_effect_that_is_not_declared_is_found(name: str, at: int) -> None:
    """Without any one effect of a declaration, some of these plans end otherwise."""
    assert faults(1, 100, tools(without=(name, at)))


TARGETS = st.none() | st.sampled_from(["a", "a/b", "a/b/c", "/a", "/a/b", "b"])
TOUCHES = st.builds(
    ResourceAccess, st.sampled_from(["*", "files", "files", "x"]), TARGETS, st.booleans()
)


@given(st.lists(st.lists(TOUCHES, max_size=3), max_size=8))
def test_each_call_waits_for_all_that_it_meets_and_for_nothing_else(
    calls: list[list[ResourceAccess]],
) -> None:
    """What is waited for meets, and what meets is waited for, by way of others at least."""
    waits = waits_for(calls)
    reached: list[set[int]] = []
    for each in waits:
        reached.append(set(each).union(*(reached[at] for at in each)))
    for one, other in combinations(range(len(calls)), 2):
        if any(a.conflicts_with(b) for a in calls[one] for b in calls[other]):
            assert one in reached[other]
        else:
            assert one not in waits[other]
    assert all(each == sorted(set(each)) for each in waits)


def test_what_touches_the_same_keeps_the_order_and_all_else_is_together() -> None:
    """A call is in the first group behind all earlier calls that it meets."""
    with plan_of("edit a", "edit b", "look a", "look a", "edit a", "look .", "edit b") as plan:
        assert ids(plan) == ["0 1", "2 3", "4", "5", "6"]
        assert plan.order() == {
            "c0": (),
            "c1": (),
            "c2": ("c0",),
            "c3": ("c0",),
            "c4": ("c0", "c2", "c3"),
            "c5": ("c1", "c4"),
            "c6": ("c1", "c5"),
        }


def test_what_declares_nothing_stands_alone() -> None:
    """Tools without effects run one after the other, and so does all around them."""
    made = tools()
    calls: list[tuple[str, str, dict[str, Any]]]
    calls = [("a", "get", {"keys": 1}), ("b", "guess", {}), ("c", "guess", {}), ("d", "get", {})]
    with round_of(made, *calls).plan() as plan:
        assert [[call.id for call in group] for group in plan.batches()] == [
            ["a"],
            ["b"],
            ["c"],
            ["d"],
        ]


def test_an_answered_call_holds_nobody_up() -> None:
    """Whatever the answer is, and whether the plan was told of it."""
    plan = plan_of("edit a", "edit a", "edit a")
    plan.record(plan.pending[0].fail("broken"))
    assert ids(plan) == ["1", "2"]
    plan.pending[0].reject("no")
    assert ids(plan) == ["2"]
    assert plan.order() == {"c2": ()}
    plan.discard()


def test_a_call_that_is_begun_holds_up_those_behind_it_and_behind_these() -> None:
    """What cannot be started now is in no group, nor is what waits for it in any number of
    steps.
    """
    plan = plan_of("edit a", "look .", "edit b", "look c")
    started = plan.pending[0]
    started.start()
    assert ids(plan) == ["3"]
    assert set(plan.order()) == {"c0", "c1", "c2", "c3"}
    plan.record(started.complete("edited"))
    assert ids(plan) == ["1 3", "2"]
    plan.discard()


def test_a_call_that_waits_for_a_person_holds_up_those_behind_it() -> None:
    """A suspended call is in no group; once it may go on, it is in the first."""
    hooks = Files.HookSet()

    @hooks.gate(Files.edit)
    def ask(metadata: Any, input: Any) -> Suspend:
        return Suspend(SuspendTicket())

    asked = [
        ("c0", "edit", {"path": "a"}),
        ("c1", "look", {"path": "a"}),
        ("c2", "look", {"path": "b"}),
    ]
    with round_of(Files, *asked).apply_hooks_sync(hooks) as plan:
        assert ids(plan) == ["2"]
        plan.resume(plan.suspended[0].approve())
        assert ids(plan) == ["0 2", "1"]


def test_a_call_in_doubt_holds_up_those_behind_it() -> None:
    """What was started elsewhere and has no result may still be at work."""
    plan = plan_of("edit a", "edit a", "edit b")
    plan.pending[0].start()
    loaded = Files.load_plan(plan.dump_json())
    assert [call.id for call in loaded.in_doubt] == ["c0"]
    assert ids(loaded) == ["2"]
    loaded.record(loaded.in_doubt[0].indeterminate("a worker was killed"))
    assert ids(loaded) == ["1 2"]
    loaded.discard()


def test_calls_are_looked_up_by_what_they_touch() -> None:
    """Twice as many calls take twice the work: they are not held against each other."""
    taken = []
    for many in (500, 1_000):
        with plan_of(*(f"edit src/{at % 250}.py" for at in range(many))) as plan, calls() as count:
            assert sum(map(len, plan.order().values())) == many - 250
            taken.append(count())
    assert taken[1] < 2.2 * taken[0]


@pytest.mark.parametrize("folders", [1, 1_000])
def test_a_look_at_a_folder_takes_no_more_work_than_there_is_to_wait_for(folders: int) -> None:
    """Behind a thousand edits it is not held against each of them, unless it waits for each."""
    edits = [
        [ResourceAccess("files", f"{at % folders}/{at}", mutating=True)] for at in range(1_000)
    ]
    looks = [[ResourceAccess("files", str(at % folders), mutating=False)] for at in range(1_000)]
    met = 1_000 * 1_000 // folders
    with calls(most=60 * (len(edits) + len(looks)) + 6 * met):
        waits = waits_for(edits + looks)
    assert sum(map(len, waits)) == met
