"""A file is written whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from .conftest import REPOSITORY, Lutum

DATA = b'[ {"role":"user","content":"new"} ]'
"""A conversation that is clean, which is written byte for byte."""


def write_file(lutum: Lutum, path: Path, said: str = "") -> None:
    """Let a command write to a path, or tell why it cannot."""
    ran = lutum("repair", "-", "--dialect", "openai_chat", "-o", path, stdin=DATA)
    if said:
        assert ran.code == 2
        assert f"`{path}` cannot be written: {said}" in ran.err
    else:
        assert ran.code == 0, ran.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with nothing in it."""
    made = tmp_path / "folder"
    made.mkdir()
    return made


def test_a_new_file_has_the_usual_permissions(lutum: Lutum, folder: Path) -> None:
    """A file that was not there is as one that `open` makes."""
    (folder / "usual").write_bytes(b"")
    write_file(lutum, folder / "new")
    assert (folder / "new").read_bytes() == DATA
    assert (folder / "new").stat().st_mode == (folder / "usual").stat().st_mode


def test_an_old_file_keeps_its_permissions_and_its_name(lutum: Lutum, folder: Path) -> None:
    """Permissions stay, and a symbolic link goes on leading to the file that was written."""
    file, link = folder / "file", folder / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_file(lutum, link)
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (DATA, 0o640)


def test_a_failure_changes_nothing(
    lutum: Lutum, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the last step fails, the old file is whole and nothing is left beside it."""
    file = folder / "file"
    file.write_bytes(b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    write_file(lutum, file, "no space left on device")
    assert file.read_bytes() == b"old"
    assert list(folder.iterdir()) == [file]


KILLED = """
import json, os, signal, sys
from lutum_py.cli import main
source, target, *steps = sys.argv[1:]
command = ["repair", source, "--dialect", "openai_chat", "-o", target]
try:
    main(["check", source, "--dialect", "openai_chat"])  # Imports all that the command needs.
except SystemExit:
    pass
sys.stdout.flush()
for step in steps:
    if (child := os.fork()) == 0:
        setattr(os, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        main(command)
    _, status = os.waitpid(child, 0)
    with open(target, "rb") as file:
        held = file.read().decode()
    ended = os.waitstatus_to_exitcode(status)
    print(json.dumps([step, ended, held, os.listdir(os.path.dirname(target))]))
"""


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    """Killed while it writes, or right before the file has a name: only the old file is there."""
    source, file = tmp_path / "source.json", folder / "file"
    source.write_bytes(DATA)
    file.write_bytes(b"old")
    steps = ("fchmod", "fsync", "link")
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, source, file, *steps],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    _, *seen = ran.stdout.splitlines()
    assert [json.loads(line) for line in seen] == [[step, -9, "old", ["file"]] for step in steps]


@pytest.mark.parametrize("at_fault", ["open", "link"])
def test_a_system_without_nameless_files_writes_all_the_same(
    lutum: Lutum, folder: Path, monkeypatch: pytest.MonkeyPatch, at_fault: str
) -> None:
    """Where a file cannot be made without a name, it is made with one, and taken away again."""
    really_open, file = os.open, folder / "file"

    def refuse(path: Any, *rest: Any, **options: Any) -> Any:
        if at_fault == "link" or path == folder:
            raise OSError(95, "Operation not supported")
        return really_open(path, *rest, **options)

    monkeypatch.setattr(os, at_fault, refuse)
    write_file(lutum, file)
    assert file.read_bytes() == DATA

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    file.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    write_file(lutum, file, "no space left on device")
    assert file.read_bytes() == b"old"
    assert list(folder.iterdir()) == [file]


def test_a_directory_that_is_not_there_is_told(lutum: Lutum, folder: Path) -> None:
    """A path that leads nowhere is a failure that names it."""
    write_file(lutum, folder / "no" / "file", "no such file or directory")


def test_a_pipe_is_written_to_directly(lutum: Lutum, folder: Path) -> None:
    """What is no regular file is not replaced by one."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(lutum, pipe)
    reader.join()
    assert read == [DATA]
    assert pipe.is_fifo()


def test_an_open_pipe_is_written_to_by_its_address(lutum: Lutum) -> None:
    """`/dev/fd/N`, as the shell gives it for `>(gzip)`, leads to the pipe that is open there."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read:
        with os.fdopen(writer, "wb"):
            write_file(lutum, Path(f"/dev/fd/{writer}"))
        assert read.read() == DATA


def test_a_link_that_leads_to_itself_is_told(lutum: Lutum, folder: Path) -> None:
    """A circle of links is a failure, and stays what it is."""
    link = folder / "link"
    link.symlink_to(link)
    write_file(lutum, link, "too many levels of symbolic links")
    assert link.is_symlink()
