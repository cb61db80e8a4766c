"""The SDKs of two providers: a stream by hand, and a method that takes the place of theirs.

Each SDK is imported where it is used: a library brings those that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from ...models.said import MODEL, Payload, Said
from ..standin import Answers, written
from ..wire import WIRES
from .work import FEW, HELLO, MANY

__all__ = ["STREAMS", "answers", "asked_of_chat", "said_to_chat"]

ASKED: Final[Any] = [{"role": "user", "content": HELLO}]

Stream = Callable[[], Coroutine[Any, Any, str]]


def _chat(url: str) -> Stream:
    from openai import AsyncOpenAI

    create = AsyncOpenAI(api_key="none", base_url=f"{url}/v1").chat.completions.create
    # The libraries ask for it too.
    usage: Any = {"include_usage": True}

    async def stream() -> str:
        pieces: list[str] = []
        async for chunk in await create(
            model=MODEL, messages=ASKED, stream=True, stream_options=usage
        ):
            if chunk.choices and chunk.choices[0].delta.content:
                pieces.append(chunk.choices[0].delta.content)
        return "".join(pieces)

    return stream


def _anthropic(url: str) -> Stream:
    from anthropic import AsyncAnthropic

    create = AsyncAnthropic(api_key="none", base_url=url).messages.create

    async def stream() -> str:
        pieces: list[str] = []
        async for event in await create(model=MODEL, messages=ASKED, max_tokens=4096, stream=True):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                pieces.append(event.delta.text)
        return "".join(pieces)

    return stream


STREAMS: Final = {"chat": _chat, "Anthropic": _anthropic}
"""By the name of the wire: makes a client for an address, and what asks it with `HELLO`."""


def answers() -> Answers:
    """Write the streams that the stand-in gives.

    All of a stream is written at once. In how many pieces the network gives it would otherwise
    depend on how fast it is read.
    """
    return {
        f"/{wire.name}/{pieces}/": [[b"".join(written(event) for event in wire.stream(pieces))]]
        for wire in WIRES
        if wire.name in STREAMS
        for pieces in (FEW, MANY)
    }


@contextmanager
def asked_of_chat() -> Iterator[Payload]:
    """Put another method in the place of the one that sends a request to Chat Completions.

    It answers "done" to whatever it is asked. Models that are made before do not see it.

    Yields:
        The arguments with which the method was called last.
    """
    from openai.resources.chat.completions import AsyncCompletions
    from openai.types.chat import ChatCompletion

    class Answer(ChatCompletion):
        # Some ask for the raw response, and parse that.
        def parse(self) -> Answer:
            return self

    (chat,) = (wire for wire in WIRES if wire.name == "chat")
    answer = Answer.model_validate(chat.whole(Said(text="done")))
    asked: Payload = {}

    async def create(self: AsyncCompletions, **arguments: Any) -> Answer:
        asked.clear()
        asked.update(arguments)
        return answer

    with patch.object(AsyncCompletions, "create", create):
        yield asked


def said_to_chat(body: Payload) -> Iterator[tuple[str, ...]]:
    """Tell what the messages of a request say, whichever of the allowed forms they have."""
    for message in body["messages"]:
        text = message.get("content") or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text)
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], text
        elif text:
            yield message["role"], text
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.dumps(json.loads(function["arguments"]), sort_keys=True)
            yield "call", call["id"], function["name"], arguments
