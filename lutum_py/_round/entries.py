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

from .._call.base_call import BaseCall
from .._call.call import AnyToolCall
from .._call.history import ANSWERED, CallRound, Step, as_entry, is_unread, move, move_of, state_in
from .._text.json import canonical_json, is_mapping, shorten
from .._transcript.assistant import AssistantTurn, ToolMetadata, dump_metadata, load_metadata
from .._transcript.result import dump_result
from .._transcript.saved import Form, Saved, dump_saved
from .._transcript.transcript import Place
from .._transcript.transcript_json import dump_turn, load_turn
from ..errors import LifecycleError, MisuseError, PlanError
from .ending import owes_after_hooks
from .inner import Ask
from .plan_json import (
    check_schema,
    check_shown,
    check_words,
    completed,
    dump_left,
    dump_step,
    dump_unset,
    load_history,
    load_left,
    make_call,
)
from .sorted_calls import RoundState, StoredAs

ROUND: Final = Form("lutum_py.round", 1, "round", PlanError, gave="`plan.round_record()`")

Mark = Mapping[str, int]
"""How many entries of each call are known, by the ids of the calls."""

_RECORD_WORDS: Final = frozenset(
    {"format", "version", "key_prefix", "turn", "calls", "place", "owes_after", "stored"}
)
_CALL_WORDS: Final = frozenset({"id", "schema_digest", "coerced"})
_ENTRY_WORDS: Final = frozenset({"call", "n", "steps"})
_REQUESTED_WORDS: Final = frozenset({"calls", "trace", "turn", "state", "bytes", "session"})


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
    if owes_after_hooks(state):
        data["owes_after"] = True
    if state.stored is not None:
        data["stored"] = state.stored._asdict()
    return _plain(data, "The round")


def entries_since(
    state: RoundState, mark: Mark | None = None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return what happened since a mark; see `ToolRoundPlan.entries_since`."""
    found: list[dict[str, Any]] = []
    now: dict[str, int] = {}
    for call in state.all_calls():
        kept = [number for number in range(len(call._entries)) if not _has_moved(call, number)]
        since = 0 if mark is None else mark.get(call.id, 0)
        now[call.id] = len(kept)
        found += [
            {"call": call.id, "n": n, "steps": _dump_steps(call, number)}
            for n, number in enumerate(kept[since:], since)
        ]
    return found, now


def _has_moved(call: BaseCall, number: int) -> bool:
    # To whoever goes on elsewhere with these entries, it has not. What moved it may also have put
    # on record that it waits, which stays.
    steps = call._entries[number][4]
    return bool(len(steps) == 1 and steps[0][0] == "moved")


def _dump_steps(call: BaseCall, number: int) -> list[dict[str, Any]]:
    begin = sum(len(call._entries[before][4]) for before in range(number))
    steps = call._history[begin : begin + len(call._entries[number][4])]
    return [
        _plain(_dump_step(call, step), f"Call {call.id!r}")
        for step in steps
        if step.kind != "moved"
    ]


def _dump_step(call: BaseCall, step: Step) -> dict[str, Any]:
    data = dump_step(step)
    if step.kind == "proposed" and step.detail is None and isinstance(call, AnyToolCall):
        text = call._text_of(None)
        data |= {"arguments": text.data, **dump_unset(text)}
    elif step.kind == "ended" and step.phase is None and step.detail is not None:
        data["result"] = dump_result(step.detail)
    elif step.kind == "requested":
        asked: Any = step.detail
        data["requested"] = {
            "calls": [_dump_requested(each) for each in asked.calls],
            **({} if asked.trace is None else {"trace": asked.trace}),
            **({} if asked.left is None else dump_left(asked.left)),
        }
    return data


def _dump_requested(call: BaseCall) -> dict[str, Any]:
    data = dump_metadata(call.metadata)
    if isinstance(call, AnyToolCall):
        data["schema_digest"] = call.selector.definition.digest
    return data


def _plain(data: dict[str, Any], what: str) -> dict[str, Any]:
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
    saved = Saved({**record}, ROUND.what, PlanError)
    if record.get("format") != ROUND.name or record.get("version") != ROUND.version:
        raise saved.wrong("format", f"it is no {ROUND.name} of version {ROUND.version}")
    check_words(saved, _RECORD_WORDS)
    at = saved.inner_or_none("place")
    place = None if at is None else Place(at.get("items", int), digest=at.get("digest", str))
    call_round = CallRound(saved.get("key_prefix", str, ""), place)
    turn = load_turn(saved.inner("turn"))
    known = {each.get("id", str): each for each in saved.each("calls")}
    reading = _Reading(toolset, call_round, known, entries)
    made = [reading.begin(metadata) for metadata in turn.tool_calls]
    state = RoundState.of(toolset, turn, call_round, made)
    try:
        reading.add_to(state)
    except BaseException:
        state.close("discarded")  # nobody has it
        raise
    call_round.has_retried = any(s.kind == "retried" for c in state.all_calls() for s in c._history)
    state.owes_after, state.is_decided = saved.get("owes_after", bool, False), True
    stored = saved.inner_or_none("stored")
    if stored is not None:  # its calls run when the store has on record that they start
        state.stored = StoredAs(
            **stored.some(str, "id", "round"), version=stored.get("version", int)
        )
        call_round.stored_in = f"{state.stored.round}/"
        for call in state.decoded:
            call._hold()
    return state


def histories_of(
    record: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> tuple[AssistantTurn, list[BaseCall]]:
    """Read what a store has without the tools: the turn, and all calls with their histories.

    Raises:
        PlanError: Something of it is damaged.
    """
    turn, call_round = (
        load_turn(Saved({**record}, ROUND.what, PlanError).inner("turn")),
        CallRound(),
    )
    reading = _Reading(None, call_round, {}, entries)
    state = RoundState.of(None, turn, call_round, map(reading.begin, turn.tool_calls))
    state.close("discarded")  # nobody goes on with it
    reading.add_to(state)
    calls = [*state.all_calls()]
    for call in calls:
        if call._stage.name == "running":  # elsewhere, if anywhere
            call._append_all((move("abandoned"),))
    return turn, calls


def add_entries(state: RoundState, entries: Iterable[Mapping[str, Any]]) -> None:
    """Take in what happened elsewhere; see `ToolRoundPlan.add_entries`."""
    _Reading(state.toolset, state.call_round, {}, entries).add_to(state)


class _Reading:
    """Read entries, some of which may be the first of calls that others request.

    Args:
        toolset: The toolset of the calls; None to read only what happened to them.
        call_round: Their round.
        known: What the record has of each call of the turn.
        entries: The entries, in any order.

    Raises:
        PlanError: One of them is damaged, or there are two of a number.
    """

    def __init__(
        self,
        toolset: Any,
        call_round: CallRound,
        known: Mapping[str, Saved],
        entries: Iterable[Mapping[str, Any]],
    ) -> None:
        self.toolset = toolset
        self.call_round = call_round
        self.known = known
        self.digests: dict[str, str] = {}
        self.left: dict[str, dict[int, Saved]] = {}
        for data in entries:
            if not is_mapping(data):
                raise MisuseError(
                    "Entries are dicts, as `plan.entries_since(mark)` gives them, not "
                    f"{shorten(data)}."
                )
            saved = Saved({**data}, f"entry {data.get('n')} of {data.get('call')}", PlanError)
            check_words(saved, _ENTRY_WORDS)
            of_call = self.left.setdefault(saved.get("call", str), {})
            if of_call.setdefault(saved.get("n", int), saved) is not saved:
                raise saved.wrong("n", "there are two of this number")

    def begin(self, metadata: ToolMetadata) -> BaseCall:
        """Make a call of its first entry."""
        first = self.left.get(metadata.id, {}).pop(0, None)
        if first is None:
            raise PlanError(
                f"The first entry of call {metadata.id!r} is missing. Pass all entries of the "
                "round, as `plan.entries_since()` gave them."
            )
        history, asks = self._read(first, metadata)
        self._keep(metadata.id, asks)  # what was loaded from a text is one entry
        if not history or history[0].kind != "proposed":
            raise first.wrong("steps", "a history begins with what was proposed")
        if is_unread(history) or self.toolset is None:
            return BaseCall(metadata, as_entry(history), self.call_round)
        if history[0].detail is None:
            raise first.wrong("steps", "the arguments are missing")
        about = self.known.get(metadata.id)
        coerced: tuple[str, ...] = ()
        if about is not None:
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
            raise PlanError(f"There are entries of {shorten(id)}, which is no call of this round.")
        # Read call by call; they stand in the order in which they were requested.
        inner = sorted(self.call_round.inner.values(), key=lambda each: each._history[0].at)
        if inner:
            self.call_round.inner = {each.id: each for each in inner}
        for call in state.decoded:
            if call.id in self.digests and state_in(call._history) not in ANSWERED:
                check_schema(call, self.digests[call.id])
            check_shown(call)

    def _add_all(self, call: BaseCall, *, waits: bool) -> bool:
        """Add the entries of a call up to where it waits for others; whether there was one."""
        left, has_moved = self.left[call.id], False
        while left and not (waits and call._stage.name == "awaiting"):
            n = min(left)
            self._add(call, n, left.pop(n))
            has_moved = True
        if not left:
            del self.left[call.id]
        return has_moved

    def _add(self, call: BaseCall, n: int, saved: Saved) -> None:
        count = len(call._entries)
        if n > count:
            raise saved.wrong("n", f"entry {count} of the call comes before it")
        if n == count:
            history, asks = self._read(saved, call.metadata, call._history)
            if not history:
                raise saved.wrong("steps", "there is none")
            if isinstance(call, AnyToolCall):
                history = completed(call, history)
            if call._append_all(tuple(map(move_of, history)), n) is not None:
                self._keep(call.id, asks)
                return
        if canonical_json(_dump_steps(call, n)) != canonical_json(saved.data.get("steps")):
            raise LifecycleError(
                f"Entry {n} of call {call.id!r} of tool `{call.name}` is another one here: "
                "two processes have written it. One of them keeps its entry, in the store; "
                "the other opens the plan again from what the store has."
            )

    def _read(
        self, saved: Saved, metadata: ToolMetadata, behind: tuple[Step, ...] = ()
    ) -> tuple[tuple[Step, ...], list[Ask]]:
        """Read the steps of one entry, and what was requested in them."""
        steps = [*saved.each("steps")]
        asks = [self._ask(each) for each in steps if each.data.get("kind") == "requested"]
        plain = [Saved(_without(each.data), each.path, PlanError) for each in steps]
        return load_history(plain, metadata, behind=behind, asks=asks), asks

    def _keep(self, call_id: str, asks: list[Ask]) -> None:
        for each in asks:
            self.call_round.take_in(each.calls)
            self.call_round.trace(call_id, each.trace)

    def _ask(self, step: Saved) -> Ask:
        asked = step.inner("requested")
        check_words(asked, _REQUESTED_WORDS)
        inner: list[BaseCall] = []
        for each in asked.each("calls"):
            metadata = load_metadata(each)
            self.digests[metadata.id] = each.get("schema_digest", str, "")
            inner.append(self.begin(metadata))
        trace = asked.get("trace", str, None)
        return Ask(tuple(inner), load_left(asked, inner, self.toolset), trace)


def _without(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "requested"}
