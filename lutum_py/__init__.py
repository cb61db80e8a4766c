"""Typed toolsets for LLM tool calling where you own the loop.

Here stands what a loop, a hook or a tool mentions. What only some programs need is in the modules
beside it: `capabilities`, `code`, `context`, `dialects`, `errors`, `execution`, `flow`, `mcp`,
`models`, `otel`, `policy`, `saved`, `schemas`, `sinks`, `store`, `streaming`, `testing`, `tools`,
`turns`, `typing` and `window`. Each public name has one place.

Each name is imported when it is first asked for (PEP 562), so that a program loads what it uses and
nothing else.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # Not `code`, `mcp`, `models` and `otel`: to see them, a checker would read an SDK in every
    # program; and not `cli`, which is above this file.
    from . import capabilities as capabilities
    from . import context as context
    from . import dialects as dialects
    from . import errors as errors
    from . import execution as execution
    from . import flow as flow
    from . import policy as policy
    from . import saved as saved
    from . import schemas as schemas
    from . import sinks as sinks
    from . import store as store
    from . import streaming as streaming
    from . import testing as testing
    from . import tools as tools
    from . import turns as turns
    from . import typing as typing
    from . import window as window
    from ._call.call import AnyToolCall as AnyToolCall
    from ._call.call import AwaitingCall as AwaitingCall
    from ._call.call import RejectedCall as RejectedCall
    from ._call.call import SuspendedCall as SuspendedCall
    from ._call.call import ToolCall as ToolCall
    from ._call.decisions import Block as Block
    from ._call.decisions import Complete as Complete
    from ._call.decisions import Reject as Reject
    from ._call.decisions import RunNormally as RunNormally
    from ._call.decisions import Suspend as Suspend
    from ._call.decisions import ToolDecision as ToolDecision
    from ._call.history import CallStatus as CallStatus
    from ._call.outcomes import HandledCall as HandledCall
    from ._call.outcomes import RecoverableToolCallIssue as RecoverableToolCallIssue
    from ._call.reply import Reply as Reply
    from ._call.selector import FnSelector as FnSelector
    from ._call.selector import Selector as Selector
    from ._context.context import ToolContext as ToolContext
    from ._context.suspension import Decision as Decision
    from ._context.suspension import ResumeMode as ResumeMode
    from ._context.suspension import SuspendTicket as SuspendTicket
    from ._hooks.hook_set import HookSet as HookSet
    from ._round.finished import Finished as Finished
    from ._round.finished import NoAnswer as NoAnswer
    from ._round.plan import ToolRoundPlan as ToolRoundPlan
    from ._round.round import NeedsTools as NeedsTools
    from ._round.round import ToolRound as ToolRound
    from ._schema.definition import ToolDef as ToolDef
    from ._schema.signature import Skip as Skip
    from ._session.session import Session as Session
    from ._session.toolset import Toolset as Toolset
    from ._toolsets.answer import Answer as Answer
    from ._toolsets.handlers import Handlers as Handlers
    from ._toolsets.member import tool as tool
    from ._toolsets.member import toolset as toolset
    from ._toolsets.offer import ToolAvailability as ToolAvailability
    from ._toolsets.offer import ToolRequirement as ToolRequirement
    from ._toolsets.tool_fn import tool_fn as tool_fn
    from ._toolsets.tool_input import ToolInput as ToolInput
    from ._toolsets.tool_input import tool_input as tool_input
    from ._transcript.assistant import AssistantTurn as AssistantTurn
    from ._transcript.assistant import ToolMetadata as ToolMetadata
    from ._transcript.assistant import Usage as Usage
    from ._transcript.message import Attachment as Attachment
    from ._transcript.message import Labels as Labels
    from ._transcript.message import Message as Message
    from ._transcript.request import TurnRequest as TurnRequest
    from ._transcript.result import ToolResult as ToolResult
    from ._transcript.transcript import CommittedRound as CommittedRound
    from ._transcript.transcript import Transcript as Transcript

__version__ = "0.1.0"

_HOME: Final = {
    "_call.call": (
        "AnyToolCall",
        "AwaitingCall",
        "RejectedCall",
        "SuspendedCall",
        "ToolCall",
    ),
    "_call.decisions": ("Block", "Complete", "Reject", "RunNormally", "Suspend", "ToolDecision"),
    "_call.history": ("CallStatus",),
    "_call.outcomes": ("HandledCall", "RecoverableToolCallIssue"),
    "_call.reply": ("Reply",),
    "_call.selector": ("FnSelector", "Selector"),
    "_context.context": ("ToolContext",),
    "_context.suspension": ("Decision", "ResumeMode", "SuspendTicket"),
    "_toolsets.answer": ("Answer",),
    "_toolsets.handlers": ("Handlers",),
    "_toolsets.member": ("tool", "toolset"),
    "_toolsets.offer": ("ToolAvailability", "ToolRequirement"),
    "_toolsets.tool_fn": ("tool_fn",),
    "_toolsets.tool_input": ("ToolInput", "tool_input"),
    "_hooks.hook_set": ("HookSet",),
    "_round.plan": ("ToolRoundPlan",),
    "_round.finished": ("Finished", "NoAnswer"),
    "_round.round": ("NeedsTools", "ToolRound"),
    "_schema.definition": ("ToolDef",),
    "_schema.signature": ("Skip",),
    "_session.session": ("Session",),
    "_session.toolset": ("Toolset",),
    "_transcript.assistant": ("AssistantTurn", "ToolMetadata", "Usage"),
    "_transcript.message": ("Attachment", "Labels", "Message"),
    "_transcript.request": ("TurnRequest",),
    "_transcript.result": ("ToolResult",),
    "_transcript.transcript": ("CommittedRound", "Transcript"),
}
"""The module of each public name."""

_MODULE_OF: Final = {name: home for home, names in _HOME.items() for name in names}
_MODULES: Final = (
    "capabilities",
    "cli",
    "code",
    "context",
    "dialects",
    "errors",
    "execution",
    "flow",
    "mcp",
    "models",
    "otel",
    "policy",
    "saved",
    "schemas",
    "sinks",
    "store",
    "streaming",
    "testing",
    "tools",
    "turns",
    "typing",
    "window",
)
"""The public modules."""

if not TYPE_CHECKING:  # else every misspelt name would have a type
    # For checkers, whatever is imported above under its own name is public.
    __all__ = sorted([*_MODULE_OF, "__version__", "errors"])  # noqa: PLE0605 - it is a list

    def __getattr__(name: str) -> Any:
        home = _MODULE_OF.get(name)
        if home is not None:
            value = getattr(import_module(f"{__name__}.{home}"), name)
        elif name in _MODULES:
            value = import_module(f"{__name__}.{name}")
        else:
            raise _missing(name)
        globals()[name] = value
        return value


def _missing(name: str) -> AttributeError | ImportError:
    """Make the error for a name that is not here, with the module where it is, if there is one."""
    message = f"module {__name__!r} has no attribute {name!r}"
    place = None if name.startswith("_") else _place_of(name)
    if place is None:
        return AttributeError(message)
    message = f"{message}. It is in {place}: write `from {place} import {name}`."
    # An import statement looks first, and replaces the text of an AttributeError by its own.
    is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    return ImportError(message) if is_import else AttributeError(message)


def _place_of(name: str) -> str | None:
    """Find the public module that has a name."""
    for module in _MODULES:
        try:
            names = import_module(f"{__name__}.{module}").__all__
        except ImportError:  # an extra that is not installed
            continue
        if name in names:
            return f"{__name__}.{module}"
    return None


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_MODULES})
