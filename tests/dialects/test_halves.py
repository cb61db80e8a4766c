"""Half of a surrogate pair, wherever a provider sends it, and the pair that comes in two deltas."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from lutum_py import AssistantTurn, Transcript
from lutum_py.streaming import ArgumentsDelta, CallCompleted, CallStarted, StreamEvent, TextDelta
from tests.cases import over
from tests.models.said import Said

from .every_dialect import wire_of
from .wire_laws import DIALECTS, goes_on


def fed(dialect: ModuleType, events: list[Any]) -> tuple[list[StreamEvent], AssistantTurn]:
    decoder = dialect.StreamDecoder()
    told = [each for event in events for each in decoder.feed(event)] + decoder.close()
    return told, decoder.finish()


def as_texts(told: list[StreamEvent], kind: type[TextDelta | ArgumentsDelta]) -> str:
    return "".join(each.text for each in told if isinstance(each, kind))


def cut(value: Any) -> Any:
    """Cut each character beyond the first plane in two halves, as a careless host does."""
    if isinstance(value, str):
        halves = value.encode("utf-16-le", "surrogatepass")
        return "".join(
            halves[at : at + 2].decode("utf-16-le", "surrogatepass")
            for at in range(0, len(halves), 2)
        )
    if isinstance(value, dict):
        return {cut(key): cut(item) for key, item in value.items()}
    return [cut(item) for item in value] if isinstance(value, list) else value


@DIALECTS
def test_halves_beside_each_other_are_the_character(dialect: ModuleType) -> None:
    """A response in which every pair came as its halves is the response with the characters."""
    whole = wire_of(dialect.NAME).response
    response = whole(
        Said(text="a\U0001f600", calls=(("c1", "add", {"a\U0001f600": "\U0001f601"}),))
    )
    assert dialect.decode(cut(response)) == dialect.decode(response)


@DIALECTS
def test_a_half_alone_is_replaced_wherever_it_stands(dialect: ModuleType) -> None:
    """Text, call id, name, argument keys and values, and the payload: none holds a half."""
    whole = wire_of(dialect.NAME).response
    call = ("c\ud83d", "add\ude00", {"a\ud83d": "\ude00"})
    turn = dialect.decode({**whole(Said(text="a\ud83d", calls=(call,))), "x\ud83d": "\ude00"})
    assert turn.text == "a\ufffd"
    (asked,) = turn.tool_calls
    assert asked.name == "add\ufffd"
    assert asked.arguments in ('{"a\ufffd":"\ufffd"}', r'{"a\ud83d": "\ude00"}')
    assert turn.payload["x\ufffd"] == "\ufffd"
    goes_on(turn)


@DIALECTS
def test_a_half_in_the_text_of_an_event_is_the_half_in_its_dict(dialect: ModuleType) -> None:
    """The escapes of a half, which the fast parser refuses, say what the dict with it says."""
    stream = wire_of(dialect.NAME).events
    events = stream(Said(text="ab\ud83d!"))
    written = [json.dumps(event) for event in events]
    assert any("\\ud83d" in text for text in written)
    assert fed(dialect, written) == fed(dialect, events)


@DIALECTS
def test_a_pair_that_comes_in_two_deltas_is_the_character(dialect: ModuleType) -> None:
    """The first half waits for the delta with the second: every delta can be shown, and together
    they are the text.
    """
    events = wire_of(dialect.NAME).events
    smile = "\U0001f600"
    told, turn = fed(dialect, events(Said(text="\ud83d\ude00")))  # cut in the middle
    assert [each.text for each in told if isinstance(each, TextDelta)] == [smile]
    assert turn.text == smile
    told, turn = fed(dialect, events(Said(text="ab\ud83d!")))
    assert as_texts(told, TextDelta) == turn.text == "ab\ufffd!"
    told, turn = fed(dialect, events(Said(text="\ud83d")))
    assert as_texts(told, TextDelta) == turn.text == "\ufffd"
    goes_on(turn)


@DIALECTS
@over(
    "pieces, text",
    [
        (['{"a":"\ud83d', '\ude00"}'], '{"a":"\U0001f600"}'),
        (['{"a":"\ud83d', '!"}'], '{"a":"\ufffd!"}'),
        (['{"a":"\ude00"}'], '{"a":"\ufffd"}'),
        (['{"a":"\ud83d'], '{"a":"\ufffd'),
    ],
)
def test_halves_in_streamed_arguments(dialect: ModuleType, pieces: list[str], text: str) -> None:
    """A half in argument text breaks no stream: it becomes the character, or U+FFFD."""
    told, turn = fed(dialect, wire_of(dialect.NAME).call_in_pieces(pieces))
    (asked,) = turn.tool_calls
    if dialect.NAME == "gemini_generate_content":
        assert "\ufffd" in asked.arguments or "\U0001f600" in asked.arguments
    else:
        assert asked.arguments == as_texts(told, ArgumentsDelta) == text
    assert [each.metadata for each in told if isinstance(each, CallCompleted)] == [asked]
    repr(told).encode()
    goes_on(turn)


def test_a_call_that_begins_can_be_shown() -> None:
    """What is told of a call before it is whole holds no half, either."""
    started = CallStarted(0, "c\ud83d", "f\ude00")
    assert (started.id, started.name) == ("c\ufffd", "f\ufffd")


@DIALECTS
def test_a_half_in_a_saved_payload_is_replaced(dialect: ModuleType) -> None:
    """A transcript that another program wrote with a half is loaded as the turn is decoded."""
    said = wire_of(dialect.NAME).response(Said(text="a"))
    transcript = Transcript()
    transcript.append_turn(dialect.decode({**said, "x": "half"}))
    loaded = Transcript.load_json(transcript.dump_json().replace("half", r"\ud83d"))
    (turn,) = loaded
    assert isinstance(turn, AssistantTurn)
    assert turn.payload["x"] == "\ufffd"
