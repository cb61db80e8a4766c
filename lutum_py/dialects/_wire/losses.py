"""What a request could not carry over into a dialect, and the request that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._transcript.cache import Cache


@dataclass(frozen=True, slots=True)
class Loss:
    """Say what was lost on the way to the wire, and where.

    Attributes:
        where: The place, as in `items[3]` or `tools.get_user.properties.age`.
        text: What the provider does not see or not enforce, in a sentence without a full stop.

    Example:
        >>> print(Loss("items[3]", "the video has no place in this dialect"))
        items[3]: the video has no place in this dialect
    """

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


class EncodedRequest(dict[str, Any]):
    """A request body, to be sent as it is, that remembers what it could not carry.

    Attributes:
        losses: What was lost, in the order in which it was met.

    Example:
        >>> EncodedRequest({"messages": []}).losses
        ()
    """

    losses: tuple[Loss, ...]

    def __init__(self, body: Mapping[str, Any], losses: Iterable[Loss] = ()) -> None:
        super().__init__(body)
        self.losses = tuple(losses)


def cache_losses(cache: Cache | None, dialect: str, *known: str) -> list[Loss]:
    """Say which fields of a cache were given that a dialect has no word for.

    Args:
        cache: What the request says of the cache.
        dialect: The dialect's name.
        known: The fields that it has a word for.

    Example:
        >>> [str(loss) for loss in cache_losses(Cache(key="k", ttl="1h"), "some_dialect", "ttl")]
        ['cache.key: some_dialect has no word for it']
    """
    if cache is None:
        return []
    return [
        Loss(f"cache.{field}", f"{dialect} has no word for it")
        for field in ("ttl", "key", "retention", "content", "covers")
        if getattr(cache, field) and field not in known
    ]
