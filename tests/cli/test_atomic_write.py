"""A file is written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lutum_py.cli._atomic_write import write_file
from lutum_py.cli._screen import Failure


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """A file that was not there is as one that `open` makes."""
    (tmp_path / "usual").write_bytes(b"")
    write_file(tmp_path / "new", b"data")
    assert (tmp_path / "new").read_bytes() == b"data"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_an_old_file_keeps_its_permissions_and_its_name(tmp_path: Path) -> None:
    """Permissions stay, and a symbolic link goes on leading to the file that was written."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_file(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_failure_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last step fails, the old file is whole and nothing is left beside it."""
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(Failure, match="cannot be written: no space left on device"):
        write_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    """Killed while it writes, or right before the file has a name: only the old file is there."""
    file = tmp_path / "file"
    for step in ("fchmod", "fsync", "link"):
        file.write_bytes(b"old")
        code = (
            "import os, pathlib, signal\n"
            "from lutum_py.cli._atomic_write import write_file\n"
            f"os.{step} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
            f"write_file(pathlib.Path({str(file)!r}), b'new')\n"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
        assert file.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("at_fault", ["open", "link"])
def test_a_system_without_nameless_files_writes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_fault: str
) -> None:
    """Where a file cannot be made without a name, it is made with one, and taken away again."""
    really_open, file = os.open, tmp_path / "file"

    def refuse(path: Any, *rest: Any, **options: Any) -> Any:
        if at_fault == "link" or path == tmp_path:
            raise OSError(95, "Operation not supported")
        return really_open(path, *rest, **options)

    monkeypatch.setattr(os, at_fault, refuse)
    write_file(file, b"data")
    assert file.read_bytes() == b"data"

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match="no space left on device"):
        write_file(file, b"more")
    assert file.read_bytes() == b"data"
    assert list(tmp_path.iterdir()) == [file]


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A path that leads nowhere is a failure that names it."""
    with pytest.raises(Failure, match="no such file or directory"):
        write_file(tmp_path / "no" / "file", b"")


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    """What is no regular file is not replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"data")
    reader.join()
    assert read == [b"data"]
    assert pipe.is_fifo()
