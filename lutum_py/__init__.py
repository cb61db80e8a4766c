"""Typed toolsets for LLM tool calling where you own the loop.

Each name is imported when it is first asked for (PEP 562), so that a program loads what it uses and
nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # Not `mcp`, `models`, `otel` and `typing`: to see them, a checker would read much more, such as
    # an SDK, in every program; and not `cli`, which is above this file.
    from . import capabilities as capabilities
    from . import dialects as dialects
    from . import errors as errors
    from . import execution as execution
    from . import policy as policy
    from . import sinks as sinks
    from . import store as store
    from . import testing as testing
    from ._call.call import AnyToolCall, FnCall, HookOutcome, ToolCall, ToolHooks
    from ._call.decision_log import DecisionRecord
    from ._call.decisions import Complete, Reject, RunNormally, ToolDecision
    from ._call.lifecycle import CallStatus
    from ._call.line import CallStep
    from ._call.outcomes import (
        ContinueSuggestion,
        HandledCall,
        RecoverableToolCallIssue,
        RejectedCall,
        SuspendedCall,
    )
    from ._call.reply import Reply
    from ._call.selector import AnySelector, FnSelector, Selector
    from ._context.cancellation import CancellationToken
    from ._context.context import RunIdentity, ToolContext, ToolSuspended
    from ._context.progress import (
        TOOL_CALL_PROGRESS_ACTIVITY_TYPE,
        ProgressStatus,
        ToolCallProgressState,
    )
    from ._context.state import State, StateKey
    from ._context.suspension import Decision, ResumeMode, SuspendTicket
    from ._declare.answer import Answer
    from ._declare.handlers import Handlers
    from ._declare.member import tool, toolset
    from ._declare.offer import ToolAvailability, ToolRequirement
    from ._declare.result_reader import result_reader
    from ._declare.tool_fn import ToolFn, tool_fn
    from ._declare.tool_input import ToolInput, tool_input
    from ._declare.tool_search import search_tools, tool_search
    from ._hooks.capability_gate import capability_gate, dry_run_in
    from ._hooks.gate_decisions import Block, CallGate, GateDecision, Suspend
    from ._hooks.hook_set import HookSet
    from ._round.edits import EditRecord
    from ._round.events import CallEvent, log_events
    from ._round.plan import ToolRoundPlan
    from ._round.read_turn import Finished, NeedsTools, NoAnswer, TextResult
    from ._round.round import ToolRound
    from ._round.rows import CallRow
    from ._schema.capabilities import (
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
    from ._schema.definition import ToolDef
    from ._schema.signature import Skip
    from ._session.model import Model, StreamingModel, SyncModel, SyncStreamingModel
    from ._session.session import Restored, Session
    from ._text.escaping import visible
    from ._toolset import Toolset
    from ._transcript.assistant import (
        AssistantItem,
        AssistantTurn,
        ReasoningItem,
        RefusalItem,
        ServerToolItem,
        TextItem,
        ToolCallItem,
        Usage,
    )
    from ._transcript.attachment import Attachment
    from ._transcript.cache import Cache
    from ._transcript.committed import CommittedRound
    from ._transcript.deferred import DeferredTools
    from ._transcript.message import Message
    from ._transcript.metadata import ToolMetadata
    from ._transcript.request import TranscriptItem, TurnRequest
    from ._transcript.result import ResultStatus, ToolResult
    from ._transcript.result_cap import MemoryResults, ResultCap, ResultStore
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
    from ._transcript.tool_choice import ToolChoice
    from ._transcript.transcript import Transcript
    from ._view.cut import Cut
    from ._view.view import View

__version__ = "0.1.0"

_HOME: Final = {
    "_transcript.assistant": (
        "AssistantItem",
        "AssistantTurn",
        "ReasoningItem",
        "RefusalItem",
        "ServerToolItem",
        "TextItem",
        "ToolCallItem",
        "Usage",
    ),
    "_transcript.attachment": ("Attachment",),
    "_transcript.cache": ("Cache",),
    "_call.decision_log": ("DecisionRecord",),
    "_call.call": ("AnyToolCall", "FnCall", "HookOutcome", "ToolCall", "ToolHooks"),
    "_context.cancellation": ("CancellationToken",),
    "_schema.capabilities": (
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
    "_hooks.capability_gate": ("capability_gate", "dry_run_in"),
    "_transcript.committed": ("CommittedRound",),
    "_context.context": ("RunIdentity", "ToolContext", "ToolSuspended"),
    "_call.decisions": ("Complete", "Reject", "RunNormally", "ToolDecision"),
    "_hooks.gate_decisions": ("Block", "CallGate", "GateDecision", "Suspend"),
    "_schema.definition": ("ToolDef",),
    "_hooks.hook_set": ("HookSet",),
    "_call.lifecycle": ("CallStatus",),
    "_call.line": ("CallStep",),
    "_declare.answer": ("Answer",),
    "_declare.handlers": ("Handlers",),
    "_declare.member": ("tool", "toolset"),
    "_transcript.message": ("Message",),
    "_transcript.metadata": ("ToolMetadata",),
    "_session.model": ("Model", "StreamingModel", "SyncModel", "SyncStreamingModel"),
    "_declare.offer": ("ToolAvailability", "ToolRequirement"),
    "_declare.result_reader": ("result_reader",),
    "_call.outcomes": (
        "ContinueSuggestion",
        "HandledCall",
        "RecoverableToolCallIssue",
        "RejectedCall",
        "SuspendedCall",
    ),
    "_round.edits": ("EditRecord",),
    "_view.cut": ("Cut",),
    "_round.events": ("CallEvent", "log_events"),
    "_round.plan": ("ToolRoundPlan",),
    "_context.progress": (
        "TOOL_CALL_PROGRESS_ACTIVITY_TYPE",
        "ProgressStatus",
        "ToolCallProgressState",
    ),
    "_transcript.request": ("TranscriptItem", "TurnRequest"),
    "_transcript.result": ("ResultStatus", "ToolResult"),
    "_transcript.result_cap": ("MemoryResults", "ResultCap", "ResultStore"),
    "_round.round": ("ToolRound",),
    "_view.view": ("View",),
    "_round.rows": ("CallRow",),
    "_call.reply": ("Reply",),
    "_call.selector": ("AnySelector", "FnSelector", "Selector"),
    "_session.session": ("Restored", "Session"),
    "_schema.signature": ("Skip",),
    "_context.state": ("State", "StateKey"),
    "_transcript.stream_events": (
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
    "_context.suspension": ("Decision", "ResumeMode", "SuspendTicket"),
    "_declare.tool_fn": ("ToolFn", "tool_fn"),
    "_declare.tool_input": ("ToolInput", "tool_input"),
    "_declare.tool_search": ("search_tools", "tool_search"),
    "_transcript.deferred": ("DeferredTools",),
    "_transcript.tool_choice": ("ToolChoice",),
    "_text.escaping": ("visible",),
    "_toolset": ("Toolset",),
    "_transcript.transcript": ("Transcript",),
    "_round.read_turn": ("Finished", "NeedsTools", "NoAnswer", "TextResult"),
}
"""The module of each public name."""

_MODULE_OF: Final = {name: home for home, names in _HOME.items() for name in names}
_MODULES: Final = frozenset(
    {
        "capabilities",
        "cli",
        "dialects",
        "errors",
        "execution",
        "mcp",
        "models",
        "otel",
        "policy",
        "sinks",
        "store",
        "testing",
        "typing",
    }
)

if not TYPE_CHECKING:  # else every misspelt name would have a type

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
    "Answer",
    "AnySelector",
    "AnyToolCall",
    "ArgumentsDelta",
    "AssistantItem",
    "AssistantTurn",
    "Attachment",
    "Block",
    "Cache",
    "CallCompleted",
    "CallEvent",
    "CallGate",
    "CallRow",
    "CallStarted",
    "CallStatus",
    "CallStep",
    "CancellationToken",
    "CommittedRound",
    "Complete",
    "Confirmation",
    "ContinueSuggestion",
    "Cut",
    "Decision",
    "DecisionRecord",
    "DeferredTools",
    "DryRun",
    "EditRecord",
    "EffectKind",
    "Finished",
    "FnCall",
    "FnSelector",
    "GateDecision",
    "HandledCall",
    "Handlers",
    "HookOutcome",
    "HookSet",
    "MemoryResults",
    "Message",
    "Model",
    "NeedsTools",
    "NoAnswer",
    "ProgressStatus",
    "ReasoningDelta",
    "ReasoningItem",
    "RecoverableToolCallIssue",
    "RefusalDelta",
    "RefusalItem",
    "Reject",
    "RejectedCall",
    "Reply",
    "Restored",
    "ResultCap",
    "ResultStatus",
    "ResultStore",
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
    "View",
    "__version__",
    "capability_gate",
    "dry_run_in",
    "errors",
    "log_events",
    "result_reader",
    "risk_of",
    "search_tools",
    "tool",
    "tool_fn",
    "tool_input",
    "tool_search",
    "toolset",
    "visible",
]
