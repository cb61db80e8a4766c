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

from ._transcript.stream_events import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    UsageReported,
)

__all__ = [
    "ArgumentsDelta",
    "CallCompleted",
    "CallStarted",
    "ReasoningDelta",
    "RefusalDelta",
    "StreamEvent",
    "TextDelta",
    "TurnFinished",
    "UsageReported",
]
