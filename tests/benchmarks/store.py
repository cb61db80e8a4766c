"""What the store costs: `python -m tests.benchmarks store [--full] [--fsync]`.

Each row is measured on PostgreSQL and on SQLite, once by itself and once beside a transaction that
has seen the database before all of it, as a dump does. The floor is one INSERT and one UPDATE by
hand for each call. No database waits for a disk unless `--fsync` is given, or one worker would
measure the disk. Only public names of the store are used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle, zip_longest
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from lutum_py import NeedsTools, Session, ToolRoundPlan, Toolset, tool, tool_fn
from lutum_py.execution import execute_sync
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel

from ..store import servers
from .databases import (
    Database,
    Postgres,
    Proxy,
    Sqlite,
    Step,
    calls_a_second,
    dbos_workflow,
    floor,
)

T = TypeVar("T")

KEY: Final = b"a key of the benchmark"
TURNS: Final = 4
"""How often floor, DBOS and store take turns. What else the machine does only ever slows them down,
so the best of each counts."""

LIMIT: Final = 15.0
"""How long a row may take, in seconds."""


@tool_fn
def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


@tool_fn
def ask(cents: int) -> str:
    """Pay, once somebody has approved it."""
    return pay(cents)


class Flight:
    """Calls that are in flight together: each ends some seconds after the last one began.

    Attributes:
        now: The one that is in the air.
        begun: How many began.
    """

    now: ClassVar[Flight]

    def __init__(self, calls: int, seconds: float, probe: Callable[[], Any]) -> None:
        self.begun = 0
        self.seen: list[Any] = []
        self._calls, self._seconds, self._probe = calls, seconds, probe
        self._is_full = asyncio.Event()

    async def one(self) -> None:
        """Be one of them."""
        self.begun += 1
        if self.begun == self._calls:
            self.seen.append(self._probe())
            self._is_full.set()
        await self._is_full.wait()
        await asyncio.sleep(self._seconds)
        if len(self.seen) == 1:
            self.seen.append(self._probe())


@tool_fn
async def fly(cents: int) -> str:
    """Take part in the flight."""
    await Flight.now.one()
    return f"flown {cents}"


class Desk(Toolset):
    pay = tool(pay)
    fly = tool(fly)
    ask = tool(ask, needs_approval=True)


def plan_of(calls: int, name: str = "pay") -> ToolRoundPlan[Desk]:
    """Plan a round of calls."""
    wanted = ((f"c{n}", name, {"cents": n}) for n in range(calls))
    outcome = Desk.read_turn(ScriptedModel.tool_calls(*wanted))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


def fill(store: Store, sizes: list[int], name: str = "pay") -> list[str]:
    """Save a conversation for each size of a round; returns their ids."""
    ids = [f"conversation-{n}" for n in range(len(sizes))]
    for id, size in zip(ids, sizes, strict=True):
        store.save(id, plan_of(size, name))
    return ids


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured.

    Attributes:
        name: What it is about.
        said: The figure, as it is printed.
        seconds: What one call took, if that is what was measured.
        workers: How many worked.
        is_call: Whether calls were run, as DBOS runs them.
    """

    name: str
    said: str
    seconds: float | None = None
    workers: int = 1
    is_call: bool = True


NOTHING: Final = Row("", "\N{EN DASH}")


@dataclass(frozen=True, slots=True)
class Bench:
    """One way to measure.

    Attributes:
        database: Where.
        seconds: How long each rate is measured.
        full: Whether with the large sizes.
        dbos: A workflow of DBOS, if it is installed.
        is_beside: Whether beside an old snapshot.
        floors: The most calls a second by hand, by the number of workers.
        peers: The same of DBOS.
    """

    database: Database
    seconds: float
    full: bool
    dbos: Step | None = None
    is_beside: bool = False
    floors: dict[int, float] = field(default_factory=dict[int, float])
    peers: dict[int, float] = field(default_factory=dict[int, float])

    @contextmanager
    def store(self, proxy: Proxy | None = None, address: str | None = None) -> Iterator[Store]:
        """Open a store with nothing in it, at an address that may be chosen."""
        address = address or self.database.fresh()
        with ExitStack() as stack:
            open_store(address, KEY).close()  # makes the tables
            if self.is_beside:
                snapshot = self.database.connect(address)
                stack.callback(snapshot.close)
                for statement in self.database.snapshot:
                    snapshot.execute(statement)
            through = address if proxy is None else proxy.address(address)
            yield stack.enter_context(open_store(through, KEY))

    def proxy(self, delay: float = 0) -> Proxy | None:
        """Make a proxy, if there is a server to stand before."""
        if isinstance(self.database, Postgres):
            return Proxy(self.database.port, delay)
        return None

    def measure_others(self, workers: int, seconds: float) -> None:
        """Measure floor and DBOS once more; the most of all times counts."""
        rate = floor(self.database, workers, seconds)
        self.floors[workers] = max(rate, self.floors.get(workers, 0))
        if (workflow := self.dbos) is not None:
            rate = calls_a_second(workers, seconds, lambda: workflow)
            self.peers[workers] = max(rate, self.peers.get(workers, 0))

    def rate(self, way: Callable[[Store], Step], workers: int, seconds: float) -> float:
        """Return how many calls a second workers run, in rounds of 10 to 50."""
        sizes = cycle((10, 20, 30, 40, 50))
        with self.store() as store:
            fill(store, [next(sizes) for _ in range(5 + int(seconds * 60))])
            return calls_a_second(workers, seconds, partial(way, store))


# The rows.


def one_by_one(store: Store) -> Step:
    """Claim, start, run and finish one call."""

    def step() -> int:
        claim = store.claim(Desk)
        if claim is None:
            return 0
        store.finish(claim, execute_sync(store.start(claim)))
        return 1

    return step


def sixteen(store: Any) -> Step:
    """Claim up to 16 calls at once, and start, run and finish each."""

    def step() -> int:
        claims = store.claim_many(Desk, limit=16)
        for claim in claims:
            store.finish(claim, execute_sync(store.start(claim)))
        return len(claims)

    return step


def ways() -> dict[str, Callable[[Store], Step]]:
    """Return the ways to claim, by what is said about them."""
    every: dict[str, Callable[[Store], Step]] = {"": one_by_one, ", 16 a claim": sixteen}
    return every if hasattr(Store, "claim_many") else {"": one_by_one}


def rates(bench: Bench) -> Iterator[Row]:
    """Measure calls a second; floor, DBOS and store take turns, as the machine has other work."""
    part = bench.seconds / TURNS
    for said, way in ways().items():
        for workers in (1, 2, 4, 10):
            own = 0.0
            for _ in range(TURNS):
                bench.measure_others(workers, part)
                own = max(own, bench.rate(way, workers, part))
            name = f"{workers} worker{'s' * (workers > 1)}{said}"
            yield Row(name, f"{own:,.0f} calls/s", 1 / own, workers)


def lasting(bench: Bench) -> Iterator[Row]:
    """Measure the first and the last second of a longer time, as what is dead piles up."""
    seconds = 15 if bench.full else 4
    with bench.store() as store:
        fill(store, [50] * 20 * seconds)
        rates = [calls_a_second(4, 1, partial(one_by_one, store)) for _ in range(seconds)]
    for second, rate in ((1, rates[0]), (seconds, rates[-1])):
        said = f"{rate:,.0f} calls/s" if rate else "no calls left"
        yield Row(f"4 workers, second {second}", said, 1 / rate if rate else None, 4)


def round_trips(bench: Bench) -> Iterator[Row]:
    """Count the round trips of a call, and what goes over the wire."""
    proxy = bench.proxy()
    if proxy is None:
        return
    for said, way in ways().items():
        with bench.store(proxy) as store:
            fill(store, [48] * 3)
            step = way(store)
            step()
            trips, size, calls = proxy.trips, proxy.bytes, 0
            while calls < 48:
                calls += step()
            trips, size = proxy.trips - trips, proxy.bytes - size
        yield Row(f"round trips of a call{said}", f"{trips / calls:.1f}")
        yield Row(f"bytes of a call{said}", f"{size / calls / 1000:.1f} KB")


def least(step: Callable[[], object], times: int = 15, seconds: float = 2) -> float:
    """Time a step some times, after a first one; returns the least."""
    step()
    took: list[float] = []
    end = time.monotonic() + seconds
    while len(took) < times and (time.monotonic() < end or not took):
        start = time.perf_counter()
        step()
        took.append(time.perf_counter() - start)
    return min(took)


def timed(name: str, seconds: float, *, is_call: bool = False) -> Row:
    """Say how long something took."""
    return Row(name, f"{seconds * 1e3:,.2f} ms", seconds, is_call=is_call)


def large_rounds(bench: Bench) -> Iterator[Row]:
    """Measure a call in rounds of several sizes."""
    for size in (50, 800, 10_000) if bench.full else (50, 800):
        with bench.store() as store:
            fill(store, [size])
            took = least(one_by_one(store))
        yield timed(f"a call in a round of {size:,}", took, is_call=True)


def idle_claims(bench: Bench) -> Iterator[Row]:
    """Measure a claim that finds nothing, where calls wait for somebody's decision."""
    for waiting in (1_000, 100_000) if bench.full else (1_000, 5_000):
        with bench.store() as store:
            fill(store, [500] * (waiting // 500), "ask")
            took = least(one_by_one(store), 100)
        yield timed(f"a claim of nothing, {waiting:,} wait", took)


def decisions(bench: Bench) -> Iterator[Row]:
    """Measure a decision, in a long round and beside a long transcript."""
    long = Session()
    long.push_user("x" * 1_000_000)
    for name, calls, session in (
        ("a decision in a round of 500", 500, Session()),
        ("a decision beside 1 MB", 20, long),
    ):
        proxy = bench.proxy()
        with bench.store(proxy) as store:
            store.save("one", plan_of(calls, "ask"), session=session)
            waiting = iter(store.waiting("one"))

            def decide() -> None:
                store.decide("one", next(waiting).approve(by="mia"), Desk)  # noqa: B023

            took, size = least(decide), proxy.bytes if proxy else 0
            decide()
            size = proxy.bytes - size if proxy else 0
        yield timed(name, took)
        if proxy:
            yield Row(f"{name}: bytes", f"{size / 1000:,.1f} KB")


async def run_all(
    store: Store, ids: list[str], lease: float, count: Callable[[], tuple[int, int]]
) -> tuple[float, int, int]:
    """Run conversations at once, until the limit.

    Returns:
        How long it took, and what was counted before what was left then was stopped: a call that
        this stops is not lost.
    """
    start = time.monotonic()
    running = [asyncio.ensure_future(store.run(id, Desk, lease=lease)) for id in ids]
    _, left = await asyncio.wait(running, timeout=LIMIT)
    took = time.monotonic() - start
    done, lost = count()
    for each in left:
        each.cancel()
    ended = await asyncio.gather(*running, return_exceptions=True)
    for fault in ended:
        if isinstance(fault, Exception):
            raise fault
    return took, done, lost


def ended_in(store: Store, ids: list[str]) -> tuple[int, int]:
    """Return how many calls of conversations succeeded, and how many ended otherwise."""
    plans = [store.load(id, Desk).plan for id in ids]
    results = [result.status for plan in plans if plan is not None for result in plan.finished]
    done = results.count("success")
    return done, len(results) - done


def said_of(calls: int, done: int, lost: int) -> str:
    """Say how many calls did not succeed within the limit, and how many of these ended."""
    return "" if done == calls else f", {done:,} of {calls:,}, {lost:,} lost"


def crowd(
    bench: Bench, name: str, sizes: list[int], lease: float, proxy: Proxy | None = None
) -> Iterator[Row]:
    """Measure `store.run` of many conversations at once in one process."""
    address = bench.database.fresh()
    with bench.store(address=address) as direct:
        ids = fill(direct, sizes)
        with open_store(proxy.address(address) if proxy else address, KEY) as store:
            work = run_all(store, ids, lease, partial(ended_in, direct, ids))
            took, done, lost = asyncio.run(work)
    said = f"{done / took:,.0f} calls/s{said_of(sum(sizes), done, lost)}"
    yield Row(name, said, took / max(done, 1))


def crowds(bench: Bench) -> Iterator[Row]:
    """Measure many conversations at once, near and far."""
    many = 400 if bench.full else 60
    yield from crowd(bench, f"{many} conversations of 11, lease 2 s", [11] * many, 2)
    if proxy := bench.proxy(0.01):
        yield from crowd(bench, "40 of 5, 10 ms away, lease 5 s", [5] * 40, 5, proxy)


def fly_all(
    bench: Bench, calls: int, seconds: float, probe: Callable[[Proxy | None], T]
) -> tuple[tuple[int, int], list[T]]:
    """Let calls be in flight at once.

    Returns:
        How many succeeded and how many ended otherwise, until the limit; and what the probe gave
        before the first, when all were in flight, and at the end of the first, as far as it came
        to that.
    """
    address, proxy = bench.database.fresh(), bench.proxy()
    with bench.store(address=address) as direct:
        ids = fill(direct, [10] * (calls // 10), "fly")
        with open_store(proxy.address(address) if proxy else address, KEY) as store:
            Flight.now = mine = Flight(calls, seconds, lambda: probe(proxy))
            before = probe(proxy)
            work = run_all(store, ids, 2, partial(ended_in, direct, ids))
            _, done, lost = asyncio.run(work)
        return (done, lost), [before, *mine.seen]


def flights(bench: Bench) -> Iterator[Row]:
    """Measure what it takes to keep the leases of many calls that take seconds."""
    calls, seconds = (1_000, 5.0) if bench.full else (200, 3.0)

    def probe(proxy: Proxy | None) -> tuple[float, float, int]:
        return time.monotonic(), time.process_time(), proxy.trips if proxy else 0

    (done, lost), seen = fly_all(bench, calls, seconds, probe)
    name = f"{calls:,} calls of {seconds:g} s in flight, lease 2 s"
    yield Row(f"{name}: done", f"{done:,}{said_of(calls, done, lost)}")
    if len(seen) == 3:
        (before, *_), (start, busy, trips), (end, busy_then, trips_then) = seen
        took = end - start
        yield Row("  until all are in flight", f"{start - before:.1f} s")
        yield Row("  processor meanwhile, with the proxy", f"{(busy_then - busy) / took:.0%}")
        if isinstance(bench.database, Postgres):
            yield Row("  round trips a second", f"{(trips_then - trips) / took:,.0f}")


def memory(bench: Bench) -> Iterator[Row]:
    """Measure what a call holds that is in flight; what traces it makes all of it slower."""
    calls = 1_000 if bench.full else 100
    tracemalloc.start()
    try:
        _, sizes = fly_all(bench, calls, 0.5, lambda _: tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    said = f"{(sizes[1] - sizes[0]) / calls / 1000:,.1f} KB" if len(sizes) > 1 else "not all began"
    yield Row("memory of a call in flight", said)


ROWS: Final = (
    rates,
    lasting,
    round_trips,
    large_rounds,
    idle_claims,
    decisions,
    crowds,
    flights,
    memory,
)


# The table.


@contextmanager
def dbos_if_there(database: Database) -> Iterator[Step | None]:
    """Launch DBOS, where it is installed."""
    try:
        print(f"DBOS {version('dbos')}")
    except PackageNotFoundError:
        print("DBOS is not installed, so it is not measured: pip install dbos")
        yield None
    else:
        with dbos_workflow(database) as workflow:
            yield workflow


def databases(*, fsync: bool) -> Iterator[Database]:
    """Make each database, if it is installed."""
    folder = servers.binaries()
    if folder is None:
        print(f"PostgreSQL is skipped: {servers.INSTALL}")
    else:
        yield Postgres(folder, fsync=fsync)
    yield Sqlite(fsync=fsync)


def measure(bench: Bench, only: str) -> Iterator[tuple[Row, Row]]:
    """Measure each row both ways, one right after the other."""
    beside = replace(bench, is_beside=True)
    bench.measure_others(1, 0.5)
    for rows in ROWS:
        if only in rows.__name__:
            for pair in zip_longest(rows(bench), rows(beside), fillvalue=NOTHING):
                print(pair[0].name, file=sys.stderr, flush=True)
                yield pair


def show(bench: Bench, pairs: list[tuple[Row, Row]]) -> None:
    """Print the table; a ratio is how many times as long a call takes as with the other."""
    others = (("by hand", bench.floors), ("DBOS", bench.peers))
    for name, rates in others:
        print(f"{name}, calls/s:", ", ".join(f"{n}: {rate:,.0f}" for n, rate in rates.items()))
    head = f"{'x floor':>9}{'x DBOS':>9}"
    print(f"{'':46}{'ours':>34}{head}{'beside a snapshot':>34}{head}")
    for row, beside in pairs:
        line = f"{row.name or beside.name:46}"
        for each in (row, beside):
            line += f"{each.said:>34}"
            for name, rates in others:
                rate = rates.get(each.workers) if each.is_call or name != "DBOS" else None
                line += f"{each.seconds * rate:9.2f}" if each.seconds and rate else " " * 9
        print(line, flush=True)


def main(arguments: list[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks store", description=__doc__)
    parser.add_argument("--full", action="store_true", help="large sizes, which take longer")
    parser.add_argument("--fsync", action="store_true", help="let databases wait for the disk")
    parser.add_argument("--seconds", type=float, default=1, help="how long a rate is measured")
    parser.add_argument("--only", default="", help="only rows of functions with this in their name")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    figures: list[dict[str, Any]] = []
    for database in databases(fsync=options.fsync):
        try:
            print(f"\n{database.name}")
            with dbos_if_there(database) as dbos:
                bench = Bench(database, options.seconds, options.full, dbos)
                pairs: list[tuple[Row, Row]] = []
                try:
                    pairs.extend(measure(bench, options.only))
                finally:
                    show(bench, pairs)
            rows = [{"alone": asdict(row), "beside": asdict(beside)} for row, beside in pairs]
            others = {"floor": bench.floors, "dbos": bench.peers}
            figures.append({"database": database.name, "rows": rows, **others})
        finally:
            database.remove()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0
