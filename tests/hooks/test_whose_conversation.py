"""The laws of gates that go by a conversation: each is asked about the rounds of its own alone."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import SecretStr

from lutum_py import (
    AnyToolCall,
    Block,
    Decision,
    RunNormally,
    Session,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolMetadata,
    ToolRound,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallGate
from tests.round_tools import Shop, opened, turn

ADD = ("c1", "add", {"a": 1})


@tool_fn
def log_in(user: str, word: SecretStr, tries: int = 3) -> str:
    """Log in."""
    return "in"


class Door(Toolset):
    log_in = tool(log_in)


class OfOne(CallGate):
    """Let a call wait, and note about which ones it was asked."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.asked: list[Any] = []

    def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> Suspend | None:
        self.asked.append(call.final_arguments)
        return Suspend(SuspendTicket(id="t1"))


def said(*texts: str) -> Session:
    session = Session()
    for text in texts:
        session.push_user(text)
    return session


def round_of(session: Session) -> ToolRound[Any]:
    model = ScriptedModel([turn(ADD)])
    outcome = session.text_turn(model).tools(Shop).collect_sync()
    return outcome.round  # type: ignore[union-attr]


def gated(session: Session) -> tuple[OfOne, Any]:
    hooks, gate = Shop.HookSet(), OfOne(session.transcript)
    hooks.gate()(gate)
    return gate, hooks


def test_a_gate_is_asked_about_its_own_conversation() -> None:
    """The gate of the session that asked for the turn decides about its round."""
    session = said("Hello")
    gate, hooks = gated(session)
    with round_of(session) as asked:
        plan = asked.apply_hooks_sync(hooks)
        assert [each.ticket.id for each in plan.suspended] == ["t1"]
        asked.discard()
    assert gate.asked == [{"a": 1, "b": 0}]


@pytest.mark.parametrize("is_branch", [False, True])
def test_a_gate_of_another_conversation_is_an_error(is_branch: bool) -> None:
    """An equal conversation and a branch are others, and the round can be asked about again."""
    session = said("Hello")
    _, others = gated(session.branch() if is_branch else said("Hello"))
    _, hooks = gated(session)
    with round_of(session) as asked:
        with pytest.raises(HookError, match="of another conversation") as raised:
            asked.apply_hooks_sync(others)
        assert (raised.value.tool, raised.value.call_id) == ("add", "c1")
        plan = asked.apply_hooks_sync(hooks)
        (waiting,) = plan.suspended
        with pytest.raises(HookError):
            plan.amend_sync(waiting.edit({"a": 2}), others)
        assert plan.amend_sync(waiting.edit({"a": 2}), hooks) is not None
        asked.discard()


def test_a_round_of_no_session_is_of_any() -> None:
    """A turn that a program read by itself is gated by what the program says."""
    gate, hooks = gated(said("Hello"))
    with opened(ADD) as asked:
        assert asked.apply_hooks_sync(hooks).suspended
        asked.discard()
    assert len(gate.asked) == 1


def test_a_restored_plan_is_of_the_session_that_comes_with_it() -> None:
    """Hooks made with the restored session decide; those of the one before do not."""
    session = said("Hello")
    text = Shop.dump_session(session, round_of(session).plan())
    restored = Shop.load_session(text)
    assert restored.plan is not None
    with pytest.raises(HookError):
        restored.plan.apply_hooks_sync(gated(session)[1])
    with restored.plan.apply_hooks_sync(gated(restored.session)[1]) as plan:
        assert isinstance(plan.suspended[0], SuspendedCall)
        plan.discard()


def test_a_plan_that_is_loaded_alone_knows_its_place() -> None:
    """It goes with a transcript that begins as its own did, and with no other."""
    session = said("Hello")
    plan = Shop.load_plan(round_of(session).plan().dump_json())
    for other in (said(), said("Goodbye")):
        with pytest.raises(HookError):
            plan.apply_hooks_sync(gated(other)[1])
    with plan.apply_hooks_sync(gated(said("Hello", "And?"))[1]) as asked:
        assert asked.suspended
        asked.discard()


def test_a_call_that_is_sent_elsewhere_takes_no_transcript() -> None:
    """A pickle of a call holds nothing of what was said."""
    with round_of(said("The word is swordfish.")) as asked:
        (call,) = asked.tool_calls
        assert b"swordfish" not in pickle.dumps(call)
        assert pickle.loads(pickle.dumps(call)).digest == copy.copy(call).digest == call.digest
        asked.discard()


def test_stock_gates_go_by_no_conversation() -> None:
    """A gate that names no transcript is asked about any round."""

    class Never(CallGate):
        def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> Block:
            return Block("never")

    hooks = Shop.HookSet()
    hooks.gate()(Never())
    with round_of(said("Hello")) as asked:
        assert asked.apply_hooks_sync(hooks).blocked == "never"
        asked.discard()


def test_final_arguments_are_what_would_run() -> None:
    """They are plain data with defaults, with what a hook changed, and with secrets as they are."""
    hooks = Door.HookSet()

    @hooks.on(Door.log_in)
    def as_bob(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input.model_copy(update={"user": "bob"}))

    sent = ("c1", "log_in", {"user": "ann", "word": "swordfish"})
    with opened(sent, toolset=Door).apply_hooks_sync(hooks) as plan:
        (call,) = plan.pending
        assert call.final_arguments == {"user": "bob", "word": "swordfish", "tries": 3}
        plan.discard()
