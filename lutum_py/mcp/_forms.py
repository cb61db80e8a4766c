"""Questions of a tool as forms for a client, and a client's answers as decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.server import ServerRequestContext
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult

from .._call.outcomes import SuspendedCall
from .._context.suspension import Decision, ResumeMode
from .._schema.schema_reader import JsonSchema
from .._text.json import copy_json, is_array, is_object

_FIELDS: Final = ("string", "number", "integer", "boolean")
_EMPTY: Final[JsonSchema] = {"type": "object", "properties": {}}


def question_of(waiting: SuspendedCall) -> str:
    """Put into words what is to be decided."""
    ticket = waiting.ticket
    return ticket.message or f"{ticket.action}: {waiting.call.name}"


def form_for(waiting: SuspendedCall, question: str) -> ElicitRequest | None:
    """Make the form by which a client's user is asked; None where the protocol has none for it.

    Args:
        waiting: The call that waits.
        question: What the user is asked.
    """
    ticket = waiting.ticket
    schema = ticket.response_schema
    if schema is None and ticket.resume_mode is ResumeMode.USE_DECISION_AS_TOOL_RESULT:
        return None
    if schema is not None and not _is_flat(schema):
        return None
    form: JsonSchema = {**_EMPTY, **copy_json(schema or {})}
    params = ElicitRequestFormParams(message=question, requested_schema=form)
    return ElicitRequest(params=params)


def _is_flat(schema: Any) -> bool:
    """Whether a schema is one of an object of plain fields, as forms are."""
    fields = schema.get("properties", {})
    is_plain = schema.get("type") == "object" and not schema.keys() & {"$ref", "anyOf", "oneOf"}
    return is_plain and is_object(fields) and all(map(_is_field, fields.values()))


def _is_field(schema: Any) -> bool:
    if not is_object(schema) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items: Any = schema.get("items")
        if not is_object(items):
            return False
        titled: Any = items.get("anyOf")  # values that have titles, as the protocol has them
        if is_array(titled):
            return all(is_object(each) and isinstance(each.get("const"), str) for each in titled)
        return items.get("type") == "string" and is_array(items.get("enum"))
    return schema.get("type") in _FIELDS


def can_be_asked(request: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client says that it shows forms; one that says nothing more shows them."""
    known = request.session.client_capabilities
    asks = None if known is None else known.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


def _says_no(waiting: SuspendedCall, content: Mapping[str, Any]) -> bool:
    """Whether a form that was accepted says no, and no tool reads what it says."""
    if waiting.ticket.response_schema is None:  # it had no fields, so that this is all we know
        return not all(value is True for value in content.values())
    is_read = waiting.ticket.resume_mode is not ResumeMode.REPLAY_TOOL_CALL
    return not is_read and any(value is False for value in content.values())


def decision_of(waiting: SuspendedCall, answer: ElicitResult) -> Decision:
    """Make the decision that a client's answer stands for."""
    content = answer.content or {}
    if answer.action == "accept" and not _says_no(waiting, content):
        has_fields = waiting.ticket.response_schema is not None
        return waiting.approve(result=content if has_fields else None)
    if answer.action != "cancel":
        return waiting.cancel("the user declined.")
    return waiting.cancel("the user did not answer.")
