"""Make a failing script as simple as it can be.

Hypothesis would shrink the choices that a script was drawn by, of which there are hundreds. What a
reader wants less of is known here: turns, calls, text, then what stands in the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..._text.json import compact_json, is_array, is_object, parse_json
from ..._transcript.assistant import AssistantTurn
from ..._transcript.metadata import ToolMetadata

_Script: TypeAlias = tuple[AssistantTurn, ...]

_NO_IDS_KEPT: Mapping[str, str] = {}
_EMPTY_ID_KEPT: Mapping[str, str] = {"": ""}

_BUDGET = 1000
"""So many scripts are tried; simpler ones are found within a few dozen."""


def simplest(
    script: Sequence[AssistantTurn],
    still_fails: Callable[[_Script], bool],
    is_tool: Callable[[str], bool],
) -> _Script:
    """Give a script that still fails, and of which nothing can be taken away.

    Args:
        script: A script that fails; its last turn is kept.
        still_fails: Whether another one fails in the same way.
        is_tool: Whether there is a tool of this name.
    """
    best, tried = tuple(script), 0
    while tried < _BUDGET:
        for candidate in _simpler_scripts(best, is_tool):
            tried += 1
            if tried > _BUDGET or still_fails(candidate):
                best = candidate if tried <= _BUDGET else best
                break
        else:
            break
    return best


def _simpler_scripts(script: _Script, is_tool: Callable[[str], bool]) -> Iterator[_Script]:
    last = len(script) - 1
    for at in range(last):
        yield (*script[:at], *script[at + 1 :])
    for at in range(last):
        for turn in _simpler_turns(script[at], is_tool):
            yield (*script[:at], turn, *script[at + 1 :])
    for kept in _NO_IDS_KEPT, _EMPTY_ID_KEPT:
        numbered = _numbered(script, kept)
        if numbered != script:
            yield numbered


def _simpler_turns(turn: AssistantTurn, is_tool: Callable[[str], bool]) -> Iterator[AssistantTurn]:
    calls, text, reason = turn.tool_calls, turn.text or None, turn.finish_reason
    for at in range(len(calls) if len(calls) > 1 else 0):
        yield _turn((*calls[:at], *calls[at + 1 :]), text, reason)
    if text is not None:
        yield _turn(calls, None, reason)
        if text != "a":
            yield _turn(calls, "a", reason)
    if reason != "tool_calls":
        yield _turn(calls, text, "tool_calls")
    for at, call in enumerate(calls):
        for other in _simpler_calls(call, is_tool):
            yield _turn((*calls[:at], other, *calls[at + 1 :]), text, reason)


def _turn(
    calls: Sequence[ToolMetadata], text: str | None, finish_reason: str | None
) -> AssistantTurn:
    return AssistantTurn(text=text, tool_calls=calls, finish_reason=finish_reason)


def _simpler_calls(call: ToolMetadata, is_tool: Callable[[str], bool]) -> Iterator[ToolMetadata]:
    if not is_tool(call.name) and len(call.name) > 1:
        yield ToolMetadata(id=call.id, name="x", arguments=call.arguments)
    for text in _simpler_arguments(call.arguments):
        yield ToolMetadata(id=call.id, name=call.name, arguments=text)


def _simpler_arguments(text: str) -> Iterator[str]:
    try:
        data = parse_json(text)
    except ValueError:
        if text != "{":
            yield "{"
        if len(text) > 1:
            yield text[: len(text) // 2]
        return
    if text != "{}":
        yield "{}"
    for simpler in _simpler_data(data):
        yield compact_json(simpler)


def _simpler_data(data: Any) -> Iterator[Any]:
    """Give values that are simpler, by a measure that ends: shorter, or nearer to nothing."""
    if is_object(data):
        for key in data:
            yield {other: value for other, value in data.items() if other != key}
        for key, value in data.items():
            for simpler in _simpler_data(value):
                yield {**data, key: simpler}
    elif is_array(data):
        for at in range(len(data)):
            yield [*data[:at], *data[at + 1 :]]
        for at, value in enumerate(data):
            for simpler in _simpler_data(value):
                yield [*data[:at], simpler, *data[at + 1 :]]
    elif isinstance(data, str):
        for simpler in ("", "a", data[: len(data) // 2]):
            if simpler != data and data not in ("", "a"):
                yield simpler
        if data == "a":
            yield ""
    elif data is True or (isinstance(data, int | float) and data not in (0, 1)):
        yield from (0, 1) if data is not True else (False,)


def _numbered(script: _Script, kept: Mapping[str, str]) -> _Script:
    """Number the ids anew, except those to keep; one that comes again in a turn does so still."""
    turns: list[AssistantTurn] = []
    count = 0
    for turn in script[:-1]:
        known = dict(kept)
        calls: list[ToolMetadata] = []
        for call in turn.tool_calls:
            if call.id not in known:
                count += 1
                known[call.id] = f"c{count}"
            calls.append(ToolMetadata(id=known[call.id], name=call.name, arguments=call.arguments))
        turns.append(_turn(calls, turn.text or None, turn.finish_reason))
    return (*turns, script[-1])
