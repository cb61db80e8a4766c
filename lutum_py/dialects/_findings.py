"""What a dialect finds: what a request could not carry, what one breaks, what a repair changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._text.json import JsonObject
from ..turns import Cache

OUTCOME_UNKNOWN = (
    "Outcome unknown: the conversation holds no result for this call. It may or may not have run."
)
"""What a repair answers a call with that nobody answered."""

NOT_SHOWN = "The beginning of this conversation is not shown."
"""What a repair lets the user say where the provider wants to hear the user first."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of the provider that a request breaks.

    Attributes:
        position: Where, as in `messages[3].tool_calls[0]`; `request` is the whole of it.
        rule: A stable name of the rule, as in `call_without_result`.
        problem: What is wrong, in words.
        remedy: What to do about it.

    Example:
        >>> print(Violation("messages[1]", "orphan_result", "It answers no call", "Remove it"))
        messages[1]: It answers no call. Remove it (orphan_result).
    """

    position: str
    rule: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.position}: {self.problem}. {self.remedy} ({self.rule})."


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a repair did, or had to leave.

    Attributes:
        position: Where, in the request as it was given.
        rule: The rule that was broken there.
        what: What was done, in words.
        is_repaired: False if nothing could be done, so that `check` still finds the breach.

    Example:
        >>> print(Change("messages[1]", "orphan_result", "Removed the result"))
        messages[1]: Removed the result (orphan_result).
    """

    position: str
    rule: str
    what: str
    is_repaired: bool = True

    def __str__(self) -> str:
        return f"{self.position}: {self.what} ({self.rule})."


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


# A dict, and not a pair of body and losses: it goes to an SDK as it is, `client.create(**body)`,
# and who does not care for the losses need not know of them. They are not a key of it, which the
# provider would refuse.
class EncodedRequest(JsonObject):
    """A request body, to be sent as it is, that remembers what it could not carry.

    Attributes:
        losses: What was lost, in the order in which it was met.

    Example:
        >>> EncodedRequest({"messages": []}).losses
        ()
    """

    losses: tuple[Loss, ...]

    def __init__(self, body: Mapping[str, object], losses: Iterable[Loss] = ()) -> None:
        super().__init__(body)
        self.losses = tuple(losses)


def cache_losses(cache: Cache | None, dialect: str, *known: str) -> list[Loss]:
    """Say which fields of a cache were given that a dialect has no word for.

    Args:
        cache: What the request says about the cache.
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
