"""One worker that is killed at each point between two statements of each step.

`python -m tests.store.statements WHERE FOLDER` counts the points of one conversation, from its
first save to the end of its round and the closing of the store: before and after each statement,
and at both ends of each step. Then it kills a worker at each of them. What the store has afterwards
is what it had before the step, and from the `COMMIT` of the step on what it has after it; while a
`COMMIT` is on its way it is one of the two. It prints how often a worker was killed in which step,
and what the call was then, as JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from lutum_py import Session
from lutum_py.store import Store, open_store
from tests.store.beside import PIPELINE, between, watched
from tests.store.desk import KEY, PAY, Desk, plan_of
from tests.store.kills import bring_driver
from tests.store.sweep import PAID, found, go_on

AFTER: Final = {
    "open": "missing",
    "save": "suspended",
    "decide": "pending",
    "claim": "pending",
    "renew": "pending",
    "start": "in doubt",
    "finish": "success",
    "commit": "over",
    "close": "over",
}
"""What the call is after each step."""


class Point(NamedTuple):
    """A place before or after a statement.

    Attributes:
        step: The step that it is in.
        sql: The statement.
        is_done: Whether it is after it.
    """

    step: str
    sql: str
    is_done: bool


class Way:
    """The way of one conversation through the store, which is watched and perhaps killed.

    Args:
        where: The store.
        id: The conversation.
        log: The file in which payments are noted.
        kill_at: At which point the process kills itself, if at any.
    """

    def __init__(self, where: str, id: str, log: Path, kill_at: int | None) -> None:
        self.where, self.id, self.log, self.kill_at = where, id, log, kill_at
        self.points: list[Point] = []
        self.step = ""

    def __call__(self, _: Any, sql: str, is_done: bool) -> None:
        self.points.append(Point(self.step, sql, is_done))
        if len(self.points) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def go(self) -> None:
        with watched(), between(self):
            for name, step in self.steps():
                self.step = name
                self(None, "begins", is_done=False)
                step()
                self(None, "ends", is_done=True)

    def steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        stores: list[Store] = []
        yield "open", lambda: stores.append(open_store(self.where, key=KEY))
        (store,) = stores
        yield "save", lambda: store.save(self.id, plan_of(PAY), note="open", session=Session())
        (waiting,) = store.waiting(self.id)
        yield "decide", lambda: store.decide(self.id, waiting.approve(), Desk)
        claims: list[Any] = []
        yield "claim", lambda: claims.append(store.claim(Desk, id=self.id, lease=0.001))
        (claim,) = claims
        yield "renew", lambda: store.renew(claim)
        calls: list[Any] = []
        yield "start", lambda: calls.append(store.start(claim))
        (call,) = calls
        self.log.write_text("x")
        result = call.complete("paid")
        yield "finish", lambda: store.finish(claim, result)
        stored = store.load(self.id, Desk)
        assert stored.plan is not None
        stored.plan.commit(stored.session)
        known: Any = {"session": stored.session, "version": stored.version}
        yield "commit", lambda: store.save(self.id, None, note="success", **known)
        yield "close", store.close


def ends_of(points: list[Point]) -> dict[str, tuple[int, int]]:
    """Say for each step from which point it may be on record, and from which it is.

    That is the end of the last transaction in which it writes. In a pipeline, a `COMMIT` may be
    done at any time between its own end and that of the pipeline.
    """
    found: dict[str, tuple[int, int]] = {}
    writes, sent = False, 0
    is_begun = is_piped = False
    for number, (step, sql, is_done) in enumerate(points, 1):
        if sql == PIPELINE:
            is_piped = not is_done
            if is_done and sent:
                found[step], sent = (sent, number), 0
        elif sql.startswith("BEGIN"):
            is_begun, writes = True, "IMMEDIATE" in sql or "READ WRITE" in sql
        elif sql == "COMMIT" and is_done:
            is_begun = False
            if writes and is_piped:
                sent = number
            elif writes:
                found[step] = (number, number)
        elif is_done and not is_begun and re.search("INSERT|UPDATE|DELETE", sql):
            found[step] = (number, number)  # a transaction by itself
    return found


def main(where: str, folder: str) -> None:
    bring_driver(where)
    open_store(where, key=KEY).close()  # it makes the tables
    way = Way(where, "not killed", Path(folder, "log"), None)
    way.go()
    on_record = ends_of(way.points)
    steps = [*AFTER]
    told: Counter[str] = Counter(points=len(way.points))
    wrong: list[str] = []
    for number, point in enumerate(way.points, 1):
        id, log = f"killed at {number}", Path(folder, f"log-{number}")
        pid = os.fork()
        if pid == 0:
            Way(where, id, log, number).go()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            wrong.append(f"{number}: nobody was killed")
            continue
        may_be, is_there = on_record.get(point.step, (10**6, 10**6))
        due = {AFTER[point.step]}
        if number < is_there and point.step != "close":
            before = AFTER[steps[max(steps.index(point.step) - 1, 0)]]
            due = {before} if number < may_be else {before, *due}
        with open_store(where, key=KEY) as store:
            state = found(store, id)
            told[f"{point.step}: {state}"] += 1
            paid = len(log.read_text()) if log.exists() else 0
            said = f"{number} ({point}): the call is {state}, and was paid {paid} times"
            if state not in due:
                wrong.append(f"{said}; it should be {' or '.join(sorted(due))}")
            if paid not in PAID[state]:
                wrong.append(said)
            if state == "missing":
                continue
            if len(store.load(id).session.transcript) != (2 if state == "over" else 0):
                wrong.append(f"{said}; and the session is another one")
            go_on(store, id, log)
            end = store.load(id).note
            paid = len(log.read_text()) if log.exists() else 0
            if paid not in {"success": (1,), "indeterminate": (0, 1)}[end]:
                wrong.append(f"{said}; in the end it is {end}, and was paid {paid} times")
            if (end == "indeterminate") != (state == "in doubt"):
                wrong.append(f"{said}; in the end it is {end}")
    print(json.dumps({"told": told, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
