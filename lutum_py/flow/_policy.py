"""The gate of one conversation: it compares final arguments with a policy and the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from threading import Lock
from typing import Any, ClassVar, Literal, TypeAlias

from .. import AnyToolCall, Block, Decision, Labels, Suspend, SuspendTicket, Toolset, Transcript
from .._text.escaping import escape_unprintable
from .._text.immutable import Settled, dataclass
from .._text.json import copy_json, cut, is_number, is_object, is_whole, shorten
from ..errors import HookError, MisuseError, UnknownToolError
from ..schemas import MASK
from ..turns import read_within
from ..typing import AnySelector, CallGate, HasTranscript
from ._index import (
    UNSAID,
    USER,
    Edge,
    Index,
    Keys,
    Path,
    Rules,
    Source,
    exact,
    is_default,
    links,
    path_of,
    paths_in,
    text_of,
    told,
    values_at,
    written,
)


@dataclass(frozen=True, slots=True)
class Trace:
    """Say of one value of a call where it was found, and what is wrong with it.

    Attributes:
        argument: Its place in the arguments; empty for what is wrong with the call as a whole.
        value: The value as it may be shown: a text, or a part of one.
        sources: Where it was found; the model made up what was found nowhere.
        fault: What the policy has against it; None for nothing.
    """

    argument: str
    value: object
    sources: tuple[Source, ...]
    fault: str | None

    def __str__(self) -> str:
        found = ", ".join(map(str, self.sources))
        if not self.argument:
            return f"{self.fault}: {found}"
        fault = "" if self.fault is None else f" {self.fault};"
        value = escape_unprintable(cut(repr(self.value), 200))
        where = f"found in {found}" if found else "found nowhere"
        return f"`{escape_unprintable(self.argument)}` {value}{fault} {where}"


# A place, the value there, and what the policy has against it. Of a call as a whole: no place, and
# the sources in place of a value.
Fault: TypeAlias = tuple[Keys, Any, str | None]


class FlowGate(Settled, CallGate):
    """Ask about calls with values from no allowed source; `policy.gate(session)` makes one."""

    _way: ClassVar[str] = "the gate would not go by it. Make another, as in `policy.gate(session)`."

    def __init__(
        self,
        transcript: Transcript,
        toolset: type[Toolset],
        rules: Mapping[str, Any],
        otherwise: str,
    ) -> None:
        self.__qualname__ = "flow"
        self._transcript = transcript
        self._tools: Mapping[str, AnySelector] = {each.name: each for each in toolset}
        self._rules: Mapping[str, Rules] = rules
        self._otherwise = otherwise
        self._index = Index(rules, self._tools)
        self._lock = Lock()

    @property
    def transcript(self) -> Transcript:  # type: ignore[override]
        """The conversation that it goes by."""
        return self._transcript

    def __call__(self, call: AnyToolCall, _decision: Decision | None, /) -> Block | Suspend | None:
        """Let a call pass, or ask about it."""
        traces = self._traces(call)
        if not traces:
            return None
        # On one line: what shows questions shows a line break as what it is.
        message = f"Where do the values of `{call.name}` come from? {'. '.join(map(str, traces))}."
        if self._otherwise == "block":
            return Block(message)
        asked = [copy_json(asdict(each)) for each in traces]
        return Suspend(SuspendTicket(action="flow", message=message, parameters={"flow": asked}))

    def trace(self, call: AnyToolCall) -> tuple[Trace, ...]:
        """Say for each value of a call where it was found; those with a fault come last."""
        return self._traces(call, is_whole=True)

    def _traces(self, call: AnyToolCall, *, is_whole: bool = False) -> tuple[Trace, ...]:
        rules = self._rules.get(call.name)
        if rules is None:
            raise HookError(
                f"The policy knows no tool `{call.name}`, so it says nothing of its calls. Make "
                "the policy of the toolset that the hooks belong to.",
                tool=call.name,
                call_id=call.id,
            )
        # Nothing is asked of its arguments: the transcript need not be read for it.
        if not is_whole and rules[2:] == UNSAID[2:]:
            return ()
        final = call.final_arguments
        # The index grows while it is read, and one gate may be asked about calls of several
        # threads.
        with self._lock:
            index = self._read(call)
            faults = list(_faults(rules, index, call, final))
            if is_whole:
                known = [(keys, value) for keys, value, _ in faults]
                values = [(keys, value) for keys, value, _ in values_at(final, ())]
                faults[:0] = [(*each, None) for each in values if each not in known]
            shown = call.shown_arguments if faults else None
            return tuple([_trace(index, final, shown, each) for each in faults])

    def _read(self, call: AnyToolCall) -> Index:
        """Return the index of all that is in the conversation, results within a round as well."""
        within = read_within(call)
        items = (*self._transcript, *within) if within else self._transcript
        # Most often something came after what was read; else a round with calls within has ended.
        known = self._index.items
        if items is not known and tuple(known) != tuple(items[: len(known)]):
            self._index = Index(self._rules, self._tools)
        self._index.read(items)
        return self._index


def _faults(
    rules: Rules, index: Index, call: AnyToolCall, final: Mapping[str, object]
) -> Iterator[Fault]:
    if rules.is_clean and index.untrusted:
        yield (), index.untrusted, "something untrusted is in the conversation"
    if rules.sinks is not None and index.readers is not None:
        if not rules.sinks:
            yield (), index.private, "something private is in the conversation"
        for keys, value in _given(final, *rules.sinks):
            if value is not None and exact(text_of(value)) not in index.readers:
                yield keys, value, "may not read what is in the conversation"
    arguments = call.spec.arguments
    for path, edges in rules.fills.items():
        # A default came from whoever wrote the tool, and by no edge.
        if not is_default(arguments.schema_at(path[0]), final.get(path[0])):
            for keys, value in _given(final, path):
                if not index.has(exact(text_of(value)), edges):
                    yield keys, value, "is from no allowed source"
    for path, (edges, run) in rules.texts.items():
        for keys, value in _given(final, path):
            for link, is_plain in links(text_of(value)):
                if not (is_plain and index.has(exact(link), edges)):
                    yield keys, link, "is a link from no allowed source"
            for words in index.copied(text_of(value), run):
                yield keys, words, "stands so in an untrusted result alone"


def _given(arguments: object, *paths: Path) -> Iterator[tuple[Keys, object]]:
    for path in paths:
        yield from ((keys, value) for keys, value, _ in values_at(arguments, path, whole=True))


def _trace(index: Index, final: object, shown: object, fault: Fault) -> Trace:
    """Tell of one value, masked where it is a secret."""
    keys, value, text = fault
    if not keys:
        return Trace("", None, told(value), text)
    found = {source for text in _readings(value) for source in index.sources(text)}
    shown_as = value if _is_shown(shown, final, keys) else MASK
    return Trace(written(tuple(_shown_keys(shown, keys))), shown_as, told(found), text)


def _readings(value: object) -> Iterator[str]:
    """Yield a value as a text, and a number also as a person writes it."""
    # "Pay 1,200 to Eve" is where `1200.0` comes from, but its words are not those of the JSON.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None:
        yield text_of(value)
    if is_number(value):
        yield f"{value:,}"


def _shown_keys(shown: Any, keys: Keys) -> Iterator[str | int]:
    """Yield the steps to a value, with a mask for each key that is a secret itself."""
    for key in keys:
        is_open = is_object(shown) and MASK in shown and isinstance(key, str)
        is_hidden = is_open and key not in shown
        yield MASK if is_hidden else key
        step: Any = MASK if is_hidden else key
        shown = _part_of(shown, step)


def _part_of(data: Any, step: Any) -> Any:
    with suppress(KeyError, IndexError, TypeError):
        return data[step]
    return MASK


def _is_shown(shown: Any, final: Any, keys: Keys) -> bool:
    """Whether a value stands unmasked in what may be shown of arguments."""
    with suppress(KeyError, IndexError, TypeError):
        for key in keys:
            shown, final = shown[key], final[key]
        return bool(shown == final)
    return False


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
        self, toolset: type[Toolset], *, otherwise: Literal["suspend", "block"] = "suspend"
    ) -> None:
        if not (isinstance(toolset, type) and issubclass(toolset, Toolset)):
            raise MisuseError.of_field("Policy", "toolset", "a Toolset", toolset)
        if otherwise not in ("suspend", "block"):
            raise MisuseError.of_field("Policy", "otherwise", "'suspend' or 'block'", otherwise)
        self._toolset: type[Toolset] = toolset
        self._otherwise = otherwise
        self._rules: dict[str, Rules] = {each.name: UNSAID for each in self._toolset}

    def trust(self, *tools: AnySelector | str) -> None:
        """Say that nobody from outside writes what these tools give.

        Raises:
            HookError: The policy's toolset has no such tool.
        """
        self._change(tools, trusted=True)

    def private(self, *tools: AnySelector | str, readers: Iterable[str] = ()) -> None:
        """Say who may read what these tools give: nobody else, if no readers are named.

        Raises:
            HookError: The policy's toolset has no such tool.
            MisuseError: The readers are not texts.
        """
        self._change(tools, readers=Labels(readers=readers).readers)

    def fill(self, tool: AnySelector | str, parameters: str | Iterable[str], *edges: Edge) -> None:
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
        self, tool: AnySelector | str, parameters: str | Iterable[str], *edges: Edge, run: int = 5
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

    def sink(self, tool: AnySelector | str, *to: str) -> None:
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

    def clean(self, tool: AnySelector | str) -> None:
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
        transcript: object = getattr(target, "transcript", target)
        if not isinstance(transcript, Transcript):
            raise MisuseError(
                f"A gate goes by the Session or Transcript of a conversation, not by "
                f"{shorten(target)}. Write `policy.gate(session)`."
            )
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

    def _find(self, named: AnySelector | str) -> tuple[AnySelector, ...]:
        try:
            return self._toolset.select(named)
        except UnknownToolError as error:
            raise HookError(f"A policy names a tool that is not there: {error}") from error

    def _change(self, tools: Iterable[AnySelector | str], **changes: Any) -> None:
        for name in [each.name for tool in tools for each in self._find(tool)]:
            self._rules[name] = self._rules[name]._replace(**changes)

    def _places(
        self, tool: AnySelector | str, parameters: str | Iterable[str]
    ) -> list[tuple[str, Path]]:
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
