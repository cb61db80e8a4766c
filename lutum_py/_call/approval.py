"""What decisions leave with a call.

Two may ask about one call: a gate before it is run, and the tool itself while it runs. Each is
answered by a decision of its own, and neither answer stands for the other: a call that a tool
suspended goes on under the gate's approval that it was started with, and one that the tool's
question was answered for has still to pass the gates.
"""

from __future__ import annotations

from typing import NamedTuple

from .._context.suspension import Decision, ResumeMode, SuspendTicket

__all__ = ["Approval"]


class Approval(NamedTuple):
    """What binds a call to the decision by which it goes on.

    Attributes:
        decision: The decision.
        ticket: What was asked.
        digest: The digest that the call had when it was suspended.
        is_of_tool: Whether the tool asked, after it was started; else a gate or the program.
        other: What answered the other asker, if that one asked as well.
        is_open: Whether hooks may still change the input: while an edit is sent through them.
    """

    decision: Decision
    ticket: SuspendTicket
    digest: str
    is_of_tool: bool
    other: Approval | None = None
    is_open: bool = False

    @property
    def is_for_tool(self) -> bool:
        """Whether the tool itself reads the decision."""
        return self.ticket.resume_mode is ResumeMode.PASS_DECISION_TO_TOOL

    def of(self, tool: bool) -> Approval | None:
        """Give the answer to the tool's own question, or to the other asker's."""
        return self if self.is_of_tool is tool else self.other
