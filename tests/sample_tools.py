"""The tools that the tests of toolsets and hooks share, and short ways to make rounds of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import BaseModel

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    NeedsTools,
    Session,
    ToolInput,
    ToolMetadata,
    ToolRound,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    tool_input,
    toolset,
)
from lutum_py.errors import RoundClosedError
from lutum_py.testing import ScriptedModel


def input_of(call: AnyToolCall) -> Any:
    """The input of a call whose tool the test knows, and a checker does not."""
    return call.input


class User(BaseModel):
    name: str


class SearchResult(BaseModel):
    hits: list[str]


class Filter(BaseModel):
    field: str
    at_least: int = 0


ALICE = User(name="Alice")


@tool_input(name="get_user")
class GetUserArgs(ToolInput[User]):
    user_id: str


class QueryArgs(ToolInput[list[str]]):
    filters: list[Filter]


@tool_fn
def list_orders(user_id: str, limit: int = 5) -> list[str]:
    """List what a user ordered."""
    return [f"{user_id}-{number}" for number in range(limit)]


@tool_fn
async def web_search(query: str, max_results: int = 5) -> SearchResult:
    """Search the public web."""
    return SearchResult(hits=[query] * max_results)


@tool_fn
def delete_file(path: str) -> bool:
    """Delete a file."""
    return bool(path)


@tool_fn
def ping() -> str:
    """Answer."""
    return "pong"


class DataTools(Toolset):
    """Users and their orders."""

    get_user = tool(GetUserArgs)
    list_orders = tool(list_orders)

    @classmethod
    def first(cls) -> str:
        return cls.get_user.name


class AppTools(Toolset):
    web_search = tool(web_search)
    delete_file = tool(delete_file, off=True)
    data = toolset(DataTools)


class DeepTools(Toolset):
    app = toolset(AppTools, prefix="app_")
    query = tool(QueryArgs)


class TwinTools(Toolset):
    left = toolset(DataTools, prefix="left_")
    right = toolset(DataTools, prefix="right_", off=True)


class PingTools(Toolset):
    ping = tool(ping)


def sent(name: str, id: str = "c1", /, **arguments: Any) -> ToolMetadata:
    """What a model sends to call a tool."""
    return ToolMetadata(id=id, name=name, arguments=json.dumps(arguments))


def said(*calls: ToolMetadata, finish_reason: str | None = "tool_calls") -> AssistantTurn:
    """A turn with calls."""
    return AssistantTurn(tool_calls=calls, finish_reason=finish_reason)


@contextmanager
def opened(
    toolset: type[Toolset], *calls: ToolMetadata, **options: Any
) -> Iterator[ToolRound[Any]]:
    """A round with these calls, which is discarded at the end if it still is open."""
    outcome = toolset.read_turn(said(*calls), **options)
    assert isinstance(outcome, NeedsTools)
    try:
        yield outcome.round
    finally:
        with suppress(RoundClosedError):
            outcome.round.discard()


def turn_of(toolset: type[Toolset], transcript: Transcript | None = None) -> Any:
    """A turn of a conversation with the tools of a toolset; nobody asks a model for it."""
    session = Session() if transcript is None else Session(transcript)
    return session.text_turn(ScriptedModel([])).tools(toolset)


def offered(
    toolset: type[Toolset], available: Any = None, transcript: Transcript | None = None
) -> list[str]:
    """The names of the tools that a turn offers, in their order."""
    request = turn_of(toolset, transcript).available_tools(available).request()
    return [each.name for each in request.tools]
