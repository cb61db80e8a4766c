"""Writing the history of a call, and the branches of it that the plans of one round hold.

**Branches.** Two plans of one round share a call that their hooks let pass. What hooks change,
settle or suspend is a branch: another object, that begins with the history so far, so that the
older plan stays as it is. As long as hooks only decide, each branch shows its own history.

A *shared step* (started, abandoned, decided, recorded, an end or a wait without a hook) happens to
the call itself, which is one: from there on all branches show the history that has this step. Each
shared step starts a new generation; a branch of an older generation shows the history of the
current branch instead of its own. So what had been decided on another branch is void, and nobody
has to find the branches in order to tell them. For example:

    plan 1    c1  proposed                   generation 0
    plan 2    c1  proposed  changed          generation 0, a branch: a hook changed the input
    run it    c1  proposed  changed  started   a shared step, generation 1: plan 1 shows it as well
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .._text.immutable import settle
from .._text.on_demand import ONCE
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError
from .history import (
    END_OF,
    HELD,
    HOOK_PHASES,
    NO_ROUND,
    ON_RECORD,
    REQUESTED_BY,
    RULED_BY,
    Answer,
    CallRound,
    CallStep,
    RequestedStep,
    Step,
    answers_in,
    end_of,
    iso_time,
    leads_to,
    new_history,
    new_step,
    steps_of_kind,
    time_after,
    was_begun,
    with_try,
)
from .lifecycle import AGAIN, DECIDE, STAGES, CallStatus, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self, Unpack

    from .._context.inner import Inner
    from .._context.suspension import Decision, SuspendTicket
    from .history import Said
    from .lifecycle import Stage, StepKind

_SUSPENDED = STAGES["suspended"]
_RUNNING = STAGES["running"]
_NEW = STAGES["new"]


class BranchGroup:
    """Hold the branches of one call together.

    Attributes:
        generation: How many shared steps there were.
        current: The branch with the last shared step: all others show its history.
        members: All branches.
        moved_ids: Where the round keeps the ids of calls that got a shared step: such a call may
            belong to another list of each plan now.
    """

    __slots__ = ("current", "generation", "members", "moved_ids")

    def __init__(self, first: Any) -> None:
        self.generation = 0
        self.current = first
        self.members: list[Any] = [first]
        self.moved_ids: list[str] | None = None


class Branch(NamedTuple):
    """Say which branch of a call an object is.

    Attributes:
        group: All branches of the call.
        generation: The generation of the group that its history belongs to.
        parent: The call that it branched from.
        newer: The branch of it that a newer plan holds.
        original: The call that this one is a copy of, else None. No plan holds a copy.
        is_draft: Whether hooks decide about this copy. A copy made by `copy.copy` is not a draft.
        is_being_made: Whether the branch is still being made. Until then it shows its own history.
    """

    group: BranchGroup
    generation: int
    parent: Any = None
    newer: Any = None
    original: Any = None
    is_draft: bool = False
    is_being_made: bool = False


class BaseCall:
    """Keep the history of one call; what it was called with is kept by `CallState`.

    A call of no tool is this alone: one that cannot be used, or that gave the final answer. So is
    one of a saved plan that is only looked at, without its tools.

    Args:
        metadata: What the model sent.
        history: What happened to it.
        call_round: The round that it belongs to.
    """

    # `_raw` has one of three forms: the steps of the history, the time of `proposed` alone, or one
    # of these with the times of `started` and `ended`, and the result. Most histories are never
    # read, so their steps are made of the times only when somebody reads them.
    __slots__ = ("_branch", "_metadata", "_raw", "_round", "_selector")

    metadata: ToolMetadata
    selector: Any
    _metadata: ToolMetadata
    _selector: Any
    _raw: tuple[Any, ...]
    _branch: Branch | None
    _round: CallRound

    def __init__(
        self, metadata: ToolMetadata, history: tuple[Step, ...], call_round: CallRound = NO_ROUND
    ) -> None:
        self._metadata = metadata
        self._selector = None
        self._raw, self._branch, self._round = history, None, call_round

    if TYPE_CHECKING:

        def _clone(self) -> Self:
            """Make a call with the same history and input, which is no branch of this one."""
            ...

    def _adopt(self, other: Any) -> None:
        """Take over the outcome of a draft or copy: all branches show it from now on."""
        current = self._current
        current._own_history = other._own_history
        if current._branch is not None:
            current._start_generation()

    @property
    def id(self) -> str:
        """The provider's id of the call."""
        return self.metadata.id

    @property
    def name(self) -> str:
        """The wire name of the tool."""
        return self.metadata.name

    @property
    def _asked_by(self) -> str | None:
        """The id of the call that requested this one; None for a call of the turn."""
        return self._history[0].by

    @property
    def _own_history(self) -> tuple[Step, ...]:
        """The history of this very branch; `_history` is the one that all branches show."""
        raw = self._raw
        return raw if raw[0].__class__ is Step else self._write_out()

    @_own_history.setter
    def _own_history(self, steps: tuple[Step, ...]) -> None:
        self._raw = steps

    def _write_out(self) -> tuple[Step, ...]:
        """Make a step of each time that was kept alone."""
        with ONCE:
            raw: tuple[Any, ...] = self._raw
            run: tuple[Any, ...] = ()
            if raw[0].__class__ is tuple:
                raw, run = raw[0], raw[1:]
            if raw[0].__class__ is not Step:
                raw = new_history(raw[0])
            if run:
                at = time_after(raw[-1], run[0])
                started = ("started", _RUNNING, at, None, None, None, None, None, None)
                raw = (*raw, new_step(started))
            if len(run) > 1:
                at, said = time_after(raw[-1], run[1]), run[2].status
                ended = ("ended", END_OF[said], at, None, None, said, None, None, run[2])
                raw = (*raw, new_step(ended))
            self._raw = raw
        return raw

    @property
    def _current(self) -> Self:
        """The branch whose history this call shows: nearly always itself."""
        branch = self._branch
        if branch is None or branch.generation == branch.group.generation or branch.is_being_made:
            return self
        current: Self = branch.group.current
        return current

    # `_history` and `_stage` are read all the time, and a call nearly always has no branches.

    @property
    def _history(self) -> tuple[Step, ...]:
        if self._branch is not None:
            return self._current._own_history
        raw = self._raw
        return raw if raw[0].__class__ is Step else self._write_out()

    @property
    def _stage(self) -> Stage:
        current = self if self._branch is None else self._current
        raw = current._raw
        if raw[0].__class__ is Step:
            last: Step = raw[-1]
            return last.stage
        if len(raw) > 2:
            return END_OF[raw[-1].status]
        return _RUNNING if len(raw) == 2 else _NEW

    @property
    def status(self) -> CallStatus:
        """How far the call has come; it changes only as the lifecycle table allows."""
        return self._stage.status

    def _asked_for(self) -> Iterator[BaseCall]:
        """Give the calls that this one requested, each before those that it requested itself."""
        for step in self._history:
            if step.kind == "requested":
                for each in step.detail.calls:
                    yield each
                    yield from each._asked_for()

    def _shown_step(self, step: Step, arguments: Any = None) -> CallStep:
        """Give one step of the history as users see it, with the arguments from there on."""
        detail, said, reason, id = step.detail, step.verdict, step.reason, None
        if step.kind == "suspended":
            said, id, reason = None, detail.id, detail.message or detail.action
        elif step.kind == "decided":
            id, reason = detail.decision_id, detail.reason
        elif step.kind == "requested":
            reason = ", ".join(step.detail.ids)
        return CallStep(
            self.id,
            self.name,
            step.kind,
            iso_time(step.at),
            step.by,
            step.phase,
            said,
            reason,
            id,
            step.digest,
            arguments,
        )

    # Writing.

    def _append(self, kind: StepKind, *, at: float | None = None, **said: Unpack[Said]) -> None:
        """Write one step, if the table has it: all that happens to a call is written here.

        A branch that is being made takes what hooks say about it, whatever happens to the call
        meanwhile: if the call is started meanwhile, the branch counts for nothing.

        Args:
            kind: What happens.
            at: When it happened; by default now.
            said: The other fields of the step; of an `ended`, `verdict` is its status.

        Raises:
            LifecycleError: The table lacks it, or a newer plan goes on with the call; nothing
                changed.
        """
        with ONCE:
            current, branch = self._current, self._branch
            is_being_made = branch is not None and branch.is_being_made
            steps = current._own_history
            last, phase, what = steps[-1], said.get("phase"), said.get("verdict")
            stage = leads_to(steps, kind, phase, what)
            end = END_OF[what or ""] if stage is None and kind == "ended" else None
            if is_being_made:
                stage = stage or end or last.stage
            elif stage is None:
                raise self._refused(kind, None if end is None else end.status)
            elif branch is not None and phase is None and kind in _ONLY_NEWEST:
                self._check_newest(kind)
            make = RequestedStep if kind == "requested" else Step
            step = make(kind, stage, time_after(last) if at is None else at, **said)
            current._own_history = (*steps, step)
            # What hooks say, and a changed input, belong to the branch. All else did happen to the
            # call, whichever of its objects it was done to.
            is_shared = kind != "changed" and phase != "before" and phase not in HOOK_PHASES
            if is_shared and not is_being_made and current._branch is not None:
                current._start_generation()
            if (
                branch is not None
                and branch.is_draft
                and kind == "started"
                and self._round is not NO_ROUND
            ):
                self._round.note_try(self)

    def _refused(self, kind: StepKind, target: CallStatus | None = None) -> LifecycleError:
        if self._stage.name in _INNER_STAGES:
            return self._refused_within(kind)
        if kind == "started" and self.status is CallStatus.RUNNING:
            return LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was started already, and a call starts "
                "once: it is running, or its tool raised, or nobody knows what became of it. "
                "End it, as with `call.fail(message)` or `call.indeterminate(reason)`; "
                "`call.retry()` makes a new call of the same metadata and input, for another try."
            )
        if target is None:
            target = _TARGETS.get(kind)
        present = self.status
        if kind == "ended" and present.is_terminal:
            assert target is not None
            cannot = "already" if target is present else f"and cannot become {target}"
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present} {cannot}: a call gets one "
                f"result. Use the one that you have; {AGAIN}."
            )
        if target is None:
            then = f"{AGAIN}."
            if self._stage is _SUSPENDED:
                then = DECIDE
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present}, so it cannot be {kind} any "
                f"more. {then}"
            )
        return refused(present, target, call_id=self.id, tool=self.name)

    def _refused_within(self, kind: StepKind) -> LifecycleError:
        """Refuse a step of a call that requests others, comes back, or was requested."""
        named = f"Call {self.id!r} of tool `{self.name}`"
        if self._stage.name == "unreviewed":
            return LifecycleError(
                f"{named} was requested by call {self._asked_by!r}, and nobody reviewed it. "
                "Let hooks do so, with `await plan.apply_hooks(hooks)` or `await run(plan, "
                "hooks=hooks)`."
            )
        if self._stage.name == "awaiting":
            asked = ", ".join(next(steps_of_kind(self._history, "requested")).detail.ids)
            return LifecycleError(
                f"{named} waits for calls that it requested ({asked}), and comes back by itself "
                "once each of them has its result. Decide about these, and run them."
            )
        return LifecycleError(
            f"{named} comes back from calls that it requested, so it cannot be {kind} any more. "
            "Run it, or give it a result."
        )

    # Branches.

    def _start_generation(self) -> None:
        """Let all branches show the history of this one from now on; `ONCE` is held."""
        branch = self._branch
        assert branch is not None
        group = branch.group
        if group.moved_ids is not None:
            group.moved_ids.append(self.id)
        group.generation += 1
        group.current = self
        self._branch = branch._replace(generation=group.generation, newer=None)

    def _new_branch(self) -> Self:
        """Make a branch: a call of its own whose history goes on from here."""
        with ONCE:
            current = self._current
            if current._branch is None:
                current._branch = Branch(BranchGroup(current), 0)
            group, generation = current._branch.group, current._branch.generation
            made = self._clone()
            made._branch = Branch(group, generation, current, is_being_made=True)
            group.members.append(made)
        return made

    def _draft(self) -> Self:
        """Make a call with the same history that no plan holds; it may start if this one may."""
        made = self._clone()
        made._branch = Branch(BranchGroup(made), 0, original=self, is_draft=True)
        return made

    def _give_up(self, call: Self) -> None:
        """Let a draft start no more: the call itself goes on, and would run a second time."""
        assert self._branch is not None
        self._branch = self._branch._replace(newer=call, is_being_made=False)

    def _finish_branch(self, *, counts: bool) -> None:
        """End the making of a branch, or of a draft.

        Args:
            counts: Whether a newer plan holds it; the call that it branched from is refused then.
        """
        assert self._branch is not None
        branch = self._branch = self._branch._replace(is_being_made=False)
        if not counts:
            return
        parent = branch.parent
        stage = parent._own_history[-1].stage
        if branch.generation != branch.group.generation or not (stage.may_start and stage.may_ask):
            # A shared step came while hooks reviewed the call, so what was decided here is void.
            self._branch = branch._replace(generation=_OUTDATED)
            return
        if parent._branch.newer is None:
            parent._branch = parent._branch._replace(newer=self)

    def _detach(self) -> None:
        """Let the call that this one branched from go on: no plan holds this one any more."""
        branch = self._branch
        if branch is not None and branch.parent is not None:
            parent = branch.parent
            if parent._branch.newer is self:
                parent._branch = parent._branch._replace(newer=None)

    def _check_newest(self, kind: StepKind | None = None) -> None:
        """Refuse to do anything with a call that a newer plan goes on with in its own way.

        Raises:
            LifecycleError: A newer plan does; the error says what was decided there.
        """
        newer = self._newer(kind)
        if newer is None:
            return
        own = (
            newer._own_history[len(self._own_history) :]
            if len(newer._own_history) > len(self._own_history)
            else ()
        )
        step = next((s for s in own if s.kind in ("ended", "suspended", "changed")), None)
        who = "hooks" if step is None or step.by is None else f"`{step.by}`"
        what = "decided about" if step is None else step.kind
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` belongs to an older plan: {who} {what} it "
            "since, in a newer plan of the same round. Go on with the newer plan."
        )

    def _newer(self, kind: StepKind | None) -> BaseCall | None:
        """Find the branch by which a newer plan goes on with the call, or with what it shows."""
        # A plan may hold a branch of an older generation, which shows the history of another. A
        # newer plan may go on with either of the two.
        for member in (self, self._current):
            each: Any = member
            while each is not None and each._branch is not None:
                newer: BaseCall | None = each._branch.newer
                if newer is not None:
                    return newer._newer(kind) or newer
                # A decision about a draft changes nothing in its original, so the search ends. To
                # begin a draft is to start the call itself, so the original is looked at then.
                is_free = each._branch.is_draft and kind != "started"
                each = None if is_free else each._branch.original
        return None

    def __copy__(self) -> Self:
        # One call, however many objects: what is done to either is done to both.
        with ONCE:
            made = self._new_branch()
            branch = made._branch
            assert branch is not None
            made._branch = branch._replace(original=branch.parent, is_being_made=False)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def retry(self) -> Self:
        """Return a new call of the same metadata and input, for another try.

        If a hook or a person ended the call, the new one is not run: give it its result by hand.

        Raises:
            LifecycleError: The call waits for a decision, which a new one would go around; or a
                newer plan goes on with it.
        """
        self._check_newest()
        # Of `proposed reviewed started ended` a new try keeps `proposed reviewed`, and adds
        # `retried`. So the decision of a person need not be asked for twice, and the old run is not
        # in the new history, but for the fact that it was started: it may have had effects.
        made = self._clone()
        end = end_of(made._own_history)
        steps = [s for s in made._own_history if s.kind not in _OF_A_RUN and s.phase != "after"]
        last = steps[-1]
        if last.stage is _SUSPENDED:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` waits for a decision, so it cannot be "
                "made again. Take the decision in with `plan.resume(decision)`, or `plan.abort`."
            )
        by, phase = (None, None) if end is None or end.phase is None else (end.by, end.phase)
        stage = last.stage.leads.get("retried", last.stage)
        again = Step("retried", stage, time_after(last), by, phase)
        if len(steps) < len(made._own_history) and was_begun(made._own_history):
            again = again._replace(detail=True)
        made._own_history = (*steps, again)
        if phase is not None:
            made._branch = Branch(BranchGroup(made), 0)
        if self._round is not NO_ROUND:
            self._round.note_try(made)
        return made

    def _take_try(self, other: BaseCall) -> bool:
        """Let the history tell of another try, if it may follow."""
        with ONCE:
            current = self._current
            steps = with_try(current._own_history, other._own_history)
            if steps is None:
                return False
            current._adopt(other)
            current._own_history = steps
        return True

    # Whether it may start.

    def _check_asked(self) -> None:
        """Make sure that hooks let the call pass, and that its tool's rules and approval did.

        Raises:
            LifecycleError: It was not, or its arguments have changed since.
        """
        if self._branch is None and not self.selector.needs_review:
            return
        answered = next(steps_of_kind(self._history, "retried"), None)
        if answered is not None and answered.phase is not None:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was decided by "
                f"{'a hook' if answered.by is None else f'`{answered.by}`'}, so another try of it "
                "is not run. Give it a result by hand, or let the model make another call."
            )
        if not self.selector.needs_review:
            return
        last = self._last_asked()
        if last is not None and last.kind == "reviewed":
            return
        # A person decided about these very arguments, which rules reviewed before. If the
        # tool needs an approval, a gate has to have asked: the question of a rule is another one.
        needs_gate = bool(self.selector.approval)
        if any(each.is_of_gate if needs_gate else each.is_of_hooks for each in self._answers):
            return
        option, why, then = "rule=", "the rule has not reviewed it", "which do that."
        if self.selector.approval:
            option, why = "needs_approval=", "nobody reviewed it"
            then = "which review it; if it waits, give the plan the decision of a person."
        if last is not None:
            why = "its arguments were changed since"
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` is not started: the tool is declared with "
            f"`{option}`, and {why}. Take the call from `round.plan()`, `await "
            f"round.apply_hooks(hooks)` or `await call.hook(hooks)`, {then}"
        )

    def _last_asked(self) -> Step | None:
        """Return the last step by which its rules and approval let it pass, or that undid that."""
        # Backwards, so that the latest counts: `reviewed changed started` is refused, since whoever
        # reviewed it has seen other arguments, and `changed reviewed started` is not.
        step: Step
        for step in reversed(self._history):
            if step.kind == "changed" or (
                step.kind == "reviewed" and step.by in (REQUESTED_BY, RULED_BY)
            ):
                return step
        return None

    @property
    def _is_ruled(self) -> bool:
        """Whether rules reviewed the arguments that a person decided about."""
        last = self._last_asked()
        was_asked = last is not None and last.kind == "reviewed"
        return any(was_asked or answer.is_of_hooks for answer in self._answers)

    def _hold(self) -> None:
        """Refuse to start the call until a store has recorded its start."""
        self._round = self._round.copy_as(CallRound, HELD)

    def _let_go(self, key_prefix: str, started: tuple[float | None, str | None]) -> None:
        """Let a held call run, with the start and the owner that the store has recorded."""
        self._round = self._round.copy_as(CallRound, ON_RECORD, key_prefix)
        self._round.started = started

    def _check_round_open(self) -> None:
        """Refuse to start a call that goes on elsewhere, or whose round is over.

        Raises:
            LifecycleError: It does, or is; the error says where to run it.
        """
        closed_by = self._round.closed_by
        if closed_by == HELD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is kept in a store, and that it runs is "
                "not on record. Claim it with `store.claim(toolset)`, and run what "
                "`store.start(claim)` gives."
            )
        if closed_by is not None and closed_by != ON_RECORD:
            what = _GOES_ON_IN.get(
                closed_by, "so nobody would take its outcome. Let the model make another call"
            )
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is not started: its round was "
                f"{closed_by}, {what}."
            )

    # What was asked and decided.

    @property
    def _answers(self) -> tuple[Answer, ...]:
        steps = self._history
        return answers_in(steps) if len(steps) > 2 else ()

    def _answer_of(self, *, tool: bool) -> Answer | None:
        return next((each for each in self._answers if each.is_of_tool is tool), None)

    @property
    def approval(self) -> Decision | None:
        """The decision by which a suspended call goes on, if that is how it came here."""
        answers = self._answers
        return answers[0].decision if answers else None

    @property
    def resume(self) -> Decision | None:
        """The decision by which the call goes on, as the tool is told about it.

        That is the decision about a ticket whose mode passes it to the tool, else about the tool's
        own ticket. A decision about any other ticket of a gate is not for the tool, and is in
        `approval`.
        """
        return None if (answer := self._for_tool()) is None else answer.decision

    @property
    def ticket(self) -> SuspendTicket | None:
        """The ticket that the decision in `resume` is about."""
        return None if (answer := self._for_tool()) is None else answer.ticket

    def _for_tool(self) -> Answer | None:
        # Two may have asked, a gate and the tool. The tool hears what it asked itself, unless the
        # ticket of either says that the decision is meant for it.
        answers = sorted(self._answers, key=lambda each: not each.is_of_tool)
        passed_on = next((each for each in answers if each.is_passed_on), None)
        return passed_on or next((each for each in answers if each.is_of_tool), None)

    @property
    def suspension_id(self) -> str | None:
        """The id of the suspension that the call comes from: the tool's own, if it has one."""
        answer = self._asked_last()
        return None if answer is None else answer.ticket.id

    @property
    def suspension_reason(self) -> str | None:
        """Why the call was suspended: the action of its ticket."""
        answer = self._asked_last()
        return None if answer is None else answer.ticket.action

    @property
    def _inner(self) -> Inner | None:
        """The outcomes of the calls that this one requested, if it comes back from any."""
        asks = [step.detail for step in self._history if step.kind == "requested"]
        inner: Inner | None = asks[-1].inner(asks) if asks else None
        return inner

    def _asked_last(self) -> Answer | None:
        """Return the decision that the tool gets: about its own ticket, else the only one."""
        answers = self._answers
        return next((each for each in answers if each.is_of_tool), answers[0] if answers else None)


_GOES_ON_IN: Final = {
    "dumped": "and goes on there. Load it, and run the call that it has",
    "saved": "and goes on there. Load it, and run the call that it has",
    "requested": "and goes on within a call that requested it. Run the calls of that call's plan",
}
_OUTDATED: Final = -1  # of no generation
_INNER_STAGES: Final = ("unreviewed", "awaiting", "returning")
_ONLY_NEWEST: Final = ("started", "decided", "suspended", "requested", "ended")
_OF_A_RUN: Final = ("started", "abandoned", "ended", "recorded", "retried")
_TARGETS: Final = {
    "started": CallStatus.RUNNING,
    "suspended": CallStatus.SUSPENDED,
    "decided": CallStatus.RESUMING,
}


SETTLED: Final = "a call is what the model sent. Change its input by `call.input = ...`."
settle(BaseCall, SETTLED, "metadata", "selector")
