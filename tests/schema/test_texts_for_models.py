"""What an author writes down about a type reaches the schema, wherever Python lets it stand."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Required

from pydantic import AliasChoices, BaseModel, Field
from typing_extensions import Doc, TypedDict

from lutum_py import ToolInput, tool_fn
from tests.cases import over
from tests.declared import schema_of, spec_of

City = Annotated[str, "A city."]


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
