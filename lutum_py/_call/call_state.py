"""What one decoded call holds: what the model sent, what the program makes of it, how far it is.

`metadata` is what the model sent, and never changes; `input` is what the program makes of it,
changed by hooks or by hand. `status` moves by the table of `lifecycle`: nothing but a move of that
table is possible.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from .._schema.secrets import mask_secrets
from .._text.json import cut, digest_of
from .._transcript.metadata import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .lifecycle import CallStatus, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from .._context.suspension import Decision, SuspendTicket
    from .approval import Approval
    from .spec import ToolSpec

__all__ = ["CallState"]

_NEW = CallStatus.NEW
_SUSPENDED = CallStatus.SUSPENDED


class _Marks(NamedTuple):
    """What is not so of most calls, so that those pay for one slot.

    Attributes:
        is_rewritten: Whether the program replaced the input that was decoded.
        key_begins: What the idempotency key begins with, where the conversation has an id.
    """

    is_rewritten: bool = False
    key_begins: str = ""


_NO_MARKS = _Marks()


class CallState:
    """Keep what is known of one call; `AnyToolCall` documents the attributes."""

    __slots__ = ("_approval", "_input", "_marks", "_status", "mended", "metadata", "selector")

    spec: ClassVar[ToolSpec[Any, Any]]
    metadata: ToolMetadata
    selector: Any
    mended: tuple[str, ...]
    _input: Any
    _status: CallStatus
    _approval: Approval | None
    _marks: _Marks | None

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        mended: tuple[str, ...] = (),
    ) -> None:
        self.metadata = metadata
        self.selector = self.spec.free_selector if selector is None else selector
        self.mended = mended
        self._input = input
        self._status = _NEW
        self._approval = None
        self._marks = None

    @property
    def id(self) -> str:
        """The provider's id of the call."""
        return self.metadata.id

    @property
    def name(self) -> str:
        """The wire name of the tool."""
        return self.metadata.name

    @property
    def status(self) -> CallStatus:
        """Where the call is on its way; moves by the lifecycle table only."""
        return self._status

    def move_to(self, status: CallStatus) -> None:
        """Move the call to another status.

        Raises:
            LifecycleError: The present status does not lead there; nothing changed.
        """
        if status not in self._status.leads_to:
            raise refused(self._status, status, call_id=self.id, tool=self.name)
        self._status = status

    def end(self, status: CallStatus) -> None:
        """Move the call to its end, which it meets once.

        Raises:
            LifecycleError: It has ended already, in the same way too, or waits for a decision.
        """
        present = self._status
        if present is status or status not in present.leads_to:
            self._refuse_end(status)
        self._status = status

    def _refuse_end(self, status: CallStatus) -> NoReturn:
        if self._status.is_terminal:
            cannot = "already" if status is self._status else f"and cannot become {status}"
            raise LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {self._status} {cannot}: a call is "
                "answered once. Use the result that you have; `call.again()` makes a new call of "
                "the same metadata and input, in status 'new'."
            )
        raise refused(self._status, status, call_id=self.id, tool=self.name)

    # What is not so of most calls.

    @property
    def _is_rewritten(self) -> bool:
        return self._marks is not None and self._marks.is_rewritten

    @_is_rewritten.setter
    def _is_rewritten(self, value: bool) -> None:
        self._marks = (self._marks or _NO_MARKS)._replace(is_rewritten=value)

    @property
    def _key_begins(self) -> str:
        return "" if self._marks is None else self._marks.key_begins

    @_key_begins.setter
    def _key_begins(self, text: str) -> None:
        self._marks = (self._marks or _NO_MARKS)._replace(key_begins=text)

    # What the program reads and changes.

    @property
    def input(self) -> Any:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        From its suspension on this is a copy: nothing that is done to it reaches what was approved.
        """
        if self._approval is None and self._status is not _SUSPENDED:
            return self._input
        return deepcopy(self._input)

    @input.setter
    def input(self, value: Any) -> None:
        approval = self._approval
        is_bound = approval is not None and not approval.is_open
        if is_bound or self._status is _SUSPENDED:
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        self._input = self.spec.check_input(self.name, value)
        self._is_rewritten = True

    @property
    def parts(self) -> tuple[ToolMetadata, Any]:
        """The metadata and the input."""
        return (self.metadata, self._input)

    @property
    def digest(self) -> str:
        """A digest of the tool, its schema and the final arguments."""
        return digest_of([self.name, self.selector.definition.digest, self._final_arguments()])

    @property
    def idempotency_key(self) -> str:
        """A key for services that ask for one: the same everywhere, until the input changes.

        It is made of the call's id and digest. Some providers send no ids that differ from turn to
        turn, so where the conversation has an id, as in `Session(id=...)`, the key begins with that
        and the turn's place: `<id>/<place>/<digest>`.
        """
        return self._key_begins + self._own_key

    @property
    def _own_key(self) -> str:
        """The key without what it begins with."""
        return digest_of([self.id, self.digest]).removeprefix("sha256:")

    @property
    def approval(self) -> Decision | None:
        """The decision by which a suspended call goes on, if that is how it came here."""
        return None if self._approval is None else self._approval.decision

    @property
    def resume(self) -> Decision | None:
        """The decision that the tool itself is to read, where the ticket asked for that."""
        approval = self._for_tool()
        return None if approval is None else approval.decision

    @property
    def ticket(self) -> SuspendTicket | None:
        """The ticket that the decision in `resume` answers."""
        approval = self._for_tool()
        return None if approval is None else approval.ticket

    def _for_tool(self) -> Approval | None:
        latest = self._approval
        if latest is None:
            return None
        for approval in (latest.of(tool=True), latest.of(tool=False)):
            if approval is not None and approval.is_for_tool:
                return approval
        return None

    @property
    def suspension_id(self) -> str | None:
        """The id of the suspension that the call comes from: the tool's own, if it asked."""
        told = self._told()
        return None if told is None else told.ticket.id

    @property
    def suspension_reason(self) -> str | None:
        """Why the call was suspended: the action that its ticket asked for."""
        told = self._told()
        return None if told is None else told.ticket.action

    def _told(self) -> Approval | None:
        """Give the answer that the tool is told of: that to its own question, or else the only."""
        approval = self._approval
        return None if approval is None else approval.of(tool=True) or approval

    def _approvals(self) -> Iterator[Approval]:
        """Give the answers by which the call goes on, the latest first."""
        approval = self._approval
        while approval is not None:
            yield approval
            approval = approval.other

    @property
    def gate_approval(self) -> Approval | None:
        """The answer to whoever asked before the call was run, such as a gate."""
        return None if self._approval is None else self._approval.of(tool=False)

    def _final_arguments(self) -> Any:
        try:
            return self.spec.arguments.to_data(self._input)
        except ValueError as error:  # pydantic has a kind of its own, but not for what is too deep
            reason = cut(" ".join(str(error).split()), 200)
            raise ToolInputError(
                f"The input of call {self.id!r} of tool `{self.name}` has no JSON form ({reason}). "
                "Assign an input that has, as in `call.input = ...`.",
                tool=self.name,
            ) from error

    def again(self) -> Self:
        """Return a new call of the same metadata and input, for another try.

        Raises:
            LifecycleError: The call waits for a decision, which a new one would go around.
        """
        if self._status is _SUSPENDED:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` waits for a decision, so it cannot be "
                "made anew. Take the decision in with `plan.resume(decision)`, or `plan.abort`."
            )
        return self._again()

    def _again(self) -> Self:
        cls = type(self)
        made = cls(self.metadata, self._input, selector=self.selector, mended=self.mended)
        made._approval = self._approval
        made._marks = self._marks
        return made

    def with_input(self, input: Any) -> Self:
        """Return the same call with another input, which is validated.

        Raises:
            ToolInputError: The input does not fit the tool.
            LifecycleError: The call was approved with the input that it has.
        """
        made = self.__copy__()
        made.input = input
        return made

    def go_on(self, approval: Approval) -> None:
        """Let a suspended call go on by a decision; its input stays frozen."""
        self.move_to(CallStatus.RESUMING)
        kept = self._approval
        self._approval = approval if kept is None else approval._replace(other=kept)

    def __repr__(self) -> str:
        # Models mask what is secret by themselves; a dict is masked by the schema of its tool.
        shown: Any = self._input
        if isinstance(shown, dict):
            shown = mask_secrets(shown, self.spec.definition.input_schema)
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r}, input={shown!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self._status, self.mended, self._approval, self._marks)
        return (_rebuild, (self.selector, self.metadata, self._input, state))

    def __copy__(self) -> Self:
        # What decides about a call changes a copy, so that the round stays as it is.
        made = self._again()
        made._status = self._status
        return made


def _rebuild(
    selector: Any, metadata: ToolMetadata, input: Any, state: tuple[Any, ...]
) -> CallState:
    made: CallState = selector.Call(metadata, input, selector=selector, mended=state[1])
    made._status = state[0]
    made._approval = state[2]
    made._marks = state[3]
    return made
