"""The events of a streamed turn, which `session.text_turn(model).stream()` gives one by one.

Example:
    >>> from lutum_py import Session
    >>> from lutum_py.streaming import TextDelta
    >>> from lutum_py.testing import ScriptedModel
    >>> session = Session()
    >>> session.push_user("Hello")
    >>> events = session.text_turn(ScriptedModel([ScriptedModel.text("Hi")])).stream_sync()
    >>> "".join(event.text for event in events if isinstance(event, TextDelta))
    'Hi'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.json import PartialJson as PartialJson
from ._text.on_demand import exported
from ._transcript.stream_events import ArgumentsDelta as ArgumentsDelta
from ._transcript.stream_events import CallCompleted as CallCompleted
from ._transcript.stream_events import CallStarted as CallStarted
from ._transcript.stream_events import ReasoningDelta as ReasoningDelta
from ._transcript.stream_events import RefusalDelta as RefusalDelta
from ._transcript.stream_events import StreamEvent as StreamEvent
from ._transcript.stream_events import TextDelta as TextDelta
from ._transcript.stream_events import TurnFinished as TurnFinished
from ._transcript.stream_events import UsageReported as UsageReported

if not TYPE_CHECKING:
    __all__ = list(exported(globals()))
