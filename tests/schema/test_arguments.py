"""The laws of what a model sends: exact on the way in, coerced only where no doubt is left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, field_validator

from lutum_py import ToolInput, tool_fn
from tests.cases import over
from tests.declared import call_of, refusal, schema_of
from tests.schema.query_tool import Filter, query

# Nothing, blanks and null.


@tool_fn
def idle(times: int = 1) -> None:
    """Need nothing."""


@over("text", ["", " ", "\n\t ", "null", " null\n", '""', "{}"])
def test_nothing_means_no_arguments(text: str) -> None:
    """Nothing at all, blanks and `null` mean `{}`; the raw text stays what it was."""
    call = call_of(idle, text)
    assert call.input == idle.Input()
    assert call.coerced == ()
    assert call.metadata.arguments == text


def test_nothing_is_not_enough_where_something_is_required() -> None:
    """`null` for a tool with a required field names the field."""
    assert refusal(query, "null") == refusal(query, "") == "- `ids`: this field is required"


# Names.


class Read(ToolInput[int]):
    deep: int = Field(3, validation_alias=AliasPath("options", 0))
    either: int = Field(4, validation_alias=AliasChoices(AliasPath("a", 0), AliasPath("b", "c")))
    named: int = Field(5, validation_alias=AliasChoices(AliasPath("d", 0), "name"))


@tool_fn
def read(deep: int = Field(3, validation_alias=AliasPath("options", 0)), more: str = "") -> int:
    """Read an option."""
    return deep


@dataclass
class Options:
    deep: Annotated[int, Field(validation_alias=AliasPath("options", 0))] = 3


@tool_fn
def read_options(options: Options) -> int:
    """Read all options."""
    return options.deep


@over("read", [Read, read, read_options])
def test_each_name_that_a_model_is_told_is_read(read: Any) -> None:
    """A field that pydantic reads at a path alone has its own name in the schema, and is read by
    either.
    """
    told = {name: at for at, name in enumerate(schema_of(read)["properties"], 7) if name != "more"}
    assert [*call_of(read, told).final_arguments.values()][: len(told)] == [*told.values()]
    assert call_of(read, {"options": [9]}).final_arguments["deep"] == 9
    assert refusal(read, {"deep": "x"}).startswith("- `deep`: Input should be a valid integer")


# Containers as strings.


COERCED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
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


@over("case", COERCED)
def test_what_leaves_no_doubt_is_coerced(case: str) -> None:
    """A container sent as a string is read, `null` for an optional field is left out; recorded."""
    sent, expected, places = COERCED[case]
    call = call_of(query, sent)
    assert call.input == query.Input(**expected)
    assert call.coerced == places
    assert json.loads(call.metadata.arguments) == sent


def test_arguments_that_were_encoded_twice_are_read() -> None:
    """The whole object may come as a string; its place is the empty path."""
    call = call_of(query, json.dumps(json.dumps({"ids": "[1]"})))
    assert call.input.ids == [1]
    assert call.coerced == ("", "ids")
    assert refusal(query, json.dumps("[1]")) == "- Input should be an object (got '[1]')"


def test_a_string_stays_a_string_where_one_is_accepted() -> None:
    """What fits as it came is never read anew."""
    call = call_of(query, {"ids": [1], "either": '["a"]', "text": "[1]", "anything": "[2]"})
    assert (call.input.either, call.input.text, call.input.anything) == ('["a"]', "[1]", "[2]")
    assert call.coerced == ()


NOT_COERCED = {
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


@over("text", NOT_COERCED)
def test_what_leaves_doubt_is_refused(text: str) -> None:
    """Every failing field is named with what was expected and what came."""
    assert refusal(query, text) == NOT_COERCED[text]


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
    assert call.coerced == ("pair[0].size",)
    nested = {"kind": "r", "next": {"kind": "r", "size": None}}
    call = call_of(Both, {"side": nested})
    assert call.input.side == Right(kind="r", next=Right(kind="r"))
    assert "`pair[1]`: Input should be a valid integer (got None)" in refusal(
        Both, {"pair": [{"kind": "l"}, None]}
    )


def test_coercing_ends() -> None:
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
    "\ud800": "- Invalid JSON: expected value at line 1 column 1 (got '\ufffd')",
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
    '{"ids":' + json.dumps(["x"] * 20_000) + "}": "- `ids[0]`: Input should be a valid integer",
    '{"ids":[1],"anything":NaN}': "- `anything`: Input should be a finite number (got nan)",
    '{"ids":[1],"limit":NaN}': "- `limit`: Input should be a finite number (got nan)",
    '{"ids":[1],"anything":[{"a":-Infinity}]}': "- `anything`: Input should be a finite number",
    '{"ids":[1],"anything":1e400}': "- `anything`: Input should be a finite number (got inf)",
    '{"ids":[1],"anything":{"a":[1e999]}}': "- `anything`: Input should be a finite number (got {",
    '{"ids":[1],"limit":1e400}': "- `limit`: Input should be a finite number (got inf)",
}


@over("text", GARBAGE)
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
