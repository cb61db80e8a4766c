"""The laws of the small texts inside of messages: short, safe, and near what was meant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from lutum_py._schema.signature import type_name
from lutum_py._text.escaping import did_you_mean, names_for_message
from lutum_py._text.json import canonical_json, compact_json, copy_json, cut, digest_of, shorten
from tests.cases import over


class Grumpy:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@over(
    "value, shown",
    [
        ("x" * 200, repr("x" * 80) + "…"),
        ("short", "'short'"),
        ("\ud800", "'\\ud800'"),
        (list(range(9)), "an array of 9 items"),
        ({str(n): n for n in range(9)}, "an object with 9 keys"),
        ([1, "x"], "[1, 'x']"),
        ({"a": 1}, "{'a': 1}"),
        (["x" * 200], repr(["x" * 200])[:80] + "…"),
        (10**5000, "a value of type int"),
        (Grumpy(), "a value of type Grumpy"),
    ],
)
def test_any_value_can_be_shown(value: Any, shown: str) -> None:
    """Whatever came is shown in a bounded text, and never fails to be."""
    assert shorten(value) == shown


def test_texts_are_cut() -> None:
    """A text that is cut says so."""
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc…"


def test_types_are_shown_as_written() -> None:
    """A class is shown by its name, anything else as its author wrote it, without its marks."""
    assert type_name(int) == "int"
    assert type_name(list[int]) == "list[int]"
    assert type_name(Annotated[list[int], "x" * 500]) == "list[int]"
    assert len(type_name(Literal["x" * 500])) < 130


@over(
    "name, known, near",
    [
        ("web_serach", ["read", "web_search"], "web_search"),
        ("WebSearch", ["web-search"], "web-search"),
        ("get.user", ["get_user", "get user"], "get_user"),
        ("zzz", ["read"], None),
        ("x" * 1_000_000, ["x" * 64], "x" * 64),
        ("read", [], None),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], near: str | None) -> None:
    """A near name is suggested whatever its case and separators; a far one never."""
    assert did_you_mean(name, known) == near


def test_names_are_listed_up_to_a_limit() -> None:
    """Many names are counted beyond the first thirty."""
    assert names_for_message(["a", "b"]) == "`a`, `b`"
    assert names_for_message([]) == "none"
    assert names_for_message(map(str, range(40))).endswith("`29` and 10 more")


def test_json_is_compact_and_canonical() -> None:
    """Equal data has equal canonical text and digest, whatever its order."""
    assert compact_json({"b": [1, "ü"], "a": None}) == '{"b":[1,"ü"],"a":null}'
    assert canonical_json({"b": 1, "a": {"d": 1, "c": 2}}) == '{"a":{"c":2,"d":1},"b":1}'
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of("\ud800").startswith("sha256:")
    with pytest.raises(ValueError, match="Out of range float"):
        compact_json(float("nan"))
    copied = copy_json({"a": (1, [2])})
    assert copied == {"a": [1, [2]]}
