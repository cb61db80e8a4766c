"""Compare the tools there are with those that are locked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from ..._compat.changes import FieldChange, changes_between
from ..._compat.verdict import Verdict, judge
from ..._text.json import compact_json, cut
from ..._toolset import Toolset
from ..._transcript.metadata import ToolMetadata
from ...errors import LutumError
from .file import LockedTool

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
    if verdict.answer != "no":
        return verdict
    metadata = ToolMetadata(id="lock", name=name, arguments=compact_json(verdict.example))
    try:
        toolset.parse_tool_call(metadata)
    except LutumError:
        return verdict
    reason = f"{verdict.reason} by the new schema, but the tool takes this example all the same"
    return Verdict("maybe", reason, verdict.example)
