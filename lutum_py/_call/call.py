"""One decoded tool call: typed input in, one result out.

What it holds stands in `call_state`; here is what can be done with it: answer it,
run it, or let hooks decide about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from .._schema.output import Output
from .._text.escaping import words_of
from .._text.json import compact_json, shorten
from .._text.unicode import sendable
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, make_result, unknown_outcome
from ..errors import LifecycleError, MisuseError, ToolOutputError
from .call_state import CallState
from .lifecycle import CallStatus, refused
from .outcomes import HandledCall, RejectedCall, SuspendedCall, ask_function
from .reply import REPLY, Reply, reply_in
from .steps import Steps, drive, drive_sync

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket
    from .._schema.invocation import Invocation
    from .._transcript.attachment import Attachment
    from .selector import AnySelector

__all__ = ["AnyToolCall", "FnCall", "HookOutcome", "Hooks", "ToolCall", "ToolHooks"]

P = ParamSpec("P")
X = TypeVar("X")
In = TypeVar("In")
Out = TypeVar("Out")
T_co = TypeVar("T_co", covariant=True)

_NEW = CallStatus.NEW
_RUNNING = CallStatus.RUNNING
_RESUMING = CallStatus.RESUMING
_SUSPENDED = CallStatus.SUSPENDED
_SUCCEEDED = CallStatus.SUCCEEDED
_FAILED = CallStatus.FAILED
_ANYTHING = Output(None)


class AnyToolCall(CallState):
    """Decoded call of any tool: the base under which calls of several tools are kept.

    Attributes:
        metadata: The call exactly as the model sent it.
        selector: The member of the toolset that the call came in through.
        mended: Paths of arguments that came in a form that had to be mended, such as an array
            sent as a string.
    """

    __slots__ = ()

    selector: AnySelector

    if TYPE_CHECKING:
        # No `Any`, which would hide a wrong name after `case` from some checkers.

        @property
        def input(self) -> object: ...
        @input.setter
        def input(self, value: Any) -> None: ...

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
            ToolOutputError: The output does not fit, or the call's metadata is of another tool.
            LifecycleError: The call has already ended otherwise, or waits for a decision.
        """
        reply = reply_in(output)
        if reply is not None:
            if reply.status != "success":
                raise MisuseError(
                    f"Call {self.id!r} of tool `{self.name}` is completed with a reply of status "
                    f"`{reply.status}`. Complete it with a success, or use `call.fail(message)`."
                )
            output, message = reply.output, message or reply.model_message
            attachments = attachments or reply.attachments
        metadata = self.metadata
        if metadata.name != self.selector.name:
            raise self._of_another_tool()
        if message is not None:
            _check_text(self, "message", message)
        attached = _checked(self, attachments) if attachments else ()
        text = self.spec.output.encode(metadata.name, output)
        if '"mime_type":' in text:
            attached, message = _shown(output, text, attached, message)
        self.end(_SUCCEEDED)
        return make_result(metadata, text, "success", message, attached)

    def _of_another_tool(self) -> ToolOutputError:
        return ToolOutputError(
            f"Call {self.id!r} was made for tool `{self.metadata.name}`, but is answered as a call "
            f"of `{self.selector.name}`. Use the metadata of the call that you answer.",
            tool=self.selector.name,
        )

    def finish(self, output: Any) -> ToolResult:
        """Answer the call with what its function gave: the output, or a `Reply` of any status."""
        if isinstance(output, REPLY):
            return self._finish_reply(output)
        # Every run comes here: what `complete` does, where nothing is said beside the output.
        metadata = self.metadata
        if metadata.name != self.selector.name:
            raise self._of_another_tool()
        text = self.spec.output.encode(metadata.name, output)
        attached: tuple[Attachment, ...] = ()
        message: str | None = None
        if '"mime_type":' in text:
            attached, message = _shown(output, text, attached, message)
        if self._status is not _RUNNING:
            self.end(_SUCCEEDED)
        self._status = _SUCCEEDED
        return make_result(metadata, text, "success", message, attached)

    def _finish_reply(self, reply: Reply[Any]) -> ToolResult:
        if reply.status == "success":
            return self.complete(reply)
        attached = _checked(self, reply.attachments) if reply.attachments else ()
        text = _ANYTHING.encode(self.name, reply.output)
        message = reply.model_message
        if '"mime_type":' in text:
            attached, message = _shown(reply.output, text, attached, message)
        self.end(CallStatus.CANCELLED if reply.status == "cancelled" else _FAILED)
        return make_result(self.metadata, text, reply.status, message, attached, reply.code)

    def fail(self, message: str, *, code: str | None = None) -> ToolResult:
        """Answer the call with an error that the model reads.

        Args:
            message: What went wrong, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.
        """
        message = sendable(words_of(message))
        if code is not None:
            _check_text(self, "code", code)
            code = sendable(code)
        self.end(_FAILED)
        if code is None:
            return make_result(self.metadata, "null", "error", message)
        data = compact_json({"error": {"code": code, "message": message}})
        return make_result(self.metadata, data, "error", f"[{code}] {message}", code=code)

    def reject(self, reason: str) -> RejectedCall:
        """Refuse the call; the model is told the reason.

        Raises:
            MisuseError: The reason is no text.
        """
        _check_text(self, "reason", reason)
        self.end(CallStatus.CANCELLED)
        return RejectedCall(self.metadata, self, reason)

    def indeterminate(self, reason: str, *, code: str | None = None) -> ToolResult:
        """Answer a call that was begun, and of which nobody knows what it did.

        Args:
            reason: What happened to the run, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.

        Raises:
            LifecycleError: The call was not begun, so that it surely did nothing, or has ended.
        """
        _check_text(self, "reason", reason)
        if code is not None:
            _check_text(self, "code", code)
        asked = None if self._approval is None else self._approval.of(tool=True)
        if self._status is _NEW or (self._status is _RESUMING and asked is None):
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was not begun, so it did nothing, and "
                f"that is known: it is {self._status}. Answer it with `call.fail(message)` or "
                "`call.reject(reason)`."
            )
        self.end(_FAILED)
        return unknown_outcome(self.metadata, reason, code)

    def handled(self, output: Any) -> HandledCall[Any, Any]:
        """Answer the call without running it, as a hook does."""
        return self.handled_by(None, output)

    def handled_by(self, by: str | None, output: Any) -> HandledCall[Any, Any]:
        """Answer the call without running it, and say who does."""
        result = self.complete(output)
        reply = reply_in(output)
        if reply is not None:
            output = reply.output
        made: HandledCall[Any, Any] = self.spec.handled_type(
            self.metadata, self._input, output, result, by
        )
        return made

    def suspend(self, ticket: SuspendTicket) -> SuspendedCall:
        """Let the call wait for a decision; its input is frozen from now on.

        Raises:
            MisuseError: The ticket is none.
            LifecycleError: The call waits already, or has ended.
        """
        return self.suspend_by(None, ticket)

    def suspend_by(self, by: str | None, ticket: SuspendTicket) -> SuspendedCall:
        """Let the call wait for a decision, and say who asks."""
        if not hasattr(ticket, "resume_mode"):
            raise MisuseError(
                f"Call {self.id!r} of tool `{self.name}` waits under a SuspendTicket, not "
                f"{shorten(ticket)}. Write `call.suspend(SuspendTicket(message=...))`."
            )
        digest, was_started = self.digest, self._status is _RUNNING
        if self._status is _SUSPENDED or _SUSPENDED not in self._status.leads_to:
            raise refused(self._status, _SUSPENDED, call_id=self.id, tool=self.name)
        self._status = _SUSPENDED
        self._input = deepcopy(self._input)  # whoever saw it before may still hold the other one
        if self._approval is not None:  # what answered this asker before is spent
            self._approval = self._approval.of(tool=not was_started)
            if self._approval is not None:
                self._approval = self._approval._replace(other=None)
        return SuspendedCall(self, ticket, digest, was_started, by)

    # Ways to run.

    async def call(self, /, **skipped: Any) -> ToolResult:
        """Run the decorated function and answer the call with what it returns.

        An async function runs here, a sync one in a worker thread. An exception of the function
        comes out unchanged, and the call stays `running`: what follows is for you to decide. So it
        does where the tool's `timeout` passes: an async function is cancelled, the thread of a
        sync one is left behind and its result dropped. `call.indeterminate(reason)` answers that.

        Args:
            skipped: The parameters that are hidden from the model, by name.

        Raises:
            MisuseError: A hidden parameter is missing or unknown, or the tool has no function.
            ToolOutputError: The function returned something else than it declares.
            TimedOut: The tool's deadline passed; its `is_in_doubt` is true.
            LifecycleError: The call was begun or has ended already, or waits for a decision.
        """
        # Not by way of `invoke`: one coroutine less for what every loop does most.
        invocation = self.begin(skipped)
        # What was approved stays what it is, whatever the function does to its arguments.
        input = self._input if self._approval is None else self.input
        seconds = self.selector.timeout
        if seconds is not None:
            from .deadline import in_time  # with asyncio, which few need as early as this

            return self.finish(await in_time(self, invocation, input, skipped, seconds))
        if not invocation.is_async:
            return self.finish(await invocation.run(self, input, skipped))
        if invocation.is_as_is and not skipped:
            return self.finish(await invocation.function(**input.__dict__))
        return self.finish(await invocation.start(self, input, skipped))

    def call_sync(self, /, **skipped: Any) -> ToolResult:
        """Run a sync function right here and answer the call with what it returns.

        Nothing can cut it off here, so that the tool's `timeout` does not hold; it does in
        `call` and in `execution`.

        Raises:
            MisuseError: The function is async; or as for `call`.
        """
        invocation = self.spec.invocation
        if invocation is not None and invocation.is_async:
            invocation.refuse_sync(self)
        begun = self.begin(skipped)
        input = self._input if self._approval is None else self.input
        return self.finish(begun.run_sync(self, input, skipped))

    async def invoke(self, /, **skipped: Any) -> Any:
        """Run the decorated function and give its raw output; answer with `complete` yourself.

        Raises:
            TimedOut: The tool's deadline passed, as in `call`.
        """
        invocation = self.begin(skipped)
        seconds = self.selector.timeout
        if seconds is not None:
            from .deadline import in_time

            return await in_time(self, invocation, self.input, skipped, seconds)
        return await invocation.run(self, self.input, skipped)

    def invoke_sync(self, /, **skipped: Any) -> Any:
        """Run a sync function right here, without a deadline, and give its raw output."""
        invocation = self.spec.invocation
        if invocation is not None and invocation.is_async:
            invocation.refuse_sync(self)
        return self.begin(skipped).run_sync(self, self.input, skipped)

    def begin(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> Invocation:
        """Mark the call as running, and give what runs its function.

        Args:
            skipped: What will be passed for the hidden parameters, where that is to be checked.
            invocation: What runs the call, where that is not the tool's own function.

        Raises:
            MisuseError: The tool has no function, or a hidden parameter is missing or unknown.
            LifecycleError: The call has ended, waits for a decision, or is not what was approved.
        """
        invocation = invocation or self.spec.invocation
        if invocation is None:
            raise MisuseError(
                f"Tool `{self.name}` (call {self.id!r}) is an input model without a function. "
                "Do the work yourself and answer with `call.complete(output)`."
            )
        if self._approval is not None and self._approval.digest != self.digest:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` no longer is what was approved: its input "
                "was changed in place. Reject it, and let the model make another one."
            )
        if skipped is not None and (skipped or invocation.required):
            invocation.check(self, skipped)
        if self._status is not _NEW and self._status is not _RESUMING:
            raise self._refuse_begin()
        self._status = _RUNNING
        return invocation

    def _refuse_begin(self) -> LifecycleError:
        status = self._status
        if status is _RUNNING:
            return LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was begun already, and a call is begun "
                "once: it is running, or its tool raised, or nobody knows what became of it. "
                "Answer it, as with `call.fail(message)` or `call.indeterminate(reason)`; "
                "`call.again()` makes a new call of the same metadata and input, for another try."
            )
        return refused(status, _RUNNING, call_id=self.id, tool=self.name)

    async def hook(self, hooks: Hooks, /) -> HookOutcome:
        """Send this one call through hooks.

        Returns:
            The call itself where it is still to be run, or a `HandledCall`, `RejectedCall` or
            `SuspendedCall`.

        Raises:
            HookError: A hook raised, or gave something that is no decision.
        """
        return await drive(_steps(self, hooks))

    def hook_sync(self, hooks: Hooks, /) -> HookOutcome:
        """Do the same where every hook is sync."""
        return drive_sync(_steps(self, hooks))


def _steps(call: AnyToolCall, hooks: Any) -> Steps[HookOutcome]:
    """Let a hook set decide by its own steps, and ask anything else as a function."""
    steps: Any = None if isinstance(hooks, type) else getattr(hooks, "_decision_steps", None)
    decided: Steps[HookOutcome] = ask_function(call, hooks, []) if steps is None else steps(call)
    return decided


def _check_text(call: AnyToolCall, what: str, value: object) -> None:
    if not isinstance(value, str):
        raise MisuseError(
            f"The {what} for call {call.id!r} of tool `{call.name}` is {shorten(value)}. Give a "
            "text: the model reads it."
        )


def _checked(call: AnyToolCall, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    from .._transcript.attachment import attachments_of

    return attachments_of(f"Call {call.id!r} of tool `{call.name}`", attachments)


def _shown(
    output: Any, text: str, attached: tuple[Attachment, ...], message: str | None
) -> tuple[tuple[Attachment, ...], str | None]:
    """Let the model see the files that are in an output, in the place of their data."""
    from .attached import attachments_in, shown

    found = tuple(dict.fromkeys(attachments_in(output)))
    if found and message is None:
        message = shown(text, found)
    return tuple(dict.fromkeys((*attached, *found))), message


class ToolCall(AnyToolCall, Generic[In, Out]):
    """Decoded call of one tool, with its input and output types."""

    __slots__ = ()
    __match_args__ = ("input",)

    if TYPE_CHECKING:
        # Narrower than what any call has, and assigned with: mypy minds that.
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

        Give it what the model sent, a `ToolContext` where the tool takes one, and what you pass
        for the hidden parameters. The call is begun, as by `invoke`; answer it with `complete`.

        Args:
            function: The function; an async one gives an awaitable, as ever.
            skipped: The parameters that are hidden from the model, by name.

        Raises:
            MisuseError: A hidden parameter is missing or unknown, or it is no function.
            LifecycleError: The call has ended, waits for a decision, or is not what was approved.

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
        invocation = self.begin(skipped)
        positional, keywords = invocation.bind(self, self.input, skipped)
        applied: X = given(*positional, **keywords)
        return applied


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
