"""What the site does beyond Markdown: it draws its pictures from the project's own tables.

It also names the search in each page, which the theme leaves out, for those who hear the page, and
shows two files of the repository as pages.

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
from mkdocs.structure.files import File

MARK: Final = re.compile(r"^<!-- drawing: (?P<name>[\w-]+) -->$", re.MULTILINE)
DIALOG: Final = '<div class="md-search" data-md-component="search" role="dialog"'
"""The search, as the theme makes it."""
ROOT: Final = Path(__file__).resolve().parent.parent
FROM_ROOT: Final = {"security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}
"""Pages that are files of the repository, by their place in the site."""


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Add the pages that are files of the repository."""
    for page, source in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put the drawings into a page."""

    def drawn(mark: re.Match[str]) -> str:
        name = mark["name"]
        if name not in DRAWINGS:
            raise KeyError(f"{page.file.src_path}: there is no drawing {name!r} in drawings.py")
        return f'<div class="drawing" markdown="0">\n{DRAWINGS[name]()}\n</div>'

    return MARK.sub(drawn, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Name the search for whoever hears the page."""
    return output.replace(DIALOG, f'{DIALOG} aria-label="Search"')
