"""Print the table: `python -m tests.benchmarks [--quick] [--json FILE]`.

That of the store is a part of its own: `python -m tests.benchmarks store`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lutum_py import TurnRequest

from . import floors, ours
from .imports import FLOOR, OURS, PACKAGE, measure_import, paired_import
from .measure import Measured, paired, seconds
from .wire import LISTS, WIRES, recorded_streams

SMALL = json.dumps({"query": "hello world", "max_results": 3})
MIDDLE = json.dumps({"query": "x y " * 500, "max_results": 3})
LARGE = json.dumps({"query": "x y " * 50_000, "max_results": 3})
CHANGEABLE = json.dumps(LISTS)


def rows(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure each row: its name, what came out, and the ratio that is goald."""
    yield from declaring(quick)
    yield from calls(quick)
    yield from rounds(quick)
    yield from wires(quick)
    yield from many_calls(quick)


def declaring(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure what a program pays before its first request."""
    times = 3 if quick else 25
    yield "import the package", paired_import(PACKAGE, times), 1.15
    yield "import what declares a tool", paired_import(OURS, times), 1.15
    floor, own = floors.declare, ours.declare
    yield "declare a tool with its schema", paired(floor, own, times=20, rounds=times), 1.1
    floor, own = floors.many_tools, ours.many_tools
    yield "500 tools and a request", paired(floor, own, times=1, rounds=3 if quick else 9), 1.2


def calls(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure a call by itself."""
    few, rounds = (3, 5) if quick else (1, 31)
    for name, text, times, goal in (
        ("decode, small arguments", SMALL, 3000, 1.0),
        ("decode, 2 KB", MIDDLE, 2000, 1.03),
        ("decode, 200 KB", LARGE, 60, 1.03),
    ):
        floor, own = partial(floors.decode, text), partial(ours.decode, text)
        yield name, paired(floor, own, times=times // few, rounds=rounds), goal
    for name, text, times, goal in (
        ("one async call, small", SMALL, 2000, 1.3),
        ("one async call, 2 KB", MIDDLE, 2000, 1.05),
        ("one async call, 200 KB", LARGE, 60, 1.05),
    ):
        floor, own = partial(floors.call_async, text), partial(ours.call_async, text)
        yield name, paired(floor, own, times=times // few, rounds=rounds), goal
    floor, own = partial(floors.call_sync, SMALL), partial(ours.call_sync, SMALL)
    yield "one sync call, small", paired(floor, own, times=2000 // few, rounds=rounds), 1.3
    floor = partial(floors.call_async, CHANGEABLE, name="find")
    own = partial(ours.call_async, CHANGEABLE, name="find")
    yield "one async call, lists", paired(floor, own, times=2000 // few, rounds=rounds), 1.3


def rounds(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure rounds and the loop."""
    rounds = 5 if quick else 31
    texts = [SMALL] * 64
    floor, own = partial(floors.round_async, texts), partial(ours.round_async, texts)
    yield "round of 64, at once", paired(floor, own, times=20, rounds=rounds), 1.15
    own = partial(ours.round_sync, texts)
    yield "round of 64, all sync", paired(floor, own, times=20, rounds=rounds), 1.15
    for count, later, said in (
        (0, False, "no hook"),
        (1, False, "a hook"),
        (3, False, "3 hooks"),
        (1, True, "an async hook"),
        (3, True, "3 async hooks"),
    ):
        lists = [CHANGEABLE] * 64
        floor = partial(floors.round_async, lists, name="find", hooks=count, later=later)
        hooks = ours.hooks_of(count, later=later)
        own = partial(ours.round_async, lists, name="find", hooks=hooks)
        yield f"64 with lists, {said}", paired(floor, own, times=20, rounds=rounds), 1.5
    floor, own = partial(floors.loop, SMALL), partial(ours.loop, SMALL)
    yield "loop, a turn of 1,000", paired(floor, own, times=1000, rounds=rounds), 4.0
    floor = partial(floors.loop, CHANGEABLE, name="find")
    own = partial(ours.loop, CHANGEABLE, name="find")
    yield "loop with lists, a turn of 1,000", paired(floor, own, times=1000, rounds=rounds), 4.0


def wires(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure what each dialect does with a response, a stream and a long conversation."""
    rounds, many = (3, 3) if quick else (15, 60)  # many of what does not repeat itself in a round
    for wire in WIRES:
        response = wire.response(64)
        floor, own = partial(floors.read, wire, response), partial(ours.read, wire, response)
        name = f"decode 64 calls, {wire.name}"
        yield name, paired(floor, own, times=10, rounds=rounds), 1.5
    for wire in WIRES:
        response = wire.response(64)
        floor = partial(floors.wire_round, wire, response)
        own = partial(ours.wire_round, wire, response)
        name = f"wire to commit, {wire.name}"
        yield name, paired(floor, own, times=10, rounds=rounds), 1.5
    for wire in WIRES:
        response = wire.response(64, "find", LISTS)
        floor = partial(floors.wire_round, wire, response)
        own = partial(ours.wire_round, wire, response)
        name = f"the same with lists, {wire.name}"
        yield name, paired(floor, own, times=10, rounds=rounds), 1.5
    for wire in WIRES:
        written = [f"data: {event}".encode() for event in wire.stream(500)]
        raw = [line for event in written for line in (event, b"")]
        floor, own = partial(floors.lines, raw), partial(ours.lines, wire, raw)
        measured = paired(floor, own, times=2, rounds=rounds)
        yield f"a raw text event, {wire.name}", measured.share(len(written)), 2.0
    for wire in WIRES:
        stream = wire.stream(500)
        floor, own = partial(floors.events, stream), partial(ours.events, wire, stream)
        measured = paired(floor, own, times=2, rounds=rounds)
        yield f"a text event, {wire.name}", measured.share(len(stream)), 2.0
    for wire in WIRES:
        streams = recorded_streams(wire.dialect.NAME)
        if streams:
            floor, own = partial(_each, floors.events), partial(_each, partial(ours.events, wire))
            floor, own = partial(floor, streams), partial(own, streams)
            measured = paired(floor, own, times=1, rounds=many)
            name = f"a recorded event, {wire.name}"
            yield name, measured.share(sum(map(len, streams))), 2.0
    for wire in WIRES:
        text = ours.saved(wire, 2000)
        floor, own = partial(floors.load, text), partial(ours.load, text)
        name = f"load 2,000 turns, {wire.name}"
        yield name, paired(floor, own, times=1, rounds=rounds), 2.0
    request = TurnRequest(items=ours.conversation(SMALL, 1000)._request_items())
    bodies = [wire.dialect.encode_request(request) for wire in WIRES]
    for wire, body in zip(WIRES, bodies, strict=True):
        floor, own = partial(floors.dump, body), partial(ours.render, wire, request)
        name = f"request of 1,000 turns, {wire.name}"
        yield name, paired(floor, own, times=1, rounds=many), 1.0
    for wire, body in zip(WIRES, bodies, strict=True):
        floor, own = partial(floors.dump, body), partial(ours.check, wire, body)
        name = f"check 1,000 turns, {wire.name}"
        yield name, paired(floor, own, times=1, rounds=many), 5.0


def _each(work: Callable[[list[str], int], None], streams: list[list[str]], times: int) -> None:
    for stream in streams:
        work(stream, times)


def many_calls(quick: bool) -> Iterator[tuple[str, Measured, float]]:
    """Measure calls that run at once, with the collector on, which large rounds call up."""
    for size, rounds in ((1000, 15), (10_000, 5), (30_000, 3)):
        batch = ours.Batch(size)
        measured = paired(
            batch.gather,
            batch.execute,
            times=1,
            rounds=3 if quick else rounds,
            collecting=True,
            before=batch.decode,
        )
        yield f"execute_all, a call of {size:,}", measured.share(size), 2.5


def growth() -> float:
    """Return T(10,000) / T(1,000) of the loop: 10 where a turn costs the same throughout."""
    own = partial(ours.loop, SMALL)
    short = min(seconds(own, 1000) for _ in range(9))
    long = min(seconds(own, 10_000) for _ in range(3))
    return long / short


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
    print(f"{'':33} {'floor':>12} {'ours':>12} {'ratio':>7} {'goal':>8}")
    figures: dict[str, Any] = {"python": platform.python_version()}
    for name, measured, goal in rows(options.quick):
        print(
            f"{name:33} {_time(measured.floor):>12} {_time(measured.ours):>12} "
            f"{measured.ratio:7.2f} {goal:8.2f}"
            f"{_above(measured.ratio, goal)}",
            flush=True,
        )
        figures[name] = {
            "floor": measured.floor,
            "ours": measured.ours,
            "ratio": measured.ratio,
            "goal": goal,
        }
    grown = growth()
    print(f"{'loop, T(10,000)/T(1,000)':59} {grown:7.2f} {11.0:8.2f}{_above(grown, 11)}")
    floor, own = measure_import(FLOOR), measure_import(OURS)
    added = len(own.modules - floor.modules)
    more = (own.kilobytes - floor.kilobytes) / 1024
    print(f"{'modules added by import':59} {added:7} {140:8}{_above(added, 140)}")
    print(f"{'memory added by import':57} {more:6.1f} MB {2:5} MB{_above(more, 2)}")
    figures["growth"] = grown
    figures["modules"], figures["megabytes"] = added, more
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _above(value: float, goal: float) -> str:
    return "  above" if value > goal else ""


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


if __name__ == "__main__":
    if sys.argv[1:2] == ["store"]:
        from . import store

        sys.exit(store.main(sys.argv[2:]))
    sys.exit(main())
