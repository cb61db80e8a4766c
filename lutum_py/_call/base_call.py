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

from .._text.json import sendable
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ResultStatus, ToolResult, failure, make_result, rejection
from ..errors import LifecycleError, MisuseError
from .history import (
    ANSWERED,
    ASKED_BY,
    CONTINUED,
    DECIDE,
    END_OF,
    HELD,
    NO_ROUND,
    ON_RECORD,
    PICKLED,
    RULED_BY,
    SPENT,
    STAGES,
    Answer,
    CallRound,
    CallStatus,
    CallStep,
    Entry,
    History,
    Move,
    RejectionSource,
    Said,
    Step,
    again,
    iso_time,
    move,
    refused,
    stage_after,
    steps_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from .._context.inner import Inner
    from .history import Stage, StepKind
    from .outcomes import RecoverableToolCallIssue

_SUSPENDED = STAGES["suspended"]
_RESUMING = STAGES["resuming"]
_GOES_ON: Final = move("retried", verdict=CONTINUED)
_NOTHING_YET: Final = History()
_AT_WORK: Final = (STAGES["running"], STAGES["in_doubt"])


class Reviewing(Protocol):
    """What a draft knows of the review that it was made for: see `deciding.Review`."""

    target: Any
    since: int
    edited: Any

    def start(self, draft: Any, moves: tuple[Move, ...]) -> int | None:
        """Start the call itself, because a function started its draft."""
        ...


class CallRecord:
    """Keep the history of one call; what it was called with is kept by `DecodedCall`.

    A call of no tool is this alone: one that cannot be used, or that gave the final answer. So is
    one of a saved plan that is only looked at, without its tools.

    Args:
        metadata: What the model sent.
        entry: What happened to it so far.
        call_round: The round that it belongs to.

    Attributes:
        metadata: What the model sent.
        selector: The member of the toolset that it came in through, if it is of a tool.
        entries: The history.
        round: The round that it belongs to.
        review: Of a draft, the review that it was made for.
    """

    # _flat  all steps of the history, and how many entries they are of
    __slots__ = ("_flat", "entries", "metadata", "review", "round", "selector")

    metadata: ToolMetadata
    selector: Any
    entries: dict[int, Entry]
    review: Reviewing | None
    round: CallRound
    _flat: tuple[int, History] | None

    def __init__(
        self, metadata: ToolMetadata, entry: Entry, call_round: CallRound = NO_ROUND
    ) -> None:
        self.metadata = metadata
        self.selector = None
        self.entries = {0: entry}
        self._flat = self.review = None
        self.round = call_round

    @property
    def id(self) -> str:
        """The provider's id of the call."""
        return self.metadata.id

    @property
    def name(self) -> str:
        """The wire name of the tool."""
        return self.metadata.name

    @property
    def requested_by(self) -> str | None:
        """The id of the call that requested this one; None for a call of the turn."""
        return self.history[0].by

    # Reading.

    @property
    def last(self) -> Entry:
        entries = self.entries
        return entries[len(entries) - 1]

    @property
    def history(self) -> History:
        """All steps, in order."""
        entries, count = self.entries, len(self.entries)
        since, steps = self._flat or (0, _NOTHING_YET)
        if since < count:  # another thread may have read more than was there a moment ago
            steps = steps_in(entries, count, steps, since)
            self._flat = (count, steps)
        return steps

    @property
    def stage(self) -> Stage:
        entries = self.entries
        stage: Stage = entries[len(entries) - 1][0].stage
        return stage

    @property
    def input_at(self) -> int:
        """The number of the entry that has the present input."""
        entries = self.entries
        return entries[len(entries) - 1][2]

    @property
    def status(self) -> CallStatus:
        """How far the call has come; it changes only as the lifecycle table allows."""
        stage = self.stage
        if stage.name == "elsewhere":
            stage = self.history.as_it_left.stage
        return stage.status

    def requested_calls(self) -> Iterator[CallRecord]:
        """Give the calls that this one requested, each before those that it requested itself."""
        for step in self.history:
            if step.kind == "requested":
                for each in step.detail.calls:
                    yield each
                    yield from each.requested_calls()

    def shown_step(self, step: Step, arguments: Any = None) -> CallStep:
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

    def append(self, kind: StepKind, **said: Unpack[Said]) -> None:
        """Write one step, if the table has it; see `append_all`."""
        self.append_all((move(kind, **said),))

    def append_all(
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
        if self.review is not None and moves[-1][0] == "started":
            return self.review.start(self, moves)
        entries = self.entries
        while True:
            number = len(entries)
            if since is not None and number != since:
                return None
            led_to, start, input, _, _ = entries[number - 1]
            if run is not None and (start != run or led_to not in _AT_WORK):
                raise self.late(moves[-1])
            for each in moves:
                key, stage = each[1], led_to.stage
                after = stage.leads.get(key) or stage_after(led_to, key)
                if after is None:
                    raise self.refused(each[0], END_OF[key].status if key in END_OF else None)
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
                        self.freeze()
            entry = (led_to, start, input, time(), moves)
            if entries.setdefault(number, entry) is entry:
                return number

    def freeze(self) -> None:
        """Let nobody who was given the input change it any more, since the call will wait."""

    if TYPE_CHECKING:

        def changes_unstarted(self) -> tuple[Move, ...]:
            """Describe what was done in place to the input of a call that ends without a start."""
            ...  # one of no tool has ended from the first

    def late(self, outcome: Move) -> LifecycleError:
        """Note what a run came to that is over, and return the error for whoever ran it."""
        kind, _, _, _, _, verdict, _, _, detail = outcome
        if kind == "ended":
            self.append("late", verdict=verdict, detail=detail)
        else:
            self.append("late", verdict=kind)
        return self.refused("ended", over=True)

    def is_in_run(self, run: int) -> bool:
        """Whether a run is in progress, by the number of its start."""
        led_to, present, *_ = self.last
        return present == run and led_to in _AT_WORK

    def refused(
        self, kind: StepKind, target: CallStatus | None = None, *, over: bool = False
    ) -> LifecycleError:
        stage = self.stage
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
        return again(self.status) if self.round.closed_by in (None, HELD) else ""

    def _refused_within(self, kind: StepKind) -> LifecycleError:
        """Refuse a step of a call that requests others, comes back, or was requested."""
        named = f"Call {self.id!r} of tool `{self.name}`"
        if self.stage.name == "unreviewed":
            return LifecycleError(
                f"{named} was requested by call {self.requested_by!r}, and nobody reviewed it. "
                "Let hooks do so, with `await plan.apply_hooks(hooks)` or `await run(plan, "
                "hooks=hooks)`."
            )
        if self.stage.name == "awaiting":
            asked = ", ".join(next(self.history.of_kind("requested")).detail.ids)
            return LifecycleError(
                f"{named} waits for calls that it requested ({asked}), and comes back by itself "
                "once each of them has its result. Decide about these, and run them."
            )
        return LifecycleError(
            f"{named} comes back from calls that it requested, so it cannot be {kind} any more. "
            "Run it, or give it a result."
        )

    def grown(self, since: int) -> LifecycleError:
        """Say what happened to the call while hooks reviewed it."""
        entries = self.entries  # it may have grown before it was first looked at
        kind, _, _, by, *_ = entries[min(since, len(entries) - 1)][4][-1]
        who = "" if by is None else f" by `{by}`"
        return LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` was {kind}{who} while hooks reviewed it, "
            f"and is {self.status} now: what they said about it does not count. If it is still to "
            "be run, let hooks review it again."
        )

    def retry(self) -> None:
        """Let the call be tried again; see `AnyToolCall.retry`."""
        while True:
            since, steps = len(self.entries), self.history
            last = steps[-1]
            self.check_round_open(again=True)
            if last.stage.may_start and last.stage.name != "returning":
                return
            end = steps.end
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
            if self.append_all((move("retried", verdict=verdict),), since) is not None:
                self.round.has_retried = True
                return

    # Whether it may start.

    def check_may_start(self) -> None:
        """Refuse a call that cannot be started now, whoever runs it.

        Raises:
            LifecycleError: It cannot; nothing changed.
        """
        if self.round.closed_by is not None:
            self.check_round_open()
        entries = self.entries
        led_to, start, _, _, _ = entries[len(entries) - 1]
        if not led_to.stage.may_start:
            raise self.refused("started")
        if start and self._is_spent():
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is not started: somebody approved it, and "
                "nobody knows what the last try did, so it has to be approved again. Let hooks "
                "review it, with `await plan.apply_hooks(hooks)`."
            )
        if self.selector.needs_review:
            self._check_asked()
        if led_to is _RESUMING:
            self._check_approved()

    def _is_spent(self) -> bool:
        """Whether an approval does not count for this try, and nobody reviewed the call since."""
        steps = self.history
        phases: set[str | None] = set()  # in which it was reviewed since
        for at in range(len(steps) - 1, 0, -1):
            step = steps[at]
            if step.kind == "decided":
                return False
            if step.kind == "reviewed":
                phases.add(step.phase)
            if step.kind == "retried":
                answers = History(steps[:at]).answers if step.verdict == SPENT else ()
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
        if any(each.is_of_gate if needs_gate else each.is_of_hooks for each in self.answers):
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
        for step in reversed(self.history):
            if (
                step.kind == "changed"
                or (step.kind == "retried" and step.verdict == SPENT)
                or (step.kind == "reviewed" and step.by in (ASKED_BY, RULED_BY))
            ):
                return step
        return None

    @property
    def is_ruled(self) -> bool:
        """Whether rules reviewed the arguments as they are, or a person decided about them."""
        last = self._last_asked()
        was_asked = last is not None and last.kind == "reviewed"
        return was_asked or any(answer.is_of_hooks for answer in self.answers)

    def hold_until_recorded(self) -> None:
        """Refuse to start the call until a store has recorded its start."""
        self.round = self.round.copy_as(HELD)

    def run_as_recorded(self, started: tuple[float | None, str | None]) -> None:
        """Let a call run with the start and the owner that are on record elsewhere."""
        self.round = self.round.copy_as(ON_RECORD)
        self.round.started = started

    def check_round_open(self, *, again: bool = False) -> None:
        """Refuse to start a call that goes on elsewhere, or whose round is over.

        Raises:
            LifecycleError: It does, or is; the error says where to run it.
        """
        closed_by = self.round.closed_by
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

    # What was begun elsewhere.

    @property
    def moves_to_run(self) -> list[Move]:
        """The steps by which the call runs here, if its run was elsewhere, or was lost sight of."""
        if self.stage.name == "in_doubt":
            return [_GOES_ON, move("started")]
        return [move("started")] if self.stage.may_start else []

    def go_on(self) -> None:
        """Let a call that was lost sight of go on from what it requested."""
        self.append_all((_GOES_ON,))

    # What it came to.

    @classmethod
    def unread(
        cls,
        metadata: ToolMetadata,
        entry: Entry,
        of: ToolResult | RecoverableToolCallIssue,
        call_round: CallRound,
    ) -> CallRecord:
        """Make a call of no tool, which has ended: it was a final answer, or could not be used."""
        if isinstance(of, ToolResult):
            phase, said = "reply", of.status
        else:
            phase, said = "decode", "rejected"
        _, start, input, at, moves = entry
        ended = ("ended", said, None, None, phase, said, None, None, of)
        return cls(metadata, (END_OF[said], start, input, at, (*moves, ended)), call_round)

    def known_result(self, history: History | None = None) -> ToolResult | None:
        """Return the result of the call, whoever made it, as far as the plan has it.

        Args:
            history: Its history as it was at some moment; by default as it is.
        """
        history = self.history if history is None else history
        state = history.state
        if state == "rejected":
            end = history.settled_by
            return rejected_result(self.metadata, end.source, end.reason or "")
        if state == "unusable" and history.issue is not None:
            return history.issue.result
        # An after-hook may have seen what the plan was not told.
        return history.result if state in ANSWERED else None

    def unfinished(self, was_started: bool, reason: str, more: str = "") -> ToolResult:
        """Make the honest result of a call that was given up: nobody knows more of it than this.

        Raises:
            MisuseError: The reason is not text.
        """
        MisuseError.check("abort", "reason", "a text", reason, str, "The model reads it.")
        if was_started:
            why = f"the tool was started, and nobody knows what it did. {reason}{more}"
            return self.unknown_outcome(why)
        return make_result(self.metadata, "null", "cancelled", sendable(f"Not executed: {reason}"))

    def unknown_outcome(self, reason: str, code: str | None = None) -> ToolResult:
        """Make the result of a call that was started, and of which nobody knows what it did."""
        return self.failure("indeterminate", f"Outcome unknown: {sendable(reason)}", code)

    def failure(self, status: ResultStatus, text: str, code: str | None) -> ToolResult:
        """Make a result without an output; a code stands before the text in brackets."""
        return failure(self.metadata, status, text, code)

    @property
    def ended_result(self) -> ToolResult:
        """The result that the call ended with, also where its plan was not told."""
        end = self.history.settled_by
        result: ToolResult | None = end.detail
        return rejection(self.metadata, end.reason or "") if result is None else result

    # What was asked and decided.

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The decisions by which the call goes on, the latest first."""
        is_new = len(self.entries) == 1 == len(self.entries[0][4])
        return () if is_new else self.history.answers

    def answer_of(self, *, tool: bool) -> Answer | None:
        """Return the decision about what the tool asked, or about what was asked before it ran."""
        return next((each for each in self.answers if each.is_of_tool is tool), None)

    def is_answered(self, digest: str, *, by_gate: bool = False) -> bool:
        """Whether what asked before the run is decided, about the call as this digest names it.

        Args:
            digest: Names tool, schema and arguments.
            by_gate: Whether a gate has to have asked: what a function of the program asks is
                another question than whether the call may run.
        """
        answer = self.answer_of(tool=False)
        if answer is None or answer.digest != digest:
            return False
        return answer.is_of_gate or not by_gate

    @property
    def answer_for_tool(self) -> Answer | None:
        """The decision that the tool reads."""
        # Two may have asked, a gate and the tool. The tool hears what it asked itself, unless the
        # ticket of either says that the decision is meant for it.
        answers = sorted(self.answers, key=lambda each: not each.is_of_tool)
        passed_on = next((each for each in answers if each.is_passed_on), None)
        return passed_on or next((each for each in answers if each.is_of_tool), None)

    @property
    def answer_to_last(self) -> Answer | None:
        """The decision about the suspension that the call comes from: the tool's own, if any."""
        answers = self.answers
        return next((each for each in answers if each.is_of_tool), answers[0] if answers else None)

    @property
    def inner(self) -> Inner | None:
        """The outcomes of the calls that this try requested, if it comes back from any."""
        asks = [step.detail for step in self.history.this_try if step.kind == "requested"]
        inner: Inner | None = asks[-1].inner(asks) if asks else None
        return inner


def rejected_result(metadata: ToolMetadata, source: RejectionSource, reason: str) -> ToolResult:
    """Return the standard result of a call that was rejected, or cancelled by a decision."""
    if source == "decision":
        return make_result(metadata, "null", "cancelled", f"Cancelled: {reason}")
    return rejection(metadata, reason)


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
