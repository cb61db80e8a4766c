"""What a toolset knows of itself: its members, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .._call.selector import AnySelector, Selector
from .._call.spec import UNSET, MemberOptions
from .._text.escaping import did_you_mean, names_for_message, quoted
from .._text.json import shorten
from ..errors import ToolDefinitionError, UnknownToolError

if TYPE_CHECKING:
    from .offer import Offer


class Members:
    """Hold the members of a toolset, and what follows from them.

    Args:
        toolset: The toolset.
        by_key: Its members by their names in the body.
        selectors: The tools of all paths, in the order of declaration.
        options: What is said about all members, in the head of the class or of one that it inherits
            from.

    Attributes:
        by_name: The tools by their names on the wire: a flat list, whatever is nested, as in
            `{"find": App.find, "crm_find": App.data.crm.find}`.
        origin: The toolset that it is a bound view of; itself if it is none.
        path: Where the view stands in the outermost toolset.
        call_type: The class of its calls, once somebody asked.
        policy_base: The base class of its policies, once somebody asked.
        rebuild: Returns what pickle makes the class of again; None for one that has a place.
        caps_results: Whether some tool has a cap on its results.
        needs_review: Whether some tool has rules, or may need an approval.

    Raises:
        ToolDefinitionError: Two tools have one name.
    """

    def __init__(
        self,
        toolset: type,
        by_key: Mapping[str, Selector | Any],
        selectors: tuple[Selector, ...],
        options: MemberOptions,
    ) -> None:
        self.toolset = toolset
        self.by_key = by_key
        self.selectors = selectors
        self.options = options
        self.by_name: dict[str, Selector] = {}
        self.origin = toolset
        self.path: tuple[str, ...] = ()
        self.call_type: type | None = None
        self.policy_base: type | None = None
        self.rebuild: Callable[[], tuple[object, ...]] | None = None
        self.caps_results = any(e.options.result_cap not in (None, UNSET) for e in selectors)
        self.needs_review = any(each.needs_review for each in selectors)
        for selector in selectors:
            other = self.by_name.setdefault(selector.name, selector)
            if other is not selector:
                raise ToolDefinitionError(
                    f"Toolset `{toolset.__qualname__}`: {'.'.join(other.path)} and "
                    f"{'.'.join(selector.path)} are both called {selector.name!r} on the wire. "
                    "Rename one where it is declared, as in `@tool_fn(name=...)`, or nest one "
                    "under `toolset(..., prefix=...)`."
                )

    @cached_property
    def offer(self) -> Offer:
        """What the toolset offers."""
        from .offer import Offer

        return Offer(self)

    def named(self, name: str) -> Selector:
        """Return the tool of a wire name.

        Raises:
            UnknownToolError: There is none.
        """
        if not isinstance(name, str):
            raise self._no_member(name)
        found = self.by_name.get(name)
        if found is None:
            raise self.unknown(name)
        return found

    def find(self, named: AnySelector | str) -> tuple[Selector, ...]:
        """Find every member that a selector or wire name stands for; see `Toolset.select`."""
        if isinstance(named, str):
            return (self.named(named),)
        # Nearly every selector is the toolset's own, and is its own answer.
        mine = self.by_name.get(named.name) if isinstance(named, AnySelector) else None
        if mine is not None and mine is named:
            return (mine,)
        # `Data.find` is not a member of `App`, but stands for `App.users.find` and
        # `App.orders.find`, where `Data` is nested twice.
        found = tuple(own for own in self.selectors if own._leads_to(named))
        if not found:
            raise self._no_member(named)
        return found

    def find_all(self, named: AnySelector | str | type) -> tuple[Selector, ...]:
        """Do as `find` does; for a toolset, find every member that its tools stand for."""
        if is_toolset(named):
            return tuple(own for inner in members_of(named).selectors for own in self.find(inner))
        return self.find(named)  # type: ignore[arg-type]

    def unknown(self, name: str, *, by_model: bool = False) -> UnknownToolError:
        """Make the error for an unknown tool; a model is not told about what is deferred."""
        known = [each.name for each in self.selectors if not (by_model and each.is_deferred)]
        near = did_you_mean(name, known)
        hint = f" Did you mean {quoted(near)}?" if near else ""
        return UnknownToolError(
            f"{self.toolset.__qualname__} has no tool {shorten(name)}.{hint} It has "
            f"{names_for_message(known)}.",
            name=name,
            suggestion=near,
        )

    def _no_member(self, given: object) -> UnknownToolError:
        what = "is no member of" if isinstance(given, AnySelector) else "is no selector of"
        if is_toolset(given):
            what = "is a whole toolset; name one tool of it. It is no selector of"
        return UnknownToolError(
            f"{shorten(given)} {what} {self.toolset.__qualname__}, nor the name of one. It has "
            f"{names_for_message('.'.join(selector.path) for selector in self.selectors)}.",
            name=str(getattr(given, "name", given)),
        )


def members_of(toolset: Any) -> Members:
    """Return what a toolset knows of itself."""
    members: Members = toolset._members
    return members


def is_toolset(value: object) -> bool:
    """Whether something is a toolset."""
    return isinstance(getattr(value, "_members", None), Members)
