"""The whole day of the agent of the suite."""

from __future__ import annotations

from tests.session.agent_day import live


def test_an_agent_never_exceeds_its_window_all_day() -> None:
    """Over 2,000 turns with results of a byte to a megabyte, no request is too long, it is cut
    rarely, and most of what is sent was sent before.
    """
    day = live(2_000)
    print(
        f"\n{day.items} items, {day.sent} sent at the end; {day.cuts} cuts; "
        f"{day.share_cached:.1%} of the input cached; error p95 {day.p95:.1%}; "
        f"largest {max(day.provider.sizes)}"
    )
    assert day.provider.refused == []
    assert day.cuts <= 150
    assert day.share_cached > 0.9
    assert day.p95 < 0.1
