"""How calls are run: what the four public functions are told, checked once and handed on whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from .._call.call import AnyToolCall
from .._declare.handlers import Handlers
from .._text.json import shorten
from ..errors import InvalidValueError, MisuseError
from ._outcome import Outcome

GRACE = 1.0
"""Seconds that a tool has to end once it is asked to, before its outcome counts as unknown."""

Skipped: TypeAlias = Mapping[str, Any]
"""Values of parameters that are hidden from the model, by name; each tool takes those it has."""

Around: TypeAlias = Callable[[AnyToolCall], AbstractContextManager[Callable[[Outcome], object]]]
"""Opens a context for the run of one call; what `with` gives is called with the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Say how to run calls.

    Attributes:
        skipped: Values of hidden parameters.
        limit: How many calls may run at once; None for all of them.
        default_timeout: Seconds that a call may take where its tool says nothing of it.
        grace: Seconds that a tool has to end once it is asked to.
        raise_errors: Whether what a tool raised is raised, instead of becoming a result.
        around: Opens what each run happens inside.
        handlers: Who does the tools, where that is not always their own function.

    Raises:
        InvalidValueError: A number of seconds is none, or the limit lets nothing run.
    """

    skipped: Skipped | None
    limit: int | None = None
    default_timeout: float | None
    grace: float
    raise_errors: bool
    around: Around | None
    handlers: Handlers[Any] | None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InvalidValueError(
                f"limit={self.limit!r}: at least one call has to run at a time. Or leave it out."
            )
        if not isinstance(self.handlers, Handlers | None):
            raise MisuseError(
                f"handlers={shorten(self.handlers)} is no table of handlers. Make one with "
                "`AppTools.Handlers()`."
            )
        longest = self.default_timeout
        if longest is not None and not (isinstance(longest, int | float) and longest > 0):
            raise InvalidValueError(
                f"default_timeout={longest!r} is no positive number of seconds."
            )
        if not (isinstance(self.grace, int | float) and self.grace >= 0):
            raise InvalidValueError(f"grace={self.grace!r} is no number of seconds, or 0.")
