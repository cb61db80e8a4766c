"""What hooks and gates decide about a call: their verdicts, and how these are kept.

A verdict is written to the history of the call by `Review`, and read from there as records. Those
are to be looked at, so what is secret in arguments is masked in them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    overload,
)

from .._schema.arguments import InputText, copied
from .._schema.secrets import MASK
from .._text.escaping import escape_unprintable, escape_unprintable_json
from .._text.immutable import dataclass
from .._text.json import canonical_json, compact_json, shorten
from ..errors import MisuseError
from .history import HOOK_PHASES
from .outcomes import Reply

if TYPE_CHECKING:
    from .._context.suspension import Decision, SuspendTicket
    from .call_state import DecodedCall

In = TypeVar("In")
Out = TypeVar("Out")
In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)


@dataclass(frozen=True, slots=True, init=False)
class RunNormally(Generic[In_co]):
    """Go on with this input: the one that came, or another.

    Example:
        >>> RunNormally({"city": "Oslo"}).input
        {'city': 'Oslo'}
    """

    input: In_co
    _text: InputText | None = field(init=False, repr=False, compare=False)

    def __init__(self, input: In_co) -> None:
        _set_input(self, input)
        _set_text(self, None)

    @classmethod
    def _of(cls, input: Any, text: InputText) -> RunNormally[Any]:
        """Go on with an input that was described already, as of a dict of arguments."""
        made = cls(input)
        text.kept = copied(input)
        _set_text(made, text)
        return made

    def __repr__(self) -> str:
        return f"RunNormally({self.input!r})"

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


_set_input: Any = vars(RunNormally)["input"].__set__
_set_text: Any = vars(RunNormally)["_text"].__set__


@dataclass(frozen=True, slots=True)
class Complete(Generic[Out_co]):
    """Give the call this output, or a `Reply` of it, as its result; the tool is not run."""

    output: Out_co | Reply[Out_co]

    if TYPE_CHECKING:
        # Given one union, two of four type checkers would not find the type in a reply.
        @overload
        def __init__(self, output: Reply[Out_co]) -> None: ...
        @overload
        def __init__(self, output: Out_co) -> None: ...
        def __init__(self, output: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Reject:
    """Refuse the call; the model is told the reason."""

    reason: str


ToolDecision: TypeAlias = RunNormally[In] | Complete[Out] | Reject
"""What an execution hook returns."""

ArgsDecision: TypeAlias = RunNormally[Any] | Complete[Out] | Reject | Mapping[str, Any] | None
"""What an execution hook of the function's own parameters returns.

A mapping holds the arguments to change; None goes on as it is.
"""

ArgsRuleVerdict: TypeAlias = (
    Complete[Out]
    | Reject
    | Mapping[str, Any]
    | Awaitable[Complete[Out] | Reject | Mapping[str, Any] | None]
    | None
)
"""What the rule of a function tool returns; see `tool`."""

InputRuleVerdict: TypeAlias = (
    In | Complete[Out] | Reject | Awaitable[In | Complete[Out] | Reject | None] | None
)
"""What the rule of a tool of an input model returns; see `tool`."""


@dataclass(frozen=True, slots=True)
class Block:
    """Refuse the call at the gate, and say that the run should end: see `plan.blocked`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Let the call wait for a decision.

    Raises:
        MisuseError: The ticket is not a `SuspendTicket`.
    """

    ticket: SuspendTicket

    def __post_init__(self) -> None:
        from .._context.suspension import SuspendTicket  # needed by few, at the first question

        if not isinstance(self.ticket, SuspendTicket):
            raise MisuseError(
                f"Suspend takes a SuspendTicket, not {shorten(self.ticket)}. Write "
                "`Suspend(SuspendTicket(message=...))`."
            )


GateDecision: TypeAlias = Block | Suspend | Complete[Out]
"""What a gate returns, apart from a `ToolResult` and None."""

DecisionPhase: TypeAlias = Literal["execution", "gate"]
DecisionKind: TypeAlias = Literal["run_normally", "complete", "reject", "block", "suspend"]


# Read from the histories.


class DecisionRecord(NamedTuple):
    """Say who decided what about a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        hook: The name of the hook or gate.
        phase: `execution` for hooks, rules and plain functions, or `gate`.
        decision: What it decided.
        reason: Why, for `reject` and `block`; the ticket's action for `suspend`.
    """

    call_id: str
    tool: str
    hook: str
    phase: DecisionPhase
    decision: DecisionKind
    reason: str | None = None


def decisions_in(call: DecodedCall) -> list[tuple[float, DecisionRecord]]:
    """Return what hooks and gates decided about a call, each with its time.

    A gate that let it pass decided nothing.
    """
    return [
        (
            step.at,
            DecisionRecord._make(
                (call.id, call.name, step.by, step.phase, step.verdict, step.reason)
            ),
        )
        for step in call.history
        if step.kind == "reviewed" and step.verdict is not None and step.phase in HOOK_PHASES
    ]


@dataclass(frozen=True, slots=True)
class EditRecord:
    """Say what a person changed in the arguments of a call, as plain data with secrets masked.

    Attributes:
        call_id: The id of the call.
        shown: The arguments that were shown first to whoever decided.
        edited: What the latest edit made of them, defaults included.
        final: The same after hooks: what is run, or waits again.
        decision_id: The id of that decision.
        by: Who decided, in your own words.
        at: When, in ISO 8601.
        changed: The names in which `final` differs from `shown`, secret ones included.
    """

    call_id: str
    shown: Mapping[str, Any] = field(hash=False)
    edited: Mapping[str, Any] = field(hash=False)
    final: Mapping[str, Any] = field(hash=False)
    decision_id: str
    by: str | None
    at: str
    changed: tuple[str, ...]


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the arguments that differ, in the order in which they stand."""
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if not _is_same(name, before, after))


def _is_same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if name not in before or name not in after:
        return False
    return canonical_json(before[name]) == canonical_json(after[name])


def edits_of(call: DecodedCall) -> Iterator[tuple[float, EditRecord]]:
    """Read from the history of a call what people changed in its arguments, and when: as one edit.

    An edit is `decided` with `verdict` edit; what is changed from there to the next thing that
    happens to the call is its outcome: first by the person, then by hooks.
    """
    # Of `proposed {"cents": 500} suspended answered (edit) changed (decision) {"cents": 400} asked
    # changed (hook) {"cents": 300} started`: 500 was shown, 400 is the edit, 300 is final.
    texts: list[InputText | None] = []  # the arguments before each step
    text: InputText | None = None
    history = call.history
    for step in history:
        texts.append(text)
        if step.kind in ("proposed", "changed"):
            text = step.detail
    found: EditRecord | None = None
    at = 0.0
    for place, answered in enumerate(history):
        if answered.kind != "decided" or answered.verdict != "edit":
            continue
        before = edited = final = texts[place]
        for step in history[place + 1 :]:
            if step.kind == "changed":
                final = step.detail
                if step.phase == "decision":
                    edited = final
            elif step.kind != "reviewed":
                break
        found = _noted(call, found, answered.detail, (before, edited, final))
        at = answered.at
    if found is not None:
        yield at, found


def _noted(
    call: DecodedCall,
    earlier: EditRecord | None,
    decision: Decision,
    texts: tuple[InputText | None, InputText | None, InputText | None],
) -> EditRecord:
    """Say what one edit changed, and make an earlier one of the same call part of it."""
    before, by_person, last = map(call.text_of, texts)
    shown, edited, final = map(call.spec.shown_input, (before, by_person, last))
    names = call.spec.shown_names(changed_names(before.data, last.data))
    # A person may edit a call that came back to wait. For whoever reads the record it is one edit,
    # from what was shown first to what runs.
    if earlier is not None:
        shown = earlier.shown
        both = dict.fromkeys((*earlier.changed, *names))
        names = tuple(name for name in both if not _is_back(name, shown, final))
    return EditRecord(
        call.id, shown, edited, final, decision.decision_id, decision.by, decision.at, names
    )


def _is_back(name: str, shown: Mapping[str, Any], final: Mapping[str, Any]) -> bool:
    """Whether an argument is as it was shown first; behind a mask nobody can see that."""
    return _is_same(name, shown, final) and MASK not in compact_json(shown[name])


# Logged.


LOGGER = logging.getLogger("lutum.tool_hook")


def log(
    call: DecodedCall, decision: str, reason: str | None, text: InputText | None = None
) -> None:
    """Log a decision at INFO, which is on.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` if the call goes on, else `reason`.
    """
    name = escape_unprintable(call.name)
    extra: dict[str, Any] = {
        "tool_name": name,
        "tool_call_id": escape_unprintable(call.id),
        "decision": decision,
    }
    if decision == "run_normally":
        shown = call.spec.shown_json(call.described if text is None else text)
        extra["effective_input_json"] = escape_unprintable_json(shown)
    else:
        extra["reason"] = None if reason is None else escape_unprintable(reason)
    LOGGER.info("%s: %s (call %r)", decision, name, call.id, extra=extra)
