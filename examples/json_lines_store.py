"""A store of your own: one round in a file of JSON lines, which survives a kill at any moment.

    python examples/json_lines_store.py round.jsonl

Run it, kill it while it pays, and run it again: what was paid is not paid again, and what was being
paid when it was killed is asked about.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from lutum_py import AnyToolCall, NeedsTools, ToolRoundPlan, Toolset, tool, tool_fn
from lutum_py.testing import ScriptedModel


class JsonLines:
    """Keep the record of a round in the first line of a file, and an entry in each line after it.

    Args:
        path: The file.
        toolset: The toolset of the round.
    """

    def __init__(self, path: Path, toolset: type[Toolset]) -> None:
        self.path = path
        self.toolset = toolset
        self.mark: dict[str, int] = {}

    def begin(self, plan: ToolRoundPlan[Any]) -> None:
        """Write the record of a round, and what happened so far."""
        self._write([plan.round_record()])
        self.keep(plan)

    def keep(self, plan: ToolRoundPlan[Any]) -> None:
        """Write what happened since the last time; it is on the disk when this returns."""
        entries, mark = plan.entries_since(self.mark)
        self._write(entries)
        self.mark = mark

    def open(self) -> ToolRoundPlan[Any]:
        """Make a plan of what is in the file. A call that was running is in doubt."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]  # a kill may leave half a line, which counts for none
        if whole != text:
            os.truncate(self.path, len(whole))
        record, *entries = map(json.loads, whole.splitlines())
        plan = self.toolset.open_plan(record, entries)
        _, self.mark = plan.entries_since()
        for call in plan.pending:
            if call.status == "running":
                plan.abandon(call.id)
        self.keep(plan)
        return plan

    def run(self, plan: ToolRoundPlan[Any], call: AnyToolCall) -> None:
        """Run a call; that it was started is in the file before its tool begins."""
        handed_out = plan.detach(call.id, owner=f"process {os.getpid()}")
        self.keep(plan)
        plan.record(handed_out.call_sync())
        self.keep(plan)

    def _write(self, lines: list[dict[str, Any]]) -> None:
        with self.path.open("ab") as file:
            file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


@tool_fn
def pay(to: str, cents: int) -> str:
    """Pay an amount."""
    time.sleep(float(os.environ.get("SECONDS_TO_PAY", "0.2")))
    print(f"paid {cents} cents to {to}", flush=True)
    return "paid"


class Bank(Toolset):
    """The tools of the round."""

    pay = tool(pay)


def main(path: Path) -> None:
    """Go on with the round of a file, or begin it."""
    store = JsonLines(path, Bank)
    if path.exists():
        plan = store.open()
    else:
        asked = [(f"c{n}", "pay", {"to": name, "cents": 100 * n}) for n, name in enumerate("abc")]
        needed = Bank.read_turn(ScriptedModel.tool_calls(*asked))
        assert isinstance(needed, NeedsTools)
        plan = needed.round.plan()
        store.begin(plan)
    for call in plan.in_doubt:
        print(f"call {call.id} may have paid: ask the bank", flush=True)
        plan.record(call.indeterminate("the process was killed while it paid"))
        store.keep(plan)
    for call in plan.pending:
        store.run(plan, call)
    committed = plan.resolve()
    print(", ".join(f"{result.id} {result.status}" for result in committed.results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
