"""The laws of annotations without quotes that name what has no value yet: Python 3.14 takes them.

Earlier ones want the quotes, and there the same is tried with them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from lutum_py import HookSet, RunNormally, Skip, ToolContext, ToolInput, Toolset, tool, tool_fn
from lutum_py.errors import HookError, MisuseError
from lutum_py.testing import check_loop
from lutum_py.typing import ToolFn
from tests.declared import call_of, schema_of

SCOPE: dict[str, Any] = {
    "__name__": __name__,
    "Annotated": Annotated,
    "BaseModel": BaseModel,
    "RunNormally": RunNormally,
    "Skip": Skip,
    "ToolContext": ToolContext,
    "ToolInput": ToolInput,
    "tool_fn": tool_fn,
}


def written(source: str) -> dict[str, Any]:
    """Execute a module in which `<Name>` is a name that has no value yet."""
    name = r"\1" if sys.version_info >= (3, 14) else r"'\1'"
    names = dict(SCOPE)
    code = compile(re.sub(r"<(\w+)>", name, source), "<written>", "exec", dont_inherit=True)
    exec(code, names)
    return names


@tool_fn
def add(a: int, b: int) -> int:
    return a + b


class CountArgs(ToolInput[int]):
    a: int


class Sums(Toolset):
    add = tool(add)
    count = tool(CountArgs)


def test_a_tool_may_name_what_comes_later() -> None:
    """A function may name classes that stand below it, also inside of other types."""
    module = written("""
@tool_fn
def move(to: <Point>, via: list[<Point>] = []) -> <Point>:
    return to

class Point(BaseModel):
    x: int
""")
    move: ToolFn[..., Any] = module["move"]
    assert schema_of(move)["properties"]["via"]["items"] == {"$ref": "#/$defs/Point"}
    assert call_of(move, {"to": {"x": 1}}).call_sync().output == {"x": 1}


def test_a_tool_may_name_the_locals_around_it() -> None:
    """A function inside of another one may name a class that stands below it there."""
    module = written("""
def made():
    @tool_fn
    def move(to: <Point>) -> int:
        return to.x

    class Point(BaseModel):
        x: int

    move.definition
    return move
""")
    assert call_of(module["made"](), {"x": 1}).call_sync().output == 1


def test_what_is_hidden_may_have_a_type_for_checkers_only() -> None:
    """A parameter that the model does not see may name what never has a value."""
    module = written("""
@tool_fn(skip=("log",))
def find(name: str, log: <Log>, db: Annotated[<Database>, Skip()]) -> str:
    return f"{db}: {name}"
""")
    result = call_of(module["find"], {"name": "x"}).call_sync(log=None, db="db")
    assert result.output == "db: x"


def test_a_model_may_name_what_comes_later() -> None:
    """Input models may name classes that stand below them, and have a field called `Call`."""
    module = written("""
class MoveArgs(ToolInput[str]):
    Call: int
    to: <Point>

class Point(BaseModel):
    x: int
""")
    model = module["MoveArgs"]
    model.model_rebuild(_types_namespace=module)  # no module of that name is loaded
    assert set(schema_of(model)["properties"]) == {"Call", "to"}
    assert call_of(model, {"Call": 1, "to": {"x": 2}}).input.Call == 1


def _on(hooks: HookSet[Sums], function: Any) -> None:
    hooks.on(Sums.add)(function)


def _on_args(hooks: HookSet[Sums], function: Any) -> None:
    hooks.on_args(Sums.add)(function)


def _gate(hooks: HookSet[Sums], function: Any) -> None:
    hooks.gate()(function)


def _handler(hooks: HookSet[Sums], function: Any) -> None:
    run = Sums.Handlers()
    run.on(Sums.count)(function)


@pytest.mark.parametrize(
    ("register", "parameters"),
    [
        (_on, "metadata: <Metadata>, input: <Input>"),
        (_on_args, "a: <Int>, b: <Int>"),
        (_gate, "metadata: <Metadata>, input: <Input>, decision: <Decision>"),
        (_handler, "input: <Input>, context: ToolContext, db: <Database>"),
    ],
)
def test_hooks_may_name_what_is_there_for_checkers_only(
    register: Callable[[HookSet[Sums], Any], None], parameters: str
) -> None:
    """What is registered may have annotations that never have a value."""
    hooks = Sums.HookSet()
    register(hooks, written(f"def f({parameters}) -> <Answer>: ...")["f"])


def test_an_unfit_hook_is_told_without_the_values_of_its_annotations() -> None:
    """Where parameters do not fit, that is the error, whatever else has no value."""
    function = written("def f(metadata: <Metadata>) -> <Answer>: ...")["f"]
    with pytest.raises(HookError, check=lambda error: error.hook == "f"):
        Sums.HookSet().on(Sums.add)(function)


def test_a_loop_may_name_what_is_there_for_checkers_only() -> None:
    """A loop that is tried with what models do wrong may have annotations without a value."""
    loop = written("def loop(model: <Model>) -> <Answer>: ...")["loop"]
    with pytest.raises(MisuseError):
        check_loop(loop, Sums)
