"""Messages of Converse become a transcript.

(Amazon Bedrock API reference: "Message" and "ContentBlock".)
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from ..._text.json import compact_json, is_mapping, is_sequence
from ..._transcript.message import Attachment
from .._blocks.history import read_messages
from .._wire.history import History, Part
from ._facts import BLOCKS
from ._files import FORMATS, MEDIA, UNNAMED, without_bytes


def read_history(history: History) -> None:
    """Read a conversation; the `system` of a body becomes the first messages."""
    read_messages(history, BLOCKS, _parts, _answer, _response)


def _response(content: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _answer(block: Mapping[str, Any], position: str, history: History) -> None:
    result = block["toolResult"]
    where = f"{position}.toolResult"
    is_error, content = result.get("status") == "error", result["content"]
    # A result of one JSON block is the output itself. As text it would be a string that holds JSON,
    # and a tool that reads it again would get another type.
    if len(content) == 1 and "json" in content[0]:
        text = history.as_json(compact_json, content[0]["json"], f"{where}.content[0].json")
        history.answer_json(text, where, is_error=is_error)
    else:
        history.answer(_parts(content, f"{where}.content", history), where, is_error=is_error)
    history.rest(result, ("toolUseId", "content", "status"), where)


def _parts(content: Any, position: str, history: History) -> Iterator[Part]:
    for index, block in enumerate(content if is_sequence(content) else ()):
        where = f"{position}[{index}]"
        kind = next(iter(block), "") if is_mapping(block) else ""
        if isinstance(block.get("text") if kind else None, str):
            yield block["text"]
        elif kind == "json":
            yield history.as_json(compact_json, block["json"], f"{where}.json")
        elif kind in MEDIA and is_mapping(block[kind]):
            yield from _file(kind, block[kind], f"{where}.{kind}", history)
        elif kind != "toolResult":
            history.lose(where)


def _file(
    kind: str, fields: Mapping[str, Any], where: str, history: History
) -> Iterator[Attachment]:
    source = fields.get("source")
    held: Mapping[str, Any] = source if is_mapping(source) else {}
    data = without_bytes(held.get("bytes"))
    if isinstance(held.get("text"), str):
        data = base64.b64encode(held["text"].encode()).decode("ascii")
    form, name = fields.get("format", "txt"), fields.get("name")
    known = FORMATS[kind]
    yield from history.file(
        where,
        data=data,
        mime_type=known.get(str(form), "application/octet-stream"),
        media_type=MEDIA[kind],
        name=f"{name}.{form}" if name and name != UNNAMED else None,
    )
    history.rest(fields, ("format", "name", "source"), where)
