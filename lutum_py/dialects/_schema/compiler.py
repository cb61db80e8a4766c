"""Compile a tool's input schema into what one provider takes, and say what was lost on the way.

A provider takes a subset of JSON Schema, and in its strict mode a small one. The author's schema is
rewritten into that subset so that every value which the author's type accepts has a form that the
compiled schema accepts, and the decoder turns that form back. What the provider does not enforce is
listed, because it is still checked where the call is decoded. What has no form at all is refused
here, when the tool is offered, and not by the provider in the middle of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..._schema.definition import ToolDef
from ..._schema.schema_reader import JsonSchema
from .nodes import SchemaLoss, plain_schema, refusal
from .restore import decoder_of
from .root import WRAPPER, object_root, wrapped_root
from .strict import Strictness, strict_schema


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """Hold what a provider is told about a tool's arguments, and the way back.

    Attributes:
        schema: The schema for the provider: plain data, and the caller's own to change.
        decoder: Turns arguments in the form of `schema` into the form of the author's schema. It
            takes and gives JSON text, or a dict; what it cannot read comes back as it was.
        losses: Every rule of the author's schema that the provider does not enforce. The library
            still checks them all where a call is decoded.
    """

    schema: JsonSchema
    decoder: Callable[[Any], Any]
    losses: tuple[SchemaLoss, ...]


class SchemaFacts(Protocol):
    """Say what a dialect's facts have about schemas."""

    @property
    def strictness(self) -> Strictness | None: ...

    @property
    def rewrite(self) -> Callable[[str, JsonSchema, list[SchemaLoss]], JsonSchema] | None: ...


def compile_schema(
    definition: ToolDef, facts: SchemaFacts, *, strict: bool = False
) -> CompiledSchema:
    """Compile the input schema of a tool for one dialect.

    Without `strict` the schema goes out as the author wrote it, save that its root becomes an
    object: a union of models at the root is merged into one object with the properties of all. In
    strict mode the schema is cut down to what the provider enforces token by token. Where a dialect
    has no strict mode for a single tool, `strict` changes nothing.

    Args:
        definition: The tool.
        facts: What is known of the dialect.
        strict: Whether the tool is offered in the provider's strict mode.

    Returns:
        The schema, the decoder of arguments, and what the provider will not enforce.

    Raises:
        ToolDefinitionError: The schema has no form in the dialect; the text names path and remedy.

    Example:
        >>> from lutum_py.dialects._facts import facts_of
        >>> limit = {"type": "integer", "default": 5}
        >>> tool = ToolDef.from_json_schema(
        ...     name="t", input_schema={"properties": {"n": limit}, "type": "object"}
        ... )
        >>> compiled = compile_schema(tool, facts_of("openai_chat"), strict=True)
        >>> compiled.schema["properties"]["n"]["type"]
        ['integer', 'null']
        >>> compiled.decoder('{"n":null}')
        '{}'
    """
    try:
        return _compiled(definition, facts, strict)
    except RecursionError:
        raise refusal(
            definition.name,
            "",
            "its definitions refer to each other in too long a chain.",
            "Let one definition say what several do.",
        ) from None


def _compiled(definition: ToolDef, facts: SchemaFacts, strict: bool) -> CompiledSchema:
    losses: list[SchemaLoss] = []
    source = plain_schema(definition, losses)
    rules = facts.strictness if strict else None
    if rules is None:
        # A union at the root is merged here, so that arguments need no undoing. In strict mode it
        # is wrapped instead: the merged object would let alternatives mix, which strict mode is to
        # prevent.
        schema = object_root(definition.name, source, losses)
        if facts.rewrite is not None:
            schema = facts.rewrite(definition.name, schema, losses)
        return CompiledSchema(schema=schema, decoder=_as_it_is, losses=tuple(losses))
    author, is_wrapped = wrapped_root(definition.name, source, losses)
    schema = strict_schema(definition.name, author, rules, losses)
    if rules.check is not None:
        rules.check(definition.name, schema)
    decoder: Callable[[Any], Any] = _as_it_is
    # Else what the model writes is already of the author's form, and is not parsed once more.
    if is_wrapped or rules.optional_is_nullable:
        decoder = decoder_of(author, WRAPPER if is_wrapped else None)
    return CompiledSchema(schema=schema, decoder=decoder, losses=tuple(losses))


def _as_it_is(arguments: Any) -> Any:
    return arguments
