"""pydantic-ai: `FunctionToolset` for one call, `Agent.run` with a `FunctionModel` for the loop."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent, FunctionToolset, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from .work import fresh_tool, search

__all__ = ["DISTRIBUTION", "IMPORT", "call", "declare", "define", "loop"]

# The slim distribution is the same code without the providers' clients and without logfire, which
# would make its import slower.
DISTRIBUTION = "pydantic-ai-slim"
IMPORT = "from pydantic_ai import Agent, Tool"


def declare(times: int) -> None:
    """Make the tool; the schema comes with it."""
    for _ in range(times):
        Tool(fresh_tool())


def define(times: int) -> None:
    """Make the tool, and read its schema."""
    for _ in range(times):
        _ = Tool(fresh_tool()).function_schema.json_schema


def call(text: str, times: int) -> str:
    """Validate, call the tool of a toolset, and encode what it returns.

    An agent goes through its `ToolManager` here, which costs more. This is the shorter public way,
    and what it needs once in a step of a run is made before the calls.
    """
    toolset: FunctionToolset[None] = FunctionToolset([search])
    context = RunContext(deps=None, model=FunctionModel(_no_model), usage=RunUsage())

    async def main() -> str:
        tool = (await toolset.get_tools(context))["search"]
        answer = ""
        for _ in range(times):
            arguments = tool.args_validator.validate_json(text)
            output = await toolset.call_tool("search", arguments, context, tool)
            part = ToolReturnPart(tool_name="search", content=output, tool_call_id="c1")
            answer = part.model_response_str()
        return answer

    return asyncio.run(main())


async def _no_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    raise AssertionError("no model is asked for a single call")


def loop(text: str, turns: int) -> int:
    """Run an agent; instrumentation is off by default."""
    given = 0
    turn = 0

    # An async function: a plain one would be sent to a thread.
    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal given, turn
        given = len(messages)
        # Without a usage the fake model would estimate one from the whole history, every turn.
        usage = RequestUsage(input_tokens=1, output_tokens=1)
        if turn == turns:
            return ModelResponse(parts=[TextPart("done")], usage=usage)
        part = ToolCallPart("search", text, tool_call_id=f"c{turn}")
        turn += 1
        return ModelResponse(parts=[part], usage=usage)

    agent = Agent(FunctionModel(respond), tools=[search])
    # By default a run ends after 50 requests.
    asyncio.run(agent.run("go", usage_limits=UsageLimits(request_limit=None)))
    return given
