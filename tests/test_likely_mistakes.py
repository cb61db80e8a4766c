"""Each likely mistake is answered word for word: see `tests/likely_mistakes/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from lutum_py.errors import RoundClosedError
from tests.likely_mistakes import declaring, running  # noqa: F401 - they fill the table
from tests.likely_mistakes.desk import (
    MISTAKES,
    opened,
)


@pytest.fixture(autouse=True)
def _leave_no_round_open() -> Iterator[None]:
    yield
    while opened:
        try:
            opened.pop().discard()
        except RoundClosedError:
            continue


def said_of(mistake: Callable[[], object]) -> str:
    """The error of a mistake, in one line and without digests."""
    try:
        said = str(mistake())
    except Exception as error:  # noqa: BLE001 - which one it is, is what is tested
        said = f"{type(error).__name__}: {error}"
    return " ".join(re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", said).split())


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_likely_mistake_is_answered(mistake: Callable[[], object]) -> None:
    """The text says what happened, where, and what to do about it: word for word."""
    assert said_of(mistake) == MISTAKES[mistake]


def test_at_least_twenty_mistakes_are_answered() -> None:
    """The collection stays what it is for: the twenty most likely mistakes, and a few more."""
    assert len(MISTAKES) >= 20
    assert len(set(MISTAKES.values())) == len(MISTAKES)
