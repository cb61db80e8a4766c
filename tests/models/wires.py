"""What the tests need to know of each SDK: its clients, its errors, its request types."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeAlias, TypeVar

import pytest

for sdk, extra in (("openai", "openai"), ("anthropic", "anthropic"), ("google.genai", "gemini")):
    pytest.importorskip(sdk, reason=f"{sdk} is not installed: pip install -e '.[{extra}]'")

# Only now is it known that they are there.
# ruff: noqa: E402
import anthropic
import openai
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter, ValidationError

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from tests.cases import over
from tests.dialects.every_dialect import wire_of

from .loopback import EVENTS, Loopback, Reply, sse
from .said import MODEL, Payload, Said, outcome_of

Law = TypeVar("Law", bound=Callable[..., Any])
AnyModel: TypeAlias = OpenAIChat | OpenAIResponses | Anthropic | Gemini

MODES: Final = ("collect", "collect_sync", "stream", "stream_sync")
"""The four ways to end a turn: async and sync, whole and streamed."""
STREAMS: Final = ("stream", "stream_sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One SDK and the dialect that it speaks.

    Attributes:
        status_error: The SDK's error for a status, or the common one of those.
        make_client: Makes the client for the server's address; the second argument asks for the
            async one.
        problems: What the SDK's own types find wrong with a request body.
    """

    name: str
    dialect: Any
    model: Callable[..., AnyModel]
    status_error: type[Exception]
    make_client: Callable[[str, bool], Any]
    problems: Callable[[Payload], list[str]]

    def whole(self, turn: Said) -> Payload:
        """Give a turn as a response."""
        response: Payload = wire_of(self.name).response(turn)
        return response

    def events(self, turn: Said) -> list[Payload]:
        """Give a turn as the events of a stream."""
        events: list[Payload] = wire_of(self.name).events(turn)
        return events

    def results(self, body: Payload) -> list[tuple[str, str]]:
        """Give the tool results of a body: pairs of the call and what the model reads."""
        results: list[tuple[str, str]] = wire_of(self.name).results(body)
        return results

    def judge(self, body: Payload) -> list[str]:
        """Say what the dialect's `check` and the SDK's types find wrong."""
        return [*map(str, self.dialect.check(body)), *self.problems(body)]

    def reply(self, turn: Said, mode: str) -> Reply:
        """Write a turn as the response to a request of this mode."""
        if not mode.startswith("stream"):
            return Reply(text=json.dumps(self.whole(turn)))
        return self.stream(self.events(turn))

    def stream(self, events: list[Payload], *, missing: int = 0, whole: bool = True) -> Reply:
        """Write events as a response; not `whole` leaves out what marks the end of a stream."""
        named = self.dialect in (anthropic_messages, openai_responses)
        done = whole and self.dialect is openai_chat
        text = sse(events, named=named, done=done)
        return Reply(text=text, content_type=EVENTS, missing=missing)

    @asynccontextmanager
    async def client(self, url: str, mode: str) -> AsyncIterator[Any]:
        """Make the client of a mode, and close it at the end."""
        is_async = not mode.endswith("_sync")
        client = self.make_client(url, is_async)
        try:
            yield client
        finally:
            close = "aclose" if hasattr(client, "aclose") else "close"
            closed = getattr(client, close)()
            if is_async:
                await closed

    def __str__(self) -> str:
        return self.name


def in_each(names: str, cases: Iterable[Any]) -> Callable[[Law], Law]:
    """Go over all cases as `over` does, with a server that nobody has asked in each of them."""

    def decorate(law: Law) -> Law:
        @wraps(law)
        async def with_fresh_server(*, server: Loopback, **more: Any) -> None:
            server.clear()
            await law(server=server, **more)

        fresh: Any = with_fresh_server
        tried: Law = over(names, cases)(fresh)
        return tried

    return decorate


# The server speaks plain HTTP: a context that has read no certificates is made much faster.
NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def openai_client(url: str, is_async: bool) -> Any:
    kind: Any = openai.AsyncOpenAI if is_async else openai.OpenAI
    http: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
    return kind(
        api_key="none",
        base_url=f"{url}/v1",
        max_retries=0,
        timeout=20,
        http_client=http(verify=NO_CERTIFICATES),
    )


def anthropic_client(url: str, is_async: bool) -> Any:
    kind: Any = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    http: Any = anthropic.DefaultAsyncHttpxClient if is_async else anthropic.DefaultHttpxClient
    return kind(
        api_key="none",
        base_url=url,
        max_retries=0,
        timeout=20,
        http_client=http(verify=NO_CERTIFICATES),
    )


def gemini_client(url: str, is_async: bool) -> Any:
    options = genai_types.HttpOptions(
        base_url=url,
        timeout=20_000,
        client_args={"verify": NO_CERTIFICATES},
        async_client_args={"verify": NO_CERTIFICATES, "ssl": NO_CERTIFICATES},
    )
    client = genai.Client(api_key="none", http_options=options)
    return client.aio if is_async else client


def typed_by(params: Any) -> Callable[[Payload], list[str]]:
    """Make the check of a body against a typed dict of an SDK."""
    adapter: TypeAdapter[Any] = TypeAdapter(params)

    def problems(body: Payload) -> list[str]:
        # How it is streamed is a matter of another typed dict.
        fields = {key: value for key, value in body.items() if not key.startswith("stream")}
        try:
            _read_to_the_end(adapter.validate_python(fields))
        except ValidationError as error:
            return [str(error)]
        return []

    return problems


def _read_to_the_end(value: Any) -> None:
    """Go through a value: what is declared as an `Iterable` is only checked as it is read."""
    if isinstance(value, Mapping):
        for each in value.values():
            _read_to_the_end(each)
    elif isinstance(value, list | tuple | Iterator):
        for each in value:
            _read_to_the_end(each)


def gemini_problems(body: Payload) -> list[str]:
    """Check a body against the types of google-genai, which refuse an unknown field."""
    models: dict[str, Any] = {
        "cachedContent": str,
        "contents": list[genai_types.Content],
        "tools": list[genai_types.Tool],
        "toolConfig": genai_types.ToolConfig,
        "systemInstruction": genai_types.Content,
        "generationConfig": genai_types.GenerationConfig,
        "safetySettings": list[genai_types.SafetySetting],
    }
    problems: list[str] = []
    for key, value in body.items():
        if key not in models:
            problems.append(f"{key}: no such field")
            continue
        try:
            TypeAdapter(models[key]).validate_json(json.dumps(value))
        except ValidationError as error:
            problems.append(str(error))
    return problems


WIRES: Final = (
    Wire(
        name="openai_chat",
        dialect=openai_chat,
        model=OpenAIChat,
        status_error=openai.APIStatusError,
        make_client=openai_client,
        problems=typed_by(CompletionCreateParamsNonStreaming),
    ),
    Wire(
        name="openai_responses",
        dialect=openai_responses,
        model=OpenAIResponses,
        status_error=openai.APIStatusError,
        make_client=openai_client,
        problems=typed_by(ResponseCreateParamsNonStreaming),
    ),
    Wire(
        name="anthropic_messages",
        dialect=anthropic_messages,
        model=Anthropic,
        status_error=anthropic.APIStatusError,
        make_client=anthropic_client,
        problems=typed_by(MessageCreateParamsNonStreaming),
    ),
    Wire(
        name="gemini_generate_content",
        dialect=gemini_generate_content,
        model=Gemini,
        status_error=genai_errors.APIError,
        make_client=gemini_client,
        problems=gemini_problems,
    ),
)

__all__ = ["MODEL", "MODES", "STREAMS", "WIRES", "AnyModel", "Wire", "in_each", "outcome_of"]
