"""Try one desk: run it to its end, then kill it at each of its lines. See `nox -s compare`.

`python docs/comparison/measure.py DESK.py` prints one JSON object; without a desk, the table of the
objects that come in by lines.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import sqlite3
import sys
from collections import Counter
from contextlib import closing, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "desk")]

from tests.examples.support_kills import STEPS, run  # noqa: E402

DONE = "resolved=True summary='Both orders were refunded.'"
AGAIN = 12
"""So often a desk that was killed is started anew before it is given up."""


def attempt(folder: Path, arguments: tuple[str, ...], kill_at: int, program: Path) -> str:
    """Give what a step printed, or the last line of the error that ended it."""
    try:
        return run(folder, arguments, kill_at, program)[0]
    except AssertionError as ended:
        return f"ended: {str(ended).strip().splitlines()[0]}"


def to_the_end(folder: Path, program: Path) -> tuple[bool, list[str]]:
    """Decide and go on until the answer is there; tell whether it came, and what was printed."""
    printed: list[str] = []
    for _ in range(AGAIN):
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


def imports(program: Path) -> list[str]:
    """Name what a desk imports from a library that is neither Python's nor pydantic nor its own."""
    own = {"shop", "script", "pydantic"} | sys.stdlib_module_names
    found: list[str] = []
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            package = node.module.partition(".")[0]
            if package not in own and not package.startswith("model_"):
                found += [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.partition(".")[0] not in own]
    return found


def measure(program: Path) -> dict[str, Any]:
    """Run a desk well, and then with a kill at each line that each of its steps comes to."""
    with redirect_stdout(sys.stderr):  # so that a fork need not import it again
        importlib.import_module(
            f"model_{program.stem.removeprefix('desk_')}" if program.parent == HERE else "script"
        )
    with TemporaryDirectory() as name:
        ended, printed = to_the_end(Path(name), program)
        refunds, mails = shop(Path(name))
    well = {"ended": ended, "refunds": refunds, "mails": mails}
    figures: dict[str, Any] = Counter(kills=0, twice=0, mailed_twice=0, lost=0, stuck=0)
    for step in range(len(STEPS)):
        line = 0
        while True:
            line += 1
            with TemporaryDirectory() as name:
                folder = Path(name)
                for arguments in STEPS[:step]:
                    attempt(folder, arguments, 0, program)
                if attempt(folder, STEPS[step], line, program):
                    break  # it came to its end: the step has fewer lines
                figures["kills"] += 1
                ended, _ = to_the_end(folder, program)
                if not (folder / "shop.db").exists():
                    figures["stuck"] += 1
                    continue
                paid, sent = shop(folder)
            figures["stuck"] += not ended
            figures["twice"] += any(many > 1 for many in paid.values())
            figures["mailed_twice"] += any(many > 1 for many in sent.values())
            figures["lost"] += bool(refunds - paid)
    lines = program.read_text().splitlines()
    return {
        "desk": program.stem,
        "lines": sum(bool(line.strip()) for line in lines),
        "imported": len(imports(program)),
        **figures,
        "well": well,
        "printed": printed,
    }


def table(texts: list[str]) -> str:
    """Show what was measured, one row a desk."""
    heads = ("desk", "lines", "imported", "kills", "twice", "mailed_twice", "lost", "stuck")
    rows = [heads, *(tuple(str(json.loads(text)[head]) for head in heads) for text in texts)]
    return "\n".join("  ".join(cell.ljust(16) for cell in row) for row in rows)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(table(sys.stdin.read().splitlines()))
    else:
        desk = Path(sys.argv[1]).resolve()
        sys.path.insert(0, str(desk.parent))
        print(json.dumps(measure(desk)))
        os._exit(0)
