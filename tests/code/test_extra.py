"""The laws of the extra: without the interpreter, what to install is said."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from lutum_py.errors import MissingExtraError


@pytest.fixture
def unimported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, for one test, that the package was imported."""
    for name in [each for each in sys.modules if each.startswith("lutum_py.code")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("unimported")
def test_without_the_interpreter_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lutum-py\[code\]'"):
        import_module("lutum_py.code")


@pytest.mark.usefixtures("unimported")
def test_another_import_that_fails_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the installation is no missing extra."""
    monkeypatch.setitem(sys.modules, "lutum_py.code._limits", None)
    with pytest.raises(ModuleNotFoundError, match="_limits") as caught:
        import_module("lutum_py.code")
    assert not isinstance(caught.value, MissingExtraError)
