"""How Converse writes its blocks: each is an object with one key, which says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import is_object, is_sequence, shorten
from .._blocks.form import BlockForm, Unfit, no_block
from .._repair.mending import Mending, text_of
from ._facts import FACTS


def _call_in(block: Any) -> dict[str, Any] | None:
    return _of_program(block.get("toolUse"))


def _result_in(block: Any) -> dict[str, Any] | None:
    return _of_program(block.get("toolResult"))


def _of_program(fields: Any) -> dict[str, Any] | None:
    """Leave out what the provider runs itself, which has a type."""
    return fields if is_object(fields) and fields.get("type") is None else None


def _unfit(block: Mapping[str, Any]) -> Unfit | None:
    kind = next(iter(block), None)
    if len(block) == 1 and isinstance(kind, str) and (kind == "text" or is_object(block[kind])):
        return None
    return no_block(block, 'Send an object with one key, as in {"text": ...}')


def _mend(block: dict[str, Any], position: str, mending: Mending) -> None:
    text = block.get("text", "")
    if not isinstance(text, str):
        problem = f"expected text, got {shorten(text)}"
        mending.note(f"{position}.text", "not_text", problem, "Send text", "made text of it")
        block["text"] = text_of(text)
    result = _result_in(block)
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
    call_in=_call_in,
    result_in=_result_in,
    text_in=lambda block: (block["text"] or "") if "text" in block else None,
    call_id="toolUseId",
    answers="toolUseId",
    inside="toolUse.",
    unfit=_unfit,
    mend=_mend,
    takes_text=False,
    needs_ids=True,
    takes_turns=True,
)
