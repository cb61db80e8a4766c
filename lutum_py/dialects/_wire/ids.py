"""Ids of our own for calls that a host sent without one.

They are derived, so that decoding one response twice, or as a stream and as a whole, gives the same
ids. They never go back to the host: a replay sends what the host sent, which is nothing.
"""

from __future__ import annotations

from ..._text.json import digest_of

__all__ = ["OWN_ID_PREFIX", "own_id"]

OWN_ID_PREFIX = "lutum_"


def own_id(response_id: str | None, index: int, name: str) -> str:
    """Make the id of a call without one.

    Args:
        response_id: The provider's id of the response, if it has one.
        index: Which call of the turn it is, from 0.
        name: The wire name of the tool.

    Example:
        >>> own_id("r1", 0, "add") == own_id("r1", 0, "add") != own_id("r1", 1, "add")
        True
    """
    return OWN_ID_PREFIX + digest_of([response_id, index, name]).removeprefix("sha256:")[:24]
