"""Write a schema for Gemini's `parametersJsonSchema`.

Of the two fields that Gemini has for the parameters of a function, the older `parameters` takes a
dialect of OpenAPI 3.0 without references, constants, tuples and closed objects. The newer
`parametersJsonSchema` takes JSON Schema and ignores the keywords that it does not know, so that
less is lost; it is the one used here. Definitions stay where they are, because it takes references,
though without keywords beside them, and takes recursion only through properties that are not
required. The rules are those of the reference of `responseJsonSchema`, which is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from ... import ToolDef
from ..._text.json import compact_json, is_mapping, shorten
from ...schemas import UNIONS, Node, alternatives, types_in, unchecked_patterns
from ...typing import JsonSchema
from .nodes import (
    ANNOTATIONS,
    STRUCTURE,
    SchemaLoss,
    Writer,
    conjoined,
    cycle_in,
    plain_schema,
    reachable,
    refusal,
    resolve,
)
from .strict import Strictness, decoder_of, strict_schema

_ENFORCED: Final = STRUCTURE | {"format", "minItems", "maxItems", "minimum", "maximum"}
_IN_LIST: Final = ("anyOf", "oneOf", "prefixItems")
_ALONE: Final = ("items", "additionalProperties")


def gemini_schema(tool: str, schema: JsonSchema, losses: list[SchemaLoss]) -> JsonSchema:
    """Rewrite a schema, whose root is an object, for `parametersJsonSchema`.

    Raises:
        ToolDefinitionError: A definition leads back to itself through required properties alone.
    """
    defs: Mapping[str, Node] = schema.get("$defs", {})
    if defs and (cycle := cycle_in(defs, required_only=True)):
        raise refusal(
            tool,
            f"$defs.{cycle[0]}",
            f"the definition leads back to itself ({' → '.join(cycle)}) through properties that "
            "are all required, and Gemini takes recursion only through one that is not.",
            "Give that property a default, as in `children: list[Node] = []`.",
        )
    return _Writer(tool, schema, losses).whole()


class _Writer(Writer):
    def plain(self, node: JsonSchema, path: str) -> Any:
        written: JsonSchema = {}
        for key, part in node.items():
            if key == "discriminator":
                continue  # it repeats what the alternatives say, by references
            # An unknown keyword is sent all the same, because it is ignored today and may be known
            # tomorrow. It is a loss only as long as nobody enforces it.
            written[key] = self.part(key, part, path)
            if key not in _ENFORCED and key not in ANNOTATIONS:
                self.lose(path, key)
        self.constant(written, path)
        return written

    def part(self, key: str, part: Any, path: str) -> Any:
        if key == "properties":
            return {
                name: self.node(inner, f"{path}.{name}" if path else name)
                for name, inner in part.items()
            }
        if key in _IN_LIST:
            place = f"{path}[]" if key == "prefixItems" else path
            return [self.node(inner, place) for inner in part]
        if key in _ALONE:
            return self.node(part, f"{path}[]" if key == "items" else f"{path}.*")
        return part

    def constant(self, written: JsonSchema, path: str) -> None:
        """Write a constant as an enumeration of one, which Gemini knows for texts and numbers."""
        value = written.get("const")
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            del written["const"]
            written["enum"] = [value]
        elif "const" in written:
            self.lose(path, "const")
        for value in written.get("enum", ()):
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                self.lose(path, "enum")
                return


WRAPPER: Final = "value"
"""The one property of the object around a root that is a union, in strict mode."""

_MERGED: Final = frozenset({*UNIONS, "allOf", "discriminator"})
"""What is no more once the parts of a node are merged; a discriminator points into its union."""


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


@lru_cache(maxsize=2048)
def compile_schema(definition: ToolDef, facts: SchemaFacts, strict: bool = False) -> CompiledSchema:
    """Compile the input schema of a tool for one dialect, or give what was compiled before.

    The schema is shared between requests: copy it before it goes out.

    Without `strict` the schema goes out as the author wrote it, save that its root becomes an
    object: a union of models at the root is merged into one object with the properties of all. In
    strict mode the schema is cut down to what the provider enforces token by token. If a dialect
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
    # Other tools have a type, by which pydantic checks what a pattern is about.
    places = list(unchecked_patterns(source)) if definition.is_foreign else []
    unchecked = {
        pattern: f"nothing checks {shorten(pattern)}: it looks around or back, or is too large"
        for _, pattern in places
    }
    rules = facts.strictness if strict else None
    if rules is None:
        losses += [SchemaLoss(path, "pattern", unchecked[pattern]) for path, pattern in places]
        # A union at the root is merged here, so that arguments need no undoing. In strict mode it
        # is wrapped instead: the merged object would let alternatives mix, which strict mode is to
        # prevent.
        schema = object_root(definition.name, source, losses)
        if facts.rewrite is not None:
            schema = facts.rewrite(definition.name, schema, losses)
        return CompiledSchema(schema=schema, decoder=_as_it_is, losses=tuple(losses))
    author, is_wrapped = wrapped_root(definition.name, source, losses)
    schema = strict_schema(definition.name, author, rules, losses, unchecked)
    # Others stand in what is dropped as a whole, such as `not`.
    known = {loss.text for loss in losses}
    losses += [
        SchemaLoss(path, "pattern", unchecked[pattern])
        for path, pattern in places
        if unchecked[pattern] not in known
    ]
    if rules.check is not None:
        rules.check(definition.name, schema)
    decoder: Callable[[Any], Any] = _as_it_is
    # Else what the model writes is already of the author's form, and is not parsed once more.
    if is_wrapped or rules.optional_is_nullable:
        decoder = decoder_of(author, WRAPPER if is_wrapped else None)
    return CompiledSchema(schema=schema, decoder=decoder, losses=tuple(losses))


def _as_it_is(arguments: object) -> Any:
    return arguments


def object_root(tool: str, schema: JsonSchema, losses: list[SchemaLoss]) -> JsonSchema:
    """Return a schema whose root is an object, and whose values need no undoing.

    A root that is a reference is put in its place. A root that is a union of objects is merged into
    one object that takes the properties of all and requires those which all require.

    Raises:
        ToolDefinitionError: An alternative at the root is not an object.
    """
    if schema.get("type") == "object" and not _composed(schema):
        return schema
    defs: Mapping[str, Node] = schema.get("$defs", {})
    merged = _merged_object(tool, schema, defs, losses)
    merged.pop("$defs", None)
    needed = reachable(merged, defs)
    if needed:
        merged["$defs"] = needed
    return merged


def wrapped_root(
    tool: str, schema: JsonSchema, losses: list[SchemaLoss]
) -> tuple[JsonSchema, bool]:
    """Return a schema whose root is an object, and say whether it is one put around a union."""
    defs: Mapping[str, Node] = schema.get("$defs", {})
    # `resolve` first: the root of a Pydantic union may be a reference to the definition that has
    # it. The whole schema goes inside, its texts with it.
    root = resolve(schema, defs)
    if not alternatives(root):
        return object_root(tool, schema, losses), False
    inner = {key: part for key, part in schema.items() if key != "$defs"}
    wrapper: JsonSchema = {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
    }
    if defs:
        wrapper["$defs"] = dict(defs)
    return wrapper, True


def _merged_object(
    tool: str, schema: Node, defs: Mapping[str, Node], losses: list[SchemaLoss]
) -> JsonSchema:
    """Merge a node's references, unions and conjunctions into one object schema.

    Raises:
        ToolDefinitionError: A part of it is not an object.
    """
    node = resolve(schema, defs)
    either = [_merged_object(tool, part, defs, losses) for part in alternatives(node)]
    parts = [_merged_object(tool, part, defs, losses) for part in node.get("allOf", ())]
    plain = {key: part for key, part in node.items() if key not in _MERGED}
    if either:  # what is left by them is not known where they are merged
        plain.pop("unevaluatedProperties", None)
    kinds = types_in(plain)
    if (kinds and "object" not in kinds) or (not kinds and "enum" in plain):
        raise refusal(
            tool,
            "",
            f"the arguments of a tool are one JSON object, but this is {_kind(plain)}.",
            "Put it into a field of a model.",
        )
    plain["type"] = "object"
    plain.setdefault("properties", {})

    def lose(keyword: str) -> None:
        text = "the provider takes no `allOf` here: how its parts differ in it is checked locally"
        losses.append(SchemaLoss("", keyword, text))

    if either:
        parts.append(_either(either, losses, at_most_one="oneOf" in node))
    # Texts are joined below: `conjoined` would keep those of the first part, and the model would
    # read about one alternative only.
    silent = ({k: part for k, part in each.items() if k not in ANNOTATIONS} for each in parts)
    return {**conjoined(plain, silent, lose), **_texts(plain, parts)}


# Of a circle with a `radius` and a square with a `side`, told apart by `kind`, it makes
# {"properties": {"kind": {"enum": ["circle", "square"]}, "radius": ..., "side": ...}, "required":
# ["kind"]}, and says in the description which of them go together.
def _either(parts: list[JsonSchema], losses: list[SchemaLoss], *, at_most_one: bool) -> JsonSchema:
    if len(parts) == 1:
        return parts[0]
    offered: dict[str, list[object]] = {}
    for part in parts:
        for name, node in part["properties"].items():
            offered.setdefault(name, []).append(node)
    required = [name for name in offered if all(name in part.get("required", ()) for part in parts)]
    either: JsonSchema = {
        "type": "object",
        "properties": {name: _any_of(nodes) for name, nodes in offered.items()},
        "description": _forms(parts, at_most_one=at_most_one),
    }
    if required:
        either["required"] = required
    if all(part.get("additionalProperties") is False for part in parts):
        either["additionalProperties"] = False
    losses.append(
        SchemaLoss(
            "",
            "anyOf",
            "the provider takes no union here: it is offered one object with the properties of "
            "all alternatives, and which of them go together is checked locally",
        )
    )
    return either


def _texts(plain: JsonSchema, parts: list[JsonSchema]) -> JsonSchema:
    texts = [plain.get("description"), *(part.get("description") for part in parts)]
    said = list(dict.fromkeys(text for text in texts if text))
    return {"description": "\n\n".join(said)} if said else {}


def _any_of(nodes: list[Any]) -> Any:
    different: list[Any] = []
    for node in nodes:
        if node not in different:
            different.append(node)
    if len(different) == 1:
        return different[0]
    # Constants become one enumeration, as for the tag of a union: `anyOf` of constants says the
    # same in many more words.
    values: list[Any] = []
    for node in different:
        if not is_mapping(node) or node.keys() - {"const", "enum", "type", "title"}:
            return {"anyOf": different}
        if "const" not in node and "enum" not in node:
            return {"anyOf": different}
        values.extend([node["const"]] if "const" in node else node["enum"])
    kinds = {compact_json(node.get("type")): node.get("type") for node in different}
    if len(kinds) > 1:
        return {"anyOf": different}
    kind = next(iter(kinds.values()))
    return {"enum": values} if kind is None else {"enum": values, "type": kind}


def _forms(parts: list[JsonSchema], *, at_most_one: bool) -> str:
    forms: list[str] = []
    for index, part in enumerate(parts, 1):
        required = part.get("required", ())
        fields = [] if part["properties"] else list(required)
        for name, node in part["properties"].items():
            shown = name
            if is_mapping(node) and "const" in node:
                shown += f" = {compact_json(node['const'])}"
            fields.append(shown if name in required else f"{shown} (optional)")
        title = part.get("title", f"form {index}")
        about = part.get("description")
        line = f"- {title}: {', '.join(fields) or 'no arguments'}"
        forms.append(f"{line}. {about}" if about else line)
    # `anyOf` of {"required": ["paths"]} and {"required": ["scopes"]} is a condition: both may be
    # given. Alternatives with properties of their own are values of different types.
    is_condition = not at_most_one and all(
        part.get("required") and not part["properties"] for part in parts
    )
    how_many = "at least" if is_condition else "exactly"
    return f"Give {how_many} one of these forms:\n" + "\n".join(forms)


def _composed(schema: JsonSchema) -> bool:
    return any(key in schema for key in ("$ref", "allOf", *UNIONS))


def _kind(node: JsonSchema) -> str:
    if "enum" in node:
        return f"one of {compact_json(node['enum'])}"
    return f"of type {compact_json(node.get('type'))}"
