"""What is shown of transcripts and sessions: who said what, with calls and results.

Of a long transcript the beginning and the end are shown, and how much is between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._text.display import BAD, GOOD, MODEL, Entry, Listing, Part, plain_text
from .._text.json import compact_json, indented_json, size_of
from .assistant import AssistantTurn, ReasoningItem, RefusalItem, ServerToolItem, TextItem
from .message import Attachment, Message
from .request import TranscriptItem
from .result import ToolResult

_HEAD = 10
_TAIL = 50
_LINE = 120


def items_listing(
    title: str, items: Sequence[TranscriptItem], ephemeral: frozenset[int] = frozenset()
) -> Listing:
    """Show items, oldest first.

    Args:
        title: What they are of.
        items: The items.
        ephemeral: The `id()` of messages that are said once only.
    """
    # One item more than fits is shown all the same: the line about it would take as much room.
    left = len(items) - _HEAD - _TAIL
    places = range(len(items)) if left <= 1 else (*range(_HEAD), *range(_HEAD + left, len(items)))
    entries: list[Entry] = []
    for place in places:
        entry = entry_of(place, items[place])
        is_once = id(items[place]) in ephemeral
        entries.append(entry._replace(about="once only") if is_once else entry)
    if left > 1:
        entries.insert(_HEAD, Entry("…", f"{left:,} items are not shown"))
    return Listing(title, f"{len(items):,} item{'' if len(items) == 1 else 's'}", entries)


def line_of(item: TranscriptItem) -> str:
    """Say on one line what an item is."""
    said = entry_of(0, item)
    shown = plain_text(Listing(f"{said.who}:", said.state, (), said.parts), _LINE)
    return " ".join(shown.split())


def entry_of(place: int, item: TranscriptItem, *, is_whole: bool = False) -> Entry:
    """Show an item; with `is_whole`, all that it holds, to somebody who has it as a file.

    A transcript does not know the tools, and any argument may be a secret: elsewhere there is only
    the size of arguments.
    """
    if isinstance(item, Message):
        text = [Part("", item.text)] if item.text else []
        files = _files(item.attachments, is_whole=is_whole)
        return Entry(str(place), item.role, parts=(*text, *files))
    if isinstance(item, ToolResult):
        said = item.rejection_reason or item.model_text
        parts = [Part("result of", f"{item.name}  {item.id}"), Part("result", indented_json(said))]
        if is_whole and item.message is not None and item.result != compact_json(item.message):
            parts[1:] = [
                Part("the model reads", said),
                Part("result", indented_json(item.result), "dim"),
            ]
        if item.ran_with is not None:
            parts.append(Part("ran with", compact_json(item.ran_with)))
        style = GOOD if item.is_success else BAD
        code = (is_whole and item.code) or ""
        parts += _files(item.attachments, is_whole=is_whole)
        return Entry(str(place), "tool", item.status, style, code, tuple(parts))
    about = [item.model or "", item.usage.in_words if is_whole and item.usage else ""]
    turn = tuple(_turn_parts(item, is_whole=is_whole))
    return Entry(str(place), "assistant", "", MODEL, "  ".join(filter(None, about)), turn)


def whole_entry(place: int, item: TranscriptItem) -> Entry:
    """Show all that an item holds, to somebody who has it as a file.

    Args:
        place: Its place in the transcript.
        item: A message, turn or result.

    Example:
        >>> from lutum_py import Message
        >>> from lutum_py.saved import whole_entry
        >>> whole_entry(0, Message("user", "Hello")).parts[0].text
        'Hello'
    """
    return entry_of(place, item, is_whole=True)


def _turn_parts(turn: AssistantTurn, *, is_whole: bool) -> Iterator[Part]:
    for item in turn.items:
        if isinstance(item, TextItem):
            yield Part("", item.text)
        elif isinstance(item, ReasoningItem):
            yield Part("reasoning", item.text or "(not shown by the provider)", "dim")
        elif isinstance(item, RefusalItem):
            yield Part("refusal", item.text)
        elif isinstance(item, ServerToolItem):
            yield Part("run by the provider", item.kind)
            if is_whole:
                yield Part("", indented_json(compact_json(item.payload)), "dim")
        else:
            call = item.metadata
            yield Part("call", f"{call.name}  {call.id}")
            arguments = indented_json(call.arguments) if is_whole else size_of(call.arguments)
            yield Part("", arguments)
    if turn.is_blocked or turn.is_truncated:
        yield Part("blocked" if turn.is_blocked else "cut off", turn.finish_reason or "")


def _files(files: Sequence[Attachment], *, is_whole: bool) -> Iterator[Part]:
    if is_whole:
        yield from map(_file, files)
    elif files:
        yield Part("attachments", str(len(files)))


def _file(file: Attachment) -> Part:
    words = [file.name, file.mime_type, None if file.size is None else f"{file.size:,} bytes"]
    if not file.url.startswith("data:"):
        words.append(file.url)
    said = ", ".join(filter(None, words)) + (f": {file.caption}" if file.caption else "")
    return Part(file.media_type, said)
