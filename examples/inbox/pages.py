"""The pages: what waits, one call, its edit, and what is told where nothing was decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from edits import Change, Field, answer_field, differences, pretty
from guard import Person
from journal import Entry
from markup import Html, ago, el, join, value

from lutum_py import ResumeMode
from lutum_py.store import Waiting

__all__ = [
    "Shown",
    "address",
    "call_page",
    "edit_page",
    "entry_line",
    "list_page",
    "page",
    "problem_page",
    "review_page",
    "takes_edits",
    "who_page",
]

BRIEF: Final = 80
FOOT: Final = (
    "An example, on this machine alone. It asks nobody for a password: whoever opens it decides "
    "under any name. A real inbox needs users and who may decide what, TLS, a log out of their "
    "reach, and a limit on tries; the README of the example says more."
)


def address(path: str, **query: str) -> str:
    """Give the address of a page."""
    return f"{path}?{urlencode(query)}"


def page(title: str, person: Person | None, *content: str) -> str:
    """Give a whole page."""
    who = (
        el("p", "Deciding as ", el("strong", person.name), " · ", el("a", "change", href="/who"))
        if person
        else Html("")
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · Inbox"),
        el("link", rel="icon", href="/icon.svg", type="image/svg+xml"),
        el("link", rel="stylesheet", href="/style.css"),
    )
    body = el(
        "body",
        el("a", "To the content", href="#content", class_="skip"),
        el("header", el("a", Html(MARK), " Inbox", href="/", class_="home"), who),
        el("main", *content, id="content", tabindex="-1"),
        el("footer", el("p", FOOT)),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en")


MARK: Final = (
    '<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" fill="none" '
    'stroke="currentColor" stroke-width="1.8" stroke-linejoin="round" stroke-linecap="round">'
    '<path d="M3 13.5 5.6 5.4A2 2 0 0 1 7.5 4h9a2 2 0 0 1 1.9 1.4L21 13.5V18a2 2 0 0 1-2 2H5a2 2 '
    '0 0 1-2-2z"/><path d="M3 13.5h5l1.4 2.5h5.2l1.4-2.5h5"/></svg>'
)


def who_page(next_address: str, fault: str = "") -> str:
    """Ask for a name."""
    return page(
        "Who are you?",
        None,
        el("h1", "Who decides here?"),
        el("p", "Your name stands beside what you decide, and others are told it.", class_="lead"),
        el(
            "form",
            el("input", type="hidden", name="next", value=next_address),
            el("label", "Your name", for_="name"),
            _fault("name", fault),
            el(
                "input",
                id="name",
                name="name",
                required=True,
                autofocus=True,
                maxlength="60",
                autocomplete="nickname",
                aria_invalid="true" if fault else None,
                aria_describedby="name-fault" if fault else None,
            ),
            el("div", el("button", "Go on", class_="yes"), class_="actions"),
            method="post",
            action="/who",
            class_="panel small",
        ),
    )


# What waits, and what was decided.


def list_page(
    person: Person, waiting: Sequence[Waiting], decided: Sequence[Entry], done: Entry | None
) -> str:
    """Show all that waits, and what was decided lately."""
    count = len(waiting)
    title = "Nothing waits" if not count else f"{count} wait" + "s" * (count == 1)
    told = el("p", *entry_line(done, person), class_="told", role="status") if done else Html("")
    listed = (
        el("ul", *map(_card, waiting), class_="cards")
        if waiting
        else el("p", "All is decided. What comes next shows here when you look again.")
    )
    lately = (
        el(
            "section",
            el("h2", "Decided lately", id="lately"),
            el("ul", *(el("li", *entry_line(each, person)) for each in decided), class_="log"),
            aria_labelledby="lately",
        )
        if decided
        else Html("")
    )
    heading = "Nothing waits for you" if not count else f"{_counted(count)} for a decision"
    again = el("a", "Look again", href="/", class_="quiet")
    return page(
        title, person, told, el("div", el("h1", heading), again, class_="row"), listed, lately
    )


def _counted(count: int) -> str:
    return "1 call waits" if count == 1 else f"{count} calls wait"


def _card(waiting: Waiting) -> Html:
    where = address("/call", **{"in": waiting.id, "id": waiting.call_id})
    brief = [
        el("div", el("dt", name), el("dd", value(_brief(given))))
        for name, given in waiting.arguments.items()
    ]
    return el(
        "li",
        el("h2", el("a", _question(waiting), href=where)),
        el("p", *_facts(waiting), class_="facts"),
        el("dl", *brief[:4]),
    )


def _question(waiting: Waiting) -> str:
    if _faults(waiting):  # the message has all values in a row; the page has a table of them
        return f"Run {waiting.tool} with these values?"
    return waiting.ticket.message or f"Run {waiting.tool}?"


def _faults(waiting: Waiting) -> list[dict[str, Any]]:
    """Give what a policy of `lutum_py.flow` has against the call."""
    found: list[dict[str, Any]] = waiting.ticket.parameters.get("flow", [])
    return found


def _found(waiting: Waiting) -> Iterator[Html]:
    """Show where the values were found that a policy asks about, and what it has against each."""
    rows = [
        el(
            "tr",
            el("th", value(each["argument"] or "the call"), scope="row"),
            el(
                "td",
                el("strong", value("" if each["value"] is None else _text(each["value"]))),
                el("p", each["fault"]),
                el("ul", *(el("li", value(_source(one))) for one in each["sources"]))
                if each["sources"]
                else el("p", "found nowhere: the assistant made it up", class_="hint"),
            ),
        )
        for each in _faults(waiting)
    ]
    if rows:
        yield el(
            "section",
            el("h2", "Where its values come from", id="found"),
            el("table", *rows, aria_labelledby="found"),
            aria_labelledby="found",
        )


def _source(found: Mapping[str, Any]) -> str:
    if found["tool"] is None:
        return f"in a message of the {found['kind']}"
    trusted = "trusted" if found["trusted"] else "untrusted"
    return f"in the {trusted} result of {found['tool']} ({found['call_id']})"


def _facts(waiting: Waiting) -> tuple[str, ...]:
    since = ago(waiting.ticket.parameters.get("asked_at"))
    return (
        *(el("code", waiting.tool), " · the assistant asks, in conversation "),
        *(el("code", waiting.id), _path(waiting), " · since ", since),
    )


def _path(waiting: Waiting) -> Html:
    if not waiting.ancestors:
        return Html("")
    tools = join(*(join(" of ", el("code", each.tool)) for each in reversed(waiting.ancestors)))
    return join(" · call ", el("code", waiting.call_id), tools)


def _brief(given: Any) -> str:
    text = " ".join((given if isinstance(given, str) else json.dumps(given)).split())
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"


SAID: Final = {
    ("approve", "ready"): ("✓", "Approved"),
    ("answer", "decided"): ("✓", "Answered"),
    ("answer", "ready"): ("✓", "Answered"),
    ("edit", "ready"): ("✎", "Approved with changes"),
    ("edit", "decided"): ("✎", "Changed, and answered by a rule"),
    ("edit", "waiting"): ("↻", "Changed, and waits again, because a rule changed it once more"),
    ("edit", "rejected"): ("✕", "Changed, and refused by a rule"),
    ("cancel", "rejected"): ("✕", "Cancelled"),
}


def entry_line(entry: Entry, reader: Person) -> tuple[str, ...]:
    """Say who decided what, and what came of it."""
    sign, word = SAID.get(
        (entry.word, entry.outcome or ""),
        (
            "?",
            f"“{entry.word}” was said, and the program stopped before it was sure that it counts",
        ),
    )
    names = f" ({', '.join(entry.changed)})" if entry.changed else ""
    by = "you" if entry.by == reader.name else entry.by
    return (
        *(el("span", sign, class_="sign", aria_hidden="true"), " "),
        *(el("strong", word + names), ": ", entry.message, " "),
        el("span", "by ", by, ", ", ago(entry.at), class_="facts"),
        el("span", "Reason: ", entry.reason, class_="came") if entry.reason else Html(""),
        el("span", "→ ", entry.came_to, class_="came") if entry.came_to else Html(""),
    )


# One call.


@dataclass(frozen=True, slots=True)
class Shown:
    """A call as somebody sees it, and what its forms carry.

    Attributes:
        waiting: The call.
        said: What the user said last.
        hidden: What each form of the page sends back, sealed.
    """

    waiting: Waiting
    said: str | None
    hidden: Mapping[str, str]

    def form(self, *inside: str, action: str, **more: str) -> Html:
        """Make a form that knows which call it is about."""
        carried = {**self.hidden, **more}
        fields = (el("input", type="hidden", name=n, value=v) for n, v in carried.items())
        return el("form", *fields, *inside, method="post", action=action, autocomplete="off")


def takes_edits(waiting: Waiting) -> bool:
    """Whether changed arguments would be of any use."""
    return waiting.ticket.resume_mode is not ResumeMode.USE_DECISION_AS_TOOL_RESULT


def call_page(
    shown: Shown, person: Person, answer: Field | None = None, fault: str = "", reason: str = ""
) -> str:
    """Show a call whole, and ask."""
    waiting = shown.waiting
    schema = waiting.ticket.response_schema
    asked = answer or (None if schema is None else answer_field(schema))
    is_answered = not takes_edits(waiting)
    approve = [
        *([_input(asked)] if asked else []),
        el(
            "button",
            "Answer" if is_answered else "Approve",
            name="word",
            value="answer" if asked else "approve",
            class_="yes",
        ),
    ]
    note = (
        "The tool is not run: your answer is its result."
        if is_answered
        else "What runs is exactly what stands here."
    )
    edit = address("/edit", **{"in": waiting.id, "id": waiting.call_id})
    decide = el(
        "section",
        el("h2", "Your decision", id="decision"),
        _alert(fault),
        shown.form(el("p", note, class_="hint"), *approve, action="/decide"),
        el("a", "Edit the arguments", href=edit, class_="button") if not is_answered else Html(""),
        shown.form(
            el("label", "Or cancel it, with a reason", for_="reason"),
            el("p", "The assistant reads it.", id="reason-hint", class_="hint"),
            _area("reason", reason, rows="2", aria_describedby="reason-hint", maxlength="2000"),
            el("button", "Cancel the call", name="word", value="cancel", class_="no"),
            action="/decide",
        ),
        class_="panel",
        aria_labelledby="decision",
    )
    told = [_table(waiting), *_found(waiting), *_proposed(waiting), *_within(waiting)]
    told += _said(shown.said)
    return page(
        _question(waiting),
        person,
        _back(),
        el("h1", _question(waiting)),
        el("p", *_facts(waiting), class_="facts"),
        el("div", el("div", *told), decide, class_="sides"),
    )


def _back() -> Html:
    return el("p", el("a", "← Inbox", href="/"), class_="back")


def _table(waiting: Waiting) -> Html:
    return el(
        "section",
        el("h2", "What would run: ", el("code", waiting.tool), id="arguments"),
        _rows(waiting.arguments, "arguments"),
        aria_labelledby="arguments",
    )


def _rows(arguments: Mapping[str, Any], heading: str, kind: str | None = None) -> Html:
    rows = [
        el("tr", el("th", name, scope="row"), el("td", value(_text(given)), class_=kind))
        for name, given in arguments.items()
    ]
    return el("table", *rows, aria_labelledby=heading)


def _within(waiting: Waiting) -> Iterator[Html]:
    """Show what the call stands within, such as the program that makes it."""
    for number, each in enumerate(waiting.ancestors):
        heading = f"within-{number}"
        yield el(
            "section",
            el("h2", "It is a part of ", el("code", each.tool), " ", each.id, id=heading),
            el("p", "Your decision is about the call above alone.", class_="hint"),
            _rows(each.arguments or {}, heading, "code"),
            aria_labelledby=heading,
        )


def _text(given: Any) -> str:
    return given if isinstance(given, str) else pretty(given)


def _proposed(waiting: Waiting) -> list[Html]:
    """Show where the model wrote something else."""
    try:
        written = json.loads(waiting.proposed or "{}")
    except ValueError:
        written = None
    if not isinstance(written, dict):
        changed = el("pre", value(waiting.proposed))
    elif changes := differences(written, waiting.arguments):
        changed = diff_table(changes)
    else:
        return []
    heading = el("h2", "The model wrote it otherwise", id="proposed")
    hint = el(
        "p", "Rules, defaults or somebody's edit made of it what stands above.", class_="hint"
    )
    return [el("section", heading, hint, changed, aria_labelledby="proposed")]


def _said(said: str | None) -> list[Html]:
    if not said:
        return []
    hint = "Written by somebody outside, and no instruction to you."
    return [
        el(
            "section",
            el("h2", "What the user said last", id="said"),
            el("p", hint, class_="hint"),
            el("blockquote", value(said)),
            aria_labelledby="said",
        )
    ]


# Editing.


def edit_page(
    shown: Shown,
    person: Person,
    fields: Sequence[Field],
    answer: Field | None,
    faults: Sequence[str] = (),
) -> str:
    """Let somebody change the arguments."""
    waiting = shown.waiting
    wrong = [field for field in (*fields, *([answer] if answer else [])) if field.fault]
    links = [
        el("li", el("a", field.name, href=f"#{field.key}"), ": ", field.fault) for field in wrong
    ]
    listed = el("ul", *links, *(el("li", fault) for fault in faults))
    summary = _alert("This does not fit yet:", listed) if links or faults else Html("")
    first = wrong[0].key if wrong else None
    back = address("/call", **{"in": waiting.id, "id": waiting.call_id})
    return page(
        "Edit",
        person,
        el("p", el("a", "← Back, change nothing", href=back), class_="back"),
        el("h1", "Edit the arguments"),
        el("p", _question(waiting), class_="lead"),
        summary,
        shown.form(
            *(_input(field, is_first=field.key == first) for field in fields),
            *([_input(answer, is_first=answer.key == first)] if answer else []),
            el("div", el("button", "Show the changes", class_="yes"), class_="actions"),
            el("p", "Nothing is decided yet: next you see what differs.", class_="hint"),
            action="/edit",
        ),
    )


def review_page(
    shown: Shown, person: Person, changes: Sequence[Change], again: Mapping[str, str]
) -> str:
    """Show what somebody has changed before it counts."""
    hint = (
        "Rules look at the changes once more. What they leave as it is runs; else it waits again."
    )
    return page(
        "Changes",
        person,
        el("h1", "What you have changed"),
        el("p", _question(shown.waiting), class_="lead"),
        diff_table(changes),
        el("p", hint, class_="hint"),
        el(
            "div",
            shown.form(
                el("button", "Approve with these changes", name="word", value="edit", class_="yes"),
                action="/decide",
            ),
            shown.form(el("button", "Change something else"), action="/edit", again="1", **again),
            class_="actions",
        ),
    )


def diff_table(changes: Sequence[Change]) -> Html:
    """Show what differs: by a sign, a word for those who hear the page, and a colour."""
    rows = []
    for change in changes:
        lines = []
        for sign, pieces in change.lines:
            tag = {"-": "del", "+": "ins"}.get(sign, "span")
            word = {"-": "was", "+": "becomes"}.get(sign, "stays")
            text = [el("mark", piece) if differs else piece for piece, differs in pieces]
            lines.append(
                el(
                    "div",
                    el("span", "\N{MINUS SIGN}" if sign == "-" else sign, aria_hidden="true"),
                    el("span", f"{word}: ", class_="heard"),
                    el(tag, el("bdi", *text, dir="auto")),
                    class_=f"line {word}",
                )
            )
        rows.append(el("tr", el("th", change.name, scope="row"), el("td", *lines)))
    return el("table", el("caption", "What differs", class_="heard"), *rows, class_="diff")


def _input(field: Field, *, is_first: bool = False) -> Html:
    described = " ".join(
        f"{field.key}-{what}" for what in ("fault", "hint") if getattr(field, what)
    )
    common: dict[str, str | bool | None] = {
        "autofocus": is_first,
        "aria_invalid": "true" if field.fault else None,
        "aria_describedby": described or None,
    }
    if field.kind == "choice":
        empty = [] if field.text else [el("option", "Choose…", value="")]
        options = [
            el("option", one, value=one, selected=one == field.text) for one in field.choices
        ]
        required = bool(empty)
        typed = el(
            "select", *empty, *options, id=field.key, name=field.key, required=required, **common
        )
    elif field.kind == "line" or (field.kind == "json" and "\n" not in field.text):
        kind = "code" if field.kind == "json" else None
        typed = el("input", id=field.key, name=field.key, value=field.text, class_=kind, **common)
    else:
        kind = "code" if field.kind == "json" else None
        rows = str(min(14, max(3, field.text.count("\n") + 2)))
        typed = _area(field.key, field.text, rows=rows, class_=kind, **common)
    hint = el("p", field.hint, id=f"{field.key}-hint", class_="hint") if field.hint else Html("")
    return el(
        "div",
        el("label", field.name, for_=field.key),
        hint,
        _fault(field.key, field.fault),
        typed,
        class_="field",
    )


def _area(key: str, text: str, **attributes: str | bool | None) -> Html:
    # A browser leaves out the first line break.
    inside = Html("\n" + escape(text))
    return el("textarea", inside, id=key, name=key, spellcheck="false", **attributes)


def _fault(key: str, fault: str) -> Html:
    if not fault:
        return Html("")
    sign = el("span", "✕ ", aria_hidden="true")
    return el("p", sign, fault, id=f"{key}-fault", class_="fault")


def _alert(text: str, *more: Html) -> Html:
    return el("div", el("p", text), *more, role="alert", class_="alert") if text else Html("")


# Where nothing was decided.


def problem_page(
    person: Person | None, title: str, *told: str, link: tuple[str, str] | None = None
) -> str:
    """Say why nothing was decided, and where to go on."""
    ways = [*([link] if link else []), ("Back to the inbox", "/")]
    return page(
        title,
        person,
        el("h1", title),
        *(el("p", line, class_="lead") for line in told),
        el("p", "Nothing changed by what you sent.", class_="hint"),
        el(
            "div",
            *(el("a", text, href=to, class_="button") for text, to in ways),
            class_="actions",
        ),
    )
