"""The laws of ids: keys of calls begin with the conversation and the turn's place."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from lutum_py import NeedsTools, RunNormally, Session, ToolMetadata, ToolRoundPlan
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.testing import ScriptedModel
from tests.round_tools import Shop, done, needs

SAME = ("c1", "add", {"a": 1})


def planned(session: Session) -> ToolRoundPlan[Any]:
    """The plan of a turn with the same call as ever."""
    model = ScriptedModel([ScriptedModel.tool_calls(SAME)])
    outcome = session.text_turn(model).tools(Shop).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return needs(outcome).plan()


def key(plan: ToolRoundPlan[Any]) -> str:
    return plan.pending[0].idempotency_key


def test_equal_calls_of_two_turns_differ_in_a_conversation_with_an_id() -> None:
    """Without an id they are the same; with one, the key begins with it and the turn's place."""
    plain, named = Session(), Session(id="chat/7")
    keys: list[tuple[str, str]] = []
    for _ in range(2):
        pair = planned(plain), planned(named)
        keys.append((key(pair[0]), key(pair[1])))
        for session, plan in zip((plain, named), pair, strict=True):
            plan.commit(session, done(plan.pending))
    (one, first), (two, second) = keys
    assert one == two
    assert (first, second) == (f"chat/7/0/{one}", f"chat/7/2/{one}")


def test_the_key_is_the_same_in_every_copy_of_the_call() -> None:
    """Hooks, pickles and saved plans keep what the key begins with."""
    session = Session(id="chat")
    plan = planned(session)
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def same(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input.model_copy())

    begins = "chat/0/"
    again = plan.apply_hooks_sync(hooks)
    assert key(again).startswith(begins)
    assert pickle.loads(pickle.dumps(plan.pending[0])).idempotency_key.startswith(begins)
    assert plan.pending[0].retry().idempotency_key.startswith(begins)
    text = plan.dump_json()
    loaded = Shop.load_plan(text)
    assert key(loaded).startswith(begins)
    twice = Shop.load_plan(loaded.dump_json())
    assert key(twice).startswith(begins)
    twice.discard()


def test_a_turn_that_is_asked_for_again_gives_the_same_keys() -> None:
    """What is said on the side does not move the turn's place."""
    keys: list[str] = []
    for ephemeral in (False, True):
        session = Session(id="chat")
        session.push_user("hello")
        if ephemeral:
            session.push_ephemeral_user("psst")
        with planned(session) as plan:
            keys.append(key(plan))
    assert keys[0] == keys[1]


def test_a_branch_is_another_conversation() -> None:
    """It has no id unless it is given one of its own."""
    session = Session(id="chat")
    assert session.branch().id is None
    assert session.branch("other").id == "other"


@pytest.mark.parametrize(("given", "error"), [(7, MisuseError), ("", InvalidValueError)])
def test_an_id_is_a_text(given: Any, error: type[Exception]) -> None:
    """Anything else names nothing."""
    with pytest.raises(error, match="id"):
        Session(id=given)
