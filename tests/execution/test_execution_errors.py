"""The laws of what a run that fails comes to."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from lutum_py import (
    CallStatus,
    ToolContext,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    Cancelled,
    Denied,
    ExecutionFailed,
    Internal,
    InvalidArguments,
    NotFound,
    TimedOut,
    ToolError,
    ToolOutputError,
)
from lutum_py.execution import execute, execute_all
from tests.cases import over
from tests.execution.running import (
    Tools,
    call_of,
    calls_of,
    raising,
    raising_sync,
    result_of,
    running,
)

KINDS: list[tuple[type[ToolError], str, str]] = [
    (InvalidArguments, "invalid_arguments", "Invalid arguments: "),
    (ExecutionFailed, "execution_failed", "Execution failed: "),
    (TimedOut, "timed_out", "Timeout: "),
    (Cancelled, "cancelled", "Cancelled: "),
    (Denied, "denied", "Denied: "),
    (NotFound, "not_found", "Not found: "),
    (Internal, "internal", "Internal error: "),
]


@over("is_async", [True, False])
@over("kind, code, prefix", KINDS)
def test_a_tool_error_keeps_its_code_and_text(
    kind: type[ToolError], code: str, prefix: str, is_async: bool
) -> None:
    """A `ToolError` becomes an error result with its stable code and its text."""
    error = kind("no luck")
    if is_async:
        outcome = running(execute(call_of(), skipped={"act": raising(error)}))
    else:
        call = call_of(Tools.doing_sync)
        outcome = running(execute(call, skipped={"act": raising_sync(error)}))
    result = result_of(outcome)
    assert result.status == ("cancelled" if kind is Cancelled else "error")
    assert (result.code, result.message) == (code, f"[{code}] {prefix}no luck")
    assert result.output == {"error": {"code": code, "message": f"{prefix}no luck"}}


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@over(
    "error, text",
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (
            Hostile(),
            "Hostile: (its text cannot be read: `__str__` raised RuntimeError)",
        ),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (concurrent.futures.CancelledError("pool"), "CancelledError: pool"),
        (
            ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
            "ExceptionGroup: two (2 sub-exceptions): ValueError: a; KeyError: 'b'",
        ),
        (ExceptionGroup("one", [ExceptionGroup("in", [OSError("disk")])]), "OSError: disk"),
    ],
)
@over("is_async", [True, False])
def test_any_other_exception_is_a_failure(error: Exception, text: str, is_async: bool) -> None:
    """Whatever else a tool raises becomes an `execution_failed` that names it."""
    if is_async:
        outcome = running(execute(call_of(), skipped={"act": raising(error)}))
    else:
        call = call_of(Tools.doing_sync)
        outcome = running(execute(call, skipped={"act": raising_sync(error)}))
    result = result_of(outcome)
    assert (result.status, result.code) == ("error", "execution_failed")
    assert result.message == f"[execution_failed] Execution failed: {text}"


@pytest.mark.parametrize("selector", [Tools.doing, Tools.doing_sync])
def test_stop_iteration_ends_a_run(selector: Any) -> None:
    """A `StopIteration`, which no future takes, is a failure like any other."""
    act: Any = (
        raising(StopIteration()) if selector is Tools.doing else raising_sync(StopIteration())
    )
    result = result_of(running(execute(call_of(selector), skipped={"act": act})))
    assert (result.status, result.code) == ("error", "execution_failed")


def test_a_foreign_text_is_bounded() -> None:
    """The model reads a bounded part of an exception's text."""
    act = raising(ValueError("x" * 100_000))
    result = result_of(running(execute(call_of(), skipped={"act": act})))
    assert result.model_text.endswith("x…")
    assert 1000 < len(result.model_text) < 3000


def test_a_group_of_one_tool_error_is_that_error() -> None:
    """A `ToolError` that a task group wrapped keeps its code."""

    async def act(n: int, ctx: ToolContext) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(raising(NotFound("it"))(n, ctx))
        return n

    result = result_of(running(execute(call_of(), skipped={"act": act})))
    assert (result.code, result.message) == ("not_found", "[not_found] Not found: it")


def test_a_tool_that_suspends_without_a_ticket_has_failed() -> None:
    """What it gave in place of a ticket is its own mistake, and holds up no other call."""

    async def act(n: int, ctx: ToolContext) -> int:
        ctx.suspend("Which city?")  # type: ignore[arg-type]

    (outcome,) = running(execute_all([call_of()], skipped={"act": act}))
    result = result_of(outcome)
    assert (result.status, result.code) == ("error", "execution_failed")
    assert "SuspendTicket, not 'Which city?'" in result.model_text


def test_errors_can_be_let_through() -> None:
    """With `raise_errors`, the tool's own exception comes out, and the call stays running."""
    for error in (ValueError("bad"), NotFound("it"), Cancelled("gone")):
        call = call_of()
        with pytest.raises(type(error)) as caught:
            running(execute(call, skipped={"act": raising(error)}, raise_errors=True))
        assert caught.value is error
        assert call.status is CallStatus.RUNNING


def test_an_unfit_output_is_an_error() -> None:
    """What does not fit the declared output is never a success, and names the tool."""

    async def act(n: int, ctx: ToolContext) -> str:
        return "three"

    result = result_of(running(execute(call_of(), skipped={"act": act})))
    assert (result.status, result.code) == ("error", "invalid_output")
    assert "tool `do` does not fit its output type `int`" in result.model_text
    assert result.model_text.startswith("[invalid_output] The tool ran, but its output cannot be")
    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
    ):
        running(execute(call_of(), skipped={"act": act}, raise_errors=True))


def refuse(value: int) -> int:
    raise LookupError(value)


@tool_fn
async def odd_output(n: int) -> Annotated[int, AfterValidator(refuse)]:
    return n


class OddTools(Toolset):
    odd = tool(odd_output)


def test_a_check_of_the_output_may_raise_anything() -> None:
    """An output whose validator breaks is an unfit output, and no exception of the run."""
    call = OddTools.parse_tool_call(ToolMetadata(id="c1", name="odd_output", arguments='{"n": 7}'))
    result = result_of(running(execute(call)))
    said = "[invalid_output] The tool ran, but its output cannot be shown. LookupError: 7"
    assert (result.code, result.message) == ("invalid_output", said)


class Fatal(BaseException):
    pass


@over("kind", [KeyboardInterrupt, SystemExit, Fatal])
@over("selector", [Tools.doing, Tools.doing_sync])
def test_what_is_no_exception_comes_out(kind: type[BaseException], selector: Any) -> None:
    """An interrupt or exit in a tool is no result: it comes out, and the loop ends cleanly."""
    error = kind("stop")
    act: Any = raising(error) if selector is Tools.doing else raising_sync(error)
    others = calls_of(2)

    async def wait(n: int, ctx: ToolContext) -> int:
        await asyncio.Event().wait()
        return n

    async def main() -> None:
        background = asyncio.create_task(execute_all(others, skipped={"act": wait}))
        try:
            await execute(call_of(selector), skipped={"act": act})
        finally:
            background.cancel()

    with pytest.raises(kind):
        running(main())
    with pytest.raises(kind):
        running(execute_all([call_of(selector), *calls_of(1)], skipped={"act": act}))
