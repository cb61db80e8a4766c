"""Hypothesis strategies for what a model may say to a toolset, right and wrong.

From any toolset, also one of JSON schemas alone:

- `valid_arguments(toolset, tool)`: arguments that fit one tool, as data;
- `calls(toolset, *kinds)`: one call, of the kinds below;
- `turns(toolset)`: a turn of one to three calls, perhaps with text, cut off, or two under one id;
- `scripts(toolset)`: several such turns, and a last one that answers.

| kind of call | what it is | what the library makes of it |
|---|---|---|
| `valid` | fits the tool | a call |
| `coerced` | in doubt for nobody: JSON in a string, null for a field that may be absent | a call |
| `near_miss` | one thing is wrong | an issue |
| `truncated` | the argument text is cut off | an issue |
| `unknown_tool` | a name that is near, odd or empty | an issue |
| `not_available` | a tool that the turn does not offer | an issue |

A turn that ended at a limit, or by a filter, has at least one call that is an issue by itself.

A near miss has a field missing, unknown, of a wrong type, out of its range, none of its choices,
not of its format, or null; or its text is not JSON, or not an object.

Everything shrinks towards few turns of few calls with short arguments. Calls and turns report what
they are as events: `pytest --hypothesis-show-statistics` tells how often each came.

Example:
    >>> from hypothesis import find
    >>> from lutum_py import Toolset, tool, tool_fn
    >>> @tool_fn
    ... def forecast(city: str, days: int = 1) -> str:
    ...     return city
    >>> class Tools(Toolset):
    ...     forecast = tool(forecast)
    >>> find(calls(Tools, "valid"), lambda call: True).arguments
    '{"city":""}'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from .. import AssistantTurn, ToolMetadata
from .._text.json import shorten
from ..errors import InvalidValueError, MisuseError
from ..typing import AnySelector, Available
from ._calls import (
    ANY_TEXT,
    AnyToolset,
    ArgumentStrategies,
    CallStrategies,
    Spoken,
    require_count,
    require_toolset,
)
from ._hypothesis import event, st

__all__ = [
    "CallKind",
    "ScriptOptions",
    "TurnOptions",
    "calls",
    "scripts",
    "turns",
    "valid_arguments",
]

CallKind: TypeAlias = Literal[
    "valid", "coerced", "near_miss", "truncated", "unknown_tool", "not_available"
]

_NONE: ArgumentStrategies = {}

FINAL = AssistantTurn(text="Done.", finish_reason="stop")
"""How a script ends unless another end is given: the model asks for nothing more."""

_OfKind: TypeAlias = tuple[str, Spoken]
_IdStyle: TypeAlias = Literal["own", "empty", "repeated"]

_USUAL_ID: st.SearchStrategy[_IdStyle] = st.just("own")
# Most turns have one call, which can repeat no id: so it is drawn more often than an empty one, and
# a hundred scripts have one that does.
_SHARES: dict[_IdStyle, int] = {"own": 5, "repeated": 3, "empty": 1}
_ANY_ID = st.sampled_from([style for style, share in _SHARES.items() for _ in range(share)])
_TEXTS = st.none() | st.sampled_from(["Let me look.", ""]) | ANY_TEXT
# Of a turn that ends early, some calls that fit are issues all the same. So not all of its calls
# may fit: whoever asks for calls that do gets them, and what goes wrong with an issue is found as
# one call with nothing odd beside it.
_EARLY = ("length", "content_filter")
_REASONS = st.sampled_from(["tool_calls", "stop", *_EARLY, None])
_FITTING = frozenset({"valid", "coerced"})


class TurnOptions(TypedDict, total=False):
    """Say what calls a turn may have.

    Attributes:
        available: Which tools are on offer; those that are on by default.
        arguments: Strategies of your own for the arguments of some tools.
        max_calls: How many calls a turn has at most, 3 by default.
        odd_ids: Whether some ids are empty, or come twice in a turn, as they do by default.
        odd_names: Whether some unknown tools have names that providers refuse to take back, as they
            do by default.
    """

    available: Available
    arguments: ArgumentStrategies
    max_calls: int
    odd_ids: bool
    odd_names: bool


class ScriptOptions(TurnOptions, total=False):
    """Say what a script may have, beside what its turns may.

    Attributes:
        max_turns: How many turns with calls a script has at most, 3 by default.
        final: The turn that ends each script; if the loop asks for an answer of a type, a turn with
            this answer, as in `ScriptedModel.tool_calls(("a1", "answer", {"total": 1}))`.
    """

    max_turns: int
    final: AssistantTurn


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a script, each with what holds if nobody says otherwise."""

    available: Available = None
    arguments: ArgumentStrategies = field(default_factory=lambda: _NONE)
    max_calls: int = 3
    max_turns: int = 3
    odd_ids: bool = True
    odd_names: bool = True
    final: AssistantTurn = FINAL


class _Shape(NamedTuple):
    """A turn whose calls have no ids yet: those are numbered through the whole script."""

    calls: tuple[tuple[_OfKind, _IdStyle], ...]
    text: str | None
    finish_reason: str | None


def valid_arguments(
    toolset: AnyToolset, tool: AnySelector | str
) -> st.SearchStrategy[dict[str, Any]]:
    """Make arguments that fit one tool.

    They are made from the tool's input schema and then decoded; what a validator refuses is
    dropped. If a validator refuses nearly everything, nothing is found: then give a strategy of
    your own to `calls`, `turns` and `scripts`, as `arguments={tool: strategy}`.

    Args:
        toolset: The toolset.
        tool: One of its tools, by selector or wire name.

    Returns:
        A strategy of JSON objects.

    Raises:
        UnknownToolError: The toolset has no such tool.
        MisuseError: It is not a toolset.
    """
    require_toolset("valid_arguments", toolset)
    selector = toolset.select(tool)[0]
    return CallStrategies(toolset, (selector,), _NONE).arguments(selector)


def calls(
    toolset: AnyToolset,
    *kinds: CallKind,
    available: Available = None,
    arguments: ArgumentStrategies = _NONE,
    odd_names: bool = True,
) -> st.SearchStrategy[ToolMetadata]:
    """Make calls as a model may send them, under the id `c1`.

    Args:
        toolset: The toolset.
        kinds: What kinds of calls; all that the toolset can be sent by default.
        available: Which tools are on offer; those that are on by default.
        arguments: Strategies of your own for the arguments of some tools.
        odd_names: Whether some unknown tools have names that providers refuse to take back.

    Returns:
        A strategy of calls; each kind comes about as often as the others.

    Raises:
        InvalidValueError: The toolset cannot be sent a call of this kind, or there is no such kind.
        MisuseError: It is not a toolset, or `arguments` holds something else than strategies.
        UnknownToolError: `available` or `arguments` names no tool of the toolset.
    """
    spoken = _spoken(toolset, kinds, available, arguments, odd_names)
    return spoken.map(lambda said: ToolMetadata(id="c1", name=said[1][0], arguments=said[1][1]))


def turns(
    toolset: AnyToolset, *kinds: CallKind, **options: Unpack[TurnOptions]
) -> st.SearchStrategy[AssistantTurn]:
    """Make turns with calls.

    Args:
        toolset: The toolset.
        kinds: What kinds of calls; all by default.
        options: See `TurnOptions`.

    Raises:
        InvalidValueError: The toolset cannot be sent a call of this kind, there is no such kind, or
            `max_calls` is below 1.
        MisuseError: It is not a toolset, `arguments` holds something else than strategies, or
            `max_calls` is not a whole number.
        UnknownToolError: `available` or `arguments` names no tool of the toolset.
    """
    shapes = _shapes(toolset, kinds, Options(**options))
    return shapes.map(lambda shape: _report(_numbered([shape])[0]))


def scripts(
    toolset: AnyToolset, *kinds: CallKind, **options: Unpack[ScriptOptions]
) -> st.SearchStrategy[tuple[AssistantTurn, ...]]:
    """Make scripts for a `ScriptedModel`: turns with calls, and a last one that answers.

    There are at most `max_turns` turns with calls, and at least one; `final` is the last turn, such
    as the call that gives an answer of a type. What is raised is as in `turns`.

    Returns:
        A strategy of tuples of turns.
    """
    return scripts_of(toolset, kinds, Options(**options))


def scripts_of(
    toolset: AnyToolset, kinds: tuple[CallKind, ...], options: Options
) -> st.SearchStrategy[tuple[AssistantTurn, ...]]:
    """Make scripts; see `scripts`."""
    shape = _shapes(toolset, kinds, options)
    require_count("max_turns", options.max_turns)
    final = options.final
    if not isinstance(final, AssistantTurn):
        raise MisuseError(
            f"`final` takes the turn that ends a script, not {shorten(final)}. Make it as in "
            "`ScriptedModel.tool_calls(('a1', 'answer', {...}))`."
        )
    shapes = st.lists(shape, min_size=1, max_size=options.max_turns)
    return shapes.map(lambda chosen: (*map(_report, _numbered(chosen)), final))


def _spoken(
    toolset: AnyToolset,
    kinds: tuple[CallKind, ...],
    available: Available,
    arguments: ArgumentStrategies,
    odd_names: bool,
) -> st.SearchStrategy[_OfKind]:
    require_toolset("A strategy of calls", toolset)
    possible = CallStrategies(toolset, available, arguments, odd_names=odd_names).kinds()
    for kind in kinds:
        if kind not in possible:
            raise InvalidValueError(
                f"{toolset.__qualname__} cannot be sent a call of kind {kind!r}; it can be sent "
                f"{', '.join(possible)}."
            )
    # Not `one_of`, which would take the kinds apart, and favour those with many ways to be made.
    return st.sampled_from([*(kinds or possible)]).flatmap(
        lambda kind: st.tuples(st.just(kind), possible[kind])
    )


def _shapes(
    toolset: AnyToolset, kinds: tuple[CallKind, ...], options: Options
) -> st.SearchStrategy[_Shape]:
    own = options.arguments
    calls = _spoken(toolset, kinds, options.available, own, options.odd_names)
    require_count("max_calls", options.max_calls)
    ids = _ANY_ID if options.odd_ids else _USUAL_ID
    several = st.lists(st.tuples(calls, ids), min_size=1, max_size=options.max_calls)
    return st.builds(_Shape, several.map(tuple), _TEXTS, _REASONS)


def _numbered(shapes: Iterable[_Shape]) -> tuple[AssistantTurn, ...]:
    turns: list[AssistantTurn] = []
    count = 0
    for shape in shapes:
        metadatas: list[ToolMetadata] = []
        for (_, (name, arguments)), style in shape.calls:
            count += 1
            # With neither, a piece of a stream of Chat Completions is more of the call before it.
            id = "" if style == "empty" and name else f"c{count}"
            if style == "repeated" and metadatas and (name or metadatas[-1].id):
                id = metadatas[-1].id
            metadatas.append(ToolMetadata(id=id, name=name, arguments=arguments))
        reason = shape.finish_reason
        if reason in _EARLY and _FITTING.issuperset(kind for (kind, _), _ in shape.calls):
            reason = "tool_calls"
        turns.append(AssistantTurn(text=shape.text, tool_calls=metadatas, finish_reason=reason))
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
    if turn.is_blocked:
        event("turn: blocked by a filter")
    return turn
