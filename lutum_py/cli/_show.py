"""A saved conversation, plan or request as something to be looked at, whatever is wrong with it.

What the provider or this library would refuse is shown as well, with each fault beside the item
that it is in. Nothing is masked here but what was masked when it was saved: the reader has the
file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Final

from rich.console import Console
from rich.segment import Segments
from rich.text import Text

from .. import AssistantTurn, ToolResult, Usage
from .._text.display import BAD, Entry, Listing, Part, rich_text
from .._text.json import exact_json, indented_json, is_array, is_object, read_json
from ..dialects import Violation
from ..errors import PlanError
from ..saved import (
    PLAN,
    SESSION,
    Saved,
    SavedPlan,
    examine,
    open_saved,
    read_plan,
    seal_in_words,
    whole_entry,
)
from ..turns import TranscriptItem
from ._conversation_file import (
    Conversation,
    conversation_of,
    dialect_module,
    read_bytes,
    reading,
    session_of,
    violations_of,
)
from ._screen import Failure

_AT: Final = re.compile(r"(\w+)\[(\d+)\]")
_TOLD: Final = (
    "What is here is what the file says; secrets that a call needs are in it, too. Without the "
    "toolset, nothing says that the tools are still as they were."
)
_LIMIT: Final = 1200
# What is shown is escaped. With this policy, a browser loads and runs nothing even if it were not.
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>lutum show</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<style>pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
{stylesheet}</style></head>
<body><pre>{code}</pre></body></html>
"""


@dataclass(slots=True)
class Shown:
    """What is to be seen of a file, put together part by part.

    Attributes:
        title: What it is.
        facts: Counts, in words.
        remarks: What is to be said first.
        items: Its items.
        sections: What comes after the items, such as its calls.
        faults: How much is wrong with it.
    """

    title: str
    facts: list[str] = field(default_factory=list[str])
    remarks: list[Part] = field(default_factory=list[Part])
    items: list[Entry] = field(default_factory=list[Entry])
    sections: list[Listing] = field(default_factory=list[Listing])
    faults: int = 0

    @property
    def listings(self) -> list[Listing]:
        """All of it, in the order in which it is read."""
        facts = [Part("", "  ·  ".join(self.facts))] if self.facts else []
        return [Listing(self.title, "", self.items, [*facts, *self.remarks]), *self.sections]

    def add_seal(self, saved: Saved) -> None:
        """Say whether anybody may have edited what was saved."""
        try:
            said = f"{seal_in_words(saved)} {_TOLD}"
            self.remarks.append(Part("Not authenticated", said))
        except PlanError as error:
            self.remarks.append(Part("Edited", f"{error} {_TOLD}", BAD))
            self.faults += 1

    def add_plan(self, plan: SavedPlan) -> None:
        """Add the calls of an open round, and the turn that asked for them."""
        turn = whole_entry(0, plan.turn)
        self.sections += [plan.calls, Listing("What the model said", "", [turn])]

    def add_conversation(self, conversation: Conversation) -> None:
        """Add the items of a conversation, and what is wrong with them."""
        (self._add_transcript if conversation.is_saved else self._add_request)(conversation)

    def _add_transcript(self, conversation: Conversation) -> None:
        value = conversation.value
        items, faults = examine(value)
        violations = violations_of(faults)
        key = "items"
        if not violations and conversation.dialect is not None:
            violations = conversation.check()
            key = ""  # their places are of the request that it would become
        self._add_items(_entries(items, value["items"]), violations, key)
        self.facts += _counts([each for each in items if each is not None])

    def _add_request(self, conversation: Conversation) -> None:
        violations = conversation.check()
        body = conversation.value if is_object(conversation.value) else {}
        key = dialect_module(conversation.dialect or "").DIALECT.facts.key
        listed = conversation.value if is_array(conversation.value) else body.get(key, [])
        # A request that breaks no rule is shown as this library reads it, with calls beside their
        # results. Any other is shown as it is written: reading would stop at what is to be seen.
        items: list[TranscriptItem] | None = None
        if not violations:
            try:
                transcript, losses = conversation.transcript()
            except Failure as error:
                self.remarks.append(Part("As it stands", str(error), BAD))
            else:
                items = list(transcript)
                self.remarks += (Part(f"Not shown: {e.where}", e.text) for e in losses)
        if items is None:
            messages = listed if is_array(listed) else [listed]
            self._add_items(map(_raw_entry, range(len(messages)), messages), violations, key)
            self.facts.append(f"items {len(messages):,}")
        else:
            self._add_items(_entries(items, ()), (), key)
            self.facts += _counts(items)
        rest = [
            Entry("", name, parts=(_json_part("", value),))
            for name, value in body.items()
            if name != key
        ]
        if rest:
            self.sections.append(Listing("Other fields of the request", "", rest))

    def _add_items(
        self, entries: Iterable[Entry], violations: Sequence[Violation], key: str
    ) -> None:
        """Put each violation beside the entry that it is in, or before all where it is in none."""
        self.items += entries
        for each in violations:
            said = Part(each.rule, f"{each.position}: {each.problem}. {each.remedy}.", BAD)
            # `items[3].tool_calls[0]` belongs to entry 3; a position in another list to no entry at
            # all.
            found = _AT.match(each.position)
            at = int(found[2]) if found and found[1] == key else len(self.items)
            if at < len(self.items):
                entry = self.items[at]
                self.items[at] = entry._replace(parts=(*entry.parts, said))
            else:
                self.remarks.append(said)
        if violations:
            self.facts.append(f"violations {len(violations):,}")
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
            shown = Shown(f"{name} (saved plan)")
            shown.add_seal(saved)
            shown.add_plan(read_plan(saved))
        elif form == SESSION.name:
            saved = open_saved(data, SESSION)
            id, plan = saved.data.get("id"), saved.inner_or_none("plan")
            shown = Shown(f"{name} (saved session)", [f"id {id}"] if id else [])
            shown.add_seal(saved)
            shown.add_conversation(session_of(name, saved, dialect))
            if plan is not None:
                shown.add_plan(read_plan(plan))
        else:
            conversation = conversation_of(name, data, dialect)
            shown = Shown(f"{name} ({conversation.what})")
            shown.add_conversation(conversation)
        return shown


def shown_stored(conversation: Conversation, plan: SavedPlan | None) -> Shown:
    """Say all that a store has of a conversation, whose seals were checked."""
    shown = Shown(f"{conversation.name} (stored conversation)")
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
        yield _raw_entry(at, saved[at]) if item is None else whole_entry(at, item)


def _raw_entry(at: int, message: Any) -> Entry:
    """Show a message as it stands, field by field."""
    if not is_object(message):
        return Entry(str(at), "?", parts=(_json_part("", message),))
    role, kind = message.get("role"), message.get("type")
    who = next((each for each in (role, kind) if isinstance(each, str) and each), "?")
    left = {name: value for name, value in message.items() if name != "role" or value != who}
    return Entry(str(at), who, parts=tuple(_json_part(*field) for field in left.items()))


def _json_part(label: str, value: Any) -> Part:
    return Part(
        label,
        value if isinstance(value, str) else indented_json(exact_json(value, ensure_ascii=False)),
    )


def _counts(items: Sequence[TranscriptItem]) -> list[str]:
    turns = [item for item in items if isinstance(item, AssistantTurn)]
    facts = [f"items {len(items):,}", f"turns of the model {len(turns):,}"]
    facts.append(f"calls {sum(len(turn.tool_calls) for turn in turns):,}")
    bad = sum(isinstance(item, ToolResult) and not item.is_success for item in items)
    facts += [f"results without success {bad:,}"] if bad else []
    usage = sum((turn.usage for turn in turns if turn.usage is not None), Usage())
    return [*facts, *filter(None, [usage.in_words])]


def page_of(shown: Shown) -> str:
    """Write the page, which holds all of it."""
    console = Console(file=StringIO(), record=True, color_system="truecolor")
    # Without looking for places to break lines at, which takes most of the time: browsers do that.
    console.print(Segments(rich_text(shown.listings).render(console)), soft_wrap=True)
    return console.export_html(code_format=_PAGE)


def new_page() -> str:
    """Make an empty file that only the user reads, to be looked at once."""
    handle, name = tempfile.mkstemp(prefix="lutum-", suffix=".html")
    os.close(handle)
    return name


def screen_of(shown: Shown) -> Iterable[Text]:
    """Give the lines for a terminal, or for whatever reads the pipe: long texts are cut."""
    return rich_text(shown.listings, _LIMIT).split("\n", allow_blank=True)
