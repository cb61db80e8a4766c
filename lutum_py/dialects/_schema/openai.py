"""What OpenAI's strict mode takes, and up to which sizes.

(OpenAI's guide to structured outputs, as of 2026.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..._schema.schema_reader import JsonSchema, Node, subschemas
from .nodes import reference_of, refusal
from .strict import FORMATS, Strictness

_PROPERTIES: Final = 5_000
_LEVELS: Final = 10
_TEXT: Final = 120_000
_VALUES: Final = 1_000
_LONG_ENUM: Final = 250
_LONG_ENUM_TEXT: Final = 15_000


def check_openai_limits(tool: str, schema: JsonSchema) -> None:
    """Refuse a schema that is too large for OpenAI's strict mode.

    Raises:
        ToolDefinitionError: It has too many properties, levels, enumerated values or letters.
    """
    # Counted here and not left to the API: it refuses the whole request, in the middle of a
    # conversation, and does not say which of its tools is too large.
    properties = values = letters = 0
    waiting: list[Node] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names = [*node.get("properties", ()), *node.get("$defs", ())]
            enumerated = node.get("enum", ())
            texts = [value for value in enumerated if isinstance(value, str)]
            written = sum(map(len, texts))
            properties += len(node.get("properties", ()))
            values += len(enumerated)
            constant = node.get("const")
            letters += sum(map(len, names)) + written
            letters += len(constant) if isinstance(constant, str) else 0
            if len(enumerated) > _LONG_ENUM and written > _LONG_ENUM_TEXT:
                _refuse(
                    tool,
                    f"an enumeration of {len(enumerated)} values",
                    written,
                    "letters in one long enumeration",
                    _LONG_ENUM_TEXT,
                )
        waiting.extend(part for _, _, part in subschemas(node))
    for what, number, limit in (
        ("properties", properties, _PROPERTIES),
        ("enumerated values", values, _VALUES),
        ("letters in names and enumerated values", letters, _TEXT),
        ("levels of objects", _levels(schema, schema.get("$defs", {}), {}), _LEVELS),
    ):
        if number > limit:
            _refuse(tool, "the schema", number, what, limit)


def _levels(node: Node, defs: Mapping[str, Node], known: dict[str, int]) -> int:
    """Count how deep objects stand in each other; a definition that recurs counts once."""
    name = reference_of(node)
    if name is not None:
        if name not in known:
            known[name] = 0  # as long as it is met inside of itself
            known[name] = _levels(defs[name], defs, known)
        return known[name]
    inner = [
        _levels(part, defs, known) for keyword, _, part in subschemas(node) if keyword != "$defs"
    ]
    own = 1 if isinstance(node, dict) and "properties" in node else 0
    return own + max(inner, default=0)


def _refuse(tool: str, where: str, number: int, what: str, limit: int) -> None:
    raise refusal(
        tool,
        "",
        f"{where} has {number} {what}, and OpenAI takes at most {limit} in strict mode.",
        "Make it smaller, split the tool, or offer it without `strict`.",
    )


OPENAI: Final = Strictness(
    provider="OpenAI",
    optional_is_nullable=True,
    recursion=True,
    keywords=frozenset(
        {
            "pattern",
            "format",
            "multipleOf",
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "minItems",
            "maxItems",
        }
    ),
    formats=FORMATS,
    min_items=None,
    kept=frozenset({"title", "description"}),
    max_optional=None,
    max_unions=None,
    check=check_openai_limits,
)
