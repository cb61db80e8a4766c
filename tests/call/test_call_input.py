"""The laws of the input of a call: what is checked, what was approved, what its key says."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    CallStatus,
    ResumeMode,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError, ToolInputError
from tests.call.calls import Inner, Outer, add, added, approve, suspended
from tests.declared import call_of
from tests.round_tools import Till

# The input.


def test_an_assigned_input_is_validated() -> None:
    """An input is assigned whole, and checked before it replaces the old one."""
    call = added()
    call.input = add.Input(a=5)
    assert call.call_sync().output == {"total": 6}
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["a"]
    ):
        added().input = {"a": "x"}
    other = added()
    other.input = {"a": 3}
    assert other.input == add.Input(a=3)
    assert other.status is CallStatus.NEW


def test_an_input_changed_in_place_is_seen() -> None:
    """The function and the digest go by the input as it is now; the raw text and the key stay."""
    call = added()
    digest, key = call.digest, call.idempotency_key
    call.input.__dict__["a"] = 10  # a generated input is frozen, and refuses the plain way
    assert call.digest != digest
    assert call.idempotency_key == key
    assert call.metadata.arguments == '{"a": 1}'
    assert call.call_sync().output == {"total": 11}


def test_an_approved_call_runs_as_it_was_approved() -> None:
    """A call that goes on by a decision is frozen: nobody reaches what was approved."""
    ticket = SuspendTicket(id="s1", action="confirm", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)
    call, plan = suspended("add", {"a": 1}, ticket)
    with pytest.raises(LifecycleError):
        call.input = add.Input(a=2)
    decision = approve(plan)
    assert call.approval is call.resume is decision
    assert (call.suspension_id, call.suspension_reason) == ("s1", "confirm")
    assert call.call_sync().output == {"total": 2}
    plan.discard()
    call, plan = suspended("charge", {"slip": {"amount": 20}}, ticket, Till)
    approve(plan)
    call.input.slip.amount = 100
    assert call.input.slip.amount == 20
    assert call.call_sync().output == 20
    plan.discard()


def test_a_function_cannot_change_what_was_approved() -> None:
    """An approved call passes a copy: it can be tried again after a function spoilt its own."""

    @tool_fn
    def drain(items: list[int]) -> int:
        """Take all, and fail the first time."""
        taken = len(items)
        items.clear()
        if not failed:
            failed.append(True)
            raise OSError("once")
        return taken

    failed: list[bool] = []

    class Sinks(Toolset):
        drain_ = tool(drain)

    call, plan = suspended("drain", {"items": [1, 2]}, SuspendTicket(id="s1"), Sinks)
    approve(plan)
    for run in (call.call_sync, lambda: call.retry().invoke_sync()):
        if not failed:
            with pytest.raises(OSError, match="once"):
                run()
        else:
            assert run() == 2
    plan.discard()


def run_elsewhere(program: str) -> set[str]:
    """What a program prints in processes that hash differently."""
    command = [sys.executable, "-c", program]
    environments = [
        {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed} for seed in ("1", "2")
    ]
    return {
        subprocess.run(command, capture_output=True, text=True, check=True, env=each).stdout
        for each in environments
    }


@tool_fn
def tag(words: set[str], times: int = 1) -> None:
    """Tag."""


def test_the_key_is_the_same_in_every_process() -> None:
    """Equal calls have equal keys wherever they run; another input, id or name has another."""
    program = "from tests.call.calls import added\nprint(added().idempotency_key, added().digest)"
    assert run_elsewhere(program) == {f"{added().idempotency_key} {added().digest}\n"}
    assert call_of(add, '{"b":1,"a":1}').idempotency_key == added().idempotency_key
    others = {
        added(2).idempotency_key,
        call_of(add, {"a": 1}, id="c2").idempotency_key,
        Outer.parse_tool_call(
            ToolMetadata(id="c1", name="left_add", arguments='{"a": 1}')
        ).idempotency_key,
    }
    assert len(others) == 3
    assert added().idempotency_key not in others


def test_equal_sets_have_equal_keys() -> None:
    """Sets are written in one order, so that neither digest nor key goes by that of a process."""

    class Inner(BaseModel):
        tags: frozenset[str]
        by: dict[str, set[int]] = {}

    @tool_fn
    def label(inner: list[Inner], words: set[str], pair: tuple[set[str], int] | None) -> None:
        """Label."""

    words = [f"word{number}" for number in range(20)]
    forward = {"inner": [{"tags": words, "by": {"a": [1, 2]}}], "words": words, "pair": [words, 1]}
    other = sorted(words, reverse=True)
    back = {"inner": [{"tags": other, "by": {"a": [2, 1]}}], "words": other, "pair": [other, 1]}
    first, second = call_of(label, forward), call_of(label, back)
    assert first.input == second.input
    data = first.spec.arguments.to_data(first.input)
    assert data == second.spec.arguments.to_data(second.input)
    assert data["words"] == data["pair"][0] == data["inner"][0]["tags"] == sorted(words)
    assert first.digest == second.digest
    program = (
        "from tests.call.test_call_input import call_of, tag\n"
        "print(call_of(tag, {'words': list('abcdefgh')}).idempotency_key)"
    )
    assert run_elsewhere(program) == {
        call_of(tag, {"words": list("hgfedcba")}).idempotency_key + "\n"
    }


def test_another_try_is_another_call() -> None:
    """`retried` gives a new call of the same parts, whatever became of the old one."""
    call = added()
    call.fail("once")
    again = call.retry()
    assert (again.parts, again.status) == (call.parts, CallStatus.NEW)
    assert again.call_sync().is_success


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@tool_fn
def keep(value: Any = None) -> None:
    """Keep anything."""


def test_an_input_without_an_end_is_refused() -> None:
    """What nests deeper than Python looks, or holds itself, does not fit; nothing is changed."""
    call = call_of(keep, {})
    circle: list[Any] = []
    circle.append(circle)
    for value in (circle, nested(100_000)):
        with pytest.raises(
            ToolInputError, match="`keep`: it is nested too deeply, or holds itself"
        ):
            call.input = {"value": value}
    assert call.input.value is None


def test_an_input_without_a_json_form_is_refused() -> None:
    """What pydantic takes and cannot write has no text, so nobody could be shown what runs."""
    call = call_of(keep, {})
    with pytest.raises(ToolInputError, match="This input of tool `keep` has no JSON form"):
        call.input = {"value": nested(300)}
    assert call.input.value is None


def test_a_failure_is_told_in_whatever_words_there_are() -> None:
    """`fail` takes an exception as well, also one that cannot say what it is."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    told: Any = Mute()
    assert "`__str__` raised RuntimeError" in added().fail(told).model_text


def test_what_no_encoding_carries_is_replaced() -> None:
    """A message for the model with half of a surrogate pair can be sent all the same."""
    said = [
        added().fail("no file \udcff"),
        added().fail("no file \udcff", code="\udcff"),
        added().complete(added().call_sync().output, message="no file \udcff"),
        added().reject("no file \udcff").result,
    ]
    for result in said:
        assert "no file \ufffd" in result.model_text
        result.model_text.encode()


def test_no_other_try_goes_around_a_decision() -> None:
    """A call that waits for a decision cannot be made anew; its copy waits as well."""
    call = added()
    call.suspend(SuspendTicket(action="confirm"))
    with pytest.raises(LifecycleError):
        call.retry()
    with pytest.raises(LifecycleError):
        copy.copy(call).call_sync()
