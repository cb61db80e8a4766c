"""The gate of one conversation: it compares final arguments with a policy and the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from typing import Any, ClassVar, TypeAlias

from .._call.call import AnyToolCall
from .._call.decisions import Block, Suspend
from .._call.selector import AnySelector
from .._context.suspension import Decision, SuspendTicket
from .._hooks.registered_hook import CallGate
from .._round.inner import read_within
from .._schema.secrets import MASK
from .._text.escaping import escape_unprintable
from .._text.immutable import Settled, dataclass
from .._text.json import copy_json, cut, is_number
from .._transcript.transcript import Transcript
from ..errors import HookError
from ._edges import UNSAID, Rules
from ._index import Index, Source, told
from ._places import Keys, Path, is_default, text_of, values_at, written
from ._words import exact, links


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
    value: Any
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
        self, transcript: Transcript, toolset: Any, rules: Mapping[str, Any], otherwise: str
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
            shown = call._shown if faults else None
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


def _faults(rules: Rules, index: Index, call: AnyToolCall, final: Any) -> Iterator[Fault]:
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


def _given(arguments: Any, *paths: Path) -> Iterator[tuple[Keys, Any]]:
    for path in paths:
        yield from ((keys, value) for keys, value, _ in values_at(arguments, path, whole=True))


def _trace(index: Index, final: Any, shown: Any, fault: Fault) -> Trace:
    """Tell of one value, masked where it is a secret."""
    keys, value, text = fault
    if not keys:
        return Trace("", None, told(value), text)
    found = {source for text in _readings(value) for source in index.sources(text)}
    shown_as = value if _is_shown(shown, final, keys) else MASK
    return Trace(written(keys), shown_as, told(found), text)


def _readings(value: Any) -> Iterator[str]:
    """Yield a value as a text, and a number also as a person writes it."""
    # "Pay 1,200 to Eve" is where `1200.0` comes from, but its words are not those of the JSON.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None:
        yield text_of(value)
    if is_number(value):
        yield f"{value:,}"


def _is_shown(shown: Any, final: Any, keys: Keys) -> bool:
    """Whether a value stands unmasked in what may be shown of arguments."""
    with suppress(KeyError, IndexError, TypeError):
        for key in keys:
            shown, final = shown[key], final[key]
        return bool(shown == final)
    return False
