"""Messages of the Messages API become a transcript.

(Anthropic API reference: "Messages", messages.)
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from ..._text.json import is_mapping, is_sequence
from ..._transcript.message import Attachment
from .._blocks.history import read_messages
from .._wire.history import History, Part
from ._facts import BLOCKS


def read_history(history: History) -> None:
    """Read a conversation; the `system` of a body becomes the first messages."""
    # It waits for the results of the last turn with programs, so it is put into each response that
    # is read: `Rendering` sends only that of the last turn.
    box = history.body.get("container")
    # A name alone, or an object with what is in it.
    kept = {} if box is None else {"container": box if is_mapping(box) else {"id": box}}
    read_messages(history, BLOCKS, _parts, _answer, lambda content: {"content": content, **kept})


def _answer(block: Mapping[str, Any], position: str, history: History) -> None:
    said = _parts(block.get("content"), f"{position}.content", history)
    history.answer(said, position, is_error=bool(block.get("is_error")))
    history.rest(block, ("type", "tool_use_id", "content", "is_error"), position)


def _parts(content: Any, position: str, history: History) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    elif is_sequence(content):
        for index, block in enumerate(content):
            where = f"{position}[{index}]"
            kind = block.get("type") if is_mapping(block) else None
            if kind == "text" and isinstance(block.get("text"), str):
                yield block["text"]
                history.rest(block, ("type", "text"), where)
            elif kind in ("image", "document") and is_mapping(block.get("source")):
                yield from _file(block, where, history)
            elif kind != "tool_result":
                history.lose(where)


def _file(block: Mapping[str, Any], where: str, history: History) -> Iterator[Attachment]:
    source, kind = block["source"], block["type"]
    data, mime_type = source.get("data"), source.get("media_type")
    if source.get("type") == "text" and isinstance(data, str):
        data = base64.b64encode(data.encode()).decode("ascii")
        mime_type = mime_type or "text/plain"
    elif kind == "document" and mime_type is None:
        mime_type = "application/pdf"  # no other document has an address
    yield from history.file(
        where,
        url=source.get("url"),
        data=data,
        mime_type=mime_type,
        media_type="image" if kind == "image" else "file",
        name=block.get("title"),
    )
    history.rest(block, ("type", "source", "title"), where)
