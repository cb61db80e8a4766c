"""Show a run of `file_agent.py` as it happens: one short line for each thing, aligned."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Final, TextIO

from lutum_py import AssistantTurn, ToolResult, ToolRoundPlan
from lutum_py.sinks import escape_unprintable
from lutum_py.typing import CallEvent

_COLOURS: Final = {
    "call": "36",
    "allowed": "32",
    "rejected": "31",
    "unusable": "33",
    "result": "32",
    "failed": "31",
    "aborted": "31",
}


class Show:
    """Print to a stream; colours and cut lines only where that helps."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = sys.stdout if out is None else out
        at_terminal = self.out.isatty()
        self.width = min(max(shutil.get_terminal_size((80, 24)).columns, 40), 120)
        self.has_colours = (
            at_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        )
        self.turns = 0
        self.place: dict[str, int] = {}

    def head(self, **facts: object) -> None:
        """Say what is going to be done."""
        for name, value in facts.items():
            self._line(f"{name:<9} {clean(str(value))}")

    def turn(self, turn: AssistantTurn) -> None:
        """Show the calls of a turn."""
        self.turns += 1
        calls = turn.tool_calls
        self.place = {call.id: number for number, call in enumerate(calls, 1)}
        self._line("")
        head = f"turn {self.turns}  {_counted(len(calls), 'call')}  {clean(turn.text)}"
        self._line(self._cut(head).replace("turn", self._painted("turn", "1"), 1))
        for call in calls:
            self._event(call.id, "call", f"{call.name:<11} {_brief(call.arguments)}")

    def decisions(self, plan: ToolRoundPlan[Any]) -> None:
        """Show what was decided about each call, and by whom."""
        issues = {each.metadata.id: each for each in plan.recoverable_tool_call_issues}
        for row in plan.calls:
            by = [each.hook.rpartition(".")[2] for each in plan.decisions if each.call_id == row.id]
            if row.state == "pending":
                self._event(row.id, "allowed", f"by {', '.join(by)}", is_cut=False)
            elif row.state == "rejected":
                self._event(row.id, "rejected", f"by {by[-1]}: {row.reason}", is_cut=False)
            elif row.id in issues:
                text = "; ".join(map(str, issues[row.id].fields)) or issues[row.id].text
                self._event(row.id, "unusable", text, is_cut=False)

    def event(self, event: CallEvent) -> None:
        """Say that a call is being run; its result, or another's, takes the place of this line."""
        if event.row.result is not None:
            self._result(event.row.result)
        elif self.has_colours:
            self._clear()
            self.out.write(f"  {self.place[event.row.id]} …")
            self.out.flush()

    def _result(self, result: ToolResult) -> None:
        self._clear()
        if result.is_success:
            self._event(result.id, "result", _summary(result))
        else:
            self._event(result.id, "failed", result.model_text, is_cut=False)

    def aborted(self, results: tuple[ToolResult, ...]) -> None:
        """Show how the calls of an aborted round ended."""
        self._clear()
        for result in results:
            self._event(result.id, "aborted", f"{result.status}: {result.model_text}")

    def _clear(self) -> None:
        if self.has_colours:
            self.out.write("\r\x1b[K")

    def answer(self, text: str, files: Sequence[str] = ()) -> None:
        """Show the answer, last, and the files that it is from."""
        self._line("")
        self._line(self._painted("answer", "1"))
        for line in text.splitlines():
            body = clean(line.strip())
            indent = "  " + " " * (len(line) - len(line.lstrip()))
            if indent == "  ":
                for part in textwrap.wrap(body, self.width - 2):
                    self._line(indent + part)
            else:
                self._line(self._cut(indent + body))
        if files:
            self._line(self._cut(f"  from {clean(', '.join(files))}"))

    def _event(self, call_id: str, kind: str, text: str, *, is_cut: bool = True) -> None:
        start = f"  {self.place[call_id]} {kind:<9}"
        painted = start.replace(kind, self._painted(kind, _COLOURS[kind]))
        if is_cut:
            self._line(painted + self._cut(start + clean(text))[len(start) :])
            return
        lines = textwrap.wrap(clean(text), self.width - len(start), break_on_hyphens=False)
        for number, line in enumerate(lines or [""]):
            self._line((painted if not number else " " * len(start)) + line)

    def _cut(self, line: str) -> str:
        return line if len(line) <= self.width else line[: self.width - 1] + "…"

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.has_colours else text

    def _line(self, text: str) -> None:
        print(text.rstrip(), file=self.out, flush=True)


def clean(text: str) -> str:
    """Make text harmless for a terminal: what a file holds must not command it."""
    return escape_unprintable("".join(" " if c.isspace() else c for c in text))


def _brief(arguments: str) -> str:
    """Show arguments as `name=value` pairs, where they are an object."""
    try:
        values = json.loads(arguments)
        pairs = [f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in values.items()]
    except (ValueError, AttributeError):
        return arguments
    return "  ".join(pairs)


def _summary(result: ToolResult) -> str:
    """Say in a few words what a tool gave."""
    given = result.output
    match result.name:
        case "list_files":
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in given["kinds"].items())
            return _counted(given["total"], "file") + (f": {kinds}" if kinds else "")
        case "read_file":
            last = given["first"] + len(given["text"].splitlines()) - 1
            of = _counted(given["size"], "byte")
            return f"lines {given['first']}-{last} of {of}" if given["text"] else f"none of {of}"
        case "search_text":
            lines = _counted(len(given["matches"]), "line")
            files = _counted(len({match["path"] for match in given["matches"]}), "file")
            end = "" if given["complete"] else ", and perhaps more"
            return f"{lines} in {files}; {given['searched']:,} searched{end}"
        case "write_file":
            return f"{_counted(given['size'], 'byte')} written"
        case _:
            return result.model_text


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
