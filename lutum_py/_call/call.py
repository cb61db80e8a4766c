"""One decoded tool call: typed input in, one result out.

What it holds is in `call_state`; here is what can be done with it: answer it, run it, or let hooks
decide about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from .._schema.output import Output
from .._text.escaping import words_of
from .._text.json import compact_json, sendable, shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult, failure, make_result, unknown_outcome
from ..errors import LifecycleError, MisuseError, TimedOut, ToolInputError, ToolOutputError
from .base_call import BaseCall
from .call_state import CallState
from .deciding import HookGenerator, drive, drive_sync, review_by
from .history import ON_RECORD, REFUSED_BY, CallStatus, Move, end_of, move, was_begun
from .outcomes import (
    REPLY,
    HandledCall,
    RejectedCall,
    Reply,
    SuspendedCall,
    handled_call,
    outcome_of,
    reply_in,
    suspend,
)

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket
    from .._schema.capabilities import ResourceAccess
    from .._schema.invocation import Invocation
    from .._transcript.message import Attachment, Labels
    from .outcomes import ReplyStatus
    from .selector import Selector

P = ParamSpec("P")
X = TypeVar("X")
In = TypeVar("In")
Out = TypeVar("Out")
T_co = TypeVar("T_co", covariant=True)

_NEW = CallStatus.NEW
_RESUMING = CallStatus.RESUMING
_ANYTHING = Output(None)


class AnyToolCall(CallState):
    """Decoded call of any tool: the base under which calls of several tools are kept.

    Attributes:
        metadata: The call exactly as the model sent it.
        selector: The member of the toolset that the call came in through.
        coerced: Paths of arguments that came in a form that had to be coerced, such as an array
            sent as a string.
    """

    __slots__ = ()

    selector: Selector[Any, Any]

    if TYPE_CHECKING:
        # No `Any`, which would hide a wrong name after `case` from some checkers.

        @property
        def input(self) -> object: ...
        @input.setter
        def input(self, value: Any) -> None: ...

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
        from .._schema.capabilities import accesses_of

        effects = self.selector.definition.capabilities.effects
        has_targets = any(effect.target is not None for effect in effects)
        data = self._described.data if has_targets else None
        return accesses_of(effects, self.spec.arguments, data)

    @property
    def shown_arguments(self) -> Any:
        """The final arguments as plain data, secrets masked; None if they have no JSON form."""
        return self._shown

    @property
    def requested_by(self) -> str | None:
        """The id of the call that requested this one; None for a call of the turn."""
        return self._asked_by

    @property
    def was_started(self) -> bool:
        """Whether its tool was started: in this try, an earlier one, or before it suspended."""
        return was_begun(self._history)

    @property
    def trace(self) -> str | None:
        """Where its span belongs, as a W3C `traceparent`; None for nowhere in particular.

        A call that goes on belongs under its own first span, and a call that another requested
        under the span of that one: see `AwaitingCall.set_trace`.
        """
        traces = self._round.traces
        return traces.get(self.id) or traces.get(self._asked_by or "")

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
        return self._ended(self._result_of(output, message, attachments))

    def _result_of(
        self, output: Any, message: str | None = None, attachments: Iterable[Attachment] = ()
    ) -> ToolResult:
        """Return the result that an output makes."""
        code = labels = None
        reply = reply_in(output)
        if reply is not None:
            if reply.status != "success":
                raise MisuseError(
                    f"Call {self.id!r} of tool `{self.name}` is completed with a reply of status "
                    f"`{reply.status}`. Complete it with a success, or use `call.fail(message)`."
                )
            output, message = reply.output, message or reply.model_message
            attachments = attachments or reply.attachments
            code, labels = reply.code, reply.labels
        if message is not None:
            _check_text(self, "message", message)
        return self._encoded(output, "success", message, attachments, code, labels)

    def _encoded(
        self,
        output: Any,
        status: ReplyStatus,
        message: str | None,
        attachments: Iterable[Attachment],
        code: str | None,
        labels: Labels | None,
    ) -> ToolResult:
        """Return the result of an output, and of what is said beside it."""
        metadata = self.metadata
        if metadata.name != self.selector.name:
            raise self._of_another_tool()
        attached = _checked(self, attachments) if attachments else ()
        text = (self.spec.output if status == "success" else _ANYTHING).encode(self.name, output)
        # A test of the text first, since nearly no output holds a file: to look through each output
        # for an `Attachment` would take longer than to encode it.
        if '"mime_type":' in text:
            attached, message = with_files(output, text, attached, message)
        return make_result(metadata, text, status, message, attached, code, labels)

    def _ended(self, result: ToolResult, run: int | None = None) -> ToolResult:
        """Return a result once the history says that the call ended with it.

        Args:
            result: The result.
            run: Of which run it is the outcome; None for the run in progress, or of none.

        Raises:
            LifecycleError: The call has a result, or that run is over: then the result is in the
                history as `late`.
        """
        # As `move` makes it, which costs as much as the step.
        status = result.status
        ended: Move = ("ended", status, None, None, None, status, None, None, result)
        changed: tuple[Move, ...] = ()
        if run is None:  # the program may have run the tool by itself
            changed = self._changes_unstarted()
        self._append_all((*changed, ended), None, run)
        return result

    def _of_another_tool(self) -> ToolOutputError:
        return ToolOutputError(
            f"Call {self.id!r} was made for tool `{self.metadata.name}`, but is answered as a call "
            f"of `{self.selector.name}`. Use the metadata of the call that you answer.",
            tool=self.selector.name,
        )

    def finish(self, output: Any) -> ToolResult:
        """Answer the call with what its function gave: the output, or a `Reply` of any status.

        Raises:
            ToolOutputError: As in `complete`.
            LifecycleError: As in `complete`.
        """
        return self._finish(output)

    def _finish(self, output: Any, run: int | None = None) -> ToolResult:
        if isinstance(output, REPLY):
            reply: Reply[Any] = output
            if reply.status == "success":
                return self._ended(self._result_of(reply), run)
            said = (reply.status, reply.model_message, reply.attachments, reply.code, reply.labels)
            return self._ended(self._encoded(reply.output, *said), run)
        # Every run comes here: what `_encoded` does if nothing is said beside the output.
        metadata = self._metadata
        if metadata.name != self._selector.name:
            raise self._of_another_tool()
        text = self.spec.output.encode(metadata.name, output)
        if '"mime_type":' in text:
            attached, message = with_files(output, text, (), None)
            return self._ended(make_result(metadata, text, "success", message, attached), run)
        return self._ended(make_result(metadata, text, "success"), run)

    def fail(self, message: str, *, code: str | None = None) -> ToolResult:
        """Answer the call with an error that the model reads.

        Args:
            message: What went wrong, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.

        Raises:
            MisuseError: The code is not text.
            LifecycleError: The call has ended already, or waits for a decision.
        """
        return self._fail(message, code)

    def _fail(self, message: str, code: str | None, run: int | None = None) -> ToolResult:
        message = sendable(words_of(message))
        if code is not None:
            _check_text(self, "code", code)
            code = sendable(code)
        return self._ended(failure(self.metadata, "error", message, code), run)

    def reject(self, reason: str) -> RejectedCall:
        """Refuse the call; the model is told the reason.

        Raises:
            MisuseError: The reason is not text.
            LifecycleError: The call has ended already.
        """
        _check_text(self, "reason", reason)
        ended = move("ended", verdict="rejected", reason=reason)
        self._append_all((*self._changes_unstarted(), ended))
        return RejectedCall(self.metadata, self, reason)

    def indeterminate(self, reason: str, *, code: str | None = None) -> ToolResult:
        """Answer a call that was started, and of which nobody knows what it did.

        Args:
            reason: What happened to the run, and what the model might do about it.
            code: A stable code for programs; it is put before the message in brackets.

        Raises:
            MisuseError: The reason or the code is not text.
            LifecycleError: The call was not started, so that it surely did nothing, or has ended.
        """
        is_open = self.status in (_NEW, _RESUMING)
        if is_open and not self.was_started and self._round.closed_by != ON_RECORD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was not started, so it did nothing, and "
                f"that is known: it is {self.status}. Answer it with `call.fail(message)` or "
                "`call.reject(reason)`."
            )
        return self._give_up(reason, code)

    def _give_up(self, reason: str, code: str | None, run: int | None = None) -> ToolResult:
        _check_text(self, "reason", reason)
        if code is not None:
            _check_text(self, "code", code)
        return self._ended(unknown_outcome(self.metadata, reason, code), run)

    def handled(self, output: Any) -> HandledCall[Any, Any]:
        """Answer the call without running it, as a hook does.

        Raises:
            ToolOutputError: As in `complete`.
            MisuseError: As in `complete`.
            LifecycleError: As in `complete`.
        """
        result = self.complete(output)
        reply = reply_in(output)
        return handled_call(self, output if reply is None else reply.output, result, None)

    def suspend(self, ticket: SuspendTicket) -> SuspendedCall:
        """Let the call wait for a decision; its input is frozen from now on.

        Raises:
            MisuseError: The ticket is not a `SuspendTicket`.
            LifecycleError: The call waits already, or has ended.
            ToolInputError: Its input was changed in place, and does not fit any more.
        """
        return suspend(self, ticket)

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
        invocation, run = self._start(skipped)
        if self._selector.timeout is not None or not invocation.is_async:
            return self._finish(await self._run(invocation, skipped), run)
        input = self._give_away()
        if invocation.is_as_is and not skipped:
            return self._finish(await invocation.function(**input.__dict__), run)
        return self._finish(await invocation.start(self, input, skipped), run)

    def call_sync(self, /, **skipped: Any) -> ToolResult:
        """Run a sync function right here and answer the call with what it returns.

        Nothing can cut it off here, so that the tool's `timeout` does not hold; it does in
        `call` and in `execution`.

        Raises:
            MisuseError: The function is async; or as for `call`.
        """
        self._refuse_async()
        invocation, run = self._start(skipped)
        return self._finish(invocation.run_sync(self, self._give_away(), skipped), run)

    async def invoke(self, /, **skipped: Any) -> Any:
        """Run the decorated function and give its raw output; answer with `complete` yourself.

        What a function gives as a `Reply` is that reply.

        Raises:
            TimedOut: The tool's deadline passed, as in `call`.
        """
        invocation = self.start(skipped)
        return await self._run(invocation, skipped)

    async def _run(self, invocation: Invocation, skipped: dict[str, Any]) -> Any:
        """Run a call that was started, and cut it off when its tool's deadline passes.

        Raises:
            TimedOut: It was cut off. What the function raises comes out unchanged, also a
                `TimeoutError` of its own.
        """
        import asyncio  # slow to load, and most programs need it later

        # `asyncio.timeout` raises the same `TimeoutError` that the function may raise by itself.
        # Which of the two came out is told by identity: only its own passed the inner `except`.
        seconds, own = self.selector.timeout, None
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await invocation.run(self, self._give_away(), skipped)
                except TimeoutError as error:
                    own = error
                    raise
        except TimeoutError as error:
            if error is own:
                raise
            raise TimedOut(
                f"did not finish within {seconds:g} seconds and was cut off.", is_in_doubt=True
            ) from None
        finally:
            del own  # its traceback holds this frame

    def invoke_sync(self, /, **skipped: Any) -> Any:
        """Run a sync function right here, without a deadline, and give its raw output."""
        self._refuse_async()
        return self.start(skipped).run_sync(self, self._give_away(), skipped)

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
        return self._start(skipped, invocation)[0]

    def _start(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> tuple[Invocation, int]:
        """Do as `start` does, and name the run by the number of its entry."""
        while True:
            since = len(self._entries)  # what follows holds of this history
            changed = None if self._lent is None else self._changes()
            if changed is not None and self._selector.needs_review:
                self._take_changes()  # on record first: it has to be reviewed, so this refuses
                continue
            found = self._may_start(skipped, invocation)
            if not self.spec.arguments.is_faithful and (why := self._unfit_text()) is not None:
                self._end_unfit(why, since)
            at, by = self._round.started
            started = ("started", "started", at, by, None, None, None, None, None)
            run = self._append_all((started,) if changed is None else (changed[0], started), since)
            if run is not None:
                if changed is not None:
                    self._hold_changed(run, *changed[1:])
                return found, run

    def _end_unfit(self, why: str, since: int) -> None:
        """End a call whose text does not fit any more, so that the model reads why.

        A call that was started before does not become an issue: it may have had its effects.

        Raises:
            ToolInputError: It does not, and this says why.
        """
        if not self.was_started:
            ended = move("ended", by=REFUSED_BY, phase="execution", verdict="rejected", reason=why)
            self._append_all((ended,), since)
        raise ToolInputError(why, tool=self.name)

    def _may_start(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> Invocation:
        """Refuse a call that `start` would refuse, and change nothing."""
        invocation = invocation or self.spec.invocation
        if invocation is None:
            what = "an input model" if isinstance(self.spec.arguments.type, type) else "a schema"
            raise MisuseError(
                f"Tool `{self.name}` (call {self.id!r}) is {what} without a function. Do the work "
                "yourself and answer with `call.complete(output)`."
            )
        if skipped is not None and (skipped or invocation.required):
            invocation.check(self, skipped)
        self._check_may_start()
        return invocation

    async def hook(self, hooks: Hooks, /) -> HookOutcome:
        """Send this one call through hooks.

        Returns:
            The call itself if it is still to be run, or a `HandledCall`, `RejectedCall` or
            `SuspendedCall`.

        Raises:
            HookError: A hook raised, or gave something that is not a decision.
            LifecycleError: The call runs, waits, or has ended.
        """
        return await drive(_hook_generator(self, hooks))

    def hook_sync(self, hooks: Hooks, /) -> HookOutcome:
        """Do as `hook` does, if every hook is sync.

        Raises:
            MisuseError: A hook is async; the text names it.
        """
        return drive_sync(_hook_generator(self, hooks))

    @property
    def result(self) -> ToolResult | None:
        """What the call ended with, before after-hooks saw it; None if it has not ended."""
        end = end_of(self._history)
        if end is None or isinstance(end.detail, ToolResult):
            return None if end is None else end.detail
        answered: Any = outcome_of(self)
        result: ToolResult = answered.result
        return result

    def conflicts_with(self, other: AnyToolCall) -> bool:
        """Whether both calls access the same thing, and one of them changes it."""
        theirs = other.accesses
        return any(one.conflicts_with(each) for one in self.accesses for each in theirs)


def _hook_generator(call: AnyToolCall, hooks: Any) -> HookGenerator[HookOutcome]:
    """Let hooks review one call by itself."""
    if not call._stage.may_ask:
        raise call._refused("reviewed")
    review = None if isinstance(hooks, type) else getattr(hooks, "_review", None)
    yield from review_by(call, hooks) if review is None else review(call)
    return call if call._stage.may_start else outcome_of(call)


def _check_text(call: AnyToolCall, what: str, value: object) -> None:
    if not isinstance(value, str):
        raise MisuseError(
            f"The {what} for call {call.id!r} of tool `{call.name}` is {shorten(value)}. Give a "
            "text: the model reads it."
        )


def _checked(call: AnyToolCall, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    from .._transcript.message import attachments_of

    return attachments_of(f"Call {call.id!r} of tool `{call.name}`", attachments)


def with_files(
    output: Any, text: str, attached: tuple[Attachment, ...], message: str | None
) -> tuple[tuple[Attachment, ...], str | None]:
    """Let the model see the files that are in an output, in place of their data."""
    from .._transcript.message import attachments_in, shown_with

    # What is not written is shown to nobody: a field may be left out, or not be declared.
    inside = dict.fromkeys(attachments_in(output))
    found = tuple(each for each in inside if compact_json(each.url) in text)
    if found and message is None:
        message = shown_with(text, found)
    return tuple(dict.fromkeys((*attached, *found))), message


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
        positional, keywords = invocation.bind(self, self._give_away(), skipped)
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


def decoded_calls(calls: Iterable[BaseCall]) -> Iterator[AnyToolCall]:
    """Return those of some calls that could be read."""
    return (call for call in calls if isinstance(call, AnyToolCall))
