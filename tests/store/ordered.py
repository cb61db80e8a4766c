"""Two workers that go through rounds in order, while one of them is killed at some line.

`python -m tests.store.ordered WHERE FOLDER KILLS SEED` saves a round of edits and looks of a few
files, lets two processes claim its calls, kills one of them at a random line of the store or of its
own, lets its leases run out, and holds what was done against the order of the turn; again and
again, until so many were killed. It prints what it counted, and what is wrong, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final, NoReturn

from lutum_py import NeedsTools, Toolset, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel
from tests.store.beside import others
from tests.store.kills import die_after

KEY: Final = b"a key of the ordered driver"
LEASE: Final = 300.0
"""Nothing is slow enough to lose one by itself."""


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("write_file", "path")]))
def edit(path: str) -> str:
    """Edit a file."""
    return "edited"


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("read_file", "path")]))
def look(path: str) -> str:
    """Look into a file or folder."""
    return "seen"


class Files(Toolset):
    edit = tool(edit)
    look = tool(look)


class Log:
    """What was done when, in a database of its own."""

    def __init__(self, folder: Path) -> None:
        self._rows = sqlite3.connect(folder / "log.db", isolation_level=None, timeout=60)
        self._rows.executescript(
            "PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS done "
            "(at INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, call TEXT)"
        )

    def write(self, id: str, call: str) -> None:
        self._rows.execute("INSERT INTO done (id, call) VALUES (?, ?)", (id, call))

    def of(self, id: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, call in self._rows.execute("SELECT at, call FROM done WHERE id = ?", (id,)):
            found.setdefault(call, []).append(at)
        return found


def asked(random: Random) -> list[tuple[str, str, dict[str, str]]]:
    return [
        (f"c{at}", random.choice(("edit", "edit", "look")), {"path": random.choice("aabbc.")})
        for at in range(random.randint(3, 6))
    ]


def work(store: Store, log: Log, id: str, random: Random) -> None:
    """Do what is to be done of a conversation, until all of it is."""
    while id not in store.settled():
        claim = store.claim(Files, id=id, lease=LEASE)
        if claim is None:
            time.sleep(0.001)
        elif claim.in_doubt:
            store.finish(claim, claim.call.indeterminate("a worker was killed"))
        else:
            call = store.start(claim)
            log.write(id, call.id)
            time.sleep(random.random() * 0.002)
            log.write(id, call.id)
            store.finish(claim, call.complete("done"))


def forked(where: str, folder: Path, id: str, seed: int, lines: int | None) -> int:
    """Start a worker; it kills itself after so many lines of the store's and of its own."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        with open_store(where, key=KEY, owner="other" if lines is None else "killed") as store:
            log = Log(folder)
            if lines is not None:
                die_after(lines, __file__)
            work(store, log, id, Random(seed))
        status = 0
    except BaseException:  # noqa: BLE001 - it is told by the parent
        (folder / f"fault-{os.getpid()}").write_text(traceback.format_exc())
    os._exit(status)


def let_leases_run_out(where: str) -> None:
    """Let what the killed worker had be claimed again, as when its time is over."""
    with others(where) as rows:
        rows.run("UPDATE lutum_call SET due = 1 WHERE owner = 'killed' AND due IS NOT NULL")


def one_round(where: str, folder: Path, id: str, random: Random, told: Counter[str]) -> list[str]:
    """Go through one round; say what is wrong with it."""
    calls = asked(random)
    read = Files.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(read, NeedsTools)
    plan = read.round.plan()
    touches = {call.id: call.accesses for call in plan.pending}
    with open_store(where, key=KEY) as store:
        store.save(id, plan, in_order=True)
    seeds = random.getrandbits(32), random.getrandbits(32)
    other = forked(where, folder, id, seeds[0], None)
    killed = forked(where, folder, id, seeds[1], random.randint(1, 1_500))
    _, status = os.waitpid(killed, 0)
    if os.WIFSIGNALED(status):
        told["kills"] += 1
        let_leases_run_out(where)
    _, status = os.waitpid(other, 0)
    wrong = [path.read_text() for path in folder.glob("fault-*")]
    done = Log(folder).of(id)
    with open_store(where, key=KEY) as store:
        stored = store.load(id, Files)
        assert stored.plan is not None
        for result in stored.plan.resolve().results:
            told[result.status] += 1
            if len(done.get(result.id, [])) > 2:
                wrong.append(f"{id} {result.id} was done twice")
        store.save(id, None, version=stored.version)
    for (one, *_), (two, *_) in combinations(calls, 2):
        if any(a.conflicts_with(b) for a in touches[one] for b in touches[two]):
            told["pairs that meet"] += 1
            if max(done.get(one, [0])) > min(done.get(two, [sys.maxsize])):
                wrong.append(f"{id}: {two} began before {one} had ended: {calls} {done}")
        elif one in done and two in done and max(done[one]) > min(done[two]):
            told["pairs at once or out of order"] += 1
    return wrong


def main(where: str, folder: str, kills: str, seed: str) -> NoReturn:
    random, told, wrong = Random(seed), Counter[str](), list[str]()
    started = time.monotonic()
    with open_store(where, key=KEY):
        pass
    Log(Path(folder))
    while told["kills"] < int(kills) and not wrong:
        told["rounds"] += 1
        wrong += one_round(where, Path(folder), f"r{told['rounds']}", random, told)
    told["seconds"] = round(time.monotonic() - started)
    print(json.dumps({"told": told, "wrong": wrong}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main(*sys.argv[1:])
