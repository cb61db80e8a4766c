"""Calls of the sample tools, and hooks that are asked about them."""

from __future__ import annotations

import re
from typing import Any

from lutum_py import (
    AnyToolCall,
    SuspendTicket,
    ToolMetadata,
)
from tests.sample_tools import (
    AppTools,
    sent,
)

USER = sent("get_user", "u1", user_id="alice")

SEARCH = sent("web_search", "s1", query="x")


TICKET = SuspendTicket(action="approve")


def parse(metadata: ToolMetadata = USER) -> AnyToolCall:
    return AppTools.parse_tool_call(metadata)


def dry_run_of(call: AnyToolCall) -> AnyToolCall:
    """A call of the same tool with the same input: what is done with it is not the call's."""
    return type(call)(call.metadata, call.input, selector=call.selector)


def on_user(*hooks: Any) -> Any:
    """A hook set with execution hooks for `get_user`."""
    made = AppTools.HookSet()
    for hook in hooks:
        made.on(AppTools.data.get_user)(hook)
    return made


def returned(answer: Any, wanted: str) -> str:
    """The pattern of the error for a hook that gave no decision: what came, and what to give."""
    return f"returned {re.escape(repr(answer)[:20])}.*\\. Return {re.escape(wanted)}"
