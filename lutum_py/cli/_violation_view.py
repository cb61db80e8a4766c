"""Show what a provider would refuse, and what was mended of it."""

from __future__ import annotations

from rich.text import Text

from ..dialects._repair.violations import Change, Violation
from ._screen import complain, counted, text


def violation_lines(violation: Violation) -> list[Text]:
    """Show where a violation is, what is wrong and what mends it."""
    return [
        text(""),
        text(f"{violation.position}  {violation.rule}", "bold"),
        text(f"  problem: {violation.problem}"),
        text(f"  remedy:  {violation.remedy}"),
    ]


def tell_repair(
    name: str, changes: list[Change], left: list[Violation], written: str | None
) -> None:
    """Say on standard error what a repair changed, and what it left."""
    count = counted(len(changes), "change") if changes else "nothing to repair"
    complain(text(f"{name}: {count}" if changes or not left else f"{name}: nothing was repaired"))
    for change in changes:
        complain(text(f"  {change.position}: {change.what} ({change.rule})"))
    if written is not None:
        complain(text(f"Written to `{written}`."))
    if left:
        complain(text(f"Not repaired: {counted(len(left), 'violation')}"))
        for violation in left:
            complain(*violation_lines(violation))
