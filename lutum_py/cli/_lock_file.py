"""The lock file: the tools of some toolsets as they were when somebody last agreed to them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .._call.selector import AnySelector
from .._schema.definition import ToolDef
from .._text.json import canonical_json, is_array, is_object
from .._toolset import Toolset
from .._transcript.saved import Saved
from ..errors import SavedDataError
from ._exact_json import read_exact
from ._screen import Failure, json_text, system_reason

DEFAULT_FILE: Final = Path("lutum.lock")
_FORMAT: Final = "lutum_py.lock"
_VERSION: Final = 1


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


def lock_of(toolset: type[Toolset]) -> dict[str, LockedTool]:
    """Return what is locked of each tool of a toolset."""
    return {selector.name: _locked(selector) for selector in toolset}


def _locked(selector: AnySelector) -> LockedTool:
    definition = selector.definition
    return LockedTool(
        description=definition.description,
        digest=_digest(selector.name, _settled(definition.input_schema)),
        input_schema=_settled(definition.input_schema),
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


def lock_text(lock: Lock) -> str:
    """Write a lock so that equal locks are equal files, and a review shows what matters.

    Keys are sorted: to move a tool or a field up or down changes nothing.
    """
    toolsets = {
        reference: {"tools": {name: _sorted(asdict(tools[name])) for name in sorted(tools)}}
        for reference, tools in sorted(lock.items())
    }
    return json_text({"format": _FORMAT, "version": _VERSION, "toolsets": toolsets}) + "\n"


def _sorted(value: Any) -> Any:
    if is_array(value):
        return [_sorted(entry) for entry in value]
    return {key: _sorted(value[key]) for key in sorted(value)} if is_object(value) else value


class _LockError(SavedDataError):
    """The file is not a lock, or was damaged."""


class DamagedLock(Failure):
    """There is a file, but what it holds is not a lock; `reason` says why, without a remedy."""

    def __init__(self, reason: str, path: Path) -> None:
        super().__init__(f"{reason} Write it again: {lock_command(path, 'module:Toolset')}.")
        self.reason = reason


def lock_command(path: Path, *arguments: str) -> str:
    """Return the command that writes a lock file, as it is typed in a shell."""
    file = [] if path == DEFAULT_FILE else ["--file", str(path)]
    return f"`{shlex.join(['lutum', 'lock', *file, *arguments])}`"


def read_lock(path: Path) -> Lock:
    """Read a lock file, and make sure that nobody edited its schemas by hand.

    Raises:
        DamagedLock: It holds something else, was edited, or is from a later release.
        Failure: There is none, or it cannot be read.
    """
    name = f"`{path}`"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Failure(
            f"There is no {name}. Write it with {lock_command(path, 'module:Toolset')}, or name "
            "another with `--file`."
        ) from None
    except OSError as error:
        raise Failure(f"{name} cannot be read: {system_reason(error)}.") from error
    try:
        value, _ = read_exact(data, name)
    except Failure as failure:
        raise DamagedLock(str(failure), path) from None
    try:
        return _read(Saved(value, "$", _LockError))
    except _LockError as error:
        raise DamagedLock(f"{name} is not a lock file: {error}", path) from None
    except ValueError as error:
        why = f"a schema in it is not JSON ({error})"
        raise DamagedLock(f"{name} is not a lock file: {why}.", path) from None
    except RecursionError:
        raise DamagedLock(f"{name} is nested too deeply to be a lock file.", path) from None


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
            description=entry.get("description", str),
            digest=entry.get("digest", str),
            input_schema=entry.inner("input_schema").data,
            output_schema=None if output is None else output.data,
            on=entry.get("on", bool),
            strict=entry.get("strict", bool),
            deferred=entry.get("deferred", bool, False),
        )
        # A merge that took half of each side leaves a schema that no tool ever had. Compared with
        # it, `lutum lock --check` would report changes that nobody made.
        if tool.digest != _digest(name, tool.input_schema):
            raise entry.wrong("digest", "the input schema was edited, for it has another digest")
        yield name, tool
