"""The laws of the input policy: closed at the top, as the author has it below, never changed."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal, TypeAlias

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    Tag,
    create_model,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import core_schema
from typing_extensions import TypedDict

from lutum_py import ToolInput, tool_fn, tool_input
from lutum_py._schema.closed_schema import close_top
from lutum_py._text.json import infinity_in
from lutum_py.errors import ToolDefinitionError, ToolInputError, ToolOutputError
from tests.cases import over
from tests.declared import call_of, refusal, schema_of, spec_of

UNKNOWN = "there is no such field"


class Inner(BaseModel):
    a: int = 0


class Plain(BaseModel):
    a: int = 0
    inner: Inner = Inner()


class Allowing(Plain):
    model_config = ConfigDict(extra="allow")


class Ignoring(Plain):
    model_config = ConfigDict(extra="ignore")


class Recursive(BaseModel):
    a: int = 0
    next: Recursive | None = None


class Checked(Plain):
    @model_validator(mode="after")
    def small(self) -> Checked:
        if self.a > 9:
            raise ValueError("too big")
        return self


@dataclasses.dataclass
class Standard:
    a: int = 0
    inner: Inner = dataclasses.field(default_factory=Inner)


@pydantic_dataclass(config=ConfigDict(extra="ignore"))
class Tolerant:
    a: int = 0


@pydantic_dataclass
class Own:
    a: int = 0


class Typed(TypedDict, total=False):
    a: int
    inner: Inner


class TypedAllowing(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int


def tool_of(kind: Any, **options: Any) -> Any:
    """A tool whose whole input is of a type."""

    def take(value: Any) -> None:
        return None

    take.__annotations__["value"] = kind
    return tool_fn(**options)(take)


CLOSED = [Plain, Recursive, Checked, Standard, Own, Typed]
OPEN = [Allowing, Ignoring, Tolerant, TypedAllowing]


@over("kind", CLOSED)
def test_unknown_arguments_are_refused(kind: Any) -> None:
    """A type that says nothing of unknown arguments takes none, and its schema says so."""
    tool = tool_of(kind)
    assert UNKNOWN in refusal(tool, {"a": 1, "more": 2})
    assert schema_of(tool)["additionalProperties"] is False
    assert call_of(tool, {"a": 1}).input


@over("kind", OPEN)
@over("strict", [False, True])
def test_a_policy_of_the_author_holds(kind: Any, strict: bool) -> None:
    """A type whose own config says what becomes of unknown arguments is taken at its word."""
    tool = tool_of(kind, strict=strict)
    assert call_of(tool, {"a": 1, "more": 2})
    assert schema_of(tool).get("additionalProperties") is not False
    if strict:
        assert "`a`: Input should be a valid integer (got '1')" in refusal(tool, {"a": "1"})


@pytest.mark.parametrize("kind", [Plain, Recursive, Checked, Standard])
def test_only_the_top_level_is_closed(kind: Any) -> None:
    """What is nested is as its author has it, and the class itself takes what it took."""
    tool = tool_of(kind)
    below = "next" if kind is Recursive else "inner"
    call = call_of(tool, {"a": 1, below: {"a": 2, "more": 3}})
    assert getattr(call.input, below).a == 2
    if issubclass(kind, BaseModel):
        assert kind.model_validate({"more": 1}) == kind()
        assert kind.__pydantic_complete__ is True


def test_validators_of_a_closed_model_run() -> None:
    """The checks of the author's class hold in its closed form."""
    assert refusal(tool_of(Checked), {"a": 10}) == ("- Value error, too big (got {'a': 10})")


Marked: TypeAlias = Annotated[
    Annotated[Plain, BeforeValidator(lambda value: value)],
    AfterValidator(lambda value: value),
    Field(description="Marked."),
]


def test_annotations_around_an_input_hold() -> None:
    """Validators around a single object run, and it is closed below them."""
    tool = tool_of(Marked)
    assert tool.Input is Plain
    assert UNKNOWN in refusal(tool, {"more": 1})
    assert call_of(tool, {"a": 1}).input == Plain(a=1)
    assert list(schema_of(tool)["$defs"]) == ["Inner"]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Tree(BaseModel):
    kind: Literal["tree"]
    left: Pet | None = None


class Pet(RootModel[Annotated[Cat | Dog | Tree, Field(discriminator="kind")]]):
    """One of them."""


class AnyPet(RootModel[Annotated[Cat, Field(description="x")] | Dog | None]):
    """One of them, perhaps."""


class OnlyOpen(RootModel[Annotated[Allowing | Ignoring, Field(union_mode="left_to_right")]]):
    """Two that say what they take."""


class OnlyTagged(RootModel[Annotated["OpenCat | OpenDog", Field(discriminator="kind")]]):
    """Two with tags, that say what they take."""


class OpenCat(Cat):
    model_config = ConfigDict(extra="ignore")


class OpenDog(Dog):
    model_config = ConfigDict(extra="allow")


def test_members_of_a_union_are_closed() -> None:
    """Each member of a union at the top refuses unknown arguments, unless it says otherwise."""
    pet = tool_input(output=int)(Pet)
    assert "`dog.more`: there is no such field" in refusal(pet, {"kind": "dog", "more": 1})
    nested = {"kind": "tree", "left": {"kind": "cat", "more": 1}}
    assert call_of(pet, nested).input.root.left.root.lives == 9
    only = tool_input(output=int)(OnlyOpen)
    assert call_of(only, {"more": 1}).input.root.model_extra == {"more": 1}
    tagged = tool_input(output=int)(OnlyTagged)
    assert call_of(tagged, {"kind": "dog", "more": 1}).input.root.model_extra == {"more": 1}


def test_a_union_with_null_is_no_object() -> None:
    """A tool's arguments are an object, so a union with null is none."""
    with pytest.raises(ToolDefinitionError):
        tool_input(output=int)(AnyPet)


def test_closing_reaches_through_labels_and_references() -> None:
    """Labelled choices, nullable and referred schemas are closed like any other."""
    adapted = close_top(Annotated[Cat | Dog | None, Field()], strict=False)
    assert adapted.closed
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        adapted.validator.validate_json('{"kind": "cat", "more": 1}')
    assert adapted.validator.validate_json("null") is None
    labelled = close_top(Annotated[Cat, Tag("c")] | Annotated[Dog, Tag("d")], strict=False)
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        labelled.validator.validate_json('{"kind": "dog", "more": 1}')
    assert labelled.validator.validate_json('{"kind": "dog"}') == Dog(kind="dog")


def test_strict_is_for_the_whole_input() -> None:
    """A strict tool takes fields as they are, those of a nested model as well."""

    @tool_fn(strict=True)
    def take(a: int, inner: Inner, b: float = 0) -> None:
        """Take."""

    assert call_of(take, {"a": 1, "inner": {"a": 2}, "b": 3}).input.inner.a == 2
    assert refusal(take, {"a": 1, "inner": {"a": "2"}}) == (
        "- `inner.a`: Input should be a valid integer (got '2')"
    )
    assert refusal(take, {"a": "1", "inner": {}}) == (
        "- `a`: Input should be a valid integer (got '1')"
    )
    call = call_of(take, {"a": 1, "inner": {}})
    call.input = take.Input(a=2, inner=Inner(a=3))
    assert call.input.inner == Inner(a=3)
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["a"]
    ):
        call.input = {"a": "1", "inner": {}}
    root: Any = tool_input(output=int, strict=True, name="pets")(type("Pets", (Pet,), {}))
    assert call_of(root, {"kind": "cat", "lives": 1}).input.root.lives == 1


def test_a_generated_input_refuses_assignments() -> None:
    """A generated input is frozen: a call gets another one, which is validated."""

    @tool_fn
    def take(a: int) -> None:
        """Take."""

    call = call_of(take, {"a": 1})
    with pytest.raises(ValueError, match="Instance is frozen"):
        call.input.a = 2
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["a"]
    ):
        call.input = {"a": "x"}
    call.input = take.Input(a=2)
    assert call.input.a == 2


def test_numbers_are_finite_without_a_change_to_the_class() -> None:
    """Only the tool's use of a type is bounded, and only where something is not."""

    class Bounded(ToolInput[int]):
        model_config = ConfigDict(allow_inf_nan=False)
        a: float = 0
        b: Annotated[float, Field(allow_inf_nan=False)] = 0

    class Unbounded(ToolInput[int]):
        a: Annotated[float, Field(allow_inf_nan=False)] = 0
        b: float = 0

    class Extras(ToolInput[int]):
        model_config = ConfigDict(extra="allow")
        __pydantic_extra__: dict[str, float]

    assert not close_top(Bounded, strict=False).bounded
    assert close_top(Unbounded, strict=False).bounded
    assert spec_of(Bounded).arguments.validate_json == Bounded.__pydantic_validator__.validate_json
    assert "finite" in refusal(Unbounded, '{"b": 1e999}')
    assert "finite" in refusal(Extras, '{"more": "nan"}')
    assert "valid number" in refusal(Extras, '{"more": "x"}')
    assert Unbounded.model_validate_json('{"b": "nan"}').b != 0


@over(
    "name", ["type", "default", "metadata", "members", "expected", "serialization", "cls", "config"]
)
def test_fields_may_be_called_like_words_of_pydantic(name: str) -> None:
    """A field has the name that its author likes: its numbers are finite, on the way in and out."""
    fields: Any = {name: (float, ...)}
    Part: Any = create_model("Part", **fields)

    @tool_fn
    def take(part: Part, more: Any) -> Part:
        """Take."""
        return part

    given = {name: 1.5}
    assert call_of(take, {"part": given, "more": 1}).call_sync().output == given
    assert "finite" in refusal(take, f'{{"part": {{"{name}": 1e999}}, "more": 1}}')
    with pytest.raises(ToolOutputError, match=f"`{name}`: JSON has neither NaN"):
        call_of(take, {"part": given, "more": 1}).complete(Part(**{name: math.nan}))


def test_infinities_are_found_anywhere() -> None:
    """The first number that JSON cannot carry is found, with its place."""
    nan = float("nan")
    assert infinity_in({"a": [1, {"b": nan}]}) == (("a", 1, "b"), nan)
    found = infinity_in((1.5, {"x"}, None, "nan", frozenset({float("inf")})))
    assert found is not None
    assert found[0] == (4, 0)
    assert infinity_in([1, 2.5, True, "inf"]) is None


def test_a_union_that_came_in_a_value_field_is_taken_out() -> None:
    """Strict providers take no union at the root, so it is offered in `value` and read there."""

    class Near(BaseModel):
        city: str

    class Far(BaseModel):
        planet: str

    @tool_input(output=str)
    class Place(RootModel[Near | Far]):
        pass

    call = call_of(Place, '{"value":{"planet":"Mars"}}')
    assert (call.input.root, call.coerced) == (Far(planet="Mars"), ("value",))


class ByHand:
    """A type that says by itself how it is read: as a dict, of no class."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        number = core_schema.typed_dict_field(core_schema.int_schema())
        return core_schema.typed_dict_schema({"number": number})


def test_a_schema_that_names_no_class_is_taken() -> None:
    """What pydantic takes as a type is a parameter, described, read and refused like others."""

    @tool_fn
    def look_up(key: ByHand) -> str:
        return str(key)

    found = schema_of(look_up)["properties"]["key"]
    assert found["properties"] == {"number": {"type": "integer"}}
    assert call_of(look_up, '{"key": {"number": 1}}').call_sync().output == "{'number': 1}"
    assert "number" in refusal(look_up, '{"key": {"number": "x"}}')
