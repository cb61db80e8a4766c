"""What the site does beyond Markdown: it draws its pictures from the project's own tables.

`mkdocs.yml` names this file. A page asks for a picture with a comment of its own line, such as
`<!-- drawing: lifecycle -->`; what the pictures show is in `drawings.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drawings import DRAWINGS

MARK: Final = re.compile(r"^<!-- drawing: (?P<name>[\w-]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put the drawings into a page."""

    def drawn(mark: re.Match[str]) -> str:
        name = mark["name"]
        if name not in DRAWINGS:
            raise KeyError(f"{page.file.src_path}: there is no drawing {name!r} in drawings.py")
        return f'<div class="drawing" markdown="0">\n{DRAWINGS[name]()}\n</div>'

    return MARK.sub(drawn, markdown)
