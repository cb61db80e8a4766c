"""The approval that a tool asks for where it is declared: the last gate, whatever the hooks are.

Conditions come from the tool and from all that it is nested in; one that says yes is enough. The
call then waits like one that a gate suspended, under the digest of its final arguments. It is asked
for by `deciding.ask_approval`.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any

from .._schema.schema_reader import names_in
from .._text.escaping import visible
from .._text.json import compact_json, cut, shorten
from .._text.suggestion import names_for_message
from ..errors import ToolDefinitionError
from .asked import question_of

if TYPE_CHECKING:
    from .._schema.definition import ToolDef
    from .call_state import CallState

_LONGEST = 200


def question_about(call: CallState) -> str:
    """Say what a person is asked about a call: its arguments as they are shown, secrets masked."""
    template = call.selector.options.approval_message
    shown = call.spec.shown(call._input)
    if template is None:
        return question_of(call.name, shown)
    arguments: dict[str, Any] = shown or {}
    return "".join(
        text + ("" if name is None else _word(arguments.get(name)))
        for text, name, _, _ in Formatter().parse(template)
    )


def _word(value: Any) -> str:
    return cut(visible(value if isinstance(value, str) else compact_json(value)), _LONGEST)


def check_message(message: str, definition: ToolDef) -> None:
    """Refuse a message that names what the tool does not take.

    Raises:
        ToolDefinitionError: It does, or it is no text of plain names in braces.
    """
    place = f"Tool `{definition.name}`: `approval_message={shorten(message)}`"
    if not isinstance(message, str):
        raise ToolDefinitionError(f"{place} is no text. Write `'Pay {{amount}}?'`, for example.")
    known = names_in(definition.input_schema)
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
                f"{names_for_message(known)}."
            )
