"""The support desk in code mode under fire: killed anywhere, started again, and never wrong."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.examples.support_kills import (
    CODE_DESK,
    DESK,
    STEPS,
    killed_and_well,
    lines_of_steps,
    points,
    run,
)

KILLS = 3


def refunded(folder: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        return shop.execute("SELECT number FROM refunds").fetchall()


def test_the_desk_is_done_in_three_steps(in_memory: Path) -> None:
    """A program stops for the person, who reads it, and the desk goes on after the yes."""
    first, _ = run(in_memory, STEPS[0], program=CODE_DESK)
    assert "Somebody has to decide" in first
    assert refunded(in_memory) == [("A2",)]  # what was awaited with it is done
    asked, _ = run(in_memory, STEPS[1], program=CODE_DESK)
    assert "paid = [pay(number, cents) for number, cents in await find_orders" in asked
    assert asked.endswith('refund {"order":"A1","cents":9900}? [y/n] ')
    last, _ = run(in_memory, STEPS[2], program=CODE_DESK)
    assert "input_tokens=800" in last
    assert "resolved=True" in last
    assert sorted(refunded(in_memory)) == [("A1",), ("A2",)]


@pytest.mark.slow
def test_killed_at_any_line_each_refund_is_made_once(in_memory: Path) -> None:
    """Some lines, others each time."""
    with TemporaryDirectory(dir=in_memory) as first:
        places = list(points(lines_of_steps(Path(first), CODE_DESK)))
    for step, line in random.sample(places, KILLS):
        with TemporaryDirectory(dir=in_memory) as folder:
            killed_and_well(Path(folder), step, line, CODE_DESK)


def test_code_mode_takes_at_most_ten_lines_more() -> None:
    """It is the same desk, and what a model gains by programs costs its author little."""

    def lines(program: Path) -> int:
        return sum(bool(line.strip()) for line in program.read_text().splitlines())

    assert lines(CODE_DESK) <= lines(DESK / "support.py") + 10


def test_what_the_shop_has_not_listed_waits(in_memory: Path) -> None:
    """A price that no order has waits for a person, who reads why."""
    program = in_memory / "support.py"
    program.write_text(CODE_DESK.read_text())
    said = CODE_DESK.with_name("said.py").read_text()
    changed = said.replace("refund(number, cents)", "refund(number, min(cents, 1501))")
    (in_memory / "said.py").write_text(changed)
    first, _ = run(in_memory, STEPS[0], program=program)
    assert "Somebody has to decide" in first
    assert refunded(in_memory) == [("A2",)]
    asked, _ = run(in_memory, STEPS[1], program=program)
    assert "`cents` 1501 is from no allowed source" in asked
