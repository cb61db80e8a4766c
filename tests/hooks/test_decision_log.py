"""The laws of the decision log: the logger `lutum.tool_hook`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, ConfigDict, field_serializer

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Reject,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolInput,
    Toolset,
    tool,
)
from lutum_py.typing import HookOutcome
from tests.sample_tools import ALICE, AppTools, GetUserArgs, sent

USER = sent("get_user", "u1", user_id="alice")


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


class Anything(ToolInput[str]):
    x: Annotated[Any, BeforeValidator(lambda _: Opaque())]


class AnyTools(Toolset):
    anything = tool(Anything)


written: list[int] = []


class Counted(ToolInput[str]):
    """Notes when it is serialised."""

    model_config = ConfigDict(frozen=True)

    x: int

    @field_serializer("x")
    def noted(self, x: int) -> int:
        written.append(x)
        return x


class CountedTools(Toolset):
    counted = tool(Counted)


def decide(hooks: Any) -> None:
    AppTools.parse_tool_call(USER).hook_sync(hooks)


def hooked(answer: Any) -> Any:
    hooks = AppTools.HookSet()
    hooks.on(AppTools.data.get_user)(lambda metadata, input: answer)
    return hooks


def gated(answer: Any) -> Any:
    hooks = AppTools.HookSet()
    hooks.gate(AppTools.data.get_user)(lambda metadata, input: answer)
    return hooks


def function(answer: Callable[[AnyToolCall], HookOutcome]) -> Any:
    return answer


NEW = RunNormally(GetUserArgs(user_id="bob"))
TICKET = SuspendTicket(action="approve")


@pytest.mark.parametrize(
    ("hooks", "decision", "attributes"),
    [
        (hooked(NEW), "run_normally", {"effective_input_json": '{"user_id":"bob"}'}),
        (hooked(Complete(ALICE)), "complete", {"reason": None}),
        (hooked(Reject("no")), "reject", {"reason": "no"}),
        (gated(Block("stop")), "block", {"reason": "stop"}),
        (gated(Suspend(TICKET)), "suspend", {"reason": "approve"}),
        (gated(Complete(ALICE)), "complete", {"reason": None}),
        (lambda call: call, "run_normally", {"effective_input_json": '{"user_id":"alice"}'}),
        (lambda call: call.reject("no"), "reject", {"reason": "no"}),
    ],
)
def test_each_decision_is_one_record(
    hooks: Any, decision: str, attributes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Each decision is one INFO record with tool, call, decision, and input or reason."""
    with caplog.at_level(logging.INFO, "lutum.tool_hook"):
        decide(hooks)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("lutum.tool_hook", logging.INFO)
    assert record.getMessage() == f"{decision}: get_user (call 'u1')"
    found = vars(record)
    assert {
        key: found[key]
        for key in ("tool_name", "tool_call_id", "decision", "reason", "effective_input_json")
        if key in found
    } == {"tool_name": "get_user", "tool_call_id": "u1", "decision": decision, **attributes}


def test_records_come_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """Every hook and gate that decides gives a record, in the order of asking."""
    hooks = AppTools.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(TICKET))
    hooks.gate()(lambda metadata, input: Block("stop"))
    hooks.on(AppTools.data.get_user)(lambda metadata, input: RunNormally(input))
    with caplog.at_level(logging.INFO, "lutum.tool_hook"):
        decide(hooks)
    assert [vars(record)["decision"] for record in caplog.records] == [
        "run_normally",
        "suspend",
        "block",
    ]


def test_nothing_is_encoded_where_the_level_is_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where INFO is off, a decision is not logged; and no log writes out what its text has."""
    hooks = CountedTools.HookSet()
    hooks.on(CountedTools.counted)(lambda metadata, input: RunNormally(input))
    for level, logged in ((logging.WARNING, []), (logging.INFO, ['{"x":1}'])):
        call = CountedTools.parse_tool_call(sent("counted", x=1))
        written.clear()
        with caplog.at_level(level, "lutum.tool_hook"):
            call.hook_sync(hooks)
        assert [vars(record)["effective_input_json"] for record in caplog.records] == logged
        assert written == []


def test_an_input_without_json_is_shown_as_it_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    """A record never makes a decision fail: what JSON cannot carry is shown by its text."""
    hooks = AnyTools.HookSet()
    hooks.on(AnyTools.anything)(lambda metadata, input: RunNormally(input))
    with caplog.at_level(logging.INFO, "lutum.tool_hook"):
        outcome: Any = AnyTools.parse_tool_call(sent("anything", x=1)).hook_sync(hooks)
    assert isinstance(outcome.input.x, Opaque)
    assert vars(caplog.records[0])["effective_input_json"] == '{"x":1}'


def test_an_id_with_a_line_break_stays_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """What a provider sends as an id cannot forge a line of the log."""
    call = AppTools.parse_tool_call(sent("get_user", "a\nINFO: forged", user_id="x"))
    with caplog.at_level(logging.INFO, "lutum.tool_hook"):
        call.hook_sync(hooked(Reject("no")))
    assert "\n" not in caplog.records[0].getMessage()
