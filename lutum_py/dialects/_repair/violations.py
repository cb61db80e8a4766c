"""What is wrong with a request, and what a repair changed."""

from __future__ import annotations

from dataclasses import dataclass

OUTCOME_UNKNOWN = (
    "Outcome unknown: the conversation holds no result for this call. It may or may not have run."
)
"""What a repair answers a call with that nobody answered."""

NOT_SHOWN = "The beginning of this conversation is not shown."
"""What a repair lets the user say where the provider wants to hear the user first."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of the provider that a request breaks.

    Attributes:
        position: Where, as in `messages[3].tool_calls[0]`; `request` is the whole of it.
        rule: A stable name of the rule, as in `call_without_result`.
        problem: What is wrong, in words.
        remedy: What to do about it.

    Example:
        >>> print(Violation("messages[1]", "orphan_result", "It answers no call", "Remove it"))
        messages[1]: It answers no call. Remove it (orphan_result).
    """

    position: str
    rule: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.position}: {self.problem}. {self.remedy} ({self.rule})."


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a repair did, or had to leave.

    Attributes:
        position: Where, in the request as it was given.
        rule: The rule that was broken there.
        what: What was done, in words.
        is_mended: False where nothing could be done, so that `check` still finds the breach.

    Example:
        >>> print(Change("messages[1]", "orphan_result", "Removed the result"))
        messages[1]: Removed the result (orphan_result).
    """

    position: str
    rule: str
    what: str
    is_mended: bool = True

    def __str__(self) -> str:
        return f"{self.position}: {self.what} ({self.rule})."
