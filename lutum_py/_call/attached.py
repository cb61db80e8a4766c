"""The files in what a tool gives: the model is shown them, and not their data as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from .._text.json import compact_json, is_mapping, is_object, is_sequence, parse_json
from .._transcript.attachment import Attachment


def attachments_in(value: Any) -> Iterator[Attachment]:
    """Find the files in an output: it is one, or they are in its fields and elements.

    Example:
        >>> file = Attachment.from_bytes(b"Hi", "text/plain")
        >>> list(attachments_in({"files": [file]})) == [file]
        True
    """
    if isinstance(value, Attachment):
        yield value
        return
    inner: Any
    if is_mapping(value):
        inner = value.values()
    elif is_sequence(value) or isinstance(value, set | frozenset):
        inner = cast("Iterable[Any]", value)
    elif is_dataclass(value):
        inner = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, BaseModel):
        inner = [*value.__dict__.values(), *(value.__pydantic_extra__ or {}).values()]
    else:
        return
    for each in inner:
        yield from attachments_in(each)


def shown(text: str, attached: tuple[Attachment, ...]) -> str:
    """Give what the model reads beside the files of an output: their data are left out.

    Args:
        text: The output as JSON.
        attached: The files in it.

    Example:
        >>> file = Attachment.from_bytes(b"Hi", "text/plain", name="a.txt")
        >>> shown('{"at":3}', (file,)), shown("[]", (file,))
        ('{"at":3}', '[]')
    """
    words: dict[str, str] = {}
    for number, each in enumerate(attached, 1):
        count = f" {number}" if len(attached) > 1 else ""
        name = f": {each.name}" if each.name else ""
        words.setdefault(each.url, f"[{each.media_type}{count} ({each.mime_type}){name}]")
    value = _worded(parse_json(text), words)
    if isinstance(value, str):
        return value
    if is_sequence(value) and value and all(each in words.values() for each in value):
        return "\n".join(value)
    return compact_json(value)


def _worded(value: Any, words: dict[str, str]) -> Any:
    if is_object(value):
        if value.keys() == _FIELDS and value["url"] in words:
            return words[value["url"]]
        return {key: _worded(item, words) for key, item in value.items()}
    return [_worded(item, words) for item in value] if is_sequence(value) else value


_FIELDS: Final = {each.name for each in fields(Attachment)}
