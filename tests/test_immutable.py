"""The law of values: nobody changes one that others see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from lutum_py import (
    NeedsTools,
    RunNormally,
    SuspendTicket,
    ToolAvailability,
    ToolContext,
    ToolMetadata,
)
from lutum_py.execution import execute_sync
from tests.cases import over
from tests.round_tools import Shop, adds, opened, turn


def values() -> Iterator[tuple[object, list[str]]]:
    """Each value that users reach, with attributes of it."""
    selector = Shop.add
    metadata = ToolMetadata(id="c1", name="add", arguments='{"a":1}')
    call = Shop.parse_tool_call(metadata)
    for value, names in (
        (selector, "name path spec toolset index is_off inner"),
        (
            selector.definition,
            "name description timeout idempotent input_schema digest capabilities",
        ),
        (selector.spec, "definition origin invocation call_type validate_json"),
        (ToolContext.for_call(call), "call_id tool_name run agent cancellation resume snapshot"),
        (RunNormally(1), "input"),
        (ToolAvailability.all(), "mode"),
        (metadata, "id name arguments"),
        (execute_sync(call), "id result status"),
        (turn(*adds(1)), "items payload"),
        (SuspendTicket(), "id action resume_mode"),
    ):
        yield value, names.split()


@over("value, name", [(value, name) for value, names in values() for name in names])
def test_a_value_cannot_be_changed(value: Any, name: str) -> None:
    """Assigning to an attribute, a made-up one too, or deleting it is an error."""
    before = getattr(value, name)
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "changed")
    with pytest.raises((FrozenInstanceError, TypeError)):
        value.made_up = 1
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)
    assert getattr(value, name) == before


def test_rounds_and_plans_change_by_what_they_offer_only() -> None:
    """What a round or plan holds is not put in place by hand."""
    read = Shop.read_turn(turn(*adds(1)))
    assert isinstance(read, NeedsTools)
    tool_round = read.round
    plan = tool_round.plan()
    for value, names in (
        (tool_round, ("tool_calls", "turn", "toolset", "recoverable_tool_call_issues")),
        (
            plan,
            ("pending", "finished", "in_doubt", "handled", "rejected", "suspended", "decisions"),
        ),
        (plan, ("toolset", "resumed", "recoverable_tool_call_issues")),
    ):
        for name in names:
            with pytest.raises(FrozenInstanceError):
                setattr(value, name, ())
            with pytest.raises(FrozenInstanceError):
                delattr(value, name)
    plan.record(plan.pending[0].call_sync())
    plan.resolve()


def test_a_plan_may_be_asked_again_by_others() -> None:
    """Applying hooks makes another plan, and leaves this one as it is."""
    tool_round = opened(*adds(2))
    plan = tool_round.plan()
    other = plan.apply_hooks_sync(lambda call: call.reject("no"))
    assert (len(plan.pending), len(other.pending)) == (2, 0)
    assert type(other) is type(plan)
    other.resolve()
