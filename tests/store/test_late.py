"""The laws of a worker that is late: no call is lost because of a lease that ran out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from lutum_py import AnyToolCall, SuspendTicket, Toolset, tool, tool_fn
from lutum_py.errors import StaleError, StoreError
from lutum_py.execution import ExecutionErrors, execute, outcomes_of
from lutum_py.store import Claim, Store, Stored, open_store
from lutum_py.testing import ScriptedModel
from tests.private import store_run
from tests.store.beside import Clock
from tests.store.desk import (
    ASK,
    KEY,
    LOOK,
    PAY,
    Desk,
    approve,
    claimed,
    plan_of,
    read_again,
    states,
)

Paid = list[tuple[str, int]]


def run(store: Store, paid: Paid, *, lease: float = 60) -> None:
    stored = asyncio.run(store.run("one", Desk, lease=lease, skipped={"log": paid}))
    assert stored.plan is not None
    stored.plan.discard()


class Own:
    """The clock of the workers of this process, which stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        monkeypatch.setattr(store_run, "monotonic", lambda: self._now)

    def move(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Own:
    return Own(monkeypatch)


@pytest.mark.parametrize("stage", ["claimed", "beginning", "started"])
def test_a_worker_that_is_paused_before_the_start_runs_the_call(
    store: Store, clock: Clock, own: Own, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """If nobody took a call over meanwhile, it is run, however late, and its outcome counts."""
    store.save("one", plan_of(PAY))
    approve(store)
    claim, begin = store._claims.claim, store._claims.start

    def pause(when: str) -> None:
        if when == stage:
            own.move(10)
            clock.move(10)

    def claims(*given: Any) -> Any:
        claimed = claim(*given)
        pause("claimed")
        return claimed

    def begins(claim: Any) -> AnyToolCall:
        pause("beginning")
        call = begin(claim)
        pause("started")
        return call

    monkeypatch.setattr(store._claims, "claim", claims)
    monkeypatch.setattr(store._claims, "start", begins)
    paid: Paid = []
    run(store, paid, lease=5)
    assert paid == [("Acme", 500)]
    assert states(store) == {"c1": "success"}


@pytest.mark.parametrize("stage", ["claimed", "beginning"])
def test_what_somebody_takes_before_it_begins_is_theirs(
    store: Store, clock: Clock, own: Own, monkeypatch: pytest.MonkeyPatch, where: str, stage: str
) -> None:
    """A worker that comes too late writes nothing, and the call stays with who claimed it."""
    store.save("one", plan_of(PAY))
    approve(store)
    theirs: list[Claim | None] = []
    with open_store(where, key=KEY, owner="other") as other:
        claim, begin = store._claims.claim, store._claims.start

        def take(when: str) -> None:
            if when == stage and not theirs:
                own.move(10)
                clock.move(10)
                theirs.append(other.claim(Desk))

        def claims(*given: Any) -> Any:
            claimed = claim(*given)
            take("claimed")
            return claimed

        def begins(claim: Any) -> AnyToolCall:
            take("beginning")
            return begin(claim)

        monkeypatch.setattr(store._claims, "claim", claims)
        monkeypatch.setattr(store._claims, "start", begins)
        paid: Paid = []
        run(store, paid, lease=5)
        assert (paid, states(store)) == ([], {"c1": "pending"})
        (taken,) = theirs
        assert taken is not None
        assert not taken.in_doubt
        other.finish(taken, other.start(taken).call_sync(log=paid))
    assert (paid, states(store)) == ([("Acme", 500)], {"c1": "success"})


def test_what_somebody_takes_after_it_began_is_not_started(
    store: Store, clock: Clock, own: Own, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Whoever has a call in doubt may find out that nothing was paid, and that stays true."""
    store.save("one", plan_of(PAY))
    approve(store)
    begin = store._claims.start
    theirs: list[Claim | None] = []
    with open_store(where, key=KEY, owner="other") as other:

        def begins(claim: Any) -> AnyToolCall:
            call = begin(claim)
            own.move(10)
            clock.move(10)
            theirs.append(other.claim(Desk))
            return call

        monkeypatch.setattr(store._claims, "start", begins)
        paid: Paid = []
        run(store, paid, lease=5)
        assert (paid, states(store)) == ([], {"c1": "in doubt"})
        (taken,) = theirs
        assert taken is not None
        assert taken.in_doubt
        other.finish(taken, taken.call.indeterminate("not paid, as the bank has it"))
    assert states(store) == {"c1": "indeterminate"}


def test_a_database_that_is_away_when_a_late_call_is_to_start_comes_out(
    store: Store, own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be asked is not assumed: nothing is run, and nothing more is on record."""
    store.save("one", plan_of(PAY))
    approve(store)
    begin = store._claims.start

    def begins(claim: Any) -> AnyToolCall:
        own.move(100)
        return begin(claim)

    def away(claim: Claim) -> None:
        raise StoreError("away")

    monkeypatch.setattr(store._claims, "start", begins)
    monkeypatch.setattr(store._claims, "renew", away)
    paid: Paid = []
    with pytest.raises(StoreError, match="away"):
        run(store, paid)
    assert (paid, states(store)) == ([], {"c1": "in doubt"})


def test_a_loop_that_is_always_late_starts_its_calls_all_the_same(
    store: Store, own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that a busy process cannot keep becomes longer, so that a run comes to its end."""
    store.save("one", plan_of(PAY))
    approve(store)
    leases: list[float] = []

    def slow(step: Any) -> Any:
        def late(claim: Claim) -> Any:
            leases.append(claim.lease)
            done = step(claim)
            own.move(35)
            return done

        return late

    for name in ("start", "renew"):
        monkeypatch.setattr(store._claims, name, slow(getattr(store._claims, name)))
    paid: Paid = []
    run(store, paid, lease=10)
    assert (paid, leases) == ([("Acme", 500)], [10, 20, 40])


def broken(error: BaseException) -> Any:
    """An `around` that does not open."""

    @contextmanager
    def around(_: AnyToolCall) -> Any:
        raise error
        yield

    return around


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "out"),
    [
        ({"around": broken(OSError("closed"))}, ExecutionErrors),
        ({"around": broken(KeyboardInterrupt())}, KeyboardInterrupt),
        ({"around": broken(asyncio.CancelledError())}, ExecutionErrors),
        ({"on_event": interrupted}, KeyboardInterrupt),
        ({"context": interrupted}, KeyboardInterrupt),
    ],
)
def test_what_comes_before_a_tool_does_not_give_its_call_up(
    store: Store, options: dict[str, Any], out: type[BaseException]
) -> None:
    """An approved call whose tool was not started can be claimed at once, by anybody, as if nobody
    had claimed it: only a person or the program decides that it is not executed.
    """
    store.save("one", plan_of(PAY, LOOK))
    approve(store)
    version = store.load("one").version
    before = steps_of(store)
    with pytest.raises(out):
        asyncio.run(store.run("one", Desk, limit=1, **options))
    assert states(store) == {"c1": "pending", "c2": "pending"}
    # Only what was on record has to be taken back, and what is on record stays there.
    taken_back = ["started", "retried"] if "on_event" in options else []
    assert steps_of(store) == [before[0] + taken_back, *before[1:]]
    assert ("on_event" in options) is (store.load("one").version > version)
    paid: Paid = []
    run(store, paid)
    assert (paid, states(store)) == ([("Acme", 500)], {"c1": "success", "c2": "success"})


def steps_of(store: Store) -> list[list[str]]:
    plan = store.load("one", Desk).plan
    assert plan is not None
    return [[step.kind for step in row.steps] for row in plan.calls]


def test_a_second_try_that_did_not_start_is_in_doubt_as_before(store: Store, clock: Clock) -> None:
    """Who takes its start back does not take back that of the worker before."""
    store.save("one", plan_of(LOOK))
    store.start(claimed(store, lease=1))
    clock.move(2)
    before = steps_of(store)
    taken_back = ["retried", "started", "abandoned"]  # what is on record stays there
    for options, more in (
        ({"around": broken(OSError("closed"))}, []),
        ({"on_event": interrupted}, taken_back),
    ):
        with pytest.raises((ExecutionErrors, KeyboardInterrupt)) as caught:
            asyncio.run(store.run("one", Desk, **options))
        assert "not executed" not in str(outcomes_of(caught.value))
        assert (states(store), steps_of(store)) == ({"c2": "in doubt"}, [before[0] + more])
    run(store, [])
    assert states(store) == {"c2": "success"}


def test_a_start_that_somebody_saved_is_taken_back(store: Store) -> None:
    """Who loads a plan and saves it meanwhile leaves the start as it is: no tool was started, and
    the call can be claimed again.
    """
    store.save("one", plan_of(PAY))
    approve(store)

    def on_event(_: object) -> None:
        stored = store.load("one", Desk)
        store.save("one", stored.plan, version=stored.version)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(store.run("one", Desk, on_event=on_event))
    assert states(store) == {"c1": "pending"}
    assert steps_of(store)[0][-2:] == ["started", "retried"]
    assert not claimed(store).in_doubt


def test_a_tool_that_was_started_is_never_taken_back(store: Store) -> None:
    """Whatever keeps its result from being one, it may have paid, and is not run again."""
    store.save("one", plan_of(PAY))
    approve(store)
    handlers, calls = Desk.Handlers(), list[AnyToolCall]()

    @handlers.on(Desk.pay)
    def answered_already(cents: int, payee: str = "Acme", log: Any = None) -> str:
        calls[0].complete("paid")
        return "paid twice"

    @contextmanager
    def around(call: AnyToolCall) -> Any:
        calls.append(call)
        yield lambda _: None

    with pytest.raises(ExecutionErrors):
        asyncio.run(store.run("one", Desk, around=around, handlers=handlers))
    assert (len(calls), states(store)) == (1, {"c1": "indeterminate"})


class Work:
    """What the tools below did, and when they may end."""

    now: ClassVar[Work]

    def __init__(self) -> None:
        self.done = Counter[tuple[str, int]]()
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        Work.now = self

    async def do(self, who: str, cents: int) -> None:
        self.done[who, cents] += 1
        self.started.set()
        await self.may_end.wait()


@tool_fn
async def pay(who: str, cents: int) -> str:
    """Pay, which takes a while."""
    await Work.now.do(who, cents)
    return f"paid {cents}"


@tool_fn(idempotent=True)
async def look(who: str, cents: int) -> str:
    """Look, which takes a while."""
    await Work.now.do(who, cents)
    return f"seen {cents}"


class Hall(Toolset):
    pay = tool(pay)
    look = tool(look)


def keep(store: Store, id: str, *names: str) -> None:
    """Save a conversation whose calls may be run."""
    calls = [(f"c{at}", name, {"who": id, "cents": at}) for at, name in enumerate(names)]
    outcome: Any = Hall.read_turn(ScriptedModel.tool_calls(*calls))
    store.save(id, outcome.round.plan())


def results(stored: Stored[Any]) -> dict[str, str]:
    assert stored.plan is not None
    return {
        row.id: row.state if row.result is None else row.result.status for row in stored.plan.calls
    }


def test_a_call_that_runs_is_not_in_doubt_for_others_of_its_process(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewals that are late let nobody of the same store run a call again, or end it."""

    async def go() -> list[Any]:
        work = Work()
        keep(store, "one", "pay", "look")
        working = asyncio.create_task(store.run("one", Hall))
        while len(work.done) < 2:
            await work.started.wait()
            work.started.clear()
        clock.move(100)
        assert results(await store.run("one", Hall)) == {"c0": "in_doubt", "c1": "in_doubt"}
        async with store.hold("one", Hall) as desk:
            beside = asyncio.create_task(desk.run())
            await asyncio.sleep(0.2)
            assert not beside.done()
            work.may_end.set()
            assert await beside == []
        return [results(await working), dict(work.done)]

    ended, paid = asyncio.run(go())
    assert ended == {"c0": "success", "c1": "success"}
    assert paid == {("one", 0): 1, ("one", 1): 1}


def test_a_call_that_has_run_is_not_in_doubt_before_its_outcome_is_on_record(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its end and its record, too, nobody of the same store runs it again."""
    keep(store, "one", "look")
    Work().may_end.set()
    end = store._claims.end

    def ends(*given: Any) -> None:
        clock.move(100)
        beside = asyncio.run(store.run("one", Hall, lease=30))
        assert results(beside) == {"c0": "in_doubt"}
        end(*given)

    monkeypatch.setattr(store._claims, "end", ends)
    assert results(asyncio.run(store.run("one", Hall))) == {"c0": "success"}
    assert dict(Work.now.done) == {("one", 0): 1}


@pytest.mark.parametrize("is_shared", [False, True])
def test_no_call_is_lost_under_load(where: str, is_shared: bool) -> None:
    """However many conversations one process runs at once, and however short their lease, each call
    of theirs is run once, and its outcome counts. Of several processes, at most one runs a call; it
    is in doubt where the other took it over.
    """
    ids = [f"c{at}" for at in range(40 if not is_shared else 10)]

    async def run_all(store: Store) -> None:
        tasks = [asyncio.create_task(store.run(id, Hall, lease=0.02)) for id in ids]
        for stored in await asyncio.gather(*tasks):
            assert stored.plan is not None
            stored.plan.discard()

    async def go(store: Store, other: Store) -> None:
        Work().may_end.set()
        for id in ids:
            keep(store, id, *["pay"] * 5)
        await asyncio.gather(run_all(store), *([run_all(other)] if is_shared else []))

    with open_store(where, key=KEY) as store, open_store(where, key=KEY, owner="b") as other:
        asyncio.run(go(store, other))
        done = Work.now.done
        assert max(done.values()) == 1
        for id in ids:
            found = results(store.load(id, Hall))
            for at in range(5):
                wanted = {"success"} if done[id, at] else {"pending", "in_doubt"}
                assert found[f"c{at}"] in (wanted | {"in_doubt"} if is_shared else {"success"})


# What comes too late is not forgotten.


def told(store: Store) -> Sequence[tuple[str, str | None]]:
    """The steps of the one call, from its first start on."""
    plan = store.load("one", Desk).plan
    assert plan is not None
    (row,) = plan.calls
    steps = [(step.kind, step.verdict) for step in row.steps]
    return steps[[kind for kind, _ in steps].index("started") :]


def test_what_a_worker_did_that_lost_its_call_is_on_record(store: Store, clock: Clock) -> None:
    """Its outcome is refused and a step `late`, once; that of who has the call counts."""
    store.save("one", plan_of(LOOK))
    first = claimed(store, lease=1)
    late = store.start(first).call_sync()
    clock.move(2)
    second = claimed(store, lease=1)
    begun = store.start(second)
    for _ in range(2):
        with pytest.raises(StaleError, match="as `late`"):
            store.finish(first, late)
    before = [("started", None), ("abandoned", None), ("retried", "continued"), ("started", None)]
    assert told(store) == [*before, ("late", "success"), ("abandoned", None)]
    store.finish(second, begun.fail("It is closed."))
    with pytest.raises(StaleError):
        store.finish(first, read_again(first).fail("lost"))
    assert told(store) == [
        *[*before, ("late", "success"), ("ended", "error"), ("recorded", "error")],
    ]
    assert states(store) == {"c2": "error"}
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert [each.status for each in plan.resolve().results] == ["error"]


def test_what_came_too_late_makes_no_claim_void(store: Store, clock: Clock) -> None:
    """Whoever has the call by then starts it, waits and finishes as if nothing had come."""
    store.save("one", plan_of(LOOK))
    claims: list[Claim] = []
    late: list[Any] = []
    for _ in range(2):
        claims.append(claimed(store, lease=1))
        late.append(store.start(claims[-1]).call_sync())
        clock.move(2)
    last = claimed(store, lease=1)
    with pytest.raises(StaleError):
        store.finish(claims[0], late[0])
    store.start(last)
    with pytest.raises(StaleError):
        store.finish(claims[1], late[1])
    store.finish(last, read_again(last).fail("closed"))
    assert states(store) == {"c2": "error"}
    assert [kind for kind, _ in told(store)].count("late") == 2


def test_an_outcome_counts_before_anybody_has_done_more(store: Store, clock: Clock) -> None:
    """Who has claimed the call since, and has not started it again, finds that it has ended."""
    store.save("one", plan_of(PAY))
    approve(store)
    first = claimed(store, lease=1)
    late = store.start(first).call_sync()
    clock.move(2)
    second = claimed(store, lease=1)
    assert second.in_doubt
    store.finish(first, late)
    assert states(store) == {"c1": "success"}
    with pytest.raises(StaleError):
        store.finish(second, second.call.indeterminate("nobody knows"))
    assert [kind for kind, _ in told(store)] == ["started", "ended", "recorded"]


def test_a_question_that_comes_too_late_is_asked_nobody(store: Store, clock: Clock) -> None:
    """It is on record that there was one."""
    store.save("one", plan_of(ASK))
    first = claimed(store, lease=1)
    waits = asyncio.run(execute(store.start(first)))
    clock.move(2)
    second = claimed(store, lease=1)
    store.finish(second, second.call.indeterminate("cut off"))
    with pytest.raises(StaleError):
        store.finish(first, waits)
    assert told(store)[-1] == ("late", "suspended")
    assert store.waiting() == []


def test_nothing_is_late_that_did_nothing(store: Store, clock: Clock) -> None:
    """An outcome of a claim that was not started, or whose round is over."""
    store.save("one", plan_of(ASK))
    first = claimed(store, lease=1)
    clock.move(2)
    second = claimed(store, lease=1)
    with pytest.raises(StaleError):
        store.finish(first, read_again(first).fail("lost"))
    started = store.start(second)
    assert told(store) == [("started", None), ("abandoned", None)]
    clock.move(2)
    third = claimed(store, lease=1)
    store.finish(third, third.call.suspend(SuspendTicket()))
    with pytest.raises(StaleError):
        store.finish(second, asyncio.run(execute(started)))
    waits = [("abandoned", None), ("suspended", None), ("recorded", "suspended")]
    assert told(store)[1:] == [*waits, ("late", "suspended")]
    store.save("one", None, version=store.load("one").version)
    with pytest.raises(StaleError):
        store.finish(second, read_again(second).fail("lost"))
