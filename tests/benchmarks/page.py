"""Write the figures of a run into docs: `python -m tests.benchmarks.page RESULTS`.

The results come from `nox -s bench -- --peers`, those of `--load` from `tests.benchmarks.load`, and
those of `--beside` from `tests.benchmarks` under other Pythons. Only what stands between markers of
the page is replaced, the plot, and the data files, which have every row.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from .peers.table import NOTHING, ROWS, ratio_text
from .plot import plot

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
PAGE: Final = DOCS / "performance.md"
PLOT: Final = DOCS / "images" / "performance.svg"
DATA: Final = DOCS / "data"
WIRES: Final = ("chat", "Anthropic", "Responses", "Gemini")
"""What the rows are called that are measured once for each dialect: `decode 64 calls, chat`."""


def main() -> int:
    """Write the tables and the plot."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.page")
    parser.add_argument("results", type=Path, help="results.json of a run")
    parser.add_argument("--load", type=Path, help="what the load came to")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="other Pythons")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    page = PAGE.read_text(encoding="utf-8")
    page = replaced(page, "versions", versions(results["peers"]))
    page = replaced(page, "own", own_table(results["own"]))
    page = replaced(page, "peers", peers_table(results["peers"]))
    if options.load:
        page = replaced(page, "load", load_table(json.loads(options.load.read_text())))
    if options.beside:
        others = [json.loads(path.read_text()) for path in options.beside]
        pythons = [results["own"], *others]
        page = replaced(page, "pythons", pythons_table(pythons))
        write_csv("performance-pythons.csv", pythons_rows(pythons))
    PAGE.write_text(page, encoding="utf-8")
    write_csv("performance.csv", own_rows(results["own"]))
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(plot(results["peers"]), encoding="utf-8")
    return 0


def replaced(page: str, name: str, text: str) -> str:
    """Put a text between two markers.

    Raises:
        ValueError: The page has no such markers.
    """
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    page, count = pattern.subn(lambda _: f"{start}\n{text}\n{end}", page)
    if count != 1:
        raise ValueError(f"{PAGE.name} has the markers of {name!r} {count} times, not once.")
    return page


def versions(peers: list[dict[str, Any]]) -> str:
    """Name what was measured, and with what beside it."""
    names = ", ".join(f"{peer['name']} {peer['versions'][peer['name']]}" for peer in peers)
    pythons = _same(peer["versions"]["python"] for peer in peers)
    pydantics = _same(peer["versions"]["pydantic"] for peer in peers)
    known = {"python", "pydantic", *(peer["name"] for peer in peers)}
    every = sorted({name for peer in peers for name in peer["versions"]} - known)
    beside = ", ".join(
        f"{name} {_same(one['versions'][name] for one in peers if name in one['versions'])}"
        for name in every
    )
    return (
        f"Measured with Python {pythons} and pydantic {pydantics}: {names}; beside them {beside}."
    )


def own_table(figures: dict[str, Any]) -> str:
    """Put the library beside its floor and its goals; rows of the dialects share one line."""
    measured = _rows(figures)
    lines = [
        "| part | floor | lutum_py | ratio | at most |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {_time(row['floor'])} | {_time(row['ours'])} "
        f"| {row['ratio']:.2f} | {row['goal']:g} |"
        for name, row in measured.items()
        if _wire(name) is None
    ]
    for key, name, goal, form in (
        ("growth", "loop, T(10,000)/T(1,000)", 11, ".1f"),
        ("modules", "modules added by the import", 140, "d"),
        ("megabytes", "MB of memory added by the import", 2, ".1f"),
    ):
        if key in figures:
            lines.append(f"| {name} | | | {figures[key]:{form}} | {goal} |")
    above = sum(row["ratio"] > row["goal"] for row in measured.values())
    count = f"{above} of {len(measured)} ratios are above their goal."
    return "\n".join([*lines, "", *_wires_table(measured), count])


def _rows(figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give what was timed, without the counts beside it."""
    return {name: row for name, row in figures.items() if isinstance(row, dict)}


def _wires_table(measured: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Put the ratios of what is measured once for each dialect side by side."""
    parts = dict.fromkeys(name.rpartition(", ")[0] for name in measured if _wire(name))
    if parts:
        yield "| ratio | " + " | ".join(WIRES) + " | at most |"
        yield "| --- |" + " ---: |" * (len(WIRES) + 1)
        for part in parts:
            rows = [measured[f"{part}, {wire}"] for wire in WIRES]
            ratios = " | ".join(f"{row['ratio']:.2f}" for row in rows)
            yield f"| {part} | {ratios} | {rows[0]['goal']:g} |"
        yield ""


def _wire(name: str) -> str | None:
    """Give the dialect that a row is about, if it is one of several."""
    last = name.rpartition(", ")[2]
    return last if last in WIRES else None


def own_rows(figures: dict[str, Any]) -> Iterator[list[object]]:
    """Give every row, times in seconds."""
    yield ["part", "floor", "lutum_py", "ratio", "goal"]
    for name, row in _rows(figures).items():
        times = (f"{row[key]:.4g}" for key in ("floor", "ours"))
        yield [name, *times, f"{row['ratio']:.2f}", f"{row['goal']:g}"]


def load_table(figures: dict[str, Any]) -> str:
    """Show what a streamed turn takes, without the library and with it."""
    count = figures["conversations"]
    lines = [
        f"| a turn, {count} conversations at once | without | with lutum_py | share |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {_time(row['alone'])} | {_time(row['together'])} | {row['share']:.0%} |"
        for name, row in figures["rows"].items()
    ]
    held = figures["memory"]
    lines += [
        "",
        f"Memory, with 1,000 conversations of ten such turns: {held['conversation']:.0f} bytes a",
        f"conversation, and {held['turn']:,.0f} bytes a turn, whose JSON in a saved transcript has",
        f"{held['json']:,.0f}.",
    ]
    return "\n".join(lines)


def pythons_rows(figures: list[dict[str, Any]]) -> Iterator[list[object]]:
    """Put the ratios under several Pythons side by side."""
    yield ["part", *(one["python"] for one in figures)]
    for name in _rows(figures[0]):
        yield [name, *(f"{one[name]['ratio']:.2f}" for one in figures)]


def pythons_table(figures: list[dict[str, Any]]) -> str:
    """Show the median ratio under each of several Pythons."""
    names = list(_rows(figures[0]))
    medians = (statistics.median(one[name]["ratio"] for name in names) for one in figures)
    return "\n".join(
        [
            "| Python | " + " | ".join(one["python"] for one in figures) + " |",
            "| --- |" + " ---: |" * len(figures),
            f"| median of {len(names)} ratios | {' | '.join(f'{one:.2f}' for one in medians)} |",
        ]
    )


def write_csv(name: str, rows: Iterable[list[object]]) -> None:
    """Write a data file of the page."""
    DATA.mkdir(exist_ok=True)
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def peers_table(peers: list[dict[str, Any]]) -> str:
    """Put the libraries side by side, each as a multiple of the floor."""
    lines = [
        "| times the floor | " + " | ".join(peer["name"] for peer in peers) + " |",
        "| --- |" + " ---: |" * len(peers),
    ]
    for key, label in ROWS.items():
        rows = [peer["rows"].get(key) for peer in peers]
        cells = [ratio_text(row["ratio"]) if row else NOTHING for row in rows]
        ratios = [row["ratio"] if row else math.inf for row in rows]
        least = ratios.index(min(ratios))
        cells[least] = f"**{cells[least]}**"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    growth = " | ".join(f"{peer['growth']:.1f}" for peer in peers)
    modules = " | ".join(f"{peer['modules']:,}" for peer in peers)
    lines.append(f"| T(400)/T(100) of the loop | {growth} |")
    lines.append(f"| modules added by the import | {modules} |")
    return "\n".join([*lines, *_ahead(peers)])


def _same(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def _ahead(peers: list[dict[str, Any]]) -> Iterator[str]:
    """Name the libraries that take less than ours, the first, and where."""
    ours, *others = peers
    for peer in others:
        less = [
            label
            for key, label in ROWS.items()
            if key in ours["rows"] and key in peer["rows"]
            if peer["rows"][key]["ratio"] < ours["rows"][key]["ratio"]
        ]
        if less:
            yield f"\n{peer['name']} is ahead of {ours['name']} in: {'; '.join(less)}."


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
