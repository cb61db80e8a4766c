"""`python -m lutum_py`."""

from __future__ import annotations

import runpy

import pytest

import lutum_py

PATH = f"{lutum_py.__path__[0]}/__main__.py"


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run as a module the package is the command `lutum`; imported, `__main__` does nothing."""
    # By path: where the package is a pytest plugin, its loader is pytest's, which runpy cannot use.
    runpy.run_path(PATH, run_name="imported")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.argv", ["lutum", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(PATH, run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("lutum_py ")
