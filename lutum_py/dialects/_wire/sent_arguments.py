"""The arguments of a call as the object that Anthropic's and Gemini's wires carry."""

from __future__ import annotations

from typing import Any, Final

from ..._text.json import parse_json
from .reading import is_object

__all__ = ["UNREADABLE", "arguments_object"]

UNREADABLE: Final = "INVALID_JSON"
"""The key under which arguments go out that are no JSON object, as Anthropic's guide has it."""


def arguments_object(arguments: str) -> tuple[dict[str, Any], bool]:
    """Give the object for a call's argument text, and whether the text was one.

    Example:
        >>> arguments_object('{"a": 1}'), arguments_object("")
        (({'a': 1}, True), ({}, True))
        >>> arguments_object("[1]")
        ({'INVALID_JSON': '[1]'}, False)
    """
    value: Any
    try:
        value = parse_json(arguments) if arguments.strip() else None
    except ValueError:
        value = arguments
    if value is None:
        return {}, True
    return (dict(value), True) if is_object(value) else ({UNREADABLE: arguments}, False)
