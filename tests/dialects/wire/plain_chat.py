"""What tests know of the provider of the page "Write a dialect"."""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "messages"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = ["limit"]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = ["filtered"]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z0-9_-]{1,64}"
"""The names of tools that the provider takes."""
TOOLS: Final = "tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ()
"""The keys under which marks of the prompt cache stand."""
CACHE_FIELDS: Final[tuple[str, ...]] = ()
"""The fields of a cache that it has words for."""
EMPTY_IS_MISSING: Final = False
"""Whether `{}` may stand for arguments that a limit cut off before they began."""


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    return {**response, "end": reason}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    return {"message": said[0], "end": "stop"}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    return {
        "messages": [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "content": "",
                "calls": [{"id": "a", "name": name, "arguments": "{}"}],
            },
            {"role": "tool", "id": "a", "content": "1"},
        ],
        "tools": [{"name": name, "about": "", "input": {}}],
        "call": {"name": name},
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, result, *_ = bodies("f")[KEY]
    (call,) = called["calls"]
    calls = [{**called, "calls": [{**call, "id": each} for each in ids]}]
    results = [{**result, "id": each} for each in ids]
    return asked, calls, results


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    return [
        {"content": "Hi"},
        {"call": {"id": "a", "name": "f"}},
        {"arguments": '{"x":'},
        {"arguments": "1}"},
        {"call": {"id": "b", "name": "g"}},
        {"end": "stop"},
    ]
