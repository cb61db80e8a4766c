"""What is said about a member of a toolset: one record, for tools, nested groups and whole classes.

`tool()`, `toolset()` and the head of a toolset class fill it; a selector holds what applies on
its path. An option is added here, with how it goes inward, and to the signatures that take it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from .._schema.options import Caller, check_bool, read_callers
from .._text.immutable import dataclass
from .._text.json import is_seconds, shorten
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .._transcript.result_cap import ResultCap
    from .drivers import HookGenerator


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "..."


UNSET: Final[Any] = _Unset.UNSET
"""Stands for an option that was left out: the group or class decides. None would lift it."""

_OrUnset: TypeAlias = Literal[_Unset.UNSET]

Condition: TypeAlias = bool | Callable[[Any], bool | Awaitable[bool]]
"""Whether calls need an approval, or a function of the input that decides this."""


class Rule(Protocol):
    """A rule, which reviews each call of a tool.

    Attributes:
        name: What it is called in steps, records and messages.
    """

    name: str

    def review(self, review: Any, /) -> HookGenerator[None]:
        """Review one call; return the call to go on with, or its outcome."""
        ...


Conditions: TypeAlias = tuple[Condition, ...]
"""The conditions under which a call needs an approval; empty for a tool that never does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """Hold what was said about a member.

    Attributes:
        off: Whether it is left out unless it is asked for.
        deferred: Whether it is left out until a search of the model loads it.
        prefix: Stands before the wire name of each tool.
        result_cap: The bound on what a model reads of a result; None lifts one that is around.
        timeout: Seconds that a run may take; None lifts those that stand around.
        needs_approval: Whether a call has to be approved, or a function of its input that decides
            this.
        approvals_around: The conditions of the groups around it, the outermost first: nothing
            within a group takes them away.
        approval_message: What the person is told, with names of arguments in braces.
        rules: What reviews each call: its own, then those of the groups from the inside out.
        callers: Who may call it; empty if nothing is said.

    Raises:
        ToolDefinitionError: An option is of the wrong kind.
    """

    off: bool = False
    deferred: bool = False
    prefix: str = ""
    result_cap: ResultCap | _OrUnset | None = UNSET
    timeout: float | _OrUnset | None = UNSET
    needs_approval: Condition | _OrUnset = UNSET
    approvals_around: tuple[Condition, ...] = ()
    approval_message: str | None = None
    rules: tuple[Rule, ...] = ()
    callers: Sequence[Caller] = ()

    def __post_init__(self) -> None:
        check_bool("`off=`: ", self.off)
        check_bool("`deferred=`: ", self.deferred)
        if not isinstance(self.prefix, str):
            raise ToolDefinitionError(f"`prefix=` takes a text, not {shorten(self.prefix)}.")
        if self.result_cap is not None and self.result_cap is not UNSET:
            _check_cap(self.result_cap)
        for condition in (self.needs_approval, *self.approvals_around):
            if not (isinstance(condition, bool | _Unset) or callable(condition)):
                raise ToolDefinitionError(
                    f"`needs_approval=` takes True, False or a function of the input, not "
                    f"{shorten(condition)}. Write `needs_approval=lambda input: input.amount > 5`."
                )
        if not (isinstance(self.timeout, _Unset | None) or is_seconds(self.timeout)):
            raise ToolDefinitionError(
                "`timeout=` takes a positive number of seconds or None, not "
                f"{shorten(self.timeout)}."
            )
        object.__setattr__(self, "callers", read_callers(self.callers))

    def inside(self, outer: MemberOptions) -> MemberOptions:
        """Return the options of this member inside of a group or class that has options, too."""
        if outer is PLAIN:
            return self
        # Three ways inward: what holds for a group holds for all in it (`off`, `deferred`), what
        # was said nearer to the tool wins (`timeout`, `result_cap`), and what a group asks cannot
        # be taken away from inside (`approvals_around`, `rules`).
        return replace(
            self,
            off=self.off or outer.off,
            deferred=self.deferred or outer.deferred,
            prefix=outer.prefix + self.prefix,
            result_cap=outer.result_cap if self.result_cap is UNSET else self.result_cap,
            timeout=outer.timeout if self.timeout is UNSET else self.timeout,
            needs_approval=(
                outer.needs_approval if self.needs_approval is UNSET else self.needs_approval
            ),
            approvals_around=outer.approvals_around + self.approvals_around,
            rules=self.rules + outer.rules,
        )


def _check_cap(result_cap: object) -> None:
    from .._transcript.result_cap import ResultCap

    if not isinstance(result_cap, ResultCap):
        raise ToolDefinitionError(
            f"`result_cap=` takes a ResultCap or None, not {shorten(result_cap)}. Write "
            "`result_cap=ResultCap(20_000)`."
        )


PLAIN: Final = MemberOptions()


def conditions_of(options: MemberOptions) -> Conditions:
    """Return the conditions for an approval: those of the member's groups, then its own."""
    own: Any = options.needs_approval
    around = options.approvals_around
    return around if own is UNSET or own is False else (*around, own)
