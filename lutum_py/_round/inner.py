"""Calls within a call: what a tool requests is a call of the same round, and the tool comes back.

A tool leaves by `ctx.request_calls(calls)`, and its call stands `awaiting` until each of these has
its result. They are calls like any other, each with a history of its own; only their ids are paths.
For example, a program `c1` that called `find`, and then requested two refunds at once:

    c1      proposed  started  requested (c1/1)  started  requested (c1/2, c1/3)
    c1/1    proposed (by c1)  reviewed  started  ended  recorded
    c1/2    proposed (by c1)  reviewed (gate: suspend)  suspended
    c1/3    proposed (by c1)

`c1/3` is in `unreviewed`: no hook has reviewed it, and it does not start before. A decision
about such a call is one of the round: all plans show it. That `c1` is awaiting others is not kept
anywhere: it is read from the calls that its last step has, see `RequestedStep`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from .._call.base_call import CallRecord
from .._call.call import AnyToolCall, AwaitingCall, Hooks
from .._call.call_state import DecodedCall
from .._call.drivers import HookGenerator
from .._call.history import STAGES, Move, Stage, move
from .._call.outcomes import RecoverableToolCallIssue
from .._context.inner import HasConversation, Inner, ToolRequestedCalls
from .._hooks.pipeline import AfterSaid, after, review_calls, was_asked_after, write_said
from .._hooks.registered_hook import HookPlaces, keyed
from .._text.json import compact_json, json_data, shorten
from .._toolsets.members import members_of
from .._toolsets.offer import NotOnOffer
from .._transcript.assistant import AssistantTurn, ToolCallItem, ToolMetadata
from .._transcript.result import ToolResult, renamed
from .._transcript.transcript import CommittedRound
from ..errors import (
    DuplicateToolCallIdError,
    InvalidArgumentsError,
    InvalidValueError,
    LifecycleError,
    MisuseError,
)
from .ending import as_model_reads, labelled, with_final_arguments
from .events import OnEvent, tell_decided
from .sorted_calls import RoundState

MAX_INNER_CALLS: Final = 100
"""Calls that one call may request in all."""

MAX_DEPTH: Final = 3
"""How deep calls may be within calls."""


# What a tool leaves with.


def asking_call(
    call: DecodedCall, asked: ToolRequestedCalls, toolset: Any, run: int | None = None
) -> AwaitingCall:
    """Read what a tool requested as it left.

    Args:
        call: Its call.
        asked: What it raised.
        toolset: Any toolset: it saves the session that the tool leaves, if it leaves one.
        run: The run in which it was.

    Raises:
        MisuseError: What it leaves is of a wrong kind, or a call was started.
        InvalidValueError: Arguments are not JSON data.
        DuplicateToolCallIdError: Two calls of a turn share an id.
    """
    given: Any = asked.calls
    known: dict[str, Any] = {}
    requested: RoundState | None = getattr(given, "_state", None)
    if requested is not None and hasattr(given, "tool_calls"):  # a `ToolRound`
        known = _known_of(call, requested)
        requested.move_elsewhere("requested")
        turn = given.turn
    elif isinstance(given, AssistantTurn):
        turn = given
    else:
        turn = AssistantTurn(items=tuple(_items_of(call, given, known)))
    ids = [each.id for each in turn.tool_calls]
    if len({*ids}) != len(ids):
        raise DuplicateToolCallIdError(
            f"Tool `{call.name}` (call {call.id!r}) requests two calls of one id, so no result "
            "could be told from the other. Ask its model again.",
            call_id=call.id,
        )
    state: Any = asked.state
    session = None
    if hasattr(state, "transcript"):
        left: HasConversation = state
        session, state = toolset.dump_session(left), None
    if not isinstance(state, bytes | str | None):
        raise MisuseError(
            f"Tool `{call.name}` (call {call.id!r}) leaves {shorten(state)} as its state. Leave "
            "bytes, a text or a Session."
        )
    before = _times_asked(call)
    return AwaitingCall(call.call, turn, state, session, known, before, _run=run)


def _known_of(call: DecodedCall, given: RoundState) -> dict[str, Any]:
    """Return what a round knows of its calls already: what is wrong with them, or which tool it is.

    Raises:
        MisuseError: One of them was started, or has its result, or the plan has no tool of its
            name.
    """
    if started := [each for each in given.decoded if each.history.was_touched]:
        raise MisuseError(
            f"Tool `{call.name}` (call {call.id!r}) requests a round of which call "
            f"{started[0].id!r} was started or answered already, so it would be done twice. "
            "Ask for a round as it came."
        )
    # Its model was offered these tools, and could not help it that the plan has none of the name.
    plan: Any = call.selector.toolset or given.toolset
    for each in given.calls:
        if each.name not in plan:
            given.move_elsewhere("requested")
            raise MisuseError(
                f"Tool `{call.name}` (call {call.id!r}) requests a round with a call of "
                f"`{each.name}`, and {plan.__qualname__}, the toolset of the plan, has no tool of "
                "that name. Nest in it the toolset that the round was read with, without a "
                f"prefix: `inner = toolset({given.toolset.__name__}, off=True)`."
            )
    unread = {id: each.history[1].detail for id, each in given.unread.items()}
    return {**{each.id: each.spec for each in given.calls}, **unread}


def _items_of(
    call: DecodedCall, pairs: Iterable[Any], known: dict[str, Any]
) -> Iterator[ToolCallItem]:
    """Make calls of pairs of a tool and its arguments, and note the tool of each selector."""
    for number, (tool, arguments) in enumerate(pairs, 1):
        name = getattr(tool, "name", tool)
        try:
            text = compact_json(json_data(arguments))
        except ValueError as error:
            raise InvalidValueError(
                f"Tool `{call.name}` (call {call.id!r}) requests a call of `{name}` with arguments "
                f"that are not JSON: {error}"
            ) from None
        known[str(number)] = getattr(tool, "spec", None)
        yield ToolCallItem(ToolMetadata(id=str(number), name=name, arguments=text))


# What is in the history.


class Left(NamedTuple):
    """What a call left behind when it requested others, kept while it may come back.

    Attributes:
        turn: The turn with the calls, under the ids of their model.
        state: What was left.
        session: The session that was left, saved.
        toolset: The toolset of the plan.
    """

    turn: AssistantTurn
    state: bytes | str | None
    session: str | None
    toolset: Any


# `Ask((<c1/2>, <c1/3>), Left(turn, b"interpreter…", None, Desk))`. The results are not kept here
# but read from the calls, so that there is one place for each.
class Ask(NamedTuple):
    """One time that a call requested others: what its step `requested` holds.

    Attributes:
        calls: Those that it requested, in order.
        left: What it left behind; None if it has come back since.
        trace: The span of the tool, if it was traced.
    """

    calls: tuple[CallRecord, ...]
    left: Left | None
    trace: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the calls."""
        return tuple(each.id for each in self.calls)

    @property
    def stage(self) -> Stage:
        """The stage of the call: it comes back once each of these has its result."""
        is_answered = all(each.history.is_answered for each in self.calls)
        return STAGES["returning" if is_answered else "awaiting"]

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of the calls; those without one are left out."""
        return tuple(filter(None, (each.known_result() for each in self.calls)))

    def inner(self, rounds: Iterable[Ask]) -> Inner:
        """Return what the tool finds when it comes back.

        Args:
            rounds: All times that it requested calls, this one last.
        """
        left, opens = self.left, None
        if left is not None and left.session is not None:
            opens = partial(self._session, left)
        state = None if left is None else left.state
        return Inner(state, tuple(each.results for each in rounds), opens)

    def _session(self, left: Left) -> Any:
        told = as_model_reads(
            self.results, [*DecodedCall.among(self.calls)], left.toolset, self.calls
        )
        asked = left.turn.tool_calls
        results = [renamed(each, call.id) for each, call in zip(told, asked, strict=True)]
        session = left.toolset.load_session(left.session).session
        session.transcript.append_round(CommittedRound(left.turn, results))
        return session


def read_within(call: AnyToolCall) -> tuple[AssistantTurn | ToolResult, ...]:
    """Return what the model or a tool has read in the round of a call, and no transcript has yet.

    That is its turn, if the provider ran tools for it, and results of calls within. These say what
    they were run with, and have the labels of what they were made of, as results in a transcript
    do.
    """
    call_round = call._record.round
    inner: list[CallRecord] = [*call_round.inner.values()]
    turn = call_round.turn
    turns = (turn,) if turn is not None and turn.given else ()
    if not inner:
        return turns
    calls = [*DecodedCall.among(inner)]
    results = tuple(filter(None, (each.known_result() for each in inner)))
    rewritten = [each for each in calls if each.is_rewritten]
    return (*turns, *labelled(with_final_arguments(results, rewritten), calls))


def ask(state: RoundState, asking: AwaitingCall) -> AwaitingCall | ToolResult:
    """Take in that a call requests others; see `ToolRoundPlan.record`.

    Returns:
        What was given; or, if the call requests too much, the error result that ends it, which is
        still to be recorded.

    Raises:
        LifecycleError: The call is not pending in this plan, has requested this before,
            or has ended since.
    """
    given = asking.call._record
    while True:
        call = state.open_call(given, "cannot request others")
        since = len(call.entries)
        run = asking._run if call is given else None
        if run is not None and not call.is_in_run(run):
            raise call.late(move("requested"))
        if asking._before != (asked := _times_asked(call)):
            raise LifecycleError(
                f"Call {given.id!r} of tool `{given.name}` has requested calls {asked} times in "
                f"this plan, and had done so {asking._before} times when this was made: what it "
                "requests would be done twice. Run the call that is pending here."
            )
        if given.stage.is_end or given.stage.name == "suspended":
            raise LifecycleError(
                f"Call {given.id!r} of tool `{given.name}` is {given.status} by now, so it "
                "requests no calls any more. Give the plan what it came to last."
            )
        fault = _too_much(state, call, len(asking.turn.tool_calls))
        if fault is not None:
            return given.fail(fault[1], fault[0], asking._run)
        made = tuple(_made(state, call, asking))
        left = Left(asking.turn, asking.state, asking._session, state.toolset)
        requested: Move = move("requested", detail=Ask(made, left, asking._trace))
        if call.append_all((*call.moves_to_run, requested), since) is not None:
            state.call_round.take_in(made)
            state.call_round.trace(call.id, asking._trace)
            return asking


def was_taken(call: DecodedCall, asking: AwaitingCall) -> bool:
    """Whether a call awaits what it requested by this outcome already."""
    return call.stage.name in _AWAITS and _times_asked(call) == asking._before + 1


_AWAITS: Final = ("awaiting", "returning")


def _times_asked(call: DecodedCall) -> int:
    return sum(1 for _ in call.history.of_kind("requested"))


def _too_much(state: RoundState, call: DecodedCall, count: int) -> tuple[str, str] | None:
    """Return a code and a text if a call may not request so many calls; else None."""
    depth = len(state.outer_of(call.id)) + 1
    if depth > MAX_DEPTH:
        return "too_deep", (
            f"Calls stand within calls {MAX_DEPTH} deep at most, and call {call.id!r} requests "
            "others there. Call tools directly from here."
        )
    before = _count_of(state, call)
    if before + count > MAX_INNER_CALLS:
        return "too_many_calls", (
            f"A call requests {MAX_INNER_CALLS} others at most, and call {call.id!r} requested "
            f"{before + count}. Do less in one call."
        )
    return None


def _count_of(state: RoundState, by: DecodedCall) -> int:
    """Count the calls that a call requested."""
    return sum(each.requested_by == by.id for each in [*state.call_round.inner.values()])


def _made(state: RoundState, by: DecodedCall, asking: AwaitingCall) -> Iterator[CallRecord]:
    """Read what a call requests with the plan's toolset; what cannot be used has its result."""
    toolset = state.toolset
    taken = {each.id for each in state.all_calls()}
    number = _count_of(state, by)
    first = state.call_round.first_entry(by.id)
    members = members_of(toolset)
    not_on_offer = NotOnOffer(members.offer, members.offer.all, members.by_name)
    for sent in asking.turn.tool_calls:
        number += 1
        # A provider may have named a call of the turn `c1/2` itself.
        while f"{by.id}/{number}" in taken:
            number += 1
        metadata = ToolMetadata(id=f"{by.id}/{number}", name=sent.name, arguments=sent.arguments)
        known = asking._known.get(sent.id)
        selector = members.by_name.get(sent.name)
        if isinstance(known, ToolResult):
            ended: ToolResult | RecoverableToolCallIssue = renamed(known, metadata.id)
        elif isinstance(known, RecoverableToolCallIssue):
            ended = replace(known, metadata=metadata)
        elif selector is None or (known is not None and known is not selector.spec):
            ended = not_on_offer.issue(metadata)
        else:
            try:
                yield DecodedCall.decode(
                    selector, metadata, entry=first, call_round=state.call_round
                )
                continue
            except InvalidArgumentsError as error:
                text = str(error)
                ended = RecoverableToolCallIssue(metadata, "invalid_arguments", text, error.fields)
        yield CallRecord.unread(metadata, first, ended, state.call_round)


# Deciding.


def decide_asked(
    state: RoundState,
    hooks: Hooks,
    on_event: OnEvent | None = None,
    *,
    by: DecodedCall | None = None,
) -> HookGenerator[None]:
    """Let hooks review the calls that were requested, and that nobody has reviewed.

    If a hook raises, nothing was decided. The result that a hook gives a call is shown
    to after-hooks here, since the awaiting call may see it at once.

    Args:
        state: The state of the round.
        hooks: The hooks.
        on_event: Is told what was decided about each call.
        by: The call whose requests are meant; by default all of them.
    """

    def note(hooks: Hooks) -> None:
        state.check_open()
        state.note_hooks(hooks)
        state.is_decided = True

    asked = [each for each in state.lists.unreviewed if by is None or each.requested_by == by.id]
    reviews = yield from review_calls(asked, hooks, note)
    for review in reviews:
        if review.target.history.state == "handled":
            yield from show_to(review.target, review.target.history.result, hooks)
    if on_event is not None:
        tell_decided(state, on_event, {review.target.id for review in reviews})


def show_to(call: DecodedCall, result: Any, hooks: Hooks) -> HookGenerator[Any]:
    """Show after-hooks what a call within another came to, those that have not seen it.

    Returns:
        The result, as they left it.
    """
    said: list[AfterSaid] = []
    hook_set: Any = hooks
    shown = result
    # Only a hook set has after-hooks, and only results are shown to them.
    if isinstance(hooks, HookPlaces) and isinstance(result, ToolResult):
        shown = yield from after(call, result, hook_set, said)
    write_said(said)
    return shown


def show_outcome(state: RoundState, outcome: Any, hooks: Hooks) -> HookGenerator[Any]:
    """Show the result of a call to after-hooks; see `ToolRoundPlan.review_outcome`."""
    call = state.find_decoded(outcome.id) if isinstance(outcome, ToolResult) else None
    # That a call was refused at its start is no result of its tool.
    if call is None or call.history.state == "rejected":
        return outcome
    return (yield from show_to(call, outcome, hooks))


def is_unshown(call: DecodedCall, hooks: Hooks) -> bool:
    """Whether after-hooks have not seen the result of a decision within a call that comes back."""
    return isinstance(hooks, HookPlaces) and any(
        not was_asked_after(inner, key)
        for inner in DecodedCall.among(call.requested_calls())
        if inner.history.state == "handled"
        for key, _ in keyed(hooks._hooks_for(inner.selector, "after"))
    )


def settle_within(
    state: RoundState, hooks: Hooks, on_event: OnEvent | None = None
) -> HookGenerator[None]:
    """Decide about what was requested, and let after-hooks see what people decided within."""
    state.note_hooks_of_before(hooks)
    if state.lists.unreviewed:
        yield from decide_asked(state, hooks, on_event)
    for inner in DecodedCall.among([*state.call_round.inner.values()]):
        if inner.history.state == "handled":
            yield from show_to(inner, inner.history.result, hooks)
