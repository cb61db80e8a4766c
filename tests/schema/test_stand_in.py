"""What goes out for names that a provider refuses."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from lutum_py._text.names import OwnNames, is_plain, own_name, stand_in

# As they stand in conversations that were sent before: none of these may ever change.
PROMISED = {
    "no such tool!": "no_such_tool_f2391f29c3c4",
    "math.factorial": "math_factorial_ad6b7ebf6789",
    "": "tool_12ae32cb1ec0",
    "9 lives": "tool_9_lives_e0f163108945",
    "日本": "tool_ac3da3e9f3bc",
    "x" * 500: f"{'x' * 48}_c1c39929e0a8",
    "a.b": "a_b_12734df70e88",
    "a b": "a_b_5e229e245c3e",
    "é_a": "a_cfce97a2bdc3",
    "__x y": "x_y_9845ed5c93d9",
    "_" * 70: "tool_e7f1b083585e",
    "0" * 70: f"tool_{'0' * 43}_e68ca7cf48f5",
    "get_weather.v2 " * 9: "get_weather_v2_get_weather_v2_get_weather_v2_get_1a835fa216ee",
}


def test_a_stand_in_never_changes() -> None:
    """What went out for a name goes out for it in every release: conversations are saved by it."""
    assert {name: stand_in(name) for name in PROMISED} == PROMISED


@given(st.lists(st.text(max_size=80), unique=True, max_size=8))
@example(["a.b", "a b", "a_b", "a-b", " a.b", "A.b"])
def test_a_stand_in_leads_back_to_its_name(names: list[str]) -> None:
    """Of any names each has a stand-in of its own, which every provider takes and leads back."""
    made = [stand_in(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]{0,60}", each) for each in made)
    assert [own_name(each, names) for each in made] == names
    assert [*map(OwnNames(names).own, made)] == names
    assert [own_name(name, names) for name in names] == names
    assert all(map(is_plain, made))


def test_a_tools_own_name_wins() -> None:
    """A name that a tool has is that tool's, also where it is what stands for another."""
    assert own_name("a_b_12734df70e88", ["a.b", "a_b_12734df70e88"]) == "a_b_12734df70e88"
    assert own_name("a_b_12734df70e88", ["a b"]) == "a_b_12734df70e88"
    assert own_name("a_b_12734df70e88", []) == "a_b_12734df70e88"


def test_plain_names_are_those_that_every_provider_takes() -> None:
    """A letter first, then letters, digits and `_`, and no more of them than a stand-in has."""
    assert all(map(is_plain, ("a", "get_weather", "A1", "x" * 61)))
    assert not any(map(is_plain, ("", "_a", "1a", "a-b", "a.b", "é", "aé", "x" * 62, "a\n")))
