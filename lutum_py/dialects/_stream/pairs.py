"""Surrogate pairs that a host cuts in two: the first half waits for the delta that completes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from ..._text.unicode import sendable
from ..._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
)

_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta | ArgumentsDelta
_DELTAS = (TextDelta, ReasoningDelta, RefusalDelta, ArgumentsDelta)


class Pairs:
    r"""Let every delta be text that can be shown and sent.

    Attributes:
        waiting: The first halves that wait for the second.

    Example:
        >>> pairs = Pairs()
        >>> pairs.of([TextDelta("a\ud83d")]), pairs.of([TextDelta("\ude00")])
        ([TextDelta(text='a')], [TextDelta(text='😀')])
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        # By kind and call: {(ArgumentsDelta, 1): ...}. Two calls may be written in turns, and the
        # half of one must not be joined to the text of the other.
        self.waiting: dict[tuple[type, int], _Delta] = {}

    def of(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Return events with whole characters only."""
        # Nearly every event: the same list goes back, and nothing is made.
        if not self.waiting and all(map(_is_whole, events)):
            return events
        given: list[StreamEvent] = []
        for event in events:
            if isinstance(event, _DELTAS):
                given.extend(self._whole(event))
                continue
            if isinstance(event, CallCompleted):
                given.extend(self._left(_key(event, ArgumentsDelta)))
            given.append(event)
        return given

    def rest(self) -> list[StreamEvent]:
        """Return what still waits, at the end of the stream: nothing completes it."""
        return [event for key in list(self.waiting) for event in self._left(key)]

    def _whole(self, event: _Delta) -> Iterator[StreamEvent]:
        key = _key(event, type(event))
        before = self.waiting.pop(key, None)
        text = event.text if before is None else before.text + event.text
        half = text[-1:]
        if "\ud800" <= half <= "\udbff":  # which what comes next may complete
            self.waiting[key] = replace(event, text=half)
            text = text[:-1]
        if text:
            yield replace(event, text=sendable(text))

    def _left(self, key: tuple[type, int]) -> Iterator[StreamEvent]:
        event = self.waiting.pop(key, None)
        if event is not None:
            yield replace(event, text=sendable(event.text))


def _is_whole(event: StreamEvent) -> bool:
    return not isinstance(event, _DELTAS) or sendable(event.text) is event.text


def _key(event: ArgumentsDelta | CallCompleted | _Delta, kind: type) -> tuple[type, int]:
    return kind, getattr(event, "index", 0)
