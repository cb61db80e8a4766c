"""The conversation of a request that may be anything: found, mended by its dialect, put back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..._text.json import copy_json, is_mapping, is_sequence, shorten
from ..._text.unicode import halves_in, is_plainly_sendable, sendable_json
from .._facts import Facts
from .._findings import NOT_SHOWN, Change, Violation
from .._wire.history import NOTHING_SAID
from .mending import Breach, Mending

_STAND_IN = "put a message of the user there that says that the beginning is missing"


@dataclass(frozen=True, slots=True)
class Form:
    """Say how a dialect's requests hold their conversation, and check and repair them.

    Attributes:
        facts: What is known of the dialect.
        said: Makes the item of a text of the user.
        mend: Mends the items of one request, and notes each breach.
        is_in_order: Reads the items as they are, without a copy, and tells whether each result
            stands where nothing has to be looked for; False where it takes `mend` to know. None
            where it always does, which is right and slower.
        takes_text: Whether a text may stand for the list.
        takes_one: Whether one item may stand for the list.
        elsewhere: Fields of a body that let the list be empty, or absent.
    """

    facts: Facts
    said: Callable[[str], dict[str, Any]]
    mend: Callable[[list[Any], Mending], None]
    is_in_order: Callable[[list[Any], Mending], bool] | None = None
    takes_text: bool = False
    takes_one: bool = False
    elsewhere: tuple[str, ...] = ()

    def check(self, request: Any) -> list[Violation]:
        """Find what a request breaks of the provider's rules."""
        return [] if self._is_sound(request) else self._mended(request)[1].violations

    def repair(self, request: Any) -> tuple[Any, list[Change]]:
        """Return a mended copy of a request, and what was changed."""
        if self._is_sound(request):
            return copy_json(request), []
        mended, mending = self._mended(request)
        return mended, mending.changes

    def _is_sound(self, request: Any) -> bool:
        """Tell without a copy whether nothing is broken; False where it takes a closer look."""
        is_in_order = self.is_in_order
        if is_in_order is None or not (is_mapping(request) or is_sequence(request)):
            return False
        if not is_plainly_sendable(request):
            return False
        body: Mapping[str, Any] = request if is_mapping(request) else {}
        # Nearly every request is sound, and is checked before each call of a model. So it is read
        # once without a copy, and the first breach ends that by an exception; only then is it
        # copied and gone through whole.
        look = Mending(self.facts, body, is_look=True)
        try:
            for holder, key, position in declared_names(self.facts, body):
                look.rename(holder, key, position)
            items = self._items(*self._listed(request), look)
            return items is None or is_in_order(items, look)
        except (Breach, RecursionError):
            return False

    def _mended(self, request: Any) -> tuple[Any, Mending]:
        body: Mapping[str, Any] = request if is_mapping(request) else {}
        mending = Mending(self.facts, body)
        if not is_mapping(request) and not is_sequence(request):
            self._unmended(
                mending,
                "not_a_request",
                f"expected a request body with {self.facts.key!r}, or the list itself, "
                f"got {shorten(request)}",
                "Pass the body as a dict, or its list",
            )
            return request, mending
        try:
            # First of all: what is noted below quotes the request, and the notes have to be
            # sendable too.
            request = _sendable(request, self.facts.key, mending)
            return self._of(request, mending), mending
        except RecursionError:
            mending = Mending(self.facts, body)
            self._unmended(
                mending,
                "too_deep",
                "objects and lists stand in each other more deeply than can be read",
                "Send flatter data",
            )
            return request, mending

    def _unmended(self, mending: Mending, rule: str, problem: str, remedy: str) -> None:
        what = "left the request as it is, because there is no conversation that can be read"
        mending.note("request", rule, problem, remedy, what, is_mended=False)

    # The list is mended first and the body around it last, because a repair may leave the list as
    # it was: then what goes back is a plain copy, equal to what came, and nobody has to wonder what
    # was changed.
    def _of(self, request: Any, mending: Mending) -> Any:
        body = request if is_mapping(request) else None
        listed, is_needed = self._listed(request)
        items = self._items(listed, is_needed, mending)
        if items is not None:
            self.mend(items, mending)
            if is_needed and not mending.items:
                mending.items.append(self.said(NOT_SHOWN))
                if items:
                    mending.follow_up(self.facts.key, NOTHING_SAID, _STAND_IN)
        if body is None:
            return mending.items if mending.changes else copy_json(request)
        whole: dict[str, Any] = copy_json(body)
        for holder, key, position in declared_names(self.facts, whole):
            mending.rename(holder, key, position)
        if items is not None and mending.changes:
            whole[self.facts.key] = mending.items
        return whole

    def _listed(self, request: Any) -> tuple[Any, bool]:
        """Return what is in place of the list, and whether there has to be something."""
        if not is_mapping(request):
            return request, True
        is_needed = all(request.get(key) is None for key in self.elsewhere)
        return request.get(self.facts.key), is_needed

    def _items(self, listed: Any, is_needed: bool, mending: Mending) -> list[Any] | None:
        """Return the items as a list; None where there is nothing to look at, and no need of it."""
        if is_sequence(listed):
            if listed or not is_needed:
                return list(listed)
            rule, problem = NOTHING_SAID, "there is nothing in it"
        elif listed is None:
            if not is_needed:
                return None
            rule, problem = "missing_conversation", f"the request has no {self.facts.key!r}"
        elif self.takes_text and isinstance(listed, str):
            return None
        elif self.takes_one and is_mapping(listed):
            return [listed]
        else:
            text = listed.strip() if isinstance(listed, str) else ""
            items = [listed] if is_mapping(listed) else [self.said(text)] if text else []
            mending.note(
                self.facts.key,
                "not_a_list",
                f"expected a list, got {shorten(listed)}",
                "Send a list, also where there is only one",
                "put it into a list" if items else _STAND_IN,
            )
            return items
        mending.note(self.facts.key, rule, problem, "Send at least what the user says", _STAND_IN)
        return []


def _sendable(request: Any, key: str, mending: Mending) -> Any:
    """Take out of a request what UTF-8 cannot carry; give it back itself where there is nothing."""
    found = list(halves_in(request, key if is_sequence(request) else ""))
    for position in found:
        mending.note(
            position,
            "half_surrogate_pair",
            "the text holds half of a surrogate pair, which no client can send",
            "Send U+FFFD in its place, or the whole character",
            "put U+FFFD in its place",
        )
    return sendable_json(request) if found else request


_STEP: Final = re.compile(r"\w+|\[\]")
_UPPER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def declared_names(facts: Facts, body: Any) -> Iterator[tuple[Any, str | int, str]]:
    """Find the names of the tools on offer, and of those that are asked for.

    Args:
        facts: What is known of the dialect of the request.
        body: A request body, which may be broken.

    Yields:
        What holds a name, where it holds it, and where that is in the body.
    """
    for way in facts.names_at:
        # "tools[].function.name" is the steps tools, [], function, name.
        yield from _along(_STEP.findall(way), body, "")


def _along(steps: list[str], value: Any, position: str) -> Iterator[tuple[Any, str | int, str]]:
    # A way is followed as it was written, without knowing what is there: what is broken on it,
    # as a list in place of an object, gives nothing and is noted by whoever mends that part.
    for key, inner, where in _next(steps[0], value, position):
        if len(steps) == 1:
            yield value, key, where
        elif steps[1] == "[]" and len(steps) > 2 and is_mapping(inner):
            # Gemini takes one object where a list belongs.
            yield from _along(steps[2:], inner, where)
        else:
            yield from _along(steps[1:], inner, where)


def _next(step: str, value: Any, position: str) -> Iterator[tuple[str | int, Any, str]]:
    if step == "[]":
        for index, inner in enumerate(value if is_sequence(value) else ()):
            yield index, inner, f"{position}[{index}]"
    elif is_mapping(value):
        # Gemini takes both ways of writing a key.
        for key in dict.fromkeys((step, _UPPER.sub("_", step).lower())):
            if key in value:
                yield key, value[key], f"{position}.{key}" if position else key
