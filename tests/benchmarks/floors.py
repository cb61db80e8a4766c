"""The work by hand: what a careful programmer writes with pydantic and nothing else."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic_core import to_json

from ..models.said import Payload
from .wire import Wire

__all__ = [
    "Arguments",
    "Place",
    "call_async",
    "call_sync",
    "declare",
    "decode",
    "dump",
    "events",
    "lines",
    "load",
    "loop",
    "many_tools",
    "read",
    "round_async",
    "round_sync",
    "wire_round",
]


Model = TypeVar("Model", bound=BaseModel)


class Arguments(BaseModel):
    """The arguments of the tool that is measured."""

    query: str
    max_results: int = 5
    site: str | None = None
    exact: bool = False


class Place(BaseModel):
    """A place on a map."""

    name: str
    lat: float
    lon: float


class Lists(BaseModel):
    """The arguments of the other tool, which code may change in place."""

    queries: list[str]
    near: Place
    limits: dict[str, int] | None = None
    exact: bool = False


_output = TypeAdapter(int)


async def _tool_async(
    query: str, max_results: int = 5, site: str | None = None, exact: bool = False
) -> int:
    return max_results


async def _tool_of_lists(
    queries: list[str], near: Place, limits: dict[str, int], exact: bool = False
) -> int:
    return len(queries)


_MODELS: dict[str, tuple[type[BaseModel], Any]] = {
    "search": (Arguments, _tool_async),
    "find": (Lists, _tool_of_lists),
}


def _tool_sync(
    query: str, max_results: int = 5, site: str | None = None, exact: bool = False
) -> int:
    return max_results


def _hook(name: str, arguments: Model) -> Model:
    return arguments


async def _later(name: str, arguments: Model) -> Model:
    return arguments


def declare(times: int) -> None:
    """Make the model and its schema."""
    for _ in range(times):
        fields: dict[str, Any] = {
            "query": (str, ...),
            "max_results": (int, 5),
            "site": (str | None, None),
            "exact": (bool, False),
        }
        create_model("SearchInput", **fields).model_json_schema()


_numbers = count()


def many_tools(times: int) -> None:
    """Make 500 models with described fields, and one request body of their schemas."""
    for _ in range(times):
        functions: list[Any] = []
        for number in range(500):
            name = f"Tool{next(_numbers)}"
            fields: dict[str, Any] = {
                "query": (str, Field(description="What to search for.")),
                "max_results": (int, Field(number, description="An upper bound on hits.")),
                "site": (str | None, Field(None, description="Where to search.")),
                "exact": (bool, Field(False, description="Whether to take words as they are.")),
            }
            model = create_model(name, **fields)
            schema = model.model_json_schema()
            functions.append({"name": name, "description": "Search.", "parameters": schema})
        to_json({"messages": [], "tools": functions})


def decode(text: str, times: int) -> None:
    """Validate the arguments."""
    validate = Arguments.model_validate_json
    for _ in range(times):
        validate(text)


def call_async(text: str, times: int, *, name: str = "search") -> None:
    """Validate, await the function, encode its output."""
    model, function = _MODELS[name]

    async def main() -> None:
        for _ in range(times):
            arguments = model.model_validate_json(text)
            _output.dump_json(await function(**arguments.__dict__))

    asyncio.run(main())


def call_sync(text: str, times: int) -> None:
    """Validate, call the function, encode its output."""
    for _ in range(times):
        arguments = Arguments.model_validate_json(text)
        _output.dump_json(_tool_sync(**arguments.__dict__))


def round_async(
    texts: list[str], times: int, *, name: str = "search", hooks: int = 1, later: bool = False
) -> None:
    """Validate, hook, run at once and encode all calls of a round.

    Args:
        texts: The arguments of each call.
        times: How many rounds.
        name: The tool.
        hooks: How many hooks review each call.
        later: Whether they are awaited.
    """
    model, function = _MODELS[name]

    async def one(text: str) -> bytes:
        arguments = model.model_validate_json(text)
        for _ in range(hooks):
            arguments = await _later(name, arguments) if later else _hook(name, arguments)
        return _output.dump_json(await function(**arguments.__dict__))

    async def main() -> None:
        for _ in range(times):
            await asyncio.gather(*[one(text) for text in texts])

    asyncio.run(main())


def round_sync(texts: list[str], times: int) -> None:
    """Validate, hook, run and encode all calls of a round, one after the other."""
    for _ in range(times):
        for text in texts:
            arguments = _hook("search", Arguments.model_validate_json(text))
            _output.dump_json(_tool_sync(**arguments.__dict__))


def loop(text: str, turns: int, *, name: str = "search") -> None:
    """Go through a conversation by hand: ask, read the call, hook, run, encode, append."""

    async def respond(messages: list[dict[str, Any]], turn: int) -> dict[str, Any]:
        if turn == turns:
            return {"role": "assistant", "content": "done"}
        function = {"name": name, "arguments": text}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    async def main() -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        tools = {name: (*each, _output) for name, each in _MODELS.items()}
        turn = 0
        while True:
            message = await respond(messages, turn)
            turn += 1
            messages.append(message)
            calls = message.get("tool_calls")
            if not calls:
                return
            for call in calls:
                model, function, output = tools[call["function"]["name"]]
                arguments = model.model_validate_json(call["function"]["arguments"])
                arguments = _hook(name, arguments)
                encoded = output.dump_json(await function(**arguments.__dict__)).decode()
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": encoded})

    asyncio.run(main())


def read(wire: Wire, response: Payload, times: int) -> None:
    """Read a response into tuples, and keep a deep copy of it; nothing is checked."""
    for _ in range(times):
        wire.read(response)


def wire_round(wire: Wire, response: Payload, times: int) -> None:
    """Read a response, run its calls as `round_async` does, and append what the model is told."""

    async def one(name: str, text: str) -> bytes:
        model, function = _MODELS[name]
        arguments = _hook(name, model.model_validate_json(text))
        return _output.dump_json(await function(**arguments.__dict__))

    async def main() -> None:
        for _ in range(times):
            _, calls, kept = wire.read(response)
            said: list[Any] = [kept]
            results = await asyncio.gather(*[one(name, text) for _, name, text in calls])
            for (call_id, name, _), result in zip(calls, results, strict=True):
                said.append({"id": call_id, "name": name, "content": result.decode()})

    asyncio.run(main())


def events(stream: list[str], times: int) -> None:
    """Parse the JSON of each event of a stream; what it says is left alone."""
    for _ in range(times):
        for event in stream:
            json.loads(event)


def lines(stream: list[bytes], times: int) -> None:
    """Parse the JSON of each event of the raw lines of a stream."""
    for _ in range(times):
        for line in stream:
            if line.startswith(b"data: {"):
                json.loads(line[6:])


def load(text: str, times: int) -> None:
    """Parse the JSON of a saved conversation; what it says is left alone."""
    for _ in range(times):
        json.loads(text)


def dump(body: Any, times: int) -> None:
    """Write the JSON of a request body that stands ready, which no request goes without."""
    for _ in range(times):
        json.dumps(body)
