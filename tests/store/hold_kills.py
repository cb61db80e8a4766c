"""Loops that hold their conversations, killed at random or at one line after the other.

`python -m tests.store.hold_kills WHERE FOLDER KILLS SEED` keeps three processes at the loops of a
few conversations and one that approves, kills them `KILLS` times (from outside at any moment, or by
themselves at any line), lets what is left come to its end, and checks what the bank and the store
say. `… WHERE FOLDER sweep FIRST STEP` kills one loop at line FIRST, FIRST + STEP and so on, of the
loop and of the store, until it comes through. Both print what they counted, and what is wrong.

The bank pays again for each request without a key. Each save counts in the note, so that two who
save at once are found.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    NeedsTools,
    Session,
    ToolContext,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HeldError, ResumeError, StaleError, StoreError
from lutum_py.store import Held, Store, open_store
from lutum_py.testing import ScriptedModel
from tests.store.kills import Bank, bring_driver, die_after

KEY: Final = b"a key of the driver of holds"
LEASE: Final = 0.3
CONVERSATIONS: Final = 3


class Here:
    """Where the bank of this run is, what its processes tell each other, and what this one does.

    Attributes:
        id: The conversation whose calls run.
    """

    folder: Path
    id: str


def _pays(key: str | None, ctx: ToolContext, cents: int) -> str:
    return Bank(Here.folder / "bank").pay(key, f"{Here.id}/{ctx.idempotency_key}", cents)


@tool_fn
def pay(cents: int, ctx: ToolContext) -> str:
    """Pay by a bank that knows no keys."""
    return _pays(None, ctx, cents)


@tool_fn(idempotent=True)
def pay_by_key(cents: int, ctx: ToolContext) -> str:
    """Pay by a bank that pays once for each key."""
    return _pays(ctx.idempotency_key, ctx, cents)


class Desk(Toolset):
    pay = tool(pay, needs_approval=True)
    pay_by_key = tool(pay_by_key)


TURNS: Final = [
    ScriptedModel.tool_calls(("c1", "pay", {"cents": 5}), ("c2", "pay_by_key", {"cents": 7})),
    ScriptedModel.tool_calls(("d1", "pay_by_key", {"cents": 9})),
    ScriptedModel.text("Paid."),
]


def paid_already(call: AnyToolCall) -> ToolResult | None:
    """Ask the bank what became of a payment: known for some calls only."""
    of = f"{Here.id}/{call.idempotency_key}"
    if any(each[1] == of for each in Bank(Here.folder / "bank").rows("payments")):
        return call.complete("paid, as the bank says")
    return None


async def go_on(store: Store, id: str, lease: float, wait: float | None = None) -> bool:
    async with store.hold(id, Desk, lease=lease, wait=wait) as desk:
        Here.id = id
        return await loop(desk)


def counted(desk: Held[Desk]) -> None:
    """Count what is saved in the note: whoever saves beside somebody else, counts the same."""
    desk.note = str(int(desk.note or 0) + 1)


def tell(desk: Held[Desk]) -> None:
    with (Here.folder / f"saved-{desk.id}").open("a") as notes:
        notes.write(f"{desk.note}\n")


async def loop(desk: Held[Desk]) -> bool:
    if not desk.session.transcript:
        desk.session.push_user("Pay.")
    while not await desk.run(in_doubt=paid_already):
        counted(desk)
        desk.commit()
        tell(desk)
        if desk.session.finished() is not None:
            return True
        outcome = (
            await desk.session.text_turn(ScriptedModel(TURNS, by_turn=True)).tools(Desk).collect()
        )
        if isinstance(outcome, NeedsTools):
            counted(desk)
            desk.save(outcome.round.plan())
            tell(desk)
    return False


def approve(store: Store) -> None:
    for waiting in store.waiting():
        Bank(Here.folder / "bank").approve(waiting.id, waiting.arguments["cents"])
        store.decide(waiting.id, waiting.approve(), Desk)


def ids() -> list[str]:
    return [f"k{at}" for at in range(int((Here.folder / "most").read_text()))]


def begin_up_to(many: int) -> None:
    """Say how many conversations there are, at once: who reads meanwhile finds one or the other."""
    (Here.folder / "more").write_text(str(many))
    (Here.folder / "more").replace(Here.folder / "most")


def work(where: str, role: str, random: Random) -> None:
    """Go on with one conversation after the other, until all are finished and it is said to end."""
    with open_store(where, key=KEY) as store:
        while True:
            is_last = (Here.folder / "last").exists()
            done = 0
            try:
                if role == "approver":
                    approve(store)
                    done = len(ids()) if is_last and all_done(store) else 0
                else:
                    known = ids()  # more may come meanwhile
                    for id in random.sample(known, len(known)):
                        done += asyncio.run(go_on(store, id, LEASE, LEASE / 2))
            except (HeldError, StaleError, ResumeError) as error:
                with (Here.folder / type(error).__name__).open("a") as told:
                    told.write(".")
            except StoreError as error:
                if "locked" not in str(error):
                    raise
            if is_last and done == len(ids()):
                return


def all_done(store: Store) -> bool:
    return {*ids()} <= {*store.ids()} and all(
        store.load(id).session.finished() is not None for id in ids()
    )


def fork(where: str, role: str, lines: int | None, random: Random) -> int:
    seed = random.getrandbits(32)
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        if lines is not None:
            die_after(lines, __file__)
        work(where, role, Random(seed))
        status = 0
    except BaseException:  # noqa: BLE001 - it is told by the parent
        (Here.folder / f"fault-{os.getpid()}").write_text(traceback.format_exc())
    os._exit(status)


def disturb(where: str, kills: int, random: Random) -> Counter[str]:
    """Keep three loops and an approver going, until that many were killed; then let them end."""
    told: Counter[str] = Counter()
    alive_ones: dict[int, str] = {}
    started = time.monotonic()
    more = CONVERSATIONS
    begin_up_to(more)
    while told["kills"] < kills:
        for role, wanted in (("loop", 3), ("approver", 1)):
            for _ in range(wanted - list(alive_ones.values()).count(role)):
                lines = random.randint(1, 6_000) if random.random() < 0.7 else None
                alive_ones[fork(where, role, lines, random)] = role
        if random.random() < 0.3:
            os.kill(random.choice(list(alive_ones)), signal.SIGKILL)
        time.sleep(0.03)
        for pid in list(alive_ones):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del alive_ones[pid]
                told["kills"] += 1
        if told["kills"] // 8 > more - CONVERSATIONS:
            more += 1
            begin_up_to(more)
    for pid in alive_ones:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    (Here.folder / "last").touch()
    last = [fork(where, role, None, random) for role in ("loop", "loop", "approver")]
    for pid in last:
        os.waitpid(pid, 0)
    told["conversations"] = more
    told["seconds"] = round(time.monotonic() - started)
    return told


def sweep(where: str, first: int, step: int) -> Counter[str]:
    """Kill one loop at one line after the other; after each kill it goes on to its end."""
    told: Counter[str] = Counter()
    for line in range(first, 10**6, step):
        begin_up_to(told["kills"] + 1)
        pid = os.fork()
        if pid == 0:
            die_after(line, __file__)
            with open_store(where, key=KEY) as store:
                while not asyncio.run(go_on(store, ids()[-1], 0.2)):
                    approve(store)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        with open_store(where, key=KEY) as store:
            while not asyncio.run(go_on(store, ids()[-1], 0.2)):
                approve(store)
        told["kills"] += 1
        if not os.WIFSIGNALED(status):
            break
    return told


def verdict(where: str, told: Counter[str]) -> list[str]:
    """Say what is wrong."""
    wrong = [path.read_text() for path in Here.folder.glob("fault-*")]
    bank = Bank(Here.folder / "bank")
    paid: dict[str, int] = Counter(call for _, call, _ in bank.rows("payments"))
    approved = {id for id, _ in bank.rows("approvals")}
    told["payments"] = sum(paid.values())
    with open_store(where, key=KEY) as store:
        for id in ids():
            session: Session = store.load(id).session
            turns = [item for item in session.transcript if isinstance(item, AssistantTurn)]
            if [turn.tool_calls for turn in turns] != [turn.tool_calls for turn in TURNS]:
                wrong.append(f"{id} has {len(turns)} turns")
            for item in session.transcript:
                if isinstance(item, ToolResult):
                    told[f"{item.name} {item.status}"] += 1
            statuses = [item.status for item in session.transcript if isinstance(item, ToolResult)]
            mine = [many for key, many in paid.items() if key.startswith(f"{id}/")]
            least = statuses.count("success")
            if not least <= len(mine) <= len(statuses) or max(mine, default=0) > 1:
                wrong.append(f"{id}: {statuses}, and was paid {mine}")
            if {*statuses} - {"success", "indeterminate", "cancelled"} or len(statuses) != 3:
                wrong.append(f"{id}: {statuses}")
            notes = (Here.folder / f"saved-{id}").read_text().split()
            if len({*notes}) < len(notes):
                wrong.append(f"{id} was saved by two at once: {notes}")
            if id not in approved:
                wrong.append(f"{id} was never approved")
    for name in ("HeldError", "StaleError"):
        path = Here.folder / name
        told[name] = path.stat().st_size if path.exists() else 0
    return wrong


def main(where: str, folder: str, *options: Any) -> None:
    bring_driver(where)
    Here.folder = Path(folder)
    if options[0] == "sweep":
        told = sweep(where, int(options[1]), int(options[2]))
    else:
        told = disturb(where, int(options[0]), Random(int(options[1])))
    wrong = verdict(where, told)
    print(json.dumps({"told": told, "wrong": wrong}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
