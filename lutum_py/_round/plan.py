"""`ToolRoundPlan`: what is to be done about each call of a round, and the way to its end.

A plan sorts the calls of a round: pending ones are yours to run; handled, rejected and unusable
ones have their results already; suspended ones wait for a decision. Everything that ends a plan
checks first and changes afterwards, so that what fails has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Self, TypeVar, overload

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.deciding import ask_declared
from .._call.decisions import Asking
from .._call.lifecycle import CallStatus
from .._call.line import CallStep, said_of, was_begun
from .._call.outcomes import (
    AskingCall,
    ContinueSuggestion,
    NotEnded,
    RecoverableToolCallIssue,
    SuspendedCall,
)
from .._call.steps import Steps, drive, drive_sync
from .._context.suspension import Decision
from .._hooks.pipeline import decide_each
from .._hooks.places import check_related
from .._text.immutable import Immutable
from .._text.json import shorten
from .._transcript.result import ToolResult
from .._transcript.transcript import CommittedRound, transcript_of
from ..errors import MisuseError
from .ending import (
    ResultLike,
    as_results,
    end_round,
    ended_within,
    show_results,
    unfinished,
)
from .rows import CallRow, Outer, Within, row_of, rows_of
from .sorted_calls import SortedCalls

if TYPE_CHECKING:
    from .._transcript.transcript import HasTranscript, Transcript
    from .events import OnEvent

T_co = TypeVar("T_co", covariant=True)


class OpenCalls(Generic[T_co]):
    """What a round and its plans have alike: calls that hooks can be asked about."""

    __slots__ = ()

    if TYPE_CHECKING:
        _WHAT: ClassVar[str]

        @property
        def recoverable_tool_call_issues(self) -> tuple[RecoverableToolCallIssue, ...]: ...

        def _to_decide(self) -> SortedCalls:
            """Return a plan in the making, if the round is open."""
            ...

        def _shown(self) -> SortedCalls: ...

    @property
    def continue_suggestion(self) -> ContinueSuggestion | None:
        """A hint that the model should go on, because some of its calls could not be used."""
        return ContinueSuggestion.of(self.recoverable_tool_call_issues)

    async def apply_hooks(
        self, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolRoundPlan[T_co]:
        """Send calls through hooks, and sort them by what is to be done.

        Args:
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Is told what was decided about each call, when all are decided; also of each
                that cannot be used, and why.

        Returns:
            A new plan; one that was there before stays as it is. Calls that are not pending in it,
            or were begun, are not touched. Where calls stand in `asked`, they alone are decided
            about, in all plans of the round.

        Raises:
            HookError: A hook raised, or gave something that is not a decision; what was asked can
                be asked again.
            RoundClosedError: The round has ended.
        """
        calls = self._to_decide()
        # Where no hook is async the generator ends without giving anything, and no coroutine is
        # made. At the first that has to be awaited, `drive` takes over and runs the rest of the
        # same steps.
        steps = decided(calls, hooks, on_event)
        for first in steps:
            await drive(steps, first)
        return closed(calls)

    def apply_hooks_sync(
        self, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> ToolRoundPlan[T_co]:
        """Do the same where every hook is sync.

        Raises:
            TypeError: A hook is async; the text names it.
        """
        calls = self._to_decide()
        steps = decided(calls, hooks, on_event)
        for first in steps:
            drive_sync(steps, first=first)
        return closed(calls)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise MisuseError(
            f"A {self._WHAT.lower()} is not copied or pickled: its round would end twice. Save it "
            "with `plan.dump_json()`, and go on with `load_plan`."
        )

    def _repr_html_(self) -> str:
        from .display import shown_html

        return shown_html(self._shown(), self._WHAT)

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        from .display import shown_rich

        return shown_rich(self._shown(), self._WHAT)


class ToolRoundPlan(Immutable, OpenCalls[T_co], SortedCalls):
    """Sort the calls of a round by what is to be done about them.

    Attributes:
        pending: Calls that your code runs, in the order of the turn.
        finished: Results that the plan has already, in the order of the turn; see `record`.
        in_doubt: Calls that were begun before the plan was loaded and have no result: they may
            have had their effects, and refuse to run.
        asking: Calls that asked for others, and come back once each of these has its result.
        asked: Calls that others asked for, and that no hooks were asked about: they cannot run.
        handled: Calls that a hook or gate answered.
        rejected: Calls that a hook or gate rejected.
        suspended: Calls that wait for a decision.
        recoverable_tool_call_issues: Calls that cannot be used.
        decisions: What every hook and gate decided, in order.
        edits: What people changed in the arguments of calls; see `amend`.
        toolset: The toolset that the calls were read with.
    """

    __slots__ = ()
    _WHAT = "Plan"

    if TYPE_CHECKING:
        toolset: type[T_co]

    @property
    def blocked(self) -> str | None:
        """The reason of the first gate that blocked a call, or None."""
        for each in self.rejected:
            if each.source == "gate":
                return each.reason
        return None

    @property
    def calls(self) -> tuple[CallRow, ...]:
        """A row for each call, in the order of the turn, whatever became of it.

        After those of the turn come those that calls asked for, in the order in which they did.

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
        return rows_of(self)

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """What happened to all calls of the round, by time.

        Those of one moment stand in the order of the turn, and each call's own in theirs.
        """
        found: list[tuple[str, CallStep]] = []
        for row in rows_of(self):
            at = ""
            for step in row.steps:
                at = step.at or at  # older releases did not write all times down
                found.append((at, step))
        return tuple(step for _, step in sorted(found, key=itemgetter(0)))

    def remaining(self) -> tuple[SuspendedCall, ...]:
        """Return the calls that still wait for a decision."""
        return self.suspended

    def within(self, call_id: str) -> tuple[Within, ...]:
        """List the calls that asked for a call, the outermost first.

        For a call that the model made itself the list is empty. If a program that the provider runs
        made the call, the program comes first, as `Within("p1", "program", {"code": ...})`.

        Args:
            call_id: The id of the call.

        Raises:
            MisuseError: There is no such call.
        """
        if self._any(call_id) is None:
            raise MisuseError(
                f"There is no call {shorten(call_id)} in this plan. `plan.calls` has the ids of "
                "all calls."
            )
        return Outer.of(self, call_id).named()

    # What may run together.

    def order(self) -> Mapping[str, tuple[str, ...]]:
        """Say which calls each open call waits for, since they touch the same: see `call.touches`.

        Whoever begins a call once these are answered ends as if the calls had been run one after
        the other: with the same reads, and the same state of the world. It is of the plan as it is
        now; a call that was answered holds nobody up, whatever the answer.

        Returns:
            For each call without an answer, by its id and in the order of the turn: the ids of the
            earlier calls that it waits for. One that another of these waits for already may be left
            out.
        """
        from .order import Order

        return Order.of(self).by_id()

    def batches(self) -> list[tuple[AnyToolCall, ...]]:
        """Return the calls that may be begun in groups: together within one, group after group.

        Each call is in the first group after all earlier calls that it meets. One that is begun,
        suspended or in doubt is in none, and holds up those that meet it, and those after these.

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
        from .order import Order

        order = Order.of(self)
        return [tuple(order.calls[at] for at in group) for group in order.batches()]

    # Deciding.

    def _to_decide(self) -> SortedCalls:
        self._state._check_open()
        return self.copy()

    def _shown(self) -> SortedCalls:
        return self

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
        """Show results to the after-hooks, those of handled calls and recorded ones included.

        Args:
            hooks: The hook set whose after-hooks are asked.
            results: The outcomes of calls that were run and are not recorded, as of `execute_all`.

        Returns:
            The results to commit. What a hook put in place of a handled call's result, or of
            a recorded one, is kept by the plan, because the plan adds those itself; about each of
            them a hook is asked once.

        Raises:
            HookError: A hook raised, or gave the result of another call.
        """
        self._state._check_open()
        return await drive(show_results(self, hooks, results))

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
        """Do the same where every after-hook is sync."""
        self._state._check_open()
        return drive_sync(show_results(self, hooks, results))

    # Recording, suspending and resuming.

    def record(self, outcome: ResultLike | NotEnded, /) -> None:
        """Take in the outcome of a call: from here on the plan has it, and a dump too.

        A result leaves `pending` or `in_doubt` for `finished`, wherever it was made; a call that
        has not ended here is ended by it. A call that suspended itself goes to `suspended`. A
        result for a call that could not be used takes the place of its automatic rejection.

        A call that asked for others goes to `asking`, and these to `asked`; once each of them has
        its result, it is pending again. One that asks for too much ends in an error instead, with
        the code `too_deep` (a fourth call within another) or `too_many_calls` (over 100 in one).

        Args:
            outcome: A result, a handled or rejected call, a call that suspended itself, or one
                that asks for others.

        Raises:
            CommitError: No open call is answered by it, or one that is answered already, or it
                belongs to another tool or other arguments; nothing changed.
            LifecycleError: A call that is not pending here waits, or asks for others; or one waits
                without a ticket.
            MisuseError: An after-hook has not seen the result of a call within another.
            RoundClosedError: The round has ended.
        """
        from .record import record

        self._state._check_open()
        record(self, outcome)

    def suspend(self, outcome: SuspendedCall, /) -> None:
        """Take in that a call suspended itself while it was run.

        Raises:
            LifecycleError: The call is not pending in this plan.
        """
        from .record import suspend

        self._state._check_open()
        suspend(self, outcome)

    def resume(
        self, decision: Decision, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Let a suspended call go on, or cancel it, as someone decided.

        Args:
            decision: The decision; delivered twice, it counts once.
            on_event: Is told how the call stands then.

        Returns:
            What became of the call, or None where this decision was taken in before.

        Raises:
            ResumeError: No suspended call is meant, or another version of it was decided on, or
                the decision's result does not fit, or it edits arguments, which is for `amend`;
                nothing changed.
        """
        from .resume import resume

        self._state._check_open()
        return self._tell_resumed(decision, resume(self, decision), on_event)

    def _tell_resumed(
        self, decision: Decision, outcome: HookOutcome | None, on_event: OnEvent | None
    ) -> HookOutcome | None:
        if on_event is not None and outcome is not None:
            from .events import tell_row

            kind: Literal["resumed", "edited"] = "resumed" if decision.edit is None else "edited"
            call = self._call(decision.call_id)
            assert call is not None
            tell_row(on_event, kind, row_of(call))
        return outcome

    async def amend(
        self, decision: Decision, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Let a suspended call go on with the arguments that someone edited.

        The edit is validated, and goes through execution hooks, gates, which get the decision, and
        before-hooks. The call is approved under the digest of the edited arguments: that a gate
        suspends it counts as answered, that one blocks it does not. Where a hook changes the
        arguments once more, the call waits again, under its new digest.

        Args:
            decision: The decision; delivered twice, it counts once. One without an edit is taken
                in as by `resume`, and no hook is asked.
            hooks: A `HookSet`, an object like one, or a plain function of a call.
            on_event: Is told how the call stands then.

        Returns:
            What became of the call, or None where this decision was taken in before.

        Raises:
            ResumeError: As for `resume`; or the edit does not fit the tool, the ticket has no use
                for one, or the call was decided on while hooks were awaited. Nothing changed.
            HookError: A hook raised, or gave something that is not a decision; nothing changed.
            RoundClosedError: The round has ended.
        """
        from .resume import amend

        self._state._check_open()
        return self._tell_resumed(decision, await drive(amend(self, decision, hooks)), on_event)

    def amend_sync(
        self, decision: Decision, hooks: Hooks, /, *, on_event: OnEvent | None = None
    ) -> HookOutcome | None:
        """Do the same where every hook is sync.

        Raises:
            MisuseError: A hook is async; the text names it, and nothing changed.
        """
        from .resume import amend

        self._state._check_open()
        return self._tell_resumed(decision, drive_sync(amend(self, decision, hooks)), on_event)

    def merge(self, other: ToolRoundPlan[Any], /) -> None:
        """Take in the state of another copy of this plan, such as one that another process loaded.

        Of each call the longer record is kept, if it goes on from the other one: what was run,
        answered or decided there counts here, too. The other plan is closed by this.

        Args:
            other: A plan that was loaded from the same text as this one, or from what this one's
                `dump_json` gave.

        Raises:
            PlanError: A call went on in both, or the plans are of different rounds; the text names
                each such call and both steps, and nothing changed.
            MisuseError: It is a plan of the same round, or a store keeps the other one.
            LifecycleError: A newer plan goes on with a call that goes on in the other.
            RoundClosedError: One of the rounds has ended.
        """
        from .record import merge

        merge(self, other)

    # Ending.

    def __enter__(self) -> Self:
        """Open a block at whose end the plan is discarded, if it is open still."""
        return self

    def __exit__(self, *error: object) -> None:
        if self._state._closed_by is None:
            self._state._leave(self.begun())

    def resolve(self, results: Iterable[ResultLike | NotEnded] = ()) -> CommittedRound:
        """Close the round without a transcript: validate, and give the turn with its results.

        Args:
            results: One for each pending call that the plan has no result of, in any order.

        Raises:
            CommitError: The results do not answer the calls; `faults` lists every reason, nothing
                has changed, and the plan can be used again.
            RoundClosedError: The round has ended.
        """
        self._state._check_open()
        committed = end_round(self, results)
        self._state._close("resolved")
        return committed

    def commit(
        self, target: HasTranscript | Transcript, results: Iterable[ResultLike | NotEnded] = ()
    ) -> CommittedRound:
        """Append the turn and one result for each of its calls, in order, or nothing at all.

        Args:
            target: A session or transcript.
            results: One for each pending call that the plan has no result of, in any order.

        Raises:
            CommitError: The results do not answer the calls; `faults` lists every reason, nothing
                has changed, and the plan can be used again.
            MisuseError: The round was opened in another place than the end of this transcript.
            RoundClosedError: The round has ended.
        """
        transcript, state = transcript_of(target), self._state
        if state._kept.closed_by is not None:
            state._check_open()
        state._check_place(transcript)
        committed = end_round(self, results)
        state._close("committed")
        transcript.append_round(committed)
        return committed

    def abort(
        self,
        target: HasTranscript | Transcript,
        reason: str,
        results: Iterable[ResultLike | NotEnded] = (),
    ) -> CommittedRound:
        """Close the round early, with an honest result for each call that has none.

        A call that was not started becomes `cancelled`; one that was started becomes
        `indeterminate`, because nobody knows what it did.

        Args:
            target: A session or transcript.
            reason: Why; the model reads it.
            results: The outcomes of calls that were run, as of `execute_all`.

        Raises:
            CommitError: The results do not fit the calls; nothing has changed.
            MisuseError: The round was opened in another place than the end of this transcript, or
                an after-hook was not asked about a result that is passed, or that the plan has.
            RoundClosedError: The round has ended.
        """
        transcript = transcript_of(target)
        self._state._check_open()
        self._state._check_place(transcript)
        answers = list(results)  # an iterator may still run some of the calls
        # Closed first: otherwise a call could begin after its result says "not executed".
        self._state._close("aborted")
        try:
            committed = self._given_up(reason, answers)
        except BaseException:
            self._state._kept.closed_by = None
            raise
        transcript.append_round(committed)
        return committed

    def _given_up(self, reason: str, answers: list[ResultLike | NotEnded]) -> CommittedRound:
        """Return the turn with an honest result for each call that has none."""
        if self._state._kept.tries:
            self.take_tries((), lambda each: was_begun(each._line))
        waiting = (*(each.call for each in self.suspended), *self.asking)
        given_up = (*self.pending, *self.in_doubt, *waiting)
        own = {call.metadata for call in given_up}
        # A result that says "not executed" must be true: the model may call the tool again because
        # of it. So whatever points to a beginning makes the outcome unknown.
        started = {call.id for call in given_up if was_begun(call._line)}
        # A pending call that is suspended was suspended by its tool, so the tool was started.
        started |= {call.id for call in self.pending if call.status in _STARTED}
        finished: list[ResultLike] = []
        for outcome in answers:
            if not isinstance(outcome, SuspendedCall | AskingCall):
                finished.append(outcome)
            elif outcome.was_started and outcome.call.metadata in own:
                started.add(outcome.call.id)  # has no result, but it was started
        within: dict[str, ToolResult] = {}
        if inner := self._state._kept.inner:
            results, _ = as_results(finished)
            within = {each.id: each for each in results if each.id in inner}
            finished = [each for each in results if each.id not in inner]
        filled = {
            call.id: unfinished(call, call.id in started, reason, ended_within(call, within))
            for call in given_up
        }
        return end_round(self, finished, unfinished=filled)

    def discard(self) -> None:
        """Close the round and forget the turn: the transcript stays as it is.

        Raises:
            RoundClosedError: The round has ended.
        """
        self._state._close("discarded")

    def dump_json(self, *, key: bytes | None = None, binding: str | None = None) -> str:
        """Close the round here and save it, to be loaded by `AppTools.load_plan(text)`.

        Args:
            key: A secret to seal the text with, so that a change of it is noticed.
            binding: What the plan belongs to, such as the ids of the conversation and the turn: it
                is sealed with the plan, and loads with the same text only.

        Raises:
            RoundClosedError: The round has ended.
            MisuseError: A store keeps the plan: write `store.save(id, plan, version=version)`.
            LifecycleError: A newer plan of the round goes on with a call.
            PlanError: A call has ended or waits here, and the plan was not told: see `record`. Or
                a ticket or payload is not JSON data.
        """
        from .plan_json import dump_plan

        self._state._check_open()
        text = dump_plan(self, key, binding)
        self._state._close("dumped")
        return text

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, name))} {name}"
            for name in (*_NAMED, "asking", "asked")
            if name in ("pending", "handled", "rejected", "suspended") or getattr(self, name)
        )
        closed = f", {self._state._closed_by}" if self._state._closed_by else ""
        return f"<plan of {self.toolset.__qualname__}: {counts}{closed}>"


_NAMED = ("pending", "finished", "in_doubt", "handled", "rejected", "suspended")
_STARTED = (CallStatus.SUSPENDED, CallStatus.FAILED, CallStatus.SUCCEEDED)


def closed(calls: SortedCalls) -> ToolRoundPlan[Any]:
    """Make a plan of sorted calls: from here on they change by what a plan offers only."""
    plan: Any = calls
    # The record is not copied: it becomes the plan by a change of its class. A copy would cost as
    # much as asking a hook.
    plan.__class__ = ToolRoundPlan
    made: ToolRoundPlan[Any] = plan
    if calls._state._plans is not None:
        calls._state._plans.append(made)
    return made


def decided(calls: SortedCalls, hooks: Hooks, on_event: OnEvent | None = None) -> Steps[None]:
    """Ask hooks about the pending calls, and sort those.

    It gives no value: one that a generator ends with is raised to whoever runs it, and costs more
    than a hook does. Run in a `for` it needs a coroutine only where a hook is awaited.
    """
    asked, was_decided = calls.pending, calls._is_decided
    if inner := calls._state._kept.inner:
        from .inner import decide_asked

        if calls.asked:
            yield from decide_asked(calls, hooks, on_event)
            return
        # What was asked for is decided about once, and who asked for it has begun.
        asked = tuple(
            call for call in asked if call.id not in inner and not any(said_of(call._line, "asks"))
        )
    if not asked:  # else it is found by the first call
        check_related(hooks, calls.toolset)
    ids: set[str] = set()
    if on_event is not None:
        ids.update(call.id for call in asked if call._stage.may_begin)
    asking = Asking()
    yield from decide_each(asked, hooks, asking)
    calls.note_hooks(hooks)
    take_in(calls, asking)
    if on_event is not None:
        from .events import tell_decided

        if not was_decided:
            ids.update(issue.metadata.id for issue in calls.recoverable_tool_call_issues)
        tell_decided(calls, on_event, ids)


def take_in(calls: SortedCalls, asking: Asking) -> None:
    """Let a plan in the making hold what hooks said, now that no hook can raise any more."""
    if asking.branches:
        # The branches take the places of their calls in this plan alone. An older plan keeps the
        # objects that it has, so what it shows is still what it decided.
        made = {call.id: call for call in asking.branches}
        calls._calls = tuple([made.get(call.id, call) for call in calls._calls])
        calls._by_id = calls._filed = calls._lists = None
        for branch in asking.branches:
            branch._branch.family.moved = calls._state._moved
    asking.write()
    calls._askings = (*calls._askings, asking)
    calls._is_decided = True


def unasked(calls: SortedCalls) -> Steps[ToolRoundPlan[Any]]:
    """Make a plan without hooks: rules and approvals that are declared are asked."""
    asking = Asking()
    for call in calls.pending:
        if call.selector.asks and call._stage.may_begin:
            yield from ask_declared(call, asking)
    was_decided = calls._is_decided
    take_in(calls, asking)
    calls._is_decided = was_decided
    return closed(calls)
