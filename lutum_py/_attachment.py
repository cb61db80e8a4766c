"""A file that goes with a message or a tool result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Attachment", "MediaType"]

MediaType: TypeAlias = Literal["image", "audio", "video", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Describe a file by where it is.

    Attributes:
        media_type: What kind of file: `image`, `audio`, `video` or `file`.
        mime_type: Its MIME type, as in `image/png`.
        url: Where it is: an `https:` address, or a `data:` URL that carries it.
        caption: A line about it for people and models.
        size: Its size in bytes, where that is known.

    Example:
        >>> Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png").caption
    """

    media_type: MediaType
    mime_type: str
    url: str
    caption: str | None = None
    size: int | None = None
