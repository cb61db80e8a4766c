"""`CallRun`: one run of a call, and the only way in which it ends.

A result claims no more than is known. What never started, or said that it stopped, is `cancelled`;
what failed is an `error`; what was started and cut off is `indeterminate`, because it may have had
its effects. But if the tool declares that it changes nothing, nothing is in doubt: what was cut off
is an `error` or `cancelled` then. That rule is in `cut_off` alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from .._call.call import AnyToolCall, AwaitingCall, SuspendedCall
from .._call.call_state import DecodedCall
from .._call.history import Move, move
from .._context.context import ToolContext
from .._context.inner import ToolRequestedCalls
from .._context.suspension import SuspendTicket
from .._schema.invocation import Invocation
from .._transcript.result import ToolResult
from ..errors import Cancelled, LifecycleError, TimedOut, ToolInputError
from .ending import ended_within
from .inner import asking_call


class CallRun:
    """Run a call in a way of your own; `lutum_py.execution` and `lutum_py.store` use it.

    An outcome that comes when the run is over, such as after the call was started again, is
    refused with a `LifecycleError`, and is in `call.steps` as `late`.

    Args:
        call: The call.
        invocation: What runs it, such as `handlers.invocation_of(call)`; by default the function of
            its tool.

    Attributes:
        call: The call.
        invocation: What runs it.
        number: The number of the run; None before it is started.

    Raises:
        MisuseError: The tool has no function.
        LifecycleError: The call was started or has ended already, or waits for a decision.

    Example:
        >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
        >>> from lutum_py.typing import CallRun
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     add = tool(add)
        >>> metadata = ToolMetadata(id="c1", name="add", arguments='{"a": 1, "b": 2}')
        >>> run = CallRun(Sums.parse_tool_call(metadata))
        >>> run.start()
        >>> run.finish(run.invoke_sync({})).output
        3
    """

    __slots__ = ("_record", "call", "invocation", "number")

    def __init__(self, call: AnyToolCall, invocation: Invocation | None = None) -> None:
        self.call: AnyToolCall = call
        self._record: DecodedCall = call._record
        self.invocation: Invocation = self._record.check_start(None, invocation)
        self.number: int | None = None

    def check_start(self) -> None:
        """Refuse a call that cannot be started now.

        Raises:
            LifecycleError: It was started or has ended already, or waits for a decision.
        """
        self._record.check_start(None, self.invocation)

    def start(self, context: ToolContext | None = None) -> ToolResult | None:
        """Start the call.

        Args:
            context: What the tool gets; it reports nothing once this run is over.

        Returns:
            None; or, if the text of its arguments does not fit any more, the result with which the
            call has ended.

        Raises:
            LifecycleError: As in `check_start`.
            ToolInputError: Its input was changed in place, and does not fit any more; or it does
                not fit any more and the call was started before.
        """
        try:
            _, self.number = self._record.start(None, self.invocation)
        except ToolInputError:
            if not self._record.stage.is_end:
                raise
            refused: Any = self._record.outcome()
            result: ToolResult = refused.result
            return result
        if context is not None:
            context._put(_number=self.number)
        return None

    def invoke(self, hidden: dict[str, Any]) -> Any:
        """Call the function with the input and the hidden parameters, from async code."""
        return self.invocation.start(self.call, self._record.input_for_tool(), hidden)

    def invoke_sync(self, hidden: dict[str, Any]) -> Any:
        """Call a sync function with the input and the hidden parameters."""
        return self.invocation.run_sync(self.call, self._record.input_for_tool(), hidden)

    # How it ends.

    def finish(self, output: Any) -> ToolResult:
        """End the run as `call.finish` does."""
        return self._record.finish(output, self.number)

    def fail(self, message: str, code: str | None = None) -> ToolResult:
        """End the run as `call.fail` does, and name what was done within the call."""
        return self._record.fail(f"{message}{self._effects_within()}", code, self.number)

    def indeterminate(self, reason: str, code: str | None = None) -> ToolResult:
        """End the run as `call.indeterminate` does."""
        return self._record.give_up(f"{reason}{self._effects_within()}", code, self.number)

    def cancel(self, reason: str) -> ToolResult:
        """End the run of a tool that stopped itself, or that only reads."""
        reason = f"{reason}{self._effects_within()}"
        return self._record.end_with(self._cancellation(reason, Cancelled.code), self.number)

    # A model that reads of the failure alone may do again what was done.
    def _effects_within(self) -> str:
        """Name the calls that this one requested, and that had effects or may have had some."""
        begun = (
            each
            for each in DecodedCall.among(self._record.requested_calls())
            if each.history.was_started and not each.spec.definition.only_reads
        )
        said = ended_within(begun, {})
        return said and f"\n{said.lstrip()}"

    def suspend(self, ticket: SuspendTicket) -> SuspendedCall:
        """End the run as `call.suspend` does."""
        return self._record.suspend(ticket, self.number)

    def request_calls(self, requested: ToolRequestedCalls, toolset: Any) -> AwaitingCall:
        """End the run of a tool that requested other calls.

        Args:
            requested: What the tool raised.
            toolset: Any toolset; it saves the session that the tool leaves, if it leaves one.

        Raises:
            MisuseError: What it leaves is of a wrong kind, or a call was started.
            InvalidValueError: Arguments are not JSON data.
            DuplicateToolCallIdError: Two calls of a turn share an id.
        """
        return asking_call(self._record, requested, toolset, self.number)

    def cut_off(self, reason: str, code: str) -> ToolResult:
        """End a run of which nobody knows what it did or still does.

        A plain error would invite another call, under another key, and what this one did would be
        done twice. So it is one only if the tool declares effects of which none changes anything.
        """
        # `indeterminate` says to the model: do not simply try again. A tool that only reads can be
        # tried again without harm, and an `error` says that.
        if not self.only_reads:
            return self.indeterminate(_doubt(reason), code)
        if code == Cancelled.code:
            return self.cancel(reason)
        return self.fail(f"{TimedOut.prefix}{reason}", code)

    def lost(self, reason: str) -> ToolResult:
        """Do as `cut_off` does, also if the run is over by now: then its answer is lost."""
        if self.number is not None and self._record.is_in_run(self.number):
            with suppress(LifecycleError):  # it ended just now
                return self.cut_off(reason, Cancelled.code)
        return self._record.unknown_outcome(_doubt(reason), "cancelled")

    # If it never starts.

    def not_executed(
        self, reason: str, code: str = Cancelled.code, what: str = "not executed"
    ) -> ToolResult:
        """Make the result of a call that is not started here, without ending it.

        It may still be run, or somebody runs it. If it was started by an earlier run, such as
        before the calls that it requested, the result does not claim that it was not executed: the
        model may pay again then.

        Args:
            reason: Why not, from the comma or colon on.
            code: The code of the result.
            what: What the result claims of a call that was never started.
        """
        call = self._record
        if not call.history.was_started:
            return self._cancellation(f"{what}{reason}", code)
        reason = f"the tool was started before, and did not go on{reason}"
        within = ended_within(call.requested_calls(), {})
        if self.only_reads:
            return self._cancellation(f"{reason}{within}", code)
        return call.unknown_outcome(f"{_doubt(reason)}{within}", code)

    def end_unstarted(
        self, reason: str, code: str = Cancelled.code, what: str = "not executed"
    ) -> ToolResult | None:
        """End a call that is not started here with the result that `not_executed` makes.

        Returns:
            The result; None if the call cannot be started: somebody has started or ended it, or it
            waits.
        """
        call = self._record
        while True:
            since = len(call.entries)
            if not call.stage.may_start:
                return None
            result = self.not_executed(reason, code, what)
            ended: Move = move("ended", verdict=result.status, detail=result)
            if call.append_all((ended,), since) is not None:
                return result

    @property
    def only_reads(self) -> bool:
        """Whether neither the tool nor the tools of the calls that it requested change anything."""
        every = (self._record, *DecodedCall.among(self._record.requested_calls()))
        return all(each.spec.definition.only_reads for each in every)

    def _cancellation(self, reason: str, code: str) -> ToolResult:
        return self._record.failure("cancelled", f"Cancelled: {reason}", code)


def _doubt(reason: str) -> str:
    return f"{reason.rstrip('.')}. It may have had its effects."
