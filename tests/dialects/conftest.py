"""The dialects that the laws run on, with the one of the page "Write a dialect" among them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from lutum_py.dialects import DIALECTS

from .every_dialect import OF_PAGE

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="package", autouse=True)
def _dialect_of_the_page() -> Iterator[None]:
    """Put the dialect of the examples in the list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        patch.setitem(DIALECTS, OF_PAGE, OF_PAGE)
        yield


@pytest.fixture(scope="module")
def dialect(request: pytest.FixtureRequest, _dialect_of_the_page: None) -> ModuleType:
    """The dialect of a name."""
    return import_module(DIALECTS[request.param])


@pytest.fixture(scope="module")
def other(request: pytest.FixtureRequest, _dialect_of_the_page: None) -> ModuleType:
    """The dialect of another name."""
    return import_module(DIALECTS[request.param])
