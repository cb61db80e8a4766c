"""The laws of outputs: checked against what the tool declares, and always JSON."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    Base64Bytes,
    Base64Str,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    StringConstraints,
)
from pydantic_core import ValidationError
from typing_extensions import TypedDict

from lutum_py import tool_fn
from lutum_py._schema import output
from lutum_py._schema.output import Output
from lutum_py.errors import ToolDefinitionError, ToolOutputError
from tests.cases import over
from tests.declared import call_of, spec_of


class User(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0)] = 0


class Admin(User):
    secret: str = "s"


@dataclass
class Point:
    x: int


class Row(TypedDict):
    at: datetime.date


class Measured(BaseModel):
    value: float | None = None
    more: list[Any] = []


class Worded(Measured):
    model_config = ConfigDict(ser_json_inf_nan="strings")


class Wordy(Measured):
    model_config = ConfigDict(ser_json_inf_nan="constants")


def without_nan(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Mended(BaseModel):
    value: Annotated[float, PlainSerializer(without_nan, when_used="json")]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def encoded(kind: Any, value: Any) -> str:
    """The result of a call of tool `t`; without a kind the tool declares no type."""

    def t() -> Any:
        return value

    if kind is None:
        del t.__annotations__["return"]
    else:
        t.__annotations__["return"] = kind
    text: str = call_of(tool_fn(t)).call_sync().result
    return text


FITS: list[tuple[Any, Any, str]] = [
    (User, User(name="n"), '{"name":"n","age":0}'),
    (User, {"name": "n", "age": "3"}, '{"name":"n","age":3}'),
    (User, Admin(name="n"), '{"name":"n","age":0}'),
    (list[User], [User(name="n")], '[{"name":"n","age":0}]'),
    (Point, Point(1), '{"x":1}'),
    (Row, {"at": datetime.date(2020, 1, 2)}, '{"at":"2020-01-02"}'),
    (int, "3", "3"),
    (str, "ü", '"ü"'),
    (type(None), None, "null"),
    (float | None, None, "null"),
    (Measured, {"value": None}, '{"value":null,"more":[]}'),
    (Worded, {"value": float("inf"), "more": [None]}, '{"value":"Infinity","more":[null]}'),
    (None, {"a": [1, "x", None, datetime.date(2020, 1, 2)]}, '{"a":[1,"x",null,"2020-01-02"]}'),
    (None, User(name="n"), '{"name":"n","age":0}'),
    (Mended, Mended(value=math.nan), '{"value":null}'),
    (Open, Open.model_validate({"more": None}), '{"more":null}'),
    (None, [None, 1.5, "null"], '[null,1.5,"null"]'),
]


@over("kind, value, text", FITS)
def test_what_fits_is_encoded(kind: Any, value: Any, text: str) -> None:
    """An output of the declared type becomes JSON text, which a strict parser reads."""
    assert encoded(kind, value) == text
    json.loads(text, parse_constant=pytest.fail)


HALVES: list[tuple[Any, Any, str | None]] = [
    (str, "caf\udce9", '"caf\ufffd"'),
    (str, "\ud83d\ude00 \ud83d", '"\U0001f600 \ufffd"'),
    (None, {"names": ["ok", "caf\udce9"], "on": datetime.date(2020, 1, 2)}, None),
    (None, User(name="caf\udce9"), '{"name":"caf\ufffd","age":0}'),
    (User, User(name="caf\udce9", age=4), '{"name":"caf\ufffd","age":4}'),
    (list[User], [{"name": "a"}, {"name": "\udce9"}], None),
    (dict[str, Path], {"a": Path("b/caf\udce9")}, '{"a":"b/caf\ufffd"}'),
]


@over("kind, value, text", HALVES)
def test_what_no_text_can_carry_is_replaced_and_the_rest_counts(
    kind: Any, value: Any, text: str | None
) -> None:
    """Half of a surrogate pair, as in the name of a file that is not UTF-8, becomes U+FFFD."""
    written = encoded(kind, value)
    assert written == (text or written)
    assert "\ufffd" in json.loads(written.encode()).__repr__()


def test_a_number_is_not_lost_beside_a_text_that_is_replaced() -> None:
    """NaN is refused there as elsewhere, and an output that can be read only once is refused."""
    with pytest.raises(ToolOutputError, match="neither NaN nor infinities"):
        encoded(None, ["\udce9", math.nan])
    with pytest.raises(ToolOutputError, match="surrogates not allowed"):
        encoded(None, iter(["a", "\udce9"]))


def test_no_value_is_lost_under_a_key_that_is_replaced() -> None:
    """Two keys might become one, so a key is refused, in words that say how to write it."""
    for key in ("\udce9", "a\ud800"):
        with pytest.raises(ToolOutputError, match="a key in it holds half of a surrogate pair"):
            encoded(None, {key: 1, "b": [2]})


broken = User(name="n")
broken.age = "old"  # type: ignore[assignment]
endless: list[Any] = []
endless.append(endless)

UNFIT: list[tuple[Any, Any, str]] = [
    (User, {"name": 3}, "`User`: `name`: Input should be a valid string (got 3)."),
    (User, None, "`User`: Input should be a valid dictionary or instance of User (got None)."),
    (User, broken, "`User`: `age`: Input should be a valid integer, unable to parse string"),
    (list[User], [broken], "`list["),
    (list[int], "x" * 1_000_000, "`list[int]`: Input should be a valid list (got 'xxxxx"),
    (int | None, "x", "`int | None`: Input should be a valid integer"),
    (Annotated[int, Field(gt=3)], 1, "`int`: Input should be greater than 3 (got 1)."),
    (bytes, b"\xff", "`bytes`: Error serializing to JSON: invalid utf-8 sequence"),
]


@over("kind, value, expected", UNFIT)
def test_what_does_not_fit_names_tool_and_field(kind: Any, value: Any, expected: str) -> None:
    """The error names the tool, the declared type, and each failing field, in a bounded text."""
    with pytest.raises(ToolOutputError) as caught:
        encoded(kind, value)
    said = str(caught.value)
    assert said.startswith("The output of tool `t` does not fit its output type `")
    assert expected in said
    assert said.endswith("Return what the tool declares, or correct the declared type.")
    assert len(said) < 700
    assert caught.value.tool == "t"
    assert caught.value.fields


NAN = float("nan")
LOST: list[tuple[Any, Any, str]] = [
    (float, NAN, ""),
    (float | None, -math.inf, ""),
    (list[float], [1.5, math.inf], "[1]"),
    (dict[str, tuple[float, ...]], {"a": (1.0, NAN)}, "a[1]"),
    (Measured, Measured(value=NAN), "value"),
    (Measured, Measured(more=[None, {"x": Measured(value=NAN)}]), "more[1].x.value"),
    (Wordy, Wordy(value=math.inf), "value"),
    (Any, NAN, ""),
    (list[Any], [None, {1: frozenset({NAN})}], "[1].1[0]"),
    (Open, Open.model_validate({"more": NAN}), "more"),
    (None, NAN, ""),
    (None, {"a": [None, Measured(value=NAN)]}, "a[1].value"),
    (None, {"a": [None, Measured(more=[NAN])]}, "a[1].more[0]"),
]


@over("kind, value, path", LOST)
def test_a_number_that_json_cannot_carry_is_refused(kind: Any, value: Any, path: str) -> None:
    """A NaN or an infinity never becomes a null in silence: the error names tool and path."""
    with pytest.raises(ToolOutputError, match="The output of tool `t` ") as caught:
        encoded(kind, value)
    (issue,) = caught.value.fields
    assert issue.path == path
    assert issue.message == "JSON has neither NaN nor infinities; give None or a text in its place"
    assert issue.received in ("nan", "inf", "-inf")


@over("value", [object(), b"\xff", endless, {"a": lambda: 0}])
def test_anything_must_at_least_be_json(value: Any) -> None:
    """A tool without a declared type gives what has a JSON form, and nothing else."""
    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
    ):
        encoded(None, value)


def test_an_instance_that_serializes_badly_is_looked_into() -> None:
    """What fails only when it is written is told in pydantic's words."""

    class Odd(BaseModel):
        anything: Any = None

    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
    ):
        encoded(Odd, Odd(anything=object()))


def test_outputs_are_read_back() -> None:
    """A text that stands for an output is checked like one."""
    assert Output(User).validate_json('{"name":"n"}') == User(name="n")
    assert Output(list[int]).validate_json("[1]") == [1]
    assert Output(None).validate_json('{"a":1}') == {"a": 1}
    with pytest.raises(ValidationError, match="name"):
        Output(User).validate_json("{}")


def test_the_schema_of_an_output() -> None:
    """The schema is that of what is written; a type without one has none."""
    assert Output(None).json_schema() is None
    assert Output(int).json_schema() == {"type": "integer"}

    class Opaque(BaseModel):
        made: type

    assert Output(Opaque).json_schema() is None

    @tool_fn
    def make() -> Opaque:
        return Opaque(made=int)

    assert make.definition.output_schema == {}


class Early(BaseModel):
    late: Late


@tool_fn
def give() -> list[Early]:
    return [Early(late=Late(a=1))]


class Late(BaseModel):
    a: int


def test_an_output_may_be_completed_later() -> None:
    """A declared type may itself name what comes later in the module."""
    assert spec_of(give).output.encode("give", give()) == '[{"late":{"a":1}}]'


def test_a_type_that_is_none_is_refused() -> None:
    """An output type without a schema is refused at import."""

    class Alien:
        """Unknown to pydantic."""

    def make() -> Alien:
        return Alien()

    with pytest.raises(ToolDefinitionError):
        tool_fn(make)


def test_no_output_holds_a_number_that_nobody_reads() -> None:
    """An integer of more digits than Python reads is refused where it is made; texts of digits
    and long outputs are taken.
    """
    long = 10**4300
    bad: list[tuple[Any, Any]] = [(None, {"n": long}), (int, -long), (list[int], [long])]
    for kind, value in bad:
        with pytest.raises(
            ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
        ):
            encoded(kind, value)
    good: list[tuple[Any, Any]] = [(int, 10**4299), (str, "7" * 5000), (list[int], [7] * 5000)]
    for kind, value in good:
        assert json.loads(encoded(kind, value)) == value


def test_an_output_is_checked_whoever_encodes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What encodes outputs is not used before it is made to the end: a NaN never passes."""

    @tool_fn
    def measure() -> list[float]:
        return [float("nan")]

    own = output._trace_of
    refused: list[object] = []

    def meanwhile(core_schema: Any) -> Any:
        monkeypatch.setattr(output, "_trace_of", own)
        with pytest.raises(
            ToolOutputError, check=lambda error: [each.path for each in error.fields] == ["[0]"]
        ):
            call_of(measure).call_sync()
        refused.append(core_schema)
        return own(core_schema)

    monkeypatch.setattr(output, "_trace_of", meanwhile)
    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == ["[0]"]
    ):
        call_of(measure).call_sync()
    assert refused


# An output is written as it is.


def hundredfold(value: int) -> int:
    return value * 100


class Packed(BaseModel):
    raw: Base64Bytes
    sums: list[Annotated[int, AfterValidator(hundredfold)]] = []


@over(
    "kind, value, text",
    [
        (Base64Bytes, b"hi", '"aGk="'),
        (Base64Bytes, b"aGk=", '"YUdrPQ=="'),
        (Base64Str, "aGk=", '"YUdrPQ=="'),
        (list[Base64Bytes], [b"a", b"YQ=="], '["YQ==","WVE9PQ=="]'),
        (Annotated[int, AfterValidator(hundredfold)], 5, "5"),
        (Json[list[int]], [1], "[1]"),
        (Packed, Packed(raw=b"YQ==", sums=[1]), '{"raw":"YQ==","sums":[100]}'),
        (Packed, {"raw": "YQ==", "sums": [1]}, '{"raw":"YQ==","sums":[100]}'),
        (Annotated[str, StringConstraints(to_lower=True)], "A", '"A"'),
    ],
)
def test_an_output_is_never_validated_into_another_value(kind: Any, value: Any, text: str) -> None:
    """What a tool gives is the value; the text of it is what its type writes."""
    assert Output(kind).encode("tool", value) == text


def test_an_output_that_its_validators_refuse_is_refused() -> None:
    """A check of the author's holds, also beside a serializer."""

    def small(value: int) -> int:
        if value > 9:
            raise ValueError("too much")
        return value

    kind = Annotated[int, AfterValidator(small), PlainSerializer(str)]
    assert Output(kind).encode("tool", 5) == '"5"'
    with pytest.raises(ToolOutputError, match="too much"):
        Output(kind).encode("tool", 10)
    with pytest.raises(ToolOutputError):
        Output(Base64Bytes).encode("tool", [])
