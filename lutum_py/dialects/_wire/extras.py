"""Put the request fields that the user gave into a body."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..._text.json import is_mapping, is_sequence

__all__ = ["add_extras"]


def add_extras(
    body: dict[str, Any], extra: Mapping[str, Any], *, joined: Collection[str] = ()
) -> None:
    """Add the extras of a request, last and as they are.

    Args:
        body: The body so far. Tools among the extras come after those that are in it.
        extra: The fields.
        joined: The fields that hold several things, of which the request may have said one: what
            the user says is added to that.
    """
    for key, value in extra.items():
        if key == "tools" and is_sequence(value):
            body[key] = [*body.get(key, ()), *value]
        elif key in joined and is_mapping(value):
            body[key] = {**body.get(key, {}), **value}
        else:
            body[key] = value
