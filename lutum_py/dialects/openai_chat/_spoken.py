"""Messages of Chat Completions, each mended by itself: its role, its content, its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import is_mapping, is_object, is_sequence, shorten
from .._repair.mending import MAYBE_TEXT, Mending, text_of

RESULTS: Final = frozenset({"tool", "function"})
"""The roles of those who answer calls."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"}) | RESULTS
_SAID: Final = ("content", "tool_calls", "function_call", "audio", "refusal")
_CALLS: Final[Mapping[str, str]] = {"function": "arguments", "custom": "input"}


def read_message(index: int, message: Any, mending: Mending) -> dict[str, Any] | None:
    """Read a message, and mend it as far as that needs no other; None where it is not one.

    Args:
        index: Its number in the conversation.
        message: The message.
        mending: Takes a note of each breach.
    """
    role = message.get("role") if is_mapping(message) else None
    if not isinstance(role, str) or role not in _ROLES:
        remedy = f"Give it one of {', '.join(sorted(_ROLES))}"
        mending.drop_unknown(f"messages[{index}]", "message", message, remedy)
        return None
    # Whatever is changed below is changed in `owned`: a copy, or on the first look the caller's own
    # message, of which `note` then lets nothing be changed.
    owned: dict[str, Any] = mending.own(message)
    if role == "assistant":
        _assistant(index, owned, mending)
    elif owned.get("content") is None:
        word = "result" if role in RESULTS else "message"
        mending.note(
            f"messages[{index}].content",
            f"{word}_without_content",
            f"a {word} of the {role} needs content, if only empty text",
            'Send what it says; `""` where that is nothing',
            "made the content empty text",
        )
        owned["content"] = ""
    if role in RESULTS:
        _result(index, owned, mending)
    content = owned.get("content")
    if content is not None and not isinstance(content, str):
        _content(index, owned, content, mending)
    return owned


def _result(index: int, message: dict[str, Any], mending: Mending) -> None:
    if not isinstance(message.get("tool_call_id"), MAYBE_TEXT):
        mending.text_id(message, "tool_call_id", f"messages[{index}]")
    name = message.get("name")
    if isinstance(name, str) and not mending.takes(name):
        mending.rename(message, "name", f"messages[{index}].name")


def _content(index: int, message: dict[str, Any], content: Any, mending: Mending) -> None:
    parts = content if is_sequence(content) else [content]
    # Hosts send an empty list for an assistant that only calls, and take it back.
    is_silent = message["role"] == "assistant" and parts == []
    if is_silent or (content and is_sequence(content) and all(map(is_mapping, parts))):
        return
    mending.note(
        f"messages[{index}].content",
        "invalid_content",
        f"expected text or a list of parts, got {shorten(content)}",
        'Send text, or parts such as {"type": "text", "text": ...}',
        "made parts of it" if parts else "made the content empty text",
    )
    message["content"] = [
        part
        if is_mapping(part) and isinstance(part.get("type"), str)
        else {"type": "text", "text": text_of(part)}
        for part in parts
    ] or ""


def _assistant(index: int, message: dict[str, Any], mending: Mending) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        _tool_calls(index, message, calls, mending)
    call = message.get("function_call")
    if call is not None:
        _function_call(index, message, call, mending)
    for key in _SAID:
        if message.get(key) is not None:
            return
    mending.note(
        f"messages[{index}].content",
        "empty_turn",
        "a turn of the assistant needs content or calls",
        'Send `""` where it said nothing',
        "made the content empty text",
    )
    message["content"] = ""


def _tool_calls(index: int, message: dict[str, Any], given: Any, mending: Mending) -> None:
    listed = given
    if not is_sequence(given):
        mending.note(
            f"messages[{index}].tool_calls",
            "invalid_tool_calls",
            f"expected a list of calls, got {shorten(given)}",
            "Send a list, also where there is only one",
            "put it into a list" if is_mapping(given) else "removed it",
        )
        listed = [given] if is_mapping(given) else []
    elif not given:
        mending.note(
            f"messages[{index}].tool_calls",
            "empty_tool_calls",
            "a list of calls holds at least one",
            "Leave `tool_calls` out",
            "removed the empty list",
        )
    # Put into the message only if something changed: on the first look the list is the caller's,
    # and has to stay the very object that it was.
    calls = [call for number, call in enumerate(listed) if _call(call, index, number, mending)]
    if not calls:
        del message["tool_calls"]
    elif listed is not given or len(calls) < len(listed):
        message["tool_calls"] = calls


def _call(call: Any, index: int, number: int, mending: Mending) -> bool:
    """Mend one call; say whether there is anything to be kept of it."""
    kind = "custom" if is_mapping(call) and call.get("type") == "custom" else "function"
    inner = call.get(kind) if is_mapping(call) else None
    if not is_object(call) or not is_object(inner):
        mending.note(
            f"messages[{index}].tool_calls[{number}]",
            "invalid_tool_calls",
            f"expected a call with {kind!r}, got {shorten(call)}",
            'Send {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}',
            "removed the call",
        )
        return False
    if not isinstance(call.get("id"), MAYBE_TEXT):
        mending.text_id(call, "id", f"messages[{index}].tool_calls[{number}]")
    key = _CALLS[kind]
    if not mending.is_well_written(inner, key):
        mending.mend_call(inner, key, f"messages[{index}].tool_calls[{number}].{kind}")
    return True


def _function_call(index: int, message: dict[str, Any], call: Any, mending: Mending) -> None:
    if is_object(call) and call.get("name"):
        if not mending.is_well_written(call, "arguments"):
            mending.mend_call(call, "arguments", f"messages[{index}].function_call")
        return
    mending.note(
        f"messages[{index}].function_call",
        "invalid_tool_calls",
        f"expected a call with a name, got {shorten(call)}",
        "Leave `function_call` out where nothing is called",
        "removed it",
    )
    del message["function_call"]
