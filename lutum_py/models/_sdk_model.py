"""What the models of all SDKs have in common: one request, one call of the SDK, one turn.

```
TurnRequest ─ prepare ─▶ body ─ the SDK's call ─▶ response ─ dump ─▶ dialect.decode ─▶ turn
                                              └─▶ events ─── dump ─▶ StreamDecoder ──▶ events
```

A model of one SDK fills in four things: its dialect, where the client has its methods, how a body
becomes their arguments, and how an object of the SDK becomes the wire's own JSON.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from json import JSONDecodeError
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

from pydantic import ValidationError

from .. import AssistantTurn, ToolMetadata, TurnRequest
from .._schema.signature import signature_of
from .._text.escaping import escape_unprintable
from .._text.json import shorten
from .._text.names import stand_in
from .._transcript.assistant import with_calls
from ..dialects import Loss
from ..dialects._dialect import Dialect
from ..dialects._schema.compiler import compile_schema
from ..dialects._stream import StreamReader
from ..errors import DialectError, MisuseError
from ..streaming import CallCompleted, StreamEvent, TurnFinished

_LOG: Final = logging.getLogger("lutum.models")
_OF_SCHEMAS: Final = "tools."
_PACKAGE: Final = __name__.partition(".")[0]


class LossWarning(UserWarning):
    """The model does not see, or is not asked for, a part of what the request says."""


def report(losses: Iterable[Loss], known: dict[Loss, None]) -> None:
    """Report each loss that is not known yet, and make it known.

    Example:
        >>> known = {}
        >>> report([Loss("tools.add.properties.a", "maximum is not enforced")], known)
        >>> [str(loss) for loss in known]
        ['tools.add.properties.a: maximum is not enforced']
    """
    for loss in losses:
        if loss in known:
            continue
        if loss.where.startswith(_OF_SCHEMAS):
            _LOG.info("%s", escape_unprintable(str(loss)))
        else:
            warnings.warn(
                escape_unprintable(str(loss)), LossWarning, stacklevel=_level_of_the_user()
            )
        # Only now: a warning may be an error, and then the next request is refused as this one is.
        known[loss] = None


def _level_of_the_user() -> int:
    """Count the frames from whoever asks to the line outside of this package that led here."""
    # A fixed `stacklevel` would name a line in here: how many frames lie between depends on whether
    # the turn was collected, streamed, or run by a session.
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{_PACKAGE}."):
        frame, level = frame.f_back, level + 1
    return level


Decoder = Callable[[Any], Any]


# In strict mode a provider writes arguments in the form of the schema that it was given, where
# `null` stands for "left out" and a union may have an object around it. They are turned back into
# the form of the author's schema before anything else reads them; the text as it was sent stays in
# the payload of the turn, from which it is replayed.
@dataclass(frozen=True, slots=True)
class PreparedBody:
    """A request body, and the decoders of arguments.

    Attributes:
        body: The request body, without the model's name.
        extra: The fields of it that the user gave, by name.
        decoders: By name and stand-in, what turns arguments back into the author's form.
    """

    body: dict[str, Any]
    extra: Mapping[str, Any]
    decoders: Mapping[str, Decoder]

    def turn(self, turn: AssistantTurn) -> AssistantTurn:
        """Return a turn with its calls in the author's form."""
        return with_calls(turn, self._call)

    def event(self, event: StreamEvent) -> StreamEvent:
        """Return an event with the call that it carries in the author's form."""
        if isinstance(event, CallCompleted):
            return CallCompleted(event.index, self._call(event.metadata))
        return event

    def _call(self, call: ToolMetadata) -> ToolMetadata:
        decoder = self.decoders.get(call.name)
        return call if decoder is None else replace(call, arguments=decoder(call.arguments))


# A stream that ends within a character is no UTF-8.
_Unread: TypeAlias = JSONDecodeError | UnicodeDecodeError | ValidationError
"""What an SDK raises if it cannot read what came."""


@dataclass(frozen=True, slots=True)
class Methods:
    """The methods of a client that send a request: for a whole answer, and for its events."""

    whole: Callable[..., Any]
    streamed: Callable[..., Any]


class SdkModel(ABC):
    """Answer requests by one client of an SDK.

    Attributes:
        client: The client, as it was given.
        model: The name of the provider's model.
        strict: Whether tools are offered in the provider's strict mode.
        native_search: Whether deferred tools are sent as such, if the provider knows them.
    """

    _dialect: Dialect[Any]
    _reader: ClassVar[type[StreamReader]]
    _clients: ClassVar[tuple[str, str]]
    """How the SDK calls its sync client and its async one."""

    def __init__(
        self, client: Any, model: str, *, strict: bool, native_search: bool = False
    ) -> None:
        if not isinstance(model, str) or not model:
            raise MisuseError(
                f"{type(self).__name__} needs the name of the provider's model as its second "
                f"argument, not {shorten(model)}."
            )
        self._client = client
        self.model = model
        self.strict = strict
        # A provider may answer by another name than it was asked by, as `gpt-x-sol` to `gpt-x`.
        self._names: tuple[str, ...] = (model,)
        self.native_search = native_search
        self._losses: dict[Loss, None] = {}
        try:
            self._sync, self._async = self._methods(client)
        except AttributeError as error:
            made = " or ".join(f"{each}(...)" for each in dict.fromkeys(self._clients))
            raise MisuseError(
                f"{type(self).__name__} takes a client that you made with {made}, not a "
                f"{type(client).__name__} ({error})."
            ) from error

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the requests so far could not carry, each once; see `LossWarning`."""
        return tuple(self._losses)

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Send one request by the async client, and give the turn that comes back.

        Raises:
            MisuseError: The client is a sync one.
            DialectError: What came back cannot be read. Errors of the SDK come as they are.
        """
        methods = self._async or self._refuse("respond")
        prepared = self._prepare(request)
        try:
            response = await methods.whole(**self._arguments(prepared))
        except ValueError as error:
            raise self._unreadable("the response", _unread(error)) from error
        return self._decode(prepared, response)

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Do the same by the sync client.

        Raises:
            MisuseError: The client is an async one.
            DialectError: What came back cannot be read. Errors of the SDK come as they are.
        """
        methods = self._sync or self._refuse("respond_sync")
        prepared = self._prepare(request)
        try:
            response = methods.whole(**self._arguments(prepared))
        except ValueError as error:
            raise self._unreadable("the response", _unread(error)) from error
        return self._decode(prepared, response)

    def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Send one request by the async client when iteration starts, and give its events.

        `TurnFinished` comes when the wire is at its end. If the reader stops early, the
        connection is closed.

        Raises:
            MisuseError: The client is a sync one.
            DialectError: What came back cannot be read. Errors of the SDK come as they are.
        """
        return self._stream(self._async or self._refuse("stream"), request)

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        """Do the same by the sync client.

        Raises:
            MisuseError: The client is an async one.
            DialectError: What came back cannot be read. Errors of the SDK come as they are.
        """
        return self._stream_sync(self._sync or self._refuse("stream_sync"), request)

    async def _stream(self, methods: Methods, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        prepared = self._prepare(request)
        reader = self._reader()
        wire = await methods.streamed(**self._stream_arguments(prepared))
        events = aiter(wire)
        try:
            async for event in events:
                for each in self._read(prepared, reader, event):
                    yield each
        except ValueError as error:
            self._break(reader, _unread(error))
        finally:
            # The SDK iterates by a generator of its own, which knows nothing of the response.
            for resource in (events, wire):
                await _aclose(resource)
        for each in self._end(prepared, reader):
            yield each

    def _stream_sync(self, methods: Methods, request: TurnRequest) -> Iterator[StreamEvent]:
        prepared = self._prepare(request)
        reader = self._reader()
        wire = methods.streamed(**self._stream_arguments(prepared))
        events = iter(wire)
        try:
            for event in events:
                yield from self._read(prepared, reader, event)
        except ValueError as error:
            self._break(reader, _unread(error))
        finally:
            for resource in (events, wire):
                close_sync(resource)
        yield from self._end(prepared, reader)

    def _prepare(self, request: TurnRequest) -> PreparedBody:
        """Make the body of a request, and report what it could not carry.

        Raises:
            ToolDefinitionError: A tool has no form in the dialect, or none in its strict mode.
        """
        dialect, strict = self._dialect, self.strict
        encoded = dialect.encode_request(
            request, strict=strict, model=self._names, native_search=self.native_search
        )
        decoders = {
            name: compile_schema(each, dialect.facts, strict=True).decoder
            for each in (request.tools if strict else ())
            # The call comes back under the name that went out, which the dialect may or may not
            # have turned back by then.
            for name in (stand_in(each.name), each.name)
        }
        report(encoded.losses, self._losses)
        return PreparedBody(dict(encoded), request.extra, decoders)

    def _decode(self, prepared: PreparedBody, response: Any) -> AssistantTurn:
        return self._taken(prepared, self._dialect.decode(self._dump(response)))

    def _taken(self, prepared: PreparedBody, turn: AssistantTurn) -> AssistantTurn:
        """Return a turn in the author's form, and remember the name by which it came."""
        if turn.model is not None and turn.model not in self._names:
            # A new tuple, because requests that are under way hold the old one, and a rendering is
            # kept under it as its key.
            self._names = (*self._names, turn.model)
        return prepared.turn(turn)

    def _read(
        self, prepared: PreparedBody, reader: StreamReader, event: Any
    ) -> Iterator[StreamEvent]:
        for each in reader.feed(self._dump(event)):
            # The last event waits for the end of the wire: whoever reads stops there, and a
            # connection that was read to its end serves the next turn too.
            if not isinstance(each, TurnFinished):
                yield prepared.event(each)

    def _end(self, prepared: PreparedBody, reader: StreamReader) -> Iterator[StreamEvent]:
        for each in reader.close():
            if not isinstance(each, TurnFinished):
                yield prepared.event(each)
        yield TurnFinished(self._taken(prepared, reader.finish()))

    def _break(self, reader: StreamReader, error: _Unread) -> NoReturn:
        if isinstance(error, JSONDecodeError):
            # The decoder says where the text stands and what came before it.
            reader.feed(error.doc)
        raise reader._failed(self._unreadable(reader.position, error)) from error

    def _unreadable(self, where: str, error: Exception) -> DialectError:
        name = self._dialect.facts.name
        text = f"{name} at {where}: the SDK cannot read it ({shorten(str(error), 400)})."
        return DialectError(text, dialect=name, where=where)

    def _refuse(self, method: str) -> NoReturn:
        """Say which client the method needs, and which method the client has."""
        sync_client, async_client = self._clients
        is_sync = method.endswith("_sync")
        have, need = ("an async", sync_client) if is_sync else ("a sync", async_client)
        other = method.removesuffix("_sync") if is_sync else f"{method}_sync"
        builder = other.replace("respond", "collect")
        raise MisuseError(
            f"{type(self).__name__}.{method} needs {need}, but this model was made with "
            f"{type(self.client).__name__}, {have} client. End the turn with `.{builder}()`, which "
            f"calls `{other}`, or make the model with {need}(...)."
        )

    @property
    def client(self) -> Any:
        """The client of the SDK; another one needs another model."""
        return self._client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r} by {type(self.client).__name__}>"

    @abstractmethod
    def _methods(self, client: Any) -> tuple[Methods | None, Methods | None]:
        """Find the methods of a client, sync and async; an AttributeError where they are not."""

    @abstractmethod
    def _arguments(self, prepared: PreparedBody) -> dict[str, Any]:
        """Return the arguments with which the SDK's method sends the body."""

    def _stream_arguments(self, prepared: PreparedBody) -> dict[str, Any]:
        return self._arguments(prepared)

    @abstractmethod
    def _dump(self, sent: Any) -> Any:
        """Return the wire's own JSON; what is not an object of the SDK is passed on unchanged."""


def _unread(error: ValueError) -> _Unread:
    """Find what an SDK could not read; an error of another kind goes on as it is."""
    # By type and not as any ValueError: a wrong argument of the user is one, too, and is not the
    # provider's fault.
    for each in (error, error.__cause__):  # google-genai puts an error of its own in front
        if isinstance(each, _Unread):
            return each
    raise error


def close_sync(resource: Any) -> None:
    """Close what can be closed."""
    close = getattr(resource, "close", None)
    if close is not None:
        close()


async def _aclose(resource: Any) -> None:
    # An async stream of openai has a `close` that is awaited, an async generator `aclose`.
    close = getattr(resource, "aclose", None) or getattr(resource, "close", None)
    if close is not None:
        await close()


class CreateModel(SdkModel):
    """Answer requests by the method `create` of a resource of the client."""

    _required: ClassVar[frozenset[str]]
    """The request fields without which `create` cannot be called."""

    @abstractmethod
    def _create(self, client: Any) -> Any:
        """Find the method; an AttributeError where there is none."""

    def _methods(self, client: Any) -> tuple[Methods | None, Methods | None]:
        create = self._create(client)
        methods = Methods(create, partial(create, stream=True))
        parameters = signature_of(create).parameters
        self._known = frozenset(parameters)
        self._takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return (None, methods) if _is_async(client, create) else (methods, None)

    def _arguments(self, prepared: PreparedBody) -> dict[str, Any]:
        """Share the body out between the parameters of `create` and `extra_body`.

        What the user gave as extras, and what this version of the SDK has no parameter for, goes
        into `extra_body`, which the SDK adds to the request as it is.
        """
        arguments: dict[str, Any] = {"model": self.model}
        rest: dict[str, Any] = {}
        for key, value in prepared.body.items():
            is_extra = key in prepared.extra
            # What the user replaced, such as `messages`, is given twice: `create` cannot be called
            # without it, and `extra_body` then puts the user's in its place.
            if key in self._required or (not is_extra and (self._takes_any or key in self._known)):
                arguments[key] = value
            if is_extra or key not in arguments:
                rest[key] = value
        if rest:
            arguments["extra_body"] = rest
        return arguments

    def _dump(self, sent: Any) -> Any:
        to_dict = getattr(sent, "to_dict", None)
        # The SDK would warn of every field in which a host departs from its types.
        return sent if to_dict is None else to_dict(mode="json", warnings=False)


def _is_async(client: Any, method: Callable[..., Any]) -> bool:
    """Tell whether a client is an async one, also if a tracer has wrapped its method."""
    # The SDK's own `create` of an async client; below, a stand-in or a wrapper that is not one by
    # name.
    if inspect.iscoroutinefunction(inspect.unwrap(method)):
        return True
    return hasattr(client, "__aenter__") and not hasattr(client, "__enter__")
