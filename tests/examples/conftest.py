"""What the tests of the examples share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small directory, with something secret beside it."""
    made = tmp_path / "root"
    (made / "docs").mkdir(parents=True)
    (made / "README.md").write_text("# Pond\n\nA place for frogs.\n\nFrogs jump.\n")
    (made / "docs" / "frogs.txt").write_text("one\ntwo\nA frog is green.\nfour\n")
    (tmp_path / "secret.txt").write_text("the frog password")
    return made


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: thousands of transactions wait for no disk."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as made:
        yield Path(made)
