"""The laws of `@tool_input` and `ToolInput`: a model of the arguments is a tool."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag, computed_field
from typing_extensions import TypedDict

from lutum_py import ToolDef, ToolInput, tool, tool_fn, tool_input
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import ToolDefinitionError, ToolOutputError
from tests.cases import over
from tests.declare.declared_inputs import Decorated
from tests.declared import call_of, refusal, schema_of, spec_of

K = TypeVar("K")
T = TypeVar("T")


class User(BaseModel):
    name: str


@tool_input(output=User)
class GetUserArgs(BaseModel):
    """Look a user up.

    By id.
    """

    user_id: str
    """The user's id."""
    depth: int = Field(1, description="The field's own.")
    """Loses."""


class SearchInput(ToolInput[list[User]]):
    """Search."""

    query: str
    """What to look for."""


@tool_input(
    name="remove_user",
    description="Remove a user.",
    timeout=3,
    category="admin",
    capabilities=ToolCapabilities(emits_progress=True),
    idempotent=True,
    strict=True,
)
class RemoveArgs(ToolInput[None]):
    """Never told."""

    user_id: int


class Untyped(ToolInput):  # type: ignore[type-arg]
    a: int


def test_a_decorated_model_is_a_tool() -> None:
    """Name, texts and schema come from the class; its attribute docstrings describe fields."""
    definition = spec_of(GetUserArgs).definition
    assert definition.name == "get_user"
    assert definition.description == "Look a user up.\n\nBy id."
    assert definition.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "user_id": {"type": "string", "description": "The user's id."},
            "depth": {"type": "integer", "default": 1, "description": "The field's own."},
        },
        "required": ["user_id"],
    }
    assert definition.output_schema == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    call = call_of(GetUserArgs, {"user_id": "u"})
    assert call.input == GetUserArgs(user_id="u", depth=1)
    assert call.complete(User(name="Ann")).result == '{"name":"Ann"}'


@dataclass
class Stop:
    city: str
    """Where."""


@dataclass
class LongStop(Stop):
    nights: int = 1
    """How long."""


class Mode(TypedDict):
    kind: str
    """Train or bus."""


class Leg(BaseModel):
    arrival: LongStop = Field(alias="to")
    """Where it ends."""
    mode: Mode
    """What goes there."""
    longest: ClassVar[int] = 9
    """No field."""


def test_texts_under_fields_are_told_wherever_a_class_stands() -> None:
    """Each class that an input is made of describes its fields by the texts under them."""

    @tool_fn
    def plan(legs: list[Leg]) -> None:
        """Plan a journey."""

    told = {
        name: {field: each.get("description") for field, each in part["properties"].items()}
        for name, part in plan.definition.input_schema["$defs"].items()
    }
    assert told == {
        "Leg": {"to": "Where it ends.", "mode": "What goes there."},
        "LongStop": {"city": "Where.", "nights": "How long."},
        "Mode": {"kind": "Train or bus."},
    }


def test_a_tool_input_needs_no_decorator() -> None:
    """`ToolInput[Out]` says enough where the defaults serve."""
    assert tool(SearchInput).spec is spec_of(SearchInput)
    assert spec_of(SearchInput).definition.name == "search"
    assert schema_of(SearchInput)["properties"]["query"]["description"] == "What to look for."
    call = call_of(SearchInput, {"query": "q"})
    assert call.complete([User(name="A")]).result == '[{"name":"A"}]'
    assert spec_of(Decorated).output.type is int
    assert spec_of(Untyped).output.type is None
    assert call_of(Untyped, {"a": 1}).complete({"any": ["thing"]}).result == '{"any":["thing"]}'


def test_options_reach_the_definition() -> None:
    """What the decorator is told stands in the definition, and beats the class."""
    told = spec_of(RemoveArgs).definition.to_dict()
    assert told["name"] == "remove_user"
    assert told["description"] == "Remove a user."
    assert told["timeout"] == 3
    assert told["category"] == "admin"
    assert told["capabilities"]["emits_progress"] is True
    assert told["idempotent"] is True
    assert told["strict"] is True
    assert refusal(RemoveArgs, {"user_id": "1"}) == (
        "- `user_id`: Input should be a valid integer (got '1')"
    )
    assert call_of(RemoveArgs, {"user_id": 1}).complete(None).result == "null"


def test_the_call_class_is_the_models() -> None:
    """`Model.Call` is the class of its calls, with an honest name."""
    models: list[Any] = [GetUserArgs, SearchInput]
    for model in models:
        call_type = model.Call
        assert call_type.__name__ == f"{model.__name__}Call"
        assert call_type.__qualname__ == f"{model.__name__}.Call"
        assert call_type.__module__ == __name__
        assert pickle.loads(pickle.dumps(call_type)) is call_type
    assert isinstance(call_of(GetUserArgs, {"user_id": "u"}), GetUserArgs.Call)  # type: ignore[attr-defined]


def test_the_users_class_stays_as_it_is() -> None:
    """Decorating changes neither config nor fields nor what the class itself accepts."""

    class Before(BaseModel):
        a: int = 1

    config, fields = dict(Before.model_config), dict(Before.model_fields)
    schema, complete = Before.model_json_schema(), Before.__pydantic_complete__
    after = tool_input(output=int)(Before)
    assert after is Before
    assert Before.model_config == config
    assert Before.model_fields == fields
    assert Before.model_json_schema() == schema
    assert Before.__pydantic_complete__ is complete
    assert Before.model_validate({"a": 2, "more": 3}) == Before(a=2)
    # As a tool, the same class takes no unknown argument.
    assert refusal(Before, {"more": 3}) == (
        "- `more`: there is no such field; the fields are `a` (got 3)"
    )
    assert type(call_of(Before, {"a": 2}).input) is Before


NAMES = {
    "GetUserArgs": "get_user",
    "HTTPGet": "http_get",
    "Args": "args",
    "Input": "input",
    "XInput": "x",
    "ArgsInput": "args",
    "getURLArgs": "get_url",
    "V2Input": "v2",
    "Get_user": "get_user",
}


@over("name", NAMES)
def test_the_default_name_is_that_of_the_class(name: str) -> None:
    """The name is the class name in snake case without a trailing `Args` or `Input`."""
    model = type(name, (BaseModel,), {"__module__": __name__})
    assert spec_of(tool_input(output=int)(model)).definition.name == NAMES[name]


# Unions: what Lutum does with an enum.


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float
    """From its middle."""


class Square(BaseModel):
    kind: Literal["square"]
    side: float


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    kind: Literal["loose"]


@tool_input(output=str)
class Shape(RootModel[Circle | Square]):
    """Draw a shape."""


@tool_input(output=str)
class Tagged(RootModel[Annotated[Circle | Square | Loose, Field(discriminator="kind")]]):
    """Draw a shape by its tag."""


@tool_input(output=str)
class Told(
    RootModel[
        Annotated[
            Annotated[Circle, Tag("circle")] | Annotated[Square, Tag("square")],
            Discriminator(lambda data: data.get("kind")),
        ]
    ]
):
    """Draw a shape by what a function tells of it."""


@pytest.mark.parametrize("model", [Shape, Tagged])
def test_a_union_is_one_tool(model: Any) -> None:
    """A `RootModel` over a union of models makes one tool of all of them."""
    assert call_of(model, {"kind": "circle", "radius": 1}).input.root == Circle(
        kind="circle", radius=1
    )
    assert type(call_of(model, {"kind": "square", "side": 2}).input.root) is Square
    definitions = schema_of(model)["$defs"]
    assert definitions["Circle"]["properties"]["radius"]["description"] == "From its middle."
    said = refusal(model, {"kind": "square", "side": 2, "more": 1})
    assert "more`: there is no such field (got 1)" in said


def test_a_member_of_a_union_keeps_its_policy() -> None:
    """A member whose config allows unknown fields keeps them, its siblings refuse them."""
    call = call_of(Tagged, {"kind": "loose", "more": 1})
    assert call.input.root.model_extra == {"more": 1}


def test_a_union_is_told_of_its_tags() -> None:
    """Arguments of no member name the members that there are; redaction hides what came."""
    assert refusal(Tagged, {"kind": "secret"}) == (
        "- Input tag 'secret' found using 'kind' does not match any of the expected tags: "
        "'circle', 'square', 'loose' (got {'kind': 'secret'})"
    )
    assert refusal(Tagged, {"kind": "secret"}, redact=True) == (
        "- Input is not what the tool allows here"
    )
    assert len(refusal(Tagged, {"kind": "s" * 1_000_000})) < 600


def test_a_union_without_its_tag_names_the_field_that_is_missing() -> None:
    """A model is told which field tells the members apart, and nothing of a function that does."""
    assert refusal(Tagged, {"side": 2}) == (
        "- the field `kind` is required: it tells which kind of object this is (got {'side': 2})"
    )
    assert refusal(Told, {"side": 2}).startswith("- Unable to extract tag using discriminator ")


def test_the_target_of_an_effect_is_an_argument_of_some_member_of_a_union() -> None:
    """What an effect acts on is looked for in every model of a union."""

    def declare(target: str) -> Any:
        effect = ToolEffect("write_file", target)

        @tool_input(output=str, capabilities=ToolCapabilities(effects=[effect]))
        class Drawn(RootModel[Circle | Square]):
            """Draw a shape."""

        return spec_of(Drawn).definition

    assert declare("side").capabilities.effects[0].target == "side"
    with pytest.raises(ToolDefinitionError):
        declare("sied")


def test_a_model_of_a_mapping_is_an_object() -> None:
    """A `RootModel` of a dict is an object too."""

    @tool_input(output=int)
    class Scores(RootModel[dict[str, int]]):
        """Scores by name."""

    assert call_of(Scores, {"a": 1}).input.root == {"a": 1}


# Subclasses.


class Child(Decorated):
    b: int = 1


class ChildOfModel(GetUserArgs):
    b: int = 1


@tool_input(name="grown_up")
class GrownUp(Decorated):
    b: int = 1


class SearchMore(SearchInput):
    limit: int = 5


class Base(BaseModel):
    a: int


class Mixed(ToolInput[User], Base):
    pass


class Paged(ToolInput[T], Generic[T]):
    page: int = 1


class Users(Paged[User]):
    pass


class Noted(ToolInput):  # type: ignore[type-arg]
    note: str = ""


class NotedInts(Noted, ToolInput[int]):
    pass


class Page(BaseModel, Generic[T]):
    items: list[T]


class Listed(ToolInput[list[T]], Generic[T]):
    pass


class PagesListed(Listed[Page[T]], Generic[T]):
    pass


class Alike(ToolInput[dict[K, Annotated[T, Field(gt=0)]]], Generic[K, T]):
    pass


class AlikeByName(Alike[str, T], Generic[T]):
    pass


@pytest.mark.parametrize("model", [Child, ChildOfModel])
def test_a_subclass_of_a_decorated_model_is_no_tool(model: Any) -> None:
    """What a decorator says holds for one class only."""
    expected = (
        f"`{model.__name__}` inherits from the tool `{model.__base__.__name__}`, but is not a tool "
        "itself. Decorate it with `@tool_input(...)`, under a name of its own."
    )
    for use in (lambda: tool(model), lambda: model.Call, model.__lutum_tool__):
        with pytest.raises(ToolDefinitionError) as caught:
            use()
        assert str(caught.value) == expected


def test_a_decorated_subclass_is_a_tool_of_its_own() -> None:
    """A subclass that is decorated, or whose parents are not, is another tool."""
    assert spec_of(GrownUp).definition.name == "grown_up"
    assert GrownUp.Call is not Decorated.Call
    assert spec_of(GrownUp).output.type is int
    assert spec_of(SearchMore).definition.name == "search_more"
    assert spec_of(SearchMore).output.type == list[User]
    properties = schema_of(SearchMore)["properties"]
    assert properties["query"]["description"] == "What to look for."


def test_the_output_is_found_through_bases() -> None:
    """`ToolInput[Out]` may stand beside other bases, or be generic in `Out`."""
    assert spec_of(Mixed).output.type is User
    assert spec_of(Users).output.type is User
    assert spec_of(Paged[int]).output.type is int
    assert spec_of(Paged).output.type is None
    assert spec_of(NotedInts).output.type is int


def test_type_variables_in_an_output_stand_for_what_is_given() -> None:
    """`Users(Listed[User])` of `Listed(ToolInput[list[T]])` gives `list[User]`, at any depth."""
    assert spec_of(Listed[User]).output.type == list[User]
    assert spec_of(PagesListed[User]).output.type == list[Page[User]]
    with pytest.raises(ToolOutputError):
        call_of(PagesListed[User], {}).complete([{"items": [3]}])
    by_name = call_of(AlikeByName[int], {})
    assert by_name.complete({"a": 1}).result == '{"a":1}'
    for wrong in ({"a": 0}, {"a": "x"}, {1: 1}):
        with pytest.raises(ToolOutputError):
            by_name.complete(wrong)


# Names that the decorator would take.


@tool_input(output=int)
class CallField(BaseModel):
    Call: int


class CallFieldToo(ToolInput[int]):
    Call: int  # type: ignore[misc]


@tool_input(output=int)
class CallConstant(BaseModel):
    Call: ClassVar[str] = "mine"


def test_what_the_user_calls_call_stays() -> None:
    """A field or constant of the name `Call` is the user's."""
    assert call_of(CallField, {"Call": 1}).input.Call == 1
    assert call_of(CallFieldToo, {"Call": 1}).input.Call == 1
    assert CallConstant.Call == "mine"


# Travelling.


class Renamed(ToolInput[int]):
    read: int = Field(validation_alias="in")
    written: int = Field(1, serialization_alias="out")


class Computed(ToolInput[int]):
    a: int = 1

    @computed_field
    def double(self) -> int:
        return 2 * self.a


@over(
    "model, arguments",
    [
        (GetUserArgs, {"user_id": "u"}),
        (SearchInput, {"query": "q"}),
        (Tagged, {"kind": "loose", "more": 1}),
        (Renamed, {"in": 3}),
        (Computed, {"a": 2}),
    ],
)
def test_calls_travel(model: Any, arguments: dict[str, Any]) -> None:
    """A call pickles and copies, and its input comes back from its text."""
    call = call_of(model, arguments)
    for back in (pickle.loads(pickle.dumps(call)), copy.deepcopy(call), copy.copy(call)):
        assert type(back) is type(call)
        assert back.parts == call.parts
        assert back.digest == call.digest
    codec = call.spec.arguments
    assert codec.read(codec.whole(call.input)) == call.input


def test_an_output_is_checked() -> None:
    """`complete` names tool and field of what does not fit."""
    with pytest.raises(ToolOutputError) as caught:
        call_of(GetUserArgs, {"user_id": "u"}).complete({"name": 3})
    assert str(caught.value) == (
        "The output of tool `get_user` does not fit its output type `User`: `name`: Input should "
        "be a valid string (got 3). Return what the tool declares, or correct the declared type."
    )
    assert caught.value.tool == "get_user"
    assert [issue.path for issue in caught.value.fields] == ["name"]


def test_a_definition_of_a_model_equals_itself() -> None:
    """Two definitions are equal when all that they say is."""
    definition = spec_of(GetUserArgs).definition
    assert definition == definition.with_name("get_user")
    assert definition != definition.with_name("other")
    assert isinstance(pickle.loads(pickle.dumps(definition)), ToolDef)


def test_two_output_types_are_one_too_many() -> None:
    """What checkers read in `ToolInput[...]` and what `output=` says cannot differ."""

    class Torn(ToolInput[int]):
        x: int

    with pytest.raises(ToolDefinitionError):
        tool_input(output=str)(Torn)


def test_without_source_a_field_is_described_by_its_field_alone() -> None:
    """Where no file holds the class, docstrings of attributes are lost, and nothing else is."""
    source = """
class Args(ToolInput[str]):
    \"\"\"Look it up.\"\"\"

    name: str
    \"\"\"Lost.\"\"\"
    kept: str = Field(description="Kept.")
"""
    names: dict[str, Any] = {"ToolInput": ToolInput, "Field": Field, "__name__": __name__}
    exec(source, names)
    definition = tool(names["Args"]).spec.definition
    fields = definition.input_schema["properties"]
    assert definition.description == "Look it up."
    assert "description" not in fields["name"]
    assert fields["kept"]["description"] == "Kept."
