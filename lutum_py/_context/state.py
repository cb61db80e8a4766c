"""Typed values that a tool may read, in a snapshot that nobody can change.

A `State` is plain data by name. Setting gives another state and leaves the old one as it was, so
calls that run side by side see the same snapshot, and the user decides which one comes next.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from .._text.json import compact_json, parse_json, shorten
from ..errors import MisuseError, SavedDataError

T = TypeVar("T")

_CONTAINERS: tuple[type[object], ...] = (list, dict, set)


@dataclass(frozen=True, slots=True)
class StateKey(Generic[T]):
    """Name one value of a `State`, with its type and its default.

    Keys are equal when their names are, so a name should belong to one key in a program.

    Attributes:
        name: The name under which the value is kept and saved.
        default: What a state without the value gives; a list, dict or set is copied each time.

    >>> VISITS = StateKey("visits", default=0)
    >>> State().get(VISITS)
    0
    """

    name: str
    default: T = field(compare=False)


class State:
    """Hold named values, immutably.

    Reads like a mapping from name to value; `get` and `set` go by typed keys. Values are kept as
    they are, not copied: treat what you get as read-only.

    >>> VISITS = StateKey("visits", default=0)
    >>> before = State()
    >>> after = before.set(VISITS, before.get(VISITS) + 1)
    >>> before.get(VISITS), after.get(VISITS), after.dump_json()
    (0, 1, '{"visits":1}')
    """

    __slots__ = ("_values",)

    _values: Mapping[str, Any]

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        """Take named values; the mapping itself is copied.

        Args:
            values: Values by name; None for an empty state.
        """
        object.__setattr__(self, "_values", MappingProxyType({} if values is None else {**values}))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"Cannot assign {name!r}: a State is immutable. `state.set(key, value)` gives another."
        )

    def get(self, key: StateKey[T]) -> T:
        """Return the value under `key`, or the key's default."""
        if key.name in self._values:
            return cast("T", self._values[key.name])
        default = key.default
        # A default that every reader shared could be changed for all of them by one.
        return deepcopy(default) if isinstance(default, _CONTAINERS) else default

    def set(self, key: StateKey[T], value: T) -> State:
        """Return a state with `value` under `key` and everything else as here."""
        if not isinstance(key, StateKey):
            raise MisuseError(
                f"A state is set by a StateKey, not by {shorten(key)}. Declare one, as in "
                "`VISITS = StateKey('visits', default=0)`."
            )
        return State({**self._values, key.name: value})

    def keys(self) -> KeysView[str]:
        """View the names."""
        return self._values.keys()

    def values(self) -> ValuesView[Any]:
        """View the values."""
        return self._values.values()

    def items(self) -> ItemsView[str, Any]:
        """View the names with their values."""
        return self._values.items()

    def dump_json(self) -> str:
        """Encode the values as one JSON object, keyed by name.

        Raises:
            ValueError: A value holds NaN or an infinity.
            TypeError: A value is not plain JSON data; the text names its key.
        """
        for name, value in self._values.items():
            try:
                compact_json(value)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"The state's value {name!r} cannot be saved: {error}. "
                    "Keep plain JSON data under it."
                ) from error
        return compact_json(dict(self._values))

    @classmethod
    def load_json(cls, text: str | bytes) -> State:
        """Read what `dump_json` gave.

        Raises:
            SavedDataError: The text is not a JSON object.

        >>> State.load_json('{"visits":1}').get(StateKey("visits", 0))
        1
        """
        try:
            values = parse_json(text)
        except ValueError as error:
            raise SavedDataError(f"The saved state is not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise SavedDataError(
                f"The saved state is {shorten(values)}, not an object of values by name. "
                "Load what `State.dump_json` gave."
            )
        return cls(cast("dict[str, Any]", values))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

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

    def __reduce__(self) -> tuple[type[State], tuple[dict[str, Any]]]:
        return (State, (dict(self._values),))

    def __repr__(self) -> str:
        return f"State({dict(self._values)!r})"
