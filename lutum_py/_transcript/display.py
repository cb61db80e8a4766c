"""Transcripts and sessions in notebooks and on rich's terminal: who said what, calls and results.

Of a long transcript the beginning and the end are shown, and how much is between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._text.escaping import LINES, escape_unprintable
from .._text.html import Entry, Part, as_styles, brief_table, cut_text, figure
from .._text.json import compact_json, indented_json, size_of
from .assistant import AssistantTurn, ReasoningItem, RefusalItem, ServerToolItem, TextItem, Usage
from .message import Attachment, Message
from .request import TranscriptItem
from .result import ToolResult

_HEAD = 10
_TAIL = 50
_PARTS = 12
_LIMIT = 600
_CODE_LIMIT = 200
_RICH_TAIL = 20
_LINE = 120

# Only these are shown as pictures: a browser runs nothing of what is in them.
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def items_html(
    title: str, items: Sequence[TranscriptItem], ephemeral: frozenset[int] = frozenset()
) -> str:
    """Show items as a table, oldest first.

    Args:
        title: What they are of.
        items: The items.
        ephemeral: The `id()` of messages that are said once only.
    """
    entries: list[Entry] = []
    for place in _places(len(items), _TAIL):
        if place is None:
            left = f"{len(items) - _HEAD - _TAIL:,} items are not shown"
            entries.append(Entry("…", "", "", "plain", (), (Part("", left),)))
            continue
        entry = entry_of(place, items[place])
        if id(items[place]) in ephemeral:
            entry = entry._replace(about=("once only",))
        entries.append(entry)
    rows = brief_table(("#", "who", "what"), entries, _LIMIT, _CODE_LIMIT)
    count = f"{len(items):,} item{'' if len(items) == 1 else 's'}"
    return as_styles(figure(title, count, *([rows] * bool(entries))))


def items_rich(items: Sequence[TranscriptItem]) -> Iterator[str]:
    """Yield a line for each of the items that are shown."""
    for place in _places(len(items), _RICH_TAIL):
        if place is None:
            yield f"… {len(items) - _HEAD - _RICH_TAIL:,} items"
            continue
        yield line_of(items[place])


def line_of(item: TranscriptItem) -> str:
    """Say on one line what an item is."""
    said = entry_of(0, item)
    parts = [cut_text(_line(part), _LINE) for part in said.parts[:_PARTS]]
    about = "".join(f" ({cut_text(each, 80)})" for each in said.about)
    return escape_unprintable(f"{said.who}{about}: {' | '.join(parts)}", LINES)


def _line(part: Part) -> str:
    text = f"{part.text} {part.about}" if part.about else part.text
    return f"{part.label}: {text}" if part.label else text


# Of 500 items with a tail of 50: 0 to 9, None, 450 to 499. One item more than fits is shown all the
# same, since the line about it would take as much room.
def _places(count: int, tail: int) -> Iterator[int | None]:
    """Yield the places that are shown; None stands for those in between."""
    if count <= _HEAD + tail + 1:
        yield from range(count)
        return
    yield from range(_HEAD)
    yield None
    yield from range(count - tail, count)


def entry_of(place: int, item: TranscriptItem, *, is_whole: bool = False) -> Entry:
    """Say what an item is; with `is_whole`, all that it holds, for somebody who has it as a file.

    A transcript does not know the tools, and any argument may be a secret: elsewhere there is only
    the size of arguments.
    """
    number = str(place)
    if isinstance(item, Message):
        parts = [Part("", item.text)] if item.text or not is_whole else []
        files = _files(item.attachments, is_whole=is_whole)
        return Entry(number, item.role, "", "plain", (), (*parts, *files))
    if isinstance(item, ToolResult):
        return _result_entry(number, item, is_whole=is_whole)
    about = [item.model] if item.model else []
    if is_whole and item.usage is not None:
        about += usage_in_words(item.usage)
    turn = tuple(_turn_parts(item, is_whole=is_whole))
    return Entry(number, "assistant", "", "model", tuple(about), turn)


def _result_entry(number: str, result: ToolResult, *, is_whole: bool) -> Entry:
    kind = "good" if result.is_success else "bad"
    said = result.rejection_reason or result.model_text
    files = tuple(_files(result.attachments, is_whole=is_whole))
    # In a notebook the page may be published: what the model reads is shown, the arguments are not.
    if not is_whole:
        about = () if result.is_success else (result.status,)
        named = Part("", f"{result.name} {result.id}", "code")
        parts = (named, Part("", said), *_ran_with(result), *files)
        return Entry(number, "tool", "", kind, about, parts)
    coded = () if result.code is None else (result.code,)
    told = [Part("result", indented_json(said), "code")]
    if result.message is not None and result.result != compact_json(result.message):
        told = [
            Part("the model reads", said, "code"),
            Part("result", indented_json(result.result), "hidden"),
        ]
    named = Part("result of", result.name, "call", result.id)
    parts = (named, *told, *_ran_with(result), *files)
    return Entry(number, "tool", result.status, kind, coded, parts)


def usage_in_words(usage: Usage) -> list[str]:
    """Say what the provider counted; nothing is said about what it did not."""
    said: list[str] = []
    for whole, what, of_it in (
        (
            usage.input_tokens,
            "in",
            (("cached", usage.cached_tokens), ("written to a cache", usage.cache_write_tokens)),
        ),
        (usage.output_tokens, "out", (("reasoning", usage.reasoning_tokens),)),
    ):
        if whole is None:
            continue
        inner = ", ".join(f"{count:,} {word}" for word, count in of_it if count)
        said.append(f"{whole:,} tokens {what}" + (f" ({inner})" if inner else ""))
    return said


def _turn_parts(turn: AssistantTurn, *, is_whole: bool) -> Iterator[Part]:
    for item in turn.items:
        if isinstance(item, TextItem):
            yield Part("", item.text)
        elif isinstance(item, ReasoningItem):
            yield Part("reasoning", item.text or "(not shown by the provider)", "hidden")
        elif isinstance(item, RefusalItem):
            yield Part("refusal", item.text)
        elif isinstance(item, ServerToolItem):
            yield Part("run by the provider", item.kind)
            if is_whole:
                yield Part("", indented_json(compact_json(item.payload)), "hidden")
        elif is_whole:
            yield Part("call", item.metadata.name, "call", item.metadata.id)
            yield Part("", indented_json(item.metadata.arguments), "code")
        else:
            call = item.metadata
            yield Part("call", call.name, "call", f"{call.id} {size_of(call.arguments)}")
    if turn.is_blocked:
        yield Part("blocked", turn.finish_reason or "")
    elif turn.is_truncated:
        yield Part("cut off", turn.finish_reason or "")


def _ran_with(result: ToolResult) -> Iterator[Part]:
    if result.ran_with is not None:
        yield Part("ran with", compact_json(result.ran_with), "code")


def _files(files: Sequence[Attachment], *, is_whole: bool) -> Iterator[Part]:
    if files and not is_whole:
        yield Part("attachments", str(len(files)))
    elif is_whole:
        yield from map(_file, files)


def _file(file: Attachment) -> Part:
    words = [file.name, file.mime_type, None if file.size is None else f"{file.size:,} bytes"]
    if not file.url.startswith("data:"):
        words.append(file.url)
    said = ", ".join(filter(None, words)) + (f": {file.caption}" if file.caption else "")
    if _PICTURE.fullmatch(file.url):
        return Part("", said, "picture", source=file.url)
    return Part(file.media_type, said)
