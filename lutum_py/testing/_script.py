"""A script: what comes next, and what to say when nothing does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from .._text.json import shorten
from ..errors import DeveloperError, MisuseError


class ScriptExhausted(DeveloperError, LookupError):
    """The loop asked for more turns than the script has."""

    __module__ = "lutum_py.testing"  # where it is imported from, which pytest shows


_MAKERS = "`ScriptedModel.text` and `ScriptedModel.tool_calls` make turns"


class Script:
    """Give entries one by one, from a list or from a function of the request.

    Args:
        source: The entries, or a function that makes the next one. An entry that is an exception is
            raised when its turn comes.
        kinds: What an entry may be besides.
        called: How an error calls such an entry.
        turn_of: Gives the place of the entry for a request, if they are not given one by one.

    Raises:
        MisuseError: The source is neither a list nor a function; or a function where a place is
            asked for.
    """

    def __init__(
        self,
        source: Iterable[Any] | Callable[[Any], Any],
        kinds: tuple[type, ...],
        called: str,
        turn_of: Callable[[Any], int] | None = None,
    ) -> None:
        if turn_of is not None and callable(source):
            raise MisuseError(
                "A script `by_turn` is a list: the function sees the request, and finds its place "
                "by itself. Leave `by_turn` out."
            )
        self._function = source if callable(source) else None
        self._entries: Iterator[Any] = iter(() if callable(source) else _listed(source, called))
        self._by_turn = None if turn_of is None else (turn_of, list(self._entries))
        self._kinds = kinds
        self._called = called
        self._given = 0

    def next(self, request: Any, ends_with: str) -> Any:
        """Return the next entry, or raise it.

        Args:
            request: What a function is asked with.
            ends_with: What the request ends with, for the message where there is none.

        Raises:
            ScriptExhausted: There is none.
            MisuseError: It is nothing that a script can hold.
        """
        place = self._given
        if self._function is not None:
            entry = self._function(request)
        else:
            what, entries = f"request {place + 1}, which", self._entries
            if self._by_turn is not None:
                turn_of, listed = self._by_turn
                place = turn_of(request)
                what, entries = f"what holds {place} turns of the model, and", iter(listed[place:])
                if place >= self._given:
                    # Of several conversations the one that went furthest says what is left.
                    self._entries = entries
            missing = object()
            entry = next(entries, missing)
            if entry is missing:
                raise ScriptExhausted(
                    f"The script has no turn for {what} ends with {ends_with}. Add a turn to the "
                    "script, or find out why the loop goes on."
                )
        place += 1
        self._given = max(self._given, place)
        if isinstance(entry, BaseException):
            raise entry
        if isinstance(entry, self._kinds):
            return entry
        said, what = (
            (f"Entry {place} of the script is", "A script holds")
            if self._function is None
            else (f"For request {place} the script's function gave", "It gives")
        )
        raise MisuseError(
            f"{said} {shorten(entry)}. {what} {self._called}, or exceptions to raise; {_MAKERS}."
        )

    def assert_exhausted(self) -> None:
        """Fail if there are entries left; a function is never at its end, nor short of it."""
        __tracebackhide__ = True
        # Listed to be counted, and put back: a test may ask, and then go on.
        left = list(self._entries)
        self._entries = chain(left)
        if left:
            raise AssertionError(
                f"The loop ended after {self._given} of {self._given + len(left)} turns of the "
                f"script; the next would have been {shorten(left[0])}."
            )


def _listed(source: Any, called: str) -> Any:
    # A text and a response are iterable too, over what is not an entry.
    given: object = source
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise MisuseError(
            f"A script is a list of {called}, or a function that makes the next one, not "
            f"{shorten(source)}. Write it as in "
            f'`[ScriptedModel.text("Hi!")]`; {_MAKERS}.'
        )
    return source
