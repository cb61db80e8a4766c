"""BFCL: the function sets of the Berkeley Function Calling Leaderboard, in every dialect."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import Final

from tests.benchmarks.bfcl import counts

from .verdict import Group, Verdict, unpacked

SUITE: Final = "bfcl-eval==2026.3.23"


def run() -> Verdict:
    """Offer each set in each dialect, and call each of its tools.

    Raises:
        NotHad: The package cannot be downloaded.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = unpacked(SUITE, Path(name)) / "bfcl_eval/data"
        counted, unmade = counts(folder)
    head = (
        "dialect",
        "sets",
        "offered",
        "with stand-ins",
        "calls",
        "by stand-ins",
        "own name back",
    )
    unfit = [
        f"{dialect}: offers {each.offered} of {each.sets}, reads {each.back} of {each.calls}"
        for dialect, each in counted.items()
        if each.offered < each.sets or each.back < each.calls
    ]
    return Verdict(
        title="BFCL",
        versions={"function sets": SUITE},
        about=ABOUT,
        tables=[[head, *((dialect, *astuple(each)) for dialect, each in counted.items())]],
        groups=[
            Group("", unfit),
            Group(TWICE, [f"{unmade} sets"] if unmade else []),
        ],
    )


TWICE: Final = "Two functions of the set have one name, which no toolset takes."
ABOUT: Final = """\
Each function set of the questions becomes a toolset, which every dialect offers. Each tool is
called by the name that went out, and must come back under its own."""
