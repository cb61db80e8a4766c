"""The laws of what a conversation has loaded: read from its results, once, and only growing."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    Session,
    ToolAvailability,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
)
from lutum_py.errors import MisuseError
from lutum_py.tools import tool_search
from tests.cases import over
from tests.many_tools import DEFERRED, ON, ManyTools, found, ping
from tests.sample_tools import offered, turn_of


def names(selectors: Any) -> list[str]:
    return [each.name for each in selectors]


def said_with(*results: ToolResult) -> Transcript:
    """A conversation in which these results were committed, each in a round of its own."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    for result in results:
        append(transcript, result)
    return transcript


def append(transcript: Transcript, result: ToolResult) -> None:
    call = ToolMetadata(id=result.id, name=result.name, arguments=result.arguments)
    transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))


def found_by(names: list[Any], name: str, status: str) -> ToolResult:
    return found(*names, name=name, status=status)


ANY_NAMES = st.lists(
    st.sampled_from([*DEFERRED, *ON, "crm_drop_database", "nobody", 3, None, ["forecast"]]),
    max_size=4,
)
RESULTS = st.lists(
    st.builds(
        found_by,
        ANY_NAMES,
        st.sampled_from(["search_tools", "search_tools", "ping", "other"]),
        st.sampled_from(["success", "success", "error", "rejected", "cancelled", "indeterminate"]),
    ),
    max_size=6,
)


def expected_of(results: list[ToolResult]) -> list[str]:
    """What the rule says, in one line: the first mention of each counts."""
    searched = [each for each in results if each.name == "search_tools" and each.is_success]
    named = [name for each in searched for name in json.loads(each.result)]
    return list(dict.fromkeys(name for name in named if name in DEFERRED))


@given(results=RESULTS)
def test_what_a_search_that_succeeded_names_is_loaded(results: list[ToolResult]) -> None:
    """Deferred tools in successful results of a search are loaded, in order, and nothing else."""
    transcript = said_with(*results)
    expected = expected_of(results)
    assert names(ManyTools.loaded_tools(transcript)) == expected
    assert names(ManyTools.loaded_tools(Session(transcript))) == expected
    assert names(ManyTools.loaded_tools(list(transcript))) == expected
    again = Transcript.load_json(transcript.dump_json())
    assert names(ManyTools.loaded_tools(again)) == expected


@given(results=RESULTS, asks=st.lists(st.booleans(), min_size=6, max_size=6))
def test_the_loaded_tools_only_grow(results: list[ToolResult], asks: list[bool]) -> None:
    """However often it is asked for on the way, what was loaded stays, in front of what comes."""
    transcript = said_with()
    before: tuple[Any, ...] = ()
    for result, ask in zip(results, asks, strict=False):
        append(transcript, result)
        if ask:
            now = ManyTools.loaded_tools(transcript)
            assert now[: len(before)] == before
            branch = transcript.copy()
            append(branch, found("forecast"))
            assert set(ManyTools.loaded_tools(branch)) == {*now, ManyTools["forecast"]}
            before = now
    assert names(ManyTools.loaded_tools(transcript)) == expected_of(results)


def test_each_item_is_looked_at_once() -> None:
    """What was read of a transcript is kept: asking again reads nothing but what has come."""
    reads: list[int] = []

    class Counting(Transcript):
        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:
            items = cast("tuple[Any, ...]", super().__getitem__(index))
            reads.append(len(items))
            return items

    transcript = Counting()
    for _ in range(100):
        append(transcript, found("forecast"))
    for _ in range(10):
        offered(ManyTools, transcript=transcript)
        ManyTools.loaded_tools(transcript)
    append(transcript, found("crm_find_customer"))
    assert names(ManyTools.loaded_tools(transcript)) == ["forecast", "crm_find_customer"]
    assert reads == [200, 2]


def test_one_transcript_serves_many_toolsets() -> None:
    """What is kept of a transcript is bounded: toolsets of the moment do not pile up in it."""
    transcript = said_with(found("t"))
    toolsets: list[weakref.ref[Any]] = []
    for number in range(50):
        made = Toolset.of(f"Made{number}", tool_search(), tool(ping, deferred=True))
        assert made.loaded_tools(transcript) == ()
        toolsets.append(weakref.ref(made))
        del made
    gc.collect()
    assert sum(each() is not None for each in toolsets) <= 16
    assert names(ManyTools.loaded_tools(said_with(found("forecast")))) == ["forecast"]


@over(
    "output", ['"forecast"', "{}", '{"forecast": 1}', "null", "3", '[{"name": "forecast"}]', "[[]]"]
)
def test_a_result_of_another_form_loads_nothing(output: str) -> None:
    """An edited or forged result is no failure: what is no list of names counts for none."""
    result = ToolResult(id="s1", name="search_tools", arguments="{}", result=output)
    assert ManyTools.loaded_tools(said_with(result)) == ()


def test_what_the_model_reads_loads_nothing() -> None:
    """The output counts, and not the message: whatever a cap or a hook makes of the latter."""
    result = found(message="You can call forecast.")
    assert ManyTools.loaded_tools(said_with(result)) == ()
    assert names(ManyTools.loaded_tools(said_with(found("forecast", message="…")))) == ["forecast"]


@over("wrong", [3, None, "items", ManyTools, Transcript, [3], [{"role": "tool"}]])
def test_what_is_no_conversation_is_refused(wrong: Any) -> None:
    """Loaded tools are read from a transcript, a session or items; all else is a misuse."""
    with pytest.raises(MisuseError):
        ManyTools.loaded_tools(wrong)


@over(
    "available, expected",
    [
        (None, [*ON, "forecast", "crm_find_customer"]),
        (ToolAvailability.default(), [*ON, "forecast", "crm_find_customer"]),
        (ToolAvailability.default_plus([]), [*ON, "forecast", "crm_find_customer"]),
        (
            ToolAvailability.default_plus(["crm_find_customer", "crm_drop_database"]),
            ["ping", "crm_drop_database", "search_tools", "crm_find_customer", "forecast"],
        ),
        (
            ToolAvailability.default_plus([ManyTools.crm]),
            ["ping", "crm_drop_database", "search_tools", *DEFERRED],
        ),
        (["ping"], ["ping"]),
        (["forecast", "ping", "crm_refund_order"], ["ping", "forecast", "crm_refund_order"]),
        (ToolAvailability.only(["forecast"]), ["forecast"]),
        (ToolAvailability.all(), names(ManyTools)),
        (ManyTools.default_selectors(), ON),
    ],
)
def test_loaded_tools_are_offered_last(available: Any, expected: list[str]) -> None:
    """Tools that are on come first, then what was named, then what was loaded, in that order.

    An offer that names all its tools is that exactly.
    """
    transcript = said_with(found("forecast", "crm_find_customer"))
    assert offered(ManyTools, available, transcript) == expected


def test_without_a_session_the_order_is_the_same() -> None:
    """`default_plus(loaded)` offers what a session offers, so that both have the same prefix."""
    transcript = said_with(found("forecast"), found("crm_find_customer"))
    available = ToolAvailability.default_plus(ManyTools.loaded_tools(transcript))
    alone = turn_of(ManyTools).available_tools(available).request()
    assert alone.tools == turn_of(ManyTools, transcript).request().tools


def test_a_toolset_without_a_search_loads_nothing() -> None:
    """Deferred tools that nothing can find are offered by name only."""
    made = Toolset.of("Silent", tool(ping, deferred=True))
    transcript = said_with(found("ping"))
    assert made.loaded_tools(transcript) == ()
    assert offered(made, transcript=transcript) == []
    assert offered(made, ["ping"], transcript) == ["ping"]
