"""What users have of the library stays, or is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .public_api import FILE, breaks, public_api, read

CHANGES = Path(__file__).resolve().parent.parent / "CHANGELOG.md"
WHAT_TO_DO = """List each name under Unreleased in CHANGELOG.md, between backticks and without
`lutum_py.`, with what to write instead. Before the first release nobody has these names: run
`python -m tests.public_api`."""


def unreleased() -> str:
    _, _, rest = CHANGES.read_text(encoding="utf-8").partition("\n## Unreleased\n")
    return rest.partition("\n## ")[0]


def test_no_public_name_goes_without_a_line_in_the_changelog() -> None:
    """A name of the last release is still there and takes what it took, or the changelog has it."""
    listed = unreleased()
    found = breaks(read(FILE.read_text(encoding="utf-8")), public_api())
    unlisted = [
        f"{name} {why}"
        for name, why in found.items()
        if f"`{name.removeprefix('lutum_py.')}`" not in listed
    ]
    assert not unlisted, "\n".join([*unlisted, WHAT_TO_DO])


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("f a b=", "f a b= *c="),
        ("f a", "f a= *..."),
        ("f *a", "f *a\ng"),
    ],
)
def test_what_code_can_still_use_is_no_break(before: str, now: str) -> None:
    """A new name, a parameter that may be left out, and one that now may be, break no code."""
    assert breaks(read(before), read(now)) == {}


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ("f a", "g a", "is gone"),
        ("f a b=", "f a", "took a b=, and takes a"),
        ("f a", "f b", "took a, and takes b"),
        ("f", "f *a", "took nothing, and takes *a"),
        ("f a=", "f a", "took a=, and takes a"),
        ("f a", "f *a", "took a, and takes *a"),
        ("f a", "f", "took a, and takes nothing"),
    ],
)
def test_what_code_cannot_use_any_more_is_a_break(before: str, now: str, why: str) -> None:
    """A name or a parameter that is gone, or is needed now, is named with what it took."""
    assert breaks(read(before), read(now)) == {"f": why}
