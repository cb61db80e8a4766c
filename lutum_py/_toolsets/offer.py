"""Which tools a turn offers, whether it requires a call, and the text for a call of any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from .._call.outcomes import RecoverableToolCallIssue
from .._call.selector import AnySelector, Selector
from .._schema.definition import ToolDef
from .._text.escaping import NearestNames, names_for_message, quoted
from .._text.immutable import Immutable, dataclass
from .._text.json import shorten
from .._text.names import OwnNames
from .._transcript.assistant import ToolMetadata, dialect_named
from .._transcript.request import (
    AUTO,
    NONE,
    REQUIRED,
    DeferredTools,
    ToolChoice,
    TranscriptItem,
)
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript
from ..errors import MisuseError, ToolConstraintError, UnknownToolError

if TYPE_CHECKING:
    from .._text.bm25 import Bm25

Descriptions: TypeAlias = "Iterable[tuple[AnySelector | str, str]] | Mapping[Any, str]"
"""Descriptions for one turn, as pairs or as a mapping; the last one of a tool counts."""


@dataclass(frozen=True, slots=True)
class ToolAvailability:
    """Say which tools a turn offers; make one with the four class methods.

    Raises:
        ToolConstraintError: The mode is unknown, or it names no tools and got some.

    Example:
        >>> ToolAvailability.all().mode
        'all'
    """

    mode: Literal["default", "all", "only", "default_plus"] = "default"
    selectors: tuple[AnySelector | str | type[object], ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in ("default", "all", "only", "default_plus"):
            raise ToolConstraintError(
                f"Availability {self.mode!r} is none of 'default', 'all', 'only', 'default_plus'."
            )
        if self.selectors != () and self.mode in ("default", "all"):
            raise ToolConstraintError(
                f"Availability {self.mode!r} names no tools, and got {shorten(self.selectors)}. "
                "Use `ToolAvailability.only(selectors)` or `.default_plus(selectors)`."
            )

    @classmethod
    def default(cls) -> ToolAvailability:
        """Offer the tools that are on."""
        return cls()

    @classmethod
    def all(cls) -> ToolAvailability:
        """Offer every tool, also those that are off."""
        return cls("all")

    @classmethod
    def only(cls, selectors: Iterable[AnySelector | str | type[object]]) -> ToolAvailability:
        """Offer exactly these, on or off."""
        return cls("only", _listed(selectors))

    @classmethod
    def default_plus(
        cls, selectors: Iterable[AnySelector | str | type[object]]
    ) -> ToolAvailability:
        """Offer the tools that are on, and these."""
        return cls("default_plus", _listed(selectors))


def _listed(
    selectors: Iterable[AnySelector | str | type[object]],
) -> tuple[AnySelector | str | type[object], ...]:
    """Take one selector for a list of one; Python would go through the letters of a name."""
    if isinstance(selectors, str | AnySelector):
        return (selectors,)
    if not isinstance(selectors, Iterable):
        raise MisuseError(
            f"Tools are named by a list of selectors or wire names, as in `[AppTools.search]`, "
            f"not by {shorten(selectors)}."
        )
    return tuple(selectors)


@dataclass(frozen=True, slots=True)
class ToolRequirement:
    """Say what a turn asks of the model; make one with the three class methods.

    Raises:
        ToolConstraintError: The mode is unknown, or `specific` without a tool, or another with one.

    Example:
        >>> ToolRequirement.at_least_one().choice
        ToolChoice(mode='required', name=None)
    """

    mode: Literal["optional", "at_least_one", "specific"] = "optional"
    selector: AnySelector | str | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("optional", "at_least_one", "specific"):
            raise ToolConstraintError(
                f"Requirement {self.mode!r} is none of 'optional', 'at_least_one', 'specific'."
            )
        # One of the two without the other is a mistake: `specific` of nothing, or a tool that is
        # named and not required.
        if (self.mode == "specific") is not isinstance(self.selector, str | AnySelector):
            raise ToolConstraintError(
                "A requirement names a tool where its mode is 'specific', and nowhere else: "
                f"got mode {self.mode!r} and {shorten(self.selector)}. Use "
                "`ToolRequirement.specific(selector)`."
            )

    @classmethod
    def optional(cls) -> ToolRequirement:
        """Let the model call tools or answer."""
        return cls()

    @classmethod
    def at_least_one(cls) -> ToolRequirement:
        """Ask for at least one call."""
        return cls("at_least_one")

    @classmethod
    def specific(cls, selector: AnySelector | str) -> ToolRequirement:
        """Ask for a call of this tool."""
        return cls("specific", selector)

    @property
    def choice(self) -> ToolChoice:
        """The requirement as dialects put it on the wire, under the selector's own name."""
        if self.selector is not None:
            return ToolChoice("specific", str(self.selector))
        return AUTO if self.mode == "optional" else REQUIRED


class OfferedTools(Immutable):
    """The tools that one turn offers.

    Attributes:
        selectors: The tools: in the order of declaration, and then what was deferred, in the order
            in which it was loaded or named, so that one more changes nothing before it.
        by_name: The same by wire name.
        deferred: What a search may load, and what one has loaded; None if no search counts.
    """

    selectors: tuple[Selector, ...]
    by_name: Mapping[str, Selector]
    deferred: DeferredTools | None

    def __init__(
        self, selectors: tuple[Selector, ...], deferred: DeferredTools | None = None
    ) -> None:
        by_name = {selector.name: selector for selector in selectors}
        self._put(selectors=selectors, by_name=MappingProxyType(by_name), deferred=deferred)

    @cached_property
    def definitions(self) -> tuple[ToolDef, ...]:
        """Their definitions, put together once."""
        return tuple(selector.definition for selector in self.selectors)


Available: TypeAlias = (
    "ToolAvailability | OfferedTools | Iterable[AnySelector | str | type[object]] | None"
)
"""What may say which tools are offered; None stands for those that are on."""


class Tools(Protocol):
    """What an offer is made of: the tools of a toolset, see `toolset_meta.Members`."""

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """The tools of all paths, in the order of declaration."""
        ...

    @property
    def by_name(self) -> Mapping[str, Selector]:
        """The tools by their names on the wire."""
        ...

    def find(self, named: AnySelector | str, /) -> tuple[Selector, ...]:
        """Find every member that a selector or wire name stands for."""
        ...

    def find_all(self, named: AnySelector | str | type, /) -> tuple[Selector, ...]:
        """Do as `find` does; for a toolset, find every member that its tools stand for."""
        ...


class Offer:
    """Work out what a toolset offers; the usual answers are kept.

    Attributes:
        members: The members of the toolset.
        all: Every tool.
        default: The tools that are on.
        deferred: Those that a search may load.
        searches: The wire names of the searches that load them.
        index: What the deferred tools are found by, once somebody looked.
    """

    def __init__(self, members: Tools) -> None:
        # Worked out when the toolset is first used, and kept: a turn asks for `default` each time.
        selectors = members.selectors
        on = tuple(selector for selector in selectors if not selector.is_off)
        offered = OfferedTools(selectors)
        self.members = members
        self.all = offered
        self.default = offered if len(on) == len(selectors) else OfferedTools(on)
        self.deferred = OfferedTools(tuple(each for each in selectors if each.is_deferred))
        self.searches = frozenset(each.name for each in selectors if each.loads_tools)
        self.index: Bm25 | None = None

    def resolve(self, available: Available) -> OfferedTools:
        """Return the tools that are offered.

        Raises:
            UnknownToolError: A selector or name is not a tool of the toolset.
        """
        return self.default if available is None else self.chosen(available)

    def chosen(
        self,
        available: ToolAvailability | OfferedTools | Iterable[AnySelector | str | type[object]],
    ) -> OfferedTools:
        """Do as `resolve` does, where something says which tools."""
        if isinstance(available, OfferedTools):
            return available
        if not isinstance(available, ToolAvailability):
            return self.only(available)
        if available.mode == "all":
            return self.all
        if available.mode == "only":
            return self.only(available.selectors)
        if available.mode == "default_plus":
            return self.only((*self.default.selectors, *available.selectors))
        return self.default

    def with_loaded(self, offered: OfferedTools, selectors: tuple[Selector, ...]) -> OfferedTools:
        """Offer some tools, and after them those that were loaded and are not among them."""
        more = tuple(each for each in selectors if each.name not in offered.by_name)
        names = tuple(each.name for each in more)
        deferred = DeferredTools(self.deferred.definitions, names, self.searches)
        return OfferedTools((*offered.selectors, *more), deferred)

    def only(self, named: Iterable[AnySelector | str | type[object]]) -> OfferedTools:
        """Return exactly these tools, each once."""
        chosen: dict[str, Selector] = {}
        for each in _listed(named):
            for selector in self.members.find_all(each):
                chosen[selector.name] = selector
        # In the order of declaration, whatever order they were named in: a list of tools that
        # changes its order from turn to turn would lose the provider's cache each time.
        selectors = sorted(each for each in chosen.values() if not each.is_deferred)
        return OfferedTools((*selectors, *(e for e in chosen.values() if e.is_deferred)))

    def choose(self, offered: OfferedTools, requirement: ToolRequirement) -> ToolChoice:
        """Work out what is asked of the model, and refuse what cannot be.

        Raises:
            ToolConstraintError: A required tool is not offered, or a call is, and no tools are.
            MisuseError: The requirement is not a `ToolRequirement`.
        """
        if not isinstance(requirement, ToolRequirement):
            raise MisuseError(
                "What a turn asks of the model is a ToolRequirement, not "
                f"{shorten(requirement)}. Make one, as in `ToolRequirement.at_least_one()`."
            )
        if requirement.selector is not None:
            try:
                members = self.members.find(requirement.selector)
            except UnknownToolError as error:
                raise ToolConstraintError(
                    f"The turn requires a tool that is not there: {error}"
                ) from error
            # A member of a toolset that is nested twice is two tools here, of which a turn may
            # offer one.
            on_offer = [member for member in members if member.name in offered.by_name]
            if len(on_offer) > 1:
                raise ToolConstraintError(
                    f"The turn requires tool `{requirement.selector}`, which is there as "
                    f"{names_for_message(each.name for each in on_offer)}. Require one of these."
                )
            if not on_offer:
                raise ToolConstraintError(
                    f"The turn requires tool `{requirement.selector}`, which is not among the "
                    f"tools of this turn: {names_for_message(offered.by_name)}. Offer it with "
                    "`.available_tools(...)`, or require one of these."
                )
            return ToolChoice("specific", on_offer[0].name)
        if requirement.mode == "at_least_one" and not offered.selectors:
            raise ToolConstraintError(
                "The turn requires a tool call, but offers no tools. Offer some with "
                "`.available_tools(...)`, or drop `.require_any_tool()`."
            )
        return requirement.choice if offered.selectors else NONE

    def describe(
        self, definitions: tuple[ToolDef, ...], descriptions: Descriptions
    ) -> tuple[ToolDef, ...]:
        """Put the descriptions of one turn into definitions.

        Raises:
            UnknownToolError: A selector or name is not a tool of the toolset.
            MisuseError: A description is not text, or not one of a pair.
        """
        texts: dict[str, str] = {}
        for named, text in pairs_of(descriptions):
            for selector in self.members.find(named):
                texts[selector.name] = text
        if not texts:
            return definitions
        return tuple(
            each.with_description(texts[each.name]) if each.name in texts else each
            for each in definitions
        )


def pairs_of(descriptions: Any) -> Iterator[tuple[AnySelector | str, str]]:
    """Go through the descriptions of a turn.

    Raises:
        MisuseError: They are neither pairs nor a mapping, or a description is not text.
    """
    items: Any = getattr(descriptions, "items", None)
    try:
        pairs: Iterator[Any] = iter(descriptions if items is None else items())
    except TypeError:
        raise MisuseError(
            f"Descriptions are pairs or a mapping, not {shorten(descriptions)}. Write them as in "
            "`{AppTools.search: 'Search only ...'}`."
        ) from None
    for pair in pairs:
        try:
            named, text = pair
        except (TypeError, ValueError):
            named, text = pair, None
        if not isinstance(text, str):
            raise MisuseError(
                "Descriptions come as pairs of a selector and a text, as in "
                f"`[(AppTools.search, 'Search only ...')]`, not as {shorten(pair)}."
            )
        yield named, text


class NotOnOffer:
    """Say what is wrong with the calls of one turn whose tools were not on offer.

    A model sends as many of these as it likes, so what they share is worked out once.

    Args:
        offer: What the toolset offers that the calls are read with.
        offered: The tools that were on offer.
        names: The names that may have been called.
        dialect: The name of the dialect that the calls came in, if they did in one.
    """

    def __init__(
        self,
        offer: Offer,
        offered: OfferedTools,
        names: Iterable[str],
        dialect: str | None = None,
    ) -> None:
        # The model reads names as they went out to it, but may have called a tool by its own name.
        module = dialect_named(dialect)
        self._sent: Callable[[str], str] = str if module is None else module.wire_name
        self._offer = offer
        self._offered = offered
        self._names = names

    @cached_property
    def _meant(self) -> dict[str, str]:
        """What went out for each name, by the names by which it may be called."""
        meant = {name: self._sent(name) for name in self._names}
        return meant | {name: name for name in meant.values()}

    @cached_property
    def _nearest(self) -> NearestNames:
        return NearestNames(self._meant)

    @cached_property
    def _on_offer(self) -> str:
        names = [self._sent(name) for name in self._names]
        return f"Tools on offer: {names_for_message(names)}."

    @cached_property
    def _searches(self) -> list[str]:
        return [self._sent(each.name) for each in self._offered.selectors if each.loads_tools]

    def issue(self, metadata: ToolMetadata) -> RecoverableToolCallIssue:
        """Say what is wrong with one call."""
        known = self._offer.members.by_name.get(metadata.name)
        name = quoted(metadata.name if known is None else self._sent(metadata.name))
        if known is not None and known.is_deferred and self._searches:
            text = (
                f"Tool {name} is not loaded, so it was not run. Search for it first, with "
                f"{names_for_message(self._searches)}; what is found can be called from the next "
                "turn on."
            )
            return RecoverableToolCallIssue(metadata, "not_available", text)
        if known is not None:
            is_unfound = known.is_deferred and not self._offer.searches
            why = " It is deferred, and there is no search that loads it." if is_unfound else ""
            text = (
                f"Tool {name} is not available in this turn, so it was not run.{why} "
                f"{self._on_offer}"
            )
            return RecoverableToolCallIssue(metadata, "not_available", text)
        near = self._meant.get(self._nearest.nearest(metadata.name) or "")
        hint = f" Did you mean {quoted(near)}?" if near else ""
        text = f"There is no tool {name}, so nothing was run.{hint} {self._on_offer}"
        return RecoverableToolCallIssue(metadata, "unknown_tool", text, (), near)


# After two searches in 40 items: `_Loaded(40, (App.refund, App.find_customer), offered)`. The next
# turn looks at item 41 and those after it. A list that a session keeps would be wrong as soon as
# somebody loads the transcript elsewhere.
class _Loaded(NamedTuple):
    """What was read of a transcript: replaced when there is more, so that threads may share it."""

    read: int
    selectors: tuple[Selector, ...]
    offered: OfferedTools


def loaded_from(offer: Offer, said: Any) -> tuple[Selector, ...]:
    """Return the loaded tools, in the order of loading; see `Toolset.loaded_tools`."""
    transcript = getattr(said, "transcript", said)
    if isinstance(transcript, Transcript):
        return _read(offer, transcript).selectors
    given: object = said
    is_listed = isinstance(given, Iterable) and not isinstance(given, str | type)
    items = tuple(said) if is_listed else ()
    if not is_listed or not all(isinstance(each, TranscriptItem) for each in items):
        raise MisuseError(
            f"Loaded tools are read from a session, a transcript or a list of its items, not from "
            f"{shorten(said)}."
        )
    return _more(offer, (), items)


def offered_in(offer: Offer, transcript: Transcript, available: Available = None) -> OfferedTools:
    """Return the tools that a turn of a conversation offers.

    What the conversation has loaded comes last. If `available` names all the tools of the turn,
    nothing is added.

    Raises:
        UnknownToolError: A selector or name is not a tool of the toolset.
    """
    if not (offer.searches and offer.deferred.selectors):
        return offer.resolve(available)
    mode = available.mode if isinstance(available, ToolAvailability) else available
    if mode is None or mode == "default":
        return _read(offer, transcript).offered
    offered = offer.resolve(available)
    if mode == "default_plus":
        return offer.with_loaded(offered, _read(offer, transcript).selectors)
    return offered


def _read(offer: Offer, transcript: Transcript) -> _Loaded:
    kept = transcript.cache.loaded
    known = kept.take(offer) or _Loaded(0, (), offer.with_loaded(offer.default, ()))
    # `read` says how far the transcript was looked at: a transcript only grows, so the rest is new.
    length = len(transcript)
    if known.read < length:
        selectors = _more(offer, known.selectors, transcript[known.read : length])
        offered = known.offered
        if len(selectors) > len(known.selectors):
            offered = offer.with_loaded(offer.default, selectors)
        known = _Loaded(length, selectors, offered)
    kept.put(offer, known)
    return known


def _more(
    offer: Offer, known: tuple[Selector, ...], items: Iterable[TranscriptItem]
) -> tuple[Selector, ...]:
    searches, deferred = offer.searches, offer.deferred.by_name
    names, searched = OwnNames(deferred), OwnNames(searches)
    found: dict[str, Selector] | None = None
    for item in items:
        if isinstance(item, ToolResult) and searched.own(item.name) in searches:
            found = {each.name: each for each in known} if found is None else found
            for name in map(names.own, item.found_tools):
                if name in deferred:
                    found.setdefault(name, deferred[name])
    return known if found is None else tuple(found.values())
