"""Run every fenced Python block of `README.md` and `docs/`, or of the pages that are named.

The blocks of a page run in order and share one namespace, as a reader would type them; a block may
await at its top level. The first failure ends the run, shown with the page's own line numbers.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import os
import re
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FENCE: Final = re.compile(r"(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*).*")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its first line in the page, counted from 1, and its code."""

    line: int
    code: str


def blocks_of(text: str) -> list[Block]:
    """Find the fenced blocks that are marked as Python."""
    found: list[Block] = []
    lines = text.split("\n")
    position = 0
    while position < len(lines):
        opening = FENCE.fullmatch(lines[position])
        position += 1
        if opening is None:
            continue
        start = position
        while position < len(lines) and lines[position].strip() != opening["ticks"]:
            position += 1
        if opening["language"] in {"python", "py"}:
            code = "\n".join(line for line in lines[start:position])
            found.append(Block(start + 1, textwrap.dedent(code)))
        position += 1
    return found


def run_page(page: Path, folder: Path) -> int:
    """Run the blocks of a page and tell how many there were."""
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    # The code stands in a file, at the lines it has in the page: then `inspect` finds the source of
    # what a block defines, and a traceback shows it.
    name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
    source = folder / f"{name}.py"
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines))
        lines += block.code.split("\n")
    source.write_text("\n".join(lines), encoding="utf-8")
    module = ModuleType(name)
    module.__file__ = str(source)
    sys.modules[name] = module
    with asyncio.Runner() as runner:
        for block in blocks:
            padded = "\n" * (block.line - 1) + block.code
            code = compile(
                padded, source, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
            try:
                answer = eval(code, vars(module))
                if inspect.iscoroutine(answer):
                    runner.run(answer)
            except SystemExit as stop:
                # Else a block could end the run with success before the others had their turn.
                raise RuntimeError(f"{page}:{block.line}: the block exits") from stop
    return len(blocks)


def main(names: list[str]) -> int:
    """Run the named pages, else all; give the exit status."""
    pages = [Path(name).resolve() for name in names]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    total = 0
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for page in pages:
            count = run_page(page, Path(name))
            total += count
            print(f"{os.path.relpath(page, ROOT)}: {count} blocks ran")
    if not total:
        print("No page has a Python block.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
