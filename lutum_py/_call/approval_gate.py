"""The approval that a tool asks for where it is declared: the last gate, whatever the hooks are.

Conditions come from the tool and from all that it is nested in; one that says yes is enough. The
call then waits like one that a gate suspended, under the digest of its final arguments.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any, TypeAlias

from .._schema.schema_reader import branches, localized
from .._text.escaping import visible
from .._text.json import compact_json, cut, shorten
from .._text.suggestion import names_for_message
from ..errors import ToolDefinitionError
from .member_options import UNSAID, Condition, MemberOptions
from .outcomes import (
    SuspendedCall,
    again,
    ask,
    check_untouched,
    is_answered,
    no_decision,
    shown_input,
)
from .steps import Steps

if TYPE_CHECKING:
    from .._schema.definition import ToolDef
    from .call import AnyToolCall
    from .decision_log import DecisionRecord

__all__ = ["Conditions", "ask_approval", "check_message", "conditions_of"]

Conditions: TypeAlias = tuple[Condition, ...]
"""What says whether a call needs an approval; none for a tool that never does."""

_NAME = "needs_approval"
_LONGEST = 200


def conditions_of(options: MemberOptions) -> Conditions:
    """Give what asks for an approval of a member's calls: its groups first, then itself."""
    own = options.needs_approval
    return options.asked_around if own is UNSAID or own is False else (*options.asked_around, own)


def ask_approval(call: AnyToolCall, records: list[DecisionRecord]) -> Steps[SuspendedCall | None]:
    """Let a call wait where it needs an approval that it has not.

    Args:
        call: The call, with its final input; it is not changed.
        records: Takes a record of the decision.

    Raises:
        HookError: A condition raised, or gave something else than True or False.
    """
    for condition in call.selector.approval:
        needed = True
        if condition is not True:
            shown = shown_input(call)
            needed = yield from ask(_NAME, condition, call, shown)
            check_untouched(_NAME, call, shown)
            if not isinstance(needed, bool):
                raise no_decision(_NAME, call, needed, "True or False")
        if needed:
            return _suspended(call, records)
    return None


def _suspended(call: AnyToolCall, records: list[DecisionRecord]) -> SuspendedCall | None:
    from .._context.suspension import SuspendTicket  # needed by few, at the first question
    from .decision_log import record

    ticket = SuspendTicket(message=_message(call))
    record(records, call, _NAME, "gate", "suspend", ticket.action)
    if is_answered(call, call.digest):
        return None
    return again(call).suspend_by(_NAME, ticket)


def _message(call: AnyToolCall) -> str:
    template = call.selector.options.approval_message
    if template is None:
        return f"Tool `{call.name}` needs an approval."
    arguments = call.spec.shown_data(call._input) or {}
    return "".join(
        text + ("" if name is None else _word(arguments.get(name)))
        for text, name, _, _ in Formatter().parse(template)
    )


def _word(value: Any) -> str:
    return cut(visible(value if isinstance(value, str) else compact_json(value)), _LONGEST)


def check_message(message: str | None, definition: ToolDef) -> None:
    """Refuse a message that names what the tool does not take.

    Raises:
        ToolDefinitionError: It does, or it is no text of plain names in braces.
    """
    if message is None:
        return
    place = f"Tool `{definition.name}`: `approval_message={shorten(message)}`"
    if not isinstance(message, str):
        raise ToolDefinitionError(f"{place} is no text. Write `'Pay {{amount}}?'`, for example.")
    root = localized(definition.input_schema)
    known = {name for each in branches(root, [root]) for name in each.get("properties", ())}
    try:
        parts = list(Formatter().parse(message))
    except ValueError as error:
        raise ToolDefinitionError(
            f"{place} has a brace without its other half ({error}). Write `{{{{` for a brace."
        ) from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion:
            raise ToolDefinitionError(
                f"{place} formats `{name}`. Name the argument alone, as in `{{{name}}}`."
            )
        if name not in known:
            raise ToolDefinitionError(
                f"{place} names {shorten(name)}, which is no argument of the tool. It has "
                f"{names_for_message(sorted(known))}."
            )
