"""Run the suites and write the page: `python -m tests.conformance docs/third-party-suites.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import lutum_py

from .verdict import NotHad, Table, Verdict

SUITES: Final = ("json_schema", "mcp_conformance", "bfcl", "agentdojo", "semantic_conventions")
HEAD: Final = """\
# Third-party test suites

Suites that others wrote, run against this library by `nox -s conformance`, which also writes this
page. Their cases are fetched for each run and are no part of the repository; what cannot be fetched
is skipped. Every case that goes otherwise than its suite has it is listed, with the reason.
"""


def table(rows: Table) -> Iterator[str]:
    """Write a table."""
    for at, row in enumerate(rows):
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"
        if not at:
            yield "|" + "---|" * len(row)


def listed(case: str) -> str:
    """Write a case so that nothing in it is markup."""
    return "- `" + " ".join(case.replace("`", "'").split()) + "`"


def section(verdict: Verdict) -> Iterator[str]:
    """Write what one suite came to."""
    yield f"## {verdict.title}\n"
    yield "Run with " + ", ".join(f"{name} {one}" for name, one in verdict.versions.items()) + ".\n"
    yield verdict.about.strip() + "\n"
    for rows in verdict.tables:
        yield "\n".join(table(rows)) + "\n"
    groups = [group for group in verdict.groups if group.cases]
    if not groups:
        yield "Every case goes as the suite has it.\n"
    for group in groups:
        reason = group.reason or "Not explained."
        yield f"**{reason}** ({len(group.cases):,})\n"
        yield "\n".join(map(listed, group.cases)) + "\n"


def main(arguments: list[str]) -> int:
    """Run the suites, and write the page; say by the exit code whether any case is unexplained."""
    (page,) = map(Path, arguments)
    day = datetime.now(UTC).date().isoformat()
    parts = [HEAD, f"Written on {day}, of lutum_py {lutum_py.__version__}.\n"]
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
        print(f"{name}: {sum(len(group.cases) for group in verdict.groups)} cases go otherwise")
    page.write_text("\n".join(parts), encoding="utf-8")
    print(*unexplained, sep="\n")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
