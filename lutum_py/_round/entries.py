"""A round as plain data: what it is, and one entry after the other of what happens to its calls.

This is what a store needs, whoever wrote it. It keeps the record of the round once, and a row for
each entry, under the id of its call and its number. Two processes that write the same number are
told apart by whoever comes second: a database by its primary key, `add_entries` by what is there.

    record   {"format": "lutum_py.round", "turn": {...}, "calls": [{"id": "c1", ...}]}
    entries  {"call": "c1", "n": 0, "steps": [{"kind": "proposed", "arguments": {...}}]}
             {"call": "c1", "n": 1, "steps": [{"kind": "started", "by": "worker 7"}]}
             {"call": "c1", "n": 2, "steps": [{"kind": "ended", "result": {...}}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from .._call.base_call import CallRecord
from .._call.call_state import DecodedCall
from .._call.history import CallRound, History, Step, move
from .._text.json import canonical_json, is_mapping, shorten
from .._transcript.assistant import AssistantTurn, ToolMetadata, dump_metadata, load_metadata
from .._transcript.result import ToolResult
from .._transcript.saved import Form, Saved, dump_saved
from .._transcript.transcript import Place
from .._transcript.transcript_json import dump_turn, load_turn
from ..errors import LifecycleError, MisuseError, PlanError, UnknownToolError
from .inner import Ask
from .sorted_calls import RoundState, StoredAs
from .step_json import (
    LEFT_WORDS,
    check_words,
    dump_left,
    dump_step,
    dump_unset,
    load_history,
    load_left,
)

ROUND: Final = Form("lutum_py.round", 1, "round", PlanError, gave="`plan.round_record()`")

Mark = Mapping[str, int]
"""How many entries of each call are known, by the ids of the calls."""

_RECORD_WORDS: Final = frozenset(
    {"format", "version", "key_prefix", "turn", "calls", "place", "stored"}
)
_CALL_WORDS: Final = frozenset({"id", "schema_digest", "coerced"})
_ENTRY_WORDS: Final = frozenset({"call", "n", "steps"})
_NOTHING_KNOWN: Final[Mapping[str, Saved]] = {}
_REQUESTED_WORDS: Final = frozenset({"calls", "trace", *LEFT_WORDS})
_REQUESTED_CALL_WORDS: Final = frozenset({"id", "name", "arguments", "schema_digest"})


# Writing.


def round_record(state: RoundState) -> dict[str, Any]:
    """Return the parts of a round that are not steps; see `ToolRoundPlan.round_record`."""
    call_round = state.call_round
    data: dict[str, Any] = {
        "format": ROUND.name,
        "version": ROUND.version,
        "key_prefix": call_round.key_prefix,
        "turn": dump_turn(state.turn),
        "calls": [
            {
                "id": call.id,
                "schema_digest": call.selector.definition.digest,
                "coerced": list(call.coerced),
            }
            for call in state.calls
        ],
    }
    if call_round.place is not None:
        data["place"] = {"items": call_round.place.length, "digest": call_round.place.digest}
    if state.stored is not None:
        data["stored"] = state.stored._asdict()
    return plain(data, "The round")


def entries_since(
    state: RoundState, mark: Mark | None = None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return what happened since a mark; see `ToolRoundPlan.entries_since`."""
    found: list[dict[str, Any]] = []
    now: dict[str, int] = {}
    for call in state.all_calls():
        kept = [number for number in range(len(call.entries)) if not _has_moved(call, number)]
        since = 0 if mark is None else mark.get(call.id, 0)
        now[call.id] = len(kept)
        found += [
            {"call": call.id, "n": n, "steps": _dump_steps(call, number)}
            for n, number in enumerate(kept[since:], since)
        ]
    return found, now


def _has_moved(call: CallRecord, number: int) -> bool:
    # To whoever goes on elsewhere with these entries, it has not. What moved it may also have put
    # on record that it waits, which stays.
    steps = call.entries[number][4]
    return bool(len(steps) == 1 and steps[0][0] == "moved")


def _dump_steps(call: CallRecord, number: int) -> list[dict[str, Any]]:
    begin = sum(len(call.entries[before][4]) for before in range(number))
    steps = call.history[begin : begin + len(call.entries[number][4])]
    return [plain(each, f"Call {call.id!r}") for each in dump_steps(call, steps)]


def dump_steps(call: CallRecord, steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Save steps of a call, but for those by which it moved: where they are read, it has not."""
    return [_dump_step(call, step) for step in steps if step.kind != "moved"]


def _dump_step(call: CallRecord, step: Step) -> dict[str, Any]:
    data = dump_step(step)
    if step.kind == "proposed" and step.detail is None and isinstance(call, DecodedCall):
        text = call.text_of(None)
        data |= {"arguments": text.data, **dump_unset(text)}
    elif step.kind == "requested":
        asked: Any = step.detail
        data["requested"] = {
            "calls": [_dump_requested(each) for each in asked.calls],
            **({} if asked.trace is None else {"trace": asked.trace}),
            **({} if asked.left is None else dump_left(asked.left)),
        }
    return data


def _dump_requested(call: CallRecord) -> dict[str, Any]:
    data = dump_metadata(call.metadata)
    if isinstance(call, DecodedCall):
        data["schema_digest"] = call.selector.definition.digest
    return data


def plain(data: dict[str, Any], what: str) -> dict[str, Any]:
    """Return data as it will be read again: JSON knows fewer types than Python."""
    read: dict[str, Any] = json.loads(dump_saved(data, PlanError, what))
    return read


# Reading.


def open_plan(
    toolset: Any, record: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> RoundState:
    """Make a plan of what a store has; see `Toolset.open_plan`."""
    if not is_mapping(record):
        raise MisuseError(
            f"A plan is opened with the record that `plan.round_record()` gave, a dict, not "
            f"{shorten(record)}."
        )
    return read_round(toolset, Saved({**record}, ROUND.what, PlanError), _saved_entries(entries))


def read_round(toolset: Any, record: Saved, entries: Iterable[Saved]) -> RoundState:
    """Make a round of its record and entries.

    Raises:
        PlanError: They are damaged, tell what could not have happened, or do not fit the tools.
    """
    if record.data.get("format") != ROUND.name or record.data.get("version") != ROUND.version:
        raise record.wrong("format", f"it is no {ROUND.name} of version {ROUND.version}")
    check_words(record, _RECORD_WORDS)
    at = record.inner_or_none("place")
    place = None if at is None else Place(at.get("items", int), digest=at.get("digest", str))
    call_round = CallRound(record.get("key_prefix", str, ""), place)
    turn = load_turn(record.inner("turn"))
    known = {each.get("id", str): each for each in record.each("calls")}
    reading = _Reading(toolset, call_round, entries, known)
    state = RoundState.of(toolset, turn, call_round, [*map(reading.begin, turn.tool_calls)])
    try:
        reading.add_to(state)
        stored = record.inner_or_none("stored")
        if stored is not None:  # its calls run when the store has on record that they start
            state.stored = StoredAs(
                **stored.some(str, "id", "round"), version=stored.get("version", int)
            )
            call_round.stored_in = f"{state.stored.round}/"
            for call in state.decoded:
                call.hold_until_recorded()
    except BaseException:
        state.close("discarded")  # nobody has it
        raise
    call_round.has_retried = any(s.kind == "retried" for c in state.all_calls() for s in c.history)
    state.is_decided = True
    return state


def histories_of(
    record: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> tuple[AssistantTurn, list[CallRecord]]:
    """Read what a store has without the tools: the turn, and all calls with their histories.

    Raises:
        PlanError: Something of it is damaged.
    """
    return read_histories(Saved({**record}, ROUND.what, PlanError), _saved_entries(entries))


def read_histories(
    record: Saved, entries: Iterable[Saved]
) -> tuple[AssistantTurn, list[CallRecord]]:
    """Do as `histories_of` does with what was read from a text."""
    turn, call_round = load_turn(record.inner("turn")), CallRound()
    reading = _Reading(None, call_round, entries)
    state = RoundState.of(None, turn, call_round, [*map(reading.begin, turn.tool_calls)])
    state.close("discarded")  # nobody goes on with it
    reading.add_to(state)
    calls = [*state.all_calls()]
    for call in calls:
        if call.stage.name == "running":  # elsewhere, if anywhere
            call.append_all((move("abandoned"),))
    return turn, calls


def add_entries(state: RoundState, entries: Iterable[Mapping[str, Any]]) -> None:
    """Take in what happened elsewhere; see `ToolRoundPlan.add_entries`."""
    _Reading(state.toolset, state.call_round, _saved_entries(entries)).add_to(state)


def _saved_entries(entries: Iterable[Mapping[str, Any]]) -> Iterable[Saved]:
    for data in entries:
        if not is_mapping(data):
            raise MisuseError(
                f"Entries are dicts, as `plan.entries_since(mark)` gives them, not {shorten(data)}."
            )
        yield Saved({**data}, f"entry {data.get('n')} of {data.get('call')}", PlanError)


class _Reading:
    """Read entries, some of which may be the first of calls that others request.

    Args:
        toolset: The toolset of the calls; None to read only what happened to them.
        call_round: Their round.
        entries: The entries, in any order.
        known: What the record has of each call of the turn.

    Raises:
        PlanError: One of them is damaged, or there are two of a number.
    """

    def __init__(
        self,
        toolset: Any,
        call_round: CallRound,
        entries: Iterable[Saved],
        known: Mapping[str, Saved] = _NOTHING_KNOWN,
    ) -> None:
        self.toolset = toolset
        self.call_round = call_round
        self.known = known
        self.digests: dict[str, str] = {}
        self.left: dict[str, dict[int, Saved]] = {}
        for saved in entries:
            check_words(saved, _ENTRY_WORDS)
            of_call = self.left.setdefault(saved.get("call", str), {})
            if of_call.setdefault(saved.get("n", int), saved) is not saved:
                raise saved.wrong("n", "there are two of this number")

    def begin(self, metadata: ToolMetadata, by: str | None = None) -> CallRecord:
        """Make a call of its first entry, which the call `by` requested, if one did."""
        first = self.left.get(metadata.id, {}).pop(0, None)
        if first is None:
            raise PlanError(
                f"The first entry of call {metadata.id!r} is missing. Pass all entries of the "
                "round, as `plan.entries_since()` gave them."
            )
        history = self._read(first, metadata)
        if not history or history[0].kind != "proposed":
            raise first.wrong("steps", "a history begins with what was proposed")
        proposed = next(first.each("steps"))
        if history[0].by != by:
            raise proposed.wrong("by", "it is not the call that requested this one")
        self._keep(metadata.id, history)
        if history.is_unread or self.toolset is None:
            return CallRecord(metadata, history.as_entry, self.call_round)
        if history[0].detail is None:
            raise proposed.wrong("arguments", "it is missing")
        coerced: tuple[str, ...] = ()
        if by is None:
            if metadata.id not in self.known:
                raise first.wrong("call", "the record of the round lacks it")
            about = self.known[metadata.id]
            check_words(about, _CALL_WORDS)
            coerced = about.texts("coerced")
            self.digests[metadata.id] = about.get("schema_digest", str)
        return make_call(self.toolset, self.call_round, metadata, coerced, history)

    def add_to(self, state: RoundState) -> None:
        """Take the entries in: those of a call that waits for others after those of the others."""
        waits = True
        while of := [call for call in state.all_calls() if call.id in self.left]:
            has_moved = [self._add_all(call, waits=waits) for call in of]
            waits = any(has_moved)
        for id in self.left:
            raise PlanError(
                f"There are entries of call {shorten(id)}, which is no call of this round."
            )
        # Read call by call; they stand in the order in which they were requested.
        inner = sorted(self.call_round.inner.values(), key=lambda each: each.history[0].at)
        if inner:
            self.call_round.inner = {each.id: each for each in inner}
        for call in state.decoded:
            if call.id in self.digests and not call.history.is_answered:
                check_schema(call, self.digests[call.id])
            check_shown(call)

    def _add_all(self, call: CallRecord, *, waits: bool) -> bool:
        """Add the entries of a call up to where it waits for others; whether there was one."""
        left, has_moved = self.left[call.id], False
        while left and not (waits and call.stage.name == "awaiting"):
            n = min(left)
            self._add(call, n, left.pop(n))
            has_moved = True
        if not left:
            del self.left[call.id]
        return has_moved

    def _add(self, call: CallRecord, n: int, saved: Saved) -> None:
        count = len(call.entries)
        if n > count:
            raise saved.wrong("n", f"entry {count} of the call comes before it")
        if n == count:
            history = self._read(saved, call.metadata, call.history)
            if not history:
                raise saved.wrong("steps", "there is none")
            if isinstance(call, DecodedCall):
                history = completed(call, history)
            if call.append_all(tuple([each.as_move for each in history]), n) is not None:
                self._keep(call.id, history)
                return
        if canonical_json(_dump_steps(call, n)) != canonical_json(saved.data.get("steps")):
            raise LifecycleError(
                f"Entry {n} of call {call.id!r} of tool `{call.name}` is another one here: "
                "two processes have written it. One of them keeps its entry, in the store; "
                "the other opens the plan again from what the store has."
            )

    def _read(self, saved: Saved, metadata: ToolMetadata, behind: History | None = None) -> History:
        """Read the steps of one entry."""

        def requested(asked: Saved) -> Ask:
            check_words(asked, _REQUESTED_WORDS)
            inner: list[CallRecord] = []
            for each in asked.each("calls"):
                check_words(each, _REQUESTED_CALL_WORDS)
                of = load_metadata(each)
                self.digests[of.id] = each.get("schema_digest", str, "")
                inner.append(self.begin(of, metadata.id))
            trace = asked.get("trace", str, None)
            return Ask(tuple(inner), load_left(asked, inner, self.toolset), trace)

        return load_history([*saved.each("steps")], metadata, behind, requested)

    def _keep(self, call_id: str, steps: History) -> None:
        for step in steps:
            if step.kind == "requested":
                self.call_round.take_in(step.detail.calls)
                self.call_round.trace(call_id, step.detail.trace)


def make_call(
    toolset: Any,
    call_round: CallRound,
    metadata: ToolMetadata,
    coerced: tuple[str, ...],
    history: History,
) -> DecodedCall:
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
    call = DecodedCall.of_history(selector, metadata, history, call_round, coerced)
    call.entries = {0: completed(call, history).as_entry}
    return call


# Only what may still run has to be what was approved: one in doubt, too, by `call.retry()`. A call
# that ended may be of a tool whose schema has changed since: its result is a fact, and the round
# can be committed.
def check_schema(call: DecodedCall, schema_digest: str) -> None:
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


def check_shown(call: DecodedCall) -> None:
    """Make sure that a call which waits is what was shown.

    Raises:
        PlanError: It is not.
    """
    wait = call.history.wait
    if wait is not None and wait.digest != call.digest:
        raise PlanError(
            f"Call {call.id!r} of tool `{call.name}` was shown with other arguments "
            "than it has. What is approved is not what would run."
        )


def completed(call: DecodedCall, history: History) -> History:
    """Put in what only the tool tells: the outputs."""
    made = [
        step._replace(detail=(_output_of(call, step.detail[1]), step.detail[1]))
        if step.kind == "ended" and step.verdict == "success" and step.phase is not None
        else step
        for step in history
    ]
    return History(made)


def _output_of(call: DecodedCall, result: ToolResult) -> Any:
    """Read a result as the tool's output, or as plain data if it does not fit that."""
    try:
        return call.spec.output.validate_json(result.result)
    except (ValidationError, ValueError, TypeError):
        return json.loads(result.result)
