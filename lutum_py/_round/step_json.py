"""The stored form of one step, written and read by one table.

It says in which phases a step may be written, what it may say then, and what it holds. A step that
the table of `_call.history` lacks is refused as well, so a text cannot say what could not
have happened. What belongs to the kind is under one name:

    {"kind": "suspended", "at": "2026-01-01T12:00:00.000000+00:00", "by": "guard", "phase": "gate",
     "digest": "sha256:…", "ticket": {"id": "t1", "action": "approve", …}}
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, get_args

from .._call.base_call import CallRecord
from .._call.decisions import DecisionKind
from .._call.history import STAGES, VERDICTS, History, Step, StepKind, iso_time
from .._call.outcomes import IssueReason, RecoverableToolCallIssue
from .._context.suspension import Decision, DecisionAction, ResumeMode, SuspendTicket
from .._schema.arguments import NOTHING, InputText, at_path, encoded
from .._text.json import is_array, is_object, shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import (
    OBJECT,
    Saved,
)
from .._transcript.transcript_json import dump_turn, load_turn
from ..errors import FieldIssue
from .inner import Left


class _Row(NamedTuple):
    """What a step of one kind may hold in one phase.

    Attributes:
        says: What its `verdict` may be; None for anything.
        holds: The name of the entry with its `detail`; empty if it has none.
        needs: The values of `verdict` with which that entry has to be there.
    """

    says: tuple[str | None, ...] | None = None
    holds: str = ""
    needs: tuple[str | None, ...] = ()


_DECIDING: Final = ("execution", "gate")
_SETTLING: Final = (*_DECIDING, "decision")
_ASKERS: Final = VERDICTS["suspended"]
_ANSWERS: Final = VERDICTS["decided"]
_ENDS: Final = VERDICTS["ended"]
_TABLE: Final[Mapping[StepKind, Mapping[str | None, _Row]]] = {
    "proposed": {None: _Row(holds="arguments")},
    "reviewed": {
        **dict.fromkeys(_DECIDING, _Row((*get_args(DecisionKind), None))),
        "before": _Row((None,)),
        "after": _Row(("replaced", None), "result", ("replaced",)),
    },
    "changed": dict.fromkeys((*_DECIDING, "decision", None), _Row(holds="arguments")),
    "suspended": dict.fromkeys((*_DECIDING, None), _Row(_ASKERS, "ticket", _ASKERS)),
    "decided": {None: _Row(_ANSWERS, "decision", _ANSWERS)},
    "started": {None: _Row()},
    "abandoned": {None: _Row()},
    "ended": {
        **dict.fromkeys(
            _SETTLING,
            _Row(("success", "rejected", "cancelled"), "result", ("success",)),
        ),
        "decode": _Row(_ENDS, "issue", _ENDS),
        "reply": _Row(_ENDS, "result", _ENDS),
        None: _Row(_ENDS, "result"),
    },
    "recorded": {None: _Row((*_ENDS, "suspended"), "result", _ENDS)},
    "late": {None: _Row((*_ENDS, "suspended", "requested"), "result", _ENDS)},
    "moved": {None: _Row()},
    "retried": {None: _Row(VERDICTS["retried"])},
    "requested": {None: _Row(holds="requested")},
}
"""By kind and phase what a step is like in a text."""

_PLAIN: Final = ("by", "phase", "verdict", "reason", "digest")
_WORDS: Final = frozenset({"kind", "at", *_PLAIN, "key", "hook", "unset"}).union(
    row.holds for rows in _TABLE.values() for row in rows.values()
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
    """Save one step; what a step `requested` holds is saved by `entries`."""
    data = {"kind": step.kind, "at": iso_time(step.at)}
    data |= {name: value for name in _PLAIN if (value := getattr(step, name)) is not None}
    detail, holds = step.detail, _TABLE[step.kind][step.phase].holds
    if step.phase == "before":
        data["key"] = detail
    elif step.phase == "after":
        data["key"], detail = detail
    elif step.kind == "reviewed":
        if (key := step.hook_key) is not None:
            data["hook"] = key
    elif step.kind == "ended" and step.phase in _SETTLING and detail is not None:
        _, detail = detail  # the output, which is made of the result again
    elif step.kind == "requested":
        return data
    if holds and detail is not None:
        data[holds] = _HELD[holds][0](detail)
    if holds == "arguments" and detail is not None:
        data |= dump_unset(detail.chosen or detail)
    return data


def dump_unset(text: InputText) -> dict[str, Any]:
    """Save which members of an input were not set."""
    return {"unset": [[*path] for path in text.unset]} if text.unset else {}


def _dump_decision(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in Decision.__slots__}


def _dump_issue(issue: RecoverableToolCallIssue) -> dict[str, Any]:
    data = {name: getattr(issue, name) for name in ("reason", "text", "suggestion")}
    names = ("path", "message", "received")
    return {**data, "fields": [{n: getattr(each, n) for n in names} for each in issue.fields]}


# Reading.


def load_history(
    entries: Sequence[Saved],
    metadata: ToolMetadata,
    behind: History | None,
    requested: Callable[[Saved], Any],
) -> History:
    """Replay steps of one call.

    Args:
        entries: The steps.
        metadata: The call.
        behind: The steps that they follow, if any.
        requested: Reads what a step `requested` holds.

    Returns:
        The new steps.

    Raises:
        PlanError: One of them is damaged, or cannot follow the one before.
    """
    history = behind or History()
    since = len(history)
    for saved in entries:
        history = History((*history, _load_step(saved, history, metadata, requested)))
    return History(history[since:])


def _load_step(
    saved: Saved,
    history: History,
    metadata: ToolMetadata,
    requested: Callable[[Saved], Any],
) -> Step:
    check_words(saved, _WORDS)
    kind: StepKind = saved.member("kind", StepKind)
    by, phase, said, reason, digest = saved.some(str, *_PLAIN, default=None).values()
    row = _TABLE[kind].get(phase)
    if row is None:
        raise saved.wrong("phase", f"{shorten(phase)} does not go with {kind!r}")
    if phase in ("decode", "reply") and len(history) != 1:
        raise saved.wrong("phase", f"{phase!r} comes first, and only in a call of no tool")
    if row.says is not None and said not in row.says:
        raise saved.wrong("verdict", f"{shorten(said)} is none of the known values")
    first = STAGES["new" if by is None else "unreviewed"]
    stage = history.stage_after(kind, phase, said) if history else first
    if stage is None or (kind == "recorded" and history.recorded is not None):
        raise saved.wrong(
            "kind", f"{kind!r} cannot follow while a call is {history[-1].stage.status}"
        )
    text = saved.get("at", str)
    at = _time_of(text)
    if at is None:
        raise saved.wrong("at", f"{shorten(text)} is not a time in ISO 8601")
    if history:
        at = max(history[-1].at, at)  # another machine's clock may be behind
    if history.is_unread and kind != "recorded":
        raise saved.wrong("kind", "a call of no tool ends once")
    detail: Any = None
    if kind == "requested":
        detail = requested(saved.inner("requested"))
    elif saved.data.get(row.holds) is not None:
        detail = _HELD[row.holds][1](saved, metadata)
    elif said in row.needs:
        raise saved.wrong(row.holds, "it is missing")
    if kind == "suspended" and digest is None:
        raise saved.wrong("digest", "it is missing")
    if phase in ("before", "after"):
        key = saved.get("key", str)
        detail = key if phase == "before" else (key, detail)
    elif kind == "reviewed":
        detail = saved.get("hook", str, None)
    elif kind == "ended" and phase in _SETTLING:
        detail = (None, detail) if said == "success" else None
    led_to: Any = detail if kind == "requested" else stage
    if history and stage is history[-1].stage:
        led_to = history[-1].led_to
    return Step(kind, led_to, at, by, phase, said, reason, digest, detail)


def load_ticket(saved: Saved, _: object = None) -> SuspendTicket:
    """Read what `ticket.to_dict` gave."""
    ticket = saved.inner("ticket")
    return SuspendTicket(
        **ticket.some(str, "id", "action"),
        message=ticket.get("message", str, None),
        parameters=ticket.get("parameters", OBJECT, {}),
        response_schema=ticket.get("response_schema", OBJECT, None),
        resume_mode=ticket.member("resume_mode", ResumeMode),
    )


def _load_decision(saved: Saved, metadata: ToolMetadata) -> Decision:
    """Read a decision of a person, which is about one call."""
    saved = saved.inner("decision")
    action: DecisionAction = saved.member("action", DecisionAction)
    edit: Any = saved.get("edit", OBJECT, None)
    if edit is not None and action != "resume":
        raise saved.wrong("edit", f"it does not go with {action!r}")
    made = Decision(
        action=action,
        result=saved.data.get("result"),
        edit=edit,
        at=saved.get("at", str, ""),
        **saved.some(str, "call_id", "decision_id"),
        **saved.some(str, "reason", "digest", "by", "ticket", "requested_in", default=None),
    )
    if made.call_id != metadata.id:
        raise saved.wrong("call_id", f"it is about another call, {shorten(made.call_id)}")
    return made


def _load_input(saved: Saved, _: object = None) -> InputText:
    """Read the text of an input, which nobody validates before the call starts."""
    data, paths = saved.data["arguments"], saved.data.get("unset", [])
    if not is_object(data):
        raise saved.wrong("arguments", "it is not an object")
    if not is_array(paths):
        raise saved.wrong("unset", "it is not a list of paths")
    for path in paths:
        if not (is_array(path) and path) or at_path(data, path) is NOTHING:
            raise saved.wrong("unset", f"{shorten(path)} is not a path in the arguments")
    return InputText(encoded(data), tuple([tuple(path) for path in paths]))


def _load_result(saved: Saved, metadata: ToolMetadata) -> ToolResult:
    """Read the result of a call; with that of another the round could never end."""
    result = load_result(saved.inner("result"))
    if not result.answers(metadata):
        raise saved.wrong("result", f"it is for another call, {shorten(result.id)}")
    return result


def _load_issue(saved: Saved, metadata: ToolMetadata) -> RecoverableToolCallIssue:
    saved = saved.inner("issue")
    fields = tuple(
        FieldIssue(each.get("path", str), each.get("message", str), each.get("received", str, None))
        for each in saved.each("fields")
    )
    text, suggestion = saved.get("text", str), saved.get("suggestion", str, None)
    reason: IssueReason = saved.member("reason", IssueReason)
    return RecoverableToolCallIssue(metadata, reason, text, fields, suggestion)


_HELD: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Saved, ToolMetadata], Any]]]] = {
    "arguments": (lambda text: (text.chosen or text).data, _load_input),
    "ticket": (SuspendTicket.to_dict, load_ticket),
    "decision": (_dump_decision, _load_decision),
    "result": (dump_result, _load_result),
    "issue": (_dump_issue, _load_issue),
}
"""How what a step holds is written, and read from the step and its call."""


def _time_of(text: str) -> float | None:
    """Read a time in ISO 8601, in UTC if it names no zone; None if it is not a time."""
    try:
        read = datetime.fromisoformat(text)
        at = (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
        iso_time(at)  # in UTC, a time at either end of the calendar may be beyond it
    except (ValueError, OverflowError):
        return None
    return at


# What a call left behind when it requested others.

LEFT_WORDS: Final = ("turn", "state", "bytes", "session")


def dump_left(left: Left) -> dict[str, Any]:
    """Save what a call left behind when it requested others."""
    data: dict[str, Any] = {"turn": dump_turn(left.turn)}
    if isinstance(left.state, bytes):
        data["bytes"] = b64encode(left.state).decode()
    elif left.state is not None:
        data["state"] = left.state
    if left.session is not None:
        data["session"] = left.session
    return data


def load_left(saved: Saved, asked: Sequence[CallRecord], toolset: Any) -> Left | None:
    """Read what a call left behind when it requested others; None if it has come back.

    Raises:
        PlanError: It does not fit the calls.
    """
    if "turn" not in saved.data:
        return None
    turn = load_turn(saved.inner("turn"))
    sent = [(each.name, each.arguments) for each in turn.tool_calls]
    if sent != [(each.metadata.name, each.metadata.arguments) for each in asked]:
        raise saved.wrong("turn", "its calls are not those that were requested")
    state: bytes | str | None = saved.get("state", str, None)
    if "bytes" in saved.data:
        try:
            state = b64decode(saved.get("bytes", str), validate=True)
        except Error:
            raise saved.wrong("bytes", "it is not base64") from None
    return Left(turn, state, saved.get("session", str, None), toolset)
