"""The law of faithful types: what is read of them, written and read again is the same."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

import pytest
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
    field_validator,
)
from pydantic_core import core_schema

from lutum_py import ToolInput, ToolMetadata, Toolset, tool, tool_fn
from lutum_py._schema.arguments import keeps_rest, replaced
from lutum_py._schema.read_back import is_faithful
from lutum_py.errors import ToolInputError
from tests.cases import over
from tests.private import NOTHING, Filler, same


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


# What is compared beside a text, where a value has parts that the text does not show.


class Shade(Enum):
    DARK = "dark"
    LIGHT = "light"


class Kept(BaseModel):
    name: str = "a"
    _seen: int = PrivateAttr(default=0)


@dataclass
class Noted:
    name: str = "a"


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_what_cannot_be_looked_through_is_not_the_same() -> None:
    """Neither what is nested too deeply, nor two members of one enumeration."""
    assert not same(nested(20_000), nested(20_000))
    assert not same(Shade.DARK, Shade.LIGHT)


def test_an_edit_keeps_the_rest_if_nothing_beside_the_text_changes() -> None:
    """Private attributes and what hangs on a dataclass count, although no text has them."""
    old, new = {"name": "a"}, {"name": "b"}
    seen = Kept(name="b")
    seen._seen = 1
    assert keeps_rest(Kept(), old, Kept(name="b"), new)
    assert not keeps_rest(Kept(), old, seen, new)
    hung = Noted("b")
    hung.__dict__["more"] = 1
    assert keeps_rest(Noted(), old, Noted("b"), new)
    assert not keeps_rest(Noted(), old, hung, new)
    assert keeps_rest(5, old, 6, new)
    assert keeps_rest({"name": "a"}, old, {"name": "b"}, new)


def test_a_value_without_members_is_replaced_whole() -> None:
    """There is nothing to put one by one."""
    assert replaced({"a": 1}, {"a": 1}, {}, {}) == {}


def test_a_value_beside_other_data_has_no_members_there() -> None:
    """A text that is no object says nothing of the fields, and neither does an odd key."""
    hung = Kept()
    hung.__dict__["more"] = 1
    odd: Any = {(1,): 2}
    filler = Filler(lambda owner, name: False)
    for value in (Kept(), Noted()):
        assert filler.filled(5, value, NOTHING) == 5
    assert filler.filled({"name": "a"}, hung, NOTHING) == {"name": "a"}
    assert filler.filled({"a": 1}, odd, NOTHING) == {"a": 1}


@pytest.mark.parametrize(
    "schema",
    [
        TypeAdapter(list).core_schema,
        TypeAdapter(dict).core_schema,
        core_schema.list_schema(),
        core_schema.dict_schema(),
    ],
)
def test_a_plain_container_is_faithful(schema: Any) -> None:
    """What it holds is of any type, and read as it is written."""
    assert is_faithful(schema)


# Inputs whose validators do more than to check.

READ: list[int] = []


class Whim(BaseModel):
    """A model of the author's whose second reading fails, or gives something else."""

    number: int

    @field_validator("number")
    @classmethod
    def seen(cls, number: int) -> int:
        READ.append(number)
        if number == 13 and len(READ) > 1:
            raise RuntimeError("not twice")
        return number + len(READ)


@tool_fn
def whims(whim: Whim, other: int = 1) -> int:
    """Take a whim."""
    return whim.number


class Whims(Toolset):
    whims = tool(whims)


def whim_call(number: int) -> Any:
    READ.clear()
    text = json.dumps({"whim": {"number": number}})
    return Whims.parse_tool_call(ToolMetadata(id="c1", name="whims", arguments=text))


def test_a_validator_that_raises_what_it_likes_proves_nothing() -> None:
    """What it raises on a second reading is no error of whoever looks."""
    call = whim_call(13)
    arguments = call.spec.arguments
    assert (
        arguments.proof(arguments.proposed(call.metadata.arguments, call.input), call.input) is None
    )


def test_an_edit_that_no_text_describes_is_read_as_it_was_typed() -> None:
    """It is shown with what was typed, since nothing more is known to survive."""
    call = whim_call(1)
    arguments = call.spec.arguments
    text = arguments.proposed(call.metadata.arguments, call.input)
    made, edited = arguments.edited(text, {"whim": {"number": 5}})
    assert (made.whim.number > 5, edited.data) == (True, {"whim": {"number": 5}})


def test_a_text_that_is_not_json_describes_what_was_read_of_it() -> None:
    """A NaN in what is ignored, perhaps: then the value is written out."""
    call = whim_call(1)
    arguments = call.spec.arguments
    assert arguments.proposed("{", call.input) == arguments.whole(call.input)


def test_an_input_is_taken_without_one_before() -> None:
    """Only what is written of it is tried then, and it has to give the same."""
    call = whim_call(1)
    with pytest.raises(ValueError, match="whim"):
        call.spec.arguments.take(call.input)


def test_what_has_no_form_is_not_taken() -> None:
    """An object in a field of any type has no text."""

    @tool_fn
    def keep(value: Any, whim: Whim | None = None) -> None:
        """Keep anything."""

    class Keeps(Toolset):
        keep_ = tool(keep)

    call: Any = Keeps.parse_tool_call(ToolMetadata(id="c1", name="keep", arguments='{"value":1}'))
    with pytest.raises(ValueError, match="unknown type"):
        call.spec.arguments.take({"value": object()})


class Named(ToolInput[str]):
    name: str


class Called(Named):
    """The same under another name."""


def test_an_instance_of_a_subclass_is_checked_as_an_input_of_the_tool() -> None:
    """The tool gets its own class, whatever class a program made the instance of."""

    class Names(Toolset):
        call = tool(Named)

    arguments: Any = Names.call.spec.arguments
    checked = arguments.check(Called(name="a"))
    assert (type(checked), checked.name) == (Named, "a")


class Tags(RootModel[list[str]]):
    """Texts."""


@tool_fn
def label(tags: Tags, key: SecretStr | None = None, more: Any = None) -> None:
    """Label something."""


class Labels(Toolset):
    label = tool(label)


def test_a_root_model_is_checked_through_what_it_holds() -> None:
    """One that was made without validation is refused as if it had come over the wire."""
    metadata = ToolMetadata(id="c1", name="label", arguments='{"tags":["a"]}')
    call = Labels.parse_tool_call(metadata)
    odd: Any = [1]
    with pytest.raises(ToolInputError, match=r"`tags\[0\]`: Input should be a valid string"):
        call.input = {"tags": Tags.model_construct(root=odd)}
    call.input = {"tags": Tags(["b"])}
    assert call.input == label.Input(tags=Tags(["b"]))


def test_what_no_schema_knows_is_masked_beside_a_secret() -> None:
    """It may be the secret under another name."""
    call: Any = Labels.parse_tool_call(
        ToolMetadata(id="c1", name="label", arguments='{"tags":[],"key":"k"}')
    )
    masked = call.spec.arguments.masking.masked({"tags": ["a"], "key": "k", "keys": "k"})
    assert masked == {"tags": ["a"], "key": "**********", "keys": "**********"}


def test_a_call_that_was_made_of_an_odd_input_has_no_digest() -> None:
    """Nobody could be shown what it runs with; of a tool with secrets the reason hides it."""
    odd = label.Input.model_construct(tags=Tags([]), more=object())
    metadata = ToolMetadata(id="c1", name="label", arguments='{"tags":[]}')
    with pytest.raises(ToolInputError, match="its text is hidden"):
        _ = Labels.label.Call(metadata, odd).digest

    @tool_fn
    def keep(value: Any) -> None:
        """Keep anything."""

    made: Any = keep.Input.model_construct(value=object())
    metadata = ToolMetadata(id="c1", name="keep", arguments='{"value":1}')
    with pytest.raises(ToolInputError, match="Unable to serialize unknown type"):
        _ = keep.Call(metadata, made).digest
