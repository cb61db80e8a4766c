"""Check that edges use what users have: `python -P tests/check_edges.py`.

An edge is built on public modules and on `_text`, as a user's own would be: it imports no private
module of another folder and reads no private attribute of another object.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "lutum_py"
EDGES: Final = (
    *("cli", "code", "dialects", "execution", "flow", "mcp", "models", "otel", "policy", "sinks"),
    *("store", "testing", "window"),
)
NAMED_TUPLE: Final = frozenset({"_asdict", "_fields", "_replace"})
"""What is public of a `NamedTuple`, whatever it is called."""
NOT_FOR_DIALECTS: Final = frozenset({"HookSet", "Session", "ToolRound", "ToolRoundPlan", "Toolset"})
"""What no dialect imports: a dialect knows neither hooks nor rounds nor sessions."""


def private_names(file: Path, edge: str) -> Iterator[str]:
    """Give each private name that a file of an edge imports from another folder."""
    package = ["lutum_py", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        above = package[: len(package) + 1 - node.level] if node.level else []
        base = above + (node.module or "").split(".")
        if base[0] != "lutum_py":
            continue
        inside = [part for part in base[1:] if part]
        if inside[:1] in ([], ["_text"], [edge]) or not any(part[0] == "_" for part in inside):
            names = {alias.name for alias in node.names} if edge == "dialects" else set()
            yield from names & NOT_FOR_DIALECTS
            continue
        yield from (alias.name for alias in node.names)


def private_attributes(file: Path) -> Iterator[str]:
    """Give each private attribute that a file reads of something else than `self` or `cls`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr[0] == "_" and node.attr[:2] != "__":
            owner = ast.unparse(node.value)
            if owner not in {"self", "cls", "super()"} and node.attr not in NAMED_TUPLE:
                yield f"{owner}.{node.attr}"


def main() -> int:
    found: list[str] = []
    for edge in EDGES:
        path = PACKAGE / edge
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
            where = f"lutum_py/{file.relative_to(PACKAGE).as_posix()}"
            found += [f"{where} imports {name}" for name in private_names(file, edge)]
            found += [f"{where} reads {name}" for name in private_attributes(file)]
    if found:
        print(*found, "Use a public name, or make the value give what you need.", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
