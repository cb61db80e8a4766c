"""Read a page as a browser would, and refuse one that is not safe."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import strategies as st

LINES = "\n\t"
"""What is kept of a text of several lines, beside what prints."""
TAGS = {"html", "head", "meta", "title", "style", "body", "pre", "span"}
HOSTILE = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from("<>&\"'\n\t\x00\x1b\u202e/=")
    ),
    max_size=40,
)


class Read(HTMLParser):
    """Reads a page as a browser would, and refuses what is not ours."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.style = ""
        self.policy = ""
        self._in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        given = {name: value or "" for name, value in attrs}
        assert given.keys() <= {"class", "lang", "charset", "http-equiv", "content", "name"}
        self._in_style = tag == "style"
        if "http-equiv" in given:
            self.policy = given["content"]

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.style += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def read_page(html: str) -> Read:
    """Read a page that has to be safe: it loads nothing, runs nothing and leads nowhere."""
    read = Read(html)
    assert read.policy == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import|https?:", read.style)
    assert all(each.isprintable() or each in LINES for each in read.text)
    return read
