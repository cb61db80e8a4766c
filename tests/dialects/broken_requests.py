"""Conversations of each wire, made at random from few words, so that breaches meet."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)

from .every_dialect import KEYS


def broken_request(dialect: str, random: Random) -> Any:
    """Make a body, or its list alone."""
    said = [_MAKERS.get(dialect, _chat)(random) for _ in range(random.randint(0, 7))]
    return said if random.random() < 0.5 else {KEYS[dialect]: said}


def _fill(random: Random, made: dict[str, Any], **choices: tuple[Any, ...]) -> dict[str, Any]:
    """Give most of the fields one of their values, and leave some out."""
    for key, values in choices.items():
        if random.random() < 0.8:
            made[key] = random.choice(values)
    return made


def _listed(random: Random, make: Callable[[Random], Any], *instead: Any) -> Any:
    many = [make(random) for _ in range(random.randint(0, 4))]
    return random.choice((many, many, many, make(random), *instead))


_IDS: Final = ("a", "b", "a", "", None, 7, {"x": 1}, ["a"], "a b", "\ud83d")
_NAMES: Final = ("f", "g", "f", "no such!", 7)


def _gemini_part(random: Random) -> Any:
    part: dict[str, Any] = {}
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choice(
            ("text", "functionCall", "functionResponse", "function_call", "function_response", "x")
        )
        inner = _fill(random, {}, name=_NAMES, id=_IDS)
        if kind.lower().endswith("call"):
            _fill(random, inner, args=({}, {"a": 1}, "x", None, [1]))
            part[kind] = random.choice((inner, inner, inner, None, 7))
        elif kind.lower().endswith("response"):
            _fill(random, inner, response=({}, "x", None))
            part[kind] = random.choice((inner, inner, inner, None, []))
        else:
            part[kind] = random.choice(("", "x", 7, None, {"data": "x"}))
    return random.choice((*[part] * 9, None, 7, {}))


def _gemini(random: Random) -> Any:
    said = _fill(random, {}, role=("user", "model", "model", "function", None, "x", 7))
    said["parts"] = _listed(random, _gemini_part, None, "x")
    return said


def _anthropic_block(random: Random) -> Any:
    kind = random.choice(("text", "tool_use", "tool_result", "tool_use", "tool_result", "x", 7))
    block: dict[str, Any] = {"type": kind}
    if kind == "text":
        _fill(random, block, text=("", "x", 7))
    elif kind == "tool_use":
        _fill(random, block, id=_IDS, name=_NAMES, input=({}, "x", None))
    elif kind == "tool_result":
        _fill(random, block, tool_use_id=_IDS, content=("x", None, []))
    return random.choice((*[block] * 9, None, {}))


def _anthropic(random: Random) -> Any:
    said = _fill(random, {}, role=("user", "assistant", "assistant", "system", "x", 7))
    said["content"] = _listed(random, _anthropic_block, None, "x", "")
    return said


def _chat_call(random: Random) -> Any:
    kind = random.choice(("function", "function", "custom"))
    inner = _fill(random, {"name": random.choice(_NAMES)}, arguments=("{}", {}, None))
    call = _fill(random, {"type": kind}, id=_IDS)
    call[kind] = random.choice((inner, inner, inner, None, 7))
    return random.choice((*[call] * 8, None, 7))


def _chat(random: Random) -> Any:
    roles = ("user", "assistant", "assistant", "tool", "tool", "function", "system", "x")
    role = random.choice(roles)
    contents: tuple[Any, ...] = ("x", "", None, [{"type": "text", "text": "x"}], ["x"], 7, [])
    said = _fill(random, {"role": role}, content=contents)
    if role == "assistant" and random.random() < 0.7:
        said["tool_calls"] = _listed(random, _chat_call, None, 7)
    if role == "assistant" and random.random() < 0.2:
        calls: tuple[Any, ...] = ({"name": "f", "arguments": "{}"}, {}, None, 7, {"name": 7})
        said["function_call"] = random.choice(calls)
    if role == "tool":
        _fill(random, said, tool_call_id=_IDS)
    if role == "function" or random.random() < 0.2:
        _fill(random, said, name=(*_NAMES, None))
    return said


def _responses(random: Random) -> Any:
    kinds = (
        *("function_call", "function_call", "custom_tool_call", "tool_search_call"),
        *("function_call_output", "function_call_output", "custom_tool_call_output"),
        *("tool_search_output", "reasoning", "message", None, "item_reference", "x", 7),
    )
    said = _fill(random, {}, type=kinds, call_id=_IDS, name=_NAMES)
    _fill(random, said, arguments=("{}", {}, None), output=("x", None, [], 7))
    if random.random() < 0.4:
        said["id"] = random.choice(_IDS)
    if random.random() < 0.3:
        said["execution"] = random.choice(("client", "server", 7, {}))
    if random.random() < 0.4:
        _fill(random, said, role=("user", "assistant", "x", 7), content=("x", None, [], [7]))
    return said


_MAKERS: Final[dict[str, Callable[[Random], Any]]] = {
    openai_chat.NAME: _chat,
    openai_responses.NAME: _responses,
    anthropic_messages.NAME: _anthropic,
    gemini_generate_content.NAME: _gemini,
}
