"""Commit errors in notebooks and on rich's terminal: each fault with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._text.escaping import LINES, visible
from .._text.html import as_styles, cut_text, figure, mark, named, paragraph, table
from ._faults import CommitFault

_MOST = 50
_LIMIT = 400


def faults_html(faults: Sequence[CommitFault]) -> str:
    """Show faults as a table: what is wrong with which call, and what to do."""
    rows = [
        (
            mark(_kind(fault), "bad"),
            named(fault.id),
            named(fault.name),
            paragraph(what, _LIMIT),
            paragraph(remedy, _LIMIT),
        )
        for fault in faults[:_MOST]
        for what, remedy in [_split(fault)]
    ]
    left = f"; {len(faults) - _MOST} more are not shown" if len(faults) > _MOST else ""
    about = f"{len(faults)} fault{'' if len(faults) == 1 else 's'}; nothing was changed{left}"
    shown = table(("fault", "call", "tool", "what is wrong", "remedy"), rows)
    return as_styles(figure("CommitError", about, shown))


def faults_rich(faults: Sequence[CommitFault]) -> Iterator[str]:
    """Give each fault as one text."""
    for fault in faults[:_MOST]:
        yield visible(cut_text(str(fault), 2 * _LIMIT), LINES)
    if len(faults) > _MOST:
        yield f"… {len(faults) - _MOST} more"


def _kind(fault: CommitFault) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(fault).__name__).lower()


def _split(fault: CommitFault) -> tuple[str, str]:
    """Part the remedy, which is the last sentence, from what is wrong."""
    what, _, remedy = str(fault).rpartition(". ")
    return what, remedy
