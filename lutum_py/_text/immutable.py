"""Values that refuse to be changed, and cost little to make."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, NoReturn, Self


class Immutable:
    """Make the instances of a class refuse assignments."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(
            f"cannot assign to {name!r}: a {type(self).__name__} is immutable"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name!r}: a {type(self).__name__} is immutable")

    def _put(self, **values: Any) -> None:
        """Set attributes all the same, as only the class itself does."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


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

    def _values(self) -> tuple[Any, ...]:
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

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self._values()))

    def _fill(self, values: tuple[Any, ...]) -> None:
        for name, value in zip(self._fields, values, strict=True):
            object.__setattr__(self, name, value)

    def _but(self, **changed: Any) -> Self:
        """Return the same value with other fields, which are known to be right."""
        made = object.__new__(type(self))
        made._fill(tuple(changed.get(name, getattr(self, name)) for name in self._fields))
        return made


def _restore(cls: type[Frozen], values: tuple[Any, ...]) -> Frozen:
    made: Frozen = object.__new__(cls)
    made._fill(values)
    return made
