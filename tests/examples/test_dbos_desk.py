"""The desk on DBOS, killed and stopped around its payments: no payment is made twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: python -m pip install --group examples")

# Its tables take the clock by a word that older versions of SQLite do not have.
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason=f"DBOS on Python 3.12 and later needs SQLite 3.42; here is {sqlite3.sqlite_version}",
)

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
DRIVER: Final = Path(__file__).with_name("dbos_driver.py")

ANSWER: Final = "call_1 pay: success\ncall_2 pay: cancelled\ncall_3 wire: success"


@contextmanager
def worker(folder: Path, *options: str, code: Path = EXAMPLES) -> Iterator[subprocess.Popen[str]]:
    """Go on with the conversation in a process, which is killed if the test fails."""
    started = subprocess.Popen(
        [sys.executable, str(DRIVER), str(code), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def finish(folder: Path) -> list[str]:
    """Go on to the end, and give the answer of the model."""
    with worker(folder) as last:
        said, _ = last.communicate(timeout=120)
    assert last.returncode == 0, said
    return said.splitlines()[-3:]


def payments(folder: Path) -> dict[str, int]:
    """Count the payments in the books of the bank, by payee."""
    books = folder / "bank.db"
    if not books.exists():
        return {}
    with closing(sqlite3.connect(books)) as bank:
        return dict(bank.execute("SELECT payee, count(*) FROM payments GROUP BY payee").fetchall())


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "dbos_desk.py"), "--folder", ".", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation where all is decided, whose worker was killed before anything started."""
    folder = tmp_path_factory.mktemp("decided")
    with worker(folder, "decide", "pay", "start", "kill") as first:
        said, _ = first.communicate(timeout=120)
    assert first.returncode == -signal.SIGKILL, said
    return folder


@pytest.fixture
def folder(decided: Path, tmp_path: Path) -> Path:
    """A copy of that conversation."""
    return Path(shutil.copytree(decided, tmp_path / "desk"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "moment", "wired", "paid"),
    [
        ("pay", "inside", "success", 1),
        ("pay", "paid", "success", 1),
        ("pay", "after", "success", 1),
        ("wire", "start", "success", 1),
        ("wire", "before", "indeterminate", 0),
        ("wire", "inside", "indeterminate", 0),
        ("wire", "paid", "indeterminate", 1),
        ("wire", "after", "indeterminate", 1),
    ],
)
def test_a_kill_around_a_payment(
    folder: Path, tool: str, moment: str, wired: str, paid: int
) -> None:
    """However a worker dies, nothing is paid twice: a payment with a key is made after all, and one
    without a key that may have been made is in doubt.
    """
    with worker(folder, "go on", tool, moment, "kill") as killed:
        said, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    assert finish(folder) == [
        "call_1 pay: success",
        "call_2 pay: cancelled",
        f"call_3 wire: {wired}",
    ]
    assert payments(folder) == {"Acme": 1} | ({"Initech": 1} if paid else {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "wired"),
    [("start", "success"), ("before", "indeterminate"), ("paid", "indeterminate")],
)
def test_a_worker_that_pauses_for_long(folder: Path, moment: str, wired: str) -> None:
    """A worker that pauses while another goes on in its place adds no second payment, and takes the
    outcome of the other.
    """
    answer = ["call_1 pay: success", "call_2 pay: cancelled", f"call_3 wire: {wired}"]
    with worker(folder, "go on", "wire", moment, "hold") as paused:
        while not (folder / "held").exists():
            assert paused.poll() is None
            time.sleep(0.05)
        stop(folder, paused)
        assert finish(folder) == answer
        (folder / "go-on").touch()
        paused.send_signal(signal.SIGCONT)
        said, _ = paused.communicate(timeout=120)
    assert "\n".join(answer) in said
    assert payments(folder) == {"Acme": 1, "Initech": 1}


def stop(folder: Path, process: subprocess.Popen[str]) -> None:
    """Stop a whole process, at a moment when it holds no lock of the database."""
    with closing(sqlite3.connect(folder / "dbos.db", timeout=60, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        held.execute("ROLLBACK")


@pytest.mark.slow
def test_a_deploy_that_changes_a_tool(folder: Path, tmp_path: Path) -> None:
    """A process with another schema of a tool leaves the conversation to those with the old one."""
    code = tmp_path / "newer"
    code.mkdir()
    shutil.copy(EXAMPLES / "dbos_desk.py", code)
    text = (EXAMPLES / "payment_desk.py").read_text(encoding="utf-8")
    newer = text.replace("def wire(payee: str, ", "def wire(payee: str, country: str, ")
    assert newer != text
    (code / "payment_desk.py").write_text(newer, encoding="utf-8")
    with worker(folder, code=code) as deployed:
        while versions(folder) < 2:
            assert deployed.poll() is None
            time.sleep(0.1)
        with pytest.raises(subprocess.TimeoutExpired):
            deployed.communicate(timeout=3)
    assert payments(folder) == {}
    assert finish(folder) == ANSWER.splitlines()
    assert payments(folder) == {"Acme": 1, "Initech": 1}


def versions(folder: Path) -> int:
    """Count the versions of the program that DBOS has seen."""
    with closing(sqlite3.connect(folder / "dbos.db", timeout=60)) as database:
        (found,) = database.execute("SELECT count(*) FROM application_versions").fetchone()
        return int(found)


def test_people_decide_in_other_processes(tmp_path: Path) -> None:
    """An approval names what was shown, else it is refused; a cancellation takes its reason along;
    the head of the file names the right digest.
    """
    source = (EXAMPLES / "dbos_desk.py").read_text(encoding="utf-8")
    (digits,) = re.findall(r"approve call_1 (\w+)", source)
    with worker(tmp_path) as asking:
        shown = look_for(tmp_path, "call_3")
        assert f"digest {digits}" in shown
        refused = run(tmp_path, "approve", "call_1", "00000000")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "That is not what waits" in refused.stderr
        (other,) = re.findall(r"call_3.*\n.*\n +digest (\w+)", shown)
        for options in (
            ("approve", "call_1", digits, "--by", "ann"),
            ("cancel", "call_2", "--reason", "too much"),
            ("approve", "call_3", other),
        ):
            done = run(tmp_path, *options)
            assert done.returncode == 0, done.stderr
        said, _ = asking.communicate(timeout=120)
    assert said.splitlines()[-3:] == ANSWER.splitlines()
    assert payments(tmp_path) == {"Acme": 1, "Initech": 1}


def look_for(folder: Path, call_id: str) -> str:
    """Look at what waits until a call is there; before the tables are, nothing can be asked."""
    for _ in range(60):
        shown = run(folder, "inbox")
        if call_id in shown.stdout:
            return shown.stdout
    raise AssertionError(shown.stderr or shown.stdout)


def test_before_anything_was_asked_it_says_how_to_begin(tmp_path: Path) -> None:
    """Whoever looks or decides too early reads one line."""
    for early in (("inbox",), ("approve", "call_1", "00000000")):
        refused = run(tmp_path, *early)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert re.fullmatch("Nothing was started here.*\n", refused.stderr)
