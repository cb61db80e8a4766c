"""Attachments as content parts of OpenAI's two request formats.

Chat Completions takes images by address, audio as WAV or MP3 data and files as data, in user
messages only. Responses takes images and files, by address or as data, in messages and in the
outputs of tools. (OpenAI API reference: "Create chat completion", "Create a model response".)
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from typing import Any, TypeAlias

from ..._transcript.attachment import Attachment
from .losses import Loss
from .rendered_items import data_of

__all__ = ["PartOf", "chat_part", "parts_of", "responses_part"]

PartOf: TypeAlias = Callable[[Attachment], dict[str, Any] | None]
"""Makes the content part of an attachment; None where the dialect has none."""

_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def chat_part(attachment: Attachment) -> dict[str, Any] | None:
    """Make the part of a user message of Chat Completions."""
    data = data_of(attachment)
    if attachment.media_type == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    if attachment.media_type == "audio" and data is not None and attachment.mime_type in _AUDIO:
        audio = {"data": data, "format": _AUDIO[attachment.mime_type]}
        return {"type": "input_audio", "input_audio": audio}
    if attachment.media_type == "file" and data is not None:
        file = {"filename": _filename(attachment), "file_data": _data_url(attachment, data)}
        return {"type": "file", "file": file}
    return None


def responses_part(attachment: Attachment) -> dict[str, Any] | None:
    """Make the part of a message, or of a tool's output, of Responses."""
    data = data_of(attachment)
    if attachment.media_type == "image":
        return {"type": "input_image", "image_url": attachment.url, "detail": "auto"}
    if attachment.media_type == "file" and data is not None:
        return {
            "type": "input_file",
            "filename": _filename(attachment),
            "file_data": _data_url(attachment, data),
        }
    if attachment.media_type == "file":
        return {"type": "input_file", "file_url": attachment.url}
    return None


def parts_of(
    text: str,
    text_type: str,
    attachments: tuple[Attachment, ...],
    part_of: PartOf,
    position: str,
    losses: list[Loss],
) -> list[dict[str, Any]]:
    """Make the parts of a text and its attachments, each after its caption.

    Args:
        text: The text; an empty one has no part.
        text_type: The dialect's type of a part with text.
        attachments: The files.
        part_of: Makes the part of one attachment.
        position: Where this stands, for the losses.
        losses: Gets a loss for each attachment that has no part.
    """
    parts: list[dict[str, Any]] = [{"type": text_type, "text": text}] if text else []
    for index, attachment in enumerate(attachments):
        part = part_of(attachment)
        if part is None:
            where = f"{position}.attachments[{index}]"
            kind = f"{attachment.media_type} ({attachment.mime_type})"
            losses.append(Loss(where, f"this {kind} has no place in the dialect"))
            continue
        if attachment.caption:
            parts.append({"type": text_type, "text": attachment.caption})
        parts.append(part)
    return parts


def _filename(attachment: Attachment) -> str:
    return "attachment" + (mimetypes.guess_extension(attachment.mime_type) or "")


def _data_url(attachment: Attachment, data: str) -> str:
    return f"data:{attachment.mime_type};base64,{data}"
