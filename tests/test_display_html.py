"""What notebooks show is safe: hostile text stays text, in whatever place it stands."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Session,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
)
from lutum_py.errors import CommitError, ExtraResult, MismatchedArguments, MissingResult
from lutum_py.sinks import escape_unprintable
from lutum_py.turns import (
    AssistantItem,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from tests.round_tools import Shop, opened

TAGS = {"div", "span", "strong", "table", "thead", "tbody", "tr", "th", "td"}
SIGNS = st.sampled_from("<>&\"'\n\t\r\x00\x1b\u202e\u200b/=")
# Half a surrogate pair does not get into messages or definitions.
HOSTILE = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), SIGNS), max_size=60)
NASTY = "</td><script>alert(\"1\")</script><img src=x onerror='y'>&lt;\x1b[31m\u202e"


class Read(HTMLParser):
    """Reads HTML as a browser would: the tags, their attributes, and the text in each element."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.balanced = True
        self.other: list[str] = []
        self.feed(html)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes.update(attrs)
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self.texts:
            self.texts.append("")
        self.texts[-1] += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


def styles_of(html: str) -> set[str | None]:
    return {value for name, value in read_safely(html).attributes if name == "style"}


def read_safely(html: str) -> Read:
    """Read HTML that has to have no tags or attributes but ours, and can be encoded."""
    read = Read(html)
    assert set(read.tags) <= TAGS
    assert {name for name, _ in read.attributes} <= {"style"}
    assert read.balanced
    assert read.other == []
    assert html.encode()
    shown = "".join(read.texts)
    assert all(each.isprintable() or each in "\n\t" for each in shown)
    return read


def hostile_toolset(text: str) -> str:
    schema = {
        "type": "object",
        "properties": {text: {"type": "string"}, "odd": True},
        "required": [text],
    }
    name = "".join(char for char in f"n{text}" if unicodedata.category(char) != "Cc")
    made = ToolDef.from_json_schema(name=name, description=text, input_schema=schema)
    return Toolset.from_definitions("Hostile", [made])._repr_html_()


def hostile_plan(text: str) -> str:
    hooks = Shop.HookSet()
    hooks.gate(Shop.pay)(
        lambda metadata, input: Suspend(SuspendTicket(id=text, action=text, message=text))
    )
    plan = opened(
        (f"1{text}", "add", {"a": 1}),
        (f"2{text}", "pay", {"amount": 1, "to": [text]}),
        (f"3{text}", text or "x", {text: text}),
        (f"4{text}", "ask", {"question": text}),
    ).apply_hooks_sync(lambda call: call.reject(text) if call.name == "ask" else call)
    plan = plan.apply_hooks_sync(hooks)
    html = plan._repr_html_()
    list(plan.__rich_repr__())
    plan.discard()
    return html


def hostile_round(text: str) -> str:
    made = opened((text, "ask", {"question": text}))
    html = made._repr_html_()
    made.discard()
    return html


def hostile_error(text: str) -> str:
    faults = [
        MissingResult(text, text),
        ExtraResult(text, text, (text,)),
        MismatchedArguments(text, text, text, text),
    ]
    return CommitError(faults)._repr_html_()


def hostile_session(text: str) -> str:
    session = Session()
    session.push_user(text, [Attachment(media_type="image", mime_type=text, url=f"https://{text}")])
    metadata = ToolMetadata(id=text, name=text, arguments=json.dumps(text))
    items: list[AssistantItem] = [
        TextItem(text),
        ReasoningItem(text),
        ReasoningItem(""),
        RefusalItem(text),
        ServerToolItem(text, {}),
        ToolCallItem(metadata),
    ]
    turn = AssistantTurn(items=items, model=text, finish_reason="length")
    (call,) = turn.tool_calls
    result = ToolResult(
        id=call.id, name=call.name, arguments=call.arguments, result=json.dumps(text)
    )
    session.transcript.append_round(CommittedRound(turn, [result]))
    session.push_ephemeral_user(text)
    return session._repr_html_()


@pytest.mark.parametrize(
    "display",
    [hostile_toolset, hostile_plan, hostile_round, hostile_error, hostile_session],
)
@given(HOSTILE)
def test_no_display_lets_hostile_text_out_of_its_place(
    display: Callable[[str], str], text: str
) -> None:
    """Names, ids, arguments, reasons, tickets and what was said stay text, with no tag or style."""
    html = display(text)
    assert styles_of(html) <= styles_of(display("plain"))
    assert escape_unprintable(text, "\n\t") in "".join(read_safely(html).texts)


@pytest.mark.parametrize(
    "display",
    [hostile_toolset, hostile_plan, hostile_round, hostile_error, hostile_session],
)
def test_a_script_is_shown_and_not_run(display: Callable[[str], str]) -> None:
    """Tags, quotes, entities, terminal codes and marks of direction are shown as such."""
    read = read_safely(display(NASTY))
    assert "<script>alert(" in "".join(read.texts)
    assert "[31m\\u202e" in "".join(read.texts)


@pytest.mark.parametrize(
    "display",
    [hostile_toolset, hostile_plan, hostile_round, hostile_error, hostile_session],
)
def test_text_and_background_are_those_of_the_page(display: Callable[[str], str]) -> None:
    """No display sets a background or a colour of text, so dark and light notebooks both do."""
    for style in styles_of(display("x")):
        names = {each.partition(":")[0].strip() for each in (style or "").split(";")}
        assert names.isdisjoint({"color", "background", "background-color"})
