"""Messages of the Messages API become a transcript.

What the assistant says is read as the content of a response, and is the payload of its turn. A
message of the user begins with results, and what stands behind them is what the user says.
(Anthropic API reference: "Messages", messages.)
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from ..._text.json import is_mapping, is_sequence
from ..._transcript.attachment import Attachment
from .._wire.history import History, Part


def read_history(history: History) -> None:
    """Read a conversation; the `system` of a body becomes the first messages."""
    history.say("system", _parts(history.body.get("system"), "system", history), "system")
    spoken: list[tuple[str, Any]] = []
    for position, message in history.listed():
        if message["role"] == "assistant":
            spoken.append((position, message["content"]))
            continue
        _turns(spoken, history)
        spoken = []
        _said(message, position, history)
    _turns(spoken, history)


def _turns(spoken: list[tuple[str, Any]], history: History) -> None:
    """Read what the assistant says before anyone else does: one message, as a rule."""
    turns = [history.decode({"content": content}, position) for position, content in spoken]
    if any(turn.tool_calls for turn in turns[:-1]):
        # The results of all come behind the last, so that they are one turn.
        blocks: list[Any] = []
        for _, content in spoken:
            blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
        turns = [history.decode({"content": blocks}, spoken[0][0])]
    for turn in turns:
        history.turn(turn)


def _said(message: Mapping[str, Any], position: str, history: History) -> None:
    content = message["content"]
    where = f"{position}.content"
    blocks = content if is_sequence(content) else ()
    results = [index for index, block in enumerate(blocks) if block.get("type") == "tool_result"]
    for index in results:
        _answer(blocks[index], f"{where}[{index}]", history)
    if len(results) < len(content):
        history.say(message["role"], _parts(content, where, history), position)
    history.rest(message, ("role", "content"), position)


def _answer(block: Mapping[str, Any], position: str, history: History) -> None:
    said = _parts(block.get("content"), f"{position}.content", history)
    history.answer(said, position, is_error=bool(block.get("is_error")))
    history.rest(block, ("type", "tool_use_id", "content", "is_error"), position)


def _parts(content: Any, position: str, history: History) -> Iterator[Part]:
    """Read text, or content blocks; results among them are read elsewhere."""
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
