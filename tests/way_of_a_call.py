"""List the functions and files that a call passes: `python -m tests.way_of_a_call [-v]`.

A plain call goes from the provider's response over a hook and its run to the commit. One that is
suspended is asked about by a gate, saved, loaded, decided on, sent through hooks again, run,
recorded and committed. Both are traced the second time, when all is imported and made;
comprehensions and lambdas are not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import lutum_py
from lutum_py import (
    HookSet,
    NeedsTools,
    RunNormally,
    Suspend,
    SuspendTicket,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat

PACKAGE: Final = str(Path(lutum_py.__file__).parent)


@tool_fn
def refund(order: str, cents: int = 500) -> str:
    """Give money back."""
    return f"refunded {cents} for {order}"


@tool_fn
def pay(order: str, cents: int = 500) -> str:
    """Pay a bill."""
    return f"paid {cents} for {order}"


class Desk(Toolset):
    refund = tool(refund)
    pay = tool(pay)


hooks: HookSet[Desk] = Desk.HookSet()


@hooks.on(Desk.refund)
def let_pass(metadata: Any, input: Any) -> Any:
    """Let every call go on."""
    return RunNormally(input)


@hooks.gate(Desk.pay)
def ask(metadata: Any, input: Any) -> Any:
    """Let a person decide."""
    return Suspend(SuspendTicket(message="Pay?"))


def response(name: str) -> dict[str, Any]:
    """What a provider sends for one call."""
    function = {"name": name, "arguments": '{"order": "A1"}'}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def plain() -> None:
    """Take one call from the response to the transcript."""
    outcome = Desk.read_turn(openai_chat.decode(response("refund")))
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    plan.commit(Transcript(), [call.call_sync() for call in plan.pending])


def suspended() -> None:
    """Do the same with a call about which somebody decides in another process."""
    outcome = Desk.read_turn(openai_chat.decode(response("pay")))
    assert isinstance(outcome, NeedsTools)
    plan = Desk.load_plan(outcome.round.apply_hooks_sync(hooks).dump_json())
    (waiting,) = plan.suspended
    plan.resume(waiting.approve(by="mia"))
    plan = plan.apply_hooks_sync(hooks)
    for call in plan.pending:
        plan.record(call.call_sync())
    plan.commit(Transcript())


def passed(work: Callable[[], None]) -> set[tuple[str, str]]:
    """Give the file and the name of each function of the package that some work calls."""
    work()
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and "<" not in code.co_name:
            seen.add((code.co_filename[len(PACKAGE) + 1 :], code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


def main() -> None:
    """Print both ways."""
    for work in (plain, suspended):
        seen = passed(work)
        print(f"{work.__name__}: {len(seen)} functions in {len({file for file, _ in seen})} files")
        if "-v" in sys.argv:
            print(*(f"  {file} {name}" for file, name in sorted(seen)), sep="\n")


if __name__ == "__main__":
    main()
