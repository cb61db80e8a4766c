"""A hint that the model should be asked once more."""

from __future__ import annotations

from dataclasses import dataclass

from .._call.outcomes import RecoverableToolCallIssue

__all__ = ["ContinueSuggestion"]


@dataclass(frozen=True, slots=True)
class ContinueSuggestion:
    """Say why the model should go on: it made calls that could not be used.

    Attributes:
        call_ids: The ids of those calls.
        text: The same for people.
    """

    call_ids: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, issues: tuple[RecoverableToolCallIssue, ...]) -> ContinueSuggestion | None:
        """Make the suggestion that issues give reason for, if there are any."""
        if not issues:
            return None
        count = len(issues)
        text = (
            f"{count} tool call{'s' * (count != 1)} could not be used; the model is told why, and "
            "can correct itself when it is asked again."
        )
        return cls(tuple(issue.metadata.id for issue in issues), text)
