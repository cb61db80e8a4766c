"""The stored form of what calls asked for: the calls, and each time that one asked.

Their lines stand with those of the turn. What belongs to the step `asks` stands here, the ids for
each time, and what was left for the last one of a call that may come back:

    {"calls": [{"id": "c1/1", "name": "pay", "arguments": "{…}"}],
     "asks": [{"call": "c1", "ids": ["c1/1"], "trace": "00-…", "turn": {…}, "state": "…"}]}
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from .._transcript.assistant import dump_turn, load_turn
from .._transcript.metadata import ToolMetadata, dump_metadata, load_metadata
from .._transcript.saved import Saved
from ..errors import PlanError
from .inner import Ask, Left
from .sorted_calls import InnerCall, SortedCalls
from .step_json import check_words

_INNER_WORDS: Final = frozenset({"calls", "asks"})
_CALL_WORDS: Final = frozenset({"id", "name", "arguments"})
_ASK_WORDS: Final = frozenset({"call", "ids", "trace", "turn", "state", "bytes", "session"})


def dump_inner(calls: SortedCalls) -> dict[str, Any]:
    """Save what the calls of a round asked for."""
    asks: list[dict[str, Any]] = []
    for metadata in calls._state._calls_of_all():
        line = calls._line_of(metadata.id)
        mine = [step.detail for step in line if step.kind == "asks"]
        asks += [_dump_ask(metadata.id, ask) for ask in mine]
        if mine and not line[-1].stage.is_end:
            asks[-1] |= _dump_left(mine[-1].left)
    inner = calls._state._inner.values()
    return {"calls": [dump_metadata(each.metadata) for each in inner], "asks": asks}


def _dump_ask(call_id: str, ask: Ask) -> dict[str, Any]:
    data: dict[str, Any] = {"call": call_id, "ids": list(ask.ids)}
    return data if ask.trace is None else {**data, "trace": ask.trace}


def _dump_left(left: Left) -> dict[str, Any]:
    data: dict[str, Any] = {"turn": dump_turn(left.turn)}
    if isinstance(left.state, bytes):
        data["bytes"] = b64encode(left.state).decode()
    elif left.state is not None:
        data["state"] = left.state
    if left.session is not None:
        data["session"] = left.session
    return data


def check_bytes(plan: Mapping[str, Any], key: bytes | None) -> None:
    """Refuse to save, or load, bytes that a tool left where nobody vouches for them.

    A tool may hand its bytes to what trusts them, such as the interpreter of a program.

    Args:
        plan: The saved plan.
        key: The key that it is sealed with, if any.

    Raises:
        PlanError: There are such bytes, and no key.
    """
    inner: Mapping[str, Any] = plan.get("inner") or {}
    asks: Iterable[Mapping[str, Any]] = inner.get("asks", ())
    for ask in asks if key is None else ():
        if "bytes" in ask:
            raise PlanError(
                f"Call {ask['call']!r} left bytes to come back to, as a program leaves its "
                "interpreter, and without a key anybody could put others in their place. Pass "
                "`key=`, or let the tool leave a text: `program_tool(tools, keep='replay')`."
            )


class SavedAsk(NamedTuple):
    """One time that a call asked, as it was saved.

    Attributes:
        ids: The ids of the calls.
        saved: The entry.
    """

    ids: tuple[str, ...]
    saved: Saved

    def loaded(self, calls: Mapping[str, InnerCall], toolset: Any) -> Ask:
        """Make it again of the calls, which were loaded before.

        Raises:
            PlanError: What was left does not fit the calls.
        """
        asked, saved = tuple(calls[id] for id in self.ids), self.saved
        trace = saved.get("trace", str, None)
        if "turn" not in saved.data:
            return Ask(asked, None, trace)
        turn = load_turn(saved.inner("turn"))
        sent = [(each.name, each.arguments) for each in turn.tool_calls]
        if sent != [(each.metadata.name, each.metadata.arguments) for each in asked]:
            raise saved.wrong("turn", "its calls are not those that were asked for")
        state: bytes | str | None = saved.get("state", str, None)
        if "bytes" in saved.data:
            try:
                state = b64decode(saved.get("bytes", str), validate=True)
            except Error:
                raise saved.wrong("bytes", "it is no base64") from None
        return Ask(asked, Left(turn, state, saved.get("session", str, None), toolset), trace)


class SavedInner(NamedTuple):
    """What calls asked for, as it was saved.

    Attributes:
        calls: The calls, in the order in which they were asked.
        asked_by: For each the id of the call that asked for it.
        asks: By the id of a call the times that it asked.
    """

    calls: tuple[ToolMetadata, ...]
    asked_by: Mapping[str, str]
    asks: Mapping[str, tuple[SavedAsk, ...]]


def inner_in(saved: Saved, asked: tuple[ToolMetadata, ...]) -> SavedInner:
    """Read what the calls of a turn asked for.

    Raises:
        PlanError: It is damaged, or has a word that nobody knows.
    """
    inner = saved.inner_or_none("inner")
    if inner is None:
        return SavedInner((), {}, {})
    check_words(inner, _INNER_WORDS)
    entries = list(inner.each("calls"))
    for entry in entries:
        check_words(entry, _CALL_WORDS)
    calls = tuple(load_metadata(entry) for entry in entries)
    place = {call.id: number for number, call in enumerate((*asked, *calls))}
    if len(place) != len(asked) + len(calls):
        raise inner.wrong("calls", "an id is there twice")
    asked_by: dict[str, str] = {}
    asks: dict[str, tuple[SavedAsk, ...]] = {}
    for entry in inner.each("asks"):
        check_words(entry, _ASK_WORDS)
        by, ids = entry.get("call", str), entry.texts("ids")
        for id in ids:
            if id in asked_by or not place.get(by, len(place)) < place.get(id, -1):
                raise entry.wrong("ids", f"{id!r} is no call that {by!r} may have asked for")
            asked_by[id] = by
        asks[by] = (*asks.get(by, ()), SavedAsk(ids, entry))
    if asked_by.keys() != {call.id for call in calls}:
        raise inner.wrong("calls", "they are not those that were asked for")
    return SavedInner(calls, asked_by, asks)
