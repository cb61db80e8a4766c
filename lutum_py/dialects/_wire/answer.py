"""The definition of a final answer, of whatever it is asked for with."""

from __future__ import annotations

from typing import Any

from ..._schema.definition import ToolDef
from ..._text.json import shorten
from ...errors import MisuseError

__all__ = ["definition_of"]


def definition_of(answer: Any) -> ToolDef:
    """Take an `Answer`, or the definition that a request carries of it.

    Raises:
        MisuseError: It is neither.
    """
    definition = answer if isinstance(answer, ToolDef) else getattr(answer, "definition", None)
    if not isinstance(definition, ToolDef):
        raise MisuseError(
            f"A final answer is an Answer, not {shorten(answer)}. Write `Answer(Invoice, "
            "by='format')`."
        )
    return definition
