"""Gates that look at the whole call: its tool's capabilities, not only its input."""

from __future__ import annotations

from typing import Any

from ._call import AnyToolCall
from ._decisions import Block, Complete, Suspend
from ._result import ToolResult
from ._suspension import Decision

__all__ = ["CallGate"]


class CallGate:
    """Base of stock gates: asked with the call and the decision by which it goes on, if any."""

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError
