"""The law of stored plans: each is one, in one place, so that none of its calls runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lutum_py import Session
from lutum_py.errors import LutumError, MisuseError, RoundClosedError, StaleError
from lutum_py.store import Store, open_store
from tests.cases import over
from tests.store.desk import KEY, LOOK, PAY, Desk, approve, claimed, plan_of, started


def kept(store: Store) -> Any:
    """A plan that the store gives, with one call to run and one that waits."""
    store.save("one", plan_of(LOOK, PAY), session=Session())
    return store.load("one", Desk)


ANOTHER: dict[str, Callable[[Any, Any, Store], object]] = {
    "text": lambda stored, plan, other: plan.dump_json(),
    "text with a key": lambda stored, plan, other: plan.dump_json(key=KEY, binding="one"),
    "session": lambda stored, plan, other: Desk.dump_session(stored.session, plan),
    "another id": lambda stored, plan, other: other.save("two", plan),
    "the same id": lambda stored, plan, other: other.save("one", plan),
    "where another plan is": lambda stored, plan, other: taken(other, plan),
}
FURTHER: dict[str, Callable[[Any], Any]] = {
    "it": lambda plan: plan,
    "a plan of it": lambda plan: plan.apply_hooks_sync(lambda call: call),
}


def taken(other: Store, plan: Any) -> None:
    """Save a plan over one that another store has under its id."""
    if not other.ids():
        other.save("one", plan_of(LOOK, PAY))
        other.save("one", None, note="changed", version=1)
    other.save("one", plan, version=other.load("one").version)


@over("way, further", [(way, further) for way in ANOTHER for further in FURTHER])
def test_no_text_or_store_has_a_plan_beside_its_store(way: str, further: str) -> None:
    """What would make two plans of one is refused, says why, and leaves the plan as it was."""
    with open_store(":memory:", key=KEY) as store, open_store(":memory:", key=KEY) as other:
        stored = kept(store)
        plan = FURTHER[further](stored.plan)
        with pytest.raises((MisuseError, StaleError), match="store") as caught:
            ANOTHER[way](stored, plan, other)
        assert "'one'" in str(caught.value)
        assert other.ids() in ([], ["one"])
        assert store.save("one", plan, version=stored.version) == 2


def test_a_plan_is_no_second_one_in_its_own_store(store: Store) -> None:
    """Under a second id it is refused, and nothing is there under that."""
    stored = kept(store)
    with pytest.raises(MisuseError, match="run twice"):
        store.save("two", stored.plan)
    assert store.ids() == ["one"]
    store.save("one", stored.plan, version=1)


SINCE: dict[str, Callable[[Store], object]] = {
    "started": lambda store: started(store, claimed(store)),
    "finished": lambda store: asyncio.run(store.run("one", Desk)),
    "decided": approve,
    "over": lambda store: store.save("one", None, version=1),
    "saved": lambda store: store.save("one", store.load("one", Desk).plan, version=1),
    "another round": lambda store: store.save("one", plan_of(LOOK, PAY), version=1),
}


@pytest.mark.parametrize("since", SINCE)
def test_a_plan_does_not_come_back_once_something_was_done(store: Store, since: str) -> None:
    """Whichever version is named, what was loaded before is not saved over what came since."""
    stored = kept(store)
    SINCE[since](store)
    for version in (stored.version, store.load("one").version, None):
        with pytest.raises(StaleError):
            store.save("one", stored.plan, version=version)
    assert store.claim(Desk, id="one", lease=1) is None or since != "finished"
    stored.plan.discard()


def test_the_same_plan_is_saved_by_whoever_opened_its_store(tmp_path: Path) -> None:
    """A store is its database: another connection to it saves what this one loaded."""
    path = tmp_path / "store.db"
    with open_store(path, key=KEY) as store:
        stored = kept(store)
    with open_store(path, key=KEY) as again:
        claim = claimed(again)
        assert again.save("one", stored.plan, version=1) == 2
        assert started(again, claim).call_sync().is_success


def test_a_plan_that_a_store_gave_ends_as_any(store: Store) -> None:
    """It may be given up and committed; its text is refused for its store alone."""
    stored = kept(store)
    plan = stored.plan
    (call,) = plan.pending
    plan.abort(stored.session, "enough")
    with pytest.raises(RoundClosedError):
        plan.dump_json()
    assert store.save("one", None, session=stored.session, version=1) == 2
    assert (plan.pending, call.status) == ((), "cancelled")
    with pytest.raises(LutumError):
        call.call_sync()
