"""`ScriptedModel`: answers from a script, and refuses what a provider would refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeAlias
from weakref import ref

from .._assistant import AssistantTurn
from .._json import compact_json
from .._metadata import ToolMetadata
from .._request import TurnRequest
from .._stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    StreamEvent,
    TextDelta,
    TurnFinished,
)
from .._transcript import Transcript, TranscriptView
from .._transcript_check import TranscriptCheck
from ..errors import DeveloperError, DialectError

__all__ = ["ScriptExhausted", "ScriptedModel"]

Script: TypeAlias = Iterable[AssistantTurn] | Callable[[TurnRequest], AssistantTurn]


class ScriptExhausted(DeveloperError, LookupError):
    """The loop asked for more turns than the script has."""


class ScriptedModel:
    """Answer from a list of turns, or from a function of the request.

    Args:
        script: The turns in order, or a function that makes the next one.
        check: Refuse a request whose transcript is invalid, as a provider would. What was checked
            once is not checked again, so a long loop costs no more a turn than a short one.

    Attributes:
        requests: Every request that came, in order.

    Example:
        >>> model = ScriptedModel([ScriptedModel.text("Hi!")])
        >>> model.respond_sync(TurnRequest(items=[])).text
        'Hi!'
    """

    def __init__(self, script: Script, *, check: bool = True) -> None:
        if callable(script):
            self._next = script
        else:
            turns = iter(script)

            def next_turn(request: TurnRequest) -> AssistantTurn:
                for turn in turns:
                    return turn
                raise ScriptExhausted(
                    f"The script has no turn for request {len(self.requests)}. Add one, or look "
                    "why the loop goes on."
                )

            self._next = next_turn
        self._check = check
        # By identity: transcripts compare by content, which would be slow here and change.
        self._checked: dict[int, tuple[ref[Transcript], TranscriptCheck]] = {}
        self.requests: list[TurnRequest] = []

    @staticmethod
    def text(text: str, *, finish_reason: str | None = "stop") -> AssistantTurn:
        """Make a turn that answers with text."""
        return AssistantTurn(text=text, finish_reason=finish_reason)

    @staticmethod
    def tool_calls(
        *calls: tuple[str, str, Any],
        text: str | None = None,
        finish_reason: str | None = "tool_calls",
    ) -> AssistantTurn:
        """Make a turn that asks for tools.

        Args:
            calls: Triples of call id, wire name and arguments: raw text, or data to encode.
            text: What the model says beside its calls.
            finish_reason: What the provider gives as the reason.
        """
        return AssistantTurn(
            text=text,
            tool_calls=[
                ToolMetadata(
                    id=id,
                    name=name,
                    arguments=given if isinstance(given, str) else compact_json(given),
                )
                for id, name, given in calls
            ],
            finish_reason=finish_reason,
        )

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request.

        Raises:
            DialectError: The transcript is invalid.
            ScriptExhausted: The script is at its end.
        """
        self.requests.append(request)
        if self._check:
            self._refuse_invalid(request)
        return self._next(request)

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request."""
        return self.respond_sync(request)

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        """Answer a request piece by piece: the text whole, the arguments in two parts."""
        turn = self.respond_sync(request)
        if turn.text:
            yield TextDelta(turn.text)
        for index, call in enumerate(turn.tool_calls):
            yield CallStarted(index, call.id, call.name)
            middle = len(call.arguments) // 2
            for part in (call.arguments[:middle], call.arguments[middle:]):
                yield ArgumentsDelta(index, part, None)
            yield CallCompleted(index, call)
        yield TurnFinished(turn)

    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Answer a request piece by piece."""
        for event in self.stream_sync(request):
            yield event

    def _refuse_invalid(self, request: TurnRequest) -> None:
        items = request.items
        try:
            if isinstance(items, TranscriptView) and not items.ephemeral:
                check = self._check_of(items.transcript, items.base_length)
                check.take(items.transcript._items[check.taken : items.base_length])
            else:
                check = TranscriptCheck()
                check.take(items)
            check.finish()
        except ValueError as error:
            raise DialectError(
                f"A provider would refuse this request (HTTP 400): {error}.",
                dialect="scripted",
                where="items",
            ) from None

    def _check_of(self, transcript: Transcript, length: int) -> TranscriptCheck:
        known = self._checked.get(id(transcript))
        if known is not None and known[0]() is transcript and known[1].taken <= length:
            return known[1]
        check = TranscriptCheck()
        self._checked[id(transcript)] = (ref(transcript), check)
        return check
