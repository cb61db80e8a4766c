"""Typed toolsets for LLM tool calling where you own the loop."""

from __future__ import annotations

from . import errors
from ._assistant import (
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
from ._cancellation import CancellationToken
from ._capabilities import ToolCapabilities, ToolEffect
from ._committed import CommittedRound
from ._context import RunIdentity, ToolContext
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
from ._request import ToolChoice, TurnRequest
from ._result import ToolResult
from ._round import ToolRound
from ._selector import AnySelector, Selector
from ._session import Session
from ._signature import Skip
from ._state import State, StateKey
from ._suspension import Decision, ResumeMode, SuspendTicket
from ._tool_fn import ToolFn, tool_fn
from ._tool_input import ToolInput, tool_input
from ._toolset import Toolset
from ._transcript import Transcript
from ._turn_outcome import Finished, NeedsTools, TextResult

__all__ = [
    "AnySelector",
    "AnyToolCall",
    "AssistantTurn",
    "Attachment",
    "Block",
    "CallStatus",
    "CancellationToken",
    "CommittedRound",
    "Complete",
    "ContinueSuggestion",
    "Decision",
    "DecisionRecord",
    "Finished",
    "GateDecision",
    "HandledCall",
    "HookOutcome",
    "HookSet",
    "Message",
    "Model",
    "NeedsTools",
    "ProgressStatus",
    "ReasoningItem",
    "RecoverableToolCallIssue",
    "RefusalItem",
    "Reject",
    "RejectedCall",
    "ResumeMode",
    "RunIdentity",
    "RunNormally",
    "Selector",
    "ServerToolItem",
    "Session",
    "Skip",
    "State",
    "StateKey",
    "StreamingModel",
    "Suspend",
    "SuspendTicket",
    "SuspendedCall",
    "SyncModel",
    "SyncStreamingModel",
    "TOOL_CALL_PROGRESS_ACTIVITY_TYPE",
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
    "Toolset",
    "Transcript",
    "TurnRequest",
    "Usage",
    "errors",
    "tool",
    "tool_fn",
    "tool_input",
    "toolset",
]
