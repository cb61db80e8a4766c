"""Kill this process at a moment of a payment, or hold it there; the desk knows nothing of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def kill() -> None:
    """End the process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def hold() -> None:
    """Say that the run is held, and wait until somebody lets it go on."""
    Path("held").touch()
    while not Path("go-on").exists():
        time.sleep(0.05)


def set_fuse(desk: Any, tool: str, moment: str, name: str) -> None:
    """Kill this process, or hold the run, at a moment of the run of a tool.

    Args:
        desk: The module `payment_desk`.
        tool: The name of the tool.
        moment: `start`, when the call was handed out and the engine does not know it yet; `before`
            the run, when it does; `inside`, in the tool; `paid`, in the tool, after the payment;
            `after` the tool has ended.
        name: What happens then: `kill` or `hold`.
    """
    hand_out, transfer = desk.hand_out, desk.Bank.transfer
    execute = desk.execution.execute_sync

    def at(now: str, running: str) -> None:
        if (now, running) == (moment, tool):
            {"kill": kill, "hold": hold}[name]()

    def hand_out_fused(record: str, entries: Any, call_id: str, owner: str) -> Any:
        made = hand_out(record, entries, call_id, owner)
        at("start", "wire" if call_id == "call_3" else "pay")
        return made

    def execute_fused(call: Any, **options: Any) -> Any:
        at("before", call.name)
        outcome = execute(call, **options)
        at("after", call.name)
        return outcome

    def transfer_fused(bank: Any, payee: str, cents: int, key: str | None = None) -> None:
        running = "wire" if key is None else "pay"
        at("inside", running)
        transfer(bank, payee, cents, key)
        at("paid", running)

    desk.hand_out, desk.Bank.transfer = hand_out_fused, transfer_fused
    desk.execution.execute_sync = execute_fused
