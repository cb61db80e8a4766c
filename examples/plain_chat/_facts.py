"""What is known of the provider."""

from __future__ import annotations

import re
from typing import Final

from lutum_py.dialects.authoring import Facts

NAME: Final = "plain_chat"

FACTS: Final = Facts(
    name=NAME,
    key="messages",
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    tool_names_in_words="letters, digits, `_` and `-`, at most 64 characters",
    names_at=("tools[].name", "call.name"),
    truncated=frozenset({"limit"}),
    refused=frozenset({"filtered"}),
    is_own_item=lambda item: "calls" in item,
)
