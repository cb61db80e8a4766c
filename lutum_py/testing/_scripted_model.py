"""A script: what comes next, and what to say when nothing does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, cast
from weakref import ref

from .. import AssistantTurn, Message, ToolMetadata, ToolResult, Transcript, TurnRequest, Usage
from .._text.json import PartialJson, compact_json, shorten
from .._transcript.check import checked, is_whole
from .._transcript.stream_events import arguments_delta
from .._transcript.transcript import Front
from ..dialects._wire_form import halves
from ..errors import DeveloperError, DialectError, MisuseError
from ..streaming import (
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from ..turns import (
    AssistantItem,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from ..typing import TranscriptView


class ScriptExhausted(DeveloperError, LookupError):
    """The loop asked for more turns than the script has."""

    __module__ = "lutum_py.testing"  # where it is imported from, which pytest shows


_MAKERS = "`ScriptedModel.text` and `ScriptedModel.tool_calls` make turns"


class Script:
    """Give entries one by one, from a list or from a function of the request.

    Args:
        source: The entries, or a function that makes the next one. An entry that is an exception is
            raised when its turn comes.
        kinds: What an entry may be besides.
        called: How an error calls such an entry.
        turn_of: Gives the place of the entry for a request, if they are not given one by one.

    Raises:
        MisuseError: The source is neither a list nor a function; or a function where a place is
            asked for.
    """

    def __init__(
        self,
        source: Iterable[Any] | Callable[[Any], Any],
        kinds: tuple[type, ...],
        called: str,
        turn_of: Callable[[Any], int] | None = None,
    ) -> None:
        if turn_of is not None and callable(source):
            raise MisuseError(
                "A script `by_turn` is a list: the function sees the request, and finds its place "
                "by itself. Leave `by_turn` out."
            )
        self._function = source if callable(source) else None
        self._entries: Iterator[Any] = iter(() if callable(source) else _listed(source, called))
        self._by_turn = None if turn_of is None else (turn_of, list(self._entries))
        self._kinds = kinds
        self._called = called
        self._given = 0

    def next(self, request: Any, ends_with: str) -> Any:
        """Return the next entry, or raise it.

        Args:
            request: What a function is asked with.
            ends_with: What the request ends with, for the message where there is none.

        Raises:
            ScriptExhausted: There is none.
            MisuseError: It is nothing that a script can hold.
        """
        place = self._given
        if self._function is not None:
            entry = self._function(request)
        else:
            what, entries = f"request {place + 1}, which", self._entries
            if self._by_turn is not None:
                turn_of, listed = self._by_turn
                place = turn_of(request)
                what, entries = f"what holds {place} turns of the model, and", iter(listed[place:])
                if place >= self._given:
                    # Of several conversations the one that went furthest says what is left.
                    self._entries = entries
            missing = object()
            entry = next(entries, missing)
            if entry is missing:
                raise ScriptExhausted(
                    f"The script has no turn for {what} ends with {ends_with}. Add a turn to the "
                    "script, or find out why the loop goes on."
                )
        place += 1
        self._given = max(self._given, place)
        if isinstance(entry, BaseException):
            raise entry
        if isinstance(entry, self._kinds):
            return entry
        said, what = (
            (f"Entry {place} of the script is", "A script holds")
            if self._function is None
            else (f"For request {place} the script's function gave", "It gives")
        )
        raise MisuseError(
            f"{said} {shorten(entry)}. {what} {self._called}, or exceptions to raise; {_MAKERS}."
        )

    def assert_exhausted(self) -> None:
        """Fail if there are entries left; a function is never at its end, nor short of it."""
        __tracebackhide__ = True
        # Listed to be counted, and put back: a test may ask, and then go on.
        left = list(self._entries)
        self._entries = chain(left)
        if left:
            raise AssertionError(
                f"The loop ended after {self._given} of {self._given + len(left)} turns of the "
                f"script; the next would have been {shorten(left[0])}."
            )


def _listed(source: Any, called: str) -> Any:
    # A text and a response are iterable too, over what is not an entry.
    given: object = source
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise MisuseError(
            f"A script is a list of {called}, or a function that makes the next one, not "
            f"{shorten(source)}. Write it as in "
            f'`[ScriptedModel.text("Hi!")]`; {_MAKERS}.'
        )
    return source


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
        by_turn: Answer a conversation with n turns of the model with entry n of the list, in any
            process, so that a script can go on in another one.

    Raises:
        MisuseError: The script is neither a list nor a function, or is a function `by_turn`.

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

    def __init__(self, script: TurnScript, *, check: bool = True, by_turn: bool = False) -> None:
        turn_of = _turns_in if by_turn else None
        self._script = Script(script, (AssistantTurn,), "turns", turn_of)
        self._check = check
        # By identity: transcripts compare by content, which would be slow here and change.
        self._taken: dict[int, tuple[ref[Transcript], Front, int]] = {}
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
            MisuseError: A call is no such triple, or its arguments are not JSON data.
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
        fault = None
        if isinstance(items, TranscriptView):
            # Each request that was taken ended with no call open: what is new stands by itself.
            start, end = self._taken_of(items), items.base_count
            # Only what is new is checked, or a loop of 1,000 turns would check 500,000 of them.
            # Only where that fails is all of it looked at, to say what is wrong.
            if not is_whole(item for _, item in items.numbered(start, end)):
                fault = _first_fault([item for _, item in items.numbered(0, end)])
            fault = fault or _misplaced_in(items)
        elif not is_whole(items):
            fault = _first_fault(items)
        if fault is not None:
            raise DialectError(
                f"A provider would refuse this request (HTTP 400): {fault}.",
                dialect="scripted",
                where="items",
            )
        if isinstance(items, TranscriptView):
            # A weak link, so that a model which outlives many conversations keeps none of them; the
            # callback takes the entry out before its id can be given to another object.
            key, known = id(items.transcript), self._taken
            link = ref(items.transcript, lambda _: known.pop(key, None))
            known[key] = (link, items.front, items.base_count)

    def _taken_of(self, items: TranscriptView) -> int:
        """Return how many of the items were in a request that was taken."""
        known = self._taken.get(id(items.transcript))
        if known is None or known[0]() is not items.transcript or known[1] is not items.front:
            return 0
        return known[2] if known[2] <= items.base_count else 0


def _first_fault(items: Sequence[Any]) -> str:
    first = checked(items).faults[0]
    return f"{first.position}: {first.problem}"


def _call(triple: Any) -> ToolMetadata:
    if not isinstance(triple, tuple | list) or len(cast("Sequence[Any]", triple)) != 3:
        raise MisuseError(
            "A scripted call is a triple (id, name, arguments), as in "
            f"tool_calls(('c1', 'forecast', {{...}})), not {shorten(cast('object', triple))}."
        )
    id, name, given = cast("Sequence[Any]", triple)
    try:
        text = given if isinstance(given, str) else compact_json(given)
    except (TypeError, ValueError) as error:
        raise MisuseError(
            f"The arguments of scripted call {shorten(id)} are not JSON data: {error}. Pass plain "
            "data, or the text that the model sends."
        ) from error
    return ToolMetadata(id=id, name=name, arguments=text)


def _turns_in(request: TurnRequest) -> int:
    """Count the turns of the model in a conversation, also those that a view does not send."""
    items: Iterable[object] = request.items
    if isinstance(items, TranscriptView):
        items = items.transcript[: items.base_length]
    return sum(isinstance(item, AssistantTurn) for item in items)


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


def _misplaced_in(items: TranscriptView) -> str | None:
    """Say where an ephemeral message is between a call and its result; the rest was checked."""
    for place, _ in items.ephemeral:
        at = items.index_of(place)
        following = [item for _, item in items.numbered(at, min(at + 1, items.base_count))]
        if following and isinstance(following[0], ToolResult):
            return f"item {place}: a message comes before the results of a turn"
    return None


_DELTAS: dict[type[AssistantItem], Callable[[str], StreamEvent]] = {
    TextItem: TextDelta,
    ReasoningItem: ReasoningDelta,
    RefusalItem: RefusalDelta,
}


def _call_events(index: int, call: ToolMetadata) -> Iterator[StreamEvent]:
    yield CallStarted(index, call.id, call.name)
    json = PartialJson()
    for half in halves(call.arguments):
        yield arguments_delta(index, half, json)
    yield CallCompleted(index, call)
