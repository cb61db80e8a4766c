"""Bytes: boto3 takes and gives them as such, and JSON has base64 in their place.

Three fields of the wire hold bytes. What a user or a model wrote, under `input`, `json` and the
fields of a model, may have keys of the same names, and is left as it is.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from ..._text.json import is_mapping, is_sequence

_BYTES: Final = frozenset({"bytes", "redactedContent"})
FREE: Final = frozenset(
    {"input", "json", "additionalModelRequestFields", "additionalModelResponseFields"}
)
"""The fields that hold what somebody else wrote."""


def with_bytes(value: Any) -> Any:
    r"""Copy a body, or messages, for boto3: with bytes where JSON has base64.

    Args:
        value: A request body, or any part of one.

    Example:
        >>> with_bytes({"image": {"format": "png", "source": {"bytes": "iVBORw=="}}})
        {'image': {'format': 'png', 'source': {'bytes': b'\x89PNG'}}}
    """
    if is_mapping(value):
        return {
            key: _decoded(item) if key in _BYTES else item if key in FREE else with_bytes(item)
            for key, item in value.items()
        }
    return [with_bytes(item) for item in value] if is_sequence(value) else value


def _decoded(text: Any) -> Any:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else text
    except binascii.Error:
        return text  # the SDK says what it thinks of it


def without_bytes(value: Any) -> Any:
    """Copy what boto3 gave, with base64 where it has bytes."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if is_mapping(value):
        return {key: without_bytes(item) for key, item in value.items()}
    return [without_bytes(item) for item in value] if is_sequence(value) else value
