"""Typed values that a tool may read, in a snapshot that nobody can change.

A `State` is plain data by name. Setting gives another state and leaves the old one as it was, so
calls that run side by side see the same snapshot, and the user decides which one comes next.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from .._text.immutable import Immutable
from .._text.json import compact_json, own_copy, parse_json, shorten
from ..errors import InvalidValueError, MisuseError, SavedDataError

T = TypeVar("T")


# Tools of one turn run side by side and may all read the state: with a plain dict, what one reads
# would depend on which was quicker.
class StateKey(Immutable, Generic[T]):
    """Name one value of a `State`, with its type and its default.

    Keys are equal when their names are, so a name should belong to one key in a program.

    Attributes:
        name: The name under which the value is kept and saved.
        default: What a state gives that has no value under this key: another copy each time.

    >>> VISITS = StateKey("visits", default=0)
    >>> State().get(VISITS)
    0
    """

    __slots__ = ("_default", "name")
    __match_args__ = ("name", "default")

    name: str
    _default: T

    def __init__(self, name: str, default: T) -> None:
        """Take a name and a default, of which a copy is kept.

        Args:
            name: The name under which the value is kept and saved.
            default: What a state without the value gives.
        """
        self._put(name=name, _default=own_copy(default))

    @property
    def default(self) -> T:
        """What a state without the value gives: another copy each time."""
        return own_copy(self._default)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateKey):
            return NotImplemented
        return self.name == other.name

    def __hash__(self) -> int:
        return hash((StateKey, self.name))

    def __reduce__(self) -> tuple[object, ...]:
        return (StateKey, (self.name, self._default))

    def __repr__(self) -> str:
        return f"StateKey(name={self.name!r}, default={self._default!r})"


class State:
    """Hold named values, immutably.

    Reads like a mapping from name to value; `get` and `set` go by typed keys. Values are copied as
    they are put in, and each time they are read, so nobody changes what another one reads. What
    cannot be copied, such as a lock, is given as it is.

    >>> VISITS = StateKey("visits", default=0)
    >>> before = State()
    >>> after = before.set(VISITS, before.get(VISITS) + 1)
    >>> before.get(VISITS), after.get(VISITS), after.dump_json()
    (0, 1, '{"visits":1}')
    """

    __slots__ = ("_values",)

    _values: Mapping[str, Any]

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Take named values, of which copies are kept.

        Args:
            values: Values by name; None for an empty state.

        Raises:
            MisuseError: They are not a mapping.
        """
        MisuseError.check("State", "values", "a mapping or None", values, Mapping | State | None)
        # Copied as they come in and as they go out: a tool that changes a list which it read
        # changes its own.
        owned = _owned({} if values is None else values)
        object.__setattr__(self, "_values", MappingProxyType(owned))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"Cannot assign {name!r}: a State is immutable. `state.set(key, value)` gives another."
        )

    def get(self, key: StateKey[T]) -> T:
        """Return a copy of the value under `key`, or of the key's default."""
        _check_key(key, "read")
        if key.name in self._values:
            return cast("T", own_copy(self._values[key.name]))
        return key.default

    def set(self, key: StateKey[T], value: T) -> State:
        """Return a state with `value` under `key` and everything else as here."""
        _check_key(key, "set")
        made = object.__new__(State)
        values = {**self._values, key.name: own_copy(value)}
        object.__setattr__(made, "_values", MappingProxyType(values))
        return made

    def keys(self) -> KeysView[str]:
        """View the names."""
        return self._values.keys()

    def values(self) -> ValuesView[Any]:
        """View copies of the values."""
        return _owned(self._values).values()

    def items(self) -> ItemsView[str, Any]:
        """View the names with copies of their values."""
        return _owned(self._values).items()

    def dump_json(self) -> str:
        """Encode the values as one JSON object, keyed by name.

        Raises:
            InvalidValueError: A value holds NaN or an infinity; the text names its key.
            MisuseError: A value is not plain JSON data; the text names its key.
        """
        for name, value in self._values.items():
            try:
                compact_json(value)
            except (TypeError, ValueError) as error:
                kind = MisuseError if isinstance(error, TypeError) else InvalidValueError
                raise kind(
                    f"The state's value {name!r} cannot be saved: {error}. "
                    "Keep plain JSON data under it."
                ) from error
        return compact_json(dict(self._values))

    @classmethod
    def load_json(cls, text: str | bytes) -> State:
        """Read what `dump_json` gave.

        Raises:
            SavedDataError: The text is not a JSON object.
            MisuseError: It is not text.

        >>> State.load_json('{"visits":1}').get(StateKey("visits", 0))
        1
        """
        if not isinstance(text, str | bytes):
            raise MisuseError(f"A saved state is loaded from its text, not from {shorten(text)}.")
        try:
            values = parse_json(text)
        except ValueError as error:
            raise SavedDataError(f"The saved state is not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise SavedDataError(
                f"The saved state is {shorten(values)}, not an object of values by name. "
                "Load what `State.dump_json` gave."
            )
        return cls(cast("dict[str, object]", values))

    def __getitem__(self, name: str) -> Any:
        return own_copy(self._values[name])

    def __contains__(self, key: object) -> bool:
        return (key.name if isinstance(key, StateKey) else key) in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __copy__(self) -> State:
        return self

    def __deepcopy__(self, memo: object) -> State:
        return self  # nobody can change it, and a lock in it has no copy

    def __reduce__(self) -> tuple[object, ...]:
        return (State, (_owned(self._values),))

    def __repr__(self) -> str:
        return f"State({dict(self._values)!r})"


def _check_key(key: object, done: str) -> None:
    if not isinstance(key, StateKey):
        raise MisuseError(
            f"A state is {done} by a StateKey, not by {shorten(key)}. Declare one, as in "
            "`VISITS = StateKey('visits', default=0)`."
        )


def _owned(values: Mapping[str, object]) -> dict[str, object]:
    return {name: own_copy(value) for name, value in values.items()}
