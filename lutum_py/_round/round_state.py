"""What a round and all plans made from it share: whether it is still open, above all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from time import time
from types import MappingProxyType
from typing import Any

from .._call.line import Step
from .._text.escaping import visible
from .._transcript.assistant import AssistantTurn
from ..errors import RoundClosedError

_NONE: frozenset[str] = frozenset()
_NO_LINES: Mapping[str, tuple[Step, ...]] = MappingProxyType({})


class RoundState:
    """Keep one turn until it is closed: committed, resolved, aborted, discarded or dumped.

    Attributes:
        turn: The turn of the model.
    """

    # Of the private ones: when the turn was read; the ids of calls whose edits are with hooks right
    # now; how it was closed (None while it is open); what the idempotency keys of its calls begin
    # with; the ids of calls that moved from list to list, in order; within a `with` of the round,
    # the plans made from it; the lines of calls that are of no tool, once they have a result. Most
    # rounds share the empty ones.
    __slots__ = (
        "__weakref__",
        "_amending",
        "_at",
        "_closed_by",
        "_key_begins",
        "_moved",
        "_plans",
        "_unread",
        "turn",
    )

    def __init__(self, turn: AssistantTurn) -> None:
        self.turn: AssistantTurn = turn
        self._amending = _NONE
        self._at: float | None = time()
        self._closed_by: str | None = None
        self._key_begins = ""
        self._moved: Sequence[str] = ()
        self._plans: list[Any] | None = None
        self._unread = _NO_LINES

    def _check_open(self) -> None:
        """Refuse to go on with a closed round.

        Raises:
            RoundClosedError: It was closed; the text says how.
        """
        if self._closed_by is not None:
            raise RoundClosedError(
                f"This round was already {self._closed_by}. A round ends once: use the round of a "
                "new turn."
            )

    def _close(self, how: str) -> None:
        """Close the round."""
        if self._closed_by is not None:
            self._check_open()
        _set_closed_by(self, how)

    def _leave(self, begun: dict[str, str]) -> None:
        """End a `with`: what is still open is forgotten, and not in silence if a call was begun.

        Args:
            begun: The tools of the calls that were begun or recorded, by call id.
        """
        self._close("discarded")
        if begun:
            calls = ", ".join(f"{id!r} of tool `{visible(tool)}`" for id, tool in begun.items())
            warnings.warn(
                f"A round was left open at the end of its `with`, and is discarded, though call "
                f"{calls} had been begun: what came of it is in no transcript. Commit the plan, "
                "save it with `plan.dump_json()`, or give it up with `plan.abort(session, "
                "reason)`.",
                ResourceWarning,
                stacklevel=3,  # where the `with` stands
                source=self,
            )

    def __del__(self) -> None:
        try:
            is_open = self._closed_by is None
        except AttributeError:  # it was not made to the end, which has been said
            return
        if is_open:
            ids = ", ".join(repr(call.id) for call in self.turn.tool_calls[:5])
            warnings.warn(
                f"A round with calls {ids} was dropped while it was open. Commit it, close it with "
                "`plan.abort(session, reason)`, or say `round.discard()`.",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )


class KeptState(RoundState):
    """A round that a store has too, so that nothing is lost where it is dropped."""

    __slots__ = ()

    def _leave(self, begun: dict[str, str]) -> None:  # noqa: ARG002 - on record
        self._close("discarded")

    def __del__(self) -> None:
        pass


# The slot itself: a round, which is such a state, is slow to assign to.
_set_closed_by: Any = vars(RoundState)["_closed_by"].__set__
