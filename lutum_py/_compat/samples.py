"""Make values of a JSON schema, chosen to lie where another schema may differ from it.

Each bound, enum and name of either schema suggests values on both sides of it. They are only
candidates: whether one fits is for `fits` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, islice, zip_longest
from typing import Any, Final

from .._schema.schema_reader import (
    NEVER,
    UNIONS,
    JsonSchema,
    cases_of,
    item_of,
    parts_of,
    property_of,
    types_of,
)
from .._text.json import canonical_json, is_array, is_object
from .fits import Fitting

_DEPTH: Final = 5
"""Levels of nesting below which only the simplest values are made."""
_MOST: Final = 150
"""Values of one schema."""
_BUDGET: Final = 20_000
"""Candidates that are tried in all."""
_LONGEST: Final = 10_000
"""Characters of a text; items of an array are held to a hundredth of it."""
_EXTRA: Final = "extra"
"""The name of a property that neither schema knows."""
_NOTHING: Final = object()
_OF_FORMAT: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:30:00Z",
    "duration": "P1DT2H",
    "email": "ann@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "12:30:00Z",
    "uri": "https://example.com/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
"""A text of each format, as models write it and pydantic reads it."""
_FREE_FORMATS: Final = frozenset({"binary", "password", "path"})
"""Formats that every text has."""


def samples_of(old: Any, new: Any) -> list[Any]:
    """Make values that fit the old schema, the small ones first.

    Args:
        old: The schema that the values are to fit.
        new: The schema that some of them may not fit.

    Returns:
        At most a few hundred values, each of which is known to fit `old`.
    """
    maker = _Maker(old, new)
    found = maker.make(parts_of(old, old), parts_of(new, new), 0, _MOST * 4)
    return sorted(found, key=_plainness)


def _plainness(value: Any) -> tuple[int, str]:
    """Rank by size; a word reads better than an empty text."""
    text = canonical_json(value)
    return (len(text) + 5 * text.count('""'), text)


class _Maker:
    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        self._fitting = Fitting(old)
        self._left = _BUDGET

    def make(
        self, old: list[JsonSchema], new: list[JsonSchema], depth: int, most: int = _MOST
    ) -> list[Any]:
        """Make different values of the old parts; the first ones are the simplest."""
        found: dict[str, Any] = {}
        # The new parts, and those of their branches.
        hints = [*new, *(each for branch in _branches(new) for each in parts_of(branch, self._new))]
        for value in self._candidates(old, hints, depth):
            self._left -= 1
            if self._left < 0:
                break
            key = canonical_json(value)
            if key not in found and all(self._fitting.fits(value, part) is True for part in old):
                found[key] = value
                if len(found) >= most:
                    break
        return list(found.values())

    def _candidates(
        self, old: list[JsonSchema], new: list[JsonSchema], depth: int
    ) -> Iterator[Any]:
        if NEVER in old:
            return
        for part in old:
            yield from part.get("enum", ())
            if "const" in part:
                yield part["const"]
        cases = cases_of(old, self._old) if depth <= _DEPTH else None
        if cases is not None:
            yield from _in_turn(self._candidates(case, new, depth + 1) for case in cases)
            return
        types = types_of(old)
        if "string" in types:
            yield from _texts(old, new)
        if types & {"integer", "fraction"}:
            yield from _numbers(old, new, "fraction" in types)
        if "boolean" in types:
            yield from (False, True)
        if "null" in types:
            yield None
        for part in [*old, *new]:
            yield from [part["default"]] if "default" in part else []
            yield from part.get("examples", ())
        if "array" in types:
            yield from self._arrays(old, new, depth)
        if "object" in types:
            yield from self._objects(old, new, depth)

    def _arrays(self, old: list[JsonSchema], new: list[JsonSchema], depth: int) -> Iterator[Any]:
        # For `maxItems: 3` of one schema arrays of 2, 3 and 4 items are tried, if the old one takes
        # them.
        lengths = {0, 1}
        for count in _operands([*old, *new], "minItems", "maxItems"):
            lengths |= {count - 1, count, count + 1}
        wanted = sorted(length for length in lengths if 0 <= length <= _LONGEST // 100)
        if depth > _DEPTH:
            yield []
            return
        choices = [
            self._of_each(item_of(old, at), item_of(new, at), depth)
            for at in range(max(wanted, default=0))
        ]
        for length in wanted:
            if all(choices[:length]):
                yield [options[at % len(options)] for at, options in enumerate(choices[:length])]
        least = max([1, *_operands(old, "minItems")])
        if least <= len(choices) and all(choices[:least]):
            plain = [options[0] for options in choices[:least]]
            for at, options in enumerate(choices[:least]):
                for option in options:
                    yield [*plain[:at], option, *plain[at + 1 :]]
            yield list(islice(cycle(plain), 2 * least))

    def _of_each(self, own: list[Any], theirs: list[Any], depth: int) -> list[Any]:
        """Make values that fit each of these schemas, one level below."""
        return self.make(
            [part for schema in own for part in parts_of(schema, self._old)],
            [part for schema in theirs for part in parts_of(schema, self._new)],
            depth + 1,
        )

    def _objects(self, old: list[JsonSchema], new: list[JsonSchema], depth: int) -> Iterator[Any]:
        if depth > _DEPTH + 2:
            return
        required = [name for names in _listed(old, "required") for name in names]
        named, theirs = _names(old), _names(new)
        wanted = [*required] if depth > _DEPTH else [*required, *named, *theirs, _EXTRA]
        choices = {
            name: self._of_each(property_of(old, name), property_of(new, name), depth)
            for name in dict.fromkeys(wanted)
        }
        if not all(choices[name] for name in required):
            return
        # All that is required, each with its simplest value; then one field after another with all
        # its values, so that an example differs from a plain one in one place.
        plain = {name: choices[name][0] for name in required}
        yield plain
        for name, options in choices.items():
            for option in options:
                yield {**plain, name: option}
        yield {name: options[0] for name, options in choices.items() if options and name in named}


def _in_turn(sources: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """Take one value of each source after the other, until all are at their end."""
    for row in zip_longest(*sources, fillvalue=_NOTHING):
        yield from (value for value in row if value is not _NOTHING)


def _branches(parts: list[JsonSchema]) -> list[Any]:
    return [branch for key in UNIONS for each in _listed(parts, key) for branch in each]


def _listed(parts: list[JsonSchema], key: str) -> list[list[Any]]:
    return [part[key] for part in parts if is_array(part.get(key))]


def _names(parts: list[JsonSchema]) -> list[str]:
    each = (part.get("properties") for part in parts)
    return [name for properties in each if is_object(properties) for name in properties]


def _operands(parts: Iterable[JsonSchema], *keys: str) -> list[int]:
    return [part[key] for part in parts for key in keys if isinstance(part.get(key), int)]


def _texts(old: list[JsonSchema], new: list[JsonSchema]) -> Iterator[str]:
    said = [part["format"] for part in old if isinstance(part.get("format"), str)]
    formats = {*said} - _FREE_FORMATS
    if formats:
        # To JSON schema a format is a remark, and any text fits. But the tool reads a date there,
        # so that an old call with another text never decoded.
        if len(formats) == 1 and (text := _OF_FORMAT.get(formats.pop())):
            yield text
        return
    yield "text"
    for part in [*old, *new]:
        yield from (text for text in part.get("enum", ()) if isinstance(text, str))
    for count in _operands([*old, *new], "minLength", "maxLength"):
        for length in (count - 1, count, count + 1):
            if 0 <= length <= _LONGEST:
                yield "x" * length
    yield ""


def _numbers(old: list[JsonSchema], new: list[JsonSchema], has_fractions: bool) -> Iterator[float]:
    yield from (0, 1, -1)
    keys = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const")
    for part in [*old, *new]:
        for bound in [*(part.get(key) for key in keys), *part.get("enum", ())]:
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                yield from (bound - 1, bound, bound + 1)
                yield from (int(bound), 2 * bound)
    if has_fractions:
        yield from (0.5, 1.5)
