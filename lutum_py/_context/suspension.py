"""Ask someone to decide about a call: the ticket, and the decision about it.

Both are plain data that outlives the process: the ticket goes out with a saved plan, the decision
comes back by the id of the call. A decision has an id, since what delivers it may do so twice, and
may carry the digest of what was shown, since that is what was decided on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from .._text.json import JsonObject, copy_json, is_mapping, shorten
from ..errors import InvalidValueError, MisuseError


class ResumeMode(StrEnum):
    """What a decision to resume means for the call."""

    REPLAY_TOOL_CALL = "replay_tool_call"
    """The call is pending again, with exactly the input that was approved."""
    USE_DECISION_AS_TOOL_RESULT = "use_decision_as_tool_result"
    """The decision's result is the tool's output; the tool is not run."""
    PASS_DECISION_TO_TOOL = "pass_decision_to_tool"
    """The call is pending again, and the tool reads the decision as `ctx.resume`."""


DecisionAction: TypeAlias = Literal["resume", "cancel"]


def _new_id() -> str:
    from uuid import uuid4

    return uuid4().hex


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendTicket:
    """Say what is to be decided, by whom in their own words, and how the decision is used.

    Attributes:
        id: The id of the suspension; made up if it is left out.
        action: A word for what is asked, as in `approve_payment`.
        message: What the person is told.
        parameters: Plain data for the program that shows the question.
        response_schema: A JSON schema that the decision's result has to fit, if it is not None. To
            check it takes the package `jsonschema`.
        resume_mode: What a decision to resume means.

    Raises:
        InvalidValueError: `resume_mode` is not a mode.
        MisuseError: Another field has another type.

    Example:
        >>> SuspendTicket(action="approve", message="Pay 20 EUR?").resume_mode.value
        'replay_tool_call'
    """

    id: str = field(default_factory=_new_id)
    action: str = "approve"
    message: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    response_schema: Mapping[str, Any] | None = field(default=None, hash=False)
    resume_mode: ResumeMode = ResumeMode.REPLAY_TOOL_CALL

    def __post_init__(self) -> None:
        try:
            mode = ResumeMode(self.resume_mode)
        except ValueError:
            modes = ", ".join(repr(each.value) for each in ResumeMode)
            raise InvalidValueError(
                f"SuspendTicket {shorten(self.id)}: `resume_mode` is {shorten(self.resume_mode)}, "
                f"which is none of the modes: {modes}. Give one of `ResumeMode`."
            ) from None
        object.__setattr__(self, "resume_mode", mode)
        _check_texts(self, ("id", "action"), ("message",))
        if not is_mapping(self.parameters):
            raise MisuseError.of_field("SuspendTicket", "parameters", "a dict", self.parameters)
        if (schema := self.response_schema) is not None and not is_mapping(schema):
            raise MisuseError.of_field("SuspendTicket", "response_schema", "a dict", schema)

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as plain data; what is not set is left out."""
        data: JsonObject = {"id": self.id, "action": self.action}
        if self.message is not None:
            data["message"] = self.message
        if self.parameters:
            data["parameters"] = dict(self.parameters)
        if self.response_schema is not None:
            data["response_schema"] = dict(self.response_schema)
        data["resume_mode"] = self.resume_mode.value
        return data


# Delivered by mail, a queue or a web form, perhaps twice and perhaps a day late: so it carries all
# that tells whether it still answers what is asked: call, ticket, digest of what was shown, round.
@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decide about one suspended call.

    Attributes:
        call_id: The id of the call.
        action: `resume` or `cancel`.
        result: What was decided, as plain data; false, zero and "" are results like any other.
        reason: Why, in words that the model may read.
        decision_id: Names this decision, so that a second delivery does nothing.
        digest: The digest that was decided on. A decision to resume needs it; `waiting.approve()`
            puts it in.
        edit: The whole arguments to go on with, by their wire names; `waiting.edit(changes)` puts
            them together, and `plan.amend` takes them in. A copy is kept.
        by: Who decided, in your own words; the library knows no users.
        at: When, in ISO 8601; now, in UTC, if it is left out.
        ticket: The id of the ticket that was shown, so that it counts for no other ticket. Left
            out, the decision counts only for a call that never waited before.
        requested_in: Names the round that waits, if that is known: a ticket's id may be your own,
            and come again. `waiting.approve()` and its like put both in.

    Raises:
        InvalidValueError: The action is unknown, or `edit` is not a mapping of names, or is beside
            another action than `resume`.
        MisuseError: Another field has another type.

    Example:
        >>> Decision(call_id="c1", action="cancel", reason="too expensive").action
        'cancel'
    """

    call_id: str
    action: DecisionAction
    result: Any = field(default=None, hash=False, repr=False)
    reason: str | None = None
    decision_id: str = field(default_factory=_new_id)
    digest: str | None = None
    edit: Mapping[str, Any] | None = field(default=None, hash=False, repr=False)
    by: str | None = None
    at: str = field(default_factory=_now)
    ticket: str | None = None
    requested_in: str | None = None

    @property
    def decider(self) -> str:
        """Who decided: `by`, or the id of the decision if nobody is named."""
        return self.by or self.decision_id

    def __post_init__(self) -> None:
        if self.action not in ("resume", "cancel"):
            raise InvalidValueError(
                f"Decision for call {self.call_id!r}: action {self.action!r} is neither "
                "'resume' nor 'cancel'."
            )
        _check_texts(self, ("call_id", "decision_id", "at"), _OPTIONAL)
        if self.edit is None:
            return
        if self.action != "resume":
            raise InvalidValueError(
                f"Decision for call {self.call_id!r}: `edit` goes with the action 'resume' only, "
                f"not with {self.action!r}. Leave one of them out."
            )
        given: Any = self.edit
        names: Iterable[object] = given if is_mapping(given) else (None,)
        if not all(isinstance(name, str) for name in names):
            # Nothing of it is shown: it may hold secrets.
            raise InvalidValueError(
                f"Decision for call {self.call_id!r}: `edit` is the whole arguments by their "
                f"names, not a value of type {type(given).__name__} or with other keys. Make it "
                "with `waiting.edit(changes)`."
            )
        # What was decided on stays what it was, whatever becomes of the dict that it was made of.
        object.__setattr__(self, "edit", copy_json(given))


_OPTIONAL = ("reason", "digest", "by", "ticket", "requested_in")


def _check_texts(made: object, texts: tuple[str, ...], optional: tuple[str, ...]) -> None:
    """Refuse what a saved plan could not be loaded with."""
    for names, kind, takes in ((texts, str, "a text"), (optional, str | None, "a text or None")):
        for name in names:
            if not isinstance(value := getattr(made, name), kind):
                raise MisuseError.of_field(type(made).__name__, name, takes, value)
