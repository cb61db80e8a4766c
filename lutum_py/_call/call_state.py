"""What one decoded call holds: what the model sent, its line of steps, and its input.

`metadata` is what the model sent, and never changes. All that happened stands in the line, see
`line`; the properties here read it.

The data of the line is the truth of the input; the model instance is a cache of it. An instance
that can be changed is written down as JSON text before anyone is given it, so that a change in
place is found by comparing texts, and the instance that was given away is made anew from its text.
Nothing is copied that has a JSON form. For example, where a hook appends to `input.tags`:

    text before  {"tags":["a"]}      shown to the hook, which appends
    text after   {"tags":["a","b"]}  another: a step `changed`, in a branch of its own
    the call that was shown          gets an instance of the text before, when it is asked for it
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._text.json import cut, digest_of, parse_json
from .._text.once import ONCE
from .._text.own_copy import own_copy
from .._transcript.metadata import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .lifecycle import STAGES, CallStatus, refused
from .line import (
    ASKED_BY,
    END_OF,
    HELD,
    HOOK_PHASES,
    NOT_KEPT,
    RULED_BY,
    Answer,
    AsksStep,
    Branch,
    CallStep,
    Family,
    Kept,
    Said,
    Step,
    StepPhase,
    answers_in,
    end_of,
    leads_to,
    moment,
    newer_than,
    proposed_at,
    said_of,
    wait_of,
)

if TYPE_CHECKING:
    from typing import Self, Unpack

    from .._context.inner import Inner
    from .._context.suspension import Decision, SuspendTicket
    from .lifecycle import Stage, StepKind
    from .spec import ToolSpec

_SUSPENDED = STAGES["suspended"]
_RUNNING = STAGES["running"]

MADE_LATER: Final[Any] = object()
"""Stands for an input that was given away, and is made anew where it is asked for."""


class CallState:
    """Keep what is known of one call; `AnyToolCall` documents the attributes."""

    # `_raw` is the line, or `(line, begun[, ended, result])`: nearly every call is begun and ended
    # once and its line never read, so that these two steps are bare times until somebody does.
    __slots__ = ("_branch", "_cache", "_kept", "_raw", "_text", "mended", "metadata", "selector")

    spec: ClassVar[ToolSpec[Any, Any]]
    metadata: ToolMetadata
    selector: Any
    mended: tuple[str, ...]
    _cache: Any
    _text: bytes | None
    _raw: tuple[Any, ...]
    _branch: Branch | None
    _kept: Kept

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        mended: tuple[str, ...] = (),
    ) -> None:
        self.metadata = metadata
        self.selector = self.spec.free_selector if selector is None else selector
        self.mended = mended
        self._cache = input
        # What a program puts in by hand is not what the text says.
        self._text = None if self.spec.arguments.is_fixed else self.spec.arguments.to_text(input)
        self._raw = proposed_at(time())
        self._branch = None
        self._kept = NOT_KEPT

    @property
    def id(self) -> str:
        """The provider's id of the call."""
        return self.metadata.id

    @property
    def name(self) -> str:
        """The wire name of the tool."""
        return self.metadata.name

    # The line.

    @property
    def _steps(self) -> tuple[Step, ...]:
        """The line of this branch; whose line tells the story says `_line`."""
        raw = self._raw
        return raw if raw[0].__class__ is Step else self._write_out()

    @_steps.setter
    def _steps(self, steps: tuple[Step, ...]) -> None:
        self._raw = steps

    def _write_out(self) -> tuple[Step, ...]:
        """Make steps of the bare times of the last run."""
        with ONCE:
            raw = self._raw
            if raw[0].__class__ is not Step:
                steps, begun, *end = raw
                raw = (*steps, Step("begun", _RUNNING, begun))
                if end:
                    at, result = end
                    said = result.status
                    raw = (*raw, Step("ended", END_OF[said], at, said=said, detail=result))
                self._raw = raw
        return raw

    @property
    def _told(self) -> CallState:
        """The member of the family whose line tells what happened to the call: mostly itself."""
        branch = self._branch
        if branch is None or branch.era == branch.family.era or branch.is_mine:
            return self
        told: CallState = branch.family.told
        return told

    # Asked at every turn: nearly always a call has no family.

    @property
    def _line(self) -> tuple[Step, ...]:
        if self._branch is not None:
            return self._told._steps
        raw = self._raw
        return raw if raw[0].__class__ is Step else self._write_out()

    @property
    def _stage(self) -> Stage:
        told = self if self._branch is None else self._told
        raw = told._raw
        last: Step = (raw if raw[0].__class__ is Step else told._write_out())[-1]
        return last.stage

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
            (['proposed', 'begun', 'ended'], {'a': 2, 'b': 1})
        """
        told = self._told
        return tuple(told._shown_step(step) for step in told._steps)

    def _shown_step(self, step: Step) -> CallStep:
        """Give one step of the line as users see it."""
        detail, said, reason, id = step.detail, step.said, step.reason, None
        if step.kind == "suspended":
            said = None
            if detail is not None:
                id, reason = detail.id, detail.message or detail.action
        elif step.kind == "answered" and detail is not None:
            id, reason = detail.decision_id, detail.reason
        elif step.kind == "asks":
            reason = ", ".join(step.detail.ids)
        arguments = None
        if step.kind in ("proposed", "changed"):
            arguments = self._shown_arguments(step)
        return CallStep(
            self.id,
            self.name,
            step.kind,
            moment(step.at),
            step.by,
            step.phase,
            said,
            reason,
            id,
            step.digest,
            arguments,
        )

    def _shown_arguments(self, step: Step) -> Any:
        if step.detail is None:  # never changed since, so that the input is still what it says
            return self.spec.shown(self._written())
        try:
            return self.spec.shown(self.spec.arguments.from_text(step.detail))
        except ValueError:
            return None

    def _append(self, kind: StepKind, *, at: float | None = None, **said: Unpack[Said]) -> None:
        """Write one step, if the table has it: all that happens to a call is written here.

        A branch that is being made takes what hooks say of it, whatever happens to the call
        meanwhile: where that was begun, the branch counts for nothing.

        Args:
            kind: What happens.
            at: When, where that was before.
            said: The other fields of the step; of an `ended`, `said` is its status.

        Raises:
            LifecycleError: The table lacks it, or a newer plan goes on with the call; nothing
                changed.
        """
        with ONCE:
            told, branch = self._told, self._branch
            is_mine = branch is not None and branch.is_mine
            steps = told._steps
            last, phase = steps[-1], said.get("phase")
            end = END_OF[said.get("said") or ""] if kind == "ended" else None
            stage = leads_to(last.stage, kind, end)
            if is_mine:
                stage = stage or end or last.stage
            elif stage is None:
                raise self._refused(kind, None if end is None else end.status)
            elif branch is not None and phase is None and kind in _GOES_ON:
                self._check_newest(kind)
            make = AsksStep if kind == "asks" else Step
            step = make(kind, stage, newer_than(last) if at is None else at, **said)
            told._steps = (*steps, step)
            is_deed = kind != "changed" and phase != "before" and phase not in HOOK_PHASES
            if is_deed and not is_mine and told._branch is not None:
                told._start_era()

    def _start_era(self) -> None:
        """Let the line of this call tell the story, from a deed on; `ONCE` is held."""
        branch = self._branch
        assert branch is not None
        family = branch.family
        if family.moved is not None:
            family.moved.append(self.id)
        family.era += 1
        family.told = self
        self._branch = branch._replace(era=family.era, newer=None)  # what that decided is void

    def _grow(self) -> Self:
        """Make a branch: a call of its own whose line goes on from here."""
        with ONCE:
            told = self._told
            if told._branch is None:
                told._branch = Branch(Family(told), 0)
            family, era = told._branch.family, told._branch.era
            made = self._alike()
            made._branch = Branch(family, era, told, is_mine=True)
            family.members.append(made)
        return made

    def _alike(self) -> Self:
        """Make a call with the same line and input, of no family."""
        told = self._told
        cls = type(self)
        made = cls.__new__(cls)
        made.metadata = self.metadata
        made.selector = self.selector
        made.mended = self.mended
        made._steps = told._steps
        made._branch = None
        made._kept = self._kept
        told._lend()
        # An instance that can be changed belongs to one of them.
        made._cache = (
            told._cache if told.spec.arguments.is_fixed or told._text is None else MADE_LATER
        )
        made._text = told._text
        return made

    def _draft(self) -> Self:
        """Make a call of the same line that no plan holds, and that begins where this one may."""
        made = self._alike()
        made._branch = Branch(Family(made), 0, original=self, is_draft=True)
        return made

    def _close(self, *, counts: bool) -> None:
        """End the making of a branch, or of a draft.

        Args:
            counts: Whether a newer plan goes on with it, as the call that it branched from is to
                know.
        """
        assert self._branch is not None
        branch = self._branch = self._branch._replace(is_mine=False)
        if not counts:
            return
        parent = branch.parent
        if branch.era != branch.family.era or not parent._steps[-1].stage.may_begin:
            # A deed came while hooks were asked, so what was decided here is void.
            self._branch = branch._replace(era=_VOID)
            return
        if parent._branch.newer is None:
            parent._branch = parent._branch._replace(newer=self)

    def _forget(self) -> None:
        """Let the call that this one branched from go on: no plan holds this one any more."""
        branch = self._branch
        if branch is not None and branch.parent is not None:
            parent = branch.parent
            if parent._branch.newer is self:
                parent._branch = parent._branch._replace(newer=None)

    @property
    def status(self) -> CallStatus:
        """Where the call is on its way; moves by the lifecycle table only."""
        return self._stage.status

    def move_to(self, status: CallStatus) -> None:
        """Move the call to another status, where nobody else says what happened.

        Raises:
            LifecycleError: The present status does not lead there; nothing changed.
        """
        if status is self.status:
            return
        if status not in self.status.leads_to:
            raise refused(self.status, status, call_id=self.id, tool=self.name)
        kind: dict[CallStatus, StepKind] = {
            CallStatus.RUNNING: "begun",
            CallStatus.SUSPENDED: "suspended",
            CallStatus.RESUMING: "answered",
        }
        if status is CallStatus.RUNNING:
            self._check_kept()
            self._check_asked()
        wait = wait_of(self._line)
        if status is CallStatus.RESUMING and wait is not None and wait.phase is not None:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` waits for a decision that `{wait.by}` "
                "asked for, so it is not moved on by hand. Take the decision of a person in with "
                "`plan.resume(decision)`."
            )
        if status.is_terminal:
            self._append("ended", said=_SAID[status])
        else:
            self._append(kind[status], said="resume" if kind[status] == "answered" else None)

    def _refused(self, kind: StepKind, target: CallStatus | None = None) -> LifecycleError:
        if self._stage.name in _OF_INNER:
            return self._refused_within(kind)
        if target is None:
            target = _TARGETS.get(kind)
        present = self.status
        if kind == "ended" and present.is_terminal:
            assert target is not None
            cannot = "already" if target is present else f"and cannot become {target}"
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present} {cannot}: a call is "
                "answered once. Use the result that you have; `call.again()` makes a new call of "
                "the same metadata and input, in status 'new'."
            )
        if target is None:
            doing = {"asked": "asked about", "changed": "changed"}.get(kind, kind)
            return LifecycleError(
                f"Call {self.id!r} of tool {self.name!r} is {present}, so it cannot be {doing} any "
                "more. `call.again()` makes a new call of the same metadata and input, in status "
                "'new'."
            )
        return refused(present, target, call_id=self.id, tool=self.name)

    def _refused_within(self, kind: StepKind) -> LifecycleError:
        """Refuse a step of a call that asks for others, comes back, or was asked for."""
        named = f"Call {self.id!r} of tool `{self.name}`"
        if self._stage.name == "asked":
            return LifecycleError(
                f"{named} was asked for by call {self._line[0].by!r}, and nobody decided about it. "
                "Let hooks do so, with `await plan.apply_hooks(hooks)` or `await run(plan, "
                "hooks=hooks)`."
            )
        if self._stage.name == "asking":
            asked = ", ".join(next(said_of(self._line, "asks")).detail.ids)
            return LifecycleError(
                f"{named} waits for calls that it asked for ({asked}), and comes back by itself "
                "once each of them has its result. Decide about these, and run them."
            )
        return LifecycleError(
            f"{named} comes back from calls that it asked for, so it cannot be {kind} any more. "
            "Run it, or answer it."
        )

    def _become(self, draft: CallState) -> None:
        """Take over what a draft of this call came to: a deed, so that other branches show it."""
        told = self._told
        told._steps = draft._steps
        told._cache, told._text = draft._cache, draft._text
        if told._branch is not None:
            told._start_era()

    def _check_asked(self) -> None:
        """Make sure that a call was let pass by hooks, and asked about where its tool says so.

        Raises:
            LifecycleError: It was not, or its arguments are others since.
        """
        if self._branch is None and not self.selector.asks:
            return
        answered = next(said_of(self._line, "again"), None)
        if answered is not None and answered.phase is not None:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` was answered by "
                f"{'a hook' if answered.by is None else f'`{answered.by}`'}, so another try of it "
                "is not run. Answer it by hand, or let the model make another call."
            )
        if not self.selector.asks:
            return
        was_changed = False
        for step in reversed(self._line):
            if step.kind == "asked" and step.by in (ASKED_BY, RULED_BY):
                return
            if step.kind == "changed":
                was_changed = True
                break
        # Given about these arguments; a rule may have asked, and is no gate.
        if any(answer.is_of_gate or not self.selector.approval for answer in self._answers):
            return
        option, why, then = "rule=", "the rule was not asked", "which ask it."
        if self.selector.approval:
            option, why = "needs_approval=", "nobody was asked about it"
            then = "which ask; where it waits, give the plan the decision of a person."
        if was_changed:
            why = "its arguments were changed since"
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` is not begun: the tool is declared with "
            f"`{option}`, and {why}. Take the call from `round.plan()`, `await "
            f"round.apply_hooks(hooks)` or `await call.hook(hooks)`, {then}"
        )

    # The input.

    @property
    def _input(self) -> Any:
        """The input for whoever only reads it."""
        told = self._told
        if told._cache is MADE_LATER:
            told._cache = told._made_input()
        return told._cache

    def _made_input(self) -> Any:
        if self._text is not None:
            return self.spec.arguments.from_text(self._text)
        # Nothing was ever changed, and the model's text always reads the same.
        return self.selector._decode(self.metadata)._cache

    def _written(self) -> Any:
        """The input as the line has it, whatever was done in place to what was given away."""
        told = self._told
        if told._text is None or told._changed_text() is None:
            return told._input
        return told.spec.arguments.from_text(told._text)

    def _lend(self) -> Any:
        """Give the input to somebody who may change it: as it is now stands in the text."""
        input = self._input
        arguments = self.spec.arguments
        if self._text is None and not arguments.is_fixed:
            self._text = arguments.to_text(input)
        return input

    def _give_away(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        told = self if self._branch is None else self._told
        input = told._cache
        if input is MADE_LATER:
            input = told._made_input()
        arguments = told.spec.arguments
        if not arguments.is_fixed:
            if told._text is None and (not arguments.reads_same or told._is_rewritten):
                told._text = arguments.to_text(input)
                if told._text is None:  # without a JSON form there is nothing to compare it with
                    is_asked = self.selector.approval and not told._is_rewritten
                    return told._made_input() if is_asked else own_copy(input)
            told._cache = MADE_LATER
        return input

    def _changed_text(self) -> bytes | None:
        """Give the text of an input that was changed in place since it was given; else None."""
        text = self._text
        if text is None or self._cache is MADE_LATER:
            return None
        now = self.spec.arguments.to_text(self._cache)
        return None if now == text else now

    def _is_as(self, other: CallState) -> bool:
        """Whether this is a draft or branch of another call, and not the same made by hand."""
        return self._steps[0].at == other._steps[0].at

    def _differs(self, value: Any) -> bool:
        """Whether a value is another input than the call's."""
        to_text = self.spec.arguments.to_text
        text = self._told._text or to_text(self._input)
        return text is None or text != to_text(value)

    def _put_back(self) -> None:
        """Forget what somebody made of the input that is not theirs to change."""
        if self._text is not None:
            self._cache = MADE_LATER

    def _replace_input(
        self,
        value: Any,
        by: str | None = None,
        phase: StepPhase | None = None,
    ) -> None:
        """Take another input, which is valid: a step `changed` with all of its data.

        Args:
            value: The input.
            by: Who changes it.
            phase: In which part of deciding.

        Raises:
            LifecycleError: The call has begun, waits, or has ended.
        """
        told = self._told
        arguments = told.spec.arguments
        text = arguments.to_text(value)
        before = None
        if told._steps[0].detail is None and not told._is_rewritten:
            # An input without a JSON form has no text, but is another from here on all the same.
            before = told._text or arguments.to_text(told._input) or b""
        with ONCE:
            told._append("changed", by=by, phase=phase, detail=text)
            if before is not None:
                first, *others = told._steps
                told._steps = (first._replace(detail=before), *others)
            told._cache = value
            told._text = None if arguments.is_fixed else text

    def _take_changes(self) -> None:
        """Take in what your own code did to the input in place, as the call is about to begin.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        told = self._told
        if told._text is None or told._changed_text() is None:
            return
        given = told._cache
        try:
            checked = told.spec.check_input(self.name, given)
        except ToolInputError:
            told._put_back()
            raise
        told._replace_input(checked)

    @property
    def _is_rewritten(self) -> bool:
        """Whether the program, a hook or a person replaced the input that was decoded."""
        first: Any = self._raw[0] if self._branch is None else self._line[0]
        if first.__class__ is tuple:
            first = first[0]
        return first.detail is not None  # written down with the first change

    @property
    def _key_begins(self) -> str:
        return self._kept.key_begins

    def _hold(self) -> None:
        """Let the call refuse to run until that it runs is on record."""
        self._kept = self._kept.closed(HELD, self._kept.key_begins)

    def _let_go(self, key_begins: str) -> None:
        """Let a held call run."""
        self._kept = self._kept.closed(None, key_begins)

    def _check_kept(self) -> None:
        """Refuse to begin a call that goes on elsewhere, or whose round is over.

        Raises:
            LifecycleError: It is one; the error says where it is run.
        """
        closed_by = self._kept.closed_by
        if closed_by == HELD:
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is kept in a store, and that it runs is "
                "not on record. Claim it with `store.claim(toolset)`, and run what "
                "`store.begin(claim)` gives."
            )
        if closed_by is not None:
            what = _GOES_ON_IN.get(
                closed_by, "so nobody would take what it comes to. Let the model make another call"
            )
            raise LifecycleError(
                f"Call {self.id!r} of tool `{self.name}` is not begun: its round was {closed_by}, "
                f"{what}."
            )

    # What the program reads and changes.

    @property
    def input(self) -> Any:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        What is done to it in place is noticed when the call begins, and validated then.
        """
        told = self._told
        if told._text is None and told.spec.arguments.is_fixed:
            return told._cache
        if told._stage.may_begin and not told._answers:
            return told._lend()
        told._put_back()  # nobody reaches what was approved, or run
        input = told._lend()
        told._put_back()
        return input

    @input.setter
    def input(self, value: Any) -> None:
        told = self._told
        if told._stage is _SUSPENDED or (told._answers and not told._kept.is_open):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        checked = self.spec.check_input(self.name, value)
        if told._differs(checked):
            told._replace_input(checked)

    @property
    def parts(self) -> tuple[ToolMetadata, Any]:
        """The metadata and the input."""
        return (self.metadata, self.input)

    @property
    def digest(self) -> str:
        """A digest of the tool, its schema and the final arguments.

        One that stands within another call is told by its id as well: what is decided about
        `c1/2` says nothing of `c1/3` with the same arguments.
        """
        return self._digest_of(self.final_arguments)

    def _digest_of(self, arguments: Any) -> str:
        path = [] if self._line[0].by is None else [self.id]
        return digest_of([self.name, self.selector.definition.digest, arguments, *path])

    @property
    def idempotency_key(self) -> str:
        """A key for services that ask for one: the same everywhere, until the input changes.

        It is made of the call's id and digest. Some providers send no ids that differ from turn to
        turn, so where the conversation has an id, as in `Session(id=...)`, the key begins with that
        and the turn's place: `<id>/<place>/<digest>`.
        """
        return self._key_begins + self._own_key

    @property
    def _own_key(self) -> str:
        """The key without what it begins with."""
        return digest_of([self.id, self.digest]).removeprefix("sha256:")

    @property
    def final_arguments(self) -> Any:
        """The arguments as they would run, as plain data, with secrets as they are.

        It is for gates, and never to be shown: what is shown is masked, as in `plan.calls`.
        """
        told = self._told
        if told._text is not None:
            return parse_json(told._text)
        try:
            return told.spec.arguments.to_data(told._input)
        except ValueError as error:  # pydantic has a kind of its own, but not for what is too deep
            hides = told.spec.has_secrets
            reason = "its text is hidden" if hides else cut(" ".join(str(error).split()), 200)
            raise ToolInputError(
                f"The input of call {self.id!r} of tool `{self.name}` has no JSON form ({reason}). "
                "Assign an input that has, as in `call.input = ...`.",
                tool=self.name,
            ) from (None if hides else error)

    # What was asked and answered.

    @property
    def _answers(self) -> tuple[Answer, ...]:
        steps = self._line
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
        """The decision by which the call goes on, as the tool is told of it.

        That is the answer to a ticket whose mode passes it to the tool, else that to the tool's own
        question. What a gate asked otherwise is no answer to a tool that asks by itself: that is
        in `approval`.
        """
        return None if (answer := self._for_tool()) is None else answer.decision

    @property
    def ticket(self) -> SuspendTicket | None:
        """The ticket that the decision in `resume` answers."""
        return None if (answer := self._for_tool()) is None else answer.ticket

    def _for_tool(self) -> Answer | None:
        answers = sorted(self._answers, key=lambda each: not each.is_of_tool)
        told = next((each for each in answers if each.is_passed_on), None)
        return told or next((each for each in answers if each.is_of_tool), None)

    @property
    def suspension_id(self) -> str | None:
        """The id of the suspension that the call comes from: the tool's own, if it asked."""
        told = self._asked_last()
        return None if told is None else told.ticket.id

    @property
    def suspension_reason(self) -> str | None:
        """Why the call was suspended: the action that its ticket asked for."""
        told = self._asked_last()
        return None if told is None else told.ticket.action

    @property
    def _inner(self) -> Inner | None:
        """What the calls came to that this one asked for, where it comes back from any."""
        asks = [step.detail for step in self._line if step.kind == "asks"]
        inner: Inner | None = asks[-1].inner(asks) if asks else None
        return inner

    def _asked_last(self) -> Answer | None:
        """Give the answer that the tool is told of: that to its own question, or else the only."""
        answers = self._answers
        return next((each for each in answers if each.is_of_tool), answers[0] if answers else None)

    def again(self) -> Self:
        """Return a new call of the same metadata and input, for another try.

        That of a call that a hook or a person answered may be answered otherwise, and not be run.

        Raises:
            LifecycleError: The call waits for a decision, which a new one would go around; or a
                newer plan goes on with it.
        """
        if self._stage is _SUSPENDED:
            raise self._waits()
        self._check_newest()
        return self._again()

    def _waits(self) -> LifecycleError:
        return LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` waits for a decision, so it cannot be made "
            "anew. Take the decision in with `plan.resume(decision)`, or `plan.abort`."
        )

    def _again(self) -> Self:
        """Make the call anew: with what decided about it, and without what was done."""
        made = self._alike()
        end = end_of(made._steps)
        steps = [step for step in made._steps if step.kind not in _DONE]
        last = steps[-1]
        if last.stage is _SUSPENDED:
            raise self._waits()
        by, phase = (None, None) if end is None or end.phase is None else (end.by, end.phase)
        stage = last.stage.leads.get("again", last.stage)
        made._steps = (*steps, Step("again", stage, newer_than(last), by, phase))
        if phase is not None:
            made._branch = Branch(Family(made), 0)
        return made

    def _check_newest(self, kind: StepKind | None = None) -> None:
        """Refuse to do anything with a call that a newer plan goes on with in its own way.

        Raises:
            LifecycleError: It is one; the error says what was decided there.
        """
        newer = self._newer(kind)
        if newer is None:
            return
        own = newer._steps[len(self._steps) :] if len(newer._steps) > len(self._steps) else ()
        step = next((s for s in own if s.kind in ("ended", "suspended", "changed")), None)
        did = {"ended": "answered", "suspended": "suspended", "changed": "changed"}
        who = "hooks" if step is None or step.by is None else f"`{step.by}`"
        what = "decided about" if step is None else did[step.kind]
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` is of an older plan: {who} {what} it since, "
            "in a newer plan of the same round. Go on with the newer plan."
        )

    def _newer(self, kind: StepKind | None) -> CallState | None:
        """Find the branch by which a newer plan goes on with the call, or with what it shows."""
        for member in (self, self._told):
            each: Any = member
            while each is not None and each._branch is not None:
                newer: CallState | None = each._branch.newer
                if newer is not None:
                    return newer
                # A draft may be decided on as its original may; what it runs is run for both.
                is_free = each._branch.is_draft and kind != "begun"
                each = None if is_free else each._branch.original
        return None

    def with_input(self, input: Any) -> Self:
        """Return the same call with another input, which is validated.

        Raises:
            ToolInputError: The input does not fit the tool.
            LifecycleError: The call was approved with the input that it has.
        """
        made = self._draft()
        made.input = input
        return made

    def __repr__(self) -> str:
        shown = self.spec.shown_repr(self._input)
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r}, input={shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self._line, self.mended, self._told._text, self._kept)
        return (_rebuild, (self.selector, self.metadata, self._input, state))

    def __copy__(self) -> Self:
        # One call, however many objects: what is done to either is done to both.
        with ONCE:
            made = self._grow()
            branch = made._branch
            assert branch is not None
            made._branch = branch._replace(original=branch.parent, is_mine=False)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()


_GOES_ON_IN: Final = {
    "dumped": "and goes on there. Load it, and run the call that it has",
    "saved": "and goes on there. Load it, and run the call that it has",
    "asked": "and goes on within a call that asked for it. Run the calls of that call's plan",
    "merged": "so it goes on in the plan that took it in. Run the call that that one has",
}
_VOID: Final = -1
_OF_INNER: Final = ("asked", "asking", "returning")
_GOES_ON: Final = ("begun", "answered", "suspended", "asks", "ended")
_DONE: Final = ("begun", "left", "ended", "recorded", "again")
_SAID: Final = {
    CallStatus.SUCCEEDED: "success",
    CallStatus.FAILED: "error",
    CallStatus.CANCELLED: "cancelled",
}
_TARGETS: Final = {
    "begun": CallStatus.RUNNING,
    "suspended": CallStatus.SUSPENDED,
    "answered": CallStatus.RESUMING,
}


def _rebuild(
    selector: Any, metadata: ToolMetadata, input: Any, state: tuple[Any, ...]
) -> CallState:
    made: CallState = selector.Call.__new__(selector.Call)
    made.metadata, made.selector, made._cache = metadata, selector, input
    made._steps, made.mended, made._text, made._kept = state
    made._branch = None
    return made
