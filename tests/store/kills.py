"""Workers and approvers that compete for one store, while they are killed and paused at random.

`python -m tests.store.kills WHERE FOLDER KILLS SEED` runs three workers and two approvers in
processes, kills them `KILLS` times (from outside at any moment, or by themselves at any line),
pauses some past their leases, lets what is left come to its end, and checks what the bank and the
store say. It prints what it counted, and every payment that is wrong, as JSON.

The bank stands for a service elsewhere: it pays again for each request without a key.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar, Final, NoReturn
from uuid import uuid4

from lutum_py import (
    ResumeMode,
    Skip,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    Toolset,
    execution,
    tool,
    tool_fn,
)
from lutum_py.errors import ResumeError, StaleError, StoreError
from lutum_py.store import Claim, Store, open_store
from lutum_py.testing import ScriptedModel
from tests.store.beside import Others, others

KEY: Final = b"a key of the kill driver"
LEASE: Final = 0.3
OPEN: Final = 5
"""How many conversations are open at once."""


class Bank:
    """Books that no transaction of the store covers: a file of entries, each added at once."""

    # Not a database: who is forked with a connection of SQLite, or killed with one, may lose what
    # others write. An entry that crosses no page of the file is written whole, or not at all.
    entry: ClassVar[int] = 512
    seconds: ClassVar[float] = 0.005
    """How long a payment is on its way, and how long its answer is: so kills hit calls that run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def pay(self, key: str | None, call: str, cents: int) -> str:
        time.sleep(self.seconds)
        self.enter("payments", uuid4().hex if key is None else key, call, cents)
        time.sleep(self.seconds)
        return "paid"

    def approve(self, call: str, cents: int) -> None:
        """Put on record what an approver is about to approve."""
        self.enter("approvals", call, cents)

    def enter(self, table: str, *row: str | int | None) -> None:
        """Add an entry to a table."""
        text = json.dumps([table, *row]).ljust(self.entry - 1) + "\n"
        assert len(text) == self.entry, text
        books = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(books, text.encode())
        finally:
            os.close(books)

    def rows(self, table: str) -> list[Any]:
        """Give the entries of a table, but for payments under the key of an earlier one."""
        with self._path.open() as books:
            entries = [entry for name, *entry in map(json.loads, books) if name == table]
        if table != "payments":
            return entries
        return [*{entry[0]: entry for entry in reversed(entries)}.values()]


@tool_fn
def pay(
    cents: int,
    bank: Annotated[Bank, Skip()],
    key: Annotated[str, Skip()],
    of: Annotated[str, Skip()],
) -> str:
    """Pay by a bank that knows no keys."""
    return bank.pay(None, of, cents)


@tool_fn(idempotent=True)
def pay_by_key(
    cents: int,
    bank: Annotated[Bank, Skip()],
    key: Annotated[str, Skip()],
    of: Annotated[str, Skip()],
) -> str:
    """Pay by a bank that pays once for each key."""
    return bank.pay(key, of, cents)


@tool_fn
def pay_if_sure(
    cents: int,
    bank: Annotated[Bank, Skip()],
    of: Annotated[str, Skip()],
    context: ToolContext,
) -> str:
    """Ask by itself whether to pay, in the middle of its work."""
    if context.resume is None:
        context.suspend(SuspendTicket(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL))
    return bank.pay(None, of, cents)


@tool_fn
def look() -> str:
    """Look something up."""
    return "seen"


class Desk(Toolset):
    pay = tool(pay)
    pay_by_key = tool(pay_by_key)
    pay_if_sure = tool(pay_if_sure)
    look = tool(look)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
@hooks.gate(Desk.pay_by_key)
def ask(_metadata: ToolMetadata, _input: Any) -> Suspend:
    return Suspend(SuspendTicket(message="Pay?"))


# What the processes do, again and again until they are told to stop.


def work(store: Store, bank: Bank, random: Random) -> bool:
    """Begin a conversation, run a call, or end a round; say whether there was anything."""
    claim = store.claim(Desk, lease=LEASE)
    if claim is not None:
        run(store, bank, claim, random)
        return True
    for id in store.settled():
        end(store, id)
        return True
    return False


def produce(store: Store, random: Random) -> None:
    calls = [
        (f"c{place}", name, {"cents": random.randint(1, 999)} if name != "look" else {})
        for place, name in enumerate(
            random.choices(("pay", "pay_by_key", "pay_if_sure", "look"), k=random.randint(1, 4))
        )
    ]
    plan = Desk.read_turn(ScriptedModel.tool_calls(*calls)).round.apply_hooks_sync(hooks)  # type: ignore[union-attr]
    store.save(uuid4().hex, plan, note="open")


def run(store: Store, bank: Bank, claim: Claim, random: Random) -> None:
    if claim.in_doubt and not claim.idempotent:
        store.finish(claim, claim.call.indeterminate("a worker was killed in the middle of it"))
        return
    if random.random() < 0.1:
        store.release(claim)
        return
    call = store.start(claim)
    if random.random() < 0.1:
        store.renew(claim)
    of = f"{claim.id}/{call.id}"
    store.finish(
        claim,
        execution.execute_sync(call, skipped={"bank": bank, "key": claim.key, "of": of}),
    )


def end(store: Store, id: str) -> None:
    stored = store.load(id, Desk)
    if stored.plan is None:
        return
    if not stored.plan.is_settled:
        stored.plan.discard()
        return
    edited = {edit.call_id: edit.final["cents"] for edit in stored.plan.edits}
    results = [json.loads(result.dump_json()) for result in stored.plan.resolve().results]
    note = json.dumps({"results": results, "edited": edited})
    store.save(id, None, note=note, version=stored.version)


def approve(store: Store, bank: Bank, random: Random) -> bool:
    """Decide about one call that waits; say whether there was any."""
    waiting = store.waiting()
    if not waiting:
        return False
    one = random.choice(waiting)
    cents = one.arguments["cents"]
    decision = one.approve()
    if random.random() < 0.2:
        decision = one.cancel("no")
    elif random.random() < 0.3:
        cents += 1000
        decision = one.edit({"cents": cents})
    if decision.action == "resume":
        bank.approve(f"{one.id}/{one.call_id}", cents)
    store.decide(one.id, decision, Desk, hooks=hooks)
    if random.random() < 0.3:  # delivered twice
        store.decide(one.id, decision, Desk, hooks=hooks)
    return True


# Processes, and what befalls them.


Step = Callable[[Store, Bank, Random], bool]


@dataclass
class Run:
    """One run of the driver."""

    steps: ClassVar[Mapping[str, tuple[int, Step]]] = {
        "worker": (3, work),
        "approver": (2, approve),
    }
    """What each role does again and again, and how many there are of it."""
    makes: ClassVar[Callable[[Store, Random], None]] = produce
    bank: ClassVar[type[Bank]] = Bank
    file: ClassVar[str] = __file__
    """At the lines of which a process may kill itself."""
    lines: ClassVar[int] = 3_000
    """How many lines it goes then, at most."""
    often: ClassVar[float] = 0.25
    """How often another one is killed from outside, of each look at them."""
    reached: ClassVar[tuple[str, ...]] = ("waiting", "ready", "started", "done")
    """In which states calls have to be as somebody is killed, once for each ten kills."""

    where: str
    folder: Path
    random: Random
    told: Counter[str] = field(default_factory=Counter)
    alive: dict[int, str] = field(default_factory=dict)
    paused: dict[int, float] = field(default_factory=dict)

    def fork(self, role: str, lines: int | None) -> None:
        """Start a process; it kills itself after so many lines of the store's and of its own."""
        seed = self.random.getrandbits(32)
        pid = os.fork()
        if pid:
            self.alive[pid] = role
            return
        status = 1
        try:
            self.child(role, lines, Random(seed))
            status = 0
        except BaseException:  # noqa: BLE001 - it is told by the parent
            (self.folder / f"fault-{os.getpid()}").write_text(traceback.format_exc())
        os._exit(status)

    def child(self, role: str, lines: int | None, random: Random) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if lines is not None:
            die_after(lines, self.file)
        bank = self.bank(self.folder / "bank")
        _, step = self.steps[role]
        with open_store(self.where, key=KEY) as store, others(self.where) as rows:
            while True:
                is_last = (self.folder / "last").exists()
                try:
                    has_room = not is_last and len(self.open_ones(rows)) < OPEN
                    if role == "worker" and has_room:
                        type(self).makes(store, random)
                    done = step(store, bank, random)
                except (StaleError, ResumeError):
                    self.tell("stale")
                except StoreError as error:
                    if "locked" not in str(error):
                        raise
                    self.tell("locked")
                else:
                    if done:
                        continue
                    if is_last and not self.open_ones(rows):
                        return
                    time.sleep(0.01)

    def open_ones(self, rows: Others) -> list[str]:
        return [id for (id,) in rows.all("SELECT id FROM lutum_conversation WHERE round <> ''")]

    def tell(self, what: str) -> None:
        with (self.folder / what).open("a") as told:
            told.write(".")

    def reap(self) -> None:
        while self.alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            role = self.alive.pop(pid)
            self.paused.pop(pid, None)
            if os.WIFSIGNALED(status):
                self.told[f"killed {role}s"] += 1
                self.told["kills"] += 1
                with others(self.where) as rows:  # closed again, since the next process is forked
                    query = "SELECT state, COUNT(*) FROM lutum_call GROUP BY state"
                    for state, count in rows.all(query):
                        self.told[f"{state} at a kill"] += count

    def send(self, pid: int, number: signal.Signals) -> None:
        """Signal a process that was not waited for yet, so that the number is still its own."""
        os.kill(pid, number)

    def disturb(self, kills: int) -> None:
        """Keep three workers and two approvers going until that many were killed.

        And until calls were paid, and were in each state at kills: how many of them come while a
        tool runs is chance, since it runs for a short part of the time.
        """
        bank = self.bank(self.folder / "bank")
        while (
            self.told["kills"] < kills
            or len(bank.rows("payments")) < kills // 3
            or any(self.told[f"{state} at a kill"] < kills // 10 for state in self.reached)
        ):
            self.reap()
            roles = Counter(self.alive.values())
            for role, (wanted, _) in self.steps.items():
                for _ in range(wanted - roles[role]):
                    by_itself = self.random.random() < 0.7
                    self.fork(role, self.random.randint(1, self.lines) if by_itself else None)
            clock = time.monotonic()
            for pid, until in list(self.paused.items()):
                if until < clock:
                    del self.paused[pid]
                    self.send(pid, signal.SIGCONT)
            if self.random.random() < self.often:
                self.send(self.random.choice(list(self.alive)), signal.SIGKILL)
            if self.random.random() < 0.15 and len(self.paused) < 2:
                pid = self.random.choice(list(self.alive))
                self.paused[pid] = clock + self.random.uniform(0.5, 3) * LEASE
                self.send(pid, signal.SIGSTOP)
                self.told["pauses"] += 1
            time.sleep(0.03)

    def settle(self, seconds: float = 240) -> None:
        """Let everything come to its end, with nobody killed any more."""
        (self.folder / "last").touch()
        for pid in self.alive:
            self.send(pid, signal.SIGKILL)
        while self.alive:
            self.reap()
            time.sleep(0.01)
        for role in self.steps:
            self.fork(role, None)
        end = time.monotonic() + seconds
        while self.alive and time.monotonic() < end:
            self.reap()
            time.sleep(0.01)
        for pid in self.alive:
            self.told["stuck"] += 1
            self.send(pid, signal.SIGKILL)

    def verdict(self) -> list[str]:
        """Say what is wrong."""
        wrong = [path.read_text() for path in self.folder.glob("fault-*")]
        bank = self.bank(self.folder / "bank")
        payments: dict[str, list[int]] = {}
        for _, call, cents in bank.rows("payments"):
            payments.setdefault(call, []).append(cents)
        approved = {tuple(row) for row in bank.rows("approvals")}
        known: set[str] = set()
        with open_store(self.where, key=KEY) as store:
            for id in store.ids():
                stored = store.load(id)
                self.told["conversations"] += 1
                if stored.note == "open":
                    wrong.append(f"{id} is open")
                    continue
                note = json.loads(stored.note)
                wrong += self.faults(id, note, payments, approved)
                known |= {f"{id}/{each}" for each in self.ids_in(note)}
        wrong += [f"{call} was paid and is unknown" for call in payments.keys() - known]
        for name in ("stale", "locked"):
            path = self.folder / name
            self.told[name] = path.stat().st_size if path.exists() else 0
        return wrong

    def ids_in(self, note: Any) -> Iterable[str]:
        """Give the ids of the calls of a conversation that has ended."""
        return (result["id"] for result in note["results"])

    def faults(
        self,
        id: str,
        note: Any,
        payments: Mapping[str, list[int]],
        approved: set[tuple[Any, ...]],
    ) -> Iterator[str]:
        """Say what is wrong with a conversation that has ended."""
        self.told["edited"] += len(note["edited"])
        for text in map(json.dumps, note["results"]):
            result = ToolResult.load_json(text)
            call = f"{id}/{result.id}"
            cents = json.loads(result.arguments).get("cents")
            cents = note["edited"].get(result.id, cents)
            yield from self.faults_of(call, result, cents, payments.get(call, []), approved)

    def faults_of(
        self,
        call: str,
        result: ToolResult,
        cents: int,
        paid: list[int],
        approved: set[tuple[Any, ...]],
    ) -> list[str]:
        self.told[f"{result.name} {result.status}"] += 1
        self.told["payments"] += len(paid)
        if result.name == "look":
            return [] if not paid else [f"{call} is not a payment"]
        least, most = {"success": (1, 1), "indeterminate": (0, 1), "cancelled": (0, 0)}.get(
            result.status, (0, 0)
        )
        wrong = []
        if not least <= len(paid) <= most:
            wrong.append(f"{call} {result.name} is {result.status}, and was paid {len(paid)} times")
        if paid and set(paid) != {cents}:
            wrong.append(f"{call} was to be of {cents}, and was of {paid}")
        if paid and (call, cents) not in approved:
            wrong.append(f"{call} was paid and never approved")
        if result.status not in ("success", "indeterminate", "cancelled"):
            wrong.append(f"{call} is {result.status}: {result.model_text}")
        return wrong


def die_after(lines: int, file: str) -> None:
    """Kill this process after so many lines of the store, and of a file that uses it."""
    left = lines
    package = str(Path(sys.modules["lutum_py.store"].__file__ or "").parent)

    def local(frame: Any, event: str, _argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return local

    def trace(frame: Any, _event: str, _argument: object) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        return local if name == file or name.startswith(package) else None

    sys.settrace(trace)


def bring_driver(where: str) -> None:
    """Import what a store goes by: each process that imports it itself is killed meanwhile."""
    if where.startswith("postgres"):
        importlib.import_module("psycopg")


def main(where: str, folder: str, kills: str, seed: str, *, of: type[Run] = Run) -> NoReturn:
    bring_driver(where)
    open_store(where, key=KEY).close()  # it makes the tables
    run = of(where, Path(folder), Random(seed))
    started = time.monotonic()
    try:
        run.disturb(int(kills))
        run.settle()
        wrong = run.verdict()
    finally:
        for pid in run.alive:
            run.send(pid, signal.SIGKILL)
    run.told["seconds"] = round(time.monotonic() - started)
    print(json.dumps({"told": run.told, "wrong": wrong}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
