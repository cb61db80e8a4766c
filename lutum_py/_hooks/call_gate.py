"""Gates that look at the whole call: its tool's capabilities, not only its input."""

from __future__ import annotations

from typing import Any

from .._call.call import AnyToolCall
from .._context.suspension import Decision
from .._transcript.result import ToolResult
from .decisions import Block, Complete, Suspend

__all__ = ["CallGate"]


class CallGate:
    """Base of stock gates: asked with the call and the decision by which it goes on, if any."""

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError
