"""The gate of one conversation: it compares final arguments with a policy and the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from threading import Lock
from typing import Any, Final, TypeAlias

from .._call.call import AnyToolCall
from .._context.suspension import Decision, SuspendTicket
from .._hooks.gate_decisions import Block, CallGate, Suspend
from .._schema.secrets import MASK
from .._text.escaping import visible
from .._text.immutable import dataclass
from .._text.json import compact_json, cut, is_object
from .._transcript.transcript import Transcript
from ..errors import HookError
from ._edges import Rules
from ._index import Index, Source, exact_name
from ._places import Keys, Path, text_of, values_at, written
from ._words import exact, links

NO_EDGE: Final = "comes by none of its edges"
LINK: Final = "is a link that comes by none of its edges"
COPIED: Final = "stands so in an untrusted result alone"
NO_READER: Final = "may not read what stands in the conversation"
PRIVATE: Final = "something private stands in the conversation"
UNTRUSTED: Final = "something untrusted stands in the conversation"

_MISSING: Final[Any] = object()
_UNSAID: Final = Rules()
_UNGUARDED: Final = _UNSAID[2:]


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
        value = visible(cut(repr(self.value), 200))
        where = f"found in {found}" if found else "found nowhere"
        return f"`{visible(self.argument)}` {value}{fault} {where}"


Fault: TypeAlias = tuple[Keys, Any, str | None]
"""A value with its place, and what the policy has against it."""


class FlowGate(CallGate):
    """Ask about calls whose values come from where no edge leads; `policy.gate(session)` makes one.

    Attributes:
        transcript: The conversation that it goes by.
    """

    def __init__(self, transcript: Transcript, rules: Mapping[str, Any], otherwise: str) -> None:
        self.transcript: Transcript | None = transcript
        self.__qualname__ = "flow"
        said = {name: each for name, each in rules.items() if each is not None}
        runs = {run for each in said.values() for _, run in each.texts.values() if run}
        self._index = Index(transcript, said, runs)
        self._rules = rules
        self._otherwise = otherwise
        self._lock = Lock()

    def __call__(self, call: AnyToolCall, _decision: Decision | None, /) -> Block | Suspend | None:
        """Let a call pass, or ask about it."""
        traces = self._traces(call)
        if not traces:
            return None
        # On one line: what shows questions shows a line break as what it is.
        values = ". ".join(map(str, traces))
        message = f"Where do the values of `{call.name}` come from? {values}."
        if self._otherwise == "block":
            return Block(message)
        told = [{**asdict(each), "sources": [*map(asdict, each.sources)]} for each in traces]
        return Suspend(SuspendTicket(action="flow", message=message, parameters={"flow": told}))

    def trace(self, call: AnyToolCall) -> tuple[Trace, ...]:
        """Say of each value of a call where it was found; what there is against some is last."""
        return self._traces(call, is_whole=True)

    def _traces(self, call: AnyToolCall, *, is_whole: bool = False) -> tuple[Trace, ...]:
        if call.name not in self._rules:
            raise HookError(
                f"The policy knows no tool `{call.name}`, so it says nothing of its calls. Make "
                "the policy of the toolset that the hooks are of.",
                tool=call.name,
                call_id=call.id,
            )
        rules: Rules = self._rules[call.name] or _UNSAID
        # Nothing is asked of its arguments: the transcript need not be read for it.
        if not is_whole and rules[2:] == _UNGUARDED:
            return ()
        final = call.final_arguments
        # The index grows while it is read, and one gate may be asked about calls of several
        # threads.
        with self._lock:
            self._index.read()
            faults = list(self._found(rules, call, final))
            if is_whole:
                told = {keys for keys, _, text in faults if text in (NO_EDGE, NO_READER)}
                values = values_at(final, ())
                faults[:0] = [(k, value, None) for k, value, _ in values if k not in told]
            shown = call.spec.shown(call.input) if faults else None
            return tuple([self._trace(final, shown, *each) for each in faults])

    def _trace(self, final: Any, shown: Any, keys: Keys, value: Any, text: str | None) -> Trace:
        """Tell of one value, masked where it is a secret."""
        index = self._index
        if not keys:
            sources = index.told(index.untrusted if text == UNTRUSTED else index.private)
            return Trace("", None, sources, text)
        is_shown = _is_same(_at(shown, keys), _at(final, keys))
        sources = index.sources("" if value is None else text_of(value))
        return Trace(written(keys), value if is_shown else MASK, sources, text)

    def _found(self, rules: Rules, call: AnyToolCall, final: Any) -> Iterator[Fault]:
        index, parameters = self._index, call.selector.definition.input_schema.get("properties", {})
        # What a call read that asked for this one stands in no transcript yet.
        is_within = call._line[0].by is not None
        readers = frozenset[str]() if is_within else index.readers
        if rules.is_clean and (index.untrusted or is_within):
            yield (), None, UNTRUSTED
        if rules.sinks is not None and readers is not None:
            if not rules.sinks:
                yield (), None, PRIVATE
            for keys, value in _given(final, rules.sinks):
                if value is not None and exact_name(text_of(value)) not in readers:
                    yield keys, value, NO_READER
        for path, ways in rules.fills.items():
            # A default came from whoever wrote the tool, and by no edge.
            given = _given(final, () if _is_default(parameters, final, path[0]) else (path,))
            for keys, value in given:
                if not index.has(exact(text_of(value)), ways):
                    yield keys, value, NO_EDGE
        for path, (ways, run) in rules.texts.items():
            for keys, value in _given(final, (path,)):
                for link, is_plain in links(text_of(value)):
                    if not (is_plain and index.has(exact(link), ways)):
                        yield keys, link, LINK
                for words in index.copied(text_of(value), run) if run else ():
                    yield keys, words, COPIED


def _is_default(parameters: Any, final: Any, name: str) -> bool:
    """Whether an argument is written just as the default that the schema says."""
    said = parameters.get(name)
    is_said = is_object(said) and "default" in said
    return is_said and compact_json(said["default"]) == compact_json(final.get(name))


def _given(arguments: Any, paths: tuple[Path, ...]) -> Iterator[tuple[Keys, Any]]:
    for path in paths:
        for keys, value, _ in values_at(arguments, path, whole=True):
            yield keys, value


def _at(data: Any, keys: Keys) -> Any:
    try:
        for key in keys:
            data = data[key]
    except (KeyError, IndexError, TypeError):
        return _MISSING
    return data


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: to Python, true is 1."""
    return type(one) is type(other) and bool(one == other)
