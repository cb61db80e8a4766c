"""Measure one library where it is installed: `python -m tests.benchmarks.peers NAME`."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from .. import floors
from ..imports import FLOOR, measure_import, paired_import
from ..measure import Measured, paired
from .work import ANSWER, LARGE, MIDDLE, SMALL, Peer

SHORT, LONG = 100, 400
"""The two lengths of the loop: what grows with the conversation shows between them."""


def check(peer: Peer) -> None:
    """See that the work is done: the right answer, and a model that is given all that was said.

    This also warms up whatever a library makes on its first call.
    """
    for text in (SMALL, MIDDLE, LARGE):
        answer = peer.call(text, 3)
        if answer != ANSWER:
            raise AssertionError(f"{peer.DISTRIBUTION} told the model {answer!r}, not {ANSWER!r}")
    given = peer.loop(SMALL, 10)
    if given != 1 + 2 * 10:
        raise AssertionError(f"{peer.DISTRIBUTION} gave the model {given} messages, not 21")


def rows(peer: Peer, quick: bool) -> Iterator[tuple[str, Measured]]:
    """Measure each row against the floor, in turns."""
    few = 3 if quick else 1
    rounds = 3 if quick else 15
    yield "import", paired_import(peer.IMPORT, 3 if quick else 11)
    yield "declare", paired(floors.declare, peer.declare, times=10, rounds=rounds)
    yield "define", paired(floors.declare, peer.define, times=10, rounds=rounds)
    for name, text, times in (
        ("call", SMALL, 600),
        ("call, 2 KB", MIDDLE, 600),
        ("call, 200 KB", LARGE, 30),
    ):
        floor, call = partial(floors.call_async, text), partial(peer.call, text)
        yield name, paired(floor, call, times=times // few, rounds=rounds)
    floor, loop = partial(floors.loop, SMALL), partial(peer.loop, SMALL)
    for turns, rounds in ((SHORT, 3 if quick else 9), (LONG, 1 if quick else 5)):
        yield f"loop of {turns}", paired(floor, loop, times=turns, rounds=rounds)


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    names = sorted(path.stem[: -len("_peer")] for path in Path(__file__).parent.glob("*_peer.py"))
    parser.add_argument("name", choices=names, help="the library")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    peer = cast(Peer, importlib.import_module(f".{options.name}_peer", __package__))
    versions = {
        "python": platform.python_version(),
        "pydantic": version("pydantic"),
        peer.DISTRIBUTION: version(peer.DISTRIBUTION),
    }
    print(", ".join(f"{name} {number}" for name, number in versions.items()), flush=True)
    check(peer)
    figures: dict[str, dict[str, float]] = {}
    for name, measured in rows(peer, options.quick):
        figures[name] = {
            "floor": measured.floor,
            "peer": measured.ours,
            "ratio": measured.ratio,
        }
        print(
            f"{name:16} {measured.floor * 1e6:12.2f} µs {measured.ours * 1e6:14.2f} µs"
            f" {measured.ratio:10.2f}",
            flush=True,
        )
    growth = LONG / SHORT * figures[f"loop of {LONG}"]["peer"] / figures[f"loop of {SHORT}"]["peer"]
    print(f"T({LONG})/T({SHORT}), {LONG // SHORT} where a turn costs the same: {growth:.1f}")
    modules = len(measure_import(peer.IMPORT).modules - measure_import(FLOOR).modules)
    print(f"modules added by the import: {modules}")
    if options.json:
        result: dict[str, Any] = {
            "name": peer.DISTRIBUTION,
            "versions": versions,
            "rows": figures,
            "growth": growth,
            "modules": modules,
        }
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
