"""JSON that is written as it was read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py.dialects import openai_chat

from .conftest import Lutum

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
UNANSWERED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=VALUES,
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    ascii_only=st.booleans(),
    end=st.sampled_from(["", "\n", "\r\n"]),
)
def test_the_usual_layouts_survive(
    lutum: Lutum, value: Any, indent: Any, ascii_only: bool, end: str
) -> None:
    """What Python's own encoder writes, in any indentation, is written again byte for byte."""
    # Without a nested value the layout cannot be seen, and without an escape that one is wanted.
    nested = {"é": [value, value], "nested": {"a": 1, "b": ["c", "d"]}}
    body: Any = {"metadata": nested, "messages": [UNANSWERED]}

    def written(data: Any) -> str:
        return json.dumps(data, indent=indent, ensure_ascii=ascii_only) + end

    ran = lutum("repair", "-", stdin=written(body).encode())
    repaired, changes = openai_chat.repair(body)
    assert (ran.code, ran.out) == (0, written(repaired))
    assert changes


TURN = json.dumps(UNANSWERED, separators=(",", ":"))
SPACED = json.dumps(UNANSWERED)
LINES = json.dumps({"metadata": [1, 2], "messages": [UNANSWERED]}, indent=2)
LAST, _, CLOSING = LINES.replace("\n", "\r\n").rpartition("\r\n  ]")
KEPT = [
    (
        (
            '{"metadata":{"a":1.10,"b":1e400,"c":-0,"d":12345678901234567890123,'
            f'"e":0.1000000000000000055}},"messages":[{TURN}'
        ),
        "]}",
    ),
    (
        (
            '{"metadata": {"a": 1.10, "b": {}, "c": [], "d": [{"e": 1E+2}, {}]}, '
            f'"messages": [{SPACED}'
        ),
        "]}",
    ),
    (f'{{"metadata":[{"9" * 5000}],"messages":[{TURN}', "]}"),
    (f'{{"metadata":[true,false,null,"\\u00e9",""],"messages":[{TURN}', "]}"),
    (LAST, f"\r\n  ]{CLOSING}\r\n"),
    (f'{{"metadata":"text","messages":[{TURN}', "]}\n"),
    (f'{{"metadata": ["é", ""], "messages": [{SPACED}', "]}"),
]
"""What stands before and behind the result that a repair adds."""


def test_numbers_and_lines_keep_their_text(lutum: Lutum) -> None:
    """Numbers that Python would round, and line ends, come out as they went in."""
    for before, after in KEPT:
        ran = lutum("repair", "-", stdin=(before + after).encode())
        assert ran.code == 0, (before, ran.err)
        assert ran.out.startswith(before + ","), (before, ran.out)
        assert ran.out.endswith(after), (before, ran.out)
        added = ran.out[len(before) + 1 : -len(after)]
        assert json.loads(added)["role"] == "tool", (before, added)
        assert (", " in added, "\r\n" in added) == (SPACED in before, before == LAST), added


def test_lone_surrogates_keep_their_escape(lutum: Lutum) -> None:
    """Half of a surrogate pair, which a dialect would replace, stays in a saved transcript."""
    call = {"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}
    turn = {"type": "assistant", "items": [call]}
    items = [{"type": "message", "role": "user", "text": "HERE"}, turn]
    saved = json.dumps({"format": "lutum_py.transcript", "version": 1, "items": items})
    for words in ("\\ud800", "é\\ud800"):
        text = saved.replace("HERE", words)
        before, after = text[:-2], text[-2:]
        ran = lutum("repair", "-", stdin=text.encode())
        assert ran.code == 0, (words, ran.err)
        assert ran.out.startswith(before + ', {"'), (words, ran.out)
        assert ran.out.endswith(after), (words, ran.out)


NO_JSON = {
    b"": "is empty",
    b" \n": "is empty",
    b"not json": "is not JSON: Expecting value",
    b'{"a": NaN}': "NaN is not a value that JSON has",
    b'{"a": 1, "b": 2, "a": 3}': "an object has the key 'a' twice",
    b'["\xff"]': "is not UTF-8 text (byte 2)",
    b"[" * 100_000: "is nested too deeply",
}


def test_what_is_no_json_is_told(lutum: Lutum) -> None:
    """Everything that cannot be read exactly is refused, and the reason is given."""
    for data, told in NO_JSON.items():
        ran = lutum("check", "-", stdin=data)
        assert (ran.code, ran.out) == (2, ""), data[:40]
        assert ran.err.startswith("lutum: standard input "), (data[:40], ran.err)
        assert told in ran.err, (data[:40], ran.err)
