"""Checks of what callers pass to a store."""

from __future__ import annotations

from typing import Unpack

from .._call.call import Hooks
from .._round.events import OnEvent
from .._text.json import is_number, is_whole, shorten
from ..errors import InvalidValueError, MisuseError
from ..execution._settings import ContextFor, RunOptions, Settings
from ._rows import check_word

_LONGEST = 10**9


def check_lease(lease: object) -> None:
    """Refuse what is not a length of a lease, in seconds."""
    if not is_number(lease) or not 0 < lease < _LONGEST:
        raise InvalidValueError(
            f"lease={shorten(lease)} is not a positive number of seconds below {_LONGEST:,}. Pass "
            "one that outlasts the tool, such as 60."
        )


def check_limit(limit: object) -> None:
    """Refuse what is not a number of calls."""
    if not is_whole(limit) or not 0 < limit < _LONGEST:
        raise InvalidValueError(
            f"limit={shorten(limit)} is not a whole number of calls. Pass as many as you can start "
            "at once, such as 16."
        )


def check_seconds(name: str, seconds: object) -> None:
    """Refuse what is not a time in seconds."""
    if not is_number(seconds) or not 0 <= seconds < _LONGEST:
        raise InvalidValueError(
            f"{name}={shorten(seconds)} is not a number of seconds from 0 to below {_LONGEST:,}."
        )


def check_page(limit: object, after: object = "", *more: object) -> None:
    """Refuse what is not a page of a list.

    Args:
        limit: How many there are on it; None for all.
        after: The text that it comes after, which may be empty.
        more: Other texts.
    """
    if limit is not None and (not is_whole(limit) or not 0 <= limit < _LONGEST):
        raise InvalidValueError(
            f"limit={shorten(limit)} is not a whole number from 0. Pass how many you want, such as "
            "100, or None for all."
        )
    for text in (after, *more):
        if text != "":
            check_word("id or tool", text)


def check_wait(wait: object) -> None:
    """Refuse what is not a time to wait, in seconds, or None."""
    if wait is not None and not (is_number(wait) and wait >= 0):
        raise InvalidValueError(
            f"wait={shorten(wait)} is not a number of seconds, or 0. Leave it out to wait "
            "for as long as it takes."
        )


def checked_run(
    *,
    lease: float = 60,
    limit: int | None = None,
    on_event: OnEvent | None = None,
    hooks: Hooks | None = None,
    context: ContextFor | None = None,
    **options: Unpack[RunOptions],
) -> Settings:
    """Refuse what a run of a store cannot mean; give the settings of its calls."""
    check_lease(lease)
    return Settings.of(options, limit, context=context, hooks=hooks, on_event=on_event)


def check_toolset(toolset: object) -> None:
    """Refuse what loads no plans."""
    if not hasattr(toolset, "load_plan"):
        raise MisuseError(
            f"A store takes the toolset of its plans, not {shorten(toolset)}. Pass the class, "
            "as in `store.claim(Desk)`."
        )
