"""The laws of a saved transcript: it comes back exactly, or is told where it is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    Session,
    ToolMetadata,
    ToolResult,
    Transcript,
    Usage,
)
from lutum_py.errors import TranscriptError
from lutum_py.testing import assert_transcript_valid
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem, ToolCallItem
from tests.cases import over
from tests.round_tools import adds, any_text, check_transcript, done, forged, opened

# A program's own text is refused where no provider would take it; a model may send any.
sendable = st.text(max_size=20)
maybe_text = st.none() | any_text
maybe_sendable = st.none() | sendable
finite = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
files = st.lists(
    st.builds(
        Attachment,
        media_type=st.sampled_from(["image", "audio", "video", "file"]),
        mime_type=sendable,
        url=sendable.map("data:,{}".format),
        name=st.none() | sendable,
        caption=maybe_sendable,
        size=st.none() | st.integers(0),
    ),
    max_size=2,
).map(tuple)
messages = st.builds(Message, st.sampled_from(["system", "developer", "user"]), sendable, files)
metadata = st.builds(
    ToolMetadata,
    id=any_text,
    name=any_text,
    arguments=any_text | st.sampled_from(["NaN", '{"a": Infinity}', "null", "", '{"a": 1e999}']),
)
parts = (
    st.builds(TextItem, any_text)
    | st.builds(ReasoningItem, any_text)
    | st.builds(RefusalItem, any_text)
    | st.builds(ServerToolItem, any_text, st.dictionaries(any_text, finite, max_size=2))
    | st.builds(ToolCallItem, metadata)
)


def id_of(part: Any) -> object:
    return part.metadata.id if isinstance(part, ToolCallItem) else object()


counts = st.none() | st.integers(0)
turns = st.builds(
    AssistantTurn,
    items=st.lists(parts, max_size=5, unique_by=id_of),
    finish_reason=maybe_text,
    usage=st.none()
    | st.builds(Usage, input_tokens=counts, cached_tokens=counts, cache_write_tokens=counts),
    model=maybe_text,
    request_id=maybe_text,
    dialect=maybe_text,
    payload=finite,
    cut_off=st.sampled_from([None, "answer", "arguments"]),
)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Any transcript: any text anywhere, any status, any payload."""
    transcript = Transcript()
    for item in draw(st.lists(messages | turns, max_size=4)):
        if isinstance(item, Message):
            transcript.push(item)
            continue
        results = [
            ToolResult(
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                result=json.dumps(draw(st.none() | st.integers(-9, 9) | st.text(max_size=5))),
                status=draw(st.sampled_from(["success", "error", "rejected", "indeterminate"])),
                message=draw(maybe_sendable),
                attachments=draw(files),
                code=draw(maybe_sendable),
            )
            for call in item.tool_calls
        ]
        transcript.append_round(CommittedRound(item, results))
    return transcript


@given(transcripts())
def test_any_transcript_comes_back_equal(transcript: Transcript) -> None:
    """What is saved and loaded is the same transcript, to the last character, as ASCII text."""
    text = transcript.dump_json()
    assert text.isascii()
    assert Transcript.load_json(text) == transcript
    assert Transcript.load_json(text.encode()) == transcript
    assert Transcript.load_json(text).dump_json() == text


def test_a_rejection_of_a_broken_name_comes_back() -> None:
    """A rejection that repeats a lone surrogate of the model's is saved and loaded."""
    session = Session()
    opened(("u", "no\ud800pe", '{"a": "\udfff"}'), ("n", "add", '{"a": NaN}')).commit(session)
    check_transcript(session.transcript)


def test_a_split_pair_of_surrogates_is_joined() -> None:
    """Two surrogates that are one character come back as that character: JSON cannot part them."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text="\ud83d\ude00"))
    loaded = Transcript.load_json(transcript.dump_json())[0]
    assert loaded == AssistantTurn(text="\U0001f600")


def test_what_the_model_sent_is_saved_whatever_it_is() -> None:
    """Half of a surrogate pair in what no request carries is saved, loaded and still there."""
    half = "\udcff"
    transcript = Transcript()
    turn = AssistantTurn(
        model=half,
        request_id=half,
        finish_reason=half,
        payload={half: [half]},
    )
    transcript.append_turn(turn)
    assert Transcript.load_json(transcript.dump_json())[0] == turn


def test_a_stored_conversation_that_nobody_could_send_goes_on() -> None:
    """Half of a surrogate pair that was saved with a conversation is U+FFFD when it is loaded."""
    call = {"id": "c\udcff", "name": "f\udcff", "arguments": "\udcff"}
    result = {"type": "tool_result", **call, "result": "1", "status": "success", "code": None}
    items = [
        {"type": "message", "role": "user", "text": "a\udcff"},
        {"type": "assistant", "items": [{"type": "tool_call", **call}], "payload": None},
        {**result, "message": "\udcff"},
    ]
    saved = {"format": "lutum_py.transcript", "version": 1, "items": items}
    loaded: list[Any] = list(Transcript.load_json(json.dumps(saved)))
    (asked,) = loaded[1].tool_calls
    assert loaded[0].text == "a\ufffd"
    assert (asked.id, asked.name, asked.arguments) == ("c\ufffd", "f\ufffd", "\ufffd")
    assert (loaded[2].id, loaded[2].model_text) == ("c\ufffd", "\ufffd")


def test_the_stored_form() -> None:
    """The stored form has its format, its version, and one entry an item."""
    session = Session()
    session.push_user("Hi")
    tool_round = opened(*adds(1))
    tool_round.commit(session, done(tool_round.tool_calls))
    data = json.loads(session.transcript.dump_json())
    assert (data["format"], data["version"]) == ("lutum_py.transcript", 1)
    assert data["items"][0] == {"type": "message", "role": "user", "text": "Hi"}
    assert data["items"][1]["items"] == [
        {"type": "tool_call", "id": "c0", "name": "add", "arguments": '{"a":0,"b":0}'}
    ]
    assert [item["type"] for item in data["items"]] == ["message", "assistant", "tool_result"]


@pytest.mark.parametrize("payload", [object(), {"a": float("nan")}, {"b": b"bytes"}, {1j: 2}])
def test_what_is_not_json_is_not_saved(payload: Any) -> None:
    """A payload that is no JSON data is an error that says what may be stored."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text="Hi", payload=payload))
    with pytest.raises(TranscriptError, match=r"transcript holds something that is not JSON data"):
        transcript.dump_json()


def test_endless_nesting_is_not_saved() -> None:
    """A payload without a bottom is an error, and no crash."""
    payload: list[Any] = []
    payload.append(payload)
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text="Hi", payload=payload))
    with pytest.raises(TranscriptError):
        transcript.dump_json()


FOREIGN = {
    "": "not JSON",
    "garbage": "not JSON",
    '{"format": "lutum_py.transcript", "version": 1, "items": [': "not JSON",
    '{"format": "lutum_py.transcript", "version": 1, "items": [NaN]}': "NaN is not a value",
    "[" * 200_000: "not JSON",
    "[]": r"it is \[\]",
    "null": "it is None",
    "{}": r"`format` is None, not 'lutum_py.transcript'",
    '{"format": "lutum_py.plan", "version": 1}': r"`format` is 'lutum_py.plan'",
    '{"format": "lutum_py.transcript"}': "format version None; this release reads 1",
    '{"format": "lutum_py.transcript", "version": 2, "items": []}': "format version 2",
    '{"format": "lutum_py.transcript", "version": "1", "items": []}': "format version '1'",
    '{"format": "lutum_py.transcript", "version": true, "items": []}': "format version True",
    '{"format": "lutum_py.transcript", "version": 1}': r"at \$\.items: it is missing",
    '{"format": "lutum_py.transcript", "version": 1, "items": {}}': r"\$\.items: expected list",
    '{"format": "lutum_py.transcript", "version": 1, "items": [3]}': r"\$\.items\[0\]: expected",
}


@over("text", FOREIGN)
def test_what_is_no_transcript_is_refused(text: str) -> None:
    """Foreign, cut or future files are told apart, and the error says what was found."""
    with pytest.raises(TranscriptError, match=FOREIGN[text]):
        Transcript.load_json(text)


def test_bytes_that_are_no_text_are_refused() -> None:
    """A binary file is no transcript."""
    with pytest.raises(TranscriptError):
        Transcript.load_json(b"\x80\x81PNG")


def whole() -> dict[str, Any]:
    transcript = Transcript()
    file = Attachment(media_type="image", mime_type="image/png", url="data:", size=3)
    transcript.push(Message("user", "Hi", (file,)))
    call = ToolMetadata(id="c", name="add", arguments="{}")
    turn = AssistantTurn(
        items=[TextItem("Hm"), ServerToolItem("search", {}), ToolCallItem(call)],
        usage=Usage(input_tokens=1),
        payload={"id": "r"},
    )
    transcript.append_round(CommittedRound(turn, [forged(call)]))
    data: dict[str, Any] = json.loads(transcript.dump_json())
    return data


DAMAGE: dict[str, tuple[list[Any], Any, str]] = {
    "no type": ([0, "type"], None, r"items\[0\]\.type: expected str, got None"),
    "another type": ([0, "type"], "tool", r"items\[0\]\.type: 'tool' is none of"),
    "role": ([0, "role"], "assistant", r"items\[0\]\.role: 'assistant' is none of the known"),
    "unhashable role": ([0, "role"], [], r"items\[0\]\.role: expected str, got \[\]"),
    "text": ([0, "text"], 3, r"items\[0\]\.text: expected str, got 3"),
    "attachments": ([0, "attachments"], 3, r"items\[0\]\.attachments: expected list, got 3"),
    "size": (
        [0, "attachments", 0, "size"],
        True,
        r"\[0\]\.size: expected int, got True",
    ),
    "address": (
        [0, "attachments", 0, "url"],
        "a.png",
        r"\[0\]\.url: Attachment: `url` is neither an `https:` address nor a `data:` URL",
    ),
    "part": (
        [1, "items", 0, "type"],
        "x",
        r"items\[1\]\.items\[0\]\.type: 'x' is not a known part",
    ),
    "payload": ([1, "items", 1, "payload"], 3, r"items\[1\]\.items\[1\]\.payload: expected dict"),
    "usage": ([1, "usage"], [], r"items\[1\]\.usage: expected dict"),
    "tokens": ([1, "usage", "input_tokens"], "1", r"usage\.input_tokens: expected int"),
    "cut off": ([1, "cut_off"], "all", r"items\[1\]\.cut_off: 'all' is none of the known"),
    "result": ([2, "result"], "{", r"items\[2\]\.result: expected JSON text, got '{'"),
    "NaN": ([2, "result"], "NaN", r"items\[2\]\.result: expected JSON text, got 'NaN'"),
    "status": ([2, "status"], "done", r"items\[2\]\.status: 'done' is none of"),
}


@over("damage", DAMAGE)
def test_damage_is_told_by_its_place(damage: str) -> None:
    """A damaged entry is an error that says where it is, and what stands there."""
    path, value, message = DAMAGE[damage]
    data = whole()
    place = data["items"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(TranscriptError, match=message):
        Transcript.load_json(json.dumps(data))


@pytest.mark.parametrize("key", ["type", "role", "text"])
def test_a_missing_entry_is_told_by_its_place(key: str) -> None:
    """An entry that is gone is an error that says which."""
    data = whole()
    del data["items"][0][key]
    with pytest.raises(TranscriptError, match=rf"\$\.items\[0\]\.{key}: it is missing"):
        Transcript.load_json(json.dumps(data))


INVALID: dict[str, tuple[Any, str]] = {
    "no result": (
        lambda items: items[:2],
        r"items\[1\]\.tool_calls\[0\]: the call 'c' of `add` has no",
    ),
    "no call": (lambda items: [items[2]], r"items\[0\]: the result 'c' answers no call"),
    "a message between": (
        lambda items: [items[1], items[0], items[2]],
        r"items\[2\]: the result belongs right after items\[0\]",
    ),
    "two results": (lambda items: [*items, items[2]], r"items\[3\]: .* has a result already"),
    "another tool": (
        lambda items: [*items[:2], {**items[2], "name": "sub"}],
        r"items\[2\]\.name: the name of the result 'c' is not as in its call",
    ),
}


@over("case", INVALID)
def test_an_invalid_transcript_is_not_loaded(case: str) -> None:
    """A file that a provider would refuse as a conversation is refused, with the place."""
    change, message = INVALID[case]
    data = whole()
    data["items"] = change(data["items"])
    with pytest.raises(TranscriptError, match=f"would be invalid: .*{message}"):
        Transcript.load_json(json.dumps(data))


def saved_turn(*ids: str) -> tuple[AssistantTurn, dict[str, Any]]:
    calls = [{"id": each, "name": "add", "arguments": "{}"} for each in ids]
    entries = [{"type": "tool_call", **call} for call in calls]
    turn = AssistantTurn(tool_calls=[ToolMetadata(**call) for call in calls])
    return turn, {"type": "assistant", "items": entries}


def saved_result(id: str, arguments: str = "{}") -> tuple[ToolResult, dict[str, Any]]:
    fields: dict[str, Any] = {"id": id, "name": "add", "arguments": arguments, "result": "3"}
    return ToolResult(**fields), {"type": "tool_result", **fields, "status": "success"}


SAID = (Message("user", "Hi"), {"type": "message", "role": "user", "text": "Hi"})
TURNS = [saved_turn(*ids) for ids in ("", "a", "ab", "aa")]
RESULTS = [saved_result("a"), saved_result("b"), saved_result("a", '{"x": 1}')]


@given(st.lists(st.sampled_from([SAID, *TURNS, *RESULTS]), max_size=6))
def test_a_transcript_is_loaded_just_when_nothing_is_wrong_with_it(given: list[Any]) -> None:
    """Whatever stands in a file: it is loaded if it breaks no rule, else refused."""
    data = {**whole(), "items": [entry for _, entry in given]}
    try:
        assert_transcript_valid(tuple(item for item, _ in given))
    except AssertionError:
        with pytest.raises(TranscriptError, match="would be invalid"):
            Transcript.load_json(json.dumps(data))
    else:
        loaded = Transcript.load_json(json.dumps(data))
        assert [*loaded] == [item for item, _ in given]


def test_what_may_be_left_out_may_be_missing() -> None:
    """A turn without usage, payload and names is loaded with None in their places."""
    data = whole()
    for key in ("usage", "payload", "model", "request_id", "finish_reason", "dialect"):
        del data["items"][1][key]
    transcript = Transcript.load_json(json.dumps(data))
    loaded = transcript[1]
    assert isinstance(loaded, AssistantTurn)
    assert (loaded.usage, loaded.payload, loaded.model) == (None, None, None)
    assert json.loads(transcript.dump_json())["items"][1]["usage"] is None


def test_calls_of_one_id_are_refused_though_each_has_a_result() -> None:
    """Nobody could tell the results of two calls apart that a turn gave one id."""
    session = Session()
    made = opened(("c0", "add", {"a": 1}), ("c1", "add", {"a": 1}))
    made.commit(session, done(made.tool_calls))
    text = session.transcript.dump_json()
    with pytest.raises(TranscriptError, match="share the id 'c0'"):
        Transcript.load_json(text.replace('"c1"', '"c0"'))
