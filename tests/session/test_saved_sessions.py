"""The laws of one text for a conversation: what belongs together is sealed together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import AssistantTurn, Session, Toolset
from lutum_py.errors import LutumError, MisuseError, PlanError, RoundClosedError, TranscriptError
from lutum_py.execution import run_sync
from lutum_py.turns import TextItem
from tests.cases import over
from tests.round_tools import Shop, close, opened


def talk() -> Session:
    session = Session(id="chat")
    session.push_user("hello")
    session.push_ephemeral_user("psst")
    return session


def test_a_conversation_comes_back_whole() -> None:
    """Transcript, id and plan are what they were; what was said on the side is gone."""
    session = talk()
    plan = opened(("c1", "add", {"a": 1})).plan()
    text = Shop.dump_session(session, plan, key=b"k", binding="ann")
    with pytest.raises(RoundClosedError):
        plan.discard()
    restored = Shop.load_session(text, key=b"k", binding="ann")
    assert restored.session.transcript == session.transcript
    assert restored.session.id == "chat"
    assert len(restored.session._request_items()) == 1
    assert restored.plan is not None
    run_sync(restored.plan).commit(restored.session)
    assert len(restored.session.transcript) == 3


def test_a_conversation_without_a_plan_comes_back_without_one() -> None:
    """Nothing is open, nothing is loaded; an id is not made up."""
    restored = Toolset.load_session(Toolset.dump_session(Session()))
    assert (restored.plan, restored.session.id) == (None, None)


@over("key", [None, b"k"])
@over("part", ["id", "transcript", "plan", "binding"])
def test_no_part_can_be_put_in_the_place_of_another(part: str, key: bytes | None) -> None:
    """A transcript, plan or id from another text is refused, whatever is right within it."""
    first = json.loads(Shop.dump_session(talk(), opened(("c1", "add", {"a": 1})).plan(), key=key))
    other = Session(id="other")
    other.push_user("no")
    second = Shop.dump_session(other, opened(("c1", "add", {"a": 2})).plan(), key=key, binding="b")
    mixed = {**first, part: json.loads(second)[part]}
    with pytest.raises(PlanError):
        Shop.load_session(json.dumps(mixed), key=key)


@pytest.mark.parametrize("key", [None, b"k"])
def test_an_edited_plan_within_is_refused(key: bytes | None) -> None:
    """The error says what saved the text that should be loaded."""
    calls = (("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}))
    data = json.loads(Shop.dump_session(talk(), opened(*calls).plan(), key=key))
    data["plan"]["entries"][1]["steps"][0]["arguments"]["a"] = 9
    with pytest.raises(PlanError, match=r"session .* edited after .*`dump_session\(\)`"):
        Shop.load_session(json.dumps(data), key=key)


@over(
    "saved, loaded, said",
    [
        ({"key": b"k"}, {}, "saved with a key"),
        ({}, {"key": b"k"}, "saved without a key"),
        ({"key": b"k"}, {"key": b"other"}, "does not fit this key"),
        ({"binding": "a"}, {}, "is of 'a'"),
        ({}, {"binding": "a"}, "without a binding"),
        ({"binding": "a"}, {"binding": "b"}, "not of 'b'"),
    ],
)
def test_a_text_loads_as_it_was_saved(
    saved: dict[str, Any], loaded: dict[str, Any], said: str
) -> None:
    """Another key or binding, one too many or one too few: the error says which."""
    text = Shop.dump_session(talk(), **saved)
    with pytest.raises(PlanError, match="session") as caught:
        Shop.load_session(text, **loaded)
    assert said in str(caught.value)


@over("text", ["{}", "[]", 3])
def test_what_is_no_session_is_told_with_what_saves_one(text: Any) -> None:
    """A plan and a transcript have `dump_json`, a session has not."""
    with pytest.raises(LutumError, match=r"what `dump_session\(\)` gave"):
        Shop.load_session(text)


def test_what_fails_closes_nothing() -> None:
    """A transcript that cannot be saved leaves the plan open."""
    session = talk()
    plan = opened(("c1", "add", {"a": 1})).plan()
    session.transcript.append_turn(AssistantTurn(items=(TextItem("a"),), payload={"x": object()}))
    with pytest.raises(TranscriptError):
        Shop.dump_session(session, plan)
    plan.discard()


@pytest.mark.parametrize("given", ["plan", opened])
def test_only_a_plan_is_saved_with_a_session(given: Any) -> None:
    """Anything else is refused with what to pass."""
    with pytest.raises(MisuseError, match=r"round\.plan\(\)"):
        Shop.dump_session(Session(), given)


def test_a_plan_that_has_ended_is_not_saved() -> None:
    """Its round is in a transcript already, or nowhere."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    close(plan)
    with pytest.raises(RoundClosedError):
        Shop.dump_session(Session(), plan)


def test_a_plan_of_another_toolset_is_refused() -> None:
    """It could not be loaded, so it is not saved, and stays open."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    with pytest.raises(MisuseError):
        Toolset.dump_session(Session(), plan)
    plan.discard()


def test_only_a_session_is_saved() -> None:
    """A transcript alone has no id to be saved."""
    given: Any = Session().transcript
    with pytest.raises(MisuseError):
        Shop.dump_session(given)
