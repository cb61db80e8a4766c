"""The laws of the extra: without the SDK, what to install is said."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from lutum_py.errors import MissingExtraError


@pytest.fixture
def unimported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, for one test, that the package was imported."""
    for name in [each for each in sys.modules if each.startswith("lutum_py.mcp")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("unimported")
@pytest.mark.parametrize("missing", ["mcp", "mcp.types", "mcp_types"])
def test_without_the_sdk_the_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No SDK, or one that is too old, is an error that says what to install."""
    for name in [each for each in sys.modules if each.partition(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lutum-py\[mcp\]'"):
        import_module("lutum_py.mcp")


@pytest.mark.usefixtures("unimported")
def test_another_import_that_fails_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the installation is no missing extra."""
    monkeypatch.setitem(sys.modules, "lutum_py.mcp._connection", None)
    with pytest.raises(ModuleNotFoundError, match="_connection") as caught:
        import_module("lutum_py.mcp")
    assert not isinstance(caught.value, MissingExtraError)
