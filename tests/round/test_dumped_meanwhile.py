"""The law of plans that are dumped while somebody works on them: each call goes on in one place."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lutum_py
from lutum_py import (
    AnyToolCall,
    NeedsTools,
    SuspendTicket,
    ToolContext,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError, LutumError, PlanError, RoundClosedError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from tests.private import plan_json

LINES = [
    str(Path(lutum_py.__file__).parent / "_round" / name)
    for name in ("plan_json.py", "sorted_calls.py")
]


@tool_fn
def pay(cents: int) -> str:
    """Pay."""
    return "paid"


@tool_fn
def asks(text: str, ctx: ToolContext) -> str:
    """Have something paid."""
    if ctx.inner is None:
        ctx.request_calls([("pay", {"cents": 5})])
    return "asked"


class Desk(Toolset):
    pay = tool(pay)
    asks = tool(asks)


_PARAMETERS: Any = {"cents": 5, "desk": Desk, "rate": [float("nan")], 3: (1, 2)}
ODD = SuspendTicket(parameters=_PARAMETERS)
DOES: dict[str, tuple[str, Callable[[ToolRoundPlan[Any], AnyToolCall], object], str]] = {
    "starts": ("pay", lambda plan, call: call.start(), "in_doubt"),
    "runs": ("pay", lambda plan, call: call.call_sync(), "finished"),
    "is run": ("pay", lambda plan, call: plan.record(call.call_sync()), "finished"),
    "refuses": ("pay", lambda plan, call: call.reject("It is closed."), "finished"),
    "waits": ("pay", lambda plan, call: (call.start(), call.suspend(SuspendTicket())), "suspended"),
    "waits oddly": ("pay", lambda plan, call: (call.start(), call.suspend(ODD)), "suspended"),
    "is detached": ("pay", lambda plan, call: plan.detach(call.id), "in_doubt"),
    "requests": ("asks", lambda plan, call: plan.record(execute_sync(call)), "awaiting"),
}  # fmt: skip


@contextmanager
def at_line(number: int, does: Callable[[], object]) -> Iterator[None]:
    """Do something before a line of the code that dumps a plan, counted from one."""
    left = number

    def local(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                does()
        return local

    def trace(frame: FrameType, _: str, __: object) -> Any:
        return local if left > 0 and frame.f_code.co_filename in LINES else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("does", DOES)
def test_what_happens_to_a_call_while_it_is_dumped_is_refused_or_in_the_text(does: str) -> None:
    """Before any line of a dump: no call runs here that can be started from the text as well."""
    found: Counter[str] = Counter()
    name, act, state = DOES[does]
    arguments = {"cents": 5} if name == "pay" else {"text": "a"}
    for number in range(1, 10_000):
        outcome = Desk.read_turn(ScriptedModel.tool_calls(("c1", name, arguments)))
        assert isinstance(outcome, NeedsTools)
        plan = outcome.round.plan()
        (call,) = plan.pending
        said: list[LutumError | None] = []

        def acts(plan: Any = plan, call: Any = call, said: Any = said) -> None:
            try:
                act(plan, call)
            except LutumError as error:
                said.append(error)
            else:
                said.append(None)

        try:
            with at_line(number, acts):
                text = plan.dump_json()
        except PlanError:  # it was not told, and is as it was
            assert plan._state.closed_by is None
            found["untold"] += 1
            plan.discard()
            continue
        with pytest.raises(RoundClosedError):
            plan.discard()
        loaded = Desk.load_plan(text)
        row = loaded.calls[0]
        loaded.discard()
        if not said:
            break
        if said[0] is None:
            found["in the text"] += 1
            assert row.state == state
            continue
        found["refused"] += 1
        # A start may have won, and what came of it is then too late: that is in doubt.
        begun = any(step.kind == "started" for step in call.steps)
        assert row.state == ("in_doubt" if begun else "pending")
        with pytest.raises(LifecycleError):
            call.start()
    assert found["in the text"] > 10
    assert found["refused"] > 2


def test_what_is_not_json_is_saved_as_a_text_only_where_a_round_has_ended() -> None:
    """With an error, an open round goes on; one that ended would be lost."""
    outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    plan = outcome.round.plan()
    odd: Any = {"desk": Desk, "rates": [1, float("nan")]}
    deep: Any = []
    for _ in range(150):
        deep = [deep]
    with pytest.raises(PlanError):
        plan_json._plain(plan._state, dict(odd))
    plan.discard()
    saved = plan_json._plain(plan._state, {**odd, "deep": deep})
    assert saved["rates"] == [1, "nan"]
    assert isinstance(saved["desk"], str)
