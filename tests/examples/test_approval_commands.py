"""The approval example as a user runs it: its commands, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples" / "approval"


def run(script: str, folder: Path, *options: str, typed: str = "") -> tuple[int, str]:
    """Run a command as a user does."""
    done = subprocess.run(
        [sys.executable, "-W", "error", script, *options],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    return done.returncode, done.stdout + done.stderr


def command(name: str, folder: Path, *options: str, typed: str = "") -> tuple[int, str]:
    return run(str(EXAMPLE / f"{name}.py"), folder, *options, typed=typed)


def test_the_three_commands_of_the_readme_are_enough(tmp_path: Path) -> None:
    """The commands of the README, typed as they stand there, take a payment to its end."""
    (block,) = re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    lines = block.splitlines()
    assert len(lines) == 3
    typed = {"approve.py": "y\nwhat\nn\ntoo much\n"}
    for line in lines:
        python, script = line.split()
        assert python == "python"
        name = Path(script).name
        status, said = run(str(ROOT / script), tmp_path, typed=typed.get(name, ""))
        assert status == 0, said
    assert "pay: success" in said
    assert "pay: cancelled (Cancelled: too much)" in said


FULL: Final = """
import contextlib, io, json, os, shutil, sqlite3, sys
example, name, *options = sys.argv[1:]
sys.path.insert(0, example)
main = __import__(name).main
left = 0

class Full(sqlite3.Connection):
    def execute(self, *arguments):
        global left
        left -= 1
        if left == 0:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(*arguments)

    def executescript(self, script):
        self.execute("SELECT 1")
        return super().executescript(script)

connect = sqlite3.connect
sqlite3.connect = lambda *a, **o: connect(*a, **o, factory=Full)
def tried(statement):
    global left
    left = statement
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        return main(options), said.getvalue()

told = []
for statement in range(1, 400):
    shutil.rmtree("approval-data", ignore_errors=True)
    if os.path.isdir("before"):
        shutil.copytree("before", "approval-data")
    status, said = tried(statement)
    if left > 0:
        break
    told.append((status, said, tried(0) if status else (0, "")))
print(json.dumps(told))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("pay", ()), ("approve", ("--approve", "all"))])
def test_a_full_disk_is_called_that(in_memory: Path, name: str, options: tuple[str, ...]) -> None:
    """Whichever statement finds no room, the user reads so, and the same command goes on later."""
    if name == "approve":
        assert command("pay", in_memory)[0] == 0
        (in_memory / "approval-data").rename(in_memory / "before")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL, str(EXAMPLE), name, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=in_memory,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    full = "The disk is full. Nothing is lost: make room, and give the same command again.\n"
    assert len(told) > 20
    # Here and there it does no harm: the post office has no room, and the model reads that.
    assert len([status for status, _, _ in told if status == 0]) <= 8
    assert {said for status, said, _ in told if status} == {full}
    # What was done before there was no room stays done.
    assert all(status == 0 or "Next: python" in said for _, _, (status, said) in told)


def test_a_result_that_somebody_else_wrote_is_refused(tmp_path: Path) -> None:
    """A result that is put into the store by hand makes no payment look made."""
    assert command("pay", tmp_path)[0] == 0
    assert command("approve", tmp_path, "--approve", "all")[0] == 0
    books = sqlite3.connect(tmp_path / "approval-data" / "desk.db")
    try:
        (end,) = books.execute("SELECT body FROM lutum_entry WHERE body LIKE '%ended%'").fetchone()
        books.execute(
            "INSERT INTO lutum_entry SELECT conversation, round, call, n, 'mine', ?, last "
            "FROM lutum_call WHERE state = 'ready'",
            (end,),
        )
        books.execute("UPDATE lutum_call SET state = 'done', slot = NULL")
        books.commit()
    finally:
        books.close()
    status, said = command("resume", tmp_path)
    assert (status, "was edited by somebody else" in said) == (1, True)
    assert payments_in(tmp_path) == 0


def test_what_a_model_wrote_does_not_repaint_what_is_approved(tmp_path: Path) -> None:
    """The line that is approved shows control characters, and obeys none."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import desk, pay, approve
wipe = "Acme\\x1b[2K\\r\\x9b2K\\u202e"

listed = desk.scripted
def scripted(request):
    turn = listed(request)
    if len(turn.tool_calls) < 2:
        return turn
    return desk.ScriptedModel.tool_calls(("c\\x1b[2K", "pay", {"payee": wipe, "cents": 5}))
import command
command.scripted = scripted
pay.main([])
approve.main(["--list"])
approve.main([])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code.replace("\\\\", "\\"), str(EXAMPLE)],
        input="y\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.count("Pay Acme\\x1b[2K\\r") >= 3, done.stderr
    assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr)


def test_the_wrong_order_is_told_the_right_one(tmp_path: Path) -> None:
    """Each command, run too early, too late or twice, says in one line what to do instead."""

    def refused(name: str, *options: str) -> str:
        status, said = command(name, tmp_path, *options)
        assert status == 1
        return said.strip().splitlines()[-1]

    assert "First: python" in refused("resume")
    assert "First: python" in refused("approve")
    assert command("pay", tmp_path)[0] == 0
    assert re.search(r"payments wait. Next: python \S*approve.py$", refused("pay"))
    assert re.search(r"Not everything is decided. Next: python \S*approve.py$", refused("resume"))
    assert "No call 'call_x' waits." in refused("approve", "--approve", "call_x")
    assert command("approve", tmp_path, "--list")[0] == 0
    status, said = command("approve", tmp_path, typed="later\n")
    assert (status, said.splitlines()[-1]) == (0, "2 still to be decided.")
    assert command("approve", tmp_path, "--approve", "all")[0] == 0
    assert re.search(r"Nothing waits for a decision. Next: \S+ \S*resume.py$", refused("approve"))
    assert re.search(r"all is decided. Next: python \S*resume.py$", refused("pay"))
    assert command("resume", tmp_path)[0] == 0
    for name in ("pay", "approve", "resume"):
        assert "This conversation is over." in refused(name)


def test_the_next_command_can_be_typed_as_it_is_said(tmp_path: Path) -> None:
    """Also where the folder has a space in its name."""
    _, said = command("approve", tmp_path, "--folder", "my desk")
    assert shlex.split(said)[-2:] == ["--folder", "my desk"]


def test_whoever_stops_at_the_prompt_can_go_on(tmp_path: Path) -> None:
    """An interrupt is one line and no traceback; what was decided before it counts."""
    assert command("pay", tmp_path)[0] == 0
    asking = subprocess.Popen(
        [sys.executable, "-u", "-W", "error", str(EXAMPLE / "approve.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        assert asking.stderr is not None
        asking.stdin.write("y\n")
        asking.stdin.flush()
        for line in asking.stdout:
            if "approved" in line:
                break
        asking.send_signal(signal.SIGINT)
        with suppress(BrokenPipeError):  # a signal just before the read begins does not end it
            os.write(asking.stdin.fileno(), b"\n")
        assert asking.stderr.read() == (
            "\nStopped. Nothing is lost: give the same command again to go on.\n"
        )
    assert asking.returncode == 130
    assert command("approve", tmp_path, "--list")[1].count("tool       pay") == 1


EDITED: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import command, desk, resume

def cheaper(store, world, options):
    for waiting in store.waiting(desk.CONVERSATION):
        store.decide(desk.CONVERSATION, waiting.edit({"cents": 9}), desk.Desk, hooks=desk.hooks)

command.run(cheaper, command.parser("").parse_args([]))
resume.main([])
"""


def test_what_ran_is_told_and_not_what_the_model_wrote(tmp_path: Path) -> None:
    """Where somebody edited a payment, the line that says that it was made has the edited sum."""
    assert command("pay", tmp_path)[0] == 0
    status, said = run("-c", tmp_path, EDITED, str(EXAMPLE))
    assert (status, said.count("  pay Payment(")) == (0, 2)
    assert said.count(", cents=9): ") == 2, said


def edit(folder: Path, table: str, column: str, change: Callable[[str], str]) -> None:
    """Change the first text of a column that a change fits."""
    books = sqlite3.connect(folder / "approval-data" / "desk.db")
    try:
        found = books.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        row, new = next((row, new) for row, text in found if (new := change(text)) != text)
        books.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
        books.commit()
    finally:
        books.close()


def more_money(text: str) -> str:
    """Change the effective arguments of a payment."""
    steps = json.loads(text)
    arguments = steps[0].get("arguments", {})
    if "cents" in arguments:
        arguments["cents"] += 1
        return json.dumps(steps)
    return text


def other_message(text: str) -> str:
    return text.replace("Pay Acme 12000 cents?", "Pay Acme 120 cents?")


def without_a_result(text: str) -> str:
    saved = json.loads(text)
    transcript = json.loads(saved["transcript"])
    transcript["items"].pop()
    return json.dumps({**saved, "transcript": json.dumps(transcript)})


EDITS: Final[dict[str, tuple[str, str, Callable[[str], str]]]] = {
    "arguments": ("lutum_entry", "body", more_money),
    "ticket": ("lutum_call", "shown", other_message),
    "cut off": ("lutum_conversation", "record", lambda text: text[:-20]),
    "transcript": ("lutum_conversation", "session", without_a_result),
}
COMMANDS: Final = ("pay", "approve", "resume")
REFUSING: Final = """
import contextlib, io, json, os, sys
example, *folders = sys.argv[1:]
sys.path.insert(0, example)
told = []
for folder in folders:
    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        name = os.path.basename(folder)
        status = __import__(name).main(["--approve", "all"] if name == "approve" else [])
    told.append((status, said.getvalue()))
print(json.dumps(told))
"""


def test_an_edited_row_is_refused_in_one_line(tmp_path: Path) -> None:
    """What was changed behind the store's back is refused, in one line, and nothing is paid."""
    assert command("pay", tmp_path)[0] == 0
    folders: list[Path] = []
    for edited, change in EDITS.items():
        # What waits is listed without its entries, which who decides about it reads.
        for name in ("approve",) if edited == "arguments" else COMMANDS:
            folders.append(tmp_path / edited / name)
            shutil.copytree(tmp_path / "approval-data", folders[-1] / "approval-data")
            edit(folders[-1], *change)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", REFUSING, str(EXAMPLE), *map(str, folders)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for folder, (status, said) in zip(folders, json.loads(done.stdout), strict=True):
        assert status == 1, (folder, said)
        assert re.match("StoreError: .*was edited by somebody else", said), (folder, said)
        assert said.count("\n") == 1, (folder, said)
        assert payments_in(folder) == 0, folder


def payments_in(folder: Path) -> int:
    world = sqlite3.connect(folder / "approval-data" / "world.db")
    try:
        (number,) = world.execute("SELECT count(*) FROM payments").fetchone()
        return int(number)
    finally:
        world.close()


def test_an_approval_for_another_digest_is_refused(tmp_path: Path) -> None:
    """A decision that was made on another version of the call does not count."""
    command("pay", tmp_path)
    status, said = command("approve", tmp_path, "--approve", "all", "--digest", "sha256:0")
    assert status == 1
    assert "ResumeError: Decision" in said
    assert "2 still" not in said
    status, said = command("resume", tmp_path)
    assert "Not everything is decided." in said
    assert payments_in(tmp_path) == 0


def test_two_processes_at_once_pay_once(tmp_path: Path) -> None:
    """Whoever runs beside another does what that one does not: each payment is made once."""
    assert command("pay", tmp_path)[0] == 0
    assert command("approve", tmp_path, "--approve", "all")[0] == 0
    with ThreadPoolExecutor() as pool:
        ran = list(pool.map(lambda _: command("resume", tmp_path), range(3)))
    assert any(status == 0 and "Done." in said for status, said in ran)
    over = "This conversation is over."
    assert all(status == 0 or over in said for status, said in ran), ran
    assert payments_in(tmp_path) == 2


RACE: Final = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import command
command.Path.exists = lambda self: False  # as two see it who come at once
first, second = (command._key_in(pathlib.Path("key")) for _ in range(2))
sys.exit(first != second)
"""


def test_the_key_is_made_up_once(tmp_path: Path) -> None:
    """Of commands that come at once the first makes up the key, and all of them have that one."""
    command = [sys.executable, "-W", "error", "-c", RACE, str(EXAMPLE)]
    assert subprocess.run(command, cwd=tmp_path, timeout=60, check=False).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
