"""What a round and its plans share, and `SortedCalls`: its calls by what is to be done about each.

What works on a plan (deciding, resuming, showing results, saving, displaying) takes this record;
the plan itself adds to it what a user may do.

Where a call stands is read from its history (`state_in`). A plan holds nothing but its round, so
all plans of a round show the same. What was read is kept while no history has grown: histories only
grow, so the sum of their lengths says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from .._call.base_call import BaseCall
from .._call.call import AnyToolCall, decoded_calls
from .._call.decisions import DecisionRecord, EditRecord, decisions_in, edits_of
from .._call.history import (
    ASKING,
    CallRound,
    CallRowState,
    Move,
    Stage,
    move,
    result_in,
    settled_by,
    state_in,
    was_begun,
    was_touched,
)
from .._call.outcomes import (
    HandledCall,
    RecoverableToolCallIssue,
    RejectedCall,
    SuspendedCall,
    issue_in,
    outcome_of,
)
from .._context.suspension import Decision
from .._hooks.registered_hook import HookPlaces
from .._schema.capabilities import Place, ResourceAccess, beside, place_of
from .._text.escaping import escape_unprintable
from .._text.immutable import settle
from .._text.json import sendable
from .._transcript.assistant import AssistantTurn
from .._transcript.result import ToolResult, make_result, unknown_outcome
from .._transcript.transcript import Transcript, items_of
from ..errors import LifecycleError, MisuseError, RoundClosedError

_GONE = "the round was discarded."
_NO_CALLS: Mapping[str, BaseCall] = MappingProxyType({})


class StoredAs(NamedTuple):
    """Say where in a store a round is kept: it is saved over that, and over nothing else.

    Attributes:
        id: The id of the conversation.
        round: The id of the round, which no other round has.
        version: The version of the conversation that it was loaded at.
    """

    id: str
    round: str
    version: int


class RoundState:
    """Keep one turn until it is closed: committed, resolved, aborted, discarded or dumped.

    Attributes:
        turn: The turn of the model.
    """

    # _amending    by id, the reviews of calls whose edits are with hooks right now
    # _calls       the calls that could be read, in the order of the turn
    # _hook_sets   hook sets that decided about it, whose after-hooks are asked before its end
    # _is_decided  whether any hooks decided
    # _listed      the lists, and how long all histories were then
    # _owes_after  whether it was saved while some after-hook had still to be asked
    # _placed      by call id, where a call stood, and how long its history was then
    # _round       what it shares with its calls
    # _stored      where in a store it is kept, if it is
    # _unread      calls of no tool, by id: unusable ones, and the one that gave the answer
    __slots__ = (
        "__weakref__",
        "_amending",
        "_by_id",
        "_calls",
        "_hook_sets",
        "_is_decided",
        "_listed",
        "_owes_after",
        "_placed",
        "_round",
        "_stored",
        "_turn",
        "_unread",
    )

    turn: AssistantTurn
    _turn: AssistantTurn

    def __init__(
        self, turn: AssistantTurn, call_round: CallRound, calls: tuple[AnyToolCall, ...] = ()
    ) -> None:
        self._turn = turn
        call_round.turn = turn
        self._round = call_round
        self._calls = calls
        self._amending: dict[str, object] = {}
        self._hook_sets: dict[int, HookPlaces[Any]] = {}
        self._stored: StoredAs | None = None
        self._unread = _NO_CALLS
        self._by_id: dict[str, BaseCall] | None = None
        self._listed: tuple[int, Lists] | None = None
        self._placed: dict[str, tuple[int, ListEntry]] = {}
        self._is_decided = self._owes_after = False

    # The calls.

    def _any(self, call_id: str) -> BaseCall | None:
        """Find a call, also one that could not be read."""
        known = self._by_id
        if known is None:
            known = self._by_id = {**self._unread, **{call.id: call for call in self._calls}}
        return known.get(call_id) or self._round.inner.get(call_id)

    def _all(self) -> Iterator[BaseCall]:
        """Yield all calls: in the order of the turn, and after that those that they requested."""
        if self._unread:
            yield from filter(None, (self._any(each.id) for each in self.turn.tool_calls))
        else:
            yield from self._calls
        yield from [*self._round.inner.values()]

    def _place_of(self, call: BaseCall) -> ListEntry:
        """Say where a call stands by now."""
        length = len(call._entries)
        known = self._placed.get(call.id)
        if known is not None and known[0] == length:
            return known[1]
        entry = _entry_of(call)
        # One that requested others comes back by itself, when these have their results.
        if isinstance(call._last[0], Stage):
            self._placed[call.id] = (length, entry)
        return entry

    @property
    def _sorted(self) -> Lists:
        calls: Any = self._calls
        if self._unread or self._round.inner:
            calls = [*self._all()]
        length = sum([len(call._entries) for call in calls])
        listed = self._listed
        if listed is not None and listed[0] == length:
            return listed[1]
        # Nearly all calls of nearly all rounds are pending, or have just been run: that shows in
        # their last entry. What else `state_in` asks is asked if any call differs.
        for call in calls:
            number = len(call._entries) - 1
            led_to, start, _, _, moves = call._entries[number]
            if not led_to.stage.is_pending:
                kind, _, _, _, phase, *_ = moves[-1]
                if kind != "ended" or phase is not None or start != number - 1:
                    lists = self._lists_of(calls)
                    break
        else:
            lists = Lists(tuple(calls))
        self._listed = (length, lists)
        return lists

    def _lists_of(self, calls: Iterable[BaseCall]) -> Lists:
        made: dict[CallRowState, list[ListEntry]] = {name: [] for name in _STATES}
        for call in calls:
            entry = self._place_of(call)
            made[entry.state].append(entry)
        return Lists._make(
            [tuple([each.value for each in sorted(of, key=_AT)]) for of in made.values()]
        )

    @property
    def recoverable_tool_call_issues(self) -> tuple[RecoverableToolCallIssue, ...]:
        """The calls that cannot be used, and why."""
        return tuple(filter(None, (issue_in(call._history) for call in self._unread.values())))

    @property
    def _closed_by(self) -> str | None:
        """How it was closed; None while it is open."""
        return self._round.closed_by

    def _check_open(self) -> None:
        """Refuse to go on with a closed round.

        Raises:
            RoundClosedError: It was closed; the text says how.
        """
        if self._round.closed_by is not None:
            raise RoundClosedError(
                f"This round was already {self._round.closed_by}. A round ends once: use the round "
                "of a new turn."
            )

    def _check_place(self, transcript: Transcript) -> None:
        """Refuse to end the round in another place than where it was opened.

        Raises:
            MisuseError: Something was said there since, or it is another conversation.
        """
        place, known = self._round.place, self._round.transcript
        if place is None:
            return
        items = items_of(transcript)
        if place.is_behind(items, None if known is None else items_of(known)):
            if len(items) == place.length:
                return
            count = len(items) - place.length
            what = (
                f"{count} item{'s' * (count != 1)} came into the transcript since: something was "
                "pushed, or another round committed"
            )
        else:
            what = "this transcript belongs to another conversation"
        raise MisuseError(
            f"The round was opened after item {place.length} of its transcript, and {what}. "
            "Nothing was changed, and the plan is open. Commit it where it was opened; if you mean "
            "this place, write `transcript.append_round(plan.resolve(results))`."
        )

    def _close(self, how: str) -> None:
        """Close the round, and with it each of its calls that was not started."""
        if self._round.closed_by is not None:
            self._check_open()
        if how == "dumped" and self._stored is not None:
            raise self._in_store("the text")
        own = [how]  # an object of its own, so that of two threads one closes the round
        first: list[str] = vars(self._round).setdefault("closing", own)
        if first is not own:
            self._round.closed_by = first[0]
            self._check_open()
        self._round.closed_by = how

    def _end_open(self, how: str, moves: Callable[[BaseCall], Sequence[Move]]) -> None:
        """Close the round, and write into each call that is open what became of it.

        Nothing starts here any more: a start that comes later finds the round closed, or this step.

        Args:
            how: How the round ends.
            moves: Gives the steps for a call as it is.
        """
        self._close(how)
        for call in self._calls:
            _end(call, moves)

    def _move(self, how: str) -> None:
        """Close the round, because its calls go on elsewhere."""
        self._end_open(how, lambda _: [move("moved", verdict=how)])

    def _discard(self) -> None:
        """Close the round, and forget the turn."""

        def moves(call: BaseCall) -> Sequence[Move]:
            return ended_with(call, unfinished(call, was_begun(call._history), _GONE))

        self._end_open("discarded", moves)

    def _in_store(self, where: str) -> MisuseError:
        """Make the error for a plan that would go on elsewhere, while a store keeps it."""
        return MisuseError(
            f"This plan is kept in a store, as conversation {self._stored and self._stored.id!r}, "
            f"so a call could be run from there and from {where}. Write `store.save(id, plan, "
            "version=version)`, which lets the store go on with it."
        )

    def _leave(self, started: dict[str, str]) -> None:
        """End a `with`: what is still open is forgotten, and not in silence if a call was started.

        Args:
            started: The tools of the calls that were started or recorded, by call id.
        """
        self._discard()
        if started and self._stored is None:
            calls = ", ".join(
                f"{id!r} of tool `{escape_unprintable(tool)}`" for id, tool in started.items()
            )
            warnings.warn(
                f"A round was left open at the end of its `with`, and is discarded, though call "
                f"{calls} had been started or answered: the outcome is in no transcript. Commit "
                "the plan, save it with `plan.dump_json()`, or give it up with "
                "`plan.abort(session, reason)`.",
                ResourceWarning,
                stacklevel=3,  # where the `with` stands
                source=self,
            )

    # A round that is dropped leaves calls without results, and the provider refuses the next
    # request, far from the mistake. Python calls this when the last plan of the round is gone.
    def __del__(self) -> None:
        try:
            is_open = self._round.closed_by is None
        except AttributeError:  # making it failed, and that was raised
            return
        if is_open and self._stored is None:  # a store would still have it
            ids = ", ".join(repr(call.id) for call in self.turn.tool_calls[:5])
            warnings.warn(
                f"A round with calls {ids} was dropped while it was open. Commit it, close it with "
                "`plan.abort(session, reason)`, or say `round.discard()`.",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )


def _end(call: BaseCall, moves: Callable[[BaseCall], Sequence[Move]]) -> None:
    """Write the end of its round into a call, after those that it requested."""
    # These are read from its history, which the round may not have heard of yet, and once more if
    # it grew meanwhile: it may have requested some.
    while True:
        since = len(call._entries)
        for step in call._history if call._round.inner or call._stage is ASKING else ():
            if step.kind == "requested":
                for inner in step.detail.calls:
                    _end(inner, moves)
        if not call._stage.is_open or call._append_all(tuple(moves(call)), since) is not None:
            return


WAITING: Final = ("suspended", "awaiting")
"""The stages of calls that were not let go on: they can only be given up."""


def unfinished(call: BaseCall, was_started: bool, reason: str, more: str = "") -> ToolResult:
    """Make the honest result of a call that was given up: nobody knows more of it than this.

    Raises:
        MisuseError: The reason is not text.
    """
    MisuseError.check("abort", "reason", "a text", reason, str, "The model reads it.")
    if was_started:
        why = f"the tool was started, and nobody knows what it did. {reason}{more}"
        return unknown_outcome(call.metadata, why)
    return make_result(call.metadata, "null", "cancelled", sendable(f"Not executed: {reason}"))


def ended_with(call: BaseCall, result: ToolResult) -> list[Move]:
    """Return the steps by which a call ends with its round."""
    # One that waits was not let go on, so it can only be given up.
    verdict = "cancelled" if call._stage.name in WAITING else result.status
    ended = move("ended", verdict=verdict, detail=result)
    recorded = move("recorded", verdict=result.status, detail=result)
    return [ended, recorded]


class Lists(NamedTuple):
    """The calls of a plan by what is to be done about them; `ToolRoundPlan` tells about each."""

    pending: tuple[AnyToolCall, ...] = ()
    in_doubt: tuple[AnyToolCall, ...] = ()
    suspended: tuple[SuspendedCall, ...] = ()
    finished: tuple[ToolResult, ...] = ()
    handled: tuple[HandledCall[Any, Any], ...] = ()
    rejected: tuple[RejectedCall, ...] = ()
    unusable: tuple[RecoverableToolCallIssue, ...] = ()
    awaiting: tuple[AnyToolCall, ...] = ()
    unreviewed: tuple[AnyToolCall, ...] = ()


SETTLED: Final = "how a round stands is changed by its methods, and by those of its plans."
settle(RoundState, SETTLED, "turn", "recoverable_tool_call_issues")


class ListEntry(NamedTuple):
    """Where one call stands.

    Attributes:
        state: The list that it is in.
        at: When that was decided; 0 for what is in the order of the turn.
        value: What the list has of it: the call, its outcome or its result.
    """

    state: CallRowState
    at: float
    value: Any


def _entry_of(call: BaseCall) -> ListEntry:
    history = call._history
    state = state_in(history)
    if state == "finished" or not isinstance(call, AnyToolCall):
        return ListEntry(state, 0.0, result_in(history) or issue_in(history))
    if state in _AS_CALLS:
        return ListEntry(state, 0.0, call)
    return ListEntry(state, settled_by(history).at, outcome_of(call, history))


class SortedCalls:
    """Show the calls of a round by what is to be done about them; see `ToolRoundPlan`."""

    __slots__ = ("_state", "toolset")

    def __init__(self, state: RoundState, toolset: Any) -> None:
        self._state = state
        self.toolset: Any = toolset

    # The lists.

    @property
    def _sorted(self) -> Lists:
        return self._state._sorted

    @property
    def _calls(self) -> tuple[AnyToolCall, ...]:
        return self._state._calls

    def _current_entries(self) -> dict[str, ListEntry]:
        """Say where each call stands, in the order of the turn."""
        return {call.id: self._state._place_of(call) for call in self._state._all()}

    @property
    def pending(self) -> tuple[AnyToolCall, ...]:
        """Calls that your code runs, in the order of the turn."""
        return self._sorted.pending

    @property
    def in_doubt(self) -> tuple[AnyToolCall, ...]:
        """Calls that were started before the plan was loaded and have no result.

        They may have had their effects, and refuse to run.
        """
        return self._sorted.in_doubt

    @property
    def suspended(self) -> tuple[SuspendedCall, ...]:
        """Calls that wait for a decision."""
        return self._sorted.suspended

    @property
    def awaiting(self) -> tuple[AnyToolCall, ...]:
        """Calls that requested others, and come back once each of these has its result."""
        return self._sorted.awaiting

    @property
    def unreviewed(self) -> tuple[AnyToolCall, ...]:
        """Calls that others requested, and that no hooks have reviewed: they cannot run."""
        return self._sorted.unreviewed

    @property
    def finished(self) -> tuple[ToolResult, ...]:
        """Results that the plan has already, in the order of the turn; see `record`."""
        return self._sorted.finished

    @property
    def handled(self) -> tuple[HandledCall[Any, Any], ...]:
        """Calls that a hook or gate gave their results."""
        return self._sorted.handled

    @property
    def rejected(self) -> tuple[RejectedCall, ...]:
        """Calls that a hook or gate rejected."""
        return self._sorted.rejected

    @property
    def recoverable_tool_call_issues(self) -> tuple[RecoverableToolCallIssue, ...]:
        """Calls that cannot be used, and why."""
        return self._state.recoverable_tool_call_issues

    @property
    def decisions(self) -> tuple[DecisionRecord, ...]:
        """What every hook and gate decided, in order."""
        found = [each for call in self._readable for each in decisions_in(call)]
        return tuple(record for _, record in sorted(found, key=itemgetter(0)))

    @property
    def resumed(self) -> Mapping[tuple[str, str], Decision]:
        """The decisions that were taken in, by call id and decision id."""
        found = [
            step for call in self._readable for step in call._history if step.kind == "decided"
        ]
        found.sort(key=attrgetter("at"))
        return {(s.detail.call_id, s.detail.decision_id): s.detail for s in found}

    @property
    def edits(self) -> tuple[EditRecord, ...]:
        """What people changed in the arguments of calls, the latest last; see `amend`."""
        found = [each for call in self._readable for each in edits_of(call)]
        return tuple(edit for _, edit in sorted(found, key=itemgetter(0)))

    # What works on a plan.

    @property
    def _readable(self) -> tuple[AnyToolCall, ...]:
        """The calls that could be read, those that others requested after those of the turn."""
        inner = self._state._round.inner
        return (*self._calls, *decoded_calls([*inner.values()])) if inner else self._calls

    def _call(self, call_id: str) -> AnyToolCall | None:
        """Find a call that could be read."""
        found = self._any(call_id)
        return found if isinstance(found, AnyToolCall) else None

    def _any(self, call_id: str) -> BaseCall | None:
        """Find a call, also one that could not be read."""
        return self._state._any(call_id)

    def _open_call(self, given: BaseCall, cannot: str) -> AnyToolCall:
        """Find the call of this plan that another object stands for, and that has no result.

        Args:
            given: The call itself, or the same call as it was made elsewhere.
            cannot: What cannot be done with any other call, in words.

        Raises:
            LifecycleError: There is no such call, or it has its result.
        """
        call = self._call(given.id)
        is_same = call is not None and given.metadata == call.metadata
        if call is None or not is_same or state_in(call._history) not in ("pending", "in_doubt"):
            raise LifecycleError(
                f"Call {given.id!r} of tool `{given.name}` {cannot}: it is not pending in this "
                f"plan. Pending: {[each.id for each in self.pending]}."
            )
        return call

    def _all(self) -> Iterator[BaseCall]:
        """Yield all calls: in the order of the turn, and after that those that they requested."""
        return self._state._all()

    def _started(self) -> dict[str, str]:
        """Return the tools of the calls that were started or have ended, by call id."""
        return {call.id: call.name for call in self._readable if was_touched(call._history)}

    def _note_hooks(self, hooks: object) -> None:
        """Remember a hook set that decided: its after-hooks have to see results before the end."""
        given: Any = hooks
        if isinstance(hooks, HookPlaces):
            self._state._hook_sets[id(given)] = given

    @property
    def is_settled(self) -> bool:
        """Whether every call has its result: none is pending, in doubt, waiting or unreviewed."""
        lists = self._sorted
        return not (lists.pending or lists.in_doubt or lists.suspended or lists.awaiting)


def outer_of(calls: SortedCalls, call_id: str) -> tuple[AnyToolCall, ...]:
    """Return the calls that a call is within, the outermost first."""
    found: list[AnyToolCall] = []
    inner = calls._state._round.inner
    while (within := inner.get(call_id)) is not None:
        asking = calls._call(within._asked_by or "")
        assert asking is not None
        call_id = asking.id
        found.insert(0, asking)
    return tuple(found)


_STATES = get_args(CallRowState)
_AT = itemgetter(1)
_AS_CALLS: tuple[CallRowState, ...] = ("pending", "in_doubt", "awaiting", "unreviewed")


class _TouchNode:
    """What was done last at one place, and at those below."""

    __slots__ = ("below", "changed", "read")

    def __init__(self) -> None:
        self.changed: list[int] = []
        self.read: list[int] = []
        self.below: dict[str, _TouchNode] = {}

    def overlapping(self, place: Place) -> Iterator[_TouchNode]:
        """Yield the nodes on the way to a place from here, and all at it and below."""
        node = self
        for step in place:
            yield node
            below = node.below.get(step)
            if below is None:
                return
            node = below
        waiting = [node]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.below.values()

    def note(self, place: Place, number: int, *, mutating: bool) -> None:
        """Write down that a call accesses a place."""
        # In the example above, after `w src` the tree below `src` is empty: call 2 is at `src`, and
        # calls 0 and 1, which were at `src/a` and `src/b`, are reached by waiting for call 2. So a
        # call waits for the few that are nearest, and not for all before it.
        node = self
        for step in place:
            below = node.below.get(step)
            if below is None:
                below = node.below[step] = _TouchNode()
            node = below
        if mutating:
            node.changed, node.read, node.below = [number], [], {}
        else:
            node.read.append(number)


def waits_for(calls: Iterable[Iterable[ResourceAccess]]) -> list[list[int]]:
    """Say which earlier calls each call waits for: the nearest conflicting ones at least.

    Args:
        calls: What each call accesses, in the order of the turn.

    Returns:
        For each call the places of others in that order, ascending. Whoever waits for these, and
        they for theirs, has waited for all that it conflicts with.
    """
    root = _TouchNode()
    found: list[list[int]] = []
    for number, touches in enumerate(calls):
        before: set[int] = set()
        touched = [(place_of(touch), touch.mutating) for touch in touches]
        for place, mutating in touched:
            other = beside(place)
            for each in (place,) if other is None else (place, other):
                for node in root.overlapping(each):
                    before.update(node.changed)
                    if mutating:
                        before.update(node.read)
        for place, mutating in touched:
            root.note(place, number, mutating=mutating)
        found.append(sorted(before))
    return found


def _inner_first(call: AnyToolCall) -> Iterator[AnyToolCall]:
    """Yield a call after those that it requested, so that none of these waits for it."""
    for step in call._history:
        if step.kind == "requested":
            for inner in decoded_calls(step.detail.calls):
                yield from _inner_first(inner)
    yield call


class Order(NamedTuple):
    """The open calls of a plan, in the order of the turn, each after those that it requested.

    Attributes:
        calls: The calls.
        waits: For each the places in this list of those that it waits for.
    """

    calls: list[AnyToolCall]
    waits: list[list[int]]

    @classmethod
    def of(cls, plan: SortedCalls) -> Order:
        """Read what has no result yet; what has one holds nobody up."""
        calls = [
            each for call in plan._calls for each in _inner_first(call) if not each._stage.is_end
        ]
        return cls(calls, waits_for(call.accesses for call in calls))

    def by_id(self) -> dict[str, tuple[str, ...]]:
        """Say by the ids of calls which calls each one waits for."""
        ids = [call.id for call in self.calls]
        return {
            id: tuple(ids[at] for at in waits) for id, waits in zip(ids, self.waits, strict=True)
        }

    def batches(self) -> list[list[int]]:
        """Return the places of those that may be started in groups, each after those it waits for.

        What cannot be started now is in no group, nor is what waits for it.
        """
        # Waits of `[[], [], [0, 1], [2]]` give `[[0, 1], [2], [3]]`. They always point back, so one
        # pass is enough, and there are no cycles to look for.
        groups: list[list[int]] = []
        group_of: dict[int, int] = {}
        for at, (call, waits) in enumerate(zip(self.calls, self.waits, strict=True)):
            if call._stage.may_start and all(each in group_of for each in waits):
                group = group_of[at] = max((group_of[each] + 1 for each in waits), default=0)
                if group == len(groups):
                    groups.append([])
                groups[group].append(at)
        return groups
