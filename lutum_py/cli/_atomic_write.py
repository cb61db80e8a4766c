"""Replace a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ._screen import Failure, reason_of, safe

__all__ = ["write_file"]


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it holds either what it held or all of the new.

    The bytes go into a temporary file beside it, which then takes its name. A symbolic link is
    followed, the permissions are kept, and what is no regular file (such as a pipe) is written to
    directly.

    Raises:
        Failure: It cannot be written; the file is as it was.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        _replace(target, data)
    except OSError as error:
        raise Failure(f"`{safe(str(path))}` cannot be written: {reason_of(error)}.") from error


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    written = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        written.chmod(target.stat().st_mode & 0o7777 if target.exists() else _usual_mode())
        written.replace(target)
    except BaseException:
        with suppress(OSError):
            written.unlink()
        raise


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
