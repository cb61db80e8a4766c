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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from .._round.display import read_plan
from .._round.plan_json import VERSION, open_plan
from .._session.saved_session import FORMAT as SESSION
from .._session.saved_session import open_session
from .._text.escaping import LINES, visible
from .._text.html import Entry, Part, left_out, preview_of
from .._text.json import is_array, is_object, read_json
from .._text.page import Remark, Section, page
from .._transcript.assistant import AssistantTurn, Usage
from .._transcript.display import entry_of, usage_in_words
from .._transcript.request import TranscriptItem
from .._transcript.result import ToolResult
from .._transcript.saved import Saved
from .._transcript.seal import seal_in_words
from ..dialects._facts import facts_of
from ..dialects._findings import Violation
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
from ._stored import StoredText
from ._transcript_rules import examine_transcript

_ITEMS: Final = ("item", "who", "what")
_CALLS: Final = ("call", "tool and state", "arguments and why")
_AT: Final = re.compile(r"(\w+)\[(\d+)\]")
_LISTED: Final = 20
_ONE_LINE: Final = Style(None, " ", " ", False, "\n", "")
_LINES: Final = Style("  ", " ", " ", False, "\n", "")
_WIDTH: Final = 72
_TOLD: Final = (
    "What stands here is what the file says; secrets that a call needs are in it, too. Without the "
    "toolset, nothing says that the tools are still as they were."
)
_MARKS: Final = {"good": "green", "bad": "red", "waiting": "yellow", "plain": "", "model": "blue"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What is to be seen of a file.

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
    facts: tuple[tuple[str, str], ...]
    remarks: tuple[Remark, ...]
    sections: tuple[Section, ...]
    faults: int = 0


def shown_file(file: str, dialect: str | None) -> Shown:
    """Read a file, or standard input for `-`, and say all that is in it.

    Args:
        file: The path.
        dialect: What the user says that a body is of.

    Raises:
        Failure: It cannot be read, or is nothing that is shown.
    """
    name, data = read_bytes(file)
    form = _format_of(data)
    with reading(name):
        if form == "lutum_py.plan":
            return _of_plan(name, open_plan(data))
        if form == SESSION:
            return _of_session(name, open_session(data), dialect)
        return _of_conversation(conversation_of(name, data, dialect))


def shown_stored(id: str, stored: StoredText, dialect: str | None) -> Shown:
    """Say all that a store has of a conversation, whose seals were checked."""
    name = f"`{id}`"
    conversation = conversation_of(name, stored.transcript.encode(), dialect)
    with reading(name):
        return _with_plan(_of_transcript(conversation), stored.plan, what="stored conversation")


def _format_of(data: bytes) -> Any:
    try:
        value = read_json(data)
    except (ValueError, RecursionError):
        return None  # whoever reads it as a conversation says what is wrong
    return value.get("format") if is_object(value) else None


def _of_plan(name: str, saved: Saved) -> Shown:
    sections, facts = _plan_sections(saved, whole=True)
    remarks, faults = _seal_remarks(saved, "plan")
    remarks = (*remarks, *_order_remarks(saved))
    return Shown(name, "saved plan", facts, remarks, sections, faults)


def _of_session(name: str, saved: Saved, dialect: str | None) -> Shown:
    shown = _of_transcript(session_of(name, saved, dialect))
    if id := saved.data.get("id"):
        shown = replace(shown, facts=(("Id", str(id)), *shown.facts))
    sealed, edited = _seal_remarks(saved, "session")
    shown = replace(shown, remarks=(*sealed, *shown.remarks), faults=shown.faults + edited)
    return _with_plan(shown, saved.inner_or_none("plan"), what="saved session")


def _with_plan(shown: Shown, plan: Saved | None, *, what: str) -> Shown:
    """Add the calls of the open round to what was said."""
    calls, counts = ((), ()) if plan is None else _plan_sections(plan, whole=False)
    return replace(
        shown,
        what=what,
        sections=(*shown.sections, *calls),
        facts=(*shown.facts, *counts),
        remarks=(*shown.remarks, *_order_remarks(plan)),
    )


def _plan_sections(
    saved: Saved, *, whole: bool
) -> tuple[tuple[Section, ...], tuple[tuple[str, str], ...]]:
    plan = read_plan(saved)
    calls = Section("call-", "Calls of the open round", _CALLS, plan.calls)
    said = Section(
        "turn-", "What the model said", _ITEMS, [entry_of(0, plan.turn, is_whole=True)], True
    )
    states: dict[str, int] = {}
    for call in plan.calls:
        states[call.state] = states.get(call.state, 0) + 1
    facts = tuple((state.capitalize(), str(count)) for state, count in states.items())
    return (calls, said), (*facts, *(_tokens([plan.turn]) if whole else ()))


def _order_remarks(plan: Saved | None) -> tuple[Remark, ...]:
    """Say so where a plan does not tell which of its calls wait for which."""
    if plan is None or plan.data.get("version") == VERSION or len(plan.data["calls"]) < 2:
        return ()
    told = "An earlier release saved this plan, and did not keep which of its calls touch the same."
    return (Remark("plain", "Order not known", told),)


def _seal_remarks(saved: Saved, what: str) -> tuple[tuple[Remark, ...], int]:
    try:
        sealed = Remark("plain", "Not authenticated", f"{seal_in_words(saved, what)} {_TOLD}")
    except PlanError as error:
        return (Remark("bad", "Edited", f"{error} {_TOLD}"),), 1
    return (sealed,), 0


def _of_conversation(conversation: Conversation) -> Shown:
    if conversation.is_saved:
        return _of_transcript(conversation)
    violations, remarks = conversation.check(), list[Remark]()
    body = conversation.value if is_object(conversation.value) else {}
    key = facts_of(conversation.dialect or "").key
    listed = conversation.value if is_array(conversation.value) else body.get(key, [])
    rest = {name: value for name, value in body.items() if name != key}
    # A request that breaks no rule is shown as this library reads it, with calls beside their
    # results. Any other is shown as it is written: reading would stop at what is to be seen.
    items: list[TranscriptItem] | None = None
    if not violations:
        try:
            transcript, losses = read_transcript(conversation)
        except (Failure, HistoryError) as error:
            remarks.append(Remark("bad", "As it stands", str(error)))
        else:
            items = list(transcript)
            remarks += [Remark("plain", f"Not shown: {loss.where}", loss.text) for loss in losses]
    if items is None:
        messages = listed if is_array(listed) else [listed]
        entries, told = _with_faults(
            map(_raw_entry, range(len(messages)), messages), violations, key
        )
        facts: tuple[tuple[str, str], ...] = (("Items", f"{len(messages):,}"),)
        remarks += told
    else:
        entries = [entry_of(at, item, is_whole=True) for at, item in enumerate(items)]
        facts = _counts(items)
    sections = [Section("item-", "", _ITEMS, entries)]
    if rest:
        settings = [
            Entry(name, name, "", "plain", (), (_json_part("", value),))
            for name, value in rest.items()
        ]
        sections.append(
            Section(
                "field-", "Other fields of the request", ("field", "name", "value"), settings, True
            )
        )
    return Shown(
        conversation.name,
        conversation.what,
        facts,
        tuple(remarks),
        tuple(sections),
        len(violations),
    )


def _of_transcript(conversation: Conversation) -> Shown:
    value = conversation.value
    items, violations = examine_transcript(value)
    key = "items"
    if not violations and conversation.dialect is not None:
        violations = conversation.check()
        key = ""  # their places are of the request that it would become
    entries, remarks = _with_faults(_entries(items, value["items"]), violations, key)
    facts = _counts([each for each in items if each is not None])
    sections = (Section("item-", "", _ITEMS, entries),)
    return Shown(conversation.name, conversation.what, facts, remarks, sections, len(violations))


def _entries(items: Sequence[TranscriptItem | None], saved: Sequence[Any]) -> Iterator[Entry]:
    for at, item in enumerate(items):
        yield _raw_entry(at, saved[at]) if item is None else entry_of(at, item, is_whole=True)


def _with_faults(
    entries: Iterable[Entry], violations: Sequence[Violation], key: str
) -> tuple[list[Entry], tuple[Remark, ...]]:
    """Put each violation beside the entry that it is in, and list the first of them."""
    shown, remarks = list(entries), list[Remark]()
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
            remarks.append(Remark("bad", each.rule, said, place))
    left = len(violations) - len(remarks)
    if left:
        remarks.append(Remark("bad", "More", f"{counted(left, 'violation')} beside the items."))
    return shown, tuple(remarks)


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
    return (
        [("Tokens", " · ".join(said).replace(" tokens", ""))]
        if (said := usage_in_words(usage))
        else []
    )


def page_of(shown: Shown) -> str:
    """Write the page."""
    return page(shown.name.strip("`"), shown.what, shown.facts, shown.remarks, shown.sections)


def new_page() -> Path:
    """Make an empty file that only the user reads, to be looked at once."""
    handle, name = tempfile.mkstemp(prefix="lutum-", suffix=".html")
    os.close(handle)
    return Path(name)


def screen_of(shown: Shown) -> Iterator[Text]:
    """Give the lines for a terminal, or for whatever reads the pipe."""
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
    lines = visible(seen, LINES).expandtabs(4).split("\n")
    if part.label and len(lines) == 1:
        lines = [f"{part.label}: {lines[0]}"]
    elif part.label:
        lines = [f"{part.label}:", *lines]
    # A long text is cut on the terminal only; the page folds it, and has all of it.
    if seen != part.text:
        lines.append(f"… {left_out(part.text, len(seen))}")
    for each in lines:
        yield text(f"  {each}", style)
