"""The law of saved formats: there is one of each, of version 1, and any other is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import Session, ToolResult, Transcript
from lutum_py.errors import SavedDataError
from lutum_py.window import View
from tests.cases import over
from tests.round_tools import Shop, adds, opened


def plan() -> str:
    """The text of a plan."""
    return opened(*adds(1)).plan().dump_json()


def session() -> str:
    """The text of a session with its plan."""
    return Shop.dump_session(Session(), opened(*adds(1)).plan())


FORMATS: dict[str, tuple[Callable[[], str], Callable[[str], Any]]] = {
    "plan": (plan, Shop.load_plan),
    "session": (session, Shop.load_session),
    "transcript": (Transcript().dump_json, Transcript.load_json),
    "result": (
        lambda: ToolResult(id="c1", name="add", arguments="{}", result="1").dump_json(),
        ToolResult.load_json,
    ),
    "view": (View().dump_json, View.load_json),
}


@over("what", FORMATS)
def test_each_format_is_of_version_1_and_any_other_is_refused(what: str) -> None:
    """A text of another version says which one it has, and which one can be read."""
    make, load = FORMATS[what]
    data = json.loads(make())
    assert data["version"] == 1
    for version in (0, 2, 3, "1", True, 1.0, None):
        with pytest.raises(SavedDataError, match=r"has format version .*; this release reads 1\."):
            load(json.dumps({**data, "version": version}))
