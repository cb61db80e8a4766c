"""Put pages together of elements; all text in them is escaped, and what hides in it is shown."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from html import escape
from typing import Final

from lutum_py.sinks import escape_unprintable

__all__ = ["VOID", "Html", "ago", "el", "join", "shown", "value"]

VOID: Final = frozenset({"input", "link", "meta"})
TEXTUAL: Final = frozenset({"option", "title"})
"""Elements in which a browser shows no others."""
_ODD: Final = re.compile(r"[^ -~\n]")


class Html(str):
    """Markup that was put together here, and is not to be escaped again."""

    __slots__ = ()


def el(tag: str, *inside: str, **attributes: str | bool | None) -> Html:
    """Make an element.

    Args:
        tag: Its name.
        inside: Other elements, and text, which is shown as what it is.
        attributes: Its attributes, `class_` and `for_` among them, `-` written as `_`; True stands
            for one without a value, None and False for none.
    """
    named = "".join(
        f" {name.rstrip('_').replace('_', '-')}"
        + ("" if given is True else f'="{escape(given, quote=True)}"')
        for name, given in attributes.items()
        if given is not None and given is not False
    )
    if tag in VOID:
        return Html(f"<{tag}{named}>")
    if tag in TEXTUAL:
        return Html(f"<{tag}{named}>{escape(escape_unprintable(''.join(inside)))}</{tag}>")
    return Html(f"<{tag}{named}>{join(*inside)}</{tag}>")


def join(*inside: str) -> Html:
    """Put elements and text side by side."""
    return Html("".join(one if isinstance(one, Html) else shown(one) for one in inside))


def shown(text: str) -> Html:
    """Escape text, and let stand out what could not be seen, or would turn other text around."""
    parts, end = [], 0
    for found in _ODD.finditer(text):
        spelled = escape_unprintable(found[0])
        if spelled == found[0]:
            continue
        parts.append(escape(text[end : found.start()]))
        end = found.end()
        name = unicodedata.name(found[0], "a control character").lower()
        spelled = escape(spelled)
        mark = f'<span class="odd" title="{name}">{spelled}</span>' if spelled != " " else " "
        parts.append(mark)
    return Html("".join((*parts, escape(text[end:]))))


def value(text: str) -> Html:
    """Show a value whose direction of reading must not reach what stands beside it."""
    return el("bdi", text, class_="value", dir="auto")


def ago(iso: object, now: datetime | None = None) -> Html:
    """Say when something was, as a clock does and as people do."""
    try:
        then = datetime.fromisoformat(iso if isinstance(iso, str) else "")
    except ValueError:
        return Html("nobody said since when")
    then = then.replace(tzinfo=then.tzinfo or UTC)
    here, today = then.astimezone(), (now or datetime.now(UTC)).astimezone()
    minutes = int((today - here).total_seconds()) // 60
    clock = f"{here:%H:%M}" if here.date() == today.date() else f"{here:%-d %B %Y, %H:%M}"
    if minutes < 1:
        passed = "just now"
    elif minutes < 120:
        passed = f"{minutes} minute{'s' * (minutes != 1)} ago"
    elif minutes < 48 * 60:
        passed = f"{minutes // 60} hours ago"
    else:
        passed = f"{minutes // 60 // 24} days ago"
    return el("time", f"{clock} ({passed})", datetime=here.isoformat(timespec="seconds"))
