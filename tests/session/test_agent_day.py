"""A conversation that outgrows its window many times over."""

from __future__ import annotations

from .agent_day import live


def test_an_agent_never_exceeds_its_window() -> None:
    """Over hundreds of turns with results of a byte to a megabyte, no request is too long, it is
    cut rarely, most of what is sent was sent before, and estimates are near what is counted.
    """
    day = live(400)
    print(
        f"\n{day.items} items, {day.sent} sent at the end; {day.cuts} cuts; "
        f"{day.share_cached:.1%} of the input cached; error p95 {day.p95:.1%}; "
        f"largest {max(day.provider.sizes)}"
    )
    assert day.provider.refused == []
    assert 3 <= day.cuts <= 40
    assert day.share_cached > 0.8
    assert day.p95 < 0.1
