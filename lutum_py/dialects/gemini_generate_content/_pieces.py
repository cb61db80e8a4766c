"""A call whose arguments come in pieces, each with the JSON path to what it is a piece of.

Vertex AI streams them so where `streamFunctionCallArguments` is on: {"name": "f", "willContinue":
true}, then {"partialArgs": [{"jsonPath": "$.place", "stringValue": "Ber", "willContinue": true}],
"willContinue": true}, and in the end what has no `willContinue`, mostly {}. (Vertex AI reference:
FunctionCall and PartialArg; RFC 9535 for the paths.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..._text.json import JsonObject, parse_json
from .._arguments import Pieces
from .._reading import DEEPEST, Place

_STEP: Final = re.compile(
    r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]"""
)
_VALUES: Final = ("stringValue", "numberValue", "boolValue")
_MISSING: Final = object()


def is_in_pieces(call: Mapping[str, object]) -> bool:
    """Tell whether a call is a piece of one."""
    return bool(call.get("willContinue")) or "partialArgs" in call


class PartialCall:
    """Put together a call that comes in pieces.

    Attributes:
        part: The part that it becomes, without its arguments.
        is_open: Whether more of it is to come.
    """

    __slots__ = ("_arguments", "call", "is_open", "part")

    def __init__(self) -> None:
        self.part: JsonObject = {}
        self.call: JsonObject = {}
        self.is_open = True
        self._arguments: JsonObject = {}

    def add(self, part: Place) -> None:
        """Add a piece.

        Args:
            part: The part of a content that holds it.

        Raises:
            DialectError: It is of another call, or has no path that leads to a place.
        """
        call = part.need("functionCall")
        fields = call.object()
        name = call.text_at("name") or self.call.get("name")
        if self.call.get("name", name) != name:
            raise call.error(
                f"a call of {name!r} begins before that of {self.call['name']!r} is whole"
            )
        for key, value in fields.items():
            if key not in ("args", "partialArgs", "willContinue"):
                self.call.setdefault(key, value)
        self.part.update(part.object())
        if (whole := call.get("args")) is not None:
            self._arguments.update(whole.object())
        for piece in call.items_at("partialArgs"):
            self._put(piece)
        self.is_open = bool(fields.get("willContinue"))

    def whole(self) -> JsonObject:
        """Return the part with what came of the call."""
        call = {key: value for key, value in self.call.items() if value is not None}
        return {**self.part, "functionCall": {**call, "args": _plain(self._arguments)}}

    def _put(self, piece: Place) -> None:
        fields = piece.object()
        holder: Any = {"": self._arguments}
        key: Any = ""
        for step in _steps(piece):
            kind: Any = list if isinstance(step, int) else dict
            inner: Any = _at(holder, key)
            if inner is _MISSING:
                inner = holder[key] = kind()
            # No place is left out in an array: one piece must not make a million of them.
            if inner.__class__ is not kind or (isinstance(step, int) and step > len(inner)):
                raise piece.error(f"its path {fields.get('jsonPath')!r} leads nowhere")
            if step == len(inner) and isinstance(step, int):
                inner.append(_MISSING)
            holder, key = inner, step
        before = _at(holder, key)
        value: Any = next((fields[each] for each in _VALUES if each in fields), _MISSING)
        if isinstance(value, str):
            if before.__class__ is not Pieces:
                before = holder[key] = Pieces()
            before.append(value)
        elif value is not _MISSING:
            # The SDK makes a float of each number.
            is_whole = isinstance(value, float) and value.is_integer()
            holder[key] = int(value) if is_whole else value
        elif before is _MISSING:  # a null, which JSON and the SDK leave out or write in their ways
            holder[key] = Pieces() if fields.get("willContinue") else None


def _steps(piece: Place) -> Iterator[str | int]:
    """Read the path of a piece, as `$.places[0].name`."""
    path = piece.need_text("jsonPath")
    at, found = 1, list[str | int]()
    while path.startswith("$") and (match := _STEP.match(path, at)):
        at = match.end()
        name, number, single, double = match.groups()
        if number is not None:
            found.append(int(number))
        elif name is not None:
            found.append(name)
        else:
            quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
            try:
                found.append(parse_json(f'"{quoted}"'))
            except ValueError:
                break
    if not found or at != len(path) or len(found) > DEEPEST - 10:
        raise piece.error(f"{path!r} is no path to an argument, as in '$.places[0].name'")
    yield from found


def _at(holder: Any, key: Any) -> Any:
    return holder[key] if isinstance(key, int) else holder.get(key, _MISSING)


def _plain(value: Any) -> Any:
    if value.__class__ is Pieces:
        return "".join(value)
    if value.__class__ is dict:
        return {key: _plain(each) for key, each in value.items()}
    if value.__class__ is list:
        return [_plain(each) for each in value]
    return value
