"""How calls are run: what the public functions are told, checked once and handed on whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

from .. import AnyToolCall, Handlers, ToolContext
from .._text.escaping import meant_by, names_for_message
from .._text.json import is_mapping, is_number, is_whole, shorten
from ..errors import InvalidValueError, MisuseError
from ..typing import Hooks, OnEvent
from ._outcome import Outcome

GRACE = 1.0
"""Seconds that a tool has to end once it is asked to, before its outcome counts as unknown."""

Skipped: TypeAlias = Mapping[str, Any]
"""Values of parameters that are hidden from the model, by name; each tool takes those it has."""

Around: TypeAlias = Callable[[AnyToolCall], AbstractContextManager[Callable[[Outcome], object]]]
"""Opens a context for the run of one call; what `with` gives is called with the outcome."""

ContextFor: TypeAlias = Callable[[AnyToolCall], ToolContext]
"""Makes the context of a call."""

OnStart: TypeAlias = Callable[[AnyToolCall], object] | Callable[[AnyToolCall], Awaitable[object]]
"""A function that is called before a call is started; if it raises, the call is not started."""


class RunOptions(TypedDict, total=False):
    """Say how calls are run: what all functions of this module take by name.

    Example:
        >>> from lutum_py.execution import RunOptions, execute_all_sync
        >>> cautious: RunOptions = {"default_timeout": 30, "grace": 5}
        >>> execute_all_sync([], limit=4, **cautious)
        []
    """

    skipped: Skipped | None
    """Values of hidden parameters, by name; each tool takes those it has."""
    default_timeout: float | None
    """Seconds that a run may take if its tool does not say; left out, it may take any time."""
    grace: float
    """Seconds that a tool has to end once it is asked to, `GRACE` by default; 0 for none.

    Of sync functions, those that take a context can be asked.
    """
    raise_errors: bool
    """Whether what tools raise is raised, after all calls have ended, instead of becoming results.

    `execute` and `execute_sync` leave their call `running` then, as `call.call()` does. What runs
    several calls raises an `ExecutionErrors`, which has the outcome of each.
    """
    around: Around | None
    """Opens a context for each run that is started, such as `tracer.span` of `lutum_py.otel`."""
    handlers: Handlers[Any] | None
    """What runs the tools; left out, their own functions do."""


# Not frozen, though nobody changes it: one is made for each call of `execute`, and to go around its
# own `__setattr__` for each field would take a fifth of the time that a small tool takes in all.
@dataclass(slots=True, kw_only=True)
class RunSettings:
    """Hold the options of a run, how many calls may run at once, and who decides and listens.

    Raises:
        InvalidValueError: A number of seconds is invalid, or the limit is below 1.
        MisuseError: The handlers are not `Handlers`, what should be a function is none, `skipped`
            is no mapping, or `raise_errors` neither True nor False.
    """

    skipped: Skipped | None = None
    limit: int | None = None
    default_timeout: float | None = None
    grace: float = GRACE
    raise_errors: bool = False
    around: Around | None = None
    handlers: Handlers[Any] | None = None
    context: ContextFor | None = None
    hooks: Hooks | None = None
    on_start: OnStart | None = None
    on_event: OnEvent | None = None

    @classmethod
    def of(cls, options: RunOptions, limit: int | None = None, **functions: Any) -> RunSettings:
        """Check what a function was called with, and the functions that it was given by name.

        Raises:
            MisuseError: There is no such option, or one is wrong.
        """
        known = RunOptions.__annotations__
        for name in options.keys() - known.keys():
            names = [*known, *functions]
            raise MisuseError(
                f"There is no option `{name}=`.{meant_by(name, names)} Besides the other "
                f"parameters of its function, a run takes {names_for_message(names)}."
            )
        for name, value in functions.items():
            cls.check_function(name, value)
        return cls(limit=limit, **functions, **options)

    @staticmethod
    def check_function(name: str, value: object) -> None:
        """Refuse what cannot be called where a run takes a function or None.

        Raises:
            MisuseError: It is something else.
        """
        if not (value is None or callable(value) or hasattr(value, "hook_tool_call")):
            raise MisuseError(f"{name}={shorten(value)}: pass {_TAKES[name]}, or leave it out.")

    def __post_init__(self) -> None:
        self.check_function("around", self.around)
        limit = self.limit
        if limit is not None and not (is_whole(limit) and limit >= 1):
            raise InvalidValueError(
                f"limit={self.limit!r}: at least one call has to run at a time. Or leave it out."
            )
        MisuseError.check_flag("raise_errors", self.raise_errors)
        if not (self.skipped is None or is_mapping(self.skipped)):
            raise MisuseError(
                f"skipped={shorten(self.skipped)} is not a mapping. Pass the values of hidden "
                "parameters by name, such as `{'user': user}`."
            )
        if not isinstance(self.handlers, Handlers | None):
            raise MisuseError(
                f"handlers={shorten(self.handlers)} is not a table of handlers. Make one with "
                "`AppTools.Handlers()`."
            )
        longest = self.default_timeout
        if longest is not None and not (is_number(longest) and longest > 0):
            raise InvalidValueError(
                f"default_timeout={longest!r} is not a positive number of seconds. Leave it out "
                "for none."
            )
        if not (is_number(self.grace) and self.grace >= 0):
            raise InvalidValueError(
                f"grace={self.grace!r} is not a number of seconds, or 0. Leave it out for "
                f"{GRACE:g}."
            )


_TAKES = {
    "around": "a function of a call that opens a context, such as `tracer.span`",
    "context": "a function that makes the `ToolContext` of a call",
    "hooks": "a hook set, or a function of a call",
    "in_doubt": "a function that gives the result of a call, or None",
    "on_start": "a function of a call",
    "on_event": "a function of an event, such as `log_events()` of `lutum_py.sinks`",
}
