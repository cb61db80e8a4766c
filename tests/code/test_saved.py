"""The laws of a program in a saved plan: it goes on elsewhere, from no state but its own."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pydantic_monty
import pytest

from lutum_py import ToolRoundPlan, Toolset
from lutum_py.errors import PlanError, SavedDataError
from lutum_py.execution import run_sync
from tests.code.programs import KEY, REPLAY, STATE, planned, result_of
from tests.round.saved_plans import requests, sealed

CODE = """
said = []
for number, cents in [("A1", 9900), ("A2", 1500), ("A3", 7000)]:
    try:
        said.append(await refund(number, cents))
    except PermissionError as error:
        said.append("no")
print(len(said))
said
"""
BOTH = pytest.mark.parametrize("tools", [STATE, REPLAY], ids=["state", "replay"])


def saved(tools: type[Toolset] = STATE) -> str:
    """Save a plan of which a program waits for an approval."""
    return run_sync(planned(CODE, tools), hooks=tools.HookSet()).dump_json(key=KEY)


def gone_on(text: str, tools: type[Toolset]) -> ToolRoundPlan[Any]:
    """Load a plan, answer what waits in it, and run it on."""
    plan = tools.load_plan(text, key=KEY)
    for waiting in plan.suspended:
        is_first = waiting.arguments["order"] == "A1"
        plan.resume(waiting.approve(by="ann") if is_first else waiting.cancel("no", by="ann"))
    return run_sync(plan, hooks=tools.HookSet())


@BOTH
def test_a_program_goes_on_in_another_plan(tools: type[Toolset]) -> None:
    """Saved and loaded at each stop, it comes to what it comes to in one go."""
    text = saved(tools)
    for _ in range(2):
        plan = gone_on(text, tools)
        if plan.suspended:
            text = plan.dump_json(key=KEY)
    (waits,) = [row for row in plan.calls if row.id == "c1"]
    assert waits.state == "finished"
    assert result_of(plan).output == {
        "output": ["A1: 9900", "A2: 1500", "no"],
        "printed": "3\n",
    }


@BOTH
def test_a_program_goes_on_in_another_process(tools: type[Toolset], tmp_path: Path) -> None:
    """Through a file: the process that began it is gone, and its interpreter with it."""
    name = "STATE" if tools is STATE else "REPLAY"
    file = tmp_path / "plan.json"
    script = f"""
from pathlib import Path
from tests.code.programs import {name} as tools
from tests.code.test_saved import gone_on, saved, KEY, result_of
file = Path({str(file)!r})
if not file.exists():
    file.write_text(saved(tools))
else:
    plan = gone_on(file.read_text(), tools)
    if plan.suspended:
        file.write_text(plan.dump_json(key=KEY))
    else:
        print(result_of(plan).output["output"])
"""
    root = Path(__file__).parents[2]
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
        )
    assert ran.stdout == "['A1: 9900', 'A2: 1500', 'no']\n"


def test_a_state_is_some_kilobytes_of_the_plan() -> None:
    """Of a small program, as bytes in base64; none of it with `replay`."""
    state = requests(json.loads(saved()))[-1]["bytes"]
    assert 1_000 < len(base64.b64decode(state)) < 10_000
    assert "bytes" not in requests(json.loads(saved(REPLAY)))[-1]


def broken(text: str, draw: random.Random) -> str:
    """Change a saved plan in one place, most often within the state of its program."""
    (state,) = [(found.start(1), found.end(1)) for found in re.finditer(r'"bytes":"([^"]+)"', text)]
    begin, end = state if draw.random() < 0.7 else (0, len(text))
    at = draw.randrange(begin, end)
    kind = draw.randrange(4)
    if kind == 0:
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
        return text[:at] + draw.choice(letters.replace(text[at], "")) + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + draw.randrange(1, 9) :]
    if kind == 2:
        return text[:at] + draw.choice(["A", "AAAA", "{}", "\\u0041", "1"]) + text[at:]
    other = draw.randrange(begin, end)
    return text[: min(at, other)] + text[max(at, other) :] if at != other else text[:at]


def test_no_byte_of_a_plan_that_was_changed_reaches_an_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of 10,000 changed texts is refused as it is loaded, or says the very same as before."""
    text, draw = saved(), random.Random(5)
    loaded: list[object] = []
    monkeypatch.setattr(pydantic_monty, "Monty", lambda: pytest.fail("an interpreter was started"))
    as_it_was = json.loads(text)
    for _ in range(10_000):
        changed = broken(text, draw)
        try:
            STATE.load_plan(changed, key=KEY).discard()
        except SavedDataError:
            continue
        loaded.append(json.loads(changed) == as_it_was)
    assert all(loaded)
    assert len(loaded) < 300


@pytest.mark.parametrize("key", [None, b"x" * 32], ids=["none", "another"])
def test_a_state_is_read_under_its_key_alone(key: bytes | None) -> None:
    """Without the key that sealed it, no plan with a state is loaded."""
    with pytest.raises(PlanError):
        STATE.load_plan(saved(), key=key)


def test_without_a_key_a_plan_with_a_state_is_neither_saved_nor_loaded() -> None:
    """It says to give one, or to keep nothing; what is run again needs none."""
    plan = run_sync(planned(CODE), hooks=STATE.HookSet())
    with pytest.raises(PlanError, match=r'key=.*keep="replay"'):
        plan.dump_json()
    plan.discard()
    with pytest.raises(PlanError, match=r'key=.*keep="replay"'):
        STATE.load_plan(json.dumps(sealed(json.loads(saved()))))
    again = run_sync(planned(CODE, REPLAY), hooks=REPLAY.HookSet())
    text = again.dump_json()
    loaded = REPLAY.load_plan(text)
    assert [each.call.id for each in loaded.suspended] == ["c1/1"]
    loaded.discard()
