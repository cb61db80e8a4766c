"""Check that edges use what users have: `python -P tests/check_edges.py`.

An edge is built on public modules and on `_text`, as a user's own would be: it imports no private
module of another folder and reads no private attribute of another object. `STILL` has what is left
of both for each edge. It may only shrink.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "lutum_py"
STILL: Final = {
    "cli": (83, 4),
    "code": (3, 1),
    "dialects": (52, 18),
    "execution": (35, 52),
    "flow": (11, 2),
    "mcp": (43, 11),
    "models": (11, 1),
    "otel": (2, 5),
    "policy": (1, 0),
    "sinks": (10, 0),
    "store": (65, 108),
    "testing": (22, 2),
    "window": (10, 0),
}
"""For each edge, how many private names it imports, and how many private attributes it reads."""
NOT_FOR_DIALECTS: Final = frozenset({"HookSet", "Session", "ToolRound", "ToolRoundPlan", "Toolset"})
"""What no dialect imports: a dialect knows neither hooks nor rounds nor sessions."""


def private_names(file: Path, edge: str) -> Iterator[str]:
    """Give each private name that a file of an edge imports from another folder."""
    package = ["lutum_py", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) + 1 - node.level] + (node.module or "").split(".")
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
            if owner not in {"self", "cls", "super()"} and node.attr not in {"_replace", "_asdict"}:
                yield f"{owner}.{node.attr}"


def main() -> int:
    failed = False
    for edge, (names, attributes) in STILL.items():
        path = PACKAGE / edge
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        found = (
            [f"{file.name}: {name}" for file in files for name in private_names(file, edge)],
            [f"{file.name}: {name}" for file in files for name in private_attributes(file)],
        )
        for what, have, most in zip(("imports", "reads"), found, (names, attributes), strict=True):
            if len(have) != most:
                failed = True
                print(f"{edge} {what} {len(have)} private names, and `STILL` has {most}:", *have)
    if failed:
        print("Use a public name, or lower the number in `STILL` of tests/check_edges.py.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
