"""The items of a transcript on their way to the wire, with their files and arguments."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from pydantic_core import from_json

from ..._text.json import compact_json, is_mapping, parse_json, shorten
from ..._transcript.assistant import AssistantTurn
from ..._transcript.message import Attachment, Message
from ..._transcript.request import TranscriptItem
from ..._transcript.result import ToolResult
from ...errors import MisuseError
from .reading import DEEPEST

UNREADABLE: Final = "INVALID_JSON"
"""The key under which arguments go out that are not a JSON object, as Anthropic's guide has it."""


def rendered_items(
    items: Iterable[TranscriptItem], start: int = 0
) -> Iterator[tuple[str, TranscriptItem]]:
    """Go through what is to be rendered, but for the first items; give each with its position.

    Raises:
        MisuseError: It is a plan or another thing that holds items, or one is not an item.

    Example:
        >>> list(rendered_items([Message("user", "Hello")]))
        [('items[0]', Message(role='user', text='Hello', attachments=()))]
    """
    refusal = _refusal(items)
    if refusal is not None:
        raise MisuseError(refusal)
    for index, item in enumerate(islice(items, start, None), start):
        if not isinstance(item, AssistantTurn | ToolResult | Message):
            raise MisuseError(
                f"Expected a Message, AssistantTurn or ToolResult at items[{index}], got "
                f"{shorten(item)}. Pass a committed round, or the items of a transcript."
            )
        yield f"items[{index}]", item


# What is passed by mistake is mostly a step too early: a round or a plan that was not resolved.
# Those classes import this package, so they are told by what they have and not by their type.
def _refusal(items: Any) -> str | None:
    """Say what to pass instead; a class far above is told by what it has."""
    name = type(items).__name__
    if isinstance(items, AssistantTurn | ToolResult | Message):
        return f"Items are passed as a list, even if there is only one: `[{name}(...)]`."
    if hasattr(items, "__iter__"):
        return None
    said = f"Expected a committed round, or a list of items, got {shorten(items)}"
    if hasattr(items, "resolve") or hasattr(items, "round"):
        return (
            f"{said}. Pass what `plan.resolve(results)` gives, or `plan.commit(session, results)`."
        )
    if hasattr(items, "transcript"):
        return f"{said}. Pass its `transcript`."
    return (
        f"{said}. Pass what `plan.resolve(results)` gives, or a list of Message, AssistantTurn and "
        "ToolResult."
    )


def data_of(attachment: Attachment) -> str | None:
    """Return the bytes of a `data:` URL as base64 text; None for any other address.

    Example:
        >>> data_of(Attachment(media_type="file", mime_type="text/plain", url="data:,hi"))
        'aGk='
    """
    if not attachment.url.startswith("data:"):
        return None
    # `data:text/plain,a%20b` and `data:text/plain;base64,YSBi` are the same file; wires take base64
    # only.
    head, _, body = attachment.url.partition(",")
    if head.endswith(";base64"):
        return body
    return base64.b64encode(unquote_to_bytes(body)).decode("ascii")


_OTHER_NAMES: Final = {
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "image/jpg": "image/jpeg",
}


def usual_type(attachment: Attachment) -> str:
    """Return the type of a file by the name that wires know it by.

    Example:
        >>> usual_type(Attachment.from_bytes(b"RIFF", "audio/x-wav"))
        'audio/wav'
    """
    # What the ending of a name says differs: `.wav` is `audio/x-wav` for Python 3.11 and
    # `audio/vnd.wave` for Python 3.14.
    name = attachment.mime_type.lower()
    return _OTHER_NAMES.get(name, name)


def named_text(result: ToolResult, unshown: Iterable[Attachment]) -> str:
    """Return what the model reads of a result, with the files that it does not get to see."""
    return "\n".join([result.model_text, *(each.described for each in unshown)])


def carried(text: str) -> Any:
    """Parse JSON text whose data is in a request itself.

    Raises:
        ValueError: It is not JSON, or what no client can write: nested too deeply, or with a number
            that Python reads as an infinity.
    """
    value = parse_json(text)
    if text.count("{") + text.count("[") > DEEPEST or _MAY_BE_INFINITE.search(text):
        from_json(compact_json(value))
    return value


_MAY_BE_INFINITE: Final = re.compile(r"[eE]\+?\d{3}|\d{300}")


def arguments_object(arguments: str) -> tuple[dict[str, Any], bool]:
    """Return the object for a call's argument text, and whether the text was one.

    Example:
        >>> arguments_object('{"a": 1}'), arguments_object("")
        (({'a': 1}, True), ({}, True))
        >>> arguments_object("[1]")
        ({'INVALID_JSON': '[1]'}, False)
    """
    value: Any
    try:
        # Blank text is not arguments, and not broken ones: some models send nothing for a tool that
        # takes nothing. Only a text that says something goes out under `UNREADABLE`.
        value = carried(arguments) if arguments.strip() else None
    except ValueError:
        value = arguments
    if value is None:
        return {}, True
    return (dict(value), True) if is_mapping(value) else ({UNREADABLE: arguments}, False)


def send_as_object(call: dict[str, Any], key: str) -> None:
    """Let the arguments of a call be an object, also if a host sent something else."""
    value = call.get(key)
    if isinstance(value, str):
        call[key], _ = arguments_object(value)
    elif not isinstance(value, dict):
        call[key] = {} if value is None else {UNREADABLE: value}


def send_as_text(call: dict[str, Any], key: str) -> None:
    """Let the arguments of a call be text, also if a host sent an object or nothing."""
    value = call.get(key)
    if value is None:
        call[key] = "{}" if key == "arguments" else ""
    elif not isinstance(value, str):
        call[key] = compact_json(value)
