"""The texts under the attributes of a class, which only its source has."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from .._text.immutable import dataclass
from .signature import parsed

if TYPE_CHECKING:
    import ast


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
        # A decorator runs while the class statement does: its lines are where that frame stands.
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
    return tuple(_walk(parsed(source), ""))


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
