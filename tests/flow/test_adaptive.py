"""The laws of what the page on prompt injection reports of attempts: each has that outcome."""

from __future__ import annotations

from pathlib import Path

from tests.cases import over
from tests.flow.adaptive import ATTEMPTS, Attempt, after_an_approval, landing, outcomes

PAGE = Path(__file__).parents[2] / "docs/how-to/prompt-injection.md"


@over("attempt", ATTEMPTS)
def test_each_attempt_has_the_outcome_that_is_stated(attempt: Attempt) -> None:
    """What is stated to land lands, and what is stated to be asked about is."""
    assert attempt.passes() is attempt.lands


def test_what_was_approved_passes_again() -> None:
    """An edge from an argument trusts whoever approved the call that had it."""
    assert after_an_approval()


def test_the_page_has_every_attempt_that_lands() -> None:
    """The page counts all attempts, and lists exactly those that land."""
    shown = PAGE.read_text(encoding="utf-8")
    listed = shown.partition("attempts")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert listed.splitlines() == landing()
    assert f"Of the {len(outcomes())} attempts" in shown
