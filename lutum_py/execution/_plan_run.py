"""What a plan has of a run: it is asked before a call is started, and gets the outcome of each.

A call that is not started, because `on_start` raised or the task was cancelled first, stays
pending: the plan goes on, here or elsewhere.
"""

from __future__ import annotations

from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any

from .._call.call import AnyToolCall
from .._call.drivers import HookGenerator
from .._call.history import CallRowState, end_of, result_in, state_in, steps_of_kind
from .._call.outcomes import AwaitingCall, SuspendedCall
from .._round.ending import check_shown
from .._round.events import CallEventKind, tell_asked, tell_row
from .._round.inner import settle_within, show_to
from .._round.plan import ToolRoundPlan
from .._round.record import record
from .._round.rows import Ancestry, row_of
from .._round.sorted_calls import outer_of
from .._schema.resource_access import meet
from .._text.json import shorten
from .._text.own_code import is_interrupt, must_go_on
from .._transcript.result import ToolResult
from ..errors import MisuseError
from ._outcome import Outcome, after_doubt, is_in_doubt
from ._settings import Settings, check_flag


class PlanRun:
    """Hold a plan while its calls are run.

    Args:
        plan: The plan.
        settings: How they are run, and who decides, and who receives events.
        in_order: Whether calls that access the same keep the order of the turn.

    Attributes:
        ready: The calls to be run: pending, not started, and waiting for none that cannot be run.
        waits: For each of them the places of those that it waits for; None if none does.
        in_doubt: If the order is kept, the calls whose outcome is unknown.
        refused: What `on_start` raised, by the place of the call.

    Raises:
        MisuseError: It is not a plan, or `in_order` neither True nor False.
        RoundClosedError: The round has ended.
    """

    def __init__(self, plan: ToolRoundPlan[Any], settings: Settings, *, in_order: bool) -> None:
        if not isinstance(plan, ToolRoundPlan):
            raise MisuseError(
                f"What is run here is a plan, not {shorten(plan)}. Pass what `round.plan()` or "
                "`await round.apply_hooks(hooks)` gave; single calls are for `execute`."
            )
        check_flag("in_order", in_order)
        plan._state._check_open()
        self.plan = plan
        self.settings = settings
        self.refused: dict[int, BaseException] = {}
        self.waits: list[list[int]] | None = None
        self.in_doubt: list[AnyToolCall] = []
        self._lock = Lock()
        self._in_order = in_order
        self.ready: list[AnyToolCall] = []
        self._is_started = False

    def settle(self) -> HookGenerator[bool]:
        """Let hooks decide about what calls have requested; whether there is anything to run then.

        If no call has requested any, there is something only once, since all that can be run is run
        together.
        """
        inner, hooks = self.plan._state._round.inner, self.settings.hooks
        is_started, self._is_started = self._is_started, True
        if is_started and not inner:
            return False
        if hooks is not None:
            yield from settle_within(self.plan, hooks, self.settings.on_event)
            yield from self._show_again()
        if self._in_order:
            from .._round.order import Order

            self.ready, self.waits = Order.of(self.plan).free()
        else:
            self.ready = [call for call in self.plan.pending if call._stage.may_start]
        for call in self.ready if inner else ():
            check_shown(self.plan, call.id, hooks)  # before it is run, and its result lost
        return bool(self.ready)

    def _show_again(self) -> HookGenerator[None]:
        """Show what came of calls before, or while an after-hook raised, or was cut off."""
        for call in self.plan._readable:
            if state_in(call._history) in ("handled", "finished"):
                yield from self.shown(call, result_in(call._history))
        for call in self.plan.pending:
            end = end_of(call._history) if call.id in self.plan._state._round.inner else None
            if end is not None and isinstance(end.detail, ToolResult):
                outcome = yield from self.shown(call, end.detail)
                self.take(call, outcome, call._last[1])

    def shown(self, call: AnyToolCall, outcome: Any) -> HookGenerator[Outcome]:
        """Show what a call came to to the after-hooks, before the plan is given it."""
        shown: Outcome = outcome
        # That a call was refused at its start is no result of its tool.
        if self.settings.hooks is not None and state_in(call._history) != "rejected":
            shown = yield from show_to(call, outcome, self.settings.hooks)
        return shown

    def after_doubt(self, call: AnyToolCall) -> Outcome | None:
        """Answer a call that would come after one which perhaps still works on the same.

        Returns:
            Its result; None if it may start, as it always may if no order is kept.
        """
        for doubtful in self.in_doubt:
            # A program whose inner call is in doubt may go on: it accesses the same because that
            # call is part of it.
            is_free = call in outer_of(self.plan, doubtful.id)  # it is within this one
            if call._stage.may_start and not is_free and meet(doubtful.accesses, call.accesses):
                outcome = after_doubt(call, doubtful)
                if outcome is not None:
                    self.take(call, outcome, None)
                return outcome
        return None

    async def start(self, place: int, call: AnyToolCall) -> bool:
        """Do what is to be done before a call is started; whether it may be."""
        if self.settings.on_start is not None:
            try:
                answer = self.settings.on_start(call)
                if isawaitable(answer):
                    await answer
            except BaseException as error:
                if must_go_on(error):
                    raise
                self.refused[place] = error  # raised again when the others have ended
                return False
        self.plan._state._check_open()  # a plan that was saved meanwhile runs where it is loaded
        return True

    def start_sync(self, place: int, call: AnyToolCall) -> bool:
        """Do as `start` does in sync code, in one thread at a time."""
        with self._lock:
            try:
                answer = None if self.settings.on_start is None else self.settings.on_start(call)
                if iscoroutine(answer):
                    answer.close()
                    raise MisuseError(
                        "`on_start` is async, so it cannot be done from sync code. Use `await "
                        "run(plan)`, or make it a plain function."
                    )
            except BaseException as error:
                if is_interrupt(error):
                    raise
                self.refused[place] = error  # raised again when the others have ended
                return False
            self.plan._state._check_open()
        return True

    def take(self, call: AnyToolCall, outcome: Outcome, run: int | None) -> None:
        """Let the plan know the outcome of a call, if it was started and its run is the last.

        Args:
            call: The call.
            outcome: What it came to.
            run: The number of its run; None if it was not started.
        """
        with self._lock:
            # Not started, so there is nothing to record: it stays pending, here or where the plan
            # is loaded. Of a call that was tried again, its history has the outcome.
            if call._stage.may_start:
                return
            self.plan._state._check_open()
            if not record(self.plan, outcome, run):
                return
            if self.waits is not None and is_in_doubt(outcome):
                self.in_doubt.append(call)
            self._tell_ended(call, outcome)

    def take_cut_off(self, call: AnyToolCall, outcome: Outcome | None, run: int | None) -> None:
        """Do as `take` does if the run is over, so that no after-hook can run any more."""
        try:
            check_shown(self.plan, call.id)
        except MisuseError:
            return
        if outcome is not None:
            self.take(call, outcome, run)

    # The rows are made of the call at hand: a round may have thousands.

    def started(self, call: AnyToolCall) -> None:
        """Tell that a call was started, if somebody wants to know."""
        asked = any(steps_of_kind(call._history, "requested"))
        self._tell("continued" if asked else "started", call, "pending")

    def _tell_ended(self, call: AnyToolCall, outcome: Outcome) -> None:
        if isinstance(outcome, SuspendedCall):
            self._tell("suspended", call)
        elif isinstance(outcome, AwaitingCall) and not call._stage.is_end:
            self._tell("requested", call)
            if self.settings.on_event is not None:
                tell_asked(self.plan, self.settings.on_event, call)
        else:
            self._tell("ended", call)

    def _tell(
        self, kind: CallEventKind, call: AnyToolCall, state: CallRowState | None = None
    ) -> None:
        if self.settings.on_event is not None:
            row = row_of(call, state, outer=Ancestry.of(self.plan, call.id))
            tell_row(self.settings.on_event, kind, row)
