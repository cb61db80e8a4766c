"""A desk that makes payments: what `dbos_desk.py` and `temporal_desk.py` have in common.

A bank takes payments in two ways. `pay` passes a key, and the bank takes each key once, so a
payment that was cut off can be sent again. `wire` passes none: sent twice, it is paid twice. The
model wants three payments, and a person has to approve each of them. The model is a script.

The functions under "The steps" are what an engine runs, one after the other. A round is a record,
which is kept once, and entries, which say what has happened to its calls since. A step gets both,
opens the plan, changes it, and gives the new entries. So only plain data goes through an engine.
"""

from __future__ import annotations

import argparse
import base64
import json
import pickle
import sqlite3
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from lutum_py import (
    AnyToolCall,
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
    ToolRoundPlan,
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
from lutum_py.typing import DecisionAction

CONVERSATION = "invoices"
QUESTION = "Pay the open invoices."

Data: TypeAlias = dict[str, Any]


# The tools, and who has a say.


class Bank:
    """A bank that takes each key once, and a payment without a key as often as it comes."""

    def __init__(self, folder: Path) -> None:
        self.books = folder / "bank.db"

    def transfer(self, payee: str, cents: int, key: str | None = None) -> None:
        """Make a payment."""
        with closing(sqlite3.connect(self.books, isolation_level=None)) as books:
            books.execute("CREATE TABLE IF NOT EXISTS payments (key TEXT UNIQUE, payee, cents)")
            books.execute("INSERT OR IGNORE INTO payments VALUES (?, ?, ?)", (key, payee, cents))


@tool_fn(idempotent=True)
def pay(payee: str, cents: int, bank: Annotated[Bank, Skip()], key: Annotated[str, Skip()]) -> str:
    """Pay a supplier, under a key."""
    bank.transfer(payee, cents, key)
    return f"paid {payee} {cents / 100:.2f}"


@tool_fn
def wire(payee: str, cents: int, bank: Annotated[Bank, Skip()]) -> str:
    """Pay a supplier abroad, where banks know no keys."""
    bank.transfer(payee, cents)
    return f"wired {payee} {cents / 100:.2f}"


class Desk(Toolset):
    """What the model may call."""

    pay = tool(pay)
    wire = tool(wire)


Plan: TypeAlias = ToolRoundPlan[Desk]

hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
@hooks.gate(Desk.wire)
def ask_somebody(_metadata: ToolMetadata, input: Any) -> Suspend:
    """Let no payment through before somebody approved it."""
    return Suspend(SuspendTicket(message=f"Pay {input.payee} {input.cents / 100:.2f}?"))


def scripted(request: TurnRequest) -> AssistantTurn:
    """Stand in for a model: make three payments, then report."""
    results = [item for item in request.items if isinstance(item, ToolResult)]
    if results:
        return ScriptedModel.text("\n".join(f"{r.id} {r.name}: {r.status}" for r in results))
    return ScriptedModel.tool_calls(
        ("call_1", "pay", {"payee": "Acme", "cents": 12_000}),
        ("call_2", "pay", {"payee": "Globex", "cents": 980_000}),
        ("call_3", "wire", {"payee": "Initech", "cents": 7_500}),
    )


# The steps: each takes and gives plain data, so that an engine can keep it.


@dataclass(frozen=True)
class Asked:
    """What a turn of the model gave.

    Attributes:
        note: The transcript.
        record: The record of the round that is open, if there is one, with its first entries.
        answer: What the model answered, if no round is open.
    """

    note: str
    record: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class HandedOut:
    """A call that was started, to be run where the engine likes.

    Attributes:
        entries: That it was started, for the plan.
        call: The call, pickled.
        idempotent: Whether it may run a second time.
    """

    entries: list[Data]
    call: str
    idempotent: bool


def begin(question: str) -> str:
    """Begin a conversation."""
    session = Session(id=CONVERSATION)
    session.push_user(question)
    return session.transcript.dump_json()


def ask(note: str) -> Asked:
    """Ask the model."""
    session = Session(Transcript.load_json(note), id=CONVERSATION)
    match session.text_turn(ScriptedModel(scripted)).tools(Desk).collect_sync():
        case NeedsTools(round):
            plan = round.apply_hooks_sync(hooks)
            entries, _ = plan.entries_since()
            record = json.dumps({"round": plan.round_record(), "entries": entries})
            plan.hand_over()  # it goes on with what the engine keeps
            return Asked(session.transcript.dump_json(), record)
        case Finished(result):
            return Asked(session.transcript.dump_json(), answer=result.text)


def what_waits(record: str, entries: list[Data]) -> list[Data]:
    """Give what waits for a decision."""
    with opened(record, entries) as plan:
        return [
            {
                "tool": each.call.name,
                "message": each.ticket.message,
                "arguments": each.arguments,
                "call": {
                    "call_id": each.call.id,
                    "digest": each.digest,
                    "ticket": each.ticket.id,
                    "requested_in": each.approve().requested_in,
                },
            }
            for each in plan.suspended
        ]


def what_runs(record: str, entries: list[Data]) -> list[str]:
    """Name the calls that are to be run."""
    with opened(record, entries) as plan:
        return [call.id for call in plan.pending]


def decide(record: str, entries: list[Data], message: Data) -> list[Data]:
    """Take in a decision; one that is late or does not fit changes nothing."""

    def change(plan: Plan) -> None:
        try:
            plan.resume(Decision(**message))
        except (LutumError, TypeError) as error:  # anybody may send a message
            print(escape_unprintable(str(error)), file=sys.stderr)

    return change_plan(record, entries, change)


def hand_out(record: str, entries: list[Data], call_id: str, owner: str) -> HandedOut:
    """Start a call, and pack it for whoever runs it."""
    calls = list[AnyToolCall]()
    new = change_plan(record, entries, lambda plan: calls.append(plan.detach(call_id, owner=owner)))
    (call,) = calls
    packed = base64.b64encode(pickle.dumps(call)).decode()
    return HandedOut(new, packed, call.selector.definition.idempotent)


def run(record: str, entries: list[Data], packed: str, folder: Path) -> list[Data]:
    """Run a call that was handed out, and record its outcome."""
    call: AnyToolCall = pickle.loads(base64.b64decode(packed))  # from the engine, which is trusted
    skipped = {"bank": Bank(folder), "key": call.idempotency_key}
    outcome = execution.execute_sync(call, skipped=skipped)
    print(f"  {call.id} {call.name}: {call.status}", flush=True)
    return change_plan(record, entries, lambda plan: plan.settle_sync(outcome, hooks))


def give_up(record: str, entries: list[Data], call_id: str) -> list[Data]:
    """Record that nobody knows what a call did whose worker is gone."""

    def change(plan: Plan) -> None:
        plan.abandon(call_id)
        (call,) = [each for each in plan.in_doubt if each.id == call_id]
        plan.record(call.indeterminate("The worker was lost while the tool ran."))

    return change_plan(record, entries, change)


def commit(note: str, record: str, entries: list[Data]) -> str:
    """Append the round to the transcript."""
    session = Session(Transcript.load_json(note), id=CONVERSATION)
    open_plan(record, entries).commit(session)
    return session.transcript.dump_json()


def open_plan(record: str, entries: list[Data]) -> Plan:
    """Open the plan of a round."""
    data = json.loads(record)
    return Desk.open_plan(data["round"], [*data["entries"], *entries])


@contextmanager
def opened(record: str, entries: list[Data]) -> Generator[Plan, None, None]:
    """Open the plan of a round for a while; it goes on with what the engine keeps."""
    plan = open_plan(record, entries)
    try:
        yield plan
    finally:
        plan.hand_over()


def change_plan(record: str, entries: list[Data], change: Callable[[Plan], object]) -> list[Data]:
    """Change the plan of a round, and give what happened."""
    with opened(record, entries) as plan:
        _, mark = plan.entries_since()
        change(plan)
        new, _ = plan.entries_since(mark)
        return new


# The commands.


def read_options(
    argv: Sequence[str] | None, title: str, commands: dict[str, str]
) -> argparse.Namespace:
    """Read a command line: the commands of an engine, and those of whoever decides."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--folder", type=Path, default=Path("payment-desk"))
    known = parser.add_subparsers(dest="command", required=True)
    for name, text in {**commands, "inbox": "show what waits"}.items():
        known.add_parser(name, help=text)
    for name in ("approve", "cancel"):
        command = known.add_parser(name)
        command.add_argument("call")
        if name == "approve":
            command.add_argument("digest", help="what was shown: 8 digits, or more")
        command.add_argument("--reason")
        command.add_argument("--by", help="who decides")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    return options


def show(waiting: list[Data]) -> None:
    """Print what waits."""
    for each in waiting:
        call = each["call"]
        print(escape_unprintable(f"{call['call_id']}  {each['tool']} {each['arguments']}"))
        print(escape_unprintable(f"    {each['message']}"))
        print(f"    digest {call['digest'].removeprefix('sha256:')[:12]}")
    if not waiting:
        print("Nothing waits.")


def message_of(waiting: list[Data], options: argparse.Namespace) -> Data:
    """Make the message for a decision, bound to what was shown."""
    found = [each["call"] for each in waiting if each["call"]["call_id"] == options.call]
    if not found:
        sys.exit(f"No call {options.call!r} waits.")
    (call,) = found
    digits = call["digest"].removeprefix("sha256:")
    if options.command == "cancel":
        return message(call, "cancel", options.reason, options.by)
    if not digits.startswith(options.digest):
        sys.exit(f"That is not what waits: its digest begins with {digits[:12]}.")
    return message(call, "resume", options.reason, options.by)


def message(
    call: Data, action: DecisionAction, reason: str | None = None, by: str | None = None
) -> Data:
    """Make the message for a decision; it has an id, so that it counts once."""
    return asdict(Decision(**call, action=action, reason=reason, by=by))
