"""Patterns of JSON schemas, which are ECMAScript's, on the engine of pydantic in Rust.

They are foreign: a server writes them. Python's `re` reads another language, and takes exponential
time for some; Rust's engine takes linear time for all that it reads. It has neither lookaround nor
back references, and refuses what would be too large: such a pattern is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

_WORD: Final = "0-9A-Za-z_"
_SPACE: Final = r"\t\n\x0B\x0C\r\u{FEFF}\u{2028}\u{2029}\p{Zs}"
_CLASSES: Final = {"d": "0-9", "w": _WORD, "s": _SPACE}
# What an escape means in both languages; a letter that is none of these means itself.
_SAME: Final = frozenset("fnrtvxupPkB123456789")
_OUTSIDE: Final = {".": r"[^\n\r\u{2028}\u{2029}]", "{": r"\{", "}": r"\}"}
_PAIR: Final = r"\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)"
_TOKEN: Final = rf"{_PAIR}|\\c[A-Za-z]|\\[pPu]\{{[^}}]*\}}|\\.|\{{\d+(?:,\d*)?\}}|."


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool] | None:
    r"""Return what tells whether a pattern is found in a text; None if it cannot be checked.

    >>> matcher(r"^\p{L}+$")("née"), matcher(r"(?=a)")
    (True, None)
    """
    try:
        schema = core_schema.str_schema(pattern=_in_rust(pattern), regex_engine="rust-regex")
        found: Callable[[str], bool] = SchemaValidator(schema).isinstance_python
    except (SchemaError, ValueError):
        return None
    return found


def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; yes where that cannot be checked."""
    search = matcher(pattern)
    return search is None or search(text)


def _in_rust(pattern: str) -> str:
    """Write a pattern of ECMAScript as Rust reads it."""
    made: list[str] = []
    is_class = False
    for found in re.finditer(_TOKEN, pattern, re.DOTALL):
        token = found[0]
        if token[0] == "\\" and len(token) > 1:
            made.append(_escape(found, is_class))
        elif is_class:
            is_class = token != "]"
            # Rust has classes in classes, and operators between them.
            is_dash = token == "-" and made[-1] in ("[", "-")
            made.append(f"\\{token}" if token in "[&~" or is_dash else token)
        else:
            is_class = token == "["
            made.append(_OUTSIDE.get(token, token))
    text = "".join(made)
    return text.replace("[^]", r"[\s\S]").replace("[]", r"[^\s\S]")


def _escape(found: re.Match[str], is_class: bool) -> str:
    token, kind = found[0], found[0][1]
    if found[1] is not None:
        return chr(0x10000 + (int(found[1], 16) % 1024 << 10) + int(found[2], 16) % 1024)
    if kind.lower() in _CLASSES:
        inner = _CLASSES[kind.lower()]
        if is_class and kind.islower():
            return inner
        return f"[{'^' * kind.isupper()}{inner}]"
    if kind == "c" and len(token) == 3:
        return f"\\x{ord(token[2]) % 32:02X}"
    if kind == "0":
        return r"\x00"
    if kind == "b":
        return r"\x08" if is_class else r"(?-u:\b)"
    if kind == "B":
        return r"(?-u:\B)"
    if kind.isalpha() and kind.isascii() and kind not in _SAME:
        return kind
    return token if kind.isascii() else kind
