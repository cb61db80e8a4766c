"""One request on its way to a provider, and the way back for the arguments of its calls.

In strict mode a provider writes arguments in the form of the schema that it was given, where `null`
stands for "left out" and a union may have an object around it. They are turned back here into the
form of the author's schema, before anything else reads them; the text as it was sent stays in the
payload of the turn, from which it is replayed.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from .._schema.stand_in import stand_in
from .._text.escaping import visible
from .._transcript.assistant import AssistantTurn, ToolMetadata, with_calls
from .._transcript.request import TurnRequest
from .._transcript.stream_events import CallCompleted, StreamEvent
from ..dialects._dialect import Dialect
from ..dialects._findings import Loss
from ..dialects._wire.replay import ModelNames

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
        known[loss] = None
        if loss.where.startswith(_OF_SCHEMAS):
            _LOG.info("%s", visible(str(loss)))
        else:
            warnings.warn(visible(str(loss)), LossWarning, stacklevel=_level_of_the_user())


def _level_of_the_user() -> int:
    """Count the frames from whoever asks to the line outside of this package that led here."""
    # A fixed `stacklevel` would name a line in here: how many frames lie between depends on whether
    # the turn was collected, streamed, or run by a session.
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{_PACKAGE}."):
        frame, level = frame.f_back, level + 1
    return level


Decoder = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class PreparedBody:
    """A request body, what it could not carry, and the decoders of arguments.

    Attributes:
        body: The request body, without the model's name.
        extra: The fields of it that the user gave, by name.
        losses: What it could not carry.
        decoders: By name and stand-in, what turns arguments back into the author's form.
    """

    body: dict[str, Any]
    extra: Mapping[str, Any]
    losses: tuple[Loss, ...]
    decoders: Mapping[str, Decoder]

    @classmethod
    def of(
        cls,
        dialect: Dialect[Any],
        request: TurnRequest,
        strict: bool,
        model: ModelNames,
        native_search: bool,
    ) -> Self:
        """Make the body of a request, as `dialect.encode_request` does.

        Raises:
            ToolDefinitionError: A tool has no form in the dialect, or none in its strict mode.
        """
        encoded = dialect.encode_request(
            request, strict=strict, model=model, native_search=native_search
        )
        decoders = {
            name: dialect.compile(each, strict=True).decoder
            for each in (request.tools if strict else ())
            # The call comes back under the name that went out, which the dialect may or may not
            # have turned back by then.
            for name in (stand_in(each.name), each.name)
        }
        return cls(dict(encoded), request.extra, encoded.losses, decoders)

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
