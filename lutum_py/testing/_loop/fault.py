"""What a loop can do wrong, and the error that tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..._transcript.assistant import AssistantTurn

FaultKind: TypeAlias = Literal[
    "never_asked",
    "raised",
    "endless",
    "invalid_request",
    "invalid_transcript",
    "lost_call",
    "answered_twice",
    "altered",
    "invented",
    "swallowed_duplicate",
]
"""What a loop can do wrong."""


@dataclass(frozen=True, slots=True)
class LoopFault:
    """One thing that a loop did wrong.

    Attributes:
        kind: A stable word for it, as in `lost_call`.
        text: What happened and what to do about it.
    """

    kind: FaultKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class LoopFailure(AssertionError):
    """A loop did something wrong; the text shows the shortest script that makes it do so.

    Attributes:
        faults: What it did wrong.
        script: The turns of the model, to reproduce it with.
    """

    __module__ = "lutum_py.testing"  # where it is imported from, which pytest shows

    def __init__(
        self, message: str, *, faults: Iterable[LoopFault], script: Sequence[AssistantTurn]
    ) -> None:
        super().__init__(message)
        self.faults: tuple[LoopFault, ...] = tuple(faults)
        self.script: tuple[AssistantTurn, ...] = tuple(script)
