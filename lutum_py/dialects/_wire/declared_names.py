"""Where the names of tools stand in a request body, outside of the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ..._text.json import is_mapping, is_sequence
from .._facts import Facts

_STEP: Final = re.compile(r"\w+|\[\]")
_UPPER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def declared_names(facts: Facts, body: Any) -> Iterator[tuple[Any, str | int, str]]:
    """Find the names of the tools on offer, and of those that are asked for.

    Args:
        facts: What is known of the dialect of the request.
        body: A request body, which may be broken.

    Yields:
        What holds a name, where it holds it, and where that is in the body.
    """
    for way in facts.names_at:
        # "tools[].function.name" is the steps tools, [], function, name.
        yield from _along(_STEP.findall(way), body, "")


def _along(steps: list[str], value: Any, position: str) -> Iterator[tuple[Any, str | int, str]]:
    for key, inner, where in _next(steps[0], value, position):
        if len(steps) == 1:
            yield value, key, where
        elif steps[1] == "[]" and len(steps) > 2 and is_mapping(inner):
            # Gemini takes one object where a list belongs.
            yield from _along(steps[2:], inner, where)
        else:
            yield from _along(steps[1:], inner, where)


def _next(step: str, value: Any, position: str) -> Iterator[tuple[str | int, Any, str]]:
    if step == "[]":
        for index, inner in enumerate(value if is_sequence(value) else ()):
            yield index, inner, f"{position}[{index}]"
    elif is_mapping(value):
        # Gemini takes both ways of writing a key.
        for key in dict.fromkeys((step, _UPPER.sub("_", step).lower())):
            if key in value:
                yield key, value[key], f"{position}.{key}" if position else key
