"""The laws of what a model is told of the tools that its programs may call."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from lutum_py import ToolDef, Toolset, tool, tool_fn
from lutum_py.code import program_tool


class Place(BaseModel):
    """Where it is."""

    city: str
    inside: Place | None = None


@tool_fn
def travel(
    to: Place,
    at: Literal["day", "night"],
    days: int | None = None,
    stops: Annotated[list[tuple[str, float]], Field(description="Where to rest.")] = [],  # noqa: B006
    *,
    extra: dict[str, bool],
    anything: Any = "x",
) -> list[Place]:
    """Go somewhere."""
    return [to]


@tool_fn
def odd(
    value: Annotated[int, Field(alias="from")], rest: Annotated[str, Field(alias="a-b")] = ""
) -> Any:
    """Take odd names."""


@tool_fn
def nothing() -> None: ...


class Tools(Toolset):
    """All kinds of parameters."""

    travel = tool(travel)
    odd = tool(odd)
    nothing = tool(nothing)


def test_each_tool_is_an_async_function_with_its_types() -> None:
    """Required ones, defaults, choices, objects, and what is said of a parameter."""
    told = program_tool(Tools).definition.description
    assert (
        told.split("The tools are:\n\n")[1]
        == '''\
async def travel(to: {'city': str, 'inside': Any | None}, at: Literal['day', 'night'], \
days: int | None = None, stops: list[tuple[str, float]] = [], *, extra: dict[str, bool], \
anything: Any = 'x') -> list[{'city': str, 'inside': Any | None}]:
    """Go somewhere.
    stops: Where to rest."""

async def odd(**others) -> Any:
    """Take odd names.
    Give by name, as in `**{name: value}`: 'from': int, 'a-b': str = ''"""

async def nothing() -> None:
    """No description."""'''
    )


def described(schema: Any, output: Any = None) -> str:
    definition = ToolDef.from_json_schema(name="far", input_schema=schema, output_schema=output)
    far = Toolset.from_definitions("Far", [definition])
    return program_tool(far).definition.description.split("The tools are:\n\n")[1]


def test_schemas_of_others_are_written_as_far_as_they_are_types() -> None:
    """What is no type, or one of many hundreds, is `Any`, however the parts refer to each other."""
    told = described(
        {
            "type": "object",
            "properties": {
                "a": True,
                "b": {"type": ["string", "array"]},
                "c": {"description": "See there."},
                "d": {"const": 5},
                "e": {"type": "object"},
                "f": {"$ref": "#/$defs/wide0"},
            },
            "$defs": {
                f"wide{n}": {
                    "type": "object",
                    "properties": {str(i): {"$ref": f"#/$defs/wide{n + 1}"} for i in range(9)},
                }
                for n in range(9)
            }
            | {"wide9": {"type": "string"}},
        },
        {"type": "integer"},
    )
    assert told.startswith(
        "async def far(a: Any = None, b: str | list[Any] = None, c: Any = None, "
        "d: Literal[5] = None, e: dict[str, Any] = None, f: {'0': {"
    )
    assert "c: See there." in told
    assert " -> int:" in told
    assert len(told) < 10_000
