"""Measure one library where it is installed: `python -m tests.benchmarks.peers NAME`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import platform
import sys
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from lutum_py import TurnRequest
from lutum_py.dialects import openai_chat

from .. import floors, ours
from ..imports import FLOOR, measure_import, paired_import
from ..measure import Measured, Work, paired
from ..standin import standing_in
from .sdks import STREAMS, answers, asked_of_chat, said_to_chat
from .work import ANSWER, CALLS, FEW, LARGE, MANY, MIDDLE, PIECE, SMALL, TOOLS, TURNS, Peer

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
    for calls in CALLS:
        results = peer.at_once(SMALL, calls, 1)
        if results != [ANSWER] * calls:
            told = f"{len(results)} results, {results[:9]}..."
            raise AssertionError(f"{peer.DISTRIBUTION} gave the model {told} for {calls} calls")
    if peer.SAVED is not None:
        save, load = peer.SAVED
        text = save(peer.history())
        if save(load(text)) != text:
            raise AssertionError(f"{peer.DISTRIBUTION} loads another conversation than it saved")


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
    for calls in CALLS:
        floor = partial(floors.round_async, [SMALL] * calls)
        at_once = partial(peer.at_once, SMALL, calls)
        yield f"{calls} at once", paired(floor, at_once, times=640 // calls or 1, rounds=rounds)
    floor, loop = partial(floors.loop, SMALL), partial(peer.loop, SMALL)
    for turns, rounds in ((SHORT, 3 if quick else 9), (LONG, 1 if quick else 5)):
        yield f"loop of {turns}", paired(floor, loop, times=turns, rounds=rounds)
    rounds = 3 if quick else 9
    if peer.SAVED is not None:
        save, load = peer.SAVED
        text = save(peer.history())
        floor, work = partial(floors.load, json.dumps(_body())), partial(_repeated, load, text)
        yield "load", paired(floor, work, times=3, rounds=rounds)
    yield from requests(peer, rounds)
    yield from streams(peer, rounds)


def _body() -> Any:
    """Make the history of all peers as Chat Completions has it: the same floor for each."""
    conversation = ours.conversation(SMALL, TURNS)
    conversation.push_user("go on")
    return openai_chat.encode_request(TurnRequest(items=conversation._request_items()))


def _repeated(load: Callable[[str], object], text: str, times: int) -> None:
    for _ in range(times):
        load(text)


def requests(peer: Peer, rounds: int) -> Iterator[tuple[str, Measured]]:
    """Measure what a library does until it asks an SDK; what it asks with is checked."""
    make = peer.MODELS.get("chat")
    if make is None:
        return
    body = _body()
    with asked_of_chat() as asked, asyncio.Runner() as runner:
        model, history = make("http://127.0.0.1:1"), peer.history()
        offer, send = partial(peer.offer, model), partial(peer.send, model, history)
        read = [runner.run(offer())]
        functions = [tool["function"] for tool in asked["tools"]]
        tools = {each["name"]: len(each["parameters"]["properties"]) for each in functions}
        read.append(runner.run(send()))
        said = list(said_to_chat(asked))
        if list(tools.values()) != [4] * TOOLS or said != list(said_to_chat(body)):
            told = f"{len(tools)} tools, and then with {said[:3]}..."
            raise AssertionError(f"{peer.DISTRIBUTION} asked the SDK with {told}")
        if read != ["done"] * 2:
            raise AssertionError(f"{peer.DISTRIBUTION} read {read}")
        work = repeated(runner, offer)
        yield "tools", paired(floors.many_tools, work, times=1, rounds=rounds)
        work = repeated(runner, send)
        yield "request", paired(partial(floors.dump, body), work, times=5, rounds=rounds)


def streams(peer: Peer, rounds: int) -> Iterator[tuple[str, Measured]]:
    """Measure a stream that comes through an SDK against that SDK by hand."""
    with standing_in(answers()) as url, asyncio.Runner() as runner:
        for name, by_hand in STREAMS.items():
            make = peer.MODELS.get(name)
            if make is None:
                continue
            measured: list[Measured] = []
            for count in (FEW, MANY):
                path = f"{url}/{name}/{count}"
                floor, stream = by_hand(path), partial(peer.stream, make(path))
                said, (pieces, text) = runner.run(floor()), runner.run(stream())
                if (said, pieces, text) != (PIECE * count, count, PIECE * count):
                    told = f"{pieces} pieces of {count}, {text[:80]!r}..."
                    raise AssertionError(f"{peer.DISTRIBUTION} read {told}")
                works = repeated(runner, floor), repeated(runner, stream)
                measured.append(paired(*works, times=1, rounds=rounds))
            few, many = measured
            yield f"event, {name}", many.beyond(few).share(MANY - FEW)


def repeated(runner: asyncio.Runner, once: Callable[[], Coroutine[Any, Any, object]]) -> Work:
    """Make a piece of work of a coroutine function, in a loop whose connections stay open."""

    async def repeat(times: int) -> None:
        for _ in range(times):
            await once()

    return lambda times: runner.run(repeat(times))


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
        **{name: version(name) for name in ("pydantic", peer.DISTRIBUTION, *peer.BESIDE)},
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
