"""Whatever an input schema names, a call may send: every `const`, `enum` and default."""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict

from lutum_py import ToolInput, tool_fn
from lutum_py.errors import InvalidArgumentsError, ToolDefinitionError
from tests.cases import over
from tests.declared import call_of, refusal, schema_of


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Shape(enum.Enum):
    POINT = (1, 2)
    NONE = ()


class Day(enum.Enum):
    FIRST = dt.date(2025, 1, 1)
    RAW = b"raw"


class Celsius(BaseModel):
    unit: Literal[Unit.CELSIUS]


class Kelvin(BaseModel):
    unit: Literal[Unit.KELVIN]
    of: Literal["air", b"water"] = "air"


Heat = Annotated[Celsius | Kelvin, Field(discriminator="unit")]


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    mode: Literal["a", "b"] = Field("a", alias="modeOf")


class Login(BaseModel):
    pin: SecretStr = SecretStr("1234")
    raw: SecretBytes = SecretBytes(b"\xff")
    when: dt.date = "2025-01-01"  # type: ignore[assignment]


class Nested(TypedDict, total=False):
    login: Login
    heat: Heat


@dataclass
class Plan:
    shape: Shape = Shape.POINT
    span: dt.timedelta = dt.timedelta(hours=3)


KINDS: list[Any] = [
    Unit,
    Shape,
    Day,
    Heat,
    list[Heat],
    Literal[Unit.CELSIUS, "raw", b"r"],
    Literal[b"r", "r"],
    dict[Literal["x"], Shape],
    ByName,
    Login,
    Nested,
    Plan,
    Annotated[Unit, Field(default=Unit.KELVIN)],
    Unit | Shape | None,
]


def follow(reference: str, root: Any) -> Any:
    """What a reference within a schema leads to."""
    part = root
    for step in reference.removeprefix("#/").split("/"):
        part = part[step]
    return part


def named(schema: Any, root: Any) -> Iterator[tuple[list[Any], bool]]:
    """Each value that a schema names, as arrays of one place."""
    if "$ref" in schema:
        yield from named(follow(schema["$ref"], root), root)
    yield schema.get("enum", [schema["const"]] if "const" in schema else []), True
    yield [schema["default"]] if "default" in schema else [], False


def values(schema: Any, root: Any) -> list[Any]:
    """Values that fit a schema, in which each value that it names stands once at least."""
    found = [each for group, _ in named(schema, root) for each in group]
    part = {**follow(schema["$ref"], root), **schema} if "$ref" in schema else schema
    for branch in [*part.get("anyOf", ()), *part.get("oneOf", ())]:
        found += values(branch, root)
    if part.get("type") == "null":
        found.append(None)
    if part.get("type") == "array":
        found += [[each] for each in values(part.get("items", {}), root)]
    if part.get("type") == "object" and "properties" not in part:
        keys = values(part.get("propertyNames", {"const": "k"}), root)
        found += [{keys[0]: each} for each in values(part.get("additionalProperties", {}), root)]
    if properties := part.get("properties"):
        each = {name: values(inner, root) for name, inner in properties.items()}
        least = {name: each[name][0] for name in part.get("required", ())}
        found += [{**least, name: one} for name, many in each.items() for one in many] or [least]
    return found


@over("kind", KINDS)
@pytest.mark.parametrize("strict", [False, True])
def test_every_value_that_a_schema_names_is_accepted(kind: Any, strict: bool) -> None:
    """Each `const`, `enum` and default of an input schema is read, at any depth, also strictly."""

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = kind
    made = tool_fn(strict=strict)(use)
    schema = schema_of(made)
    found = values(schema["properties"]["it"], schema)
    assert found
    for value in found:
        call_of(made, json.dumps({"it": value}))


def test_a_named_value_becomes_the_one_that_is_meant() -> None:
    """An enum's member comes of its JSON, and what JSON has itself comes before it."""

    def use(a: Literal["r", b"r"], b: Literal[Unit.KELVIN], c: Shape, d: Heat) -> None: ...

    use.__annotations__.update(a=Literal["r", b"r"], b=Literal[Unit.KELVIN], c=Shape, d=Heat)
    sent = {"a": "r", "b": "kelvin", "c": [1, 2], "d": {"unit": "kelvin", "of": "water"}}
    got = call_of(tool_fn(use), json.dumps(sent)).input
    assert (got.a, got.b, got.c) == ("r", Unit.KELVIN, Shape.POINT)
    assert got.d == Kelvin(unit=Unit.KELVIN, of=b"water")


def test_no_mask_is_offered_as_a_value() -> None:
    """A default that is secret is in no schema, and the tool gets it all the same."""

    def use(pin: Any = SecretStr("1234"), login: Any = Login()) -> None: ...  # noqa: B008

    use.__annotations__.update(pin=SecretStr, login=Login)
    made = tool_fn(use)
    assert "**" not in json.dumps(schema_of(made))
    assert call_of(made).input.pin.get_secret_value() == "1234"


class Upper(BaseModel):
    name: Annotated[str, AfterValidator(lambda text: text.upper()), WithJsonSchema({"enum": ["a"]})]


def refuse(_: Any) -> Any:
    raise ValueError("never")


class Never(BaseModel):
    name: Annotated[str, AfterValidator(refuse)] = Field(json_schema_extra={"enum": ["a"]})


@over(
    "kind",
    [Never, list[Never], Annotated[str, AfterValidator(refuse), WithJsonSchema({"const": 3})]],
)
def test_a_named_value_that_is_refused_is_found_at_declaration(kind: Any) -> None:
    """A schema that an author wrote by hand names what its type refuses: no tool comes of it."""

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = kind
    with pytest.raises(ToolDefinitionError, match=r"`it`.*names (3|'a').*refused"):
        tool_fn(use)


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (dt.date, "2025-01-01", dt.date(2025, 1, 1)),
    (Unit, "kelvin", Unit.KELVIN),
    (float, "1.5", 1.5),
    (list[dt.date], ["2025-01-01"], [dt.date(2025, 1, 1)]),
    (list[int], (), []),
    (Login, {"pin": "1"}, Login(pin=SecretStr("1"))),
    (SecretStr, "1234", SecretStr("1234")),
    (AnyUrl, "http://e.org", AnyUrl("http://e.org")),
    (int, 3, 3),
]


@over("kind, default, wanted", DEFAULTS)
def test_a_default_has_the_type_of_its_parameter(kind: Any, default: Any, wanted: Any) -> None:
    """A default is converted as what a model sends is, of parameters and at any depth."""

    def use(it: Any = default, other: int = 0) -> None: ...

    use.__annotations__["it"] = kind

    def also(it: Any, other: int = 0) -> None: ...

    also.__annotations__["it"] = Annotated[kind, Field(default=default)]
    body = {"__annotations__": {"it": kind}, "it": default}
    model: Any = type("Args", (ToolInput,), {**body, "__module__": __name__})
    below: Any = type("Below", (BaseModel,), {**body, "__module__": __name__})

    def whole(it: Any) -> None: ...

    whole.__annotations__["it"] = below

    def deep(it: Any, other: int = 0) -> None: ...

    deep.__annotations__["it"] = list[below]
    for made in (tool_fn(use), tool_fn(also), model, tool_fn(whole)):
        assert "required" not in schema_of(made)
        got = call_of(made).input.it
        assert (got, type(got)) == (wanted, type(wanted))
    (inner,) = call_of(tool_fn(deep), '{"it": [{}]}').input.it
    assert (inner.it, type(inner.it)) == (wanted, type(wanted))
    tool: Any = tool_fn(use)
    assert type(tool.Input().it) is type(wanted)


def cents(value: Any) -> Any:
    return value * 100


Cents = Annotated[int, AfterValidator(cents)]
Late = Annotated[int, AfterValidator(cents), Field(validate_default=True)]


@over(
    "kind, default, wanted",
    [
        (Cents, 3, 3),
        (Cents, "3", 300),
        (Late, 3, 300),
        (Late, "3", 300),
        (list[Cents], [3], [3]),
        (list[Cents], (3,), [300]),
        (dict[str, Cents], {"a": 3}, {"a": 3}),
        (set[Cents], {3}, {3}),
        (set[Cents], {"3"}, {300}),
        (tuple[dt.date, Cents], ("2025-01-01", 3), (dt.date(2025, 1, 1), 300)),
        (Annotated[float, AfterValidator(cents)], 3, 3),
        (int, 3.0, 3),
    ],
)
def test_a_default_is_validated_at_most_once(kind: Any, default: Any, wanted: Any) -> None:
    """One that is of its type stays as its author wrote it, whatever a validator would make of it.

    One of another type is validated once; where pydantic is told to validate it, by pydantic.
    """

    def use(it: Any = default, other: int = 0) -> None: ...

    use.__annotations__["it"] = kind
    body = {"__annotations__": {"it": kind}, "it": default, "__module__": __name__}
    for made in (tool_fn(use), type("Args", (ToolInput,), body)):
        got = call_of(made).input.it
        assert (got, type(got)) == (wanted, type(wanted))

    def deep(it: Any, other: int = 0) -> None: ...

    deep.__annotations__["it"] = list[type("Below", (BaseModel,), body)]  # type: ignore[misc]
    (inner,) = call_of(tool_fn(deep), '{"it": [{}]}').input.it
    assert inner.it == wanted


def test_a_class_that_validates_defaults_does_so_once() -> None:
    """What its config asks of pydantic is not done twice."""

    class Price(BaseModel):
        model_config = ConfigDict(validate_default=True)
        amount: Cents = "3"  # type: ignore[assignment]

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = Price
    assert call_of(tool_fn(use), '{"it": {}}').input.it.amount == 300


def test_a_converted_default_is_no_one_elses() -> None:
    """Each call gets a list of its own."""

    def use(days: Any = ("2025-01-01",)) -> None: ...

    use.__annotations__["days"] = list[dt.date]
    made = tool_fn(use)
    first, other = call_of(made).input, call_of(made).input
    assert first.days == other.days == [dt.date(2025, 1, 1)]
    assert first.days is not other.days


class Line(BaseModel):
    count: int
    model_config = ConfigDict(strict=False)


@dataclass
class Box:
    lines: list[Line]
    more: Line | None = None


class Order(TypedDict):
    box: Box
    count: int


class Chain(BaseModel):
    count: int
    below: Chain | None = None


STRICT: list[tuple[Any, str]] = [
    (Line, '{"count": "1"}'),
    (Box, '{"lines": [{"count": "1"}]}'),
    (Box, '{"lines": [], "more": {"count": 1.0}}'),
    (Order, '{"box": {"lines": [{"count": "1"}]}, "count": 1}'),
    (Order, '{"box": {"lines": []}, "count": "1"}'),
    (dict[str, list[Line]], '{"a": [{"count": true}]}'),
    (Chain, '{"count": 1, "below": {"count": 1, "below": {"count": "1"}}}'),
]


@over("kind, text", STRICT)
@pytest.mark.parametrize("whole", [False, True])
def test_strict_reaches_every_level(kind: Any, text: str, whole: bool) -> None:
    """With `strict=True` nothing is coerced, however deep it stands; without it, all of it is."""

    def use(it: Any) -> None: ...

    def beside(it: Any, other: int = 0) -> None: ...

    for function in (use, beside):
        function.__annotations__["it"] = kind
    made, sent = (
        (use, text) if whole and kind is not STRICT[5][0] else (beside, f'{{"it": {text}}}')
    )
    call_of(tool_fn(made), sent)
    with pytest.raises(InvalidArgumentsError, match="count"):
        call_of(tool_fn(strict=True)(made), sent)


def test_strict_takes_what_a_program_makes() -> None:
    """Strictness is about values: a program may still give dicts where a model stands."""

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = Box
    tool: Any = tool_fn(strict=True)(use)
    call = call_of(tool, '{"it": {"lines": [{"count": 1}]}}')
    call.input = tool.Input(it=Box([Line(count=2)]), other=1)
    assert call.input.it == Box([Line(count=2)])
    assert refusal(tool, '{"it": {"lines": [{"count": "2"}]}}')


def test_an_upper_name_is_accepted() -> None:
    """A validator may change a named value."""
    assert TypeAdapter(Upper).validate_python({"name": "a"}).name == "A"

    def use(it: Upper, other: int = 0) -> None: ...

    use.__annotations__["it"] = Upper
    assert call_of(tool_fn(use), '{"it": {"name": "a"}}').input.it.name == "A"


class Odd(enum.Enum):
    A = object()


def test_a_value_without_a_json_form_is_none_of_a_schema() -> None:
    """An enum of objects is no parameter: nothing that it could name is JSON."""

    def use(it: Odd, other: int = 0) -> None: ...

    use.__annotations__["it"] = Odd
    with pytest.raises((ToolDefinitionError, PydanticSerializationError)):
        tool_fn(use)


class Off(BaseModel):
    count: int = "many"  # type: ignore[assignment]


def test_a_default_that_does_not_fit_is_in_no_schema() -> None:
    """What a class deeper in an input has as a default, and would refuse, is not offered."""

    def use(it: Any, other: int = 0) -> None: ...

    use.__annotations__["it"] = list[Off]
    schema = schema_of(tool_fn(use))
    assert schema["$defs"]["Off"]["properties"]["count"] == {"type": "integer"}


def stumble(value: Any) -> Any:
    raise KeyError(value)


class Stumbling(BaseModel):
    unit: Annotated[Unit, AfterValidator(stumble), Field(json_schema_extra={"const": "kelvin"})]
    count: Annotated[int, AfterValidator(stumble)] = 3


def test_a_validator_with_an_error_of_its_own_refuses_no_tool() -> None:
    """Of values that a validator raises anything else about nothing is known: a call may differ."""

    def use(it: Any, count: Any = 3) -> None: ...

    use.__annotations__ |= {"it": Stumbling, "count": Annotated[int, AfterValidator(stumble)]}
    schema = schema_of(tool_fn(use))
    assert schema["properties"]["count"] == {"type": "integer"}
    fields = schema["$defs"]["Stumbling"]["properties"]
    assert (fields["unit"]["const"], fields["count"]) == ("kelvin", {"type": "integer"})
