"""What can be typed for each argument, how it is read, and how two versions differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Final, Literal, TypeAlias

from lutum_py import ToolMetadata
from lutum_py.errors import InvalidArgumentsError
from lutum_py.sinks import escape_unprintable
from lutum_py.store import Waiting

__all__ = [
    "MASK",
    "Change",
    "Field",
    "answer_field",
    "check",
    "differences",
    "fields_of",
    "masked",
    "pretty",
    "read",
]

MASK: Final = "*" * 10
"""What stands where something is secret."""
LONG: Final = 60
MOST_PAIRS: Final = 250_000
"""Lines or words of one text times those of the other, up to which they are compared."""

Kind: TypeAlias = Literal["line", "text", "choice", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """Something to type, for an argument or for an answer.

    Attributes:
        key: Its name in the form.
        name: The name of the argument.
        kind: How it is typed.
        text: What stands in it.
        value: What that stands for; `...` where there is no such argument yet.
        choices: What may be chosen.
        hint: What it is, and how it is written.
        fault: What is wrong with what stands in it.
    """

    key: str
    name: str
    kind: Kind
    text: str
    value: Any
    choices: tuple[str, ...] = ()
    hint: str = ""
    fault: str = ""


def fields_of(waiting: Waiting, schema: Mapping[str, Any]) -> list[Field]:
    """Give a field for each argument of a call, in the order of the schema."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    names = dict.fromkeys((*properties, *waiting.arguments))
    return [
        _field(f"a{place}", name, properties.get(name), waiting.arguments.get(name, ...))
        for place, name in enumerate(names)
    ]


def answer_field(schema: Mapping[str, Any]) -> Field:
    """Give the field for what a ticket asks for."""
    return _field("answer", "Your answer", schema, ...)


def _field(key: str, name: str, schema: Any, value: Any) -> Field:
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    said = str(known.get("description") or "")
    if isinstance(value, str) and value == MASK:
        return Field(
            key,
            name,
            "line",
            MASK,
            value,
            hint=_joined(said, "Secret: leave it as it is, or type another one."),
        )
    choices = known.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices):
        # A value that cannot be chosen would be lost where nothing is touched.
        if value is ... or value in choices:
            text = "" if value is ... else str(value)
            return Field(key, name, "choice", text, value, tuple(choices), said)
    elif _is_text(known, value):
        text = "" if value is ... else value
        kind: Kind = "text" if "\n" in text or len(text) > LONG else "line"
        return Field(key, name, kind, text, value, hint=said)
    text = "" if value is ... else pretty(value)
    if escape_unprintable(text, "\n") != text:  # what hides in it is spelled out as JSON does
        text = json.dumps(value, indent=2)
    return Field(key, name, "json", text, value, hint=_joined(said, _json_hint(known)))


def _is_text(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether it can be typed as it is: a browser shows and keeps no hidden characters."""
    if schema.get("type") != "string":
        return False
    return value is ... or (isinstance(value, str) and escape_unprintable(value, "\n") == value)


def _json_hint(schema: Mapping[str, Any]) -> str:
    if schema.get("type") in ("integer", "number"):
        return "A number."
    return "As JSON." if schema.get("type") != "boolean" else "`true` or `false`."


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def read(fields: list[Field], form: Mapping[str, str]) -> tuple[list[Field], dict[str, Any]]:
    """Read what was typed.

    Returns:
        The fields as they were filled in, with faults; and the values that are other ones.
    """
    filled, changes = [], {}
    for field in fields:
        text = form.get(field.key, field.text).replace("\r\n", "\n")
        now = replace(field, text=text)
        if text != field.text:  # what was not touched stays just what it is
            try:
                changes[field.name] = _value(field, text)
            except (ValueError, RecursionError) as error:
                now = replace(now, fault=f"This is not JSON: {error}.")
        filled.append(now)
    return filled, changes


def _value(field: Field, text: str) -> Any:
    if field.kind != "json":
        return text
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a number of JSON")


def check(
    toolset: Any, waiting: Waiting, fields: list[Field], changes: Mapping[str, Any]
) -> tuple[list[Field], list[str]]:
    """Check changed arguments by the tool itself.

    Returns:
        The fields with the faults of each, and the faults that are of none.
    """
    edited = {**waiting.arguments, **changes}
    asked = ToolMetadata(id=waiting.call_id, name=waiting.tool, arguments=json.dumps(edited))
    try:
        toolset.parse_tool_call(asked)
    except InvalidArgumentsError as error:
        issues = error.fields
        if not issues:
            return fields, [str(error)]
    else:
        return fields, []
    of: dict[str, list[str]] = {}
    for issue in issues:
        name = _name_of(issue.path, [field.name for field in fields])
        if name is not None and edited.get(name) == MASK:
            continue  # the store knows what stands behind it
        inner = issue.path[len(name) :].lstrip(".") if name is not None else issue.path
        said = f"{inner}: {issue.message}" if inner else issue.message
        of.setdefault(name or "", []).append(said)
    checked = [replace(field, fault="; ".join(of.pop(field.name, ()))) for field in fields]
    return checked, [said for rest in of.values() for said in rest]


def _name_of(path: str, names: list[str]) -> str | None:
    """Name the argument that a path such as `filters[0].name` leads into."""
    found = [name for name in names if re.match(re.escape(name) + r"($|[.\[])", path)]
    return max(found, key=len, default=None)


@dataclass(frozen=True, slots=True)
class Change:
    """One argument in two versions, line by line.

    Attributes:
        name: Its name.
        lines: For each line whether it goes, comes or stays, and its pieces, each with whether it
            is what differs.
    """

    name: str
    lines: tuple[tuple[Literal["-", "+", " "], tuple[tuple[str, bool], ...]], ...]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Say in which arguments two versions differ, and how."""
    names = dict.fromkeys((*before, *after))
    return [
        Change(name, tuple(_lines(before.get(name, ...), after.get(name, ...))))
        for name in names
        if _shape(before.get(name, ...)) != _shape(after.get(name, ...))
    ]


def _shape(value: Any) -> Any:
    """Tell 1 from 1.0 and from true."""
    return value if value is ... else json.dumps(value, sort_keys=True)


def _lines(before: Any, after: Any) -> Iterator[Any]:
    as_text = isinstance(before, str) and isinstance(after, str)
    old, new = (_split(value, as_text) for value in (before, after))
    for tag, a, b, c, d in _opcodes(old, new):
        if tag == "equal":
            yield from ((" ", ((line, False),)) for line in old[a:b])
        elif tag == "replace" and b - a == d - c:
            pairs = [_pieces(one, other) for one, other in zip(old[a:b], new[c:d], strict=True)]
            yield from (("-", one) for one, _ in pairs)
            yield from (("+", other) for _, other in pairs)
        else:
            yield from (("-", ((line, True),)) for line in old[a:b])
            yield from (("+", ((line, True),)) for line in new[c:d])


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Say what is equal and what differs, in a time that a person waits for, however long it is."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[~at] != new[~at]), rest)
    (a, b), (c, d) = (head, len(old) - tail), (head, len(new) - tail)
    yield "equal", 0, head, 0, head
    if (b - a) * (d - c) > MOST_PAIRS:
        yield "replace", a, b, c, d
    else:
        between = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
        for tag, i, j, k, m in between.get_opcodes():
            yield tag, a + i, a + j, c + k, c + m
    yield "equal", b, len(old), d, len(new)


def _split(value: Any, as_text: bool) -> list[str]:
    if value is ...:
        return []
    return (value if as_text else pretty(value)).split("\n")


def _pieces(old: str, new: str) -> tuple[tuple[tuple[str, bool], ...], ...]:
    """Cut two lines into words, and mark those that differ."""
    first, second = (re.findall(r"\w+|\s+|.", line) for line in (old, new))
    one: list[tuple[str, bool]] = []
    other: list[tuple[str, bool]] = []
    for tag, a, b, c, d in _opcodes(first, second):
        one += [("".join(first[a:b]), tag != "equal")] if b > a else []
        other += [("".join(second[c:d]), tag != "equal")] if d > c else []
    return tuple(one), tuple(other)


def masked(edited: Any, shown: Any) -> Any:
    """Hide what was typed in the place of a secret."""
    if isinstance(shown, str) and shown == MASK and edited != MASK:
        return "(a new secret)"
    if isinstance(edited, Mapping) and isinstance(shown, Mapping):
        return {name: masked(value, shown.get(name)) for name, value in edited.items()}
    if isinstance(edited, list) and isinstance(shown, list):
        pairs = zip(edited, [*shown, *[None] * len(edited)], strict=False)
        return [masked(value, old) for value, old in pairs]
    return edited


def pretty(value: Any) -> str:
    """Write a value as JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)
