"""The laws of marks in annotations: `Skip()`, a context and a text for the model, in any place."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar, Union

import pytest
import typing_extensions
from pydantic import BaseModel, Field, PlainValidator, SkipValidation, field_validator  # noqa: F401 - annotations below name them
from typing_extensions import TypeAliasType, TypedDict

from lutum_py import Answer, Skip, ToolContext, ToolInput, tool_fn, tool_input
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.declared import call_of, declare, refusal, schema_of, spec_of

if TYPE_CHECKING:
    from nowhere import Database  # type: ignore[import-not-found]

T = TypeVar("T")
U = typing_extensions.TypeVar("U")

Live = TypeAliasType("Live", Annotated[str, Skip()])
LiveOf = TypeAliasType("LiveOf", Annotated[T, Skip()], type_params=(T,))
Maybe = TypeAliasType("Maybe", U | None, type_params=(U,))
Both = TypeAliasType("Both", Maybe[LiveOf[T]], type_params=(T,))
Swapped = TypeAliasType("Swapped", U | T, type_params=(T, U))
Written = TypeAliasType("Written", "Annotated[str, Skip()] | None")
Inner = TypeAliasType("Inner", Maybe[T], type_params=(T,))
Loop: Any = TypeAliasType("Loop", "Loop | None")
Chain = TypeAliasType("Chain", list[T] | None, type_params=(T,))
Context = TypeAliasType("Context", ToolContext)
City = TypeAliasType("City", Annotated[str, "Which city."])
Nowhere = TypeAliasType("Nowhere", "Missing | None")  # type: ignore[name-defined]  # noqa: F821


def ways() -> Iterator[str]:
    """Every way in which an author may write a mark around or inside of a type."""
    for one in ("Annotated[str, {mark}]", "Annotated[str, 'a note', {mark}]"):
        for around in (
            "{one}",
            "Optional[{one}]",
            "{one} | None",
            "None | {one} | int",
            "Union[int, {one}]",
            "Annotated[{one}, 'more']",
            "Annotated[Optional[{one}], Field(title='t')]",
            "Optional['{quoted}']",
            "Maybe[{one}]",
            "Inner[{one}]",
            "Swapped[int, {one}]",
            "Swapped[{one}, int]",
        ):
            yield around.format(one=one, quoted=one.replace("'", '"'))


NAMES = globals()


@over("annotation", [*ways()])
@over("mark", ["Skip()", "Skip"])
def test_a_skip_hides_the_parameter_wherever_it_is_in_the_annotation(
    annotation: str, mark: str
) -> None:
    """What the author hid is not in the schema, and no model sets it."""
    written = annotation.replace("{mark}", mark)
    for hint in (written, repr(written)):
        look = declare(NAMES, f"@tool_fn\ndef f(key: str, user: {hint} = 'me'): return user")
        assert list(schema_of(look)["properties"]) == ["key"]
        assert "user" in refusal(look, {"key": "k", "user": "admin"})
        assert call_of(look, {"key": "k"}).call_sync().result == '"me"'
        assert call_of(look, {"key": "k"}).call_sync(user="you").result == '"you"'


@over(
    "annotation",
    [
        "Live",
        "LiveOf[str]",
        "Live | None",
        "Optional[LiveOf[int]]",
        "Both[int]",
        "Annotated[Live, 'x']",
        "Written",
        "LiveOf",
    ],
)
def test_a_skip_hides_the_parameter_through_aliases(annotation: str) -> None:
    """An alias with the mark in it hides a parameter, as the mark does."""
    for hint in (annotation, repr(annotation)):
        look = declare(NAMES, f"@tool_fn\ndef f(key: str, user: {hint} = 'me'): return user")
        assert list(schema_of(look)["properties"]) == ["key"]
        assert "user" in refusal(look, {"key": "k", "user": "admin"})


def test_a_hidden_type_may_be_missing_in_any_place() -> None:
    """A type that only checkers import is not needed where a parameter is hidden."""

    @tool_fn
    def look(
        key: str,
        one: Optional[Annotated[Database, Skip()]],  # noqa: UP045 - as people write it
        two: Annotated[Database, Skip()] | None,
        three: LiveOf[Database],
        four: Union["Annotated[Database, Skip]", None],  # noqa: UP007, UP037
    ) -> list[Any]:
        return [key, one, two, three, four]

    assert list(schema_of(look)["properties"]) == ["key"]
    given = {"one": 1, "two": 2, "three": 3, "four": 4}
    assert call_of(look, {"key": "k"}).call_sync(**given).result == '["k",1,2,3,4]'


@over(
    "annotation",
    [
        "Context",
        "Optional[Context]",
        "Maybe[ToolContext]",
        "Annotated[Context, 'c']",
        "Annotated[ToolContext, 'c'] | None",
        "Annotated[Annotated[ToolContext, 1] | None, 2]",
    ],
)
def test_a_context_is_found_wherever_it_is_in_the_annotation(annotation: str) -> None:
    """A parameter that may be a `ToolContext` gets one, and the model sees none."""
    for hint in (annotation, repr(annotation)):
        who = declare(NAMES, f"@tool_fn\ndef f(a: int, c: {hint} = None): return c.call_id")
        assert list(schema_of(who)["properties"]) == ["a"]
        assert call_of(who, {"a": 1}).call_sync().result == '"c1"'


@over(
    "annotation",
    ["City", "Optional[City]", "Annotated[str, 'Which city.'] | None", "Maybe[City]"],
)
def test_a_text_is_found_wherever_it_is_in_the_annotation(annotation: str) -> None:
    """What an author writes of a parameter in its annotation reaches the model."""
    look = declare(NAMES, f"@tool_fn\ndef f(city: {annotation}): return city")
    assert schema_of(look)["properties"]["city"]["description"] == "Which city."


class Part(TypedDict):
    user: Annotated[str, Skip()]


@dataclass
class Record:
    key: str
    user: Annotated[Optional[str], Skip()] = None  # noqa: UP045


@dataclass
class Nested:
    part: Part


class Model(BaseModel):
    key: str
    user: Annotated[str, Field(title="t"), Skip()] = "me"


class Outer(ToolInput[str]):
    items: list[Model]


class Own(ToolInput[str]):
    user: Live = "me"


class Tree(ToolInput[str]):
    below: Annotated[Optional[Tree], Skip] = None  # noqa: UP045


@over(
    "declared, where",
    [
        (lambda: Own, "Tool input `Own`: `user`"),
        (lambda: Outer, "Tool input `Outer`: `items.user`"),
        (lambda: Tree, "Tool input `Tree`: `below`"),
        (lambda: tool_input(output=str)(Model), "Tool input `Model`: `user`"),
        ("a: Part", "`user`"),
        ("a: Record", "`user`"),
        ("a: Nested", "`part.user`"),
        ("a: Model", "`user`"),
        ("a: Model | None = None", "`a.user`"),
        ("a: list[Annotated[int, Skip()]]", "`a`"),
        ("a: dict[str, Live]", "`a`"),
        ("a: list[Written], b: int = 1", "`a`"),
        ("a: Annotated[str, Field(default_factory=str)], b: list[Part] = []", "`b.user`"),
    ],
)
def test_a_skip_that_hides_nothing_is_refused(declared: Any, where: str) -> None:
    """A mark where the model fills in all is an error that names the field and the way."""
    if isinstance(declared, str):
        declared = partial(declare, NAMES, f"@tool_fn\ndef f({declared}): return 1")
    with pytest.raises(ToolDefinitionError) as caught:
        spec_of(declared())
    assert f"{where} has a `Skip()`" in str(caught.value)
    assert "`name: Annotated[..., Skip()]`" in str(caught.value)


@over(
    "kind",
    [
        "class f(ToolInput[str]):\n    user: {} = None",
        "class M(BaseModel):\n    user: {} = None\n@tool_fn\ndef f(a: M, b: int): return 1",
        "class M(TypedDict):\n    user: {}\n@tool_fn\ndef f(a: list[M]): return 1",
        "@dataclass\nclass M:\n    user: {}\n@tool_fn\ndef f(a: M): return 1",
        "class M(typing.NamedTuple):\n    user: {}\n@tool_fn\ndef f(a: M): return 1",
        "class M(BaseModel, typing.Generic[T]):\n    user: T\n@tool_fn\ndef f(a: M[{}]): return 1",
        "@dataclass\nclass M(typing.Generic[T]):\n    user: T\n@tool_fn\ndef f(a: M[{}]): return 1",
        "@tool_fn\ndef f(a: list[{}]): return 1",
        "@tool_fn\ndef f(a: dict[str, Chain[{}]]): return 1",
    ],
)
@over(
    "annotation",
    [
        "Annotated[str, Skip(), PlainValidator(str)]",
        "Annotated[str, Skip, PlainValidator(str), Field(title='t')]",
        "Annotated[str, Skip(), SkipValidation()]",
        "SkipValidation[Annotated[str, Skip()]]",
        "SkipValidation[Live]",
    ],
)
def test_a_skip_under_a_validator_that_replaces_the_schema_is_refused(
    kind: str, annotation: str
) -> None:
    """A validator that takes the place of a type does not take the mark away."""
    with pytest.raises(ToolDefinitionError, match=r"has a `Skip\(\)`"):
        spec_of(declare(NAMES, kind.format(annotation)))


def test_a_skip_under_a_validator_in_the_class_is_refused() -> None:
    """A plain validator of a class is one, too."""

    class Own(ToolInput[str]):
        user: Annotated[str | None, Skip()] = None

        @field_validator("user", mode="plain")
        @classmethod
        def as_it_is(cls, value: Any) -> Any:
            return value  # pragma: no cover - no call is made

    with pytest.raises(ToolDefinitionError, match=r"`user` has a `Skip\(\)`"):
        spec_of(Own)


def test_a_skip_in_an_answer_is_refused() -> None:
    """An answer is filled in by the model, too."""
    with pytest.raises(ToolDefinitionError, match=r"`user` has a `Skip\(\)`"):
        Answer(Model)


@over("default", ["Skip()", "Skip"])
def test_a_skip_as_a_default_is_refused(default: str) -> None:
    """Only a mark hides: a default that is one is an author's slip."""
    with pytest.raises(ToolDefinitionError, match="the default of parameter `user` is a `Skip`"):
        _ = declare(NAMES, f"@tool_fn\ndef f(user: str = {default}): return 1").definition


def test_a_skip_in_what_a_tool_returns_is_no_matter() -> None:
    """Nobody fills in an output."""

    @tool_fn
    def look(key: str) -> Model:
        return Model(key=key)

    assert call_of(look, {"key": "k"}).call_sync().result == '{"key":"k","user":"me"}'


@over(
    "annotation",
    ["Nowhere", "'Skip() but'", "'no annotation'", "'Missing[int]'", "list[ToolContext]"],
)
def test_an_annotation_without_a_type_is_no_hidden_parameter(annotation: str) -> None:
    """What cannot be evaluated, or holds a context inside, hides nothing."""
    with pytest.raises(ToolDefinitionError):
        _ = declare(NAMES, f"@tool_fn\ndef f(a: {annotation}): return 1").definition


def test_an_alias_may_hold_itself() -> None:
    """An alias that leads back to itself is walked once."""
    look = declare(NAMES, "@tool_fn\ndef f(a: Loop): return 1")
    assert list(schema_of(look)["properties"]) == ["a"]


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="needs the `type` statement")
def test_a_type_statement_is_an_alias() -> None:
    """`type X = ...` hides as every other alias does."""
    source = (
        "type One = Annotated[str, Skip()]\n"
        "type Of[X] = Annotated[X, Skip()]\n"
        "type Ctx = ToolContext\n"
        "@tool_fn\n"
        "def f(key: str, c: Ctx, a: One = '', b: Of[int] | None = None): return c.call_id\n"
    )
    look = declare(NAMES, source)
    assert list(schema_of(look)["properties"]) == ["key"]
    assert call_of(look, {"key": "k"}).call_sync().result == '"c1"'
