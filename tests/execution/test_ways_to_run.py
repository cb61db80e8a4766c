"""The laws that hold whichever public way a call is run in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from lutum_py import (
    AnyToolCall,
    CallStatus,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import InvalidValueError, MisuseError, OutcomeUnknown, TimedOut
from lutum_py.execution import (
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    run,
    run_sync,
)
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.execution.running import LATE, SOON

SILENT: Final = OutcomeUnknown("the bank is silent")
RELEASE: Final = threading.Event()


def silent(cents: int) -> str:
    raise SILENT


@tool_fn(idempotent=True)
def pay(cents: int) -> str:
    """Pay."""
    return silent(cents)


@tool_fn(timeout=SOON)
async def wait(cents: int) -> str:
    """Wait."""
    await asyncio.Event().wait()
    return ""


@tool_fn(timeout=SOON)
def sleep(cents: int) -> str:
    """Wait in a thread."""
    RELEASE.wait(LATE)
    return ""


class Bank(Toolset):
    pay = tool(pay)
    wait = tool(wait)
    sleep = tool(sleep)


def plan_of(name: str) -> ToolRoundPlan[Bank]:
    return Bank.read_turn(ScriptedModel.tool_calls(("c1", name, {"cents": 1}))).round.plan()  # type: ignore[union-attr]


def call_of(name: str) -> AnyToolCall:
    return Bank.parse_tool_call(ToolMetadata(id="c1", name=name, arguments='{"cents": 1}'))


def doing(function: Any, name: str = "pay") -> Any:
    """A table of handlers in which a tool is done by another function."""
    handlers = Bank.Handlers()
    member: Any = Bank[name]
    handlers.on(member)(function)
    return handlers


def first(outcomes: list[Any]) -> Any:
    return outcomes[0]


def of_plan(plan: ToolRoundPlan[Any]) -> Any:
    return plan.finished[0]


Way = Callable[[ToolRoundPlan[Any]], Any]

GIVING: Final[dict[str, Way]] = {
    "execute": lambda plan: asyncio.run(execute(plan.pending[0])),
    "execute_sync": lambda plan: execute_sync(plan.pending[0]),
    "execute_all": lambda plan: first(asyncio.run(execute_all(plan.pending))),
    "execute_all_sync": lambda plan: first(execute_all_sync(plan.pending)),
    "execute_all_sync in threads": lambda plan: first(execute_all_sync(plan.pending, limit=2)),
    "run": lambda plan: of_plan(asyncio.run(run(plan))),
    "run_sync": lambda plan: of_plan(run_sync(plan)),
    "a handler": lambda plan: asyncio.run(execute(plan.pending[0], handlers=doing(silent))),
}
"""The ways that make a result of whatever a tool raises; stores and servers go by the same code."""

RAISING: Final[dict[str, Callable[[Any], Any]]] = {
    "call": lambda call: asyncio.run(call.call()),
    "call_sync": lambda call: call.call_sync(),
    "invoke": lambda call: asyncio.run(call.invoke()),
    "invoke_sync": lambda call: call.invoke_sync(),
    "apply": lambda call: call.apply(silent),
    "handlers": lambda call: asyncio.run(Bank.Handlers()(call)),
    "handlers, sync": lambda call: Bank.Handlers().call_sync(call),
}
"""Those that let it out."""


@over("way", GIVING)
def test_a_tool_that_does_not_know_is_in_doubt(way: str) -> None:
    """Whoever runs the call makes `OutcomeUnknown` indeterminate, with its text."""
    plan = plan_of("pay")
    result = GIVING[way](plan)
    plan.discard()
    assert isinstance(result, ToolResult)
    assert (result.status, result.code) == ("indeterminate", "outcome_unknown")
    assert result.model_text == "[outcome_unknown] Outcome unknown: the bank is silent"


@over("way", RAISING)
def test_where_exceptions_come_out_it_is_one_of_them(way: str) -> None:
    """It comes as it is, and the call stays running until it is answered."""
    call = call_of("pay")
    with pytest.raises(OutcomeUnknown) as caught:
        RAISING[way](call)
    assert caught.value is SILENT
    assert call.status is CallStatus.RUNNING


TAKING: Final[dict[str, Callable[..., Any]]] = {
    "execute": lambda plan, **options: asyncio.run(execute(plan.pending[0], **options)),
    "execute_sync": lambda plan, **options: execute_sync(plan.pending[0], **options),
    "execute_all": lambda plan, **options: asyncio.run(execute_all(plan.pending, **options)),
    "execute_all_sync": lambda plan, **options: execute_all_sync(plan.pending, **options),
    "run": lambda plan, **options: asyncio.run(run(plan, **options)),
    "run_sync": run_sync,
    "a store": lambda _, **options: stored(**options),
}
"""What takes the options of runs."""


def stored(**options: Any) -> None:
    with open_store(":memory:") as store:
        store.save("one", plan_of("pay"), note="")
        asyncio.run(store.run("one", Bank, **options))


@over("way", TAKING)
def test_an_option_that_runs_do_not_have_is_a_type_error(way: str) -> None:
    """A misspelt option is named with the one that was meant, and nothing is run."""
    plan = plan_of("pay")
    with pytest.raises(TypeError, match=r"`grac=`\. Did you mean `grace`\? .* `skipped`,"):
        TAKING[way](plan, grac=1)
    assert [call.status for call in plan.pending] == [CallStatus.NEW]
    plan.discard()


@over("way", ["run", "run_sync", "a store"])
def test_a_function_that_a_run_takes_is_found_by_a_name_like_it(way: str) -> None:
    """Functions of a run, such as `context=`, are named with its options."""
    plan = plan_of("pay")
    with pytest.raises(MisuseError, match=r"`on_evnt=`\. Did you mean `on_event`\? .* `context`"):
        TAKING[way](plan, on_evnt=None)
    plan.discard()


@over("way", TAKING)
def test_options_are_checked_whoever_takes_them(way: str) -> None:
    """An option with a value that makes no sense is named, and nothing is run."""
    plan = plan_of("pay")
    with pytest.raises(InvalidValueError, match=r"^grace=-1"):
        TAKING[way](plan, grace=-1)
    assert [call.status for call in plan.pending] == [CallStatus.NEW]
    plan.discard()


async def forever(cents: int) -> str:
    await asyncio.Event().wait()
    return ""


def in_a_thread(cents: int) -> str:
    RELEASE.wait(LATE)
    return ""


AWAITED: Final[dict[str, Callable[[Any], Any]]] = {
    "call": lambda call: call.call(),
    "invoke": lambda call: call.invoke(),
    "handlers": Bank.Handlers(),
    "an async handler": lambda call: doing(forever, call.name)(call),
    "a sync handler": lambda call: doing(in_a_thread, call.name)(call),
}


@over("name", ["wait", "sleep"])
@over("way", AWAITED)
def test_a_deadline_ends_whatever_is_awaited(name: str, way: str) -> None:
    """A tool's timeout holds whoever does it, and leaves the call running, in doubt."""
    call = call_of(name)

    async def main() -> None:
        await AWAITED[way](call)

    with pytest.raises(TimedOut, match="did not finish") as caught:
        asyncio.run(main())
    RELEASE.set()
    RELEASE.clear()
    assert caught.value.is_in_doubt
    assert call.status is CallStatus.RUNNING
