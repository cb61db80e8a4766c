"""Replace a file whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG
from typing import BinaryIO, Final

from ._screen import Failure, system_reason

_NAMELESS: Final = getattr(os, "O_TMPFILE", os.O_EXCL)
"""Asks for a file without a name; where there is no such thing, what fails on any directory."""
_NEW: Final = os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it holds either what it held or all of the new.

    The bytes go into a temporary file beside it, which then takes its name. On Linux that file has
    no name before it is whole, so that a process that is killed leaves nothing. A symbolic link is
    followed, the permissions are kept, and what is not a regular file (such as a pipe) is written
    to directly.

    Raises:
        Failure: It cannot be written; the file is as it was.
    """
    try:
        # Not of the path resolved: the links of open pipes (`/dev/stdout`, `/dev/fd/63`) name none.
        with suppress(FileNotFoundError):
            if not S_ISREG(path.stat().st_mode):
                path.write_bytes(data)
                return
        _replace(path.resolve(), data)
    except OSError as error:
        raise Failure(f"`{path}` cannot be written: {system_reason(error)}.") from error


def _replace(target: Path, data: bytes) -> None:
    written = target.parent / f".{target.name}.{token_hex(8)}"
    try:
        try:
            with _opened(target.parent, _NAMELESS) as file:
                _fill(file, target, data)
                # The name is given once the bytes are on the disk; until then a crash leaves
                # nothing to clean up.
                # A directory to start from makes Python take the call that follows the link.
                os.link(f"/proc/self/fd/{file.fileno()}", written, src_dir_fd=file.fileno())
        except OSError:  # not every system and file system has files without a name
            with _opened(written, _NEW) as file:
                _fill(file, target, data)
        written.replace(target)
    except BaseException:
        with suppress(OSError):
            written.unlink()
        raise


def _opened(path: Path, flags: int) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | flags, 0o600), "wb")


def _fill(file: BinaryIO, target: Path, data: bytes) -> None:
    file.write(data)
    file.flush()
    # A temporary file is for its owner alone, and would stay so under its new name.
    os.fchmod(file.fileno(), target.stat().st_mode & 0o7777 if target.exists() else _usual_mode())
    os.fsync(file.fileno())


def _usual_mode() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
