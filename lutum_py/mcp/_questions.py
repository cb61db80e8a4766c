"""What a server asks before it can go on: as a ticket that waits, and as answers that are sent.

On the protocol of 2026 a question is a result: the server forgets the call, and gets back what it
asked for together with a state that only it understands. So a question may wait in a saved plan for
as long as the server honours its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.client.session import ClientRequestContext
from mcp.types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
)
from pydantic import TypeAdapter, ValidationError

from .._context.context import ToolContext
from .._context.suspension import ResumeMode, SuspendTicket
from .._schema.schema_check import schema_checker
from .._text.json import compact_json
from ..errors import ToolDefinitionError
from ._words import Limits, legible, legible_schema, one_line

_ACTION: Final = "mcp_input"
"""What a ticket of a server's question asks for."""

_NO: Final = ("decline", "cancel")
_FIELD: Final = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": "string"}},
    ]
}
_SAMPLE: Final = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "content": {"type": ["object", "array"]},
        "model": {"type": "string"},
    },
    "required": ["role", "content", "model"],
}
_ROOTS: Final = {
    "type": "object",
    "properties": {
        "roots": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"uri": {"type": "string", "pattern": "^file://"}},
                "required": ["uri"],
            },
        }
    },
    "required": ["roots"],
}
_SAMPLED: Final[TypeAdapter[CreateMessageResult | CreateMessageResultWithTools]] = TypeAdapter(
    CreateMessageResult | CreateMessageResultWithTools
)


class UnfitQuestion(Exception):
    """A server asked what nobody can be shown; `code` is that of the result."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class UnfitAnswer(Exception):
    """A decision answers something else than what the server asked."""


async def decline_inline(
    context: ClientRequestContext, params: ElicitRequestParams
) -> ElicitResult:
    """Say no to what a server of an older protocol asks in the middle of a call.

    Pass it as `elicitation_callback=` of an `mcp.Client`: without a callback a client does not say
    that it can be asked, and servers of the protocol of 2026 do not ask it either. Those get their
    answers from your decisions, never from here.
    """
    del context, params
    return ElicitResult(action="decline")


def ticket_for(asked: InputRequiredResult, limits: Limits) -> SuspendTicket:
    """Make the ticket of what a server asks.

    Raises:
        UnfitQuestion: It is too long, or has a form that no answer can be checked against.
    """
    requests = asked.input_requests or {}
    parameters: dict[str, Any] = {"requests": _data_of(requests, asked.request_state, limits)}
    if asked.request_state is not None:
        parameters["request_state"] = asked.request_state
    schema = _schema_of(requests)
    if schema is not None:
        try:
            schema_checker("the answer to the server", schema)
        except (ToolDefinitionError, RecursionError) as error:
            raise UnfitQuestion(
                "mcp_error", f"The server asked with an unusable form: {one_line(str(error))}"
            ) from None
    said = [_said(request, limits.description) for request in requests.values()]
    return SuspendTicket(
        action=_ACTION,
        message="\n".join(said) or "The server wants to be called again.",
        parameters=parameters,
        response_schema=schema,
        resume_mode=ResumeMode.PASS_DECISION_TO_TOOL,
    )


def _data_of(
    requests: Mapping[str, InputRequest], state: str | None, limits: Limits
) -> dict[str, Any]:
    data = {
        key: request.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, request in requests.items()
    }
    # Before anything is made of it: all of it goes into the ticket, and with that into each saved
    # plan.
    size = len(compact_json(data))
    if size > limits.schema or len(state or "") > limits.result:
        raise UnfitQuestion(
            "result_too_large",
            f"The server's question has {size:,} characters and a state of {len(state or ''):,}, "
            f"where {limits.schema:,} and {limits.result:,} are allowed.",
        )
    return data


def _said(request: InputRequest, limit: int) -> str:
    if isinstance(request, ElicitRequest):
        params = request.params
        said = legible(params.message, limit)
        if isinstance(params, ElicitRequestURLParams):
            # Whole: many words before it would else hide where the person is sent.
            said += f"\n{legible(params.url, len(params.url))}"
        return said
    if isinstance(request, ListRootsRequest):
        return "The server asks which folders it may work in."
    return "The server asks for an answer of a model."


def _schema_of(requests: Mapping[str, InputRequest]) -> dict[str, Any] | None:
    """Say what a decision's result has to be; None if the server asks nothing."""
    # One question is asked as itself, {"city": ...}, since people answer it by hand; several stand
    # under the keys that the server gave, {"where": {...}, "sure": {...}}.
    each = {key: _answer_schema(request) for key, request in requests.items()}
    if not each:
        return None
    if len(each) == 1:
        return next(iter(each.values()))
    return {
        "type": "object",
        "properties": each,
        "required": list(each),
        "additionalProperties": False,
    }


def _answer_schema(request: InputRequest) -> dict[str, Any]:
    if not isinstance(request, ElicitRequest):
        return _ROOTS if isinstance(request, ListRootsRequest) else _SAMPLE
    if isinstance(request.params, ElicitRequestURLParams):
        return {"enum": ["accept", *_NO]}
    # As the protocol has it, a form is flat: what a server writes otherwise cannot be sent back.
    form = {"type": "object", "additionalProperties": _FIELD}
    asked = legible_schema(request.params.requested_schema)
    # A form without fields asks for a yes alone, which an approval is without a result.
    no = [*_NO] if asked.get("properties") else [*_NO, None]
    return {"anyOf": [{"allOf": [form, asked]}, {"enum": no}]}


def answers_in(context: ToolContext) -> tuple[InputResponses | None, str | None]:
    """Read what is to be sent: the answers that were decided on, and the server's state.

    Raises:
        UnfitAnswer: The decision answers something else than what was asked.
    """
    ticket, decision = context.ticket, context.resume
    if ticket is None or decision is None or ticket.action != _ACTION:
        return None, None
    state: str | None = ticket.parameters.get("request_state")
    requests: Mapping[str, Any] = ticket.parameters.get("requests", {})
    if not requests:
        return None, state
    # With one question the result of the decision is its answer, as {"city": "Oslo"}; with several
    # it is an object of answers, as {"where": {"city": "Oslo"}, "sure": "accept"}.
    given: Any = decision.result
    if len(requests) == 1:
        given = {next(iter(requests)): given}
    try:
        return {key: _answer(request, given[key]) for key, request in requests.items()}, state
    except (ValidationError, KeyError, TypeError) as error:
        raise UnfitAnswer(
            f"Decision {decision.decision_id!r} does not answer what the server asked: "
            f"{one_line(str(error))}."
        ) from None


def _answer(request: Mapping[str, Any], given: Any) -> InputResponse:
    if request["method"] == "roots/list":
        return ListRootsResult.model_validate(given)
    if request["method"] == "sampling/createMessage":
        return _SAMPLED.validate_python(given)
    if given in _NO or request["params"].get("mode") == "url":
        return ElicitResult(action=given)
    return ElicitResult(action="accept", content=given or {})
