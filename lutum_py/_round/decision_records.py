"""What hooks, gates and people decided about calls, read from the histories for whoever looks.

What is secret in arguments is masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from .._call.call_state import DecodedCall
from .._call.decisions import DecisionKind
from .._context.suspension import Decision
from .._schema.arguments import InputText
from .._schema.secrets import MASK
from .._text.immutable import dataclass
from .._text.json import canonical_json, compact_json

DecisionPhase: TypeAlias = Literal["execution", "gate"]

_PHASES: Final = get_args(DecisionPhase)


class DecisionRecord(NamedTuple):
    """Say who decided what about a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        hook: The name of the hook or gate.
        phase: `execution` for hooks, rules and plain functions, or `gate`.
        decision: What it decided.
        reason: Why, for `reject` and `block`; the ticket's action for `suspend`.
    """

    call_id: str
    tool: str
    hook: str
    phase: DecisionPhase
    decision: DecisionKind
    reason: str | None = None

    @classmethod
    def of(cls, call: DecodedCall) -> Iterator[tuple[float, DecisionRecord]]:
        """Give what hooks and gates decided about a call, each with its time.

        A gate that let it pass decided nothing.
        """
        for step in call.history:
            if step.kind == "reviewed" and step.verdict is not None and step.phase in _PHASES:
                said = (call.id, call.name, step.by, step.phase, step.verdict, step.reason)
                yield step.at, cls._make(said)


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

    @classmethod
    def of(cls, call: DecodedCall) -> Iterator[tuple[float, EditRecord]]:
        """Read from the history of a call what people changed in its arguments, as one edit.

        An edit is `decided` with `verdict` edit; what is changed from there to the next thing that
        happens to the call is its outcome: first by the person, then by hooks.
        """
        # Of `proposed {"cents": 500} suspended decided (edit) changed (decision) {"cents": 400}
        # reviewed changed (hook) {"cents": 300} started`: 500 was shown, 400 is the edit, 300 is
        # final.
        texts: list[InputText | None] = []  # the arguments before each step
        text: InputText | None = None
        history = call.history
        for step in history:
            texts.append(text)
            if step.kind in ("proposed", "changed"):
                text = step.detail
        found: EditRecord | None = None
        at = 0.0
        for place, answered in enumerate(history):
            if answered.kind != "decided" or answered.verdict != "edit":
                continue
            before = edited = final = texts[place]
            for step in history[place + 1 :]:
                if step.kind == "changed":
                    final = step.detail
                    if step.phase == "decision":
                        edited = final
                elif step.kind != "reviewed":
                    break
            found = _noted(call, found, answered.detail, (before, edited, final))
            at = answered.at
        if found is not None:
            yield at, found


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the arguments that differ, in the order in which they stand."""
    names = dict.fromkeys((*before, *after))
    return tuple(name for name in names if not _is_same(name, before, after))


def _is_same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if name not in before or name not in after:
        return False
    return canonical_json(before[name]) == canonical_json(after[name])


def _noted(
    call: DecodedCall,
    earlier: EditRecord | None,
    decision: Decision,
    texts: tuple[InputText | None, InputText | None, InputText | None],
) -> EditRecord:
    """Say what one edit changed, and make an earlier one of the same call part of it."""
    before, by_person, last = map(call.text_of, texts)
    shown, edited, final = map(call.spec.shown_input, (before, by_person, last))
    names = call.spec.shown_names(changed_names(before.data, last.data))
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
