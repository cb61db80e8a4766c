"""The laws of rows: `plan.calls` says of every call what was asked, decided and done."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutum_py import (
    Answer,
    AnyToolCall,
    Block,
    Complete,
    HandledCall,
    NeedsTools,
    Reject,
    ResumeMode,
    RunNormally,
    SuspendTicket,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.typing import CallRow
from tests.private import ToolSpec
from tests.round_tools import Receipt, Shop, close, done, forged, gated, needs, opened, turn


class Login(BaseModel):
    user: str
    password: SecretStr


@tool_fn
def login(input: Login) -> str:
    """Log in."""
    return "welcome"


class Vault(Toolset):
    login = tool(login)


def states(rows: tuple[CallRow, ...]) -> list[tuple[str, str, str | None, str | None]]:
    return [(row.id, row.state, row.by, row.reason) for row in rows]


def test_every_call_has_one_row_in_the_order_of_the_turn_whatever_became_of_it() -> None:
    """Rows follow the turn, and say where the plan has each call and who put it there."""
    hooks = gated(SuspendTicket(action="look", message="Pay?"), Shop.pay)

    @hooks.on(Shop.add)
    def small(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, int]:
        amount = input.a
        if amount > 9:
            return Reject("too much")
        return Complete(0) if amount == 0 else RunNormally(input)

    @hooks.gate(Shop.shout)
    def silence(metadata: ToolMetadata, input: object) -> Block:
        return Block("quiet hours")

    plan = opened(
        ("c1", "pay", {"amount": 1}),
        ("c2", "add", {"a": 10}),
        ("c3", "ad", {"a": 1}),
        ("c4", "add", {"a": 0}),
        ("c5", "add", {"a": "2"}),
        ("c6", "add", {"a": "x"}),
        ("c7", "shout", {"text": "hey"}),
        ("c8", "add", {"a": 3}),
    ).apply_hooks_sync(hooks)
    plan.record(done([plan.pending[1]])[0])
    here = test_every_call_has_one_row_in_the_order_of_the_turn_whatever_became_of_it.__name__
    unknown, invalid = (issue.text for issue in plan.recoverable_tool_call_issues)
    assert states(plan.calls) == [
        ("c1", "suspended", "gated.<locals>.gate", "Pay?"),
        ("c2", "rejected", f"{here}.<locals>.small", "too much"),
        ("c3", "unusable", None, unknown),
        ("c4", "handled", f"{here}.<locals>.small", None),
        ("c5", "pending", None, None),
        ("c6", "unusable", None, invalid),
        ("c7", "rejected", f"{here}.<locals>.silence", "quiet hours"),
        ("c8", "finished", None, None),
    ]
    rows = {row.id: row for row in plan.calls}
    assert rows["c5"].proposed == '{"a":"2"}'
    assert rows["c5"].arguments == {"a": 2, "b": 0}
    assert rows["c3"].arguments is rows["c6"].arguments is None
    assert (rows["c3"].proposed, rows["c6"].proposed) == ("<7 characters>", '{"a":"x"}')
    given = {row.id: row.result and row.result.status for row in plan.calls}
    assert given == {
        "c1": None,
        "c2": "rejected",
        "c3": "rejected",
        "c4": "success",
        "c5": None,
        "c6": "rejected",
        "c7": "rejected",
        "c8": "success",
    }
    close(plan)


def test_rows_are_the_same_after_a_plan_was_saved() -> None:
    """What a row says survives the dump, who decided included."""
    hooks = gated(SuspendTicket(message="Pay?"), Shop.pay)

    @hooks.on(Shop.add)
    def no(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, int]:
        return Reject("no") if input.a else Complete(3)

    plan = opened(
        ("c1", "pay", {"amount": 1}),
        ("c2", "add", {"a": 1}),
        ("c3", "add", {"a": 0}),
        ("c4", "wipe", {"path": "/"}),
        ("c5", "shout", {"text": "a"}),
    ).apply_hooks_sync(hooks)
    before = plan.calls
    loaded = Shop.load_plan(plan.dump_json())
    assert loaded.calls == before
    close(loaded)


def test_a_person_who_decided_stands_in_the_row() -> None:
    """By and reason are those of the decision, whether it lets go on, cancels or answers."""
    answers = SuspendTicket(resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT)
    plan = opened(
        ("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}), ("c3", "shout", {"text": "a"})
    ).apply_hooks_sync(gated(answers, Shop.shout).with_extended(gated(SuspendTicket(), Shop.add)))
    first, second, third = plan.suspended
    plan.resume(first.decide(True, by="ann", reason="fine"))
    plan.resume(second.decide(False, by="bob", reason="no money"))
    plan.resume(third.approve(by="eve", result="A!", reason="known"))
    assert states(plan.calls) == [
        ("c1", "pending", "ann", "fine"),
        ("c2", "rejected", "bob", "no money"),
        ("c3", "handled", "eve", "known"),
    ]
    close(plan)


def test_a_gate_that_answers_an_approved_call_does_not_speak_in_the_words_of_the_person() -> None:
    """A handled call has the reason of who handled it alone."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(), Shop.add))
    plan.resume(plan.suspended[0].approve(by="ann", reason="fine"))
    hooks = Shop.HookSet()

    @hooks.gate(Shop.add)
    def known(metadata: ToolMetadata, input: object) -> Complete[int]:
        return Complete(1)

    answered = plan.apply_hooks_sync(hooks)
    assert answered.calls[0].by is not None
    assert answered.calls[0].by.endswith("known")
    assert answered.calls[0].reason is None
    close(answered)


def test_a_plain_function_is_named_where_it_decides() -> None:
    """What a function gave without saying who it is has the function's name."""

    def decide(call: AnyToolCall) -> object:
        return call.handled(1) if call.input.a else call.reject("no")  # type: ignore[attr-defined]

    plan = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 0})).apply_hooks_sync(decide)  # type: ignore[arg-type]
    assert all(row.by and row.by.endswith("decide") for row in plan.calls)
    close(plan)


def test_no_secret_stands_in_a_row() -> None:
    """Secrets are masked in arguments; what the model wrote around them shows its size alone."""
    text = json.dumps({"user": "ann", "password": "hunter2"})
    asked = turn(("c1", "login", json.loads(text)), ("c2", "login", {"pass": "hunter2"}))
    plan = needs(Vault.read_turn(asked, redact=True)).plan()
    assert "hunter2" not in repr(plan.calls)
    assert "hunter2" not in json.dumps([row.model_dump() for row in plan.calls])
    assert plan.calls[0].arguments == {"user": "ann", "password": "**********"}
    close(plan)


def test_a_row_is_a_copy() -> None:
    """What is done to the arguments of a row reaches no call."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    plan.calls[0].arguments["a"] = 9
    assert plan.calls[0].arguments["a"] == 1
    close(plan)


def test_an_answer_beside_calls_is_finished_and_of_no_tool() -> None:
    """The final answer that came beside calls has a row with its result, and no arguments."""
    asked = Shop.read_turn(
        turn(("c1", "final_answer", {"paid": 1}), ("c2", "add", {"a": 1})),
        answer=Answer(Receipt, name="final_answer"),
    )
    assert isinstance(asked, NeedsTools)
    plan = asked.round.plan()
    assert [(row.state, row.arguments) for row in plan.calls] == [
        ("finished", None),
        ("pending", {"a": 1, "b": 0}),
    ]
    close(plan)


def test_a_result_in_the_place_of_an_automatic_rejection_makes_the_call_finished() -> None:
    """A recorded result wins over what could not be used, in rows too."""
    plan = opened(("c1", "ad", {"a": 1})).plan()
    issue = plan.recoverable_tool_call_issues[0]
    plan.record(forged(issue.metadata))
    assert [(row.state, row.arguments) for row in plan.calls] == [("finished", None)]
    close(plan)


def test_a_row_has_a_result_once_the_plan_has_it() -> None:
    """What an after-hook put for a result that nobody recorded is in the history alone."""
    hooks = Shop.HookSet()
    hooks.after()(lambda call, result: Reject("of the hook"))
    plan = opened(("c1", "add", {"a": 1})).plan()
    results = plan.apply_after_hooks_sync(hooks, [plan.pending[0].call_sync()])
    (row,) = plan.calls
    assert (row.state, row.result, row.steps[-1].verdict) == ("pending", None, "replaced")
    plan.record(results[0])
    assert plan.calls[0].result == results[0]
    close(plan)


def test_what_a_hook_handled_says_who_did_also_when_it_is_pickled() -> None:
    """Handled calls keep who answered, and who it was is no part of what they are equal by."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def known(metadata: ToolMetadata, input: object) -> Complete[int]:
        return Complete(1)

    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(hooks)
    made = plan.handled[0]
    assert pickle.loads(pickle.dumps(made)).by == made.by
    assert made == type(made)(made.metadata, made.input, made.output, made.result)
    assert isinstance(made, HandledCall)
    close(plan)


def test_rows_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that moves while rows are made has its row, as it stood before."""
    late: list[Any] = []
    shown_input = ToolSpec.shown_input

    def moving(spec: Any, text: Any) -> Any:
        while late:
            plan.record(late.pop())
        return shown_input(spec, text)

    monkeypatch.setattr(ToolSpec, "shown_input", moving)
    plan = opened(*[(f"c{at}", "add", {"a": at}) for at in range(2)]).plan()
    first, second = plan.pending
    plan.record(first.complete(1))
    late.append(second.complete(2))
    assert [row.state for row in plan.calls] == ["finished", "pending"]
    assert [row.state for row in plan.calls] == ["finished", "finished"]
    plan.discard()
