"""The texts under the attributes of a class, which only its source has."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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
    """Return the string literals that directly follow the fields of a class body, or members.

    Only the class's own body counts, not what it inherits. Where its source is not to be had
    (`exec`, a file edited since, some prompts), the answer is empty; at a prompt that is warned of.
    """
    for path, source in _sources(cls):
        try:
            classes = _classes_in(source)
        except (SyntaxError, ValueError):
            continue
        found = _pick(cls, path, [one for one in classes if one.qualname == cls.__qualname__])
        if found:
            kept = found.docstrings if issubclass(cls, Enum) else found.annotated
            return {name: text for name, text in found.docstrings.items() if name in kept}
    fields: Mapping[str, Any] = getattr(cls, "model_fields", {})
    if _is_typed_in(cls) and not all(field.description for field in fields.values()):
        warnings.warn(
            f"The source of `{cls.__qualname__}` is not to be had here, so texts under its fields "
            "reach no model. Describe them with `Field(description=...)`, or write the class in a "
            "file.",
            UserWarning,
            stacklevel=2,
        )
    return {}


def _is_typed_in(cls: type) -> bool:
    """Whether a class was written at a prompt or in a notebook, which have no file of it."""
    if cls.__module__ != "__main__":
        return False
    module = sys.modules["__main__"]
    spec = getattr(module, "__spec__", None)
    is_asyncio = spec is not None and spec.name == "asyncio.__main__"  # `python -m asyncio`
    return is_asyncio or getattr(module, "__file__", None) is None


def _sources(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the texts that a class may be in, with their names: one, or of a notebook each cell.

    The cell that is being run comes first, then the last one that was.
    """
    import inspect
    import linecache

    if not _is_typed_in(cls):
        with suppress(TypeError, OSError):
            path = inspect.getsourcefile(cls)
            if path is not None:
                linecache.checkcache(path)
                yield path, "".join(linecache.getlines(path, vars(sys.modules[cls.__module__])))
        return
    # What is typed in is kept there by IPython, and by the prompt from Python 3.13 on; newer ones
    # keep it in a table beside the one of files.
    kept = [*linecache.cache.values(), *getattr(linecache, "_interactive_cache", {}).values()]
    cells = {each[3]: "".join(each[2]) for each in kept if len(each) > 1 and each[1] is None}
    running, frame = list[str](), inspect.currentframe()
    while frame := frame and frame.f_back:
        running.append(frame.f_code.co_filename)
    for name in dict.fromkeys((*running, *reversed(cells))):
        if f"class {cls.__name__}" in cells.get(name, ""):
            yield name, cells[name]


def _pick(cls: type, path: str, candidates: list[_ClassSource]) -> _ClassSource | None:
    """Choose among class statements of one qualified name.

    Python 3.13 and later know the line. Earlier, the annotated names must agree; where that leaves
    several, it is the statement being run now (as in a decorator or metaclass), else the last one.
    """
    import inspect

    # Two classes of one name may be in one file, as in the branches of an `if`. Which of the two
    # this is shows by its line, or else by what it annotates.
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

    # `city: str` and a text on the next line document each other only in the source: Python drops
    # the text. A comment is not taken, since it is for readers of the program.
    annotated: dict[str, None] = {}
    docstrings: dict[str, str] = {}
    name = ""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=target)):
                name = target
                annotated[name] = None
            case ast.Assign(targets=[ast.Name(id=target)]):
                name = target  # a member, if the class is an enum
            case ast.Expr(value=ast.Constant(value=str(text))) if name and text.strip():
                docstrings[name] = cleandoc(text)
                name = ""
            case _:
                name = ""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return _ClassSource(qualname, first, node.end_lineno or first, tuple(annotated), docstrings)
