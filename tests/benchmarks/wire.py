"""What comes over the wire in each dialect, as a provider writes it, and how it is read by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from lutum_py import AssistantTurn, TurnRequest
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
    sse,
)
from lutum_py.streaming import StreamEvent

from ..dialects.wire import anthropic_messages as of_messages
from ..dialects.wire import gemini_generate_content as of_gemini
from ..dialects.wire import openai_chat as of_chat
from ..dialects.wire import openai_responses as of_responses
from ..models.said import Payload, Said

__all__ = ["ARGUMENTS", "LISTS", "WIRES", "Wire", "recorded_streams"]

ARGUMENTS: Final[dict[str, Any]] = {"query": "hello world", "max_results": 3}
LISTS: Final[dict[str, Any]] = {
    "queries": ["hello world", "good night"],
    "near": {"name": "Oslo", "lat": 59.91, "lon": 10.75},
    "limits": {"pages": 3, "hits": 20},
}
RECORDED: Final = Path(__file__).resolve().parents[2].parent / "shared" / "wire"
"""Where recorded traffic may lie, a file for each dialect, with an exchange in each line."""

Read = tuple[str | None, tuple[tuple[str, str, str], ...], Payload]
"""What is said, the calls (id, name, text of the arguments), and what is sent back some day."""


class Decoder(Protocol):
    """The decoder of a stream."""

    def feed(self, event: Payload | str | bytes) -> list[StreamEvent]: ...
    def feed_line(self, line: str | bytes) -> list[StreamEvent]: ...
    def finish(self) -> AssistantTurn: ...


class Dialect(Protocol):
    """The functions of a dialect that are measured."""

    NAME: str
    StreamDecoder: type[Decoder]

    def decode(self, response: Payload) -> AssistantTurn: ...
    def encode_request(self, request: TurnRequest) -> Any: ...
    def check(self, request: Payload) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Wire:
    """A dialect.

    Attributes:
        name: What it is called in the table.
        dialect: Its module.
        whole: Writes a turn as a response.
        events: Writes a turn as the events of a stream.
        read: Reads a response by hand.
    """

    name: str
    dialect: Dialect
    whole: Callable[[Said], Payload]
    events: Callable[[Said], list[Payload]]
    read: Callable[[Payload], Read]

    def response(
        self, calls: int, name: str = "search", arguments: dict[str, Any] = ARGUMENTS
    ) -> Payload:
        """Write a response with calls, read from JSON as a client has it."""
        asked = tuple((f"c{index}", name, arguments) for index in range(calls))
        response: Payload = json.loads(json.dumps(self.whole(Said(calls=asked))))
        return response

    def stream(self, deltas: int) -> list[str]:
        """Write the events of an answer that comes in so many pieces of text, each as JSON."""
        events = [json.dumps(event) for event in self.events(Said(text=_PIECE * 2))]
        at = [place for place, event in enumerate(events) if json.dumps(_PIECE) in event]
        assert len(at) == 2
        return [*events[: at[0]], *(events[at[0]] for _ in range(deltas)), *events[at[1] + 1 :]]


_PIECE: Final = "more "


def recorded_streams(dialect: str) -> list[list[str]]:
    """Give the streams that were recorded, as the JSON of their events; none where none are."""
    path = RECORDED / f"{dialect}.jsonl"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    return [
        [json.dumps(event) for event in sse.events(each["response"])]
        for each in exchanges
        if each["stream"] and each["status"] == 200 and each["response"]
        if "event: error" not in each["response"]
    ]


def _read_chat(response: Payload) -> Read:
    kept = deepcopy(response)
    message = kept["choices"][0]["message"]
    calls = tuple(
        (each["id"], each["function"]["name"], each["function"]["arguments"])
        for each in message.get("tool_calls") or ()
    )
    return message["content"], calls, kept


def _read_anthropic(response: Payload) -> Read:
    kept = deepcopy(response)
    texts = [each["text"] for each in kept["content"] if each["type"] == "text"]
    calls = tuple(
        (each["id"], each["name"], json.dumps(each["input"]))
        for each in kept["content"]
        if each["type"] == "tool_use"
    )
    return "".join(texts), calls, kept


def _read_responses(response: Payload) -> Read:
    kept = deepcopy(response)
    texts: list[str] = []
    calls: list[tuple[str, str, str]] = []
    for item in kept["output"]:
        if item["type"] == "message":
            texts += [part["text"] for part in item["content"] if part["type"] == "output_text"]
        elif item["type"] == "function_call":
            calls.append((item["call_id"], item["name"], item["arguments"]))
    return "".join(texts), tuple(calls), kept


def _read_gemini(response: Payload) -> Read:
    kept = deepcopy(response)
    parts = kept["candidates"][0]["content"]["parts"]
    asked = [each["functionCall"] for each in parts if "functionCall" in each]
    calls = tuple(
        (f"call_{index}", each["name"], json.dumps(each["args"]))
        for index, each in enumerate(asked)
    )
    return "".join(each["text"] for each in parts if "text" in each), calls, kept


def _wires() -> Iterator[Wire]:
    chat, messages = cast(Dialect, openai_chat), cast(Dialect, anthropic_messages)
    responses, gemini = cast(Dialect, openai_responses), cast(Dialect, gemini_generate_content)
    yield Wire("chat", chat, of_chat.response, of_chat.events, _read_chat)
    yield Wire("Anthropic", messages, of_messages.response, of_messages.events, _read_anthropic)
    yield Wire("Responses", responses, of_responses.response, of_responses.events, _read_responses)
    yield Wire("Gemini", gemini, of_gemini.response, of_gemini.events, _read_gemini)


WIRES: Final = tuple(_wires())
