"""`lutum lock`: write the tools that there are into a lock file, or say what became of them.

What there is is compared with what is locked, tool by tool; for each that changed it is asked
whether a call that fitted the locked schema would still decode.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from .._compat.changes import FieldChange, changes_between
from .._compat.verdict import Verdict, judge
from .._text.json import compact_json, cut
from .._toolset import Toolset
from .._transcript.assistant import ToolMetadata
from ..errors import LutumError
from ._atomic_write import write_file
from ._loading import ImportFailure, load_toolset
from ._lock_file import DamagedLock, Lock, LockedTool, lock_command, lock_of, lock_text, read_lock
from ._screen import Failure, complain, counted, render, text, write_json

_EXAMPLE: Final = 200
"""Characters of an example that are shown."""


@dataclass(frozen=True, slots=True)
class ToolChange:
    """What became of one tool.

    Attributes:
        toolset: The toolset, as the lock file names it.
        name: The wire name of the tool.
        kind: Whether it was `added`, `removed` or `changed`.
        changes: Each difference; the path says `tool`, `input` or `output` first.
        verdict: Whether arguments that fitted the locked schema still decode; None for a new tool.
    """

    toolset: str
    name: str
    kind: Literal["added", "removed", "changed"]
    changes: tuple[FieldChange, ...] = ()
    verdict: Verdict | None = None

    @property
    def is_text_only(self) -> bool:
        """Whether nothing changed but descriptions."""
        return all(change.kind == "description" for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain JSON data."""
        verdict = self.verdict
        return {
            "toolset": self.toolset,
            "tool": self.name,
            "kind": self.kind,
            "changes": [asdict(change) for change in self.changes],
            "old_calls_decode": None if verdict is None else verdict.answer,
            "reason": None if verdict is None else verdict.reason,
            "example": None if verdict is None else verdict.example,
        }

    def lines(self) -> Iterator[str]:
        """Give it as lines for people, the first one the heading."""
        sign = {"added": "+", "removed": "-", "changed": "~"}[self.kind]
        note = ", descriptions only" if self.kind == "changed" and self.is_text_only else ""
        yield f"{sign} {self.name}: {self.kind}{note}"
        for change in self.changes:
            yield f"    {change.path}: {change.text}"
        if self.verdict is not None:
            yield f"    old calls still decode: {self.verdict.answer}; {self.verdict.reason}"
            if self.verdict.example is not None:
                yield f"      for example {cut(compact_json(self.verdict.example), _EXAMPLE)}"


def compare_tools(
    reference: str,
    locked: dict[str, LockedTool],
    current: dict[str, LockedTool],
    toolset: type[Toolset],
) -> list[ToolChange]:
    """Compare one toolset with what is locked of it.

    Args:
        reference: How the lock file names the toolset.
        locked: Its tools as they were.
        current: Its tools as they are.
        toolset: The toolset, whose tools decode the examples.

    Returns:
        One entry for each tool that was added, removed or changed, by name.
    """
    found: list[ToolChange] = []
    for name in sorted({*locked, *current}):
        if name not in locked:
            found.append(ToolChange(reference, name, "added"))
        elif name not in current:
            gone = Verdict("no", "there is no tool of that name any more")
            found.append(ToolChange(reference, name, "removed", verdict=gone))
        else:
            changes = tuple(_changes(locked[name], current[name]))
            if changes:
                old, new = locked[name].input_schema, current[name].input_schema
                # The schemas are compared, and not tools: the old tool is gone, and its schema is
                # all that is left of what calls looked like.
                verdict = _tried(toolset, name, judge(old, new))
                found.append(ToolChange(reference, name, "changed", changes, verdict))
    return found


def _changes(old: LockedTool, new: LockedTool) -> Iterator[FieldChange]:
    if old.description != new.description:
        yield FieldChange("tool", "description", "description changed")
    for flag in ("on", "deferred", "strict"):
        before, after = getattr(old, flag), getattr(new, flag)
        if before != after:
            yield FieldChange("tool", flag, f"{flag} {_said(before)} → {_said(after)}")
    yield from _within("input", old.input_schema, new.input_schema)
    if old.output_schema is None or new.output_schema is None:
        if old.output_schema is not new.output_schema:
            is_new = old.output_schema is None
            text = "declared now" if is_new else "no longer declared"
            yield FieldChange("output", "type", text)
    else:
        yield from _within("output", old.output_schema, new.output_schema)


def _said(flag: bool) -> str:
    return "yes" if flag else "no"


def _within(area: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    for change in changes_between(old, new):
        # `input.city`, but `input[0]` and `input(Circle)`.
        joint = "" if not change.path or change.path.startswith(("[", "(")) else "."
        yield FieldChange(f"{area}{joint}{change.path}", change.kind, change.text)


def _tried(toolset: type[Toolset], name: str, verdict: Verdict) -> Verdict:
    """Put the example to the tool's own decoder, which may be more lenient than its schema."""
    # Schemas can only say that an example does not fit; the decoder mends some of those, as "1" for
    # 1. Where it takes the example, the answer is "maybe" and not "yes": it is one of many.
    if verdict.answer != "no":
        return verdict
    metadata = ToolMetadata(id="lock", name=name, arguments=compact_json(verdict.example))
    try:
        toolset.parse_tool_call(metadata)
    except LutumError:
        return verdict
    reason = f"{verdict.reason} by the new schema, but the tool takes this example all the same"
    return Verdict("maybe", reason, verdict.example)


def write_lock(
    toolsets: Sequence[str],
    file: Path,
    dropped: Sequence[str],
    as_json: bool,
) -> None:
    """Write the toolsets that are named into the lock file, and let the others in it be.

    Args:
        toolsets: What to write; where none is named and none dropped, all that are in the file.
        file: The lock file.
        dropped: What is to be locked no longer.
        as_json: Whether the answer is for programs.

    Raises:
        Failure: A toolset or the file cannot be read, or the file not be written.
    """
    locked = _locked(file) if toolsets else read_lock(file)
    for reference in dropped:
        if reference not in locked:
            listed = ", ".join(locked) or "nothing"
            raise Failure(f"{_named(file)} does not lock `{reference}`. It locks: {listed}.")
    references = toolsets or ([] if dropped else list(locked))
    current, changes = _compared(references, locked, file)
    kept = {
        reference: tools
        for reference, tools in locked.items()
        if reference not in current and reference not in dropped
    }
    whole = {**kept, **current}
    # An unchanged lock is not written again, so that a build that goes by file times does nothing.
    is_written = bool(changes) or not locked or whole.keys() != locked.keys()
    if is_written:
        write_file(file, lock_text(whole).encode())
    gone = [reference for reference in locked if reference not in whole]
    if as_json:
        data = {
            "file": str(file),
            "written": is_written,
            "toolsets": sorted(whole),
            "kept": list(kept),
            "dropped": gone,
        }
        write_json(sys.stdout, data)
        return
    state = "written" if is_written else "up to date already"
    render(text(f"{_named(file)}: {state}, {_size(whole)}"))
    for words, told in (("Left as locked", kept), ("No longer locked", gone)):
        if told:
            render(text(f"{words}: {', '.join(told)}"))


def check_lock(toolsets: Sequence[str], file: Path, as_json: bool) -> int:
    """Say what differs from the lock file, and write nothing.

    Args:
        toolsets: What to compare; by default all that are in the file.
        file: The lock file.
        as_json: Whether the answer is for programs.

    Returns:
        The exit code: 1 where a tool was added, removed or changed, else 0.

    Raises:
        Failure: A toolset or the file cannot be read.
    """
    locked = read_lock(file)
    current, changes = _compared(toolsets or list(locked), locked, file)
    if as_json:
        data = {
            "file": str(file),
            "up_to_date": not changes,
            "toolsets": list(current),
            "changes": [change.to_dict() for change in changes],
        }
        write_json(sys.stdout, data)
    elif changes:
        _tell_changes(file, locked, current, changes, lock_command(file, *toolsets))
    else:
        render(text(f"{_named(file)} is up to date: {_size(current)}"))
    return 1 if changes else 0


def _locked(file: Path) -> Lock:
    """Read a lock that is about to be written; without a whole one it begins empty."""
    if not file.exists():
        return {}
    try:
        return read_lock(file)
    except DamagedLock as damage:
        note = "It is written again, and holds only what is named here."
        complain(text(f"lutum: {damage.reason} {note}"))
        return {}


def _compared(references: Sequence[str], locked: Lock, file: Path) -> tuple[Lock, list[ToolChange]]:
    changes: list[ToolChange] = []
    current: Lock = {}
    for reference in dict.fromkeys(references):
        found = _load(reference, file, locked)
        current[reference] = lock_of(found)
        changes += compare_tools(reference, locked.get(reference, {}), current[reference], found)
    return current, changes


def _load(reference: str, file: Path, locked: Collection[str]) -> type[Toolset]:
    try:
        return load_toolset(reference)
    except Failure as failure:
        # What fails while it is imported is there, and is to be mended.
        if isinstance(failure, ImportFailure) or reference not in locked:
            raise
        raise Failure(
            f"{failure} {_named(file)} locks it. If it is gone, run "
            f"{lock_command(file, '--drop', reference)}; if it was renamed or moved, put its new "
            "name at the end of that command."
        ) from None


def _named(file: Path) -> str:
    return f"`{file}`"


def _size(lock: Lock) -> str:
    tools = counted(sum(map(len, lock.values())), "tool")
    return f"{tools} of {counted(len(lock), 'toolset')}"


def _tell_changes(
    file: Path, locked: Lock, lock: Lock, changes: list[ToolChange], command: str
) -> None:
    counts = [
        f"{count} {kind}"
        for kind in ("changed", "added", "removed")
        if (count := sum(change.kind == kind for change in changes))
    ]
    render(text(f"{_named(file)} is out of date: {', '.join(counts)}", "bold"))
    for reference in lock:
        of_toolset = [change for change in changes if change.toolset == reference]
        if of_toolset:
            note = "" if reference in locked else " (not locked yet)"
            render(text(""), text(f"{reference}{note}", "bold"))
        for change in of_toolset:
            render(*(text(f"  {line}") for line in change.lines()))
    render(text(""), text(f"If this is as it should be, run {command} and commit the file."))
