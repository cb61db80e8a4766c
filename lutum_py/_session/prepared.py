"""A request that is ready to be sent, and how the turn that answers it is taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .._declare.answer import Answer
from .._declare.offer import OfferedTools
from .._round.read_turn import NeedsTools, read_turn
from .._text.json import shorten
from .._transcript.assistant import AssistantTurn
from .._transcript.place import Place
from .._transcript.request import TurnRequest
from .._transcript.transcript import CommittedRound, Transcript, TranscriptView
from ..errors import MisuseError

if TYPE_CHECKING:
    from .._view.view import View


class SpokenIn(Protocol):
    """What a turn needs of its session."""

    transcript: Transcript
    id: str | None

    def _request_items(self, view: View | None = None) -> TranscriptView:
        """Return what the next request says."""
        ...

    def _drop_ephemeral(self, sent: TranscriptView) -> None:
        """Forget the ephemeral messages of a request that succeeded."""
        ...


class Prepared:
    """A request, and what is needed to read the turn that answers it."""

    __slots__ = ("answer", "offered", "redact", "request", "session", "toolset")

    def __init__(
        self,
        session: SpokenIn,
        toolset: type[Any],
        offered: OfferedTools,
        request: TurnRequest,
        redact: bool,
        answer: Answer[Any] | None = None,
    ) -> None:
        self.session: SpokenIn = session
        self.toolset: type[Any] = toolset
        self.offered: OfferedTools = offered
        self.request: TurnRequest = request
        self.redact: bool = redact
        self.answer: Answer[Any] | None = answer

    def take(self, turn: AssistantTurn) -> Any:
        """Read the turn: an answer goes into the transcript, a round waits for its commit."""
        if not isinstance(turn, AssistantTurn):
            raise MisuseError(
                f"The model answered with {shorten(turn)}. A model's `respond` gives an "
                "AssistantTurn; a dialect's `decode(response)` makes one."
            )
        outcome: Any = read_turn(self.toolset, turn, self.offered, self.redact, self.answer)
        session = self.session
        items: Any = self.request.items
        # A round is not in the transcript before its commit, so a request that is made meanwhile
        # does not have calls without results.
        if outcome.__class__ is NeedsTools:
            length: int = items.base_length
            # The round remembers where it was opened, and is committed nowhere else.
            last = session.transcript._items[length - 1] if length else None
            # The key of a call is then `ticket-7/12/9f3c…`: two calls with equal arguments in two
            # turns have different keys, and one that is run again after a crash has the same.
            begins = "" if session.id is None else f"{session.id}/{length}/"
            outcome.round._stand_at(session.transcript, Place(length, last), begins)
        else:
            committed: CommittedRound | None = outcome.result.committed
            if committed is None:
                session.transcript.append_turn(turn)
            else:
                session.transcript.append_round(committed)
        if items.ephemeral:
            session._drop_ephemeral(items)
        return outcome
