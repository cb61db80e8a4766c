"""What becomes of a call, as far as it needs no call: see `call` for the outcomes that hold one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from .._text.escaping import escape_unprintable, escape_unprintable_json
from .._text.immutable import dataclass
from .._text.json import compact_json, cut, shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult, rejection
from ..errors import FieldIssue, InvalidValueError, MisuseError

if TYPE_CHECKING:
    from .._context.suspension import Decision, DecisionAction

In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)

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


# What is asked about a call that waits, and what can be decided, wherever it is shown.


_LONGEST = 2000


def question_of(tool: str, arguments: Any) -> str:
    """Ask about a call for which nobody wrote a question: by its arguments, as they are shown."""
    shown = cut(escape_unprintable_json(compact_json(arguments)), _LONGEST)
    return f"{escape_unprintable(tool)} {shown}?"


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
