"""The laws of a call's life: it is started once and answered once, whichever two moves come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest

from lutum_py import AnyToolCall, CallStatus, Reply, SuspendTicket, ToolMetadata, execution, tool_fn
from lutum_py.errors import LifecycleError, MisuseError
from tests.cases import over

RUNS: list[int] = []


@tool_fn
def double(number: int) -> int:
    """Double a number."""
    RUNS.append(number)
    return 2 * number


def fresh() -> AnyToolCall:
    metadata = ToolMetadata(id="c1", name="double", arguments='{"number":2}')
    return double.Call(metadata, double.Input(number=2))


MOVES: Final[dict[str, Callable[[AnyToolCall], object]]] = {
    "complete": lambda call: call.complete(4),
    "fail": lambda call: call.fail("no"),
    "reject": lambda call: call.reject("no"),
    "handled": lambda call: call.handled(4),
    "indeterminate": lambda call: call.indeterminate("lost"),
    "finish": lambda call: call.finish(4),
    "finish in an error": lambda call: call.finish(Reply(None, status="error")),
    "finish cancelled": lambda call: call.finish(Reply(None, status="cancelled")),
    "call": lambda call: asyncio.run(call.call()),
    "call_sync": lambda call: call.call_sync(),
    "invoke": lambda call: asyncio.run(call.invoke()),
    "invoke_sync": lambda call: call.invoke_sync(),
    "execute": lambda call: asyncio.run(execution.execute(call)),
    "suspend": lambda call: call.suspend(SuspendTicket()),
    "again": lambda call: call.retry(),
}
ENDS: Final = {
    "complete": CallStatus.SUCCEEDED,
    "fail": CallStatus.FAILED,
    "reject": CallStatus.CANCELLED,
    "handled": CallStatus.SUCCEEDED,
    "indeterminate": CallStatus.FAILED,
    "finish": CallStatus.SUCCEEDED,
    "finish in an error": CallStatus.FAILED,
    "finish cancelled": CallStatus.CANCELLED,
}
RUNNING: Final = {
    "call": CallStatus.SUCCEEDED,
    "call_sync": CallStatus.SUCCEEDED,
    "execute": CallStatus.SUCCEEDED,
    "invoke": CallStatus.RUNNING,
    "invoke_sync": CallStatus.RUNNING,
}


def after(status: CallStatus, move: str) -> CallStatus | None:
    """The status to which a move leads; None where it is refused."""
    if move == "again":
        no = (CallStatus.SUSPENDED, CallStatus.CANCELLED)
        return None if status in no else CallStatus.NEW
    if status.is_terminal:
        return None
    if move == "suspend":
        return None if status is CallStatus.SUSPENDED else CallStatus.SUSPENDED
    if status is CallStatus.SUSPENDED:
        return CallStatus.CANCELLED if move in ("reject", "finish cancelled") else None
    if move in RUNNING:
        return RUNNING[move] if status is CallStatus.NEW else None
    if move == "indeterminate" and status is CallStatus.NEW:
        return None
    return ENDS[move]


@over("first, second", list(product(MOVES, repeat=2)))
def test_a_call_is_begun_once_and_answered_once(first: str, second: str) -> None:
    """Of any two moves the second is refused where it begins or answers again; nothing changes."""
    RUNS.clear()
    call = fresh()
    for move in (first, second):
        before, expected = call.status, after(call.status, move)
        if expected is None:
            with pytest.raises(LifecycleError):
                MOVES[move](call)
        else:
            MOVES[move](call)
        assert call.status is (before if expected is None else expected)
    assert len(RUNS) <= 1


def test_a_call_whose_tool_raised_was_begun() -> None:
    """A tool that raised may have had its effects: only another call of the same makes a try."""

    @tool_fn
    def broken() -> None:
        """Break."""
        raise OSError("once")

    call = broken.Call(ToolMetadata(id="c1", name="broken", arguments="{}"), broken.Input())
    with pytest.raises(OSError, match="once"):
        call.call_sync()
    for run in (call.call_sync, call.invoke_sync):
        with pytest.raises(LifecycleError):
            run()
    assert call.retry().status is CallStatus.NEW
    result = call.indeterminate("the line broke.", code="line")
    assert (result.status, result.code) == ("indeterminate", "line")
    assert result.model_text == "[line] Outcome unknown: the line broke."
    assert call.status is CallStatus.FAILED


def test_an_ended_call_says_how_it_ended() -> None:
    """The refusal names the end that there was, and what to do instead."""
    call = fresh()
    call.reject("no")
    with pytest.raises(LifecycleError) as caught:
        call.complete(4)
    assert str(caught.value) == (
        "Call 'c1' of tool 'double' is cancelled and cannot become succeeded: a call gets one "
        "result. Use the one that you have."
    )
    with pytest.raises(LifecycleError, match="is cancelled already: a call gets one result"):
        call.reject("no")


def test_what_was_not_begun_is_not_in_doubt() -> None:
    """A call that was not started surely did nothing; a reason and a code are texts."""
    call = fresh()
    with pytest.raises(LifecycleError):
        call.indeterminate("lost")
    call.start()
    wrong: Any = 3
    for arguments in ({"reason": wrong}, {"reason": "lost", "code": wrong}):
        with pytest.raises(MisuseError):
            call.indeterminate(**arguments)
    assert call.indeterminate("half \udc00 a pair").model_text.encode()


def test_what_a_function_gave_does_not_answer_a_call_that_ended_meanwhile() -> None:
    """A call that somebody ended while its tool was at work takes no reply of that end."""
    call = fresh()
    call.start()
    call.fail("given up")
    with pytest.raises(LifecycleError):
        call.finish(Reply(None, "down", status="error"))
