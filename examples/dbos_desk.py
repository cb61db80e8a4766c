"""A desk on DBOS: each conversation is one durable workflow, and goes on wherever it was cut off.

DBOS keeps the steps of a workflow in a database (SQLite here; PostgreSQL, to scale out), and after
a crash runs the workflow again with the results of the steps that ended. The step that was cut off
runs again as well. That is right for a payment, which has a key; a letter would go out twice. So a
letter takes a permit first, which lives in the process that recorded it: whoever runs the step
again has none, and tells the model that nobody knows whether the letter went out.

    python examples/dbos_desk.py ask                # asks the model, and waits for decisions
    python examples/dbos_desk.py inbox              # in another terminal: shows what waits
    python examples/dbos_desk.py approve call_1 23199c0e
    python examples/dbos_desk.py cancel call_2 --reason "too much for one day"

Kill the first one whenever you like, and start it again: it goes on. The model is a script.
Everything is kept in `dbos-desk`, or where DBOS_SYSTEM_DATABASE_URL and --folder say. On Python
3.12 and later DBOS needs SQLite 3.42.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

try:
    from dbos import DBOS, DBOSClient, DBOSConfig, SetWorkflowID
    from sqlalchemy.exc import DatabaseError
except ModuleNotFoundError as error:
    sys.exit(f"dbos_desk.py needs the package {error.name!r}: python -m pip install dbos")

from lutum_py import (
    AssistantTurn,
    Decision,
    Finished,
    NeedsTools,
    Session,
    Skip,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    execution,
    tool,
    tool_fn,
)
from lutum_py.errors import LutumError
from lutum_py.sinks import escape_unprintable
from lutum_py.testing import ScriptedModel

CONVERSATION = "invoices"
DAY = 24 * 60 * 60.0
QUESTION = "Pay the open invoices, and tell Initech that theirs is disputed."


# The tools, and who has a say.


class World:
    """The bank, which takes a key for a payment once, and the post office, which knows no keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def do(self, statement: str, *values: Any) -> None:
        """Change their books."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as books:
            books.execute("CREATE TABLE IF NOT EXISTS payments (key TEXT UNIQUE, payee, cents)")
            books.execute("CREATE TABLE IF NOT EXISTS letters (recipient, text)")
            books.execute(statement, values)


@tool_fn(idempotent=True)
def pay(
    payee: str, cents: int, world: Annotated[World, Skip()], key: Annotated[str, Skip()]
) -> str:
    """Pay a supplier."""
    world.do("INSERT OR IGNORE INTO payments VALUES (?, ?, ?)", key, payee, cents)
    return f"paid {payee} {cents / 100:.2f}"


@tool_fn
def send_letter(recipient: str, text: str, world: Annotated[World, Skip()]) -> str:
    """Send a letter."""
    world.do("INSERT INTO letters VALUES (?, ?)", recipient, text)
    return f"sent to {recipient}"


class Desk(Toolset):
    """What the model may call."""

    pay = tool(pay)
    send_letter = tool(send_letter)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
def ask_somebody(_metadata: ToolMetadata, input: Any) -> Suspend:
    """Let no payment through before somebody approved it."""
    return Suspend(SuspendTicket(message=f"Pay {input.payee} {input.cents / 100:.2f}?"))


def scripted(request: TurnRequest) -> AssistantTurn:
    """Stand in for a model: pay and write a letter, then report."""
    results = [item for item in request.items if isinstance(item, ToolResult)]
    if results:
        return ScriptedModel.text("\n".join(f"{r.name}: {r.status}" for r in results))
    return ScriptedModel.tool_calls(
        ("call_1", "pay", {"payee": "Acme", "cents": 12_000}),
        ("call_2", "pay", {"payee": "Globex", "cents": 980_000}),
        ("call_3", "send_letter", {"recipient": "Initech", "text": "We dispute invoice I-9."}),
    )


# The steps: each takes and gives JSON, so that DBOS can keep it.

permits: set[str] = set()
"""The calls that this process may start; it is gone with the process."""


@DBOS.step()
def ask_model(note: str) -> tuple[str, str | None, str | None]:
    """Ask the model; give the transcript, and the plan of the round or else the answer."""
    session = Session(Transcript.load_json(note))
    match session.text_turn(ScriptedModel(scripted)).tools(Desk).collect_sync():
        case NeedsTools(round):
            plan = round.apply_hooks_sync(hooks)
            return session.transcript.dump_json(), plan.dump_json(), None
        case Finished(result):
            return session.transcript.dump_json(), None, result.text


@DBOS.step()
def take_decision(text: str, message: dict[str, Any]) -> str:
    """Take a decision into the plan; one that is late, unfit or none at all changes nothing."""
    plan = Desk.load_plan(text)
    try:
        plan.resume(Decision(**message))
    except (LutumError, TypeError) as error:
        print(escape_unprintable(str(error)), file=sys.stderr)
    return plan.dump_json()


@DBOS.step()
def permit(call_id: str) -> str:
    """Put on record that a call is about to start, in this process."""
    given = f"{call_id} {secrets.token_hex(8)}"
    permits.add(given)
    return given


@DBOS.step()
def run_call(text: str, call_id: str, given: str, folder: str) -> str:
    """Run a call, and record in the plan what it came to."""
    plan = Desk.load_plan(text)
    (call,) = [each for each in plan.pending if each.id == call_id]
    if call.selector.definition.idempotent or given in permits:
        permits.discard(given)
        key = f"{CONVERSATION}/{call.idempotency_key}"
        skipped = {"world": World(Path(folder) / "world.db"), "key": key}
        plan.record(execution.execute_sync(call, skipped=skipped))
    else:
        call.start()  # in a process that is gone
        plan.record(call.indeterminate("The program was killed while the tool ran."))
    print(f"  {call.name}: {call.status}")
    return plan.dump_json()


@DBOS.step()
def commit(note: str, text: str) -> str:
    """Append the round to the transcript."""
    session = Session(Transcript.load_json(note))
    Desk.load_plan(text).commit(session)
    return session.transcript.dump_json()


# The loop, which reads as one without DBOS.


@DBOS.workflow()
def converse(question: str, folder: str) -> str:
    """Go on with the conversation until it is over, and give its answer."""
    session = Session()
    session.push_user(question)
    note = session.transcript.dump_json()
    while True:
        note, text, answer = ask_model(note)
        if text is None:
            assert answer is not None
            return answer
        while waiting := what_waits(text):
            DBOS.set_event("waiting", waiting)
            message = DBOS.recv("decisions", timeout_seconds=DAY)
            if message is not None:
                text = take_decision(text, message)
        DBOS.set_event("waiting", [])
        for call_id in what_is_pending(text):
            text = run_call(text, call_id, permit(call_id), folder)
        note = commit(note, text)


def what_waits(text: str) -> list[dict[str, Any]]:
    """Give what waits for a decision, as plain data."""
    plan = Desk.load_plan(text)
    waiting = [
        {
            "call_id": each.call.id,
            "tool": each.call.name,
            "message": each.ticket.message,
            "arguments": each.arguments,
            "digest": each.digest,
        }
        for each in plan.suspended
    ]
    plan.discard()  # only looked at
    return waiting


def what_is_pending(text: str) -> list[str]:
    """Name the calls that are to be run."""
    plan = Desk.load_plan(text)
    pending = [call.id for call in plan.pending]
    plan.discard()
    return pending


# The commands.


def ask(folder: Path, url: str) -> None:
    """Begin the conversation, or go on with it, and wait for its end."""
    config: DBOSConfig = {
        "name": "lutum-desk",
        "system_database_url": url,
        "application_version": "1",
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()  # goes on with what was cut off
    try:
        with SetWorkflowID(CONVERSATION):
            conversation = DBOS.start_workflow(converse, QUESTION, str(folder))
        print(conversation.get_result())
    finally:
        DBOS.destroy()


def inbox(url: str) -> list[dict[str, Any]]:
    """Ask the workflow what waits."""
    client = DBOSClient(system_database_url=url)
    try:
        if not client.list_workflows(workflow_ids=[CONVERSATION]):
            sys.exit("Nothing was started here. First: ask")
        waiting: list[dict[str, Any]] = client.get_event(CONVERSATION, "waiting", 1) or []
        return waiting
    except DatabaseError as error:  # `ask` makes the tables
        sys.exit(f"Nothing was started here, or it cannot be read ({error.orig}). First: ask")
    finally:
        client.destroy()


def decide(url: str, options: argparse.Namespace) -> None:
    """Send a decision to the workflow, bound to what was shown."""
    shown = next((each for each in inbox(url) if each["call_id"] == options.call), None)
    if shown is None:
        sys.exit(f"No call {options.call!r} waits.")
    digits = shown["digest"].removeprefix("sha256:")
    if options.command == "approve" and not digits.startswith(options.digest):
        sys.exit(f"That is not what waits: its digest begins with {digits[:12]}.")
    action = "resume" if options.command == "approve" else "cancel"
    message = {"call_id": options.call, "action": action, "digest": shown["digest"]}
    client = DBOSClient(system_database_url=url)
    try:
        client.send(CONVERSATION, {**message, "reason": options.reason}, "decisions")
    finally:
        client.destroy()


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description="A desk on DBOS.")
    parser.add_argument("--folder", type=Path, default=Path("dbos-desk"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ask", help="begin, or go on")
    commands.add_parser("inbox", help="show what waits")
    for name in ("approve", "cancel"):
        command = commands.add_parser(name)
        command.add_argument("call")
        if name == "approve":
            command.add_argument("digest", help="what was shown: 8 digits, or more")
        command.add_argument("--reason")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    here = f"sqlite:///{options.folder / 'dbos.db'}"
    url = os.environ.get("DBOS_SYSTEM_DATABASE_URL", here)
    if options.command == "ask":
        ask(options.folder, url)
    elif options.command == "inbox":
        waiting = inbox(url)
        for each in waiting:
            print(escape_unprintable(f"{each['call_id']}  {each['tool']} {each['arguments']}"))
            print(escape_unprintable(f"    {each['message']}"))
            print(f"    digest {each['digest'].removeprefix('sha256:')[:12]}")
        if not waiting:
            print("Nothing waits.")
    else:
        decide(url, options)


if __name__ == "__main__":
    main()
