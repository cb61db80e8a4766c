"""Check, item by item, that a transcript is one that a provider accepts.

All there is to remember is which calls of the last turn still wait for their results, in order:
the next item is the result of the first of them, or nothing else may come.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._text.json import shorten
from .assistant import AssistantTurn
from .message import Message
from .metadata import ToolMetadata
from .request import TranscriptItem
from .result import ToolResult

__all__ = ["TranscriptCheck"]


class TranscriptCheck:
    """Take items in order and say what is wrong; what was taken is not looked at again.

    Attributes:
        taken: How many items were taken.
    """

    __slots__ = ("_open", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self._open: list[ToolMetadata] = []

    def take(self, items: Iterable[TranscriptItem]) -> None:
        """Take more items.

        Raises:
            ValueError: An item breaks the order; the text says which and why.
        """
        for item in items:
            self._take(item)
            self.taken += 1

    def _take(self, item: TranscriptItem) -> None:
        if isinstance(item, ToolResult):
            if not self._open:
                raise ValueError(f"item {self.taken}: result {item.id!r} answers no open call")
            call = self._open[0]
            if (item.id, item.name, item.arguments) != (call.id, call.name, call.arguments):
                raise ValueError(
                    f"item {self.taken}: result {item.id!r} of tool {item.name!r} stands where "
                    f"call {call.id!r} of tool {call.name!r} is to be answered"
                )
            self._open.pop(0)
            return
        self._nothing_open(f"item {self.taken} comes")
        if isinstance(item, AssistantTurn):
            ids = [call.id for call in item.tool_calls]
            if len(set(ids)) != len(ids):
                raise ValueError(f"item {self.taken}: two calls of the turn share an id")
            self._open = list(item.tool_calls)
        elif not isinstance(item, Message):
            raise ValueError(f"item {self.taken}: {shorten(item)} is no item of a transcript")

    def finish(self) -> None:
        """Make sure that nothing is missing at the end.

        Raises:
            ValueError: Calls of the last turn have no results.
        """
        self._nothing_open("the transcript ends")

    def _nothing_open(self, what: str) -> None:
        if self._open:
            waiting = ", ".join(repr(call.id) for call in self._open)
            raise ValueError(f"{what} before the results of {waiting}")
