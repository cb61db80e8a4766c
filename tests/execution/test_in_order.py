"""The laws of `run(plan, in_order=True)`: what accesses the same keeps the order of the turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from lutum_py import Session, SuspendTicket, ToolContext, ToolRoundPlan, Toolset, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import OutcomeUnknown
from lutum_py.execution import run, run_sync
from lutum_py.execution._batch import Schedule
from lutum_py.typing import CallEvent
from tests.execution.makespan import random_plan as random_waits
from tests.execution.makespan import ratios
from tests.profiles import scaled
from tests.round.worlds import TOOLS, Run, random_plan, round_of, tools

files: dict[str, str] = {}
told: list[str] = []
gates: dict[str, asyncio.Event] = {}
EDITS = ToolCapabilities(effects=[ToolEffect("write_file", "path")])


@tool_fn(capabilities=EDITS)
async def edit(path: str, text: str) -> str:
    """Add to a file, as a model does that read it before."""
    before = files.get(path, "")
    told.append(f"begin {text}")
    if text in gates:
        await gates[text].wait()
    await asyncio.sleep(0)
    files[path] = before + text
    told.append(f"end {text}")
    return text


@tool_fn(capabilities=EDITS)
def edit_sync(path: str, text: str) -> str:
    """Do the same in a thread."""
    before = files.get(path, "")
    told.append(f"begin {text}")
    files[path] = before + text
    told.append(f"end {text}")
    return text


@tool_fn(capabilities=EDITS)
def ask(path: str, text: str, ctx: ToolContext) -> str:
    """Ask a person, once."""
    if ctx.resume is None:
        ctx.suspend(SuspendTicket())
    return text


@tool_fn(capabilities=EDITS, timeout=0.01)
async def hang(path: str, text: str) -> str:
    """Be cut off."""
    await asyncio.Event().wait()
    return text


@tool_fn(capabilities=EDITS)
def lose(path: str, text: str) -> str:
    """Say that nobody knows."""
    raise OutcomeUnknown(path)


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("read_file", "path")]))
def look(path: str, text: str) -> str:
    """Look into a file."""
    told.append(f"look {text}")
    return files.get(path, "")


class Files(Toolset):
    edit = tool(edit)
    edit_sync = tool(edit_sync)
    ask = tool(ask)
    hang = tool(hang)
    lose = tool(lose)
    look = tool(look)


def plan_of(*calls: str) -> ToolRoundPlan[Files]:
    """A plan of calls such as `edit a`, which are c0, c1 and so on, and write their numbers."""
    files.clear()
    told.clear()
    gates.clear()
    asked = [call.partition(" ") for call in calls]
    return round_of(
        Files,
        *((f"c{at}", name, {"path": p, "text": str(at)}) for at, (name, _, p) in enumerate(asked)),
    ).plan()


async def heard(what: str) -> None:
    """Let the loop go on until a tool has told this."""
    for _ in range(1_000):
        if what in told:
            return
        await asyncio.sleep(0)
    raise AssertionError(told)


Running = Callable[..., ToolRoundPlan[Files]]


@pytest.fixture(params=["run", "run_sync", "threads"])
def running(request: pytest.FixtureRequest) -> Running:
    """All ways to run a plan in order."""

    def running(plan: ToolRoundPlan[Files], **options: Any) -> ToolRoundPlan[Files]:
        options = {"in_order": True, **options}
        if request.param == "run":
            return asyncio.run(run(plan, **options))
        return run_sync(plan, limit=3 if request.param == "threads" else 1, **options)

    return running


def test_two_edits_of_one_file_are_both_there() -> None:
    """Without an order one of two edits is lost that both say success; with it none is."""
    for in_order, left in ((False, "1"), (True, "01")):
        plan = asyncio.run(run(plan_of("edit a", "edit a"), in_order=in_order))
        assert [result.status for result in plan.resolve().results] == ["success", "success"]
        assert files == {"a": left}


def test_a_call_waits_for_what_it_meets_and_for_nothing_else() -> None:
    """There are no barriers: what meets nothing that runs begins, whatever else goes on."""

    async def main() -> None:
        plan = plan_of("edit a", "edit b", "edit a", "edit b", "edit b")
        gates["0"] = asyncio.Event()
        running = asyncio.create_task(run(plan, in_order=True))
        await heard("end 4")
        assert "begin 2" not in told
        gates["0"].set()
        (await running).resolve()

    asyncio.run(main())
    assert files == {"a": "02", "b": "134"}


def test_the_longest_chain_begins_first() -> None:
    """Where places are few, a call with others behind it comes before one with none."""
    asked = ("edit_sync a", "edit_sync b", "edit_sync c", "edit_sync c", "edit_sync c")
    run_sync(plan_of(*asked), in_order=True).resolve()
    started = [each.removeprefix("begin ") for each in told if each.startswith("begin")]
    assert started == ["2", "3", "0", "1", "4"]


def test_one_that_waits_takes_no_place() -> None:
    """Under a limit, calls that wait for others leave the places to those that need not."""

    async def main() -> None:
        plan = plan_of("edit a", "edit a", "edit a", "edit b")
        gates["0"] = asyncio.Event()
        running = asyncio.create_task(run(plan, in_order=True, limit=2))
        await heard("end 3")
        gates["0"].set()
        (await running).resolve()

    asyncio.run(main())
    assert files == {"a": "012", "b": "3"}


def test_behind_a_call_that_waits_nothing_begins_that_meets_it(running: Running) -> None:
    """What is behind a call that suspended itself stays pending; decided, it runs in order."""
    plan = running(plan_of("ask a", "edit_sync a", "look .", "edit_sync b", "look c"))
    assert [call.id for call in plan.pending] == ["c1", "c2", "c3"]
    assert plan.batches() == []
    plan.resume(plan.suspended[0].approve())
    assert [result.id for result in running(plan).resolve().results] == [f"c{n}" for n in range(5)]
    assert told == ["look 4", "begin 1", "end 1", "look 2", "begin 3", "end 3"]


def test_behind_a_call_that_was_refused_nothing_begins_that_meets_it(running: Running) -> None:
    """A call whose `on_start` raises is not started, nor is what waits for it."""
    plan = plan_of("edit_sync a", "edit_sync a", "edit_sync b")

    def on_start(call: Any) -> None:
        if call.id == "c0":
            raise ConnectionError("no record")

    with pytest.raises(ConnectionError, match="no record"):
        running(plan, on_start=on_start)
    assert [call.id for call in plan.pending] == ["c0", "c1"]
    running(plan).resolve()
    assert files == {"a": "01", "b": "2"}


def test_behind_doubt_what_meets_it_is_cancelled(running: Running) -> None:
    """Behind a call of unknown outcome, which perhaps still works, nothing is started that meets
    it; what meets only such a call goes on, and the round can be committed.
    """
    session = Session()
    session.push_user("Edit.")
    events: list[CallEvent] = []
    plan = plan_of("lose a", "look .", "edit_sync a", "edit_sync b", "look b", "edit_sync a")
    committed = running(plan, on_event=events.append).commit(session)
    doubtful, *behind = committed.results
    assert doubtful.status == "indeterminate"
    assert [(each.status, each.code) for each in behind] == [
        ("cancelled", "after_doubt"),
        ("cancelled", "after_doubt"),
        ("success", None),
        ("success", None),
        ("cancelled", "after_doubt"),
    ]
    assert behind[0].model_text.startswith(
        "[after_doubt] Cancelled: not started, because call 'c0' of tool `lose` came before it"
    )
    assert json.loads(behind[0].result)["error"]["code"] == "after_doubt"
    kinds = {id: [each.kind for each in events if each.row.id == id] for id in ("c0", "c1", "c3")}
    assert kinds == {"c0": ["started", "ended"], "c1": ["ended"], "c3": ["started", "ended"]}
    assert files == {"b": "3"}


def test_behind_a_call_that_was_cut_off_nothing_touches_the_same() -> None:
    """A tool whose deadline passed may still be at work."""
    plan = asyncio.run(run(plan_of("hang a", "edit a", "edit b"), in_order=True))
    assert [each.code for each in plan.resolve().results] == ["timed_out", "after_doubt", None]
    assert files == {"b": "2"}


def test_without_an_order_doubt_cancels_nothing() -> None:
    """All that is pending is run at once, as it ever was."""
    plan = asyncio.run(run(plan_of("hang a", "edit a"), limit=1))
    assert [each.status for each in plan.resolve().results] == ["indeterminate", "success"]


def test_what_is_behind_a_call_that_runs_elsewhere_is_not_begun(running: Running) -> None:
    """A plan is run as it stands: started calls hold up those that meet them."""
    plan = plan_of("edit a", "edit_sync a", "edit_sync b")
    started = plan.pending[0]
    started.start()
    running(plan)
    assert [call.id for call in plan.pending] == ["c0", "c1"]
    assert files == {"b": "2"}
    plan.record(started.complete("done"))
    running(plan).resolve()
    assert files == {"a": "1", "b": "2"}


def test_a_cancelled_run_leaves_what_waited_pending() -> None:
    """Where the task is cancelled, nothing more is started, and the plan says what was."""

    async def main() -> None:
        plan = plan_of("edit a", "edit a", "edit b")
        gates["0"] = asyncio.Event()
        running = asyncio.create_task(run(plan, in_order=True))
        await heard("end 2")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert [call.id for call in plan.pending] == ["c1"]
        assert [result.id for result in plan.finished] == ["c0", "c2"]
        plan.discard()

    asyncio.run(main())


def test_random_plans_are_run_as_in_turn() -> None:
    """Tools that take their time end as the serial order would, under any limit."""
    random = Random(3)
    made = tools()
    for _ in range(scaled(200)):
        plan = random_plan(random, made)
        calls = {call.id: call for call in plan.pending}
        serial, ran = Run(), Run()
        for call in plan.pending:
            serial.start(call)
            serial.end(call.id)

        async def do(_: Any, ctx: ToolContext, calls: Any = calls, ran: Run = ran) -> str:
            ran.start(calls[ctx.call_id])
            for _ in range(random.randint(0, 3)):
                await asyncio.sleep(0)
            ran.end(ctx.call_id)
            return "done"

        handlers = made.Handlers()
        for name in TOOLS:
            handlers.on(made[name])(do)
        limit = random.choice([None, 2])
        asyncio.run(run(plan, in_order=True, limit=limit, handlers=handlers)).resolve()
        assert (ran.read, ran.world) == (serial.read, serial.world)


def test_turns_end_nearly_as_soon_as_those_of_a_scheduler_that_knows_all() -> None:
    """On random plans the mean time is within 5 % of list scheduling by durations, and below that
    of groups with barriers.
    """
    by_turns, in_groups, serial = ratios(400, 7)
    assert by_turns < 1.05 < in_groups < serial


def test_turns_keep_the_limit_and_begin_each_call_once() -> None:
    """However calls wait, no more than the limit run, and each begins when its time has come."""
    random = Random(5)
    for _ in range(100):
        waits, _, limit = random_waits(random)
        turns = Schedule(len(waits), limit, waits)
        going: list[int] = []
        ended: set[int] = set()
        while going or len(ended) < len(waits):
            for place in turns:
                assert ended.issuperset(waits[place])
                going.append(place)
            assert len(going) == turns.running <= limit
            going.remove(place := random.choice(going))
            turns.ended(place, is_answered=True)
            ended.add(place)
        assert len(ended) == len(waits)
