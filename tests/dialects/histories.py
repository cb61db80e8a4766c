"""Requests in a form in which two that say the same are equal, written by hand for each wire.

What the model says stays as it is but for null fields, which mean nothing on any of the wires. What
others say becomes pieces, one after the other: whether a text stands alone or as the only part of a
list, and where one message ends and the next of the same side begins, says nothing.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from lutum_py import Attachment
from lutum_py.turns import TranscriptItem

from .every_dialect import wire_of
from .plain import is_array, is_object


def pieces(dialect: str, request: dict[str, Any]) -> list[Any]:
    """Give what is said in a request, one piece after the other."""
    return list(wire_of(dialect).pieces(request))


PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


def read(dialect: ModuleType, *said: Any) -> tuple[list[TranscriptItem], list[str]]:
    """Read messages; give what they hold, and what is lost of them, in words."""
    transcript, losses = dialect.read_history(list(said))
    return list(transcript), [str(loss) for loss in losses]


def image(url: str = PNG, **fields: Any) -> Attachment:
    """A picture."""
    return Attachment(media_type="image", mime_type="image/png", url=url, **fields)


def file(url: str = PDF, **fields: Any) -> Attachment:
    """A document."""
    return Attachment(media_type="file", mime_type="application/pdf", url=url, **fields)


_GONE = object()
_STEP = re.compile(r"\w+|\[\d+\]")


def at(request: Any, where: str) -> tuple[Any, Any]:
    """Go to the place of a loss; give what holds it, and where it holds it."""
    steps = [int(step[1:-1]) if step[0] == "[" else step for step in _STEP.findall(where)]
    for step in steps[:-1]:
        request = request[step]
    return request, steps[-1]


def without(request: Any, where: str) -> None:
    """Take out of a request what stands at the place of a loss."""
    holder, key = at(request, where)
    # A list keeps its length, so that the places of other losses stay what they are.
    holder[key] = _GONE


def compacted(value: Any) -> Any:
    """Leave out what was taken out."""
    if is_object(value):
        return {key: compacted(item) for key, item in value.items() if item is not _GONE}
    if is_array(value):
        return [compacted(item) for item in value if item is not _GONE]
    return value
