"""What is said of a member of a toolset: one record, for tools, nested groups and whole classes.

`tool()`, `toolset()` and the head of a toolset class fill it; a selector keeps what it comes to on
its path. An option is added here, with how it goes inward, and to the signatures that take it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from .._text.json import shorten
from .._transcript.result_cap import ResultCap
from ..errors import ToolDefinitionError

__all__ = ["PLAIN", "UNSAID", "MemberOptions", "Unsaid"]


class _Unsaid(Enum):
    UNSAID = "unsaid"

    def __repr__(self) -> str:
        return "..."


UNSAID: Final = _Unsaid.UNSAID
"""Nothing was said: what stands around decides, where None would take it away."""

Unsaid: TypeAlias = Literal[_Unsaid.UNSAID]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """Hold what was said of a member.

    Attributes:
        off: Whether it is left out unless it is asked for.
        deferred: Whether it is left out until a search of the model loads it.
        prefix: Stands before the wire name of each tool.
        result_cap: The bound on what a model reads of a result; None lifts one that stands around.

    Raises:
        ToolDefinitionError: An option is of the wrong kind.
    """

    off: bool = False
    deferred: bool = False
    prefix: str = ""
    result_cap: ResultCap | Unsaid | None = UNSAID

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str):
            raise ToolDefinitionError(f"`prefix=` takes a text, not {shorten(self.prefix)}.")
        if not isinstance(self.result_cap, ResultCap | _Unsaid | None):
            raise ToolDefinitionError(
                f"`result_cap=` takes a ResultCap or None, not {shorten(self.result_cap)}. Write "
                "`result_cap=ResultCap(20_000)`."
            )

    def inside(self, outer: MemberOptions) -> MemberOptions:
        """Give what this comes to inside of a group, or of a class, of which more was said."""
        if outer is PLAIN:
            return self
        return MemberOptions(
            off=self.off or outer.off,
            deferred=self.deferred or outer.deferred,
            prefix=outer.prefix + self.prefix,
            result_cap=outer.result_cap if self.result_cap is UNSAID else self.result_cap,
        )


PLAIN: Final = MemberOptions()
