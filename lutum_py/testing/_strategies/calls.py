"""Strategies for one call: name and argument text, as a model may send them.

The toolset itself is the judge. What is made from the schema is decoded, and kept where the outcome
is the one that the strategy promises: a validator of yours may refuse what the schema allows, or
take what it forbids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..._call.selector import AnySelector
from ..._declare.offer import Available
from ..._declare.toolset_meta import ToolsetMeta
from ..._schema.schema_reader import localized
from ..._text.json import compact_json, is_object, is_whole, shorten
from ..._toolset import Toolset
from ..._transcript.assistant import ToolMetadata
from ...errors import InvalidArgumentsError, InvalidValueError, MisuseError
from . import NoSuchExample, Phase, Settings, Unsatisfiable, event, find, reject, st
from .near_miss import Spoiling, spoilings
from .schema import ANY_TEXT, SchemaValues

AnyToolset: TypeAlias = type[Toolset]
"""A toolset, as its class."""

ArgumentStrategies: TypeAlias = "Mapping[Any, st.SearchStrategy[Any]]"
"""Strategies of your own for the arguments of some tools, by selector or wire name."""

Spoken: TypeAlias = tuple[str, str]
"""A call without its id: wire name, and argument text."""

_A_FEW = Settings(max_examples=200, deadline=None, database=None, phases=[Phase.generate])
_OWN: Final = '`{"forecast": st.just({"city": "Oslo"})}`'
_COERCED = ("container_as_string", "null_for_optional")
_ODD_NAMES = ("", " ", "no such tool!", "tool\n", "ünïcode", "🔧", '"quoted"', "a/b", "x" * 200)
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""The names that every provider takes back."""
_PLAIN_NAMES = st.from_regex(PLAIN_NAME, fullmatch=True)
_PREFIXES = ("functions.", "tools:", "mcp__", "_")


class CallStrategies:
    """Make the strategies of one toolset, for the tools that a turn offers.

    Args:
        toolset: The tools.
        available: Which of them are on offer; those that are on by default.
        arguments: Strategies for tools whose arguments cannot be found by trying.
        odd_names: Whether unknown names may be such as providers refuse to take back.

    Raises:
        MisuseError: `arguments` holds something else than strategies.
    """

    def __init__(
        self,
        toolset: AnyToolset,
        available: Available,
        arguments: ArgumentStrategies,
        *,
        odd_names: bool = True,
    ) -> None:
        self._toolset = toolset
        self._odd_names = odd_names
        self._offered = toolset._offer.resolve(available)
        # By wire name: those of the user, and the others once they are asked for.
        self._arguments: dict[str, st.SearchStrategy[Any]] = {}
        # A selector of a nested toolset may stand for several tools: each gets the strategy.
        for named, strategy in _pairs(arguments):
            for selector in toolset.select(named):
                _require_strategy(selector.name, strategy)
                self._arguments[selector.name] = _fitting(selector, strategy)

    @property
    def offered(self) -> tuple[AnySelector, ...]:
        """The tools on offer."""
        return self._offered.selectors

    def kinds(self) -> dict[str, st.SearchStrategy[Spoken]]:
        """Return every kind of call that this toolset can be sent."""
        made: dict[str, st.SearchStrategy[Spoken]] = {}
        if self._offered.selectors:
            made["valid"] = self._of_each(self._valid_of)
            given = self.arguments
            made["near_miss"] = self._of_each(lambda each: _spoilt(each, given(each), False))
            made["coerced"] = self._of_each(lambda each: _spoilt(each, given(each), True))
            made["truncated"] = made["valid"].flatmap(_cut_off)
        made["unknown_tool"] = self._unknown_tool()
        if len(self._offered.selectors) < len(self._toolset):
            made["not_available"] = self._of_each(self._valid_of, offered=False)
        return made

    def arguments(self, selector: AnySelector) -> st.SearchStrategy[Any]:
        """Arguments that fit a tool, as data."""
        if selector.name not in self._arguments:
            schema = localized(selector.definition.input_schema)
            made = SchemaValues(schema).values(schema)
            self._arguments[selector.name] = _fitting(selector, made)
        return self._arguments[selector.name]

    def _unknown_tool(self) -> st.SearchStrategy[Spoken]:
        names = st.sampled_from(_ODD_NAMES) | ANY_TEXT if self._odd_names else _PLAIN_NAMES
        if len(self._toolset):
            known = st.sampled_from([selector.name for selector in self._toolset])
            names = known.flatmap(_misspelt) | names
        if not self._odd_names:
            names = names.filter(PLAIN_NAME.fullmatch)
        unknown = names.filter(lambda name: name not in self._toolset)
        return st.tuples(unknown, st.sampled_from(["{}", '{"query":"x"}', ""]))

    def _valid_of(self, selector: AnySelector) -> st.SearchStrategy[Spoken]:
        return self.arguments(selector).map(lambda data: (selector.name, compact_json(data)))

    def _of_each(
        self,
        make: Callable[[AnySelector], st.SearchStrategy[Spoken]],
        *,
        offered: bool = True,
    ) -> st.SearchStrategy[Spoken]:
        chosen = {
            each.name: make(each)
            for each in self._toolset
            if (each.name in self._offered.by_name) is offered
        }
        # Not `one_of`, which would take unions apart, and favour the tools that have them.
        return st.sampled_from(list(chosen)).flatmap(chosen.__getitem__)


def _fitting(selector: AnySelector, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return arguments.filter(lambda data: is_object(data) and fits(selector, compact_json(data)))


def _cut_off(call: Spoken) -> st.SearchStrategy[Spoken]:
    name, text = call
    return st.integers(1, len(text) - 1).map(lambda at: (name, text[:at]))


def _pairs(arguments: ArgumentStrategies) -> Iterable[tuple[Any, Any]]:
    if not isinstance(arguments, Mapping):
        raise MisuseError(
            f"`arguments` maps tools to strategies of JSON objects, as in {_OWN}; it is "
            f"{shorten(arguments)}."
        )
    return arguments.items()


def _require_strategy(tool: str, given: object) -> None:
    if not isinstance(given, st.SearchStrategy):
        raise MisuseError(
            f"`arguments` gives tool `{tool}` {shorten(given)}, which is not a strategy. Give one "
            f"of JSON objects, as in {_OWN}."
        )


def require_toolset(taker: str, given: object) -> None:
    """Make sure that something is a toolset.

    Args:
        taker: What takes it, for the message.
        given: What was given.

    Raises:
        MisuseError: It is not a toolset.
    """
    if not isinstance(given, ToolsetMeta):
        raise MisuseError(
            f"{taker} takes a Toolset, not {shorten(given)}. Declare a class with `tool(...)` "
            "members."
        )


def fits(selector: AnySelector, text: str) -> bool:
    """Whether a tool takes this argument text."""
    try:
        selector._decode(ToolMetadata(id="", name=selector.name, arguments=text))
    except InvalidArgumentsError:
        return False
    return True


@st.composite
def _spoilt(
    draw: st.DrawFn, selector: AnySelector, arguments: st.SearchStrategy[Any], is_coerced: bool
) -> Spoken:
    """Spoil arguments that fit, in a way that the tool coerces, or in one that it refuses."""
    data = draw(arguments)
    text = compact_json(data)
    ways: dict[str, list[Spoiling | str]] = {}
    for spoiling in spoilings(localized(selector.definition.input_schema), data):
        if (spoiling.kind in _COERCED) is is_coerced:
            ways.setdefault(spoiling.kind, []).append(spoiling)
    if is_coerced:
        ways["arguments_as_string"] = [compact_json(text)]
        if fits(selector, ""):
            ways["nothing"] = ["", "null"]
    else:
        ways["not_an_object"] = ["[7]", "7", '"text"']
        # Three that models do send: a brace too many, Python's quotes, and a block of Markdown.
        ways["not_json"] = [f"{text}}}", f"{{'query': {text}}}", f"```json\n{text}\n```"]
    kind = draw(st.sampled_from(list(ways)))
    way = draw(st.sampled_from(ways[kind]))
    sent = way if isinstance(way, str) else compact_json(way.apply(data))
    # The tool has the last word: a validator of its own may take what the schema forbids.
    if fits(selector, sent) is not is_coerced:
        reject()
    event(f"coerced: {kind}" if is_coerced else f"near miss: {kind}")
    return selector.name, sent


def _misspelt(name: str) -> st.SearchStrategy[str]:
    places = st.integers(0, len(name) - 1)
    return st.one_of(
        places.map(lambda at: name[:at] + name[at + 1 :]),
        places.map(lambda at: name[: at + 1] + name[at:]),
        st.sampled_from([name.upper(), name.title(), name.replace("_", "-"), f"{name}s"]),
        st.sampled_from(_PREFIXES).map(lambda prefix: prefix + name),
    )


def check_arguments(
    toolset: AnyToolset, available: Available, arguments: ArgumentStrategies
) -> None:
    """Make sure that arguments that fit can be found for every tool on offer.

    Raises:
        InvalidValueError: For some tool there are none; the text names it.
    """
    made = CallStrategies(toolset, available, arguments)
    for selector in made.offered:
        try:
            find(made.arguments(selector), lambda _: True, settings=_A_FEW)
        except (NoSuchExample, Unsatisfiable):
            raise InvalidValueError(
                f"No arguments were found that tool `{selector.name}` takes. Make some that its "
                f"validators allow: `arguments={{{selector.name!r}: strategy}}`, with a "
                "strategy of JSON objects."
            ) from None


def require_count(name: str, given: object) -> None:
    """Make sure that a limit lets something through.

    Args:
        name: The parameter.
        given: What was given.

    Raises:
        MisuseError: It is not a whole number.
        InvalidValueError: It is below 1.
    """
    if not is_whole(given):
        raise MisuseError(f"`{name}` takes a whole number from 1 on, not {shorten(given)}.")
    if given < 1:
        raise InvalidValueError(
            f"`{name}` is {given}, so nothing would be tried. Give a whole number from 1 on."
        )
