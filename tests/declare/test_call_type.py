"""The JSON of calls: what `TypeAdapter(AppTools.Call)` reads, writes and describes."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Annotated, Any

import jsonschema
import pytest
from jsonschema import Draft202012Validator
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticSerializationError

from lutum_py import (
    AnyToolCall,
    Block,
    RejectedCall,
    ToolDef,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
    toolset,
)
from lutum_py.errors import MisuseError
from tests.cases import over


class Person(BaseModel):
    name: str
    friends: list[Person] = []


class Pay(ToolInput[str]):
    cents: int
    to: Person
    on: date | None = None


class Login(ToolInput[None]):
    password: SecretStr


@tool_input(output=str)
class Note(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: str


@dataclass
class Place:
    city: str


@tool_fn
def search(query: str, limit: int = 5) -> str:
    """Search."""
    return query * limit


@tool_fn(strict=True)
def look(place: Place, on: date) -> str:
    """Look at a place."""
    return place.city


RAW = ToolDef.from_json_schema(
    name="raw",
    input_schema={
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "any": {"$ref": "#/$defs/Any"}},
        "required": ["tree"],
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "inner": {"$ref": "#/$defs/Tree"}},
                "allOf": [{"$ref": "#/$defs/Named"}],
            },
            "Named": {"required": ["size"]},
            "Any": True,
        },
    },
)


class Inner(Toolset):
    pay = tool(Pay)
    search = tool(search)


class Desk(Toolset):
    look = tool(look, off=True)
    login = tool(Login)
    note = tool(Note)
    raw = tool(RAW)
    mine = toolset(Inner, prefix="my_")
    theirs = toolset(Inner, prefix="their_")


class Empty(Toolset): ...


CALLS: Any = TypeAdapter(Desk.Call)
FORMS: list[dict[str, Any]] = [
    {"tool": "look", "input": {"place": {"city": "Oslo"}, "on": "2025-03-01"}},
    {"tool": "login", "input": {"password": "pssst"}},
    {"tool": "raw", "input": {"tree": {"size": 1, "inner": {"size": 2}}}},
    {"tool": "note", "input": {"text": "x", "more": 3}},
    {"tool": "my_pay", "input": {"cents": 3, "to": {"name": "Ann", "friends": []}, "on": None}},
    {"tool": "their_search", "input": {"query": "tea", "limit": 5}},
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["tool"])
def test_what_is_written_is_what_is_read(form: dict[str, Any]) -> None:
    """A call of any tool, nested ones included, is its tool and its input; also within a model."""
    call = CALLS.validate_json(json.dumps(form))
    assert isinstance(call, AnyToolCall)
    assert isinstance(call, Desk.Call)
    assert call.selector is Desk[form["tool"]]
    assert json.loads(CALLS.dump_json(call)) == CALLS.dump_python(call) == form
    assert CALLS.dump_python(CALLS.validate_python(form)) == form

    class Job(BaseModel):
        call: Desk.Call

    job = Job.model_validate({"call": form})
    assert Job.model_validate_json(job.model_dump_json()).model_dump() == {"call": form}


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_schema_takes_what_is_written(mode: Any) -> None:
    """Each form fits the schema, alone and within a model; another tool or input does not."""
    schema = CALLS.json_schema(mode=mode)
    check = jsonschema.Draft202012Validator(schema)
    for form in FORMS:
        check.validate(form)
        assert not check.is_valid({**form, "tool": "nobody"})
        assert not check.is_valid(
            {**form, "input": {**form["input"], "limit": "many", "tree": 3, "text": 3}}
        )
        assert not check.is_valid({"tool": form["tool"]})
    assert not check.is_valid({"tool": "raw", "input": {"tree": {"size": "x"}}})
    assert not check.is_valid({"tool": "raw", "input": {"tree": {}}})


WRONG: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "no call": (3, [()]),
    "no tool": ({"input": {}}, [()]),
    "an unknown tool": ({"tool": "pay", "input": {}}, [()]),
    "no input": ({"tool": "my_pay"}, [("my_pay", "input")]),
    "more": ({**FORMS[2], "id": "c1"}, [("raw", "id")]),
    "an input of another type": ({"tool": "my_search", "input": 3}, [("my_search", "input")]),
    "fields": (
        {"tool": "my_pay", "input": {"cents": "x", "to": {}, "no": 1}},
        [("my_pay", "input", name) for name in ("cents", "to", "no")],
    ),
    "by a JSON schema": (
        {"tool": "raw", "input": {"tree": {"size": "x"}}},
        [("raw", "input", "tree", "size")],
    ),
}


@pytest.mark.parametrize("given", WRONG)
def test_what_does_not_fit_is_named_by_its_place(given: str) -> None:
    """Each fault is an error of pydantic's, at its place; what came as JSON or as data alike."""
    data, places = WRONG[given]
    for read, value in ((CALLS.validate_python, data), (CALLS.validate_json, json.dumps(data))):
        with pytest.raises(ValidationError) as caught:
            read(value)
        found = [error["loc"] for error in caught.value.errors()]
        assert [each[: len(place)] for each, place in zip(found, places, strict=True)] == places


def test_an_input_may_come_as_it_is() -> None:
    """A program gives the input itself, and values that JSON knows as text."""
    pay = Pay(cents=3, to=Person(name="Ann"), on=date(2025, 3, 1))
    call = CALLS.validate_python({"tool": "my_pay", "input": pay})
    assert call.input == pay
    given = {"cents": 3, "to": {"name": "Ann"}, "on": date(2025, 3, 1)}
    assert CALLS.validate_python({"tool": "my_pay", "input": given}).input == pay


def test_what_is_read_is_a_new_call() -> None:
    """Nobody decided about it, whatever became of the one that was written; hooks are asked."""
    hooks = Desk.HookSet()
    hooks.gate()(lambda metadata, input: Block("no"))
    call = Desk.parse_tool_call(
        ToolMetadata(id="c1", name="my_search", arguments='{"query": "tea"}')
    )
    call.input = search.Input(query="coffee")
    call.call_sync()
    again = CALLS.validate_json(CALLS.dump_json(call))
    assert (again.status, again.input) == ("new", search.Input(query="coffee"))
    assert again.id != call.id
    assert [step.kind for step in again.steps] == ["proposed"]
    assert isinstance(again.hook_sync(hooks), RejectedCall)
    assert CALLS.validate_python(again) is again


SEARCH = {"tool": "search", "input": {"query": "tea"}}


def test_a_call_goes_by_the_names_of_the_toolset_that_writes_it() -> None:
    """The nested toolset writes it under its own name, and takes only its own."""
    call = CALLS.validate_python(FORMS[5])
    inner: Any = TypeAdapter(Inner.Call)
    assert inner.dump_python(call) == {"tool": "search", "input": {"query": "tea", "limit": 5}}
    view: Any = TypeAdapter(Desk.theirs.Call)
    assert view.dump_python(call) == FORMS[5]
    mine: Any = TypeAdapter(Desk.mine.Call)
    for wrong in (FORMS[5], FORMS[0]):
        with pytest.raises(ValidationError):
            mine.validate_python(wrong)
    other = Desk.parse_tool_call(ToolMetadata(id="c", name="raw", arguments='{"tree":{"size":1}}'))
    for of, wrong_call in ((inner, other), (mine, call), (CALLS, inner.validate_python(SEARCH))):
        with pytest.raises(ValidationError, match="this is a call of another toolset"):
            of.validate_python(wrong_call)
    for no_call in (other, 3):
        with pytest.raises(PydanticSerializationError):
            inner.dump_python(no_call)


def test_a_toolset_without_tools_has_no_calls() -> None:
    """There is nothing that it reads."""
    with pytest.raises(ValidationError, match="no tools"):
        TypeAdapter(Empty.Call).validate_python(FORMS[0])


def test_the_class_of_calls_is_one_and_makes_none() -> None:
    """It is the same whenever it is asked for, is found by its name, and has no instances."""
    desk: Any = Desk
    made = desk.Call
    assert made is desk.Call
    assert (made.__name__, made.__qualname__) == ("DeskCall", "Desk.Call")
    assert pickle.loads(pickle.dumps(made)) is copy.deepcopy(made) is made
    with pytest.raises(MisuseError):
        made()
    assert not isinstance(3, made)


class Aliased(ToolInput[int]):
    pin: SecretStr = Field(validation_alias="PIN")
    tags: set[str] = Field(default=set(), validation_alias=AliasChoices("labels", "tags_of"))


class Renamed(ToolInput[int]):
    a: int = Field(validation_alias="in", serialization_alias="out")
    at: int = Field(default=0, validation_alias=AliasPath("here", 0))
    kept: int = Field(default=0, exclude=True)


class Around(ToolInput[int]):
    one: Aliased
    many: list[Renamed] = Field(default=[], serialization_alias="all")


@dataclass
class Line:
    count: Annotated[int, Field(validation_alias="n")]


@tool_fn
def by_name(line: Annotated[Line, Field(validation_alias="l")], more: int = 0) -> None:
    """Take a line."""


@tool_fn
def whole(line: Line) -> None:
    """Take a line."""


class Aliases(Toolset):
    aliased = tool(Aliased)
    renamed = tool(Renamed)
    around = tool(Around)
    by_name = tool(by_name)
    whole = tool(whole)


SENT: list[tuple[str, dict[str, Any]]] = [
    ("aliased", {"PIN": "1234", "tags_of": ["b", "a"]}),
    ("renamed", {"in": 1, "here": [2], "kept": 3}),
    ("around", {"one": {"PIN": "1"}, "many": [{"in": 1}, {"in": 2, "at": 4}]}),
    ("by_name", {"l": {"n": 1}}),
    ("whole", {"n": 1}),
]


@over("name, arguments", SENT)
def test_a_call_reads_what_it_writes_under_any_alias(name: str, arguments: dict[str, Any]) -> None:
    """What is written of a call is read again as an equal input, and fits the JSON schema."""
    adapter: TypeAdapter[Any] = TypeAdapter(Aliases.Call)
    sent = ToolMetadata(id="c", name=name, arguments=json.dumps(arguments))
    call = Aliases.parse_tool_call(sent)
    text = adapter.dump_json(call)
    assert adapter.validate_json(text).input == call.input
    assert adapter.validate_python(adapter.dump_python(call)).input == call.input
    for mode in ("validation", "serialization"):
        schema = adapter.json_schema(mode=mode)
        Draft202012Validator(schema).validate(json.loads(text))


DRAWN = count()


class Placed(BaseModel):
    first: str = Field(validation_alias=AliasPath("names", 0))
    cents: Annotated[int, AfterValidator(lambda value: 100 * value)] = 1


class Drawn(BaseModel):
    first: Annotated[str, AfterValidator(lambda value: f"{value}{next(DRAWN)}")] = Field(
        validation_alias=AliasPath("names", 0)
    )


@tool_fn
def take(given: Placed) -> str:
    """Take it."""
    return str(given.cents)


@tool_fn
def draw(given: Drawn) -> str:
    """Draw one."""
    return given.first


class Taking(Toolset):
    take = tool(take)
    draw = tool(draw)


def test_a_call_is_written_as_what_is_read_as_the_same_or_not_at_all() -> None:
    """What was sent counts where validators change what they read; nothing else is put there."""
    adapter: TypeAdapter[Any] = TypeAdapter(Taking.Call)
    given = {"names": ["a"], "cents": 2}
    call: Any = Taking.parse_tool_call(
        ToolMetadata(id="c", name="take", arguments=json.dumps(given))
    )
    text = adapter.dump_json(call)
    assert json.loads(text) == {"tool": "take", "input": given}
    assert adapter.validate_json(text).call_sync().output == "200"
    drawn = Taking.parse_tool_call(
        ToolMetadata(id="c", name="draw", arguments=json.dumps({"names": ["a"]}))
    )
    with pytest.raises(PydanticSerializationError, match="cannot be written as a model sends it"):
        adapter.dump_json(drawn)
