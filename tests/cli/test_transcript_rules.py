"""Saved transcripts: every fault is found, and what can be repaired is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Transcript
from lutum_py.errors import TranscriptError

from .conftest import Lutum


def turn(*ids: str) -> dict[str, Any]:
    calls = [{"type": "tool_call", "id": id, "name": "f", "arguments": "{}"} for id in ids]
    return {"type": "assistant", "items": calls or [{"type": "text", "text": "Done."}]}


def result(id: str) -> dict[str, Any]:
    call = {"id": id, "name": "f", "arguments": "{}"}
    return {"type": "tool_result", **call, "result": "1", "status": "success"}


GOOD: dict[str, Any] = {
    "format": "lutum_py.transcript",
    "version": 1,
    "items": [
        {"type": "message", "role": "user", "text": "Go"},
        turn("a", "b"),
        result("a"),
        result("b"),
        turn(),
        turn("c"),
        result("c"),
    ],
}
ITEMS: list[Any] = GOOD["items"]
ASK, CALLS, A, B, SAID, CALL, C = ITEMS
DAMAGED = {"type": "message", "role": "nobody", "text": ""}
TWINS = {**CALLS, "items": [CALLS["items"][0], CALLS["items"][0]]}

SPOILED: dict[str, tuple[list[Any], list[tuple[str, str]], bool]] = {
    "dropped": ([ASK, CALLS, B], [("items[1].tool_calls[0]", "call_without_result")], True),
    "at the end": ([ASK, CALL], [("items[1].tool_calls[0]", "call_without_result")], True),
    "doubled": ([*ITEMS, C], [("items[7]", "duplicate_result")], True),
    "orphan": ([ASK, A], [("items[1]", "orphan_result")], True),
    "before its call": (
        [C, CALL],
        [("items[0]", "orphan_result"), ("items[1].tool_calls[0]", "call_without_result")],
        True,
    ),
    "swapped": (
        [CALLS, B, A],
        [("items[1]", "results_out_of_order"), ("items[2]", "results_out_of_order")],
        True,
    ),
    "late": ([CALLS, A, SAID, B], [("items[3]", "misplaced_result")], True),
    "other name": ([CALL, {**C, "name": "g"}], [("items[1].name", "result_of_other_call")], True),
    "other arguments": (
        [CALL, {**C, "arguments": '{"x":1}'}],
        [("items[1].arguments", "result_of_other_call")],
        True,
    ),
    "same id in two turns": (
        [CALL, CALL, C],
        [("items[0].tool_calls[0]", "call_without_result")],
        True,
    ),
    "damaged": ([DAMAGED], [("items[0]", "damaged_item")], False),
    "no item": ([3], [("items[0]", "damaged_item")], False),
    "twins": ([TWINS, A, A], [("items[0].tool_calls[1]", "duplicate_call_id")], False),
}


Found = list[tuple[str, str]]


def check(lutum: Lutum, value: Any) -> Found:
    """The places and rules of what `check` finds."""
    ran = lutum("check", "-", "--json", stdin=json.dumps(value).encode())
    report = json.loads(ran.out)
    assert (ran.code, report["clean"]) == (int(bool(report["violations"])), ran.code == 0)
    return [(each["position"], each["rule"]) for each in report["violations"]]


def repair(lutum: Lutum, value: Any) -> tuple[Any, Found]:
    """What `repair` makes of a transcript, and the places and rules of its changes."""
    ran = lutum("repair", "-", "--json", stdin=json.dumps(value).encode())
    changes = json.loads(ran.err)["changes"]
    return json.loads(ran.out), [(each["position"], each["rule"]) for each in changes]


def test_faults_are_found_and_repaired(lutum: Lutum) -> None:
    """Each fault is told where it stands; a repaired transcript loads, one that is not is
    refused.
    """
    for case, (items, expected, is_repaired) in SPOILED.items():
        value = {**GOOD, "items": items}
        assert check(lutum, value) == expected, case
        with pytest.raises(TranscriptError):
            Transcript.load_json(json.dumps(value))
        repaired, changes = repair(lutum, value)
        if is_repaired:
            assert changes == expected, case
            assert check(lutum, repaired) == [], case
            Transcript.load_json(json.dumps(repaired))
        else:
            assert (changes, repaired) == ([], value), case


def test_clean_is_what_loads(lutum: Lutum) -> None:
    """A transcript has no violation exactly where it can be loaded, and a repair makes it so."""

    @given(st.lists(st.sampled_from(ITEMS), max_size=9))
    def law(items: list[Any]) -> None:
        value = {**GOOD, "items": items}
        found = check(lutum, value)
        repaired, changes = repair(lutum, value)
        try:
            Transcript.load_json(json.dumps(value))
        except TranscriptError:
            assert found
        else:
            assert (found, repaired, changes) == ([], value, [])
        assert check(lutum, repaired) == []
        Transcript.load_json(json.dumps(repaired))

    law()


def test_the_commands_take_a_transcript(lutum: Lutum, tmp_path: Path) -> None:
    """A transcript is recognised; with a dialect its request is checked as well."""
    (tmp_path / "good.json").write_text(json.dumps(GOOD), encoding="utf-8")
    broken = {**GOOD, "items": [ASK, CALLS, B, DAMAGED]}
    (tmp_path / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    good = lutum("check", "good.json")
    assert (good.code, good.out) == (0, "`good.json` (transcript): clean\n")
    rendered = lutum("check", "good.json", "--dialect", "anthropic_messages")
    assert rendered.code == 0
    assert "(transcript, for anthropic_messages): clean" in rendered.out
    found = lutum("check", "broken.json", "--dialect", "openai_chat")
    assert found.code == 1
    assert "items[1].tool_calls[0]  call_without_result" in found.out
    assert "items[3]  damaged_item" in found.out
    repaired = lutum("repair", "broken.json")
    assert repaired.code == 1
    assert "added a result of the status `indeterminate`" in repaired.err
    assert "Not repaired: 1 violation\n\nitems[4]  damaged_item" in repaired.err
    left = lutum("repair", "-", stdin=json.dumps({**GOOD, "items": [DAMAGED]}).encode())
    assert left.code == 1
    assert "nothing was repaired" in left.err
