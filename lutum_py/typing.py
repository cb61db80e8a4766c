"""Types that the signatures of the library name, for annotations of your own.

What a program makes, calls or matches stands in `lutum_py` and its other modules. What stands here
is only named: by a function that wraps one of the library's, by a decorator, by a field.

Example:
    >>> from lutum_py.typing import GateAnswer, Hooks
    >>> def first(hooks: Hooks) -> GateAnswer[str]:
    ...     return None
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._call.asked import Asked
from ._call.call import FnCall, HookOutcome, Hooks, ToolHooks
from ._call.decision_log import DecisionKind, DecisionPhase, DecisionRecord, EditRecord
from ._call.decisions import ArgsDecision, ArgsRuleAnswer, InputRuleAnswer
from ._call.lifecycle import StepKind
from ._call.line import CallStep, StepPhase
from ._call.member_options import Condition, Conditions, MemberOptions, Rule
from ._call.outcomes import ContinueSuggestion, IssueReason, NotEnded, RejectionSource
from ._call.reply import ReplyStatus
from ._call.selector import AnySelector, HidingSelector, TakesContext
from ._call.spec import FnSpec, HasSpec, ToolSpec
from ._context.context import CallLike
from ._context.inner import HasConversation, HasName, HasToolCalls
from ._context.suspension import DecisionAction
from ._declare.handlers import Handles, HandlesArgs
from ._declare.offer import Available, Descriptions, Named, Offered
from ._declare.tool_fn import (
    CallOf,
    HidingFn,
    MakesHidingFn,
    MakesModelFn,
    MakesToolFn,
    ModelFn,
    ToolFn,
)
from ._hooks.decorator_types import (
    Fits,
    FitsTwo,
    GateAnswer,
    Gives,
    Registers,
    RegistersArgs,
    RegistersGate,
    RegistersTwo,
)
from ._hooks.gate_decisions import CallGate, GateDecision
from ._round.ending import ResultLike
from ._round.events import CallEventKind, OnEvent
from ._round.read_turn import MissingReason, TextResult
from ._round.rows import CallRow, Within
from ._round.sorted_calls import CallRowState
from ._schema.invocation import Invocation
from ._schema.options import Caller
from ._schema.schema_reader import JsonSchema
from ._session.model import AnyModel
from ._session.session import Restored
from ._session.turn import Turn, TurnWithAnswer, TurnWithTools
from ._session.turn_stream import SyncTurnStream, TurnStream
from ._text.on_demand import on_demand
from ._transcript.attachment import MediaType
from ._transcript.message import Role
from ._transcript.request import ToolChoiceMode
from ._transcript.result import Answerable, ResultStatus
from ._transcript.transcript import HasTranscript
from ._transcript.transcript_view import TranscriptView

if TYPE_CHECKING:
    from ._declare.tool_search import ToolSearch
    from ._hooks.capability_gate import GatePolicy
    from ._schema.input_model import FnInput
    from ._view.cut import CutKind
    from ._view.ledger import Count
    from ._view.view import Target
    from .dialects._schema.nodes import SchemaLoss
    from .dialects._wire.other_model import ModelNames
    from .execution._settings import Skipped
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_declare.tool_search": ("ToolSearch",),
            "_hooks.capability_gate": ("GatePolicy",),
            "_schema.input_model": ("FnInput",),
            "_view.cut": ("CutKind",),
            "_view.ledger": ("Count",),
            "_view.view": ("Target",),
            "dialects._schema.nodes": ("SchemaLoss",),
            "dialects._wire.other_model": ("ModelNames",),
            "execution._settings": ("Skipped",),
        },
    )

__all__ = [
    "Answerable",
    "AnyModel",
    "AnySelector",
    "ArgsDecision",
    "ArgsRuleAnswer",
    "Asked",
    "Available",
    "CallEventKind",
    "CallGate",
    "CallLike",
    "CallOf",
    "CallRow",
    "CallRowState",
    "CallStep",
    "Caller",
    "Condition",
    "Conditions",
    "ContinueSuggestion",
    "Count",
    "CutKind",
    "DecisionAction",
    "DecisionKind",
    "DecisionPhase",
    "DecisionRecord",
    "Descriptions",
    "EditRecord",
    "Fits",
    "FitsTwo",
    "FnCall",
    "FnInput",
    "FnSpec",
    "GateAnswer",
    "GateDecision",
    "GatePolicy",
    "Gives",
    "Handles",
    "HandlesArgs",
    "HasConversation",
    "HasName",
    "HasSpec",
    "HasToolCalls",
    "HasTranscript",
    "HidingFn",
    "HidingSelector",
    "HookOutcome",
    "Hooks",
    "InputRuleAnswer",
    "Invocation",
    "IssueReason",
    "JsonSchema",
    "MakesHidingFn",
    "MakesModelFn",
    "MakesToolFn",
    "MediaType",
    "MemberOptions",
    "MissingReason",
    "ModelFn",
    "ModelNames",
    "Named",
    "NotEnded",
    "Offered",
    "OnEvent",
    "Registers",
    "RegistersArgs",
    "RegistersGate",
    "RegistersTwo",
    "RejectionSource",
    "ReplyStatus",
    "Restored",
    "ResultLike",
    "ResultStatus",
    "Role",
    "Rule",
    "SchemaLoss",
    "Skipped",
    "StepKind",
    "StepPhase",
    "SyncTurnStream",
    "TakesContext",
    "Target",
    "TextResult",
    "ToolChoiceMode",
    "ToolFn",
    "ToolHooks",
    "ToolSearch",
    "ToolSpec",
    "TranscriptView",
    "Turn",
    "TurnStream",
    "TurnWithAnswer",
    "TurnWithTools",
    "Within",
]
