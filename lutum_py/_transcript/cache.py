"""How the provider's cache of prompts is to be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .._text.json import is_whole, shorten
from ..errors import InvalidValueError, MisuseError

_MOST: Final = 4
"""So many markers does Anthropic take in one request."""

_TTLS: Final = ("5m", "1h")


@dataclass(frozen=True, slots=True)
class Cache:
    """Say how the provider's cache of prompts is to be used; each dialect takes what it knows.

    Args:
        tools: Mark the end of the tools (Anthropic).
        system: Mark the end of the instructions (Anthropic).
        turns: Mark the ends of so many of the last user messages, results included: with 2 that of
            this request and that of the one before, whose entry is found again (Anthropic).
        ttl: How long an entry lives after it was last used, `"5m"` or `"1h"`; None for the
            provider's own (Anthropic).
        key: Requests with one key are sent where the prompt is cached (OpenAI).
        retention: How long entries are kept, as in `"24h"` (OpenAI).
        content: The name of a cached content that you made, as in `cachedContents/abc` (Gemini).
        covers: How many of the first items of the request are in that content (Gemini).

    A field that a dialect has no word for is a loss at `cache.<field>`; `tools`, `system` and
    `turns` are none, because the other providers cache beginnings by themselves.

    Raises:
        InvalidValueError: There would be more than 4 markers, the ttl is unknown, `content` is
            blank, or `covers` is given without it.
        MisuseError: A field has another type.

    Example:
        >>> Cache(ttl="1h").turns
        2
    """

    tools: bool = True
    system: bool = True
    turns: int = 2
    ttl: str | None = None
    key: str | None = None
    retention: str | None = None
    content: str | None = None
    covers: int = 0

    def __post_init__(self) -> None:
        for name in ("tools", "system"):
            if not isinstance(getattr(self, name), bool):
                raise MisuseError.of_field("Cache", name, "True or False", getattr(self, name))
        for name in ("turns", "covers"):
            count = getattr(self, name)
            if not is_whole(count) or count < 0:
                raise MisuseError.of_field("Cache", name, "a whole number, 0 or more", count)
        for name in ("ttl", "key", "retention", "content"):
            if not isinstance(getattr(self, name), str | None):
                raise MisuseError.of_field("Cache", name, "a text or None", getattr(self, name))
        # Anthropic refuses a fifth marker only when the request is sent. Here it is found where the
        # program is written, for every model.
        markers = self.tools + self.system + self.turns
        if markers > _MOST:
            raise InvalidValueError(
                f"Cache: tools, system and {self.turns} turns are {markers} markers, and Anthropic "
                f"takes {_MOST} in a request. Mark fewer turns, or leave out `tools` or "
                "`system`."
            )
        if self.ttl is not None and self.ttl not in _TTLS:
            raise InvalidValueError(
                f"Cache: ttl={shorten(self.ttl)} is none of {' and '.join(map(repr, _TTLS))}."
            )
        if self.content is not None and not self.content.strip():
            raise InvalidValueError(
                "Cache: content is blank. Name the cached content, or leave it."
            )
        if self.covers and self.content is None:
            raise InvalidValueError(
                f"Cache: covers={self.covers} items of what? Name the cached content that they are "
                "in, as in `content='cachedContents/abc'`."
            )
