"""A desk on DBOS: each conversation is one durable workflow, and goes on wherever it was cut off.

DBOS keeps the result of each step of a workflow in a database (SQLite here; PostgreSQL, to scale
out). After a crash it runs the workflow again with the results of the steps that ended, and the
step that was cut off runs again. That is right for `pay`, which has a key, and wrong for `wire`. So
the start of a call is a step of its own, and its owner is known only to the memory of the process
that started it. Whoever runs the call again after a crash does not know the owner, and tells the
model that nobody knows whether the money went out.

    python examples/dbos_desk.py ask                # asks the model, and waits for decisions
    python examples/dbos_desk.py inbox              # in another terminal: shows what waits
    python examples/dbos_desk.py approve call_1 23199c0e
    python examples/dbos_desk.py cancel call_2 --reason "too much for one day"

Kill the first one whenever you like, and start it again: it goes on. Everything is kept in
`payment-desk`, or where DBOS_SYSTEM_DATABASE_URL and --folder say. On Python 3.12 and later DBOS
needs SQLite 3.42. The tools, the model and the steps are in `payment_desk.py`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    from dbos import DBOS, DBOSClient, DBOSConfig, SetWorkflowID
    from sqlalchemy.exc import DatabaseError
except ModuleNotFoundError as error:
    sys.exit(f"dbos_desk.py needs the package {error.name!r}: python -m pip install dbos")

import payment_desk as desk
from payment_desk import CONVERSATION, QUESTION, Asked, Data, HandedOut

DAY = 24 * 60 * 60.0

# The steps.

owners: set[str] = set()
"""Who runs the calls that this process started; it is gone with the process."""


@DBOS.step()
def ask_model(note: str) -> Asked:
    """Ask the model."""
    return desk.ask(note)


@DBOS.step()
def take_decision(record: str, entries: list[Data], message: Data) -> list[Data]:
    """Take in a decision."""
    return desk.decide(record, entries, message)


@DBOS.step()
def start_call(record: str, entries: list[Data], call_id: str) -> tuple[str, HandedOut]:
    """Put on record that a call starts, in this process."""
    owner = secrets.token_hex(8)
    owners.add(owner)
    return owner, desk.hand_out(record, entries, call_id, owner)


@DBOS.step()
def run_call(
    record: str, entries: list[Data], call_id: str, started: tuple[str, HandedOut], folder: str
) -> list[Data]:
    """Run a call, unless it may have run already and must not run twice."""
    owner, handed_out = started
    if handed_out.idempotent or owner in owners:
        owners.discard(owner)
        return desk.run(record, entries, handed_out.call, Path(folder))
    return desk.give_up(record, entries, call_id)


@DBOS.step()
def commit(note: str, record: str, entries: list[Data]) -> str:
    """Append the round to the transcript."""
    return desk.commit(note, record, entries)


# The loop, which reads as one without DBOS.


@DBOS.workflow()
def converse(question: str, folder: str) -> str:
    """Go on with the conversation until it is over, and give its answer."""
    note = desk.begin(question)
    while True:
        asked = ask_model(note)
        if asked.answer is not None:
            return asked.answer
        assert asked.record is not None
        note = commit(asked.note, asked.record, run_round(asked.record, folder))


def run_round(record: str, folder: str) -> list[Data]:
    """Let people decide about the calls of a round, run them, and give what happened."""
    entries: list[Data] = []
    while waiting := desk.what_waits(record, entries):
        DBOS.set_event("waiting", waiting)
        message = DBOS.recv("decisions", timeout_seconds=DAY)
        if message is not None:
            entries += take_decision(record, entries, message)
    DBOS.set_event("waiting", [])
    for call_id in desk.what_runs(record, entries):
        started = start_call(record, entries, call_id)
        entries += started[1].entries
        entries += run_call(record, entries, call_id, started, folder)
    return entries


# The commands.


def version_of_tools() -> str:
    """Name the schemas of the tools: DBOS leaves a workflow to processes of its own version."""
    digests = [each.digest for each in desk.Desk.definitions()]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:12]


def ask(folder: Path, url: str) -> None:
    """Begin the conversation, or go on with it, and wait for its end."""
    config: DBOSConfig = {
        "name": "lutum-desk",
        "system_database_url": url,
        "application_version": version_of_tools(),
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


def inbox(url: str) -> list[Data]:
    """Ask the workflow what waits."""
    client = DBOSClient(system_database_url=url)
    try:
        if not client.list_workflows(workflow_ids=[CONVERSATION]):
            sys.exit("Nothing was started here. First: ask")
        waiting: list[Data] = client.get_event(CONVERSATION, "waiting", 1) or []
        return waiting
    except DatabaseError as error:  # `ask` makes the tables
        sys.exit(f"Nothing was started here, or it cannot be read ({error.orig}). First: ask")
    finally:
        client.destroy()


def send(url: str, message: Data) -> None:
    """Send a decision to the workflow."""
    client = DBOSClient(system_database_url=url)
    try:
        client.send(CONVERSATION, message, "decisions")
    finally:
        client.destroy()


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command."""
    options = desk.read_options(argv, "A desk on DBOS.", {"ask": "begin, or go on"})
    here = f"sqlite:///{options.folder / 'dbos.db'}"
    url = os.environ.get("DBOS_SYSTEM_DATABASE_URL", here)
    if options.command == "ask":
        ask(options.folder, url)
    elif options.command == "inbox":
        desk.show(inbox(url))
    else:
        send(url, desk.message_of(inbox(url), options))


if __name__ == "__main__":
    main()
