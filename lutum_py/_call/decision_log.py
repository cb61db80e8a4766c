"""Who decided what about a call, and changed what in its arguments: records, and the log.

All of it is to be looked at: what is secret in arguments is masked here.

It imports `logging`, so what a first tool needs does not import it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .._schema.secrets import MASK
from .._text.escaping import visible, visible_json
from .._text.json import canonical_json, compact_json
from .call_state import CallState
from .line import HOOK_PHASES

if TYPE_CHECKING:
    from .._context.suspension import Decision

LOGGER = logging.getLogger("lutum.tool_hook")

DecisionPhase: TypeAlias = Literal["hook", "gate", "function"]
DecisionKind: TypeAlias = Literal["run_normally", "complete", "reject", "block", "suspend"]


class DecisionRecord(NamedTuple):
    """Say who decided what about a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        hook: The name of the hook or gate.
        phase: `hook`, `gate`, or `function` for a plain function used as hooks.
        decision: What it decided.
        reason: Why, for `reject` and `block`; the ticket's action for `suspend`.
    """

    call_id: str
    tool: str
    hook: str
    phase: DecisionPhase
    decision: DecisionKind
    reason: str | None = None


def decisions_in(call: CallState, own: Collection[object]) -> list[tuple[float, DecisionRecord]]:
    """Return what hooks and gates decided about a call, each with its time.

    Args:
        call: The call; a hook that let it pass decided nothing.
        own: The times of asking that count.
    """
    return [
        (
            step.at or 0.0,
            DecisionRecord._make((call.id, call.name, step.by, step.phase, step.said, step.reason)),
        )
        for step in call._line
        if step.said is not None and step.phase in HOOK_PHASES and step.detail in own
    ]


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


def edits_of(call: CallState) -> Iterator[tuple[float, EditRecord]]:
    """Read from the line of a call what people changed in its arguments, and when: as one edit.

    An edit is `answered` with `said` edit; what is changed from there to the next thing that
    happens to the call is its outcome: first by the person, then by hooks.
    """
    # Of `proposed {"cents": 500} suspended answered (edit) changed (decision) {"cents": 400} asked
    # changed (hook) {"cents": 300} begun`: 500 was shown, 400 is the edit, 300 is final.
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
    call: CallState,
    earlier: EditRecord | None,
    decision: Decision,
    texts: tuple[bytes | None, bytes | None, bytes | None],
) -> EditRecord:
    """Say what one edit changed, and make an earlier one of the same call part of it."""
    arguments = call.spec.arguments
    values = [call._input if text is None else arguments.from_text(text) for text in texts]
    shown, edited, final = (call.spec.shown(value) for value in values)
    names = changed_names(arguments.to_data(values[0]), arguments.to_data(values[2]))
    # A person may edit a call that came back to wait. For whoever reads the record it is one edit,
    # from what was shown first to what runs.
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


def log(call: CallState, decision: str, reason: str | None, input: Any) -> None:
    """Log a decision at INFO, where that is wanted.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` where the call goes on, else `reason`.
    """
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    name = visible(call.name)
    extra: dict[str, Any] = {
        "tool_name": name,
        "tool_call_id": visible(call.id),
        "decision": decision,
    }
    if decision == "run_normally":
        extra["effective_input_json"] = visible_json(call.spec.shown_json(input))
    else:
        extra["reason"] = None if reason is None else visible(reason)
    LOGGER.info("%s: %s (call %r)", decision, name, call.id, extra=extra)
