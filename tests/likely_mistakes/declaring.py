"""Mistakes in declaring tools, in asking a model and in deciding about its calls."""

from __future__ import annotations

from typing import Any

from pydantic import create_model

from lutum_py import (
    Message,
    RunNormally,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from tests.likely_mistakes.desk import (
    OSLO,
    Desk,
    Other,
    comes_to,
    forecast,
    hooked,
    round_of,
    toolset_of,
    turn,
)

# Declaring.


@comes_to(
    """ToolDefinitionError: Tool function `greet`: parameter `name` has no annotation. Write
    `name: str` (or what it is), or hide it from the model with `skip=('name',)`."""
)
def no_annotation() -> object:
    def greet(name):  # type: ignore[no-untyped-def]
        """Greet someone."""

    greet.__qualname__ = "greet"
    return tool_fn(greet)


@comes_to(
    """ToolDefinitionError: Tool function `total` takes `*numbers`, which has no schema. Name each
    parameter, or take one `numbers: list[...]` or `numbers: dict[str, ...]`."""
)
def star_arguments() -> object:
    def total(*numbers: int) -> int:
        """Add numbers."""
        return sum(numbers)

    total.__qualname__ = "total"
    return tool_fn(total)


@comes_to(
    """ToolDefinitionError: Tool function `wait`: the default of parameter `days` does not fit its
    type `int`: Input should be a valid integer, unable to parse string as an integer (got 'soon').
    Correct one of them, or write `days: int | None = None` if it may be left out."""
)
def unfit_default() -> object:
    def wait(days: int = "soon") -> None:  # type: ignore[assignment]
        """Wait."""

    wait.__qualname__ = "wait"
    return tool_fn(wait)


@comes_to("ToolDefinitionError: `wait` is not a tool. Decorate it with `@tool_fn`.")
def no_decorator() -> object:
    def wait(days: int) -> None:
        """Wait."""

    wait.__qualname__ = "wait"
    return tool(wait)  # type: ignore[call-overload]


@comes_to(
    """ToolDefinitionError: `PlainArgs` is a model, but no tool. Decorate it with
    `@tool_input(output=...)`, or let it inherit from `ToolInput[...]`."""
)
def a_plain_model() -> object:
    return tool(create_model("PlainArgs", city=str))


@comes_to(
    """ToolDefinitionError: `@tool_fn` got a function without a name, '<lambda>'. Pass one, as in
    `tool_fn(name='add')(function)`, or write it with `def`."""
)
def a_lambda() -> object:
    return tool_fn(lambda city: city)


@comes_to(
    """ToolDefinitionError: Toolset `Tools`: `forecast = <tool_fn forecast: 'forecast'>` is neither
    a tool nor a method. Declare `forecast = tool(...)` or `forecast = toolset(...)`, or move it out
    of the class."""
)
def no_tool_call() -> object:
    return toolset_of("Tools", forecast=forecast)


@comes_to(
    """ToolDefinitionError: Toolset `Tools`: `wait = wait` is a function, but no tool. Decorate it
    with `@tool_fn`, and declare `wait = tool(wait)`."""
)
def a_plain_function_for_a_member() -> object:
    def wait(days: int) -> None:
        """Wait."""

    wait.__qualname__ = "wait"
    return toolset_of("Tools", wait=wait)


@comes_to(
    """ToolDefinitionError: Toolset `Both`: near and far are both called 'forecast' on the wire.
    Rename one where it is declared, as in `@tool_fn(name=...)`, or nest one under
    `toolset(..., prefix=...)`."""
)
def two_of_one_name() -> object:
    return toolset_of("Both", near=tool(forecast), far=tool(forecast))


# Asking.


@comes_to(
    """MisuseError: A turn offers the tools of a Toolset, not <tool_fn forecast: 'forecast'>.
    Declare a class with `tool(...)` members; `.available_tools([...])` says which of them."""
)
def a_function_for_a_toolset() -> object:
    return turn().tools(forecast)


@comes_to(
    """ToolConstraintError: The turn requires a tool that is not there: Desk has no tool
    'forcast'. Did you mean `forecast`? It has `forecast`, `fetch`, `look_up`."""
)
def a_misspelt_requirement() -> object:
    return turn().tools(Desk).require_tool("forcast").request()


@comes_to(
    """MisuseError: A message has a text, not {'question': 'Will it rain?'}. Encode data first, for
    instance with `json.dumps`."""
)
def data_for_a_text() -> object:
    return Message("user", {"question": "Will it rain?"})  # type: ignore[arg-type]


@comes_to(
    """MisuseError: read_turn takes an AssistantTurn, not {'choices': []}. Decode the provider's
    response first, as in `openai_chat.decode(response.to_dict(mode='json'))`."""
)
def a_response_for_a_turn() -> object:
    return Desk.read_turn({"choices": []})  # type: ignore[call-overload]


@comes_to(
    """DialectError: openai_chat: expected the JSON object of a response, got 'Hi'. Pass the wire's
    own JSON as a dict; from an SDK object, `response.to_dict(mode="json")` (openai, anthropic) or
    `response.model_dump(mode="json", by_alias=True, exclude_none=True)` (google-genai)."""
)
def an_object_for_a_payload() -> object:
    return openai_chat.decode("Hi")  # type: ignore[arg-type]


@comes_to(
    """DialectError: openai_chat: the field 'choices' is missing, got {'type': 'message',
    'content': []}. Is it the response of another dialect?"""
)
def a_payload_of_another_dialect() -> object:
    return openai_chat.decode({"type": "message", "content": []})


# Deciding.


@comes_to(
    """HookError: An execution hook cannot be registered: <Selector Other.forecast: 'forecast'> is
    no member of Desk, nor the name of one. It has `forecast`, `fetch`, `look_up`."""
)
def a_hook_for_another_toolset() -> object:
    return Desk.HookSet().on(Other.forecast)


@comes_to(
    """HookError: Hook `approve` for tool `forecast` (call 'c1') returned True. Return
    RunNormally(input), Complete(output) or Reject(reason)."""
)
def a_hook_that_returns_true() -> object:
    def approve(metadata: object, input: object) -> Any:
        return True

    return round_of(OSLO).apply_hooks_sync(hooked(approve))


@comes_to(
    """HookError: Hook `longer` for tool `forecast` (call 'c1') assigned to `ForecastInput`, which
    is frozen. Return another one from an execution hook, as in
    `RunNormally(input.model_copy(update={...}))`."""
)
def a_hook_that_assigns_to_a_field() -> object:
    def longer(metadata: object, input: Any) -> Any:
        input.days = 7
        return RunNormally(input)

    return round_of(OSLO).apply_hooks_sync(hooked(longer))


@comes_to(
    """HookError: An execution hook is called with (metadata, input), but `approve` takes (call).
    Give it these parameters."""
)
def a_hook_of_one_parameter() -> object:
    def approve(call: object) -> Any:
        return RunNormally(call)

    return round_of(OSLO).apply_hooks_sync(hooked(approve))


@comes_to(
    """MisuseError: Hook `ask` is async, so sync code cannot call it. Use the async twin of this
    method, or make the hook a plain function."""
)
def an_async_hook_in_sync_code() -> object:
    async def ask(metadata: object, input: object) -> Any:
        return RunNormally(input)

    return round_of(OSLO).apply_hooks_sync(hooked(ask))


@comes_to(
    """HookError: Hooks are a HookSet, not the method that makes one. Call it: `Desk.HookSet()`."""
)
def a_hook_set_that_was_not_made() -> object:
    return round_of(OSLO).apply_hooks_sync(Desk.HookSet)
