"""Write a lock file, or compare it with what there is, and tell what came of it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from ..._toolset import Toolset
from .._atomic_write import write_file
from .._loading import ImportFailure, load_toolset
from .._screen import Failure, complain, counted, render, text, write_json
from .check import ToolChange, compare_tools
from .file import DamagedLock, Lock, lock_command, lock_of, lock_text, read_lock


def write_lock(
    toolsets: Sequence[str],
    file: Path,
    dropped: Sequence[str],
    as_json: bool,
    with_traceback: bool,
) -> None:
    """Write the toolsets that are named into the lock file, and let the others in it be.

    Args:
        toolsets: What to write; where none is named and none dropped, all that are in the file.
        file: The lock file.
        dropped: What is to be locked no longer.
        as_json: Whether the answer is for programs.
        with_traceback: Whether a failing import shows its traceback.

    Raises:
        Failure: A toolset or the file cannot be read, or the file not be written.
    """
    locked = _locked(file) if toolsets else read_lock(file)
    for reference in dropped:
        if reference not in locked:
            listed = ", ".join(locked) or "nothing"
            raise Failure(f"{_named(file)} does not lock `{reference}`. It locks: {listed}.")
    references = toolsets or ([] if dropped else list(locked))
    current, changes = _compared(references, locked, file, with_traceback)
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


def check_lock(toolsets: Sequence[str], file: Path, as_json: bool, with_traceback: bool) -> int:
    """Say what differs from the lock file, and write nothing.

    Args:
        toolsets: What to compare; by default all that are in the file.
        file: The lock file.
        as_json: Whether the answer is for programs.
        with_traceback: Whether a failing import shows its traceback.

    Returns:
        The exit code: 1 where a tool was added, removed or changed, else 0.

    Raises:
        Failure: A toolset or the file cannot be read.
    """
    locked = read_lock(file)
    current, changes = _compared(toolsets or list(locked), locked, file, with_traceback)
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
        note = "It is written anew, and holds only what is named here."
        complain(text(f"lutum: {damage.reason} {note}"))
        return {}


def _compared(
    references: Sequence[str], locked: Lock, file: Path, with_traceback: bool
) -> tuple[Lock, list[ToolChange]]:
    changes: list[ToolChange] = []
    current: Lock = {}
    for reference in dict.fromkeys(references):
        found = _load(reference, file, locked, with_traceback)
        current[reference] = lock_of(found)
        changes += compare_tools(reference, locked.get(reference, {}), current[reference], found)
    return current, changes


def _load(
    reference: str, file: Path, locked: Collection[str], with_traceback: bool
) -> type[Toolset]:
    try:
        return load_toolset(reference, with_traceback=with_traceback)
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
