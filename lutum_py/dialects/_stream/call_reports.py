"""Which calls of a streamed turn were reported, so that each is begun and completed exactly once.

Hosts leave out events, and send some twice. What is certain is the turn in the end: what was not
reported of its calls by then is reported before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..._text.partial_json import PartialJson
from ..._transcript.assistant import ToolMetadata
from ..._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
    arguments_delta,
)

_OF_NO_CALL: Final = frozenset({TextDelta, ReasoningDelta, RefusalDelta, UsageReported})


# A dialect numbers a call when it first hears of it; only the whole turn knows the order for sure.
# So the calls of the turn look up their numbers in the end: by id first, which hosts keep, and only
# then by place. A number that was told is never given to another call.
class CallReports:
    """Remember what was reported of each call, and fill in what was left out.

    Example:
        >>> reports = CallReports()
        >>> [reports.of([CallStarted(0, "c1", "add")]) for _ in range(2)]
        [[CallStarted(index=0, id='c1', name='add')], []]
        >>> call = ToolMetadata(id="c1", name="add", arguments="{}")
        >>> [type(event).__name__ for event in reports.missing([call])]
        ['ArgumentsDelta', 'CallCompleted']
    """

    __slots__ = ("_completed", "_started", "_written")

    def __init__(self) -> None:
        self._started: dict[int, str] = {}
        self._written: set[int] = set()
        self._completed: set[int] = set()

    def of(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        """Report events: each after what belongs before it, and not a second time.

        Args:
            events: What a dialect read. A completed call may come alone.
        """
        reported: list[StreamEvent] = []
        for event in events:
            if event.__class__ in _OF_NO_CALL:
                pass
            elif isinstance(event, ArgumentsDelta):
                self._written.add(event.index)
            elif isinstance(event, CallStarted):
                if event.index in self._started:
                    continue
                self._started[event.index] = event.id
            elif isinstance(event, CallCompleted):
                if event.index in self._completed:
                    continue
                self._completed.add(event.index)
                reported.extend(self._before(event.index, event.metadata))
            reported.append(event)
        return reported

    def wrote(self, index: int) -> None:
        """Note that argument text of a call that has begun is reported elsewhere."""
        self._written.add(index)

    def missing(self, calls: Sequence[ToolMetadata]) -> list[StreamEvent]:
        """Report what was not reported of the calls of the whole turn."""
        if not calls:
            return []
        return self.of([CallCompleted(*each) for each in self._numbered(calls)])

    def _before(self, index: int, call: ToolMetadata) -> Iterator[StreamEvent]:
        """Yield what was not reported of a call that is complete."""
        if index not in self._started:
            self._started[index] = call.id
            yield CallStarted(index, call.id, call.name)
        if index not in self._written and call.arguments:
            yield arguments_delta(index, call.arguments, PartialJson())

    def _numbered(self, calls: Sequence[ToolMetadata]) -> Iterable[tuple[int, ToolMetadata]]:
        """Give each call the number under which it was reported: by its id, else by its place."""
        if self._started == {place: call.id for place, call in enumerate(calls)}:  # nearly always
            return enumerate(calls)
        # Ids may repeat, so that each id has a list of numbers; the sort is backward, because `pop`
        # takes the last, and so the smallest comes first. {0: "a", 1: "b", 2: "a"} gives {"a": [2,
        # 0], "b": [1]}.
        by_id: dict[str, list[int]] = {}
        for index, call_id in sorted(self._started.items(), reverse=True):
            by_id.setdefault(call_id, []).append(index)
        found = [by_id[call.id].pop() if by_id.get(call.id) else -1 for call in calls]
        taken = set(found)
        beyond = max(taken) + 1
        for place, known in enumerate(found):
            if known < 0:
                # The id came late, or the whole call did.
                found[place] = place if place not in taken else beyond
                beyond = max(beyond, found[place] + 1)
                taken.add(found[place])
        return list(zip(found, calls, strict=True))
