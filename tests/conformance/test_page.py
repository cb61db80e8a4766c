"""What the page of third-party suites shows of a verdict."""

from __future__ import annotations

from tests.conformance.__main__ import UNEXPLAINED, cases, section
from tests.conformance.verdict import Group, Verdict

VERDICT = Verdict(
    "Suite",
    {"suite": "1.0"},
    "What was asked.",
    [[("tests", "fail"), (1_200, 2)]],
    [Group("Known.", ["one", "two\nlines"]), Group("", ["three"]), Group("None.", [])],
)


def test_the_page_has_the_reasons_and_no_case() -> None:
    """A section shows the figures, and how many cases differ for which reason."""
    lines = "\n".join(section(VERDICT)).splitlines()
    assert "| 1,200 | 2 |" in lines
    assert lines[-2:] == ["| 2 | Known. |", f"| 1 | {UNEXPLAINED} |"]
    assert not any("three" in line for line in lines)


def test_the_file_has_every_case_with_its_reason() -> None:
    """Each case that differs is one row, on one line."""
    assert list(cases(VERDICT)) == [
        ("Suite", "Known.", "one"),
        ("Suite", "Known.", "two lines"),
        ("Suite", UNEXPLAINED, "three"),
    ]


def test_a_suite_without_differences_says_so() -> None:
    """A section without cases has one sentence in place of the reasons."""
    whole = Verdict("Suite", {"suite": "1.0"}, "What was asked.", [])
    assert list(section(whole))[-1] == "Every case goes as the suite has it.\n"
