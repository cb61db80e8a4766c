"""The approval example under fire: killed anywhere, restarted, and never wrong.

Run as a script, this file is the driver: it forks a process for each command, counts the statements
that the process sends to SQLite, and lets it send SIGKILL to itself right before a chosen one. The
example knows nothing of it.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples" / "approval"
DIALECTS: Final = (
    "anthropic_messages",
    "gemini_generate_content",
    "openai_chat",
    "openai_responses",
)
NEVER: Final = 0
STEPS: Final = ("pay", "approve", "cancel", "resume")

Outcome = dict[str, Any]

# The driver.


def with_fuse(statement: int, tell: Callable[[], object]) -> None:
    """Make SQLite kill this process before its n-th statement; report each that is reached."""
    reached = count(1)
    connect = sqlite3.connect

    def trace(_sql: str) -> None:
        number = next(reached)
        tell()
        if number == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        # What a killed process wrote is not lost with it, so there is no need to wait for the disk.
        connection.execute("PRAGMA synchronous = OFF")
        connection.set_trace_callback(trace)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]


def in_a_process(command: Callable[[], int], statement: int, folder: Path) -> tuple[int, int, str]:
    """Run a command in a fork; give its exit status, how many statements it made, and its output.

    The status is negative where a signal ended the process.
    """
    reading, writing = os.pipe()
    output = folder / "output"
    child = os.fork()
    if child == 0:
        status = 99
        os.close(reading)
        # What is said may be cut off by the kill like anything else, but not lost in a buffer.
        sys.stdout = sys.stderr = output.open("w", buffering=1)
        try:
            with_fuse(statement, lambda: os.write(writing, b"."))
            status = command()
        except Exception:  # noqa: BLE001 - the parent reads what it was
            traceback.print_exc()
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        statements = len(pipe.read())
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), statements, output.read_text()


def play(folder: Path, kills: Sequence[int]) -> Outcome:
    """Run the three commands to the end, process by process; each may have its fuse."""
    folder.mkdir(parents=True)
    fuses = iter(kills)
    ids: dict[str, str] = {}
    killed = 0
    statements: dict[str, int] = {}
    said: list[str] = []
    for step in STEPS:
        module = importlib.import_module("approve" if step == "cancel" else step)
        argv = ["--folder", str(folder)]
        if step in {"approve", "cancel"}:
            ids = ids or waiting(folder)
            argv += [f"--{step}", ids["Acme" if step == "approve" else "Globex"]]
            argv += ["--reason", "too much for one day"]
        while True:
            status, made, output = in_a_process(
                lambda module=module, argv=argv: module.main(argv),  # type: ignore[misc]
                next(fuses, NEVER),
                folder,
            )
            said.append(output)
            if status != -signal.SIGKILL:
                break
            killed += 1
        if status not in (0, 1):
            raise RuntimeError(f"{step} with fuses {kills} ended with {status}: {output}")
        statements[step] = made
    return {"killed": killed, "statements": statements, "said": said, **outcome_in(folder)}


def waiting(folder: Path) -> dict[str, str]:
    """Find the calls that wait, by payee."""
    from lutum_py.store import open_store

    with open_store(folder / "desk.db", key=(folder / "key").read_bytes()) as store:
        return {each.arguments["payee"]: each.call_id for each in store.waiting()}


def outcome_in(folder: Path) -> Outcome:
    """Collect what the desk and the world have on record at the end."""
    from lutum_py import ToolResult, TurnRequest
    from lutum_py.store import open_store
    from lutum_py.testing import assert_transcript_valid

    module = importlib.import_module("desk")
    desk = module.Desk
    with open_store(folder / "desk.db", key=(folder / "key").read_bytes()) as store:
        stored = store.load(module.CONVERSATION, desk)
    world = sqlite3.connect(folder / "world.db")
    try:
        payments = [payee for (payee,) in world.execute("SELECT payee FROM payments")]
        letters = [to for (to,) in world.execute("SELECT recipient FROM letters")]
    finally:
        world.close()
    transcript, finished = stored.session.transcript, stored.session.finished()
    assert_transcript_valid(transcript)
    violations: list[str] = []
    for name in DIALECTS:
        dialect = importlib.import_module(f"lutum_py.dialects.{name}")
        request = dialect.encode_request(TurnRequest(items=transcript, tools=desk.definitions()))
        violations += [f"{name}: {each}" for each in dialect.check(request)]
    return {
        "results": [
            (item.name, item.arguments, item.status)
            for item in transcript
            if isinstance(item, ToolResult)
        ],
        "violations": violations,
        "open": stored.plan is not None,
        "answer": finished and finished.answer,
        "payments": payments,
        "letters": letters,
    }


def drive(folder: Path) -> None:
    """Play every scenario that is read from stdin, and print what came of each."""
    sys.path.insert(0, str(EXAMPLE))
    for step in ("pay", "approve", "resume"):
        importlib.import_module(step)
    # What a killed process had started is in doubt as soon as nobody can still be at it.
    importlib.import_module("desk").__dict__["LEASE"] = 0.05
    scenarios = json.load(sys.stdin)
    print(json.dumps([play(folder / str(i), kills) for i, kills in enumerate(scenarios)]))


# The tests.


def play_all(folder: Path, scenarios: Sequence[Sequence[int]]) -> list[Outcome]:
    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        input=json.dumps(scenarios),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    outcomes: list[Outcome] = json.loads(done.stdout)
    return outcomes


def results_of(outcome: Outcome) -> dict[str, str]:
    """Give the status of each result by what was called."""
    statuses: dict[str, str] = {}
    for name, text, status in outcome["results"]:
        arguments = json.loads(text)
        what = arguments.get("payee") or arguments.get("recipient") or name
        assert what not in statuses
        statuses[what] = status
    return statuses


def hold_the_law(outcome: Outcome) -> None:
    """Assert what has to be true however often the processes were killed."""
    assert outcome["violations"] == []
    assert not outcome["open"]
    assert outcome["answer"].startswith("Done.")
    statuses = results_of(outcome)
    assert statuses.keys() == {"list_invoices", "Acme", "Globex", "Initech"}
    assert statuses["Acme"] == "success"
    assert statuses["Globex"] == "cancelled"
    assert outcome["payments"] == ["Acme"]
    letters = len(outcome["letters"])
    assert statuses["Initech"] in {"success", "indeterminate"}
    assert letters == 1 if statuses["Initech"] == "success" else letters <= 1


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    (outcome,) = play_all(tmp_path_factory.mktemp("undisturbed"), [[]])
    return outcome


def test_undisturbed_everything_succeeds(undisturbed: Outcome) -> None:
    """Without a kill what was approved is done, what was refused is not, and nothing is unknown."""
    hold_the_law(undisturbed)
    assert results_of(undisturbed)["Initech"] == "success"
    assert undisturbed["killed"] == 0


def boundaries(outcome: Outcome) -> Iterator[list[int]]:
    for position, step in enumerate(STEPS):
        for statement in range(1, outcome["statements"][step] + 1):
            yield [NEVER] * position + [statement]


@pytest.mark.slow
def test_a_kill_at_any_step_loses_nothing_and_repeats_nothing(
    undisturbed: Outcome, in_memory: Path
) -> None:
    """Killed before any single statement of any command, the example still ends as it should."""
    scenarios = list(boundaries(undisturbed))
    outcomes = play_all(in_memory, scenarios)
    assert len(scenarios) >= 60
    for scenario, outcome in zip(scenarios, outcomes, strict=True):
        assert outcome["killed"] == 1, scenario
        hold_the_law(outcome)
    # Both kinds of death in the middle of a tool were met: one that can be asked about, one not.
    said = "".join(line for outcome in outcomes for line in outcome["said"])
    assert "the bank has made it" in said
    unknown = [o for o in outcomes if results_of(o)["Initech"] == "indeterminate"]
    assert {len(outcome["letters"]) for outcome in unknown} == {0, 1}


@pytest.mark.slow
def test_kills_in_a_row_lose_nothing_and_repeat_nothing(
    undisturbed: Outcome, in_memory: Path
) -> None:
    """Killed again and again, also while it fixes what a kill left, it still ends as it should."""
    dice = random.Random(4)
    longest = max(undisturbed["statements"].values())
    scenarios = [[dice.randint(1, longest) for _ in range(dice.randint(2, 9))] for _ in range(60)]
    outcomes = play_all(in_memory, scenarios)
    for outcome in outcomes:
        hold_the_law(outcome)
    assert sum(outcome["killed"] for outcome in outcomes) >= 120
    assert Counter(outcome["killed"] for outcome in outcomes).keys() >= {2, 3, 4, 5}


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
