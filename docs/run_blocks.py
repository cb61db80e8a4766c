"""Run every fenced Python block of `README.md` and `docs/`, or of the pages that are named.

The blocks of a page run in order and share one namespace, as a reader would type them; a block may
await at its top level. A block with a title, as in ```` ```python title="desk.py" ````, is a file
instead: it is saved under that name, beside the other files of the page, and run in a process of
its own. A file in a folder belongs to a package, and is only saved. Where a block
```` ```text title="Output" ```` comes next, it is what has to be printed.

A page may make the official client of OpenAI: its address and key in the environment are those of a
small server here, which asks for `forecast`, and answers when it has the result.

The first failure ends the run, shown with the page's own line numbers.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import difflib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
FENCE: Final = re.compile(
    r"(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)(?P<options>.*)"
)
TITLE: Final = re.compile(r'title="(?P<title>[^"]+)"')


@dataclass(frozen=True, slots=True)
class Fenced:
    """One fenced block: its first line in the page, counted from 1, and what stands in it."""

    line: int
    language: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """One Python block.

    Attributes:
        line: Its first line in the page, counted from 1.
        code: The code.
        file: The name of the file that it is, if it is one.
        output: What it has to print, if the page says so.
    """

    line: int
    code: str
    file: str | None = None
    output: str | None = None


def fenced_of(text: str) -> list[Fenced]:
    """Find all fenced blocks."""
    found: list[Fenced] = []
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
        title = TITLE.search(opening["options"])
        body = textwrap.dedent("\n".join(lines[start:position]))
        name = None if title is None else title["title"]
        found.append(Fenced(start + 1, opening["language"], name, body))
        position += 1
    return found


def blocks_of(text: str) -> list[Block]:
    """Find the fenced blocks that are marked as Python, each with the output that the page shows.

    Raises:
        ValueError: An output follows no Python block.
    """
    found: list[Block] = []
    before: Fenced | None = None
    for each in fenced_of(text):
        if each.language in {"python", "py"}:
            is_file = each.title is not None and each.title.endswith(".py")
            found.append(Block(each.line, each.text, each.title if is_file else None))
        elif each.title == "Output":
            if before is None or before.language not in {"python", "py"}:
                raise ValueError(f"line {each.line}: the output follows no Python block")
            last = found.pop()
            found.append(Block(last.line, last.code, last.file, each.text))
        before = each
    return found


class Page:
    """One page while its blocks run.

    Args:
        path: The page.
        folder: An empty folder of its own, in which the blocks run.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.name = re.sub(r"\W", "_", str(path.relative_to(ROOT).with_suffix("")))
        self.blocks = blocks_of(path.read_text(encoding="utf-8"))
        self.source = folder / f"{self.name}.py"
        self.module = ModuleType(self.name)
        self.module.__file__ = str(self.source)

    def run(self) -> int:
        """Run the blocks and tell how many there were."""
        # The code stands in a file, at the lines it has in the page: then `inspect` finds the
        # source of what a block defines, and a traceback shows it.
        lines: list[str] = []
        for block in self.blocks:
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.code.split("\n")
        self.source.write_text("\n".join(lines), encoding="utf-8")
        sys.modules[self.name] = self.module
        with asyncio.Runner() as runner, contextlib.chdir(self.folder):
            for block in self.blocks:
                printed = self._file(block) if block.file else self._typed(block, runner)
                self._compare(block, printed)
        return len(self.blocks)

    def _typed(self, block: Block, runner: asyncio.Runner) -> str:
        """Run a block in the namespace of the page; give what it printed."""
        padded = "\n" * (block.line - 1) + block.code
        code = compile(
            padded, self.source, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                answer: Any = eval(code, vars(self.module))
                if inspect.iscoroutine(answer):
                    runner.run(answer)
        except SystemExit as stop:
            # Else a block could end the run with success before the others had their turn.
            raise RuntimeError(f"{self.path}:{block.line}: the block exits") from stop
        return printed.getvalue()

    def _file(self, block: Block) -> str:
        """Save a block as the file that it is, and run it; give what it printed."""
        assert block.file is not None
        saved = Path(block.file)
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.write_text(block.code + "\n", encoding="utf-8")
        if saved.parent != Path():
            return ""
        ended = subprocess.run(
            [sys.executable, "-W", "error", block.file],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if ended.returncode:
            where = f"{self.path}:{block.line}: {block.file}"
            raise RuntimeError(f"{where} ended with {ended.returncode}\n{ended.stderr}")
        return ended.stdout

    def _compare(self, block: Block, printed: str) -> None:
        if block.output is None:
            sys.stdout.write(printed)
        elif _stripped(block.output) != _stripped(printed):
            shown = difflib.unified_diff(
                _stripped(block.output), _stripped(printed), "in the page", "printed", lineterm=""
            )
            difference = "\n".join(shown)
            raise AssertionError(f"{self.path}:{block.line}: another output\n{difference}")


class Provider(BaseHTTPRequestHandler):
    """Stand in for OpenAI where a page has the official client."""

    def do_POST(self) -> None:
        """Ask for a tool, or answer from its result."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said: dict[str, Any] = {"role": "assistant", "content": "Oslo will be sunny tomorrow."}
        if request["messages"][-1]["role"] != "tool":
            function = {"name": "forecast", "arguments": '{"city": "Oslo"}'}
            said["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        body = json.dumps({"id": "r1", "choices": [{"index": 0, "message": said}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base has it
        """Say nothing."""


@contextlib.contextmanager
def provided() -> Iterator[None]:
    """Let clients of OpenAI find the stand-in by their environment."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.server_port}/v1"
        os.environ["OPENAI_API_KEY"] = "none"
        yield
        server.shutdown()


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def main(names: list[str]) -> int:
    """Run the named pages, else all; give the exit status."""
    pages = [Path(name).resolve() for name in names]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    total = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as name, provided():
            count = Page(page, Path(name)).run()
        total += count
        print(f"{os.path.relpath(page, ROOT)}: {count} blocks ran")
    if not total:
        print("No page has a Python block.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
