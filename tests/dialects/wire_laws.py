"""The laws of the way from a wire to a transcript and back, as functions of one case."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn, CommittedRound, Message, ToolResult, Transcript, TurnRequest
from lutum_py.dialects import DIALECTS as DIALECTS_BY_NAME
from lutum_py.errors import DialectError
from lutum_py.streaming import TurnFinished
from tests.instructions import calls

from .every_dialect import OF_LIBRARY
from .mutations import committed
from .plain import compact

DIALECTS = pytest.mark.parametrize("dialect", OF_LIBRARY, indirect=True)
MODULES = [import_module(DIALECTS_BY_NAME[name]) for name in OF_LIBRARY]
EACH = pytest.mark.parametrize("dialect", MODULES, ids=lambda module: module.NAME)
MOST = 1_000_000
"""Calls of functions that no case may take: many times what the slowest one takes."""


def decodes_or_refuses(dialect: ModuleType, response: Any) -> bool:
    """Hold that a response is a turn that can go on, or a `DialectError`; say which."""
    with calls(MOST):
        try:
            turn = dialect.decode(response)
        except DialectError as error:
            str(error).encode()
            return False
        goes_on(turn)
    return True


def streams_or_refuses(dialect: ModuleType, events: list[Any]) -> bool:
    """Hold the same of a stream, and that each of its events can be shown."""
    decoder = dialect.StreamDecoder()
    read: list[Any] = []
    turn = None
    with calls(MOST):
        try:
            for event in events:
                read += decoder.feed(event)
            read += decoder.close()
            turn = decoder.finish()
        except DialectError as error:
            str(error).encode()
            if isinstance(error.turn, AssistantTurn):
                (error.turn.text + error.turn.reasoning).encode()
        else:
            assert read[-1] == TurnFinished(turn)
            goes_on(turn)
        for event in read:
            compact(_shown(event)).encode()
    return turn is not None


def _shown(event: Any) -> Any:
    if isinstance(event, TurnFinished):
        return event.turn.text
    return [str(getattr(event, name)) for name in event.__slots__]


def goes_on(turn: AssistantTurn) -> None:
    """Hold that a turn can be committed, saved, loaded, and sent by every dialect."""
    items = committed(turn)
    if items is None:
        return
    transcript = Transcript()
    said, _, *results, answer = items
    assert isinstance(said, Message)
    assert isinstance(answer, Message)
    transcript.push(said)
    if turn.tool_calls:
        transcript.append_round(
            CommittedRound(turn, [each for each in results if isinstance(each, ToolResult)])
        )
    else:
        transcript.append_turn(turn)
    transcript.push(answer)
    assert list(transcript) == items
    loaded = Transcript.load_json(transcript.dump_json())
    assert loaded == transcript, "what is loaded is another"
    for dialect in MODULES:
        body = dialect.encode_request(TurnRequest(items=items))
        compact(body).encode()
        broken = [str(each) for each in dialect.check(body)]
        assert not broken, f"{dialect.NAME}: {broken}"
        assert dialect.encode_request(TurnRequest(items=list(loaded))) == body, dialect.NAME
