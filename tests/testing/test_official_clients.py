"""The laws of a scripted client that official clients ask, over their own HTTP packages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from lutum_py import AssistantTurn, Finished, Message, NeedsTools, Session
from lutum_py.dialects import DIALECTS, openai_chat
from lutum_py.errors import MissingExtraError, MisuseError
from lutum_py.models import Anthropic, Bedrock, Gemini, OpenAIChat, OpenAIResponses
from lutum_py.testing import (
    LoopFailure,
    ScriptedClient,
    ScriptedModel,
    ScriptedStream,
    check_loop,
)
from tests.dialects.every_dialect import KEYS

from .samples import Small

SCRIPT = [
    ScriptedModel.tool_calls(("c1", "forecast", {"city": "Oslo"}), text="Let me look."),
    ScriptedModel.text("Sunny in Oslo."),
]


def openai(scripted: ScriptedClient, *, is_async: bool = False) -> Any:
    sdk = pytest.importorskip("openai", reason="needs the extra openai")
    if is_async:
        return sdk.AsyncOpenAI(api_key="any", http_client=scripted.http_async_client())
    return sdk.OpenAI(api_key="any", http_client=scripted.http_client())


def anthropic(scripted: ScriptedClient, *, is_async: bool = False) -> Any:
    sdk = pytest.importorskip("anthropic", reason="needs the extra anthropic")
    if is_async:
        return sdk.AsyncAnthropic(api_key="any", http_client=scripted.http_async_client())
    return sdk.Anthropic(api_key="any", http_client=scripted.http_client())


def gemini(scripted: ScriptedClient, *, is_async: bool = False) -> Any:
    genai = pytest.importorskip("google.genai", reason="needs the extra gemini")
    options = genai.types.HttpOptions(
        httpx_client=scripted.http_client(), httpx_async_client=scripted.http_async_client()
    )
    client = genai.Client(api_key="any", http_options=options)
    return client.aio if is_async else client


def itself(scripted: ScriptedClient, *, is_async: bool = False) -> Any:
    return scripted


WIRES: dict[str, tuple[Callable[..., Any], Any]] = {
    "openai_chat": (openai, OpenAIChat),
    "openai_responses": (openai, OpenAIResponses),
    "anthropic_messages": (anthropic, Anthropic),
    "gemini_generate_content": (gemini, Gemini),
    "bedrock_converse": (itself, Bedrock),
}
wires = pytest.mark.parametrize("name", WIRES)


def asked() -> Session:
    session = Session()
    session.push_user("Oslo?")
    return session


def run(session: Session, model: Any, *, is_stream: bool) -> str:
    while True:
        turn = session.text_turn(model).tools(Small)
        match turn.stream_sync().collect() if is_stream else turn.collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished(result):
                return result.text


@wires
@pytest.mark.parametrize("is_stream", [False, True])
def test_an_official_client_is_answered(name: str, is_stream: bool) -> None:
    """A real SDK reads the responses and the streams of a script, over its own HTTP package."""
    make, model_type = WIRES[name]
    scripted = ScriptedClient(SCRIPT, name)
    session, model = asked(), model_type(make(scripted), "model-1")
    assert run(session, model, is_stream=is_stream) == "Sunny in Oslo."
    assert [type(item).__name__ for item in session.transcript] == [
        *("Message", "AssistantTurn", "ToolResult", "AssistantTurn")
    ]
    scripted.assert_exhausted()
    assert len(scripted.requests) == 2


@wires
@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_async_official_client_is_answered(name: str, is_stream: bool) -> None:
    """The same holds for the async clients."""
    make, model_type = WIRES[name]
    if make is itself:
        pytest.skip("boto3 has no async client")
    scripted = ScriptedClient(SCRIPT[1:], name)
    turn = asked().text_turn(model_type(make(scripted, is_async=True), "model-1"))
    outcome = await (turn.stream().collect() if is_stream else turn.collect())
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "Sunny in Oslo."


@wires
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_model_takes_the_scripted_client_itself(name: str, is_stream: bool) -> None:
    """No SDK is needed; of what goes out by way of google-genai, the body that is sent is noted."""
    scripted = ScriptedClient(SCRIPT, name)
    model = WIRES[name][1](scripted, "model-1")
    assert run(asked(), model, is_stream=is_stream) == "Sunny in Oslo."
    for request in scripted.requests:
        assert request.get("model", request.get("modelId")) == "model-1"
        assert request[KEYS[name]]
        assert request.keys() & {"tools", "toolConfig"}


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_async_model_takes_the_scripted_client_itself(is_stream: bool) -> None:
    """A client of google-genai is for sync and async code, and each closes its streams."""
    scripted = ScriptedClient(SCRIPT[1:], "gemini_generate_content")
    turn = asked().text_turn(Gemini(scripted, "model-1"))
    outcome = await (turn.stream().collect() if is_stream else turn.collect())
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "Sunny in Oslo."


@pytest.mark.parametrize("name", [name for name in WIRES if WIRES[name][0] is not itself])
def test_what_a_scripted_client_refuses_is_a_status_400(name: str) -> None:
    """An invalid request and a script at its end are errors of the SDK that say why; no retry."""
    make, model_type = WIRES[name]
    scripted = ScriptedClient([], name)
    with pytest.raises(Exception, match="The script has no turn for request 1") as caught:
        asked().text_turn(model_type(make(scripted), "model-1")).collect_sync()
    assert status_of(caught.value) == 400
    assert len(scripted.requests) == 1


def status_of(error: Exception | BaseException | None) -> Any:
    """Find the status of an SDK's error, which a model of ours may have wrapped."""
    while error is not None:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__
    return None


def test_an_invalid_request_is_a_bad_request() -> None:
    """What the rules of the provider forbid comes back as the SDK's own error, with the place."""
    sdk = pytest.importorskip("openai", reason="needs the extra openai")
    client = openai(ScriptedClient(SCRIPT, "openai_chat"))
    orphan = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    with pytest.raises(sdk.BadRequestError, match=r"HTTP 400.*messages\[0\]"):
        client.chat.completions.create(model="m", messages=[orphan])


def test_an_exception_in_the_script_is_the_connections() -> None:
    """What is raised in the place of a response is met where the connection is, so is retried."""
    errors: list[Exception] = []
    scripted = ScriptedClient(
        lambda body: errors.pop() if errors else ScriptedModel.text("Hi"), "openai_chat"
    )
    package = import_module(type(scripted.http_client()).__module__.partition(".")[0])
    errors.append(package.ConnectError("gone"))
    client = openai(scripted).with_options(max_retries=1)
    said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert said.choices[0].message.content == "Hi"
    assert len(scripted.requests) == 2


def test_an_official_helper_for_streams_gathers_a_refusal() -> None:
    """OpenAI's helper puts the pieces together, and fails where one is none of its part."""
    parts: list[dict[str, Any]] = [
        {"type": "output_text", "text": "Well, ", "annotations": []},
        {"type": "refusal", "refusal": "I will not."},
    ]
    message = {"type": "message", "id": "m1", "role": "assistant", "content": parts}
    scripted = ScriptedClient([{"status": "completed", "output": [message]}], "openai_responses")
    with openai(scripted).responses.stream(model="m", input="Go") as stream:
        kinds = [event.type for event in stream]
        (said,) = stream.get_final_response().output
    text, refusal = said.content
    assert (text.text, refusal.refusal) == ("Well, ", "I will not.")
    assert kinds.count("response.refusal.delta") == 2


def test_an_official_helper_for_streams_is_told_what_stopped_it() -> None:
    """Anthropic's helper finds the sequence at which the model stopped, as in the whole message."""
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Well"}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    asked = [{"role": "user", "content": "Go"}]
    client = anthropic(ScriptedClient([message], "anthropic_messages"))
    with client.messages.stream(model="m", max_tokens=5, messages=asked) as stream:
        assert stream.get_final_message().stop_sequence == "END"


def test_another_address_is_not_found() -> None:
    """A request for something else than a turn is answered with status 404."""
    sdk = pytest.importorskip("openai", reason="needs the extra openai")
    scripted = ScriptedClient(SCRIPT, "openai_chat")
    with pytest.raises(sdk.NotFoundError, match="has no /v1/models"):
        openai(scripted).models.list()
    assert scripted.requests == []


def test_an_sdk_that_takes_no_client_or_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For boto3 there is no HTTP client, and without its SDK no other either; the text says so."""
    with pytest.raises(MisuseError, match="SDK of bedrock_converse takes no HTTP client"):
        ScriptedClient(SCRIPT, "bedrock_converse").http_client()
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtraError, match=r"lutum-py\[anthropic\]"):
        ScriptedClient(SCRIPT, "anthropic_messages").http_async_client()


@wires
def test_any_code_reads_the_events_of_a_stream(name: str) -> None:
    """A stream decodes to the turn of the script, sync or async; a closed one gives no more."""
    dialect: Any = import_module(DIALECTS[name])
    body = {KEYS[name]: dialect.messages([Message("user", "Oslo?")])}
    scripted = ScriptedClient(SCRIPT[:1] * 5, name)

    def stream() -> ScriptedStream:
        if name == "gemini_generate_content":
            return scripted.aio.models.generate_content_stream(**body)
        if name == "bedrock_converse":
            return scripted.converse_stream(**body)["stream"]  # type: ignore[no-any-return]
        return scripted.create(stream=True, **body)

    def read(events: Iterable[Any]) -> AssistantTurn:
        decoder = dialect.StreamDecoder()
        for event in events:
            decoder.feed(event.to_dict())
        turn: AssistantTurn = decoder.finish()
        return turn

    async def read_async() -> AssistantTurn:
        async with await stream() as events:
            return read([event async for event in events])

    with stream() as events:
        turns = [read(events), read(stream()), asyncio.run(read_async())]
    plain = dialect.decode(scripted.converse(**body))
    for turn in turns:
        assert (turn.text, turn.tool_calls) == (plain.text, plain.tool_calls)
    closed = stream()
    closed.close()
    assert list(closed) == []


@pytest.mark.parametrize("name", WIRES)
def test_a_loop_that_streams_is_driven(name: str) -> None:
    """`check_loop` passes a right loop over streams in each dialect, and finds a wrong one."""
    dialect: Any = import_module(DIALECTS[name])
    tools = dialect.tools(Small.definitions())
    offered = {"toolConfig": {"tools": tools}} if name == "bedrock_converse" else {}

    def loop(messages: list[Any], client: Any, *, is_right: bool = True) -> None:
        while True:
            decoder = dialect.StreamDecoder()
            for event in client.create(model="m", stream=True, **{KEYS[name]: messages}, **offered):
                decoder.feed(event)
            match Small.read_turn(decoder.finish()):
                case NeedsTools(round):
                    if not is_right and round.recoverable_tool_call_issues:
                        return round.discard()
                    results = [call.call_sync() for call in round.tool_calls]
                    messages += dialect.messages(round.resolve(results))
                case Finished():
                    return None

    check_loop(loop, Small, dialect=name, examples=60)
    with pytest.raises(LoopFailure, match="lost_call"):
        check_loop(partial(loop, is_right=False), Small, dialect=name)


def test_a_loop_around_an_official_client_is_driven() -> None:
    """`check_loop` drives a streamed loop around a real SDK, over the HTTP client of the script."""

    def loop(messages: list[Any], client: Any) -> None:
        sdk = openai(client)
        while True:
            decoder = openai_chat.StreamDecoder()
            with sdk.chat.completions.create(model="m", messages=messages, stream=True) as stream:
                for chunk in stream:
                    decoder.feed(chunk.to_dict())
            match Small.read_turn(decoder.finish()):
                case NeedsTools(round):
                    results = [call.call_sync() for call in round.tool_calls]
                    messages += openai_chat.messages(round.resolve(results))
                case Finished():
                    return

    check_loop(loop, Small, dialect="openai_chat", examples=20)
