"""The laws of what a model sends: exact on the way in, mended only where no doubt is left."""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator
from typing_extensions import TypedDict

from lutum_py import ToolInput, tool_fn
from lutum_py._schema.arguments import Arguments, field_issues
from lutum_py.errors import InvalidArgumentsError, ToolInputError
from tests.declared import call_of, refusal, schema_of, spec_of


class Filter(BaseModel):
    name: str
    at_least: int = 0
    tags: list[str] = []


@tool_fn
def query(
    ids: list[int],
    filters: list[Filter] = [],  # noqa: B006
    table: dict[str, int] | None = None,
    text: str = "x",
    limit: int = 1,
    anything: Any = None,
    either: list[str] | str = "q",
    both: list[int] | dict[str, int] | None = None,
) -> None:
    """Take what comes."""


# Nothing, blanks and null.


@tool_fn
def idle(times: int = 1) -> None:
    """Need nothing."""


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "null", " null\n", '""', "{}"])
def test_nothing_means_no_arguments(text: str) -> None:
    """Nothing at all, blanks and `null` mean `{}`; the raw text stays what it was."""
    call = call_of(idle, text)
    assert call.input == idle.Input()
    assert call.mended == ()
    assert call.metadata.arguments == text


def test_nothing_is_not_enough_where_something_is_required() -> None:
    """`null` for a tool with a required field names the field."""
    assert refusal(query, "null") == refusal(query, "") == "- `ids`: this field is required"


# Containers as strings.


MENDED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "array": ({"ids": "[1,2]"}, {"ids": [1, 2]}, ("ids",)),
    "object": ({"ids": [1], "table": '{"a": 1}'}, {"ids": [1], "table": {"a": 1}}, ("table",)),
    "deep": (
        {"ids": [1], "filters": '[{"name": "n", "tags": "[\\"t\\"]"}]'},
        {"ids": [1], "filters": [Filter(name="n", tags=["t"])]},
        ("filters", "filters[0].tags"),
    ),
    "inside": (
        {"ids": [1], "filters": ['{"name": "n"}']},
        {"ids": [1], "filters": [Filter(name="n")]},
        ("filters[0]",),
    ),
    "null": ({"ids": [1], "limit": None, "text": None}, {"ids": [1]}, ("text", "limit")),
    "null inside": (
        {"ids": [1], "filters": [{"name": "n", "at_least": None}]},
        {"ids": [1], "filters": [Filter(name="n")]},
        ("filters[0].at_least",),
    ),
    "union": ({"ids": [1], "both": '{"a": 1}'}, {"ids": [1], "both": {"a": 1}}, ("both",)),
    "both": ({"ids": "[1]", "limit": None}, {"ids": [1]}, ("ids", "limit")),
}


@pytest.mark.parametrize("case", MENDED)
def test_what_leaves_no_doubt_is_mended(case: str) -> None:
    """A container sent as a string is read, `null` for an optional field is left out; recorded."""
    sent, expected, places = MENDED[case]
    call = call_of(query, sent)
    assert call.input == query.Input(**expected)
    assert call.mended == places
    assert json.loads(call.metadata.arguments) == sent


def test_arguments_that_were_encoded_twice_are_read() -> None:
    """The whole object may come as a string; its place is the empty path."""
    call = call_of(query, json.dumps(json.dumps({"ids": "[1]"})))
    assert call.input.ids == [1]
    assert call.mended == ("", "ids")
    assert refusal(query, json.dumps("[1]")) == "- Input should be an object (got '[1]')"


def test_a_string_stays_a_string_where_one_is_accepted() -> None:
    """What fits as it came is never read anew."""
    call = call_of(query, {"ids": [1], "either": '["a"]', "text": "[1]", "anything": "[2]"})
    assert (call.input.either, call.input.text, call.input.anything) == ('["a"]', "[1]", "[2]")
    assert call.mended == ()


NOT_MENDED = {
    '{"ids": "1,2"}': "- `ids`: Input should be a valid array (got '1,2')",
    '{"ids": "[NaN]"}': "- `ids`: Input should be a valid array (got '[NaN]')",
    '{"ids": "3"}': "- `ids`: Input should be a valid array (got '3')",
    '{"ids": {}}': "- `ids`: Input should be a valid array (got {})",
    '{"ids": null}': "- `ids`: Input should be a valid array (got None)",
    '{"ids": [1], "table": {"a": null}}': (
        "- `table.a`: Input should be a valid integer (got None)"
    ),
    '{"ids": [null]}': "- `ids[0]`: Input should be a valid integer (got None)",
    '{"ids": [1], "more": null}': (
        "- `more`: there is no such field; the fields are `ids`, `filters`, `table`, `text`, "
        "`limit`, `anything`, `either`, `both` (got None)"
    ),
    '{"ids": [1], "limits": 3}': (
        "- `limits`: there is no such field; did you mean `limit`? (got 3)"
    ),
    '{"ids": "[1]", "anything": 1e999}': (
        "- `ids`: Input should be a valid array (got '[1]')\n"
        "- `anything`: Input should be a finite number (got inf)"
    ),
    '{"ids": "[1, \\"x\\"]", "limit": "many"}': (
        "- `ids`: Input should be a valid array (got '[1, \"x\"]')\n"
        "- `limit`: Input should be a valid integer, unable to parse string as an integer "
        "(got 'many')"
    ),
    '{"ids": [1], "both": ["x", null]}': (
        "- `both.list[int][0]`: Input should be a valid integer, unable to parse string as an "
        "integer (got 'x')\n"
        "- `both.list[int][1]`: Input should be a valid integer (got None)\n"
        "- `both.dict[str,int]`: Input should be an object (got ['x', None])"
    ),
    "[1]": "- Input should be an object (got [1])",
    "3": "- Input should be an object (got 3)",
    '"x"': "- Input should be an object (got 'x')",
    "[" + "1," * 20 + "1]": "- Input should be an object (got an array of 21 items)",
    '{"ids": ' + json.dumps({str(n): n for n in range(9)}) + "}": (
        "- `ids`: Input should be a valid array (got an object with 9 keys)"
    ),
}


@pytest.mark.parametrize("text", NOT_MENDED)
def test_what_leaves_doubt_is_refused(text: str) -> None:
    """Every failing field is named with what was expected and what came."""
    assert refusal(query, text) == NOT_MENDED[text]


def test_null_means_null_where_there_is_one() -> None:
    """`null` is never taken for left out where the field has a null of its own."""

    class Picky(ToolInput[int]):
        a: int | None = 3

        @field_validator("a", mode="before")
        @classmethod
        def refuse_null(cls, value: Any) -> Any:
            if value is None:
                raise ValueError("say a number")
            return value

    assert refusal(Picky, {"a": None}) == "- `a`: Value error, say a number (got None)"


def test_null_in_odd_places() -> None:
    """`null` is left out below unions, tuples and references, and nowhere that is no field."""

    class Left(BaseModel):
        kind: Literal["l"]
        size: int = 1

    class Right(BaseModel):
        kind: Literal["r"]
        next: Optional[Right] = None  # noqa: UP045
        size: int = 2

    class Both(ToolInput[int]):
        pair: tuple[Left, int] | None = None
        side: Annotated[Left | Right, Field(discriminator="kind")] | None = None

    call = call_of(Both, {"pair": [{"kind": "l", "size": None}, 1]})
    assert call.input.pair == (Left(kind="l"), 1)
    assert call.mended == ("pair[0].size",)
    nested = {"kind": "r", "next": {"kind": "r", "size": None}}
    call = call_of(Both, {"side": nested})
    assert call.input.side == Right(kind="r", next=Right(kind="r"))
    assert "`pair[1]`: Input should be a valid integer (got None)" in refusal(
        Both, {"pair": [{"kind": "l"}, None]}
    )


def test_mending_ends() -> None:
    """Strings inside of strings are read to a small depth only."""

    class Deep(ToolInput[int]):
        a: list[list[list[list[list[list[int]]]]]]

    value: Any = [1]
    for _ in range(5):
        value = [json.dumps(value)]
    assert refusal(Deep, {"a": json.dumps(value)}).startswith("- `a`: Input should be a valid")


# Broken text.


GARBAGE = {
    "x" * 1_000_000: "- Invalid JSON: expected value at line 1 column 1 (got 'xxxxxxxxxx",
    "[" * 10_000 + "]" * 10_000: "- Invalid JSON: recursion limit exceeded at line 1 column",
    '{"a":' * 10_000 + "1" + "}" * 10_000: "- Invalid JSON: recursion limit exceeded at line 1",
    '{"ids":[1],"anything":' + "[" * 10_000 + "]" * 10_000 + "}": (
        "- Invalid JSON: recursion limit exceeded at line 1 column"
    ),
    '{"ids":"' + "[" * 10_000 + "]" * 10_000 + '"}': (
        "- `ids`: Input should be a valid array (got '[[[[[["
    ),
    '{"ids":[1],"text":"\\ud800"}': "- Invalid JSON: unexpected end of hex escape at line 1 col",
    '{"ids":[1],"text":"\ud800"}': (
        "- The arguments are no valid Unicode text: they hold half of a surrogate pair (got"
    ),
    "\ud800": "- The arguments are no valid Unicode text: they hold half of a surrogate pair",
    '{"ids":[' + "9" * 5000 + "]}": "- Invalid JSON: number out of range at line 1 column 43",
    '{"ids":[' + "x" * 10: "- Invalid JSON: expected value at line 1 column 9 (got",
    '{"ids":[1]': "- Invalid JSON: EOF while parsing an object at line 1 column 10",
    '{"ids":[1]} {}': "- Invalid JSON: trailing characters at line 1 column 13",
    '{"ids":[1],}': "- Invalid JSON: trailing comma at line 1 column 12",
    "{'ids':[1]}": "- Invalid JSON: key must be a string at line 1 column 2",
    "nul": "- Invalid JSON: EOF while parsing a value at line 1 column 3 (got 'nul')",
    '\ufeff{"ids":[1]}': "- Invalid JSON: expected value at line 1 column 1",
    '{"ids":' + json.dumps(["x" * 1_000_000]) + "}": "- `ids[0]`: Input should be a valid integer",
    '{"' + "k" * 1_000_000 + '":1}': "- `ids`: this field is required\n- `kkkkkkkkkkkkkkkkkkk",
    '{"ids":' + json.dumps(["x"] * 100_000) + "}": "- `ids[0]`: Input should be a valid integer",
    '{"ids":[1],"anything":NaN}': "- `anything`: Input should be a finite number (got nan)",
    '{"ids":[1],"limit":NaN}': "- `limit`: Input should be a finite number (got nan)",
    '{"ids":[1],"anything":[{"a":-Infinity}]}': "- `anything`: Input should be a finite number",
    '{"ids":[1],"anything":1e400}': "- `anything`: Input should be a finite number (got inf)",
    '{"ids":[1],"anything":{"a":[1e999]}}': "- `anything`: Input should be a finite number (got {",
    '{"ids":[1],"limit":1e400}': "- `limit`: Input should be a finite number (got inf)",
}


@pytest.mark.parametrize("text", GARBAGE, ids=[text[:30] for text in GARBAGE])
def test_garbage_is_an_error_that_can_be_read(text: str) -> None:
    """Whatever comes, the answer says what is wrong and where, in a bounded text."""
    said = refusal(query, text)
    assert said.startswith(GARBAGE[text])
    assert len(said) < 3000
    hidden = refusal(query, text, redact=True)
    assert "got" not in hidden.replace("unexpected", "")
    assert len(hidden) < 3000


def test_many_faults_are_counted() -> None:
    """Beyond twenty, faults are counted only."""
    lines = refusal(query, {"ids": ["x"] * 100}).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "- and 80 more"


def test_a_long_place_is_cut() -> None:
    """The path to a fault is bounded, however deep it is, and so is what was expected."""

    class Tree(ToolInput[int]):
        below: dict[str, Tree] | None = None
        one_of: Literal[tuple(f"choice{n}" for n in range(1000))] = "choice1"  # type: ignore[valid-type]

    value: Any = 3
    for _ in range(40):
        value = {"below": {"k" * 60: value}}
    said = refusal(Tree, value)
    assert said.startswith("- `below.kkkk")
    assert len(said) < 400
    assert len(refusal(Tree, {"one_of": "x"})) < 500


def test_words_are_no_numbers() -> None:
    """NaN and infinities are refused as words and in strings, at every level; as text they pass."""

    class Measure(BaseModel):
        value: float = 0

    class Wild(BaseModel):
        model_config = ConfigDict(extra="allow")
        measures: dict[str, Measure] = {}
        pair: tuple[float, int] = (0, 0)
        text: str = ""

    @tool_fn
    def weigh(wild: Wild, at: Annotated[float, Field(allow_inf_nan=True)] = 0) -> None:
        """Weigh."""

    for text in ('"NaN"', '"inf"', "1e999", '" -Infinity "'):
        for place in ('{"measures":{"a":{"value":%s}}}', '{"pair":[%s,1]}'):
            said = refusal(weigh, f'{{"wild":{place.replace("%s", text)}}}')
            assert "Input should be a finite number" in said
        assert "`at`: Input should be a finite number" in refusal(
            weigh, f'{{"wild":{{}},"at":{text}}}'
        )
    assert "`wild.more`: Input should be a finite number" in refusal(
        weigh, '{"wild":{"more":[1e999]}}'
    )
    call = call_of(weigh, {"wild": {"text": "NaN Infinity", "more": {"x": 1.5}}})
    assert call.input.wild.text == "NaN Infinity"
    assert call.input.wild.model_extra == {"more": {"x": 1.5}}
    # The author's own class is as it was.
    assert Measure.model_validate_json('{"value": "inf"}').value == float("inf")


def test_what_is_ignored_is_not_looked_at() -> None:
    """An author who ignores unknown arguments ignores what is in them."""

    class Ignoring(ToolInput[int]):
        model_config = ConfigDict(extra="ignore")

    assert call_of(Ignoring, '{"more":NaN}').input == Ignoring()
    assert refusal(Ignoring, '{"more":nan}').startswith("- Invalid JSON: expected ident at line 1")


def test_huge_integers_pass_where_python_prints_them() -> None:
    """An integer of any size that JSON can be read with is an integer."""
    call = call_of(query, '{"ids":[' + "9" * 400 + '],"anything":[1.5,"x",null]}')
    assert call.input.ids == [int("9" * 400)]
    assert len(call.idempotency_key) == 64


def test_duplicate_keys_take_the_last() -> None:
    """Of two equal keys the last one counts, as everywhere in Python."""
    assert call_of(query, '{"ids":[1],"ids":[2]}').input.ids == [2]


# Inputs that a program makes.


@dataclass
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        self.z = self.x


@dataclass
class Counted:
    x: int
    start: InitVar[int] = 0


class Movement(TypedDict):
    by: list[Filter]


class Scene(ToolInput[int]):
    model_config = ConfigDict(extra="allow")
    point: Point
    filters: list[Filter] = Field(default_factory=list)
    pair: tuple[Filter, int] | None = None
    shape: Point | Filter | None = None
    weight: Any = None


@tool_fn
def plot(point: Point) -> None:
    """Plot."""


@tool_fn
def move(movement: Movement) -> None:
    """Move."""


def test_an_assigned_input_is_checked_through_its_fields() -> None:
    """An instance is not taken as it is: a field that was set to something else is found."""
    call = call_of(Scene, {"point": {"x": 1}})
    good = Scene.model_validate(
        {"point": {"x": 2}, "filters": [{"name": "n"}], "pair": [{"name": "m"}, 3], "more": 4}
    )
    call.input = good
    assert call.input == good
    assert call.input.model_extra == {"more": 4}
    broken: list[tuple[Any, str]] = [
        (Scene.model_construct(point="x"), "`point`: Input should be a dictionary or an instance"),
        (Scene.model_construct(point=Point("x")), "`point.x`: Input should be a valid integer"),  # type: ignore[arg-type]
        (
            Scene.model_construct(point=Point(1), filters=[Filter.model_construct(name=3)]),
            "`filters[0].name`: Input should be a valid string (got 3)",
        ),
        (
            Scene.model_construct(point=Point(1), pair=(Filter.model_construct(name=3), 1)),
            "`pair[0].name`: Input should be a valid string (got 3)",
        ),
        (
            Scene.model_construct(point=Point(1), weight={"a": [float("nan")]}),
            "Input should be a finite number (got",
        ),
        ({"point": {"x": "y"}}, "`point.x`: Input should be a valid integer"),
        (3, "Input should be a valid dictionary or instance of Scene (got 3)"),
    ]
    for value, expected in broken:
        with pytest.raises(ToolInputError) as caught:
            call.input = value
        assert str(caught.value).startswith("This input does not fit tool `scene`: ")
        assert expected in str(caught.value)
        assert str(caught.value).endswith("Pass a valid `Scene`.")
        assert caught.value.tool == "scene"
        assert caught.value.fields
    assert call.input == good


def test_a_part_of_a_union_keeps_its_class() -> None:
    """Taking an input apart does not turn one member of a union into another of the same shape."""

    class One(BaseModel):
        a: int

    class Two(BaseModel):
        a: int

    class Both(ToolInput[int]):
        part: One | Two
        parts: dict[str, One | Two] | None = None

    call = call_of(Both, {"part": {"a": 1}})
    call.input = Both(part=Two(a=2), parts={"x": Two(a=3)})
    assert type(call.input.part) is Two
    assert type(call.input.parts["x"]) is Two


def test_dataclasses_and_dicts_are_checked_too() -> None:
    """An input that is a dataclass or a dict is checked through its fields like a model."""
    call = call_of(plot, {"x": 1})
    call.input = Point(5)
    assert (call.input, call.input.z) == (Point(5), 5)
    call.input = {"x": 6}
    assert call.input == Point(6)
    wrong = Point(1)
    wrong.x = "no"  # type: ignore[assignment]
    with pytest.raises(ToolInputError, match="`x`: Input should be a valid integer"):
        call.input = wrong
    call = call_of(move, {"by": []})
    call.input = {"by": [Filter(name="n")]}
    assert call.input == {"by": [Filter(name="n")]}
    with pytest.raises(ToolInputError, match=r"`by\[0\].name`: Input should be a valid string"):
        call.input = {"by": [Filter.model_construct(name=3)]}


def test_infinities_do_not_come_in_through_instances() -> None:
    """A part whose own class lets an infinity through does not bring it into an input."""

    class Measure(BaseModel):
        value: float

    class Weigh(ToolInput[int]):
        many: list[Measure]

    call = call_of(Weigh, {"many": []})
    with pytest.raises(ToolInputError, match=r"`many\[0\].value`: Input should be a finite number"):
        call.input = Weigh(many=[Measure(value=float("inf"))])
    call.input = Weigh(many=[Measure(value=1)])
    assert call.input.many[0].value == 1


def test_a_root_model_is_checked_through_its_root() -> None:
    """The input of a union is taken apart down to its member."""

    class Wrapped(RootModel[Filter | Point]):
        """One or the other."""

    from lutum_py import tool_input

    declared = tool_input(output=int)(Wrapped)
    call = call_of(declared, {"name": "n"})
    call.input = Wrapped(Filter(name="m"))
    assert call.input.root == Filter(name="m")
    call.input = Wrapped(Point(3))
    assert call.input.root == Point(3)
    with pytest.raises(ToolInputError, match="name`: Input should be a valid string"):
        call.input = Wrapped.model_construct(Filter.model_construct(name=3))


# To data and back.


def test_defaults_that_json_cannot_carry_are_left_out() -> None:
    """An input with such a default still has data and a digest; the default comes back with it."""
    sentinel = object()

    @tool_fn
    def odd(a: int, limit: float = float("inf"), mark: Any = sentinel) -> None:
        """Have odd defaults."""

    @tool_fn
    def endless(a: int, limit: float = float("inf")) -> None:
        """Have an endless default."""

    codec = spec_of(odd).arguments
    call = call_of(odd, {"a": 1})
    assert codec.to_data(call.input) == {"a": 1}
    assert codec.from_data({"a": 1}).mark is sentinel
    assert call.digest.startswith("sha256:")
    assert spec_of(endless).arguments.to_data(call_of(endless, {"a": 1}).input) == {"a": 1}
    json.dumps(schema_of(endless), allow_nan=False)


def test_data_without_a_json_form_is_refused() -> None:
    """An input that was changed in place to what JSON cannot carry is told."""

    class Free(ToolInput[int]):
        anything: Any = None

    call = call_of(Free)
    call.input.anything = object()
    with pytest.raises(ToolInputError) as caught:
        _ = call.digest
    assert str(caught.value) == (
        "The input of call 'c1' of tool `free` has no JSON form (Unable to serialize unknown type: "
        "<class 'object'>). Assign an input that has, as in `call.input = ...`."
    )


def test_issues_can_be_read_without_a_tool() -> None:
    """Without known fields an unknown one is just that."""
    arguments = Arguments(Filter)
    with pytest.raises(ValueError, match="more") as caught:
        arguments.validate_json('{"name": "n", "more": 1}')
    (issue,) = field_issues(caught.value)  # type: ignore[arg-type]
    assert str(issue) == "`more`: there is no such field (got 1)"
    assert issue.path == "more"


def test_an_error_carries_its_fields() -> None:
    """Besides its text an error has the failing fields, and hides values when it is told to."""
    with pytest.raises(InvalidArgumentsError) as caught:
        call_of(query, {"ids": ["x"]})
    (issue,) = caught.value.fields
    assert (issue.path, issue.received) == ("ids[0]", "'x'")
    assert refusal(query, {"ids": ["x"]}, redact=True) == (
        "- `ids[0]`: Input should be a valid integer, unable to parse string as an integer"
    )


def test_what_a_dataclass_is_not_given() -> None:
    """A dataclass names its missing and unknown fields like a model."""

    @tool_fn
    def count(counted: Counted) -> None:
        """Count."""

    assert refusal(count, {"y": 1}) == (
        "- `x`: this field is required\n"
        "- `y`: there is no such field; the fields are `x`, `start` (got 1)"
    )
    assert call_of(count, {"x": 1, "start": 3}).input.x == 1
