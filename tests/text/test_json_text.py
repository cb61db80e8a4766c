"""Laws of JSON text that hold for any data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lutum_py._text.json import (
    MOST_DIGITS,
    compact_json,
    digest_of,
    has_long_number,
    short_digest_of,
)

TEXTS = st.text(st.characters(exclude_categories=())) | st.none()


@given(TEXTS, st.integers(), TEXTS)
def test_a_short_digest_is_the_head_of_the_digest(one: Any, number: int, two: Any) -> None:
    """Whatever the parts are, halves of surrogate pairs and long numbers too."""
    whole = digest_of([one, number, two]).removeprefix("sha256:")
    assert short_digest_of(one, number, two) == whole[:24]


def test_a_circle_is_refused_as_one() -> None:
    """Data that holds itself is no JSON, and what is nested deeply is told apart from it."""
    circle: list[Any] = []
    circle.append({"a": circle})
    with pytest.raises(ValueError, match="Circular"):
        compact_json(circle)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        compact_json(deep)


@given(
    st.integers(0, MOST_DIGITS * 2),
    st.integers(MOST_DIGITS - 3, MOST_DIGITS + 3),
    st.integers(0, MOST_DIGITS * 2),
)
@example(1, MOST_DIGITS + 1, 0)
@example(MOST_DIGITS, MOST_DIGITS + 1, MOST_DIGITS)
def test_a_long_number_is_found_wherever_it_stands(before: int, digits: int, after: int) -> None:
    """A run of more digits than Python reads is found, and no shorter one."""
    text = b"a" * before + b"7" * digits + b"b" * after
    assert has_long_number(text) == (digits > MOST_DIGITS)


def test_a_text_with_short_numbers_is_not_gone_through_for_a_long_one() -> None:
    """Of a large text a few bytes are looked at, however many digits are in it."""

    class Watched(bytes):
        def translate(self, *given: object) -> bytes:
            raise AssertionError("All of it was gone through.")

    numbers = " ".join(map(str, range(10**9, 10**9 + 10_000)))
    assert not has_long_number(Watched(numbers.encode()))
