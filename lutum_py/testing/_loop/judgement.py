"""Compare what the model said with what a loop kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..._text.json import shorten
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TranscriptItem
from ...dialects._wire_form import Said
from .._strategies.calls import PLAIN_NAME
from .report import LoopFault


def said_in_turn(turn: AssistantTurn) -> Iterator[Said]:
    """List what a turn of the library says: its text, and its calls."""
    if turn.text:
        yield Said(turn.text)
    for call in turn.tool_calls:
        yield Said(call.arguments, call.name, call.id or None)


def said_in_items(items: Iterable[TranscriptItem]) -> Iterator[Said]:
    """List what the model said in a transcript."""
    for item in items:
        if isinstance(item, AssistantTurn):
            yield from said_in_turn(item)


def judge(
    given: Sequence[tuple[AssistantTurn, Sequence[Said]]],
    kept: Sequence[Said],
    *,
    gave_up: bool,
    was_stopped: bool,
) -> Iterator[LoopFault]:
    """Find what was lost or changed of the turns that a loop got.

    Args:
        given: Each turn, and what it says in the form in which it is kept.
        kept: What the model said in the conversation afterwards, in order.
        gave_up: Whether the loop let out an exception that it may let out.
        was_stopped: Whether it was stopped before its own end.
    """
    # For instance `given` has one turn that says [Said("{}", "forecast", "c1")], and `kept` is what
    # the conversation has of it. Turns are looked for in order, each after the one before:
    # `cursor`.
    left, cursor, is_whole = list(kept), 0, True
    for number, (turn, parts) in enumerate(given, 1):
        # Some providers refuse to take back a text that is blank.
        said = [part for part in parts if part.name is not None or part.text.strip()]
        is_last = number == len(given)
        if not turn.tool_calls or (gave_up and is_last):
            continue
        ids = [call.id for call in turn.tool_calls]
        doubled = [id for at, id in enumerate(ids) if id in ids[:at]]
        if doubled:
            is_ended = is_last and not was_stopped
            yield from (_swallowed(number, doubled[0]),) if is_ended else ()
            continue
        if was_stopped and is_last:
            continue
        at = _found(said, left, cursor)
        if at is None:
            is_whole = False
            yield _unlike(number, said, left)
        else:
            for place in at:
                left[place] = _TAKEN
            cursor = at[-1] + 1
    for each in left if is_whole and not gave_up and not was_stopped else ():
        if each.name is not None:
            text = f"The conversation has {_shown(each)}, which the model did not make."
            yield LoopFault("invented", text)
            return


# Stands where a part was found. The list keeps its length, so that places and `cursor` stay right.
_TAKEN = Said("")


def _found(said: Sequence[Said], left: Sequence[Said], cursor: int) -> list[int] | None:
    """Find where a turn stands: its parts one after another, from a place on."""
    places: list[int] = []
    for one in said:
        # Parts of other turns and of the user's own may be between them, so what does not match
        # is passed over; the order has to hold.
        while cursor < len(left) and not _is_same(one, left[cursor]):
            cursor += 1
        if cursor == len(left):
            return None
        places.append(cursor)
        cursor += 1
    return places


def _is_same(sent: Said, kept: Said) -> bool:
    if sent.name is None or kept.name is None:
        return sent == kept
    # A name that some provider does not take back has to be written otherwise there.
    is_name = sent.name == kept.name or not PLAIN_NAME.fullmatch(sent.name)
    return is_name and sent.text == kept.text and sent.id in (None, kept.id)


def _unlike(number: int, said: Sequence[Said], left: Sequence[Said]) -> LoopFault:
    missing = [one for one in said if not any(_is_same(one, other) for other in left)]
    lost = [one for one in missing if one.name is not None]
    # An id that is there with other words is a call that was changed, and says more than that one
    # is lost and another was made up.
    changed = [
        (one, other)
        for one in lost
        for other in left
        if other.name is not None and one.id is not None and other.id == one.id
    ]
    if changed:
        one, other = changed[0]
        text = f"Turn {number} was changed: the model sent {_shown(one)}, kept was {_shown(other)}."
        return LoopFault("altered", f"{text} {_AS_SENT}")
    if lost:
        what = "nothing of it" if len(missing) == len(said) else "not all of it"
        text = (
            f"Of turn {number} {what} is in the conversation: lost is "
            f"{', '.join(map(_shown, lost))}. {_COMMIT}"
        )
        return LoopFault("lost_call", text)
    if missing:
        text = f"Turn {number} was changed: its text {shorten(missing[0].text)} is gone. {_AS_SENT}"
        return LoopFault("altered", text)
    text = f"Turn {number} was changed: its parts stand in another order, or were taken together."
    return LoopFault("altered", f"{text} {_AS_SENT}")


_AS_SENT = "Keep the turn as it came; `plan.commit` and a dialect's `messages` do."
_COMMIT = (
    "Commit every round, also one whose calls cannot be used: the library has a rejection ready "
    "for each of them."
)


def _swallowed(number: int, id: str) -> LoopFault:
    text = (
        f"Turn {number} has two calls with the id {id!r}, and the loop ended as if nothing had "
        "happened. Ask the model again, or let DuplicateToolCallIdError out."
    )
    return LoopFault("swallowed_duplicate", text)


def _shown(call: Said) -> str:
    return f"call {call.id!r} of {shorten(call.name)} with {shorten(call.text)}"
