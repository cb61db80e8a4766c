"""The laws of holds: one goes on with a conversation at a time, from what is saved."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import AnyToolCall, Session, SuspendTicket, ToolRound, ToolRoundPlan
from lutum_py.errors import (
    CommitError,
    HeldError,
    InvalidValueError,
    MisuseError,
    StaleError,
    StoreError,
)
from lutum_py.execution import RunOptions
from lutum_py.store import Held, HeldRunOptions, Store, open_store
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallEvent
from tests.cases import over
from tests.store.beside import Clock, between, others
from tests.store.desk import ASK, KEY, LOOK, PAY, Desk, approve, claimed, hooks, states


@pytest.fixture
def other(where: str, store: Store) -> Any:
    """Another process's store of the same place, whose owner is Mia."""
    assert store
    with open_store(where, key=KEY, owner="mia") as opened:
        yield opened


def asked(desk: Held[Desk], *calls: tuple[str, str, Any]) -> ToolRoundPlan[Desk]:
    """Ask a model, and the hooks by which payments wait."""
    if not desk.session.transcript:
        desk.session.push_user("Go on.")
    model = ScriptedModel([ScriptedModel.tool_calls(*calls)])
    outcome: Any = desk.session.text_turn(model).tools(Desk).collect_sync()
    plan: ToolRoundPlan[Desk] = outcome.round.apply_hooks_sync(hooks)
    return plan


def started(store: Store, *calls: tuple[str, str, Any]) -> None:
    """Save a conversation with an open round."""
    with store.hold("one", Desk) as desk:
        desk.save(asked(desk, *calls))


def holds() -> list[Any]:
    with others() as rows:
        return rows.all("SELECT conversation, owner FROM lutum_hold")


# One at a time.


def test_who_comes_later_waits_until_it_is_left(store: Store, other: Store) -> None:
    """In sync code and in async code, over threads and stores, the blocks do not overlap."""
    inside, most, entered = 0, 0, 0
    lock = threading.Lock()

    def count(step: int) -> None:
        nonlocal inside, most, entered
        with lock:
            inside += step
            most = max(most, inside)
            entered += step == 1

    def sync(mine: Store) -> None:
        with mine.hold("one", Desk) as desk:
            count(1)
            desk.note += "x"
            desk.save()
            count(-1)

    async def go() -> None:
        for mine in (store, other):
            async with mine.hold("one", Desk) as desk:
                count(1)
                desk.note += "x"
                desk.save()
                count(-1)

    work: list[Callable[[], object]] = [lambda: sync(store), lambda: sync(other)]
    work += [lambda: asyncio.run(go())] * 2
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, entered, store.load("one").note) == (1, 6, "x" * 6)
    assert holds() == []


@pytest.mark.parametrize("wait", [0, 0.02])
def test_who_waited_for_long_enough_is_told_who_has_it(
    store: Store, other: Store, wait: float
) -> None:
    """The error names the owner, and another conversation is free."""

    async def go() -> None:
        async with store.hold("one", Desk, wait=wait):
            raise AssertionError

    with other.hold("one", Desk):
        with pytest.raises(HeldError, match="'one' is held by mia"):
            asyncio.run(go())
        with pytest.raises(HeldError, match="by mia"), store.hold("one", Desk, wait=wait):
            raise AssertionError
        with store.hold("two", Desk, wait=0) as two:
            assert two.id == "two"
    with store.hold("one", Desk, wait=0) as one:
        assert repr(one) == "<conversation 'one', held: 0 items>"


def test_what_came_between_looking_and_taking_has_it(store: Store, other: Store) -> None:
    """Who looks and finds nobody may come too late all the same."""
    theirs = other.hold("one", Desk)

    def first(_connection: Any, sql: str, is_done: bool) -> None:
        if is_done and "SELECT owner" in sql and not theirs._is_entered:
            theirs.__enter__()

    with between(first), pytest.raises(HeldError, match="held by somebody else"):
        store.hold("one", Desk, wait=0).__enter__()
    theirs.__exit__(None, None, None)


def test_what_a_killed_process_held_is_free_after_its_lease(
    store: Store, other: Store, clock: Clock
) -> None:
    """The lease counts by the clock of the database, and nothing has to be cleaned up."""
    lost = other.hold("one", Desk, lease=100)
    assert lost._of.take() is not None
    clock.move(99.5)
    with pytest.raises(HeldError), store.hold("one", Desk, wait=0):
        raise AssertionError
    clock.move(0.5)
    with store.hold("one", Desk, wait=0):
        assert [owner for _, owner in holds()] == [store._claims.owner]


@pytest.mark.parametrize("is_async", [False, True])
def test_it_is_renewed_while_the_block_runs(store: Store, clock: Clock, is_async: bool) -> None:
    """At a third of the lease it begins anew; a failure of the database is passed over."""
    renewed = threading.Semaphore(0)
    failed: list[str] = []

    def hook(_connection: Any, sql: str, is_done: bool) -> None:
        if "UPDATE lutum_hold" in sql and "INSERT" not in sql:
            if not failed and not is_done:
                failed.append(sql)
                raise StoreError("for a moment")
            if is_done:
                renewed.release()

    async def go() -> None:
        async with store.hold("one", Desk, lease=0.06):
            clock.move(1)
            for _ in range(2):
                await asyncio.to_thread(renewed.acquire)

    with between(hook):
        if is_async:
            asyncio.run(go())
        else:
            with store.hold("one", Desk, lease=0.06):
                clock.move(1)
                for _ in range(2):
                    renewed.acquire()
    assert failed


# Lost.


def stolen(other: Store, clock: Clock) -> Any:
    """Take the hold of somebody whose lease ran out, and say something there."""
    while True:  # they renew it
        theirs = other.hold("one", Desk, lease=10**6, wait=0)
        try:
            clock.move(1000)
            desk = theirs.__enter__()
        except HeldError:
            continue
        desk.note = "theirs"
        desk.save()
        return theirs


@pytest.mark.parametrize("does", ["wait", "swallow", "save"])
def test_who_lost_it_is_cancelled_and_told(
    store: Store, other: Store, clock: Clock, does: str
) -> None:
    """The error comes out of the `async with`, whatever the block does with its cancellation; the
    task is not left cancelled, and nothing of the new owner's is changed.
    """
    theirs: list[Any] = []

    def steal() -> None:
        theirs.append(stolen(other, clock))

    async def block() -> None:
        async with store.hold("one", Desk, lease=0.03) as desk:
            thread = threading.Thread(target=steal)
            thread.start()
            desk.note = "mine"
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                thread.join()
                if does == "wait":
                    raise
                if does == "save":
                    desk.save()

    async def go() -> None:
        with pytest.raises(StaleError, match="ran out, and was taken by mia"):
            await block()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        assert [owner for _, owner in holds()] == ["mia"]
        theirs[0].__exit__(None, None, None)
        assert store.load("one").note == "theirs"

    asyncio.run(go())


def test_in_a_with_the_next_save_tells_that_it_was_lost(
    store: Store, other: Store, clock: Clock
) -> None:
    """Leaving says nothing, and gives back nothing of theirs."""
    with store.hold("one", Desk, lease=0.03) as desk:
        theirs = stolen(other, clock)
        for wrong in (desk.save, desk.commit):
            with pytest.raises(StaleError, match="taken by mia"):
                wrong()
    assert [owner for _, owner in holds()] == ["mia"]
    theirs.__exit__(None, None, None)
    with store.hold("one", Desk) as desk:
        stolen(other, clock).__exit__(None, None, None)
        with pytest.raises(StaleError, match="somebody who has left it"):
            desk.save()


@pytest.mark.parametrize("step", ["commit", "plan", "run"])
def test_a_round_that_somebody_opened_since_is_not_taken_for_ones_own(
    store: Store, other: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whoever reads the round of the next owner is told that the hold was lost, at whichever step
    it went, and nothing is said in their session.
    """
    started(store, LOOK)
    run = store.run

    def go_on() -> None:
        clock.move(100)
        with other.hold("one", Desk) as theirs:
            theirs.run_sync()
            theirs.commit()
            theirs.save(asked(theirs, ("d1", "look", {"place": "Rome"})))

    async def late(*given: Any, **options: Any) -> Any:
        await asyncio.to_thread(go_on)
        return await run(*given, **options)

    async def goes_on(desk: Held[Desk], step: str) -> None:
        if step == "run":
            await desk.run()
        elif step == "commit":
            desk.commit()
        else:
            assert desk.plan

    async def go() -> None:
        async with store.hold("one", Desk, lease=90) as desk:
            said = len(desk.session.transcript)
            if step != "run":
                await asyncio.to_thread(go_on)
            with pytest.raises(StaleError, match="somebody who has left it since"):
                await goes_on(desk, step)
            assert len(desk.session.transcript) == said

    monkeypatch.setattr(store, "run", late)
    asyncio.run(go())


def test_nobody_renews_a_hold_that_was_lost(store: Store, other: Store, clock: Clock) -> None:
    """The thread of a `with` ends by itself, whatever the block does meanwhile."""
    hold = store.hold("one", Desk, lease=0.03)
    with hold:
        theirs = stolen(other, clock)
        hold._thread.join()
    theirs.__exit__(None, None, None)


def test_one_that_ran_out_is_yours_until_somebody_takes_it(store: Store, clock: Clock) -> None:
    """Time alone takes nothing away."""
    with store.hold("one", Desk, lease=100) as desk:
        clock.move(1000)
        desk.note = "mine"
        desk.save()
    assert store.load("one").note == "mine"


def test_a_save_by_anybody_ends_a_hold_that_ran_out(store: Store, clock: Clock) -> None:
    """Else a killed process would keep a program that holds nothing from saving."""
    store.save("one", None, note="")
    with store.hold("one", Desk, lease=100) as desk:
        clock.move(1000)
        assert store.save("one", None, note="theirs", version=1) == 2
        with pytest.raises(StaleError, match="ran out"):
            desk.save()
    assert store.load("one").note == "theirs"


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_cancellation_from_outside_goes_on(
    store: Store, other: Store, clock: Clock, is_lost: bool
) -> None:
    """Also where the hold is lost at the same time, and while it is given back."""
    theirs: list[Any] = []

    def steal() -> None:
        theirs.append(stolen(other, clock))

    async def block(entered: asyncio.Event) -> None:
        async with store.hold("one", Desk, lease=0.03):
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                if is_lost:
                    thread = threading.Thread(target=steal)
                    thread.start()
                    with pytest.raises(asyncio.CancelledError):
                        await asyncio.Event().wait()
                    thread.join()

    async def go() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(block(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert len(holds()) == len(theirs) == is_lost
    for each in theirs:
        each.__exit__(None, None, None)


def test_who_is_cancelled_while_waiting_or_taking_has_nothing(store: Store, other: Store) -> None:
    """A task that ends on its way in leaves no hold behind."""

    async def enter() -> None:
        async with store.hold("one", Desk):
            raise AssertionError

    async def cancelled(started: threading.Event) -> None:
        task = asyncio.create_task(enter())
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def tells(started: threading.Event, word: str) -> Callable[[Any, str, bool], object]:
        return lambda _, sql, __: started.set() if word in sql else None

    with other.hold("one", Desk):
        started = threading.Event()
        with between(tells(started, "SELECT owner")):
            asyncio.run(cancelled(started))
    started = threading.Event()
    with between(tells(started, "INSERT INTO lutum_hold")):
        asyncio.run(cancelled(started))
    assert holds() == []


def test_what_the_block_raises_comes_out_and_saves_nothing(store: Store) -> None:
    """Leaving is not saving, in either way."""

    async def go() -> None:
        async with store.hold("one", Desk) as desk:
            desk.session.push_user("Hello")
            raise ZeroDivisionError

    def in_sync_code() -> None:
        with store.hold("one", Desk) as desk:
            desk.session.push_user("Hello")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(go())
    with pytest.raises(ZeroDivisionError):
        in_sync_code()
    assert (store.ids(), holds()) == ([], [])


def test_a_hold_is_entered_once_and_saves_no_more_when_it_is_left(store: Store) -> None:
    """A second block needs a hold of its own, and so does a later save."""
    hold = store.hold("one", Desk)
    assert repr(hold) == f"<hold of 'one' at {store._claims.database.name}>"
    with hold as desk:
        with pytest.raises(MisuseError, match="entered before"):
            hold.__enter__()
        desk.save()
    with pytest.raises(MisuseError, match="was left"):
        desk.save()


def test_what_was_left_runs_nothing_and_ends_nothing(store: Store) -> None:
    """Somebody else may have it now: no call is run, and nothing is said in the session."""
    started(store, LOOK)
    with store.hold("one", Desk) as desk:
        said = len(desk.session.transcript)
    with pytest.raises(MisuseError, match="was left"):
        desk.run_sync()
    assert states(store) == {"c2": "pending"}
    with store.hold("one", Desk) as again:
        again.run_sync()
    with pytest.raises(MisuseError, match="was left"):
        desk.commit()
    assert len(desk.session.transcript) == said


def test_a_store_that_is_closed_within_gives_nothing_back(where: str) -> None:
    """The block goes on, and the lease runs out."""
    with open_store(where, key=KEY) as store, store.hold("one", Desk, lease=0.03):
        store.close()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"wait": -1}, InvalidValueError),
        ({"wait": "long"}, InvalidValueError),
        ({"lease": 0}, InvalidValueError),
        ({"id": ""}, InvalidValueError),
        ({"toolset": int}, MisuseError),
    ],
)
def test_what_makes_no_hold_is_refused(
    store: Store, options: dict[str, Any], error: type[Exception]
) -> None:
    """Before anything is waited for."""
    given: dict[str, Any] = {"id": "one", "toolset": Desk, **options}
    with pytest.raises(error):
        store.hold(**given)


@pytest.mark.parametrize(
    ("assigned", "plan"),
    [
        ({"note": 5}, None),
        ({"note": None}, None),
        ({}, "text"),
        ({}, ToolRound),
    ],
)
def test_what_is_no_note_session_or_plan_is_not_saved(
    store: Store, assigned: dict[str, Any], plan: Any
) -> None:
    """A value of a wrong type is refused when it is saved, not when the store is read again."""
    with store.hold("one", Desk) as desk:
        for name, value in assigned.items():
            setattr(desk, name, value)
        with pytest.raises(MisuseError, match="takes"):
            desk.save(plan)
        assert store.ids() == []
        with pytest.raises(AttributeError):
            desk.id = "two"  # type: ignore[misc]
        for session in ("text", None, Session(id="one")):
            with pytest.raises(AttributeError, match="save by `commit`"):
                setattr(desk, "session", session)  # noqa: B010 - which checkers refuse


# Beside others.


def test_others_do_all_but_save(store: Store, other: Store) -> None:
    """A save by anybody else names the owner; decisions, claims and results go on as ever."""
    with other.hold("one", Desk) as desk:
        with pytest.raises(StaleError, match="'one' is held by mia"):
            store.save("one", None, note="mine")
        desk.save(asked(desk, PAY, LOOK))
        with pytest.raises(StaleError, match="held by mia"):
            store.save("one", None, note="mine", version=1)
        with pytest.raises(StaleError, match="held by mia"):
            other.save("one", None, note="mine", version=1)
        approve(store)
        claim = claimed(store, id="one")
        call = store.start(claim)
        store.finish(claim, call.call_sync())
        assert "success" in states(store).values()
        desk.note = "still mine"
        desk.save()
        assert desk.run_sync() == []
        assert desk.commit() is not None
    assert store.load("one").note == "still mine"


def test_a_hold_of_a_conversation_that_is_made_meanwhile_sees_it(
    store: Store, other: Store
) -> None:
    """Who takes a hold while another one's first save is under way, waits for it and reads it."""
    entered: list[Any] = []
    thread = threading.Thread(target=lambda: entered.append(store.hold("one", Desk).__enter__()))
    saving = threading.current_thread()

    def hook(_connection: Any, sql: str, is_done: bool) -> None:
        if threading.current_thread() is saving and is_done and "lutum_conversation" in sql:
            if not thread.ident:
                thread.start()
        elif "INSERT INTO lutum_hold" in sql and not is_done and thread.ident:
            goes_on.set()

    goes_on = threading.Event()
    with between(hook):
        other.save("one", None, note="theirs")
        thread.join()
    assert [held.note for held in entered] == ["theirs"]
    assert goes_on.is_set()


@pytest.mark.parametrize("cells", ["owner = ''", "until = -1"])
def test_a_hold_that_somebody_edited_says_so_or_holds(store: Store, cells: str) -> None:
    """What is no cell of a store is no reason to go on with."""
    with store.hold("one", Desk):
        with others() as rows:
            rows.run(f"UPDATE lutum_hold SET {cells}")
        with pytest.raises((StoreError, HeldError)), store.hold("one", Desk, wait=0):
            raise AssertionError


def test_a_conversation_that_cannot_be_read_is_not_held(store: Store) -> None:
    """The error comes out of entering, and nobody is kept waiting."""
    store.save("one", None, note="mine")
    with others() as rows:
        rows.run("UPDATE lutum_conversation SET version = 7")
    with pytest.raises(StoreError, match="edited"), store.hold("one", Desk):
        raise AssertionError
    assert holds() == []


# Held.


def test_a_new_id_is_a_new_conversation_and_leaves_nothing(store: Store) -> None:
    """It has a session of that id, and no row until it is saved."""
    with store.hold("one", Desk) as desk:
        assert (desk.id, desk.session.id, desk.note, desk.plan) == ("one", "one", "", None)
        assert asyncio.run(desk.run()) == []
        assert store.ids() == []
    with store.hold("one", Desk) as desk:
        desk.session.push_user("Hello")
        assert desk.commit() is None
        desk.note = "n"
        desk.save()
    with store.hold("one", Desk) as desk:
        assert (len(desk.session.transcript), desk.note) == (1, "n")


def test_an_open_round_stays_until_it_is_ended(store: Store) -> None:
    """A save without a plan keeps it as it is stored, with what others did to it meanwhile."""
    started(store, PAY, LOOK)
    with store.hold("one", Desk) as desk:
        plan = desk.plan
        assert plan is not None
        assert plan is desk.plan
        approve(store)
        desk.note = "n"
        desk.save()
        desk.save()
        assert states(store)["c1"] == "pending"
        assert [waiting.call_id for waiting in desk.run_sync()] == []
        assert desk.plan is not plan
        done = desk.commit()
        assert done is not None
        assert [result.status for result in done.results] == ["success", "success"]
        assert desk.plan is None
        assert desk.commit() is None
    assert len(store.load("one").session.transcript) == 4


@pytest.mark.parametrize("how", ["abort", "discard", "resolve"])
def test_a_round_that_was_given_up_is_gone(store: Store, how: str) -> None:
    """What ends the plan in memory ends it in the store, with the next save; nothing runs then."""
    started(store, PAY)
    with store.hold("one", Desk) as desk:
        assert desk.plan is not None
        if how == "abort":
            desk.plan.abort(desk.session, "no more")
        elif how == "discard":
            desk.plan.discard()
        else:
            approve(store)
            desk.run_sync()
            desk.session.transcript.append_round(desk.plan.resolve())
        assert desk.run_sync() == []
        assert desk.commit() is None
        assert desk.plan is None
        plan = asked(desk, LOOK)
        desk.save(plan)
        assert desk.run_sync() == []
    assert store.load("one", Desk).version == store.load("one").version


def test_a_given_up_round_and_the_next_one_are_one_save(store: Store) -> None:
    """A plan that comes after one that was ended in memory takes its place."""
    started(store, LOOK)
    with store.hold("one", Desk) as desk:
        desk.run_sync()
        assert desk.plan is not None
        desk.plan.commit(desk.session)
        desk.save(asked(desk, ("d1", "look", {"place": "Rome"})))
        assert set(states(store)) == {"d1"}


def test_an_abort_of_what_others_have_gone_on_with_is_stale(store: Store) -> None:
    """A call that was approved and started meanwhile is not given up unseen."""
    started(store, PAY)
    with store.hold("one", Desk) as desk:
        assert desk.plan is not None
        approve(store)
        store.start(claimed(store))
        desk.plan.abort(desk.session, "no more")
        with pytest.raises(StaleError, match="Load it again"):
            desk.save()
    assert states(store) == {"c1": "in doubt"}


def test_another_plan_while_a_round_is_open_is_refused(store: Store) -> None:
    """One round after the other; the plan that was read may be saved with what it knows more."""
    started(store, PAY, LOOK)
    with store.hold("one", Desk) as desk:
        other = Session()
        other.push_user("Hello")
        model = ScriptedModel([ScriptedModel.tool_calls(LOOK)])
        outcome: Any = other.text_turn(model).tools(Desk).collect_sync()
        plan = outcome.round.plan()
        with pytest.raises(MisuseError, match="A round of conversation 'one' is open"):
            desk.save(plan)
        plan.discard()
        mine = desk.plan
        assert mine is not None
        (look,) = mine.pending
        mine.record(look.complete("seen by hand"))
        desk.save(mine)
        assert states(store) == {"c1": "suspended", "c2": "success"}


def test_a_commit_that_faults_changes_nothing(store: Store) -> None:
    """Its fault is that of the plan, and the round goes on."""
    started(store, PAY)
    with store.hold("one", Desk) as desk:
        before = store.load("one").version
        with pytest.raises(CommitError):
            desk.commit()
        assert store.load("one").version == before
        approve(store)
        assert desk.run_sync() == []
        assert desk.commit() is not None


def test_a_plan_that_does_not_load_says_so_where_it_is_read(store: Store) -> None:
    """The conversation can be held all the same."""
    started(store, LOOK)
    with others() as rows:
        rows.run("DELETE FROM lutum_call")
    with store.hold("one", Desk) as desk:
        with pytest.raises(StoreError, match="edited by somebody else"):
            _ = desk.plan
        desk.save()


# Running.


def test_what_waits_is_given_and_what_was_decided_runs(store: Store) -> None:
    """A run ends where each call has its result or waits for a person."""
    started(store, PAY, LOOK, ASK)
    events: list[CallEvent] = []
    with store.hold("one", Desk) as desk:
        waiting = desk.run_sync(on_event=events.append)
        assert [each.call_id for each in waiting] == ["c1", "c3"]
        for each in waiting:
            store.decide("one", each.approve(), Desk)
        assert desk.run_sync() == []
        assert desk.plan is not None
        assert desk.plan.is_settled
    assert {event.kind for event in events} == {"started", "ended", "suspended"}


def test_what_is_decided_while_a_run_ends_is_run(store: Store, other: Store) -> None:
    """A run that finds nobody waiting any more goes on."""
    started(store, PAY)
    looked: list[str] = []

    def hook(_connection: Any, sql: str, is_done: bool) -> None:
        if "state = 'waiting'" in sql and not is_done and not looked:
            looked.append(sql)
            approve(other)

    with store.hold("one", Desk) as desk, between(hook):
        assert desk.run_sync() == []
    assert states(store) == {"c1": "success"}


def test_what_others_claimed_is_waited_for(store: Store, other: Store) -> None:
    """A run does not end before their result is there."""
    started(store, LOOK)

    async def go() -> list[Any]:
        claim = claimed(other)
        call = other.start(claim)
        async with store.hold("one", Desk) as desk:
            running = asyncio.create_task(desk.run())
            while not (await asyncio.wait((running,), timeout=0.001))[1]:
                raise AssertionError
            await asyncio.to_thread(other.finish, claim, call.call_sync())
            return await running

    assert asyncio.run(go()) == []
    assert states(store) == {"c2": "success"}


def doubtful(store: Store, *calls: tuple[str, str, Any]) -> None:
    """Leave calls behind that a killed process had started."""
    started(store, *calls)
    approve(store)
    for claim in store.claim_many(Desk, len(calls), id="one", lease=0.001):
        store.start(claim)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("found", [None, "paid after all"])
def test_what_is_in_doubt_may_be_found_out(store: Store, is_async: bool, found: str | None) -> None:
    """A result that is found out counts, None is an unknown outcome, and what is idempotent is
    run again unasked.
    """
    doubtful(store, PAY, LOOK)
    asked_about: list[str] = []
    events: list[CallEvent] = []

    def look_up(call: AnyToolCall) -> Any:
        asked_about.append(call.id)
        return None if found is None else call.complete(found)

    async def look_up_async(call: AnyToolCall) -> Any:
        return look_up(call)

    with store.hold("one", Desk) as desk:
        function = look_up_async if is_async else look_up
        assert desk.run_sync(in_doubt=function, on_event=events.append) == []
        done = desk.commit()
    assert done is not None
    assert asked_about == ["c1"]
    assert [each.status for each in done.results] == [
        "success" if found else "indeterminate",
        "success",
    ]
    if found:
        assert done.results[0].model_text == found
    assert ("ended", "c1") in {(event.kind, event.row.id) for event in events}


def test_without_a_function_a_doubt_is_an_unknown_outcome(store: Store) -> None:
    """Nobody waits for an answer that nobody is asked for."""
    doubtful(store, PAY)
    with store.hold("one", Desk) as desk:
        assert desk.run_sync() == []
        assert desk.plan is not None
        (result,) = desk.plan.finished
    assert result.model_text == "Outcome unknown: the program was cut off while the tool ran."


def test_where_the_function_raises_the_doubt_stays(store: Store) -> None:
    """What it raises comes out, and the next run asks again; so does the result of another call,
    and a call that waits.
    """
    doubtful(store, PAY)
    with store.hold("one", Desk) as desk:
        with pytest.raises(ZeroDivisionError):
            desk.run_sync(in_doubt=lambda call: 1 / 0)  # type: ignore[arg-type, return-value]
        assert states(store) == {"c1": "in doubt"}
        other = Desk.parse_tool_call(ScriptedModel.tool_calls(LOOK).tool_calls[0])
        with pytest.raises(CommitError):
            desk.run_sync(in_doubt=lambda call: other.complete("seen"))
        assert states(store) == {"c1": "in doubt"}
        with pytest.raises(MisuseError, match="not a call that waits"):
            desk.run_sync(in_doubt=lambda call: call.suspend(SuspendTicket()))  # type: ignore[arg-type, return-value]
        assert states(store) == {"c1": "in doubt"}
        assert desk.run_sync(in_doubt=lambda call: call.complete("paid")) == []


def test_what_somebody_else_answered_meanwhile_stays_as_it_is(store: Store, other: Store) -> None:
    """A doubt that was claimed again and answered while one was finding out is not answered
    twice, and nobody is told of the answer that came too late.
    """
    doubtful(store, PAY)
    told: list[CallEvent] = []

    def late(call: AnyToolCall) -> Any:
        while (claim := other.claim(Desk, id="one", lease=60)) is None:
            pass
        other.finish(claim, claim.call.indeterminate("theirs"))
        return call.complete("mine")

    def too_late(call: AnyToolCall) -> Any:
        late(call)
        raise ZeroDivisionError

    with store.hold("one", Desk) as desk:
        assert desk.run_sync(in_doubt=late, lease=0.001, on_event=told.append) == []
        assert told == []
        assert desk.plan is not None
        assert [each.model_text for each in desk.plan.finished] == ["Outcome unknown: theirs"]
        desk.commit()
    doubtful(store, ("d1", "pay", {"cents": 1}))
    with store.hold("one", Desk) as desk, pytest.raises(ZeroDivisionError):
        desk.run_sync(in_doubt=too_late, lease=0.001)


def test_in_an_event_loop_a_sync_run_says_what_to_write(store: Store) -> None:
    """There is one loop a thread."""

    async def go() -> None:
        async with store.hold("one", Desk) as desk:
            with pytest.raises(MisuseError, match=r"await desk\.run\(\)"):
                desk.run_sync()

    asyncio.run(go())


def test_a_run_takes_what_the_run_of_a_store_takes() -> None:
    """A held conversation is run with the options of `store.run`, all of them."""
    *own, _ = list(inspect.signature(Store.run).parameters)[3:]
    assert set(HeldRunOptions.__annotations__) == {*own, *RunOptions.__annotations__}


@over("given", [{"limt": 3}, {"in_doubt": 5}, {"hooks": 5}])
def test_a_run_refuses_what_cannot_be_meant_also_where_no_round_is_open(
    store: Store, given: Any
) -> None:
    """It says so at once, by the name that was given."""
    with store.hold("one", Desk) as desk, pytest.raises(MisuseError, match=next(iter(given))):
        desk.run_sync(**given)


def test_what_is_decided_in_the_plan_of_a_hold_is_not_lost_in_silence(store: Store) -> None:
    """A run or save that would drop it says where to decide, and goes on from what is stored."""
    started(store, PAY)
    with store.hold("one", Desk) as desk:
        (waiting,) = desk.run_sync()
        for go_on in (desk.run_sync, desk.save):
            assert desk.plan is not None
            desk.plan.resume(waiting.cancel("no"))
            with pytest.raises(MisuseError, match=r"store\.decide\('one'"):
                go_on()
        store.decide("one", waiting.approve(), Desk)
        assert desk.run_sync() == []
        desk.commit()
    assert store.settled() == []
