"""Transcripts and sessions in notebooks and on rich's terminal: who said what, calls and results.

Of a long transcript the beginning and the end are shown, and how much stands between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .._text.escaping import LINES, visible
from .._text.html import (
    Html,
    cut_text,
    figure,
    mark,
    note,
    paragraph,
    table,
)
from .._text.json import compact_json, size_of
from .assistant import (
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
)
from .message import Message
from .request import TranscriptItem
from .result import ToolResult

__all__ = ["items_html", "items_rich"]

_HEAD = 10
_TAIL = 50
_PARTS = 12
_LIMIT = 600
_CODE_LIMIT = 200
_RICH_TAIL = 20
_LINE = 120


class _Part(NamedTuple):
    """A piece of what was said: what it is, if that is not plain text, and the text."""

    label: str
    text: str
    is_code: bool = False


class _Said(NamedTuple):
    who: str
    kind: str
    about: str
    parts: list[_Part]


def items_html(
    title: str, items: Sequence[TranscriptItem], ephemeral: frozenset[int] = frozenset()
) -> str:
    """Show items as a table, oldest first.

    Args:
        title: What they are of.
        items: The items.
        ephemeral: The `id()` of messages that are said once only.
    """
    rows: list[tuple[str, str, Html]] = []
    for place in _places(len(items), _TAIL):
        if place is None:
            rows.append(("…", "", note(f"{len(items) - _HEAD - _TAIL:,} items are not shown")))
            continue
        item = items[place]
        said = _say(item)
        about = "once only" if id(item) in ephemeral else said.about
        who = Html(mark(said.who, said.kind) + (paragraph(about, 80) if about else ""))
        rows.append((str(place), who, _body(said.parts)))
    return figure(title, _count(items), *([table(("#", "who", "what"), rows)] * bool(rows)))


def items_rich(items: Sequence[TranscriptItem]) -> Iterator[str]:
    """Give a line for each of the items that are shown."""
    for place in _places(len(items), _RICH_TAIL):
        if place is None:
            yield f"… {len(items) - _HEAD - _RICH_TAIL:,} items"
            continue
        said = _say(items[place])
        parts = [
            cut_text(f"{label}: {text}" if label else text, _LINE)
            for label, text, _ in said.parts[:_PARTS]
        ]
        about = f" ({cut_text(said.about, 80)})" if said.about else ""
        yield visible(f"{said.who}{about}: {' | '.join(parts)}", LINES)


def _places(count: int, tail: int) -> Iterator[int | None]:
    """Give the places that are shown; None stands for those in between."""
    if count <= _HEAD + tail + 1:
        yield from range(count)
        return
    yield from range(_HEAD)
    yield None
    yield from range(count - tail, count)


def _count(items: Sequence[Any]) -> str:
    return f"{len(items):,} item{'' if len(items) == 1 else 's'}"


def _body(parts: list[_Part]) -> Html:
    shown = [
        paragraph(text, _CODE_LIMIT if is_code else _LIMIT, code=is_code, label=label)
        for label, text, is_code in parts[:_PARTS]
    ]
    if len(parts) > _PARTS:
        shown.append(note(f"{len(parts) - _PARTS} more parts are not shown"))
    return Html("".join(shown))


def _say(item: TranscriptItem) -> _Said:
    if isinstance(item, Message):
        parts = [_Part("", item.text), *_attached(len(item.attachments))]
        return _Said(item.role, "plain", "", parts)
    if isinstance(item, ToolResult):
        about = "" if item.is_success else item.status
        parts = [
            _Part("", f"{item.name} {item.id}", is_code=True),
            _Part("", item.rejection_reason or item.model_text),
            *_ran_with(item),
            *_attached(len(item.attachments)),
        ]
        return _Said("tool", "good" if item.is_success else "bad", about, parts)
    return _Said("assistant", "waiting", item.model or "", list(_turn_parts(item)))


def _turn_parts(turn: AssistantTurn) -> Iterator[_Part]:
    for item in turn.items:
        if isinstance(item, TextItem):
            yield _Part("", item.text)
        elif isinstance(item, ReasoningItem):
            yield _Part("reasoning", item.text or "(not shown by the provider)")
        elif isinstance(item, RefusalItem):
            yield _Part("refusal", item.text)
        elif isinstance(item, ServerToolItem):
            yield _Part("run by the provider", item.kind)
        else:
            call = item.metadata
            # A transcript does not know the tools: any argument may be a secret.
            about = f"{call.name} {call.id} {size_of(call.arguments)}"
            yield _Part("call", about, is_code=True)
    if turn.is_truncated:
        yield _Part("cut off", turn.finish_reason or "")


def _ran_with(result: ToolResult) -> Iterator[_Part]:
    if result.ran_with is not None:
        yield _Part("ran with", compact_json(result.ran_with), is_code=True)


def _attached(count: int) -> Iterator[_Part]:
    if count:
        yield _Part("attachments", str(count))
