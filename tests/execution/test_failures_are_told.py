"""A call that fails is in the log once, and the sink of its context hears of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import ToolContext, ToolMetadata, Toolset, errors, sinks, tool, tool_fn
from lutum_py.context import CancellationToken
from lutum_py.execution import execute, execute_sync, outcomes_of


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _work(how: str) -> str:
    if how == "find":
        raise errors.NotFound("no city \x1b[2K")
    if how == "stop":
        raise errors.Cancelled("enough")
    if how == "output":
        return 5  # type: ignore[return-value]
    if how == "silent":
        raise _Silent
    if how == "break":
        raise ValueError("broken \x1b[2K")
    return how


@tool_fn
def work(how: str) -> str:
    """Work."""
    return _work(how)


@tool_fn
async def work_later(how: str, ctx: ToolContext) -> str:
    """Work."""
    if how == "report":
        ctx.report_progress("failed", "I know better")
        raise errors.NotFound("it")
    if how == "done":
        ctx.report_progress("done")
        raise errors.NotFound("it")
    if how == "wait":
        await asyncio.sleep(60)
    return _work(how)


class Tools(Toolset):
    work = tool(work)
    work_later = tool(work_later)


def _run(name: str, how: str, **options: Any) -> tuple[Any, list[Any]]:
    arguments = f'{{"how": "{how}"}}'
    call = Tools.parse_tool_call(ToolMetadata(id="c1", name=name, arguments=arguments))
    sink = sinks.ListSink()
    token = options.pop("token", None)
    context = ToolContext.for_call(call, sink=sink, cancellation=token)
    if name == "work":
        return execute_sync(call, context, **options), sink.events
    return asyncio.run(execute(call, context, **options)), sink.events


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[logging.LogRecord]]:
    caplog.set_level(logging.INFO, "lutum.execution")
    return lambda: [each for each in caplog.records if each.name == "lutum.execution"]


@pytest.mark.parametrize("name", ["work", "work_later"])
@pytest.mark.parametrize(
    ("how", "status", "code", "level", "is_traced", "told"),
    [
        ("find", "error", "not_found", logging.INFO, False, "failed"),
        ("stop", "cancelled", "cancelled", logging.INFO, False, "cancelled"),
        ("output", "error", "invalid_output", logging.WARNING, False, "failed"),
        ("silent", "error", "execution_failed", logging.WARNING, True, "failed"),
        ("break", "error", "execution_failed", logging.WARNING, True, "failed"),
    ],
)
def test_a_failing_tool_leaves_one_record_and_one_event(
    log: Any, name: str, how: str, status: str, code: str, level: int, is_traced: bool, told: str
) -> None:
    """The record says which call, how and why, with a traceback where the tool did not mean it."""
    outcome, events = _run(name, how)
    (record,) = log()
    assert (outcome.status, outcome.code) == (status, code)
    assert (record.tool_name, record.tool_call_id) == (name, "c1")
    assert (record.status, record.code, record.levelno) == (status, code, level)
    written = logging.Formatter("%(message)s %(tool_name)s").format(record)
    assert ("Traceback" in written) == is_traced
    assert all(char.isprintable() or char == "\n" for char in written)
    (event,) = events
    assert event.content["status"] == told
    assert event.content["message"] == outcome.model_text


def test_a_call_that_succeeds_leaves_no_record(log: Any) -> None:
    """What went well is no news."""
    _, events = _run("work", "well")
    assert (log(), events) == ([], [])


def test_what_nobody_listens_to_costs_no_record(log: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Where the level is off nothing is written, and the sink hears of it all the same."""
    caplog.set_level(logging.CRITICAL, "lutum.execution")
    for how in ("find", "break"):
        assert len(_run("work", how)[1]) == 1
    assert log() == []


def test_a_tool_that_reported_its_failure_is_not_spoken_over(log: Any) -> None:
    """Its own report is the last one, unless it had said that it was done."""
    assert [event.content.get("message") for event in _run("work_later", "report")[1]] == [
        "I know better"
    ]
    statuses = [event.content["status"] for event in _run("work_later", "done")[1]]
    assert statuses == ["done", "failed"]
    assert len(log()) == 2


def test_a_call_that_is_cut_off_or_never_starts_is_told_of(log: Any) -> None:
    """A deadline, a token and the end of the task that waits each leave a record."""
    assert _run("work_later", "wait", default_timeout=0.01)[1][-1].content["status"] == "failed"
    stopped = CancellationToken()
    stopped.cancel("the user left")
    assert _run("work", "well", token=stopped)[1][-1].content["status"] == "cancelled"

    async def cut_off() -> str:
        task = asyncio.ensure_future(
            execute(
                Tools.parse_tool_call(
                    ToolMetadata(id="c1", name="work_later", arguments='{"how": "wait"}')
                )
            )
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            (outcome,) = outcomes_of(error)
            return str(getattr(outcome, "status", None))
        return "not cancelled"

    assert asyncio.run(cut_off()) == "indeterminate"
    assert [record.status for record in log()] == ["indeterminate", "cancelled", "indeterminate"]
