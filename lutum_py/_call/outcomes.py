"""`Reply`: what a tool gives if its output alone does not say all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from .._text.escaping import escape_unprintable, escape_unprintable_json
from .._text.immutable import Immutable, dataclass
from .._text.json import compact_json, cut, sendable, shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult, make_result, rejection
from ..errors import FieldIssue, InvalidValueError, MisuseError, ToolDefinitionError
from .base_call import CallRecord
from .history import (
    BY_TOOL,
    END_OF,
    CallRound,
    Entry,
    History,
    Said,
    Step,
    StepPhase,
    move,
)

if TYPE_CHECKING:
    from .._context.suspension import Decision, DecisionAction, SuspendTicket
    from .._transcript.assistant import AssistantTurn
    from .._transcript.message import Attachment, Labels
    from .call import AnyToolCall
    from .call_state import DecodedCall

Out_co = TypeVar("Out_co", covariant=True)

ReplyStatus: TypeAlias = Literal["success", "error", "cancelled", "indeterminate"]
"""How a call ends by a reply; what a tool did is never `rejected`."""

_STATUSES = get_args(ReplyStatus)


@dataclass(frozen=True, slots=True, init=False)
class Reply(Immutable, Generic[Out_co]):
    """Return it from a tool or handler in place of the output; it is immutable.

    `-> Reply[Picture]` declares the output `Picture`.

    Args:
        output: What the tool gives; checked against the declared type if the status is `success`.
        message: What the model reads instead of the output.
        attachments: Files that go with it.
        status: How the call ends.
        code: A stable code for programs; it is put before the message in brackets.
        labels: What is known of who wrote it and who may read it; see `lutum_py.flow`.

    Raises:
        InvalidValueError: A tool cannot give this status.
        MisuseError: The message or the code is not text, or the labels are not a `Labels`.

    Example:
        >>> from lutum_py import Reply, Toolset, ToolMetadata, tool, tool_fn
        >>> @tool_fn
        ... def look(place: str) -> Reply[dict[str, int]]:
        ...     return Reply({"cats": 2}, message=f"Two cats in the {place}.")
        >>> class Eyes(Toolset):
        ...     look = tool(look)
        >>> metadata = ToolMetadata(id="c1", name="look", arguments='{"place": "hall"}')
        >>> result = Eyes.parse_tool_call(metadata).call_sync()
        >>> result.model_text, result.output
        ('Two cats in the hall.', {'cats': 2})
    """

    output: Out_co
    message: str | None
    attachments: tuple[Attachment, ...]
    status: ReplyStatus
    code: str | None
    labels: Labels | None

    def __init__(
        self,
        output: Out_co,
        message: str | None = None,
        attachments: Iterable[Attachment] = (),
        status: ReplyStatus = "success",
        code: str | None = None,
        labels: Labels | None = None,
    ) -> None:
        if status not in _STATUSES:
            raise InvalidValueError(
                f"A Reply has the status {shorten(status)}, which is none of "
                f"{', '.join(_STATUSES)}. A hook or gate rejects calls, a tool does not."
            )
        for name, text in (("message", message), ("code", code)):
            MisuseError.check("Reply", name, "a text", text, str | None)
        if labels is not None:
            from .._transcript.message import check_labels

            check_labels("Reply", labels)
        attached: tuple[Attachment, ...] = ()
        if attachments != ():
            from .._transcript.message import attachments_of  # most replies have none

            attached = attachments_of("Reply", attachments)
        self._put(
            output=output,
            message=None if message is None else sendable(message),
            attachments=attached,
            status=status,
            code=None if code is None else sendable(code),
            labels=labels,
        )

    @property
    def model_message(self) -> str | None:
        """The message with the code before it."""
        if self.message is None or self.code is None:
            return self.message
        return f"[{self.code}] {self.message}"

    if TYPE_CHECKING:
        # By this an overload of `tool()` tells all other outputs from a reply.
        __sizeof__: ClassVar[None]  # type: ignore[assignment]

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = "".join(
            f", {name}={getattr(self, name)!r}"
            for name in ("message", "attachments", "code", "labels")
            if getattr(self, name)
        )
        ended = "" if self.status == "success" else f", status={self.status!r}"
        return f"Reply({self.output!r}{said}{ended})"


REPLY: Any = Reply
"""The same for `isinstance`: as a class it would narrow to a reply of an unknown type."""


def reply_in(output: Any) -> Reply[Any] | None:
    """Return an output if it is a reply, else None."""
    return output if isinstance(output, REPLY) else None


def without_replies(place: str, returned: Any) -> Any:
    """Return the output that a return type declares: what else a reply says is not part of it.

    `Reply[Picture]` declares `Picture`, and `Reply[Picture] | None` declares `Picture | None`.

    Args:
        place: What declares it, for messages.
        returned: The type.

    Raises:
        ToolDefinitionError: A `Reply` is within it, as in `list[Reply[Picture]]`.
    """
    if _is_reply(returned):
        output = get_args(returned)[0] if get_args(returned) else Any
    else:
        members = get_args(returned) if get_origin(returned) in (Union, UnionType) else ()
        outputs = tuple(without_replies(place, each) for each in members)
        output = returned if outputs == members else Union[outputs]  # noqa: UP007 - of a tuple
    if _has_reply(output):
        raise ToolDefinitionError(
            f"{place}: a `Reply` is within its output type. It goes around all that is returned, "
            "as in `Reply[list[Hit]]` in place of `list[Reply[Hit]]`."
        )
    return output


def _is_reply(kind: Any) -> bool:
    return kind is Reply or get_origin(kind) is Reply


def _has_reply(kind: Any) -> bool:
    return _is_reply(kind) or any(map(_has_reply, get_args(kind)))


In_co = TypeVar("In_co", covariant=True)

RejectionSource: TypeAlias = Literal["hook", "gate", "user", "decision"]
"""Who rejected a call: an execution hook, a gate that blocked it, the user's own code, or whoever
decided to cancel it while it was suspended."""

IssueReason: TypeAlias = Literal["unknown_tool", "not_available", "invalid_arguments", "blocked"]


@dataclass(frozen=True, slots=True)
class HandledCall(Generic[In_co, Out_co]):
    """A call that got its output without being run.

    Attributes:
        metadata: The call as the model sent it.
        input: Its input when it was handled.
        output: The output that it got.
        result: The same, encoded.
        by: Who decided: the name of a hook or gate, or of a person; None for the program itself.
    """

    metadata: ToolMetadata
    input: In_co = field(repr=False)  # `plan.calls` shows it with secrets masked
    output: Out_co
    result: ToolResult
    by: str | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return (HandledCall, (self.metadata, self.input, self.output, self.result, self.by))


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that will not be run, and why.

    Attributes:
        metadata: The call as the model sent it.
        call: The call, with its input when it was rejected.
        reason: What the model is told.
        source: What rejected it.
        by: Who that was: the name of a hook or gate, or of a person; None for the program itself.
    """

    metadata: ToolMetadata
    call: AnyToolCall
    reason: str
    source: RejectionSource = "user"
    by: str | None = field(default=None, compare=False)

    @property
    def result(self) -> ToolResult:
        """The standard result of a call that was rejected, or cancelled by a decision."""
        return rejected_result(self.metadata, self.source, self.reason)


def rejected_result(metadata: ToolMetadata, source: RejectionSource, reason: str) -> ToolResult:
    """Return the standard result of a call that was rejected, or cancelled by a decision."""
    if source == "decision":
        return make_result(metadata, "null", "cancelled", f"Cancelled: {reason}")
    return rejection(metadata, reason)


# What is asked about a call that waits, and what can be decided, wherever it is shown.


_LONGEST = 2000
_LONGEST_WORD = 200


def question_of(tool: str, arguments: Any) -> str:
    """Ask about a call for which nobody wrote a question: by its arguments, as they are shown."""
    shown = cut(escape_unprintable_json(compact_json(arguments)), _LONGEST)
    return f"{escape_unprintable(tool)} {shown}?"


def question_about(call: DecodedCall) -> str:
    """Say what a person is asked about a call: its arguments as they are shown, secrets masked."""
    template = call.selector.options.approval_message
    shown = call.shown
    if template is None:
        return question_of(call.name, shown)
    from string import Formatter  # most programs have no such message

    return "".join(
        text + ("" if name is None else _word(_first(call.spec.arguments.values_of(shown, name))))
        for text, name, _, _ in Formatter().parse(template)
    )


def _first(values: list[Any]) -> Any:
    return values[0] if values else None


def _word(value: Any) -> str:
    return cut(
        escape_unprintable(value if isinstance(value, str) else compact_json(value)), _LONGEST_WORD
    )


class PendingDecision:
    """Base of the classes that show a waiting call: makes decisions about it as it is shown."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def arguments(self) -> Any: ...

        def _of(self) -> tuple[str, str, str, str | None]:
            """Return the id of the call, its tool, the digest of what is shown, and who asks.

            Who asks is the name of the round, if it is known.
            """
            ...

    @property
    def question(self) -> str:
        """What is asked, safe to print: the ticket's message, else the tool and its arguments.

        Arguments are cut after 2,000 characters; `arguments` has all of them.
        """
        shown: Any = self  # a checker would have the field of each class override a property
        message: str | None = shown.ticket.message
        return (
            escape_unprintable(message) if message else question_of(self._of()[1], self.arguments)
        )

    def approve(
        self, *, by: str | None = None, result: Any = None, reason: str | None = None
    ) -> Decision:
        """Make the decision to let the call go on, as it is shown here.

        Args:
            by: Who decides.
            result: What the tool gets, or the model in its place, if the ticket takes a result.
            reason: Why.
        """
        return self._decision("resume", by, reason, result)

    def cancel(self, reason: str | None = None, *, by: str | None = None) -> Decision:
        """Make the decision not to run the call.

        Args:
            reason: Why; the model reads it.
            by: Who decides.
        """
        return self._decision("cancel", by, reason, None)

    def edit(
        self,
        changes: Mapping[str, Any],
        *,
        by: str | None = None,
        result: Any = None,
        reason: str | None = None,
    ) -> Decision:
        """Make the decision to let the call go on with other arguments; see `plan.amend`.

        Args:
            changes: The arguments that are to change, each whole, by their names in `arguments`.
                What stays masked as it is shown there stays what it is.
            by: Who decides.
            result: What the tool gets, if the ticket takes a result.
            reason: Why.

        Raises:
            InvalidValueError: The changes are not a mapping of names.
        """
        if not isinstance(changes, Mapping):
            id, tool, *_ = self._of()
            raise InvalidValueError(
                f"The changes to call {id!r} of tool `{tool}` are a value of type "
                f"{type(changes).__name__}. Pass a dict of arguments by their names."
            )
        return self._decision("resume", by, reason, result, {**self.arguments, **changes})

    def decide(self, yes: bool, *, by: str | None = None, reason: str | None = None) -> Decision:
        """Make the decision of a yes or no: `approve` or `cancel`.

        Args:
            yes: Whether the call may go on.
            by: Who decides.
            reason: Why; the model reads it if the decision is no.

        Raises:
            MisuseError: The answer is not a bool.
        """
        if not isinstance(yes, bool):
            id, tool, *_ = self._of()
            raise MisuseError(
                f"Whether call {id!r} of tool `{tool}` may go on is {shorten(yes)}. Pass True or "
                "False, such as `answer == 'yes'`."
            )
        return self.approve(by=by, reason=reason) if yes else self.cancel(reason, by=by)

    def _decision(
        self,
        action: DecisionAction,
        by: str | None,
        reason: str | None,
        result: Any,
        edit: Mapping[str, Any] | None = None,
    ) -> Decision:
        from .._context.suspension import Decision  # needed by few, at the first question

        id, _, digest, requested_in = self._of()
        shown: Any = self
        return Decision(
            call_id=id,
            action=action,
            result=result,
            reason=reason,
            digest=digest,
            edit=edit,
            by=by,
            ticket=shown.ticket.id,
            requested_in=requested_in,
        )


# Outcomes of calls that have not ended.


class PendingOutcome:
    """The outcome of a call that has not ended; it has the properties of a result."""

    __slots__ = ()

    @property
    def is_pending(self) -> bool:
        """Whether the call waits: it does."""
        return True

    @property
    def is_success(self) -> bool:
        """Whether the tool did what it was asked: not yet."""
        return False

    @property
    def is_error(self) -> bool:
        """Whether the call ended in any other way than success: it has not ended."""
        return False

    @property
    def is_indeterminate(self) -> bool:
        """Whether nobody knows what the call did: it has not ended."""
        return False


@dataclass(frozen=True, slots=True)
class SuspendedCall(PendingDecision, PendingOutcome):
    """A call that waits for a decision.

    Attributes:
        call: The call; its input is frozen.
        ticket: What is asked, and how the decision is used.
        digest: Names the tool, its schema and the final arguments: what an approval is bound to.
        was_started: Whether the tool suspended itself after it was started.
        by: The name of the hook or gate that asks; None for the tool, or the program itself.
    """

    call: AnyToolCall
    ticket: SuspendTicket
    digest: str
    was_started: bool = False
    by: str | None = field(default=None, compare=False)

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.call.id

    @property
    def tool(self) -> str:
        """The wire name of the tool."""
        return self.call.name

    @property
    def proposed(self) -> str:
        """The arguments as the model wrote them; what is secret by the tool's schema is masked."""
        return self.call.spec.shown_text(self.call.metadata.arguments)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain data, in the shape of Awaken's tool result.

        Returns:
            What `ToolResult.to_json` gives, of the status `pending`, and in `suspension` the ticket
            with the call that waits. Its arguments are the final ones, with secrets masked.
        """
        ticket, call = self.ticket.to_dict(), self.call
        mode = ticket.pop("resume_mode")
        pending = {"id": call.id, "name": call.name, "arguments": self.arguments}
        return {
            "tool_name": call.name,
            "status": "pending",
            "data": None,
            "message": self.ticket.message,
            "suspension": {"suspension": ticket, "pending": pending, "resume_mode": mode},
        }

    @property
    def arguments(self) -> Any:
        """The final arguments as plain data, defaults included: what is shown to whoever decides.

        What is secret by the tool's schema, or a `SecretStr`, is masked here.
        """
        return self.call._record.shown

    def _of(self) -> tuple[str, str, str, str | None]:
        return self.call.id, self.call.name, self.digest, self.call._record.round.requested_in


@dataclass(frozen=True, slots=True)
class AwaitingCall(PendingOutcome):
    """A call that left its tool for others that it requests: an outcome, for `plan.record`.

    Attributes:
        call: The call.
        turn: What it requests: the turn of its model, or one that was made of pairs.
        state: The bytes or text that it left to go on with.
    """

    call: AnyToolCall
    turn: AssistantTurn
    state: bytes | str | None = field(default=None, repr=False)
    _session: str | None = field(default=None, repr=False)
    _known: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, hash=False)
    _before: int = field(default=0, repr=False)  # how often the call had asked
    _trace: str | None = field(default=None, repr=False, compare=False)
    _run: int | None = field(default=None, repr=False, compare=False)  # by which it left

    def set_trace(self, trace: str) -> None:
        """Note the span that what is requested is under, as W3C writes a `traceparent`."""
        object.__setattr__(self, "_trace", trace)

    @property
    def was_started(self) -> bool:
        """Whether the tool was started, which it was."""
        return True


NotEnded: TypeAlias = SuspendedCall | AwaitingCall
"""The outcome of a call that left its tool, and comes back to it."""


@dataclass(frozen=True, slots=True)
class RecoverableToolCallIssue:
    """A call that cannot be used, and what the model is told so that it can do better.

    Attributes:
        metadata: The call as the model sent it.
        reason: `unknown_tool`, `not_available`, `invalid_arguments`, or `blocked` if the model
            refused, or a filter ended its turn.
        text: What the model is told.
        fields: For invalid arguments, one entry for each failing field.
        suggestion: For an unknown tool, the nearest name on offer.
    """

    metadata: ToolMetadata
    reason: IssueReason
    text: str
    fields: tuple[FieldIssue, ...] = ()
    suggestion: str | None = None

    @property
    def result(self) -> ToolResult:
        """The standard rejection that answers the call unless the user gives another result."""
        return rejection(self.metadata, self.text, code=self.reason)


@dataclass(frozen=True, slots=True)
class ContinueSuggestion:
    """Say why the model should go on: it made calls that could not be used.

    Attributes:
        call_ids: The ids of those calls.
        text: The same for people.
    """

    call_ids: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, issues: tuple[RecoverableToolCallIssue, ...]) -> ContinueSuggestion | None:
        """Make the suggestion that issues give reason for, if there are any."""
        if not issues:
            return None
        count = len(issues)
        text = (
            f"{count} tool call{'s' * (count != 1)} could not be used; the model is told why, and "
            "can correct itself when it is asked again."
        )
        return cls(tuple(issue.metadata.id for issue in issues), text)


# What became of a call is made here and nowhere else: of the call and its last step.


def handled_call(
    call: DecodedCall, output: Any, result: ToolResult, by: str | None
) -> HandledCall[Any, Any]:
    """Make a call that got its result without being run."""
    made: HandledCall[Any, Any] = call.spec.handled_type(
        call.metadata, call.input_or_data, output, result, by
    )
    return made


def outcome_of(
    call: DecodedCall, history: History | None = None
) -> HandledCall[Any, Any] | RejectedCall | SuspendedCall:
    """Return what hooks, a gate or a person made of a call.

    Args:
        call: The call, which waits or was ended by one of these.
        history: Its history as it was at some moment; by default as it is.
    """
    history = call.history if history is None else history
    wait = history.wait
    if wait is not None:
        return SuspendedCall(
            call.call, wait.detail, wait.digest or "", wait.verdict == BY_TOOL, wait.by
        )
    end = history.end
    assert end is not None
    if end.verdict == "success":
        # A function in place of hooks may have run the tool itself.
        detail = end.detail
        output, result = (detail.output, detail) if isinstance(detail, ToolResult) else detail
        for step in history.this_try.of_kind("reviewed"):
            if step.phase == "after" and step.verdict == "replaced":
                result = step.detail[1]
                output = result.output
                break
        return handled_call(call, output, result, end.by)
    return rejected_call(call, end)


def rejected_call(call: DecodedCall, end: Step) -> RejectedCall:
    """Make a call that will not be run, of the step by which it was refused."""
    return RejectedCall(call.metadata, call.call, end.reason or "", SOURCES[end.phase], end.by)


def ended_result(call: CallRecord) -> ToolResult:
    """Return the result that a call ended with, also where its plan was not told."""
    end = call.history.settled_by
    result: ToolResult | None = end.detail
    return rejection(call.metadata, end.reason or "") if result is None else result


SOURCES: Final[Mapping[StepPhase | None, RejectionSource]] = {
    "execution": "hook",
    "gate": "gate",
    "decision": "decision",
}
"""What rejected a call, by the phase in which it ended."""


def suspend(call: DecodedCall, ticket: SuspendTicket, run: int | None = None) -> SuspendedCall:
    """Let a call wait for a decision.

    Args:
        call: The call.
        ticket: What is asked.
        run: The run that asks; None for the one in progress, or the program.

    Raises:
        MisuseError: The ticket is not a `SuspendTicket`.
        LifecycleError: The call waits already, or has ended.
        ToolInputError: Its input was changed in place, and does not fit any more.
    """
    if not hasattr(ticket, "resume_mode"):
        raise MisuseError(
            f"Call {call.id!r} of tool `{call.name}` waits under a SuspendTicket, not "
            f"{shorten(ticket)}. Write `call.suspend(SuspendTicket(message=...))`."
        )
    while True:
        since, changed = len(call.entries), None
        if call.stage.may_start:
            changed = call.changes()
            if changed is None:
                call.settle_text()
        digest = call.digest if changed is None else call.digest_of(changed[2])
        verdict = BY_TOOL if call.stage.name == "running" else None
        said: Said = {"verdict": verdict, "digest": digest, "detail": ticket}
        moves = () if changed is None else changed[:1]
        number = call.append_all((*moves, move("suspended", **said)), since, run)
        if number is not None:
            if changed is not None:
                call.hold_changed(number, *changed[1:])
            return SuspendedCall(call.call, ticket, digest, verdict is not None)


def unread_call(
    metadata: ToolMetadata,
    entry: Entry,
    of: ToolResult | RecoverableToolCallIssue,
    call_round: CallRound,
) -> CallRecord:
    """Make a call of no tool, which has ended: it was a final answer, or could not be used."""
    if isinstance(of, ToolResult):
        phase, said = "reply", of.status
    else:
        phase, said = "decode", "rejected"
    _, start, input, at, moves = entry
    ended = ("ended", said, None, None, phase, said, None, None, of)
    return CallRecord(metadata, (END_OF[said], start, input, at, (*moves, ended)), call_round)


def answer_of(call: CallRecord, history: History | None = None) -> ToolResult | None:
    """Return the result of a call, whoever made it, as far as the plan has it.

    Args:
        call: The call.
        history: Its history as it was at some moment; by default as it is.
    """
    history = call.history if history is None else history
    state, end = history.state, history.end
    if not history.is_answered:  # an after-hook may have seen what the plan was not told
        return None
    if state == "rejected" and end is not None:
        return rejected_result(call.metadata, SOURCES[end.phase], end.reason or "")
    issue = history.issue if state == "unusable" else None
    return history.result if issue is None else issue.result
