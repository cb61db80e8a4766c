"""The law of values: nobody changes one that others see."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from lutum_py import (
    Answer,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    SuspendTicket,
    ToolAvailability,
    ToolContext,
    ToolMetadata,
    Toolset,
    toolset,
)
from lutum_py.execution import execute_sync
from lutum_py.flow import Policy
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
    """Applying hooks makes another plan of the same round, and both show the same."""
    tool_round = opened(*adds(2))
    plan = tool_round.plan()
    other = plan.apply_hooks_sync(lambda call: call.reject("no"))
    assert (len(plan.pending), len(other.pending)) == (0, 0)
    assert (len(plan.rejected), plan.calls) == (2, other.calls)
    assert type(other) is type(plan)
    other.resolve()


class Outer(Toolset):
    shop = toolset(Shop)


def settled() -> Iterator[tuple[object, str, str]]:
    """What changes by its own methods, a public name of it, and what the error says to do."""
    hooks, session = Outer.HookSet(), Session(id="s")
    call = Shop.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a":1}'))
    for name in ("shop", "shoop", "on", "register_hooks"):
        yield hooks, name, "`App.HookSet(data=...)`"
    for name in ("transcript", "id"):
        yield session, name, "`Session(transcript, id=...)`"
    for name in ("metadata", "selector", "coerced"):
        yield call, name, "`call.input = ...`"
    for name in ("fill", "made_up"):
        yield Policy(Shop), name, "`policy.fill(...)`"
    for name in ("type", "by", "name", "spec", "made_up"):
        yield Answer(int), name, "`Answer(int, name=...)`"


@over("value, name, way", [*settled()])
def test_what_would_be_ignored_is_refused(value: Any, name: str, way: str) -> None:
    """No assignment is accepted and ignored: the error says what to do."""
    before = getattr(value, name, None)
    with pytest.raises(FrozenInstanceError) as caught:
        setattr(value, name, before)
    assert repr(name) in str(caught.value)
    assert way in str(caught.value)
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)
    assert getattr(value, name, None) == before


def test_a_nested_hook_set_is_not_put_in_place_of_another() -> None:
    """A nested set takes its place where the outer one is made: no policy is skipped."""
    hooks: Any = Outer.HookSet()
    with pytest.raises(FrozenInstanceError, match="no hook would review"):
        hooks.shop = hooks.shop.with_add_hook(lambda metadata, input: Reject("no"))
    made = Outer.HookSet(shop=hooks.shop.with_add_hook(lambda metadata, input: Reject("no")))
    read = Outer.read_turn(turn(*adds(1)))
    assert isinstance(read, NeedsTools)
    plan = read.round.plan().apply_hooks_sync(made)
    assert (len(plan.rejected), len(plan.pending)) == (1, 0)
    plan.resolve()


def test_what_refuses_assignments_is_still_copied() -> None:
    """A copy, and what is loaded from a pickle, has all that the original has."""
    session, policy, answer = Session(id="s"), Policy(Shop), Answer(int)
    session.push_user("Hello")
    for made in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert (made.id, made.transcript) == (session.id, session.transcript)
    assert copy.deepcopy(answer).name == answer.name
    assert copy.copy(policy).unguarded() == policy.unguarded()


def test_a_call_still_takes_another_input() -> None:
    """What a program may assign stays so."""
    call = Shop.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a":1}'))
    call.input = {"a": 5}
    assert call.final_arguments["a"] == 5
