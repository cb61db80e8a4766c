"""`remote_tools`: the tools of a server as a toolset, listed once and checked one by one."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, Unpack

from mcp import Client, ClientSession
from mcp.types import Tool

from .. import ToolDef, Toolset
from .._text.escaping import escape_unprintable, meant_by
from .._text.immutable import SetOnce
from .._text.json import compact_json, cut, shorten
from ..errors import MisuseError, ProviderError, ToolDefinitionError
from ..schemas import (
    SchemaChecker,
    schema_checker,
    spec_from_definition,
    stand_in,
    toolset_of_specs,
)
from ..typing import ToolSpec
from ._connection import (
    NAME,
    Change,
    Connection,
    changes,
    digest_of_all,
    hides,
    legible,
    legible_schema,
    one_line,
    shape_of,
    without_words,
)
from ._remote_tool import RemoteOptions, RemoteTool, Rules
from ._served_call import capabilities_of, is_idempotent

AnySpec: TypeAlias = ToolSpec[Any, Any]
_LONGEST_NAME: Final = 200
_LONGEST_WARNING: Final = 10_000


@dataclass(frozen=True, slots=True)
class RefusedTool:
    """A tool that a server lists and that cannot be used.

    Attributes:
        name: What the server calls it; what does not print is spelt out.
        reason: Why it is refused, on one line.
    """

    name: str
    reason: str


class RefusedToolWarning(UserWarning):
    """A tool that the server lists, or that was asked for, is not in the toolset."""


class RemoteTools(SetOnce):
    """The tools of one server, as they were when it was asked; `remote_tools` makes it.

    Attributes:
        toolset: A toolset like any other: nest it, offer it, hook it. It cannot be pickled.
        listed: What the server said about each tool in it, by wire name.
        refused: The tools that are not in it, and why.
        digest: A digest of all that is in `listed`, words included: pin it to see any change.
    """

    __slots__ = ("_fingerprint", "_rules", "digest", "listed", "refused", "toolset")

    _way: ClassVar[str] = "it is what the server listed. Write `tools = await tools.refresh()`."

    toolset: type[Toolset]
    listed: Mapping[str, Tool]
    refused: tuple[RefusedTool, ...]
    digest: str

    def __init__(self, rules: Rules, tools: list[Tool]) -> None:
        specs: list[AnySpec] = []
        listed: dict[str, Tool] = {}
        refused: list[tuple[str, str]] = []
        wires: list[tuple[Tool, str]] = []
        for tool in tools:
            if NAME.fullmatch(tool.name):
                wires.append((tool, _wire_name_of(rules, tool.name)))
            else:
                why = "its name is not made of 1 to 128 of A-Z, a-z, 0-9, `.`, `_` and `-`"
                refused.append((tool.name, why))
        # Two tools may be told apart on the server and not here: `a.b` and `a_b` are one wire name,
        # and a name may be what stands for another. Counter({"a_b": 2, ...}): both are refused, for
        # to take the first would give a server a way to put its tool in place of another.
        count = Counter(each for _, wire in wires for each in (wire, stand_in(wire)))
        for tool, wire in wires:
            try:
                specs.append(_spec(rules, tool, wire, max(count[wire], count[stand_in(wire)])))
            except ToolDefinitionError as error:
                refused.append((tool.name, str(error)))
            else:
                listed[wire] = tool
        known = {tool.name for tool in tools}
        for name in rules.only or ():
            if name not in known:
                why = f"the server lists no tool of this name.{meant_by(name, known)}"
                refused.append((name, why.removesuffix(".")))
        self._rules = rules
        self.listed = MappingProxyType(listed)
        # Both hold words of the server, which are shown to people in a terminal.
        self.refused = tuple(
            RefusedTool(escape_unprintable(cut(name, _LONGEST_NAME)), one_line(why))
            for name, why in refused
        )
        self.digest = digest_of_all(listed.values())
        self._fingerprint = _fingerprint(tools)
        self.toolset = toolset_of_specs(rules.name, specs)

    async def refresh(self) -> RemoteTools:
        """Ask the server again, between two turns.

        Returns:
            The same object where nothing changed, else a new one; make hooks for its toolset.

        Raises:
            MCPError: The server refused, or is gone.
            ProviderError: It lists too many tools, or what it sent is not a listing.
        """
        # The same object for the same listing: hooks and saved plans belong to its toolset, and
        # would have to be made again for another one.
        tools = await _listed(self._rules, fresh=True)
        if self._fingerprint is not None and self._fingerprint == _fingerprint(tools):
            return self  # checking thousands of schemas takes longer than listing them
        made = RemoteTools(self._rules, tools)
        _warn(made, self.refused)
        return made

    def changed_since(self, before: RemoteTools) -> dict[str, Change]:
        """Say what has changed, by wire name.

        Args:
            before: What the same server listed at another time.

        Returns:
            `added`, `removed`, `schema` (anything but words) or `text` (words alone) for each
            tool that changed.
        """
        return changes(before.listed, self.listed)

    def __repr__(self) -> str:
        return (
            f"<tools of {self._rules.name}: {len(self.listed)} listed, {len(self.refused)} refused>"
        )


async def remote_tools(
    client: Client | ClientSession, name: str, **options: Unpack[RemoteOptions]
) -> RemoteTools:
    """List the tools of a server once, and make a toolset of them.

    Args:
        client: An open `mcp.Client`, or a session that has been initialised.
        name: What the toolset is called; saved plans do not keep it.
        options: Which tools are taken, and how far the server is believed: see `RemoteOptions`.

    Raises:
        MisuseError: The client is not open, or an option has another kind.
        MCPError: The server refused to list its tools, or is gone.
        ProviderError: It lists too many tools, or what it sent is not a listing.
        ToolDefinitionError: `name` is not a Python name, or `timeout` not a number of seconds.

    Warns:
        RefusedToolWarning: Tools are left out; it names each of them, and `refused` has them.
    """
    rules = Rules(connection=Connection(client), name=name, **options)
    # An empty toolset: what is wrong with these is to be found without asking, and not per tool.
    toolset_of_specs(name, ())
    ToolDef.from_json_schema(name=name, input_schema={}, timeout=rules.timeout)
    tools = await _listed(rules, fresh=False)
    known = {tool.name for tool in tools}
    for unknown in sorted((rules.capabilities or {}).keys() - known):
        raise MisuseError(
            f"capabilities= names {shorten(unknown)}, which the server does not list."
            f"{meant_by(unknown, known)} Give the names as the server has them."
        )
    made = RemoteTools(rules, tools)
    _warn(made)
    return made


def _warn(made: RemoteTools, known: tuple[RefusedTool, ...] = ()) -> None:
    """Name the tools that are left out, and that were not known to be."""
    left_out = [f"`{each.name}`: {each.reason}" for each in made.refused if each not in known]
    if left_out:
        text = cut("; ".join(left_out), _LONGEST_WARNING)
        warnings.warn(
            f"Left out of the tools of {made.toolset.__name__}: {text}. See `refused`.",
            RefusedToolWarning,
            stacklevel=3,
        )


def _wire_name_of(rules: Rules, name: str) -> str:
    """Say what a tool of the server is called here."""
    made: object = name if rules.rename is None else rules.rename(name)
    if not isinstance(made, str) or not made:
        raise MisuseError(
            f"rename= made {shorten(made)} of {name!r}. Let it give the wire name as a text."
        )
    return made


def _fingerprint(tools: list[Tool]) -> str | None:
    """Tell one listing from another, whole; None for one that holds what is not JSON data."""
    try:
        return digest_of_all(tools)
    except ValueError:
        return None


async def _listed(rules: Rules, *, fresh: bool) -> list[Tool]:
    """Take what is wanted of a listing, and stop where it is too much."""
    wanted = None if rules.only is None else frozenset(rules.only)
    tools: list[Tool] = []
    async for tool in rules.connection.listed(fresh=fresh):
        if wanted is not None and tool.name not in wanted:
            continue
        tools.append(tool)
        if len(tools) > rules.bounds.tools:
            raise ProviderError(
                f"The server of {rules.name} lists more than {rules.bounds.tools:,} tools. Name "
                "those that you want with `only=[...]`, or allow more with "
                "`limits=Limits(tools=...)`."
            )
    return tools


def _spec(rules: Rules, tool: Tool, wire: str, alike: int) -> AnySpec:
    """Make a tool of what a server lists: what is wrong with one keeps no other out.

    Args:
        rules: Whose tool it is, and what the user said.
        tool: What the server lists.
        wire: What it is called here.
        alike: How many tools are called so.

    Raises:
        ToolDefinitionError: It cannot be used; the text says why.
    """
    limits, hints, declared = rules.bounds, tool.annotations, rules.capabilities or {}
    if alike > 1:
        raise ToolDefinitionError(
            f"{alike} tools of the server are called {wire!r} here; tell them apart with rename="
        )
    _check_size(tool, limits.schema)
    # Words are made legible, and what is not a word has to be so by itself: a property or a value
    # with characters that nobody sees could not be coerced without changing what it means.
    schema, gives = legible_schema(tool.input_schema), legible_schema(tool.output_schema)
    if hides(without_words(schema)) or hides(without_words(gives)):
        raise ToolDefinitionError(
            "its schemas have, in more than titles and descriptions, characters that nobody sees"
        )
    title = tool.title or (hints.title if hints else None)
    definition = ToolDef.from_json_schema(
        name=wire,
        input_schema=schema,
        description=legible(tool.description or "", limits.description),
        title=" ".join(legible(title, limits.description).split()) if title else None,
        output_schema=gives,
        capabilities=declared.get(tool.name) or capabilities_of(hints, rules.trusted),
        timeout=rules.timeout,
        idempotent=is_idempotent(hints, rules.trusted),
    )
    output: SchemaChecker | None = None
    if definition.output_schema is not None:
        output = schema_checker(f"the output of tool {wire!r}", definition.output_schema)
    remote = RemoteTool(rules, tool.name, shape_of(tool), output, definition.only_reads)
    return spec_from_definition(definition, remote.run, is_checked=True)


def _check_size(tool: Tool, limit: int) -> None:
    """Refuse a schema before anything costly is done with it."""
    try:
        size = len(compact_json([tool.input_schema, tool.output_schema]))
    except (TypeError, ValueError, RecursionError):
        raise ToolDefinitionError("its schemas are not plain JSON data") from None
    if size > limit:
        raise ToolDefinitionError(
            f"its schemas have {size:,} characters, and {limit:,} are allowed; allow more with "
            "limits=Limits(schema=...)"
        )
