"""Messages of Chat Completions, each mended by itself: its role, its content, its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import copy_json, is_mapping, is_object, is_sequence, shorten
from .._repair.mending import Mending, text_of
from .._wire.reading import DUMP

__all__ = ["RESULTS", "read_message"]

RESULTS: Final = frozenset({"tool", "function"})
"""The roles of those who answer calls."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"}) | RESULTS
_SAID: Final = ("content", "tool_calls", "function_call", "audio", "refusal")
_CALLS: Final[Mapping[str, str]] = {"function": "arguments", "custom": "input"}


def read_message(index: int, message: Any, mending: Mending) -> dict[str, Any] | None:
    """Copy a message, and mend it as far as that needs no other; None where it is none.

    Args:
        index: Its number in the conversation.
        message: The message.
        mending: Takes a note of each breach.
    """
    role = message.get("role") if is_mapping(message) else None
    if not isinstance(role, str) or role not in _ROLES:
        mending.note(
            f"messages[{index}]",
            "unknown_role",
            f"expected a message with a known role, got {shorten(message)}",
            f"Give it one of {', '.join(sorted(_ROLES))}" if is_mapping(message) else DUMP,
            "removed the message",
        )
        return None
    copied: dict[str, Any] = copy_json(message)
    if role == "assistant":
        _assistant(index, copied, mending)
    elif role in RESULTS:
        _result(index, copied, mending)
    elif copied.get("content") is None:
        mending.note(
            f"messages[{index}].content",
            "message_without_content",
            f"a message of the {role} needs content",
            "Send what it says, or leave the message out",
            "made the content empty text",
        )
        copied["content"] = ""
    _content(index, copied, mending)
    return copied


def _result(index: int, message: dict[str, Any], mending: Mending) -> None:
    if message.get("content") is None:
        mending.note(
            f"messages[{index}].content",
            "result_without_content",
            "a result needs content, if only empty text",
            'Send `""` where there is nothing to say',
            "made the content empty text",
        )
        message["content"] = ""
    mending.text_id(message, "tool_call_id", f"messages[{index}]")
    if isinstance(message.get("name"), str):
        mending.rename(message, "name", f"messages[{index}].name")


def _content(index: int, message: dict[str, Any], mending: Mending) -> None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return
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
    _tool_calls(index, message, mending)
    _function_call(index, message, mending)
    if all(message.get(key) is None for key in _SAID):
        mending.note(
            f"messages[{index}].content",
            "empty_turn",
            "a turn of the assistant needs content or calls",
            'Send `""` where it said nothing',
            "made the content empty text",
        )
        message["content"] = ""


def _tool_calls(index: int, message: dict[str, Any], mending: Mending) -> None:
    listed = message.get("tool_calls")
    position = f"messages[{index}].tool_calls"
    if listed is None:
        return
    if not is_sequence(listed):
        mending.note(
            position,
            "invalid_tool_calls",
            f"expected a list of calls, got {shorten(listed)}",
            "Send a list, also where there is only one",
            "put it into a list" if is_mapping(listed) else "removed it",
        )
        listed = [listed] if is_mapping(listed) else []
    elif not listed:
        mending.note(
            position,
            "empty_tool_calls",
            "a list of calls holds at least one",
            "Leave `tool_calls` out",
            "removed the empty list",
        )
    calls = [
        call for number, call in enumerate(listed) if _call(call, f"{position}[{number}]", mending)
    ]
    if calls:
        message["tool_calls"] = calls
    else:
        del message["tool_calls"]


def _call(call: Any, position: str, mending: Mending) -> bool:
    """Mend one call; say whether there is anything to be kept of it."""
    kind = "custom" if is_mapping(call) and call.get("type") == "custom" else "function"
    inner = call.get(kind) if is_mapping(call) else None
    if not is_object(call) or not is_object(inner):
        mending.note(
            position,
            "invalid_tool_calls",
            f"expected a call with {kind!r}, got {shorten(call)}",
            'Send {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}',
            "removed the call",
        )
        return False
    mending.text_id(call, "id", position)
    _named_call(inner, f"{position}.{kind}", _CALLS[kind], mending)
    return True


def _function_call(index: int, message: dict[str, Any], mending: Mending) -> None:
    call = message.get("function_call")
    position = f"messages[{index}].function_call"
    if call is None:
        return
    if is_object(call) and call.get("name"):
        _named_call(call, position, "arguments", mending)
        return
    mending.note(
        position,
        "invalid_tool_calls",
        f"expected a call with a name, got {shorten(call)}",
        "Leave `function_call` out where nothing is called",
        "removed it",
    )
    del message["function_call"]


def _named_call(inner: dict[str, Any], position: str, key: str, mending: Mending) -> None:
    mending.rename(inner, "name", f"{position}.name")
    mending.as_text(inner, key, f"{position}.{key}", "{}" if key == "arguments" else "")
