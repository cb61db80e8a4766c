"""The law of our dataclasses: they are those of the standard library, made later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from lutum_py._text.immutable import Frozen, dataclass
from tests.cases import over
from tests.test_threads import ROUNDS, at_once

T = TypeVar("T")


def declared(decorator: Any) -> dict[str, type]:
    """The same classes under one decorator or the other."""

    @decorator(frozen=True, slots=True)
    class Plain(Generic[T]):
        """Has a field of each kind."""

        kinds: ClassVar[int] = 2

        first: int
        second: list[T] = dataclasses.field(default_factory=list[T])
        note: str | None = dataclasses.field(default=None, compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("negative")

        def doubled(self) -> int:
            return self.first * self.kinds

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        """Takes names only."""

        first: int
        second: tuple[int, ...] = ()

        def __repr__(self) -> str:
            return "<named>"

    @decorator(frozen=True, slots=True, eq=False)
    class Single:
        """Is equal to itself alone."""

        first: int

    @decorator(frozen=True, slots=True, init=False)
    class Written:  # noqa: PLW1641 - the decorator makes it
        """Writes its own start and comparison."""

        first: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "first", int(text))

        def __eq__(self, other: object) -> bool:
            return True

    return {each.__name__: each for each in (Plain, Named, Single, Written)}


def said(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (AttributeError, TypeError, ValueError) as error:
        return type(error).__name__


ASKED: dict[str, Callable[[Any], object]] = {
    "equal": lambda c: [c["Plain"](1, [2]) == c["Plain"](1, [2], "x"), c["Plain"](1) == 1],
    "not equal": lambda c: c["Plain"](1, [2]) != c["Plain"](1, [3]),
    "alone": lambda c: c["Single"](1) == c["Single"](1),
    "alone hashed": lambda c: len({c["Single"](1), c["Single"](1)}),
    "hash": lambda c: hash(c["Named"](first=1)) == hash(c["Named"](first=1)),
    "no hash": lambda c: hash(c["Plain"](1)),
    "own equality": lambda c: bool(c["Written"]("1") == 5),
    "own equality hashed": lambda c: hash(c["Written"]("1")) == hash(c["Written"]("1")),
    "shown": lambda c: repr(c["Plain"](1)).rpartition(".")[2],
    "own text": lambda c: repr(c["Named"](first=1)),
    "start": lambda c: inspect.signature(c["Plain"]),
    "start by name": lambda c: inspect.signature(c["Named"]),
    "own start": lambda c: inspect.signature(c["Written"]),
    "missing": lambda c: c["Plain"](),
    "refused": lambda c: c["Plain"](-1),
    "by position": lambda c: c["Named"](1),
    "is one": lambda c: [dataclasses.is_dataclass(each) for each in c.values()],
    "fields": lambda c: [
        (each.name, each.compare, each.kw_only) for each in dataclasses.fields(c["Plain"])
    ],
    "as dict": lambda c: dataclasses.asdict(c["Plain"](1, [2])),
    "replaced": lambda c: dataclasses.replace(c["Plain"](1), first=3).first,
    "method": lambda c: c["Plain"](4).doubled(),
    "matched": lambda c: [each.__match_args__ for each in c.values()],
    "slots": lambda c: [each.__slots__ for each in c.values()],
    "no dict": lambda c: hasattr(c["Plain"](1), "__dict__"),
    "defaults": lambda c: [hasattr(c["Plain"], name) for name in ("first", "second", "kinds")],
    "copied": lambda c: copy.copy(c["Plain"](1, [2])) == c["Plain"](1, [2]),
    "state": lambda c: c["Plain"](1, [2]).__getstate__(),
    "replaced by the language": lambda c: hasattr(c["Plain"], "__replace__"),
    "documented": lambda c: [each.__doc__ for each in c.values()],
    "named": lambda c: [each.__qualname__.rpartition(".")[2] for each in c.values()],
}


@over("question", ASKED)
def test_a_dataclass_is_like_that_of_the_standard_library(question: str) -> None:
    """Whatever is asked of one first, the answer is that of the standard decorator."""
    ask = ASKED[question]
    standard = said(lambda: ask(declared(dataclasses.dataclass)))
    assert said(lambda: ask(declared(dataclass))) == standard


def test_what_later_versions_make_is_there_with_them_only() -> None:
    """A name that the standard decorator does not make is not there, however often it is asked."""
    kind: Any = declared(dataclass)["Plain"]
    for _ in range(2):
        assert hasattr(kind, "__replace__") is (sys.version_info >= (3, 13))


@dataclass(frozen=True, slots=True)
class Kept:
    """Can be found by pickle."""

    first: int


def test_a_dataclass_is_pickled_before_anything_else_is_asked() -> None:
    """The bytes of one that was just made give an equal one."""
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_a_dataclass_refuses_changes() -> None:
    """Nothing sets or deletes a field."""
    kept: Any = Kept(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="a Kept is immutable"):
        kept.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="a Kept is immutable"):
        del kept.first


def test_two_threads_may_ask_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that is completed while it is being completed is complete."""
    kind: Any = declared(dataclass)["Plain"]
    standard = dataclasses.dataclass
    asked: list[object] = []

    def meanwhile(**options: Any) -> Any:
        monkeypatch.setattr(dataclasses, "dataclass", standard)
        asked.append(kind(7))
        return standard(**options)

    monkeypatch.setattr(dataclasses, "dataclass", meanwhile)
    assert [kind(7, note="x")] == asked
    assert kind(7).note is None


def test_a_class_without_fields_is_frozen_too() -> None:
    """The base makes any class with slots immutable."""

    class Unit(Frozen):
        __slots__ = ()

    assert Unit() == Unit()
    assert repr(Unit()) == "Unit()"


def test_values_may_be_made_at_once() -> None:
    """Threads that are the first to use a value's class make equal values of it."""
    for _ in range(ROUNDS):

        @dataclass(frozen=True, slots=True)
        class Pair:
            left: int
            right: str = "r"

        def use(kind: Any = Pair) -> tuple[object, ...]:
            made = kind(1)
            return made, hash(made), repr(made), dataclasses.replace(made, left=2)

        assert set(at_once(use)) == {use()}
