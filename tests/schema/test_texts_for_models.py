"""What an author writes down about a type reaches the schema, wherever Python lets it stand."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Required, TypeVar

import pytest
from pydantic import AliasChoices, BaseModel, Field, WithJsonSchema
from pydantic_core import core_schema
from typing_extensions import Doc, TypeAliasType, TypedDict

from lutum_py import ToolInput, tool_fn
from lutum_py._schema.inner_texts import hints_of
from tests.cases import over
from tests.declared import schema_of, spec_of

City = Annotated[str, "A city."]
T = TypeVar("T")


class Row(TypedDict):
    city: Annotated[str, "A city."]
    day: NotRequired[Annotated[int, Doc("A day.")]]
    hour: Required[Annotated[int, "An hour."]]
    named: Annotated[int, Field(alias="n"), "A name."]


class Model(BaseModel):
    city: City
    day: Annotated[int, Doc("A day.")] = 1
    hour: Annotated[int | None, "An hour."] = None
    named: Annotated[int, Doc("A name.")] = Field(validation_alias=AliasChoices("n", "name"))


@dataclass
class Line:
    city: Annotated[str, "A city."]
    named: Annotated[int, Field(alias="n"), Doc("A name.")]
    day: Annotated[int, "A day."] = 1
    hour: Annotated[int, Doc("An hour.")] = 2


class Inherited(Model):
    more: int = 0


class Args(ToolInput[int]):
    """Do it."""

    city: Annotated[str, Doc("A city.")]
    day: Annotated[int, "A day."]
    hour: Annotated[int, "Not this one.", Field(description="An hour.")]
    named: Annotated[int, "A name."] = Field(alias="n")


WANTED = {"city": "A city.", "day": "A day.", "hour": "An hour.", "n": "A name."}


def texts(schema: Any) -> dict[str, str]:
    described = {name: part.get("description") for name, part in schema["properties"].items()}
    return {name: text for name, text in described.items() if text is not None}


@over("kind", [Row, Model, Line, Inherited])
def test_texts_in_annotations_describe_fields(kind: Any) -> None:
    """A text or a `Doc` in an annotation describes the field, at the top and below it."""

    def whole(it: Any) -> None: ...

    def inner(it: Any, other: int = 0) -> None: ...

    def gives() -> Any: ...

    whole.__annotations__["it"] = inner.__annotations__["it"] = kind
    gives.__annotations__["return"] = list[kind]
    assert texts(schema_of(tool_fn(whole))) == WANTED
    below = schema_of(tool_fn(inner))["$defs"][kind.__name__]
    assert texts(below) == WANTED
    output = spec_of(tool_fn(gives)).definition.output_schema
    found = texts(output["$defs"][kind.__name__])
    assert {**found, "n": found.get("n", found.get("named"))}.items() >= WANTED.items()


def test_texts_describe_the_fields_of_an_input_and_parameters() -> None:
    """The same holds for `ToolInput` and for parameters."""
    assert texts(schema_of(Args)) == WANTED

    def use(
        city: Annotated[str, Doc("A city.")],
        day: Annotated[int, "A day."],
        hour: Annotated[int, Doc("An hour.")] | None = None,
        n: Annotated[list[int], Doc("A name.")] = [],  # noqa: B006
    ) -> None: ...

    assert texts(schema_of(tool_fn(use))) == WANTED


class Query(BaseModel):
    """What to look for."""

    text: str


@dataclass
class Plain:
    text: str


def test_the_docstring_of_a_class_that_is_the_input_is_told() -> None:
    """It describes the tool where the function has no words, and its input where it has."""

    def find(query: Query) -> None: ...

    def look(query: Query) -> None:
        """Look around."""

    def scan(query: Plain) -> None: ...

    assert tool_fn(find).definition.description == "What to look for."
    assert "description" not in schema_of(tool_fn(find))
    assert tool_fn(look).definition.description == "Look around."
    assert schema_of(tool_fn(look))["description"] == "What to look for."
    assert tool_fn(description="")(find).definition.description == ""
    assert tool_fn(scan).definition.description == ""
    assert "description" not in schema_of(tool_fn(scan))


@over(
    "kind",
    [
        Annotated[int, Field(description="How many.")],
        Annotated[Query, "How many."],
        Annotated[list[Query], Doc("How many.")],
        Annotated[str, Field(description="How many.")] | None,
    ],
)
def test_what_a_return_annotation_says_is_told(kind: Any) -> None:
    """The output schema has the words of the annotation."""

    def give() -> Any: ...

    give.__annotations__["return"] = kind
    assert spec_of(tool_fn(give)).definition.output_schema["description"] == "How many."


class Color(enum.Enum):
    """A color of paint."""

    RED = "red"
    """Warm."""
    BLUE = ("blue", 1)
    "Cold."
    GREY = 3
    _ignored = "x"

    def __init__(self, *_: Any) -> None:
        if self.name == "GREY":
            self.__doc__ = "Neither."


class Bare(enum.Enum):
    A = 1


def test_docs_of_members_are_told() -> None:
    """What stands under a member, or is its docstring, is in the schema of the enum."""

    def paint(color: Color, bare: Bare) -> Color: ...  # type: ignore[empty-body]

    schema = schema_of(tool_fn(paint))
    text = 'A color of paint.\n- "red": Warm.\n- ["blue",1]: Cold.\n- 3: Neither.'
    assert schema["$defs"]["Color"]["description"] == text
    assert "description" not in schema["$defs"]["Bare"]
    assert spec_of(tool_fn(paint)).definition.output_schema["description"] == text


class Stop(NamedTuple):
    """Where a train stops."""

    city: Annotated[str, "A city."]
    hour: int = 0
    """An hour."""
    days: list[Annotated[str, "A day."]] = []  # noqa: RUF012 - a tool gets its own


class Pair(NamedTuple):
    left: int
    right: Annotated[list[int], "The right ones."]


Days = TypeAliasType("Days", list[Annotated[str, "A day."]])
Tree = TypeAliasType("Tree", "dict[str, Tree | Annotated[int, 'A leaf.']]")


class Held(BaseModel):
    it: dict[str, Annotated[int, "An item."]]


@dataclass
class HeldLine:
    it: tuple[Annotated[int, "An item."], ...]


class HeldRow(TypedDict):
    it: Required[Annotated[set[Annotated[int, "An item."]], "All of it."]]


class HeldArgs(ToolInput[int]):
    """Do it."""

    it: Sequence[Annotated[int, Doc("An item.")]]


INSIDE: dict[str, tuple[Any, list[str]]] = {
    "a list": (list[Annotated[str, "A day."]], ["A day."]),
    "a list of lists": (list[list[Annotated[str, Doc("A day.")]]], ["A day."]),
    "a list or nothing": (list[Annotated[int | None, "A day."]] | None, ["A day."]),
    "a list or a dict": (
        list[Annotated[int, "A day."]] | dict[str, Annotated[int, "An hour."]],
        ["A day.", "An hour."],
    ),
    "a dict": (
        dict[Annotated[str, "A key."], Annotated[int, "An hour."]],
        ["A key.", "An hour."],
    ),
    "a tuple": (
        tuple[Annotated[int, "First."], Annotated[list[Annotated[int, "In it."]], "Second."]],
        ["First.", "In it.", "Second."],
    ),
    "an alias": (dict[str, Days], ["A day."]),
    "an alias that holds itself": (list[Tree], ["A leaf."]),
    "a frozen set": (frozenset[Annotated[str, "A day."]], ["A day."]),
    "a named tuple": (Stop, ["Where a train stops.", "A city.", "An hour.", "A day."]),
    "a list of named tuples": (list[Pair], ["The right ones."]),
    "a model": (list[Held], ["An item."]),
    "a dataclass": (list[HeldLine], ["An item."]),
    "a typed dict": (list[HeldRow], ["All of it.", "An item."]),
    "a choice": (list[Literal["A day.", "An hour."]], []),
}


def said_in(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [text for part in schema for text in said_in(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["description"]] if isinstance(schema.get("description"), str) else []
    return own + [text for key in schema if key != "description" for text in said_in(schema[key])]


@over("kind, wanted", INSIDE.values())
def test_texts_inside_containers_reach_the_schema(kind: Any, wanted: list[str]) -> None:
    def take(it: Any) -> Any:
        """Do it."""
        return it

    take.__annotations__ |= {"it": kind, "return": kind}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tool = tool_fn(take)
        schema = schema_of(tool)
        told = spec_of(tool).definition.output_schema
    assert sorted(said_in(schema)) == sorted(wanted)
    assert sorted(said_in(told)) == sorted(wanted)


def test_texts_inside_containers_of_an_input_reach_the_schema() -> None:
    assert said_in(schema_of(HeldArgs)) == ["An item."]


class Later(BaseModel):
    """What nobody reads: its fields are told by a schema of its own."""

    it: Annotated[list[Annotated[int, "Lost."]], WithJsonSchema({"type": "array"})]


@dataclass
class Box(Generic[T]):
    it: T


LOST: dict[str, Any] = {
    "a schema by hand": Later,
    "an item of a schema by hand": list[
        Annotated[list[Annotated[int, "Lost."]], WithJsonSchema({"type": "array"})]
    ],
    "members that are one": list[Annotated[int, "Lost."]] | list[int],
    "a generic class": Box[Annotated[int, "Lost."]],
}


@over("kind", LOST.values())
def test_texts_without_a_place_in_the_schema_are_warned_of(kind: Any) -> None:
    def take(it: Any, other: int = 0) -> None:
        """Do it."""

    take.__annotations__["it"] = kind
    with pytest.warns(UserWarning, match=r"'Lost\.' .* no place"):
        schema_of(tool_fn(take))


class Fraction:
    """A fraction that pydantic makes by a call."""

    def __init__(self, over: int) -> None:
        self.over = over

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        over = core_schema.arguments_parameter("over", core_schema.int_schema())
        return core_schema.call_schema(core_schema.arguments_schema([over]), cls)


def test_what_is_made_by_a_call_has_the_schema_of_its_arguments() -> None:
    """Of a call that makes no named tuple, nothing is described but its arguments."""

    @tool_fn
    def share(part: Fraction) -> str:
        return ""

    assert "description" not in share.definition.input_schema["properties"]["part"]


def test_annotations_that_nobody_can_read_describe_nothing() -> None:
    """A class whose annotations name what is gone has no texts to give."""

    class Place:
        __annotations__ = {"x": "Gone"}

    assert hints_of(Place) == {}
