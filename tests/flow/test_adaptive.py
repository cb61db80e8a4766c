"""The laws of what the page on prompt injection tells of attempts: each comes out as it says."""

from __future__ import annotations

from pathlib import Path

from tests.cases import over
from tests.flow.adaptive import ATTEMPTS, Attempt, after_an_approval, rows

PAGE = Path(__file__).parents[2] / "docs/how-to/prompt-injection.md"


@over("attempt", ATTEMPTS)
def test_each_attempt_comes_out_as_it_is_told(attempt: Attempt) -> None:
    """What is said to land lands, and what is said to be asked about is."""
    assert attempt.passes() is attempt.lands


def test_what_was_approved_passes_again() -> None:
    """An edge from an argument trusts whoever approved the call that had it."""
    assert after_an_approval()


def test_the_page_has_every_attempt() -> None:
    """The table of the page is the one that the command of the benchmark prints."""
    shown = PAGE.read_text(encoding="utf-8")
    assert "\n".join(rows()) in shown
