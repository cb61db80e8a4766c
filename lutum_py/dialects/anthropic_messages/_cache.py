"""Where the markers of the prompt cache stand.

A marker says: keep the beginning up to here. A later request finds the entry where its own marker,
or one of the twenty blocks before it, ends the same beginning. So the ends of the last two user
messages are marked: that of this request, and that of the one before. Nothing is marked from an
ephemeral message on: no later request begins so. (Anthropic guide: "Prompt caching".)
"""

from __future__ import annotations

from typing import Any

from ..._transcript.cache import Cache
from .._blocks.rendering import mark_messages
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

    def put(blocks: list[dict[str, Any]], end: int) -> None:
        blocks[end - 1]["cache_control"] = dict(marker)

    if cache.tools and tools:
        put(body["tools"], tools)
    if cache.system and (end := rendering.system_end):
        body["system"] = [{"type": "text", "text": text} for text in rendering.system]
        put(body["system"], end)
    mark_messages(body["messages"], cache.turns, rendering.lasting, put)
