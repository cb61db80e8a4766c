"""What both writers of schemas share: definitions put in place, and conjunctions made one node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..._schema.schema_reader import JsonSchema, Node
from .conjunction import conjoined
from .nodes import SchemaLoss, reference_of, refusal, resolve

_MOST: Final = 20_000
"""Nodes of one written schema: definitions that are put in place may double at each level."""


class Writer(ABC):
    """Rewrite the nodes of one schema.

    Args:
        tool: The name of the tool, for messages.
        schema: The author's schema, whose root is an object.
        losses: Takes what the provider will not enforce.
    """

    def __init__(self, tool: str, schema: JsonSchema, losses: list[SchemaLoss]) -> None:
        self.tool = tool
        self.defs: Mapping[str, Node] = schema.get("$defs", {})
        self._schema = schema
        self._losses = losses
        # The definitions that are being put in place, outermost first: one that is met again inside
        # itself stays a reference, or writing would never end.
        self._way: list[str | None] = []
        self._left = _MOST

    def whole(self) -> JsonSchema:
        """Write the schema, its definitions included."""
        written: JsonSchema = self.node(
            {k: part for k, part in self._schema.items() if k != "$defs"}, ""
        )
        if self.defs:
            parts = self.defs.items()
            written["$defs"] = {name: self.node(part, f"$defs.{name}") for name, part in parts}
        return written

    @abstractmethod
    def plain(self, node: JsonSchema, path: str) -> Any:
        """Write a node that is neither a reference nor a conjunction."""

    def node(self, node: Node, path: str) -> Any:
        """Write a node."""
        self._spend(path)
        if isinstance(node, bool):
            return node
        if "$ref" in node:
            return dict(node) if node.keys() == {"$ref"} else self._in_place(node, path)
        if "allOf" in node:
            return self.node(self._conjoined(node, path), path)
        return self.plain(node, path)

    def lose(self, path: str, keyword: str, text: str | None = None) -> None:
        """Note that the provider will not enforce a keyword."""
        said = text or f"{keyword} not enforced by the provider; checked locally"
        self._losses.append(SchemaLoss(path, keyword, said))

    def _spend(self, path: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise refusal(
                self.tool,
                path,
                f"written out, the schema has more than {_MOST:,} parts, because definitions are "
                "put in place of references that have words beside them, and of `allOf`.",
                "Take the words beside `$ref` away, or let the definitions say them.",
            )

    def _in_place(self, node: JsonSchema, path: str) -> Any:
        """Put a definition where words stand beside its reference, which no provider takes.

        Inside itself a definition stays a reference, and the words are lost.
        """
        name = reference_of(node)
        if name in self._way:
            self.lose(
                path, "$ref", "the words beside a reference to a schema that holds it are left out"
            )
            return {"$ref": node["$ref"]}
        self._way.append(name)
        written = self.node(resolve(node, self.defs), path)
        self._way.pop()
        return written

    def _conjoined(self, node: JsonSchema, path: str) -> JsonSchema:
        """Merge the parts of `allOf` into the node that holds them."""
        first, *others = self._parts(node, path)
        text = "the provider takes no `allOf`, and the parts of this one that differ in"

        def lose(keyword: str) -> None:
            self.lose(path, keyword, f"{text} `{keyword}` are checked locally")

        return conjoined(first, others, lose)

    def _parts(self, node: JsonSchema, path: str) -> Iterator[JsonSchema]:
        self._spend(path)
        yield {key: part for key, part in node.items() if key != "allOf"}
        for part in node.get("allOf", ()):
            yield from self._parts(resolve(part, self.defs), path)
