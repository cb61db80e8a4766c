"""Values that refuse to be changed, and cost little to declare or to make.

The standard decorator of dataclasses writes and compiles the source of six methods for a frozen
class, and makes the class twice where it has slots: a third of a millisecond each time a program
starts, for classes of which it uses a few. Here the class gets its slots at once; the rest is taken
over from one that the standard decorator makes, when the first of it is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, TypeVar


class Immutable:
    """Make the instances of a class refuse assignments."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise dataclasses.FrozenInstanceError(
            f"cannot assign to {name!r}: a {type(self).__name__} is immutable"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(
            f"cannot delete {name!r}: a {type(self).__name__} is immutable"
        )

    def _put(self, **values: object) -> None:
        """Set attributes all the same, as only the class itself does."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Settled:
    """Refuse assignments to attributes that are public: what the program would set is ignored.

    Attributes:
        _way: What to do instead.
    """

    __slots__ = ()
    _way: ClassVar[str]

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise _settled(self, name, "assign to", self._way)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise _settled(self, name, "delete", self._way)


def _settled(owner: object, name: str, verb: str, way: str) -> dataclasses.FrozenInstanceError:
    return dataclasses.FrozenInstanceError(
        f"cannot {verb} {name!r} of a {type(owner).__name__}: {way}"
    )


class SetOnce:
    """Refuse to assign to a public attribute that is set: for classes with slots.

    It costs an instance nothing but the time of making it, and needs no second name for each slot.

    Attributes:
        _way: What to do instead.
        _open: Names of attributes that may be assigned again, since they count.
    """

    __slots__ = ()
    _way: ClassVar[str]
    _open: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and name not in self._open and hasattr(self, name):
            raise _settled(self, name, "assign to", self._way)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> NoReturn:
        raise _settled(self, name, "delete", self._way)


def settle(cls: type, way: str, *names: str) -> None:
    """Let a slot such as `_name` be read as `name`, and a property refuse assignments.

    For a class that is made for every call: a `__setattr__` would slow down all its slots.

    Args:
        cls: The class.
        way: What to do instead of an assignment.
        names: The public names.
    """

    def of_slot(name: str) -> property:
        def set_it(self: object, _value: object) -> NoReturn:
            raise _settled(self, name, "assign to", way)

        def delete_it(self: object) -> NoReturn:
            raise _settled(self, name, "delete", way)

        own = vars(cls).get(name)
        read = own.fget if isinstance(own, property) else vars(cls)[f"_{name}"].__get__
        return property(read, set_it, delete_it, own and own.__doc__)

    for name in names:
        setattr(cls, name, of_slot(name))


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - it is exported
else:

    def dataclass(*, frozen: bool, slots: bool, **options: bool) -> Callable[[type], type]:
        """Make a class a frozen dataclass with slots, none of whose bases is a dataclass.

        Args:
            frozen: True, as with the standard decorator.
            slots: True, as with the standard decorator.
            options: What else the standard decorator takes.
        """
        del frozen, slots
        return lambda written: _with_slots(written, options)


_MADE: Final = (
    "__dataclass_fields__",
    "__dataclass_params__",
    "__eq__",
    "__hash__",
    "__init__",
    "__match_args__",
    "__replace__",
    "__repr__",
    "__signature__",
)
"""What the standard decorator makes, by later versions of Python only, or so that it is found."""


# A descriptor that steps aside: the first look at `Point.__eq__` makes all methods and puts them in
# place of these.
class _Later:
    """Stand for what is made when it is asked for."""

    __slots__ = ("_make", "_name")

    def __init__(self, name: str, make: Callable[[], None]) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        self._make()
        return getattr(owner if instance is None else instance, self._name)


def _with_slots(written: type, options: dict[str, bool]) -> type:
    body = {
        name: value
        for name, value in vars(written).items()
        if name not in ("__dict__", "__weakref__")
    }
    # `__eq__` in the body has made it None, which the standard decorator takes for nothing said.
    missing = [name for name in _MADE if body.get(name) is None]

    # For `@dataclass(frozen=True, slots=True) class Point: x: int` the class that users have gets
    # its slot at once, and `_Later` for `__init__`, `__eq__` and the others. The first `Point(1)`
    # finds `_Later("__init__")`, which has `dataclasses` make the whole class once, aside, and
    # copies its methods over. Methods of our own would be less code, but differ from the standard
    # ones some day.
    def make() -> None:
        # From a class of its own, since the decorator changes it: two threads may come here.
        decorate: Any = dataclasses.dataclass(frozen=True, **options)
        whole: type = decorate(_class(written, dict(body)))
        for name in missing:
            if name in vars(whole):
                setattr(made, name, vars(whole)[name])
            else:
                with suppress(AttributeError):
                    delattr(made, name)

    fields = [name for name, hint in written.__annotations__.items() if "ClassVar" not in hint]
    made = _class(
        written,
        {
            "__setattr__": Immutable.__setattr__,
            "__delattr__": Immutable.__delattr__,
            "__getstate__": _get_state,
            "__setstate__": _set_state,
            **{name: value for name, value in body.items() if name not in fields},
            **{name: _Later(name, make) for name in missing},
            "__slots__": tuple(fields),
        },
    )
    return made


def _class(written: type, body: dict[str, object]) -> type:
    made = type(written)(written.__name__, written.__bases__, body)
    made.__qualname__ = written.__qualname__
    return made


def _get_state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def setters_of(cls: type) -> list[Any]:
    """Return what sets the slots of a class, in their order, whatever its `__setattr__` refuses.

    For an `__init__` that is called for every call or event: `object.__setattr__`, which that of a
    frozen dataclass goes by, takes twice as long as the slot itself.
    """
    return [vars(cls)[name].__set__ for name in vars(cls)["__slots__"]]


# A frozen dataclass pays for each field at construction, because it has to go around its own
# `__setattr__`. A value that is made on every call or turn is built as an instance of its open base
# instead, and becomes immutable by one change of class: a quarter of the time, the same promise.
# Without the GIL, a change of class stops all threads, unless Python sees that nobody else holds
# the object. Python 3.14 sees it of a local variable in a function that has no `try`.
class Frozen(Immutable):
    """Make the instances of a class with slots immutable, comparable, hashable and picklable.

    Equality, hash, representation and pickling go by the fields of the open base, in the order in
    which it annotates them.

    ```python
    class _PointFields:  # open for assignment
        x: int
        y: int
        __slots__ = tuple(__annotations__)


    class Point(Frozen, _PointFields):
        __slots__ = ()
    ```
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _unshown: ClassVar[frozenset[str]] = frozenset()
    """Fields that may hold what a model sent to a tool: a representation has only their size."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Frozen in cls.__bases__:  # a class derived further is a value of the same fields
            opened = [base for base in cls.__bases__ if base is not Frozen]
            cls._fields = tuple(name for base in opened for name in base.__annotations__)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self._fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frozen) or other.__class__ is not self.__class__:
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self._shown(name)}" for name in self._fields)
        return f"{type(self).__name__}({shown})"

    def _shown(self, name: str) -> str:
        from .json import size_of  # needs pydantic, which no exception does

        value = getattr(self, name)
        return size_of(value) if name in self._unshown else repr(value)

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self._values()))

    def __copy__(self) -> Self:
        return _restore(type(self), self._values())

    def _fill(self, values: Iterable[object]) -> None:
        for name, value in zip(self._fields, values, strict=True):
            object.__setattr__(self, name, value)


F = TypeVar("F", bound=Frozen)


def _restore(cls: type[F], values: Iterable[object]) -> F:
    made = object.__new__(cls)
    cls._fill(made, values)
    return made


def with_fields(value: F, **changed: object) -> F:
    """Return the same value with other fields, which are known to be right."""
    made = value.__copy__()
    for name, field in changed.items():
        object.__setattr__(made, name, field)
    return made
