"""`ToolRoundPlan`: what is to be done about each call of a round, and the way to its end.

A plan sorts the calls of a round: pending ones are yours to run; handled, rejected and unusable
ones have their results already; suspended ones wait for a decision. Everything that ends a plan
checks first and changes afterwards, so that what fails has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar, overload

from .._call.base_call import CallRecord
from .._call.call import (
    AnyToolCall,
    AwaitingCall,
    HookOutcome,
    Hooks,
    NotEnded,
    RejectedCall,
    SuspendedCall,
)
from .._call.call_state import DecodedCall
from .._call.deciding import Review
from .._call.drivers import HookGenerator, drive, drive_sync
from .._call.history import CallStatus, CallStep, Move, move
from .._call.outcomes import HandledCall, RecoverableToolCallIssue
from .._context.suspension import Decision
from .._hooks.pipeline import review_calls
from .._hooks.registered_hook import check_related
from .._text.display import Displayed, Listing
from .._text.immutable import Immutable, dataclass
from .._text.json import shorten
from .._transcript.result import ToolResult
from .._transcript.transcript import CommittedRound, transcript_of
from ..errors import LifecycleError, MisuseError
from .decision_records import DecisionRecord, EditRecord
from .ending import (
    ResultLike,
    as_results,
    check_shown,
    ended_within,
    joined_round,
    results_of,
    show_results,
)
from .events import (
    Ancestor,
    Ancestry,
    CallEventKind,
    CallRow,
    OnEvent,
    check_listener,
    notify,
    rows_of,
    tell_decided,
    tell_resumed,
)
from .inner import is_unshown, settle_within, show_outcome
from .sorted_calls import RoundState, ended_with

if TYPE_CHECKING:
    from .._transcript.transcript import HasTranscript, Transcript

T_co = TypeVar("T_co", covariant=True)


class OpenCalls(Displayed, Generic[T_co]):
    """Base of a round and of its plans: calls that hooks can review."""

    __slots__ = ("_state",)

    _state: RoundState
    if TYPE_CHECKING:
        _WHAT: ClassVar[str]

    @property
    def recoverable_tool_call_issues(self) -> tuple[RecoverableToolCallIssue, ...]:
        """Calls that cannot be used, and why."""
        return self._state.issues

    @property
    def continue_suggestion(self) -> ContinueSuggestion | None:
        """A hint that the model should go on, because some of its calls could not be used."""
        return ContinueSuggestion.of(self.recoverable_tool_call_issues)

    async def apply_hooks(
        self, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolRoundPlan[T_co]:
        """Let hooks review the pending calls, and sort the calls by what is to be done.

        Args:
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Called for each call when all are decided, with what was decided. Also called
                for each call that cannot be used.

        Returns:
            A plan; all plans of a round show the same. Hooks review no calls that are not pending,
            or have started. If there are calls in `unreviewed`, hooks review these only. An
            execution hook reviews a call once per try, gates each time.

        Raises:
            HookError: A hook raised, or returned something that is not a decision; or they are no
                hooks of this toolset. Nothing changed.
            LifecycleError: Something happened to a call meanwhile, so what hooks decided about it
                does not count; what they decided about the others does.
            MisuseError: `on_event` is not a function. Nothing changed.
            ToolInputError: Your code changed an input in place, and it does not fit. The input is
                as it was.
            RoundClosedError: The round has ended.
        """
        state = self._state
        state.check_open()
        # If no hook is async the generator ends without yielding anything, and no coroutine is
        # made. At the first awaitable `drive` takes over and runs the rest of the generator.
        generator = decided(state, hooks, on_event)
        for first in generator:
            await drive(generator, first)
        return self._as_plan()

    def apply_hooks_sync(
        self, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolRoundPlan[T_co]:
        """Do as `apply_hooks` does, with sync hooks only.

        Raises:
            MisuseError: A hook is async; the text names it.
        """
        state = self._state
        state.check_open()
        generator = decided(state, hooks, on_event)
        for first in generator:
            drive_sync(generator, first=first)
        return self._as_plan()

    def _as_plan(self) -> ToolRoundPlan[T_co]:
        return ToolRoundPlan(self._state)

    def __enter__(self) -> Self:
        """Begin a block at the end of which the round is discarded, if it is still open."""
        return self

    def __exit__(self, *error: object) -> None:
        self._state.leave()

    def discard(self) -> None:
        """Close the round and forget the turn: the transcript stays as it is.

        Raises:
            RoundClosedError: The round has ended.
        """
        self._state.discard()

    # As of calls, two of them could both end the round.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise MisuseError(
            f"A {self._WHAT.lower()} is not pickled: its round would end twice. Save it "
            "with `plan.dump_json()`, and go on with `load_plan`."
        )

    def _listing(self) -> Listing:
        from .display import calls_listing

        return calls_listing(self._state, self._WHAT)


class ToolRoundPlan(Immutable, OpenCalls[T_co]):
    """Sort the calls of a round by what is to be done about them.

    Attributes:
        pending: Calls that your code runs, in the order of the turn.
        finished: Results that were recorded, in the order of the turn; see `record`.
        in_doubt: Calls that had started before the plan was loaded, and have no result. They may
            have had their effects, so they cannot be run.
        awaiting: Calls that requested other calls, and are run again when each of these has a
            result.
        unreviewed: Calls that other calls requested, and that no hooks have reviewed. They cannot
            be run.
        handled: Calls that a hook or gate gave their results.
        rejected: Calls that a hook or gate rejected.
        suspended: Calls that wait for a decision.
        recoverable_tool_call_issues: Calls that cannot be used.
        decisions: What each hook and gate decided, in order.
        edits: What people changed in the arguments of calls; see `amend`.
        toolset: The toolset that the calls were read with.
    """

    __slots__ = ()
    _WHAT = "Plan"

    def __init__(self, state: RoundState) -> None:
        _set_state(self, state)

    @property
    def toolset(self) -> type[T_co]:
        """The toolset that the calls were read with."""
        return self._state.toolset  # type: ignore[no-any-return]

    def _as_plan(self) -> Self:
        return self

    # The lists.

    @property
    def pending(self) -> tuple[AnyToolCall, ...]:
        """Calls that your code runs, in the order of the turn."""
        return self._state.shown(self._state.lists.pending)

    @property
    def in_doubt(self) -> tuple[AnyToolCall, ...]:
        """Calls that were started before the plan was loaded and have no result.

        They may have had their effects, and refuse to run.
        """
        return self._state.shown(self._state.lists.in_doubt)

    @property
    def suspended(self) -> tuple[SuspendedCall, ...]:
        """Calls that wait for a decision."""
        return self._state.lists.suspended

    @property
    def awaiting(self) -> tuple[AnyToolCall, ...]:
        """Calls that requested others, and come back once each of these has its result."""
        return self._state.shown(self._state.lists.awaiting)

    @property
    def unreviewed(self) -> tuple[AnyToolCall, ...]:
        """Calls that others requested, and that no hooks have reviewed: they cannot run."""
        return self._state.shown(self._state.lists.unreviewed)

    @property
    def finished(self) -> tuple[ToolResult, ...]:
        """Results that the plan has already, in the order of the turn; see `record`."""
        return self._state.lists.finished

    @property
    def handled(self) -> tuple[HandledCall[Any, Any], ...]:
        """Calls that a hook or gate gave their results."""
        return self._state.lists.handled

    @property
    def rejected(self) -> tuple[RejectedCall, ...]:
        """Calls that a hook or gate rejected."""
        return self._state.lists.rejected

    @property
    def is_settled(self) -> bool:
        """Whether every call has its result: none is pending, in doubt, waiting or unreviewed."""
        lists = self._state.lists
        return not (lists.pending or lists.in_doubt or lists.suspended or lists.awaiting)

    @property
    def decisions(self) -> tuple[DecisionRecord, ...]:
        """What every hook and gate decided, in order."""
        found = [each for call in self._state.decoded for each in DecisionRecord.of(call)]
        return tuple(record for _, record in sorted(found, key=itemgetter(0)))

    @property
    def resumed(self) -> Mapping[tuple[str, str], Decision]:
        """The decisions that were taken in, by call id and decision id."""
        found = [
            step for call in self._state.decoded for step in call.history if step.kind == "decided"
        ]
        found.sort(key=attrgetter("at"))
        return {(s.detail.call_id, s.detail.decision_id): s.detail for s in found}

    @property
    def edits(self) -> tuple[EditRecord, ...]:
        """What people changed in the arguments of calls, the latest last; see `amend`."""
        found = [each for call in self._state.decoded for each in EditRecord.of(call)]
        return tuple(edit for _, edit in sorted(found, key=itemgetter(0)))

    @property
    def blocked(self) -> str | None:
        """The reason of the first gate that blocked a call, or None."""
        for each in self.rejected:
            if each.source == "gate":
                return each.reason
        return None

    @property
    def closed_by(self) -> str | None:
        """How the round ended, such as `committed` or `handed over`; None while it is open."""
        return self._state.closed_by

    @property
    def calls(self) -> tuple[CallRow, ...]:
        """A row for each call: first those of the turn, in order, then those that calls requested.

        Example:
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> from lutum_py.testing import ScriptedModel
            >>> @tool_fn
            ... def refund(order: str, cents: int) -> str:
            ...     return "done"
            >>> class Desk(Toolset):
            ...     refund = tool(refund)
            >>> turn = ScriptedModel.tool_calls(("c1", "refund", {"order": "A1", "cents": "500"}))
            >>> with Desk.read_turn(turn).round.plan() as plan:
            ...     for row in plan.calls:
            ...         print(row.id, row.tool, row.state, row.arguments)
            c1 refund pending {'order': 'A1', 'cents': 500}
        """
        return rows_of(self._state)

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """The steps of all calls of the round, in order of time.

        Steps of the same moment are in the order of the turn.
        """
        found = [step for row in rows_of(self._state) for step in row.steps]
        return tuple(sorted(found, key=attrgetter("at")))

    def ancestors(self, call_id: str) -> tuple[Ancestor, ...]:
        """List the calls that requested a call, the outermost first.

        For a call that the model made itself the list is empty. If a program that the provider runs
        made the call, the program comes first, as `Ancestor("p1", "program", {"code": ...})`.

        Args:
            call_id: The id of the call.

        Raises:
            MisuseError: There is no such call.
        """
        if not isinstance(call_id, str) or self._state.find(call_id) is None:
            raise MisuseError(
                f"There is no call {shorten(call_id)} in this plan. `plan.calls` has the ids of "
                "all calls."
            )
        return Ancestry.of(self._state, call_id).named()

    # What may run together.

    def order(self) -> Mapping[str, tuple[str, ...]]:
        """Say which calls each open call has to wait for, because they access the same things.

        If you start each call only when these calls have results, the outcome is the same as if you
        had run all calls one after the other. See `call.accesses` for what a call accesses. The
        method looks at the plan as it is now. A call with a result delays no other call.

        Returns:
            For each call without a result, by its id and in the order of the turn: the ids of the
            earlier calls that it waits for. A call that one of these already waits for may be left
            out.
        """
        from .sorted_calls import Order

        return Order.of(self._state).by_id()

    def batches(self) -> list[tuple[AnyToolCall, ...]]:
        """Group the calls: those of one group may run at the same time, one group after the other.

        A call is in the first group after the groups of all earlier calls that access the same
        things. A call that has started, is suspended or is in doubt is in no group. Calls that have
        to wait for it are in no group either.

        Example:
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> from lutum_py.capabilities import ToolCapabilities, ToolEffect
            >>> from lutum_py.testing import ScriptedModel
            >>> writes = ToolCapabilities(effects=[ToolEffect("write_file", target="path")])
            >>> @tool_fn(capabilities=writes)
            ... def edit(path: str, text: str) -> str:
            ...     return "edited"
            >>> class Files(Toolset):
            ...     edit = tool(edit)
            >>> texts = [{"path": path, "text": "x"} for path in "aba"]
            >>> edits = [(f"c{n}", "edit", text) for n, text in enumerate(texts)]
            >>> with Files.read_turn(ScriptedModel.tool_calls(*edits)).round.plan() as plan:
            ...     print([[call.id for call in group] for group in plan.batches()])
            ...     print(plan.order())
            [['c0', 'c1'], ['c2']]
            {'c0': (), 'c1': (), 'c2': ('c0',)}
        """
        from .sorted_calls import Order

        order = Order.of(self._state)
        return [tuple(order.calls[at].call for at in group) for group in order.batches()]

    # Deciding.

    @overload
    async def apply_after_hooks(
        self, hooks: Hooks, results: Iterable[ResultLike] = ...
    ) -> list[ToolResult]: ...
    @overload
    async def apply_after_hooks(
        self, hooks: Hooks, results: Iterable[ResultLike | NotEnded]
    ) -> list[ToolResult | NotEnded]: ...
    async def apply_after_hooks(
        self, hooks: Hooks, results: Iterable[ResultLike | NotEnded] = ()
    ) -> Any:
        """Show results to the after-hooks, also those of handled calls and recorded results.

        Args:
            hooks: The hook set whose after-hooks see the results.
            results: The outcomes of calls that were run and are not recorded, such as those that
                `execute_all` returned.

        Returns:
            The outcomes that you passed, each as the hooks left it. Commit or record these. If a
            hook replaces the result of a handled call or a recorded result, the plan keeps the new
            one. A hook sees each of those once.

        Raises:
            HookError: A hook raised, or returned the result of another call.
            LifecycleError: A call was tried again meanwhile; what was said about others counts.
        """
        self._state.check_open()
        return await drive(show_results(self._state, hooks, results))

    @overload
    def apply_after_hooks_sync(
        self, hooks: Hooks, results: Iterable[ResultLike] = ...
    ) -> list[ToolResult]: ...
    @overload
    def apply_after_hooks_sync(
        self, hooks: Hooks, results: Iterable[ResultLike | NotEnded]
    ) -> list[ToolResult | NotEnded]: ...
    def apply_after_hooks_sync(
        self, hooks: Hooks, results: Iterable[ResultLike | NotEnded] = ()
    ) -> Any:
        """Do as `apply_after_hooks` does, with sync after-hooks only."""
        self._state.check_open()
        return drive_sync(show_results(self._state, hooks, results))

    # Running elsewhere.

    def detach(self, call_id: str, *, owner: str | None = None) -> AnyToolCall:
        """Hand out a call to run elsewhere, such as in another process: it starts here, and once.

        Pickle what is returned, and run it there as any call. Its outcome is for `plan.record`.
        Unpickle it once: it runs once for each time that it is unpickled.

        Args:
            call_id: The id of a pending call, or of one in doubt whose tool is idempotent.
            owner: Who runs it, for the history.

        Returns:
            A call that may start, while that of the plan is running.

        Raises:
            LifecycleError: There is no such call, or it cannot be started.

        Example:
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> from lutum_py.testing import ScriptedModel
            >>> @tool_fn
            ... def add(a: int, b: int) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     add = tool(add)
            >>> turn = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
            >>> with Sums.read_turn(turn).round.plan() as plan:
            ...     elsewhere = plan.detach("c1", owner="worker 7")
            ...     _ = plan.record(elsewhere.call_sync())
            ...     print(plan.resolve().results[0].output)
            3
        """
        self._state.check_open()
        call = self._pending_call(call_id, "handed out")
        held, call.round = call.round, self._state.call_round
        try:
            if call.stage.name == "in_doubt" and call.selector.definition.idempotent:
                call.go_on()
            while True:
                call.take_changes()
                since = len(call.entries)
                call.check_may_start()
                made = call.copy_for(None)
                if call.append_all((move("started", by=owner),), since) is not None:
                    made.run_as_recorded((call.last[3], owner))
                    return made.call
        finally:
            call.round = held  # a call that a store keeps starts in no other way

    def abandon(self, call_id: str) -> None:
        """Note that nobody runs a call any more, as when its worker was killed: it is in doubt.

        Args:
            call_id: The id of a call that is running, by its history.

        Raises:
            LifecycleError: There is no such call, or it is not running.
            RoundClosedError: The round has ended.
        """
        self._state.check_open()
        self._pending_call(call_id, "abandoned").append("abandoned")

    def _pending_call(self, call_id: str, what: str) -> DecodedCall:
        call = self._state.find_decoded(call_id)
        if call is None:
            raise LifecycleError(
                f"Call {shorten(call_id)} cannot be {what}: it is not pending in this plan. "
                f"Pending: {[each.id for each in self._state.lists.pending]}."
            )
        return call

    # Recording, suspending and resuming.

    def record(self, outcome: ResultLike | NotEnded, /, *, run: int | None = None) -> bool:
        """Give the plan the outcome of a call, so that the plan and its saved form contain it.

        A call with a result moves from `pending` or `in_doubt` to `finished`, and ends if it has
        not ended yet. The result may have been made anywhere. A result for a call that could not be
        used replaces the automatic rejection. A call that suspended itself moves to `suspended`.

        A call that requested other calls moves to `awaiting`, and these are in `unreviewed`. It is
        pending again when each of them has a result. If it requested too much, it ends with an
        error instead: its code is `too_deep` (calls in calls, more than three levels deep) or
        `too_many_calls` (more than 100 in one call).

        Args:
            outcome: A result, a handled or rejected call, a call that suspended itself, or a call
                that requests others.
            run: The number of the run that it is of, if that is known.

        Returns:
            Whether it counts; not if the call was started again after that run.

        Raises:
            CommitError: The result belongs to no open call, to a call that has a different result,
                or to another tool or other arguments. Nothing changed.
            LifecycleError: The call that waits or requests others is not pending in this plan; or
                it waits without a ticket.
            MisuseError: An after-hook has not seen the result of a call that another requested; or
                put another in the place of this result.
            RoundClosedError: The round has ended.
        """
        from .record import record

        self._state.check_open()
        return record(self._state, outcome, run)

    async def settle(
        self, outcome: ResultLike | NotEnded, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolResult | NotEnded:
        """Take in the outcome of a call that ran elsewhere, and let hooks see it.

        After-hooks see a result before it is recorded. If the call requested others, hooks review
        these, as `plan.apply_hooks` does.

        Args:
            outcome: As for `plan.record`.
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Called for a call that requested others, and for each of these.

        Returns:
            The outcome as the after-hooks left it; an error result if the call requested too much.

        Raises:
            HookError: A hook raised, or returned something that is not a decision. The outcome of
                the call is kept: settle it again.
            CommitError: As in `plan.record`.
            LifecycleError: As in `plan.record`.
            RoundClosedError: The round has ended.

        Example:
            >>> import asyncio
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> from lutum_py.testing import ScriptedModel
            >>> @tool_fn
            ... def add(a: int, b: int) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     add = tool(add)
            >>> hooks = Sums.HookSet()
            >>> @hooks.after(Sums.add)
            ... def log(call, result):
            ...     print(result.status)
            >>> turn = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
            >>> with Sums.read_turn(turn).round.apply_hooks_sync(hooks) as plan:
            ...     elsewhere = plan.detach("c1", owner="worker 7")
            ...     _ = asyncio.run(plan.settle(elsewhere.call_sync(), hooks))
            ...     print(plan.resolve().results[0].output)
            success
            3
        """
        from .record import settle

        self._state.check_open()
        return await drive(settle(self._state, outcome, hooks, on_event))

    def settle_sync(
        self, outcome: ResultLike | NotEnded, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolResult | NotEnded:
        """Do as `settle` does, with sync hooks only.

        Raises:
            MisuseError: A hook is async; the text names it.
        """
        from .record import settle

        self._state.check_open()
        return drive_sync(settle(self._state, outcome, hooks, on_event))

    def suspend(self, outcome: SuspendedCall, /) -> None:
        """Give the plan a call that suspended itself while it was run.

        Raises:
            LifecycleError: The call is not pending in this plan; or it waits without a ticket.
            MisuseError: It is not a call that suspended itself.
            RoundClosedError: The round has ended.
        """
        from .record import suspend

        self._state.check_open()
        suspend(self._state, outcome)

    def resume(
        self, decision: Decision, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Let a suspended call go on, or cancel it, as somebody decided.

        Args:
            decision: The decision. If it is delivered twice, it counts once.
            on_event: Called with the new state of the call.

        Returns:
            The call, or what became of it; None if this decision was delivered before.

        Raises:
            ResumeError: The decision is about no suspended call, or about another version of the
                call; or its result does not fit; or it is an edit, which `amend` takes. Nothing
                changed.
            MisuseError: It is not a `Decision`, or `on_event` is not a function.
            ToolDefinitionError: The ticket's `response_schema` is invalid.
            MissingExtraError: The ticket has one, and the package `jsonschema` is not installed.
            RoundClosedError: The round has ended.
        """
        from .resume import resume

        self._state.check_open()
        if on_event is not None:
            check_listener(on_event)
        became = resume(self._state, decision)
        if on_event is not None:
            tell_resumed(self._state, decision, became, on_event)
        return became

    async def amend(
        self, decision: Decision, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Let a suspended call go on with the arguments that somebody edited.

        The edit is validated. Then execution hooks, gates and before-hooks review it;
        gates can take the decision. The call is approved with the digest of the edited arguments,
        so the `Suspend` of a gate counts as decided. A `Block` still blocks the call. If a hook
        changes the arguments, the call waits again with its new digest.

        Args:
            decision: The decision. If it is delivered twice, it counts once. A decision without an
                edit is handled like by `resume`, and no hook reviews it.
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Called with the new state of the call.

        Returns:
            The call, or what became of it; None if this decision was delivered before.

        Raises:
            ResumeError: As for `resume`; or the edit does not fit the tool, the ticket does not
                allow one, or the call was decided on while hooks were awaited. Nothing changed.
            HookError: A hook raised, or returned something that is not a decision. Nothing changed.
            MisuseError: As in `resume`.
            RoundClosedError: The round has ended.
        """
        from .resume import amend

        self._state.check_open()
        if on_event is not None:
            check_listener(on_event)
        became = await drive(amend(self._state, decision, hooks))
        if on_event is not None:
            tell_resumed(self._state, decision, became, on_event)
        return became

    def amend_sync(
        self, decision: Decision, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Do as `amend` does, with sync hooks only.

        Raises:
            MisuseError: A hook is async; the text names it. Nothing changed.
        """
        from .resume import amend

        self._state.check_open()
        if on_event is not None:
            check_listener(on_event)
        became = drive_sync(amend(self._state, decision, hooks))
        if on_event is not None:
            tell_resumed(self._state, decision, became, on_event)
        return became

    # Ending.

    def resolve(self, results: Iterable[ResultLike | NotEnded] = ()) -> CommittedRound:
        """Close the round without a transcript, and return the turn with its results.

        Args:
            results: A result for each call that has none in the plan, in any order.

        Raises:
            CommitError: The results do not answer the calls; `faults` lists every reason. Nothing
                changed, and the plan can be used again.
            RoundClosedError: The round has ended.
        """
        self._state.check_open()
        return self._end(results, "resolved")

    def _end(self, results: Iterable[ResultLike | NotEnded], how: str) -> CommittedRound:
        found = results_of(self._state, results)
        committed = joined_round(self._state, found)
        ends = {result.id: result for result in found}

        def moves(call: CallRecord) -> list[Move]:
            result = ends.get(call.id)
            if result is None:  # one that a call requested, which did not wait for this result
                why = f"the round was {how}."
                result = call.unfinished(call.history.was_started, why)
            return [*call.changes_unstarted(), *ended_with(call, result)]

        self._state.end_open(how, moves)
        return committed

    def commit(
        self, target: HasTranscript | Transcript, results: Iterable[ResultLike | NotEnded] = ()
    ) -> CommittedRound:
        """Append the turn and one result for each of its calls, in order, or nothing at all.

        Args:
            target: A session or transcript.
            results: A result for each call that has none in the plan, in any order.

        Raises:
            CommitError: The results do not answer the calls; `faults` lists every reason. Nothing
                changed, and the plan can be used again.
            MisuseError: The round was opened at another place than the end of this transcript; or
                an after-hook has not seen a result, or put another in its place.
            RoundClosedError: The round has ended.
        """
        transcript, state = transcript_of(target), self._state
        state.check_open()
        state.check_place(transcript)
        committed = self._end(results, "committed")
        transcript.append_round(committed)
        return committed

    def abort(
        self,
        target: HasTranscript | Transcript,
        reason: str,
        results: Iterable[ResultLike | NotEnded] = (),
    ) -> CommittedRound:
        """Give up the round, with a truthful result for each call that has none.

        A call that was not started gets the result `cancelled`. A call that was started gets
        `indeterminate`, because nobody knows what it did.

        Args:
            target: A session or transcript.
            reason: Why the round is given up; the model reads it.
            results: The outcomes of calls that were run, such as those of `execute_all`. One that
                the plan has already counts once: `outcomes_of(error)` tells those of `run` as well.

        Raises:
            CommitError: The results do not fit the calls. Nothing changed.
            MisuseError: The round was opened at another place than the end of this transcript; or
                an after-hook has not seen a result that you pass, or that the plan has, or
                put another in the place of one that you pass.
            RoundClosedError: The round has ended.
        """
        transcript = transcript_of(target)
        self._state.check_open()
        self._state.check_place(transcript)
        given, unended = as_results(results)  # an iterator may still run some of the calls
        # What is wrong is raised before anything has changed.
        lists = self._state.lists
        waiting = (*(each.call._record for each in lists.suspended), *lists.awaiting)
        given_up = (*lists.pending, *lists.in_doubt, *waiting)
        found = self._given_up(reason, [*given, *unended], given_up)
        # Then each open call ends, and only now is it known what became of them: a call that starts
        # a moment later is refused.
        known = {each.id: each for each in given}
        left = {each.call.metadata for each in unended if each.was_started}

        def moves(call: CallRecord) -> list[Move]:
            was_started = call.history.was_started or call.metadata in left
            result = known.get(call.id) or call.unfinished(
                was_started,
                reason,
                ended_within(call.requested_calls(), known | _answers(call)),
            )
            return ended_with(call, result)

        self._state.end_open("aborted", moves)
        ends: dict[str, ToolResult] = {}
        for call in given_up:
            result = call.known_result() or known.get(call.id)
            if result is None and call.history.was_started:  # it has ended, and nobody recorded it
                more = ended_within(call.requested_calls(), known | _answers(call))
                result = call.unfinished(True, reason, more)
            if result is not None:
                ends[call.id] = result
        ended = tuple([ends.get(each.id, each) for each in found])
        committed = joined_round(self._state, ended)
        transcript.append_round(committed)
        return committed

    def _given_up(
        self,
        reason: str,
        answers: list[ToolResult | NotEnded],
        given_up: tuple[DecodedCall, ...],
    ) -> tuple[ToolResult, ...]:
        """Return the results of the round, an honest one for each call that has none."""
        own = {call.metadata for call in given_up}
        # A result that says "not executed" must be true: the model may call the tool again because
        # of it. So whatever points to a beginning makes the outcome unknown.
        started = {call.id for call in given_up if call.history.was_started}
        # A pending call that is suspended was suspended by its tool, so the tool was started.
        started |= {call.id for call in self._state.lists.pending if call.status in _STARTED}
        finished = list[ResultLike]()
        recorded = {each.id: each for each in self._state.lists.finished}
        for outcome in answers:
            if not isinstance(outcome, SuspendedCall | AwaitingCall):
                if recorded.get(outcome.id) != outcome:
                    finished.append(outcome)
            elif outcome.was_started and outcome.call.metadata in own:
                started.add(outcome.call.id)  # has no result, but it was started
        within: dict[str, ToolResult] = {}
        if inner := self._state.call_round.inner:
            results, _ = as_results(finished)
            within = {each.id: each for each in results if each.id in inner}
            finished = [each for each in results if each.id not in inner]
        filled = {
            call.id: call.unfinished(
                call.id in started, reason, ended_within(call.requested_calls(), within)
            )
            for call in given_up
        }
        return results_of(self._state, finished, unfinished=filled)

    # For a store of your own.

    def round_record(self) -> dict[str, Any]:
        """Return the parts of the round that are not steps, as plain data.

        That is its turn, where it was opened, and the digests of its tools. It stays the same while
        the round goes on; what happens to its calls is in `entries_since`. The plan stays open.

        Raises:
            PlanError: A payload of the turn is not JSON data.

        Example:
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> from lutum_py.testing import ScriptedModel
            >>> @tool_fn
            ... def add(a: int, b: int) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     add = tool(add)
            >>> turn = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
            >>> plan = Sums.read_turn(turn).round.plan()
            >>> record, (rows, mark) = plan.round_record(), plan.entries_since()
            >>> plan.hand_over()
            >>> plan = Sums.open_plan(record, rows)
            >>> result = plan.pending[0].call_sync()
            >>> rows, mark = plan.entries_since(mark)
            >>> [(row["call"], row["n"], row["steps"][0]["kind"]) for row in rows]
            [('c1', 1, 'started'), ('c1', 2, 'ended')]
            >>> plan.discard()
        """
        from .entries import round_record

        return round_record(self._state)

    def entries_since(
        self, mark: Mapping[str, int] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return what happened to the calls since a mark, as plain data, and a new mark.

        An entry has the id of its `call`, its number `n` in the history of the call, and its
        `steps`, which happened together. A store keeps a row for each, under round, call and
        number. The plan stays open.

        Args:
            mark: What an earlier call of this method gave, which is JSON data: how many entries of
                each call are known. Left out, all are new.

        Raises:
            PlanError: An input, ticket or payload is not JSON data.
        """
        from .entries import entries_since

        return entries_since(self._state, mark)

    def add_entries(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Take in what happened to the calls elsewhere, as another plan's `entries_since` gave it.

        What is here already is passed over. Entries that were refused leave those before them in.

        Args:
            entries: The entries, in any order.

        Raises:
            PlanError: An entry is damaged, one before it is missing, or it cannot follow.
            LifecycleError: Another entry of that number is here: two processes went on with a call
                at the same time.
            RoundClosedError: The round has ended.
        """
        from .entries import add_entries

        self._state.check_open()
        add_entries(self._state, entries)

    def hand_over(self) -> None:
        """Close the plan here, because it continues elsewhere.

        Nothing starts here any more. What a run that goes on comes to is written as `late`; give it
        to whoever goes on, with `entries_since`.

        Raises:
            RoundClosedError: The round has ended.
        """
        from .plan_json import move_on

        self._state.check_open()
        move_on(self._state, "handed over")

    def dump_json(self, *, key: bytes | None = None, binding: str | None = None) -> str:
        """Save the plan as text, and close the round here; `AppTools.load_plan(text)` loads it.

        Args:
            key: A secret that seals the text, so that a change of it is noticed.
            binding: What the plan belongs to, such as the ids of the conversation and the turn. The
                plan can only be loaded with the same `binding`.

        Raises:
            RoundClosedError: The round has ended.
            MisuseError: A store keeps the plan: write `store.save(id, plan, version=version)`.
            PlanError: A call has ended or waits, and this was not recorded: see `record`. Or a
                ticket or payload is not JSON data.
        """
        from .plan_json import dump_plan, hand_over

        self._state.check_open()
        return hand_over(self._state, "dumped", lambda: dump_plan(self._state, key, binding))

    # For a runner of your own.

    @property
    def has_nested_calls(self) -> bool:
        """Whether a call of the round has requested others."""
        return bool(self._state.call_round.inner)

    def check_open(self) -> None:
        """Refuse to go on with a round that has ended.

        Raises:
            RoundClosedError: It has; the text says how.
        """
        self._state.check_open()

    def check_recorded(self) -> None:
        """Refuse to go on elsewhere if a call has ended, or waits, and that was not recorded.

        Raises:
            PlanError: There is such a call; see `record`.
        """
        from .plan_json import check_told

        check_told(self._state)

    def check_after_hooks(self, call_id: str, hooks: Hooks | None) -> None:
        """Refuse to run a nested call if after-hooks must see its result, and none of `hooks` will.

        Raises:
            MisuseError: They would not.
        """
        check_shown(self._state, call_id, hooks)

    def has_unseen_results(self, call: AnyToolCall, hooks: Hooks) -> bool:
        """Whether after-hooks have to see results before a call comes back to them.

        That are results of calls that it requested, which somebody decided.
        """
        return is_unshown(call._record, hooks)

    async def settle_nested(self, hooks: Hooks, /, *, on_event: OnEvent | None = None) -> None:
        """Let hooks review nested calls that nobody reviewed, and see the results of others.

        After-hooks see the results that a decision gave to nested calls.

        Args:
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Called for each call that is reviewed.

        Raises:
            HookError: A hook raised, or returned something that is not a decision.
        """
        await drive(settle_within(self._state, hooks, on_event))

    def settle_nested_sync(self, hooks: Hooks, /, *, on_event: OnEvent | None = None) -> None:
        """Do as `settle_nested` does, with sync hooks only."""
        drive_sync(settle_within(self._state, hooks, on_event), "`await run(plan, hooks=hooks)`")

    async def review_outcome(
        self, outcome: ToolResult | NotEnded, hooks: Hooks, /
    ) -> ToolResult | NotEnded:
        """Show the result of one call to the after-hooks that have not seen it.

        Returns:
            The outcome as they left it, which is still to be recorded.

        Raises:
            HookError: A hook raised, or returned the result of another call.
        """
        shown: ToolResult | NotEnded = await drive(show_outcome(self._state, outcome, hooks))
        return shown

    def review_outcome_sync(
        self, outcome: ToolResult | NotEnded, hooks: Hooks, /
    ) -> ToolResult | NotEnded:
        """Do as `review_outcome` does, with sync hooks only."""
        generator = show_outcome(self._state, outcome, hooks)
        shown: ToolResult | NotEnded = drive_sync(generator, "`await run(plan, hooks=hooks)`")
        return shown

    def notify(self, on_event: OnEvent, kind: CallEventKind, call: AnyToolCall) -> None:
        """Report to a listener how a call stands; what the listener raises is logged.

        Args:
            on_event: The listener.
            kind: What happened to the call. With `requested`, each call that it requested last is
                reported as well, as `proposed`. If the call comes back from others, `started` is
                reported as `continued`.
            call: A call of the plan.
        """
        notify(self._state, on_event, kind, call._record)

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, name))} {name}"
            for name in (*_NAMED, "awaiting", "unreviewed")
            if name in ("pending", "handled", "rejected", "suspended") or getattr(self, name)
        )
        issues = len(self.recoverable_tool_call_issues)
        unusable = f", {issues} unusable" if issues else ""
        closed = f", {self._state.closed_by}" if self._state.closed_by else ""
        return f"<plan of {self.toolset.__qualname__}: {counts}{unusable}{closed}>"


_NAMED = ("pending", "finished", "in_doubt", "handled", "rejected", "suspended")


def _answers(call: CallRecord) -> dict[str, ToolResult]:
    """Return the results of the calls that a call requested, by id."""
    found = ((each.id, each.known_result()) for each in call.requested_calls())
    return {id: result for id, result in found if result is not None}


_STARTED = (CallStatus.SUSPENDED, CallStatus.FAILED, CallStatus.SUCCEEDED)


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


_set_state: Any = vars(OpenCalls)["_state"].__set__


def decided(
    state: RoundState, hooks: Hooks, on_event: OnEvent | None = None
) -> HookGenerator[None]:
    """Let hooks review the pending calls, and sort those.

    It gives no value: one that a generator ends with is raised to whoever runs it, and costs more
    than a hook does. Run in a `for` it needs a coroutine only if a hook is awaited.
    """
    if on_event is not None:
        check_listener(on_event)
    was_decided = state.is_decided
    if inner := state.call_round.inner:
        from .inner import decide_asked

        if state.lists.unreviewed:
            yield from decide_asked(state, hooks, on_event)
            return
    # A call that comes back from others has started, and is not reviewed again.
    asked = [call for call in state.decoded if call.stage.may_ask]
    if not asked:  # else asking about the first call finds it
        check_related(hooks, state.toolset)
    reviews = yield from review_calls(asked, hooks, state.note_hooks)
    state.is_decided = True
    for review in reviews if inner else ():
        if review.target.id in inner and review.target.history.state == "handled":
            from .inner import show_to

            yield from show_to(review.target, review.target.history.result, hooks)
    if on_event is not None:
        ids = {review.target.id for review in reviews}
        if not was_decided:
            ids.update(issue.metadata.id for issue in state.issues)
        tell_decided(state, on_event, ids)


def unasked(state: RoundState) -> HookGenerator[ToolRoundPlan[Any]]:
    """Make a plan without hooks: rules and approvals that are declared still count."""
    reviews = [
        Review.begin(call)
        for call in state.lists.pending
        if call.selector.needs_review and call.stage.may_ask and not call.is_ruled
    ]
    for review in reviews:
        yield from review.ask_declared()
        review.settle()
    Review.write_all(reviews)
    return ToolRoundPlan(state)
