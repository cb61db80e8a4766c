"""Run calls: several at the same time, with deadlines, and with a truthful result for each.

You need not use this module: a loop may run its calls in any way. `execute` runs only the call that
you pass, once.

How a run ends, and the outcome:

| the tool | the outcome |
|---|---|
| returns | a success |
| raises a `ToolError` | an error with its code and text (`Cancelled`: a cancelled result) |
| raises `OutcomeUnknown` | `indeterminate` with its text and the code `outcome_unknown` |
| raises any other `Exception` | an error with the code `execution_failed` |
| returns what it does not declare | an error with the code `invalid_output` |
| calls `ctx.suspend(ticket)` | a `SuspendedCall`, for `plan.suspend(outcome)` |
| calls `ctx.request_calls(calls)` | an `AwaitingCall`, for `plan.record(outcome)` |
| passes its deadline, and is cut off | `indeterminate` with the code `timed_out` |
| is asked to stop by its token, and is cut off | `indeterminate` with the code `cancelled` |
| is cut off in any way, and only reads | an error, or a cancelled result |
| raises `Cancelled` or `TimedOut` when it is asked to stop | the same: it says what became of it |
| raises anything else then | as one that was cut off |
| finishes while it is being stopped | what it returned: a finished result is never thrown away |
| goes on after the grace | as one that was cut off |
| is sync, takes no context, and is to be stopped | as one that was cut off, at once |
| raises a `TimedOut` that is in doubt, as `call.call()` does | as one that was cut off |
| is cut off because your task was cancelled | `indeterminate` |
| is cancelled, though nobody asked it to stop | `indeterminate` |
| was not started when it was to be stopped | a cancelled result |
| was to go on, after calls that it requested, when it was to be stopped | as one that was cut off |
| raises a `BaseException` such as `KeyboardInterrupt` | it comes out: `indeterminate` in it |

A tool only reads if it declares effects and none of them changes anything, and neither do those of
the calls that it requested. It makes no difference
whether it is `idempotent`: after an error, the model may call again with other arguments, and so
with another key.

If your own task is cancelled, the same `CancelledError` is raised, after the grace at the latest.
If a tool raises something that is not an `Exception`, the other runs end in the same way.
`outcomes_of(error)` returns the outcomes of the calls from this error, or from the `TimeoutError`
that `asyncio.timeout` makes of it:

```python
try:
    async with asyncio.timeout(30):
        outcomes = await execute_all(plan.pending)
except TimeoutError as error:
    results = []
    for outcome in outcomes_of(error):
        if isinstance(outcome, ToolResult):
            results.append(outcome)
        else:
            plan.record(outcome)
    plan.abort(session, "The time was up.", results)
```
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, Unpack

from .. import AnyToolCall, ToolContext, ToolRoundPlan
from ..typing import Hooks, OnEvent
from ._batch import Batch
from ._outcome import ExecutionCancelled, ExecutionErrors, Outcome, outcomes_of
from ._run import PlanRun, Run
from ._settings import GRACE, Around, ContextFor, OnStart, RunOptions, RunSettings, Skipped

__all__ = [
    "GRACE",
    "Around",
    "ContextFor",
    "ExecutionCancelled",
    "ExecutionErrors",
    "OnStart",
    "Outcome",
    "Run",
    "RunOptions",
    "RunSettings",
    "Skipped",
    "execute",
    "execute_all",
    "execute_all_sync",
    "execute_sync",
    "outcomes_of",
    "run",
    "run_sync",
]

T = TypeVar("T")


async def execute(
    call: AnyToolCall,
    context: ToolContext | None = None,
    **options: Unpack[RunOptions],
) -> Outcome:
    """Run one call to an outcome.

    An async function runs in a task of its own, a sync one in a thread of its own.

    Args:
        call: The call.
        context: What the tool's `ToolContext` parameter gets; its token can stop the tool.
        options: More options of a run; see `RunOptions`.

    Raises:
        MisuseError: A hidden parameter is missing, or the tool has no function.
        InvalidValueError: A number of seconds is invalid.
        LifecycleError: The call was started or has ended already, or waits for a decision.
        ExecutionErrors: `around` raised when the call had ended; it carries the outcome. What it
            raises before that comes out as it is, as does what the tool raises under
            `raise_errors`.
        CancelledError: The task was cancelled; `outcomes_of` finds the outcome of the call.

    Example:
        >>> import asyncio
        >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
        >>> @tool_fn
        ... def divide(a: int, b: int) -> float:
        ...     return a / b
        >>> class Sums(Toolset):
        ...     divide = tool(divide)
        >>> metadata = ToolMetadata(id="c1", name="divide", arguments='{"a": 1, "b": 0}')
        >>> asyncio.run(execute(Sums.parse_tool_call(metadata))).model_text
        '[execution_failed] Execution failed: ZeroDivisionError: division by zero'
    """
    return await Run(call, context, RunSettings.of(options)).run()


async def execute_all(
    calls: Iterable[AnyToolCall],
    *,
    context: ContextFor | None = None,
    limit: int | None = None,
    **options: Unpack[RunOptions],
) -> list[Outcome]:
    """Run several calls at once.

    All contexts are made, and all arguments checked, before the first call is started.

    Args:
        calls: The calls, such as `plan.pending`.
        context: Makes the context of each call.
        limit: How many may run at once; None for all of them.
        options: More options of a run; see `RunOptions`.

    Returns:
        One outcome for each call, in the order of the calls.

    Raises:
        MisuseError: A hidden parameter is missing, or a tool has no function.
        InvalidValueError: A number of seconds is invalid, or the limit is below 1.
        LifecycleError: A call was started or has ended already, waits for a decision, or is there
            twice.
        ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did; it carries all
            outcomes.
        CancelledError: The task was cancelled; `outcomes_of` finds the outcomes of the calls.
    """
    return await Batch(calls, RunSettings.of(options, limit, context=context)).run_all()


def execute_sync(
    call: AnyToolCall,
    context: ToolContext | None = None,
    **options: Unpack[RunOptions],
) -> Outcome:
    """Run one call of a sync function to an outcome, from sync code.

    Without a deadline it runs in this thread, with a deadline in a thread of its own. Its token
    does not cut it off: the function has to look at it.

    Args:
        call: The call.
        context: What the tool's `ToolContext` parameter gets.
        options: More options of a run; see `RunOptions`.

    Raises:
        MisuseError: The function is async, a hidden parameter is missing, or a tool has no
            function.
        InvalidValueError: A number of seconds is invalid.
        LifecycleError: The call was started or has ended already, or waits for a decision.
        ExecutionErrors: As in `execute`.
    """
    run = Run(call, context, RunSettings.of(options))
    run.refuse_async()
    return run.run_sync()


def execute_all_sync(
    calls: Iterable[AnyToolCall],
    *,
    context: ContextFor | None = None,
    limit: int | None = 1,
    **options: Unpack[RunOptions],
) -> list[Outcome]:
    """Run several calls of sync functions, one after the other, or in threads.

    All contexts are made, and all arguments checked, before the first call is started.

    Args:
        calls: The calls, such as `plan.pending`.
        context: Makes the context of each call.
        limit: How many may run at once; None for all of them.
        options: More options of a run; see `RunOptions`.

    Returns:
        One outcome for each call, in the order of the calls.

    Raises:
        MisuseError: A function is async, a hidden parameter is missing, or a tool has no function.
        InvalidValueError: A number of seconds is invalid, or the limit is below 1.
        LifecycleError: A call was started or has ended already, waits for a decision, or is there
            twice.
        ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did; it carries all
            outcomes.
    """
    return Batch(calls, RunSettings.of(options, limit, context=context)).run_all_sync()


async def run(
    plan: ToolRoundPlan[T],
    *,
    on_start: OnStart | None = None,
    on_event: OnEvent | None = None,
    in_order: bool = False,
    hooks: Hooks | None = None,
    context: ContextFor | None = None,
    limit: int | None = None,
    **options: Unpack[RunOptions],
) -> ToolRoundPlan[T]:
    """Run the calls of a plan at once, and let the plan keep the outcome of each.

    Pending calls that were not started are run as by `execute_all`. Each outcome is recorded in the
    plan as soon as it is there, also if something ends the run early, so that
    `plan.commit(session)` needs no results. A call that was not started stays pending.

    Args:
        plan: The plan; it is changed.
        on_start: Called, and awaited if it is async, before each call is started. If it raises,
            that call is not started; the others end, and then the exception comes out.
        on_event: Is told about each call that is started, and of each that has ended or waits.
        in_order: Whether calls that access the same thing keep the order of the turn, see
            `plan.order()`: each call starts when the calls that it waits for have ended; the call
            with the longest chain after it starts first. If a call waits, or `on_start` raised
            about it, no later call starts that accesses the same thing; if its outcome is unknown,
            such a call is `cancelled`, with the code `after_doubt`. One that a hook answered or
            rejected holds up none.
        hooks: Decide about calls that other calls request; then calls are run until nothing is
            pending. Without hooks, calls that were requested and are not decided stay
            in `unreviewed`. After-hooks of a hook set see the result of each call before the plan
            has it, and each result that the plan has and they have not seen.
        context: Makes the context of each call.
        limit: How many may run at once; None for all of them.
        options: More options of a run; see `RunOptions`.

    Returns:
        The same plan.

    Raises:
        MisuseError: It is not a plan, a hidden parameter is missing, or a tool has no function; or
            a hook set with after-hooks decided about calls within others, and is not passed.
        HookError: A hook raised about a call that another requested.
        InvalidValueError: A number of seconds is invalid, or the limit is below 1.
        RoundClosedError: The round has ended.
        ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did.
        CancelledError: The task was cancelled; the plan has the outcomes of the calls.

    Example:
        >>> import asyncio
        >>> from lutum_py import Session, Toolset, tool, tool_fn
        >>> from lutum_py.testing import ScriptedModel
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     add = tool(add)
        >>> session = Session()
        >>> turn = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
        >>> plan = Sums.read_turn(turn).round.plan()
        >>> asyncio.run(run(plan)).commit(session).results[0].result
        '3'
    """
    settings = RunSettings.of(
        *(options, limit), context=context, hooks=hooks, on_start=on_start, on_event=on_event
    )
    told = PlanRun(plan, settings, in_order=in_order)
    while await told.settle():
        await Batch(told.ready, settings, told).run_all()
    return plan


def run_sync(
    plan: ToolRoundPlan[T],
    *,
    on_start: OnStart | None = None,
    on_event: OnEvent | None = None,
    in_order: bool = False,
    hooks: Hooks | None = None,
    context: ContextFor | None = None,
    limit: int | None = 1,
    **options: Unpack[RunOptions],
) -> ToolRoundPlan[T]:
    """Run the calls of a plan, which are of sync functions, and let it keep the outcome of each.

    The same as `run`, for sync code: one after the other, or in threads.

    Args:
        plan: The plan; it is changed.
        on_start: Called before each call is started, in the thread that runs it, one at a time. If
            it raises, that call is not started; the others end, and then the exception comes out.
        on_event: Is told about each call that is started, and of each that has ended or waits.
        in_order: Whether calls that access the same thing keep the order of the turn, as in `run`.
        hooks: Decide about calls that other calls request, as in `run`; they have to be sync.
        context: Makes the context of each call.
        limit: How many may run at once; None for all of them.
        options: More options of a run; see `RunOptions`.

    Returns:
        The same plan.

    Raises:
        MisuseError: As in `run`; or a function, a hook or `on_start` is async.
        HookError: As in `run`.
        InvalidValueError: A number of seconds is invalid, or the limit is below 1.
        RoundClosedError: The round has ended.
        ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did.
    """
    settings = RunSettings.of(
        *(options, limit), context=context, hooks=hooks, on_start=on_start, on_event=on_event
    )
    told = PlanRun(plan, settings, in_order=in_order)
    while told.settle_sync():
        Batch(told.ready, settings, told).run_all_sync()
    return plan
