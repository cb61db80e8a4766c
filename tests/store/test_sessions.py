"""The laws of sessions in a store: kept with the plan, and as they are where nothing is said."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

from lutum_py import AssistantTurn, Session
from lutum_py.errors import MisuseError, StaleError, TranscriptError
from lutum_py.store import Store
from lutum_py.turns import TextItem
from tests.store.desk import LOOK, PAY, Desk, claimed, plan_of


def talk(id: str | None = None, text: str = "Hello \0 \ud800 蛙") -> Session:
    session = Session(id=id)
    session.push_user(text)
    return session


@pytest.mark.parametrize("id", [None, "chat-7"])
def test_a_session_comes_back_with_its_plan(store: Store, id: str | None) -> None:
    """Transcript and id are what they were; what is said to the loaded one stays with it."""
    store.save("one", plan_of(PAY, LOOK), session=talk(id))
    stored = store.load("one", Desk)
    assert stored.plan is not None
    assert stored.session.transcript == talk().transcript
    assert (stored.session.id, stored.note) == (id, "")
    stored.session.push_user("And?")
    assert len(stored.session.transcript) == 2
    assert store.load("one").session.transcript == talk().transcript


def test_what_is_left_out_stays_as_it_is(store: Store) -> None:
    """A save of the plan alone keeps session and note, and each of the two keeps the other."""
    store.save("one", None, note="mine", session=talk())
    store.save("one", plan_of(LOOK), version=1)
    stored = store.load("one", Desk)
    assert (stored.note, len(stored.session.transcript)) == ("mine", 1)
    stored.session.push_user("And?")
    store.save("one", stored.plan, session=stored.session, version=2)
    assert (store.load("one").note, len(store.load("one").session.transcript)) == ("mine", 2)
    store.save("one", None, note="other", version=3)
    assert (store.load("one").note, len(store.load("one").session.transcript)) == ("other", 2)
    store.save("one", None, note="", session=talk(text="anew"), version=4)
    stored = store.load("one")
    assert (stored.note, stored.session.transcript) == ("", talk(text="anew").transcript)


def test_a_conversation_without_a_session_has_none(store: Store) -> None:
    """A note alone is no session, and a conversation of nothing is empty."""
    store.save("one", None, note="mine")
    store.save("two", None)
    assert store.load("two").note == ""
    for id in ("one", "two"):
        with pytest.raises(MisuseError, match=f"Conversation '{id}' was saved without a session"):
            _ = store.load(id).session


def test_steps_of_a_worker_leave_the_session_alone(store: Store) -> None:
    """A decision writes the plan anew, and nothing else."""
    store.save("one", plan_of(PAY), note="mine", session=talk("chat"))
    (waiting,) = store.waiting()
    store.decide("one", waiting.approve(), Desk)
    stored = store.load("one")
    assert (stored.note, stored.session.id) == ("mine", "chat")


def test_a_session_that_cannot_be_saved_changes_nothing(store: Store) -> None:
    """A transcript without a JSON form, no session at all, a stale version: the plan stays open."""
    plan, session, given = plan_of(LOOK), talk(), "session"
    session.transcript.append_turn(AssistantTurn(items=(TextItem("a"),), payload={"x": object()}))
    with pytest.raises(TranscriptError):
        store.save("one", plan, session=session)
    wrong: Any = given
    with pytest.raises(MisuseError):
        store.save("one", plan, session=wrong)
    assert store.ids() == []
    store.save("one", None, session=talk())
    with pytest.raises(StaleError):
        store.save("one", plan, session=talk(), version=7)
    plan.discard()


def test_a_plan_that_a_store_gave_may_be_dropped(store: Store) -> None:
    """Nothing is lost with it, so nobody is warned, also where a call of it was started."""
    store.save("one", plan_of(PAY, LOOK), session=talk())
    store.start(claimed(store))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store.load("one", Desk)
        plan = store.load("one", Desk).plan
        assert plan is not None
        with plan:
            assert plan.in_doubt
        gc.collect()
    assert caught == []
    assert len(store.waiting("one")) == 1
