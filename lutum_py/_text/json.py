"""JSON and texts: read, written, checked, copied, cut, and made fit to be sent.

UTF-8 cannot carry half of a surrogate pair. Python keeps such halves where JSON wrote them as
escapes, where a pair was cut in two, and for the odd bytes in the name of a file. One of them in a
conversation would stop every client from sending it, forever. So each is replaced where it comes
in; two that make a character become it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from copy import deepcopy
from functools import cache
from math import inf, isfinite, log10
from os import urandom
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeAlias, TypeGuard, TypeVar, cast

from pydantic_core import from_json, to_json

from .escaping import escape_unprintable

if TYPE_CHECKING:
    from json import JSONEncoder


def sendable(text: str) -> str:
    r"""Join the halves of surrogate pairs, and put U+FFFD for each that is alone.

    Example:
        >>> sendable("\ud83d\ude00 caf\udce9") == "\U0001f600 caf\ufffd"
        True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # As UTF-16 the two halves of a pair stand beside each other, and the decoder makes the
        # character; one that is alone becomes U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def sendable_json(value: object) -> Any:
    """Copy plain JSON data deeply, with texts and keys that can be sent."""
    if isinstance(value, str):
        return sendable(value)
    if _is_object(value):
        return {sendable_json(key): sendable_json(item) for key, item in value.items()}
    if _is_array(value):
        return [sendable_json(item) for item in value]
    return value


def is_plainly_sendable(value: object) -> bool:
    """Tell in one go that all texts in JSON data can be sent; False if it takes a closer look.

    What is told so is nested no deeper than a few hundred levels.
    """
    try:
        to_json(value)
    except ValueError:
        return False
    return True


def halves_in(value: object, position: str = "") -> Iterator[str]:
    """Yield the place of each text in plain JSON data that cannot be sent as it is."""
    if not is_plainly_sendable(value):  # hardly any data holds one
        yield from _halves_in(value, position)


def _halves_in(value: object, position: str) -> Iterator[str]:
    if isinstance(value, str):
        if sendable(value) is not value:
            yield position
    elif _is_object(value):
        for key, item in value.items():
            name = sendable_json(key)
            inner = f"{position}.{name}" if position else str(name)
            if name is not key:
                yield inner
            yield from _halves_in(item, inner)
    elif _is_array(value):
        for index, item in enumerate(value):
            yield from _halves_in(item, f"{position}[{index}]")


def _is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


T = TypeVar("T")


def compact_json(value: object) -> str:
    """Encode plain JSON data without spaces, in the order that it has.

    Raises:
        ValueError: `value` holds NaN or an infinity, which JSON cannot carry.
        TypeError: `value` is not plain JSON data.
    """
    try:
        return _encoder().encode(value)
    except RecursionError:
        return _encoder(check_circular=True).encode(value)
    except ValueError as error:
        try:
            return exact_json(value, ensure_ascii=False, separators=(",", ":"))
        except (RecursionError, ValueError):
            raise error from None


@cache
def _encoder(*, check_circular: bool = False, sort_keys: bool = False) -> JSONEncoder:
    """Make an encoder; to look out for circles takes it as long as the rest."""
    from json import JSONEncoder

    return JSONEncoder(
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        check_circular=check_circular,
        sort_keys=sort_keys,
    )


# A provider may send `1.10` or `1e400`, and what goes back has to be what came, or a signature over
# it fails. As a float the first becomes 1.1 and the second infinity.
class ExactNumber(float):
    """A number that remembers how it was written, for those that Python would write otherwise.

    >>> compact_json([ExactNumber("1e400")])
    '[1e400]'
    """

    written: str

    def __new__(cls, written: str) -> Self:
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __repr__(self) -> str:
        return self.written


def exact_json(value: object, **layout: Any) -> str:
    """Encode plain JSON data with each `ExactNumber` as it was written.

    Args:
        value: The data.
        **layout: What `json.dumps` takes.

    Raises:
        ValueError: `value` holds NaN or an infinity.
    """
    import json

    # The encoder of the standard library writes a float by its own `repr`, whatever a subclass
    # says. So each number goes through it as a marked text, `"9f3c…1.10"`, and loses its quotes
    # after; no text of the value can guess the mark.
    mark = urandom(8).hex()
    text = json.dumps(_marked(value, mark), allow_nan=False, **layout)
    return re.sub(f'"{mark}([^"]*)"', r"\1", text)


def _marked(value: object, mark: str) -> object:
    if is_object(value):
        return {key: _marked(part, mark) for key, part in value.items()}
    if is_array(value):
        return [_marked(part, mark) for part in value]
    return mark + value.written if isinstance(value, ExactNumber) else value


def canonical_json(value: object) -> str:
    """Encode plain JSON data so that equal data always gives equal text: keys sorted, no spaces."""
    return _encoder(check_circular=True, sort_keys=True).encode(value)


def digest_of(value: object) -> str:
    """Return `sha256:` and the hexadecimal SHA-256 of the canonical JSON of `value`."""
    from hashlib import sha256

    return f"sha256:{sha256(canonical_json(value).encode('utf-8', 'surrogatepass')).hexdigest()}"


def short_digest_of(*parts: str | int | None) -> str:
    """Return the first 24 digits of the digest of a list of such parts."""
    from hashlib import sha256

    try:
        text = to_json(parts)  # which is the canonical JSON of them
    except ValueError:
        # It refuses halves of surrogate pairs.
        return digest_of(parts).removeprefix("sha256:")[:24]
    return sha256(text).hexdigest()[:24]


def parse_json(text: str | bytes) -> Any:
    """Parse JSON as the standard has it: NaN and infinities are refused.

    What is parsed can be sent: half of a surrogate pair in it is read as U+FFFD.

    Raises:
        ValueError: The text is not JSON; the message says at which line and column.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError) as error:
        try:
            return sendable_json(_read_slowly(text, error))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def read_json(text: str | bytes) -> Any:
    """Do the same, with halves of surrogate pairs as they are: more text may complete them."""
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError) as error:
        return _read_slowly(text, error)


def _read_slowly(text: str | bytes, error: Exception) -> Any:
    """Read what the fast parser does not know: half of a pair, and more than 200 levels."""
    import json

    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(str(error)) from None


def has_long_number(text: bytes) -> bool:
    """Tell whether JSON text may hold an integer of more digits than Python reads.

    A text of so many digits is taken for one, too: whoever wants to know parses it.
    """
    # Digits become zeros, so that one search finds a run of any digits.
    # A run so long shows in every 256th byte, too: seldom is there more to be looked at.
    if len(text) <= MOST_DIGITS or _SAMPLED not in text[::_STEP].translate(_TO_ZEROS):
        return False
    return _LONG in text.translate(_TO_ZEROS)


MOST_DIGITS: Final = 4300
_MOST_BITS: Final = int(MOST_DIGITS / log10(2))
_LONG: Final = b"0" * (MOST_DIGITS + 1)
_STEP: Final = 256
_SAMPLED: Final = b"0" * (len(_LONG) // _STEP)
_TO_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)


def refuse_constant(name: str) -> NoReturn:
    """Be the `parse_constant` of whoever parses JSON as the standard has it."""
    raise ValueError(f"{name} is not a value that JSON has")


# Not a recursive type: that would ask for a check, or a cast, at each step into data of which the
# wire says what is there, and would still not know that.
JsonObject: TypeAlias = dict[str, Any]
"""JSON data that is known to be an object; what is in it has to be looked at."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether plain JSON data is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether plain JSON data is an array."""
    return isinstance(value, list)


def texts_of_lines(arguments: object) -> dict[str, str]:
    """Find the arguments that are read as lines, such as a program: each by its name."""
    named = arguments.items() if is_object(arguments) else ()
    return {name: each for name, each in named if isinstance(each, str) and "\n" in each}


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether JSON data that somebody else made is an object."""
    kind = type(value)
    return kind is dict or (kind not in _NO_OBJECTS and isinstance(value, Mapping))


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether JSON data that somebody else made is an array."""
    return isinstance(value, (list, tuple))


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number, as True is for Python, and for nobody else."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_seconds(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number of seconds that a deadline may be set to."""
    return is_number(value) and 0 < value < inf


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


LEAVES: Final = frozenset({str, int, float, bool, NoneType})
"""What is at the ends of JSON data: told so, it is not asked whether it is a mapping."""

_NO_OBJECTS: Final = LEAVES | {list, tuple}


# `1 == True` in Python, so a set of JSON values would lose one of the two; a list cannot be in a
# set at all.
def json_key(value: object) -> object:
    """Make a key that two values share if they are the same in JSON: 1 is 1.0, but never true."""
    if is_object(value):
        return frozenset((name, json_key(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(json_key, cast("Sequence[object]", value)))
    return (isinstance(value, bool), value)


def is_whole_json(text: str) -> bool:
    """Whether a text is JSON to its end, and not the beginning of some, or something else.

    >>> is_whole_json('{"a": 1}'), is_whole_json('{"a": '), is_whole_json("")
    (True, False, False)
    """
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def copy_json(value: object) -> Any:
    """Copy plain JSON data deeply; anything that is not a dict or list is shared."""
    if is_mapping(value):
        return {
            key: item if item.__class__ in LEAVES else copy_json(item)
            for key, item in value.items()
        }
    return [copy_json(item) for item in value] if is_sequence(value) else value


def own_copy(value: T) -> T:
    """Copy a value of any type deeply.

    What cannot be copied, such as a lock or an open file, is given as it is; a dict, list, tuple or
    set that it is in is a new one all the same.

    >>> from threading import Lock
    >>> lock = Lock()
    >>> seen = {"ids": [1], "lock": lock}
    >>> own = own_copy(seen)
    >>> own["ids"].append(2)
    >>> seen["ids"], own["lock"] is lock
    ([1], True)
    """
    if value.__class__ in LEAVES:
        return value
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - each type has its own way to refuse
        pass
    try:
        copied: T = _in_parts(value, {})
    except RecursionError:
        return value
    return copied


# `deepcopy` gives up at the first part that cannot be copied. A dict with a list and a lock would
# then be shared whole, and a hook that appends to the list would change what others read.
def _in_parts(value: Any, known: dict[int, Any]) -> Any:
    """Copy the containers that Python itself has, and in them whatever can be."""
    if id(value) in known:
        return known[id(value)]
    kind = value.__class__
    made: Any
    if kind is dict:
        # Known before its parts are copied: a dict may hold itself.
        made = known[id(value)] = {}
        made.update((key, _in_parts(part, known)) for key, part in value.items())
    elif kind is list:
        made = known[id(value)] = []
        made.extend(_in_parts(part, known) for part in value)
    elif kind in (tuple, set, frozenset):
        make: Any = kind
        made = known[id(value)] = make(_in_parts(part, known) for part in value)
    elif kind is MappingProxyType:
        made = MappingProxyType(_in_parts(dict(value), known))
    else:
        try:
            made = deepcopy(value)
        except Exception:  # noqa: BLE001 - as above
            made = value
        known[id(value)] = made
    return made


def json_data(value: object, path: str = "$") -> Any:
    """Copy plain JSON data deeply: what JSON does not have is refused.

    Tuples are arrays, any mapping is an object, and a text or number of a subclass is a plain one.

    Raises:
        ValueError: It holds something else; the text says what and where.

    >>> json_data({"at": (1, 2.5)})
    {'at': [1, 2.5]}
    """
    try:
        return _json_data(value, path)
    except RecursionError:
        raise ValueError("it is nested too deeply, or holds itself") from None


def _json_data(value: object, path: str) -> object:
    if value is None or value is True or value is False or value.__class__ is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if is_whole(value) and value.bit_length() <= _MOST_BITS:
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    if is_sequence(value):
        return [_json_data(part, f"{path}[{at}]") for at, part in enumerate(value)]
    if is_mapping(value):
        made: JsonObject = {}
        for key, part in value.items():
            if not isinstance(key, str):
                raise ValueError(f"at {path} it has the key {shorten(key)}, which is not text")
            made[str.__str__(key)] = _json_data(part, f"{path}.{shorten(key)[1:-1]}")
        return made
    raise ValueError(f"at {path} it holds {shorten(value)}, which JSON does not have")


def infinity_in(
    value: object, loc: tuple[int | str, ...] = ()
) -> tuple[tuple[int | str, ...], float] | None:
    """Find a number that JSON cannot carry: where it is, and which."""
    if isinstance(value, float):
        return None if isfinite(value) else (loc, value)
    parts: Iterable[tuple[int | str, object]] = ()
    if is_object(value):
        parts = value.items()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = enumerate(cast("Iterable[object]", value))
    for key, part in parts:
        found = infinity_in(part, (*loc, key))
        if found is not None:
            return found
    return None


def shorten(value: object, limit: int = 80) -> str:
    """Show any value in at most `limit` characters, safely, for a message.

    Strings are cut before they are quoted, so that a megabyte of input costs nothing; integers
    past Python's limit for decimal text are described instead of printed.
    """
    if type(value) is str:
        return repr(value) if len(value) <= limit else repr(value[:limit]) + "…"
    if is_object(value) and len(value) > 8:
        return f"an object with {len(value)} keys"
    if is_array(value) and len(value) > 8:
        return f"an array of {len(value)} items"
    try:
        return escape_unprintable(cut(repr(value), limit))
    except Exception:  # noqa: BLE001 - whatever it raises, a message is being made
        return f"a value of type {type(value).__name__}"


def cut(text: str, limit: int) -> str:
    """Return the text, or its first `limit` characters and a sign that there was more."""
    return text if len(text) <= limit else text[:limit] + "…"


_DEEPEST: Final = 40
"""Levels after which nothing is indented further, so that a text does not grow without bound."""

_TOKEN: Final = r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+'


def indented_json(text: str, width: int = 72) -> str:
    """Lay out JSON text on lines, if it does not fit on one; no value is written otherwise.

    Text that is not JSON stays as it is.

    >>> print(indented_json('{"a": [1.0], "b": {}}', width=10))
    {
      "a": [
        1.0
      ],
      "b": {}
    }
    """
    import json

    if len(text) <= width and "\n" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    # Token by token, not parsed and written again: `1.0` stays `1.0`, a key that stands twice stays
    # twice, and what a person approves is the text itself.
    tokens: list[str] = re.findall(_TOKEN, text)
    laid: list[str] = []
    depth = 0
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token in "}]":
            depth -= 1
        is_first = before in ("{", "[")
        if (is_first and token not in "}]") or before == "," or (token in "}]" and not is_first):
            laid.append("\n" + "  " * min(depth, _DEEPEST))
        laid.append(": " if token == ":" else token)
        if token in "{[":
            depth += 1
    return "".join(laid)


def size_of(value: object) -> str:
    """Say how much there is of something that is not to be shown.

    >>> size_of("secret"), size_of(5)
    ('<6 characters>', '<int>')
    """
    if value is None:
        return "None"
    if not isinstance(value, Sized):
        return f"<{type(value).__name__}>"
    what = "characters" if isinstance(value, str) else "entries"
    return f"<{len(value)} {what}>"


_EXACT = 4096

# What the parser cannot read of a number that goes on: the ends of `0.` and `1.5e-`.
_OPEN_NUMBER: Final = re.compile(r"(?<=\d)(?:\.|[eE][+-]?)$")
_QUOTES: Final = re.compile(r'\\.|[^"]', re.DOTALL)


# Most programs pass the pieces on, and look at none of the views: each is made when it is asked
# for. A view is known by its number, so that it is the same whenever that is.
class PartialJson:
    """Collect the pieces of one JSON text.

    Example:
        >>> json = PartialJson()
        >>> json.view(json.add('{"city": "Par'))
        {'city': 'Par'}
        >>> json.text
        '{"city": "Par'
    """

    __slots__ = ("_last", "_length", "_next", "_pieces", "_shown")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._next = 0
        # How many pieces each view shows; and what was read last, for which of the views.
        self._shown = [0]
        self._last: tuple[int, int, Any] = (0, 0, {})

    @property
    def text(self) -> str:
        """All the text so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> int:
        """Add a piece, and return the number of the view that shows it."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length >= self._next:
            self._shown.append(len(self._pieces))
            if self._length >= _EXACT:
                self._next = self._length + self._length // 8
        return len(self._shown) - 1

    def view(self, number: int) -> Any:
        """Return the value as far as it can be read there; for display only.

        If it cannot be read at all, that is what could be read before.
        """
        # A view may be asked for late and out of order, and is to be the same then. `_last` is the
        # one that was read last, so that asking for each in turn reads the text once.
        value: Any
        first, last, value = self._last
        if number < first:
            first, last, value = 0, 0, {}
        # From the view that is asked for back to the last one that was read: the first that can be
        # read.
        for each in range(number, last, -1):
            with suppress(ValueError):
                text = sendable("".join(self._pieces[: self._shown[each]]))
                value = from_json(_readable(text), allow_partial="trailing-strings")
                first = each
                break
        self._last = (first, max(number, last), value)
        return value


def _readable(text: str) -> str:
    """Return the text without the end of a number that cannot be read yet."""
    found = _OPEN_NUMBER.search(text, max(len(text) - 2, 0))
    # In a text, which an odd number of quotes leaves open, it is no number.
    if found is None or len(_QUOTES.sub("", text)) % 2:
        return text
    return text[: found.start()]
