"""The stored form of one step, written and read by one table.

It says in which phases a step may be written, what it may say then, and what it holds. A step that
the table of `_call.lifecycle` lacks is refused as well, so a text cannot say what could not
have happened. What belongs to the kind is under one name:

    {"kind": "suspended", "at": "2026-01-01T12:00:00.000000+00:00", "by": "guard", "phase": "gate",
     "digest": "sha256:…", "ticket": {"id": "t1", "action": "approve", …}}
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Any, Final, NamedTuple, get_args

from pydantic import ValidationError

from .._call.base_call import BaseCall
from .._call.call import AnyToolCall
from .._call.call_state import MADE_LATER
from .._call.decisions import DecisionKind
from .._call.history import (
    ANSWERED,
    BY_TOOL,
    CONTINUED,
    END_OF,
    SPENT,
    STAGES,
    CallRound,
    Move,
    Step,
    StepKind,
    as_entry,
    as_it_left,
    hook_key,
    is_unread,
    iso_time,
    key_of,
    move,
    recorded_in,
    result_in,
    stage_after,
    state_in,
    wait_of,
)
from .._call.outcomes import SOURCES, IssueReason, RecoverableToolCallIssue, ended_result, issue_in
from .._context.suspension import Decision, DecisionAction, ResumeMode, SuspendTicket
from .._schema.arguments import NOTHING, InputText, at_path, encoded
from .._text.json import is_array, is_object, shorten
from .._transcript.assistant import AssistantTurn, ToolMetadata, dump_metadata, load_metadata
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import (
    OBJECT,
    PLAN,
    Saved,
    check_key,
    check_saved,
    dump_saved,
    open_saved,
    seal_of,
)
from .._transcript.transcript import Place
from .._transcript.transcript_json import dump_turn, load_turn
from ..errors import FieldIssue, PlanError, ToolInputError, UnknownToolError
from .ending import owes_after_hooks
from .inner import Ask, Left
from .sorted_calls import RoundState


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
_ASKERS: Final = (BY_TOOL, None)
_ANSWERS: Final = ("resume", "edit", "cancel")
_ENDS: Final = tuple(END_OF)
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
            (*_DECIDING, "decision"),
            _Row(("success", "rejected", "cancelled"), "result", ("success",)),
        ),
        "decode": _Row(_ENDS, "issue", _ENDS),
        "reply": _Row(_ENDS, "result", _ENDS),
        None: _Row(_ENDS, "result"),
    },
    "recorded": {None: _Row((*_ENDS, "suspended"), "result", _ENDS)},
    "late": {None: _Row((*_ENDS, "suspended", "requested"), "result", _ENDS)},
    "moved": {None: _Row()},
    "retried": {None: _Row((SPENT, CONTINUED, None))},
    "requested": {None: _Row()},
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
    """Save one step."""
    data = {"kind": step.kind, "at": iso_time(step.at)}
    data |= {name: value for name in _PLAIN if (value := getattr(step, name)) is not None}
    detail, holds = step.detail, _TABLE[step.kind][step.phase].holds
    if step.phase == "before":
        data["key"] = detail
    elif step.phase == "after":
        data["key"], detail = detail
    elif step.kind == "reviewed":
        if (key := hook_key(detail)) is not None:
            data["hook"] = key
    elif step.kind == "ended" and step.phase in SOURCES and detail is not None:
        _, detail = detail  # the output, which is made of the result again
    elif step.kind == "ended" and step.phase is None:
        detail = None  # `recorded` has it
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
    *,
    behind: tuple[Step, ...] = (),
    asks: Sequence[Any] = (),
) -> tuple[Step, ...]:
    """Replay steps of one call.

    Args:
        entries: The steps.
        metadata: The call.
        behind: The steps that they follow.
        asks: What each of the steps `requested` holds.

    Returns:
        The new steps.

    Raises:
        PlanError: One of them is damaged, or cannot follow the one before.
    """
    history, left = behind, iter(asks)
    for saved in entries:
        history = (*history, _load_step(saved, history, metadata, left))
    return history[len(behind) :]


def _load_step(
    saved: Saved,
    history: tuple[Step, ...],
    metadata: ToolMetadata,
    asks: Iterator[Any],
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
    stage = stage_after(history[-1].led_to, key_of(kind, phase, said)) if history else first
    if stage is None or (kind == "recorded" and recorded_in(history) is not None):
        raise saved.wrong(
            "kind", f"{kind!r} cannot follow while a call is {history[-1].stage.status}"
        )
    text = saved.get("at", str)
    at = _time_of(text)
    if at is None:
        raise saved.wrong("at", f"{shorten(text)} is not a time in ISO 8601")
    if history:
        at = max(history[-1].at, at)  # another machine's clock may be behind
    detail: Any = None
    if saved.data.get(row.holds) is not None:
        detail = _HELD[row.holds][1](saved, metadata)
    elif said in row.needs:
        raise saved.wrong(row.holds, "it is missing")
    if kind == "suspended" and digest is None:
        raise saved.wrong("digest", "it is missing")
    if kind == "requested":
        detail = next(asks, None)
        if detail is None:
            raise saved.wrong("kind", "what it requested is missing")
    elif phase in ("before", "after"):
        key = saved.get("key", str)
        detail = key if phase == "before" else (key, detail)
    elif kind == "reviewed":
        detail = saved.get("hook", str, None)
    elif kind == "ended" and phase in SOURCES:
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


_PLAN_WORDS: Final = frozenset(
    {
        *("format", "version", "binding", "key_prefix", "turn", "calls", "inner", "place"),
        *("owes_after", "seal"),
    }
)
_CALL_WORDS: Final = frozenset(
    {"id", "schema_digest", "digest", "coerced", "steps", "waits_for", "seal"}
)

_INNER_WORDS: Final = frozenset({"calls", "requested"})
_ASKED_WORDS: Final = frozenset({"id", "name", "arguments"})
_ASK_WORDS: Final = frozenset({"call", "ids", "trace", "turn", "state", "bytes", "session"})


# Writing.


def dump_plan(
    state: RoundState, key: bytes | None, binding: str | None, *, is_keyed: bool = False
) -> str:
    """Encode a plan.

    Args:
        state: The state of the round.
        key: The key to seal it with, if any.
        binding: What it belongs to, if that is to be said.
        is_keyed: Whether the caller seals the text with a key.

    Raises:
        PlanError: An input, ticket, payload or decision is not JSON data, a call has ended or
            waits and the plan was not told, or a tool left bytes and there is no key.
    """
    check_key(key, binding)
    now = time()
    call_round = state.call_round
    check_told(state)
    data: dict[str, Any] = {
        "format": PLAN.name,
        "version": PLAN.version,
        "binding": binding,
        "key_prefix": call_round.key_prefix,
        "turn": dump_turn(state.turn),
    }
    try:
        data["calls"] = [_dump_entry(call, now) for call in state.all_calls()]
        if sum(not call._stage.is_end for call in state.all_calls()) > 1:
            # For whoever looks at the text without the tools, which alone say what a call accesses.
            from .sorted_calls import Order

            waits = Order.of(state).by_id()
            for entry in data["calls"]:
                if waits.get(entry["id"]):
                    entry["waits_for"] = list(waits[entry["id"]])
        if state.call_round.inner:
            data["inner"] = _dump_inner(state)
        if call_round.place is not None:
            data["place"] = {"items": call_round.place.length, "digest": call_round.place.digest}
        if owes_after_hooks(state):
            data["owes_after"] = True
        # Sealed as it will be read again: JSON knows fewer types than Python.
        data = json.loads(dump_saved(data, PlanError, "The plan"))
    except (ToolInputError, ValueError) as error:
        raise PlanError(f"An input of the plan cannot be saved: {error}") from error
    if "inner" in data and key is None and not is_keyed:
        check_bytes(data["inner"]["requested"])
    for entry in data["calls"]:
        entry["seal"] = seal_of(entry, key).value
    data["seal"] = seal_of(data, key)._asdict()
    return dump_saved(data, PlanError, "The plan")


def _dump_entry(call: BaseCall, now: float) -> dict[str, Any]:
    if not isinstance(call, AnyToolCall):
        return {"id": call.id, "steps": [dump_step(step) for step in saved_history(call)]}
    if call._stage.may_start:
        call._take_changes()  # hooks that made them are not asked again where the text is loaded
    call._text_or_raise()  # first, because which text describes the input is found out here
    history = saved_history(call)
    steps = [dump_step(step) for step in history]
    if history[0].detail is None:
        proposed = call._text_of(None)
        steps[0] |= {"arguments": proposed.data, **dump_unset(proposed)}
    # It runs on where it is, unseen by the text.
    if as_it_left(call._history)[-1].stage.name == "running":
        steps.append({"kind": "abandoned", "at": iso_time(max(now, history[-1].at))})
    return {
        "id": call.id,
        "schema_digest": call.selector.definition.digest,
        "digest": call.digest,
        "coerced": list(call.coerced),
        "steps": steps,
    }


def saved_history(call: BaseCall) -> tuple[Step, ...]:
    """Return the history of a call as a text has it."""
    # Where the text is loaded, it has not moved.
    return tuple([step for step in call._history if step.kind != "moved"])


_OPEN: Final = ("pending", "in_doubt")


def hand_over(state: RoundState, how: str, dump: Callable[[], str]) -> str:
    """Save a plan, and let no call of it start here any more.

    Args:
        state: The state of the round.
        how: How the round is closed.
        dump: Makes the text.

    Returns:
        The text.

    Raises:
        PlanError: It cannot be saved. Nothing changed.
    """
    before = lengths_of(state)
    text = dump()
    move_on(state, how)
    # What happened while the text was made is in it only if it is made once more.
    return text if lengths_of(state) == before else dump()


def lengths_of(state: RoundState) -> list[int]:
    """Count what happened to each call of a plan, but for that it moved."""
    return [
        sum(entries[at][4][-1][0] != "moved" for at in range(len(entries)))
        for entries in (call._entries for call in state.all_calls())
    ]


def move_on(state: RoundState, how: str) -> None:
    """Close a plan, since its calls go on elsewhere.

    An outcome that was not recorded yet is recorded here: nobody can do so once the plan is closed.
    """

    def moves(call: BaseCall) -> tuple[Move, ...]:
        told = (move("recorded", verdict="suspended"),) if _is_untold(call) else ()
        return (*told, move("moved", verdict=how))

    state.end_open(how, moves)
    for call in state.all_calls():
        while call._stage.is_end and _is_untold(call):
            since = len(call._entries)
            result = result_in(call._history) or ended_result(call)
            recorded = move("recorded", verdict=result.status, detail=result)
            call._append_all((recorded,), since)


def check_told(state: RoundState) -> None:
    """Refuse to save a plan of which a call has ended that was not recorded.

    Raises:
        PlanError: There is one.
    """
    for call in state.all_calls():
        if _is_untold(call):
            was = "was in doubt, is" if state_in(call._history) == "in_doubt" else "is"
            raise PlanError(
                f"Call {call.id!r} of tool `{call.name}` {was} {call.status} now, and the plan "
                "was not told, so that a saved one would not know of it. Give the plan the outcome "
                "of the call, with `plan.record(outcome)`, and dump it then."
            )


def _is_untold(call: BaseCall) -> bool:
    """Whether a call has ended or waits, and its plan was not told."""
    stage = call._stage
    return (stage.is_end or stage.name == "suspended") and state_in(call._history) in _OPEN


# What calls requested is beside the histories: which calls, and each time that one requested some.


def _dump_inner(state: RoundState) -> dict[str, Any]:
    """Save what the calls of a round requested."""
    asks: list[dict[str, Any]] = []
    for call in state.all_calls():
        mine = [step.detail for step in call._history if step.kind == "requested"]
        for ask in mine:
            trace = {} if ask.trace is None else {"trace": ask.trace}
            asks.append({"call": call.id, "ids": list(ask.ids), **trace})
        if mine and not call._stage.is_end:
            asks[-1] |= dump_left(mine[-1].left)
    inner = [*state.call_round.inner.values()]
    return {"calls": [dump_metadata(each.metadata) for each in inner], "requested": asks}


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


def check_bytes(asks: Iterable[Mapping[str, Any]]) -> None:
    """Refuse to save, or load, bytes that a tool left if no key protects them.

    A tool may pass its bytes to code that trusts them, such as the interpreter of a program.

    Args:
        asks: Each time that a call requested others, in a plan without a key.

    Raises:
        PlanError: There are such bytes.
    """
    for ask in asks:
        if "bytes" in ask:
            raise PlanError(
                f"Call {ask['call']!r} left bytes to come back to, as a program leaves its "
                "interpreter, and without a key anybody could put others in their place. Pass "
                '`key=`, or let the tool leave a text: `program_tool(tools, keep="replay")`.'
            )


# Reading.


def _load_ask(saved: Saved, calls: Mapping[str, BaseCall], toolset: Any) -> Ask:
    """Read one time that a call requested others, which were read before.

    Raises:
        PlanError: What was left does not fit the calls.
    """
    asked, trace = tuple(calls[id] for id in saved.texts("ids")), saved.get("trace", str, None)
    return Ask(asked, load_left(saved, asked, toolset), trace)


def load_left(saved: Saved, asked: Sequence[BaseCall], toolset: Any) -> Left | None:
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


def _load_inner(
    inner: Saved, asked: tuple[ToolMetadata, ...]
) -> tuple[list[ToolMetadata], dict[str, str], dict[str, list[Saved]]]:
    """Read what the calls of a turn requested.

    Returns:
        The calls, in the order in which they were requested; for each the id of the call that
        requested it; and by the id of that call the times that it requested some.

    Raises:
        PlanError: It is damaged, or has an unknown key.
    """
    check_words(inner, _INNER_WORDS)
    calls: list[ToolMetadata] = []
    for entry in inner.each("calls"):
        check_words(entry, _ASKED_WORDS)
        calls.append(load_metadata(entry))
    place = {call.id: number for number, call in enumerate((*asked, *calls))}
    if len(place) != len(asked) + len(calls):
        raise inner.wrong("calls", "an id is there twice")
    requested_by: dict[str, str] = {}
    asks: dict[str, list[Saved]] = {}
    for entry in inner.each("requested"):
        check_words(entry, _ASK_WORDS)
        by = entry.get("call", str)
        asks.setdefault(by, []).append(entry)
        for id in entry.texts("ids"):
            if id in requested_by or not place.get(by, len(place)) < place.get(id, -1):
                raise entry.wrong("ids", f"{id!r} is not a call that {by!r} may have requested")
            requested_by[id] = by
    if requested_by.keys() != {call.id for call in calls}:
        raise inner.wrong("calls", "they are not those that were requested")
    return calls, requested_by, asks


def histories_in(
    saved: Saved,
    toolset: Any = None,
    make: Callable[[ToolMetadata, Saved, tuple[Step, ...]], AnyToolCall] | None = None,
) -> tuple[AssistantTurn, list[tuple[BaseCall, Saved]]]:
    """Read a plan whose seal was checked: its turn, and all calls with their histories.

    Args:
        saved: The plan.
        toolset: The toolset that it is read with, if any.
        make: Makes a call of its entry and history; left out, there are only histories.

    Returns:
        The turn; and each of its calls with its entry, those that were requested after them.

    Raises:
        PlanError: They are not those of the turn, tell what could not have happened, or there
            is an unknown key.
    """
    check_words(saved, _PLAN_WORDS)
    turn = load_turn(saved.inner("turn"))
    inner = saved.inner_or_none("inner")
    calls, requested_by, asks = (
        ([], {}, {}) if inner is None else _load_inner(inner, turn.tool_calls)
    )
    every = (*turn.tool_calls, *calls)
    asked = {call.id for call in every}
    entries: dict[str, Saved] = {}
    for entry in saved.each("calls"):
        check_words(entry, _CALL_WORDS)
        id = entry.get("id", str)
        if id not in asked or id in entries:
            raise entry.wrong("id", f"{id!r} is not a call of the turn, or is there twice")
        entries[id] = entry
    if len(entries) != len(every):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    read: dict[str, BaseCall] = {}
    # A call is before those that it requested, and its steps `requested` hold these, which have to
    # be there first: so inner calls are read from the last to the first, and those of the turn
    # then.
    for metadata in (*reversed(calls), *turn.tool_calls):
        entry, by = entries[metadata.id], requested_by.get(metadata.id)
        left = [_load_ask(each, read, toolset) for each in asks.get(metadata.id, ())]
        history = _history_in(entry, metadata, by, left)
        read[metadata.id] = BaseCall(metadata, as_entry(history))
        if make is not None and not is_unread(history):
            read[metadata.id] = make(metadata, entry, history)
    return turn, [(read[metadata.id], entries[metadata.id]) for metadata in every]


def _history_in(
    saved: Saved, metadata: ToolMetadata, by: str | None, asks: list[Ask]
) -> tuple[Step, ...]:
    """Read the history of one call.

    Raises:
        PlanError: It is damaged, or tells what could not have happened.
    """
    entries = list(saved.each("steps"))
    if not entries or entries[0].get("kind", str) != "proposed":
        raise saved.wrong("steps", "a history begins with what was proposed")
    if entries[0].data.get("by") != by:
        raise entries[0].wrong("by", "it is not the call that requested this one")
    history = load_history(entries, metadata, asks=asks)
    if sum(step.kind == "requested" for step in history) < len(asks):
        raise saved.wrong("steps", "it requested calls more often than that")
    if asks and not history[-1].stage.is_end and asks[-1].left is None:
        raise saved.wrong("steps", "what was left for it to come back to is missing")
    stage, rest = history[-1].stage, [step.kind for step in history[2:]]
    if not is_unread(history):
        if stage.name == "running":
            raise entries[-1].wrong("kind", "a call that was started is saved with the outcome")
        if state_in(history) in _OPEN and (stage.is_end or stage.name == "suspended"):
            raise entries[-1].wrong("kind", "the outcome of a call is saved once it was recorded")
    elif rest not in ([], [] if issue_in(history) is None else ["recorded"]):
        raise entries[-1].wrong("kind", "a call of no tool ends once")
    return history


def load_plan(
    toolset: Any,
    text: str | bytes,
    key: bytes | None,
    binding: str | None,
    *,
    is_keyed: bool = False,
) -> RoundState:
    """Read what `dump_plan` gave, and open it as a round again.

    Args:
        toolset: The toolset that they belong to.
        text: What was saved.
        key: The key that it was sealed with, if any.
        binding: What it was said to belong to, if anything.
        is_keyed: Whether the caller has checked the text with a key.

    Raises:
        PlanError: The text is not a plan, of an unknown version, edited, sealed with another key,
            bound to something else, or made for tools that are not there any more or have another
            schema.
    """
    check_key(key, binding)
    saved = open_saved(text, PLAN)
    check_saved(saved, key, binding)
    at = saved.inner_or_none("place")
    place = None if at is None else Place(at.get("items", int), digest=at.get("digest", str))
    call_round = CallRound(saved.get("key_prefix", str, ""), place)
    owes_after = saved.get("owes_after", bool, False)
    turn, read = histories_in(saved, toolset, partial(_load_call, toolset, call_round))
    if "inner" in saved.data and key is None and not is_keyed:
        check_bytes(each.data for each in saved.inner("inner").each("requested"))
    every = [call for call, _ in read]
    asked, inner = every[: len(turn.tool_calls)], every[len(turn.tool_calls) :]
    # Opened last: what fails before leaves no open round behind.
    state = RoundState.of(toolset, turn, call_round, asked)
    call_round.has_retried = any(step.kind == "retried" for call in every for step in call._history)
    if inner:
        call_round.take_in(inner)
        for call in every:
            for step in call._history:
                if step.kind == "requested":
                    call_round.trace(call.id, step.detail.trace)
    state.owes_after, state.is_decided = owes_after, True
    return state


def _load_call(
    toolset: Any,
    call_round: CallRound,
    metadata: ToolMetadata,
    saved: Saved,
    history: tuple[Step, ...],
) -> AnyToolCall:
    """Rebuild a call; if it may still be run, make sure that it is what was saved."""
    coerced = saved.texts("coerced") if "coerced" in saved.data else ()
    if history[0].detail is None:
        raise next(saved.each("steps")).wrong("arguments", "it is missing")
    call = make_call(toolset, call_round, metadata, coerced, history)
    is_open = state_in(call._history) not in ANSWERED
    if is_open:
        check_schema(call, saved.get("schema_digest", str))
    if is_open and call.digest != saved.get("digest", str):
        raise PlanError(
            f"The arguments of call {metadata.id!r} of tool `{metadata.name}` were edited "
            "after the plan was saved. What was approved is not what would run."
        )
    check_shown(call)
    return call


def make_call(
    toolset: Any,
    call_round: CallRound,
    metadata: ToolMetadata,
    coerced: tuple[str, ...],
    history: tuple[Step, ...],
) -> AnyToolCall:
    """Rebuild a call of its history, all of which becomes its first entry.

    Raises:
        PlanError: Its tool is gone, or its arguments are missing.
    """
    try:
        selector = toolset[metadata.name]
    except UnknownToolError as error:
        raise PlanError(
            f"Call {metadata.id!r} of this plan needs a tool that is gone: {error}"
        ) from None
    call: AnyToolCall = selector.spec.call_type.__new__(selector.spec.call_type)
    call._coerced = coerced
    texts = [step.detail for step in history if step.kind in ("proposed", "changed")]
    call._held = (0, MADE_LATER, texts[-1])
    call._lent = call._key = None
    BaseCall.__init__(call, metadata, as_entry(history), call_round)
    call._selector = selector
    call._entries = {0: as_entry(completed(call, history))}
    return call


# Only what may still run has to be what was approved: one in doubt, too, by `call.retry()`. A call
# that ended may be of a tool whose schema has changed since: its result is a fact, and the round
# can be committed.
def check_schema(call: AnyToolCall, schema_digest: str) -> None:
    """Make sure that the tool of an open call is the one that it was made for.

    Raises:
        PlanError: It is not.
    """
    digest = call.selector.definition.digest
    if schema_digest != digest:
        raise PlanError(
            f"The schema of tool `{call.name}` has changed since call {call.id!r} was "
            f"saved: it was {schema_digest!r}, it is {digest!r}. What was "
            "approved is not what would run; let the model call the tool again."
        )


def check_shown(call: AnyToolCall) -> None:
    """Make sure that a call which waits is what was shown.

    Raises:
        PlanError: It is not.
    """
    wait = wait_of(call._history)
    if wait is not None and wait.digest != call.digest:
        raise PlanError(
            f"Call {call.id!r} of tool `{call.name}` was shown with other arguments "
            "than it has. What is approved is not what would run."
        )


def completed(call: AnyToolCall, history: tuple[Step, ...]) -> tuple[Step, ...]:
    """Put in what only the tool tells: the outputs."""
    made = [
        step._replace(detail=(_output_of(call, step.detail[1]), step.detail[1]))
        if step.kind == "ended" and step.verdict == "success" and step.phase is not None
        else step
        for step in history
    ]
    return tuple(made)


def _output_of(call: AnyToolCall, result: ToolResult) -> Any:
    """Read a result as the tool's output, or as plain data if it does not fit that."""
    try:
        return call.spec.output.validate_json(result.result)
    except (ValidationError, ValueError, TypeError):
        return json.loads(result.result)
