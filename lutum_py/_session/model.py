"""What a model has to be able to do: answer a request with one turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from inspect import iscoroutine
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from .._round.round import NeedsTools, by_own_names, names_known, read_turn
from .._text.immutable import Settled
from .._text.json import PartialJson, parse_json, shorten
from .._text.names import OwnNames
from .._toolsets.answer import Answer
from .._toolsets.members import members_of
from .._toolsets.offer import OfferedTools
from .._transcript.assistant import AssistantTurn
from .._transcript.message import Message
from .._transcript.request import TurnRequest
from .._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    StreamEvent,
    TextDelta,
    TurnFinished,
)
from .._transcript.transcript import CommittedRound, Place, Transcript, TranscriptView
from ..errors import DialectError, LifecycleError, MisuseError


class Model(Protocol):
    """Answers from async code."""

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Send one request, and give the turn that comes back."""
        ...


@runtime_checkable
class SyncModel(Protocol):
    """Answers from sync code."""

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Send one request, and give the turn that comes back."""
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """Answers piece by piece, from async code."""

    def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Send one request, and give its events; the last one is `TurnFinished`."""
        ...


@runtime_checkable
class SyncStreamingModel(Protocol):
    """Answers piece by piece, from sync code."""

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        """Send one request, and give its events; the last one is `TurnFinished`."""
        ...


AnyModel: TypeAlias = Model | SyncModel | StreamingModel | SyncStreamingModel
"""A model that can be asked in one way at least."""


def check_model(model: object) -> None:
    """Refuse what cannot be asked in any way.

    Raises:
        MisuseError: It is not a model, or the class of one.
    """
    # One by one: a generator for `any` costs every turn more than all that it finds.
    if isinstance(model, type) or not (
        hasattr(model, "respond")
        or hasattr(model, "respond_sync")
        or hasattr(model, "stream")
        or hasattr(model, "stream_sync")
    ):
        raise no_model(model, "")


_ENDINGS: Final = {
    "respond": "await .collect()",
    "stream": "await .stream().collect()",
    "respond_sync": ".collect_sync()",
    "stream_sync": ".stream_sync().collect()",
}
"""How a turn is ended with a model that has the method."""


def no_model(model: Any, wanted: str) -> MisuseError:
    """Say what to do with a model that cannot be asked in the way that is wanted."""
    is_sync = wanted.endswith("_sync")
    # `collect()` of a model that is only sync: the message names the ending that this very model
    # has, and not all four.
    near = sorted(_ENDINGS, key=lambda method: method.endswith("_sync") != is_sync)
    has = next((method for method in near if hasattr(model, method)), None)
    if wanted and has is not None:
        return MisuseError(
            f"{type(model).__name__} has no `{wanted}`, so `.{wanted.replace('respond', 'collect')}"
            f"()` cannot ask it. Use `{_ENDINGS[has]}`, or a model with "
            f"`{'' if is_sync else 'async '}def {wanted}(self, request)`."
        )
    return MisuseError(
        f"A model is an object with `respond` or `respond_sync`, not {shorten(model)}. Wrap the "
        "client of a provider, as in `lutum_py.models.OpenAIChat(client, 'gpt-5')`."
    )


def no_answer(model: Any, method: str, given: Any) -> MisuseError:
    """Say how a model answers whose method is async and should not be, or the other way round."""
    if iscoroutine(given):
        given.close()  # else Python warns of it as well
    what, word, other = (
        ("has to be awaited", "", "respond")
        if method == "respond_sync"
        else ("cannot be awaited", "async ", "respond_sync")
    )
    return MisuseError(
        f"`{method}` of {type(model).__name__} gave {shorten(given)}, which {what}. Write "
        f"`{word}def {method}(self, request)`, or call it `{other}` and use `{_ENDINGS[other]}`."
    )


def no_events(model: Any, method: str, given: Any) -> MisuseError:
    """Say how a model gives events whose method gave something else."""
    if iscoroutine(given):
        given.close()  # else Python warns of it as well
    kind, word = (
        ("a generator", "") if method == "stream_sync" else ("an async generator", "async ")
    )
    return MisuseError(
        f"`{method}` of {type(model).__name__} gave {shorten(given)}, which is no iterator of "
        f"events. Make it {kind}: `{word}def {method}(self, request)` with a `yield` of each event."
    )


Outcome = TypeVar("Outcome")


class ViewLike(Protocol):
    """What a turn needs of a view: what it sends of a transcript. `lutum_py.window.View` is one."""

    def of(
        self, target: Transcript, ephemeral: Iterable[tuple[int, Message]] = ..., /
    ) -> TranscriptView:
        """Return what is sent, with ephemeral messages at their places."""
        ...


class SpokenIn(Protocol):
    """What a turn needs of its session."""

    transcript: Transcript
    id: str | None

    def _request_items(self, view: ViewLike | None = None) -> TranscriptView:
        """Return what the next request says."""
        ...

    def _drop_ephemeral(self, sent: TranscriptView) -> None:
        """Forget the ephemeral messages of a request that succeeded."""
        ...


class Prepared(NamedTuple):
    """A request, and what is needed to read the turn that answers it."""

    session: SpokenIn
    toolset: type[Any]
    offered: OfferedTools
    request: TurnRequest
    redact: bool
    answer: Answer[Any] | None = None

    def take(self, turn: AssistantTurn) -> Any:
        """Read the turn: an answer goes into the transcript, a round waits for its commit."""
        said = _checked(turn)
        outcome: Any = read_turn(self.toolset, said, self.offered, self.redact, self.answer)
        session = self.session
        items: Any = self.request.items
        # A round is not in the transcript before its commit, so a request that is made meanwhile
        # does not have calls without results.
        if outcome.__class__ is NeedsTools:
            length: int = items.base_length
            # The round remembers where it was opened, and is committed nowhere else.
            last = session.transcript[length - 1] if length else None
            # The key of a call is then `ticket-7/12/9f3c…`: two calls with equal arguments in two
            # turns have different keys, and one that is run again after a crash has the same.
            begins = "" if session.id is None else f"{session.id}/{length}/"
            opened = outcome.round._state.call_round
            opened.transcript, opened.place = session.transcript, Place(length, last)
            opened.key_prefix = begins
        else:
            committed: CommittedRound | None = outcome.result.committed
            if committed is None:
                session.transcript.append_turn(turn)
            else:
                session.transcript.append_round(committed)
        if items.ephemeral:
            session._drop_ephemeral(items)
        return outcome


def _checked(turn: object) -> AssistantTurn:
    """Return what a model answered with, if it is a turn."""
    if isinstance(turn, AssistantTurn):
        return turn
    raise MisuseError(
        f"The model answered with {shorten(turn)}. A model answers with an AssistantTurn; a "
        "dialect's `decode(response)` makes one."
    )


class _StreamOutcome(Settled, Generic[Outcome]):
    """Read the turn when its last event is there."""

    _way: ClassVar[str] = "it changes by its events alone. Iterate it, or build another turn."

    def __init__(self, model: AnyModel, prepared: Prepared) -> None:
        self._model = model
        self._prepared = prepared
        known = members_of(prepared.toolset).by_name
        self._names = OwnNames(names_known(known, prepared.answer))
        self._outcome: Outcome | None = None
        self._is_started = False
        self._text = PartialJson()
        self._answer_call: int | None = None
        self._partial: Any = None

    @property
    def partial(self) -> Any:
        """The final answer so far as plain data, as far as it can be read; for display only."""
        return self._partial

    @property
    def outcome(self) -> Outcome:
        """What the turn came to.

        Raises:
            LifecycleError: The stream is not at its end yet.
        """
        if self._outcome is None:
            raise LifecycleError(
                "The stream is not at its end, so there is no outcome yet. Iterate it to the end, "
                "or use `collect()`. If it was left, or broke off, build another turn."
            )
        return self._outcome

    def _open(self, method: str) -> Any:
        if self._is_started:
            raise LifecycleError(
                "This stream was already started; a turn is asked for once. Build another turn."
            )
        self._is_started = True
        stream = getattr(self._model, method, None)
        if stream is None:
            raise no_model(self._model, method)
        events = stream(self._prepared.request)
        if not hasattr(events, "__aiter__" if method == "stream" else "__iter__"):
            raise no_events(self._model, method, events)
        return events

    # A streamed turn ends as a whole one does: the last event has the turn, and `take` reads it.
    # Were the outcome put together from the events, a dialect's two ways could come to differ.
    def _see(self, event: StreamEvent) -> StreamEvent:
        """Take an event in, and give it with the tools' own names."""
        event = self._by_own_names(event)
        answer = self._prepared.answer
        if answer is not None:
            self._see_answer(answer, event)
        if isinstance(event, TurnFinished):
            self._outcome = self._prepared.take(event.turn)
        return event

    def _by_own_names(self, event: StreamEvent) -> StreamEvent:
        if isinstance(event, CallStarted):
            return replace(event, name=self._names.own(event.name))
        if isinstance(event, CallCompleted):
            call = event.metadata
            return CallCompleted(event.index, replace(call, name=self._names.own(call.name)))
        if isinstance(event, TurnFinished):
            return TurnFinished(by_own_names(_checked(event.turn), self._names))
        return event

    def _see_answer(self, answer: Answer[Any], event: StreamEvent) -> None:
        # By format, the text of the turn is the answer; by tool, the arguments of the call that has
        # the answer's name, whichever call of the turn that is.
        if answer.by == "format":
            if isinstance(event, TextDelta):
                self._partial = answer.partial_of(self._text.view(self._text.add(event.text)))
            elif isinstance(event, TurnFinished):
                self._see_whole(answer, event.turn.text)
        elif isinstance(event, CallStarted) and event.name == answer.definition.name:
            self._answer_call = event.index
        elif isinstance(event, ArgumentsDelta) and event.index == self._answer_call:
            self._partial = answer.partial_of(event.partial)
        elif isinstance(event, CallCompleted) and event.index == self._answer_call:
            self._see_whole(answer, event.metadata.arguments)

    def _see_whole(self, answer: Answer[Any], text: str) -> None:
        """Show all of it: a long text is not read with every piece that comes."""
        with suppress(ValueError):
            self._partial = answer.partial_of(parse_json(text))

    def _end(self) -> Outcome:
        if self._outcome is None:
            raise DialectError(
                "The stream ended without a finished turn; nothing was added to the transcript.",
                dialect="stream",
                where="end",
            )
        return self._outcome


class TurnStream(_StreamOutcome[Outcome]):
    """Iterate it for the events of a turn, then read `outcome`.

    Example:
        >>> import asyncio
        >>> from lutum_py import Session
        >>> from lutum_py.testing import ScriptedModel
        >>> async def main():
        ...     session = Session()
        ...     session.push_user("Hello")
        ...     stream = session.text_turn(ScriptedModel([ScriptedModel.text("Hi!")])).stream()
        ...     async for event in stream:
        ...         print(type(event).__name__)
        ...     return stream.outcome.result.text
        >>> asyncio.run(main())
        TextDelta
        TurnFinished
        'Hi!'
    """

    async def __aiter__(self) -> AsyncGenerator[StreamEvent, None]:
        events = self._open("stream")
        try:
            async for event in events:
                yield self._see(event)
                if self._outcome is not None:
                    break
        finally:
            # Also where the reader stops early: a connection may hang on it.
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()
        self._end()

    async def collect(self) -> Outcome:
        """Take the stream to its end, and give the outcome."""
        if self._outcome is None:
            async for _ in self:
                pass
        return self._end()


class SyncTurnStream(_StreamOutcome[Outcome]):
    """The same for sync code."""

    def __iter__(self) -> Iterator[StreamEvent]:
        events = self._open("stream_sync")
        try:
            for event in events:
                yield self._see(event)
                if self._outcome is not None:
                    break
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
        self._end()

    def collect(self) -> Outcome:
        """Take the stream to its end, and give the outcome."""
        if self._outcome is None:
            for _ in self:
                pass
        return self._end()
