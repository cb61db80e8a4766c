"""The laws of values whose class makes them immutable: equal, frozen, and made by any thread."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from lutum_py._text.immutable import Frozen
from tests.test_threads import ROUNDS, at_once


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
