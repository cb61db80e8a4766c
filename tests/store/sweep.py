"""One worker that is killed at one line after the other, from making a conversation to its end.

`python -m tests.store.sweep WHERE FOLDER FIRST STEP` kills it at line FIRST, FIRST + STEP and so
on, until it comes through; after each kill it looks at what the store says, and goes on from there.
It prints how often it found what, and what is wrong, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

from lutum_py.errors import StoreError
from lutum_py.store import Store, open_store
from tests.store.desk import KEY, PAY, Desk, plan_of, states
from tests.store.kills import die_after


def whole_way(where: str, id: str, log: Path) -> None:
    """Make a conversation, approve its payment, pay, and end it."""
    with open_store(where, key=KEY) as store:
        store.save(id, plan_of(PAY), note="open")
        go_on(store, id, log)


def go_on(store: Store, id: str, log: Path) -> None:
    """Take a conversation to its end from wherever it is."""
    for waiting in store.waiting(id):
        store.decide(id, waiting.approve(), Desk)
    while store.load(id).note == "open" and id not in store.settled():
        claim = store.claim(Desk, id=id, lease=0.001)
        if claim is None:
            continue
        if claim.in_doubt:
            store.finish(claim, claim.call.indeterminate("killed"))
        else:
            call = store.start(claim)
            log.write_text(log.read_text() + "x" if log.exists() else "x")
            store.finish(claim, call.complete("paid"))
    stored = store.load(id, Desk)
    if stored.plan is not None:
        (result,) = stored.plan.resolve().results
        store.save(id, None, note=result.status, version=stored.version)


def found(store: Store, id: str) -> str:
    """Say how far a conversation is."""
    try:
        stored = store.load(id)
    except StoreError:
        return "missing"
    return states(store, id)["c1"] if stored.note == "open" else "over"


# How often a call may have been paid, by what the store says of it after a kill.
PAID = {
    "missing": (0,),
    "suspended": (0,),
    "pending": (0,),
    "in doubt": (0, 1),
    "success": (1,),
    "over": (1,),
}


def main(where: str, folder: str, first: str, step: str) -> None:
    told: Counter[str] = Counter()
    wrong: list[str] = []
    for line in range(int(first), 10**6, int(step)):
        id, log = f"killed at {line}", Path(folder, f"log-{line}")
        pid = os.fork()
        if pid == 0:
            die_after(line, __file__)
            whole_way(where, id, log)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            break
        with open_store(where, key=KEY) as store:
            state = found(store, id)
            told[state] += 1
            paid = len(log.read_text()) if log.exists() else 0
            if paid not in PAID[state]:
                wrong.append(f"line {line}: the call is {state}, and was paid {paid} times")
            if state == "missing":
                continue
            go_on(store, id, log)
            end = store.load(id).note
            paid = len(log.read_text()) if log.exists() else 0
            if paid not in {"success": (1,), "indeterminate": (0, 1)}[end]:
                wrong.append(f"line {line}: in the end it is {end}, and was paid {paid} times")
            if (end == "indeterminate") != (state == "in doubt"):
                wrong.append(f"line {line}: it was {state}, and in the end it is {end}")
    print(json.dumps({"told": told, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
