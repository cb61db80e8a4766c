"""Plain JSON data, and the results and fixed words that the tests compare with."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeGuard

from lutum_py import AssistantTurn, ToolDef, ToolMetadata, ToolResult

OUTCOME_UNKNOWN: Final = (
    "Outcome unknown: the conversation holds no result for this call. It may or may not have run."
)
"""What a repair answers a call with that nobody answered."""

NOT_SHOWN: Final = "The beginning of this conversation is not shown."
"""What the user says where the provider wants to hear the user first."""

NOTHING_LEFT: Final = "[What was sent here cannot be shown.]"
"""What stands for a message of the user of which nothing could be held."""

FOREIGN_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""The signature that Gemini takes for a call that it did not sign."""


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def objects(value: Any) -> list[dict[str, Any]]:
    """Give the objects of a list, and nothing of anything else."""
    return [each for each in value if is_object(each)] if is_array(value) else []


def compact(value: Any) -> str:
    """Encode plain JSON data without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def in_camel_case(value: Any) -> Any:
    """Copy a Gemini payload with the names of the wire and its base64, without null fields."""
    if is_array(value):
        return [in_camel_case(item) for item in value]
    if not is_object(value):
        return value
    copied: dict[str, Any] = {}
    for key, item in value.items():
        name = re.sub("_([a-z])", lambda match: match[1].upper(), key)
        if name in ("thoughtSignature", "data") and isinstance(item, str):
            # An SDK dumps base64 with the letters for addresses.
            copied[name] = item.translate(str.maketrans("-_", "+/"))
        elif item is not None:
            copied[name] = item if name in ("args", "response") else in_camel_case(item)
    return copied


def done(call: ToolMetadata, result: str = '"done"') -> ToolResult:
    """Answer a call with JSON text."""
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=result)


def rejected(call: ToolMetadata, reason: str) -> ToolResult:
    """Answer a call as a hook does that rejects it."""
    return ToolResult(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        result=compact(f"Rejected: {reason}"),
        status="rejected",
    )


FREE: Final = ("arguments", "args", "input", "response", "parameters")
"""The fields that hold what a model or a program wrote."""


def bare(value: Any) -> Any:
    """Leave out null fields, but those that a model or program wrote."""
    if is_object(value):
        return {
            key: item if key in FREE and is_object(item) else bare(item)
            for key, item in value.items()
            if item is not None
        }
    return [bare(item) for item in value] if is_array(value) else value


def content_of(content: Any) -> list[Any]:
    """Give text, or a list of parts, as parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [bare(part) for part in content]


def streamed(dialect: Any, events: list[Any]) -> AssistantTurn:
    """The turn that events come to."""
    decoder = dialect.StreamDecoder()
    for event in events:
        decoder.feed(event)
    decoder.close()
    turn: AssistantTurn = decoder.finish()
    return turn


ONE_AND_TWO: Final = tuple(
    ToolDef.from_json_schema(name=name, input_schema={"type": "object"}) for name in ("one", "two")
)
"""Two tools that take any object."""
