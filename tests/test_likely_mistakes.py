"""The mistakes that a new user is most likely to make, each with the exact text that answers it.

This is the one place where these texts are tested: read them here, and mend them here.
"""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Callable, Iterator
from types import new_class
from typing import Any

import pytest
from pydantic import create_model

from lutum_py import (
    Decision,
    Message,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolRound,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import MisuseError, RoundClosedError
from lutum_py.execution import execute_all_sync
from lutum_py.testing import ScriptedModel


@tool_fn
def forecast(city: str, days: int = 1) -> str:
    """Tell what the weather will be."""
    return f"{city}: sunny for {days} day(s)"


@tool_fn
async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


@tool_fn(skip=("db",))
def look_up(key: str, db: Any) -> Any:
    """Look something up."""
    return db[key]


class Desk(Toolset):
    forecast = tool(forecast)
    fetch = tool(fetch)
    look_up = tool(look_up)


class Other(Toolset):
    forecast = tool(forecast)


class Person:
    """What no JSON can be made of."""


OSLO = ("c1", "forecast", {"city": "Oslo"})
ROME = ("c2", "forecast", {"city": "Rome"})
PAGE = ("c3", "fetch", {"url": "https://e.org"})
KEY = ("c4", "look_up", {"key": "k"})

opened: list[ToolRound[Any]] = []


@pytest.fixture(autouse=True)
def _leave_no_round_open() -> Iterator[None]:
    yield
    while opened:
        try:
            opened.pop().discard()
        except RoundClosedError:
            continue


def round_of(*calls: Any) -> Any:
    outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(*calls))
    opened.append(outcome.round)
    return outcome.round


def toolset_of(name: str, **body: Any) -> Any:
    """What `class name(Toolset)` with that body makes, under its plain name."""
    return new_class(name, (Toolset,), {}, lambda to_fill: to_fill.update(body, __qualname__=name))


def turn() -> Any:
    return Session().text_turn(ScriptedModel([]))


MISTAKES: dict[Callable[[], object], str] = {}
"""A function that makes the mistake, and what comes of it: the exception's name and text."""


def comes_to(said: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Enter a mistake with the text that answers it; its lines are joined by single spaces."""

    def enter(mistake: Callable[[], object]) -> Callable[[], object]:
        MISTAKES[mistake] = " ".join(said.split())
        return mistake

    return enter


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
    Correct one of them, or write `days: int | None = None` where nothing is to be said."""
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
    Rename one with `name=`, or nest one under `toolset(..., prefix=...)`."""
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
    return Desk.read_turn({"choices": []})  # type: ignore[arg-type]


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
    """HookError: An execution hook is called with (metadata, input), but `approve` takes (call).
    Give it these parameters."""
)
def a_hook_of_one_parameter() -> object:
    def approve(call: object) -> Any:
        return RunNormally(call)

    return round_of(OSLO).apply_hooks_sync(hooked(approve))


@comes_to(
    """MisuseError: Hook `ask` is async, so it cannot be asked from sync code. Use the async twin of
    this method, or make the hook a plain function."""
)
def an_async_hook_in_sync_code() -> object:
    async def ask(metadata: object, input: object) -> Any:
        return RunNormally(input)

    return round_of(OSLO).apply_hooks_sync(hooked(ask))


def suspended() -> Any:
    """A plan whose one call waits for a decision."""
    hooks: Any = Desk.HookSet()
    hooks.register_forecast_gate(lambda metadata, input: Suspend(SuspendTicket()))
    return round_of(OSLO).apply_hooks_sync(hooks)


def hooked(function: Any) -> Any:
    function.__qualname__ = function.__name__
    hooks: Any = Desk.HookSet()
    hooks.register_forecast_hook(function)
    return hooks


@comes_to(
    """HookError: Hooks are a HookSet, not the method that makes one. Call it: `Desk.HookSet()`."""
)
def a_hook_set_that_was_not_made() -> object:
    return round_of(OSLO).apply_hooks_sync(Desk.HookSet)


# Running.


@comes_to(
    """MisuseError: Tool `fetch` (call 'c3') is async: use `await call.call()` instead of
    `call.call_sync()`, or `asyncio.run(call.call())` outside of a loop."""
)
def an_async_tool_in_sync_code() -> object:
    return round_of(PAGE).expect_one().call_sync()


@comes_to(
    """MisuseError: Tool `look_up` (call 'c4') needs `db`, which the model does not see. Pass it
    where you run the call: `call.call_sync(db=...)`."""
)
def a_hidden_parameter_left_out() -> object:
    return round_of(KEY).expect_one().call_sync()


@comes_to(
    """ToolOutputError: The output of tool `look_up` has no JSON form: Unable to serialize unknown
    type: <class 'tests.test_likely_mistakes.Person'>. Return texts, numbers, lists, dicts,
    dataclasses or pydantic models."""
)
def an_output_without_json() -> object:
    return round_of(KEY).expect_one().call_sync(db={"k": Person()})


@comes_to(
    """ToolOutputError: The output of tool `forecast` does not fit its output type `str`: Input
    should be a valid string (got {'sky': 'blue'}). Return what the tool declares, or correct the
    declared type."""
)
def an_output_of_another_type() -> object:
    return round_of(OSLO).expect_one().complete({"sky": "blue"})


@comes_to(
    """LifecycleError: Call 'c1' of tool 'forecast' is succeeded and cannot become running. That
    status is final: nothing is reachable from it. `call.again()` makes a new call of the same
    metadata and input, in status 'new'."""
)
def a_call_run_twice() -> object:
    call = round_of(OSLO).expect_one()
    return call.call_sync(), call.call_sync()


# Committing.


@comes_to(
    """CommitError: Cannot commit: call 'c2' of tool 'forecast' has no result. Pass one, or close
    the round with `plan.abort(session, reason)`."""
)
def a_missing_result() -> object:
    one = round_of(OSLO, ROME)
    return one.commit(Transcript(), [one.tool_calls[0].call_sync()])


@comes_to(
    """CommitError: Cannot commit: result 'c2' of tool 'forecast' answers no call in this round
    (open calls: ['c1']). Commit it to the round that made the call."""
)
def a_result_of_another_round() -> object:
    mine, others = round_of(OSLO), round_of(ROME)
    results = [each.expect_one().call_sync() for each in (mine, others)]
    return mine.commit(Transcript(), results)


@comes_to(
    """RoundClosedError: This round was already committed. A round ends once: use the round of a new
    turn."""
)
def a_second_commit() -> object:
    one = round_of(OSLO)
    results = [one.expect_one().call_sync()]
    return one.commit(Transcript(), results), one.commit(Transcript(), results)


@comes_to(
    """CommitError: Cannot commit: call 'c1' of tool 'forecast' is suspended. Answer it with
    `plan.resume(decision)`, or close the round with `plan.abort(session, reason)`."""
)
def a_commit_of_a_suspended_call() -> object:
    return suspended().commit(Transcript())


@comes_to(
    """ResourceWarning: A round with calls 'c1' was dropped while it was open. Commit it, close it
    with `plan.abort(session, reason)`, or say `round.discard()`."""
)
def a_round_left_open() -> object:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Desk.read_turn(ScriptedModel.tool_calls(OSLO))
        gc.collect()
    return f"{caught[0].category.__name__}: {caught[0].message}"


@comes_to(
    """MisuseError: A round is committed to a Session or a Transcript, not to None. Without either,
    use `plan.resolve(results)`."""
)
def no_session() -> object:
    one = round_of(OSLO)
    return one.commit(None, [one.expect_one().call_sync()])


@comes_to(
    """MisuseError: 'sunny' is no result. Make one from the call: `call.complete(output)`,
    `call.fail(message)`, or `await call.call()`."""
)
def an_output_for_a_result() -> object:
    return round_of(OSLO).commit(Transcript(), ["sunny"])


@comes_to(
    """MisuseError: Suspend takes a SuspendTicket, not 'Really?'. Write
    `Suspend(SuspendTicket(message=...))`."""
)
def a_text_for_a_ticket() -> object:
    return Suspend("Really?")  # type: ignore[arg-type]


@comes_to(
    """MisuseError: A model is an object with `respond` or `respond_sync`, not 'gpt-5'. Wrap the
    client of a provider, as in `lutum_py.models.OpenAIChat(client, 'gpt-5')`."""
)
def a_name_for_a_model() -> object:
    return Session().text_turn("gpt-5").collect_sync()  # type: ignore[arg-type]


@comes_to("MisuseError: Calls are run from a list, not from <plan of Desk>. Pass `plan.pending`.")
def a_plan_for_its_calls() -> object:
    plan = round_of(OSLO).plan()
    try:
        return execute_all_sync(plan)
    except MisuseError as error:
        raise MisuseError(str(error).replace(repr(plan), "<plan of Desk>")) from None


@comes_to(
    """MisuseError: A coroutine is no result: it has not been run. Await it first, as in `await
    call.call()` or `await asyncio.gather(...)`."""
)
def a_coroutine_for_a_result() -> object:
    one = round_of(PAGE)
    return one.commit(Transcript(), [one.expect_one().call()])


# Resuming.


@comes_to(
    """ResumeError: Decision 'd1' is for call 'c9', which is not suspended in this plan. Suspended:
    ['c1']. Pass a decision for one of these."""
)
def a_decision_for_another_call() -> object:
    return suspended().resume(Decision(call_id="c9", action="resume", decision_id="d1"))


@comes_to(
    """PlanError: The schema of tool `forecast` has changed since call 'c1' was saved: it was
    'sha256:…', it is 'sha256:…'. What was approved is not what would run; let the model call the
    tool again."""
)
def a_schema_that_changed() -> object:
    saved = round_of(OSLO).plan().dump_json()

    def of_today(city: str, days: int = 1, metric: bool = True) -> str:
        """Tell what the weather will be."""
        return f"{city} {days} {metric}"

    return toolset_of("Desk", forecast=tool(tool_fn(name="forecast")(of_today))).load_plan(saved)


# What the model is told, as it is no exception.


@comes_to(
    """There is no tool `forcast`, so nothing was run. Did you mean `forecast`? Tools on offer:
    `forecast`, `fetch`, `look_up`."""
)
def a_tool_that_the_model_made_up() -> object:
    return round_of(("c1", "forcast", {})).recoverable_tool_call_issues[0].text


@comes_to(
    """The arguments of tool `forecast` are invalid, so it was not run: - `city`: this field is
    required - `town`: there is no such field; the fields are `city`, `days` (got 'Oslo') Call it
    again with corrected arguments."""
)
def arguments_that_the_model_made_up() -> object:
    return round_of(("c1", "forecast", {"town": "Oslo"})).recoverable_tool_call_issues[0].text


def said_of(mistake: Callable[[], object]) -> str:
    """What comes of a mistake, in one line and without digests."""
    try:
        said = str(mistake())
    except Exception as error:  # noqa: BLE001 - which one it is, is what is tested
        said = f"{type(error).__name__}: {error}"
    return " ".join(re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", said).split())


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_likely_mistake_is_answered(mistake: Callable[[], object]) -> None:
    """The text says what happened, where, and what to do about it: word for word."""
    assert said_of(mistake) == MISTAKES[mistake]


def test_at_least_twenty_mistakes_are_answered() -> None:
    """The collection stays what it is for: the twenty most likely mistakes, and a few more."""
    assert len(MISTAKES) >= 20
    assert len(set(MISTAKES.values())) == len(MISTAKES)
