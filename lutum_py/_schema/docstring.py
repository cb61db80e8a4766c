"""Docstrings of tools: what the model is told about a tool and about each of its parameters.

A docstring is prose with sections in it, in any mix of the Google, NumPy and Sphinx styles. Line by
line, each style is asked whether a section of it begins there; what none of them takes is prose, so
that nothing an author wrote is lost, be it a title without a body or a line without a colon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from .._text.immutable import dataclass


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart: its prose, and the description of each parameter in order.

    A parameter that is named without a word about it has an empty description.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


_ABOUT_PARAMETERS: Final = frozenset({"args", "arguments", "attributes", "parameters", "params"})
_OTHER: Final = ("keyword ", "other ")
"""What may be before these in a title, as in `Keyword Args:`."""
_DROPPED: Final = frozenset({"except", "exception", "raise", "return", "yield"})
"""What no model is told about, in the singular, as a title and as a field."""
_DROPPED_TITLES: Final = _DROPPED | {"example", "receive", "warn"}
_DROPPED_FIELDS: Final = _DROPPED | {"rtype", "type", "vartype", "ytype"}
_PARAMETER_FIELDS: Final = frozenset(
    {*("arg", "argument", "key", "keyword", "kwarg", "param", "parameter"), "cvar", "ivar", "var"}
)

# Decoration of a name: `*args`, reST's escaped `\*args`, Markdown's quotes.
_DECORATION: Final = "*\\`"
_NAME: Final = r"[*\\`]*[^\W\d]\w*`*"
_NAMES: Final = rf"{_NAME}(?:\s*,\s*{_NAME})*"
# Compiled by those that have such sections.
_GOOGLE_ENTRY: Final = rf"(?P<names>{_NAMES})\s*(?:\(.*?\))?\s*:(?!//)(?P<text>.*)"
_NUMPY_ENTRY: Final = rf"{_NAMES}\s*(?::.*)?"
_FIELD: Final = r":(?P<kind>\w+)(?:\s+(?P<argument>[^:]*))?:(?:\s+(?P<text>.*))?"
_FIELD_ARGUMENT: Final = rf"(?:.*?\s)??(?P<names>{_NAMES})\s*"


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines up to `end` that are not prose, with the entries that count: names, and their lines.

    `leading` is what is in a section before its first entry.
    """

    end: int
    entries: Sequence[tuple[str, list[str]]] = ()
    leading: Sequence[str] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Take a Google, NumPy or Sphinx docstring apart, whatever it holds.

    The description keeps every paragraph outside the sections of parameters, results, exceptions
    and examples. What only resembles a section (a title without an indented body, a body without an
    entry) is prose. Of two descriptions of one name, the first that is not empty counts.

    >>> parse_docstring(":param str query: What to search for.").parameters
    {'query': 'What to search for.'}
    """
    if not text:
        return Docstring()
    from inspect import cleandoc

    lines = cleandoc(text).split("\n")
    paragraphs: list[list[str]] = [[]]
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        # Each reader looks at one line and says where its section ends, or that none begins there.
        section = (
            _google_section(lines, position)
            or _numpy_section(lines, position)
            or _field_section(lines, position)
        )
        if section is None:
            paragraphs[-1].append(lines[position])
            position += 1
            continue
        for names, described in section.entries:
            for name in names.split(","):
                bare = name.strip().strip(_DECORATION)
                parameters[bare] = parameters.get(bare) or " ".join(" ".join(described).split())
        paragraphs += [list(section.leading), []]
        position = section.end
    prose = ("\n".join(paragraph).strip("\n") for paragraph in paragraphs)
    return Docstring("\n\n".join(part for part in prose if part).strip(), parameters)


def _is_dropped(title: str) -> bool:
    return title.removesuffix("s") in _DROPPED_TITLES


def _is_about_parameters(title: str) -> bool:
    start = title.partition(" ")[0] + " "
    return (title.removeprefix(start) if start in _OTHER else title) in _ABOUT_PARAMETERS


# `Args:` with `    city: Where.` under it. A title alone is prose: "Returns: the weather" says
# something to the model.
def _google_section(lines: list[str], start: int) -> _Section | None:
    """Read `Title:` and the indented lines under it."""
    written, colon, rest = lines[start].partition(":")
    title = written.lower() if colon and written[:1].isupper() and written.isascii() else ""
    if not title or rest.strip() or not (_is_dropped(title) or _is_about_parameters(title)):
        return None
    end = start + 1
    while end < len(lines) and _is_inside(lines[end]):
        end += 1
    body = lines[start + 1 : end]
    first = next((line for line in body if line.strip()), None)
    if first is None:
        return None
    if _is_dropped(title):
        return _Section(end)
    leading: list[str] = []
    entries: list[tuple[str, list[str]]] = []
    for line in body:
        bare = line.strip()
        entry = re.fullmatch(_GOOGLE_ENTRY, bare) if _depth(line) <= _depth(first) else None
        if entry:
            entries.append((entry["names"], [entry["text"]]))
        elif entries:
            # A line without a colon continues the entry above, however it is indented.
            entries[-1][1].append(bare)
        else:
            leading.append(bare)
    return _Section(end, entries, leading) if entries else None


# `Parameters`, a line of dashes, `city : str` and an indented text.
def _numpy_section(lines: list[str], start: int) -> _Section | None:
    """Read an underlined title and what is under it."""
    title = lines[start].strip().lower() if _is_underlined(lines, start) else ""
    end = start + 2
    if _is_dropped(title):
        while end < len(lines) and not _is_underlined(lines, end):
            end += 1
        return _Section(end)
    if not _is_about_parameters(title):
        return None
    while end < len(lines) and (_is_inside(lines[end]) or _is_numpy_entry(lines, end)):
        end += 1
    body = lines[start + 2 : end]
    while body and not body[0].strip():
        del body[0]
    if not body or _is_inside(body[0]):
        return None
    entries: list[tuple[str, list[str]]] = []
    for line in body:
        if _is_inside(line):
            entries[-1][1].append(line)
        else:
            entries.append((line.partition(":")[0], []))
    return _Section(end, entries)


def _is_numpy_entry(lines: list[str], at: int) -> bool:
    """Tell `name : type` from prose.

    After a blank line, only an indented description makes an entry.
    """
    if _is_underlined(lines, at) or not re.fullmatch(_NUMPY_ENTRY, lines[at]):
        return False
    described = at + 1 < len(lines) and lines[at + 1] != "" and _is_inside(lines[at + 1])
    return described or lines[at - 1].strip() != ""


# `:param str city: Where.`, perhaps with `:type city: str` beside it, which is dropped: the schema
# says the type.
def _field_section(lines: list[str], start: int) -> _Section | None:
    """Read `:param type name: text` or another field, with the lines that continue it."""
    match = _field(lines[start])
    if match is None:
        return None
    argument = re.fullmatch(_FIELD_ARGUMENT, match["argument"] or "")
    kept = match["kind"] in _PARAMETER_FIELDS and argument is not None
    if not kept and match["kind"].removesuffix("s") not in _DROPPED_FIELDS:
        return None
    end = start + 1
    # As in Markdown, a paragraph goes on without indentation until a blank line.
    while end < len(lines) and (
        _is_inside(lines[end]) or (lines[end - 1].strip() and not _field(lines[end]))
    ):
        end += 1
    if argument is None or not kept:
        return _Section(end)
    described = [match["text"] or "", *lines[start + 1 : end]]
    return _Section(end, [(argument["names"], described)])


def _field(line: str) -> re.Match[str] | None:
    return re.fullmatch(_FIELD, line) if line.startswith(":") else None


def _is_inside(line: str) -> bool:
    return not line or line[0].isspace()


def _is_underlined(lines: list[str], at: int) -> bool:
    if _is_inside(lines[at]) or at + 1 == len(lines):
        return False
    line = lines[at + 1].rstrip()
    return len(line) > 2 and line.strip(line[0]) == "" and line[0] in "-="


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
