"""Run the suites and write the page: `python -m tests.conformance docs/third-party-suites.md`.

The page has the figures and the reasons. The cases go to `data/third-party-cases.csv` beside it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import lutum_py

from .verdict import NotHad, Table, Verdict

UNEXPLAINED: Final = "Not explained."
SUITES: Final = ("json_schema", "mcp_conformance", "bfcl", "agentdojo", "semantic_conventions")
CASES: Final = Path("data", "third-party-cases.csv")
HEAD: Final = f"""\
# Third-party test suites

`nox -s conformance` runs suites that others wrote against this library, and writes this page. It
fetches their cases for each run and skips what it cannot fetch. Each case that differs from its
suite is listed in [{CASES.name}]({CASES.as_posix()}), with one of the reasons below.
"""


def table(rows: Table) -> Iterator[str]:
    """Write a table."""
    for at, row in enumerate(rows):
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"
        if not at:
            yield "|" + "---|" * len(row)


def section(verdict: Verdict) -> Iterator[str]:
    """Write the figures of one suite, and why cases differ."""
    yield f"## {verdict.title}\n"
    yield "Run with " + ", ".join(f"{name} {one}" for name, one in verdict.versions.items()) + ".\n"
    yield verdict.about.strip() + "\n"
    for rows in verdict.tables:
        yield "\n".join(table(rows)) + "\n"
    groups = [group for group in verdict.groups if group.cases]
    if not groups:
        yield "Every case goes as the suite has it.\n"
        return
    reasons = [(len(group.cases), group.reason or UNEXPLAINED) for group in groups]
    yield "\n".join(table([("cases", "why they differ"), *reasons])) + "\n"


def cases(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Give every case that differs, with its suite and the reason."""
    for group in verdict.groups:
        for case in group.cases:
            yield verdict.title, group.reason or UNEXPLAINED, " ".join(case.split())


def main(arguments: list[str]) -> int:
    """Run the suites, and write the page; the exit code shows whether a case is unexplained."""
    (page,) = map(Path, arguments)
    day = datetime.now(UTC).date().isoformat()
    parts = [HEAD, f"Written on {day}, for lutum_py {lutum_py.__version__}.\n"]
    rows: list[tuple[str, str, str]] = [("suite", "reason", "case")]
    unexplained: list[str] = []
    for name in SUITES:
        try:
            verdict: Verdict = import_module(f"tests.conformance.{name}").run()
        except NotHad as missing:
            print(f"{name}: skipped, {missing}")
            parts.append(f"## {name}\n\nSkipped: {missing}.\n")
            continue
        unexplained += verdict.unexplained
        parts += section(verdict)
        rows += cases(verdict)
        print(f"{name}: {sum(len(group.cases) for group in verdict.groups)} cases differ")
    with (page.parent / CASES).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    page.write_text("\n".join(parts), encoding="utf-8")
    print(*unexplained, sep="\n")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
