"""The laws of what the docs say about the layout: it is so."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from lutum_py._call.history import STAGES, StepKind

DOCS: Final = Path(__file__).parent.parent / "docs"
PAGE: Final = DOCS / "architecture.md"
CHANGES: Final = (
    "the text for an unknown tool",
    "a new status of results",
    "a new fault of a commit",
    "tags on members of a toolset",
    "a sixth dialect",
    "another rule between gates",
    "another style of docstrings",
    "the seal of plans",
    "the default timeout",
    "durations in the notebook view",
    "null fields of one dialect",
    "the did-you-mean cut-off",
    "a `Reject` with a code",
    "a rule of at most n calls of a tool a round",
    "`timedelta` for seconds, or what else is taken for them",
    "the title of a conversation in an inbox",
    "masking, for one tool or all",
    "a prefix that is a function",
    "a hook phase",
    "the text when a tool raises",
    "a finish reason",
    "how long a person took",
    "examples on members",
    "a further mark inside `Annotated`",
)


def package() -> Path:
    spec = find_spec("lutum_py")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def files_named(text: str) -> list[str]:
    """The files of the package that a text names between backticks, by their place in it."""
    names = re.findall(r"`(?:lutum_py/)?(\w+/[\w/]*\w\.py)`", text)
    return [name for name in names if (package() / name.partition("/")[0]).is_dir()]


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that draws the pictures of the site."""
    monkeypatch.syspath_prepend(DOCS)
    yield import_module("drawings")
    del sys.modules["drawings"]


def test_the_page_says_where_to_change_what() -> None:
    """Each of the changes that people come for has a line with one or two files."""
    rows = {
        cells[0]: files_named(" ".join(cells[1:]))
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 3
    }
    assert set(CHANGES) <= rows.keys()
    assert {len(rows[change]) for change in CHANGES} <= {1, 2}


def test_files_that_a_page_names_exist() -> None:
    """A file of the package that a page names stands where the page says."""
    named = [
        (str(page.relative_to(DOCS)), name)
        for page in sorted(DOCS.rglob("*.md"))
        for name in files_named(page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 10
    assert [(page, name) for page, name in named if not (package() / name).is_file()] == []


def test_every_folder_is_in_the_drawing(drawings: Any) -> None:
    """The drawing and the table show each folder and file of the package but the façade, once."""
    there = {
        path.name if path.is_dir() else path.stem
        for path in package().iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    drawn = [name for row in drawings.house_rows() for name in row]
    assert sorted(drawn) == sorted(there - {"__init__"})
    picture, table = drawings.house(), drawings.house_table()
    for name in drawn:
        shown = f"{name}/" if (package() / name).is_dir() else f"{name}.py"
        assert picture.count(shown) == 1
        assert re.search(rf"<td><code>{shown}</code></td><td>.", table)


def test_the_readme_shows_the_drawing_of_the_loop(drawings: Any) -> None:
    """The pictures in the README are the drawing of the home page, in colours of their own."""
    _, _, parts = drawings.loop().partition(">")
    for scheme in ("light", "dark"):
        shown = Path("docs", "images", f"loop-{scheme}.svg").read_text(encoding="utf-8")
        assert parts in shown


def test_the_way_of_a_round_is_drawn_and_told(drawings: Any) -> None:
    """Each step of the way stands in the drawing by its number, and in the list by its words."""
    steps = drawings.house_steps().count("<li>")
    numbers = re.findall(r'class="step">(\d+)<', drawings.house())
    assert numbers == [str(number) for number in range(1, steps + 1)]


def test_the_life_of_a_call_is_drawn_whole(drawings: Any) -> None:
    """The picture has each stage and the tables each kind of step, as the library's table has."""
    picture = drawings.lifecycle() + drawings.lifecycle_within()
    table, steps = drawings.stages_table(), drawings.steps_table()
    for stage in STAGES:
        assert f">{stage.replace('_', ' ')}</text>" in picture
    for kind in get_args(StepKind):
        assert steps.count(f"<td><code>{kind}</code></td>") == 1, kind
        assert (f"<th><code>{kind}</code></th>" in table) == (kind != "proposed"), kind
