"""How much a program may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .._text.json import is_seconds, is_whole, shorten
from ..errors import InvalidValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """Bound what one program may use, from its first line to its last.

    Attributes:
        seconds: Of its own work; while its calls wait, and run, its clock stands.
        memory: Bytes of its values.
        printed: Bytes that it may print.
        calls: Calls that it may make. A plan takes 100 within one call, whatever is said here.

    Raises:
        InvalidValueError: A limit is no number above 0.

    Example:
        >>> ProgramLimits(seconds=1).calls
        100
    """

    seconds: float = 5
    memory: int = 100_000_000
    printed: int = 100_000
    calls: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_fraction = field.name == "seconds" and is_seconds(value)
            if not (is_fraction or is_whole(value)) or value <= 0:
                raise InvalidValueError(
                    f"ProgramLimits({field.name}={shorten(value)}): give a "
                    f"{'number of seconds' if field.name == 'seconds' else 'whole number'} above 0."
                )
