"""Costs that cannot flake: calls of Python functions are counted, not seconds."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from lutum_py import (
    AssistantTurn,
    Finished,
    NeedsTools,
    RunNormally,
    Session,
    ToolMetadata,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.testing import ScriptedModel

SMALL = '{"query":"hello world","max_results":3}'


@tool_fn
def search(query: str, max_results: int = 5, site: str | None = None) -> str:
    """Search the web."""
    return query * max_results


class Tools(Toolset):
    search = tool(search)


hooks = Tools.HookSet()


@hooks.on(Tools.search)
def pass_on(metadata: ToolMetadata, input: object) -> RunNormally[object]:
    return RunNormally(input)


def calls_made(work: Callable[[], object]) -> int:
    """Count the calls of Python functions that a piece of work makes."""
    work()  # what is made on first use is made now
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def metadata(index: int = 0) -> ToolMetadata:
    return ToolMetadata(id=f"c{index}", name="search", arguments=SMALL)


def round_of(size: int) -> None:
    turn = AssistantTurn(tool_calls=[metadata(index) for index in range(size)])
    outcome = Tools.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    plan.commit(Transcript(), [call.call_sync() for call in plan.pending])


def loop_of(turns: int) -> Session:
    asked = iter(range(turns))

    def script(request: object) -> AssistantTurn:
        for index in asked:
            return AssistantTurn(tool_calls=[metadata(index)])
        return AssistantTurn(text="done")

    session = Session()
    session.push_user("go")
    model = ScriptedModel(script)
    while True:
        match session.text_turn(model).tools(Tools).collect_sync():
            case NeedsTools(round):
                plan = round.apply_hooks_sync(hooks)
                plan.commit(session, [call.call_sync() for call in plan.pending])
            case Finished():
                return session


def test_decoding_a_call_takes_a_handful_of_function_calls() -> None:
    """Decoding goes straight to the validator: it cannot grow tenfold unnoticed."""
    assert calls_made(partial(Tools.parse_tool_call, metadata())) <= 6


def test_running_a_call_takes_a_handful_of_function_calls() -> None:
    """Between the decoded call and its result there is next to nothing."""
    call = Tools.parse_tool_call(metadata())
    assert calls_made(lambda: call.again().call_sync()) <= 16


def test_a_round_costs_the_same_for_each_call() -> None:
    """What a round costs is proportional to its calls, and little for each."""
    small, large = calls_made(partial(round_of, 8)), calls_made(partial(round_of, 64))
    each = (large - small) / 56
    assert each <= 30
    assert small <= 8 * each + 60


def test_a_turn_costs_the_same_however_long_the_conversation() -> None:
    """The thousandth turn makes as many function calls as the hundredth."""
    counts = [calls_made(partial(loop_of, turns)) for turns in (100, 200, 1000)]
    later, earlier = (counts[2] - counts[1]) / 800, (counts[1] - counts[0]) / 100
    assert later <= earlier * 1.01


def test_no_call_leaves_a_reference_cycle() -> None:
    """With the collector off, all that a round made is gone when the round is."""
    round_of(4)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            round_of(4)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_decoding_leaves_nothing_behind() -> None:
    """Memory does not grow with the number of decoded calls."""
    one = metadata()
    for _ in range(1000):
        Tools.parse_tool_call(one)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20_000):
            Tools.parse_tool_call(one)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000


def test_a_transcript_holds_at_most_three_times_its_json() -> None:
    """A long transcript with results of a kilobyte costs memory in proportion to its text."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        session = Session()
        session.push_user("go")
        for index in range(1000):
            turn = AssistantTurn(tool_calls=[metadata(index)])
            outcome = Tools.read_turn(turn)
            assert isinstance(outcome, NeedsTools)
            call = outcome.round.expect_one()
            outcome.round.commit(session, [call.complete(f"{index:4}" * 256)])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= 3 * len(session.transcript.dump_json())


@pytest.mark.parametrize("workers", [16])
def test_threads_get_the_answers_that_one_gets(workers: int) -> None:
    """Toolsets and hook sets are used from many threads at once, and nobody notices."""
    wanted = loop_of(20).transcript.dump_json()
    start = threading.Barrier(workers)
    answers: list[str] = []

    def work() -> None:
        start.wait()
        for _ in range(5):
            answers.append(loop_of(20).transcript.dump_json())

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [wanted] * (5 * workers)
