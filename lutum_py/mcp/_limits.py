"""How much a server may bring along."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .._text.json import shorten
from ..errors import InvalidValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bound what is taken of a server that may send anything.

    They hold for what the SDK has read already; what it reads is bounded by the SDK, or not at all.

    Attributes:
        tools: Tools, after `only=`; more are a `ProviderError`.
        description: Characters of a description, a title, or a question; the rest is cut off.
        schema: Characters of the schemas of one tool, or of a question; a tool with more is
            refused.
        result: Characters of one result; the model gets an error in the place of a longer one.

    Raises:
        InvalidValueError: A limit is no positive number.

    Example:
        >>> Limits(tools=20).description
        8192
    """

    tools: int = 1000
    description: int = 8192
    schema: int = 100_000
    result: int = 10_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidValueError(
                    f"Limits({field.name}={shorten(value)}): give a whole number above 0."
                )
