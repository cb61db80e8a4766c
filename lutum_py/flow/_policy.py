"""`Policy`: what is declared next to the tools about where values may come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

from .._call.selector import AnySelector
from .._declare.offer import Named
from .._declare.toolset_meta import ToolsetMeta
from .._text.immutable import Settled
from .._text.json import is_whole, shorten
from .._transcript.labels import readers_of
from .._transcript.transcript import HasTranscript, Transcript, transcript_of
from ..errors import HookError, MisuseError, UnknownToolError
from ._edges import UNSAID, USER, Edge, Rules
from ._gate import FlowGate
from ._places import Path, path_of, paths_in, written


class Policy(Settled):
    """Declare where the parameters of a toolset may be filled from.

    Make it once, next to the tools, and make a gate of it for each conversation. A gate uses the
    rules that were declared when it was made.

    Args:
        toolset: The toolset, as it is offered.
        otherwise: What becomes of a call that has a value from elsewhere: `suspend` lets it wait
            for a decision, `block` ends the run.

    Raises:
        MisuseError: It is not a toolset, or `otherwise` is neither.

    Example:
        >>> from lutum_py import Session, Toolset, tool, tool_fn
        >>> from lutum_py.flow import USER
        >>> @tool_fn
        ... def send(to: str, body: str) -> str:
        ...     return "sent"
        >>> class Desk(Toolset):
        ...     send = tool(send)
        >>> policy = Policy(Desk)
        >>> policy.fill(Desk.send, "to", USER)
        >>> hooks = Desk.HookSet()
        >>> gate = hooks.gate()(policy.gate(Session()))
        >>> policy.unguarded()
        ()
    """

    _way: ClassVar[str] = "no gate would go by it. Say it by a method, as `policy.fill(...)`."

    def __init__(
        self, toolset: type[Any], *, otherwise: Literal["suspend", "block"] = "suspend"
    ) -> None:
        MisuseError.check("Policy", "toolset", "a Toolset", toolset, ToolsetMeta)
        if otherwise not in ("suspend", "block"):
            raise MisuseError.of_field("Policy", "otherwise", "'suspend' or 'block'", otherwise)
        self._toolset: Any = toolset
        self._otherwise = otherwise
        self._rules: dict[str, Rules] = {each.name: UNSAID for each in self._toolset}

    def trust(self, *tools: Named) -> None:
        """Say that nobody from outside writes what these tools give.

        Raises:
            HookError: The policy's toolset has no such tool.
        """
        self._change(tools, trusted=True)

    def private(self, *tools: Named, readers: Iterable[str] = ()) -> None:
        """Say who may read what these tools give: nobody else, if no readers are named.

        Raises:
            HookError: The policy's toolset has no such tool.
            MisuseError: The readers are not texts.
        """
        self._change(tools, readers=readers_of("policy.private", readers))

    def fill(self, tool: Named, parameters: str | Iterable[str], *edges: Edge) -> None:
        """Let values at places of a tool's arguments come only from these edges.

        Args:
            tool: The tool.
            parameters: The places, as in `["to", "files[].id"]`, by any names of parameters and
                fields.
            edges: Where they may come from, beside those of an earlier `fill`; with none at all,
                every value is asked about but the default that the parameter has in its schema,
                where a secret or a `default_factory` has none.

        Raises:
            HookError: There is no such tool, by its schema nothing can be at a place or at that of
                an edge, or an edge is none.
        """
        found = self._found(edges)
        for name, path in self._places(tool, parameters):
            fills = self._rules[name].fills
            self._change([name], fills={**fills, path: (*fills.get(path, ()), *found)})

    def text(
        self, tool: Named, parameters: str | Iterable[str], *edges: Edge, run: int = 5
    ) -> None:
        """Let prose contain only links from these edges, and no words of an untrusted result.

        Args:
            tool: The tool.
            parameters: The places of the prose.
            edges: Where links, host names and mail addresses may come from.
            run: Ask about so many words in a row, at most 100, that only an untrusted result has,
                and neither the user nor a trusted one; 0 for never.

        Raises:
            HookError: As in `fill`.
            MisuseError: `run` is not a whole number from 0 to 100.
        """
        if not is_whole(run) or not 0 <= run <= 100:
            raise MisuseError.of_field("policy.text", "run", "a whole number from 0 to 100", run)
        found = self._found(edges)
        for name, path in self._places(tool, parameters):
            self._change([name], texts={**self._rules[name].texts, path: (found, run)})

    def sink(self, tool: Named, *to: str) -> None:
        """Let private data go only to its readers.

        Args:
            tool: A tool by which something leaves the conversation.
            to: The places that name who gets it; without them each call is asked about, once
                something private was read.

        Raises:
            HookError: There is no such tool, or by its schema nothing can be at a place.
        """
        places = self._places(tool, to)
        for each in self._find(tool):
            paths = [path for name, path in places if name == each.name]
            self._change([each], sinks=(*(self._rules[each.name].sinks or ()), *paths))

    def clean(self, tool: Named) -> None:
        """Ask about each call of a tool, once anything untrusted was read.

        Raises:
            HookError: The policy's toolset has no such tool.
        """
        self._change([tool], is_clean=True)

    def unguarded(self) -> tuple[str, ...]:
        """List the tools without a rule: their calls pass.

        Returns:
            The wire names.
        """
        return tuple(name for name, rules in self._rules.items() if rules == UNSAID)

    def gate(self, target: HasTranscript | Transcript) -> FlowGate:
        """Make the gate of one conversation, to be registered by `hooks.gate()(...)`.

        Args:
            target: The session or transcript.

        Raises:
            HookError: An edge leads from an argument that has no `fill` of its own.
            MisuseError: It is neither a session nor a transcript.
        """
        refusal = "A gate goes by the Session or Transcript of a conversation, not by {}. Write "
        transcript = transcript_of(target, f"{refusal}`policy.gate(session)`.")
        for edge in {edge for rules in self._rules.values() for edge in rules.edges}:
            for tool in map(str, edge.tools if edge.kind == "argument" else ()):
                # An argument is as good as what may fill it: without a rule of its own it would let
                # anything pass. A rule of `to` is one of each `to[]`.
                path, fills = path_of(edge.path), self._rules[tool].fills
                if not any(path[:end] in fills for end in range(1, len(path) + 1)):
                    raise HookError(
                        f"An edge leads from argument `{edge.path}` of tool `{tool}`, which "
                        "anything may fill. Say with `policy.fill` where it comes from itself.",
                        tool=tool,
                    )
        return FlowGate(transcript, self._toolset, dict(self._rules), self._otherwise)

    def _find(self, named: Named) -> tuple[AnySelector, ...]:
        try:
            found: tuple[AnySelector, ...] = self._toolset._find(named)
        except UnknownToolError as error:
            raise HookError(f"A policy names a tool that is not there: {error}") from error
        return found

    def _change(self, tools: Iterable[Named], **changes: Any) -> None:
        for name in [each.name for tool in tools for each in self._find(tool)]:
            self._rules[name] = self._rules[name]._replace(**changes)

    def _places(self, tool: Named, parameters: str | Iterable[str]) -> list[tuple[str, Path]]:
        """Find places in the arguments of a tool; all are looked at before anything changes."""
        MisuseError.check("Policy", "parameters", "a place or several", parameters, Iterable)
        texts = [parameters] if isinstance(parameters, str) else list(parameters)
        return [
            (each.name, path)
            for each in self._find(tool)
            for text in texts
            for path in _places_of(each, "arguments", text)
        ]

    def _found(self, edges: Iterable[Edge]) -> tuple[Edge, ...]:
        """Return edges of one tool each, by its wire name and the keys of its data."""
        return tuple([one for edge in edges for one in self._each_of(edge)])

    def _each_of(self, edge: Edge) -> Iterator[Edge]:
        if not isinstance(edge, Edge):
            raise HookError(f"An edge is `USER`, `output()` or `argument()`, not {shorten(edge)}.")
        tools = [each for tool in edge.tools for each in self._find(tool)]
        if edge != USER and not tools:
            raise HookError(f"An edge names no tool. Name one, as in `flow.{edge.kind}(Desk.x)`.")
        if edge == USER:
            yield edge
        for tool in tools:
            paths = _places_of(tool, "output" if edge.kind == "output" else "arguments", edge.path)
            yield from (replace(edge, tools=(tool.name,), path=written(path)) for path in paths)
            schema, path = tool.definition.output_schema, path_of(edge.path)
            if edge.named is not None and not any(
                paths_in((*path[:end], edge.named), schema) for end in range(len(path))
            ):
                raise HookError(
                    f"No record on the way to `{edge.path}` in the output of tool `{tool.name}` "
                    f"has a field {shorten(edge.named)} by its schema. Name a field that is there.",
                    tool=tool.name,
                )


def _places_of(tool: AnySelector, what: Literal["arguments", "output"], text: object) -> list[Path]:
    """Read a path that may be in the arguments or output of a tool, by the keys of its data.

    Raises:
        HookError: It is not a path, or by the schema of the tool nothing can be there.
    """
    path = path_of(text) if isinstance(text, str) else ()
    found: list[Path] = []
    if written(path) == text and (path != () or what == "output"):
        arguments = tool.spec.arguments
        if what == "output":
            found = paths_in(path, tool.definition.output_schema)
        else:
            found = paths_in(path, arguments.named_schema, by_fields=arguments.goes_by_fields)
    if not found:
        raise HookError(
            f"The {what} of tool `{tool.name}` can have nothing at {shorten(text)} by its schema. "
            "Name a place that is there: names, `[]` for each item and `{}` for each key, as in "
            "`files[].id`.",
            tool=tool.name,
        )
    return found
