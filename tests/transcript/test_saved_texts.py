"""The laws of `lutum_py.saved`: texts are read, judged and repaired without the tools."""

from __future__ import annotations

import json

import pytest

from lutum_py import Message, Session, Transcript, Usage
from lutum_py.errors import PlanError, TranscriptError
from lutum_py.saved import (
    PLAN,
    SESSION,
    examine,
    open_saved,
    read_plan,
    repair,
    seal_in_words,
    whole_entry,
)
from tests.round_tools import Shop, adds, opened, turn


def test_a_saved_plan_is_read_without_its_tools() -> None:
    """A plan shows its turn, and each call with its arguments and how it stands."""
    text = opened(*adds(2)).plan().dump_json()
    said, calls = read_plan(open_saved(text, PLAN))
    assert [call.id for call in said.tool_calls] == ["c0", "c1"]
    assert (calls.about, [entry.place for entry in calls.entries]) == ("2 pending", ["c0", "c1"])


def test_the_seal_of_a_saved_text_is_judged_without_its_key() -> None:
    """An edited text is refused; of one with a key it says that nobody can know."""
    session = Session(id="s1")
    text = Shop.dump_session(session)
    assert "this session was saved with" in seal_in_words(open_saved(text, SESSION))
    with pytest.raises(PlanError, match="This session was edited"):
        seal_in_words(open_saved(text.replace("s1", "s2"), SESSION))
    sealed = Shop.dump_session(session, key=b"secret")
    assert "sealed with a key" in seal_in_words(open_saved(sealed, SESSION))


def test_a_repair_leaves_no_fault_that_can_be_repaired() -> None:
    """What `repair` gives loads; a call that had no result has one of an unknown outcome."""
    value = json.loads(Transcript().dump_json())
    value["items"] = [{"type": "assistant", "items": [{"type": "tool_call", **CALL}]}]
    items, faults = examine(value)
    assert (len(items), [fault.rule for fault in faults]) == (1, ["call_without_result"])
    fixed, repaired = repair(value)
    assert repaired == faults
    assert examine(fixed)[1] == []
    assert Transcript.load_json(json.dumps(fixed))[1].status == "indeterminate"  # type: ignore[union-attr]
    assert len(value["items"]) == 1


CALL = {"id": "c1", "name": "add", "arguments": "{}"}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (3, "it is 3"),
        ({"format": "lutum_py.plan"}, "its `format` is 'lutum_py.plan'"),
        ({"format": "lutum_py.transcript", "version": 2}, "has format version 2"),
        ({"format": "lutum_py.transcript", "version": 1}, "items: it is missing"),
    ],
)
def test_only_a_saved_transcript_is_examined(value: object, why: str) -> None:
    """Anything else than the JSON of a transcript is refused, with what it is."""
    for function in (examine, repair):
        with pytest.raises(TranscriptError, match=why):
            function(value)


def test_an_item_is_shown_whole() -> None:
    """An item of a file is shown with all that it holds, a turn with what it cost."""
    message = whole_entry(3, Message("user", "Hello"))
    assert (message.place, message.who, message.parts[0].text) == ("3", "user", "Hello")
    usage = Usage(input_tokens=1200, output_tokens=30)
    assert usage.in_words == "tokens 1,200 in, 30 out"
    assert Usage().in_words == ""
    assert whole_entry(0, turn(*adds(1))).parts[1].text.startswith("{")
