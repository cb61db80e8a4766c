"""How Converse writes its blocks: each is an object with one key, which says what it is."""

from __future__ import annotations

from typing import Any, Final

from ..._text.json import is_object, is_sequence, shorten
from .._blocks.form import NOTHING, BlockForm, Read
from .._repair.mending import Mending, text_of
from ._facts import FACTS


def _read(block: Any) -> Read | None:
    if len(block) != 1:
        return None
    if "text" in block:
        return block["text"] or "", None, None
    (fields,) = block.values()
    if not is_object(fields):
        return None
    if fields.get("type") is not None:  # which is run by the provider itself
        return NOTHING
    return None, block.get("toolUse"), block.get("toolResult")


def _mend(block: dict[str, Any], position: str, mending: Mending) -> None:
    text = block.get("text", "")
    if not isinstance(text, str):
        problem = f"expected text, got {shorten(text)}"
        mending.note(f"{position}.text", "not_text", problem, "Send text", "made text of it")
        block["text"] = text_of(text)
    _, _, result = _read(block) or NOTHING
    content = None if result is None else result.get("content")
    if result is None or (is_sequence(content) and all(map(is_object, content))):
        return
    mending.note(
        f"{position}.toolResult.content",
        "result_content_not_blocks",
        f"expected a list of blocks, got {shorten(content)}",
        'Send a list, as in [{"text": ...}]',
        "put it into a list of blocks",
    )
    listed = content if is_sequence(content) else () if content is None else (content,)
    result["content"] = [each if is_object(each) else {"text": text_of(each)} for each in listed]


def _failed(same: dict[str, Any], text: str) -> dict[str, Any]:
    return {"toolResult": {**same, "content": [{"text": text}], "status": "error"}}


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"text": text},
    call=lambda fields: {"toolUse": fields},
    result=_failed,
    read=_read,
    block_looks='an object with one key, as in {"text": ...}',
    call_id="toolUseId",
    answers="toolUseId",
    inside="toolUse.",
    mend=_mend,
    takes_text=False,
    needs_ids=True,
    takes_turns=True,
)
