"""Which deferred tools a conversation has loaded: read from the results of searches in it.

A transcript only grows, so that what was read of it is kept with it, and each item is looked at
once. The transcript is the one source: a plan, a view or a session has no say in it, and what a
result names counts only if it is a deferred tool of the toolset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .._call.selector import Selector
from .._schema.stand_in import OwnNames, own_name
from .._text.json import shorten
from .._transcript.request import TranscriptItem, names_loaded_by
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript, kept_of
from ..errors import MisuseError
from .offer import Available, Offer, OfferedTools, ToolAvailability


# After two searches in 40 items: `_Loaded(40, (App.refund, App.find_customer), offered)`. The next
# turn looks at item 41 and those after it. A list that a session keeps would be wrong as soon as
# somebody loads the transcript elsewhere.
class _Loaded(NamedTuple):
    """What was read of a transcript: replaced when there is more, so that threads may share it."""

    read: int
    selectors: tuple[Selector[Any, Any], ...]
    offered: OfferedTools


def loaded_from(offer: Offer, said: Any) -> tuple[Selector[Any, Any], ...]:
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
    kept = kept_of(transcript).loaded
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
    offer: Offer, known: tuple[Selector[Any, Any], ...], items: Iterable[TranscriptItem]
) -> tuple[Selector[Any, Any], ...]:
    searches, deferred = offer.searches, offer.deferred.by_name
    names = OwnNames(deferred)
    found: dict[str, Selector[Any, Any]] | None = None
    for item in items:
        if isinstance(item, ToolResult) and own_name(item.name, searches) in searches:
            found = {each.name: each for each in known} if found is None else found
            for name in map(names.own, names_loaded_by(item)):
                if name in deferred:
                    found.setdefault(name, deferred[name])
    return known if found is None else tuple(found.values())
