"""What real providers sent comes through the SDKs as the dialects read it without them."""

from __future__ import annotations

import json
from typing import Any

from lutum_py import AssistantTurn, Message, TurnRequest
from lutum_py.dialects import sse
from lutum_py.errors import DialectError
from tests.dialects.recordings import Recording, answered, recordings, report

from .loopback import EVENTS, Loopback, Reply
from .said import MODEL
from .wires import Wire

REQUEST = TurnRequest(items=[Message("user", "Hello")])


def decoded(wire: Wire, one: Recording) -> AssistantTurn | None:
    """Decode a recording as it is; None where the provider reported an error in it."""
    decoder = wire.dialect.StreamDecoder()
    try:
        for event in sse.events(one.response) if one.stream else ():
            decoder.feed(event)
        turn: AssistantTurn = decoder.finish() if one.stream else wire.dialect.decode(one.response)
    except DialectError:
        return None
    return turn


def replied(wire: Wire, one: Recording) -> Reply:
    """Write a recording as an HTTP response."""
    if not one.stream:
        return Reply(text=json.dumps(one.response))
    if one.response.lstrip().startswith("["):
        # The SDK asks for events; this was recorded as the JSON array that others get.
        return wire.stream(list(sse.events(one.response)))
    return Reply(text=one.response, content_type=EVENTS)


def answer(model: Any, one: Recording, error: type[Exception]) -> AssistantTurn | None:
    try:
        if one.stream:
            turn: AssistantTurn = list(model.stream_sync(REQUEST))[-1].turn
        else:
            turn = model.respond_sync(REQUEST)
        return turn
    except (DialectError, error):
        return None


async def test_recorded_traffic_passes_through_the_sdk(wire: Wire, server: Loopback) -> None:
    """Every recorded answer gives the same turn and replay through the SDK as without it."""
    found = recordings(wire.name, answered)
    same = 0
    error = wire.status_error.__mro__[1]
    async with wire.client(server.url, "collect_sync") as client:
        model = wire.model(client, MODEL)
        for one in found:
            server.replies.append(replied(wire, one))
            direct, through = decoded(wire, one), answer(model, one, error)
            assert (direct is None) == (through is None), one.id
            if direct is not None and through is not None:
                assert through.items == direct.items, one.id
                assert through.usage == direct.usage, one.id
                assert through.finish_reason == direct.finish_reason, one.id
                assert wire.dialect.messages([through]) == wire.dialect.messages([direct]), one.id
            same += 1
    report(wire.name, "recorded answers came through the SDK as they were", same, len(found))
