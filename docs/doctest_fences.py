"""Show the interactive examples of docstrings as code, wherever they stand.

Markdown reads `>>>` as a quotation. This extension of griffe, which reads the docstrings for the
reference, puts a fence around each run of such lines; the docstrings themselves stay as Python and
doctest want them.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

PROMPT = re.compile(r"^(?P<indent> *)>>> ")


class DoctestFences(griffe.Extension):
    """Fence the examples of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            text = obj.docstring.value
            # The page of the errors shows each with the whole text that it prints; in the source,
            # an example stands beside its class. Nobody is to read two of them in one place.
            if obj.path.startswith("lutum_py.errors."):
                text = text.partition("\n\nExample:\n")[0]
            obj.docstring.value = fenced(text)


def fenced(text: str) -> str:
    """Put fences around the examples of a docstring.

    An example ends at a blank line that no prompt follows, or where the indentation ends.
    """
    lines: list[str] = []
    indent: str | None = None
    source = text.split("\n")
    for number, line in enumerate(source):
        opening = PROMPT.match(line)
        if indent is None and opening is not None:
            indent = opening["indent"]
            lines.append(f"{indent}```pycon")
        elif indent is not None and not line.strip():
            following = source[number + 1] if number + 1 < len(source) else ""
            if PROMPT.match(following) is None:
                lines.append(f"{indent}```")
                indent = None
        lines.append(line)
    if indent is not None:
        lines.append(f"{indent}```")
    return "\n".join(lines)
