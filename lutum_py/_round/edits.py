"""What people changed in the arguments of calls, and how the model is told of it.

All of it is to be looked at: what is secret in arguments is masked here. The plan keeps the
arguments themselves with the call, and the whole edit with the decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._call.call import AnyToolCall
from .._call.outcomes import SuspendedCall
from .._context.suspension import Decision
from .._schema.secrets import MASK
from .._text.escaping import visible
from .._text.json import canonical_json, compact_json, cut, is_array, is_object
from .._transcript.result import NOT_RUN, ToolResult, with_message
from ..errors import ResumeError

_LONGEST = 80
_MASKED = f'"{MASK}"'


@dataclass(frozen=True, slots=True)
class EditRecord:
    """Say what a person changed in the arguments of a call, as plain data with secrets masked.

    Attributes:
        call_id: The id of the call.
        shown: The arguments that were shown first to whoever decided.
        edited: What the latest edit made of them, defaults included.
        final: The same after hooks: what is run, or waits again.
        decision_id: The id of that decision.
        by: Who decided, in your own words.
        at: When, in ISO 8601.
        changed: The names in which `final` differs from `shown`, secret ones included.
    """

    call_id: str
    shown: Mapping[str, Any] = field(hash=False)
    edited: Mapping[str, Any] = field(hash=False)
    final: Mapping[str, Any] = field(hash=False)
    decision_id: str
    by: str | None
    at: str
    changed: tuple[str, ...]


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the arguments that differ, in the order in which they stand."""
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if not _is_same(name, before, after))


def _is_same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if name not in before or name not in after:
        return False
    return canonical_json(before[name]) == canonical_json(after[name])


def edits_of(call: AnyToolCall) -> Iterator[tuple[float, EditRecord]]:
    """Read from the line of a call what people changed in its arguments, and when: as one edit.

    An edit is `answered` with `said` edit; what is changed from there to the next thing that
    happens to the call is what it came to: first by the person, then by hooks.
    """
    texts: list[bytes | None] = []  # the arguments before each step
    text: bytes | None = None
    line = call._line
    for step in line:
        texts.append(text)
        if step.kind in ("proposed", "changed"):
            text = step.detail
    found: EditRecord | None = None
    at = 0.0
    for place, answered in enumerate(line):
        if answered.kind != "answered" or answered.said != "edit":
            continue
        before = edited = final = texts[place]
        for step in line[place + 1 :]:
            if step.kind == "changed":
                final = step.detail
                if step.phase == "decision":
                    edited = final
            elif step.kind != "asked":
                break
        found = _noted(call, found, answered.detail, (before, edited, final))
        at = answered.at or 0.0
    if found is not None:
        yield at, found


def _noted(
    call: AnyToolCall,
    earlier: EditRecord | None,
    decision: Decision,
    texts: tuple[bytes | None, bytes | None, bytes | None],
) -> EditRecord:
    """Say what one edit changed, and make an earlier one of the same call part of it."""
    arguments = call.spec.arguments
    values = [call._input if text is None else arguments.from_text(text) for text in texts]
    shown, edited, final = (call.spec.shown(value) for value in values)
    names = changed_names(arguments.to_data(values[0]), arguments.to_data(values[2]))
    if earlier is not None:
        shown = earlier.shown
        both = dict.fromkeys((*earlier.changed, *names))
        names = tuple(name for name in both if not _is_back(name, shown, final))
    return EditRecord(
        call.id, shown, edited, final, decision.decision_id, decision.by, decision.at, names
    )


def _is_back(name: str, shown: Mapping[str, Any], final: Mapping[str, Any]) -> bool:
    """Whether an argument is as it was shown first; behind a mask nobody can see that."""
    return _is_same(name, shown, final) and MASK not in compact_json(shown[name])


def with_edit_lines(
    results: tuple[ToolResult, ...],
    edits: Iterable[EditRecord],
    told_by: Mapping[str, str],
) -> tuple[ToolResult, ...]:
    """Say of each call that was edited, before what the model reads of it, what was changed.

    The program's own `result` stays as it is, and so does what a call that was not run came to.

    Args:
        results: The results.
        edits: What was edited.
        told_by: For a call within another the id of that whose result tells of it.
    """
    lines: dict[str, str] = {}
    for edit in edits:
        if edit.changed:
            by = told_by.get(edit.call_id, edit.call_id)
            lines[by] = f"{lines.get(by, '')}{_line(edit, is_within=by != edit.call_id)}\n"
    return tuple(
        each
        if each.id not in lines or each.status in NOT_RUN
        else with_message(each, f"{lines[each.id]}{each.model_text}")
        for each in results
    )


def _line(edit: EditRecord, *, is_within: bool) -> str:
    call = f"call {visible(edit.call_id)}" if is_within else "this call"
    said = [
        f"{visible(name)} = {cut(compact_json(edit.final[name]), _LONGEST)}"
        if name in edit.final
        else f"{visible(name)} was left out"
        for name in edit.changed
    ]
    return f"[The arguments of {call} were edited: {', '.join(said)}]"


def unmasked(waiting: SuspendedCall, edit: Mapping[str, Any], real: Any) -> Any:
    """Give the arguments of an edit with what is left masked in it as it was.

    Args:
        waiting: The call that was shown.
        edit: Its arguments as they are to be.
        real: Its arguments as they are, secrets included.

    Raises:
        ResumeError: A mask stands in a list that was edited, where nobody knows what it is for.
    """
    try:
        return _unmasked(edit, waiting.arguments, real, "")
    except _Ambiguous as error:
        raise ResumeError(
            f"The edit of call {waiting.call.id!r} of tool `{waiting.call.name}` changes the list "
            f"`{error}` and leaves a mask in it, so that nobody knows which secret is meant. Give "
            "the secrets of this list anew, or leave the list as it is shown."
        ) from None


class _Ambiguous(Exception):
    """A mask stands where it may mean one of several secrets."""


def _unmasked(edit: Any, shown: Any, real: Any, path: str) -> Any:
    own = canonical_json(shown)
    if own == canonical_json(real):  # nothing of it was masked
        return edit
    if own == canonical_json(edit):
        return real
    if is_object(edit) and is_object(shown) and is_object(real):
        return {
            name: _unmasked(each, shown[name], real[name], f"{path}.{name}" if path else name)
            if name in shown and name in real
            else each
            for name, each in edit.items()
        }
    if is_array(edit) and _MASKED in compact_json(edit) and _MASKED in own:
        raise _Ambiguous(path)
    return edit
