"""Hypothesis strategies for what a model may say to a toolset, right and wrong.

From any toolset, also one of JSON schemas alone:

- `valid_arguments(toolset, tool)`: arguments that fit one tool, as data;
- `calls(toolset, *kinds)`: one call, of the kinds below;
- `turns(toolset)`: a turn of one to three calls, perhaps with text, cut off, or two under one id;
- `scripts(toolset)`: several such turns, and a last one that answers.

| kind of call | what it is | what the library makes of it |
|---|---|---|
| `valid` | fits the tool | a call |
| `mended` | in doubt for nobody: JSON in a string, null for a field that may be absent | a call |
| `near_miss` | one thing is wrong | an issue |
| `truncated` | the argument text is cut off | an issue |
| `unknown_tool` | a name that is near, odd or empty | an issue |
| `not_available` | a tool that the turn does not offer | an issue |

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

from typing import Any, Literal, TypeAlias

from .._call.selector import AnySelector
from .._declare.offer import Available
from .._transcript.assistant import AssistantTurn, ToolMetadata
from ..errors import InvalidValueError
from ._strategies import st
from ._strategies.calls import (
    AnyToolset,
    ArgumentStrategies,
    CallStrategies,
    Spoken,
    require_toolset,
)
from ._strategies.turns import FINAL, script_strategy, turn_strategy

__all__ = ["CallKind", "calls", "scripts", "turns", "valid_arguments"]

CallKind: TypeAlias = Literal[
    "valid", "mended", "near_miss", "truncated", "unknown_tool", "not_available"
]

_NONE: ArgumentStrategies = {}


def valid_arguments(
    toolset: AnyToolset, tool: AnySelector | str
) -> st.SearchStrategy[dict[str, Any]]:
    """Make arguments that fit one tool.

    They are made from the tool's input schema and then decoded; what a validator refuses is
    dropped. Where a validator refuses nearly everything, nothing is found: then give a strategy of
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
    return spoken.map(lambda call: ToolMetadata(id="c1", name=call[0], arguments=call[1]))


def turns(
    toolset: AnyToolset,
    *kinds: CallKind,
    available: Available = None,
    arguments: ArgumentStrategies = _NONE,
    max_calls: int = 3,
    odd_ids: bool = True,
    odd_names: bool = True,
) -> st.SearchStrategy[AssistantTurn]:
    """Make turns with calls.

    Args:
        toolset: The toolset.
        kinds: What kinds of calls; all by default.
        available: Which tools are on offer; those that are on by default.
        arguments: Strategies of your own for the arguments of some tools.
        max_calls: How many calls a turn has at most.
        odd_ids: Whether some ids are empty, or come twice in a turn.
        odd_names: Whether some unknown tools have names that providers refuse to take back.

    Raises:
        InvalidValueError: The toolset cannot be sent a call of this kind, there is no such kind, or
            `max_calls` is below 1.
        MisuseError: It is not a toolset, `arguments` holds something else than strategies, or
            `max_calls` is not a whole number.
        UnknownToolError: `available` or `arguments` names no tool of the toolset.
    """
    spoken = _spoken(toolset, kinds, available, arguments, odd_names)
    return turn_strategy(spoken, max_calls=max_calls, odd_ids=odd_ids)


def scripts(
    toolset: AnyToolset,
    *kinds: CallKind,
    available: Available = None,
    arguments: ArgumentStrategies = _NONE,
    max_turns: int = 3,
    max_calls: int = 3,
    odd_ids: bool = True,
    odd_names: bool = True,
    final: AssistantTurn = FINAL,
) -> st.SearchStrategy[tuple[AssistantTurn, ...]]:
    """Make scripts for a `ScriptedModel`: turns with calls, and a last one that answers.

    There are at most `max_turns` turns with calls, and at least one; `final` is the last turn, such
    as the call that gives an answer of a type. The other parameters are those of `turns`, and so is
    what is raised.

    Returns:
        A strategy of tuples of turns.
    """
    spoken = _spoken(toolset, kinds, available, arguments, odd_names)
    return script_strategy(
        spoken, max_turns=max_turns, max_calls=max_calls, odd_ids=odd_ids, final=final
    )


def _spoken(
    toolset: AnyToolset,
    kinds: tuple[CallKind, ...],
    available: Available,
    arguments: ArgumentStrategies,
    odd_names: bool,
) -> st.SearchStrategy[Spoken]:
    require_toolset("A strategy of calls", toolset)
    possible = CallStrategies(toolset, available, arguments, odd_names=odd_names).kinds()
    for kind in kinds:
        if kind not in possible:
            raise InvalidValueError(
                f"{toolset.__qualname__} cannot be sent a call of kind {kind!r}; it can be sent "
                f"{', '.join(possible)}."
            )
    # Not `one_of`, which would take the kinds apart, and favour those with many ways to be made.
    return st.sampled_from([*(kinds or possible)]).flatmap(possible.__getitem__)
