"""What a turn of an assistant consists of, for code that reads or makes one item by item.

Example:
    >>> from lutum_py import AssistantTurn
    >>> from lutum_py.turns import TextItem
    >>> AssistantTurn(items=[TextItem("Hi")]).text
    'Hi'
"""

from __future__ import annotations

from ._transcript.assistant import (
    AssistantItem,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from ._transcript.request import TranscriptItem

__all__ = [
    "AssistantItem",
    "ReasoningItem",
    "RefusalItem",
    "ServerToolItem",
    "TextItem",
    "ToolCallItem",
    "TranscriptItem",
]
