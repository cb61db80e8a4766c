"""Edges: from where a value may come into a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .._call.selector import AnySelector
from .._declare.offer import Named
from .._text.immutable import dataclass
from ..errors import MisuseError
from ._places import Path


@dataclass(frozen=True, slots=True)
class Edge:
    """Say where a value may come from; `USER`, `output(...)` and `argument(...)` are sources.

    Attributes:
        kind: `user`, `output` or `argument`.
        tools: The tools whose outputs or arguments are meant; in a policy their wire names.
        path: The place in them.
        named: The field of the same record that is in the user's words.
        part: Whether words within a text there are meant as well.

    Raises:
        MisuseError: The kind is none of the three, a tool is neither a selector nor a name, or
            `part` is neither True nor False.
    """

    kind: Literal["user", "output", "argument"]
    tools: tuple[Named, ...] = ()
    path: str = ""
    named: str | None = None
    part: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("user", "output", "argument"):
            wish = "'user', 'output' or 'argument'"
            raise MisuseError.of_field("An edge", "kind", wish, self.kind)
        if not isinstance(self.tools, tuple) or not all(
            isinstance(each, AnySelector | str) for each in self.tools
        ):
            raise MisuseError.of_field("An edge", "tools", "selectors or wire names", self.tools)
        MisuseError.check("An edge", "part", "True or False", self.part, bool)


USER: Final = Edge("user", part=True)
"""What the messages of user, developer and system say, and no ephemeral one."""


def output(*tools: Named, path: str = "", named: str | None = None, part: bool = False) -> Edge:
    """Let a value come from a place in outputs of successful calls.

    Args:
        tools: The tools, as selectors or wire names.
        path: The place: names, `[]` for each item, `{}` for each key; empty for the whole output.
        named: A field of the same record, which has to stand in the user's words, less the end of
            a file's name: so the user chose the record.
        part: Whether words within a text there count, and not its whole alone.

    Example:
        >>> output("find_file", path="[].id", named="filename").path
        '[].id'
    """
    return Edge("output", tools, path, named, part)


def argument(*tools: Named, path: str) -> Edge:
    """Let a value come from an argument of an earlier call that succeeded.

    Args:
        tools: The tools, as selectors or wire names; each has a `fill` for that place.
        path: The place in the arguments.

    Example:
        >>> argument("create", path="name").kind
        'argument'
    """
    return Edge("argument", tools, path)


# For example `Rules(fills={("iban",): (USER, output("find", path="iban"))}, sinks=(("to",),))`: an
# account number may come from the user or from `find`, and `to` names who gets to read it all.
class Rules(NamedTuple):
    """Hold what is said of one tool.

    Attributes:
        trusted: Whether nobody from outside writes its results.
        readers: Who may read them; None for everybody.
        fills: For each place the edges by which its values may come.
        texts: For each place of prose the edges of its links, and how many words in a row count.
        sinks: The places that name who gets to read it all; None if it is not a sink.
        is_clean: Whether it is asked about once anything untrusted was read.
    """

    trusted: bool = False
    readers: tuple[str, ...] | None = None
    fills: Mapping[Path, tuple[Edge, ...]] = MappingProxyType({})
    texts: Mapping[Path, tuple[tuple[Edge, ...], int]] = MappingProxyType({})
    sinks: tuple[Path, ...] | None = None
    is_clean: bool = False

    @property
    def edges(self) -> set[Edge]:
        """All edges by which anything may come."""
        of_texts = (edges for edges, _ in self.texts.values())
        return {edge for edges in (*self.fills.values(), *of_texts) for edge in edges}


# Of a tool of which nothing is said.
UNSAID: Final = Rules()
