"""The dialects that the laws run on, with the one of the page "Write a dialect" among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from lutum_py.dialects import DIALECTS

from .every_dialect import OF_PAGE

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-dialect.md"
_FILE = re.compile(rf'^```python title="({OF_PAGE}/\w+\.py)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FILES = dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))
"""The package that the page shows, by file."""


@pytest.fixture(scope="package", autouse=True)
def _dialect_of_the_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Save the package that the page shows, and put it in the list."""
    folder = tmp_path_factory.mktemp("dialect")
    (folder / OF_PAGE).mkdir()
    for name, code in FILES.items():
        (folder / name).write_text(code, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
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
