"""Programs that a provider runs itself: who made a call is kept, and said where it is asked."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    NeedsTools,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import DialectError, TranscriptError
from lutum_py.execution import run_sync
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from lutum_py.turns import ServerToolItem, ToolCallItem
from lutum_py.typing import Ancestor

from .program_wires import ARGUMENTS, BOTH, Shop, Wire, callers


@tool_fn(idempotent=True)
def desk(order: str, cents: int, ctx: ToolContext) -> str:
    """Ask for a refund."""
    ctx.request_calls([("refund", {"order": order, "cents": cents})])


class Desk(Toolset):
    """A tool that asks, and what it asks for."""

    shop = toolset(Shop, off=True)
    desk = tool(desk)


def planned(wire: Wire) -> ToolRoundPlan[Any]:
    """Open the round in which the program calls."""
    outcome = Shop.read_turn(wire.dialect.decode(wire.response()))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


@BOTH
def test_a_call_says_which_item_made_it(wire: Wire) -> None:
    """The caller of a call is the program's id, and None where the model called directly."""
    assert callers(wire.dialect.decode(wire.response())) == [wire.id]
    assert callers(wire.dialect.decode(wire.direct())) == [None]


@BOTH
def test_a_stream_says_it_as_the_whole_does(wire: Wire) -> None:
    """Streamed by events, by lines of HTTP or broken off, a call has the caller that it has."""
    whole: AssistantTurn = wire.dialect.decode(wire.response())
    by_event, by_line, cut = (wire.dialect.StreamDecoder() for _ in range(3))
    for event in wire.events():
        by_event.feed(event)
        by_line.feed_line(f"data: {json.dumps(event)}")
    for event in wire.events()[:-1]:
        cut.feed(event)
    assert by_event.finish() == whole
    assert by_line.finish() == whole
    assert callers(by_line.finish()) == [wire.id]
    with pytest.raises(DialectError) as broken:
        cut.finish()
    assert isinstance(broken.value.turn, AssistantTurn)
    assert callers(broken.value.turn) == [wire.id]


@BOTH
def test_a_saved_turn_says_who_called(wire: Wire) -> None:
    """Turn JSON keeps the caller; one that its payload does not say is refused."""
    text = planned(wire).dump_json()
    session = Session()
    session.push_user("Go")
    assert callers(Shop.load_plan(text).abort(session, "It is late.").turn) == [wire.id]
    saved = session.transcript.dump_json()
    edited = saved.replace(f'"caller":"{wire.id}"', '"caller":"other"')
    assert edited != saved
    with pytest.raises(TranscriptError, match="have other callers"):
        Transcript.load_json(edited)


def test_a_turn_without_a_payload_keeps_its_callers() -> None:
    """What was put together by hand is saved with the caller, and loaded with it."""
    item = ToolCallItem(ToolMetadata(id="c1", name="refund", arguments=ARGUMENTS), "p1")
    transcript = Transcript()
    results = [ToolResult(id="c1", name="refund", arguments=ARGUMENTS, result="1")]
    transcript.append_round(CommittedRound(AssistantTurn(items=[item]), results))
    assert Transcript.load_json(transcript.dump_json()) == transcript
    assert item != ToolCallItem(item.metadata)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"call_id": "p1", "code": "x"}, ("program", {"code": "x"})),
        ({"id": "p1", "name": "bash", "input": {"command": "x"}}, ("bash", {"command": "x"})),
        ({"id": "p1", "input": None}, ("program", None)),
        ({"call_id": "p1", "result": "1"}, None),
        ({"call_id": "p2", "code": "x"}, None),
    ],
)
def test_what_made_calls_is_told_by_its_id(payload: dict[str, Any], said: Any) -> None:
    """An item made the calls that name it, unless it is what came of a program."""
    assert ServerToolItem("program", payload).made_calls("p1") == said


@BOTH
def test_a_call_stands_within_the_program(wire: Wire) -> None:
    """The plan, its rows and what they pickle to say which program called, with its source."""
    expected = (Ancestor(wire.id, wire.name, wire.given),)
    plan = planned(wire)
    (row,) = plan.calls
    assert (
        plan.ancestors("c1")
        == row.ancestors
        == pickle.loads(pickle.dumps(row)).ancestors
        == expected
    )
    with Shop.load_plan(plan.dump_json()) as loaded:
        assert loaded.ancestors("c1") == expected


@BOTH
def test_who_waits_in_a_store_stands_within_the_program(wire: Wire) -> None:
    """An inbox shows which program made the call: it has neither the turn nor the tools."""
    hooks = Shop.HookSet()
    hooks.gate()(lambda _metadata, _input: Suspend(SuspendTicket()))
    outcome = Shop.read_turn(wire.dialect.decode(wire.response("c1")))
    assert isinstance(outcome, NeedsTools)
    with open_store(":memory:") as store:
        store.save("one", outcome.round.apply_hooks_sync(hooks))
        (waiting,) = store.waiting()
        assert waiting.ancestors == (Ancestor(wire.id, wire.name, wire.given),)


@BOTH
def test_a_program_that_goes_on_is_found_in_the_conversation(wire: Wire) -> None:
    """A later turn of the program does not repeat it: it is said from the turn that began it."""
    said = [
        wire.dialect.decode(wire.response("c1", name="orders")),
        wire.dialect.decode(wire.response("c2", begins=False)),
    ]
    model, session = ScriptedModel(said), Session()
    session.push_user("Go")
    run_sync(plan := opened(session, model))
    plan.commit(session)
    plan = opened(session, model)
    assert plan.ancestors("c2") == (Ancestor(wire.id, wire.name, wire.given),)
    loaded = Shop.load_session(Shop.dump_session(session, plan)).plan
    assert loaded is not None
    assert loaded.ancestors("c2") == plan.ancestors("c2")
    with Shop.load_plan(loaded.dump_json()) as alone:
        assert alone.ancestors("c2") == (Ancestor(wire.id, "program", None),)


def opened(session: Session, model: ScriptedModel) -> ToolRoundPlan[Any]:
    """Ask the model, which needs tools."""
    outcome = session.text_turn(model).tools(Shop).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


@BOTH
def test_a_call_within_stands_within_the_program_as_well(wire: Wire) -> None:
    """A call that a tool asks for, which a program called, has both before it."""
    outcome = Desk.read_turn(wire.dialect.decode(wire.response(name="desk")))
    assert isinstance(outcome, NeedsTools)
    plan = run_sync(outcome.round.plan())
    names = [(each.id, each.tool) for each in plan.ancestors("c1/1")]
    plan.dump_json()
    assert names == [(wire.id, wire.name), ("c1", "desk")]
