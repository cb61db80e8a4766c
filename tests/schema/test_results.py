"""What a result contains fits the output schema of its tool, and is read back as an equal value."""

from __future__ import annotations

import datetime as dt
import enum
import json
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pytest
from jsonschema import Draft202012Validator
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    RootModel,
    SecretStr,
    WrapSerializer,
    computed_field,
    field_serializer,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as checked_dataclass
from typing_extensions import TypedDict

from lutum_py import (
    ResumeMode,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import ToolOutputError
from tests.cases import over
from tests.declared import call_of, spec_of
from tests.round_tools import close, opened

T = TypeVar("T")


class Named(BaseModel):
    item_id: int = Field(alias="itemId")


class Written(BaseModel):
    model_config = ConfigDict(extra="forbid")
    item_id: int = Field(serialization_alias="itemId")


class Both(BaseModel):
    item_id: int = Field(validation_alias="in", serialization_alias="out")


class Chosen(BaseModel):
    item_id: int = Field(validation_alias=AliasChoices(AliasPath("a", 0), "itemId"))


class Crossed(BaseModel):
    a: int = Field(serialization_alias="b")
    b: int = Field(serialization_alias="a")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    item_id: int
    sub_items: list[Named] = []


class ByAlias(Named):
    model_config = ConfigDict(serialize_by_alias=True)


class ByName(Named):
    model_config = ConfigDict(serialize_by_alias=False)


@dataclass
class Line:
    item_id: Annotated[int, Field(alias="itemId")]
    count: Annotated[int, Field(serialization_alias="n")] = 1
    total: int = field(init=False, default=3)


@checked_dataclass
class Checked:
    item_id: int = Field(default=0, alias="itemId")


class Row(TypedDict):
    item_id: Annotated[int, Field(alias="itemId")]


class WrittenRow(TypedDict):
    item_id: Annotated[int, Field(serialization_alias="itemId")]


class Pair(NamedTuple):
    first: Named
    day: dt.date


class Page(BaseModel, Generic[T]):
    the_items: list[T] = Field(alias="theItems")


class Listed(RootModel[dict[str, Named]]):
    pass


class Tree(BaseModel):
    sub_trees: list[Tree] = Field(default=[], serialization_alias="subTrees")


class Summed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    amount: int

    @computed_field(alias="twiceIt")  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.amount


class OpenSum(Summed):
    model_config = ConfigDict(extra="allow")


class Partial(BaseModel):
    shown: int
    kept: int = Field(default=0, exclude=True)
    maybe: int = Field(default=0, exclude_if=lambda value: value == 0)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    nine_lives: bool = Field(alias="nineLives")


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    nine_lives: bool = Field(alias="nineLives")


class Color(enum.Enum):
    RED = "red"
    POINT = (1, 2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Worded(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    value: float
    more: list[float] = []


class Encoded(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", ser_json_timedelta="float")
    raw: bytes
    took: dt.timedelta = dt.timedelta(seconds=1.5)


class Ticks(BaseModel):
    model_config = ConfigDict(ser_json_temporal="milliseconds")
    at: dt.datetime


class AsText(BaseModel):
    amount: int

    @field_serializer("amount")
    def _text(self, value: int) -> str:
        return str(value)


class Untold(BaseModel):
    amount: int
    rate: Annotated[float, WrapSerializer(lambda value, write: str(write(value)))] = 0.5

    @field_serializer("amount")
    def _text(self, value: int):  # type: ignore[no-untyped-def]
        return str(value)


class Flat(BaseModel):
    amount: int

    @model_serializer(mode="wrap")
    def _write(self, write: Any):  # type: ignore[no-untyped-def]
        return {**write(self), "amount": str(self.amount)}


class Parsed(BaseModel):
    held: Json[list[int]]


class Maybe(BaseModel):
    rate: Annotated[int | None, PlainSerializer(str, return_type=str, when_used="unless-none")]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
NAMED, DOG = Named(itemId=1), Dog(nineLives=False)
FITS: list[tuple[Any, Any]] = [
    (Named, NAMED),
    (Written, Written(item_id=1)),
    (Both, Both.model_validate({"in": 1})),
    (Chosen, Chosen.model_validate({"itemId": 1})),
    (Crossed, Crossed(a=1, b=2)),
    (Camel, Camel.model_validate({"itemId": 1, "subItems": [NAMED]})),
    (ByAlias, ByAlias(itemId=1)),
    (ByName, ByName(itemId=1)),
    (Line, Line(1, 2)),
    (Checked, Checked(itemId=3)),
    (Row, {"item_id": 1}),
    (WrittenRow, {"item_id": 1}),
    (Pair, Pair(NAMED, dt.date(2020, 1, 2))),
    (Page[int], Page[int](theItems=[1])),
    (Page[Line], Page[Line](theItems=[Line(1)])),
    (Page[WrittenRow], Page[WrittenRow](theItems=[{"item_id": 1}])),
    (Listed, Listed({"a": NAMED})),
    (Tree, Tree(sub_trees=[Tree(), Tree(sub_trees=[Tree()])])),
    (Summed, Summed(amount=2)),
    (OpenSum, OpenSum.model_validate({"amount": 2, "other": 3})),
    (Partial, Partial(shown=1)),
    (Partial, Partial(shown=1, maybe=2)),
    (Pet, DOG),
    (Cat | Dog, DOG),
    (dict[str, list[Pet]], {"all": [DOG, Cat(nineLives=True)]}),
    (Color, Color.RED),
    (list[Color], [Color.POINT, Color.RED]),
    (Access, Access.READ | Access.WRITE),
    (Mode | None, Mode.READ | Mode.WRITE),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("1E+30")),
    (Annotated[Decimal, Field(allow_inf_nan=True)], Decimal("-Infinity")),
    (dt.timedelta, dt.timedelta(days=-3, microseconds=7)),
    (dt.datetime, dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
    (uuid.UUID, uuid.UUID(int=7)),
    (PurePosixPath, PurePosixPath("/a/b")),
    (bytes, b"ab"),
    (set[int], {1, 2}),
    (frozenset[Color], frozenset(Color)),
    (Worded, Worded(value=float("inf"), more=[1.5, float("-inf")])),
    (Encoded, Encoded(raw=b"\xff\xfe\xfb")),
    (Ticks, Ticks(at=dt.datetime.fromtimestamp(100, dt.UTC))),
    (AsText, AsText(amount=1)),
    (Untold, Untold(amount=1)),
    (Flat, Flat(amount=1)),
    (Parsed, Parsed.model_validate({"held": "[1]"})),
    (Maybe, Maybe(rate=None)),
    (dict[int, Named], {1: NAMED}),
    (tuple[Named, int], (NAMED, 2)),
]


@over("kind, value", FITS)
def test_a_result_fits_its_schema_and_reads_back(kind: Any, value: Any) -> None:
    """A result validates against its tool's output schema, and reads back as an equal value."""

    def give() -> Any:
        return value

    give.__annotations__["return"] = kind
    made = tool_fn(give)
    text = call_of(made).call_sync().result
    spec = spec_of(made)
    schema = spec.definition.output_schema
    assert schema is not None
    Draft202012Validator(schema).validate(json.loads(text))
    back = spec.output.validate_json(text)
    assert back == value
    assert type(back) is type(value)


class Vault(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    pin_code: SecretStr


@over("kind", [None, Any, dict[str, Any], Camel])
def test_nested_and_undeclared_values_have_the_same_names(kind: Any) -> None:
    """A model is written under the same names wherever it stands, declared or not."""
    value = Camel.model_validate({"itemId": 1, "subItems": [NAMED]})

    def give() -> Any:
        return {"a": value} if kind == dict[str, Any] else value

    give.__annotations__["return"] = kind
    if kind is None:
        del give.__annotations__["return"]
    found = call_of(tool_fn(give)).call_sync().output
    assert found.get("a", found) == {"itemId": 1, "subItems": [{"itemId": 1}]}


def test_a_masked_output_has_the_names_of_its_schema() -> None:
    """A secret in an output is masked under the name that the schema has."""

    @tool_fn
    def vault() -> Vault:
        """Open it."""
        return Vault.model_validate({"pinCode": "1234"})

    text = call_of(vault).call_sync().result
    schema = spec_of(vault).definition.output_schema
    assert text == '{"pinCode":"**********"}'
    Draft202012Validator(schema or {}).validate(json.loads(text))


@tool_fn
def buy() -> list[Both]:
    """Buy something."""
    return []


class Shop(Toolset):
    buy = tool(buy)


@over("name", ["out", "in"])
def test_a_decision_stands_for_a_result_under_its_names(name: str) -> None:
    """What a person answers for a tool is read by the schema's names, and stays so when saved."""
    hooks = Shop.HookSet()
    ticket = SuspendTicket(resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT)
    hooks.gate(Shop.buy)(lambda metadata, input: Suspend(ticket))
    plan = opened(("c1", "buy", {}), toolset=Shop).apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve(result=[{name: 1}]))
    loaded: Any = Shop.load_plan(plan.dump_json())
    for each in (plan, loaded):
        assert each.handled[0].output == [Both.model_validate({"in": 1})]
        assert each.handled[0].result.output == [{"out": 1}]
    close(plan, loaded)


WEATHER = ToolDef.from_json_schema(
    name="weather",
    input_schema={"type": "object"},
    output_schema={"type": "object", "required": ["c"], "properties": {"c": {"type": "number"}}},
)


def test_outputs_of_definitions_are_checked() -> None:
    """An output of a tool with a declared schema fits it, whoever answers the call."""
    told = Toolset.from_definitions("Told", [WEATHER], functions={"weather": lambda args: args})
    good, bad = (
        told.parse_tool_call(ToolMetadata(id="c", name="weather", arguments=text))
        for text in ('{"c": 1.5}', '{"c": "warm"}')
    )
    assert good.call_sync().output == {"c": 1.5}
    with pytest.raises(ToolOutputError, match=r"weather.*`c`: 'warm' is not of type 'number'"):
        bad.call_sync()
    fresh = Toolset.from_definitions("Told", [WEATHER])
    call = fresh.parse_tool_call(ToolMetadata(id="c", name="weather", arguments="{}"))
    with pytest.raises(ToolOutputError, match="'c' is a required property"):
        call.complete({})
