"""Text that can be sent: half of a surrogate pair, which UTF-8 cannot carry, is taken out of it.

Python keeps such halves where JSON wrote them as escapes, where a pair was cut in two, and for the
odd bytes in the name of a file. One of them in a conversation would stop every client from sending
it, forever. So each is replaced where it comes in; two that make a character become it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from pydantic_core import to_json


def sendable(text: str) -> str:
    r"""Join the halves of surrogate pairs, and put U+FFFD for each that is alone.

    Example:
        >>> sendable("\ud83d\ude00 caf\udce9") == "\U0001f600 caf\ufffd"
        True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # As UTF-16 the two halves of a pair stand beside each other, and the decoder makes the
        # character; one that is alone becomes U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def sendable_json(value: Any) -> Any:
    """Copy plain JSON data deeply, with texts and keys that can be sent."""
    if isinstance(value, str):
        return sendable(value)
    if _is_object(value):
        return {sendable_json(key): sendable_json(item) for key, item in value.items()}
    if _is_array(value):
        return [sendable_json(item) for item in value]
    return value


def is_plainly_sendable(value: Any) -> bool:
    """Tell in one go that all texts in JSON data can be sent; False if it takes a closer look.

    What is told so is nested no deeper than a few hundred levels.
    """
    try:
        to_json(value)
    except ValueError:
        return False
    return True


def halves_in(value: Any, position: str = "") -> Iterator[str]:
    """Yield the place of each text in plain JSON data that cannot be sent as it is."""
    if not is_plainly_sendable(value):  # hardly any data holds one
        yield from _halves_in(value, position)


def _halves_in(value: Any, position: str) -> Iterator[str]:
    if isinstance(value, str):
        if sendable(value) is not value:
            yield position
    elif _is_object(value):
        for key, item in value.items():
            name = sendable_json(key)
            inner = f"{position}.{name}" if position else str(name)
            if name is not key:
                yield inner
            yield from _halves_in(item, inner)
    elif _is_array(value):
        for index, item in enumerate(value):
            yield from _halves_in(item, f"{position}[{index}]")


def _is_object(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_array(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)
