"""Examples that need more than the library say so."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("example", "package"),
    [
        ("dbos_desk.py", "dbos"),
        ("inbox/app.py", "uvicorn"),
        ("mcp_desk.py", "uvicorn"),
        ("temporal_desk.py", "temporalio"),
    ],
)
def test_an_example_names_the_package_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, example: str, package: str
) -> None:
    """Instead of a traceback there is a line that says what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=f"needs the package '{package}': python -m pip install"):
        runpy.run_path(str(EXAMPLES / example))
