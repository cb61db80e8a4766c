"""The dialects against recorded traffic of real hosts."""

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

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
    sse,
)
from lutum_py.errors import DialectError
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
)
from tests.profiles import scaled

from .plain import compact
from .recordings import (
    RECORDED_DIALECTS,
    answer,
    answered,
    chunks_of,
    recordings,
    report,
    streamed,
    whole,
)

DIALECTS = pytest.mark.parametrize("dialect", RECORDED_DIALECTS, indirect=True)
OF_OPENAI = pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"], indirect=True)

# What models and programs wrote: a null in it means something.
FREE = {
    "arguments",
    "attributes",
    "metadata",
    "parameters",
    "schema",
    "input",
    "args",
    "response",
    "input_schema",
    "parametersJsonSchema",
}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in FREE else without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def full_of_nulls(value: Any) -> Any:
    """What a careless dump of an SDK object looks like: fields that the host never sent."""
    if isinstance(value, dict):
        inner = {key: item if key in FREE else full_of_nulls(item) for key, item in value.items()}
        return {**inner, "field_of_a_newer_sdk": None}
    return [full_of_nulls(item) for item in value] if isinstance(value, list) else value


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
        assert turn.model == one.response.get("model", one.response.get("modelVersion"))
        usage = one.response.get("usage", one.response.get("usageMetadata"))
        assert (turn.usage is None) == (usage is None)
        assert turn.finish_reason or dialect is openai_chat  # some hosts say nothing
        good += 1
    report(dialect.NAME, "recorded responses decoded", good, len(found))


def said(dialect: ModuleType, response: Any) -> tuple[list[tuple[str, str]], str]:
    """Read calls and text of a whole response in the plainest way."""
    if dialect is anthropic_messages:
        blocks = response["content"]
        calls = [(b["name"], compact(b["input"])) for b in blocks if b["type"] == "tool_use"]
        return calls, "".join(block["text"] for block in blocks if block["type"] == "text")
    if dialect is gemini_generate_content:
        parts = response["candidates"][0]["content"]["parts"]
        found = [part["functionCall"] for part in parts if "functionCall" in part]
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        return [(call["name"], compact(call["args"])) for call in found], text
    if dialect is openai_chat:
        message = response["choices"][0]["message"]
        listed = [
            (call["function"]["name"], call["function"].get("arguments", ""))
            for call in message.get("tool_calls") or ()
        ]
        return listed, message.get("content") or ""
    calls = [
        # The search for tools has no name there, and an object for arguments.
        ("tool_search", compact(item["arguments"]))
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
        dialect.decode(full_of_nulls(one.response))
        == dialect.decode(without_nulls(one.response))
        == dialect.decode(one.response)
        for one in found
    )
    report(dialect.NAME, "careless dumps decoded to the same turn", good, len(found))


@OF_OPENAI
def test_every_openai_object_decodes_to_the_same_turn(dialect: ModuleType) -> None:
    """What OpenAI's SDK makes of a response decodes as the response itself, however dumped."""
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
    pytest.importorskip("openai", reason="openai is not installed: pip install -e '.[openai]'")
    from openai.types import chat, responses

    if dialect is openai_chat:
        return chat.ChatCompletion, chat.ChatCompletionMessageParam
    return responses.Response, responses.ResponseInputItemParam


def test_every_anthropic_object_decodes_to_the_same_turn() -> None:
    """What Anthropic's SDK makes of a response decodes as the response itself, however dumped."""
    model = pytest.importorskip(
        "anthropic.types.beta", reason="anthropic is not installed: pip install -e '.[anthropic]'"
    ).BetaMessage
    found = recordings(anthropic_messages.NAME, whole)
    good = 0
    for one in found:
        made = model.construct(**copy.deepcopy(one.response))
        turn = anthropic_messages.decode(one.response)
        assert anthropic_messages.decode(made.to_dict()) == turn, one.id
        dump = made.model_dump(mode="json", warnings=False)
        assert anthropic_messages.decode(dump) == turn, one.id
        good += 1
    report(anthropic_messages.NAME, "SDK objects decoded to the same turn", good, len(found))


def test_every_gemini_object_decodes_to_the_same_turn() -> None:
    """What Google's SDK makes of a response decodes alike with any keys, nulls and bytes."""
    model = pytest.importorskip(
        "google.genai.types", reason="google.genai is not installed: pip install -e '.[gemini]'"
    ).GenerateContentResponse
    found = recordings(gemini_generate_content.NAME, whole)
    good = 0
    for one in found:
        # The SDK drops fields that it does not know, so that the payload may hold less.
        made = model.model_validate(known_to(model, copy.deepcopy(one.response)))
        turn = gemini_generate_content.decode(one.response)
        dumps = (
            made.model_dump(mode="json", by_alias=True, exclude_none=True),
            made.model_dump(mode="json"),
            made.model_dump(),
        )
        turns = [gemini_generate_content.decode(dump) for dump in dumps]
        assert turns[0] == turns[1], one.id
        for each in turns:
            assert each.tool_calls == turn.tool_calls, one.id
            assert (each.text, each.usage) == (turn.text, turn.usage), one.id
            assert each.finish_reason == turn.finish_reason
            replayed = gemini_generate_content.messages([each])
            assert replayed == gemini_generate_content.messages([turn]), one.id
            json.dumps(replayed)
        good += 1
    report(gemini_generate_content.NAME, "SDK objects decoded alike", good, len(found))


def known_to(model: Any, response: Any) -> Any:
    """Leave out fields of a response that the installed SDK refuses to hold."""
    from pydantic import ValidationError

    try:
        model.model_validate(response)
    except ValidationError as refused:
        for error in refused.errors():
            holder = response
            for step in error["loc"][:-1]:
                holder = holder[step]
            holder.pop(error["loc"][-1])
    return response


@OF_OPENAI
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
    """Thinking, signatures and server tools go back in their order; some fields do not."""
    response = copy.deepcopy(response)
    if dialect is anthropic_messages:
        content = response["content"]
        return [{"role": "assistant", "content": content}] if content else []
    if dialect is gemini_generate_content:
        content = response["candidates"][0]["content"]
        return [content] if content["parts"] else []
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
        check_events(dialect, events, turn)
        assert dialect.decode(turn.payload) == turn
        good += 1
    report(dialect.NAME, "streams decoded", good, len(found))


def joined(events: list[StreamEvent], kind: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def check_events(dialect: ModuleType, events: list[StreamEvent], turn: Any) -> None:
    is_text = dialect in (openai_chat, openai_responses)
    assert isinstance(events[-1], TurnFinished)
    assert [type(event) for event in events].count(TurnFinished) == 1
    assert events[-1].turn == turn
    started = [(event.id, event.name) for event in events if isinstance(event, CallStarted)]
    assert started == [(call.id, call.name) for call in turn.tool_calls]
    completed = [event.metadata for event in events if isinstance(event, CallCompleted)]
    assert completed == list(turn.tool_calls)
    for index, call in enumerate(turn.tool_calls):
        deltas = [e for e in events if isinstance(e, ArgumentsDelta) and e.index == index]
        written = "".join(delta.text for delta in deltas)
        assert (written if is_text else object_of(written)) == call.arguments
        assert not deltas or deltas[-1].partial == json.loads(call.arguments)


def object_of(text: str) -> str:
    """Write arguments as a dialect does that has objects for them."""
    return compact(json.loads(text or "{}"))


def spelled(dialect: ModuleType, raw: str) -> tuple[str, list[str], str | None]:
    """Read a stream in the plainest way: line by line, delta by delta."""
    lines = [line[6:] for line in raw.splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    text = ""
    arguments: dict[Any, str] = {}
    reason = None
    for number, event in enumerate(events):
        if dialect is openai_responses:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.function_call_arguments.done":
                arguments[event["output_index"]] = event["arguments"]
            elif event["type"] == "response.completed":
                reason = event["response"]["status"]
        elif dialect is anthropic_messages:
            delta = event.get("delta", {})
            text += delta.get("text", "")
            reason = delta.get("stop_reason") or reason
            if event["type"] == "content_block_start":
                if event["content_block"]["type"] == "tool_use":
                    arguments[event["index"]] = ""
            elif event.get("index") in arguments:
                arguments[event["index"]] += delta.get("partial_json", "")
        elif dialect is gemini_generate_content:
            candidate = event["candidates"][0]
            reason = candidate.get("finishReason", reason)
            for place, part in enumerate(candidate["content"].get("parts", ())):
                text += part.get("text", "")
                if "functionCall" in part:
                    arguments[number, place] = json.dumps(part["functionCall"]["args"])
        else:
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
                for call in choice["delta"].get("tool_calls") or ():
                    before = arguments.get(call["index"], "")
                    arguments[call["index"]] = before + call["function"]["arguments"]
    if dialect in (anthropic_messages, gemini_generate_content):
        return text, [*map(object_of, arguments.values())], reason
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


def test_a_stream_as_a_json_array_decodes_alike() -> None:
    """Gemini's stream without server-sent events, an array of chunks, gives the same turn."""
    found = recordings(gemini_generate_content.NAME, streamed)
    good = 0
    for one in found:
        array = json.dumps(list(sse.events([one.response])), indent=1)
        pieces = chunks_of(array, list(range(0, len(array), 97)))
        turn = read(gemini_generate_content, chunks_of(one.response, []))[1]
        good += read(gemini_generate_content, pieces)[1] == turn
    report(gemini_generate_content.NAME, "streams decoded as arrays", good, len(found))


def test_the_recorded_error_event_is_an_error() -> None:
    """An error event in the middle of a stream ends it, with the reasoning that came before."""
    found = recordings(openai_chat.NAME, lambda one: one.error_event)
    good = 0
    for one in found:
        with pytest.raises(DialectError, match="Tool call validation failed") as caught:
            read(openai_chat, chunks_of(one.response, []))
        turn: Any = caught.value.turn
        assert caught.value.where.startswith("event ")
        assert turn.reasoning.startswith("We need to call the tool")
        assert turn.tool_calls == ()
        good += 1
    report(openai_chat.NAME, "error events reported", good, len(found))


@DIALECTS
def test_every_error_body_is_an_error(dialect: ModuleType) -> None:
    """The body of a refused request never becomes a turn."""
    found = recordings(dialect.NAME, lambda one: one.status != 200)
    good = 0
    for one in found:
        with pytest.raises(DialectError, check=lambda error: error.where == "error"):
            dialect.decode(one.response)
        good += 1
    report(dialect.NAME, "error bodies reported", good, len(found))
