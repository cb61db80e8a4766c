"""Draw the libraries side by side, as an SVG without any plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from .peers.table import ROWS, ratio_text

__all__ = ["plot"]

# Told apart by shape and by colour; the colours are those of Okabe and Ito.
MARKS: Final = (
    ("#D55E00", "M0,-7 7,0 0,7 -7,0Z"),
    ("#0072B2", "M-5.5,-5.5H5.5V5.5H-5.5Z"),
    ("#009E73", "M0,-7 7,6 -7,6Z"),
    ("#8F4E7D", "M0,7 7,-6 -7,-6Z"),
    ("#56565B", "M-6,-3H-3V-6H3V-3H6V3H3V6H-3V3H-6Z"),
)
WIDTH: Final = 880
LEFT, RIGHT = 236, 850
TOP, STEP = 84, 38


def plot(peers: list[dict[str, Any]]) -> str:
    """Draw each row as a line, with a mark for each library at its ratio to the floor."""
    ratios = [row["ratio"] for peer in peers for row in peer["rows"].values()]
    low = min(0.0, math.log10(min(ratios))) - 0.1
    high = math.ceil(math.log10(max(ratios)) * 5) / 5
    bottom = TOP + STEP * len(ROWS)

    def x(ratio: float) -> float:
        return LEFT + (RIGHT - LEFT) * (math.log10(ratio) - low) / (high - low)

    def lines() -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 52}" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="#24292f" role="img" '
            f'aria-label="Cost of each library as a multiple of the floor">'
        )
        # Its own background: the page around it may be dark.
        yield f'<rect width="{WIDTH}" height="{bottom + 52}" rx="6" fill="#ffffff"/>'
        yield '<text x="20" y="27" font-size="15" font-weight="600">Times the cost of the same '
        yield "work by hand</text>"
        yield from _legend(peers)
        for power in range(math.ceil(low), math.floor(high) + 1):
            at = x(10.0**power)
            floor = power == 0
            yield (
                f'<path d="M{at:.1f},{TOP - 14}V{bottom - 10}" stroke="#24292f" '
                f'stroke-opacity="{0.9 if floor else 0.18}"/>'
            )
            label = "the floor" if floor else f"{10.0**power:,g} times"
            yield f'<text x="{at:.1f}" y="{bottom + 8}" text-anchor="middle">{label}</text>'
        for index, (key, label) in enumerate(ROWS.items()):
            y = TOP + STEP * index + 8
            yield f'<text x="{LEFT - 18}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
            yield (
                f'<path d="M{LEFT},{y}H{RIGHT}" stroke="#24292f" stroke-opacity="0.12" '
                f'stroke-dasharray="2 4"/>'
            )
            # The first library last, so that no other hides it.
            for number in reversed(range(len(peers))):
                if key not in peers[number]["rows"]:
                    continue
                ratio = peers[number]["rows"][key]["ratio"]
                colour, shape = MARKS[number % len(MARKS)]
                title = f"{peers[number]['name']}: {label}, {ratio_text(ratio)} times"
                yield (
                    f'<path d="{shape}" transform="translate({x(ratio):.1f} {y})" '
                    f'fill="{colour}" fill-opacity="0.88"><title>{escape(title)}</title></path>'
                )
        yield (
            f'<text x="{(LEFT + RIGHT) / 2}" y="{bottom + 34}" text-anchor="middle" '
            f'fill-opacity="0.75">each step of the axis is ten times the one before; '
            f"left is better</text>"
        )
        yield "</svg>"

    return "\n".join(lines()) + "\n"


def _legend(peers: list[dict[str, Any]]) -> Iterator[str]:
    at = 28.0
    for number, peer in enumerate(peers):
        colour, shape = MARKS[number % len(MARKS)]
        text = f"{peer['name']} {peer['versions'][peer['name']]}"
        yield f'<path d="{shape}" transform="translate({at} 49)" fill="{colour}"/>'
        yield f'<text x="{at + 13}" y="53.5">{escape(text)}</text>'
        at += 42 + 6.9 * len(text)
