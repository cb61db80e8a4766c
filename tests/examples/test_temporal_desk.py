"""The desk on Temporal: its steps without a server, and workers that die, stop and change with one.

The server is the command `temporal`, if it is installed; nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
DRIVER: Final = Path(__file__).with_name("temporal_driver.py")
COMMAND: Final = shutil.which(
    "temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)
needs_server = pytest.mark.skipif(
    COMMAND is None, reason="the command `temporal` of Temporal's CLI, a server, is not installed"
)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the example."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import temporal_desk

    return temporal_desk


# Without a server.


def test_the_sandbox_takes_the_workflow(example: Any) -> None:
    """The workflow can be made inside of Temporal's sandbox, which lets the library through."""

    async def prepare() -> None:
        definition = workflow._Definition.must_from_class(example.Conversation)
        SandboxedWorkflowRunner().prepare_workflow(definition)

    asyncio.run(prepare())


class Round:
    """A round that waits, whose steps are run here one after the other."""

    def __init__(self, example: Any, folder: Path) -> None:
        self.steps, self.message = example.Steps(folder), example.desk.message
        note = self.run("begin", "Pay.")
        asked = self.run("ask_model", note)
        self.note, self.record = asked.note, asked.record
        self.entries: list[Any] = []

    def run(self, step: str, *values: Any) -> Any:
        done = ActivityEnvironment().run(getattr(self.steps, step), *values)
        return asyncio.run(done) if asyncio.iscoroutine(done) else done

    def waiting(self) -> list[Any]:
        waiting: list[Any] = self.run("what_waits", self.record, self.entries)
        return waiting

    def add(self, step: str, *values: Any) -> list[Any]:
        new: list[Any] = self.run(step, self.record, self.entries, *values)
        self.entries += new
        return new

    def decide(self, waiting: Any, action: str) -> None:
        self.add("take_decision", self.message(waiting["call"], action, "too much"))

    def start(self, call_id: str) -> Any:
        """Approve a call and start it."""
        (waiting,) = [each for each in self.waiting() if each["call"]["call_id"] == call_id]
        self.decide(waiting, "resume")
        started = self.run("start_call", self.record, self.entries, call_id)
        self.entries += started.entries
        return started


@pytest.fixture
def desk_round(example: Any, tmp_path: Path) -> Round:
    return Round(example, tmp_path)


def payments(folder: Path) -> dict[str, int]:
    """Count the payments in the books of the bank, by payee."""
    books = folder / "bank.db"
    if not books.exists():
        return {}
    with closing(sqlite3.connect(books)) as bank:
        return dict(bank.execute("SELECT payee, count(*) FROM payments GROUP BY payee").fetchall())


def test_the_steps_of_a_round(desk_round: Round, tmp_path: Path) -> None:
    """What is approved is paid, what is cancelled is not, and the model reads which is which."""
    for call_id in ("call_1", "call_3"):
        desk_round.add("run_call", desk_round.start(call_id).call)
    (left,) = desk_round.waiting()
    desk_round.decide(left, "cancel")
    assert desk_round.waiting() == []
    assert desk_round.run("what_runs", desk_round.record, desk_round.entries) == []
    note = desk_round.run("commit", desk_round.note, desk_round.record, desk_round.entries)
    answer = desk_round.run("ask_model", note).answer
    assert answer == "call_1 pay: success\ncall_2 pay: cancelled\ncall_3 wire: success"
    assert payments(tmp_path) == {"Acme": 1, "Initech": 1}


def test_a_second_attempt_pays_under_the_same_key(desk_round: Round, tmp_path: Path) -> None:
    """A call of an idempotent tool that was cut off runs again, and the bank takes its key once."""
    started = desk_round.start("call_1")
    assert started.idempotent
    desk_round.run(
        "run_call", desk_round.record, desk_round.entries, started.call
    )  # the worker is lost
    entries = desk_round.add("run_call", started.call)
    steps = [step["kind"] for entry in entries for step in entry["steps"]]
    assert steps == ["ended", "recorded"]
    assert payments(tmp_path) == {"Acme": 1}


def test_a_call_that_was_lost_is_in_doubt(desk_round: Round, tmp_path: Path) -> None:
    """A call that was started and must not run twice ends as `indeterminate`, and does not run."""
    assert not desk_round.start("call_3").idempotent
    steps = [step for entry in desk_round.add("give_up", "call_3") for step in entry["steps"]]
    assert [step["kind"] for step in steps] == ["abandoned", "ended", "recorded"]
    assert steps[-1]["verdict"] == "indeterminate"
    assert payments(tmp_path) == {}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"unknown": 1},
        {"call_id": "call_1", "action": "fly"},
        {"call_id": "call_1", "action": "resume"},
        {"call_id": "call_1", "action": "resume", "digest": "another"},
    ],
)
def test_a_signal_that_is_no_decision_changes_nothing(
    desk_round: Round, message: dict[str, Any]
) -> None:
    """Whatever is sent, the workflow goes on to wait: an activity that raised is tried forever."""
    before = desk_round.waiting()
    assert desk_round.add("take_decision", message) == []
    assert desk_round.waiting() == before


def test_without_a_server_it_says_how_to_start_one(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks before a server is there reads one line."""
    with socket.socket() as taken:  # nobody listens at it
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)
        with pytest.raises(SystemExit, match=f"No Temporal server answers at {address}. First: "):
            asyncio.run(example.main(["--folder", str(tmp_path), "inbox"]))


# With a server.


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server of our own."""
    assert COMMAND is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [COMMAND, "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    with subprocess.Popen(
        [*command, "--port", str(port), "--log-level", "never"], stdout=subprocess.DEVNULL
    ) as server:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


@contextmanager
def worker(
    folder: Path, address: str, *fuse: str, code: Path = EXAMPLES
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker in a process, which is killed in the end."""
    arguments = [sys.executable, str(DRIVER), str(code), *fuse]
    environment = {**os.environ, "TEMPORAL_ADDRESS": address}
    with subprocess.Popen(arguments, cwd=folder, env=environment) as started:
        try:
            yield started
        finally:
            started.kill()


async def connect(address: str) -> Client:
    """Connect to the server, which may just be starting."""
    for _ in range(100):
        try:
            return await Client.connect(address)
        except (RPCError, RuntimeError):
            await asyncio.sleep(0.2)
    raise AssertionError("the server did not start")


async def begin(example: Any, address: str) -> WorkflowHandle[Any, str]:
    """Begin the conversation, and wait until its payments wait."""
    client = await connect(address)
    handle: WorkflowHandle[Any, str] = await client.start_workflow(
        example.Conversation.run, "Pay.", id=example.CONVERSATION, task_queue=example.QUEUE
    )

    async def all_wait() -> bool:
        return len(await example.inbox(client)) == 3

    await until(all_wait)
    return handle


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something, a minute at most."""
    for _ in range(300):
        if await check():
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"{check} did not become true")


async def decide_all(example: Any, handle: WorkflowHandle[Any, str]) -> None:
    """Approve what waits, except for the second payment."""
    for each in await handle.query(example.Conversation.waiting):
        action = "cancel" if each["call"]["call_id"] == "call_2" else "resume"
        message = example.desk.message(each["call"], action)
        await handle.signal(example.Conversation.decide, message)


def answer(wired: str) -> str:
    return f"call_1 pay: success\ncall_2 pay: cancelled\ncall_3 wire: {wired}"


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "moment", "wired", "paid"),
    [
        ("pay", "paid", "success", 1),
        ("wire", "before", "indeterminate", 0),
        ("wire", "inside", "indeterminate", 0),
        ("wire", "paid", "indeterminate", 1),
        ("wire", "after", "indeterminate", 1),
    ],
)
def test_a_kill_around_a_payment(
    example: Any, address: str, tmp_path: Path, tool: str, moment: str, wired: str, paid: int
) -> None:
    """However a worker dies, nothing is paid twice: a payment with a key is made after all, and one
    without a key that may have been made is in doubt.
    """

    async def converse() -> str:
        with worker(tmp_path, address, tool, moment, "kill") as killed:
            handle = await begin(example, address)
            await decide_all(example, handle)
            assert await asyncio.to_thread(killed.wait, 60) == -signal.SIGKILL
        with worker(tmp_path, address):
            return await asyncio.wait_for(handle.result(), 90)

    assert asyncio.run(converse()) == answer(wired)
    assert payments(tmp_path) == {"Acme": 1} | ({"Initech": 1} if paid else {})


@needs_server
@pytest.mark.slow
def test_a_worker_that_stops_for_long(example: Any, address: str, tmp_path: Path) -> None:
    """A worker that is stopped for longer than its heartbeat may pay when it goes on; its outcome
    is refused, no other worker has paid, and the model reads that it is unknown.
    """

    async def is_held() -> bool:
        return (tmp_path / "held").exists()

    async def has_paid() -> bool:
        return "Initech" in payments(tmp_path)

    async def converse() -> str:
        with worker(tmp_path, address, "wire", "inside", "hold") as stopped:
            handle = await begin(example, address)
            await decide_all(example, handle)
            await until(is_held)
            stopped.send_signal(signal.SIGSTOP)
            with worker(tmp_path, address):
                said = await asyncio.wait_for(handle.result(), 90)
                assert payments(tmp_path) == {"Acme": 1}
                (tmp_path / "go-on").touch()
                stopped.send_signal(signal.SIGCONT)
                await until(has_paid)
                await asyncio.sleep(1)  # its outcome is on its way
        return said

    assert asyncio.run(converse()) == answer("indeterminate")
    assert payments(tmp_path) == {"Acme": 1, "Initech": 1}


@needs_server
@pytest.mark.slow
def test_a_deploy_that_changes_a_tool(example: Any, address: str, tmp_path: Path) -> None:
    """Workers with another schema of a tool fail to open the round, and pay nothing; the server
    shows why, and the conversation goes on when the old schema is back.
    """
    code = tmp_path / "newer"
    code.mkdir()
    shutil.copy(EXAMPLES / "temporal_desk.py", code)
    text = (EXAMPLES / "payment_desk.py").read_text(encoding="utf-8")
    newer = text.replace("def wire(payee: str, ", "def wire(payee: str, country: str, ")
    assert newer != text
    (code / "payment_desk.py").write_text(newer, encoding="utf-8")

    async def converse() -> str:
        with worker(tmp_path, address):
            handle = await begin(example, address)

        async def fails() -> bool:
            described = (await handle.describe()).raw_description
            failures = [each.last_failure for each in described.pending_activities]
            return any("`wire` has changed" in each.message for each in failures)

        with worker(tmp_path, address, code=code):
            await decide_all(example, handle)
            await until(fails)
            assert payments(tmp_path) == {}
        with worker(tmp_path, address):
            return await asyncio.wait_for(handle.result(), 90)

    assert asyncio.run(converse()) == answer("success")
    assert payments(tmp_path) == {"Acme": 1, "Initech": 1}
