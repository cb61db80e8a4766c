"""Saved transcripts: every fault is found, and what can be mended is."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    Message,
    TextItem,
    ToolCallItem,
    ToolMetadata,
    ToolResult,
    Transcript,
)
from lutum_py._transcript.transcript_json import dump_transcript
from lutum_py.cli._transcript_rules import check_transcript, repair_transcript
from lutum_py.errors import TranscriptError

from .conftest import Lutum


def turn(*ids: str) -> AssistantTurn:
    calls = [ToolCallItem(ToolMetadata(id=id, name="f", arguments="{}")) for id in ids]
    return AssistantTurn(items=calls or [TextItem("Done.")])


def result(id: str, name: str = "f", arguments: str = "{}") -> ToolResult:
    return ToolResult(id=id, name=name, arguments=arguments, result="1")


GOOD: dict[str, Any] = json.loads(
    dump_transcript(
        [
            Message("user", "Go"),
            turn("a", "b"),
            result("a"),
            result("b"),
            turn(),
            turn("c"),
            result("c"),
        ]
    )
)
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


@pytest.mark.parametrize("case", SPOILED)
def test_faults_are_found_and_mended(case: str) -> None:
    """Each fault is told where it stands; a mended transcript loads, one that is not is refused."""
    items, expected, is_mended = SPOILED[case]
    value = {**GOOD, "items": items}
    before = copy.deepcopy(value)
    assert [(v.position, v.rule) for v in check_transcript(value)] == expected
    with pytest.raises(TranscriptError):
        Transcript.load_json(json.dumps(value))
    mended, changes = repair_transcript(value)
    assert value == before
    if is_mended:
        assert [(c.position, c.rule) for c in changes] == expected
        assert check_transcript(mended) == []
        Transcript.load_json(json.dumps(mended))
    else:
        assert changes == []
        assert mended == value


@given(st.lists(st.sampled_from([ASK, CALLS, A, B, SAID, CALL, C]), max_size=9))
def test_clean_is_what_loads(items: list[Any]) -> None:
    """A transcript has no violation exactly where it can be loaded, and a repair makes it so."""
    value = {**GOOD, "items": items}
    try:
        Transcript.load_json(json.dumps(value))
    except TranscriptError:
        assert check_transcript(value)
    else:
        assert check_transcript(value) == []
        assert repair_transcript(value) == (value, [])
    mended, _ = repair_transcript(value)
    assert check_transcript(mended) == []
    Transcript.load_json(json.dumps(mended))


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
    mended = lutum("repair", "broken.json", "-o", "out.json")
    assert mended.code == 1
    assert "added a result of the status `indeterminate`" in mended.err
    assert "Not repaired: 1 violation\n\nitems[4]  damaged_item" in mended.err
    left = lutum("repair", "-", stdin=json.dumps({**GOOD, "items": [DAMAGED]}).encode())
    assert left.code == 1
    assert "nothing was repaired" in left.err
