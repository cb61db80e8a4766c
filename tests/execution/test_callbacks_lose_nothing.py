"""The law of callbacks: none of them, whatever it raises, loses a result or a state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import AfterValidator

from lutum_py import (
    AnyToolCall,
    Session,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError
from lutum_py.execution import (
    Outcome,
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
    run,
    run_sync,
)
from lutum_py.testing import ScriptedModel
from tests.execution.running import settled


class Plain(BaseException):
    """None of the kinds that are known."""


class Down(Exception):
    """A common failure."""


ERRORS = [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, Plain, Down]


class Raising:
    """What the callbacks of a test raise."""

    now: ClassVar[type[BaseException]] = Down


def checked(value: int) -> int:
    if value < 0:
        raise Raising.now
    return value


class Mute(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise Raising.now


@tool_fn
async def double(n: int) -> Annotated[int, AfterValidator(checked)]:
    """Double a number."""
    if n > 100:
        raise Mute
    return 2 * n


@tool_fn
def double_sync(n: int) -> Annotated[int, AfterValidator(checked)]:
    """Double a number."""
    if n > 100:
        raise Mute
    return 2 * n


@tool_fn
async def hang(n: int) -> int:
    """Heed no cancellation in time."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.sleep(0.1)
    return n


class Tools(Toolset):
    double = tool(double)
    double_sync = tool(double_sync)
    hang = tool(hang)


def plan_of(name: str, *numbers: int) -> ToolRoundPlan[Any]:
    turn = ScriptedModel.tool_calls(
        *((f"c{at}", name, {"n": number}) for at, number in enumerate(numbers))
    )
    plan: ToolRoundPlan[Any] = Tools.read_turn(turn).round.plan()  # type: ignore[union-attr]
    return plan


Way = Callable[..., Any]
WAYS: dict[str, tuple[str, Way]] = {
    "execute_all": ("double", lambda plan, **o: asyncio.run(execute_all(plan.pending, **o))),
    "in turn": ("double", lambda plan, **o: asyncio.run(execute_all(plan.pending, limit=1, **o))),
    "threads": ("double_sync", lambda plan, **o: asyncio.run(execute_all(plan.pending, **o))),
    "sync": ("double_sync", lambda plan, **o: execute_all_sync(plan.pending, **o)),
    "sync threads": ("double_sync", lambda plan, **o: execute_all_sync(plan.pending, limit=2, **o)),
    "run": ("double", lambda plan, **o: asyncio.run(run(plan, **o))),
    "run_sync": ("double_sync", run_sync),
}


def came_to(way: Way, plan: ToolRoundPlan[Any], **options: Any) -> tuple[Any, Any]:
    """The outcomes of a run, by id, and what it raised."""
    raised: BaseException | None = None
    outcomes: Any
    try:
        outcomes = way(plan, **options) or plan.finished
    except BaseException as error:  # noqa: BLE001 - of several classes
        raised = error
        outcomes = outcomes_of(error)
    if isinstance(outcomes, ToolRoundPlan):
        outcomes = outcomes.finished
    return {each.id: each for each in outcomes}, raised


def check(plan: ToolRoundPlan[Any], outcomes: dict[str, ToolResult], statuses: set[str]) -> None:
    """All is known of each call, and what the first came to is among what may be."""
    assert {call.status for call in plan.pending} <= {"new", "succeeded", "failed", "cancelled"}
    assert outcomes["c0"].status in statuses
    given = [each for each in outcomes.values() if each not in plan.finished]
    results = {each.id: each for each in plan.abort(Session(), "Enough.", given).results}
    assert results["c0"].status in statuses
    for id, each in outcomes.items():
        assert results[id].status == each.status


def is_loud(error: type[BaseException], raised: BaseException | None) -> bool:
    """Whether something came out, and no `CancelledError`, since nobody cancelled."""
    if error in (asyncio.CancelledError, Down):
        return raised is not None and not isinstance(raised, asyncio.CancelledError)
    return isinstance(raised, error)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("when", ["outcome", "closing"])
def test_a_context_that_raises_takes_no_result_away(
    way: str, error: type[BaseException], when: str
) -> None:
    """What has succeeded is a success in the outcomes and the plan; what it raised comes out."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        def ended(outcome: Outcome) -> None:
            if call.id == "c0" and when == "outcome":
                raise error

        yield ended
        if call.id == "c0" and when == "closing":
            raise error

    name, work = WAYS[way]
    plan = plan_of(name, 1, 2)
    outcomes, raised = came_to(work, plan, around=around)
    assert is_loud(error, raised)
    check(plan, outcomes, {"success"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS)
def test_a_context_that_does_not_open_is_no_cancellation(
    way: str, error: type[BaseException]
) -> None:
    """Its call is not started, and what it raised comes out, also where it is a cancellation."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        if call.id == "c0":
            raise error
        yield lambda _: None

    name, work = WAYS[way]
    plan = plan_of(name, 1, 2)
    outcomes, raised = came_to(work, plan, around=around)
    assert is_loud(error, raised)
    assert plan.pending[0].status == "new"
    check(plan, outcomes, {"cancelled"})


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("when", ["outcome", "closing"])
def test_one_run_in_a_raising_context_has_its_outcome(
    is_async: bool, error: type[BaseException], when: str
) -> None:
    """So it is where one call is run by itself."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        def ended(outcome: Outcome) -> None:
            if when == "outcome":
                raise error

        yield ended
        if when == "closing":
            raise error

    plan = plan_of("double" if is_async else "double_sync", 4)
    (call,) = plan.pending
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - of several classes
        asyncio.run(execute(call, around=around)) if is_async else execute_sync(call, around=around)
    assert is_loud(error, caught.value)
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert outcome.output == 8
    plan.discard()


@pytest.mark.parametrize("error", ERRORS)
def test_a_context_that_raises_does_not_hide_a_cancellation(error: type[BaseException]) -> None:
    """A task that is cancelled ends as cancelled, or by an interrupt, and has its outcome."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        try:
            yield lambda _: None
        finally:
            raise error

    async def main() -> None:
        task = asyncio.create_task(execute(call, around=around, grace=0))
        await settled()
        task.cancel()
        await task

    plan = plan_of("hang", 1)
    (call,) = plan.pending
    is_quiet = error in (asyncio.CancelledError, Down)
    with pytest.raises(asyncio.CancelledError if is_quiet else error) as caught:
        asyncio.run(main())
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"
    if is_quiet:
        assert any("raised, too" in note for note in caught.value.__notes__)
    plan.discard()


@pytest.mark.parametrize("way", ["run", "run_sync"])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["started", "ended"])
def test_a_listener_that_raises_takes_nothing_away(
    way: str, error: type[BaseException], kind: str
) -> None:
    """Its errors are logged, an interrupt comes out in the end, and no call stays running."""

    def on_event(event: Any) -> None:
        if (event.kind, event.row.id) == (kind, "c0"):
            raise error

    name, work = WAYS[way]
    plan = plan_of(name, 1, 2)
    outcomes, raised = came_to(work, plan, on_event=on_event)
    is_logged = error in (asyncio.CancelledError, Down)
    assert raised is None if is_logged else isinstance(raised, error)
    is_success = is_logged or kind == "ended"
    check(plan, outcomes, {"success"} if is_success else {"indeterminate"})


@pytest.mark.parametrize("way", ["run", "run_sync"])
@pytest.mark.parametrize("error", ERRORS)
def test_an_on_start_that_raises_loses_no_other_call(way: str, error: type[BaseException]) -> None:
    """A call that `on_start` refuses stays pending, and what others came to is in the plan."""

    def on_start(call: AnyToolCall) -> None:
        if call.id == "c1":
            raise error

    name, work = WAYS[way]
    plan = plan_of(name, 1, 2)
    outcomes, raised = came_to(work, plan, on_start=on_start)
    assert isinstance(raised, error)
    assert [call.id for call in plan.pending] in (["c1"], ["c0", "c1"])
    assert plan.pending[-1].status == "new"
    check(plan, outcomes, {"success", "indeterminate"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("n", [-1, 101])
def test_an_output_or_error_that_cannot_be_shown_leaves_no_call_running(
    way: str, error: type[BaseException], n: int
) -> None:
    """A validator of the output, or the text of an exception, may raise anything."""
    Raising.now = error
    name, work = WAYS[way]
    plan = plan_of(name, n, 2)
    outcomes, raised = came_to(work, plan)
    is_error = error in (asyncio.CancelledError, Down)
    assert raised is None if is_error else isinstance(raised, error)
    check(plan, outcomes, {"error"} if is_error else {"indeterminate"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("by", ["log", "sink"])
def test_who_hears_of_a_failure_takes_no_result_away(
    way: str, error: type[BaseException], by: str
) -> None:
    """A filter of the log, or the sink of a context, that raises leaves the result as it is."""

    def fail(_: object) -> Any:
        raise error

    Raising.now = Down
    name, work = WAYS[way]
    plan = plan_of(name, 101, 2)
    logger = logging.getLogger("lutum.execution")
    options: dict[str, Any] = {}
    if by == "sink":
        options["context"] = lambda call: ToolContext.for_call(call, sink=fail)
    else:
        logger.addFilter(fail)
    try:
        outcomes, raised = came_to(work, plan, **options)
    finally:
        logger.removeFilter(fail)
    if by == "sink" and error in (asyncio.CancelledError, Down):
        assert raised is None
    else:
        assert is_loud(error, raised)
    check(plan, outcomes, {"error"})


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_a_tool_that_is_left_behind_is_reported_whatever_a_listener_raises(
    error: type[BaseException], is_before: bool
) -> None:
    """The timer that gives a tool up keeps its outcome, and the run ends."""

    def on_event(event: Any) -> None:
        if event.kind == "ended":
            raise error

    def refuse(_: object) -> Any:
        raise error

    async def main() -> None:
        await run(plan, on_event=None if is_before else on_event, default_timeout=0.01, grace=0)

    plan = plan_of("hang", 1)
    logger = logging.getLogger("lutum.execution")
    if is_before:
        logger.addFilter(refuse)
    raised: BaseException | None = None
    try:
        asyncio.run(main())
    except BaseException as caught:  # noqa: BLE001 - of several classes
        raised = caught
    finally:
        logger.removeFilter(refuse)
    if error in (asyncio.CancelledError, Down) and not is_before:
        assert raised is None
    else:
        assert is_loud(error, raised)
    (result,) = plan.abort(Session(), "Enough.").results
    assert (result.status, result.code) == ("indeterminate", "timed_out")


@tool_fn
def note(text: str) -> str:
    """Write something down."""
    return text


@tool_fn
def asks(ctx: ToolContext) -> str:
    """Have something written down."""
    if ctx.inner is None:
        ctx.request_calls([("note", {"text": "a"})])
    return str(ctx.inner.results[0].output)


class Within(Toolset):
    note = tool(note)
    asks = tool(asks)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_an_after_hook_that_raises_keeps_the_result_within(
    error: type[BaseException], is_async: bool
) -> None:
    """The result of a call within another is kept, and the next run goes on with it."""
    hooks = Within.HookSet()
    left = [error]

    @hooks.after(Within.note)
    def seen(call: AnyToolCall, result: ToolResult) -> None:
        if left:
            raise left.pop()

    turn = ScriptedModel.tool_calls(("c0", "asks", {}))
    plan: Any = Within.read_turn(turn).round.plan()  # type: ignore[union-attr]
    with pytest.raises((HookError, error)) as caught:
        asyncio.run(run(plan, hooks=hooks)) if is_async else run_sync(plan, hooks=hooks)
    if is_async:
        assert is_loud(error, caught.value) or error is Down
    assert "success" in [each.status for each in outcomes_of(caught.value)]  # type: ignore[union-attr]
    asyncio.run(run(plan, hooks=hooks))
    (result,) = plan.commit(Session(), plan.apply_after_hooks_sync(hooks)).results
    assert result.output == "a"


def test_a_cancellation_that_reaches_an_after_hook_goes_on() -> None:
    """A task that is cancelled while a hook waits ends as cancelled, and the result is kept."""
    hooks = Within.HookSet()
    began = asyncio.Event()

    @hooks.after(Within.note)
    async def seen(call: AnyToolCall, result: ToolResult) -> None:
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()

    turn = ScriptedModel.tool_calls(("c0", "asks", {}))
    plan: Any = Within.read_turn(turn).round.plan()  # type: ignore[union-attr]

    async def main() -> None:
        task = asyncio.create_task(run(plan, hooks=hooks))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert [each.status for each in outcomes_of(caught.value)] == ["success"]  # type: ignore[union-attr]
        await run(plan, hooks=hooks)
        shown = await plan.apply_after_hooks(hooks)
        assert plan.commit(Session(), shown).results[0].output == "a"

    asyncio.run(main())


@pytest.mark.parametrize("error", ERRORS)
def test_a_filter_of_the_log_that_raises_keeps_the_outcome_of_one_run(
    error: type[BaseException],
) -> None:
    """The result of a call that is run by itself comes along."""

    def refuse(_: object) -> Any:
        raise error

    Raising.now = Down
    plan = plan_of("double_sync", 101)
    logger = logging.getLogger("lutum.execution")
    logger.addFilter(refuse)
    try:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - of several classes
            execute_sync(plan.pending[0])
    finally:
        logger.removeFilter(refuse)
    assert is_loud(error, caught.value)
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "error"
    plan.discard()
