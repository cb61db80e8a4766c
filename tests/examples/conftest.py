"""What the tests of the examples share."""

from __future__ import annotations

from pathlib import Path

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
