"""Write a schema for Gemini's `parametersJsonSchema`.

Of the two fields that Gemini has for the parameters of a function, the older `parameters` takes a
dialect of OpenAPI 3.0 without references, constants, tuples and closed objects. The newer
`parametersJsonSchema` takes JSON Schema and ignores the keywords that it does not know, so that
less is lost; it is the one used here. Definitions stay where they are, because it takes references,
though without keywords beside them, and takes recursion only through properties that are not
required. The rules are those of the reference of `responseJsonSchema`, which is of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._schema.schema_reader import JsonSchema, Node
from .nodes import ANNOTATIONS, STRUCTURE, SchemaLoss, cycle_in, refusal
from .writer import Writer

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
