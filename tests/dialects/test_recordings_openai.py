"""OpenAI's two dialects against recorded traffic of real hosts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from lutum_py._text.json import compact_json
from lutum_py._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
)
from lutum_py.dialects import openai_chat, openai_responses, sse
from lutum_py.errors import DialectError
from tests.profiles import scaled

from .openai_recorded import DIALECTS, answer, whole
from .recordings import Recording, answered, chunks_of, recordings, report


def streamed(one: Recording) -> bool:
    return answered(one) and one.stream and not one.error_event


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


WRITTEN_BY_PEOPLE = ("arguments", "attributes", "metadata", "parameters", "schema")


def full_of_nulls(value: Any, free: bool = False) -> Any:
    """What a careless dump of an SDK object looks like: fields that the host never sent."""
    if isinstance(value, dict):
        inner = {
            key: full_of_nulls(item, free or key in WRITTEN_BY_PEOPLE)
            for key, item in value.items()
        }
        return inner if free else {**inner, "field_of_a_newer_sdk": None}
    return [full_of_nulls(item, free) for item in value] if isinstance(value, list) else value


def read(dialect: ModuleType, chunks: Iterable[bytes | str]) -> tuple[list[StreamEvent], Any]:
    decoder = dialect.StreamDecoder()
    events = [event for each in sse.events(chunks) for event in decoder.feed(each)]
    events += decoder.close()
    return events, decoder.finish()


@DIALECTS
def test_every_recorded_response_decodes(dialect: ModuleType) -> None:
    """A response with status 200 becomes a turn of which text and calls are what was sent."""
    found = recordings(dialect.NAME, whole)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        calls, text = said(dialect, one.response)
        assert [(call.name, call.arguments) for call in turn.tool_calls] == calls, one.id
        assert turn.text == text, one.id
        assert turn.model == one.response["model"]
        assert (turn.usage is None) == (one.response.get("usage") is None)
        good += 1
    report(dialect.NAME, "recorded responses decoded", good, len(found))


def said(dialect: ModuleType, response: Any) -> tuple[list[tuple[str, str]], str]:
    if dialect is openai_chat:
        message = response["choices"][0]["message"]
        listed = [
            (call["function"]["name"], call["function"].get("arguments", ""))
            for call in message.get("tool_calls") or ()
        ]
        return listed, message.get("content") or ""
    calls = [
        # The search for tools has no name there, and an object for arguments.
        ("tool_search", compact_json(item["arguments"]))
        if item["type"] == "tool_search_call"
        else (item["name"], item["arguments"])
        for item in response["output"]
        if item["type"] == "function_call" or item.get("execution") == "client"
    ]
    parts = [part for item in response["output"] for part in item.get("content") or ()]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    return calls, text


@DIALECTS
def test_a_careless_dump_decodes_to_the_same_turn(dialect: ModuleType) -> None:
    """Null fields that only an SDK object has change nothing of a turn, its payload included."""
    found = recordings(dialect.NAME, whole)
    good = sum(
        dialect.decode(full_of_nulls(one.response)) == dialect.decode(one.response) for one in found
    )
    report(dialect.NAME, "careless dumps decoded to the same turn", good, len(found))


@DIALECTS
def test_every_sdk_object_decodes_to_the_same_turn(dialect: ModuleType) -> None:
    """What the official SDK makes of a response decodes as the response itself, however dumped."""
    found = recordings(dialect.NAME, whole)
    model: Any = sdk_types(dialect)[0]
    good = 0
    for one in found:
        made = model.construct(**copy.deepcopy(one.response))
        turn = dialect.decode(one.response)
        assert dialect.decode(made.to_dict()) == turn, one.id
        assert dialect.decode(made.model_dump(mode="json", by_alias=True, warnings=False)) == turn
        good += 1
    report(dialect.NAME, "SDK objects decoded to the same turn", good, len(found))


def sdk_types(dialect: ModuleType) -> tuple[Any, Any]:
    """The SDK's types of a response and of one item of a request."""
    from openai.types import chat, responses

    if dialect is openai_chat:
        return chat.ChatCompletion, chat.ChatCompletionMessageParam
    return responses.Response, responses.ResponseInputItemParam


@DIALECTS
def test_every_replayed_round_fits_the_request_types_of_the_sdk(dialect: ModuleType) -> None:
    """A recorded turn and results for its calls are what the official SDK says can be sent."""
    found = recordings(dialect.NAME, lambda one: answered(one) and not one.error_event)
    adapter = TypeAdapter(sdk_types(dialect)[1])
    good = 0
    for one in found:
        whole_turn = dialect.decode if not one.stream else lambda raw: read(dialect, [raw])[1]
        turn = whole_turn(one.response)
        for item in dialect.messages([turn, *map(answer, turn.tool_calls)]):
            exhaust(adapter.validate_python(item))
        good += 1
    report(dialect.NAME, "replayed rounds that fit the SDK's types", good, len(found))


def exhaust(value: Any) -> None:
    """Go through what pydantic validates only when it is iterated."""
    inner = value.values() if isinstance(value, dict) else value
    for each in () if isinstance(inner, str) or not hasattr(inner, "__iter__") else inner:
        exhaust(each)


@DIALECTS
def test_every_assistant_turn_replays_exactly(dialect: ModuleType) -> None:
    """What goes back of a turn is what came, less what the hosts refuse to take back."""
    found = recordings(dialect.NAME, whole)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        replayed = dialect.messages([turn])
        assert without_nulls(replayed) == without_nulls(acceptable(dialect, one.response)), one.id
        json.dumps(replayed)
        good += 1
    report(dialect.NAME, "turns replayed exactly", good, len(found))


def acceptable(dialect: ModuleType, response: Any) -> list[Any]:
    response = copy.deepcopy(response)
    if dialect is openai_responses:
        for item in response["output"]:
            if item["type"] == "reasoning":
                item.pop("status", None)
        return list(response["output"])
    message = response["choices"][0]["message"]
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
    for call in message.get("tool_calls", ()):
        call.pop("custom", None)
    for call in message.get("tool_calls", ()):
        call["function"].setdefault("arguments", "{}")
        call.setdefault("type", "function")
    for key, filled in (("function_call", "name"), ("audio", "id")):
        if not (message.get(key) or {}).get(filled):
            message.pop(key, None)
    return [message]


@DIALECTS
def test_every_stream_decodes_to_what_its_events_say(dialect: ModuleType) -> None:
    """A stream's turn has the text and the calls that its raw events spell out."""
    found = recordings(dialect.NAME, streamed)
    good = 0
    for one in found:
        events, turn = read(dialect, chunks_of(one.response, []))
        text, arguments, reason = spelled(dialect, one.response)
        assert turn.text == text == joined(events, TextDelta), one.id
        assert [call.arguments for call in turn.tool_calls] == arguments, one.id
        assert turn.reasoning == joined(events, ReasoningDelta), one.id
        assert turn.finish_reason == reason
        check_events(events, turn)
        assert dialect.decode(turn.payload) == turn
        good += 1
    report(dialect.NAME, "streams decoded", good, len(found))


def joined(events: list[StreamEvent], kind: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def check_events(events: list[StreamEvent], turn: Any) -> None:
    assert isinstance(events[-1], TurnFinished)
    assert [type(event) for event in events].count(TurnFinished) == 1
    assert events[-1].turn == turn
    started = [(event.id, event.name) for event in events if isinstance(event, CallStarted)]
    assert started == [(call.id, call.name) for call in turn.tool_calls]
    completed = [event.metadata for event in events if isinstance(event, CallCompleted)]
    assert completed == list(turn.tool_calls)
    for index, call in enumerate(turn.tool_calls):
        deltas = [e for e in events if isinstance(e, ArgumentsDelta) and e.index == index]
        assert "".join(delta.text for delta in deltas) == call.arguments
        assert not deltas or deltas[-1].partial == json.loads(call.arguments)


def spelled(dialect: ModuleType, raw: str) -> tuple[str, list[str], str | None]:
    """Read a stream in the plainest way: line by line, delta by delta."""
    lines = [line[6:] for line in raw.splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    text = ""
    arguments: dict[int, str] = {}
    reason = None
    for event in events:
        if dialect is openai_responses:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.function_call_arguments.done":
                arguments[event["output_index"]] = event["arguments"]
            elif event["type"] == "response.completed":
                reason = event["response"]["status"]
            continue
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
            for call in choice["delta"].get("tool_calls") or ():
                before = arguments.get(call["index"], "")
                arguments[call["index"]] = before + call["function"]["arguments"]
    return text, list(arguments.values()), reason


@DIALECTS
@settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_chunk_boundaries_change_nothing(dialect: ModuleType, data: st.DataObject) -> None:
    """However the bytes of a stream are cut, its events and its turn are the same."""
    found = recordings(dialect.NAME, streamed)
    one = data.draw(st.sampled_from(found), label="stream")
    cuts = data.draw(st.lists(st.integers(0, 200_000), max_size=60), label="cuts")
    assert read(dialect, chunks_of(one.response, cuts)) == read(
        dialect, chunks_of(one.response, [])
    )


@DIALECTS
def test_every_stream_survives_being_cut_small(dialect: ModuleType) -> None:
    """Every recorded stream decodes to the same turn in chunks of any one size."""
    found = recordings(dialect.NAME, streamed)
    good = 0
    for one in found:
        turn = read(dialect, chunks_of(one.response, []))[1]
        length = len(one.response.encode())
        sizes = (13, 509)
        cut = (list(range(0, length, size)) for size in sizes)
        good += all(read(dialect, chunks_of(one.response, cuts))[1] == turn for cuts in cut)
    report(dialect.NAME, "streams decoded in small chunks", good, len(found))


@DIALECTS
def test_every_stream_that_breaks_off_says_so(dialect: ModuleType) -> None:
    """A stream that stops before its end is an error that holds what had been read."""
    found = recordings(dialect.NAME, streamed)
    good = 0
    for one in found:
        events = list(sse.events([one.response]))
        decoder = dialect.StreamDecoder()
        read_so_far = [event for each in events[: len(events) // 2] for event in decoder.feed(each)]
        with pytest.raises(DialectError) as caught:
            decoder.finish()
        turn: Any = caught.value.turn
        assert caught.value.where
        assert turn.text == joined(read_so_far, TextDelta), one.id
        assert turn.payload is None
        good += 1
    report(dialect.NAME, "broken streams reported", good, len(found))


def test_the_recorded_error_event_is_an_error() -> None:
    """An error event in the middle of a stream ends it, with the reasoning that came before."""
    found = recordings(openai_chat.NAME, lambda one: one.error_event)
    for one in found:
        with pytest.raises(DialectError, match="Tool call validation failed") as caught:
            read(openai_chat, chunks_of(one.response, []))
        turn: Any = caught.value.turn
        assert caught.value.where.startswith("event ")
        assert turn.reasoning.startswith("We need to call the tool")
        assert turn.tool_calls == ()
    report(openai_chat.NAME, "error events reported", len(found), 1)


@DIALECTS
def test_every_error_body_is_an_error(dialect: ModuleType) -> None:
    """The body of a refused request never becomes a turn."""
    found = recordings(dialect.NAME, lambda one: one.status != 200)
    good = 0
    for one in found:
        with pytest.raises(DialectError, match="the provider reports an error"):
            dialect.decode(one.response)
        good += 1
    report(dialect.NAME, "error bodies reported", good, len(found))
