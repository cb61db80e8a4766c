"""The laws of `store.run`: each call is on record before it begins, and finished in any case."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, ClassVar

import pytest

from lutum_py import AnyToolCall, Session, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import InvalidValueError, MisuseError, OutcomeUnknown, StoreError
from lutum_py.execution import ExecutionErrors, outcomes_of
from lutum_py.store import Claim, Store, Stored, open_store
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallEvent
from tests.cases import over
from tests.private import store_run
from tests.store.beside import Clock, between, driver_error, others
from tests.store.desk import ASK, KEY, LOOK, PAY, Desk, approve, claimed, plan_of, started, states
from tests.store.servers import Postgres, Proxy


class Gate:
    """Where tools of these tests wait."""

    now: ClassVar[Gate]

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.seen: list[str] = []
        Gate.now = self


@tool_fn
async def wait(name: str, ctx: ToolContext) -> str:
    """Wait at the gate."""
    gate = Gate.now
    gate.seen.append(name)
    gate.began.set()
    await gate.may_end.wait()
    return name


@tool_fn
def breaks(how: str) -> str:
    """Break."""
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "silence":
        raise OutcomeUnknown("nobody answered")
    raise ValueError(how)


@tool_fn
def key(ctx: ToolContext) -> str | None:
    """Tell its key."""
    return ctx.idempotency_key


@tool_fn(idempotent=True)
async def look() -> str:
    """Look, and wait the first time."""
    Gate.now.seen.append("look")
    Gate.now.began.set()
    if len(Gate.now.seen) == 1:
        await Gate.now.may_end.wait()
    return "seen"


class Hall(Toolset):
    wait = tool(wait)
    look = tool(look)
    breaks = tool(breaks)
    key = tool(key)


def kept(store: Store, *calls: tuple[str, str, Any], toolset: Any = Hall) -> None:
    round_ = toolset.read_turn(ScriptedModel.tool_calls(*calls)).round
    store.save("one", round_.plan(), note="")


def waits(*names: str) -> list[tuple[str, str, Any]]:
    return [(f"c{at}", "wait", {"name": name}) for at, name in enumerate(names)]


def ran(stored: Stored[Any]) -> dict[str, str]:
    """What each call came to; the plan is dropped."""
    assert stored.plan is not None
    rows = stored.plan.calls
    return {row.id: row.state if row.result is None else row.result.status for row in rows}


def test_what_is_ready_is_run_and_the_rest_stays(store: Store) -> None:
    """Ready calls have their results, and one that suspends itself or waits stays where it is."""
    store.save("one", plan_of(PAY, LOOK, ASK), note="")
    events: list[CallEvent] = []
    stored = asyncio.run(store.run("one", Desk, on_event=events.append, limit=1))
    assert ran(stored) == {"c1": "suspended", "c2": "success", "c3": "suspended"}
    assert [(event.row.id, event.kind, event.row.state) for event in events] == [
        ("c2", "started", "pending"),
        ("c2", "ended", "finished"),
        ("c3", "started", "pending"),
        ("c3", "suspended", "suspended"),
    ]
    approve(store)
    assert store.settled() == []
    after = asyncio.run(store.run("one", Desk))
    assert ran(after)["c1"] == "success"


def test_events_tell_the_steps_that_are_on_record(store: Store) -> None:
    """Who begins a call, and when, is one in its events, its row and the call of a claim."""
    store.save("one", plan_of(PAY, LOOK, ASK))
    events: list[CallEvent] = []
    asyncio.run(store.run("one", Desk, on_event=events.append, limit=1))
    approve(store)
    claim = claimed(store)
    call = started(store, claim)
    store.finish(claim, call.call_sync())
    plan = store.load("one", Desk).plan
    assert plan is not None
    steps = {row.id: row.steps for row in plan.calls}
    plan.discard()
    for event in events:
        told = event.row.steps
        assert steps[event.row.id][: len(told)] == told
        assert event.at == told[-1].at
        # How a run ended is recorded by the same write.
        recorded = [] if event.kind == "started" else ["recorded"]
        assert [step.kind for step in told[-2:]][-1 - len(recorded) :] == [event.kind, *recorded]
    assert [each.kind for each in events] == ["started", "ended", "started", "suspended"]
    assert call.steps[:-1] == steps["c1"][:-2]  # it ended here when its end was recorded
    assert [step.kind for step in steps["c1"][-2:]] == [call.steps[-1].kind, "recorded"]
    (by,) = {step.by for each in steps.values() for step in each if step.kind == "started"}
    assert by is not None


def test_the_key_within_a_tool_is_that_of_the_claim(store: Store) -> None:
    """Both ways to run a claim show the tool the same key."""
    kept(store, ("c0", "key", {}))
    keys: list[str] = []

    @contextmanager
    def around(call: AnyToolCall) -> Any:
        keys.append(call.idempotency_key)
        yield lambda outcome: None

    claim = claimed_of(store)
    store.release(claim)
    plan = asyncio.run(store.run("one", Hall, around=around)).plan
    assert plan is not None
    assert [*keys, plan.resolve().results[0].output] == [claim.key, claim.key]


def claimed_of(store: Store) -> Claim:
    claim = store.claim(Hall)
    assert claim is not None
    return claim


def test_a_claim_key_is_that_of_the_call_in_a_round_of_its_own(store: Store) -> None:
    """It is the same at every try, and never comes again where a conversation begins anew."""

    def kept_of(session: Session) -> str:
        model = ScriptedModel([ScriptedModel.tool_calls(("c0", "key", {}))])
        outcome: Any = session.text_turn(model).tools(Hall).collect_sync()
        plan = outcome.round.plan()
        own: str = plan.pending[0].idempotency_key
        store.save("one", plan, note="")
        return own

    keys = list[str]()
    for _ in range(2):
        own = kept_of(Session(id="chat"))
        for _ in range(2):
            claim = claimed_of(store)
            keys.append(claim.key)
            store.release(claim)
        claim = claimed_of(store)
        round_, _, rest = claim.key.partition("/")
        assert (len(round_), rest) == (32, own)
        assert claim.key == claim.call.idempotency_key == store.start(claim).idempotency_key
        store.finish(claim, claim.call.complete("done"))
        store.delete("one")
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_at_most_so_many_run_at_once(store: Store) -> None:
    """The limit holds, and with it each call is started only when it can run."""

    async def go() -> Stored[Any]:
        gate = Gate()
        kept(store, *waits("a", "b", "c"))
        task = asyncio.create_task(store.run("one", Hall, limit=2))
        while len(gate.seen) < 2:
            await gate.began.wait()
            gate.began.clear()
        assert sorted(gate.seen) == ["a", "b"]
        gate.may_end.set()
        return await task

    assert set(ran(asyncio.run(go())).values()) == {"success"}


def test_what_is_somebody_elses_stays(store: Store, clock: Clock) -> None:
    """A call that is claimed elsewhere is not touched."""
    kept(store, ("c0", "key", {}), ("c1", "key", {}))
    mine = claimed_of(store)
    stored = asyncio.run(store.run("one", Hall))
    assert ran(stored) == {"c0": "pending", "c1": "success"}
    store.release(mine)


def test_what_is_in_doubt_stays_unless_its_tool_is_idempotent(store: Store, clock: Clock) -> None:
    """A second run of what may have had its effects needs a tool that allows it."""
    store.save("one", plan_of(PAY, LOOK), note="")
    approve(store)
    for _ in range(2):
        store.start(claimed(store, lease=1))
    clock.move(2)
    assert ran(asyncio.run(store.run("one", Desk))) == {"c1": "in_doubt", "c2": "success"}
    assert states(store) == {"c1": "in doubt", "c2": "success"}
    plan = store.load("one", Desk).plan
    assert plan is not None
    paid, looked = plan.calls
    assert [step.kind for step in looked.steps][-6:] == [
        *("started", "abandoned", "retried", "started", "ended", "recorded"),
    ]
    assert (paid.duration, looked.duration is not None) == (None, True)


def test_a_cancelled_run_finishes_what_was_begun_and_gives_back_the_rest(store: Store) -> None:
    """The cut-off call is indeterminate on record, the other can be claimed at once."""

    async def go() -> Any:
        gate = Gate()
        kept(store, *waits("a", "b"))
        task = asyncio.create_task(store.run("one", Hall, limit=1, grace=0))
        await gate.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return outcomes_of(caught.value)

    (outcome,) = asyncio.run(go())
    assert outcome.status == "indeterminate"
    assert states_of(store) == {"c0": "indeterminate", "c1": "pending"}
    assert claimed_of(store).call.id == "c1"


def states_of(store: Store) -> dict[str, str]:
    return ran(store.load("one", Hall))


@pytest.mark.parametrize("step", ["claim", "start"])
def test_a_run_that_is_cancelled_at_a_step_leaves_nothing_claimed(store: Store, step: str) -> None:
    """Cancelled before its tool starts, it is given back, also if its start is on record."""
    loop: Any = None
    task: Any = None
    written = 0  # statements that changed the row of the call: the first claims, the second starts

    def cutting(_: Any, sql: str, is_done: bool) -> None:
        nonlocal written
        if is_done and "UPDATE lutum_call SET" in sql:
            written += 1
            if written == (1 if step == "claim" else 2):
                loop.call_soon_threadsafe(task.cancel)

    async def go() -> None:
        nonlocal loop, task
        gate = Gate()
        loop = asyncio.get_running_loop()
        kept(store, *waits("a"))
        task = asyncio.create_task(store.run("one", Hall, grace=0))
        with between(cutting), pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
        assert gate.seen == []

    asyncio.run(go())
    assert written >= (1 if step == "claim" else 2)
    assert states_of(store) == {"c0": "pending"}
    store.release(claimed_of(store))


def test_a_run_that_is_cancelled_leaves_nothing_behind(store: Store) -> None:
    """After whichever statement that is: no claim, no lease, no thread, and within a second."""
    told = 0
    tasks = list[Any]()  # with their errors, whose frames keep what was not given back

    async def cut_at(number: int) -> float | None:
        nonlocal told
        told, at = 0, list[float]()
        Gate().may_end.set()
        loop = asyncio.get_running_loop()

        def cut(_: Any, sql: str, is_done: bool) -> None:
            nonlocal told
            told += is_done
            if is_done and told == number:
                at.append(time.monotonic())
                loop.call_soon_threadsafe(task.cancel)

        task = asyncio.create_task(store.run(f"r{number}", Hall, grace=0, limit=1))
        tasks.append(task)
        with between(cut):
            await asyncio.wait([task], timeout=20)
        assert task.done()
        return time.monotonic() - at[0] if at else None

    for number in count(1):
        round_ = Hall.read_turn(ScriptedModel.tool_calls(*waits("a", "b"))).round  # type: ignore[union-attr]
        store.save(f"r{number}", round_.plan())
        took = asyncio.run(cut_at(number))
        with others() as rows:
            claims = rows.all("SELECT call FROM lutum_call WHERE claim IS NOT NULL")
            assert (claims, rows.all("SELECT id FROM lutum_worker")) == ([], [])
        assert "lutum-lease" not in [thread.name for thread in threading.enumerate()]
        known = {"pending", "success", "indeterminate"}
        assert set(ran(store.load(f"r{number}", Hall)).values()) <= known
        if took is None:
            break
        assert took < 1
    assert number > 12


@pytest.mark.parametrize("step", ["claim", "start"])
def test_a_loop_that_is_closed_leaves_nothing_claimed(store: Store, step: str) -> None:
    """Whoever returns from `asyncio.run` while a run goes on lets it end first."""
    number = 0

    async def go() -> None:
        gate = Gate()
        loop = asyncio.get_running_loop()
        meanwhile = asyncio.Event()

        def slow(_: Any, sql: str, is_done: bool) -> None:
            nonlocal number
            if not is_done and "UPDATE lutum_call SET" in sql:
                number += 1
                if number == ["claim", "start"].index(step) + 1:
                    loop.call_soon_threadsafe(meanwhile.set)
                    time.sleep(0.1)

        hooks.enter_context(between(slow))
        tasks.append(asyncio.create_task(store.run("one", Hall, grace=0)))
        await asyncio.wait_for(meanwhile.wait(), 20)
        assert gate.seen == []

    tasks = list[Any]()
    kept(store, *waits("a"))
    with ExitStack() as hooks:
        asyncio.run(go())
    assert tasks[0].cancelled()
    assert states_of(store) == {"c0": "pending"}
    store.release(claimed_of(store))


@pytest.mark.parametrize("when", ["a step", "a tool"])
def test_a_run_that_is_cancelled_waits_for_no_answer(postgres: Postgres, when: str) -> None:
    """Where the network swallows everything, it returns within a second, with what is known."""
    proxy = Proxy(postgres.port)
    where = postgres.fresh().replace(str(postgres.port), str(proxy.port))
    where += ("&" if "?" in where else "?") + "connect_timeout=2"  # the loop waits for its threads

    async def go(store: Store) -> tuple[float, Any]:
        gate = Gate()
        kept(store, *waits("a"))
        loop = asyncio.get_running_loop()
        swallowed = asyncio.Event()

        def swallow(_: Any, sql: str, is_done: bool) -> None:
            if when == "a step" and "UPDATE lutum_call SET" in sql:
                proxy.swallows = True
                loop.call_soon_threadsafe(swallowed.set)

        with between(swallow):
            task = asyncio.create_task(store.run("one", Hall, lease=0.3, grace=0))
            if when == "a tool":
                await asyncio.wait_for(gate.began.wait(), 20)
                proxy.swallows = True
                swallowed.set()
            await asyncio.wait_for(swallowed.wait(), 20)
            await asyncio.sleep(0.2)  # a renewal waits for its answer too
            began = time.monotonic()
            task.cancel()
            await asyncio.wait([task], timeout=20)
        took = time.monotonic() - began
        with pytest.raises(asyncio.CancelledError) as caught:
            task.result()
        return took, outcomes_of(caught.value)

    try:
        with open_store(where, key=KEY) as store:
            took, outcomes = asyncio.run(go(store))
    finally:
        proxy.close()
    assert took < 1
    assert [each.status for each in outcomes] == ["indeterminate"] * (when == "a tool")


def renewals(store: Store, monkeypatch: pytest.MonkeyPatch, renew: Callable[[int], object]) -> None:
    """Call a function before each renewal of the leases of a store, with its number."""
    real, number = store._claims.database.beat, 0

    def beat(*statements: Any) -> Any:
        nonlocal number
        if statements[0][0].startswith("UPDATE lutum_worker"):
            number += 1
            renew(number)
        return real(*statements)

    monkeypatch.setattr(store._claims.database, "beat", beat)


def test_a_lease_is_renewed_while_a_tool_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool may take longer than its lease, and nobody else gets the call."""

    async def go() -> Stored[Any]:
        gate = Gate()
        kept(store, *waits("a"))
        renewed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def renew(number: int) -> None:
            if number == 1:
                raise StoreError("away for a moment")
            if number == 6:  # two leases later
                loop.call_soon_threadsafe(renewed.set)

        renewals(store, monkeypatch, renew)
        task = asyncio.create_task(store.run("one", Hall, lease=1))
        await asyncio.wait_for(renewed.wait(), 20)
        assert await asyncio.to_thread(store.claim, Hall) is None
        gate.may_end.set()
        return await task

    assert ran(asyncio.run(go())) == {"c0": "success"}


LEASE = 0.3


async def lose(
    store: Store, where: str, monkeypatch: pytest.MonkeyPatch, call: tuple[str, str, Any]
) -> tuple[Claim, dict[str, str]]:
    """Let another store claim a call while its tool runs, and return how the first run ends.

    The database fails once more when what was lost is looked for.
    """
    gate = Gate()
    kept(store, call)
    away = threading.Event()
    failed = list[str]()
    away.set()

    def renew(_: int) -> None:
        if away.is_set():
            raise StoreError("away")

    def fails(_: Any, sql: str, is_done: bool) -> None:
        if sql.startswith("SELECT claim") and not failed:
            failed.append(sql)
            raise driver_error("away once more")

    renewals(store, monkeypatch, renew)
    run = asyncio.create_task(store.run("one", Hall, lease=LEASE, grace=0))
    await asyncio.wait_for(gate.began.wait(), 20)
    with open_store(where, key=KEY) as other, between(fails):
        claim = None
        while claim is None:
            claim = await asyncio.to_thread(other.claim, Hall)
        away.clear()
        ended = ran(await asyncio.wait_for(run, 20))
    assert failed
    return claim, ended


def test_a_tool_whose_call_somebody_has_taken_is_stopped(
    store: Store, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows nothing, so nothing of it is on record, and who has the call says what it did."""
    claim, ended = asyncio.run(lose(store, where, monkeypatch, ("c0", "wait", {"name": "a"})))
    assert (claim.in_doubt, ended) == (True, {"c0": "in_doubt"})
    store.finish(claim, claim.call.fail("It was not paid."))
    assert states_of(store) == {"c0": "error"}


def test_an_idempotent_call_whose_lease_was_lost_is_run_again(
    store: Store, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was the worker that failed, so nothing is put on record until a run comes to its end."""
    claim, ended = asyncio.run(lose(store, where, monkeypatch, ("c0", "look", {})))
    assert ended == {"c0": "in_doubt"}
    store.release(claim)
    assert ran(asyncio.run(store.run("one", Hall))) == {"c0": "success"}
    assert Gate.now.seen == ["look", "look"]


@over(
    "error",
    [StoreError("away"), MisuseError("closed"), RuntimeError("of a driver"), TimeoutError()],
)
def test_a_lease_that_runs_out_stops_no_tool(error: Exception) -> None:
    """Whatever a renewal raises, a call goes on that nobody else has, and its outcome counts."""

    async def go(store: Store, monkeypatch: pytest.MonkeyPatch) -> Stored[Any]:
        gate = Gate()
        kept(store, *waits("a"))
        loop = asyncio.get_running_loop()

        def away(number: int) -> None:
            if number == 7:  # the lease is over since the third
                loop.call_soon_threadsafe(loop.call_later, 0.1, gate.may_end.set)
            if number <= 7:
                raise error

        renewals(store, monkeypatch, away)
        return await asyncio.wait_for(store.run("one", Hall, lease=0.06, grace=0), 20)

    with open_store(":memory:") as store, pytest.MonkeyPatch.context() as monkeypatch:
        assert ran(asyncio.run(go(store, monkeypatch))) == {"c0": "success"}


def test_a_renewal_that_hangs_stops_no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it hangs for longer than the lease, the call goes on, and its outcome counts."""
    hangs = threading.Event()

    async def go(store: Store) -> Stored[Any]:
        gate = Gate()
        kept(store, *waits("a"))
        loop = asyncio.get_running_loop()

        def hang(_: int) -> None:
            loop.call_soon_threadsafe(loop.call_later, 0.2, gate.may_end.set)
            hangs.wait(30)

        renewals(store, monkeypatch, hang)
        began = time.monotonic()
        stored = await store.run("one", Hall, lease=0.06, grace=0)
        assert time.monotonic() < began + 10  # nobody waits for the renewal to end
        return stored

    with open_store(":memory:") as store:
        assert ran(asyncio.run(go(store))) == {"c0": "success"}
        hangs.set()


@pytest.mark.parametrize("raise_errors", [False, True])
def test_what_a_tool_raises_is_its_result(store: Store, raise_errors: bool) -> None:
    """An error is on record; under `raise_errors` it comes out when all have ended."""
    kept(store, ("c0", "breaks", {"how": "no"}), ("c1", "key", {}))
    if raise_errors:
        with pytest.raises(ExecutionErrors):
            asyncio.run(store.run("one", Hall, raise_errors=True))
    else:
        asyncio.run(store.run("one", Hall)).plan.discard()  # type: ignore[union-attr]
    assert states_of(store) == {"c0": "error", "c1": "success"}


def test_a_tool_that_does_not_know_is_in_doubt_on_record(store: Store) -> None:
    """`OutcomeUnknown` is `indeterminate`, and so is the row."""
    kept(store, ("c0", "breaks", {"how": "silence"}))
    asyncio.run(store.run("one", Hall)).plan.discard()  # type: ignore[union-attr]
    assert states_of(store) == {"c0": "indeterminate"}


def test_an_interrupt_comes_out_when_what_was_begun_is_on_record(store: Store) -> None:
    """Nothing more is started, and the call that it came from is indeterminate."""
    kept(store, ("c0", "breaks", {"how": "interrupt"}), ("c1", "key", {}))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(store.run("one", Hall, limit=1))
    assert states_of(store) == {"c0": "indeterminate", "c1": "pending"}


def test_a_context_that_does_not_open_keeps_its_call_from_running(store: Store) -> None:
    """What `around` raises comes out, and the call, which did nothing, may still be run."""

    @contextmanager
    def around(call: AnyToolCall) -> Any:
        raise OSError("closed")
        yield

    kept(store, ("c0", "key", {}))
    with pytest.raises(ExecutionErrors, match="1 of 1 calls failed") as caught:
        asyncio.run(store.run("one", Hall, around=around))
    (outcome,) = outcomes_of(caught.value)
    assert "not executed: OSError came before it" in outcome.model_text  # type: ignore[union-attr]
    assert states_of(store) == {"c0": "pending"}
    assert ran(asyncio.run(store.run("one", Hall))) == {"c0": "success"}


def test_what_is_wrong_with_a_run_is_found_before_it_is_on_record(store: Store) -> None:
    """A context that cannot be made, or a tool that nobody does, leaves the call unbegun."""

    def context(call: AnyToolCall) -> ToolContext:
        raise MisuseError("no context")

    kept(store, ("c0", "key", {}))
    with pytest.raises(MisuseError):
        asyncio.run(store.run("one", Hall, context=context))
    assert states_of(store) == {"c0": "pending"}
    store.release(claimed_of(store))


def test_a_fault_of_one_call_takes_nothing_from_another_that_was_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on record as started is run, also if the run is to end with an error since then."""
    on_record, failed = threading.Event(), threading.Event()
    real: Any = store._claims.start
    finish: Any = store._claims.end

    def fails(claim: Claim, *given: Any) -> Any:
        if claim.call.id == "c1":
            return finish(claim, *given)
        assert on_record.wait(30)
        failed.set()
        raise MisuseError("no room")

    def slow(claim: Claim) -> Any:
        started = real(claim)
        if claim.call.id == "c1":
            on_record.set()
            assert failed.wait(30)
            time.sleep(0.1)  # for the error to reach the run
        return started

    monkeypatch.setattr(store._claims, "start", slow)
    monkeypatch.setattr(store._claims, "end", fails)
    kept(store, ("c0", "key", {}), ("c1", "key", {}), ("c2", "key", {}))
    with pytest.raises(MisuseError, match="no room"):
        asyncio.run(store.run("one", Hall))
    assert states_of(store) == {"c0": "in_doubt", "c1": "success", "c2": "pending"}


@pytest.mark.parametrize("step", ["claim", "start", "finish"])
def test_a_database_that_fails_ends_the_run_with_what_is_known(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The error comes out, with the outcome that could not be put on record, if there is one."""
    left = ["claim", "start", "finish"].index(step)  # each of them changes the row of the call once
    monkeypatch.setattr(store_run, "_PATIENCE_SECONDS", 0.2)

    def fails(_: Any, sql: str, is_done: bool) -> None:
        nonlocal left
        if not is_done and "UPDATE lutum_call SET" in sql:
            left -= 1
            if left < 0:
                raise driver_error("the disk is full")

    kept(store, ("c0", "key", {}))
    with between(fails), pytest.raises(StoreError, match="the disk is full") as caught:
        asyncio.run(store.run("one", Hall, lease=0.2))
    assert len(outcomes_of(caught.value)) == (step == "finish")


def fails_at(number: int, times: int, then: Callable[[], object] = lambda: None) -> Any:
    """Let the database fail so many times at a change of a call that was claimed, from which on."""
    left, failed = number, 0

    def fails(_: Any, sql: str, is_done: bool) -> None:
        nonlocal left, failed
        if not is_done and ("UPDATE lutum_call SET n = " in sql or "SET claim = NULL" in sql):
            left -= 1
            if left < 0 and failed < times:
                failed += 1
                then()
                raise driver_error("away")

    return between(fails)


@pytest.mark.parametrize("step", ["start", "finish"])
def test_a_step_that_fails_is_repeated_until_it_is_on_record(store: Store, step: str) -> None:
    """A database that is away for a while costs no outcome, and no call starts twice."""
    failed = list[str]()
    kept(store, ("c0", "key", {}))
    with fails_at(["start", "finish"].index(step), 4, lambda: failed.append(step)):
        plan = asyncio.run(store.run("one", Hall)).plan
    assert len(failed) == 4
    assert plan is not None
    kinds = [step.kind for step in plan.calls[0].steps]
    assert kinds[-3:] == ["started", "ended", "recorded"]
    assert kinds.count("started") == 1
    plan.discard()


def test_an_outcome_is_on_record_though_the_run_is_cancelled_meanwhile(store: Store) -> None:
    """A database that fails for a moment just then does not leave the call in doubt."""

    async def go() -> None:
        kept(store, ("c0", "key", {}), ("c1", "key", {}))
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(store.run("one", Hall, limit=1))
        with fails_at(1, 3, lambda: loop.call_soon_threadsafe(task.cancel)):
            await asyncio.wait([task], timeout=20)
        assert task.cancelled()

    asyncio.run(go())
    assert states_of(store) == {"c0": "success", "c1": "pending"}


@pytest.mark.parametrize("when", ["context", "around", "started"])
def test_a_call_is_given_back_though_the_database_fails_for_a_moment(
    store: Store, when: str
) -> None:
    """Its tool was not started, so whoever comes next may claim it at once."""

    def context(call: AnyToolCall) -> ToolContext:
        raise MisuseError("no context")

    @contextmanager
    def around(call: AnyToolCall) -> Any:
        raise OSError("closed")
        yield

    def on_event(event: CallEvent) -> None:
        raise KeyboardInterrupt

    options: dict[str, dict[str, Any]] = {
        "context": {"context": context},
        "around": {"around": around},
        "started": {"on_event": on_event},
    }
    kept(store, ("c0", "key", {}))
    with (
        fails_at(int(when == "started"), 2),
        pytest.raises((MisuseError, ExecutionErrors, KeyboardInterrupt)),
    ):
        asyncio.run(store.run("one", Hall, **options[when]))
    assert states_of(store) == {"c0": "pending"}
    claim = claimed_of(store)
    assert not claim.in_doubt
    store.release(claim)


def test_somebody_who_was_quicker_is_let_be(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is void by the time it begins is dropped, and nothing comes out."""
    kept(store, ("c0", "key", {}))
    real: Any = store._claims.start
    claims: list[Claim] = []

    def late(claim: Claim) -> Any:
        store.release(claim)
        claims.append(claimed_of(store))
        return real(claim)

    monkeypatch.setattr(store._claims, "start", late)
    # One at a time, or the worker itself might claim what is given back here.
    assert ran(asyncio.run(store.run("one", Hall, limit=1))) == {"c0": "pending"}
    store.release(claims[0])


def test_a_call_that_somebody_claims_first_is_passed_over(store: Store, where: str) -> None:
    """Before a worker claims, another one may come; the next call is taken then."""
    kept(store, ("c0", "key", {}), ("c1", "key", {}))
    taken, came = list[Claim](), threading.Event()
    with open_store(where, key=KEY) as other:

        def late(_: Any, sql: str, is_done: bool) -> None:
            # On SQLite whoever claims has the right to write, so the other comes before that.
            to_claim = sql.startswith("BEGIN IMMEDIATE") or "UPDATE lutum_call SET" in sql
            if to_claim and not is_done and not came.is_set():
                came.set()
                taken.append(claimed_of(other))

        with between(late):
            assert ran(asyncio.run(store.run("one", Hall))) == {"c0": "pending", "c1": "success"}
        other.release(taken[0])


def test_no_sql_is_done_on_the_event_loop(store: Store) -> None:
    """Whatever a database waits for, other tasks go on."""
    threads: set[str] = set()
    kept(store, ("c0", "key", {}))
    with between(lambda *_: threads.add(threading.current_thread().name)):
        asyncio.run(store.run("one", Hall)).plan.discard()  # type: ignore[union-attr]
    assert threads
    assert threading.main_thread().name not in threads


@over(
    "given, error",
    [
        ({"id": ""}, InvalidValueError),
        ({"toolset": "Hall"}, MisuseError),
        ({"lease": 0}, InvalidValueError),
        ({"lease": True}, InvalidValueError),
        ({"limit": True}, InvalidValueError),
        ({"default_timeout": True}, InvalidValueError),
        ({"grace": True}, InvalidValueError),
        ({"limit": 0}, InvalidValueError),
        *(({name: 5}, MisuseError) for name in ("around", "context", "hooks", "on_event")),
        ({"raise_errors": "no"}, MisuseError),
        ({"limt": 3}, MisuseError),
    ],
)
def test_what_cannot_be_meant_is_refused(
    store: Store, given: dict[str, Any], error: type[Exception]
) -> None:
    """Nothing is claimed then."""
    asked = {"id": "one", "toolset": Hall, **given}
    with pytest.raises(error):
        asyncio.run(store.run(asked.pop("id"), asked.pop("toolset"), **asked))


def test_a_conversation_without_an_open_round_is_given_as_it_is(store: Store) -> None:
    """Nothing is ready, nothing is run; one that is not there is an error."""
    store.save("one", None, note="hi")
    assert asyncio.run(store.run("one", Hall)).note == "hi"
    with pytest.raises(StoreError):
        asyncio.run(store.run("two", Hall))


@pytest.mark.parametrize("yes", [True, False])
def test_a_question_of_a_store_is_answered_yes_or_no(store: Store, yes: bool) -> None:
    """`decide` of a waiting row is `approve` or `cancel`."""
    store.save("one", plan_of(PAY), note="")
    (waiting,) = store.waiting()
    store.decide("one", waiting.decide(yes, by="mia"), Desk)
    assert states(store) == {"c1": "pending" if yes else "rejected"}
    with pytest.raises(MisuseError):
        waiting.decide("no")  # type: ignore[arg-type]
