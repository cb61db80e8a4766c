"""Refuse what `check_loop` cannot work with, before a loop is blamed for it."""

from __future__ import annotations

from typing import Any, cast

from ..._declare.toolset_meta import ToolsetMeta
from ..._schema.signature import signature_of
from ..._text.json import shorten
from ...errors import MisuseError
from .._strategies.hypothesis import Settings
from .._strategies.turns import require_count


def require_usable(
    loop: object,
    toolset: object,
    *,
    plain: bool,
    start: object,
    may_raise: object,
    settings: object,
    **counts: object,
) -> None:
    """Make sure that a loop can be driven as it was asked.

    Args:
        loop: The loop.
        toolset: Its tools.
        plain: Whether it is one over a provider's own messages.
        start: What makes the beginning of a run, or None.
        may_raise: What the loop may let out.
        settings: Settings of Hypothesis, or None.
        counts: Whole numbers from 1 on, by the name of the parameter.

    Raises:
        MisuseError: Something is of the wrong type, or the loop does not take two arguments.
        InvalidValueError: A number is below 1.
    """
    if not isinstance(toolset, ToolsetMeta):
        raise MisuseError(
            f"check_loop takes the loop and then a Toolset, not {shorten(toolset)}. Call it as in "
            "`check_loop(answer, AppTools)`."
        )
    _require_two_parameters(loop, "(messages, client)" if plain else "(session, model)")
    if start is not None and not callable(start):
        raise MisuseError(
            f"`start` takes a function that makes the beginning of each run, not {shorten(start)}. "
            "Every run needs its own: write it as in `lambda: Session()`."
        )
    if not _are_exceptions(may_raise):
        raise MisuseError(
            "`may_raise` takes a tuple of exception classes, as in `(TimeoutError,)`, not "
            f"{shorten(may_raise)}."
        )
    if settings is not None and not isinstance(settings, Settings):
        raise MisuseError(
            f"`settings` takes settings of Hypothesis, not {shorten(settings)}. Make them as in "
            "`hypothesis.settings(max_examples=500)`."
        )
    for name, given in counts.items():
        require_count(name, given)


def _require_two_parameters(loop: object, given: str) -> None:
    called = f"The loop is called with {given}"
    if not callable(loop):
        raise MisuseError(f"{called}; {shorten(loop)} cannot be called. Pass the function.")
    try:
        signature = signature_of(loop)
    except ValueError:
        return  # some builtins do not tell
    try:
        signature.bind(None, None)
    except TypeError as error:
        name = getattr(loop, "__qualname__", shorten(loop))
        raise MisuseError(
            f"{called}, and `{name}{signature}` does not take that: {error}. Wrap it, as in "
            f"`lambda {given[1:-1]}: answer({given[1:-1]}, limit=5)`."
        ) from None


def _are_exceptions(given: object) -> bool:
    return isinstance(given, tuple | list) and all(
        isinstance(each, type) and issubclass(each, Exception) for each in cast("list[Any]", given)
    )
