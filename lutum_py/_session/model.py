"""What a model has to be able to do: answer a request with one turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from inspect import iscoroutine
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from .._text.json import shorten
from .._transcript.assistant import AssistantTurn
from .._transcript.request import TurnRequest
from .._transcript.stream_events import StreamEvent
from ..errors import MisuseError


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
