"""How the Messages API writes its blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .._blocks.form import BlockForm, Unfit, no_block
from ._facts import FACTS


def _call_in(block: Any) -> dict[str, Any] | None:
    return block if block.get("type") == "tool_use" else None


def _result_in(block: Any) -> dict[str, Any] | None:
    return block if block.get("type") == "tool_result" else None


def _text_in(block: Any) -> Any:
    return (block.get("text") or "") if block.get("type") == "text" else None


def _unfit(block: Mapping[str, Any]) -> Unfit | None:
    if isinstance(block.get("type"), str):
        return None
    return no_block(block, "Send an object with a `type`")


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"type": "text", "text": text},
    call=lambda fields: {"type": "tool_use", **fields},
    result=lambda same, text: {"type": "tool_result", **same, "content": text, "is_error": True},
    call_in=_call_in,
    result_in=_result_in,
    text_in=_text_in,
    call_id="id",
    answers="tool_use_id",
    unfit=_unfit,
)
