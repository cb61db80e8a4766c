"""What a server answers, as a `Reply`: data for the program, text for the model, files beside."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from typing import Any, Final

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from .._call.reply import Reply, ReplyStatus
from .._schema.output import Output
from .._schema.schema_check import SchemaChecker
from .._text.json import parse_json
from .._text.unicode import sendable
from .._transcript.labels import Labels
from .._transcript.message import Attachment, MediaType, data_url, media_type_of
from ..errors import ToolOutputError
from ._words import Limits, one_line

_MIME: Final = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_ANY_FILE: Final = "application/octet-stream"
_ANYTHING: Final = Output(None)


def failed(code: str, text: str, status: ReplyStatus = "error") -> Reply[Any]:
    """Answer with an error that has no output, in the form of the errors of any call."""
    return Reply({"error": {"code": code, "message": text}}, text, status=status, code=code)


def reply_of(
    result: CallToolResult, output: SchemaChecker | None, limits: Limits, *, trusted: bool = False
) -> Reply[Any]:
    """Make a reply of a server's result.

    Args:
        result: What the server sent.
        output: Checks the structured part; None if the server declares no schema for it.
        limits: How much it may be.
        trusted: Whether the server is believed where it calls its result trusted.
    """
    # A structure that is null and one that is missing are two things, and the field alone is None
    # in both cases.
    has_structure = "structured_content" in result.model_fields_set
    structure = result.structured_content if has_structure else None
    try:
        # As the call will do it, so that nothing is found to be unfit only there.
        written = _ANYTHING.encode("", structure) if has_structure else ""
    except (ToolOutputError, RecursionError):
        return failed("invalid_output", "The tool ran, and its output is not JSON data.")
    size = len(written) + sum(_size_of(block) for block in result.content)
    if size > limits.result:
        return failed(
            "result_too_large",
            f"The tool ran, and its result has {size:,} characters, where {limits.result:,} are "
            "allowed. Ask for less at a time.",
        )
    read = _Read(result.content, structure if has_structure else _NOTHING, written)
    text = "\n".join(read.lines)
    value = structure if has_structure else text
    message = text if text and (has_structure or result.is_error) else None
    labels = Labels.of_meta(result.meta, believed=trusted)
    if result.is_error:
        said = message or "The tool failed, and the server does not say why."
        return Reply(value, said, read.attachments, "error", "tool_error", labels)
    if output is not None:
        fault = _fault(output, structure, has_structure)
        if fault is not None:
            said = f"The tool ran, and {fault}.\n{text or written}"
            return Reply(value, said, read.attachments, "error", "invalid_output", labels)
    return Reply(value, message, read.attachments, labels=labels)


_NOTHING: Final = object()


def _fault(output: SchemaChecker, structure: Any, has_structure: bool) -> str | None:
    if not has_structure:
        return "the structured output that it declares is missing"
    error = next(output.iter_errors(structure), None)
    if error is None:
        return None
    return f"its output does not fit its schema: `{error.json_path}`: {one_line(error.message)}"


def _size_of(block: ContentBlock) -> int:
    if isinstance(block, TextContent):
        return len(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return len(block.data)
    if isinstance(block, ResourceLink):
        return len(block.uri) + len(block.name) + len(block.description or "")
    held = block.resource
    return len(held.text if isinstance(held, TextResourceContents) else held.blob) + len(held.uri)


class _Read:
    """Sort content blocks into lines for the model and files.

    Attributes:
        lines: What the model reads; a block that repeats the output stands as the output.
        attachments: Files, as `data:` URLs.
    """

    def __init__(self, content: list[ContentBlock], structure: Any, written: str) -> None:
        self.attachments: list[Attachment] = []
        self.lines: list[str] = []
        # Servers send a structure and the same again as text, for older clients: {"sum": 3} and
        # "{\n  \"sum\": 3\n}". The model would read it twice, so such a block stands for the
        # output, and alone needs no line at all.
        is_said = False
        for block in content:
            if isinstance(block, TextContent) and _repeats(block.text, structure):
                # Once is enough, and without the spaces of a text that is laid out.
                self.lines += [] if is_said else [written]
                is_said = True
            else:
                self.lines += self._lines_of(block)
        if is_said and len(self.lines) == 1:
            self.lines = []

    def _lines_of(self, block: ContentBlock) -> Iterator[str]:
        if isinstance(block, TextContent):
            yield sendable(block.text)
        elif isinstance(block, ImageContent | AudioContent):
            yield from self._attach(block.data, block.mime_type, block.type)
        elif isinstance(block, ResourceLink):
            about = f": {one_line(block.description)}" if block.description else ""
            yield f"[link] {one_line(block.name)} <{one_line(block.uri)}>{about}"
        elif isinstance(block.resource, TextResourceContents):
            yield f"[{one_line(block.resource.uri)}]\n{sendable(block.resource.text)}"
        else:
            held = block.resource
            mime = held.mime_type or _ANY_FILE
            yield from self._attach(held.blob, mime, media_type_of(mime), one_line(held.uri))

    def _attach(
        self, data: str, mime: str, kind: MediaType, caption: str | None = None
    ) -> Iterator[str]:
        """Take a file; give a line about it where its kind or its data cannot be read."""
        try:
            if not _MIME.fullmatch(mime):
                raise ValueError
            size = len(b64decode(data, validate=True))
        except (Base64Error, ValueError):
            of = f" {caption}" if caption else ""
            yield f"[{kind}{of} of type {one_line(mime)}, which cannot be read]"
            return
        self.attachments.append(
            Attachment(
                media_type=kind,
                mime_type=mime,
                url=data_url(mime, data),
                caption=caption,
                size=size,
            )
        )


def _repeats(text: str, structure: Any) -> bool:
    if structure is _NOTHING:
        return False
    if text == structure:
        return True
    try:
        return bool(parse_json(text) == structure)
    except (ValueError, RecursionError):
        return False
