"""The laws of the names of `lutum_py.testing`: all there, none loaded before it is asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from lutum_py import testing
from lutum_py.errors import MissingExtraError


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_name_is_there_and_sorted() -> None:
    """What is listed can be had, and nothing else."""
    assert sorted(testing.__all__) == testing.__all__
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    assert set(testing.__all__) <= set(dir(testing))
    assert not any(name.startswith("_") for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = testing.nothing  # type: ignore[attr-defined]


def test_the_strategies_are_an_attribute() -> None:
    """The module of strategies is found without an import of its own."""
    assert testing.__getattr__("strategies").__name__ == "lutum_py.testing.strategies"


def test_a_missing_hypothesis_is_an_error_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a missing Hypothesis names the extra, also inside of this process."""
    from lutum_py.testing import _hypothesis

    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtraError, match=r"lutum-py\[testing\]"):
        importlib.reload(_hypothesis)
    monkeypatch.undo()
    importlib.reload(_hypothesis)


FIRST = """
import os, sys
import lutum_py
assert not any(each.startswith("lutum_py.testing") for each in sys.modules)
for name in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork() == 0:
        exec(f"from lutum_py.testing import {name}")
        print(name, "hypothesis" in sys.modules)
        sys.exit()
    _, status = os.wait()
    assert status == 0, name
"""


def test_any_name_may_be_the_first() -> None:
    """Whichever name is asked for first, its import succeeds; only what draws loads Hypothesis."""
    found = python(FIRST, *testing.__all__)
    assert (found.stderr, found.returncode) == ("", 0)
    loads = {"AnyToolset", "ArgumentStrategies", "FaultKind", "check_loop", "strategies"}
    loads |= {name for name in testing.__all__ if name.startswith("Loop")}
    assert found.stdout.splitlines() == [f"{name} {name in loads}" for name in testing.__all__]


@pytest.mark.parametrize("name", ["check_loop", "strategies"])
def test_without_hypothesis_the_remedy_is_named(name: str) -> None:
    """Where Hypothesis is missing, what needs it says what to install, and the rest works."""
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from lutum_py.testing import ScriptedModel, assert_transcript_valid\n"
        "from lutum_py.errors import MissingExtraError\n"
        f"try:\n    from lutum_py.testing import {name}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    found = python(code)
    assert found.stderr == ""
    assert "python -m pip install 'lutum-py[testing]'" in found.stdout
