"""Where the names of tools stand in a request body, outside of the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .reading import is_array, is_object

__all__ = ["declared_names"]

# The ways to a name. `[]` goes through a list; the API references say the same with more words.
_WAYS: Final[dict[str, tuple[str, ...]]] = {
    "openai_chat": (
        "tools[].function.name",
        "tools[].custom.name",
        "functions[].name",
        "tool_choice.function.name",
        "tool_choice.custom.name",
        "tool_choice.allowed_tools.tools[].function.name",
        "function_call.name",
    ),
    "openai_responses": (
        "tools[].name",
        "tools[].tools[].name",
        "tool_choice.name",
        "tool_choice.tools[].name",
    ),
    "anthropic_messages": ("tools[].name", "tool_choice.name"),
    "gemini_generate_content": (
        "tools[].functionDeclarations[].name",
        "toolConfig.functionCallingConfig.allowedFunctionNames[]",
    ),
}
_STEP: Final = re.compile(r"\w+|\[\]")
_UPPER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def declared_names(dialect: str, body: Any) -> Iterator[tuple[Any, str | int, str]]:
    """Find the names of the tools on offer, and of those that are asked for.

    Args:
        dialect: The dialect of the request.
        body: A request body, which may be broken.

    Yields:
        What holds a name, where it holds it, and where that is in the body.
    """
    for way in _WAYS[dialect]:
        yield from _along(_STEP.findall(way), body, "")


def _along(steps: list[str], value: Any, position: str) -> Iterator[tuple[Any, str | int, str]]:
    for key, inner, where in _next(steps[0], value, position):
        if len(steps) == 1:
            yield value, key, where
        elif steps[1] == "[]" and len(steps) > 2 and is_object(inner):
            # Gemini takes one object where a list belongs.
            yield from _along(steps[2:], inner, where)
        else:
            yield from _along(steps[1:], inner, where)


def _next(step: str, value: Any, position: str) -> Iterator[tuple[str | int, Any, str]]:
    if step == "[]":
        for index, inner in enumerate(value if is_array(value) else ()):
            yield index, inner, f"{position}[{index}]"
    elif is_object(value):
        # Gemini takes both ways of writing a key.
        for key in dict.fromkeys((step, _UPPER.sub("_", step).lower())):
            if key in value:
                yield key, value[key], f"{position}.{key}" if position else key
