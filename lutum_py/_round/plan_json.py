"""The stored form of a plan: the turn as it came, and the line of each call.

Whoever loads it replays the lines: a step that the table of `_call.lifecycle` lacks is refused, so
a text cannot say what could not have happened. An entry also carries the digests of the tool's
schema and of the call, since what was approved has to be what would run; each entry and the whole
carry a seal, see `seal`. Tools are named by their wire names only. A call that a gate let wait:

    {"id": "c1", "schema_digest": "sha256:…", "digest": "sha256:…", "mended": [], "steps": [
      {"kind": "proposed", "at": "2026-01-01T12:00:00.000000+00:00", "arguments": {"cents": 500}},
      {"kind": "asked", "at": "…", "by": "guard", "phase": "gate", "said": "suspend"},
      {"kind": "suspended", "at": "…", "by": "guard", "phase": "gate", "ticket": {…}}], "seal": "…"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from time import time
from typing import Any, Final, get_args

from pydantic import ValidationError

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionKind
from .._call.lifecycle import STAGES, Stage, StepKind
from .._call.line import (
    ASKED_BY,
    BY_TOOL,
    END_OF,
    HOOK_PHASES,
    Kept,
    Step,
    StepPhase,
    moment,
    wait_of,
)
from .._call.outcomes import SOURCES, Asking, IssueReason, RecoverableToolCallIssue
from .._context.suspension import Decision
from .._text.json import compact_json, parse_json, shorten
from .._transcript.assistant import AssistantTurn, dump_turn, load_turn
from .._transcript.metadata import ToolMetadata
from .._transcript.place import Place
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import Saved, dump_saved, open_saved
from ..errors import (
    FieldIssue,
    InvalidArgumentsError,
    PlanError,
    ToolInputError,
    UnknownToolError,
)
from .commit import owes_after_hooks
from .decision_json import dump_decision, load_decision, load_ticket, time_of
from .seal import check_belongs, check_binding, check_key, check_seal, kind_of, seal_of
from .sorted_calls import RoundState, SortedCalls, list_of, recorded_in, unread_steps

FORMAT = "lutum_py.plan"
VERSION = 3
READ = (1, 2, 3)
"""The versions that are read."""

_PLAN_WORDS: Final = frozenset(
    {"format", "version", "binding", "key_begins", "turn", "calls", "place", "owes_after", "seal"}
)
_CALL_WORDS: Final = frozenset({"id", "schema_digest", "digest", "mended", "steps", "seal"})
_STEP_WORDS: Final = frozenset(
    {
        *("kind", "at", "by", "phase", "said", "reason", "digest", "key"),
        *("arguments", "ticket", "decision", "result", "issue", "elsewhere"),
    }
)
_DECIDING: Final = ("hook", "gate", "function")
_PHASES: Final[Mapping[str, tuple[str | None, ...]]] = {
    "asked": (*_DECIDING, "before", "after"),
    "changed": (*_DECIDING, "decision", None),
    "suspended": (*_DECIDING, None),
    "ended": (*_DECIDING, "decision", "reading", "answer", None),
}
"""The phases in which each kind of step may be written; the others belong to none."""
_SAID: Final[Mapping[str, tuple[str | None, ...]]] = {
    **dict.fromkeys(_DECIDING, (*get_args(DecisionKind), None)),
    "before": (None,),
    "after": ("replaced", None),
    "suspended": (BY_TOOL, None),
    "answered": ("resume", "edit", "cancel"),
    "ended": ("success", "rejected", "cancelled"),
}
"""What may be said, by kind or, of an `asked`, by phase; `ended` is that by a hook or a person."""


# Writing.


def dump_plan(calls: SortedCalls, state: RoundState, key: bytes | None, binding: str | None) -> str:
    """Encode a plan.

    Raises:
        PlanError: An input, ticket, payload or decision is not JSON data, or a call has ended or
            waits of which the plan was not told.
    """
    check_key(key)
    check_binding(binding)
    try:
        body = dump_saved(_dump(calls, state, binding), PlanError, "The plan")
    except (ToolInputError, ValueError) as error:
        raise PlanError(f"An input of the plan has no JSON form ({error}).") from error
    # Sealed as it will be read again: JSON knows fewer types than Python.
    data: dict[str, Any] = json.loads(body)
    for entry in data["calls"]:
        entry["seal"] = seal_of(entry, key)
    data["seal"] = {"kind": kind_of(key), "value": seal_of(data, key)}
    return dump_saved(data, PlanError, "The plan")


def _dump(calls: SortedCalls, state: RoundState, binding: str | None) -> dict[str, Any]:
    now, kept = time(), state._kept
    data = {
        "format": FORMAT,
        "version": VERSION,
        "binding": binding,
        "key_begins": kept.key_begins,
        "turn": dump_turn(state.turn),
        "calls": [_dump_entry(calls, asked, now) for asked in state.turn.tool_calls],
    }
    if kept.place is not None:
        data["place"] = {"items": kept.place.length, "digest": kept.place.digest}
    if calls._owes_after or owes_after_hooks(calls):
        data["owes_after"] = True
    return data


def _dump_entry(calls: SortedCalls, asked: ToolMetadata, now: float) -> dict[str, Any]:
    call = calls._call(asked.id)
    if call is None:
        line = calls._state._unread.get(asked.id)
        issue = calls._issue(asked.id)
        if line is None:
            assert issue is not None
            line = unread_steps(calls._state._at, "reading", issue.result)
        return {"id": asked.id, "steps": [_dump_step(step, issue) for step in line]}
    if list_of(call) == "pending" and (call.status.is_terminal or call.status == "suspended"):
        raise PlanError(
            f"Call {call.id!r} of tool `{call.name}` is {call.status}, and the plan was not told, "
            "so that a saved one would not know of it. Give the plan what the call came to, with "
            "`plan.record(outcome)`, and dump it then."
        )
    if list_of(call) == "in_doubt" and (call.status.is_terminal or call.status == "suspended"):
        raise PlanError(
            f"Call {call.id!r} of tool `{call.name}` was in doubt and is {call.status} now, and "
            "the plan was not told. Give it what you found out, with `plan.record(outcome)`."
        )
    return {
        "id": call.id,
        "schema_digest": call.selector.definition.digest,
        "digest": call.digest,
        "mended": list(call.mended),
        "steps": _dump_line(call, now, calls._askings),
    }


def _dump_line(call: AnyToolCall, now: float, askings: tuple[Asking, ...]) -> list[dict[str, Any]]:
    """Give the line of a call as plain data; one that runs is left behind by that."""
    line = call._line
    steps = [_dump_step(step) for step in line]
    for step, data in zip(line, steps, strict=True):
        # A call that passes is one in all plans of the round, and this one keeps its own decisions.
        if step.kind == "asked" and step.phase in HOOK_PHASES and step.detail not in askings:
            data["elsewhere"] = True
    if line[0].detail is None and all(step.kind != "changed" for step in line):
        steps[0]["arguments"] = call._final_arguments()
    if line[-1].stage.name == "running":
        steps.append({"kind": "left", "at": moment(max(now, line[-1].at or now))})
    return steps


def _dump_step(step: Step, issue: RecoverableToolCallIssue | None = None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": step.kind,
        "at": moment(step.at),
        "by": step.by,
        "phase": step.phase,
        "said": step.said,
        "reason": step.reason,
        "digest": step.digest,
        **_dump_detail(step, issue),
    }
    return {name: value for name, value in data.items() if value is not None or name == "at"}


def _dump_detail(step: Step, issue: RecoverableToolCallIssue | None) -> dict[str, Any]:
    """Give what belongs to the kind of a step."""
    detail = step.detail
    if step.phase == "reading":
        assert issue is not None
        return {"issue": _dump_issue(issue)}
    if detail is None:
        return {}
    if step.kind in ("proposed", "changed"):
        return {"arguments": parse_json(detail)}
    if step.kind == "suspended":
        return {"ticket": detail.to_dict()}
    if step.kind == "answered":
        return {"decision": dump_decision(detail)}
    if step.kind == "recorded":
        return {"result": dump_result(detail)}
    if step.phase == "before":
        return {"key": detail}
    if step.phase == "after":
        key, result = detail
        return {"key": key, "result": None if result is None else dump_result(result)}
    if step.kind == "ended" and step.phase is not None:
        return {"result": dump_result(detail[1] if step.phase != "answer" else detail)}
    return {}


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


# Reading.


def open_plan(text: str | bytes) -> Saved:
    """Parse a saved plan.

    Raises:
        PlanError: It is none, or of an unknown version.
    """
    return open_saved(text, form=FORMAT, versions=READ, error=PlanError, what="plan")


def as_latest(saved: Saved) -> Saved:
    """Give what an older release saved in the form of this one, once its seal was checked."""
    if saved.get("version", int) == VERSION:
        return saved
    from .saved_before import converted

    return Saved(converted(saved), saved.path, PlanError)


def load_plan(
    toolset: Any, text: str | bytes, key: bytes | None, binding: str | None
) -> SortedCalls:
    """Read what `dump_plan` gave, and open it as a round again.

    Args:
        toolset: The toolset that they are of.
        text: What was saved.
        key: The key that it was sealed with, if any.
        binding: What it was said to belong to, if anything.

    Raises:
        PlanError: The text is no plan, of an unknown version, edited, sealed with another key,
            bound to something else, or made for tools that are not there any more or have another
            schema.
    """
    check_key(key)
    check_binding(binding)
    saved = open_plan(text)
    check_seal(saved, key)
    check_belongs(saved, binding)
    is_older = saved.get("version", int) != VERSION
    saved = as_latest(saved)
    check_words(saved)
    turn = load_turn(saved.inner("turn"))
    at = saved.inner_or_none("place")
    place = None if at is None else Place(at.get("items", int), digest=at.get("digest", str))
    kept = Kept(saved.get("key_begins", str, ""), place)
    loader = _Loader(toolset, turn, kept)
    loader.is_older = is_older
    for entry in saved.each("calls"):
        loader.take(entry)
    if len(loader.seen) != len(turn.tool_calls):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    owes_after = saved.get("owes_after", bool, False)
    # Opened last: what fails before leaves no open round behind.
    state = RoundState(turn, kept)
    state._at = loader.at
    state._unread = loader.unread
    ids = [call.id for call in turn.tool_calls]
    calls = SortedCalls(
        state,
        toolset,
        tuple(loader.calls[id] for id in ids if id in loader.calls),
        tuple(loader.issues[id] for id in ids if id in loader.issues),
    )
    calls._lists = None
    calls._askings = (loader.asking,)
    calls._owes_after = owes_after
    calls._is_decided = True
    return calls


def check_words(saved: Saved) -> None:
    """Refuse what only a newer release understands: to leave it out would change what it says.

    Raises:
        PlanError: A plan, a call or a step has such a word.
    """
    known = _CALL_WORDS
    if saved.path == "$" or "turn" in saved.data:
        known = _PLAN_WORDS
    elif "kind" in saved.data:
        known = _STEP_WORDS
    for word in saved.data:
        if word not in known:
            raise saved.wrong(
                word, "it is none that this release knows. Load it with the one that saved it"
            )


class _Loader:
    """Make the calls of a saved plan again."""

    def __init__(self, toolset: Any, turn: AssistantTurn, kept: Kept) -> None:
        self.toolset = toolset
        self.kept = kept
        self.metadata = {call.id: call for call in turn.tool_calls}
        self.asking = Asking()
        self.seen: set[str] = set()
        self.calls: dict[str, AnyToolCall] = {}
        self.issues: dict[str, RecoverableToolCallIssue] = {}
        self.unread: dict[str, tuple[Step, ...]] = {}
        self.at: float | None = None
        self.is_older = False

    def take(self, saved: Saved) -> None:
        check_words(saved)
        call_id = saved.get("id", str)
        metadata = self.metadata.get(call_id)
        if metadata is None or call_id in self.seen:
            raise saved.wrong("id", f"{call_id!r} is no call of the turn, or is there twice")
        self.seen.add(call_id)
        entries = list(saved.each("steps"))
        if not entries or entries[0].get("kind", str) != "proposed":
            raise saved.wrong("steps", "a line begins with what was proposed")
        second = entries[1].get("phase", str, None) if len(entries) > 1 else None
        if second in ("reading", "answer"):
            self._unread(metadata, entries)
            return
        self.calls[call_id] = self._call(saved, metadata, entries)

    def _unread(self, metadata: ToolMetadata, entries: list[Saved]) -> None:
        """Read a call that is of no tool."""
        line = load_line(entries, metadata, self.asking)
        first, end = line[0], line[1]
        self.at = first.at
        is_answer = end.phase == "answer"
        others = [step.kind for step in line[2:]]
        if end.kind != "ended" or others not in ([], [] if is_answer else ["recorded"]):
            raise entries[-1].wrong("kind", "a call of no tool ends once")
        issue = None if is_answer else entries[1].inner("issue")
        if issue is not None:
            made = _load_issue(issue, metadata)
            self.issues[metadata.id] = made
            line = (first, end._replace(detail=made.result), *line[2:])
        if issue is None or len(line) > 2:
            self.unread[metadata.id] = line

    def _call(self, saved: Saved, metadata: ToolMetadata, entries: list[Saved]) -> AnyToolCall:
        """Rebuild a call; where it is still to be run, make sure that it is what was saved."""
        try:
            selector = self.toolset[metadata.name]
        except UnknownToolError as error:
            raise PlanError(
                f"Call {metadata.id!r} of this plan needs a tool that is gone: {error}"
            ) from None
        line = load_line(entries, metadata, self.asking)
        call: AnyToolCall = selector.spec.call_type.__new__(selector.spec.call_type)
        call.metadata, call.selector = metadata, selector
        call.mended = saved.texts("mended") if "mended" in saved.data else ()
        call._steps, call._branch, call._kept = line, None, self.kept
        if line[-1].stage.name == "running":
            raise entries[-1].wrong("kind", "a call that was begun is saved with what came of it")
        where, stage = list_of(call), line[-1].stage
        if where in ("pending", "in_doubt") and (stage.is_end or stage.name == "suspended"):
            raise entries[-1].wrong("kind", "what a call came to is saved once it was recorded")
        is_open = where in ("pending", "suspended")
        digest = selector.definition.digest
        if is_open and saved.get("schema_digest", str) != digest:
            raise PlanError(
                f"The schema of tool `{metadata.name}` has changed since call {metadata.id!r} was "
                f"saved: it was {saved.get('schema_digest', str)!r}, it is {digest!r}. What was "
                "approved is not what would run; let the model call the tool again."
            )
        arguments = selector.spec.arguments
        given = [entry.any("arguments") for entry in entries if "arguments" in entry.data]
        if not given:
            raise entries[0].wrong("arguments", "it is missing")
        try:
            # The earlier ones are looked at as well: rows and edits show them.
            call._cache = [arguments.from_data(data) for data in given][-1]
        except (ValidationError, ValueError) as error:
            raise PlanError(
                f"The input of call {metadata.id!r} no longer fits tool `{metadata.name}`: {error}"
            ) from None
        call._text = arguments.to_text(call._cache)
        if line[0].detail is None:
            self._propose(call)
        if is_open and call.digest != saved.get("digest", str):
            raise PlanError(
                f"The arguments of call {metadata.id!r} of tool `{metadata.name}` were edited "
                "after the plan was saved. What was approved is not what would run."
            )
        wait = wait_of(line)
        if wait is not None and wait.digest != call.digest:
            raise PlanError(
                f"Call {metadata.id!r} of tool `{metadata.name}` was shown with other arguments "
                "than it has. What is approved is not what would run."
            )
        self._give_outputs(call)
        if self.is_older and selector.asks:
            call._steps = _asked_before(call._steps)
        if not any(step.kind == "changed" for step in line):  # then it is what the input says
            first, *others = call._steps
            call._steps = (first._replace(detail=None), *others)
        return call

    def _propose(self, call: AnyToolCall) -> None:
        """Read what was proposed from what the model sent: older releases did not keep it."""
        with suppress(InvalidArgumentsError):
            proposed = call.selector._decode(call.metadata)
            text = call.spec.arguments.to_text(proposed._input)
            call._steps = (call._steps[0]._replace(detail=text), *call._steps[1:])

    def _give_outputs(self, call: AnyToolCall) -> None:
        """Read the output of a call that was handled."""
        steps = list(call._steps)
        for place, step in enumerate(steps):
            if step.kind == "ended" and step.phase is not None and step.said == "success":
                _, result = step.detail
                steps[place] = step._replace(detail=(_output_of(call, result), result))
        call._steps = tuple(steps)


def _asked_before(line: tuple[Step, ...]) -> tuple[Step, ...]:
    """Write that an approval was asked for: releases before kept it only where one was needed."""
    changes = [place for place, step in enumerate(line) if step.kind == "changed"]
    place = changes[-1] if changes else 0
    asked = Step("asked", line[place].stage, line[place].at, ASKED_BY, "gate")
    return (*line[: place + 1], asked, *line[place + 1 :])


def load_line(
    entries: list[Saved], metadata: ToolMetadata, asking: Asking | None = None
) -> tuple[Step, ...]:
    """Replay the steps of one call.

    Raises:
        PlanError: One of them is damaged, or cannot follow the one before.
    """
    line: list[Step] = []
    for saved in entries:
        line.append(_load_step(saved, line, metadata, asking))
    made = tuple(line)
    wait = wait_of(made) if made else None
    if wait is not None and (wait.detail is None or wait.digest is None):
        entry = entries[line.index(wait)]
        raise entry.wrong("ticket" if wait.detail is None else "digest", "it is missing")
    return made


def load_steps(call: AnyToolCall, entries: list[Saved]) -> list[Step]:
    """Read steps that follow the line of a call.

    Raises:
        PlanError: One of them is damaged, or cannot follow the one before.
    """
    line = [*call._line]
    for saved in entries:
        line.append(_load_step(saved, line, call.metadata, None))
    return line[len(call._line) :]


def _load_step(
    saved: Saved, line: list[Step], metadata: ToolMetadata, asking: Asking | None
) -> Step:
    check_words(saved)
    kind: StepKind = saved.member("kind", StepKind)
    phase: StepPhase | None = None
    if saved.any("phase") is not None:
        phase = saved.member("phase", StepPhase)
    if phase not in _PHASES.get(kind, (None,)):
        raise saved.wrong("phase", f"{shorten(phase)} does not go with {kind!r}")
    if phase in ("reading", "answer") and len(line) != 1:
        raise saved.wrong("phase", f"{phase!r} comes first, where a call is of no tool")
    said = saved.get("said", str, None)
    about = str(phase) if kind == "asked" else kind
    if about in _SAID and (kind != "ended" or phase in SOURCES) and said not in _SAID[about]:
        raise saved.wrong("said", f"{shorten(said)} is none of the known values")
    made = Step(
        kind,
        _stage_of(saved, kind, phase, said, line),
        read_time(saved),
        saved.get("by", str, None),
        phase,
        said,
        saved.get("reason", str, None),
        saved.get("digest", str, None),
    )
    return made._replace(detail=_load_detail(saved, kind, phase, metadata, asking))


def _stage_of(
    saved: Saved, kind: StepKind, phase: StepPhase | None, said: str | None, line: list[Step]
) -> Stage:
    """Give the stage that a step leads to, if the table has it."""
    if not line:
        return STAGES["new"]
    before = line[-1].stage
    following = before.leads.get(kind)
    if kind == "ended" and before.may_end:
        following = {str(name): end for name, end in END_OF.items()}.get(said or "")
        if following is None:
            raise saved.wrong("said", f"{shorten(said)} is none of the known values")
        if before.name == "suspended" and following is not STAGES["cancelled"]:
            following = None
    if kind == "recorded" and recorded_in(tuple(line)) is not None:
        following = None
    if before.is_end and kind == "asked" and phase != "after":
        following = None
    if following is None:
        raise saved.wrong("kind", f"{kind!r} cannot follow where a call is {before.status}")
    return following


def read_time(saved: Saved) -> float | None:
    """Read when a step was made."""
    if saved.any("at") is None:
        return None
    text = saved.get("at", str)
    at = time_of(text)
    if at is None:
        raise saved.wrong("at", f"{shorten(text)} is no time in ISO 8601")
    return at


def _load_detail(
    saved: Saved,
    kind: StepKind,
    phase: StepPhase | None,
    metadata: ToolMetadata,
    asking: Asking | None,
) -> Any:
    if kind in ("proposed", "changed"):
        data = saved.any("arguments")
        return None if data is None else compact_json(data).encode("utf-8", "surrogatepass")
    if kind == "suspended":
        ticket = saved.inner_or_none("ticket")
        return None if ticket is None else load_ticket(ticket)
    if kind == "answered":
        return _load_answer(saved, metadata)
    if phase == "before":
        return saved.get("key", str)
    inner = saved.inner_or_none("result")
    result = None if inner is None else _load_result(saved, inner, metadata)
    is_told = kind == "recorded" and saved.any("said") != "suspended"
    is_handled = kind == "ended" and phase in SOURCES and saved.any("said") == "success"
    is_replaced = phase == "after" and saved.any("said") == "replaced"
    if result is None and (is_told or is_handled or is_replaced or phase == "answer"):
        raise saved.wrong("result", "it is missing")
    if phase == "after":
        return (saved.get("key", str), result)
    if kind == "recorded" or phase == "answer":
        return result
    if is_handled:
        return (None, result)
    is_own = kind == "asked" and not saved.get("elsewhere", bool, False)
    return asking if is_own else None


def _load_answer(saved: Saved, metadata: ToolMetadata) -> Decision | None:
    """Read a decision; there is none where the program moved the call on by itself."""
    inner = saved.inner_or_none("decision")
    if inner is None:
        if saved.any("said") != "resume":
            raise saved.wrong("decision", "it is missing")
        return None
    decision = load_decision(inner)
    if decision.call_id != metadata.id:
        raise inner.wrong("call_id", f"it is about another call, {shorten(decision.call_id)}")
    return decision


def _load_result(saved: Saved, inner: Saved, metadata: ToolMetadata) -> ToolResult:
    """Read the result of a call; with that of another the round could never end."""
    result = load_result(inner)
    if not result.answers(metadata):
        raise saved.wrong("result", f"it answers another call, {shorten(result.id)}")
    return result


def _load_issue(saved: Saved, metadata: ToolMetadata) -> RecoverableToolCallIssue:
    return RecoverableToolCallIssue(
        metadata,
        saved.member("reason", IssueReason),
        saved.get("text", str),
        tuple(
            FieldIssue(
                each.get("path", str), each.get("message", str), each.get("received", str, None)
            )
            for each in saved.each("fields")
        ),
        saved.get("suggestion", str, None),
    )


def _output_of(call: AnyToolCall, result: ToolResult) -> Any:
    """Read a result as the tool's output, or as plain data where it is none."""
    try:
        return call.spec.output.validate_json(result.result)
    except (ValidationError, ValueError, TypeError):
        return json.loads(result.result)
