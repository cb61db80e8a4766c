"""The law of faithful types: what is read of them, written and read again is the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FutureDate,
    Json,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    SecretStr,
    StringConstraints,
    TypeAdapter,
)

from lutum_py._schema.faithful import is_faithful
from tests.cases import over


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(Enum):
    ONE = 1
    TRUE = True
    TWO = (2,)


class Plain(BaseModel):
    name: str = "x"
    at: datetime | None = None
    tags: list[str] = Field(default_factory=list)
    more: dict[str, Any] = {}
    color: Color = Color.RED


class Tree(BaseModel):
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Derived:
    x: int
    y: int = field(init=False, default=0)


class Posted(BaseModel):
    x: int

    def model_post_init(self, context: Any, /) -> None:
        self.x += 1


class Hidden(BaseModel):
    x: int = Field(exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Private(BaseModel):
    x: int
    _y: int = PrivateAttr(default=0)


FAITHFUL: list[Any] = [
    int, str, float, bool, None, Any, datetime, date, time, timedelta, UUID, Decimal, Color,
    list[int], dict[int, str], tuple[int, str], set[str], frozenset[int], int | None, int | str,
    Literal["a", 1], Plain, Tree, Point, list[Plain],
    Annotated[Cat | Dog, Discriminator("kind")],
]  # fmt: skip

UNFAITHFUL: list[Any] = [
    Annotated[int, AfterValidator(abs)], Annotated[int, PlainSerializer(str)], Json[int],
    SecretStr, FutureDate, bytes, Mixed, int | float, str | datetime, Cat | Dog, Literal[1, True],
    Annotated[str, StringConstraints(strip_whitespace=True)], Derived, Posted, Hidden, Open,
    Private, RootModel[int], set[float], dict[float, int],
    Annotated[Decimal, Field(allow_inf_nan=True)],
]  # fmt: skip


def with_default(kind: Any, default: Any = ..., **options: Any) -> Any:
    body = {"__annotations__": {"a": kind}, "a": Field(default, **options)}
    return type("Made", (BaseModel,), body)


def of(kind: Any) -> bool:
    return is_faithful(TypeAdapter(kind).core_schema)


@over("kind", FAITHFUL)
def test_a_type_without_code_of_its_own_is_faithful(kind: Any) -> None:
    """Plain JSON types, times, ids, enums of scalars, and models of these."""
    assert of(kind)


@over("kind", UNFAITHFUL)
def test_what_runs_code_or_shares_its_form_is_not(kind: Any) -> None:
    """A second reading of it may give another value."""
    assert not of(kind)


@over("made, known", [
    (with_default(int, 1), True),
    (with_default(int, "1"), False),
    (with_default(float, 1), False),
    (with_default(float, math.inf), True),
    (with_default(datetime, datetime(2026, 1, 1, tzinfo=UTC)), False),
    (with_default(list[int], [1]), False),
    (with_default(list[int], []), True),
    (with_default(tuple[int, ...], ()), True),
    (with_default(Color, Color.BLUE), True),
    (with_default(Color, "blue"), False),
    (with_default(UUID, default_factory=uuid4), False),
    (with_default(dict[str, int], default_factory=dict), True),
    (with_default(int, alias="b"), True),
    (with_default(int, validation_alias="b"), False),
    (with_default(int, validation_alias=AliasPath("b", 0)), False),
])  # fmt: skip
def test_a_default_has_to_be_read_again_as_it_is(made: Any, known: bool) -> None:
    """Pydantic does not check it, so it may be anything."""
    assert of(made) is known
