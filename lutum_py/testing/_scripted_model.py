"""`ScriptedModel`: answers from a script, and refuses what a provider would refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast
from weakref import ref

from pydantic_core import from_json

from .._text.json import compact_json, shorten
from .._transcript.assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    Usage,
)
from .._transcript.check import checked
from .._transcript.kept import Growing
from .._transcript.message import Message
from .._transcript.metadata import ToolMetadata
from .._transcript.request import TranscriptItem, TurnRequest
from .._transcript.result import ToolResult
from .._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from .._transcript.transcript_view import Front, TranscriptView
from ..errors import DialectError, MisuseError
from ._script import Script

TurnScript: TypeAlias = (
    Iterable[AssistantTurn | BaseException] | Callable[[TurnRequest], AssistantTurn | BaseException]
)
"""The turns that a scripted model answers with, or a function that makes them."""


class ScriptedModel:
    """Answer from a list of turns, or from a function of the request.

    Args:
        script: The turns in order, or a function that makes the next one. In the place of a turn
            may stand an exception, such as the timeout of a provider's client: it is raised.
        check: Refuse a request whose transcript is invalid, as a provider would. What was checked
            once is not checked again, so a long loop costs no more a turn than a short one.

    Raises:
        MisuseError: The script is neither a list nor a function.

    Attributes:
        requests: Every request that came, in order, refused ones included. The items of a request
            stay as they were when it came, while the conversation goes on.

    Example:
        >>> model = ScriptedModel([ScriptedModel.text("Hi!")])
        >>> model.respond_sync(TurnRequest(items=[])).text
        'Hi!'
        >>> len(model.requests)
        1
        >>> model.assert_exhausted()
    """

    def __init__(self, script: TurnScript, *, check: bool = True) -> None:
        self._script = Script(script, (AssistantTurn,), "turns")
        self._check = check
        # By identity: transcripts compare by content, which would be slow here and change.
        self._checked: dict[int, tuple[ref[Growing], Front, TranscriptCheck]] = {}
        self.requests: list[TurnRequest] = []

    @staticmethod
    def text(
        text: str, *, finish_reason: str | None = "stop", usage: Usage | None = None
    ) -> AssistantTurn:
        """Make a turn that answers with text.

        Args:
            text: What the model says.
            finish_reason: What the provider gives as the reason.
            usage: What the turn cost.
        """
        return AssistantTurn(text=text, finish_reason=finish_reason, usage=usage)

    @staticmethod
    def tool_calls(
        *calls: tuple[str, str, Any],
        text: str | None = None,
        finish_reason: str | None = "tool_calls",
        usage: Usage | None = None,
    ) -> AssistantTurn:
        """Make a turn that asks for tools.

        Args:
            calls: Triples of call id, wire name and arguments: raw text, or data to encode.
            text: What the model says beside its calls.
            finish_reason: What the provider gives as the reason.
            usage: What the turn cost.

        Raises:
            MisuseError: A call is no such triple.
        """
        return AssistantTurn(
            text=text, tool_calls=[*map(_call, calls)], finish_reason=finish_reason, usage=usage
        )

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request.

        Raises:
            DialectError: The transcript is invalid.
            ScriptExhausted: The script is at its end.
            MisuseError: The script holds something that is neither a turn nor an exception.
        """
        self.requests.append(request)
        if self._check:
            self._refuse_invalid(request)
        turn: AssistantTurn = self._script.next(request, _end_of(request))
        return turn

    def assert_exhausted(self) -> None:
        """Make sure that the loop asked for every turn of the script.

        Raises:
            AssertionError: Turns are left; the text says how many.
        """
        __tracebackhide__ = True
        self._script.assert_exhausted()

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request."""
        return self.respond_sync(request)

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        """Answer a request piece by piece: texts whole, arguments in two parts."""
        turn = self.respond_sync(request)
        index = 0
        for item in turn.items:
            if isinstance(item, ToolCallItem):
                yield from _call_events(index, item.metadata)
                index += 1
            elif not isinstance(item, ServerToolItem) and item.text:
                yield _DELTAS[type(item)](item.text)
        if turn.usage is not None:
            yield UsageReported(turn.usage)
        yield TurnFinished(turn)

    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Answer a request piece by piece."""
        for event in self.stream_sync(request):
            yield event

    def _refuse_invalid(self, request: TurnRequest) -> None:
        items = request.items
        try:
            if isinstance(items, TranscriptView):
                check = self._check_of(items)
                check.take(item for _, item in items.numbered(check.taken, items.base_count))
                _check_ephemeral(items)
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

    def _check_of(self, items: TranscriptView) -> TranscriptCheck:
        transcript = items.transcript
        known = self._checked.get(id(transcript))
        if (
            known is not None
            and known[0]() is transcript
            and known[1] is items.front
            and known[2].taken <= items.base_count
        ):
            return known[2]
        check = TranscriptCheck()
        key, known_by = id(transcript), self._checked
        known_by[key] = (ref(transcript, lambda _: known_by.pop(key, None)), items.front, check)
        return check


def _call(triple: Any) -> ToolMetadata:
    if not isinstance(triple, tuple | list) or len(cast("Sequence[Any]", triple)) != 3:
        raise MisuseError(
            "A scripted call is a triple (id, name, arguments), as in "
            f"tool_calls(('c1', 'forecast', {{...}})), not {shorten(cast('object', triple))}."
        )
    id, name, given = cast("Sequence[Any]", triple)
    return ToolMetadata(
        id=id, name=name, arguments=given if isinstance(given, str) else compact_json(given)
    )


def _end_of(request: TurnRequest) -> str:
    """Describe the last item of a request, to which the next turn would be the answer."""
    if not len(request.items):
        return "no item at all"
    last = request.items[len(request.items) - 1]
    if isinstance(last, ToolResult):
        return f"the result of call {last.id!r} ({last.name}): {shorten(last.model_text)}"
    if isinstance(last, Message):
        return f"a {last.role} message: {shorten(last.text)}"
    return f"a turn of the model: {shorten(last.text)}"


def _check_ephemeral(items: TranscriptView) -> None:
    """Make sure that no message stands between a call and its result; the rest was checked."""
    for place, _ in items.ephemeral:
        at = items.index_of(place)
        following = [item for _, item in items.numbered(at, min(at + 1, items.base_count))]
        if following and isinstance(following[0], ToolResult):
            raise ValueError(f"item {place}: a message comes before the results of a turn")


_DELTAS: dict[type[AssistantItem], Callable[[str], StreamEvent]] = {
    TextItem: TextDelta,
    ReasoningItem: ReasoningDelta,
    RefusalItem: RefusalDelta,
}


def _call_events(index: int, call: ToolMetadata) -> Iterator[StreamEvent]:
    yield CallStarted(index, call.id, call.name)
    text, middle = call.arguments, (len(call.arguments) + 1) // 2
    for start, end in ((0, middle), (middle, len(text))):
        if start < end:
            yield ArgumentsDelta(index, text[start:end], _readable(text[:end]))
    yield CallCompleted(index, call)


def _readable(text: str) -> Any:
    """Read as much of the arguments as there is, as a dialect's stream would."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except (ValueError, TypeError):
        return {}


class TranscriptCheck:
    """Take items in order; what was taken is not looked at again, until something is wrong.

    Attributes:
        taken: How many items were taken.
    """

    __slots__ = ("_items", "_open")

    def __init__(self) -> None:
        self._items: list[TranscriptItem] = []
        self._open: list[ToolMetadata] = []

    @property
    def taken(self) -> int:
        """How many items were taken."""
        return len(self._items)

    def take(self, items: Iterable[TranscriptItem]) -> None:
        """Take more items.

        Raises:
            ValueError: An item breaks the order; the text says which and why.
        """
        listed = list(items)
        for number, item in enumerate(listed):
            if not self._takes(item):
                raise _wrong([*self._items, *listed[number:]])
            self._items.append(item)

    def finish(self) -> None:
        """Make sure that nothing is missing at the end.

        Raises:
            ValueError: Calls of the last turn have no results.
        """
        if self._open:
            raise _wrong(self._items)

    def _takes(self, item: Any) -> bool:
        if isinstance(item, ToolResult):
            if not self._open or not item.answers(self._open[0]):
                return False
            self._open.pop(0)
            return True
        if self._open or not isinstance(item, AssistantTurn):
            return not self._open and isinstance(item, Message)
        calls = list(item.tool_calls)
        if len({call.id for call in calls}) < len(calls):
            return False
        self._open = calls
        return True


def _wrong(items: Sequence[Any]) -> ValueError:
    first = checked(items).faults[0]
    return ValueError(f"{first.position}: {first.problem}")
