"""Messages, attachments and results as content blocks of the Messages API.

Images and PDF files go by address or as data, plain text as text; there is no block for audio and
video. (Anthropic API reference: "Messages", input content blocks.)
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

from ..._transcript.attachment import Attachment
from ..._transcript.result import ToolResult
from .._wire.losses import Loss
from .._wire.rendered_items import data_of, named_text
from ._facts import NAME

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def blocks_of(
    text: str, attachments: Iterable[Attachment], position: str, losses: list[Loss]
) -> list[dict[str, Any]]:
    """Make the blocks of a text and its attachments, each after its caption.

    Args:
        text: The text; an empty one has no block, because the API refuses it.
        attachments: The files.
        position: Where this stands, for the losses.
        losses: Takes a loss for each attachment that has no block.
    """
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    for index, attachment in enumerate(attachments):
        block = _attached(attachment)
        if block is None:
            kind = f"{attachment.media_type} ({attachment.mime_type})"
            where = f"{position}.attachments[{index}]"
            losses.append(Loss(where, f"this {kind} has no place in {NAME}"))
            continue
        if attachment.caption and attachment.caption.strip():
            blocks.append({"type": "text", "text": attachment.caption})
        if attachment.name and block["type"] == "document":
            block["title"] = attachment.name
        blocks.append(block)
    return blocks


def _attached(attachment: Attachment) -> dict[str, Any] | None:
    data = data_of(attachment)
    mime_type = attachment.mime_type
    if attachment.media_type == "image":
        if data is None:
            return {"type": "image", "source": {"type": "url", "url": attachment.url}}
        if mime_type in _IMAGES:
            return {
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            }
    if attachment.media_type == "file":
        if data is None:
            is_pdf = mime_type == "application/pdf"
            source = {"type": "url", "url": attachment.url}
            return {"type": "document", "source": source} if is_pdf else None
        if mime_type == "application/pdf":
            return {
                "type": "document",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            }
        if mime_type.startswith("text/"):
            plain = base64.b64decode(data).decode("utf-8", "replace")
            source = {"type": "text", "media_type": "text/plain", "data": plain}
            return {"type": "document", "source": source}
    return None


def result_block(
    result: ToolResult, answers: dict[str, Any], position: str, losses: list[Loss]
) -> dict[str, Any]:
    """Make the block of a result; one that is no success is marked as an error.

    Args:
        result: The result.
        answers: The fields that name the call which it answers.
        position: Where it stands, for the losses.
        losses: Takes a loss for each attachment that has no block.
    """
    block: dict[str, Any] = {"type": "tool_result", **answers}
    if result.attachments:
        text = named_text(result, (each for each in result.attachments if not _attached(each)))
        block["content"] = blocks_of(text, result.attachments, position, losses)
    else:
        block["content"] = result.model_text
    if result.is_error:
        block["is_error"] = True
    return block


def references(names: Iterable[str]) -> list[dict[str, Any]]:
    """Make the content of a result that loads deferred tools, which the API writes out itself.

    Nothing may stand beside the references. (Guide to tool use: "Tool search tool".)
    """
    return [{"type": "tool_reference", "tool_name": name} for name in names]
