"""An agent in a tool, which writes a program that waits for an approval: `FOLDER [approve]`.

Each run is a process that goes on from the saved plan as far as it can, saves it, and is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from lutum_py import (
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    ToolContext,
    Toolset,
    TurnRequest,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.code import program_tool
from lutum_py.execution import run_sync
from lutum_py.testing import ScriptedModel
from tests.code.programs import KEY, Shop

FOLDER = Path(sys.argv[1])
CODE = "x = await add(4)\n[await refund('A1', 1200 * x), await refund('A2', 2000 * x)]"
SAYS = {
    "head": [("m", "clerk", {"task": "Refund both."})],
    "clerk": [("m", "run_program", {"code": CODE})],
}


def note(text: str) -> None:
    with (FOLDER / "notes").open("a") as file:
        file.write(f"{text}\n")


def model(name: str) -> ScriptedModel:
    """What a model says by what was said so far; it notes each time that it is asked."""

    def says(request: TurnRequest) -> AssistantTurn:
        turn = sum(isinstance(item, AssistantTurn) for item in request.items)
        note(f"{name} {turn}")
        return ScriptedModel.tool_calls(*SAYS[name]) if turn == 0 else ScriptedModel.text("Done.")

    return ScriptedModel(says)


def agent(name: str, tools: type[Toolset]) -> type[Toolset]:
    @tool_fn(name=name, idempotent=True)
    def ask_agent(task: str, ctx: ToolContext) -> str:
        """Let another model do a task."""
        if ctx.inner is None:
            session = Session()
            session.push_user(task)
        else:
            session = ctx.inner.session()
        outcome = session.text_turn(model(name)).tools(tools).collect_sync()
        if isinstance(outcome, NeedsTools):
            ctx.request_calls(outcome.round, state=session)
        assert isinstance(outcome, Finished)
        return outcome.result.text

    return Toolset.of(name, ask_agent)


class Programs(Toolset):
    """What the clerk is offered."""

    run_program = tool(program_tool(Shop, keep="replay"))


Clerk = agent("clerk", Programs)
Head = agent("head", Clerk)


class Office(Toolset):
    """An agent whose agent writes programs."""

    shop = toolset(Shop, off=True)
    programs = toolset(Programs, off=True)
    clerk = toolset(Clerk, off=True)
    head = toolset(Head)


def main() -> None:
    file = FOLDER / "plan.json"
    if file.exists():
        plan = Office.load_plan(file.read_text(), key=KEY)
        for waiting in plan.suspended:
            note(f"approved {waiting.call.id} {waiting.arguments['order']}")
            plan.resume(waiting.approve(by="ann"))
    else:
        turn = ScriptedModel.tool_calls(("c1", "head", {"task": "Refund what Ann asks for."}))
        outcome = Office.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        plan = outcome.round.plan()
    run_sync(plan, hooks=Office.HookSet())
    if plan.suspended:
        places = [each.tool for each in plan.ancestors(plan.suspended[0].call.id)]
        note(f"waits within {' '.join(places)}")
        file.write_text(plan.dump_json(key=KEY))
    else:
        note(plan.resolve().results[0].model_text)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
