"""The stored form of one step, written and read by two tables: what it may say, what it holds.

A step that the table of `_call.lifecycle` lacks is refused, so a text cannot say what could not
have happened. What belongs to the kind stands under one name:

    {"kind": "suspended", "at": "2026-01-01T12:00:00.000000+00:00", "by": "guard", "phase": "gate",
     "digest": "sha256:…", "ticket": {"id": "t1", "action": "approve", …}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, get_args

from .._call.deciding import Asking
from .._call.decision_log import DecisionKind
from .._call.lifecycle import STAGES, StepKind
from .._call.line import BY_TOOL, END_OF, AsksStep, Step, StepPhase, leads_to, moment, wait_of
from .._call.outcomes import SOURCES, IssueReason, RecoverableToolCallIssue
from .._context.suspension import Decision, DecisionAction, ResumeMode, SuspendTicket
from .._text.json import compact_json, parse_json, shorten
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import Saved
from ..errors import FieldIssue

_ANY: Final = None
_DECIDING: Final = ("hook", "gate", "function")
_DECIDED: Final = (*get_args(DecisionKind), None)
_MAY_SAY: Final[Mapping[StepKind, Mapping[str | None, tuple[str | None, ...] | None]]] = {
    "proposed": {None: _ANY},
    "asked": {**dict.fromkeys(_DECIDING, _DECIDED), "before": (None,), "after": ("replaced", None)},
    "changed": dict.fromkeys((*_DECIDING, "decision", None), _ANY),
    "suspended": dict.fromkeys((*_DECIDING, None), (BY_TOOL, None)),
    "answered": {None: ("resume", "edit", "cancel")},
    "begun": {None: _ANY},
    "left": {None: _ANY},
    "ended": {
        **dict.fromkeys((*_DECIDING, "decision"), ("success", "rejected", "cancelled")),
        **dict.fromkeys(("reading", "answer", None), tuple(END_OF)),
    },
    "recorded": {None: _ANY},
    "again": {None: _ANY},
    "asks": {None: _ANY},
}
"""By kind, the phases in which a step may be written, and what it may say then."""

_HOLDS: Final[Mapping[StepKind, str]] = {
    "proposed": "arguments",
    "changed": "arguments",
    "asked": "result",
    "suspended": "ticket",
    "answered": "decision",
    "ended": "result",
    "recorded": "result",
}
"""By kind, under which name a step has what belongs to it; of what could not be read, `issue`."""

_WORDS: Final = frozenset(
    {*("kind", "at", "by", "phase", "said", "reason", "digest", "key", "issue", "elsewhere")}
    | {*_HOLDS.values()}
)


def check_words(saved: Saved, known: frozenset[str]) -> None:
    """Refuse what only a newer release understands: to leave it out would change what it says.

    Raises:
        PlanError: A plan, a call or a step has such a word.
    """
    for word in saved.data:
        if word not in known:
            raise saved.wrong(
                word, "this release does not know it. Load the text with the one that saved it"
            )


# Writing.


def dump_step(step: Step) -> dict[str, Any]:
    """Save one step."""
    data: dict[str, Any] = {
        "kind": step.kind,
        "at": moment(step.at),
        "by": step.by,
        "phase": step.phase,
        "said": step.said,
        "reason": step.reason,
        "digest": step.digest,
    }
    detail, name = step.detail, _name_of(step.kind, step.phase)
    if step.phase == "before":
        data["key"], detail = detail, None
    elif step.phase == "after":
        data["key"], detail = detail
    elif step.kind in ("asked", "asks") or (step.kind == "ended" and step.phase is None):
        detail = None  # the time of asking; what stands beside lines; a result `recorded` has
    elif step.kind == "ended" and step.phase in SOURCES and detail is not None:
        _, detail = detail
    if detail is not None:
        data[name] = _DUMP[name](detail)
    return {name: value for name, value in data.items() if value is not None or name == "at"}


def _name_of(kind: StepKind, phase: StepPhase | None) -> str:
    return "issue" if phase == "reading" else _HOLDS.get(kind, "")


def _dump_decision(decision: Decision) -> dict[str, Any]:
    data = {name: getattr(decision, name) for name in Decision.__slots__}
    return {name: v for name, v in data.items() if v is not None or name not in _NEWER}


_NEWER: Final = ("ticket", "asked_in")
"""What decisions of before do not have."""


def _dump_issue(issue: RecoverableToolCallIssue) -> dict[str, Any]:
    return {
        "reason": issue.reason,
        "text": issue.text,
        "fields": [
            {"path": each.path, "message": each.message, "received": each.received}
            for each in issue.fields
        ],
        "suggestion": issue.suggestion,
    }


_DUMP: Final[Mapping[str, Callable[[Any], Any]]] = {
    "arguments": parse_json,
    "ticket": SuspendTicket.to_dict,
    "decision": _dump_decision,
    "result": dump_result,
    "issue": _dump_issue,
}


# Reading.


def load_line(
    entries: Sequence[Saved],
    metadata: ToolMetadata,
    asking: Asking | None = None,
    *,
    behind: tuple[Step, ...] = (),
    asks: Sequence[Any] = (),
) -> tuple[Step, ...]:
    """Replay steps of one call.

    Args:
        entries: The steps.
        metadata: The call.
        asking: The time of asking that the steps of the plan's own hooks are of.
        behind: The steps that they follow.
        asks: What each of the steps `asks` holds.

    Returns:
        The new steps.

    Raises:
        PlanError: One of them is damaged, or cannot follow the one before.
    """
    line = [*behind]
    left = iter(asks)
    for saved in entries:
        line.append(_load_step(saved, line, metadata, asking, left))
    made = tuple(line[len(behind) :])
    wait = wait_of(tuple(line)) if line else None
    for saved, step in zip(entries, made, strict=True):
        if step is wait and (step.detail is None or step.digest is None):
            raise saved.wrong("ticket" if step.detail is None else "digest", "it is missing")
    return made


def _load_step(
    saved: Saved,
    line: list[Step],
    metadata: ToolMetadata,
    asking: Asking | None,
    asks: Iterator[Any],
) -> Step:
    check_words(saved, _WORDS)
    kind: StepKind = saved.member("kind", StepKind)
    phase: StepPhase | None = None
    if saved.any("phase") is not None:
        phase = saved.member("phase", StepPhase)
    if phase not in _MAY_SAY[kind]:
        raise saved.wrong("phase", f"{shorten(phase)} does not go with {kind!r}")
    if phase in ("reading", "answer") and len(line) != 1:
        raise saved.wrong("phase", f"{phase!r} comes first, where a call is of no tool")
    said = saved.get("said", str, None)
    allowed = _MAY_SAY[kind][phase]
    if allowed is not None and said not in allowed:
        raise saved.wrong("said", f"{shorten(said)} is none of the known values")
    by: str | None = saved.get("by", str, None)
    first = STAGES["new" if saved.any("by") is None else "asked"]
    stage = first if not line else leads_to(tuple(line), kind, phase, said)
    if stage is None:
        raise saved.wrong("kind", f"{kind!r} cannot follow where a call is {line[-1].stage.status}")
    is_asking = kind == "asks"
    detail: Any = next(asks, None) if is_asking else None
    if is_asking and detail is None:
        raise saved.wrong("kind", "what it asked for is missing")
    detail = detail or _load_detail(saved, kind, phase, said, metadata, asking)
    reason, digest = saved.get("reason", str, None), saved.get("digest", str, None)
    make = AsksStep if is_asking else Step
    return make(kind, stage, _load_time(saved), by, phase, said, reason, digest, detail)


def _load_detail(
    saved: Saved,
    kind: StepKind,
    phase: StepPhase | None,
    said: str | None,
    metadata: ToolMetadata,
    asking: Asking | None,
) -> Any:
    """Read what belongs to the kind of a step."""
    name = _name_of(kind, phase)
    if phase == "before":
        return saved.get("key", str)
    if kind == "asked" and phase != "after":
        return None if saved.get("elsewhere", bool, False) else asking
    if name == "arguments":
        data = saved.any(name)
        return None if data is None else compact_json(data).encode("utf-8", "surrogatepass")
    inner = saved.inner_or_none(name)
    detail = None if inner is None else _LOAD[name](inner, metadata)
    is_handled = kind == "ended" and phase in SOURCES and said == "success"
    needs = {
        "asked": said == "replaced",
        "answered": said != "resume",  # else the program may have moved the call on by itself
        "ended": is_handled or phase in ("reading", "answer"),
        "recorded": said != "suspended",
    }
    if detail is None and needs.get(kind, False):
        raise saved.wrong(name, "it is missing")
    if phase == "after":
        return (saved.get("key", str), detail)
    if kind == "ended" and phase not in ("reading", "answer", None):
        return (None, detail) if is_handled else None
    return detail


def load_ticket(saved: Saved, _: object = None) -> SuspendTicket:
    """Read what `ticket.to_dict` gave."""
    parameters = saved.inner_or_none("parameters")
    response_schema = saved.inner_or_none("response_schema")
    return SuspendTicket(
        id=saved.get("id", str),
        action=saved.get("action", str),
        message=saved.get("message", str, None),
        parameters={} if parameters is None else parameters.data,
        response_schema=None if response_schema is None else response_schema.data,
        resume_mode=saved.one_of("resume_mode", ResumeMode),
    )


def load_decision(saved: Saved, metadata: ToolMetadata | None = None) -> Decision:
    """Read an answer of a person, which is about one call."""
    action: DecisionAction = saved.member("action", DecisionAction)
    edit = saved.inner_or_none("edit")
    if edit is not None and action != "resume":
        raise saved.wrong("edit", f"it does not go with {action!r}")
    made = Decision(
        call_id=saved.get("call_id", str),
        action=action,
        result=saved.any("result"),
        reason=saved.get("reason", str, None),
        decision_id=saved.get("decision_id", str),
        digest=saved.get("digest", str, None),
        edit=None if edit is None else edit.data,
        by=saved.get("by", str, None),
        at=saved.get("at", str, ""),
        ticket=saved.get("ticket", str, None),
        asked_in=saved.get("asked_in", str, None),
    )
    if metadata is not None and made.call_id != metadata.id:
        raise saved.wrong("call_id", f"it is about another call, {shorten(made.call_id)}")
    return made


def _load_result(saved: Saved, metadata: ToolMetadata) -> ToolResult:
    """Read the result of a call; with that of another the round could never end."""
    result = load_result(saved)
    if not result.answers(metadata):
        raise saved.wrong("", f"it answers another call, {shorten(result.id)}")
    return result


def _load_issue(saved: Saved, metadata: ToolMetadata) -> RecoverableToolCallIssue:
    fields = tuple(
        FieldIssue(each.get("path", str), each.get("message", str), each.get("received", str, None))
        for each in saved.each("fields")
    )
    text, suggestion = saved.get("text", str), saved.get("suggestion", str, None)
    reason: IssueReason = saved.member("reason", IssueReason)
    return RecoverableToolCallIssue(metadata, reason, text, fields, suggestion)


_LOAD: Final[Mapping[str, Callable[[Saved, ToolMetadata], Any]]] = {
    "ticket": load_ticket,
    "decision": load_decision,
    "result": _load_result,
    "issue": _load_issue,
}


def _load_time(saved: Saved) -> float | None:
    if saved.any("at") is None:
        return None
    text = saved.get("at", str)
    at = time_of(text)
    if at is None:
        raise saved.wrong("at", f"{shorten(text)} is no time in ISO 8601")
    return at


def time_of(text: str) -> float | None:
    """Read a time in ISO 8601, of UTC where it does not say; None where it is none."""
    try:
        read = datetime.fromisoformat(text)
        at = (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
        moment(at)  # the first and the last day of the calendar have no time in UTC everywhere
    except (ValueError, OverflowError):
        return None
    return at
