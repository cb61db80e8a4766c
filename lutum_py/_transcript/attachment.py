"""A file that goes with a message or a tool result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from .._text.unicode import sendable
from ..errors import InvalidValueError, MisuseError

if TYPE_CHECKING:
    from .saved import Saved

__all__ = [
    "Attachment",
    "MediaType",
    "attachments_of",
    "dump_attachments",
    "load_attachments",
]

MediaType: TypeAlias = Literal["image", "audio", "video", "file"]

_MEDIA_TYPES: tuple[object, ...] = get_args(MediaType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Describe a file by where it is.

    Attributes:
        media_type: What kind of file: `image`, `audio`, `video` or `file`.
        mime_type: Its MIME type, as in `image/png`.
        url: Where it is: an `https:` address, or a `data:` URL that carries it.
        caption: A line about it for people and models.
        size: Its size in bytes, where that is known.

    Raises:
        MisuseError: A field is of another type.
        InvalidValueError: The media type is none of the four.

    Example:
        >>> Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png").caption
    """

    media_type: MediaType
    mime_type: str
    url: str
    caption: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Refuse what neither a store nor a provider would take; half a pair becomes U+FFFD."""
        if self.media_type not in _MEDIA_TYPES:
            raise InvalidValueError(
                f"Attachment: `media_type` {self.media_type!r} is none of "
                f"{', '.join(get_args(MediaType))}."
            )
        for field in ("mime_type", "url"):
            if not isinstance(getattr(self, field), str):
                raise MisuseError.of_field("Attachment", field, "a text", getattr(self, field))
        if not isinstance(self.caption, str | None):
            raise MisuseError.of_field("Attachment", "caption", "a text or None", self.caption)
        if not isinstance(self.size, int | None) or isinstance(self.size, bool):
            raise MisuseError.of_field("Attachment", "size", "a number or None", self.size)
        for field in ("mime_type", "url", "caption"):
            text = getattr(self, field)
            if text is not None:
                object.__setattr__(self, field, sendable(text))


def attachments_of(owner: str, given: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Take attachments from whatever gives them.

    Args:
        owner: What has them, for the message.
        given: The attachments.

    Raises:
        MisuseError: They are none, or one of them is none.
    """
    if not isinstance(given, Iterable):
        raise MisuseError.of_field(owner, "attachments", "a list of `Attachment`s", given)
    listed = tuple(given)
    for index, each in enumerate(listed):
        if not isinstance(each, Attachment):
            raise MisuseError.of_field(owner, f"attachments[{index}]", "an `Attachment`", each)
    return listed


def dump_attachments(attachments: tuple[Attachment, ...]) -> dict[str, Any]:
    """Give the entry of a value that stands for its attachments; nothing where there are none."""
    if not attachments:
        return {}
    return {
        "attachments": [
            {
                "media_type": each.media_type,
                "mime_type": each.mime_type,
                "url": each.url,
                "caption": each.caption,
                "size": each.size,
            }
            for each in attachments
        ]
    }


def load_attachments(saved: Saved) -> tuple[Attachment, ...]:
    """Read what `dump_attachments` gave."""
    return tuple(
        Attachment(
            media_type=each.member("media_type", MediaType),
            mime_type=each.get("mime_type", str),
            url=each.get("url", str),
            caption=each.get("caption", str, None),
            size=each.get("size", int, None),
        )
        for each in saved.each("attachments", optional=True)
    )
