"""Print the table: `python -m tests.benchmarks [--quick] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import floors, ours
from .imports import FLOOR, OURS, PACKAGE, import_ratio, measure_import
from .measure import Measured, paired, seconds

SMALL = json.dumps({"query": "hello world", "max_results": 3})
MIDDLE = json.dumps({"query": "x y " * 500, "max_results": 3})
LARGE = json.dumps({"query": "x y " * 50_000, "max_results": 3})


def rows(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure each row: its name, what came out, and the ratio that is promised."""
    few = 3 if quick else 1
    rounds = 5 if quick else 31
    times = 3 if quick else 15
    yield "import the package", Measured(*import_ratio(PACKAGE, times)), 1.15
    yield "import what declares a tool", Measured(*import_ratio(OURS, times)), 1.15
    yield "declare a tool", paired(floors.declare, ours.declare, times=20, rounds=rounds), 1.2
    floor, own = floors.many_tools, ours.many_tools
    yield "500 tools and a request", paired(floor, own, times=1, rounds=3 if quick else 9), 1.5
    for name, text, times, promise in (
        ("decode, small arguments", SMALL, 3000, 1.0),
        ("decode, 2 KB", MIDDLE, 2000, 1.03),
        ("decode, 200 KB", LARGE, 60, 1.03),
    ):
        floor, own = partial(floors.decode, text), partial(ours.decode, text)
        yield name, paired(floor, own, times=times // few, rounds=rounds), promise
    for name, text, times, promise in (
        ("one async call, small", SMALL, 2000, 1.3),
        ("one async call, 2 KB", MIDDLE, 2000, 1.05),
        ("one async call, 200 KB", LARGE, 60, 1.05),
    ):
        floor, own = partial(floors.call_async, text), partial(ours.call_async, text)
        yield name, paired(floor, own, times=times // few, rounds=rounds), promise
    floor, own = partial(floors.call_sync, SMALL), partial(ours.call_sync, SMALL)
    yield "one sync call, small", paired(floor, own, times=2000 // few, rounds=rounds), 1.3
    texts = [SMALL] * 64
    floor, own = partial(floors.round_async, texts), partial(ours.round_async, texts)
    yield "round of 64, at once", paired(floor, own, times=20, rounds=rounds), 1.15
    floor = partial(floors.round_async, texts)
    own = partial(ours.round_sync, texts)
    yield "round of 64, all sync", paired(floor, own, times=20, rounds=rounds), 1.15
    floor, own = partial(floors.loop, SMALL), partial(ours.loop, SMALL)
    yield "loop, a turn of 1,000", paired(floor, own, times=1000, rounds=rounds), 4.0


def growth() -> float:
    """Return T(10,000) / T(1,000) of the loop: 10 where a turn costs the same throughout."""
    own = partial(ours.loop, SMALL)
    short = min(seconds(own, 1000) for _ in range(9))
    long = min(seconds(own, 10_000) for _ in range(3))
    return long / short


def rendering(turns: int = 1000) -> float:
    """Return the seconds that rendering a transcript takes, once each item was rendered."""
    session = ours.conversation(SMALL, turns)
    own = partial(ours.render, session)
    own(1)
    return min(seconds(own, 1) for _ in range(7))


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, pydantic {version('pydantic')}, "
        f"lutum-py {version('lutum-py')}"
    )
    print(f"{'':27} {'floor':>12} {'ours':>12} {'ratio':>7} {'promise':>8}")
    figures: dict[str, Any] = {}
    for name, measured, promise in rows(options.quick):
        print(
            f"{name:27} {_time(measured.floor):>12} {_time(measured.ours):>12} "
            f"{measured.ratio:7.2f} {promise:8.2f}"
            f"{_missed(measured.ratio, promise)}",
            flush=True,
        )
        figures[name] = {
            "floor": measured.floor,
            "ours": measured.ours,
            "ratio": measured.ratio,
            "promise": promise,
        }
    grown = growth()
    print(f"{'loop, T(10,000)/T(1,000)':53} {grown:7.2f} {11.0:8.2f}{_missed(grown, 11)}")
    rendered = rendering()
    print(
        f"{'render 1,000 turns':27} {'':12} {_time(rendered):>12} {'':7} {'50 ms':>8}"
        f"{_missed(rendered, 0.05)}"
    )
    floor, own = measure_import(FLOOR), measure_import(OURS)
    added = len(own.modules - floor.modules)
    more = (own.kilobytes - floor.kilobytes) / 1024
    print(f"{'modules added by import':53} {added:7} {140:8}{_missed(added, 140)}")
    print(f"{'memory added by import':51} {more:6.1f} MB {2:5} MB{_missed(more, 2)}")
    figures["growth"], figures["render"] = grown, rendered
    figures["modules"], figures["megabytes"] = added, more
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _missed(value: float, promise: float) -> str:
    return "  missed" if value > promise else ""


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
