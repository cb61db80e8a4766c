"""What a model, a host or a user may send that is odd, and still has to be lived with."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st

HUGE: Final = 10**5_000 + 7
"""A whole number of more digits than Python writes without being asked to."""

TEXTS: Final = (
    *("", " ", "words", "é😀", "x" * 10_000),
    *("\ud83d", "\ude00", "cut \ud83d", "\ude00 off", "\ud83d\ude00", "\ude00\ud83d"),
    *("\x1b[2K\r", "\x1b]8;;http://x\x07link", "a\u202eb\u2066c", "\x00\x85\u2028\ufeff", "\n\n"),
    *("<script>", "{}", "null", '"', "`}{", "%s{0}"),
)
NAMES: Final = (
    *TEXTS,
    *("add", "pay", "no such.tool!", "Add", "add ", "a" * 64, "a" * 65),
    *("name", "definitions", "select", "read_turn", "HookSet", "mro", "__class__", "__init__"),
    *("class", "self", "input", "context", "_", "model_fields", "keys"),
)
ARGUMENTS: Final = (
    *("", " ", "{", "[1]", "null", "NaN", '"a"', "{}", '{"a":1,"b":2}', '{"a":"x"}', '{"a":1}x'),
    *('{"a":' + "9" * 5_000 + "}", '{"value":-' + "9" * 5_000 + "}", "9" * 5_000),
    *('{"a":1e999}', '{"a":NaN}', '{"value":1e308,"a":0.1}', '{"a":1,"a":2}', '{"__class__":1}'),
    *('{"value":"\\ud83d"}', '{"value":"\ud83d"}', '{"\\ude00":1}', '{"\ude00":1}'),
    *('{"value":"\\ud83d\\ude00"}', '{"value":"\\u001b[2K\\r\\u202e"}', '{"":{"":[]}}'),
    *('{"value":' + "[" * depth + "]" * depth + "}" for depth in (7, 190, 210, 900)),
    '{"value":"' + "x" * 10_000 + '"}',
)
DATA: Final[dict[str, Any]] = {
    **{text: json.loads(text) for text in ("null", "true", "0", "1.5", "[]", "{}")},
    **{f"{each}": float(each) for each in ("nan", "inf")},
    "huge": HUGE,
    "-huge": -HUGE,
    "[huge]": [HUGE],
    **{f"text {at}": text for at, text in enumerate(TEXTS)},
    **{f"text {at} in an object": {"a": text} for at, text in enumerate(TEXTS)},
    **{f"huge under text {at}": {text: HUGE} for at, text in enumerate(TEXTS)},
}
"""Data by name: Python does not even show the largest of them."""

NO_JSON: Final = frozenset(name for name in DATA if "huge" in name or name in ("nan", "inf"))
"""The data that no text of JSON carries to other programs."""

texts = st.sampled_from(TEXTS)
names = st.sampled_from(NAMES)
arguments = st.sampled_from(ARGUMENTS)
data = st.sampled_from([*DATA])
