"""`lutum lock`: keep the tools of some toolsets in a lock file, and report what changed since.

The file holds the tools as they were when somebody last agreed to them. Tool by tool and field by
field, the present ones are compared with it, by the plain rules of `_changes`.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError
from rich.text import Text

from .. import Toolset
from .._text.json import canonical_json, is_array, is_object, parse_json
from ._changes import Effect, FieldChange, changes_between, tool_digest, worst_of
from ._conversation_file import write_file
from ._loading import ImportFailure, load_toolset
from ._screen import Failure, answer, counted, json_text, system_reason, text

DEFAULT_FILE: Final = Path("lutum.lock")
_SIGNS: Final = {"changed": "~", "renamed": ">", "added": "+", "removed": "-"}
_MEANINGS: Final = {
    "breaking": "Breaking: a call that was accepted before may be refused now, or a result may "
    "have another form.",
    "unclassified": "Unclassified: no rule covers the change, so compare the two texts yourself.",
}


@dataclass(frozen=True, slots=True)
class LockedTool:
    """What is kept of one tool.

    Attributes:
        description: What the model is told about it.
        digest: `ToolDef.digest`: of the name and the input schema, without descriptions.
        input_schema: The schema of its arguments.
        output_schema: The schema of its output, or None.
        on: Whether it is offered unless a turn says otherwise.
        strict: Whether arguments have to be of the very type.
        deferred: Whether it is offered once a search of the model has loaded it.
    """

    description: str
    digest: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    on: bool
    strict: bool
    deferred: bool = False


Lock = dict[str, dict[str, LockedTool]]
"""By the name of the toolset on the command line, then by the wire name of the tool."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _LockFile:
    format: Literal["lutum_py.lock"] = "lutum_py.lock"
    version: Literal[1] = 1
    toolsets: Lock


def _locked_tools(toolset: type[Toolset]) -> dict[str, LockedTool]:
    locked: dict[str, LockedTool] = {}
    for each in toolset:
        schema = _settled(each.definition.input_schema)
        locked[each.name] = LockedTool(
            description=each.definition.description,
            digest=tool_digest(schema, each.name),
            input_schema=schema,
            output_schema=_settled(each.definition.output_schema),
            on=not each.is_off,
            strict=each.definition.strict,
            deferred=each.is_deferred,
        )
    return locked


def _settled(schema: Any) -> Any:
    """Sort defaults that are sets: their order differs from one run of Python to the next."""
    if is_array(schema):
        return [_settled(entry) for entry in schema]
    if not is_object(schema):
        return schema
    # `field: set[str] = {"b", "a"}` has its default in any order, and each lock would differ.
    made = {key: _settled(value) for key, value in schema.items()}
    if made.get("uniqueItems") is True and is_array(made.get("default")):
        made["default"].sort(key=canonical_json)
    return made


def _lock_text(lock: Lock) -> str:
    """Write a lock so that equal locks are equal files, and a review shows what matters.

    Keys are sorted: to move a tool or a field up or down changes nothing.
    """
    made = asdict(_LockFile(toolsets=lock))
    # Only these are sorted: the file begins with what it is.
    made["toolsets"] = json.loads(json.dumps(made["toolsets"], sort_keys=True))
    return json_text(made) + "\n"


def _lock_command(path: Path, *arguments: str) -> str:
    """Return the command that writes a lock file, as it is typed in a shell."""
    file = [] if path == DEFAULT_FILE else ["--file", str(path)]
    return f"`{shlex.join(['lutum', 'lock', *file, *arguments])}`"


def _read_lock(path: Path) -> Lock:
    """Read a lock file, and make sure that nobody edited its schemas by hand.

    Raises:
        Failure: There is none, it cannot be read, it holds something else, or it was edited.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Failure(
            f"There is no `{path}`. Write it with {_lock_command(path, 'module:Toolset')}, or name "
            "another with `--file`."
        ) from None
    except OSError as error:
        raise Failure(f"`{path}` cannot be read: {system_reason(error)}.") from error
    try:
        lock = TypeAdapter(_LockFile).validate_python(parse_json(data)).toolsets
        for reference, tools in lock.items():
            for name, tool in tools.items():
                # A merge that took half of each side leaves a schema that no tool ever had.
                # Compared with it, there would be changes that nobody made.
                if tool.digest != tool_digest(tool.input_schema, name):
                    raise ValueError(f"{reference}: {name}: its input schema was edited")
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = ": ".join([*map(str, first["loc"]), first["msg"]])
        # Not overwritten: `--file` may name a file that is somebody else's.
        raise Failure(
            f"`{path}` is not a lock file as this release writes them: {reason}. If it was one, "
            f"delete it, and write it again: {_lock_command(path, 'module:Toolset')}."
        ) from None
    return lock


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool that is not as it was.

    Attributes:
        toolset: The toolset, as the lock file names it.
        tool: Its wire name.
        kind: Whether it was `added`, `removed`, `renamed` or `changed`.
        changes: Each difference.
        was: The old name of a renamed tool.
    """

    toolset: str
    tool: str
    kind: Literal["added", "removed", "renamed", "changed"]
    changes: tuple[FieldChange, ...] = ()
    was: str | None = None

    @property
    def effect(self) -> Effect:
        """The worst effect of the changes; a call of a name that is gone is refused."""
        return "breaking" if self.kind in ("removed", "renamed") else worst_of(self.changes)

    def lines(self) -> Iterator[str]:
        """Give it as lines for people, the first one the heading."""
        note = f" from {self.was}" if self.was else ""
        if {change.kind for change in self.changes} == {"description"}:
            note = ", descriptions only"
        yield f"{_SIGNS[self.kind]} {self.tool}: {self.kind}{note}{_mark(self.effect)}"
        for change in self.changes:
            yield f"    {change.path}: {change.text}{_mark(change.effect)}"


def _mark(effect: Effect) -> str:
    return "" if effect == "compatible" else f" ({effect})"


def _compare(
    reference: str, locked: dict[str, LockedTool], current: dict[str, LockedTool]
) -> Iterator[ToolChange]:
    """Yield an entry for each tool of a toolset that is not as it was locked, by name."""
    gone = {name: tool for name, tool in locked.items() if name not in current}
    for name, new in sorted(current.items()):
        # Of the same text and schemas under another name, it is the same tool.
        same = (each for each, old in gone.items() if replace(old, digest=new.digest) == new)
        if name in locked:
            if changes := tuple(_changes(locked[name], new)):
                yield ToolChange(reference, name, "changed", changes)
        elif was := next(same, None):
            del gone[was]
            yield ToolChange(reference, name, "renamed", was=was)
        else:
            yield ToolChange(reference, name, "added")
    yield from (ToolChange(reference, name, "removed") for name in sorted(gone))


def _changes(old: LockedTool, new: LockedTool) -> Iterator[FieldChange]:
    if old.description != new.description:
        yield FieldChange("tool", "description", "description changed")
    for flag in ("on", "deferred", "strict"):
        if getattr(old, flag) != (is_set := getattr(new, flag)):
            turned = "no → yes" if is_set else "yes → no"
            # What is strict refuses "1" for 1, which it took before.
            effect: Effect = "breaking" if flag == "strict" and is_set else "compatible"
            yield FieldChange("tool", flag, f"{flag} {turned}", effect)
    yield from changes_between("input", old.input_schema, new.input_schema)
    if old.output_schema is None or new.output_schema is None:
        if old.output_schema is not None:
            yield FieldChange("output", "type", "no longer declared", "breaking")
        elif new.output_schema is not None:
            yield FieldChange("output", "type", "declared now")
    else:
        yield from changes_between("output", old.output_schema, new.output_schema)


def write_lock(toolsets: Sequence[str], file: Path, dropped: Sequence[str], as_json: bool) -> None:
    """Write the toolsets that are named into the lock file, and let the others in it be.

    Args:
        toolsets: What to write; if none is named and none dropped, all that are in the file.
        file: The lock file.
        dropped: What is to be locked no longer.
        as_json: Whether the answer is for programs.

    Raises:
        Failure: A toolset or the file cannot be read, or the file not be written.
    """
    locked = _read_lock(file) if file.exists() or not toolsets else {}
    for reference in dropped:
        if reference not in locked:
            listed = ", ".join(locked) or "nothing"
            raise Failure(f"`{file}` does not lock `{reference}`. It locks: {listed}.")
    current = _present(toolsets or ([] if dropped else list(locked)), locked, file)
    left = {each: tools for each, tools in locked.items() if each not in (*current, *dropped)}
    whole = {**left, **current}
    # An unchanged lock is not written again, so that a build that goes by file times does nothing.
    is_written = not file.exists() or whole != locked
    if is_written:
        write_file(file, _lock_text(whole).encode())
    gone = [reference for reference in locked if reference not in whole]
    data = {
        "file": str(file),
        "written": is_written,
        "toolsets": sorted(whole),
        "kept": list(left),
        "dropped": gone,
    }
    state = "written" if is_written else "up to date already"
    told = [text(f"`{file}`: {state}, {_size(whole)}")]
    for words, names in (("Left as locked", left), ("No longer locked", gone)):
        if names:
            told.append(text(f"{words}: {', '.join(names)}"))
    answer(as_json, data, *told)


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
    locked = _read_lock(file)
    current = _present(toolsets or list(locked), locked, file)
    changes = [
        change
        for reference, tools in current.items()
        for change in _compare(reference, locked.get(reference, {}), tools)
    ]
    data = {
        "file": str(file),
        "up_to_date": not changes,
        "toolsets": list(current),
        "changes": [{**asdict(change), "effect": change.effect} for change in changes],
    }
    told = [text(f"`{file}` is up to date: {_size(current)}")]
    if changes:
        told = list(_report(file, locked, changes, _lock_command(file, *toolsets)))
    answer(as_json, data, *told)
    return 1 if changes else 0


def _present(references: Sequence[str], locked: Lock, file: Path) -> Lock:
    return {each: _locked_tools(_load(each, file, locked)) for each in dict.fromkeys(references)}


def _load(reference: str, file: Path, locked: Collection[str]) -> type[Toolset]:
    try:
        return load_toolset(reference)
    except Failure as failure:
        # What fails while it is imported is there, and is to be repaired.
        if isinstance(failure, ImportFailure) or reference not in locked:
            raise
        raise Failure(
            f"{failure} `{file}` locks it. If it is gone, run "
            f"{_lock_command(file, '--drop', reference)}; if it was renamed or moved, put its new "
            "name at the end of that command."
        ) from None


def _size(lock: Lock) -> str:
    tools = counted(sum(map(len, lock.values())), "tool")
    return f"{tools} of {counted(len(lock), 'toolset')}"


def _report(file: Path, locked: Lock, changes: list[ToolChange], command: str) -> Iterator[Text]:
    kinds = Counter[str](change.kind for change in changes)
    counts = (f"{kinds[kind]} {kind}" for kind in _SIGNS if kinds[kind])
    yield text(f"`{file}` is out of date: {', '.join(counts)}", "bold")
    for reference, of_toolset in groupby(changes, lambda change: change.toolset):
        note = "" if reference in locked else " (not locked yet)"
        yield from (text(""), text(f"{reference}{note}", "bold"))
        yield from (text(f"  {line}") for change in of_toolset for line in change.lines())
    yield text("")
    effects = {change.effect for change in changes}
    yield from (text(words) for effect, words in _MEANINGS.items() if effect in effects)
    yield text(f"If this is as it should be, run {command} and commit the file.")
