"""What a round and its plans share: `RoundState`, which sorts its calls by what is to be done.

Where a call stands is read from its history (`history.state`). A plan holds nothing but its round,
so all plans of a round show the same. What was read is kept while no history has grown: histories
only grow, so the sum of their lengths says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from .._call.base_call import CallRecord
from .._call.call import AnyToolCall, RejectedCall, SuspendedCall
from .._call.call_state import DecodedCall
from .._call.history import CallRound, CallRowState, Move, Stage, move
from .._call.outcomes import HandledCall, RecoverableToolCallIssue
from .._hooks.registered_hook import HookPlaces
from .._schema.capabilities import Place, ResourceAccess, beside, place_of
from .._text.escaping import escape_unprintable
from .._transcript.assistant import AssistantTurn
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript, items_of
from ..errors import LifecycleError, MisuseError, RoundClosedError

_GONE = "the round was discarded."
_NO_CALLS: Mapping[str, CallRecord] = MappingProxyType({})


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
    """Keep the calls of one turn until it is closed: committed, resolved, aborted or given away.

    A round and all its plans hold it, and what works on a plan (deciding, resuming, showing
    results, saving, displaying) takes it.

    Args:
        toolset: The toolset that the calls were read with.
        turn: The turn of the model.
        call_round: What the round shares with its calls.
        calls: The calls that could be read, in the order of the turn.
        unread: Calls of no tool, by id: unusable ones, and the one that gave the answer.

    Attributes:
        amending: By id, the reviews of calls whose edits are with hooks right now.
        hook_sets: Hook sets that decided about it, whose after-hooks are asked before its end.
        is_decided: Whether any hooks decided.
        stored: Where in a store it is kept, if it is.
    """

    # _listed  the lists, and how long all histories were then
    # _placed  by call id, where a call stood, and how long its history was then
    # _shown   calls, and what users see of them
    __slots__ = (
        "_by_id",
        "_listed",
        "_placed",
        "_shown",
        "amending",
        "call_round",
        "calls",
        "hook_sets",
        "is_decided",
        "stored",
        "toolset",
        "turn",
        "unread",
    )

    def __init__(
        self,
        toolset: Any,
        turn: AssistantTurn,
        call_round: CallRound,
        calls: tuple[DecodedCall, ...] = (),
        unread: Mapping[str, CallRecord] = _NO_CALLS,
    ) -> None:
        self.toolset: Any = toolset
        call_round.turn = turn
        self.turn: AssistantTurn = turn
        self.call_round: CallRound = call_round
        self.calls: tuple[DecodedCall, ...] = calls
        self.unread: Mapping[str, CallRecord] = unread
        self.amending: dict[str, object] = {}
        self.hook_sets: dict[int, HookPlaces[Any]] = {}
        self.stored: StoredAs | None = None
        self._by_id: dict[str, CallRecord] | None = None
        self._listed: tuple[int, Lists] | None = None
        self._placed: dict[str, tuple[int, ListEntry]] = {}
        self._shown: tuple[tuple[DecodedCall, ...], tuple[AnyToolCall, ...]] | None = None
        self.is_decided: bool = False

    @classmethod
    def of(
        cls, toolset: Any, turn: AssistantTurn, call_round: CallRound, calls: Iterable[CallRecord]
    ) -> RoundState:
        """Make it of all calls of the turn, those of no tool included."""
        read: list[DecodedCall] = []
        unread: dict[str, CallRecord] = {}
        for call in calls:
            if isinstance(call, DecodedCall):
                read.append(call)
            else:
                unread[call.id] = call
        return cls(toolset, turn, call_round, tuple(read), unread)

    # The calls.

    def find(self, call_id: str) -> CallRecord | None:
        """Find a call, also one that could not be read."""
        known = self._by_id
        if known is None:
            known = self._by_id = {**self.unread, **{call.id: call for call in self.calls}}
        return known.get(call_id) or self.call_round.inner.get(call_id)

    def all_calls(self) -> Iterator[CallRecord]:
        """Yield all calls: in the order of the turn, and after that those that they requested."""
        if self.unread:
            yield from filter(None, (self.find(each.id) for each in self.turn.tool_calls))
        else:
            yield from self.calls
        yield from [*self.call_round.inner.values()]

    def entry_of(self, call: CallRecord) -> ListEntry:
        """Say where a call stands by now."""
        length = len(call.entries)
        known = self._placed.get(call.id)
        if known is not None and known[0] == length:
            return known[1]
        entry = _entry_of(call)
        # One that requested others comes back by itself, when these have their results.
        if isinstance(call.last[0], Stage):
            self._placed[call.id] = (length, entry)
        return entry

    @property
    def lists(self) -> Lists:
        calls: Any = self.calls
        if self.unread or self.call_round.inner:
            calls = [*self.all_calls()]
        length = sum([len(call.entries) for call in calls])
        listed = self._listed
        if listed is not None and listed[0] == length:
            return listed[1]
        # Nearly all calls of nearly all rounds are pending, or have just been run: that shows in
        # their last entry. What else `history.state` asks is asked if any call differs.
        for call in calls:
            number = len(call.entries) - 1
            led_to, start, _, _, moves = call.entries[number]
            if not led_to.stage.is_pending:
                kind, _, _, _, phase, *_ = moves[-1]
                if kind != "ended" or phase is not None or start != number - 1:
                    lists = self._lists_of(calls)
                    break
        else:
            lists = Lists(tuple(calls))
        self._listed = (length, lists)
        return lists

    def _lists_of(self, calls: Iterable[CallRecord]) -> Lists:
        made: dict[CallRowState, list[ListEntry]] = {name: [] for name in _STATES}
        for call in calls:
            entry = self.entry_of(call)
            made[entry.state].append(entry)
        return Lists._make(
            [tuple([each.value for each in sorted(of, key=_AT)]) for of in made.values()]
        )

    @property
    def issues(self) -> tuple[RecoverableToolCallIssue, ...]:
        """The calls that cannot be used, and why."""
        return tuple(filter(None, (call.history.issue for call in self.unread.values())))

    @property
    def closed_by(self) -> str | None:
        """How it was closed; None while it is open."""
        return self.call_round.closed_by

    def check_open(self) -> None:
        """Refuse to go on with a closed round.

        Raises:
            RoundClosedError: It was closed; the text says how.
        """
        closed_by = self.call_round.closed_by
        if closed_by is not None:
            raise RoundClosedError(
                f"This round was already {closed_by}. A round ends once: use the round of a new "
                "turn."
            )

    def check_place(self, transcript: Transcript) -> None:
        """Refuse to end the round in another place than where it was opened.

        Raises:
            MisuseError: Something was said there since, or it is another conversation.
        """
        place, known = self.call_round.place, self.call_round.transcript
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

    def close(self, how: str) -> None:
        """Close the round, and with it each of its calls that was not started."""
        if self.call_round.closed_by is not None:
            self.check_open()
        if how == "dumped" and self.stored is not None:
            raise self.in_store("the text")
        own = [how]  # an object of its own, so that of two threads one closes the round
        first: list[str] = vars(self.call_round).setdefault("closing", own)
        if first is not own:
            self.call_round.closed_by = first[0]
            self.check_open()
        self.call_round.closed_by = how

    def end_open(self, how: str, moves: Callable[[CallRecord], Sequence[Move]]) -> None:
        """Close the round, and write into each call that is open what became of it.

        Nothing starts here any more: a start that comes later finds the round closed, or this step.

        Args:
            how: How the round ends.
            moves: Gives the steps for a call as it is.
        """
        self.close(how)
        for call in self.calls:
            _end(call, moves)

    def move_elsewhere(self, how: str) -> None:
        """Close the round, because its calls go on elsewhere."""
        self.end_open(how, lambda _: [move("moved", verdict=how)])

    def discard(self) -> None:
        """Close the round, and forget the turn."""

        def moves(call: CallRecord) -> Sequence[Move]:
            return ended_with(call, call.unfinished(call.history.was_started, _GONE))

        self.end_open("discarded", moves)

    def in_store(self, where: str) -> MisuseError:
        """Make the error for a plan that would go on elsewhere, while a store keeps it."""
        return MisuseError(
            f"This plan is kept in a store, as conversation {self.stored and self.stored.id!r}, "
            f"so a call could be run from there and from {where}. Write `store.save(id, plan, "
            "version=version)`, which lets the store go on with it."
        )

    def leave(self) -> None:
        """End a `with`: forget what is still open, but not in silence if a call was started."""
        if self.closed_by is not None:
            return
        started = [call for call in self.decoded if call.history.was_touched]
        self.discard()
        if started and self.stored is None:
            calls = ", ".join(
                f"{call.id!r} of tool `{escape_unprintable(call.name)}`" for call in started
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

    @property
    def decoded(self) -> tuple[DecodedCall, ...]:
        """The calls that could be read, those that others requested after those of the turn."""
        inner = self.call_round.inner
        return (*self.calls, *DecodedCall.among([*inner.values()])) if inner else self.calls

    def shown(self, calls: tuple[DecodedCall, ...]) -> tuple[AnyToolCall, ...]:
        """Return calls as users see them."""
        known = self._shown
        if known is None or known[0] is not calls:  # a loop may ask again and again
            known = self._shown = (calls, tuple([each.call for each in calls]))
        return known[1]

    def find_decoded(self, call_id: str) -> DecodedCall | None:
        """Find a call that could be read."""
        found = self.find(call_id)
        return found if isinstance(found, DecodedCall) else None

    def open_call(self, given: CallRecord, cannot: str) -> DecodedCall:
        """Find the call of this round that another object stands for, and that has no result.

        Args:
            given: The call itself, or the same call as it was made elsewhere.
            cannot: What cannot be done with any other call, in words.

        Raises:
            LifecycleError: There is no such call, or it has its result.
        """
        call = self.find_decoded(given.id)
        is_same = call is not None and given.metadata == call.metadata
        if call is None or not is_same or call.history.state not in ("pending", "in_doubt"):
            raise LifecycleError(
                f"Call {given.id!r} of tool `{given.name}` {cannot}: it is not pending in this "
                f"plan. Pending: {[each.id for each in self.lists.pending]}."
            )
        return call

    def note_hooks(self, hooks: object) -> None:
        """Remember a hook set that decided: its after-hooks have to see results before the end."""
        given: Any = hooks
        if isinstance(given, HookPlaces):
            self.hook_sets[id(hooks)] = given

    def note_hooks_of_before(self, hooks: object) -> None:
        """Remember a hook set for the one that decided before the round was saved."""
        if self.is_decided and not self.hook_sets:
            self.note_hooks(hooks)

    def outer_of(self, call_id: str) -> tuple[DecodedCall, ...]:
        """Return the calls that a call is within, the outermost first."""
        found: list[DecodedCall] = []
        while (within := self.call_round.inner.get(call_id)) is not None:
            requested_by = self.find_decoded(within.requested_by or "")
            assert requested_by is not None
            call_id = requested_by.id
            found.insert(0, requested_by)
        return tuple(found)

    # A round that is dropped leaves calls without results, and the provider refuses the next
    # request, far from the mistake. Python calls this when the last plan of the round is gone.
    def __del__(self) -> None:
        if self.closed_by is None and self.stored is None:  # a store would still have it
            ids = ", ".join(repr(call.id) for call in self.turn.tool_calls[:5])
            warnings.warn(
                f"A round with calls {ids} was dropped while it was open. Commit it, close it with "
                "`plan.abort(session, reason)`, or say `round.discard()`.",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )


def _end(call: CallRecord, moves: Callable[[CallRecord], Sequence[Move]]) -> None:
    """Write the end of its round into a call, after those that it requested."""
    # These are read from its history, which the round may not have heard of yet, and once more if
    # it grew meanwhile: it may have requested some.
    while True:
        since = len(call.entries)
        for step in call.history if call.round.inner or call.stage.name == "awaiting" else ():
            if step.kind == "requested":
                for inner in step.detail.calls:
                    _end(inner, moves)
        if not call.stage.is_open or call.append_all(tuple(moves(call)), since) is not None:
            return


WAITING: Final = ("suspended", "awaiting")
"""The stages of calls that were not let go on: they can only be given up."""


def ended_with(call: CallRecord, result: ToolResult) -> list[Move]:
    """Return the steps by which a call ends with its round."""
    # One that waits was not let go on, so it can only be given up.
    verdict = "cancelled" if call.stage.name in WAITING else result.status
    ended = move("ended", verdict=verdict, detail=result)
    recorded = move("recorded", verdict=result.status, detail=result)
    return [ended, recorded]


class Lists(NamedTuple):
    """The calls of a plan by what is to be done about them; `ToolRoundPlan` tells about each."""

    pending: tuple[DecodedCall, ...] = ()
    in_doubt: tuple[DecodedCall, ...] = ()
    suspended: tuple[SuspendedCall, ...] = ()
    finished: tuple[ToolResult, ...] = ()
    handled: tuple[HandledCall[Any, Any], ...] = ()
    rejected: tuple[RejectedCall, ...] = ()
    unusable: tuple[RecoverableToolCallIssue, ...] = ()
    awaiting: tuple[DecodedCall, ...] = ()
    unreviewed: tuple[DecodedCall, ...] = ()


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


def _entry_of(call: CallRecord) -> ListEntry:
    history = call.history
    state = history.state
    if state == "finished" or not isinstance(call, DecodedCall):
        return ListEntry(state, 0.0, history.result or history.issue)
    if state in _AS_CALLS:
        return ListEntry(state, 0.0, call)
    return ListEntry(state, history.settled_by.at, call.outcome(history))


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


def _inner_first(call: DecodedCall) -> Iterator[DecodedCall]:
    """Yield a call after those that it requested, so that none of these waits for it."""
    for step in call.history:
        if step.kind == "requested":
            for inner in DecodedCall.among(step.detail.calls):
                yield from _inner_first(inner)
    yield call


class Order(NamedTuple):
    """The open calls of a plan, in the order of the turn, each after those that it requested.

    Attributes:
        calls: The calls.
        waits: For each the places in this list of those that it waits for.
    """

    calls: list[DecodedCall]
    waits: list[list[int]]

    @classmethod
    def of(cls, state: RoundState) -> Order:
        """Read what has no result yet; what has one holds nobody up."""
        calls = [
            each for call in state.calls for each in _inner_first(call) if not each.stage.is_end
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
            if call.stage.may_start and all(each in group_of for each in waits):
                group = group_of[at] = max((group_of[each] + 1 for each in waits), default=0)
                if group == len(groups):
                    groups.append([])
                groups[group].append(at)
        return groups
