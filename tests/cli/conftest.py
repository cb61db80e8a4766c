"""Run `lutum` within the test, and forget afterwards what it imported."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pytest

from lutum_py.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "file_agent.py"

TOOLS = '''"""Some tools."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from lutum_py import Toolset, tool, tool_fn, toolset
from lutum_py.capabilities import ToolCapabilities, ToolEffect


class Place(BaseModel):
    """A place."""

    name: str
    height: float = 0


@tool_fn(
    timeout=2.5,
    category="travel",
    idempotent=True,
    strict=True,
    capabilities=ToolCapabilities(
        emits_progress=True,
        effects=[ToolEffect("delete_file", "path", dry_run="supported"), "network_request"],
    ),
)
def remove(path: str, mode: Literal["fast", "slow"] = "fast") -> None:
    """Remove a file.

    For good.
    """


@tool_fn
def find(places: list[Place], count: Annotated[int, Field(ge=1)] = 1) -> Place | None:
    """Find a place.

    Args:
        places: Where to look.
    """


@tool_fn
def wait() -> None:
    """Wait."""


class Inner(Toolset):
    find_place = tool(find)


class Middle(Toolset):
    """In the middle.

    More of it.
    """

    deep = toolset(Inner)


class Tools(Toolset):
    """All of them."""

    remove = tool(remove, off=True)
    wait = tool(wait)
    group = toolset(Middle, prefix="my_")


class Empty(Toolset):
    pass
'''


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of the command ended."""

    code: int
    out: str
    err: str


Lutum = Callable[..., Ran]


@pytest.fixture
def lutum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Lutum]:
    """Run the command in a directory of its own, with a module `tools` in it."""
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delenv("COLUMNS", raising=False)
    before = set(sys.modules)

    def run(*arguments: str | Path, stdin: bytes | TextIO = b"") -> Ran:
        if isinstance(stdin, bytes):
            stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        assert isinstance(end.value.code, int)
        return Ran(end.value.code, captured.out.decode(), captured.err.decode())

    yield run
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith((str(tmp_path), str(EXAMPLE.parent))):
            del sys.modules[name]
