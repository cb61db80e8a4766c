"""The laws of `result.ran_with`: what a call was run with, where that is not what was sent."""

from __future__ import annotations

import pickle
from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from lutum_py import (
    AnyToolCall,
    Complete,
    RunNormally,
    Session,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import ToolInputError
from lutum_py.execution import run_sync
from lutum_py.tools import ResultCap
from tests.cases import over
from tests.round_tools import Shop, done, forged, gated, opened

At = Annotated[datetime, Field(default_factory=datetime.now)]


def rewriting(**changes: Any) -> Any:
    """Hooks that change the input of `add`."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def change(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input.model_copy(update=changes))

    return hooks


def test_what_a_hook_changed_is_said_in_the_result() -> None:
    """The whole final arguments stand there, in a transcript and in what it loads to."""
    session = Session()
    run_sync(opened(("c1", "add", {"a": 1})).apply_hooks_sync(rewriting(a=5))).commit(session)
    result = session.transcript[1]
    assert isinstance(result, ToolResult)
    assert (result.result, result.ran_with) == ("5", {"a": 5, "b": 0})
    assert result.arguments == '{"a":1}'
    assert Transcript.load_json(session.transcript.dump_json()) == session.transcript
    assert '"a":5' in session.transcript.__rich__().plain


def test_what_reading_adds_does_not_count() -> None:
    """Coercion, defaults and coercing are no replacement, and most results say nothing."""

    @tool_fn
    def book(seats: int, at: At) -> int:
        """Book seats."""
        return seats

    desk = Toolset.of("Desk", book)
    plan = opened(("c1", "book", {"seats": "2"}), toolset=desk).plan()
    loaded = desk.load_plan(plan.dump_json())
    assert run_sync(loaded).resolve().results[0].ran_with is None


def test_arguments_that_came_back_to_what_was_sent_are_not_said() -> None:
    """A hook that gives an equal input replaced nothing."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(rewriting(a=1))
    assert run_sync(plan).resolve().results[0].ran_with is None


def edited() -> Any:
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(), Shop.add))
    plan.amend_sync(plan.suspended[0].edit({"a": 7}), Shop.HookSet())
    return plan


def assigned() -> Any:
    plan = opened(("c1", "add", {"a": 1})).plan()
    plan.pending[0].input = {"a": 7}
    return plan


def by_function() -> Any:
    def change(call: AnyToolCall) -> AnyToolCall:
        call.input = {"a": 7}
        return call

    return opened(("c1", "add", {"a": 1})).apply_hooks_sync(change)


@over("make", [edited, assigned, by_function])
@over("saved", [False, True])
def test_every_way_to_replace_an_input_counts(make: Any, saved: bool) -> None:
    """A person, an assignment and a plain function do as hooks do, also across a save."""
    plan = Shop.load_plan(make().dump_json()) if saved else make()
    results = done(plan.pending)
    assert plan.resolve(results).results[0].ran_with == {"a": 7, "b": 0}


def test_only_what_was_run_says_so() -> None:
    """A call that was rewritten and then answered, rejected or given up was run with nothing."""
    hooks = rewriting(a=5)
    hooks.gate(Shop.add)(lambda metadata, input: Complete(1) if metadata.id == "c1" else None)
    plan = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2})).apply_hooks_sync(hooks)
    committed = plan.abort(Session(), "enough")
    assert [(each.status, each.ran_with) for each in committed.results] == [
        ("success", None),
        ("cancelled", None),
    ]
    started = opened(("c1", "add", {"a": 1})).apply_hooks_sync(rewriting(a=5))
    started.pending[0].start()
    lost = started.abort(Session(), "enough").results[0]
    assert (lost.status, lost.ran_with) == ("indeterminate", {"a": 5, "b": 0})


def test_a_result_from_elsewhere_says_it_too() -> None:
    """What was recorded without a run here was run with what the plan has."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(rewriting(a=5))
    plan.record(forged(plan.pending[0].metadata))
    assert plan.resolve().results[0].ran_with == {"a": 5, "b": 0}


class Login(BaseModel):
    user: str
    password: SecretStr


@tool_fn
def login(input: Login) -> str:
    """Log in."""
    return "x" * 5000


class Vault(Toolset, result_cap=ResultCap(400)):
    login = tool(login)


def test_secrets_are_masked_and_caps_keep_it() -> None:
    """The record holds a mask for a secret, and stays when the text is cut."""
    plan = opened(("c1", "login", {"user": "a", "password": "hunter2"}), toolset=Vault).plan()
    plan.pending[0].input = {"user": "b", "password": "hunter3"}
    result = run_sync(plan).resolve().results[0]
    assert result.ran_with == {"user": "b", "password": "**********"}
    assert len(result.model_text) <= 400


def test_it_is_never_sent() -> None:
    """A provider gets the same with it and without."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(rewriting(a=54321))
    committed = plan.resolve([plan.pending[0].complete(3)])
    assert "54321" not in str(openai_chat.messages(committed))


def test_it_counts_for_equality_and_not_for_the_hash() -> None:
    """Two results that differ in it are two values; both can be put into a set, and pickled."""
    plain = forged(ToolMetadata(id="c1", name="add", arguments="{}"))
    other = ToolResult(id="c1", name="add", arguments="{}", result="0", ran_with={"a": 1})
    assert plain != other
    assert hash(plain) == hash(other)
    assert pickle.loads(pickle.dumps(other)) == other
    assert ToolResult.load_json(other.dump_json()) == other
    assert "ran_with" not in plain.dump_json()


@tool_fn
def keep(value: Any = None) -> str:
    """Keep anything."""
    return ""


def test_an_input_without_a_json_form_is_not_said() -> None:
    """It is not taken, and the round ends all the same."""
    plan = opened(("c1", "keep", {}), toolset=Toolset.of("Keeps", keep)).plan()
    with pytest.raises(ToolInputError, match="has no JSON form"):
        plan.pending[0].input = {"value": object()}
    assert run_sync(plan).resolve().results[0].ran_with is None


def pay(cents: int) -> int:
    """Pay."""
    return cents


def test_where_the_text_cannot_be_read_any_more_it_says_what_was_run() -> None:
    """A tool that became strict while the plan was saved no longer takes what was sent."""
    lax, strict = (Toolset.of("Desk", tool_fn(strict=each)(pay)) for each in (False, True))
    plan = opened(("c1", "pay", {"cents": "1"}), toolset=lax).plan()
    plan.pending[0].input = {"cents": 2}
    plan.record(plan.pending[0].call_sync())
    results = strict.load_plan(plan.dump_json()).resolve().results
    assert results[0].ran_with == {"cents": 2}
