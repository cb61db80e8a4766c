"""Leave a tool for calls that it requests, and find their outcomes when it is run again.

Nothing of the tool is kept alive: it says what it will need to go on (`state`), leaves by an
exception, and is run from its first line again once each call has its result. For example:

    def book(ctx, trip):
        if ctx.inner is None:
            ctx.request_calls([("find_flights", {"to": trip})])
        flights, = ctx.inner.results
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from .._text.json import is_sequence, shorten
from ..errors import MisuseError

if TYPE_CHECKING:
    # For the type alone: results are made above.
    from .._transcript.result import ToolResult


class HasName(Protocol):
    """A tool by its wire name, such as a selector."""

    @property
    def name(self) -> str:
        """The wire name."""
        ...


class HasToolCalls(Protocol):
    """Calls that a model made: a round that is open, or a turn."""

    @property
    def tool_calls(self) -> Sequence[Any]:
        """The calls."""
        ...


class HasConversation(Protocol):
    """A conversation, such as a `Session`."""

    id: str | None
    transcript: Any


CallsRequested: TypeAlias = HasToolCalls | Iterable[tuple[str | HasName, Mapping[str, Any]]]
"""What a tool requests: a round or turn of a model, or pairs of a tool and its arguments."""

InnerState: TypeAlias = bytes | str | HasConversation
"""What a tool may leave behind, to go on with."""

EXAMPLE: Final = 'as in `ctx.request_calls([("search", {"query": "Oslo"})])`'


# Where the tool asks, and not where its outcome is made: so the traceback leads to its line.
def pairs_in(given: Any, named: str) -> Sequence[Any]:
    """Return what a tool requests as pairs of a tool and its arguments.

    Args:
        given: What it requests, unless a model did.
        named: Who requests it, for an error.

    Raises:
        MisuseError: It is something else.
    """
    remedy = f"Pass pairs of a tool and its arguments, {EXAMPLE}, a round or a turn."
    try:
        pairs: Sequence[Any] = given if is_sequence(given) else tuple(given)
    except TypeError:
        raise MisuseError(f"{named} requests {shorten(given)}. {remedy}") from None
    for pair in pairs:
        if not is_sequence(pair) or len(pair) != 2:
            raise MisuseError(f"{named} requests {shorten(pair)}. {remedy}")
        tool, arguments = pair
        name = getattr(tool, "name", tool)
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise MisuseError(
                f"{named} requests a call of {shorten(name)} with {type(arguments).__name__}. Name "
                "the tool by its wire name or selector, and pass a dict of arguments."
            )
    return pairs


# An exception, since a tool may ask from deep within its own functions, and nothing of these has to
# know. A return value would have to be passed up by each of them.
class ToolRequestedCalls(Exception):
    """Leave a tool that cannot go on before others were called.

    Raised by `ToolContext.request_calls` and caught by `execution`, which makes an `AwaitingCall`
    of it. It is not a `ToolError`, since nothing failed: a tool lets it pass.

    Attributes:
        calls: What it requests.
        state: What it will need to go on.
    """

    def __init__(self, calls: CallsRequested, state: InnerState | None = None) -> None:
        super().__init__(calls, state)
        self.calls = calls
        self.state = state

    def __str__(self) -> str:
        return (
            "The tool was left by `ctx.request_calls(calls)`, and comes back when these have "
            "results. Run it with `execution`, as in `execution.run(plan, hooks=hooks)`."
        )


@dataclass(frozen=True, slots=True)
class Inner:
    """What a tool finds when it comes back from calls that it requested.

    Attributes:
        state: The bytes or text that it left; None if it left none, or a session.
        rounds: The results of each time that it requested calls, in the order of the calls: all of
            what each call gave, since only models need less.
    """

    state: bytes | str | None
    rounds: tuple[tuple[ToolResult, ...], ...]
    _open: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of what it requested last."""
        return self.rounds[-1]

    def session(self) -> Any:
        """Return the `Session` that was left, with the round of the calls after what was said.

        There the results stand under the ids that the model gave to its calls, and as a model is
        told about them: cut if a tool has a cap, with what people edited.

        Raises:
            MisuseError: No session was left.
        """
        if self._open is None:
            raise MisuseError(
                "This call left no session when it requested others. Leave one, as in "
                "`ctx.request_calls(outcome.round, state=session)`."
            )
        return self._open()
