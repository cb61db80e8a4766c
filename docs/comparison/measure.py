"""Try one desk: run it to its end, then kill it at each line of its functions.

`python docs/comparison/measure.py DESK.py` prints what happened; `nox -s compare` does so for all.
"""

from __future__ import annotations

import ast
import importlib
import json
import multiprocessing
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "desk")]

from tests.examples.support_kills import STEPS, run  # noqa: E402

DONE = "resolved=True summary='Both orders were refunded.'"
AGAIN, SECONDS = 4, 4.0
"""So often, and so long, a desk that was killed is started anew before it is given up."""

AT_ONCE = 6
"""So many desks are killed at once: they wait more than they work."""
FORKS = multiprocessing.get_context("fork")
"""Processes that have what was imported here."""


def attempt(folder: Path, arguments: tuple[str, ...], kill_at: int, program: Path) -> str:
    """Give what a step printed, or the last line of the error that ended it."""
    try:
        return run(folder, arguments, kill_at, program, each_once=True, forks=FORKS)[0]
    except AssertionError as ended:
        return f"ended: {str(ended).strip().splitlines()[0]}"


def to_the_end(folder: Path, program: Path) -> tuple[bool, list[str]]:
    """Decide and go on until the answer is there; tell whether it came, and what was printed."""
    printed: list[str] = []
    started, tried = time.monotonic(), 0
    while tried < AGAIN or time.monotonic() < started + SECONDS:
        tried += 1
        for arguments in ((), ("decide",)):
            printed.append(attempt(folder, arguments, 0, program))
            if DONE in printed[-1]:
                return True, printed
    return False, printed


def shop(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Count the refunds of each order, and the mails to each address."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        refunds = connection.execute("SELECT number || ' ' || cents FROM refunds").fetchall()
        mails = connection.execute("SELECT receiver || ': ' || text FROM mails").fetchall()
    return Counter(row[0] for row in refunds), Counter(row[0] for row in mails)


def imported(program: Path) -> list[tuple[str, str]]:
    """Give module and name of each import that is neither Python's nor pydantic's."""
    nodes = ast.walk(ast.parse(program.read_text()))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    known = {"pydantic", *sys.stdlib_module_names}
    return [
        (node.module, one.name)
        for node in froms
        if node.module and node.module.partition(".")[0] not in known
        for one in node.names
    ]


def killed(
    program: Path, steps: Sequence[tuple[str, ...]], refunds: Counter[str], line: int
) -> Counter[str] | None:
    """Kill the last of these steps at a line, go on, and count what came of it.

    Gives None where the step came to its end before the line. `refunds` are those of a run that
    nothing killed.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        for arguments in steps[:-1]:
            attempt(folder, arguments, 0, program)
        if attempt(folder, steps[-1], line, program):
            return None
        ended, _ = to_the_end(folder, program)
        paid, sent = shop(folder) if (folder / "shop.db").exists() else (refunds, Counter[str]())
    found = Counter(
        kills=1,
        stuck=not ended,
        twice=any(many > 1 for many in paid.values()),
        mailed_twice=any(many > 1 for many in sent.values()),
        lost=bool(refunds - paid),
    )
    where = f"step {len(steps)} line {line}"
    print(program.stem, where, *(+found - Counter(kills=1)), file=sys.stderr, flush=True)
    return found


def measure(program: Path) -> dict[str, Any]:
    """Run a desk well, and then with a kill at each line of a function that a step comes to."""
    for name, _ in imported(program):  # so that a fork need not import it again
        importlib.import_module(name)
    with TemporaryDirectory() as name:
        ended, printed = to_the_end(Path(name), program)
        refunds, mails = shop(Path(name))
    well = {"ended": ended, "refunds": refunds, "mails": mails}
    figures: dict[str, Any] = Counter(kills=0, twice=0, mailed_twice=0, lost=0, stuck=0)
    steps = [STEPS[at % 2] for at in range(len(printed))]
    with ProcessPoolExecutor(AT_ONCE, mp_context=FORKS) as pool:
        for step in range(len(steps)):
            kill = partial(killed, program, steps[: step + 1], refunds)
            for first in count(1, AT_ONCE):
                outcomes = list(pool.map(kill, range(first, first + AT_ONCE)))
                for found in filter(None, outcomes):
                    figures.update(found)
                if None in outcomes:
                    break  # the step has fewer lines
    lines = program.read_text().splitlines()
    return {
        "desk": program.stem,
        "lines": sum(bool(line.strip()) for line in lines),
        "imported": sum(name not in {"MODEL", "Shop"} for _, name in imported(program)),
        **figures,
        "well": well,
        "printed": printed,
    }


if __name__ == "__main__":
    desk = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(desk.parent))
    print(json.dumps(measure(desk), indent=2))
