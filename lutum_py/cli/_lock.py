"""`lutum lock`: write the tools that there are into a lock file, or say what became of them.

The file keeps the tools of some toolsets as they were when somebody last agreed to them. What there
is is compared with it, tool by tool; for each that changed it is asked whether a call that fitted
the locked schema would still decode.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from rich.text import Text

from .. import ToolDef, ToolMetadata, Toolset
from .._compat.changes import FieldChange, changes_between
from .._compat.verdict import Verdict, judge
from .._text.json import canonical_json, compact_json, cut, is_array, is_object
from .._transcript.saved import Saved
from ..errors import LutumError, SavedDataError
from ..typing import AnySelector
from ._conversation_file import read_json, write_file
from ._loading import ImportFailure, load_toolset
from ._screen import Failure, answer, complain, counted, json_text, system_reason, text

DEFAULT_FILE: Final = Path("lutum.lock")
_FORMAT: Final = "lutum_py.lock"
_VERSION: Final = 1
_EXAMPLE: Final = 200
"""Characters of an example that are shown."""


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


def _locked_tool(selector: AnySelector) -> LockedTool:
    definition = selector.definition
    schema = _settled(definition.input_schema)
    return LockedTool(
        description=definition.description,
        digest=_digest(selector.name, schema),
        input_schema=schema,
        output_schema=_settled(definition.output_schema),
        on=not selector.is_off,
        strict=definition.strict,
        deferred=selector.is_deferred,
    )


def _digest(name: str, schema: dict[str, Any]) -> str:
    return ToolDef(name=name, description="", input_schema=schema).digest


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
    toolsets = {
        reference: {"tools": {name: asdict(tool) for name, tool in tools.items()}}
        for reference, tools in lock.items()
    }
    # Only these are sorted: the file begins with what it is.
    ordered = json.loads(json.dumps(toolsets, sort_keys=True))
    return json_text({"format": _FORMAT, "version": _VERSION, "toolsets": ordered}) + "\n"


class _DamagedLock(Failure):
    """There is a file, but what it holds is not a lock; `reason` says why, without a remedy."""

    def __init__(self, reason: str, path: Path) -> None:
        super().__init__(f"{reason} Write it again: {_lock_command(path, 'module:Toolset')}.")
        self.reason = reason


def _lock_command(path: Path, *arguments: str) -> str:
    """Return the command that writes a lock file, as it is typed in a shell."""
    file = [] if path == DEFAULT_FILE else ["--file", str(path)]
    return f"`{shlex.join(['lutum', 'lock', *file, *arguments])}`"


def _read_lock(path: Path) -> Lock:
    """Read a lock file, and make sure that nobody edited its schemas by hand.

    Raises:
        _DamagedLock: It holds something else, was edited, or is from a later release.
        Failure: There is none, or it cannot be read.
    """
    name = f"`{path}`"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Failure(
            f"There is no {name}. Write it with {_lock_command(path, 'module:Toolset')}, or name "
            "another with `--file`."
        ) from None
    except OSError as error:
        raise Failure(f"{name} cannot be read: {system_reason(error)}.") from error
    try:
        value = read_json(data, name)
    except Failure as failure:
        raise _DamagedLock(str(failure), path) from None
    try:
        return _read(Saved(value, "$", SavedDataError))
    except SavedDataError as error:
        raise _DamagedLock(f"{name} is not a lock file: {error}", path) from None
    except ValueError as error:
        why = f"a schema in it is not JSON ({error})"
        raise _DamagedLock(f"{name} is not a lock file: {why}.", path) from None
    except RecursionError:
        raise _DamagedLock(f"{name} is nested too deeply to be a lock file.", path) from None


def _read(saved: Saved) -> Lock:
    if saved.data.get("format") != _FORMAT:
        raise saved.wrong("format", f"expected {_FORMAT!r}")
    if saved.get("version", int) != _VERSION:
        raise saved.wrong("version", f"this release reads {_VERSION}")
    toolsets = saved.inner("toolsets")
    return {
        reference: dict(_read_tools(toolsets.inner(reference).inner("tools")))
        for reference in toolsets.data
    }


def _read_tools(saved: Saved) -> Iterable[tuple[str, LockedTool]]:
    for name in saved.data:
        entry = saved.inner(name)
        output = entry.inner_or_none("output_schema")
        tool = LockedTool(
            **entry.some(str, "description", "digest"),
            input_schema=entry.inner("input_schema").data,
            output_schema=None if output is None else output.data,
            **entry.some(bool, "on", "strict"),
            deferred=entry.get("deferred", bool, False),
        )
        # A merge that took half of each side leaves a schema that no tool ever had. Compared with
        # it, `lutum lock --check` would report changes that nobody made.
        if tool.digest != _digest(name, tool.input_schema):
            raise entry.wrong("digest", "the input schema was edited, for it has another digest")
        yield name, tool


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
        is_text_only = {change.kind for change in self.changes} == {"description"}
        note = ", descriptions only" if is_text_only else ""
        yield f"{sign} {self.name}: {self.kind}{note}"
        for change in self.changes:
            yield f"    {change.path}: {change.text}"
        if self.verdict is not None:
            yield f"    old calls still decode: {self.verdict.answer}; {self.verdict.reason}"
            if self.verdict.example is not None:
                yield f"      for example {cut(compact_json(self.verdict.example), _EXAMPLE)}"


def _compare(
    reference: str,
    locked: dict[str, LockedTool],
    current: dict[str, LockedTool],
    toolset: type[Toolset],
) -> Iterator[ToolChange]:
    """Compare one toolset with what is locked of it.

    Args:
        reference: How the lock file names the toolset.
        locked: Its tools as they were.
        current: Its tools as they are.
        toolset: The toolset, whose tools decode the examples.

    Yields:
        One entry for each tool that was added, removed or changed, by name.
    """
    for name in sorted({*locked, *current}):
        old, new = locked.get(name), current.get(name)
        if old is None:
            yield ToolChange(reference, name, "added")
        elif new is None:
            gone = Verdict("no", "there is no tool of that name any more")
            yield ToolChange(reference, name, "removed", verdict=gone)
        elif changes := tuple(_changes(old, new)):
            # The schemas are compared, and not tools: the old tool is gone, and its schema is all
            # that is left of what calls looked like.
            verdict = _tried(toolset, name, judge(old.input_schema, new.input_schema))
            yield ToolChange(reference, name, "changed", changes, verdict)


def _changes(old: LockedTool, new: LockedTool) -> Iterator[FieldChange]:
    if old.description != new.description:
        yield FieldChange("tool", "description", "description changed")
    for flag in ("on", "deferred", "strict"):
        if getattr(old, flag) != getattr(new, flag):
            turned = "no → yes" if getattr(new, flag) else "yes → no"
            yield FieldChange("tool", flag, f"{flag} {turned}")
    yield from _within("input", old.input_schema, new.input_schema)
    if old.output_schema is None or new.output_schema is None:
        if old.output_schema is not new.output_schema:
            is_new = old.output_schema is None
            text = "declared now" if is_new else "no longer declared"
            yield FieldChange("output", "type", text)
    else:
        yield from _within("output", old.output_schema, new.output_schema)


def _within(area: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    for change in changes_between(old, new):
        # `input.city`, but `input[0]` and `input(Circle)`.
        joint = "" if not change.path or change.path.startswith(("[", "(")) else "."
        yield FieldChange(f"{area}{joint}{change.path}", change.kind, change.text)


def _tried(toolset: type[Toolset], name: str, verdict: Verdict) -> Verdict:
    """Put the example to the tool's own decoder, which may be more lenient than its schema."""
    # Schemas can only say that an example does not fit; the decoder fixes some of those, as "1" for
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
        toolsets: What to write; if none is named and none dropped, all that are in the file.
        file: The lock file.
        dropped: What is to be locked no longer.
        as_json: Whether the answer is for programs.

    Raises:
        Failure: A toolset or the file cannot be read, or the file not be written.
    """
    locked = _locked(file) if toolsets else _read_lock(file)
    for reference in dropped:
        if reference not in locked:
            listed = ", ".join(locked) or "nothing"
            raise Failure(f"`{file}` does not lock `{reference}`. It locks: {listed}.")
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
        write_file(file, _lock_text(whole).encode())
    gone = [reference for reference in locked if reference not in whole]
    data = {
        "file": str(file),
        "written": is_written,
        "toolsets": sorted(whole),
        "kept": list(kept),
        "dropped": gone,
    }
    state = "written" if is_written else "up to date already"
    told = [text(f"`{file}`: {state}, {_size(whole)}")]
    for words, names in (("Left as locked", kept), ("No longer locked", gone)):
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
    current, changes = _compared(toolsets or list(locked), locked, file)
    data = {
        "file": str(file),
        "up_to_date": not changes,
        "toolsets": list(current),
        "changes": [change.to_dict() for change in changes],
    }
    told = [text(f"`{file}` is up to date: {_size(current)}")]
    if changes:
        command = _lock_command(file, *toolsets)
        told = list(_change_lines(file, locked, current, changes, command))
    answer(as_json, data, *told)
    return 1 if changes else 0


def _locked(file: Path) -> Lock:
    """Read a lock that is about to be written; without a whole one it begins empty."""
    if not file.exists():
        return {}
    try:
        return _read_lock(file)
    except _DamagedLock as damage:
        note = "It is written again, and holds only what is named here."
        complain(text(f"lutum: {damage.reason} {note}"))
        return {}


def _compared(references: Sequence[str], locked: Lock, file: Path) -> tuple[Lock, list[ToolChange]]:
    changes: list[ToolChange] = []
    current: Lock = {}
    for reference in dict.fromkeys(references):
        found = _load(reference, file, locked)
        current[reference] = {each.name: _locked_tool(each) for each in found}
        changes += _compare(reference, locked.get(reference, {}), current[reference], found)
    return current, changes


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


def _change_lines(
    file: Path, locked: Lock, lock: Lock, changes: list[ToolChange], command: str
) -> Iterator[Text]:
    counts = [
        f"{count} {kind}"
        for kind in ("changed", "added", "removed")
        if (count := sum(change.kind == kind for change in changes))
    ]
    yield text(f"`{file}` is out of date: {', '.join(counts)}", "bold")
    for reference in lock:
        of_toolset = [change for change in changes if change.toolset == reference]
        if of_toolset:
            note = "" if reference in locked else " (not locked yet)"
            yield from (text(""), text(f"{reference}{note}", "bold"))
        for change in of_toolset:
            yield from (text(f"  {line}") for line in change.lines())
    yield from (text(""), text(f"If this is as it should be, run {command} and commit the file."))
