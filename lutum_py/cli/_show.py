"""A saved conversation, plan or request as something to be looked at, whatever is wrong with it.

What the provider or this library would refuse is shown as well, with each fault beside the item
that it is in. Nothing is masked here but what was masked when it was saved: the reader has the
file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.text import Text

from .._round.display import PlanText, read_plan
from .._text.escaping import LINES, escape_unprintable
from .._text.html import Entry, Part, Remark, Section, left_out, page, preview_of
from .._text.json import is_array, is_object, read_json
from .._transcript.assistant import AssistantTurn, Usage
from .._transcript.display import entry_of, usage_in_words
from .._transcript.request import TranscriptItem
from .._transcript.result import ToolResult
from .._transcript.saved import PLAN, SESSION, Saved, open_saved, seal_in_words
from ..dialects import Violation
from ..dialects.authoring import facts_of
from ..errors import HistoryError, PlanError
from ._conversation_file import (
    Conversation,
    conversation_of,
    read_bytes,
    read_transcript,
    reading,
    session_of,
)
from ._exact_json import Style, exact_text
from ._screen import Failure, counted, text
from ._transcript_rules import examine_transcript

_ITEMS: Final = ("item", "who", "what")
_CALLS: Final = ("call", "tool and state", "arguments and why")
_AT: Final = re.compile(r"(\w+)\[(\d+)\]")
_LISTED: Final = 20
_ONE_LINE: Final = Style(None, " ", " ", False, "\n", "")
_LINES: Final = Style("  ", " ", " ", False, "\n", "")
_WIDTH: Final = 72
_TOLD: Final = (
    "What is here is what the file says; secrets that a call needs are in it, too. Without the "
    "toolset, nothing says that the tools are still as they were."
)
_MARKS: Final = {"good": "green", "bad": "red", "waiting": "yellow", "plain": "", "model": "blue"}


@dataclass(slots=True)
class Shown:
    """What is to be seen of a file, put together part by part.

    Attributes:
        name: What it is called.
        what: What it is, in words.
        facts: Counts: a word and a value each.
        remarks: What is to be said first.
        sections: Its items and calls.
        faults: How much is wrong with it.
    """

    name: str
    what: str
    facts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    remarks: list[Remark] = field(default_factory=list[Remark])
    sections: list[Section] = field(default_factory=list[Section])
    faults: int = 0

    def add_seal(self, saved: Saved, what: str) -> None:
        """Say whether anybody may have edited what was saved."""
        try:
            said = f"{seal_in_words(saved, what)} {_TOLD}"
            self.remarks.append(Remark("plain", "Not authenticated", said))
        except PlanError as error:
            self.remarks.append(Remark("bad", "Edited", f"{error} {_TOLD}"))
            self.faults += 1

    def add_plan(self, plan: PlanText, *, whole: bool = False) -> None:
        """Add the calls of an open round.

        Args:
            plan: The plan.
            whole: Whether nothing else is shown that counts tokens.
        """
        said = [entry_of(0, plan.turn, is_whole=True)]
        self.sections += (
            Section("call-", "Calls of the open round", _CALLS, plan.calls),
            Section("turn-", "What the model said", _ITEMS, said, True),
        )
        states = Counter(call.state for call in plan.calls)
        self.facts += ((state.capitalize(), str(count)) for state, count in states.items())
        self.facts += _tokens([plan.turn]) if whole else ()

    def add_conversation(self, conversation: Conversation) -> None:
        """Add the items of a conversation, and what is wrong with them."""
        (self._add_transcript if conversation.is_saved else self._add_request)(conversation)

    def _add_transcript(self, conversation: Conversation) -> None:
        value = conversation.value
        items, violations = examine_transcript(value)
        key = "items"
        if not violations and conversation.dialect is not None:
            violations = conversation.check()
            key = ""  # their places are of the request that it would become
        self._add_items(_entries(items, value["items"]), violations, key)
        self.facts += _counts([each for each in items if each is not None])

    def _add_request(self, conversation: Conversation) -> None:
        violations = conversation.check()
        body = conversation.value if is_object(conversation.value) else {}
        key = facts_of(conversation.dialect or "").key
        listed = conversation.value if is_array(conversation.value) else body.get(key, [])
        # A request that breaks no rule is shown as this library reads it, with calls beside their
        # results. Any other is shown as it is written: reading would stop at what is to be seen.
        items: list[TranscriptItem] | None = None
        if not violations:
            try:
                transcript, losses = read_transcript(conversation)
            except (Failure, HistoryError) as error:
                self.remarks.append(Remark("bad", "As it stands", str(error)))
            else:
                items = list(transcript)
                self.remarks += (Remark("plain", f"Not shown: {e.where}", e.text) for e in losses)
        if items is None:
            messages = listed if is_array(listed) else [listed]
            self._add_items(map(_raw_entry, range(len(messages)), messages), violations, key)
            self.facts.append(("Items", f"{len(messages):,}"))
        else:
            self._add_items(_entries(items, ()), (), key)
            self.facts += _counts(items)
        rest = [
            Entry(name, name, "", "plain", (), (_json_part("", value),))
            for name, value in body.items()
            if name != key
        ]
        if rest:
            heads = ("field", "name", "value")
            self.sections.append(
                Section("field-", "Other fields of the request", heads, rest, True)
            )

    def _add_items(
        self, entries: Iterable[Entry], violations: Sequence[Violation], key: str
    ) -> None:
        """Put each violation beside the entry that it is in, and list the first of them."""
        shown, left = list(entries), 0
        for number, each in enumerate(violations):
            # `items[3].tool_calls[0]` belongs to entry 3; a position in another list to no entry at
            # all.
            found = _AT.match(each.position)
            at = int(found[2]) if found and found[1] == key else len(shown)
            said = f"{each.position}: {each.problem}. {each.remedy}."
            place = ""
            if at < len(shown):
                place = f"item-{at}"
                problem = Part(each.rule, said, "problem")
                shown[at] = shown[at]._replace(parts=(*shown[at].parts, problem))
            if number < _LISTED or not place:
                self.remarks.append(Remark("bad", each.rule, said, place))
            else:
                left += 1
        if left:
            told = f"{counted(left, 'violation')} beside the items."
            self.remarks.append(Remark("bad", "More", told))
        self.sections.append(Section("item-", "", _ITEMS, shown))
        self.faults += len(violations)


def shown_file(file: str, dialect: str | None) -> Shown:
    """Read a file, or standard input for `-`, and say all that is in it.

    Args:
        file: The path.
        dialect: What the user says that a body belongs to.

    Raises:
        Failure: It cannot be read, or is nothing that is shown.
    """
    name, data = read_bytes(file)
    form = _format_of(data)
    with reading(name):
        if form == PLAN.name:
            saved = open_saved(data, PLAN)
            shown = Shown(name, "saved plan")
            shown.add_seal(saved, "plan")
            shown.add_plan(read_plan(saved), whole=True)
        elif form == SESSION.name:
            saved = open_saved(data, SESSION)
            id, plan = saved.data.get("id"), saved.inner_or_none("plan")
            shown = Shown(name, "saved session", [("Id", str(id))] if id else [])
            shown.add_seal(saved, "session")
            shown.add_conversation(session_of(name, saved, dialect))
            if plan is not None:
                shown.add_plan(read_plan(plan))
        else:
            conversation = conversation_of(name, data, dialect)
            shown = Shown(name, conversation.what)
            shown.add_conversation(conversation)
        return shown


def shown_stored(conversation: Conversation, plan: PlanText | None) -> Shown:
    """Say all that a store has of a conversation, whose seals were checked."""
    shown = Shown(conversation.name, "stored conversation")
    with reading(conversation.name):
        shown.add_conversation(conversation)
        if plan is not None:
            shown.add_plan(plan)
    return shown


def _format_of(data: bytes) -> Any:
    try:
        value = read_json(data)
    except (ValueError, RecursionError):
        return None  # whoever reads it as a conversation says what is wrong
    return value.get("format") if is_object(value) else None


def _entries(items: Sequence[TranscriptItem | None], saved: Sequence[Any]) -> Iterator[Entry]:
    """Show each item, or as it was saved where it could not be read."""
    for at, item in enumerate(items):
        yield _raw_entry(at, saved[at]) if item is None else entry_of(at, item, is_whole=True)


def _raw_entry(at: int, message: Any) -> Entry:
    """Show a message as it stands, field by field."""
    if not is_object(message):
        return Entry(str(at), "?", "", "plain", (), (_json_part("", message),))
    role, kind = message.get("role"), message.get("type")
    who = next((each for each in (role, kind) if isinstance(each, str) and each), "?")
    left = {name: value for name, value in message.items() if name != "role" or value != who}
    return Entry(str(at), who, "", "plain", (), tuple(_json_part(*field) for field in left.items()))


def _json_part(label: str, value: Any) -> Part:
    if isinstance(value, str):
        return Part(label, value)
    words = exact_text(value, _ONE_LINE)
    return Part(label, words if len(words) <= _WIDTH else exact_text(value, _LINES), "code")


def _counts(items: Sequence[TranscriptItem]) -> tuple[tuple[str, str], ...]:
    turns = [item for item in items if isinstance(item, AssistantTurn)]
    results = [item for item in items if isinstance(item, ToolResult)]
    facts = [("Items", f"{len(items):,}"), ("Turns of the model", f"{len(turns):,}")]
    facts.append(("Calls", f"{sum(len(turn.tool_calls) for turn in turns):,}"))
    bad = sum(not result.is_success for result in results)
    if bad:
        facts.append(("Results without success", f"{bad:,}"))
    return (*facts, *_tokens(turns))


def _tokens(turns: Iterable[AssistantTurn]) -> list[tuple[str, str]]:
    usage = sum((turn.usage for turn in turns if turn.usage is not None), Usage())
    said = " · ".join(usage_in_words(usage)).replace(" tokens", "")
    return [("Tokens", said)] if said else []


def page_of(shown: Shown) -> str:
    """Write the page."""
    return page(shown.name.strip("`"), shown.what, shown.facts, shown.remarks, shown.sections)


def new_page() -> str:
    """Make an empty file that only the user reads, to be looked at once."""
    handle, name = tempfile.mkstemp(prefix="lutum-", suffix=".html")
    os.close(handle)
    return name


def screen_of(shown: Shown) -> Iterator[Text]:
    """Yield the lines for a terminal, or for whatever reads the pipe."""
    yield text(f"{shown.name} ({shown.what})", "bold")
    if shown.facts:
        yield text("  " + "  ·  ".join(f"{word.lower()} {value}" for word, value in shown.facts))
    for remark in shown.remarks:
        yield text(f"  {remark.title}: {remark.text}", _MARKS[remark.kind])
    for section in shown.sections:
        if section.title:
            yield text("")
            yield text(section.title, "bold underline")
        for entry in section.entries:
            yield text("")
            yield _heading(entry)
            for part in entry.parts:
                yield from _part_lines(part)


def _heading(entry: Entry) -> Text:
    style = _MARKS[entry.kind]
    line = text("") if entry.place == entry.who else text(f"{entry.place}  ", "dim")
    line.append_text(text(entry.who, f"bold {style}".strip()))
    if entry.state:
        line.append_text(text(f"  {entry.state}", style))
    for each in entry.about:
        line.append_text(text(f"  {each}", "dim"))
    return line


def _part_lines(part: Part) -> Iterator[Text]:
    if part.kind == "call":
        line = text(f"  {part.label} ", "dim")
        line.append_text(text(part.text, "bold"))
        line.append_text(text(f"  {part.about}", "dim"))
        yield line
        return
    style = "red" if part.kind == "problem" else "dim" if part.kind == "hidden" else ""
    seen = preview_of(part.text)
    lines = escape_unprintable(seen, LINES).expandtabs(4).split("\n")
    if part.label and len(lines) == 1:
        lines = [f"{part.label}: {lines[0]}"]
    elif part.label:
        lines = [f"{part.label}:", *lines]
    # A long text is cut on the terminal only; the page folds it, and has all of it.
    if seen != part.text:
        lines.append(f"… {left_out(part.text, len(seen))}")
    for each in lines:
        yield text(f"  {each}", style)
