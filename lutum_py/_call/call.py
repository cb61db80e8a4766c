"""One decoded tool call: typed input in, one result out.

What is known of it is in its record, see `call_state`. Here is what can be done with it: answer it,
run it, or let hooks decide about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

from .._text.immutable import dataclass, settle
from .._text.json import shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult
from ..errors import LifecycleError, MisuseError
from .base_call import rejected_result
from .call_state import DecodedCall, call_of
from .deciding import review_by
from .drivers import HookGenerator, drive, drive_sync
from .history import ON_RECORD, CallStatus, CallStep, RejectionSource, move
from .outcomes import HandledCall, PendingDecision, PendingOutcome
from .reply import reply_in

if TYPE_CHECKING:
    from typing import Self

    from .._context.suspension import Decision, SuspendTicket
    from .._schema.capabilities import ResourceAccess
    from .._schema.invocation import Invocation
    from .._transcript.assistant import AssistantTurn
    from .._transcript.message import Attachment
    from .reply import Reply
    from .selector import Selector
    from .spec import AnySpec

P = ParamSpec("P")
X = TypeVar("X")
In = TypeVar("In")
Out = TypeVar("Out")
T_co = TypeVar("T_co", covariant=True)


class AnyToolCall:
    """Decoded call of any tool: the base under which calls of several tools are kept.

    Attributes:
        metadata: The call exactly as the model sent it.
        selector: The member of the toolset that the call came in through.
        coerced: Paths of arguments that came in a form that had to be coerced, such as an array
            sent as a string.
    """

    # All that is known of a call is in its record. So what users see has the names that are meant
    # for them, and those of the core need no underscore.
    __slots__ = ("__weakref__", "_record")

    spec: ClassVar[AnySpec]
    metadata: ToolMetadata
    selector: Selector[Any, Any]
    coerced: tuple[str, ...]
    _record: DecodedCall

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        coerced: tuple[str, ...] = (),
    ) -> None:
        self._record = DecodedCall(self.spec, metadata, input, selector, coerced)
        self._record.shown_by(self)

    # A call is one object per round. Two of them could both start.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (call_of, (self._record,))

    def __repr__(self) -> str:
        shown = self.spec.shown_json(self._record.described)
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r}, input={shown})"

    # What it is, and how far it has come.

    @property
    def id(self) -> str:
        """The provider's id of the call."""
        return self._record.metadata.id

    @property
    def name(self) -> str:
        """The wire name of the tool."""
        return self._record.metadata.name

    if not TYPE_CHECKING:  # `settle` lets them refuse assignments
        metadata = property(attrgetter("_record.metadata"))
        selector = property(attrgetter("_record.selector"))
        coerced = property(attrgetter("_record.coerced"))

    @property
    def status(self) -> CallStatus:
        """How far the call has come; it changes only as the lifecycle table allows."""
        return self._record.status

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """What happened to the call, in order: each thing once.

        Example:
            >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
            >>> @tool_fn
            ... def add(a: int, b: int = 1) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     plus = tool(add)
            >>> call = Sums.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a":2}'))
            >>> _ = call.call_sync()
            >>> [step.kind for step in call.steps], call.steps[0].arguments
            (['proposed', 'started', 'ended'], {'a': 2, 'b': 1})
        """
        record = self._record
        return tuple(record.shown_step(step) for step in record.history)

    # No `Any`, which would hide a wrong name after `case` from some checkers.
    @property
    def input(self) -> object:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        What is done to it in place is noticed when hooks review the call, or when it starts, waits
        or is saved, and validated then.
        """
        return self._record.lent_input()

    @input.setter
    def input(self, value: Any) -> None:
        self._record.assign(value)

    @property
    def parts(self) -> tuple[ToolMetadata, Any]:
        """The metadata and the input."""
        return (self.metadata, self.input)

    @property
    def final_arguments(self) -> Any:
        """The arguments as they would run, as plain data, with secrets as they are.

        It is for gates, and never to be shown: what is shown is masked, as in `plan.calls`.
        """
        return self._record.text_or_raise().data

    @property
    def digest(self) -> str:
        """A digest of the tool, its schema and the final arguments.

        One that is within another call is told by its id as well: what is decided about
        `c1/2` says nothing of `c1/3` with the same arguments.
        """
        return self._record.digest

    @property
    def idempotency_key(self) -> str:
        """A key for services that ask for one: the same everywhere, until the input is replaced.

        What is done to the input in place after the key was read does not change it.

        It is made of the call's id and digest. Some providers send no ids that differ from turn to
        turn, so if the conversation has an id, as in `Session(id=...)`, the key begins with that
        and the turn's place: `<id>/<place>/<digest>`.
        """
        record = self._record
        return record.round.stored_in + record.round.key_prefix + record.own_key

    # What was asked and decided.

    @property
    def approval(self) -> Decision | None:
        """The decision by which a suspended call goes on, if that is how it came here."""
        answers = self._record.answers
        return answers[0].decision if answers else None

    @property
    def resume(self) -> Decision | None:
        """The decision by which the call goes on, as the tool is told about it.

        That is the decision about a ticket whose mode passes it to the tool, else about the tool's
        own ticket. A decision about any other ticket of a gate is not for the tool, and is in
        `approval`.
        """
        answer = self._record.answer_for_tool
        return None if answer is None else answer.decision

    @property
    def ticket(self) -> SuspendTicket | None:
        """The ticket that the decision in `resume` is about."""
        answer = self._record.answer_for_tool
        return None if answer is None else answer.ticket

    @property
    def suspension_id(self) -> str | None:
        """The id of the suspension that the call comes from: the tool's own, if it has one."""
        answer = self._record.answer_to_last
        return None if answer is None else answer.ticket.id

    @property
    def suspension_reason(self) -> str | None:
        """Why the call was suspended: the action of its ticket."""
        answer = self._record.answer_to_last
        return None if answer is None else answer.ticket.action

    def retry(self) -> Self:
        """Let a call that was run be tried again, and return it.

        The history goes on: the call is new again, and has the input that hooks gave it until they
        review it once more, from the input as it was before. An approval covers another try after
        a definite failure. If nobody knows what the last try did, and the tool is not declared
        `idempotent=True`, a new approval is needed.

        Returns:
            The call itself, also if it can start anyway: then nothing is written.

        Raises:
            LifecycleError: The round is over; or the call was given up, waits, awaits other calls
                or comes back from them; or a hook or a person answered it.
        """
        self._record.retry()
        return self

    @property
    def accesses(self) -> tuple[ResourceAccess, ...]:
        """What the call accesses, by the effects of its tool and its arguments as they are now.

        A tool that declares no effect accesses everything.

        Example:
            >>> from lutum_py import ToolMetadata, Toolset, tool, tool_fn
            >>> from lutum_py.capabilities import ToolCapabilities, ToolEffect
            >>> writes = ToolCapabilities(effects=[ToolEffect("write_file", target="path")])
            >>> @tool_fn(capabilities=writes)
            ... def write(path: str, text: str) -> str:
            ...     return "written"
            >>> class Files(Toolset):
            ...     write = tool(write)
            >>> arguments = '{"path": "src/../docs/A.md", "text": "Hi"}'
            >>> metadata = ToolMetadata(id="c1", name="write", arguments=arguments)
            >>> Files.parse_tool_call(metadata).accesses
            (ResourceAccess(area='files', target='docs/a.md', mutating=True),)
        """
        return self._record.accesses

    @property
    def shown_arguments(self) -> Any:
        """The final arguments as plain data, secrets masked; None if they have no JSON form."""
        return self._record.shown

    @property
    def may_start(self) -> bool:
        """Whether the call may be started, as far as its steps say: it is new, or goes on."""
        return self._record.stage.may_start

    @property
    def requested_by(self) -> str | None:
        """The id of the call that requested this one; None for a call of the turn."""
        return self._record.requested_by

    @property
    def was_started(self) -> bool:
        """Whether its tool was started: in this try, an earlier one, or before it suspended."""
        return self._record.history.was_started

    @property
    def trace(self) -> str | None:
        """Where its span belongs, as a W3C `traceparent`; None for nowhere in particular.

        A call that goes on belongs under its own first span, and a call that another requested
        under the span of that one: see `AwaitingCall.set_trace`.
        """
        traces = self._record.round.traces
        return traces.get(self.id) or traces.get(self.requested_by or "")

    # Ways to answer.

    def complete(
        self,
        output: Any,
        *,
        message: str | None = None,
        attachments: Iterable[Attachment] = (),
    ) -> ToolResult:
        """Answer the call with the tool's output.

        An `Attachment` that it is, or has in it, goes with the result as a file, and the model
        reads words in its place.

        Args:
            output: What the tool gives, or a `Reply` of it; checked against the declared type.
            message: What the model reads instead of the output.
            attachments: Files that go with it.

        Raises:
            ToolOutputError: The output does not fit, or the call's metadata belongs to another
                tool.
            MisuseError: The message is not text, or it is a `Reply` of another status.
            LifecycleError: The call has ended already, or waits for a decision.
        """
        record = self._record
        return record.end_with(record.result_of(output, message, attachments))

    def finish(self, output: Any) -> ToolResult:
        """Answer the call with what its function gave: the output, or a `Reply` of any status.

        Raises:
            ToolOutputError: As in `complete`.
            LifecycleError: As in `complete`.
        """
        return self._record.finish(output)

    def fail(self, message: str, *, code: str | None = None) -> ToolResult:
        """Answer the call with an error that the model reads.

        Args:
            message: What went wrong, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.

        Raises:
            MisuseError: The code is not text.
            LifecycleError: The call has ended already, or waits for a decision.
        """
        return self._record.fail(message, code)

    def reject(self, reason: str) -> RejectedCall:
        """Refuse the call; the model is told the reason.

        Raises:
            MisuseError: The reason is not text.
            LifecycleError: The call has ended already.
        """
        record = self._record
        record.check_text("reason", reason)
        ended = move("ended", verdict="rejected", reason=reason)
        record.append_all((*record.changes_unstarted(), ended))
        return RejectedCall(record.metadata, self, reason)

    def indeterminate(self, reason: str, *, code: str | None = None) -> ToolResult:
        """Answer a call that was started, and of which nobody knows what it did.

        Args:
            reason: What happened to the run, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.

        Raises:
            MisuseError: The reason or the code is not text.
            LifecycleError: The call was not started, so that it surely did nothing, or has ended.
        """
        record = self._record
        is_open = record.status in (CallStatus.NEW, CallStatus.RESUMING)
        if is_open and not record.history.was_started and record.round.closed_by != ON_RECORD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was not started, so it did nothing, and "
                f"that is known: it is {self.status}. Answer it with `call.fail(message)` or "
                "`call.reject(reason)`."
            )
        return self._record.give_up(reason, code)

    def handled(self, output: Any) -> HandledCall[Any, Any]:
        """Answer the call without running it, as a hook does.

        Raises:
            ToolOutputError: As in `complete`.
            MisuseError: As in `complete`.
            LifecycleError: As in `complete`.
        """
        result = self.complete(output)
        reply = reply_in(output)
        return self._record.handled(output if reply is None else reply.output, result, None)

    def suspend(self, ticket: SuspendTicket) -> SuspendedCall:
        """Let the call wait for a decision; its input is frozen from now on.

        Raises:
            MisuseError: The ticket is not a `SuspendTicket`.
            LifecycleError: The call waits already, or has ended.
            ToolInputError: Its input was changed in place, and does not fit any more.
        """
        return self._record.suspend(ticket)

    # Ways to run.

    async def call(self, /, **skipped: Any) -> ToolResult:
        """Run the decorated function and answer the call with what it returns.

        An async function runs here, a sync one in a worker thread. An exception of the function
        comes out unchanged, and the call stays `running`: what follows is for you to decide. It
        also does when the tool's `timeout` passes: an async function is cancelled, the thread of a
        sync one is left behind and its result dropped. `call.indeterminate(reason)` answers that.

        Args:
            skipped: The parameters that are hidden from the model, by name.

        Raises:
            MisuseError: A hidden parameter is missing or unknown, or the tool has no function.
            ToolOutputError: The function returned something else than it declares.
            TimedOut: The tool's deadline passed; its `is_in_doubt` is true.
            LifecycleError: The call was started or has ended already, or waits for a decision.
            ToolInputError: Its input was changed in place, and does not fit any more.
        """
        # Not by way of `invoke`: one coroutine less for what every loop does most.
        record = self._record
        invocation, number = record.start(skipped)
        if record.selector.timeout is not None or not invocation.is_async:
            return record.finish(await record.run(invocation, skipped), number)
        input = record.input_for_tool()
        if invocation.is_as_is and not skipped:
            return record.finish(await invocation.function(**input.__dict__), number)
        return record.finish(await invocation.start(self, input, skipped), number)

    def call_sync(self, /, **skipped: Any) -> ToolResult:
        """Run a sync function right here and answer the call with what it returns.

        Nothing can cut it off here, so that the tool's `timeout` does not hold; it does in
        `call` and in `execution`.

        Raises:
            MisuseError: The function is async; or as for `call`.
        """
        self._refuse_async()
        record = self._record
        invocation, number = record.start(skipped)
        output = invocation.run_sync(self, record.input_for_tool(), skipped)
        return record.finish(output, number)

    async def invoke(self, /, **skipped: Any) -> Any:
        """Run the decorated function and give its raw output; answer with `complete` yourself.

        What a function gives as a `Reply` is that reply.

        Raises:
            TimedOut: The tool's deadline passed, as in `call`.
        """
        invocation = self.start(skipped)
        return await self._record.run(invocation, skipped)

    def invoke_sync(self, /, **skipped: Any) -> Any:
        """Run a sync function right here, without a deadline, and give its raw output."""
        self._refuse_async()
        return self.start(skipped).run_sync(self, self._record.input_for_tool(), skipped)

    def _refuse_async(self) -> None:
        invocation = self.spec.invocation
        if invocation is not None and invocation.is_async:
            invocation.refuse_sync(self)

    def start(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> Invocation:
        """Mark the call as running, and give what runs its function.

        Args:
            skipped: What will be passed for the hidden parameters, if that is to be checked.
            invocation: What runs the call, if that is not the tool's own function.

        Raises:
            MisuseError: The tool has no function, or a hidden parameter is missing or unknown.
            LifecycleError: The call was started or has ended, waits for a decision, or its round
                is over.
            ToolInputError: Its input was changed in place, and does not fit any more.
        """
        return self._record.start(skipped, invocation)[0]

    async def hook(self, hooks: Hooks, /) -> HookOutcome:
        """Send this one call through hooks.

        Returns:
            The call itself if it is still to be run, or a `HandledCall`, `RejectedCall` or
            `SuspendedCall`.

        Raises:
            HookError: A hook raised, or gave something that is not a decision.
            LifecycleError: The call runs, waits, or has ended.
        """
        return await drive(_hook_generator(self._record, hooks))

    def hook_sync(self, hooks: Hooks, /) -> HookOutcome:
        """Do as `hook` does, if every hook is sync.

        Raises:
            MisuseError: A hook is async; the text names it.
        """
        return drive_sync(_hook_generator(self._record, hooks))

    @property
    def result(self) -> ToolResult | None:
        """What the call ended with, before after-hooks saw it; None if it has not ended."""
        end = self._record.history.end
        if end is None or isinstance(end.detail, ToolResult):
            return None if end is None else end.detail
        answered: Any = self._record.outcome()
        result: ToolResult = answered.result
        return result

    def conflicts_with(self, other: AnyToolCall) -> bool:
        """Whether both calls access the same thing, and one of them changes it."""
        theirs = other.accesses
        return any(one.conflicts_with(each) for one in self.accesses for each in theirs)


def _hook_generator(call: DecodedCall, hooks: Any) -> HookGenerator[HookOutcome]:
    """Let hooks review one call by itself."""
    if not call.stage.may_ask:
        raise call.refused("reviewed")
    review = None if isinstance(hooks, type) else getattr(hooks, "_review", None)
    yield from review_by(call, hooks) if review is None else review(call)
    return call.call if call.stage.may_start else call.outcome()


settle(
    AnyToolCall,
    "a call is what the model sent. Change its input by `call.input = ...`.",
    *("metadata", "selector", "coerced"),
)


class ToolCall(AnyToolCall, Generic[In, Out]):
    """Decoded call of one tool, with its input and output types."""

    __slots__ = ()
    __match_args__ = ("input",)

    if TYPE_CHECKING:
        # Narrower than the property of `AnyToolCall`, and it has a setter: mypy minds that.
        @property  # type: ignore[override]
        def input(self) -> In: ...
        @input.setter
        def input(self, value: In) -> None: ...
        @property
        def parts(self) -> tuple[ToolMetadata, In]: ...
        def complete(
            self,
            output: Out | Reply[Out],
            *,
            message: str | None = None,
            attachments: Iterable[Attachment] = (),
        ) -> ToolResult: ...
        def handled(self, output: Out | Reply[Out]) -> HandledCall[In, Out]: ...
        async def invoke(self, /, **skipped: Any) -> Out: ...
        def invoke_sync(self, /, **skipped: Any) -> Out: ...


class FnCall(ToolCall[Any, Out], Generic[P, Out]):
    """Decoded call of a function tool, with the function's parameters and its output type."""

    __slots__ = ()

    def apply(self, function: Callable[P, X], /, **skipped: Any) -> X:
        """Call another function of the tool's parameters as the tool's own would be called.

        It is given what the model sent, a `ToolContext` if the tool takes one, and what you pass
        for the hidden parameters. The call is started, as by `invoke`; answer it with `complete`.

        Args:
            function: The function; an async one gives an awaitable, as elsewhere.
            skipped: The parameters that are hidden from the model, by name.

        Raises:
            MisuseError: A hidden parameter is missing or unknown, or `function` is not a function.
            LifecycleError: The call was started or has ended already, or waits for a decision.

        Example:
            >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
            >>> @tool_fn
            ... def add(a: int, b: int = 1) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     plus = tool(add)
            >>> metadata = ToolMetadata(id="c1", name="add", arguments='{"a": 2}')
            >>> call = Sums.plus.match(Sums.parse_tool_call(metadata))
            >>> call.apply(lambda a, b: a * b)
            2
        """
        if not callable(function):
            raise MisuseError(
                f"`apply` takes a function of the parameters of tool `{self.name}`, not "
                f"{shorten(function)}. Pass the function itself."
            )
        given: Any = function
        invocation = self.start(skipped)
        positional, keywords = invocation.bind(self, self._record.input_for_tool(), skipped)
        applied: X = given(*positional, **keywords)
        return applied


# Outcomes that hold the call.


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


HookOutcome: TypeAlias = AnyToolCall | HandledCall[Any, Any] | RejectedCall | SuspendedCall
"""A call that is still to be run, or what became of it."""


class ToolHooks(Protocol[T_co]):
    """What `apply_hooks` accepts beside a plain function: anything that decides about one call.

    A `HookSet` is one; so is any object with these two members.
    """

    @property
    def toolset(self) -> type[T_co]:
        """The toolset whose calls it decides about."""
        ...

    def hook_tool_call(self, call: AnyToolCall, /) -> HookOutcome | Awaitable[HookOutcome]:
        """Return the call itself, perhaps with another input, or what became of it."""
        ...


Hooks: TypeAlias = (
    ToolHooks[Any]
    | Callable[[AnyToolCall], HookOutcome]
    | Callable[[AnyToolCall], Awaitable[HookOutcome]]
)
"""A hook set, an object like one, or a plain function of a call."""
