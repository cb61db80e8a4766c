"""The laws of making a script simpler: it still fails, and nothing more can be taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutum_py import AssistantTurn
from lutum_py.testing import ScriptedModel
from lutum_py.testing._loop.simpler import simplest

LAST = ScriptedModel.text("Done.")
Script = tuple[AssistantTurn, ...]


def least(fails: Callable[[list[Any]], bool], *turns: AssistantTurn) -> list[Any]:
    """The calls of the simplest script, turn by turn, as triples."""

    def shown(script: Script) -> list[Any]:
        return [
            [(call.id, call.name, call.arguments) for call in turn.tool_calls]
            for turn in script[:-1]
        ]

    found = simplest((*turns, LAST), lambda script: fails(shown(script)), "tool".__eq__)
    assert found[-1] is LAST
    assert fails(shown(found))
    return shown(found)


def call(*arguments: Any, name: str = "tool", **options: Any) -> AssistantTurn:
    return ScriptedModel.tool_calls(
        *[(f"id{at}", name, given) for at, given in enumerate(arguments)], **options
    )


CASES: list[tuple[Any, str, str]] = [
    ({"a": 1, "b": [1, 2, {"c": "text"}]}, "c", '{"b":[{"c":""}]}'),
    ({"a": "some long text with an x"}, "x", '{"a":"some long text with an x"}'),
    ({"a": "longer"}, '"a":"a"', '{"a":"a"}'),
    ({"a": "longer"}, '"a":"', '{"a":""}'),
    ({"a": 12345}, '"a":', '{"a":0}'),
    ({"a": 12345}, '"a":1', '{"a":1}'),
    ({"a": True}, '"a":', '{"a":false}'),
    ({"a": None}, '"a":', '{"a":null}'),
    ({"a": [7, 8]}, "[", '{"a":[]}'),
    ({"a": [7, 8]}, "8", '{"a":[8]}'),
    ({"a": 1}, "{", "{}"),
    ("not json at all", "n", "n"),
    ("not json at all", "", "{"),
    ("{", "", "{"),
]


def test_arguments_lose_what_is_not_needed() -> None:
    """Fields, entries, texts and numbers shrink as long as what matters is left."""
    for given, kept, expected in CASES:

        def holds(turns: list[Any], kept: str = kept) -> bool:
            return any(kept in each[2] for calls in turns for each in calls)

        (((_, _, arguments),),) = least(holds, call(given))
        assert arguments == expected, (given, kept)


def test_turns_and_calls_go_first() -> None:
    """Turns and calls that do not matter are dropped, and the ids are numbered anew."""
    turns = least(
        lambda turns: sum(len(calls) for calls in turns) >= 2,
        call({"a": 1}, {"b": 2}, {"c": 3}),
        call({"d": 4}, text="Hm", finish_reason="length"),
    )
    assert turns == [[("c1", "tool", "{}"), ("c2", "tool", "{}")]]


def test_what_is_said_beside_the_calls_goes_too() -> None:
    """Text goes or becomes one letter, and the finish reason becomes the usual one."""
    given = (call({}, text="Let me look", finish_reason="length"), LAST)
    plain = simplest(given, lambda script: len(script) == 2, "tool".__eq__)
    assert plain == (ScriptedModel.tool_calls(("c1", "tool", "{}")), LAST)
    said = simplest(given, lambda script: bool(script[0].text) and len(script) == 2, "tool".__eq__)
    assert said[0].text == "a"


def test_odd_ids_and_names_stay_odd() -> None:
    """An id that comes twice stays so, an empty one where it matters; odd names become short."""
    twice = ScriptedModel.tool_calls(("x", "tool", {}), ("x", "tool", {}), ("", "tool", {}))

    def three(turns: list[Any]) -> bool:
        return turns != [] and len(turns[0]) == 3

    def with_empty(turns: list[Any]) -> bool:
        return three(turns) and turns[0][2][0] == ""

    first_two = [("c1", "tool", "{}")] * 2
    assert least(three, twice) == [[*first_two, ("c2", "tool", "{}")]]
    assert least(with_empty, twice) == [[*first_two, ("", "tool", "{}")]]
    assert least(lambda turns: turns != [], call({}, name="no such tool")) == [[("c1", "x", "{}")]]


def test_the_search_ends() -> None:
    """A condition that holds for everything ends with the last turn alone, soon."""
    tried: list[int] = []

    def always(script: Script) -> bool:
        tried.append(1)
        return True

    turns = [call(*[{"a": "x" * 50}] * 3) for _ in range(10)]
    assert simplest((*turns, LAST), always, "tool".__eq__) == (LAST,)
    assert len(tried) == 10
    tried.clear()

    def never(script: Script) -> bool:
        tried.append(1)
        return False

    huge = (call({f"k{at}": "x" for at in range(2000)}), LAST)
    assert simplest(huge, never, "tool".__eq__) == huge
    assert len(tried) == 1000
