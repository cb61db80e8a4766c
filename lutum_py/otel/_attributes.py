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
    attributes: dict[str, str]
    if isinstance(decided, DecisionRecord):
        reason = decided.reason
        attributes = {
            "gen_ai.tool.call.id": decided.call_id,
            "gen_ai.tool.name": decided.tool,
            "lutum.decision": decided.decision,
            "lutum.decision.phase": decided.phase,
            "lutum.decision.by": decided.hook,
        }
    elif isinstance(decided, CallEvent):
        row, reason = decided.row, decided.row.reason
        attributes = {
            "gen_ai.tool.call.id": row.id,
            "gen_ai.tool.name": row.tool,
            "lutum.decision": row.state,
            "lutum.decision.phase": decided.kind,
        }
        if row.by is not None:
            attributes["lutum.decision.by"] = row.by
    elif isinstance(decided, RecoverableToolCallIssue):
        reason = decided.text
        attributes = {
            "gen_ai.tool.call.id": decided.metadata.id,
            "gen_ai.tool.name": decided.metadata.name,
            "lutum.decision": decided.reason,
            "lutum.decision.phase": "decode",
        }
    else:
        reason = decided.reason
        attributes = {
            "gen_ai.tool.call.id": decided.call_id,
            "lutum.decision": decided.action,
            "lutum.decision.phase": "resume",
            "lutum.decision.by": decided.decision_id,
        }
    return {name: bounded(text, NAME_LIMIT) for name, text in attributes.items()}, reason


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
