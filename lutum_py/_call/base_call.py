"""The history of a call, and the one way to write it.

A history is a dict that maps 0, 1, 2 … to *entries*: tuples of the steps that happen together.
There is one way to write, `entries.setdefault(len(entries), entry) is entry`. CPython does it at
once, with and without a global lock, so each number has one writer: of two threads that start a
call, one gets the number. The loser reads again, and asks the table whether its steps may still
follow. So there is no lock, and no second place that says how far a call has come.

    0  proposed
    1  reviewed (guard: suspend)  suspended
    2  decided (resume)
    3  started                                <- the other thread finds this, and is refused

Read an entry by its number; never iterate over a history, since others may append.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from .._text.immutable import settle
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError
from .history import (
    DECIDE,
    END_OF,
    HELD,
    NO_ROUND,
    ON_RECORD,
    PICKLED,
    REQUESTED_BY,
    RULED_BY,
    SPENT,
    STAGES,
    Answer,
    CallRound,
    CallStatus,
    CallStep,
    Entry,
    Move,
    Said,
    Step,
    again,
    answers_in,
    as_it_left,
    end_of,
    iso_time,
    move,
    refused,
    stage_after,
    steps_in,
    steps_of_kind,
    this_try,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self, Unpack

    from .._context.inner import Inner
    from .._context.suspension import Decision, SuspendTicket
    from .history import Stage, StepKind

_SUSPENDED = STAGES["suspended"]
_RESUMING = STAGES["resuming"]
_AT_WORK: Final = (STAGES["running"], STAGES["in_doubt"])


class Reviewing(Protocol):
    """What a draft knows of the review that it was made for: see `deciding.Review`."""

    target: Any
    since: int
    edited: Any

    def start(self, draft: Any, moves: tuple[Move, ...]) -> int | None:
        """Start the call itself, because a function started its draft."""
        ...


class BaseCall:
    """Keep the history of one call; what it was called with is kept by `CallState`.

    A call of no tool is this alone: one that cannot be used, or that gave the final answer. So is
    one of a saved plan that is only looked at, without its tools.

    Args:
        metadata: What the model sent.
        entry: What happened to it so far.
        call_round: The round that it belongs to.
    """

    # _entries  the history
    # _flat     all steps of the history, and how many entries they are of
    # _review   of a draft, the review that it was made for
    __slots__ = ("_entries", "_flat", "_metadata", "_review", "_round", "_selector")

    metadata: ToolMetadata
    selector: Any
    _metadata: ToolMetadata
    _selector: Any
    _entries: dict[int, Entry]
    _flat: tuple[int, tuple[Step, ...]] | None
    _review: Reviewing | None
    _round: CallRound

    def __init__(
        self, metadata: ToolMetadata, entry: Entry, call_round: CallRound = NO_ROUND
    ) -> None:
        self._metadata = metadata
        self._selector = None
        self._entries = {0: entry}
        self._flat = self._review = None
        self._round = call_round

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

    # Reading.

    @property
    def _last(self) -> Entry:
        entries = self._entries
        return entries[len(entries) - 1]

    @property
    def _history(self) -> tuple[Step, ...]:
        """All steps, in order."""
        entries, count = self._entries, len(self._entries)
        since, steps = self._flat or (0, ())
        if since < count:  # another thread may have read more than was there a moment ago
            steps = steps_in(entries, count, steps, since)
            self._flat = (count, steps)
        return steps

    @property
    def _stage(self) -> Stage:
        entries = self._entries
        stage: Stage = entries[len(entries) - 1][0].stage
        return stage

    @property
    def _input_at(self) -> int:
        """The number of the entry that has the present input."""
        entries = self._entries
        return entries[len(entries) - 1][2]

    @property
    def status(self) -> CallStatus:
        """How far the call has come; it changes only as the lifecycle table allows."""
        stage = self._stage
        if stage.name == "elsewhere":
            stage = as_it_left(self._history)[-1].stage
        return stage.status

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

    def _append(self, kind: StepKind, **said: Unpack[Said]) -> None:
        """Write one step, if the table has it; see `_append_all`."""
        self._append_all((move(kind, **said),))

    def _append_all(
        self, moves: tuple[Move, ...], since: int | None = None, run: int | None = None
    ) -> int | None:
        """Write what happens together as one entry: all that happens to a call is written here.

        Args:
            moves: The steps; the time of one that has none is now.
            since: How many entries there were when this was decided, if it goes by them.
            run: Which run they are about, if they are about one: the number of its start.

        Returns:
            The number of the entry; None if the history has grown since, and nothing was written.

        Raises:
            LifecycleError: The table lacks one of them, and nothing was written; or the run is
                over, and its outcome was written as `late`.
        """
        review = self._review
        if review is not None and moves[-1][0] == "started":
            draft: Any = self
            return review.start(draft, moves)
        entries = self._entries
        while True:
            number = len(entries)
            if since is not None and number != since:
                return None
            led_to, start, input, _, _ = entries[number - 1]
            if run is not None and (start != run or led_to not in _AT_WORK):
                raise self._late(moves[-1])
            for each in moves:
                key, stage = each[1], led_to.stage
                after = stage.leads.get(key) or stage_after(led_to, key)
                if after is None:
                    raise self._refused(each[0], END_OF[key].status if key in END_OF else None)
                if after is not stage:
                    led_to = after
                if key in _NOTED:
                    if key == "started":
                        start = number
                    elif key == "changed":
                        input = number
                    elif key == "requested":
                        led_to = each[-1]
                    else:
                        self._freeze()
            entry = (led_to, start, input, time(), moves)
            if entries.setdefault(number, entry) is entry:
                return number

    def _freeze(self) -> None:
        """Let nobody who was given the input change it any more, since the call will wait."""

    if TYPE_CHECKING:

        def _changes_unstarted(self) -> tuple[Move, ...]:
            """Describe what was done in place to the input of a call that ends without a start."""
            ...  # one of no tool has ended from the first

    def _late(self, outcome: Move) -> LifecycleError:
        """Note what a run came to that is over, and return the error for whoever ran it."""
        kind, _, _, _, _, verdict, _, _, detail = outcome
        if kind == "ended":
            self._append("late", verdict=verdict, detail=detail)
        else:
            self._append("late", verdict=kind)
        return self._refused("ended", over=True)

    def _is_in_run(self, run: int) -> bool:
        """Whether a run is in progress, by the number of its start."""
        led_to, present, *_ = self._last
        return present == run and led_to in _AT_WORK

    def _refused(
        self, kind: StepKind, target: CallStatus | None = None, *, over: bool = False
    ) -> LifecycleError:
        stage = self._stage
        if over and stage.name != "elsewhere":
            return LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is {self.status} by now: the run that "
                "this is the outcome of is over. The outcome is in `call.steps`, as `late`."
            )
        if stage.name in _INNER_STAGES:
            return self._refused_within(kind)
        if stage.name == "elsewhere":
            return LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` goes on elsewhere, so it cannot be {kind} "
                "here. Load the plan that was saved, and go on with the call that it has."
            )
        if kind == "started" and self.status is CallStatus.RUNNING:
            return LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was started already, and a call starts "
                "once: it is running, or its tool raised, or nobody knows what became of it. "
                "End it, as with `call.fail(message)` or `call.indeterminate(reason)`."
                f"{self._again()}"
            )
        if target is None:
            target = _TARGETS.get(kind)
        present = self.status
        if kind == "ended" and present.is_terminal:
            assert target is not None
            cannot = "already" if target is present else f"and cannot become {target}"
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present} {cannot}: a call gets one "
                f"result. Use the one that you have.{self._again()}"
            )
        if target is None:
            then = f" {DECIDE}" if stage is _SUSPENDED else self._again()
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present}, so it cannot be {kind} any "
                f"more.{then}"
            )
        return refused(present, target, self._again(), call_id=self.id, tool=self.name)

    def _again(self) -> str:
        """Say that the call can be tried again, if it can."""
        return again(self.status) if self._round.closed_by in (None, HELD) else ""

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

    def _grown(self, since: int) -> LifecycleError:
        """Say what happened to the call while hooks reviewed it."""
        entries = self._entries  # it may have grown before it was first looked at
        kind, _, _, by, *_ = entries[min(since, len(entries) - 1)][4][-1]
        who = "" if by is None else f" by `{by}`"
        return LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` was {kind}{who} while hooks reviewed it, "
            f"and is {self.status} now: what they said about it does not count. If it is still to "
            "be run, let hooks review it again."
        )

    # A call is one object per round. Two of them could both start.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

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
        while True:
            since, steps = len(self._entries), self._history
            last = steps[-1]
            self._check_round_open(again=True)
            if last.stage.may_start and last.stage.name != "returning":
                return self
            end = end_of(steps)
            if end is not None and end.phase is not None:
                who = "a hook" if end.by is None else f"`{end.by}`"
                raise LifecycleError(
                    f"Call {self.id!r} of tool `{self.name}` was decided by {who}, so another try "
                    "of it is not run. Let the model make another call."
                )
            if last.stage.name == "cancelled":
                raise LifecycleError(
                    f"Call {self.id!r} of tool `{self.name}` was given up, so it is not tried "
                    "again. Let the model make another call."
                )
            if last.stage is _SUSPENDED:
                raise LifecycleError(
                    f"Call {self.id!r} of tool `{self.name}` waits for a decision, so it cannot be "
                    "tried again. Take the decision in with `plan.resume(decision)`, or "
                    "`plan.abort`."
                )
            is_known = end is not None and end.verdict != "indeterminate"
            is_safe = is_known or self.selector.definition.idempotent
            verdict = None if is_safe else SPENT
            if self._append_all((move("retried", verdict=verdict),), since) is not None:
                self._round.has_retried = True
                return self

    # Whether it may start.

    def _check_may_start(self) -> None:
        """Refuse a call that cannot be started now, whoever runs it.

        Raises:
            LifecycleError: It cannot; nothing changed.
        """
        if self._round.closed_by is not None:
            self._check_round_open()
        entries = self._entries
        led_to, start, _, _, _ = entries[len(entries) - 1]
        if not led_to.stage.may_start:
            raise self._refused("started")
        if start and self._is_spent():
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is not started: somebody approved it, and "
                "nobody knows what the last try did, so it has to be approved again. Let hooks "
                "review it, with `await plan.apply_hooks(hooks)`."
            )
        if self._selector.needs_review:
            self._check_asked()
        if led_to is _RESUMING:
            self._check_approved()

    def _is_spent(self) -> bool:
        """Whether an approval does not count for this try, and nobody reviewed the call since."""
        steps = self._history
        phases: set[str | None] = set()  # in which it was reviewed since
        for at in range(len(steps) - 1, 0, -1):
            step = steps[at]
            if step.kind == "decided":
                return False
            if step.kind == "reviewed":
                phases.add(step.phase)
            if step.kind == "retried":
                answers = answers_in(steps[:at]) if step.verdict == SPENT else ()
                # Whoever asked before has to ask again, or to let it pass.
                asked = {
                    "gate" if each.is_of_gate else "execution"
                    for each in answers
                    if each.is_of_hooks
                }
                return not asked <= phases
        return False

    def _check_approved(self) -> None:
        """Make sure that what was approved is what runs.

        Raises:
            LifecycleError: It is not.
        """

    def _check_asked(self) -> None:
        """Make sure that hooks let the call pass, and that its tool's rules and approval did.

        Raises:
            LifecycleError: It was not, or its arguments have changed since.
        """
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
            if (
                step.kind == "changed"
                or (step.kind == "retried" and step.verdict == SPENT)
                or (step.kind == "reviewed" and step.by in (REQUESTED_BY, RULED_BY))
            ):
                return step
        return None

    @property
    def _is_ruled(self) -> bool:
        """Whether rules reviewed the arguments as they are, or a person decided about them."""
        last = self._last_asked()
        was_asked = last is not None and last.kind == "reviewed"
        return was_asked or any(answer.is_of_hooks for answer in self._answers)

    def _hold(self) -> None:
        """Refuse to start the call until a store has recorded its start."""
        self._round = self._round.copy_as(HELD)

    def _let_go(self, started: tuple[float | None, str | None]) -> None:
        """Let a call run with the start and the owner that are on record elsewhere."""
        self._round = self._round.copy_as(ON_RECORD)
        self._round.started = started

    def _check_round_open(self, *, again: bool = False) -> None:
        """Refuse to start a call that goes on elsewhere, or whose round is over.

        Raises:
            LifecycleError: It does, or is; the error says where to run it.
        """
        closed_by = self._round.closed_by
        if closed_by is None or closed_by == (HELD if again else ON_RECORD):
            return
        if closed_by == ON_RECORD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was handed out to be run once. Give its "
                "outcome to the plan that it is of, and let that one try it again."
            )
        if closed_by == HELD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is kept in a store, and that it runs is "
                "not on record. Claim it with `store.claim(toolset)`, and run what "
                "`store.start(claim)` gives."
            )
        if closed_by == PICKLED:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was unpickled, and the call that it was "
                "made of may run as well. Pickle what `plan.detach(call_id)` returns: that call is "
                "handed out, and starts once."
            )
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
        is_new = len(self._entries) == 1 == len(self._entries[0][4])
        return () if is_new else answers_in(self._history)

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
        """The outcomes of the calls that this try requested, if it comes back from any."""
        asks = [step.detail for step in this_try(self._history) if step.kind == "requested"]
        inner: Inner | None = asks[-1].inner(asks) if asks else None
        return inner

    def _asked_last(self) -> Answer | None:
        """Return the decision that the tool gets: about its own ticket, else the only one."""
        answers = self._answers
        return next((each for each in answers if each.is_of_tool), answers[0] if answers else None)

    @property
    def may_start(self) -> bool:
        """Whether the call may be started, as far as its steps say: it is new, or goes on."""
        return self._stage.may_start

    @property
    def requested_by(self) -> str | None:
        """The id of the call that requested this one; None for a call of the turn."""
        return self._history[0].by


_GOES_ON_IN: Final = {
    "dumped": "and goes on there. Load it, and run the call that it has",
    "given to a store": "and goes on there. Load it, and run the call that it has",
    "handed over": "and goes on elsewhere. Open the plan there, and run the call that it has",
    "saved": "and goes on there. Load it, and run the call that it has",
    "requested": "and goes on within a call that requested it. Run the calls of that call's plan",
}
_NOTED: Final = ("started", "changed", "requested", "suspended")
_INNER_STAGES: Final = ("unreviewed", "awaiting", "returning")
_TARGETS: Final = {
    "started": CallStatus.RUNNING,
    "suspended": CallStatus.SUSPENDED,
    "decided": CallStatus.RESUMING,
}


SETTLED: Final = "a call is what the model sent. Change its input by `call.input = ...`."
settle(BaseCall, SETTLED, "metadata", "selector")
