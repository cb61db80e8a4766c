"""Serve a toolset in one process, use it in another, and let a person answer in a third.

    python examples/mcp_desk.py serve                       # prints its address, and goes on
    python examples/mcp_desk.py ask http://127.0.0.1:…/mcp
    python examples/mcp_desk.py answer http://127.0.0.1:…/mcp yes

Needs the extra `mcp` (`python -m pip install -e '.[mcp]'`).

Letters are gated: the server wants to know from a person whether each may be sent. `ask` runs a
loop until the server asks, keeps the conversation in a file (`--state`), and ends. `answer` is
another process with a connection of its own: it answers, and the loop goes on. What was done before
the question is not done again. The server seals what it gave away, and honours it for ten minutes.

The model is a scripted one; yours takes its place in `go_on`.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

try:
    import uvicorn
    from mcp import Client
except ModuleNotFoundError as error:
    sys.exit(f"mcp_desk.py needs the package {error.name!r}: python -m pip install -e '.[mcp]'")

from lutum_py import (
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    Skip,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities
from lutum_py.execution import run
from lutum_py.mcp import RemoteTools, create_server, decline_inline, remote_tools
from lutum_py.sinks import escape_unprintable
from lutum_py.testing import ScriptedModel

QUESTION = "How many primes are there below 1000? Write it to Ada."


# The server.


@tool_fn(idempotent=True, capabilities=ToolCapabilities(effects=["introspect_runtime"]))
def count_primes(start: int, stop: int) -> int:
    """Count the primes from start, included, to stop, excluded."""
    return sum(
        number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
        for number in range(start, stop)
    )


@tool_fn(capabilities=ToolCapabilities(effects=["send_message"]))
def send_letter(recipient: str, text: str, outbox: Annotated[Path, Skip()]) -> str:
    """Send a letter: another one each time.

    Args:
        recipient: Who gets it.
        text: What it says.
        outbox: The file to which a line is added for each letter.
    """
    with outbox.open("a", encoding="utf-8") as lines:
        lines.write(f"{recipient}: {text}\n")
    return f"sent to {recipient}"


class Jobs(Toolset):
    """What the server offers."""

    count_primes = tool(count_primes)
    send_letter = tool(send_letter)


hooks = Jobs.HookSet()


@hooks.gate(Jobs.send_letter)
def a_person_decides(_: ToolMetadata, input: Any) -> Suspend:
    """Let nothing be sent that nobody has read."""
    return Suspend(SuspendTicket(message=f"Send {input.recipient} this? {input.text}"))


async def serve(port: int, outbox: Path) -> None:
    """Serve the jobs on this machine."""
    server = create_server(Jobs, hooks=hooks, skipped={"outbox": outbox})
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning", ws="none")
        await uvicorn.Server(config).serve([listening])


# The loop.


async def go_on(url: str, saved: str | None, state: Path, *, is_yes: bool = False) -> None:
    """Begin a conversation or take up a saved one, until it ends or waits for a person."""
    model = ScriptedModel(scripted)
    session, plan = Session(), None
    session.push_user(QUESTION)
    async with Client(url, elicitation_callback=decline_inline) as client:
        remote = await remote_tools(client, "Remote", only=["count_primes", "send_letter"])
        tools = remote.toolset
        if saved is not None:
            restored = tools.load_session(saved)
            session, plan = restored.session, restored.plan
        if plan is not None:
            for waiting in plan.suspended:
                plan.resume(waiting.approve(result={} if is_yes else "decline"))
        while True:
            if plan is None:
                match await session.text_turn(model).tools(tools).collect():
                    case NeedsTools(round):
                        plan = round.plan()
                    case Finished(result):
                        print(escape_unprintable(result.text, "\n"))
                        keep(state, None)  # it is over, so there is nothing to answer again
                        return
            await run(plan)
            if plan.suspended:
                show(plan, state, remote)
                keep(state, tools.dump_session(session, plan))
                return
            plan.commit(session)
            plan = None
            keep(state, tools.dump_session(session))


def keep(state: Path, saved: str | None) -> None:
    """Put the conversation away; None removes what was put away before."""
    if saved is None:
        state.unlink(missing_ok=True)
    else:
        state.write_text(saved, encoding="utf-8")


def show(plan: ToolRoundPlan[Any], state: Path, remote: RemoteTools) -> None:
    """Show what is asked, and how it is answered."""
    for waiting in plan.suspended:
        print(f"{escape_unprintable(waiting.call.name)} asks: {waiting.question}")
    print(f"Answer with: answer URL yes|no --state {state}  ({remote})")


def scripted(request: TurnRequest) -> AssistantTurn:
    """Play the model: count, write, and say what became of it."""
    results = {item.id: item for item in request.items if isinstance(item, ToolResult)}
    if "count" not in results:
        return ScriptedModel.tool_calls(("count", "count_primes", {"start": 0, "stop": 1000}))
    if "letter" not in results:
        text = f"There are {results['count'].output} of them."
        return ScriptedModel.tool_calls(
            ("letter", "send_letter", {"recipient": "Ada", "text": text})
        )
    return ScriptedModel.text(f"Ada's letter: {results['letter'].model_text}")


def main() -> None:
    """Read the command line."""
    folder = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve")
    serving.add_argument("--port", type=int, default=0)
    serving.add_argument("--outbox", type=Path, default=folder / "letters.txt")
    for name in ("ask", "answer"):
        each = commands.add_parser(name)
        each.add_argument("url")
        if name == "answer":
            each.add_argument("answer", choices=["yes", "no"])
        each.add_argument("--state", type=Path, default=folder / "mcp_desk.json")
    options = parser.parse_args()
    if options.command == "serve":
        asyncio.run(serve(options.port, options.outbox))
    elif options.command == "ask":
        asyncio.run(go_on(options.url, None, options.state))
    elif not options.state.exists():
        sys.exit(f"Nothing waits in {options.state}. First: ask {options.url}")
    else:
        saved = options.state.read_text(encoding="utf-8")
        asyncio.run(go_on(options.url, saved, options.state, is_yes=options.answer == "yes"))


if __name__ == "__main__":
    try:
        main()
    except ExceptionGroup as failed:  # of the client: nobody answers there, or the state is none
        first: Exception = failed
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        sys.exit(f"{type(first).__name__}: {first}")
