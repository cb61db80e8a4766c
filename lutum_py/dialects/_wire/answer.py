"""What a request says of a final answer that is the text of the model."""

from __future__ import annotations

from typing import Any

from ..._schema.definition import JsonSchema, ToolDef
from ..._text.json import copy_json, shorten
from ...errors import MisuseError, ToolDefinitionError
from .._facts import Facts
from .offered import compiled

__all__ = ["answer_schema"]


def answer_schema(answer: Any, facts: Facts, *, strict: bool) -> tuple[ToolDef, JsonSchema]:
    """Give the definition of a final answer, and its schema as the dialect writes it.

    Args:
        answer: An `Answer`, or the definition that a request carries of it.
        facts: What is known of the dialect.
        strict: Whether the provider holds the text to a schema of its strict mode.

    Raises:
        MisuseError: It is neither.
        ToolDefinitionError: Its name or its schema has no form in the dialect.
    """
    definition = answer if isinstance(answer, ToolDef) else getattr(answer, "definition", None)
    if not isinstance(definition, ToolDef):
        raise MisuseError(
            f"A final answer is an Answer, not {shorten(answer)}. Write `Answer(Invoice, "
            "by='format')`."
        )
    try:
        return definition, copy_json(compiled(definition, facts, strict).schema)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(
            f"{facts.name} cannot hold a text to the answer {definition.name!r}. Ask for it with "
            f"`by='tool'`, or mend its type: {error}"
        ) from error
