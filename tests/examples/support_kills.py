"""Kill a support desk at a line, start it again, and look at what it has done.

Each run is a process that traces the lines of the desk and of its shop; they know nothing of it. It
is forked from one that has run nothing, where `NEEDS` is imported already. The desks of other
libraries, in docs/comparison, are killed in the same way.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import runpy
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from itertools import count
from multiprocessing.context import ForkContext, ForkServerContext
from pathlib import Path
from types import FrameType
from typing import Any

DESK = Path(__file__).resolve().parents[2] / "examples" / "desk"
CODE_DESK = DESK.parent / "code_desk" / "support.py"
STEPS = ((), ("decide",), ())
"""What is done one after the other: go on, decide, go on."""
NEEDS = ("lutum_py.code", "lutum_py.flow", "lutum_py.store", "lutum_py.testing")
NEVER = 0
ATTEMPTS = 100

FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload([*NEEDS])


def run(
    folder: Path,
    arguments: tuple[str, ...],
    kill_at: int = NEVER,
    program: Path = DESK / "support.py",
    each_once: bool = False,
    forks: ForkServerContext | ForkContext = FRESH,
) -> tuple[str, int]:
    """Run a desk in a process of its own, and give what it printed and how many lines it ran.

    `each_once` counts a line only the first time, and only in a function; `forks` makes processes.

    Killed, it has printed nothing.
    """
    out = folder / "printed"
    out.write_text("")
    given = (folder, arguments, kill_at, program, each_once, out)
    child = forks.Process(target=_run_here, args=given)
    child.start()
    child.join()
    if child.exitcode == -signal.SIGKILL:
        return "", kill_at
    lines, _, printed = out.read_text().partition("\n")
    assert child.exitcode == 0, printed
    return printed, int(lines)


def _run_here(
    folder: Path,
    arguments: tuple[str, ...],
    kill_at: int,
    program: Path,
    each_once: bool,
    out: Path,
) -> None:
    lines = count(1)
    before: set[tuple[str, int]] = set()
    last, own = 0, (str(program), str(DESK))

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal last
        if not frame.f_code.co_filename.startswith(own):
            return None
        here = (frame.f_code.co_filename, frame.f_lineno)
        counts = not each_once or (frame.f_code.co_name != "<module>" and here not in before)
        if event == "line" and counts:
            before.add(here)
            last = next(lines)
            if last == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    said, code = io.StringIO(), 0
    sys.argv = [program.name, str(folder), *arguments]
    sys.path[:0] = [str(program.parent), str(DESK)]
    sys.stdin = io.StringIO("y\n")
    try:
        with redirect_stdout(said), redirect_stderr(io.StringIO()):
            threading.settrace(trace)
            sys.settrace(trace)
            runpy.run_path(str(program), run_name="__main__")
    except BaseException:  # noqa: BLE001 - the process ends here
        code = 1
        said.write(traceback.format_exc())
    finally:
        sys.settrace(None)
        out.write_text(f"{last}\n{said.getvalue()}")
        os._exit(code)


def lines_of_steps(folder: Path, program: Path = DESK / "support.py") -> list[int]:
    """Count the lines of each step where nothing is killed."""
    return [run(folder, step, program=program)[1] for step in STEPS]


def points(lines: list[int]) -> Iterator[tuple[int, int]]:
    """Give each line of each step."""
    for step, many in enumerate(lines):
        yield from ((step, line) for line in range(1, many + 1))


def killed_and_well(
    folder: Path, step: int, line: int, program: Path = DESK / "support.py"
) -> None:
    """Kill one step at a line, start anew until the end, and check what was done."""
    for arguments in STEPS[:step]:
        run(folder, arguments, program=program)
    run(folder, STEPS[step], line, program)
    where = f"killed in step {step} at line {line}"
    for attempt in count(1):  # what the killed process held is free when its lease is over
        run(folder, ("decide",), program=program)
        printed, _ = run(folder, (), program=program)
        if "resolved=True summary='Both orders were refunded.'" in printed:
            break
        assert attempt < ATTEMPTS, where
    assert "input_tokens=800" in printed, where
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        refunds = shop.execute("SELECT number, cents FROM refunds ORDER BY number").fetchall()
        mails = shop.execute("SELECT receiver FROM mails").fetchall()
    assert refunds == [("A1", 9900), ("A2", 1500)], where
    assert mails == [("ann@example.org",)] * 2, where
