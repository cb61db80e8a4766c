"""Typed toolsets for LLM tool calling where you own the loop.

Each name is imported when it is first asked for (PEP 562), so that a program loads what it uses and
nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from . import errors
    from ._assistant import (
        AssistantItem,
        AssistantTurn,
        ReasoningItem,
        RefusalItem,
        ServerToolItem,
        TextItem,
        ToolCallItem,
        Usage,
    )
    from ._attachment import Attachment
    from ._call import AnyToolCall, ToolCall
    from ._call_gate import CallGate
    from ._cancellation import CancellationToken
    from ._capabilities import (
        EFFECT_DEFAULTS,
        Confirmation,
        DryRun,
        EffectKind,
        Reversibility,
        RiskLevel,
        ToolCapabilities,
        ToolEffect,
        risk_of,
    )
    from ._capability_gate import capability_gate, dry_run_in
    from ._committed import CommittedRound
    from ._context import RunIdentity, ToolContext, ToolSuspended
    from ._continue_suggestion import ContinueSuggestion
    from ._decisions import (
        Block,
        Complete,
        DecisionRecord,
        GateDecision,
        Reject,
        RunNormally,
        Suspend,
        ToolDecision,
    )
    from ._definition import ToolDef
    from ._hook_outcome import HookOutcome, ToolHooks
    from ._hook_set import HookSet
    from ._lifecycle import CallStatus
    from ._member import tool, toolset
    from ._message import Message
    from ._metadata import ToolMetadata
    from ._model import Model, StreamingModel, SyncModel, SyncStreamingModel
    from ._offer import ToolAvailability, ToolRequirement
    from ._outcomes import HandledCall, RecoverableToolCallIssue, RejectedCall, SuspendedCall
    from ._plan import ToolRoundPlan
    from ._progress import TOOL_CALL_PROGRESS_ACTIVITY_TYPE, ProgressStatus, ToolCallProgressState
    from ._request import TranscriptItem, TurnRequest
    from ._result import ResultStatus, ToolResult
    from ._round import ToolRound
    from ._selector import AnySelector, Selector
    from ._session import Session
    from ._signature import Skip
    from ._state import State, StateKey
    from ._stream_events import (
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
    from ._suspension import Decision, ResumeMode, SuspendTicket
    from ._tool_choice import ToolChoice
    from ._tool_fn import ToolFn, tool_fn
    from ._tool_input import ToolInput, tool_input
    from ._toolset import Toolset
    from ._transcript import Transcript
    from ._turn_outcome import Finished, NeedsTools, TextResult
    from ._version import __version__

_HOME: Final = {
    "_assistant": (
        "AssistantItem",
        "AssistantTurn",
        "ReasoningItem",
        "RefusalItem",
        "ServerToolItem",
        "TextItem",
        "ToolCallItem",
        "Usage",
    ),
    "_attachment": ("Attachment",),
    "_call": (
        "AnyToolCall",
        "ToolCall",
    ),
    "_call_gate": ("CallGate",),
    "_cancellation": ("CancellationToken",),
    "_capabilities": (
        "Confirmation",
        "DryRun",
        "EFFECT_DEFAULTS",
        "EffectKind",
        "Reversibility",
        "RiskLevel",
        "ToolCapabilities",
        "ToolEffect",
        "risk_of",
    ),
    "_capability_gate": (
        "capability_gate",
        "dry_run_in",
    ),
    "_committed": ("CommittedRound",),
    "_context": (
        "RunIdentity",
        "ToolContext",
        "ToolSuspended",
    ),
    "_continue_suggestion": ("ContinueSuggestion",),
    "_decisions": (
        "Block",
        "Complete",
        "DecisionRecord",
        "GateDecision",
        "Reject",
        "RunNormally",
        "Suspend",
        "ToolDecision",
    ),
    "_definition": ("ToolDef",),
    "_hook_outcome": (
        "HookOutcome",
        "ToolHooks",
    ),
    "_hook_set": ("HookSet",),
    "_lifecycle": ("CallStatus",),
    "_member": (
        "tool",
        "toolset",
    ),
    "_message": ("Message",),
    "_metadata": ("ToolMetadata",),
    "_model": (
        "Model",
        "StreamingModel",
        "SyncModel",
        "SyncStreamingModel",
    ),
    "_offer": (
        "ToolAvailability",
        "ToolRequirement",
    ),
    "_outcomes": (
        "HandledCall",
        "RecoverableToolCallIssue",
        "RejectedCall",
        "SuspendedCall",
    ),
    "_plan": ("ToolRoundPlan",),
    "_progress": (
        "TOOL_CALL_PROGRESS_ACTIVITY_TYPE",
        "ProgressStatus",
        "ToolCallProgressState",
    ),
    "_request": (
        "TranscriptItem",
        "TurnRequest",
    ),
    "_result": (
        "ResultStatus",
        "ToolResult",
    ),
    "_round": ("ToolRound",),
    "_selector": (
        "AnySelector",
        "Selector",
    ),
    "_session": ("Session",),
    "_signature": ("Skip",),
    "_state": (
        "State",
        "StateKey",
    ),
    "_stream_events": (
        "ArgumentsDelta",
        "CallCompleted",
        "CallStarted",
        "ReasoningDelta",
        "RefusalDelta",
        "StreamEvent",
        "TextDelta",
        "TurnFinished",
        "UsageReported",
    ),
    "_suspension": (
        "Decision",
        "ResumeMode",
        "SuspendTicket",
    ),
    "_tool_fn": (
        "ToolFn",
        "tool_fn",
    ),
    "_tool_input": (
        "ToolInput",
        "tool_input",
    ),
    "_tool_choice": ("ToolChoice",),
    "_toolset": ("Toolset",),
    "_transcript": ("Transcript",),
    "_turn_outcome": (
        "Finished",
        "NeedsTools",
        "TextResult",
    ),
    "_version": ("__version__",),
}
"""The module of each public name."""

_MODULE_OF: Final = {name: home for home, names in _HOME.items() for name in names}
_MODULES: Final = frozenset(
    {"dialects", "errors", "execution", "models", "otel", "sinks", "testing"}
)


def __getattr__(name: str) -> Any:
    home = _MODULE_OF.get(name)
    if home is not None:
        value = getattr(import_module(f"{__name__}.{home}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_MODULES})


__all__ = [
    "EFFECT_DEFAULTS",
    "TOOL_CALL_PROGRESS_ACTIVITY_TYPE",
    "AnySelector",
    "AnyToolCall",
    "ArgumentsDelta",
    "AssistantItem",
    "AssistantTurn",
    "Attachment",
    "Block",
    "CallCompleted",
    "CallGate",
    "CallStarted",
    "CallStatus",
    "CancellationToken",
    "CommittedRound",
    "Complete",
    "Confirmation",
    "ContinueSuggestion",
    "Decision",
    "DecisionRecord",
    "DryRun",
    "EffectKind",
    "Finished",
    "GateDecision",
    "HandledCall",
    "HookOutcome",
    "HookSet",
    "Message",
    "Model",
    "NeedsTools",
    "ProgressStatus",
    "ReasoningDelta",
    "ReasoningItem",
    "RecoverableToolCallIssue",
    "RefusalDelta",
    "RefusalItem",
    "Reject",
    "RejectedCall",
    "ResultStatus",
    "ResumeMode",
    "Reversibility",
    "RiskLevel",
    "RunIdentity",
    "RunNormally",
    "Selector",
    "ServerToolItem",
    "Session",
    "Skip",
    "State",
    "StateKey",
    "StreamEvent",
    "StreamingModel",
    "Suspend",
    "SuspendTicket",
    "SuspendedCall",
    "SyncModel",
    "SyncStreamingModel",
    "TextDelta",
    "TextItem",
    "TextResult",
    "ToolAvailability",
    "ToolCall",
    "ToolCallItem",
    "ToolCallProgressState",
    "ToolCapabilities",
    "ToolChoice",
    "ToolContext",
    "ToolDecision",
    "ToolDef",
    "ToolEffect",
    "ToolFn",
    "ToolHooks",
    "ToolInput",
    "ToolMetadata",
    "ToolRequirement",
    "ToolResult",
    "ToolRound",
    "ToolRoundPlan",
    "ToolSuspended",
    "Toolset",
    "Transcript",
    "TranscriptItem",
    "TurnFinished",
    "TurnRequest",
    "Usage",
    "UsageReported",
    "__version__",
    "capability_gate",
    "dry_run_in",
    "errors",
    "risk_of",
    "tool",
    "tool_fn",
    "tool_input",
    "toolset",
]
