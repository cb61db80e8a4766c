"""The life of one call, as a table: which step may follow in which stage, and where it leads.

A call is what the model sent and a history of steps (`Step`). Where it stands is the stage
that its last step led to; nothing else keeps that. Everything that decides whether a step may be
written is here, and the documentation draws its diagram from the same table.

    new --suspended--> suspended --decided--> resuming --started--> running --ended--> succeeded

What the table lacks is refused and changes nothing. Three rules do not fit into it and are in
`_fill` and `stage_after`: after an end only after-hooks can review, a call that waits can
end only as cancelled, and one that requested others ends after these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, partial
from time import time
from types import FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypedDict

from .._text.immutable import dataclass
from .._text.json import digest_of
from ..errors import LifecycleError

if TYPE_CHECKING:
    from typing import Unpack

    from .._context.suspension import Decision, SuspendTicket
    from .._transcript.assistant import AssistantTurn
    from .._transcript.result import ToolResult
    from .._transcript.transcript import Place, Transcript
    from .outcomes import RecoverableToolCallIssue


class CallStatus(StrEnum):
    """Say how far a tool call has come.

    >>> CallStatus.SUSPENDED == "suspended", CallStatus.FAILED.is_terminal
    (True, True)
    """

    NEW = "new"
    """Decoded, and nothing done with it yet."""
    RUNNING = "running"
    """The tool is at work, or was, and nobody knows what it did."""
    SUSPENDED = "suspended"
    """Waiting for a decision from outside."""
    RESUMING = "resuming"
    """Decided, and on its way back to the tool."""
    SUCCEEDED = "succeeded"
    """Finished with an output."""
    FAILED = "failed"
    """Finished with an error."""
    CANCELLED = "cancelled"
    """Given up before it finished."""

    @property
    def is_terminal(self) -> bool:
        """Whether no other status can follow."""
        return self in _ENDS

    @property
    def leads_to(self) -> tuple[CallStatus, ...]:
        """The statuses that may follow, itself included."""
        return (*(each for each in CallStatus if each in TRANSITIONS[self]), self)


_ENDS: Final = (CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.CANCELLED)

StepKind: TypeAlias = Literal[
    "proposed",
    "reviewed",
    "changed",
    "suspended",
    "decided",
    "started",
    "abandoned",
    "ended",
    "recorded",
    "moved",
    "retried",
    "requested",
    "late",
]

StageName: TypeAlias = Literal[
    "new",
    "unreviewed",
    "resuming",
    "returning",
    "running",
    "in_doubt",
    "suspended",
    "awaiting",
    "succeeded",
    "failed",
    "cancelled",
    "elsewhere",
]

WITHIN: Final = "inner"
"""A key of the table that is not a step: each call that this call requested has a result."""

_MOVED: Final[dict[str, str]] = {"moved": "elsewhere", "late": "same"}
_OPEN: Final[dict[str, str]] = {
    "reviewed": "same",
    "changed": "same",
    "suspended": "suspended",
    "started": "running",
    "ended": "ended",
    **_MOVED,
}
_ENDED: Final[dict[str, str]] = {"reviewed": "same", "recorded": "same", "late": "same"}

TABLE: Final[Mapping[StageName, Mapping[str, str]]] = MappingProxyType(
    {
        "new": _OPEN,
        # What a call requested does not start before hooks reviewed it.
        "unreviewed": {"reviewed": "new", "changed": "same", "ended": "ended", **_MOVED},
        "resuming": _OPEN,
        # What has started and comes back is not reviewed again.
        "returning": {"started": "running", "ended": "ended", **_MOVED},
        "running": {
            "suspended": "suspended",
            "requested": "awaiting",
            "abandoned": "in_doubt",
            "ended": "ended",
            "retried": "new",
            **_MOVED,
        },
        # It may have asked for a decision where it ran, before it was lost sight of.
        "in_doubt": {"suspended": "suspended", "ended": "ended", "retried": "new", **_MOVED},
        "suspended": {"decided": "resuming", "ended": "ended", "recorded": "same", **_MOVED},
        "awaiting": {WITHIN: "returning", "ended": "ended", **_MOVED},
        "succeeded": {**_ENDED, "retried": "new"},
        "failed": {**_ENDED, "retried": "new"},
        "cancelled": _ENDED,
        # It goes on where it went.
        "elsewhere": {"late": "same"},
    }
)
"""For each stage the kinds of steps that may follow, and the stage that each leads to: `same` is
the present one, and which end `ended` means is the verdict of the step."""


# Users see seven statuses, the table has twelve stages: a call that was loaded while it ran,
# that waits for others, or that goes on elsewhere may do less than its status says.
_STATUS_OF: Final[Mapping[StageName, CallStatus]] = {
    "unreviewed": CallStatus.NEW,
    "returning": CallStatus.RESUMING,
    "in_doubt": CallStatus.RUNNING,
    "awaiting": CallStatus.SUSPENDED,
    "elsewhere": CallStatus.RUNNING,  # a call that went elsewhere shows the status it left with
}


class Stage:
    """The stage of a call: a row of the table.

    Attributes:
        name: The name of the row.
        status: What users see of the stage.
        leads: The stage that each step leads to which may follow. An `ended` is found by its
            verdict, and what after-hooks say of a result by `after`: see `key_of`.
        is_end: Whether the call has its result.
        may_ask: Whether hooks may review the call.
        may_start: Whether the call may be started.
        may_end: Whether it may get its result.
        is_open: Whether it has no result and goes on here.
        is_pending: Whether it is started here, or was.
        stage: Itself. A call that requested others has in its place an `Ask`, whose stage changes.
    """

    __slots__ = (
        "is_end",
        "is_open",
        "is_pending",
        "leads",
        "may_ask",
        "may_end",
        "may_start",
        "name",
        "stage",
        "status",
    )

    def __init__(self, name: StageName) -> None:
        self.name: StageName = name
        self.status: CallStatus = _STATUS_OF.get(name) or CallStatus(name)
        self.is_end: bool = self.status in _ENDS
        self.may_ask: bool = "reviewed" in TABLE[name] and not self.is_end
        self.may_start: bool = "started" in TABLE[name]
        self.may_end: bool = "ended" in TABLE[name]
        self.is_open: bool = "moved" in TABLE[name]
        self.is_pending: bool = self.may_start or name == "running"
        self.leads: dict[str, Stage] = {}
        self.stage: Stage = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _stage_named, (self.name,)


STAGES: Final[Mapping[str, Stage]] = MappingProxyType({name: Stage(name) for name in TABLE})

END_OF: Final[Mapping[str, Stage]] = MappingProxyType(
    {
        "success": STAGES["succeeded"],
        "error": STAGES["failed"],
        "indeterminate": STAGES["failed"],
        "rejected": STAGES["cancelled"],
        "cancelled": STAGES["cancelled"],
    }
)
"""The end that each status of a result stands for."""

ASKING: Final = STAGES["awaiting"]
RETURNING: Final = STAGES["returning"]
"""The stages of a call that requested others, before each of these has its result and then."""


def _stage_named(name: Any) -> Stage:
    return STAGES[name]


def _fill(stage: Stage) -> None:
    # One look-up finds the next stage, not its name: it is done for each step of each call.
    # `STAGES["new"].leads["success"] is STAGES["succeeded"]`.
    for kind, target in TABLE[stage.name].items():
        if target != "ended":
            is_after = kind == "reviewed" and stage.is_end
            stage.leads["after" if is_after else kind] = (
                stage if target == "same" else _stage_named(target)
            )
        elif stage.name == "suspended":  # it was not run, so it can only be given up
            stage.leads |= {key: end for key, end in END_OF.items() if end.name == "cancelled"}
        elif stage.may_end and stage.name != "awaiting":  # see `stage_after`
            stage.leads |= END_OF


for _stage in STAGES.values():
    _fill(_stage)


DECIDE: Final = "Take the decision in with `plan.resume(decision)`."


def again(status: CallStatus) -> str:
    """Say that a call can be tried again, if it can."""
    if status is CallStatus.CANCELLED:
        return ""
    return " `call.retry()` lets it be tried again."


def _followers(status: CallStatus) -> Iterator[CallStatus]:
    for kind, target in TABLE[status.value].items():
        if target == "ended":
            # A call that waits was not run, so it can only be given up.
            yield from (CallStatus.CANCELLED,) if status is CallStatus.SUSPENDED else _ENDS
        elif kind not in ("retried", "moved") and target != "same":  # final within a try, and here
            yield STAGES[target].status


TRANSITIONS: Final[Mapping[CallStatus, frozenset[CallStatus]]] = MappingProxyType(
    {status: frozenset(_followers(status)) - {status} for status in CallStatus}
)
"""The table by statuses, as users see them: which may follow each, by any step."""


def refused(
    current: CallStatus, target: CallStatus, again: str = "", *, call_id: str, tool: str
) -> LifecycleError:
    """Make the error for a move that the table does not hold: it says what to do instead.

    Args:
        current: The status that the call has.
        target: The status that it was to have.
        again: How to try a call again that has ended, if that can be done.
        call_id: The id of the call.
        tool: The wire name of the tool.

    >>> print(refused(CallStatus.SUSPENDED, CallStatus.RUNNING, call_id="c1", tool="search"))
    Call 'c1' of tool 'search' is suspended and cannot become running. Reachable from here: \
resuming, cancelled. Take the decision in with `plan.resume(decision)`.
    """
    return LifecycleError(
        f"Call {call_id!r} of tool {tool!r} is {current} and cannot become {target}. "
        f"{_remedy(current, again)}"
    )


def _remedy(current: CallStatus, again: str) -> str:
    if current.is_terminal:
        return f"That status is final: nothing is reachable from it.{again}"
    ways = [each for each in CallStatus if each in TRANSITIONS[current]]
    return f"Reachable from here: {', '.join(ways)}. {DECIDE}"


StepPhase: TypeAlias = Literal[
    "execution", "gate", "before", "after", "decision", "decode", "reply"
]

RejectionSource: TypeAlias = Literal["hook", "gate", "user", "decision"]
"""Who rejected a call: an execution hook, a gate that blocked it, the user's own code, or whoever
decided to cancel it while it was suspended."""

_SOURCES: Final[Mapping[StepPhase | None, RejectionSource]] = {
    "execution": "hook",
    "gate": "gate",
    "decision": "decision",
}

HOOK_PHASES: Final = frozenset({"execution", "gate"})
"""The phases before a run."""

SETTLING: Final = HOOK_PHASES | {"decision"}
"""The phases in which whoever decides may end a call, or let it wait."""


Move: TypeAlias = tuple[Any, ...]
"""A step as it is written: kind, key, time, by, phase, verdict, reason, digest, detail.

The key is what the table has it by, see `key_of`. Without a time it happened with its entry."""

Entry: TypeAlias = tuple[Any, int, int, float, tuple[Move, ...]]
"""What happens to a call at once, behind what the next writer has to know: the stage that it leads
to (or an `Ask`, which has one), the number of the entry by which the present or last run was
started (0 if none was, -1 for one before a load), that of the entry that has the input, when it was
written; and the steps.
"""


# A gate `guard` let a payment wait, and nobody has decided since:
#     reviewed   new        1767268800.0  guard  gate  suspend  "confirm"  -          -
#     suspended  suspended  1767268800.1  guard  gate  -        -          sha256:…   a ticket
# A tuple and no class with fields of its own for each kind: histories are compared, cut and joined.
class Step(NamedTuple):
    """Hold one step as it is read; `CallStep` is what users see of it.

    Attributes:
        kind: What happened.
        led_to: The stage of the call after this step; of one that requested others, the `Ask`.
        at: When, in seconds of the epoch.
        by: Who did it, by name.
        phase: In which part of deciding.
        verdict: What was decided, or the status of a result.
        reason: Why.
        digest: The digest that was shown, or decided on.
        detail: What belongs to the kind: the data of an input, a ticket, a decision, a result, for
            an end by a hook the output with its result (none if it rejects), for `reviewed` the
            hook.
    """

    kind: StepKind
    led_to: Any
    at: float
    by: str | None = None
    phase: StepPhase | None = None
    verdict: str | None = None
    reason: str | None = None
    digest: str | None = None
    detail: Any = None

    # Kept as a field, the stage of a call that waits for others would have to be replaced by
    # whoever gives the last of these its result. So it is worked out when it is read.
    @property
    def stage(self) -> Stage:
        """The stage of the call after this step."""
        stage: Stage = self.led_to.stage
        return stage

    @property
    def as_move(self) -> Move:
        """The step as it is written, as into another history."""
        return (self.kind, key_of(self.kind, self.phase, self.verdict), *self[2:])

    @property
    def source(self) -> RejectionSource:
        """What rejected the call, if it ended by this step without a run."""
        return _SOURCES[self.phase]

    @property
    def hook_key(self) -> str | None:
        """The name by which a saved history knows the hook of the step, if it has one."""
        return hook_key(self.detail)

    @property
    def is_refusal(self) -> bool:
        """Whether the call refused to start by this step."""
        return self.by == REFUSED_BY


class Said(TypedDict, total=False):
    """The fields that a step need not have."""

    at: float
    by: str | None
    phase: StepPhase | None
    verdict: str | None
    reason: str | None
    digest: str | None
    detail: Any


def key_of(kind: StepKind, phase: StepPhase | None, verdict: str | None) -> str:
    """Return what a step is found by in the table: its kind, or which end or review it is."""
    if kind == "ended":
        return verdict or ""
    return "after" if phase == "after" else kind


def move(kind: StepKind, **said: Unpack[Said]) -> Move:
    """Return a step that will be written."""
    get: Any = said.get
    phase, verdict = get("phase"), get("verdict")
    who = get("by"), phase, verdict, get("reason"), get("digest"), get("detail")
    return (kind, key_of(kind, phase, verdict), get("at"), *who)


def steps_in(
    entries: Mapping[int, Entry], count: int, before: tuple[Step, ...] = (), since: int = 0
) -> History:
    """Read the steps of a history.

    The times never go back: a clock that was put back counts as the time of the step before.

    Args:
        entries: The history.
        count: How many entries to read.
        before: The steps of the first of them, which were read already.
        since: How many these are.
    """
    steps = [*before]
    led_to: Any = before[-1].led_to if before else None
    last = before[-1].at if before else 0.0
    for number in range(since, count):
        end, _, _, written, moves = entries[number]
        for each in moves:
            led_to = end if each is moves[-1] else _follows(led_to, each)
            at = written if each[2] is None else each[2]
            # Time servers put clocks back. Without this an `ended` could lie before its `started`,
            # and rows and events, which are sorted by time, would disagree with the history.
            last = max(last, at)
            steps.append(_new_step((each[0], led_to, last, *each[3:])))
    return History(steps)


def _follows(led_to: Any, step: Move) -> Any:
    """Return what a step led to that was written behind another, which led to this."""
    kind, key, _, by, *_, detail = step
    if kind == "proposed":
        return _NEW if by is None else _UNREVIEWED
    if kind == "requested":
        return detail
    # Those that a call requested may have been tried again since it came back from them.
    stage = led_to if isinstance(led_to, Stage) else RETURNING
    after = stage.leads[key]
    return led_to if after is stage else after


_new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
_new_step: Callable[[tuple[Any, ...]], Step] = partial(_new, Step)
"""Make a step of a tuple of all its fields, in a fifth of the time that `Step(...)` takes."""


def first_entry(at: float, by: str | None = None, text: Any = None) -> Entry:
    """Begin a history.

    Args:
        at: When.
        by: The id of the call that requested this one, if one did.
        text: The text of the input, if it is not the model's own.
    """
    if by is None and text is None:
        return (_NEW, 0, 0, at, _PROPOSED)
    proposed = move("proposed", by=by, detail=text)
    return (_NEW if by is None else _UNREVIEWED, 0, 0, at, (proposed,))


_PROPOSED: Final = (move("proposed"),)
_NEW: Final = STAGES["new"]
_UNREVIEWED: Final = STAGES["unreviewed"]
_CANCELLED: Final = STAGES["cancelled"]

ASKED_BY: Final = "needs_approval"
"""Who asks for the approval that a tool is declared to need, in steps, records and rows."""

RULED_BY: Final = "rule"
"""Stands in `by` if all rules of a tool have reviewed a call, and the tool needs no approval."""

REFUSED_BY: Final = "input"
"""Who ends a call whose own arguments do not describe its input, or do not fit any more."""

SPENT: Final = "spent"
"""The verdict of a `retried` after which an earlier approval does not count any more."""

CONTINUED: Final = "continued"
"""The verdict of a `retried` by which a call that was cut off goes on from what it requested."""

BY_TOOL: Final = "tool"
"""The verdict of a `suspended` if the tool asks, after it was started; users do not see it."""


def stage_after(led_to: Any, key: str) -> Stage | None:
    """Return the stage that a step leads to, if it may follow another, which led to this.

    That is what the table has, and one rule that it cannot have: a call that requested others can
    be given up once these have ended.
    """
    stage: Stage = led_to.stage
    after = stage.leads.get(key)
    if after is None and stage is ASKING:
        end = END_OF.get(key)
        if end is _CANCELLED and all(each.stage.is_end for each in led_to.calls):
            return end
    return after


VERDICTS: Final[Mapping[StepKind, tuple[str | None, ...]]] = MappingProxyType(
    {
        "suspended": (BY_TOOL, None),
        "decided": ("resume", "edit", "cancel"),
        "ended": tuple(END_OF),
        "retried": (SPENT, CONTINUED, None),
    }
)
"""What the verdict of a step may be, by the kind of the step."""


@dataclass(frozen=True, slots=True)
class CallStep:
    """Hold one thing that happened to a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        kind: What happened: `proposed`, `reviewed`, `changed`, `suspended`, `decided`, `started`,
            `abandoned`, `ended`, `recorded`, `moved`, `retried`, `requested` or `late`.
        at: When, in ISO 8601 and UTC.
        by: Who did it: a hook, a condition, a person, a store's owner, the call that requested this
            one; None for the program and the tool itself.
        phase: Where in deciding: `execution`, `gate`, `before` or `after` for hooks,
            `decision` for a person, `decode` for what could not be used, `reply` for a final
            answer.
        verdict: What was decided, or the status of the result; None of a hook that let the call
            pass.
        reason: Why; of a wait, what is asked; of `requested`, the ids of the calls.
        id: The id of the ticket or decision.
        digest: The digest of the tool and the final arguments, if something is bound to it.
        arguments: The arguments from here on, as plain data with secrets masked; None if they did
            not change.
    """

    call_id: str
    tool: str
    kind: StepKind
    at: str
    by: str | None
    phase: StepPhase | None
    verdict: str | None
    reason: str | None
    id: str | None
    digest: str | None
    arguments: Any

    def model_dump(self) -> dict[str, Any]:
        """Return the step as plain data: all attributes, None for what is not set."""
        return {name: getattr(self, name) for name in type(self).__slots__}

    def __hash__(self) -> int:  # arguments are dicts
        return hash((self.call_id, self.kind, self.at, self.by, self.phase, self.verdict, self.id))


def iso_time(at: float) -> str:
    """Write a time as users see it, always with microseconds, so that texts sort as times do."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def hook_key(hook: Any) -> str | None:
    """Return the name by which a saved history knows a hook; None if it has no name of its own."""
    if isinstance(hook, str):  # it was loaded
        return hook
    of = hook
    while type(of) is not FunctionType and hasattr(of, "function"):
        of = of.function  # as it was registered, and with the arguments that it takes
    module, name = getattr(of, "__module__", None), getattr(of, "__qualname__", None)
    is_shared = isinstance(getattr(of, "__self__", None), type | ModuleType | None)
    if not (isinstance(module, str) and isinstance(name, str)) or "<" in name or not is_shared:
        return None
    return f"{module}:{name}"


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


# Calls point to this and not to their round: the warning about a round that is dropped while it is
# open would otherwise wait for the collector of cycles.
class CallRound:
    """What a call knows of its round: all calls of a round share one, which closes them at once.

    Attributes:
        key_prefix: What idempotency keys begin with, if the conversation has an id.
        place: Where in which transcript the round was opened, if that is known.
        closed_by: Why no call starts here any more: how the round was closed, or `HELD`; or
            `ON_RECORD`.
        transcript: The transcript that it was opened behind, if a session asked for the turn.
        traces: By the id of a call that requested others, the span that these stand under.
        inner: The calls that its calls requested, by id, in the order of the requests.
        turn: The turn that the calls belong to, if there is one.
        has_retried: Whether a call was tried again, so that an earlier result of it may be around.
        stored_in: What keys begin with if a store keeps the round: its id there, and a slash.
        started: Of calls that a store lets run, when they were started, and by whom.
    """

    # Of the class where most rounds have nothing of it.
    transcript: Transcript | None = None
    traces: Mapping[str, str] = _NOTHING
    inner: Mapping[str, Any] = _NOTHING
    turn: AssistantTurn | None = None
    has_retried = False
    stored_in = ""
    started: tuple[float | None, str | None] = (None, None)

    def __init__(
        self, key_prefix: str = "", place: Place | None = None, closed_by: str | None = None
    ) -> None:
        self.key_prefix = key_prefix
        self.place = place
        self.closed_by = closed_by

    def copy_as(self, closed_by: str | None = None) -> CallRound:
        """Return the same for calls that may run, or that are closed for another reason.

        Args:
            closed_by: Why the calls do not start; None if they may.
        """
        made = CallRound(self.key_prefix, self.place, closed_by)
        # Not what is of the class: what the round will have goes into dicts of its own.
        names = ("transcript", "turn", "traces", "inner", "stored_in")
        vars(made).update({name: vars(self)[name] for name in names if name in vars(self)})
        return made

    @cached_property
    def callers(self) -> Mapping[str, str]:
        """The programs of the provider that made calls of the turn, by the ids of the calls."""
        return {} if self.turn is None else self.turn.callers

    def first_entry(self, by: str | None = None) -> Entry:
        """Begin the history of calls of the round, now.

        Args:
            by: The id of the call that requested them, if one did.
        """
        return first_entry(time(), by)

    def take_in(self, requested: Iterable[Any]) -> None:
        """Keep calls that a call requested."""
        # Into one dict, so that of two threads none drops what the other puts in. Others may do so
        # at any time: whoever goes over it makes a list first, which CPython does at once.
        own: dict[str, Any] = vars(self).setdefault("inner", {})
        own.update({each.id: each for each in requested})

    def trace(self, call_id: str, trace: str | None) -> None:
        """Note the span of the calls that a call requested; the first one stays."""
        if trace is not None:
            own: dict[str, str] = vars(self).setdefault("traces", {})
            own.setdefault(call_id, trace)

    def is_of(self, transcript: Transcript) -> bool:
        """Whether the round may be of this conversation, by its transcript or else by its place."""
        if self.transcript is not None:
            return self.transcript is transcript
        # A call that was pickled has its place, but neither its turn nor the calls within it.
        if self.place is None:
            return True
        return self.turn is not None and self.place.is_behind(transcript)

    def __reduce__(self) -> tuple[Any, ...]:  # a call that is sent elsewhere takes no transcript
        state = (self.key_prefix, self.place, self.closed_by)
        parts = {"traces": {**self.traces}, "started": self.started, "stored_in": self.stored_in}
        return (CallRound, state, parts)

    @property
    def requested_in(self) -> str | None:
        """A name for the round of the calls, made of the place at which it was opened, if known."""
        place = self.place
        return None if place is None else digest_of([self.key_prefix, place.length, place.digest])


NO_ROUND: Final = CallRound()
"""Stands for the round of calls that belong to none."""

HELD: Final = "held"
"""Closes a call that a store keeps, until the store has recorded its start."""

ON_RECORD: Final = "on record"
"""Opens a call whose start is on record elsewhere: it starts at the time that is recorded."""

PICKLED: Final = "pickled"
"""Closes a call that was unpickled: the one that it was pickled from may start."""


# What is read from a history. None of it is stored anywhere else: lists, rows, displays and saved
# plans ask here, and so tell one story.


class Answer(NamedTuple):
    """A ticket of a call and the decision about it.

    Attributes:
        decision: The decision.
        ticket: What was asked.
        digest: The digest that the decision is bound to.
        is_of_tool: Whether the tool asked, after it was started; else a gate or the program.
        is_of_gate: Whether a gate asked, or `needs_approval`, which is one.
        is_of_hooks: Whether a gate, a rule or a function in place of hooks asked: not the program
            by itself, nor the tool.
    """

    decision: Decision
    ticket: SuspendTicket
    digest: str
    is_of_tool: bool
    is_of_gate: bool
    is_of_hooks: bool

    @property
    def is_passed_on(self) -> bool:
        """Whether the ticket has the decision passed to the tool."""
        return self.ticket.resume_mode == "pass_decision_to_tool"


CallRowState: TypeAlias = Literal[
    "pending",
    "in_doubt",
    "suspended",
    "finished",
    "handled",
    "rejected",
    "unusable",
    "awaiting",
    "unreviewed",
]

ANSWERED: Final = ("finished", "handled", "rejected", "unusable")

_ELSEWHERE: Final = STAGES["elsewhere"]
_OF_DOUBT: Final = ("started", "abandoned", "retried", "decided")
_OF_STAGE: Mapping[Stage, CallRowState] = {
    STAGES["in_doubt"]: "in_doubt",
    STAGES["awaiting"]: "awaiting",
    STAGES["unreviewed"]: "unreviewed",
}


class History(tuple[Step, ...]):
    """All steps of a call up to some moment, and what is read from them."""

    __slots__ = ()

    def of_kind(self, kind: StepKind) -> Iterator[Step]:
        """Return the steps of one kind, the latest first."""
        return (step for step in reversed(self) if step.kind == kind)

    @property
    def stage(self) -> Stage:
        """The stage of the call."""
        return self[-1].stage

    def stage_after(
        self, kind: StepKind, phase: StepPhase | None, verdict: str | None
    ) -> Stage | None:
        """Return the stage that another step leads to, if it may follow."""
        return stage_after(self[-1].led_to, key_of(kind, phase, verdict))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The decisions by which a call goes on, the latest first: at most one for each asker.

        Two may ask: a gate before the call is run, and the tool itself while it runs. Neither
        answer stands for the other. A new question of an asker spends what answered its last one,
        and no answer outlives the arguments that it was given about.
        """
        # Of `suspended (gate) decided started suspended (tool) decided` both answers count, the
        # tool's first. Had the tool asked about other arguments (another digest), the gate's would
        # be dropped, since it was given about the arguments before.
        answers: list[Answer] = []
        asked: Step | None = None
        is_of_tool = False
        for step in self:
            kind = step.kind
            if kind == "suspended":
                asked, is_of_tool = step, step.verdict == BY_TOOL
                answers = [
                    each
                    for each in answers
                    if each.is_of_tool is not is_of_tool and step.digest in (None, each.digest)
                ]
            elif kind == "retried" and step.verdict == SPENT:
                answers = []
            elif kind == "decided" and asked is not None and step.verdict != "cancel":
                if step.verdict == "edit":
                    answers = [each for each in answers if each.digest == step.digest]
                digest, phase = step.digest or asked.digest or "", asked.phase
                by = is_of_tool, phase == "gate", phase is not None
                answers.insert(0, Answer(step.detail, asked.detail, digest, *by))
        return tuple(answers)

    @property
    def settled_by(self) -> Step:
        """The step by which the call came to wait, or ended, last."""
        at = -1
        while self[at].kind not in ("suspended", "ended"):
            at -= 1
        return self[at]

    @property
    def as_it_left(self) -> History:
        """The history as it was when the call went elsewhere, if it did: views show it so."""
        if self[-1].stage is not _ELSEWHERE:
            return self
        at = len(self)
        while self[at - 1].stage is _ELSEWHERE:
            at -= 1
        return History(self[:at])

    @property
    def wait(self) -> Step | None:
        """The step by which the call waits, if it does."""
        steps = self.as_it_left
        return steps.settled_by if steps[-1].stage.name == "suspended" else None

    @property
    def end(self) -> Step | None:
        """The step by which the call ended, if it did."""
        return self.settled_by if self[-1].stage.is_end else None

    @property
    def recorded(self) -> Step | None:
        """The step by which a plan was told about the present wait or end, if it was."""
        for step in reversed(self):
            if step.kind == "recorded":
                return step
            if step.kind in ("suspended", "ended"):
                return None
        return None

    @property
    def state(self) -> CallRowState:
        """Which list of a plan the call is in."""
        stage = self[-1].stage
        if stage.is_pending:
            return "pending"
        of_stage = _OF_STAGE.get(stage)
        if of_stage is not None:
            return of_stage
        if stage is _ELSEWHERE:
            return self.as_it_left.state
        # A hook's word counts at once, in every plan. The outcome of a tool counts for a plan when
        # it was told (`recorded`): until then the caller still has to pass the result.
        last = self.settled_by
        if last.phase in SETTLING:
            if last.kind == "suspended":
                return "suspended"
            return "handled" if last.verdict == "success" else "rejected"
        if last.phase == "reply" or self.recorded is not None:
            return "suspended" if last.kind == "suspended" else "finished"
        if last.phase == "decode":
            return "unusable"
        # After `abandoned`, an end that no plan was told about proves nothing, unless another try
        # was made since, which is known from its start, or somebody who knew of the doubt approved
        # the call.
        kind = next((step.kind for step in reversed(self) if step.kind in _OF_DOUBT), None)
        return "in_doubt" if kind == "abandoned" else "pending"

    @property
    def is_answered(self) -> bool:
        """Whether the plan has the result of the call."""
        return self.state in ANSWERED

    @property
    def result(self) -> ToolResult | None:
        """The result of a handled or recorded call, as after-hooks left it."""
        for step in reversed(self):
            if step.phase == "after" and step.verdict == "replaced":
                replaced: ToolResult = step.detail[1]
                return replaced
            if step.kind == "recorded" or step.phase == "reply":
                recorded: ToolResult = step.detail
                return recorded
            if step.kind == "ended" and step.phase in SETTLING and step.verdict == "success":
                handled: ToolResult = step.detail[1]
                return handled
        return None

    @property
    def is_unread(self) -> bool:
        """Whether the call is of no tool: it could not be used, or gave the final answer."""
        return len(self) > 1 and self[1].phase in ("decode", "reply")

    @property
    def issue(self) -> RecoverableToolCallIssue | None:
        """What is wrong with a call that could not be used; None for any other call."""
        if len(self) < 2 or self[1].phase != "decode":
            return None
        issue: RecoverableToolCallIssue = self[1].detail
        return issue

    @property
    def was_started(self) -> bool:
        """Whether the tool was started: in this try, an earlier one, or before it asked."""
        return any(
            step.kind in ("started", "requested") or step.verdict == BY_TOOL for step in self
        )

    @property
    def was_touched(self) -> bool:
        """Whether the call was started or answered, by whoever, since the hooks let it pass."""
        if self.was_started:
            return True
        return not self.stage.may_start and self.state in ("pending", "finished")

    @property
    def this_try(self) -> History:
        """The steps of the present try: those from the last `retried` on that began another."""
        for at in range(len(self) - 1, 0, -1):
            if self[at].kind == "retried" and self[at].verdict != CONTINUED:
                return History(self[at:])
        return self

    @property
    def asked_hooks(self) -> list[Any]:
        """The execution hooks that reviewed the call in this try, since a person edited it."""
        found: list[Any] = []
        for step in reversed(self):
            if step.kind == "retried" or (step.kind == "decided" and step.verdict == "edit"):
                break
            if step.phase == "execution" and step.kind == "reviewed":
                found.append(step.detail)
        return found

    @property
    def as_entry(self) -> Entry:
        """The history as one entry, as one that was saved goes on: it was all written before."""
        start = -1 if any(step.kind == "started" for step in self) else 0
        moves = tuple([step.as_move for step in self])
        return (self[-1].led_to, start, 0, self[-1].at, moves)
