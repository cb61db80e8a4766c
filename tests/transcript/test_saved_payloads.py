"""What loads, renders: a saved turn and its payload say the same, or the text is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn, CommittedRound, Message, ToolMetadata, Transcript, TurnRequest
from lutum_py.errors import DialectError, MisuseError, TranscriptError
from tests.cases import over
from tests.dialects.every_dialect import as_response
from tests.dialects.wire_laws import EACH
from tests.round_tools import forged


def saved(dialect: ModuleType) -> dict[str, Any]:
    """Save a conversation with one round, whose turn the dialect decoded."""
    calls = [ToolMetadata(id=each, name="add", arguments='{"a":1,"b":2}') for each in ("c1", "c2")]
    said = dialect.messages([AssistantTurn(text="So", tool_calls=calls)])
    turn = dialect.decode(as_response(dialect, said))
    transcript = Transcript()
    transcript.push(Message("user", "Add"))
    results = [forged(call) for call in turn.tool_calls]
    transcript.append_round(CommittedRound(turn, results))
    data: dict[str, Any] = json.loads(transcript.dump_json())
    return data


def dropped_call(data: dict[str, Any]) -> None:
    del data["items"][1]["items"][2]
    del data["items"][3]


def renamed_call(data: dict[str, Any]) -> None:
    data["items"][1]["items"][2]["name"] = data["items"][3]["name"] = "subtract"


def other_text(data: dict[str, Any]) -> None:
    data["items"][1]["items"][0]["text"] = "No"


def other_arguments(data: dict[str, Any]) -> None:
    data["items"][1]["items"][2]["arguments"] = data["items"][3]["arguments"] = '{"a":1,"b":3}'


def edited_payload(data: dict[str, Any]) -> None:
    turn = data["items"][1]
    turn["payload"] = json.loads(json.dumps(turn["payload"]).replace('"So"', '"No"'))


def empty_payload(data: dict[str, Any]) -> None:
    data["items"][1]["payload"] = {}


def other_dialect(data: dict[str, Any]) -> None:
    own = data["items"][1]["dialect"]
    data["items"][1]["dialect"] = (
        "anthropic_messages" if own != "anthropic_messages" else "openai_chat"
    )


@EACH
@over(
    "edit, said",
    [
        (dropped_call, "its payload makes"),
        (renamed_call, "its payload makes"),
        (other_text, "another text than its payload"),
        (edited_payload, "another text than its payload"),
        (other_arguments, "call '.*' of the turn has other arguments"),
        (empty_payload, "not a response of the turn's dialect"),
        (other_dialect, "not a response of the turn's dialect"),
    ],
)
def test_a_turn_that_contradicts_its_payload_is_refused(
    dialect: ModuleType, edit: Callable[[Any], None], said: str
) -> None:
    """A saved turn is refused whose payload says or asks anything else, or is not its dialect's."""
    data = saved(dialect)
    edit(data)
    with pytest.raises(TranscriptError, match=rf"at \$\.items\[1\]\.payload: .*{said}"):
        Transcript.load_json(json.dumps(data))


@EACH
def test_what_loads_renders(dialect: ModuleType) -> None:
    """What was saved loads and makes the same request; half a pair in its payload is repaired."""
    data = saved(dialect)
    whole = Transcript.load_json(json.dumps(data))
    body = dialect.encode_request(TurnRequest(items=whole))
    assert dialect.check(body) == []
    data["items"][1]["payload"]["x"] = "\ud83d"
    loaded = Transcript.load_json(json.dumps(data))
    assert dialect.encode_request(TurnRequest(items=loaded)) == body
    assert loaded[1].payload["x"] == "\ufffd"  # type: ignore[union-attr]


ODD: dict[str, Any] = {
    "x": None,
    "parsed": {"a": 1},
    "parsed_arguments": {"a": 1},
    "parsed_output": 1,
    "_request_id": "r1",
    "sdk_http_response": {},
    "thoughtSignature": "a-b_c",
}
"""What a payload is kept without, or under another name: at some places, of some dialects."""


def with_something_odd(value: Any, odd: tuple[str, Any]) -> Iterator[Any]:
    """Give copies of plain data, each with the same odd entry in one of its objects."""
    keys: list[Any] = list(value) if value.__class__ is dict else [*range(len(value))]
    if value.__class__ is dict:
        yield dict([*value.items(), odd])
    for key in keys:
        if value[key].__class__ in (dict, list):
            for changed in with_something_odd(value[key], odd):
                made = value.copy()
                made[key] = changed
                yield made


def decoded(dialect: ModuleType, payload: Any) -> AssistantTurn | None:
    """Give the turn of a response; None for what is none."""
    try:
        turn: AssistantTurn = dialect.decode(payload)
    except DialectError:
        return None
    return turn


@EACH
def test_a_saved_payload_is_read_as_a_response(dialect: ModuleType) -> None:
    """A saved payload makes the turn that `decode` makes of it, or it is refused; so is it kept."""
    data = saved(dialect)
    turn = data["items"][1]
    calls = dialect.decode(turn["payload"]).tool_calls
    for odd in ODD.items():
        for payload in with_something_odd(turn["payload"], odd):
            said = decoded(dialect, payload)
            items = [data["items"][0], {**turn, "payload": payload}, *data["items"][2:]]
            text = json.dumps({**data, "items": items})
            if said is not None and said.tool_calls == calls:
                assert Transcript.load_json(text)[1] == said
            else:
                with pytest.raises(TranscriptError, match=r"at \$\.items\[1\]\.payload: "):
                    Transcript.load_json(text)


@EACH
@over(
    "odd, said",
    [
        ("1e400", "inf is nothing that JSON can carry"),
        ("[" * 202 + "]" * 202, "nested more deeply than 200 levels"),
    ],
)
def test_a_saved_payload_that_cannot_be_sent_is_refused(
    dialect: ModuleType, odd: str, said: str
) -> None:
    """What `decode` refuses of a response is refused of a saved payload."""
    data = saved(dialect)
    data["items"][1]["payload"]["x"] = "odd"
    with pytest.raises(TranscriptError, match=rf"at \$\.items\[1\]\.payload: .*{said}"):
        Transcript.load_json(json.dumps(data).replace('"odd"', odd))


@over("dialect", [None, "my_own", "sse", "_wire", "..models", "no-name"])
def test_a_payload_of_no_dialect_is_kept(dialect: str | None) -> None:
    """What is no dialect of the library's is not asked: its payload is kept as it is."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(text="x", dialect=dialect, payload={"a": 1}))
    assert Transcript.load_json(transcript.dump_json()) == transcript


def test_a_payload_that_no_dialect_replays_is_kept() -> None:
    """A payload that is no object goes to nobody, so that it is kept with any dialect."""
    transcript = Transcript()
    for payload, shown in (([1], "<1 entries>"), (1, "<int>")):
        transcript.append_turn(AssistantTurn(text="x", dialect="openai_chat", payload=payload))
        assert f"payload={shown}" in repr(transcript[-1])
    assert Transcript.load_json(transcript.dump_json()) == transcript


def test_a_turn_that_contradicts_its_payload_is_refused_when_it_is_made() -> None:
    """No plan can have such a turn: it could not be committed to anything that goes on."""
    call = ToolMetadata(id="c1", name="add", arguments='{"a":1,"b":2}')
    with pytest.raises(MisuseError, match="the payload is not a response of openai_chat"):
        AssistantTurn(tool_calls=[call], dialect="openai_chat", payload={"choices": []})
