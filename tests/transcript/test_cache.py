"""The laws of what a request says of the provider's cache: a value, and one that can be kept."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.turns import Cache
from tests.cases import over


@given(st.booleans(), st.booleans(), st.integers(0, 6))
def test_no_request_has_more_markers_than_are_taken(tools: bool, system: bool, turns: int) -> None:
    """A cache is made just where its markers are four at most."""
    if tools + system + turns <= 4:
        cache = Cache(tools=tools, system=system, turns=turns)
        assert pickle.loads(pickle.dumps(cache)) == cache
        assert hash(cache) == hash(Cache(tools, system, turns))
    else:
        with pytest.raises(
            InvalidValueError, match=f"and {turns} turns are .* markers, and Anth"
        ) as e:
            Cache(tools=tools, system=system, turns=turns)
        assert f"tools={tools}, system={system} and" in str(e.value)


@over(
    "fields, expected",
    [
        ({"tools": 1}, "True or False for `tools`"),
        ({"system": None}, "True or False for `system`"),
        ({"turns": -1}, "a whole number, 0 or more for `turns`"),
        ({"turns": True}, "a whole number, 0 or more for `turns`"),
        ({"covers": 1.5}, "a whole number, 0 or more for `covers`"),
        ({"ttl": 3600}, "a text or None for `ttl`"),
        ({"key": b"k"}, "a text or None for `key`"),
        ({"retention": 24}, "a text or None for `retention`"),
        ({"content": []}, "a text or None for `content`"),
    ],
)
def test_a_field_of_another_type_is_refused(fields: dict[str, Any], expected: str) -> None:
    """Each field names itself where it is of another type."""
    with pytest.raises(MisuseError, match=re.escape(f"Cache takes {expected}")):
        Cache(**fields)


def test_what_means_nothing_is_refused() -> None:
    """An unknown ttl, no name, and items of no content are refused where they are said."""
    with pytest.raises(InvalidValueError):
        Cache(ttl="2h")
    with pytest.raises(InvalidValueError):
        Cache(covers=3)
    with pytest.raises(InvalidValueError):
        Cache(content=" ")
