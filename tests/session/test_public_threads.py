"""Approvals within calls that other libraries lost, as their users told it in public threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lutum_py import (
    Finished,
    NeedsTools,
    Session,
    ToolContext,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import CommitError
from lutum_py.execution import run_sync
from lutum_py.testing import ScriptedModel
from tests.dialects.program_wires import BOTH, Shop, Wire


def asked(model: ScriptedModel, tools: type[Toolset], session: Session) -> ToolRoundPlan[Any] | str:
    """Ask the model until it answers, or until a call waits for a person."""
    while True:
        outcome = session.text_turn(model).tools(tools).collect_sync()
        if isinstance(outcome, Finished):
            return outcome.result.text
        assert isinstance(outcome, NeedsTools)
        plan = run_sync(outcome.round.plan(), hooks=tools.HookSet())
        if plan.suspended:
            return plan
        plan.commit(session)


@BOTH
def test_a_call_of_a_hosted_program_halts_the_loop(wire: Wire) -> None:
    """A call that waits halts the loop, also one of a program that its provider has not ended.

    vercel/ai#18970: there the open program let the loop ask the model again, without the result.
    """
    model = ScriptedModel([wire.dialect.decode(wire.response()), wire.dialect.decode(wire.done())])
    session = Session()
    session.push_user("Refund A1.")
    plan = asked(model, Shop, session)
    assert isinstance(plan, ToolRoundPlan)
    assert len(model.requests) == 1
    (waiting,) = plan.suspended
    assert [each.arguments for each in plan.ancestors(waiting.call.id)] == [wire.given]
    with pytest.raises(CommitError):
        plan.commit(session)
    plan.resume(waiting.approve(by="ann"))
    run_sync(plan, hooks=Shop.HookSet()).commit(session)
    assert asked(model, Shop, session) == "Done."
    assert len(model.requests) == 2
    body = wire.dialect.encode_request(model.requests[1])
    assert wire.dialect.check(body) == []
    assert "refunded 9900" in str(body)


ran: list[str] = []


@tool_fn
def search(query: str) -> str:
    """Search the web."""
    ran.append(query)
    return f"found {query}"


class Web(Toolset):
    """What the innermost agent is offered."""

    search = tool(search, needs_approval=True)


def agent(name: str, model: ScriptedModel, tools: type[Toolset]) -> Any:
    """A tool that lets another model do a task."""

    @tool_fn(name=name, idempotent=True)
    def ask_agent(task: str, ctx: ToolContext) -> str:
        """Let another model do a task."""
        if ctx.inner is None:
            session = Session()
            session.push_user(task)
        else:
            session = ctx.inner.session()
        outcome = session.text_turn(model).tools(tools).collect_sync()
        if isinstance(outcome, NeedsTools):
            ctx.request_calls(outcome.round, state=session)
        assert isinstance(outcome, Finished)
        return outcome.result.text

    return ask_agent


def says(name: str, task: dict[str, Any], answer: str) -> ScriptedModel:
    """A model that calls one tool, and then answers."""
    return ScriptedModel([ScriptedModel.tool_calls(("x", name, task)), ScriptedModel.text(answer)])


def test_what_was_approved_in_a_sub_agent_is_run() -> None:
    """An approval within an agent that is a tool runs the call, once, and the agent goes on.

    microsoft/agent-framework#4963: there the approval came back, and the tool was never run.
    """
    ran.clear()
    worker = says("search", {"query": "Oslo"}, "It is cloudy.")

    class Desk(Toolset):
        web = toolset(Web, off=True)
        weather = tool(agent("weather", worker, Web))

    session = Session()
    session.push_user("What is the weather?")
    model = says("weather", {"task": "Oslo"}, "Cloudy, they say.")
    plan = asked(model, Desk, session)
    assert isinstance(plan, ToolRoundPlan)
    assert ran == []
    plan.resume(plan.suspended[0].approve(by="ann"))
    run_sync(plan, hooks=Desk.HookSet()).commit(session)
    assert ran == ["Oslo"]
    assert worker.requests[1].items[-1].output == "found Oslo"  # type: ignore[union-attr]
    assert asked(model, Desk, session) == "Cloudy, they say."


def test_an_approval_two_agents_deep_goes_through_a_file(tmp_path: Path) -> None:
    """Loaded from a file, the call that was approved runs, and each agent goes on in its turn.

    openai/openai-agents-js#680: there the orchestrator answered at once, without the inner call.
    """
    ran.clear()
    searcher = says("search", {"query": "cafes"}, "Two cafes.")
    director = says("finder", {"task": "Find cafes."}, "There are two.")
    model = says("manager", {"task": "Cafes?"}, "You have two cafes.")

    class Inner(Toolset):
        finder = tool(agent("finder", searcher, Web))

    class Office(Toolset):
        web = toolset(Web, off=True)
        inner = toolset(Inner, off=True)
        manager = tool(agent("manager", director, Inner))

    session = Session()
    session.push_user("Do I have cafes nearby?")
    plan = asked(model, Office, session)
    assert isinstance(plan, ToolRoundPlan)
    file = tmp_path / "state.json"
    file.write_text(Office.dump_session(session, plan))
    restored = Office.load_session(file.read_text())
    session, loaded = restored.session, restored.plan
    assert loaded is not None
    (waiting,) = loaded.suspended
    assert [each.tool for each in loaded.ancestors(waiting.call.id)] == ["manager", "finder"]
    loaded.resume(waiting.approve(by="ann"))
    run_sync(loaded, hooks=Office.HookSet()).commit(session)
    assert ran == ["cafes"]
    assert asked(model, Office, session) == "You have two cafes."
    assert [len(each.requests) for each in (searcher, director, model)] == [2, 2, 2]
