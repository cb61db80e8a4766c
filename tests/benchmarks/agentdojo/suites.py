"""The four suites of AgentDojo as toolsets, made of its own functions by this script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentdojo.functions_runtime import Function
from agentdojo.task_suite.load_suites import get_suites
from pydantic import TypeAdapter

from lutum_py import ToolDef, Toolset

VERSION: Final = "v1.2.2"
SUITES: Final[dict[str, Any]] = get_suites(VERSION)
READS: Final = ("check_", "get_", "list_", "read_", "search_")
"""How the names of tools begin that change nothing."""


class World:
    """Hold the environment that the tools of a suite work on right now."""

    env: Any = None


def toolset_of(name: str) -> tuple[type[Toolset], World]:
    """Declare a suite as a toolset, with the world that its tools work on."""
    world = World()
    functions: dict[str, Callable[..., Any]] = {}
    definitions: list[ToolDef] = []
    for function in SUITES[name].tools:
        output = TypeAdapter[Any](function.return_type)
        definitions.append(
            ToolDef.from_json_schema(
                name=function.name,
                description=function.description,
                input_schema=function.parameters.model_json_schema(),
                output_schema=output.json_schema(mode="serialization"),
            )
        )
        functions[function.name] = _run(function, output, world)
    return Toolset.from_definitions(name.title(), definitions, functions=functions), world


def _run(
    function: Function[Any, Any], output: TypeAdapter[Any], world: World
) -> Callable[[dict[str, Any]], Any]:
    def run(arguments: dict[str, Any]) -> Any:
        needs = function.dependencies.items()
        held = {name: each.extract_dep_from_env(world.env) for name, each in needs}
        given = function.parameters.model_validate(arguments)
        named = {field: getattr(given, field) for field in arguments}
        return output.dump_python(function(**named, **held), mode="json")

    return run
