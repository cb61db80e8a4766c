"""The laws of what is said of members: the innermost word counts."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import AssistantTurn, Session, ToolMetadata, Toolset, tool, tool_fn, toolset
from lutum_py.errors import MisuseError, ToolDefinitionError
from lutum_py.tools import MemoryResults, ResultCap


@tool_fn
def log() -> str:
    """Give a log."""
    return "log"


A, B, C, D = (ResultCap(400 + at) for at in range(4))
PLAIN = Toolset.of("Plain", log)["log"].options
UNSET: Any = PLAIN.result_cap


def cap_of(toolset: Any, name: str = "log") -> Any:
    return toolset[name].options.result_cap


def cuts(toolset: Any) -> bool:
    """Whether the model reads a part only of a long result of the tool."""
    call = ToolMetadata(id="c1", name="log", arguments="{}")
    outcome = toolset.read_turn(AssistantTurn(tool_calls=[call]))
    (made,) = outcome.round.tool_calls
    committed = outcome.round.commit(Session(), [made.complete("x" * 1000)])
    return len(committed.results[0].model_text) < 1000


def test_the_innermost_word_counts() -> None:
    """Of tool, its class, the group and the outer class the first that says anything decides."""
    wrong: list[Any] = []
    for said in product((UNSET, None, "cap"), repeat=4):
        caps = [
            own if word == "cap" else word for word, own in zip(said, (A, B, C, D), strict=True)
        ]
        of_tool, of_class, of_group, of_outer = caps

        class Inner(Toolset, result_cap=of_class):
            log = tool(log, result_cap=of_tool)

        class Outer(Toolset, result_cap=of_outer):
            inner = toolset(Inner, result_cap=of_group)

        first, last = (
            next((each for each in some if each is not UNSET), UNSET) for some in (caps[:2], caps)
        )
        found = (cap_of(Inner), cap_of(Outer), cuts(Outer))
        if found != (first, last, isinstance(last, ResultCap)):
            wrong.append((said, found))
    assert wrong == []


OPTIONS = st.fixed_dictionaries(
    {
        "off": st.booleans(),
        "prefix": st.sampled_from(["", "a_", "b_"]),
        "result_cap": st.sampled_from([UNSET, None, A, B]),
    }
)


@given(OPTIONS, OPTIONS, OPTIONS)
def test_what_is_said_of_groups_adds_up(one: Any, two: Any, three: Any) -> None:
    """Groups in groups: any is off, all prefixes stand before the name, the innermost cap holds."""

    class First(Toolset):
        log = tool(log)

    class Second(Toolset):
        group = toolset(First, **one)

    class Third(Toolset):
        group = toolset(Second, **two)

    class Fourth(Toolset):
        group = toolset(Third, **three)

    (made,) = Fourth
    said = (one, two, three)
    assert made.name == three["prefix"] + two["prefix"] + one["prefix"] + "log"
    assert made.is_off is any(each["off"] for each in said)
    caps = [each["result_cap"] for each in said if each["result_cap"] is not UNSET]
    assert made.options.result_cap is (caps[0] if caps else UNSET)


def test_the_word_of_a_class_is_inherited() -> None:
    """A toolset that inherits from one without members has its cap, unless it says otherwise."""

    class Base(Toolset, result_cap=A):
        pass

    class Same(Base):
        log = tool(log)

    class Lifted(Base, result_cap=None):
        log = tool(log)

    assert cap_of(Same) is A
    assert cap_of(Lifted) is None


def test_a_toolset_made_at_run_time_takes_options() -> None:
    """`Toolset.of` bounds what has no bound of its own, and is one class for one content."""
    made = Toolset.of(
        "Logs", log, tool(log.definition.with_name("own"), result_cap=B), result_cap=A
    )
    assert (cap_of(made), cap_of(made, "own")) == (A, B)
    assert Toolset.of("Logs", log, result_cap=A) is not Toolset.of("Logs", log)
    again = Toolset.of("Logs", log, result_cap=ResultCap(400))
    assert again is Toolset.of("Logs", log, result_cap=A)
    assert pickle.loads(pickle.dumps(again)) is again


def test_a_toolset_made_at_run_time_with_a_store_does_not_pickle() -> None:
    """A store is one object in one process, so the class that has it stays there too."""
    made = Toolset.of("Kept", log, result_cap=ResultCap(400, MemoryResults()))
    with pytest.raises(MisuseError):
        pickle.dumps(made)


def test_what_is_no_cap_is_refused() -> None:
    """A cap is a ResultCap or None, wherever it is said."""
    wrong: Any = 400
    make: Any = type(Toolset)
    expected = r"`result_cap=` takes a ResultCap or None, not 400. Write"
    for declare in (
        lambda: tool(log, result_cap=wrong),
        lambda: toolset(Toolset, result_cap=wrong),
        lambda: Toolset.of("Wrong", log, result_cap=wrong),
        lambda: make("Wrong", (Toolset,), {}, result_cap=wrong),
    ):
        with pytest.raises(ToolDefinitionError, match=expected):
            declare()


def test_what_was_not_said_shows_as_dots() -> None:
    """In a signature and in a representation, what was left out reads as such."""
    assert "result_cap=..., timeout=..., needs_approval=..." in repr(PLAIN)
