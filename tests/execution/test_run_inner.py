"""The laws of running a plan of which calls ask for others: decided, run and told as they go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import AnyToolCall, Reject, Session, ToolContext, ToolResult, Toolset, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import Cancelled, HookError, MisuseError, NotFound, OutcomeUnknown
from lutum_py.execution import outcomes_of, run, run_sync
from lutum_py.sinks import log_events
from lutum_py.typing import CallEvent
from tests.cases import over
from tests.inner_tools import (
    SAID_BY_TWO,
    TOLD_OF_TWO,
    TWO,
    Asking,
    Desk,
    asks,
    fail,
    let_pass,
    note,
    opened,
    pay,
    states,
    step,
    steps,
)

Events = list[tuple[str, str]]


def ran(plan: Any, *, is_sync: bool, **options: Any) -> Events:
    """What was told while a plan ran."""
    told: list[CallEvent] = []
    if is_sync:
        assert run_sync(plan, on_event=told.append, **options) is plan
    else:
        assert asyncio.run(run(plan, on_event=told.append, **options)) is plan
    return [(each.kind, each.row.id) for each in told]


@over("is_sync", [False, True])
def test_a_run_with_hooks_goes_on_until_nothing_is_pending(is_sync: bool) -> None:
    """Each thing is told once, in order: asks, asked, decided, started, ended, goes_on."""
    plan = opened(TWO)
    assert ran(plan, is_sync=is_sync, hooks=let_pass) == TOLD_OF_TWO
    assert plan.commit(Session()).results[0].output == SAID_BY_TWO


@over("is_sync", [False, True])
def test_without_hooks_what_was_asked_stays_asked(is_sync: bool) -> None:
    """A run decides nothing by itself; one with hooks goes on from there."""
    plan = opened(asks([("note", {"text": "a"})]))
    assert ran(plan, is_sync=is_sync)[-1] == ("proposed", "c1/1")
    assert states(plan) == {"c1": "awaiting", "c1/1": "unreviewed"}
    assert ran(plan, is_sync=is_sync) == []
    assert ran(plan, is_sync=is_sync, hooks=let_pass)[0] == ("decided", "c1/1")
    assert plan.is_settled
    plan.discard()


@over("is_sync", [False, True])
def test_a_wait_within_ends_a_run_and_a_decision_lets_it_go_on(is_sync: bool) -> None:
    """What needs an approval waits, whoever asked for it; so do those that asked."""
    inner: Any = asks([("pay", {"cents": 5})])
    plan = opened(asks([inner, ("note", {"text": "a"})]), toolset=Asking)
    events = ran(plan, is_sync=is_sync, hooks=let_pass)
    assert ("suspended", "c1/1/1") in events
    assert states(plan) == {
        "c1": "awaiting",
        "c1/1": "awaiting",
        "c1/2": "finished",
        "c1/1/1": "suspended",
    }
    plan.resume(plan.suspended[0].approve())
    assert [each for each in ran(plan, is_sync=is_sync) if each[0] != "ended"] == [
        ("started", "c1/1/1"),
        ("continued", "c1/1"),
        ("continued", "c1"),
    ]
    assert plan.commit(Session()).results[0].is_success


@over("is_sync", [False, True])
def test_a_call_that_asks_for_too_much_has_ended(is_sync: bool) -> None:
    """The step is told as an end, with its error."""
    plan = opened(asks([("note", {"text": "a"})] * 101))
    assert ran(plan, is_sync=is_sync, hooks=let_pass) == [("started", "c1"), ("ended", "c1")]
    assert plan.finished[0].code == "too_many_calls"
    plan.discard()


@over("is_sync", [False, True])
def test_after_hooks_are_asked_by_a_run_before_the_asking_call_continued(is_sync: bool) -> None:
    """Each result once, within or of the turn, by whoever it was given."""
    hooks = Asking.HookSet()
    seen: list[str] = []

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> Reject | None:
        seen.append(result.id)
        return Reject("hidden") if result.id == "c1/1" else None

    plan = opened(asks([("note", {"text": "a"}), ("pay", {"cents": 1})]), toolset=Asking)
    ran(plan, is_sync=is_sync, hooks=hooks)
    plan.resume(plan.suspended[0].approve())
    with pytest.raises(MisuseError, match="After-hook"):
        ran(plan, is_sync=is_sync)
    plan = Asking.load_plan(plan.dump_json())  # where nobody knows the hooks
    ran(plan, is_sync=is_sync, hooks=hooks)
    assert seen == ["c1/1", "c1/2", "c1"]
    assert plan.apply_after_hooks_sync(hooks) == []
    assert seen == ["c1/1", "c1/2", "c1"]
    assert plan.commit(Session()).results[0].output == [["c1/1 rejected", "c1/2 success"]]


@over("is_sync", [False, True])
def test_no_call_within_is_run_whose_result_could_not_be_shown(is_sync: bool) -> None:
    """Hooks that lack an after-hook of those that decided are refused before a tool is started."""
    deciding, others = Desk.HookSet(), Desk.HookSet()

    @deciding.after()
    def shown(call: AnyToolCall, result: ToolResult) -> None:
        return None

    plan = opened(asks([("note", {"text": "a"})]))
    step(plan)
    plan = plan.apply_hooks_sync(deciding)
    for hooks in (None, let_pass, others):
        with pytest.raises(MisuseError, match="shown` has not seen"):
            ran(plan, is_sync=is_sync, hooks=hooks)
        assert plan.pending[0].status == "new"
    others.after()(shown)  # by its name, as in another process
    ran(plan, is_sync=is_sync, hooks=others)
    assert states(plan) == {"c1": "finished", "c1/1": "finished"}
    plan.discard()


def test_an_async_hook_is_named_by_a_run_in_sync_code() -> None:
    """What has to be awaited is refused with what to write instead, and nothing is decided."""

    async def hooks(call: AnyToolCall) -> AnyToolCall:
        return call

    plan = opened(asks([("note", {"text": "a"})]))
    with pytest.raises(MisuseError, match="await run"):
        run_sync(plan, hooks=hooks)
    assert len(plan.unreviewed) == 1
    asyncio.run(run(plan, hooks=hooks))
    assert plan.is_settled
    plan.discard()


def test_a_hook_that_raises_ends_a_run() -> None:
    """The plan stays open, and what was asked stays asked."""

    def hooks(call: AnyToolCall) -> AnyToolCall:
        raise ValueError("broken")

    plan = opened(asks([("note", {"text": "a"})]))
    with pytest.raises(HookError, match="broken"):
        asyncio.run(run(plan, hooks=hooks))
    assert len(plan.unreviewed) == 1
    plan.discard()


def test_no_call_waits_for_one_that_it_stands_within() -> None:
    """In order, an asking call holds up what is behind it, and those within come before it."""
    writes = ToolCapabilities(effects=[ToolEffect("write_file", target="path")])
    written: list[str] = []

    @tool_fn(capabilities=writes)
    def write(path: str, text: str) -> str:
        written.append(text)
        return text

    Files = Toolset.of("Files", write, steps, note)
    first: Any = ("write", {"path": "a", "text": "first"})
    within: Any = asks([("write", {"path": "a", "text": "within"}), ("note", {"text": "n"})])
    last: Any = ("write", {"path": "a", "text": "last"})
    plan = opened(first, within, last, toolset=Files)
    step_one = plan.batches()
    assert [[call.id for call in group] for group in step_one] == [["c1"], ["c2"], ["c3"]]
    asyncio.run(run(plan, in_order=True))
    assert (written, states(plan)["c3"]) == (["first"], "pending")
    assert plan.order() == {
        "c2/1": (),
        "c2/2": ("c2/1",),
        "c2": ("c2/2",),
        "c3": ("c2",),
    }
    asyncio.run(run(plan, in_order=True, hooks=let_pass))
    assert written == ["first", "within", "last"]
    plan.discard()


def test_a_log_tells_of_calls_within(caplog: pytest.LogCaptureFixture) -> None:
    """Each event is a line with the path."""
    plan = opened(asks([("note", {"text": "a"})]))
    with caplog.at_level("INFO", "lutum.calls"):
        asyncio.run(run(plan, hooks=let_pass, on_event=log_events()))
    words = [record.getMessage().split(" ")[0] for record in caplog.records]
    assert words == [
        "started",
        "requested",
        "proposed",
        "decided",
        "started",
        "ended",
        "continued",
        "ended",
    ]
    plan.discard()


def test_a_tool_that_leaves_on_being_stopped_has_left() -> None:
    """What it asked for is asked, as what it says on being stopped counts."""

    @tool_fn(idempotent=True, timeout=0.01)
    async def slow(ctx: ToolContext) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ctx.request_calls([("note", {"text": "late"})])
        return "never"

    plan = opened(("slow", {}), toolset=Toolset.of("Slow", slow, note))
    asyncio.run(run(plan))
    assert states(plan) == {"c1": "awaiting", "c1/1": "unreviewed"}
    step(plan)
    plan.discard()


def test_a_run_that_is_cut_off_leaves_what_after_hooks_have_not_seen() -> None:
    """A result within that nobody could show is not recorded, so that nothing goes on with it."""
    hooks = Desk.HookSet()

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> None:
        return None

    @tool_fn(name="note")
    async def hang(text: str) -> str:
        hangs.set()
        await asyncio.sleep(60)
        return text

    hangs = asyncio.Event()
    hanging = Toolset.of("Hanging", steps, hang)
    own = hanging.HookSet()
    own.after()(shown)

    async def main() -> None:
        plan = opened(asks([("note", {"text": "a"})]), toolset=hanging)
        running = asyncio.create_task(run(plan, hooks=own, context=ToolContext.for_call))
        await hangs.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert states(plan) == {"c1": "awaiting", "c1/1": "pending"}
        (result,) = plan.abort(Session(), "stopped").results
        assert "c1/1 of tool note: indeterminate" in result.model_text

    asyncio.run(main())


@pytest.mark.parametrize("how", ["raises", "stops"])
def test_what_a_call_came_to_is_told_though_an_after_hook_came_to_no_end(how: str) -> None:
    """One that raises, or is cut off, takes no result away: that is recorded once it was shown."""
    hooks, seen = Desk.HookSet(), asyncio.Event()

    @hooks.after(Desk.note)
    async def shown(call: AnyToolCall, result: ToolResult) -> None:
        if seen.is_set():
            return
        seen.set()
        if how == "raises":
            raise ValueError("not today")
        await asyncio.sleep(60)

    async def main() -> None:
        plan = opened(asks([("note", {"text": "a"})]))
        running = asyncio.create_task(run(plan, hooks=hooks))
        await seen.wait()
        if how != "raises":
            running.cancel()
        with pytest.raises((HookError, asyncio.CancelledError)) as caught:
            await running
        (result,) = outcomes_of(caught.value)
        assert isinstance(result, ToolResult)
        assert (result.id, result.status) == ("c1/1", "success")
        assert states(plan) == {"c1": "awaiting", "c1/1": "pending"}
        (again,) = await plan.apply_after_hooks(hooks, [result])
        plan.record(again)
        await run(plan, hooks=hooks)
        assert states(plan) == {"c1": "finished", "c1/1": "finished"}
        plan.discard()

    asyncio.run(main())


@over("is_sync", [False, True])
def test_a_later_run_shows_what_a_hook_that_raised_did_not_see(is_sync: bool) -> None:
    """The tool is not run again, and the asking call goes on from the result."""
    hooks, seen = Desk.HookSet(), list[ToolResult]()

    @hooks.after(Desk.note)
    def shown(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(result)
        if len(seen) == 1:
            raise ValueError("not today")

    plan = opened(asks([("note", {"text": "a"})]))
    with pytest.raises(HookError):
        ran(plan, is_sync=is_sync, hooks=hooks)
    assert states(plan) == {"c1": "awaiting", "c1/1": "pending"}
    assert ran(plan, is_sync=is_sync) == []
    events = ran(plan, is_sync=is_sync, hooks=hooks)
    assert events == [("ended", "c1/1"), ("continued", "c1"), ("ended", "c1")]
    assert seen[0] is seen[1]
    plan.discard()


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("read_file")]))
def look(at: str) -> str:
    """Look something up."""
    return at


def failing(how: Exception, *, ends: bool) -> type[Toolset]:
    """A desk with a tool that pays, looks and fails to look, and then fails itself."""

    @tool_fn(timeout=0.2 if isinstance(how, TimeoutError) else None)
    async def errand(ctx: ToolContext) -> int:
        if ctx.inner is None:
            ctx.request_calls(
                [("pay", {"cents": 5}), ("look", {"at": "x"}), ("fail", {"why": "y"}), ("nix", {})]
            )
        if isinstance(how, TimeoutError):
            await asyncio.Event().wait()
        if ends:
            raise how
        return "no number"  # type: ignore[return-value]

    class Errands(Toolset):
        pay = tool(pay)
        look = tool(look)
        fail = tool(fail)
        run = tool(errand)

    return Errands


@over(
    "how, status, code",
    [
        (ValueError("lost"), "error", "execution_failed"),
        (NotFound("lost"), "error", "not_found"),
        (OutcomeUnknown("lost"), "indeterminate", "outcome_unknown"),
        (Cancelled("lost"), "cancelled", "cancelled"),
        (TimeoutError(), "indeterminate", "timed_out"),
        (None, "error", "invalid_output"),
    ],
)
def test_a_failure_names_what_was_done_within_the_call(
    how: Exception | None, status: str, code: str
) -> None:
    """A model sees the outer call alone: its result names each call within that may have had an
    effect, with how it ended, so that it is not done again; those that only read are left out.
    """
    desk = failing(how or ValueError(), ends=how is not None)
    plan = opened(("errand", {}), toolset=desk)
    asyncio.run(run(plan, hooks=desk.HookSet()))
    (result,) = plan.resolve().results
    assert (result.status, result.code) == (status, code)
    said = result.model_text.splitlines()[-1]
    assert said == "Within it, c1/1 of tool pay: success; c1/3 of tool fail: error."


def test_a_failure_is_alone_where_nothing_was_done_within_the_call() -> None:
    """Calls that a hook answered, or that only read, add nothing to the words of a failure."""

    @tool_fn
    def errand(ctx: ToolContext) -> str:
        if ctx.inner is None:
            ctx.request_calls([("pay", {"cents": 5}), ("look", {"at": "x"})])
        raise NotFound("no such shop")

    class Errands(Toolset):
        pay = tool(pay)
        look = tool(look)
        run = tool(errand)

    hooks = Errands.HookSet()

    @hooks.on(Errands.pay)
    def no(metadata: object, input: object) -> Reject:
        return Reject("not today")

    plan = opened(("errand", {}), toolset=Errands)
    run_sync(plan, hooks=hooks)
    assert plan.resolve().results[0].model_text == "[not_found] Not found: no such shop"


def test_a_failure_names_no_more_calls_than_a_model_reads() -> None:
    """Of many calls the first are named, and the others counted."""

    @tool_fn
    def errand(ctx: ToolContext) -> str:
        if ctx.inner is None:
            ctx.request_calls([("pay", {"cents": 5})] * 60)
        raise NotFound("no such shop")

    class Errands(Toolset):
        pay = tool(pay)
        run = tool(errand)

    plan = opened(("errand", {}), toolset=Errands)
    run_sync(plan, hooks=Errands.HookSet())
    said = plan.resolve().results[0].model_text
    assert said.count(": success") == 50
    assert said.endswith("c1/50 of tool pay: success; and 10 more calls.")


def test_tools_are_as_declared() -> None:
    """The tool that asks is idempotent: its effects are its calls."""
    assert Desk.steps.definition.idempotent
    assert tool(steps) is not None
