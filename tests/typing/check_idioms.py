"""Run four type checkers over the typed idioms.

Each must report every line that ends with the mark `# error`, and no other.
The `typing_*.py` files beside this one are checked, and only the bookshop is run. Call this with
the interpreter of an environment that holds the package and the checkers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
MARK: Final = re.compile(r"#\s*error\s*$")

Finding = tuple[Path, int, str]
"""A file, a line counted from 1, and what was said."""


class CheckerFailedError(Exception):
    """A checker gave no report that can be read."""


def check_with_mypy(files: Sequence[Path]) -> Iterator[Finding]:
    """Run `mypy --strict`, which gives one JSON object a line."""
    for line in _run("mypy", "--strict", "--output", "json", *files).splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            yield ROOT / found["file"], found["line"], found["message"]


def check_with_pyright(files: Sequence[Path]) -> Iterator[Finding]:
    """Run pyright, which counts lines from 0."""
    output = _run("pyright", "--outputjson", "--pythonpath", sys.executable, *files)
    for found in json.loads(output)["generalDiagnostics"]:
        if found["severity"] != "information":
            yield Path(found["file"]), found["range"]["start"]["line"] + 1, found["message"]


def check_with_pyrefly(files: Sequence[Path]) -> Iterator[Finding]:
    """Run pyrefly with its default checks: without a preset it picks a laxer one."""
    output = _run(
        "pyrefly",
        "check",
        "--preset=default",
        "--output-format=json",
        "--python-interpreter-path",
        sys.executable,
        *files,
    )
    for found in json.loads(output)["errors"]:
        yield ROOT / found["path"], found["line"], found["description"]


def check_with_ty(files: Sequence[Path]) -> Iterator[Finding]:
    """Run ty, whose JSON is that of GitLab."""
    output = _run("ty", "check", "--output-format=gitlab", "--python", sys.prefix, *files)
    for found in json.loads(output):
        place = found["location"]
        yield ROOT / place["path"], place["positions"]["begin"]["line"], found["description"]


CHECKERS: Final[dict[str, Callable[[Sequence[Path]], Iterator[Finding]]]] = {
    "mypy": check_with_mypy,
    "pyright": check_with_pyright,
    "pyrefly": check_with_pyrefly,
    "ty": check_with_ty,
}


def expected_in(file: Path) -> set[int]:
    """Give the lines of a file that are marked."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if MARK.search(line)}


def faults_of(checker: str, files: Sequence[Path]) -> list[str]:
    """Say where a checker's report and the marks differ; empty where they agree."""
    said: dict[tuple[Path, int], list[str]] = {}
    try:
        for file, line, message in CHECKERS[checker](files):
            # mypy also reports on the package, which is checked by itself.
            if file.resolve() in files:
                said.setdefault((file.resolve(), line), []).append(message)
    except (CheckerFailedError, ValueError, LookupError, TypeError) as error:
        return [f"{checker} gave no report: {error!r}"]
    marked = {(file, line) for file in files for line in expected_in(file)}
    missed = [f"{_place(one)}: {checker} reports no error" for one in sorted(marked - said.keys())]
    extra = [
        f"{_place(one)}: {checker} reports {message}"
        for one in sorted(said.keys() - marked)
        for message in said[one]
    ]
    return missed + extra


def main() -> int:
    """Check every file with every checker; give the exit status."""
    files = sorted(HERE.glob("typing_*.py"))
    marks = sum(len(expected_in(file)) for file in files)
    if not marks:
        print(f"No line is marked in {HERE}.", file=sys.stderr)
        return 1
    status = 0
    for checker in CHECKERS:
        faults = faults_of(checker, files)
        if faults:
            status = 1
            print("\n".join(faults), file=sys.stderr)
        else:
            print(f"{checker}: {marks} marked lines reported, and no other")
    return status


def _run(command: str, *arguments: str | Path) -> str:
    """Run a checker of this environment and give its report, whether it found errors or none."""
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")])}
    done: subprocess.CompletedProcess[Any] = subprocess.run(
        [str(Path(scripts) / command), *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise CheckerFailedError(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def _place(one: tuple[Path, int]) -> str:
    return f"{os.path.relpath(one[0], ROOT)}:{one[1]}"


if __name__ == "__main__":
    sys.exit(main())
