"""The attributes of spans and events: what is told of a call, each text bounded and encodable."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.outcomes import RecoverableToolCallIssue
from .._context.suspension import Decision
from .._round.events import CallEvent
from .._text.json import cut

Decided: TypeAlias = DecisionRecord | RecoverableToolCallIssue | Decision | CallEvent
"""What is told of a call that is not run, or not yet: see `ToolTracer.record_decisions`."""

NAME_LIMIT: Final = 128
"""Characters of a name, or of an id."""

_TEXT_LIMIT: Final = 1024


def call_attributes(call: AnyToolCall) -> dict[str, str]:
    """Give the attributes that the span of a call begins with."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": bounded(call.name, NAME_LIMIT),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": bounded(call.id, NAME_LIMIT),
    }
    if description := call.selector.definition.description:
        attributes["gen_ai.tool.description"] = bounded(description, _TEXT_LIMIT)
    if len(call.selector.path) > 1:
        attributes["lutum.tool.path"] = bounded(".".join(call.selector.path), NAME_LIMIT)
    if call.suspension_id is not None:
        attributes["lutum.suspension.id"] = bounded(call.suspension_id, NAME_LIMIT)
    return attributes


def decision_attributes(decided: Decided) -> tuple[dict[str, str], str | None]:
    """Say who decided what about which call, and apart from it why."""
    told: tuple[str | None, ...]
    if isinstance(decided, DecisionRecord):
        told = decided.call_id, decided.tool, decided.decision, decided.phase, decided.hook
        reason = decided.reason
    elif isinstance(decided, CallEvent):
        row, reason = decided.row, decided.row.reason
        told = row.id, row.tool, row.state, decided.kind, row.by
    elif isinstance(decided, RecoverableToolCallIssue):
        call, reason = decided.metadata, decided.text
        told = call.id, call.name, decided.reason, "decode", None
    else:
        told = decided.call_id, None, decided.action, "resume", decided.decision_id
        reason = decided.reason
    named = zip(_DECISION, told, strict=True)
    return {name: bounded(text, NAME_LIMIT) for name, text in named if text is not None}, reason


_DECISION: Final = (
    *("gen_ai.tool.call.id", "gen_ai.tool.name"),
    *("lutum.decision", "lutum.decision.phase", "lutum.decision.by"),
)
"""The attributes of a decision; one that is not known is left out."""


def arguments_of(call: AnyToolCall) -> str:
    """Encode what the tool gets, which may be other than what the model sent."""
    return call.spec.shown_json(call.input)


def class_name(kind: type[Any]) -> str:
    """Name a class as OpenTelemetry does: with its module, but for the built-in ones."""
    plain = kind.__module__ == "builtins"
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def bounded(text: str, limit: int) -> str:
    """Cut a text, and make it one that exporters can encode."""
    return cut(text, limit).encode("utf-8", "backslashreplace").decode("utf-8")
