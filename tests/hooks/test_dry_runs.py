"""The laws of dry runs at the gate."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, RootModel

from lutum_py import (
    Block,
    Session,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect, capability_gate, dry_run_in
from tests.cases import over
from tests.hooks.gating import GateAction, Ops, ask, blocked, call_of, deploy, make, plan_of
from tests.sample_tools import input_of


def test_a_dry_run_passes() -> None:
    """A dry run of a tool that declares one for its effects passes the gate."""
    for support in ("supported", "required_before_execute"):
        function = make(ToolEffect("deploy", dry_run=support))
        assert ask(call_of(function, dry_run=True)) is None
        assert isinstance(ask(call_of(function, dry_run=False)), Block)


def test_a_dry_run_that_is_not_declared_changes_nothing() -> None:
    """The argument alone is no way around the gate: effects without a dry run keep their risk."""
    assert "too risky" in blocked(ask(call_of(make("deploy"), dry_run=True)))
    mixed = make(ToolEffect("deploy", dry_run="supported"), "send_message")
    assert isinstance(ask(call_of(mixed, dry_run=True)), Suspend)
    assert isinstance(ask(call_of(mixed)), Block)


class Anything(BaseModel):
    """Takes what comes, and has no dry run."""

    model_config = ConfigDict(extra="allow")


def test_a_dry_run_is_an_argument_that_the_tool_has() -> None:
    """An extra argument that the tool does not declare is no dry run."""

    @tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("deploy", dry_run="supported")]))
    def act(arguments: Anything) -> str:
        return "done"

    call = call_of(act, dry_run=True)
    assert input_of(call).model_extra == {"dry_run": True}
    assert isinstance(ask(call), Block)


def test_a_dry_run_is_true_and_nothing_like_it() -> None:
    """An argument of that name that says something else than true is no dry run."""

    @tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("deploy", dry_run="supported")]))
    def act(dry_run: str) -> str:
        return "done"

    assert isinstance(ask(call_of(act, dry_run="never")), Block)


class Start(BaseModel):
    name: str
    dry_run: bool = False


class Stop(BaseModel):
    name: str
    then: Steps | None = None


@tool_input(capabilities=ToolCapabilities(effects=[ToolEffect("deploy", dry_run="supported")]))
class Steps(RootModel[Start | Stop]):
    """One of several, and one of them has a dry run."""


class StepTools(Toolset):
    steps = tool(Steps)


@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        ('{"name": "a", "dry_run": true}', True),
        ('{"name": "a", "dry_run": false}', False),
        ('{"name": "a", "then": {"name": "b", "dry_run": true}}', False),
    ],
)
def test_one_of_several_inputs_may_have_a_dry_run(arguments: str, passes: bool) -> None:
    """Where the input is one of several models, the argument of the one that came counts."""
    name = StepTools.steps.name
    call = StepTools.parse_tool_call(ToolMetadata(id="c1", name=name, arguments=arguments))
    assert (capability_gate()(call, None) is None) is passes


@over(
    "schema, passes",
    [
        ({"properties": {"dry_run": {"type": "boolean"}}}, True),
        ({"allOf": [True, {"$ref": "#/definitions/dry"}]}, True),
        ({"anyOf": [{"type": "object"}, {"$ref": "#/definitions/again"}]}, False),
        ({"$ref": "#/definitions/again/properties/deep"}, True),
        ({"properties": {"dry": True}}, False),
    ],
)
def test_a_schema_says_which_arguments_a_tool_has(schema: dict[str, Any], passes: bool) -> None:
    """What a hand-written schema lets pass without naming it is no dry run."""
    definitions = {
        "dry": {"properties": {"dry_run": {"type": "boolean"}}},
        "again": {
            "anyOf": [{"type": "object"}, {"properties": {"a": {"$ref": "#"}}}],
            "properties": {"deep": {"properties": {"dry_run": {"type": "boolean"}}}},
        },
    }
    definition = ToolDef.from_json_schema(
        name="act",
        description="",
        input_schema={"type": "object", "definitions": definitions, **schema},
        capabilities=ToolCapabilities(effects=[ToolEffect("deploy", dry_run="supported")]),
    )
    metadata = ToolMetadata(id="c1", name="act", arguments='{"dry_run": true}')
    call = Toolset.from_definitions("Remote", [definition]).parse_tool_call(metadata)
    assert (capability_gate()(call, None) is None) is passes


def test_a_required_dry_run_comes_first() -> None:
    """Where a dry run is required, a call is blocked until one was made; then its risk counts."""
    function = make(ToolEffect("write_file", dry_run="required_before_execute"))
    wanted = "call it with the same arguments and `dry_run` set to true, then call it again"
    assert wanted in blocked(ask(call_of(function)))
    assert wanted in blocked(ask(call_of(function), dry_run_done=lambda call: False))
    assert isinstance(ask(call_of(function), dry_run_done=lambda call: True), Suspend)
    allow: dict[str, GateAction] = {"require_confirmation": "allow"}
    assert isinstance(ask(call_of(function), allow), Block)
    assert ask(call_of(function), allow, dry_run_done=lambda call: True) is None


def test_a_required_dry_run_may_be_that_of_another_tool() -> None:
    """Where the tool has no argument for it, the model is not told to use one."""
    function = make(ToolEffect("write_file", dry_run="required_before_execute"))
    reason = blocked(ask(call_of(function), dry_run_argument="plan_only"))
    assert reason == (
        "Tool `act` has to be tried first, and no dry run with these arguments is known."
    )


def test_a_dry_run_is_found_in_the_transcript() -> None:
    """A successful dry run of this tool with the same arguments counts, and nothing else does."""
    session = Session()
    done = dry_run_in(session.transcript)
    wanted = {"service": "api", "count": 2}
    assert not done(deploy(**wanted))
    plan = plan_of(
        ("a", "roll_out", {"service": "api", "count": 2, "dry_run": False}),
        ("b", "roll_out", {"service": "web", "count": 2, "dry_run": True}),
        ("c", "look", {"service": "api", "dry_run": True}),
        ("d", "roll_out", {"service": "api", "count": 2, "dry_run": True}),
    )
    *others, failed = plan.pending
    plan.commit(session, [*(call.complete("ok") for call in others), failed.fail("no")])
    assert not done(deploy(**wanted))
    plan = plan_of(("a", "roll_out", {"dry_run": True, "count": "2", "service": "api"}))
    plan.commit(session, [plan.pending[0].complete("fine")])
    assert done(deploy(**wanted))
    assert done(deploy(service="web", count=2))
    assert not done(deploy(service="api"))


def test_a_dry_run_that_was_edited_does_not_count() -> None:
    """Who edits a dry run lets something else be tried than the model sent."""
    session = Session()
    hooks = Ops.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket()))
    plan = plan_of(("a", "roll_out", {"service": "api", "dry_run": True})).apply_hooks_sync(hooks)
    plan.amend_sync(plan.suspended[0].edit({"service": "web"}), hooks)
    plan.commit(session, [plan.pending[0].call_sync()])
    done = dry_run_in(session.transcript)
    assert not done(deploy(service="api"))
    assert not done(deploy(service="web"))


def test_ids_that_come_again_are_told_apart() -> None:
    """A later success under the id of a dry run that failed does not make up for it."""
    session = Session()
    plan = plan_of(("a", "roll_out", {"service": "api", "dry_run": True}))
    plan.commit(session, [plan.pending[0].fail("no")])
    plan = plan_of(("a", "roll_out", {"service": "web"}))
    plan.commit(session, [plan.pending[0].complete("ok")])
    assert not dry_run_in(session.transcript)(deploy(service="api"))


@pytest.mark.parametrize("arguments", ['{"service": 5}', "{", '{"gone": 1, "dry_run": true}'])
def test_an_old_call_that_no_longer_fits_is_no_dry_run(arguments: str) -> None:
    """Arguments of a version of the tool that is gone are passed by."""
    old = ToolResult(id="c0", name="roll_out", arguments=arguments, result='"ok"')
    assert not dry_run_in([old])(deploy(service="api"))


def test_the_name_of_the_dry_run_argument_can_be_another() -> None:
    """The gate and the search go by the argument that they are told of."""

    @tool_fn(
        capabilities=ToolCapabilities(
            effects=[ToolEffect("write_file", dry_run="required_before_execute")]
        )
    )
    def act(path: str, plan_only: bool = False) -> str:
        return path

    tried = ToolResult(
        id="c0", name="act", arguments='{"path": "a", "plan_only": true}', result='"ok"'
    )
    for items, expected in (([], Block), ([tried], Suspend)):
        answer = ask(
            call_of(act, path="a"),
            dry_run_argument="plan_only",
            dry_run_done=dry_run_in(items, "plan_only"),
        )
        assert type(answer) is expected
    assert ask(call_of(act, path="a", plan_only=True), dry_run_argument="plan_only") is None


def test_the_whole_road_from_dry_run_to_approval() -> None:
    """Blocked, tried, tried again, suspended, approved: then the call is pending, and only then."""
    session = Session()
    hooks = Ops.HookSet()
    hooks.gate()(capability_gate({"block": "suspend"}, dry_run_done=dry_run_in(session.transcript)))
    arguments = {"service": "api", "count": 3}
    plan = plan_of(("1", "roll_out", arguments)).apply_hooks_sync(hooks)
    assert plan.pending == ()
    assert plan.blocked is not None
    assert "has to be tried first" in plan.blocked
    plan.commit(session)
    plan = plan_of(("2", "roll_out", {**arguments, "dry_run": True})).apply_hooks_sync(hooks)
    plan.commit(session, [plan.pending[0].call_sync()])
    plan = plan_of(("3", "roll_out", arguments)).apply_hooks_sync(hooks)
    (waiting,) = plan.suspended
    plan.resume(waiting.approve())
    plan = plan.apply_hooks_sync(hooks)
    assert plan.suspended == ()
    assert [call.id for call in plan.pending] == ["3"]
    plan.commit(session, [plan.pending[0].call_sync()])
    assert len(session.transcript) == 6


def test_a_block_wins_over_an_approval() -> None:
    """A call that was approved is blocked all the same where the gate has come to forbid it."""
    hooks, stricter = Ops.HookSet(), Ops.HookSet()
    hooks.gate()(capability_gate({"block": "suspend"}, dry_run_done=lambda call: True))
    stricter.gate()(capability_gate(dry_run_done=lambda call: True))
    plan = plan_of(("1", "roll_out", {"service": "api"})).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve())
    plan = plan.apply_hooks_sync(stricter)
    assert plan.pending == ()
    assert plan.blocked is not None
    plan.commit(Transcript())
