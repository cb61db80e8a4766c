"""Strategies for whole turns, and for scripts of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..._text.json import shorten
from ..._transcript.assistant import AssistantTurn, ToolMetadata
from ...errors import InvalidValueError, MisuseError
from . import event, st
from .calls import Spoken
from .schema import ANY_TEXT

FINAL = AssistantTurn(text="Done.", finish_reason="stop")
"""How a script ends unless another end is given: the model asks for nothing more."""

_IdStyle: TypeAlias = Literal["own", "empty", "repeated"]

_USUAL_ID: st.SearchStrategy[_IdStyle] = st.just("own")
# Most turns have one call, which can repeat no id: so it is drawn more often than an empty one, and
# a hundred scripts have one that does.
_SHARES: dict[_IdStyle, int] = {"own": 5, "repeated": 3, "empty": 1}
_ANY_ID = st.sampled_from([style for style, share in _SHARES.items() for _ in range(share)])
_TEXTS = st.none() | st.sampled_from(["Let me look.", ""]) | ANY_TEXT
_REASONS = st.sampled_from(["tool_calls", "stop", "length", None])


@dataclass(frozen=True, slots=True)
class _Shape:
    """A turn whose calls have no ids yet: those are numbered through the whole script."""

    calls: tuple[tuple[Spoken, _IdStyle], ...]
    text: str | None
    finish_reason: str | None


def require_count(name: str, given: object) -> None:
    """Make sure that a limit lets something through.

    Args:
        name: The parameter.
        given: What was given.

    Raises:
        MisuseError: It is not a whole number.
        InvalidValueError: It is below 1.
    """
    if not isinstance(given, int) or isinstance(given, bool):
        raise MisuseError(f"`{name}` takes a whole number from 1 on, not {shorten(given)}.")
    if given < 1:
        raise InvalidValueError(
            f"`{name}` is {given}, so nothing would be tried. Give a whole number from 1 on."
        )


def _shapes(
    calls: st.SearchStrategy[Spoken], *, max_calls: int, odd_ids: bool
) -> st.SearchStrategy[_Shape]:
    require_count("max_calls", max_calls)
    ids = _ANY_ID if odd_ids else _USUAL_ID
    several = st.lists(st.tuples(calls, ids), min_size=1, max_size=max_calls)
    return st.builds(_Shape, several.map(tuple), _TEXTS, _REASONS)


def _numbered(shapes: Iterable[_Shape]) -> tuple[AssistantTurn, ...]:
    turns: list[AssistantTurn] = []
    count = 0
    for shape in shapes:
        metadatas: list[ToolMetadata] = []
        for (name, arguments), style in shape.calls:
            count += 1
            id = f"c{count}" if style != "empty" else ""
            if style == "repeated" and metadatas:
                id = metadatas[-1].id
            metadatas.append(ToolMetadata(id=id, name=name, arguments=arguments))
        turns.append(
            AssistantTurn(text=shape.text, tool_calls=metadatas, finish_reason=shape.finish_reason)
        )
    return tuple(turns)


def _report(turn: AssistantTurn) -> AssistantTurn:
    ids = [call.id for call in turn.tool_calls]
    if len(set(ids)) < len(ids):
        event("turn: two calls share an id")
    if "" in ids:
        event("turn: a call has an empty id")
    if len(ids) > 1:
        event("turn: several calls")
    if turn.text:
        event("turn: text beside its calls")
    if turn.is_truncated:
        event("turn: cut off by the limit on tokens")
    return turn


def turn_strategy(
    calls: st.SearchStrategy[Spoken], *, max_calls: int, odd_ids: bool
) -> st.SearchStrategy[AssistantTurn]:
    """Return turns with one call or more."""
    shapes = _shapes(calls, max_calls=max_calls, odd_ids=odd_ids)
    return shapes.map(lambda shape: _report(_numbered([shape])[0]))


def script_strategy(
    calls: st.SearchStrategy[Spoken],
    *,
    max_turns: int,
    max_calls: int,
    odd_ids: bool,
    final: AssistantTurn,
) -> st.SearchStrategy[tuple[AssistantTurn, ...]]:
    """Return scripts: turns with calls, and a last one that answers."""
    require_count("max_turns", max_turns)
    if not isinstance(final, AssistantTurn):
        raise MisuseError(
            f"`final` takes the turn that ends a script, not {shorten(final)}. Make it as in "
            "`ScriptedModel.tool_calls(('a1', 'answer', {...}))`."
        )
    shapes = _shapes(calls, max_calls=max_calls, odd_ids=odd_ids)

    def script(chosen: list[_Shape]) -> tuple[AssistantTurn, ...]:
        return (*map(_report, _numbered(chosen)), final)

    return st.lists(shapes, min_size=1, max_size=max_turns).map(script)
