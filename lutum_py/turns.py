"""What turns and requests consist of, for code that reads or makes one part by part.

Example:
    >>> from lutum_py import AssistantTurn
    >>> from lutum_py.turns import TextItem
    >>> AssistantTurn(items=[TextItem("Hi")]).text
    'Hi'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported
from ._transcript.assistant import AssistantItem as AssistantItem
from ._transcript.assistant import ReasoningItem as ReasoningItem
from ._transcript.assistant import RefusalItem as RefusalItem
from ._transcript.assistant import ServerToolItem as ServerToolItem
from ._transcript.assistant import TextItem as TextItem
from ._transcript.assistant import ToolCallItem as ToolCallItem
from ._transcript.request import Cache as Cache
from ._transcript.request import DeferredTools as DeferredTools
from ._transcript.request import ToolChoice as ToolChoice
from ._transcript.request import TranscriptItem as TranscriptItem

if not TYPE_CHECKING:
    __all__ = list(exported(globals()))
