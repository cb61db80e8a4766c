"""The laws of rounds in order, and of areas that conversations share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    Decision,
    NeedsTools,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import InvalidValueError, MisuseError, OutcomeUnknown, StaleError
from lutum_py.execution import execute, run
from lutum_py.store import Claim, Store, Waiting, open_store
from lutum_py.testing import ScriptedModel
from tests.inner_tools import asks, opened, steps
from tests.store.beside import Clock, between, others, sealed
from tests.store.desk import KEY
from tests.store.test_kills import killed

EDITS = ToolCapabilities(effects=[ToolEffect("write_file", "path")])
done: list[str] = []


@tool_fn(capabilities=EDITS)
def edit(path: str) -> str:
    """Edit a file."""
    done.append(f"edit {path}")
    return "edited"


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("read_file", "path")]), idempotent=True)
def look(path: str) -> str:
    """Look into a file or folder."""
    done.append(f"look {path}")
    return "seen"


@tool_fn(capabilities=EDITS)
def lose(path: str) -> str:
    """Say that nobody knows."""
    raise OutcomeUnknown(path)


@tool_fn(capabilities=EDITS)
def wipe(path: str) -> str:
    """Wipe a file, when somebody agrees."""
    done.append(f"wipe {path}")
    return "wiped"


@tool_fn
def guess(path: str) -> str:
    """Do anything."""
    return "guessed"


class Files(Toolset):
    edit = tool(edit)
    look = tool(look)
    lose = tool(lose)
    wipe = tool(wipe)
    guess = tool(guess)
    steps = tool(steps)


hooks = Files.HookSet()


@hooks.gate(Files.wipe)
def may_it_be_wiped(_metadata: ToolMetadata, _input: Any) -> Suspend:
    return Suspend(SuspendTicket(id="t1", message="Wipe?"))


def plan_of(*calls: str) -> ToolRoundPlan[Files]:
    """A plan of calls such as `edit a`, called c0, c1 and so on."""
    done.clear()
    asked = [call.partition(" ") for call in calls]
    read = Files.read_turn(
        ScriptedModel.tool_calls(
            *((f"c{at}", name, {"path": path}) for at, (name, _, path) in enumerate(asked))
        )
    )
    assert isinstance(read, NeedsTools)
    return read.round.apply_hooks_sync(hooks)


def claims(store: Store, id: str | None = None) -> dict[str, Claim]:
    """All that can be claimed now, by call."""
    found: dict[str, Claim] = {}
    while (claim := store.claim(Files, id=id)) is not None:
        found[f"{claim.id} {claim.call.id}" if id is None else claim.call.id] = claim
    return found


def finish(store: Store, claim: Claim) -> None:
    store.finish(claim, store.start(claim).call_sync())


def decide(store: Store, id: str, decision: Decision) -> None:
    store.decide(id, decision, Files, hooks=hooks)


def test_a_call_is_given_out_once_all_that_it_meets_before_it_is_done(store: Store) -> None:
    """Ready, claimed, started and in doubt are not done; a result is, whatever it says."""
    store.save("one", plan_of("edit a", "look .", "edit b", "look c"), in_order=True)
    first = claims(store, "one")
    assert set(first) == {"c0", "c3"}
    store.release(first["c0"])
    first |= claims(store, "one")
    started = store.start(first["c0"])
    assert claims(store, "one") == {}
    finish(store, first["c3"])
    assert claims(store, "one") == {}
    started.start()
    store.finish(first["c0"], started.indeterminate("cut off"))
    (second,) = claims(store, "one").values()
    assert second.call.id == "c1"
    finish(store, second)
    finish(store, claims(store, "one")["c2"])
    assert store.settled() == ["one"]


def test_without_an_order_everything_is_given_out_at_once(store: Store) -> None:
    """A round that says nothing is as it ever was, and its rows say no more."""
    store.save("one", plan_of("edit a", "edit a"))
    assert set(claims(store, "one")) == {"c0", "c1"}
    with others() as rows:
        assert all('"turns"' not in row["body"] for row in rows.named("lutum_call"))


def test_what_waits_for_a_person_holds_up_those_behind_it(store: Store) -> None:
    """A decision lets the call run before those behind it; one that ends it lets these go on."""
    store.save("one", plan_of("wipe a", "edit a", "wipe b", "edit b"), in_order=True)
    assert claims(store, "one") == {}
    first, second = store.waiting("one")
    decide(store, "one", first.approve())
    decide(store, "one", second.cancel("no"))
    found = claims(store, "one")
    assert set(found) == {"c0", "c3"}
    finish(store, found["c0"])
    assert set(claims(store, "one")) == {"c1"}


def test_an_edit_counts_by_its_new_arguments(store: Store) -> None:
    """Where somebody edits what a call accesses, others wait for it that did not, and the other
    way round.
    """
    store.save("one", plan_of("wipe a", "edit a", "edit b"), in_order=True)
    given_back = claims(store, "one")["c2"]
    (waiting,) = store.waiting("one")
    decide(store, "one", waiting.edit({"path": "b"}))
    store.release(given_back)
    found = claims(store, "one")
    assert set(found) == {"c0", "c1"}
    finish(store, found["c0"])
    assert set(claims(store, "one")) == {"c2"}


def waits_again(store: Store, id: str, path: str) -> None:
    """Edit the call that waits, which a hook changes to another path, so that it waits for that."""
    moving = Files.HookSet()

    @moving.on(Files.wipe)
    def to_path(_metadata: ToolMetadata, _input: Any) -> Any:
        return Files.wipe.with_args(path=path)

    (waiting,) = store.waiting(id)
    store.decide(id, waiting.edit({"path": "elsewhere"}), Files, hooks=moving)


def test_whoever_holds_waits_for_nobody_who_must_follow(store: Store, clock: Clock) -> None:
    """What was claimed, and follows a question since, is the work of nobody once its lease ends."""
    store.save("one", plan_of("wipe a", "edit b"), in_order=True)
    assert store.claim(Files, id="one", lease=10) is not None
    waits_again(store, "one", "b")
    clock.move(11)
    with store.hold("one", Files) as desk:
        (waiting,) = desk.run_sync()
        assert (waiting.call_id, waiting.arguments) == ("c0", {"path": "b"})
        store.wait(0)


def test_a_call_that_nobody_started_follows_a_new_order(store: Store, clock: Clock) -> None:
    """Its lease ran out after another came before it: it is not claimed, nor waited for."""
    store.save("two", plan_of("wipe a", "edit b"), in_order=True)
    assert store.claim(Files, id="two", lease=10) is not None
    (waiting,) = store.waiting("two")
    store.decide("two", waiting.edit({"path": "b"}), Files, hooks=hooks)
    clock.move(11)
    found = claims(store, "two")
    assert set(found) == {"c0"}
    finish(store, found["c0"])
    assert set(claims(store, "two")) == {"c1"}


def test_the_order_stays_with_the_round_and_ends_with_it(store: Store) -> None:
    """Saved again, the same round keeps its order where nothing is said; another has none."""
    version = store.save("one", plan_of("edit a", "edit a", "edit a"), in_order=True)
    loaded = store.load("one", Files)
    assert loaded.plan is not None
    loaded.plan.record(loaded.plan.pending[0].fail("gone"))
    version = store.save("one", loaded.plan, version=version)
    assert set(claims(store, "one")) == {"c1"}
    loaded = store.load("one", Files)
    assert loaded.plan is not None
    version = store.save("one", loaded.plan, version=loaded.version, in_order=False)
    assert "c2" in claims(store, "one")
    store.save("one", plan_of("edit a", "edit a"), version=version)
    assert set(claims(store, "one")) == {"c0", "c1"}


def test_run_goes_through_a_round_in_order(store: Store) -> None:
    """`store.run` takes what has its turn, until nothing has."""
    plan = plan_of("edit a", "look a", "edit a", "wipe b", "edit b", "look c")
    store.save("one", plan, in_order=True)
    stored = asyncio.run(store.run("one", Files))
    assert [each for each in done if each.endswith("a")] == ["edit a", "look a", "edit a"]
    assert stored.plan is not None
    assert [call.id for call in stored.plan.pending] == ["c4"]
    decide(store, "one", store.waiting("one")[0].approve())
    asyncio.run(store.run("one", Files))
    assert done[-2:] == ["wipe b", "edit b"]


def file(what: str) -> tuple[str, dict[str, Any]]:
    """A call such as `edit a`."""
    name, _, path = what.partition(" ")
    return name, {"path": path}


def test_a_call_that_asks_holds_up_those_behind_it_and_nothing_within(store: Store) -> None:
    """What it asked for keeps its own order, and comes before what is behind it in the turn."""
    edits = asks([file("edit a"), file("edit a"), file("edit b")])
    store.save("one", opened(edits, file("edit b"), toolset=Files), in_order=True)
    (asking,) = claims(store, "one").values()
    outcome = asyncio.run(execute(store.start(asking)))
    store.finish(asking, outcome)
    assert claims(store, "one") == {}
    stored = store.load("one", Files)
    assert stored.plan is not None
    store.save("one", stored.plan.apply_hooks_sync(hooks), version=stored.version)
    first = claims(store, "one")
    assert set(first) == {"c1/1", "c1/3"}
    finish(store, first["c1/3"])
    assert claims(store, "one") == {}
    finish(store, first["c1/1"])
    finish(store, claims(store, "one")["c1/2"])
    finish(store, claims(store, "one")["c1"])
    assert set(claims(store, "one")) == {"c2"}


def test_a_doubt_within_holds_up_what_is_behind_it_and_not_the_call_around_it(
    store: Store,
) -> None:
    """The asking call goes on, in a store as in a plan."""
    doubtful = asks([file("lose a")])
    store.save("one", opened(doubtful, file("edit a"), toolset=Files), in_order=True)
    kept = asyncio.run(store.run("one", Files, hooks=hooks)).plan
    plan = asyncio.run(
        run(opened(doubtful, file("edit a"), toolset=Files), hooks=hooks, in_order=True)
    )
    assert kept is not None
    for each in (kept, plan):
        assert each.finished[0].output == [["c1/1 indeterminate"]]
    assert plan.resolve().results[1].code == "after_doubt"
    assert [call.id for call in kept.pending] == ["c2"]
    kept.discard()


def test_run_leaves_what_is_behind_doubt(store: Store) -> None:
    """What perhaps still works is not disturbed, and nothing is given up: the next run goes on, by
    whomever it is.
    """
    store.save("one", plan_of("lose a", "look a", "edit b", "edit a"), in_order=True)
    events: list[tuple[str, str]] = []
    stored = asyncio.run(
        store.run("one", Files, on_event=lambda each: events.append((each.kind, each.row.id)))
    )
    assert stored.plan is not None
    assert {each.id: each.status for each in stored.plan.finished} == {
        "c0": "indeterminate",
        "c2": "success",
    }
    assert [each.id for each in stored.plan.pending] == ["c1", "c3"]
    assert done == ["edit b"]
    assert [kind for kind, id in events if id in ("c1", "c3")] == []
    with store.hold("one", Files) as desk:
        assert desk.run_sync() == []
        assert desk.plan is not None
        assert desk.plan.is_settled
    assert done == ["edit b", "look a", "edit a"]
    store.save("two", plan_of("lose a", "edit a"))
    loose = asyncio.run(store.run("two", Files)).plan
    assert loose is not None
    assert [each.status for each in loose.resolve().results] == ["indeterminate", "success"]


def test_who_holds_a_conversation_saves_in_order_and_is_told_what_waits(store: Store) -> None:
    """A call behind one that waits for a person is no reason to wait for it."""
    with store.hold("one", Files) as desk:
        desk.save(plan_of("wipe a", "edit a", "edit b"), in_order=True, across=["files"])
        (waiting,) = desk.run_sync()
        assert done == ["edit b"]
        decide(store, "one", waiting.approve())
        assert desk.run_sync() == []
        assert done == ["edit b", "wipe a", "edit a"]
        assert desk.plan is not None
        desk.plan.discard()
        desk.save()


def test_an_area_is_shared_with_all_that_name_it(store: Store, clock: Clock) -> None:
    """What meets a call of another conversation is not given out while that is under a lease."""
    store.save("a", plan_of("edit x", "guess x"), across=["files"])
    store.save("b", plan_of("edit x", "edit y"), across=["files", "network"])
    store.save("c", plan_of("edit x"), across=["network"])
    store.save("d", plan_of("edit x"))
    first = claims(store)
    assert set(first) == {"a c0", "b c1", "c c0", "d c0"}
    finish(store, first["a c0"])
    second = claims(store)
    assert set(second) == {"b c0"}
    store.start(second["b c0"])
    clock.move(59)
    assert claims(store) == {}
    clock.move(2)  # past the leases of all
    assert "a c1" in claims(store) or "b c0" in claims(store)


def test_who_gave_way_to_others_follows_its_own_round(store: Store) -> None:
    """Once the other conversation is done, the order of its own round counts as ever."""
    store.save("a", plan_of("edit x"), across=["files"])
    store.save("b", plan_of("wipe y", "edit x"), in_order=True, across=["files"])
    other = claims(store, "a")["c0"]
    assert claims(store, "b") == {}
    waits_again(store, "b", "x")
    finish(store, other)
    assert claims(store, "b") == {}


def test_decisions_about_one_round_wait_for_each_other_in_no_deadlock(store: Store) -> None:
    """Each is one transaction, also where it looks at the order of all calls of the round."""
    store.save("one", plan_of(*(f"wipe {path}" for path in "abcdefgh")), in_order=True)
    began: list[str] = []
    gate = threading.Barrier(4)

    def begins(connection: Any, sql: str, is_done: bool) -> None:
        if is_done and ("READ WRITE" in sql or "IMMEDIATE" in sql):
            began.append(sql)

    def decides(some: list[Waiting]) -> None:
        gate.wait(20)
        for waiting in some:
            store.decide("one", waiting.approve(), Files)

    every = store.waiting()
    with between(begins):
        running = [threading.Thread(target=decides, args=(every[at::4],)) for at in range(4)]
        for each in running:
            each.start()
        for each in running:
            each.join(60)
    assert store.waiting() == []
    assert len(began) == 8


def take_back(store: Store, claim: Any) -> None:
    store.start(claim)
    store._claims.take_back(claim)


def suspend(store: Store, claim: Claim) -> None:
    call = store.start(claim)
    call.start()
    store.finish(claim, call.suspend(SuspendTicket()))


def taken_back(store: Store, claim: Any) -> None:
    store.start(claim)
    store._claims.take_back(claim)


ENDS: dict[str, Callable[[Store, Claim], object]] = {
    "result": finish,
    "waits": suspend,
    "given back": lambda store, claim: store.release(claim),
    "taken back": taken_back,
    "given up": lambda store, claim: store.save("a", None, version=store.load("a").version),
    "saved again": lambda store, claim: skipped(store),
}


def test_an_order_that_a_save_gave_stays_when_a_call_that_runs_waits(store: Store) -> None:
    """Whoever runs the call has claimed it under the old order, and does not bring that back."""
    store.save("a", plan_of("edit x"))
    claim = claims(store, "a")["c0"]
    call = store.start(claim)
    call.start()
    stored = store.load("a", Files)
    store.save("a", stored.plan, version=stored.version, across=["files"])
    store.finish(claim, call.suspend(SuspendTicket()))
    (waiting,) = store.waiting("a")
    store.decide("a", waiting.approve(), Files)
    store.save("b", plan_of("edit x"), across=["files"])
    (first,) = claims(store, "b").values()
    assert claims(store, "a") == {}
    finish(store, first)
    assert [*claims(store, "a")] == ["c0"]


def skipped(store: Store) -> None:
    stored = store.load("a", Files)
    assert stored.plan is not None
    stored.plan.record(stored.plan.pending[0].reject("Not now."))
    store.save("a", stored.plan, version=stored.version)


@pytest.mark.parametrize("way", ENDS)
def test_whoever_gave_way_goes_on_once_the_other_is_over(store: Store, way: str) -> None:
    """It does not wait for the end of a lease that nobody has any more, however it was left."""
    store.save("a", plan_of("edit x"), across=["files"])
    store.save("b", plan_of("edit x"), across=["files"])
    first = store.claim(Files, id="a", lease=600)
    assert first is not None
    assert claims(store, "b") == {}
    ENDS[way](store, first)
    assert set(claims(store, "b")) == {"c0"}


def test_a_claim_of_before_is_void_once_its_round_is_shared(store: Store) -> None:
    """Or its start would put the order of before back, and another conversation would not wait."""
    store.save("a", plan_of("edit x"))
    store.save("b", plan_of("edit x"), across=["files"])
    before = store.claim(Files, id="a", lease=600)
    assert before is not None
    stored = store.load("a", Files)
    store.save("a", stored.plan, version=stored.version, across=["files"])
    with pytest.raises(StaleError, match="saved again"):
        store.start(before)
    assert len(claims(store)) == 1


def test_a_conversation_whose_call_gives_way_is_deleted(store: Store) -> None:
    """Nobody has that call."""
    store.save("a", plan_of("edit x"), across=["files"])
    store.save("b", plan_of("edit x"), across=["files"])
    assert set(claims(store)) == {"a c0"}
    store.delete("b")
    assert store.ids() == ["a"]


def test_whoever_gives_way_as_the_other_ends_is_not_forgotten(store: Store, where: str) -> None:
    """An end between its look and what it writes about itself comes first, or wakes it."""
    store.save("a", plan_of("edit x"), across=["files"])
    store.save("b", plan_of("edit x"), across=["files"])
    first = store.claim(Files, id="a", lease=600)
    assert first is not None
    outcome = store.start(first).call_sync()
    ending: list[threading.Thread] = []

    def ends(connection: Any, sql: str, is_done: bool) -> None:
        if "claim IS NOT NULL" in sql and is_done and not ending:
            ending.append(threading.Thread(target=other.finish, args=(first, outcome)))
            ending[0].start()
            ending[0].join(0.3)  # without a lock it is over now

    with open_store(where, key=KEY) as other, between(ends):
        found = claims(store, "b")
        ending[0].join(10)
        assert set(found | claims(store, "b")) == {"c0"}


@pytest.mark.parametrize("is_held", [False, True])
def test_areas_may_be_given_by_an_iterator(is_held: bool) -> None:
    """It gives each of them once, and none of them is lost."""
    with open_store(":memory:", key=KEY) as store:
        store.save("a", plan_of("edit x"), across=["files"])
        if is_held:
            with store.hold("b", Files) as desk:
                desk.save(plan_of("edit x"), across=iter(["files"]))
        else:
            store.save("b", plan_of("edit x"), across=iter(["files"]))
        assert set(claims(store)) == {"a c0"}


def test_a_lease_that_ran_out_holds_up_nobody_elsewhere(store: Store, clock: Clock) -> None:
    """Only what somebody works on right now is waited for, and of the same conversation too."""
    store.save("a", plan_of("edit x", "edit x"), across=["files"])
    store.save("b", plan_of("look x"), across=["files"])
    claim = store.claim(Files, id="a", lease=10)
    assert claim is not None
    assert claims(store) == {}
    clock.move(11)
    found = claims(store)
    assert len(found) == 1
    assert asyncio.run(store.run("b", Files)).plan is not None


def test_a_row_that_was_edited_holds_up_its_round_and_breaks_no_result(store: Store) -> None:
    """What somebody else wrote may touch anything: it is left as it is, and others wait for it."""
    store.save("one", plan_of("edit a", "edit b", "edit b"), in_order=True)
    claim = store.claim(Files, id="one")
    assert claim is not None
    with others() as rows:
        rows.run("UPDATE lutum_call SET shown = 'x' WHERE place = 1")
    finish(store, claim)
    with others() as rows:
        slots = {row["place"]: row["slot"] for row in rows.named("lutum_call")}
    assert slots[2] is None


def test_rows_without_turns_count_as_anything_beside_others(store: Store) -> None:
    """A row of before that stands in a round by some mishap holds up those behind it, once the
    order is read again.
    """
    store.save("one", plan_of("edit a", "edit b", "wipe c"), in_order=True)
    with others() as rows:
        (row,) = (each for each in rows.named("lutum_call") if each["place"] == 0)
        body = row["body"].replace('"turns"', '"other"')
        made = sealed({**row, "body": body}, KEY)
        rows.run("UPDATE lutum_call SET body = ?, seal = ? WHERE place = 0", body, made["seal"])
    decide(store, "one", store.waiting("one")[0].edit({"path": "d"}))
    assert set(claims(store, "one")) == {"c0"}


@pytest.mark.parametrize(
    ("across", "error"),
    [("files", MisuseError), (5, MisuseError), ([""], InvalidValueError), ([3], InvalidValueError)],
)
def test_areas_are_a_list_of_words(across: Any, error: type[Exception]) -> None:
    """What names no areas is refused before anything is saved."""
    with open_store(":memory:") as store, plan_of("edit a") as plan:
        with pytest.raises(error):
            store.save("one", plan, across=across)
        assert store.ids() == []


def test_whether_the_order_is_kept_is_said_by_true_or_false() -> None:
    """A word, which would count as yes, is refused before anything is saved."""
    odd: Any = "no"
    with open_store(":memory:") as store, plan_of("edit a") as plan:
        with pytest.raises(MisuseError, match="in_order='no'"):
            store.save("one", plan, in_order=odd)
        assert store.ids() == []


@pytest.mark.slow
def test_the_order_is_held_however_a_worker_is_killed(where: str, tmp_path: Any) -> None:
    """Two workers on one round, one of them killed at any line: what meets keeps its order."""
    told = killed("ordered", where, tmp_path, 8, 3)
    assert told["kills"] == 8
    assert told["pairs that meet"] > 0
