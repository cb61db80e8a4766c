"""Find definitions of a schema that lead back to themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..._schema.schema_reader import Node, subschemas
from .nodes import reference_of


def cycle_in(
    schema: Node, defs: Mapping[str, Node], *, required_only: bool = False
) -> tuple[str, ...]:
    """Return the names of the definitions of one cycle, its first name repeated at the end.

    Args:
        schema: The root.
        defs: Its definitions.
        required_only: Whether a way through a property that is not required does not count.

    Returns:
        The names in order, or nothing where no definition leads back to itself.
    """
    # Definitions that were searched to their ends without meeting a cycle. Without this,
    # definitions that share others are searched once for each way there, which doubles at each
    # level.
    finished: set[str] = set()

    # Depth first, with the way so far: `Tree → Leaf → Tree` is found when `Tree` is met on its own
    # way. A set of all that was met would take two ways to one definition for a cycle.
    def search(name: str, way: tuple[str, ...]) -> tuple[str, ...]:
        if name in way:
            return (*way[way.index(name) :], name)
        if name in finished:
            return ()
        for target in _targets(defs[name], required_only):
            if found := search(target, (*way, name)):
                return found
        finished.add(name)
        return ()

    for start in dict.fromkeys([*_targets(schema, False), *defs]):
        if found := search(start, ()):
            return found
    return ()


def _targets(node: Node, required_only: bool) -> Iterator[str]:
    name = reference_of(node)
    if name is not None:
        yield name
    for keyword, property_name, part in subschemas(node):
        if keyword == "$defs":
            continue
        # A value may end where a property may be left out, so a way through one is no endless one.
        optional = keyword == "properties" and (
            isinstance(node, bool) or property_name not in node.get("required", ())
        )
        if not (optional and required_only):
            yield from _targets(part, required_only)
