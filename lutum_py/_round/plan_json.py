"""A plan as text: its round as plain data (see `entries`), under one seal.

    {"format": "lutum_py.plan", "version": 1, "binding": null, "round": {…}, "entries": [{…}, …],
     "digests": {"c2": "sha256:…"}, "seal": {"kind": "sha256", "value": "…"}}

Nobody else goes on with the calls of a text, so all that happened to one is one entry there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import Any, Final

from .._call.base_call import CallRecord
from .._call.history import Move, iso_time, move
from .._text.json import is_object, is_sequence, shorten
from .._transcript.assistant import AssistantTurn
from .._transcript.saved import PLAN, Saved, check_key
from ..errors import PlanError, ToolInputError
from .entries import dump_steps, plain, read_histories, read_round, round_record
from .sorted_calls import Order, RoundState
from .step_json import LEFT_WORDS, check_words

_WORDS: Final = frozenset(
    {"format", "version", "binding", "round", "entries", "digests", "waits_for", "seal"}
)


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
    check_told(state)
    now, calls = time(), [*state.all_calls()]
    try:
        for call in state.decoded:
            if call.stage.may_start:
                # Hooks that made them are not asked again where the text is loaded.
                call.take_changes()
            call.text_or_raise()  # first: which text describes the input is found out here
        data: dict[str, Any] = {
            "format": PLAN.name,
            "version": PLAN.version,
            "binding": binding,
            "round": round_record(state),
            "entries": [{"call": call.id, "n": 0, "steps": _steps(call, now)} for call in calls],
            "digests": {call.id: call.digest for call in state.decoded if _may_run(call)},
        }
        if sum(not call.stage.is_end for call in calls) > 1:
            # For whoever looks at the text without the tools, which alone say what a call accesses.
            waits = Order.of(state).by_id()
            data["waits_for"] = {id: list(ids) for id, ids in waits.items() if ids}
        data = _plain(state, data)
    except (ToolInputError, ValueError) as error:
        raise PlanError(f"An input of the plan cannot be saved: {error}") from error
    if key is None and not is_keyed:
        check_bytes(data["entries"])
    return PLAN.dump_sealed(data, key)


def _plain(state: RoundState, data: dict[str, Any]) -> dict[str, Any]:
    try:
        return plain(data, "The plan")
    except PlanError:
        if state.call_round.closed_by is None:
            raise
    # A call began to wait while the text was made, and the plan is closed by now: with an error the
    # whole round would be lost for one ticket.
    return plain(_as_json(data, 0), "The plan")


def _as_json(value: Any, depth: int) -> Any:
    """Return data with a text in place of what is not JSON data."""
    if depth < _DEEPEST and is_object(value):
        return {str(key): _as_json(part, depth + 1) for key, part in value.items()}
    if depth < _DEEPEST and is_sequence(value):
        return [_as_json(part, depth + 1) for part in value]
    try:
        return plain({"it": value}, "A part")["it"]
    except PlanError:
        return shorten(value)


_DEEPEST: Final = 100


def _steps(call: CallRecord, now: float) -> list[dict[str, Any]]:
    steps = dump_steps(call, call.history)
    requested = [each["requested"] for each in steps if each["kind"] == "requested"]
    for each in requested if call.stage.is_end else requested[:-1]:
        for word in LEFT_WORDS:  # it has come back
            each.pop(word, None)
    # It runs on where it is, unseen by the text.
    last = call.history.as_it_left[-1]
    if last.stage.name == "running":
        steps.append({"kind": "abandoned", "at": iso_time(max(now, last.at))})
    return steps


def check_bytes(entries: Iterable[Mapping[str, Any]]) -> None:
    """Refuse to save, or load, bytes that a tool left if no key protects them.

    A tool may pass its bytes to code that trusts them, such as the interpreter of a program.

    Args:
        entries: What happened to calls, in a plan without a key.

    Raises:
        PlanError: There are such bytes.
    """
    for entry in entries:
        if any("bytes" in step.get("requested", ()) for step in entry["steps"]):
            raise PlanError(
                f"Call {entry['call']!r} left bytes to come back to, as a program leaves its "
                "interpreter, and without a key anybody could put others in their place. Pass "
                '`key=`, or let the tool leave a text: `program_tool(tools, keep="replay")`.'
            )


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
        for entries in (call.entries for call in state.all_calls())
    ]


def move_on(state: RoundState, how: str) -> None:
    """Close a plan, since its calls go on elsewhere.

    An outcome that was not recorded yet is recorded here: nobody can do so once the plan is closed.
    """

    def moves(call: CallRecord) -> tuple[Move, ...]:
        told = (move("recorded", verdict="suspended"),) if _is_untold(call) else ()
        return (*told, move("moved", verdict=how))

    state.end_open(how, moves)
    for call in state.all_calls():
        while call.stage.is_end and _is_untold(call):
            since = len(call.entries)
            result = call.history.result or call.ended_result
            recorded = move("recorded", verdict=result.status, detail=result)
            call.append_all((recorded,), since)


def check_told(state: RoundState) -> None:
    """Refuse to save a plan of which a call has ended that was not recorded.

    Raises:
        PlanError: There is one.
    """
    for call in state.all_calls():
        if _is_untold(call):
            was = "was in doubt, is" if call.history.state == "in_doubt" else "is"
            raise PlanError(
                f"Call {call.id!r} of tool `{call.name}` {was} {call.status} now, and the plan "
                "was not told, so that a saved one would not know of it. Give the plan the outcome "
                "of the call, with `plan.record(outcome)`, and dump it then."
            )


def _is_untold(call: CallRecord) -> bool:
    """Whether a call has ended or waits, and its plan was not told."""
    stage = call.stage
    return (stage.is_end or stage.name == "suspended") and call.history.state in _OPEN


def _may_run(call: CallRecord) -> bool:
    return not call.history.is_answered


# Reading.


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
    saved = PLAN.open_sealed(text, key, binding)
    check_words(saved, _WORDS)
    entries = [*saved.each("entries")]
    state = read_round(toolset, saved.inner("round"), entries)
    try:
        if key is None and not is_keyed:
            check_bytes(each.data for each in entries)
        _check_as_saved(state, saved, entries)
    except BaseException:
        state.close("discarded")  # nobody has it
        raise
    return state


def _check_as_saved(state: RoundState, saved: Saved, entries: Iterable[Saved]) -> None:
    """Make sure that what may run is what was saved, and that nobody is said to run it."""
    for entry in entries:
        call = state.find(entry.get("call", str))
        assert call is not None
        *_, last = entry.each("steps")
        if call.stage.name == "running":
            raise last.wrong("kind", "a call that was started is saved with the outcome")
        if _is_untold(call):
            raise last.wrong("kind", "the outcome of a call is saved once it was recorded")
        requested = next(call.history.of_kind("requested"), None)
        if requested is not None and requested.detail.left is None and not call.stage.is_end:
            raise entry.wrong("steps", "what was left for it to come back to is missing")
    digests = saved.inner("digests")
    for call in filter(_may_run, state.decoded):
        if call.digest != digests.get(call.id, str):
            raise PlanError(
                f"The arguments of call {call.id!r} of tool `{call.name}` were edited after the "
                "plan was saved. What was approved is not what would run."
            )


def histories_in(
    saved: Saved,
) -> tuple[AssistantTurn, list[CallRecord], dict[str, tuple[str, ...]]]:
    """Read a plan without its tools: its turn, its calls, and which calls each waits for.

    Raises:
        PlanError: Something of it is damaged, or there is an unknown key.
    """
    check_words(saved, _WORDS)
    turn, calls = read_histories(saved.inner("round"), saved.each("entries"))
    waits = saved.inner_or_none("waits_for")
    return turn, calls, {} if waits is None else {id: waits.texts(id) for id in waits.data}
