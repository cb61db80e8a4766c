"""The desk of `dbos_desk.py` on Temporal: a server keeps the conversation, and workers carry it on.

A step is an activity here, on any worker. If a worker is lost, its heartbeats end, and the server
gives the activity to another worker. That is right for `pay`, which has a key, and wrong for
`wire`. So a call that must not run twice has one attempt, and if that is lost, the workflow records
that nobody knows whether the money went out.

    temporal server start-dev                           # a server, for a first try
    python examples/temporal_desk.py worker             # one or more
    python examples/temporal_desk.py ask                # starts the conversation, waits for its end
    python examples/temporal_desk.py inbox              # in another terminal: shows what waits
    python examples/temporal_desk.py approve call_1 23199c0e
    python examples/temporal_desk.py cancel call_2 --reason "too much for one day"

Kill workers whenever you like, as long as another one is there or comes. The server is at
TEMPORAL_ADDRESS, or here. The transcript and the record of the round are kept once, in a folder
that all workers see; in place of it, use your database. Only entries go through the server, where
they count for the size of the history. The tools, the model and the steps are in `payment_desk.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

try:
    from temporalio import activity, workflow
    from temporalio.client import Client
    from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
    from temporalio.exceptions import ActivityError
    from temporalio.service import RPCError
    from temporalio.worker import Worker
except ModuleNotFoundError as error:
    sys.exit(f"temporal_desk.py needs the package {error.name!r}: python -m pip install temporalio")

with workflow.unsafe.imports_passed_through():  # the sandbox need not import it again
    import payment_desk as desk
    from payment_desk import CONVERSATION, QUESTION, Asked, Data, HandedOut

QUEUE = "payments"
SOON = timedelta(minutes=1)
LOST = timedelta(seconds=4)
"""How long a worker that runs a tool may give no sign of life."""
ONCE = RetryPolicy(maximum_attempts=1)
SOME = RetryPolicy(maximum_attempts=5)


# The steps: activities, which pass texts by name.


class Steps:
    """What workers do.

    Args:
        folder: Where texts and the books of the bank are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, text: str) -> str:
        """Keep a text, and give its name; the same text has the same name."""
        name = hashlib.sha256(text.encode()).hexdigest()
        written = self.folder / f"{name}.{os.getpid()}"
        written.write_text(text, encoding="utf-8")
        written.replace(self.folder / name)  # whole, or not at all
        return name

    def kept(self, name: str) -> str:
        """Give a text that was kept."""
        return (self.folder / name).read_text(encoding="utf-8")

    @activity.defn
    def begin(self, question: str) -> str:
        """Begin a conversation, and name its transcript."""
        return self.keep(desk.begin(question))

    @activity.defn
    def ask_model(self, note: str) -> Asked:
        """Ask the model, with the names of transcript and record in place of them."""
        asked = desk.ask(self.kept(note))
        record = None if asked.record is None else self.keep(asked.record)
        return Asked(self.keep(asked.note), record, asked.answer)

    @activity.defn
    def what_waits(self, record: str, entries: list[Data]) -> list[Data]:
        """Give what waits for a decision."""
        return desk.what_waits(self.kept(record), entries)

    @activity.defn
    def what_runs(self, record: str, entries: list[Data]) -> list[str]:
        """Name the calls that are to be run."""
        return desk.what_runs(self.kept(record), entries)

    @activity.defn
    def take_decision(self, record: str, entries: list[Data], message: Data) -> list[Data]:
        """Take in a decision."""
        return desk.decide(self.kept(record), entries, message)

    @activity.defn
    def start_call(self, record: str, entries: list[Data], call_id: str) -> HandedOut:
        """Put on record that a call starts."""
        owner = activity.info().activity_id
        return desk.hand_out(self.kept(record), entries, call_id, f"activity {owner}")

    @activity.defn
    async def run_call(self, record: str, entries: list[Data], packed: str) -> list[Data]:
        """Run a call, with a sign of life every second."""
        running = asyncio.create_task(
            asyncio.to_thread(desk.run, self.kept(record), entries, packed, self.folder)
        )
        while not (await asyncio.wait([running], timeout=1))[0]:
            activity.heartbeat()
        return running.result()

    @activity.defn
    def give_up(self, record: str, entries: list[Data], call_id: str) -> list[Data]:
        """Record that nobody knows what a call did whose worker is gone."""
        return desk.give_up(self.kept(record), entries, call_id)

    @activity.defn
    def commit(self, note: str, record: str, entries: list[Data]) -> str:
        """Append the round to the transcript, and name what that gives."""
        return self.keep(desk.commit(self.kept(note), self.kept(record), entries))

    def activities(self) -> list[Any]:
        """List them, for a worker."""
        return [
            self.begin,
            self.ask_model,
            self.what_waits,
            self.what_runs,
            self.take_decision,
            self.start_call,
            self.run_call,
            self.give_up,
            self.commit,
        ]


# The loop.


async def do(step: Any, *values: Any) -> Any:
    """Run a step; it may run more than once, as its result counts once."""
    return await workflow.execute_activity_method(step, args=values, start_to_close_timeout=SOON)


def entries_of(call_id: object, entries: list[Data]) -> list[Data]:
    """Pick the entries of a call: a step about it needs no others, and a history has its limits."""
    return [entry for entry in entries if entry["call"] == call_id]


@workflow.defn
class Conversation:
    """Go on with a conversation until it is over."""

    def __init__(self) -> None:
        self.decisions: list[Data] = []
        self.shown: list[Data] = []

    @workflow.signal
    def decide(self, message: Data) -> None:
        """Take the fields of a `Decision`."""
        self.decisions.append(message)

    @workflow.query
    def waiting(self) -> list[Data]:
        """Give what waits for a decision."""
        return self.shown

    @workflow.run
    async def run(self, question: str) -> str:
        """Go on with the conversation until it is over, and give its answer."""
        note: str = await do(Steps.begin, question)
        while True:
            asked: Asked = await do(Steps.ask_model, note)
            if asked.answer is not None:
                return asked.answer
            assert asked.record is not None
            entries: list[Data] = []
            await self.decide_all(asked.record, entries)
            for call_id in await do(Steps.what_runs, asked.record, entries):
                await self.run_call(asked.record, entries, call_id)
            note = await do(Steps.commit, asked.note, asked.record, entries)

    async def decide_all(self, record: str, entries: list[Data]) -> None:
        """Let people decide about the calls of a round."""
        while waiting := await do(Steps.what_waits, record, entries):
            self.shown = waiting
            while self.shown:
                entries += await self.take_decision(record, entries)

    async def take_decision(self, record: str, entries: list[Data]) -> list[Data]:
        """Wait for a decision, and take it in; what is decided is not shown any more."""
        await workflow.wait_condition(lambda: bool(self.decisions))
        message = self.decisions.pop(0)
        own = entries_of(message.get("call_id"), entries)
        new: list[Data] = await do(Steps.take_decision, record, own, message)
        decided = [entry["call"] for entry in new]
        self.shown = [each for each in self.shown if each["call"]["call_id"] not in decided]
        return new

    async def run_call(self, record: str, entries: list[Data], call_id: str) -> None:
        """Run a call: once, unless it may run again."""
        own = entries_of(call_id, entries)
        started: HandedOut = await do(Steps.start_call, record, own, call_id)
        entries += started.entries
        own += started.entries
        try:
            entries += await workflow.execute_activity_method(
                Steps.run_call,
                args=[record, own, started.call],
                start_to_close_timeout=SOON,
                heartbeat_timeout=LOST,
                retry_policy=SOME if started.idempotent else ONCE,
            )
        except ActivityError:
            entries += await do(Steps.give_up, record, own, call_id)


# The commands.


async def connect(address: str) -> Client:
    """Connect to the server."""
    try:
        return await Client.connect(address)
    except RuntimeError:
        sys.exit(f"No Temporal server answers at {address}. First: temporal server start-dev")


async def work(client: Client, folder: Path) -> None:
    """Carry on what there is, until it is interrupted."""
    with ThreadPoolExecutor(4) as threads:
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[Conversation],
            activities=Steps(folder).activities(),
            activity_executor=threads,
        )
        await worker.run()


async def ask(client: Client) -> str:
    """Begin the conversation, or find it, and wait for its end."""
    return await client.execute_workflow(
        Conversation.run,
        QUESTION,
        id=CONVERSATION,
        task_queue=QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )


async def inbox(client: Client) -> list[Data]:
    """Ask the workflow what waits."""
    try:
        return await client.get_workflow_handle(CONVERSATION).query(Conversation.waiting)
    except RPCError as error:
        sys.exit(f"Nothing was started here, or no worker answers ({error.message}).")


async def main(argv: Sequence[str] | None = None) -> None:
    """Run a command."""
    commands = {"worker": "carry on what there is", "ask": "begin, or wait for the end"}
    options = desk.read_options(argv, "A desk on Temporal.", commands)
    client = await connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    if options.command == "worker":
        await work(client, options.folder)
    elif options.command == "ask":
        print(await ask(client))
    elif options.command == "inbox":
        desk.show(await inbox(client))
    else:
        message = desk.message_of(await inbox(client), options)
        await client.get_workflow_handle(CONVERSATION).signal(Conversation.decide, message)


if __name__ == "__main__":
    asyncio.run(main())
