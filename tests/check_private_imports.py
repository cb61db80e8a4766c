"""Check which tests import private modules: `python -P tests/check_private_imports.py`.

Tests see what users see, so that the inside can be rebuilt under them. Only the files in `MAY`
import a module of which some part begins with an underscore: each tries an algorithm that no
public name reaches whole.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent
HERE: Final = "`MAY` of tests/check_private_imports.py"
MAY: Final = {
    "test_assignments.py": "the kinds of classes whose objects refuse assignments",
    "cli/test_schema_changes.py": "the rules and the words of `lutum lock` for what changed",
    "conformance/json_schema.py": "the judge with the patterns that the package takes",
    "dialects/test_every_dialect.py": "the dialects as scripted models write them",
    "dialects/test_first_look.py": "the first look of `check`, against the whole check",
    "dialects/test_schema_conjunctions.py": "two schemas in one, for any two and any value",
    "dialects/test_schema_restore.py": "what a schema lost on its way out, put back into arguments",
    "dialects/test_stream_parts.py": "the parsers that the streams of the dialects share",
    "execution/makespan.py": "the turns of calls, against list scheduling",
    "execution/test_in_order.py": "the same turns, one after the other",
    "private.py": "what proofs of races, machines and inputs force and read, in one place",
    "round/test_order.py": "which calls wait for which, of any touches",
    "schema/": "the readers and writers of JSON Schema, signatures and docstrings",
    "test_architecture.py": "the table of stages, which the pages show whole",
    "testing/test_check_loop.py": "the search for a failing script",
    "testing/test_check_plain_loop.py": "the judgement of a loop without the library",
    "testing/test_lazy_names.py": "what is imported when a test asks for it",
    "testing/test_schema_values.py": "the values that are drawn for a schema",
    "testing/test_strategies.py": "the calls that nearly fit a schema",
    "text/": "text, JSON and pages: algorithms that all else stands on",
}
"""What of `tests` may, files and whole folders, and what is tried there."""
MOST: Final = 42
"""So many files may at most."""


def private_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the name of each private module of the package that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if is_private(name):
                yield node.lineno, name


def is_private(name: str) -> bool:
    package, *parts = name.split(".")
    return package == "lutum_py" and any(
        part.startswith("_") and not part.endswith("__") for part in parts
    )


def allowed_by(file: str) -> str | None:
    """Name the entry that lets a file import private modules."""
    for key in MAY:
        if file == key or (key.endswith("/") and file.startswith(key)):
            return key
    return None


def main() -> int:
    used: set[str] = set()
    faults: list[str] = []
    count = 0
    for path in sorted(TESTS.rglob("*.py")):
        file = path.relative_to(TESTS).as_posix()
        found = list(private_imports(path))
        key = allowed_by(file)
        count += bool(found)
        if found and key is not None:
            used.add(key)
        elif found:
            faults += [f"tests/{file}:{line}: {name}" for line, name in found]
    if faults:
        print(*faults, sep="\n")
        print(f"Take public names, or say in {HERE} why not.")
    unused = sorted(MAY.keys() - used)
    for key in unused:
        print(f"tests/{key} imports no private module: remove it from {HERE}.")
    if count > MOST:
        print(f"That is more than {MOST}: let one of them go through public names.")
    print(f"{count} files of tests import private modules; {MOST} may.")
    return bool(faults or unused or count > MOST)


if __name__ == "__main__":
    sys.exit(main())
