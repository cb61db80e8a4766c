"""What checkers know of handlers that take more than the input."""

from __future__ import annotations

from lutum_py import ToolContext, ToolInput, Toolset, tool, tool_fn


class GreetArgs(ToolInput[str]):
    name: str


@tool_fn
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


class Tools(Toolset):
    greet = tool(GreetArgs)
    add = tool(add)


run = Tools.Handlers()


@run.on(Tools.greet)
async def greet(input: GreetArgs, context: ToolContext, *, greeting: str) -> str:
    """Besides the input it takes what a function tool may take."""
    return f"{greeting}, {input.name} ({context.call_id})"


@run.on(Tools.add)
def checked(a: int, b: int = 1, *, limit: int = 9) -> int:
    """What is more than the tool's own parameters has a default."""
    return min(a + b, limit)


@run.on(Tools.greet)  # error
async def of_other_input(input: int, context: ToolContext) -> str:
    return f"{input} ({context.call_id})"


Tools.Handlers().on(Tools.greet)(lambda input: input.name)
