"""`Policy`: what is declared next to the tools about where values may come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from .._call.selector import AnySelector
from .._declare.offer import Named
from .._declare.toolset_meta import ToolsetMeta
from .._text.json import shorten
from .._transcript.labels import readers_of
from .._transcript.transcript import HasTranscript, Transcript, transcript_of
from ..errors import HookError, UnknownToolError
from ._edges import Edge, Rules, Way
from ._gate import FlowGate
from ._index import exact_name
from ._places import Path, may_stand, path_of, written

_UNSAID: Final = Rules()
_USER: Final = Way("user", (), (), None, False)


class Policy:
    """Declare where the parameters of a toolset may be filled from.

    Make it once, next to the tools, and a gate of it for each conversation. A gate goes by what was
    declared when it was made.

    Args:
        toolset: The toolset, as it is offered.
        otherwise: What becomes of a call that has a value from elsewhere: `suspend` lets it wait
            for a decision, `block` ends the run.

    Raises:
        HookError: It is no toolset, or `otherwise` is neither.

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

    def __init__(
        self, toolset: type[Any], *, otherwise: Literal["suspend", "block"] = "suspend"
    ) -> None:
        if not isinstance(toolset, ToolsetMeta):
            raise HookError(f"A policy is of a Toolset, not of {shorten(toolset)}.")
        if otherwise not in ("suspend", "block"):
            raise HookError(
                f"A policy suspends or blocks, and knows no {shorten(otherwise)}. Pass "
                "otherwise='suspend' or otherwise='block'."
            )
        self._toolset: Any = toolset
        self._otherwise = otherwise
        self._said: dict[str, Rules] = {}

    def trust(self, *tools: Named) -> None:
        """Say that nobody from outside writes what these tools give."""
        self._change(tools, trusted=True)

    def private(self, *tools: Named, readers: Iterable[str] = ()) -> None:
        """Say who may read what these tools give: nobody else, where no readers are named."""
        named = frozenset(map(exact_name, readers_of("policy.private", readers)))
        self._change(tools, readers=named)

    def fill(self, tool: Named, parameters: str | Iterable[str], *edges: Edge) -> None:
        """Let values at places of a tool's arguments come by these edges alone.

        Args:
            tool: The tool.
            parameters: The places, as in `["to", "files[].id"]`.
            edges: Where they may come from, beside those of an earlier `fill`; with none at all,
                every value but the parameter's default is asked about.
        """
        ways = tuple(map(self._way, edges))
        for name, path in self._places(tool, parameters):
            fills = self._said.get(name, _UNSAID).fills
            self._change([name], fills={**fills, path: (*fills.get(path, ()), *ways)})

    def text(
        self, tool: Named, parameters: str | Iterable[str], *edges: Edge, run: int = 5
    ) -> None:
        """Let prose hold no links but by these edges, and no words of an untrusted result.

        Args:
            tool: The tool.
            parameters: The places of the prose.
            edges: Where links, host names and mail addresses may come from.
            run: How many words in a row are asked about that an untrusted result has, and neither
                the user nor a trusted one; 0 for none.
        """
        ways = tuple(map(self._way, edges))
        for name, path in self._places(tool, parameters):
            texts = self._said.get(name, _UNSAID).texts
            self._change([name], texts={**texts, path: (ways, run)})

    def sink(self, tool: Named, *to: str) -> None:
        """Let what is private go to its readers alone.

        Args:
            tool: A tool by which something leaves the conversation.
            to: The places that name who gets it; without them each call is asked about, once
                something private was read.
        """
        places = self._places(tool, to)
        for each in self._find(tool):
            paths = (path for name, path in places if name == each.name)
            known = self._said.get(each.name, _UNSAID).sinks or ()
            self._change([each], sinks=(*known, *paths))

    def clean(self, tool: Named) -> None:
        """Ask about each call of a tool, once anything untrusted was read."""
        self._change([tool], is_clean=True)

    def unguarded(self) -> tuple[str, ...]:
        """Name the tools of which nothing is said: their calls pass.

        Returns:
            The wire names.
        """
        return tuple(each.name for each in self._toolset if each.name not in self._said)

    def gate(self, target: HasTranscript | Transcript) -> FlowGate:
        """Make the gate of one conversation, to be registered by `hooks.gate()(...)`.

        Args:
            target: The session or transcript.

        Raises:
            HookError: An edge leads from an argument that has no `fill` of its own.
        """
        transcript = transcript_of(target)
        for rules in self._said.values():
            for ways in (*rules.fills.values(), *(ways for ways, _ in rules.texts.values())):
                for way in ways:
                    self._check_argument(way)
        known = {each.name: self._said.get(each.name) for each in self._toolset}
        return FlowGate(transcript, known, self._otherwise)

    def _check_argument(self, way: Way) -> None:
        for tool in way.tools if way.kind == "argument" else ():
            # An argument is as good as what may fill it: without a rule of its own it would let
            # anything pass.
            if way.path not in self._said.get(tool, _UNSAID).fills:
                raise HookError(
                    f"An edge leads from argument `{written(way.path)}` of tool `{tool}`, which "
                    "anything may fill. Say with `policy.fill` where it comes from itself.",
                    tool=tool,
                )

    def _find(self, named: Named) -> tuple[AnySelector, ...]:
        try:
            found: tuple[AnySelector, ...] = self._toolset._find(named)
        except UnknownToolError as error:
            raise HookError(f"A policy cannot go by that tool: {error}") from error
        return found

    def _change(self, tools: Iterable[Named], **changes: Any) -> None:
        for name in [each.name for tool in tools for each in self._find(tool)]:
            self._said[name] = self._said.get(name, _UNSAID)._replace(**changes)

    def _places(self, tool: Named, parameters: str | Iterable[str]) -> list[tuple[str, Path]]:
        """Find places in the arguments of a tool; all are looked at before anything changes."""
        texts = [parameters] if isinstance(parameters, str) else list(parameters)
        return [
            (each.name, _checked(each, path_of(text, f"Tool `{each.name}`"), "arguments"))
            for each in self._find(tool)
            for text in texts
        ]

    def _way(self, edge: Edge) -> Way:
        if not isinstance(edge, Edge):
            raise HookError(
                f"An edge is `USER`, `output(...)` or `argument(...)`, not {shorten(edge)}."
            )
        if edge.kind == "user":
            return _USER
        what = f"{edge.kind}({', '.join(str(getattr(t, 'name', t)) for t in edge.tools)})"
        path = path_of(edge.path, what)
        selectors = [each for tool in edge.tools for each in self._find(tool)]
        if not selectors:
            raise HookError(
                f"{what}: it names no tool. Name one, as in `flow.{edge.kind}(Desk.x)`."
            )
        for each in selectors:
            _checked(each, path, "output" if edge.kind == "output" else "arguments")
            if edge.named is not None and not any(
                may_stand((*path[:end], edge.named), each.definition.output_schema)
                for end in range(len(path))
            ):
                raise HookError(
                    f"{what}: no record on the way to `{edge.path}` has a field "
                    f"{shorten(edge.named)} by the tool's schema.",
                    tool=each.name,
                )
        return Way(edge.kind, tuple(each.name for each in selectors), path, edge.named, edge.part)


def _checked(selector: AnySelector, path: Path, what: Literal["arguments", "output"]) -> Path:
    """Give a path that may stand in the arguments or output of a tool.

    Raises:
        HookError: By its schema it cannot.
    """
    definition = selector.definition
    is_output = what == "output"
    schema = definition.output_schema if is_output else definition.input_schema
    if not (path or is_output) or not may_stand(path, schema):
        raise HookError(
            f"The {what} of tool `{selector.name}` {'has' if is_output else 'have'} nothing at "
            f"`{written(path)}` by its schema. Name a place that is there.",
            tool=selector.name,
        )
    return path
