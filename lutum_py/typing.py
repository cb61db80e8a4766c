"""Types that the signatures of the library name, for annotations of your own.

What a program makes, calls or matches is in `lutum_py` and its other modules. What is here
is only named: by a function that wraps one of the library's, by a decorator, by a field.

Example:
    >>> from lutum_py.typing import GateVerdict, Hooks
    >>> def first(hooks: Hooks) -> GateVerdict[str]:
    ...     return None
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._call.call import FnCall as FnCall
    from ._call.call import HookOutcome as HookOutcome
    from ._call.call import Hooks as Hooks
    from ._call.call import NotEnded as NotEnded
    from ._call.call import ToolHooks as ToolHooks
    from ._call.decisions import ArgsDecision as ArgsDecision
    from ._call.decisions import ArgsRuleVerdict as ArgsRuleVerdict
    from ._call.decisions import DecisionKind as DecisionKind
    from ._call.decisions import GateDecision as GateDecision
    from ._call.decisions import InputRuleVerdict as InputRuleVerdict
    from ._call.history import CallRowState as CallRowState
    from ._call.history import CallStep as CallStep
    from ._call.history import RejectionSource as RejectionSource
    from ._call.history import StepKind as StepKind
    from ._call.history import StepPhase as StepPhase
    from ._call.outcomes import IssueReason as IssueReason
    from ._call.outcomes import PendingDecision as PendingDecision
    from ._call.reply import ReplyStatus as ReplyStatus
    from ._call.selector import AnySelector as AnySelector
    from ._call.selector import HidingSelector as HidingSelector
    from ._call.selector import InputSelector as InputSelector
    from ._call.selector import TakesContext as TakesContext
    from ._call.spec import AnySpec as AnySpec
    from ._call.spec import Condition as Condition
    from ._call.spec import Conditions as Conditions
    from ._call.spec import FnSpec as FnSpec
    from ._call.spec import HasSpec as HasSpec
    from ._call.spec import Rule as Rule
    from ._call.spec import ToolSpec as ToolSpec
    from ._context.context import CallLike as CallLike
    from ._context.inner import HasConversation as HasConversation
    from ._context.inner import HasName as HasName
    from ._context.inner import HasToolCalls as HasToolCalls
    from ._context.inner import Inner as Inner
    from ._context.suspension import DecisionAction as DecisionAction
    from ._hooks.capability_gate import GatePolicy as GatePolicy
    from ._hooks.registered_hook import AfterVerdict as AfterVerdict
    from ._hooks.registered_hook import ArgsHookDecorator as ArgsHookDecorator
    from ._hooks.registered_hook import ArgsHookFunction as ArgsHookFunction
    from ._hooks.registered_hook import CallGate as CallGate
    from ._hooks.registered_hook import GateDecorator as GateDecorator
    from ._hooks.registered_hook import GateVerdict as GateVerdict
    from ._hooks.registered_hook import HookDecorator as HookDecorator
    from ._hooks.registered_hook import HookFunction as HookFunction
    from ._hooks.registered_hook import SharedHookDecorator as SharedHookDecorator
    from ._hooks.registered_hook import SharedHookFunction as SharedHookFunction
    from ._round.decision_records import DecisionPhase as DecisionPhase
    from ._round.decision_records import DecisionRecord as DecisionRecord
    from ._round.decision_records import EditRecord as EditRecord
    from ._round.ending import ResultLike as ResultLike
    from ._round.events import Ancestor as Ancestor
    from ._round.events import CallEvent as CallEvent
    from ._round.events import CallEventKind as CallEventKind
    from ._round.events import CallRow as CallRow
    from ._round.events import OnEvent as OnEvent
    from ._round.finished import MissingReason as MissingReason
    from ._round.finished import TextResult as TextResult
    from ._round.plan import ContinueSuggestion as ContinueSuggestion
    from ._round.run import CallRun as CallRun
    from ._schema.definition import Caller as Caller
    from ._schema.input_model import FnInput as FnInput
    from ._schema.invocation import Invocation as Invocation
    from ._schema.schema_reader import JsonSchema as JsonSchema
    from ._session.model import AnyModel as AnyModel
    from ._session.model import Model as Model
    from ._session.model import StreamingModel as StreamingModel
    from ._session.model import SyncModel as SyncModel
    from ._session.model import SyncStreamingModel as SyncStreamingModel
    from ._session.model import SyncTurnStream as SyncTurnStream
    from ._session.model import TurnStream as TurnStream
    from ._session.session import Restored as Restored
    from ._session.turn import Turn as Turn
    from ._session.turn import TurnWithAnswer as TurnWithAnswer
    from ._session.turn import TurnWithTools as TurnWithTools
    from ._text.json import JsonObject as JsonObject
    from ._toolsets.handlers import ArgsHandlerDecorator as ArgsHandlerDecorator
    from ._toolsets.handlers import HandlerDecorator as HandlerDecorator
    from ._toolsets.offer import Available as Available
    from ._toolsets.offer import Descriptions as Descriptions
    from ._toolsets.offer import OfferedTools as OfferedTools
    from ._toolsets.tool_fn import CallOf as CallOf
    from ._toolsets.tool_fn import ModelFn as ModelFn
    from ._toolsets.tool_fn import ModelFnDecorator as ModelFnDecorator
    from ._toolsets.tool_fn import ToolFn as ToolFn
    from ._toolsets.tool_fn import ToolFnDecorator as ToolFnDecorator
    from ._transcript.assistant import CutOff as CutOff
    from ._transcript.message import MediaType as MediaType
    from ._transcript.message import Role as Role
    from ._transcript.request import ToolChoiceMode as ToolChoiceMode
    from ._transcript.result import Answerable as Answerable
    from ._transcript.result import ResultStatus as ResultStatus
    from ._transcript.transcript import HasTranscript as HasTranscript
    from ._transcript.transcript import TranscriptView as TranscriptView
else:
    # Each on demand: who names one type loads no sessions, rounds and hooks.
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_call.call": ("FnCall", "HookOutcome", "Hooks", "NotEnded", "ToolHooks"),
            "_call.decisions": (
                "ArgsDecision",
                "ArgsRuleVerdict",
                "DecisionKind",
                "GateDecision",
                "InputRuleVerdict",
            ),
            "_call.history": (
                "CallRowState",
                "CallStep",
                "RejectionSource",
                "StepKind",
                "StepPhase",
            ),
            "_call.outcomes": ("IssueReason", "PendingDecision"),
            "_call.reply": ("ReplyStatus",),
            "_call.selector": ("AnySelector", "HidingSelector", "InputSelector", "TakesContext"),
            "_call.spec": (
                "AnySpec",
                "Condition",
                "Conditions",
                "FnSpec",
                "HasSpec",
                "Rule",
                "ToolSpec",
            ),
            "_context.context": ("CallLike",),
            "_context.inner": ("HasConversation", "HasName", "HasToolCalls", "Inner"),
            "_context.suspension": ("DecisionAction",),
            "_hooks.capability_gate": ("GatePolicy",),
            "_hooks.registered_hook": (
                "AfterVerdict",
                "ArgsHookDecorator",
                "CallGate",
                "HookFunction",
                "SharedHookFunction",
                "GateDecorator",
                "GateVerdict",
                "ArgsHookFunction",
                "HookDecorator",
                "SharedHookDecorator",
            ),
            "_round.decision_records": ("DecisionPhase", "DecisionRecord", "EditRecord"),
            "_round.ending": ("ResultLike",),
            "_round.events": ("Ancestor", "CallEvent", "CallEventKind", "CallRow", "OnEvent"),
            "_round.finished": ("MissingReason", "TextResult"),
            "_round.plan": ("ContinueSuggestion",),
            "_round.run": ("CallRun",),
            "_schema.definition": ("Caller",),
            "_schema.input_model": ("FnInput",),
            "_schema.invocation": ("Invocation",),
            "_schema.schema_reader": ("JsonSchema",),
            "_session.model": (
                "AnyModel",
                "Model",
                "StreamingModel",
                "SyncModel",
                "SyncStreamingModel",
                "SyncTurnStream",
                "TurnStream",
            ),
            "_session.session": ("Restored",),
            "_session.turn": ("Turn", "TurnWithAnswer", "TurnWithTools"),
            "_text.json": ("JsonObject",),
            "_toolsets.handlers": ("ArgsHandlerDecorator", "HandlerDecorator"),
            "_toolsets.offer": ("Available", "Descriptions", "OfferedTools"),
            "_toolsets.tool_fn": (
                "CallOf",
                "ModelFn",
                "ModelFnDecorator",
                "ToolFn",
                "ToolFnDecorator",
            ),
            "_transcript.message": ("MediaType", "Role"),
            "_transcript.assistant": ("CutOff",),
            "_transcript.request": ("ToolChoiceMode",),
            "_transcript.result": ("Answerable", "ResultStatus"),
            "_transcript.transcript": ("HasTranscript", "TranscriptView"),
        },
    )
    __all__ = list(exported(__dir__()))
