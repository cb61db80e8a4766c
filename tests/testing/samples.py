"""The tools that the tests of the testing kit share: one toolset with every kind of argument."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import uuid
from typing import Annotated, Any, Literal

from pydantic import UUID4, AnyUrl, BaseModel, ConfigDict, Field, field_validator

from lutum_py import ToolDef, Toolset, tool, tool_fn


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    model_config = ConfigDict(extra="allow")
    kind: Literal["dog"]
    name: str = Field(min_length=2, max_length=5)


class Node(BaseModel):
    value: int
    children: list[Node] = []


@tool_fn
def forecast(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"{city}: sunny for {days} day(s)"


@tool_fn
async def shout(text: str) -> str:
    """Say a text louder."""
    return text.upper()


@tool_fn
def wipe(path: str) -> None:
    """Delete a file."""


@tool_fn
def mixed(
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]],
    color: Color,
    count: Literal[1, 2, 3] = 1,
    maybe: int | None = None,
    pair: tuple[int, str] = (1, "a"),
    tags: frozenset[str] = frozenset(),
    table: dict[str, float] | None = None,
    yes: bool = False,
) -> None:
    """Take containers and choices."""


@tool_fn
def ranges(
    above: Annotated[int, Field(gt=3, lt=10)],
    between: Annotated[float, Field(ge=0.5, lt=2)],
    sevens: Annotated[int, Field(multiple_of=7)],
    few: Annotated[list[int], Field(min_length=1, max_length=3)],
    word: Annotated[str, Field(pattern="^[a-z]+$")],
    long: Annotated[str, Field(min_length=3)],
    halves: Annotated[float, Field(multiple_of=0.5, ge=-3, le=3)] = 0.5,
) -> None:
    """Take bounded values."""


@tool_fn
def formats(
    moment: datetime.datetime,
    day: datetime.date,
    time: datetime.time,
    span: datetime.timedelta,
    id: uuid.UUID,
    address: AnyUrl,
    host: ipaddress.IPv4Address,
    random: UUID4,
    price: decimal.Decimal,
    data: bytes = b"",
) -> None:
    """Take texts of all formats."""


@tool_fn
def tree(node: Node) -> None:
    """Take a value that holds values like itself."""


@tool_fn
def anything(x: Any, y: int | str | list[int]) -> None:
    """Take nearly all there is."""


@tool_fn
def nothing() -> None:
    """Take nothing."""


class Small(Toolset):
    forecast = tool(forecast)
    wipe = tool(wipe, off=True)


class Every(Toolset):
    forecast = tool(forecast)
    mixed = tool(mixed)
    ranges = tool(ranges)
    formats = tool(formats)
    tree = tool(tree)
    anything = tool(anything)
    nothing = tool(nothing)


class EvenArgs(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def be_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number


SCHEMA_TOOL = ToolDef.from_json_schema(
    name="find-files",
    input_schema={
        "type": "object",
        "properties": {
            "where": {"type": "string", "minLength": 1},
            "depth": {"type": ["integer", "null"], "minimum": 0},
            "filters": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
        "required": ["where"],
        "additionalProperties": False,
    },
)
FromSchema = Toolset.from_definitions("FromSchema", [SCHEMA_TOOL])
