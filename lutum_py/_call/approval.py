"""What a decision leaves with a call."""

from __future__ import annotations

from .._context.suspension import Decision

__all__ = ["Approval"]


class Approval:
    """What binds a call to the decision by which it goes on.

    Attributes:
        decision: The decision.
        digest: The digest that the call had when it was suspended.
        suspension_id: The id of the suspension.
        action: What its ticket asked for.
        is_for_tool: Whether the tool itself reads the decision.
    """

    __slots__ = ("action", "decision", "digest", "is_for_tool", "suspension_id")

    def __init__(
        self,
        decision: Decision,
        *,
        digest: str,
        suspension_id: str,
        action: str,
        is_for_tool: bool,
    ) -> None:
        self.decision = decision
        self.digest = digest
        self.suspension_id = suspension_id
        self.action = action
        self.is_for_tool = is_for_tool
