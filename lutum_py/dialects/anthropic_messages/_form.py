"""How the Messages API writes its blocks."""

from __future__ import annotations

from typing import Any, Final

from .._blocks.form import NOTHING, BlockForm, Read
from ._facts import FACTS


def _read(block: Any) -> Read | None:
    kind = block.get("type")
    if kind == "text":
        return block.get("text") or "", None, None
    if kind == "tool_use":
        return None, block, None
    if kind == "tool_result":
        return None, None, block
    return NOTHING if isinstance(kind, str) else None


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"type": "text", "text": text},
    call=lambda fields: {"type": "tool_use", **fields},
    result=lambda same, text: {"type": "tool_result", **same, "content": text, "is_error": True},
    read=_read,
    block_looks="an object with a `type`",
    call_id="id",
    answers="tool_use_id",
    caller="caller",
)
