"""Where the cache points stand: each is a block of its own behind what is to be kept.

They stand where the markers of the Messages API do, and for the same reasons. (Amazon Bedrock user
guide: "Prompt caching".)
"""

from __future__ import annotations

from typing import Any

from ..._transcript.cache import Cache
from .._blocks.rendering import mark_messages
from ._encode import Rendering


def mark(body: dict[str, Any], cache: Cache, rendering: Rendering, tools: int) -> None:
    """Put cache points into a body that nobody else has.

    Args:
        body: The body, before the user's extras.
        cache: What the request says.
        rendering: What the messages of the body were rendered by.
        tools: How many of the first tools are on offer in every request.
    """
    point = {"type": "default", **({} if cache.ttl is None else {"ttl": cache.ttl})}

    def put(blocks: list[dict[str, Any]], end: int) -> None:
        blocks.insert(end, {"cachePoint": dict(point)})

    if cache.tools and tools:
        put(body["toolConfig"]["tools"], tools)
    if cache.system and (end := rendering.system_end):
        put(body["system"], end)
    mark_messages(body["messages"], cache.turns, rendering.lasting, put)
