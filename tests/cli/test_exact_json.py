"""JSON that is written as it was read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.cli._exact_json import exact_text, read_exact
from lutum_py.cli._screen import Failure

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    VALUES,
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.booleans(),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_the_usual_layouts_survive(value: Any, indent: Any, ascii_only: bool, end: str) -> None:
    """What Python's own encoder writes, in any indentation, is written again byte for byte."""
    # Without a nested value the layout cannot be seen, and without an escape that one is wanted.
    value = {"é": [value, value], "nested": {"a": 1, "b": ["c", "d"]}}
    data = (json.dumps(value, indent=indent, ensure_ascii=ascii_only) + end).encode(
        "utf-8", "surrogatepass"
    )
    read, style = read_exact(data, "it")
    assert exact_text(read, style).encode() == data


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10,"b":1e400,"c":-0,"d":12345678901234567890123,"e":0.1000000000000000055}',
        '{"a": 1.10, "b": {}, "c": [], "d": [{"e": 1E+2}, {}]}',
        "[" + "9" * 5000 + "]",
        '[true,false,null,"\\ud800",""]',
        '{\r\n  "a": [\r\n    1,\r\n    2\r\n  ]\r\n}\r\n',
        '"text"\n',
        '["é", "\\ud800"]',
    ],
)
def test_numbers_and_lines_keep_their_text(text: str) -> None:
    """Numbers that Python would round, line ends and lone surrogates come out as they went in."""
    value, style = read_exact(text.encode(), "it")
    assert exact_text(value, style) == text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"not json", "it is no JSON: Expecting value"),
        (b'{"a": NaN}', "NaN is not a value that JSON has"),
        (b'{"a": 1, "b": 2, "a": 3}', "an object has the key 'a' twice"),
        (b'["\xff"]', "it is no UTF-8 text (byte 2)"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_is_no_json_is_told(data: bytes, told: str) -> None:
    """Everything that cannot be read exactly is refused, and the reason is given."""
    with pytest.raises(Failure) as error:
        read_exact(data, "it")
    assert told in str(error.value)
