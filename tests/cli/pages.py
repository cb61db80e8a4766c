"""Read a page as a browser would, and refuse one that is not safe."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from hypothesis import strategies as st

LINES = "\n\t"
"""What is kept of a text of several lines, beside what prints."""
PICTURE = "data:image/png;base64,iVBORw0KGgo="
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "p", "h1", "h2"),
    *("dl", "dt", "dd", "div", "span", "b", "a", "aside", "section", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img"),
}
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
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self._in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        given = {name: value or "" for name, value in attrs}
        assert given.keys() <= {
            *("class", "id", "href", "src", "alt", "loading"),
            *("lang", "charset", "http-equiv", "content", "name"),
        }
        self._in_style = tag == "style"
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.pictures += [given["src"]] if "src" in given else []
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
    """Read a page that has to be safe: nothing is loaded, and links lead to its own entries."""
    read = Read(html)
    digest = base64.b64encode(hashlib.sha256(read.style.encode()).digest()).decode()
    assert read.policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    assert not re.search(r"url\(|@import|https?:", read.style)
    assert all(link.startswith("#") and link[1:] in read.ids for link in read.links)
    assert all(re.match(r"data:image/(png|jpeg|gif|webp);base64,", each) for each in read.pictures)
    assert len(set(read.ids)) == len(read.ids)
    assert all(each.isprintable() or each in LINES for each in read.text)
    return read
