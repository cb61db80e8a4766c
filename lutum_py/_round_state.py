"""What a round and all plans made from it share: whether it is still open, above all."""

from __future__ import annotations

import warnings

from ._assistant import AssistantTurn
from .errors import RoundClosedError

__all__ = ["RoundState"]


class RoundState:
    """Keep one turn until it is closed: committed, resolved, aborted, discarded or dumped.

    Attributes:
        turn: The turn of the model.
        closed_by: How it was closed; None while it is open.
        ran_before: The before-hooks that were run, by call id and order of registration.
        started: The ids of calls whose tools were started and then suspended themselves.
    """

    __slots__ = ("__weakref__", "closed_by", "ran_before", "started", "turn")

    def __init__(self, turn: AssistantTurn) -> None:
        self.turn = turn
        self.closed_by: str | None = None
        self.ran_before: set[tuple[str, int]] = set()
        self.started: set[str] = set()

    def check_open(self) -> None:
        """Refuse to go on with a closed round.

        Raises:
            RoundClosedError: It was closed; the text says how.
        """
        if self.closed_by is not None:
            raise RoundClosedError(
                f"This round was already {self.closed_by}. A round ends once: use the round of a "
                "new turn."
            )

    def close(self, how: str) -> None:
        """Close the round."""
        self.check_open()
        self.closed_by = how

    def __del__(self) -> None:
        if getattr(self, "closed_by", "") is None:
            ids = ", ".join(repr(call.id) for call in self.turn.tool_calls[:5])
            warnings.warn(
                f"A round with calls {ids} was dropped while it was open. Commit it, close it with "
                "`plan.abort(session, reason)`, or say `round.discard()`.",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )
