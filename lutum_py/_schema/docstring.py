"""Docstrings of tools: what the model is told about a tool and about each of its parameters.

`docstring-parser` reads one section well, but takes a docstring whole: prose after a section is
lost, one line without a colon loses every parameter, and several names on one line count as one.
So this module finds the sections, keeps all that lies between them as prose, and hands each
parameter section over in a form that the parser cannot misread. A docstring without such a section
never imports the parser.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ast

__all__ = ["Docstring", "attribute_docstrings", "parse_docstring"]


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart: its prose, and the description of each parameter in order.

    A parameter that is named without a word about it has an empty description.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


_PARAMETER_TITLES: Final = frozenset(
    {
        "args",
        "arguments",
        "attributes",
        "keyword args",
        "keyword arguments",
        "keyword parameters",
        "other args",
        "other arguments",
        "other parameters",
        "other params",
        "parameters",
        "params",
    }
)
_DROPPED_TITLES: Final = frozenset(
    {
        "example",
        "examples",
        "except",
        "exceptions",
        "raise",
        "raises",
        "receive",
        "receives",
        "return",
        "returns",
        "warn",
        "warns",
        "yield",
        "yields",
    }
)
_PARAMETER_FIELDS: Final = frozenset(
    {
        "arg",
        "argument",
        "cvar",
        "ivar",
        "key",
        "keyword",
        "kwarg",
        "param",
        "parameter",
        "var",
    }
)
_DROPPED_FIELDS: Final = frozenset(
    {
        "except",
        "exception",
        "raise",
        "raises",
        "return",
        "returns",
        "rtype",
        "type",
        "vartype",
        "yield",
        "yields",
        "ytype",
    }
)

# Decoration of a name: `*args`, reST's escaped `\*args`, Markdown's quotes.
_DECORATION: Final = "*\\`"
_NAME: Final = r"[*\\`]*[^\W\d]\w*`*"
_NAMES: Final = rf"{_NAME}(?:\s*,\s*{_NAME})*"
_GOOGLE_TITLE: Final = re.compile(r"([A-Z][a-zA-Z ]*):\s*")
_GOOGLE_ENTRY: Final = re.compile(rf"(?P<names>{_NAMES})\s*(?:\(.*?\))?\s*:(?!//)(?P<text>.*)")
_NUMPY_ENTRY: Final = re.compile(rf"{_NAMES}\s*(?::.*)?")
_UNDERLINE: Final = re.compile(r"(?:-{3,}|={3,})\s*")
_FIELD: Final = re.compile(r":(?P<kind>\w+)(?:\s+(?P<argument>[^:]*))?:(?:\s+(?P<text>.*))?")
_FIELD_ARGUMENT: Final = re.compile(rf"(?:.*?\s)??(?P<names>{_NAMES})\s*")


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines up to `end` that are no prose; `text` is for the parser, empty where nothing is kept.

    `leading` is what stands in a section before its first entry.
    """

    end: int
    style: str = ""
    text: str = ""
    leading: tuple[str, ...] = ()


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
        section = (
            _google_section(lines, position)
            or _numpy_section(lines, position)
            or _field_section(lines, position)
        )
        if section is None:
            paragraphs[-1].append(lines[position])
            position += 1
            continue
        for name, description in _entries(section):
            parameters[name] = parameters.get(name) or description
        paragraphs += [list(section.leading), []]
        position = section.end
    prose = ("\n".join(paragraph).strip("\n") for paragraph in paragraphs)
    return Docstring("\n\n".join(part for part in prose if part).strip(), parameters)


def _entries(section: _Section) -> Iterator[tuple[str, str]]:
    """Give the names and descriptions of a section; `a, b` gives both names one description."""
    if not section.text:
        return
    from docstring_parser import DocstringStyle, parse

    # A summary line first: the parser dedents all lines after the first one together.
    for entry in parse(f"_\n\n{section.text}", DocstringStyle[section.style]).params:
        for name in entry.arg_name.split(","):
            yield name.strip().strip(_DECORATION), " ".join((entry.description or "").split())


def _google_section(lines: list[str], start: int) -> _Section | None:
    """Read `Title:` and the indented lines under it."""
    match = _GOOGLE_TITLE.fullmatch(lines[start])
    title = match[1].lower() if match else ""
    if title not in _PARAMETER_TITLES | _DROPPED_TITLES:
        return None
    end = start + 1
    while end < len(lines) and _is_inside(lines[end]):
        end += 1
    body = lines[start + 1 : end]
    first = next((line for line in body if line.strip()), None)
    if first is None:
        return None
    if title in _DROPPED_TITLES:
        return _Section(end)
    leading: list[str] = []
    mended: list[str] = []
    for line in body:
        bare = line.strip()
        entry = _GOOGLE_ENTRY.fullmatch(bare) if _depth(line) <= _depth(first) else None
        if entry:
            # Without its type, which may itself hold a colon.
            mended.append(f"    {entry['names']}:{entry['text']}")
        elif mended:
            # A line without a colon continues the entry above, however it is indented.
            mended.append(f"        {bare}")
        else:
            leading.append(bare)
    if not mended:
        return None
    return _Section(end, "GOOGLE", "\n".join(["Args:", *mended]), tuple(leading))


def _numpy_section(lines: list[str], start: int) -> _Section | None:
    """Read an underlined title and what stands under it."""
    title = lines[start].strip().lower() if _is_underlined(lines, start) else ""
    end = start + 2
    if title in _DROPPED_TITLES:
        while end < len(lines) and not _is_underlined(lines, end):
            end += 1
        return _Section(end)
    if title not in _PARAMETER_TITLES:
        return None
    while end < len(lines) and (_is_inside(lines[end]) or _is_numpy_entry(lines, end)):
        end += 1
    body = lines[start + 2 : end]
    first = next((line for line in body if line.strip()), None)
    if first is None or _is_inside(first):
        return None
    return _Section(end, "NUMPYDOC", "\n".join(["Parameters", "----------", *body]))


def _is_numpy_entry(lines: list[str], at: int) -> bool:
    """Tell `name : type` from prose.

    After a blank line, only an indented description makes an entry.
    """
    if _is_underlined(lines, at) or not _NUMPY_ENTRY.fullmatch(lines[at]):
        return False
    described = at + 1 < len(lines) and lines[at + 1] != "" and _is_inside(lines[at + 1])
    return described or lines[at - 1].strip() != ""


def _field_section(lines: list[str], start: int) -> _Section | None:
    """Read `:param type name: text` or another field, with the lines that continue it."""
    match = _FIELD.fullmatch(lines[start])
    if match is None:
        return None
    argument = _FIELD_ARGUMENT.fullmatch(match["argument"] or "")
    kept = match["kind"] in _PARAMETER_FIELDS and argument is not None
    if not kept and match["kind"] not in _DROPPED_FIELDS:
        return None
    end = start + 1
    # As in Markdown, a paragraph goes on without indentation until a blank line.
    while end < len(lines) and (
        _is_inside(lines[end]) or (lines[end - 1].strip() and not _FIELD.fullmatch(lines[end]))
    ):
        end += 1
    if argument is None or not kept:
        return _Section(end)
    names = "".join(argument["names"].split())
    continuation = (f"    {line.strip()}" for line in lines[start + 1 : end])
    return _Section(
        end, "REST", "\n".join([f":param {names}: {match['text'] or ''}", *continuation])
    )


def _is_inside(line: str) -> bool:
    return not line or line[0].isspace()


def _is_underlined(lines: list[str], at: int) -> bool:
    return (
        not _is_inside(lines[at])
        and at + 1 < len(lines)
        and _UNDERLINE.fullmatch(lines[at + 1]) is not None
    )


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(frozen=True, slots=True)
class _ClassSource:
    """A class statement in a file: where it stands, and what its body annotates and documents."""

    qualname: str
    first_line: int
    last_line: int
    annotated: tuple[str, ...]
    docstrings: Mapping[str, str]


def attribute_docstrings(cls: type) -> dict[str, str]:
    """Give the string literals that directly follow the annotated attributes of a class body.

    Only the class's own body counts, not what it inherits. Where its source is not to be had (a
    REPL, `exec`, a file edited since), the answer is empty.
    """
    import inspect
    import linecache

    try:
        path = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return {}
    if path is None:
        return {}
    linecache.checkcache(path)
    lines = linecache.getlines(path, vars(sys.modules[cls.__module__]))
    try:
        classes = _classes_in("".join(lines))
    except (SyntaxError, ValueError):
        return {}
    found = _pick(cls, path, [one for one in classes if one.qualname == cls.__qualname__])
    return dict(found.docstrings) if found else {}


def _pick(cls: type, path: str, candidates: list[_ClassSource]) -> _ClassSource | None:
    """Choose among class statements of one qualified name.

    Python 3.13 and later know the line. Earlier, the annotated names must agree; where that leaves
    several, it is the statement being run now (as in a decorator or metaclass), else the last one.
    """
    import inspect

    line = cls.__dict__.get("__firstlineno__")
    if line is not None:
        return next((one for one in candidates if one.first_line == line), None)
    # Asked of the class, Python 3.14 would evaluate the annotations.
    annotated = tuple(cls.__dict__.get("__annotations__", ()))  # noqa: RUF063
    candidates = [one for one in candidates if one.annotated == annotated]
    if len(candidates) > 1:
        frame = inspect.currentframe()
        while frame and (frame := frame.f_back):
            for one in candidates:
                if frame.f_code.co_filename == path and (
                    one.first_line <= frame.f_lineno <= one.last_line
                ):
                    return one
    return candidates[-1] if candidates else None


@lru_cache(maxsize=4)
def _classes_in(source: str) -> tuple[_ClassSource, ...]:
    """List the class statements of a source text, in order."""
    import ast

    return tuple(_walk(ast.parse(source), ""))


def _walk(node: ast.AST, prefix: str) -> Iterator[_ClassSource]:
    import ast

    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef):
            yield _describe(child, prefix + child.name)
            inner = f"{prefix}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{child.name}.<locals>."
        yield from _walk(child, inner)


def _describe(node: ast.ClassDef, qualname: str) -> _ClassSource:
    import ast
    from inspect import cleandoc

    annotated: dict[str, None] = {}
    docstrings: dict[str, str] = {}
    name = ""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=target)):
                name = target
                annotated[name] = None
            case ast.Expr(value=ast.Constant(value=str(text))) if name and text.strip():
                docstrings[name] = cleandoc(text)
                name = ""
            case _:
                name = ""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return _ClassSource(qualname, first, node.end_lineno or first, tuple(annotated), docstrings)
