"""The laws of `save` and `load`: both texts or neither, and nobody is overwritten unseen."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any

import pytest

from lutum_py import (
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
    execution,
)
from lutum_py.errors import (
    InvalidValueError,
    LifecycleError,
    MisuseError,
    PlanError,
    RoundClosedError,
    StaleError,
    StoreError,
)
from lutum_py.store import Store, open_store
from tests.store.beside import Clock, others
from tests.store.desk import (
    ASK,
    KEY,
    LOOK,
    PAY,
    Desk,
    approve,
    claimed,
    plan_of,
    started,
    states,
)


def test_what_was_saved_is_loaded(store: Store) -> None:
    """A note comes back as it is, also where it holds what no database keeps, and the plan too."""
    note = 'two\nlines, "quotes", \0, \ud800, 蛙 {now} ? %s'
    assert store.save("one", plan_of(PAY, LOOK), note=note) == 1
    stored = store.load("one", Desk)
    assert (stored.id, stored.note, stored.version) == ("one", note, 1)
    assert stored.plan is not None
    assert [each.call.id for each in stored.plan.suspended] == ["c1"]
    assert [call.id for call in stored.plan.pending] == ["c2"]
    stored.plan.discard()
    without = store.load("one")
    assert (without.note, without.plan, without.version) == (note, None, 1)


def test_a_plan_is_closed_once_it_is_saved_and_open_if_that_failed(store: Store) -> None:
    """A saved plan goes on in the store alone; one that was refused goes on here."""
    plan = plan_of(PAY)
    store.save("one", plan, note="")
    with pytest.raises(RoundClosedError):
        plan.discard()
    with pytest.raises(RoundClosedError):
        store.save("two", plan, note="")
    assert store.ids() == ["one"]
    other = plan_of(PAY)
    with pytest.raises(StaleError):
        store.save("one", other, note="")
    other.discard()
    ended = plan_of(LOOK)
    ended.pending[0].call_sync()
    with pytest.raises(PlanError):
        store.save("one", ended, note="", version=1)
    ended.discard()


def test_a_conversation_is_made_once(store: Store) -> None:
    """Without a version a conversation is made, and one that is there is refused."""
    assert store.save("one", None, note="first") == 1
    with pytest.raises(StaleError):
        store.save("one", None, note="second")
    assert store.load("one").note == "first"


def test_whoever_saves_has_seen_what_is_there(store: Store) -> None:
    """A version that is not the last one is refused, and names the last one."""
    store.save("one", None, note="first")
    assert store.save("one", None, note="second", version=1) == 2
    with pytest.raises(StaleError, match="'one' is at version 2, not at 1"):
        store.save("one", None, note="third", version=1)
    with pytest.raises(StaleError):
        store.save("one", None, note="third", version=3)
    assert store.load("one").note == "second"


def test_what_is_not_there_is_said(store: Store) -> None:
    """An id that is unknown is a StoreError in each method that takes one."""
    waiting = plan_of(PAY)
    decision = waiting.suspended[0].approve()
    for ask in (
        lambda: store.load("one"),
        lambda: store.load("one", Desk),
        lambda: store.decide("one", decision, Desk),
        lambda: store.save("one", waiting, note="", version=1),
    ):
        with pytest.raises(StoreError):
            ask()
    waiting.discard()
    assert store.waiting("one") == []
    assert store.claim(Desk, id="one") is None


def test_what_cannot_be_kept_is_refused(store: Store) -> None:
    """What is no text, no plan, or no id is refused before the database is asked."""
    for id in ("", "a\0b", "\ud800", 3, "x" * 501):
        with pytest.raises(InvalidValueError):
            store.save(id, None, note="")  # type: ignore[arg-type]
    plan = plan_of(PAY)
    for id in ("", "\ud800", 3):
        for step in (
            lambda id=id: store.load(id),
            lambda id=id: store.waiting(id),
            lambda id=id: store.claim(Desk, id=id),
            lambda id=id: store.decide(id, plan.suspended[0].approve(), Desk),
            lambda id=id: asyncio.run(store.run(id, Desk)),
        ):
            with pytest.raises(InvalidValueError):
                step()
    with pytest.raises(MisuseError):
        store.decide("one", "yes", Desk)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        open_store(":memory:", owner="")
    for path in ("", "a\0b", "a\ud800b"):
        with pytest.raises(MisuseError, match="which no file can have"):
            open_store(path)
    for what in (
        lambda: store.load("one", "Desk"),  # type: ignore[call-overload]
        lambda: store.claim("Desk"),  # type: ignore[arg-type]
        lambda: store.decide("one", plan.suspended[0].approve(), "Desk"),  # type: ignore[arg-type]
    ):
        with pytest.raises(MisuseError):
            what()
    plan.discard()
    with pytest.raises(MisuseError):
        store.save("one", None, note=3)  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        store.save("one", "plan", note="")  # type: ignore[arg-type]
    assert store.ids() == []


def test_a_version_is_a_whole_number(store: Store) -> None:
    """Also for an id that is not there."""
    version: Any
    for version in ("1", 1.0, True):
        with pytest.raises(MisuseError, match="`version`"):
            store.save("one", None, note="", version=version)


def test_a_long_id_is_kept_whichever_its_letters(store: Store) -> None:
    """An id of 500 characters is one in both databases."""
    id = "".join(chr(0x10000 + 7 * place) for place in range(500))
    store.save(id, plan_of(PAY), note="")
    assert [each.id for each in store.waiting(id)] == [id]


def test_ids_and_settled_tell_what_is_there(store: Store) -> None:
    """All ids are told, and as settled those whose open round has every result."""
    store.save("none", None, note="")
    store.save("b", plan_of(PAY, LOOK), note="")
    store.save("a", plan_of(LOOK), note="")
    assert (store.ids(), store.settled()) == (["a", "b", "none"], [])
    for _ in range(2):
        claim = claimed(store)
        store.finish(claim, started(store, claim).call_sync())
    assert store.settled() == ["a"]
    (waiting,) = store.waiting()
    store.decide("b", waiting.cancel("no"), Desk)
    assert store.settled() == ["a", "b"]


def test_a_loaded_plan_has_every_result_and_every_doubt(store: Store) -> None:
    """Results that are on record are finished, what was started is in doubt, the rest is
    pending.
    """
    store.save("one", plan_of(("c0", "look", {"place": "Rome"}), LOOK, ASK, PAY), note="")
    first = claimed(store)
    store.finish(first, started(store, first).call_sync())
    started(store, claimed(store))
    claimed(store)
    assert states(store) == {
        "c0": "success",
        "c2": "in doubt",
        "c3": "pending",
        "c1": "suspended",
    }


def test_calls_of_a_loaded_plan_run_only_once_that_is_on_record(store: Store) -> None:
    """A call of a loaded plan refuses to run, says what to do, and is no other call if pickled."""
    import pickle

    store.save("one", plan_of(LOOK), note="")
    plan = store.load("one", Desk).plan
    assert plan is not None
    (call,) = plan.pending
    for each, why in (
        (call.retry(), r"Claim it with `store.claim\(toolset\)`"),
        (pickle.loads(pickle.dumps(call)), "was unpickled"),
    ):
        assert isinstance(each, Desk.look.Call)
        with pytest.raises(LifecycleError, match=why):
            each.call_sync()
        with pytest.raises(LifecycleError):
            execution.execute_sync(each)
    plan.record(call.fail("not today"))
    plan.discard()


def test_hooks_of_a_loaded_plan_are_asked_as_ever(store: Store) -> None:
    """A plan that was loaded goes through hooks; what these leave to be run refuses still."""
    store.save("one", plan_of(LOOK, ("c4", "look", {"place": "Rome"})), note="")
    stored = store.load("one", Desk)
    assert stored.plan is not None
    asking = Desk.HookSet()

    @asking.on(Desk.look)
    def elsewhere(metadata: ToolMetadata, input: Any) -> Any:
        return Desk.look.with_args(place="Bonn") if metadata.id == "c4" else RunNormally(input)

    asking.gate(Desk.look)(
        lambda metadata, input: Suspend(SuspendTicket()) if metadata.id == "c2" else None
    )
    plan = stored.plan.apply_hooks_sync(asking)
    (call,) = plan.pending
    with pytest.raises(LifecycleError):
        call.call_sync()
    store.save("one", plan, note="", version=stored.version)
    assert [waiting.call_id for waiting in store.waiting()] == ["c2"]
    claim = claimed(store)
    store.finish(claim, started(store, claim).call_sync())
    assert states(store) == {"c4": "success", "c2": "suspended"}


def test_a_round_is_given_up_without_its_toolset(store: Store) -> None:
    """A plan that no longer loads does not keep its conversation from going on."""
    store.save("one", plan_of(PAY), note="first")
    stored = store.load("one")
    with others() as rows:  # nor one of whose rows somebody edited
        rows.run("UPDATE lutum_call SET token = 7")
    assert store.load("one") == stored
    assert store.save("one", None, note="given up", version=stored.version) == 2
    assert store.load("one", Desk).plan is None
    assert store.waiting() == []


def test_nobody_ends_a_round_behind_a_workers_back(store: Store) -> None:
    """After a call was started or finished, or a decision taken in, an older load is stale."""
    store.save("one", plan_of(PAY, LOOK), note="")

    def fails(version: int) -> None:
        with pytest.raises(StaleError):
            store.save("one", None, note="", version=version)

    claim = claimed(store)  # nothing that cannot be repeated
    call = started(store, claim)
    fails(1)
    store.finish(claim, call.call_sync())
    fails(2)
    approve(store)
    fails(3)
    assert store.load("one").version == 4


def test_a_loaded_plan_is_saved_again_while_workers_work(store: Store) -> None:
    """Saving a loaded plan anew keeps claims and results of its round, and its keys."""
    store.save("one", plan_of(LOOK, ("c4", "look", {"place": "Rome"}), PAY), note="first")
    claim, other = claimed(store), claimed(store)
    call = started(store, claim)
    stored = store.load("one", Desk)
    assert store.save("one", stored.plan, note="second", version=stored.version) == 3
    store.finish(claim, call.call_sync())
    store.release(other)
    again = claimed(store)
    assert (again.key, again.token > other.token) == (other.key, True)
    assert states(store) == {"c2": "success", "c4": "pending", "c1": "suspended"}


def test_a_plan_that_was_changed_here_voids_what_was_claimed(store: Store) -> None:
    """What was answered, changed or started here after it was loaded, is not what a claim is of."""
    names = ("c1", "c2", "c3")
    store.save("one", plan_of(*((name, "look", {"place": name}) for name in names)), note="")
    claims = [claimed(store) for _ in names]
    stored = store.load("one", Desk)
    assert stored.plan is not None
    first, second, _ = stored.plan.pending
    stored.plan.record(first.fail("not today"))
    second.input = {"place": "Rome"}
    store.save("one", stored.plan, note="", version=stored.version)
    for claim in claims[:2]:
        with pytest.raises(StaleError):
            store.start(claim)
    started(store, claims[2])
    again = claimed(store)
    assert (again.call.parts[1], again.token > claims[1].token) == (second.input, True)
    assert states(store) == {"c1": "error", "c2": "pending", "c3": "in doubt"}


def test_a_new_round_has_nothing_of_the_one_before(store: Store) -> None:
    """A round of equal calls is another round: other keys, no results, no claims."""
    store.save("one", plan_of(LOOK), note="")
    old = claimed(store)
    call = started(store, old)
    version = store.save("one", plan_of(LOOK), note="", version=2)
    with pytest.raises(StaleError):
        store.finish(old, call.call_sync())
    new = claimed(store)
    assert (old.key == new.key, new.in_doubt) == (False, False)
    assert old.key.split("/")[0] != new.key.split("/")[0]
    assert states(store) == {"c2": "pending"}
    assert version == 3


def test_a_round_that_was_given_up_does_not_come_back(store: Store) -> None:
    """A plan that is saved after its round was given up is refused, as what was claimed of it."""
    store.save("one", plan_of(LOOK), note="")
    old = claimed(store)
    stored = store.load("one", Desk)
    version = store.save("one", None, note="", version=stored.version)
    with pytest.raises(StaleError):
        store.save("one", stored.plan, note="", version=version)
    with pytest.raises(StaleError):
        store.start(old)
    store.save("one", plan_of(LOOK), note="", version=version)
    assert claimed(store).key != old.key


def test_a_plan_with_doubts_and_results_keeps_them(store: Store) -> None:
    """What was started or answered before the first save is in doubt, or finished, in the store."""
    plan = plan_of(LOOK, ("c4", "look", {"place": "Rome"}), ("c5", "look", {"place": "Bonn"}))
    plan.record(plan.pending[0].call_sync())
    plan.pending[0].start()
    store.save("one", plan, note="")
    assert states(store) == {"c2": "success", "c4": "in doubt", "c5": "pending"}
    claim = claimed(store)
    assert (claim.call.id, claim.in_doubt, claim.idempotent) == ("c4", True, True)


def test_the_end_of_a_round_is_committed(store: Store) -> None:
    """A settled plan is committed without results, and the round is over."""
    store.save("one", plan_of(PAY, LOOK), note="")
    approve(store)
    while claim := store.claim(Desk):
        store.finish(claim, started(store, claim).call_sync())
    stored = store.load("one", Desk)
    session = Session()
    assert isinstance(stored.plan, ToolRoundPlan)
    assert stored.plan.is_settled
    stored.plan.commit(session)
    store.save("one", None, note=session.transcript.dump_json(), version=stored.version)
    assert (store.settled(), store.load("one", Desk).plan) == ([], None)


def test_a_store_is_kept_between_openings(where: str) -> None:
    """What was saved is there when the store is opened again, by whoever has the key."""
    with open_store(where, key=KEY) as store:
        store.save("one", plan_of(PAY), note="note")
    with open_store(where, key=KEY, owner="me") as store:
        assert states(store) == {"c1": "suspended"}
    with pytest.raises(MisuseError):
        store.ids()
    store.close()


def test_hooks_are_asked_about_what_was_loaded_however_often(store: Store) -> None:
    """What they say is of the plan, and its calls can be claimed, run and loaded after it."""
    hooks = Desk.HookSet()
    hooks.on(Desk.look)(lambda _metadata, input: RunNormally(input))
    version = store.save("one", plan_of(LOOK, ("c3", "look", {"place": "Rome"})), note="")
    claim = claimed(store)
    started(store, claim)
    for asked in range(1, 4):
        loaded = store.load("one", Desk)
        assert loaded.plan is not None
        kinds = [[step.kind for step in row.steps] for row in loaded.plan.calls]
        assert kinds[1].count("reviewed") == asked - 1
        version = store.save("one", loaded.plan.apply_hooks_sync(hooks), version=loaded.version)
    assert store.load("one").version == version
    store.finish(claim, claim.call.complete("sun"))
    store.finish(claim := claimed(store), started(store, claim).call_sync())
    last = store.load("one", Desk).plan
    assert last is not None
    assert [row.state for row in last.calls] == ["finished", "finished"]
    last.discard()


@pytest.mark.parametrize(
    "look",
    [
        lambda store: store.wait(None),
        lambda store: store.wait(float("inf")),
        lambda store: store.ids(limit=-1),
        lambda store: store.ids(limit="2"),
        lambda store: store.ids(after="a\0"),
        lambda store: store.settled(limit=True),
        lambda store: store.settled(after=None),
        lambda store: store.unchanged_since(float("nan")),
        lambda store: store.unchanged_since(-1),
        lambda store: store.unchanged_since(1, limit=1.5),
        lambda store: store.waiting(limit=-1),
        lambda store: store.waiting(tool="\ud800"),
        lambda store: store.waiting(older_than="1"),
        lambda store: store.waiting(older_than=1e300),
        lambda store: store.waiting(after="one"),
        lambda store: store.waiting(after=("one", 1)),
    ],
)
def test_a_page_that_does_not_fit_is_refused_before_the_database_is_asked(
    store: Store, look: Any
) -> None:
    """It is a mistake of the caller, in the same words on both databases."""
    store.save("one", plan_of(PAY))
    with pytest.raises(InvalidValueError, match=r"is not a|is not the|Pass a"):
        look(store)


def test_pages_and_filters_show_each_once(store: Store) -> None:
    """Page by page, and by tool and age, it is what the whole list has."""
    for id in ("a", "b"):
        store.save(id, plan_of(PAY, ("c3", "pay", {"cents": 6})))
    every = store.waiting()
    assert [(each.id, each.call_id) for each in every] == [
        (id, call) for id in "ab" for call in ("c1", "c3")
    ]
    last = (every[1].id, every[1].call_id)
    assert store.waiting(limit=2) + store.waiting(after=last, limit=2) == every
    assert store.waiting("a", tool="pay", older_than=0) == every[:2]
    assert store.waiting(tool="look") == store.waiting(older_than=60) == []
    assert store.ids(after="a", limit=1) == store.unchanged_since(0)[1:] == ["b"]
    assert store.unchanged_since(60) == store.unchanged_since(0, limit=0) == []


def test_nobody_waits_in_a_busy_loop_beside_a_call_in_doubt(store: Store, clock: Clock) -> None:
    """A lease that has run out wakes nobody any more: whoever wanted the call has claimed it."""
    store.save("one", plan_of(LOOK))
    claim = store.claim(Desk, lease=1)
    assert claim is not None
    store.start(claim)
    clock.move(2)
    began = monotonic()
    store.wait(0.3)
    assert monotonic() - began > 0.25


def test_a_wait_ends_with_the_next_lease(store: Store, clock: Clock) -> None:
    """Then the call may be claimed again."""
    store.save("one", plan_of(LOOK))
    assert store.claim(Desk, lease=0.01) is not None
    began = monotonic()
    store.wait()
    assert monotonic() - began < 0.7


def test_a_conversation_is_deleted_unless_somebody_is_at_a_call_of_it(
    store: Store, clock: Clock
) -> None:
    """A claim whose lease ran out before its start keeps nobody, and cannot start any more."""
    store.save("one", plan_of(LOOK))
    claim = store.claim(Desk, lease=1)
    assert claim is not None
    with pytest.raises(MisuseError, match=r"'one' is not deleted: its call 'c2' .* is claimed"):
        store.delete("one")
    clock.move(2)
    store.delete("one")
    assert store.ids() == []
    with pytest.raises(StaleError, match="not open any more"):
        store.start(claim)
    store.save("one", plan_of(LOOK))
    store.start(claimed(store))
    clock.move(100)
    with pytest.raises(MisuseError, match="or is in doubt"):
        store.delete("one")
    with pytest.raises(StoreError, match="no conversation 'two'"):
        store.delete("two")


@pytest.mark.parametrize("call", ["a\0b", "".join(chr(0x10000 + 7 * at) for at in range(700))])
def test_a_call_id_that_no_database_keeps_is_refused_and_named(store: Store, call: str) -> None:
    """A model or its server made it up: both databases refuse it alike, and the plan stays open."""
    plan = plan_of(LOOK, (call, "look", {"place": "x"}))
    with pytest.raises(PlanError, match=r"call id .* has a NUL, or .* ask the model again"):
        store.save("one", plan)
    assert store.ids() == []
    plan.discard()


def test_a_call_id_may_be_as_long_as_a_model_makes_it(store: Store) -> None:
    """Together with that of its conversation it fits in a key of either database."""
    call = "".join(chr(0x10000 + 7 * at) for at in range(600))
    store.save("one" * 60, plan_of((call, "pay", {"cents": 5})))
    (waiting,) = store.waiting()
    assert waiting.call_id == call


def test_a_save_wakes_whoever_waits_in_this_process(store: Store) -> None:
    """On SQLite too, which has no notices: long before the next look."""
    with ThreadPoolExecutor(1) as beside:
        for at in range(3):
            began = monotonic()
            waits = beside.submit(store.wait)
            sleep(0.1)
            store.save(f"number {at}", plan_of(LOOK))
            waits.result(10)
            assert 0.05 < monotonic() - began < 0.7
