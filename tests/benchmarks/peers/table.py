"""Put the figures of one run side by side: `python -m tests.benchmarks.peers.table FOLDER`.

The folder has `own.json` from `python -m tests.benchmarks`, and one file for each library that was
measured. All of it is written to `results.json` there, from which `tests.benchmarks.page` is made.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["NOTHING", "ROWS", "ratio_text"]

ROWS: Final = {
    "import": "import what declares a tool",
    "declare": "declare a tool",
    "define": "declare it, schema included",
    "tools": "500 tools and a request",
    "call": "one call",
    "call, 2 KB": "one call, 2 KB of arguments",
    "call, 200 KB": "one call, 200 KB of arguments",
    "64 at once": "64 calls at once",
    "1000 at once": "1,000 calls at once",
    "loop of 100": "a turn in a loop of 100",
    "loop of 400": "a turn in a loop of 400",
    "load": "load 1,000 turns",
    "request": "a request of 1,000 turns",
    "event, chat": "a text event, SDK of OpenAI",
    "event, Anthropic": "a text event, SDK of Anthropic",
}
"""What the rows are called, in their order."""

NOTHING: Final = "\N{EN DASH}"
"""Stands where a library has no such thing."""

OWN: Final = "lutum-py"


def ratio_text(ratio: float) -> str:
    """Write a ratio with as many digits as mean something."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def gathered(folder: Path) -> dict[str, Any]:
    """Read what was measured: this library first, the others by their costs in the loop."""
    peers = [
        json.loads(path.read_text())
        for path in sorted(folder.glob("*.json"))
        if path.stem not in {"own", "results"}
    ]
    peers.sort(key=lambda peer: (peer["name"] != OWN, peer["rows"]["loop of 400"]["ratio"]))
    return {"own": json.loads((folder / "own.json").read_text()), "peers": peers}


def show(peers: list[dict[str, Any]]) -> None:
    """Print the ratios to the floor."""

    def line(label: str, cells: list[str]) -> None:
        print(f"{label:31}" + "".join(f"{cell:>18}" for cell in cells))

    line("times the floor", [peer["name"] for peer in peers])
    line("", [peer["versions"][peer["name"]] for peer in peers])
    line("with pydantic", [peer["versions"]["pydantic"] for peer in peers])
    for row, label in ROWS.items():
        rows = [peer["rows"].get(row) for peer in peers]
        line(label, [ratio_text(each["ratio"]) if each else NOTHING for each in rows])
    line("T(400)/T(100)", [f"{peer['growth']:.1f}" for peer in peers])
    line("modules added by the import", [f"{peer['modules']:,}" for peer in peers])


def main() -> int:
    """Print the table, and write all figures to one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers.table")
    parser.add_argument("folder", type=Path, help="where the figures are")
    folder: Path = parser.parse_args().folder
    results = gathered(folder)
    show(results["peers"])
    written = folder / "results.json"
    written.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\nFor the page in docs: python -m tests.benchmarks.page {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
