"""Where the markers of the prompt cache stand.

A marker says: keep the beginning up to here. A later request finds the entry where its own marker,
or one of the twenty blocks before it, ends the same beginning. So the ends of the last two user
messages are marked: that of this request, and that of the one before. Nothing is marked from an
ephemeral message on: no later request begins so. (Anthropic guide: "Prompt caching".)
"""

from __future__ import annotations

from typing import Any

from ..._transcript.cache import Cache
from ._encode import Rendering


def mark(body: dict[str, Any], cache: Cache, rendering: Rendering, tools: int) -> None:
    """Put the markers into a body that nobody else has.

    Args:
        body: The body, before the user's extras.
        cache: What the request says.
        rendering: What the messages of the body were rendered by.
        tools: How many of the first tools are on offer in every request.
    """
    marker: dict[str, Any] = {"type": "ephemeral"}
    if cache.ttl is not None:
        marker["ttl"] = cache.ttl
    if cache.tools and tools:
        body["tools"][tools - 1]["cache_control"] = dict(marker)
    if cache.system:
        texts, lasting = rendering.system, rendering.lasting_system
        end = len(texts) if lasting is None else lasting
        if end:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
            blocks[end - 1]["cache_control"] = dict(marker)
            body["system"] = blocks
    _mark_messages(body["messages"], cache.turns, rendering.lasting, marker)


def _mark_messages(
    messages: list[dict[str, Any]],
    count: int,
    lasting: tuple[int, int] | None,
    marker: dict[str, Any],
) -> None:
    """Mark the last blocks of so many user messages, the last ones before anything ephemeral."""
    last, blocks = (len(messages), 0) if lasting is None else lasting
    for at in range(min(last, len(messages) - 1), -1, -1):
        message = messages[at]
        if not count:
            return
        if message["role"] != "user":
            continue
        content: list[dict[str, Any]] = message["content"]
        end = blocks if at == last else len(content)
        if end:
            content[end - 1]["cache_control"] = dict(marker)
            count -= 1
