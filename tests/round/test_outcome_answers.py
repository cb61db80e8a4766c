"""What an outcome says of itself: a result, a call that waits, and what a turn came to."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from pydantic import SecretStr

from lutum_py import (
    Finished,
    NeedsTools,
    RecoverableToolCallIssue,
    Session,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.testing import ScriptedModel
from lutum_py.typing import ContinueSuggestion
from tests.cases import over


@tool_fn
def pay(payee: str, pin: SecretStr) -> str:
    """Pay somebody."""
    return payee


class Desk(Toolset):
    pay = tool(pay)


def _round() -> Any:
    arguments = {"payee": "Acme", "pin": "1234"}
    opened: Any = Desk.read_turn(ScriptedModel.tool_calls(("c1", "pay", arguments)))
    return opened.round


def _call() -> Any:
    return Desk.parse_tool_call(
        ToolMetadata(id="c1", name="pay", arguments='{"payee":"Acme","pin":"1234"}')
    )


def test_outcomes_are_immutable() -> None:
    """No field of what became of a call, or of a turn, can be set or deleted afterwards."""
    round_ = _round()
    call = _call()
    issue = RecoverableToolCallIssue(call.metadata, "unknown_tool", "none")
    finished = Desk.read_turn(ScriptedModel.text("Hi"))
    assert isinstance(finished, Finished)
    made: tuple[Any, ...] = (
        call.handled("Acme"),
        _call().reject("no"),
        _call().suspend(SuspendTicket()),
        issue,
        ContinueSuggestion.of((issue,)),
        NeedsTools(round_),
        finished,
        finished.result,
    )
    round_.discard()
    for outcome in made:
        for field in dataclasses.fields(outcome):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(outcome, field.name, getattr(outcome, field.name))
            with pytest.raises(dataclasses.FrozenInstanceError):
                delattr(outcome, field.name)


def test_an_outcome_is_a_success_an_error_or_pending() -> None:
    """Exactly one of the three holds, of a result and of a call that waits."""
    waiting = _call().suspend(SuspendTicket())
    for outcome in (_call().complete("Acme"), _call().fail("no"), waiting):
        said = [outcome.is_success, outcome.is_error, outcome.is_pending]
        assert said.count(True) == 1
    assert waiting.is_pending


def test_a_call_that_waits_has_the_shape_of_a_pending_result() -> None:
    """The ticket and the final arguments are there, secrets masked, and it is plain data."""
    call = _call()
    call.input = {"payee": "Globex", "pin": "9"}
    ticket = SuspendTicket(
        id="t1", action="approve_payment", message="Pay?", parameters={"cents": 5}
    )
    assert call.suspend(ticket).to_json() == {
        "tool_name": "pay",
        "status": "pending",
        "data": None,
        "message": "Pay?",
        "suspension": {
            "suspension": {
                "id": "t1",
                "action": "approve_payment",
                "message": "Pay?",
                "parameters": {"cents": 5},
            },
            "pending": {
                "id": "c1",
                "name": "pay",
                "arguments": {"payee": "Globex", "pin": "**********"},
            },
            "resume_mode": "replay_tool_call",
        },
    }


@pytest.mark.parametrize("key", ["hunter2", 7, bytearray(b"hunter2")])
def test_a_key_is_of_bytes(key: Any) -> None:
    """Any other key is a misuse that says what to pass, and does not repeat the key."""
    plan = _round().plan()
    for use in (lambda: plan.dump_json(key=key), lambda: Desk.load_plan("{}", key=key)):
        with pytest.raises(MisuseError, match="`key=` takes bytes") as raised:
            use()
        assert "hunter2" not in str(raised.value)
        assert ("key=text.encode()" in str(raised.value)) == isinstance(key, str)
    with pytest.raises(InvalidValueError, match="key is empty"):
        plan.dump_json(key=b"")
    Desk.load_plan(plan.dump_json(key=b"hunter2"), key=b"hunter2").discard()


def test_what_a_turn_came_to_says_what_it_is() -> None:
    """The answer of a turn that needs tools, and the round of one that does not, name the way."""
    needs = Desk.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"payee": "A", "pin": "1"})))
    answered: Any = Desk.read_turn(ScriptedModel.text("Hi"))
    outcome: Any = needs
    with pytest.raises(AttributeError, match=r"NeedsTools has no `result`.*Run the calls"):
        _ = outcome.result
    with pytest.raises(
        AttributeError, match=r"Finished has no `round`.*answer is `.result`, as in `.result.text`"
    ):
        _ = answered.round
    assert copy.copy(needs) == needs
    assert pickle.loads(pickle.dumps(answered)) == answered
    outcome.round.discard()


@over("model", ["openai:gpt-5", None, object(), ScriptedModel])
def test_what_is_no_model_is_refused_before_anything_is_said(model: Any) -> None:
    """A name, nothing, a foreign object or a class fails where the turn is started."""
    with pytest.raises(MisuseError):
        Session().text_turn(model)


def test_a_failure_with_a_code_is_an_error() -> None:
    """Whether a failure names a code changes what is told, and not how the call ended."""
    plain, coded = _call().fail("no luck"), _call().fail("no luck", code="unlucky")
    assert (plain.status, coded.status) == ("error", "error")
    assert (plain.model_text, coded.model_text) == ("no luck", "[unlucky] no luck")


def test_a_call_that_a_function_rejects_keeps_its_input() -> None:
    """The rejected call of a plan is the call as it was rejected, whoever rejected it."""
    plan = _round().apply_hooks_sync(lambda call: call.reject("no"))
    (rejected,) = plan.rejected
    assert (rejected.call.input.payee, rejected.source) == ("Acme", "hook")
    plan.discard()
