"""The laws of parameters: whatever they are called, and whoever fills them in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from lutum_py import Skip, ToolContext, tool_fn
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.declared import call_of, declare, refusal, schema_of

if TYPE_CHECKING:
    from nowhere import Database  # type: ignore[import-not-found]


Secret = Annotated[str, Skip()]


def test_mutable_defaults_are_copied_for_each_call() -> None:
    """What one call does to a default, the next one does not see."""

    @dataclass
    class Box:
        items: list[int] = dataclass_field(default_factory=list)

    class Model(BaseModel):
        items: list[int] = []

    @tool_fn
    def fill(
        _plain: list[int] = [],  # noqa: B006
        box: Box = Box(),  # noqa: B008
        model: Model = Model(),  # noqa: B008
    ) -> list[int]:
        for items in (_plain, box.items, model.items):
            items.append(1)
        return _plain + box.items + model.items

    for _ in range(3):
        assert call_of(fill).call_sync().result == "[1,1,1]"


def test_fields_and_validators_of_annotations_hold() -> None:
    """`Annotated[..., Field(...)]` and validators check arguments, and describe them."""

    @tool_fn
    def pick(
        count: Annotated[int, Field(ge=1, description="How many.")],
        name: Annotated[str, AfterValidator(str.strip)] = "x",
        kind: Literal["a", "b"] = Field("a", description="Which kind."),
        many: list[int] = Field(default_factory=list),  # noqa: B008
        _hidden: int = Field(3, gt=2),
    ) -> str:
        """Pick.

        Args:
            count: Loses against the field's own.
            name: A name.
            kind: Loses too.
            many: Wins.
        """
        return f"{count}{name}{kind}{many}{_hidden}"

    properties = schema_of(pick)["properties"]
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert properties["name"]["description"] == "A name."
    assert properties["kind"]["description"] == "Which kind."
    assert properties["many"]["description"] == "Wins."
    assert call_of(pick, {"count": 2, "name": " y "}).call_sync().result == '"2ya[]3"'
    assert call_of(pick, {"count": 2, "_hidden": 9}).call_sync().result == '"2xa[]9"'
    assert refusal(pick, {"count": 0, "_hidden": 1}) == (
        "- `count`: Input should be greater than or equal to 1 (got 0)\n"
        "- `_hidden`: Input should be greater than 2 (got 1)"
    )


def test_a_text_in_an_annotation_describes_a_parameter() -> None:
    """A text beside the type is what the model reads of a parameter that nothing else describes."""

    @tool_fn
    def move(  # noqa: D417 - that is what is tried
        city: Annotated[str, "Which city."],
        days: Annotated[int | None, "How many.", "and more"] = None,
        unit: Annotated[str, "Loses."] = "C",
        kind: Annotated[str, "Loses too.", Field(description="Wins.")] = "x",
    ) -> str:
        """Move.

        Args:
            city:
            unit: The unit.
        """
        return f"{city}{days}{unit}{kind}"

    properties = schema_of(move)["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        "city": "Which city.",
        "days": "How many.",
        "unit": "The unit.",
        "kind": "Wins.",
    }
    assert call_of(move, {"city": "Oslo"}).call_sync().result == '"OsloNoneCx"'


def test_an_alias_of_the_author_is_the_name_on_the_wire() -> None:
    """An alias in `Field` names the argument, also of a parameter that would need one of ours."""

    @tool_fn
    def sort(
        by: Annotated[str, Field(alias="sortBy")], _dir: Annotated[str, Field(alias="dir")] = "up"
    ) -> str:
        return by + _dir

    assert list(schema_of(sort)["properties"]) == ["sortBy", "dir"]
    assert call_of(sort, {"sortBy": "n", "dir": "down"}).call_sync().result == '"ndown"'


HOSTILE = [
    "model_config",
    "_x",
    "x_",
    "__x",
    "_",
    "json",
    "copy",
    "self_",
    "input",
    "model_fields_set",
    "schema",
    "validate",
    "construct",
    "dict",
    "model_dump",
    "model_",
    "__class__",
    "__dict__",
    "mro",
    "args",
    "kwargs",
    "field",
    "call",
    "context",
    "é",
    "class_",
]


@over("name", HOSTILE)
def test_any_parameter_name_works(name: str) -> None:
    """A parameter may be called anything: on the wire, in the constructor and in the call."""
    f = declare(globals(), f"@tool_fn\ndef f({name}: int): return {name}")
    call = call_of(f, {name: 3})
    assert call.input == f.Input(**{name: 3})
    assert call.call_sync().result == "3"
    assert schema_of(f)["required"] == [name]
    (field,) = f.Input.model_fields
    assert field == name or field == (name.lstrip("_") or "field") + "_"


def test_hostile_names_do_not_meet() -> None:
    """Names that would become one field become several."""
    parameters = ", ".join(f"{name}: int" for name in HOSTILE)
    f = declare(globals(), f"@tool_fn\ndef f({parameters}): return list(locals().values())")
    values = {name: index for index, name in enumerate(HOSTILE)}
    call = call_of(f, values)
    assert call.input == f.Input(**values)
    assert call.call_sync().output == list(range(len(HOSTILE)))
    fields = dict(zip(HOSTILE, f.Input.model_fields, strict=True))
    assert fields["_x"] == "x__"
    assert fields["x_"] == "x_"
    assert fields["__x"] == "x___"
    assert fields["_"] == "field_"
    assert fields["json"] == "json_"
    assert fields["input"] == "input"
    # The wire knows the alias only.
    assert "`json_`: there is no such field" in refusal(f, {**values, "json_": 1})


def test_a_keyword_called_self_reaches_the_function() -> None:
    """A tool takes no keyword away from the function that it wraps."""
    f = declare(globals(), "@tool_fn\ndef f(a: int, *, self: int): return (a, self)")
    assert f(1, self=2) == (1, 2)
    assert call_of(f, {"a": 1, "self": 2}).call_sync().result == "[1,2]"


# Hidden parameters.


def test_hidden_parameters_are_not_shown() -> None:
    """`skip=`, `Skip()` and `ToolContext` hide a parameter from the model."""

    @tool_fn(skip=["db"])
    def look(
        db: Database,
        key: str,
        ctx: ToolContext,
        cache: Annotated[dict[str, str], Skip()],
        retries: Annotated[int, Skip] = 2,
    ) -> list[Any]:
        return [db, key, ctx.call_id, cache, retries]

    assert list(schema_of(look)["properties"]) == ["key"]
    result = call_of(look, {"key": "k"}).call_sync(db="D", cache={})
    assert result.result == '["D","k","c1",{},2]'
    context = ToolContext("other", "look")
    result = call_of(look, {"key": "k"}).call_sync(db="D", cache={}, ctx=context, retries=0)
    assert result.result == '["D","k","other",{},0]'
    assert repr(Skip()) == "Skip()"


def test_a_context_that_may_be_missing_is_given() -> None:
    """A parameter that is a context or None gets a context, also where None is passed."""

    @tool_fn
    def who(ctx: ToolContext | None = None) -> str:
        return "nobody" if ctx is None else ctx.tool_name

    assert schema_of(who) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert call_of(who).call_sync().result == '"who"'
    assert call_of(who).call_sync(ctx=None).result == '"who"'
    assert who() == "nobody"


def test_hidden_types_may_exist_for_checkers_only() -> None:
    """A hidden parameter's type may be imported under `TYPE_CHECKING`, however it is hidden."""

    @tool_fn(skip=["one"])
    def look(
        key: str,
        one: Database,
        two: Annotated[Database, Skip()],
        three: Annotated[Database, "a note", Skip],
    ) -> list[Any]:
        return [key, one, two, three]

    assert call_of(look, {"key": "k"}).call_sync(one=1, two=2, three=3).result == '["k",1,2,3]'

    @tool_fn
    def quiet(key: str, secret: Secret) -> str:
        return key + secret

    assert call_of(quiet, {"key": "k"}).call_sync(secret="s").result == '"ks"'
    # Where the module does not know it, `ToolContext` is ours.
    scope: dict[str, Any] = {"tool_fn": tool_fn, "__name__": __name__}
    exec("@tool_fn\ndef f(k: int, c: 'ToolContext'): return c.call_id", scope)
    assert call_of(scope["f"], {"k": 1}).call_sync().result == '"c1"'


@pytest.mark.parametrize(
    "annotation",
    ["'list[Skip]'", "'Annotated[int, Skippy]'", "'Skip but no type'", "'Annotated[Skip, 1]'"],
)
def test_what_only_looks_like_a_skip_is_none(annotation: str) -> None:
    """Only `Skip` among the marks of `Annotated` hides a parameter."""
    with pytest.raises(ToolDefinitionError):
        _ = declare(globals(), f"@tool_fn\ndef f(a: {annotation}): 0").definition


def test_a_context_that_nobody_loaded_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool is declared without the module of contexts: who names the class has loaded it."""
    monkeypatch.delitem(sys.modules, "lutum_py._context.context", raising=False)

    @tool_fn
    def add(a: int) -> int:
        """Add."""
        return a

    assert "lutum_py._context.context" not in sys.modules
    assert add.definition.input_schema["required"] == ["a"]
