"""pydantic-ai: `FunctionToolset` for one call, `Agent.run` with a `FunctionModel` for the loop."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent, FunctionToolset, RunContext, Tool
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from ...models.said import MODEL
from .work import HELLO, SMALL, TURNS, fresh_tool, named_tools, search

# The slim distribution is the same code without logfire, and with those clients of providers that
# are asked for, none of which its import loads.
DISTRIBUTION = "pydantic-ai-slim"
BESIDE = ("openai", "anthropic")
IMPORT = "from pydantic_ai import Agent, Tool"


def _chat(url: str) -> OpenAIChatModel:
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))


def _anthropic(url: str) -> AnthropicModel:
    return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=url, api_key="none"))


MODELS = {"chat": _chat, "Anthropic": _anthropic}


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


async def _run(text: str, turns: int, calls: int = 1) -> list[ModelMessage]:
    """Run an agent, and give what its model was given at last.

    Instrumentation is off by default.
    """
    given: list[ModelMessage] = []
    turn = 0

    # An async function: a plain one would be sent to a thread.
    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal given, turn
        given = messages
        # Without a usage the fake model would estimate one from the whole history, every turn.
        usage = RequestUsage(input_tokens=1, output_tokens=1)
        if turn == turns:
            return ModelResponse(parts=[TextPart("done")], usage=usage)
        ids = [f"c{turn}_{number}" for number in range(calls)]
        turn += 1
        parts = [ToolCallPart("search", text, tool_call_id=each) for each in ids]
        return ModelResponse(parts=parts, usage=usage)

    agent = Agent(FunctionModel(respond), tools=[search])
    # By default a run ends after 50 requests.
    await agent.run("go", usage_limits=UsageLimits(request_limit=None))
    return given


def loop(text: str, turns: int) -> int:
    """Run an agent."""
    return len(asyncio.run(_run(text, turns)))


def at_once(text: str, calls: int, times: int) -> list[str]:
    """Run an agent, which runs the calls of a turn at once by itself."""

    async def main() -> list[ModelMessage]:
        given: list[ModelMessage] = []
        for _ in range(times):
            given = await _run(text, 1, calls)
        return given

    results = asyncio.run(main())[-1].parts
    return [part.model_response_str() for part in results if isinstance(part, ToolReturnPart)]


async def stream(model: Model) -> tuple[int, str]:
    """Read the events of a request without an agent, and the response that they come to."""
    pieces = 0
    async with model_request_stream(model, [ModelRequest.user_text_prompt(HELLO)]) as events:
        async for event in events:
            # The first piece comes with the part that it begins.
            pieces += isinstance(event, PartDeltaEvent | PartStartEvent)
        return pieces, events.get().text or ""


def history() -> list[ModelMessage]:
    """Make the messages that a run would have made."""
    messages: list[ModelMessage] = [ModelRequest.user_text_prompt("go")]
    for turn in range(TURNS):
        messages.append(ModelResponse([ToolCallPart("search", SMALL, tool_call_id=f"c{turn}")]))
        messages.append(ModelRequest([ToolReturnPart("search", 3, tool_call_id=f"c{turn}")]))
    messages.append(ModelResponse([TextPart("done")]))
    messages.append(ModelRequest([UserPromptPart("go on")]))
    return messages


def _saved(messages: list[ModelMessage]) -> str:
    return ModelMessagesTypeAdapter.dump_json(messages).decode()


SAVED = (_saved, ModelMessagesTypeAdapter.validate_json)


async def send(model: Model, history: list[ModelMessage]) -> str:
    """Send one request without an agent."""
    return (await model_request(model, history)).text or ""


async def offer(model: Model) -> str:
    """Let an agent send them: without one, nothing makes a request of tools."""
    tools = [Tool(function, name=name) for name, function in named_tools()]
    return (await Agent(model, tools=tools).run(HELLO)).output
