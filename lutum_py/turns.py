"""What turns and requests consist of, for code that reads or makes one part by part.

Example:
    >>> from lutum_py import AssistantTurn
    >>> from lutum_py.turns import TextItem
    >>> AssistantTurn(items=[TextItem("Hi")]).text
    'Hi'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand
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
from ._transcript.transcript import CompactedPrefix as CompactedPrefix
from ._transcript.transcript import TranscriptCache as TranscriptCache

if TYPE_CHECKING:
    from ._round.inner import read_within as read_within
    from ._transcript.check import TranscriptFault as TranscriptFault
    from ._transcript.check import faults_in as faults_in
    from ._transcript.display import line_of as line_of
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_round.inner": ("read_within",),
            "_transcript.check": ("TranscriptFault", "faults_in"),
            "_transcript.display": ("line_of",),
        },
    )
    __all__ = list(exported(__dir__()))
