"""The tools of `file_agent.py`: plain functions over the files of one directory.

Every tool takes the root as a parameter that the model does not see; paths go in and out relative
to it. Whatever a directory holds, a tool answers in bounded time and space, or raises a `ToolError`
that the model can read.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field

from lutum_py import Skip, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import ExecutionFailed, NotFound

MAX_WALKED: Final = 50_000
"""Entries of directories that one call looks at."""
MAX_READ: Final = 1_000_000
"""Bytes of one file that one call reads."""
MAX_SEARCHED: Final = 64_000_000
"""Bytes of all files that one search reads."""
MAX_LINE: Final = 300
"""Characters of one line that the model is shown."""
PASSED_BY: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
"""Directories that a walk leaves out, beside the hidden ones."""

_READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)  # what the path was checked for is what is opened
    | getattr(os, "O_NONBLOCK", 0)  # a named pipe must not hold us up
    | getattr(os, "O_BINARY", 0)
)

Root = Annotated[Path, Skip()]

READS: Final = ToolCapabilities(effects=[ToolEffect("read_file", target="path")])
WRITES: Final = ToolCapabilities(effects=[ToolEffect("write_file", target="path")])


class Listing(BaseModel):
    """The files below a directory.

    Attributes:
        files: Paths relative to the root, the upper directories first.
        total: How many files there are, those included that are not listed.
        kinds: How many there are of each suffix, the most frequent ones.
        unreadable: How many directories could not be opened.
        complete: False where the walk was ended early, because there is too much.
    """

    files: list[str]
    total: int
    kinds: dict[str, int]
    unreadable: int
    complete: bool


class FileText(BaseModel):
    """Some lines of a file.

    Attributes:
        path: The file, relative to the root.
        first: The number of the first line given.
        text: The lines.
        size: The bytes of the whole file.
        more: Whether there are lines behind the ones given.
    """

    path: str
    first: int
    text: str
    size: int
    more: bool


class Match(BaseModel):
    """One line in which the words stand."""

    path: str
    line: int
    text: str


class Matches(BaseModel):
    """Where some words stand.

    Attributes:
        matches: The lines, in the order of the files.
        searched: How many text files were searched.
        skipped: How many files were not: binary ones, and those that may not be read.
        complete: False where the search was ended early, by its limits.
    """

    matches: list[Match]
    searched: int
    skipped: int
    complete: bool


class Written(BaseModel):
    """What was written."""

    path: str
    size: int


class OutsideRootError(Exception):
    """A path leads out of the root."""


def shown(path: str) -> str:
    r"""Write a path so that any file name is plain text: `\xNN` for a byte that is not text.

    >>> shown("caf\udce9\n.txt")
    'caf\\xe9\\x0a.txt'
    """
    marked = path.replace("\\", "\\\\") if os.sep == "/" else path.replace("\\", "/")
    return "".join(c if c.isprintable() else _escaped(c) for c in marked)


def _escaped(character: str) -> str:
    try:
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def meant(text: str) -> str:
    r"""Turn what `shown` gave back into the path.

    >>> meant("caf\\xe9\\x0a.txt")
    'caf\udce9\n.txt'
    """
    if "\\" not in text:
        return text
    data = re.sub(
        rb"\\(?:x([0-9a-f]{2})|\\)",
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\",
        text.encode("utf-8", "surrogateescape"),
    )
    return data.decode("utf-8", "surrogateescape")


def inside(root: Path, path: str) -> Path:
    """Give the real file that a path means, symbolic links followed.

    Args:
        root: The real path of the root.
        path: A path relative to it, or an absolute one.

    Raises:
        OutsideRootError: It is not inside of the root, or leads nowhere.
    """
    try:
        real = (root / meant(path)).resolve()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            real.lstat()  # else a name that is too long is found out by whoever uses it
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutsideRootError(f"that is not a usable path: {reason.lower()}") from None
    if "\0" in path or not real.is_relative_to(root):
        raise OutsideRootError("that leads out of the root")
    return real


def _name(root: Path, real: Path) -> str:
    return shown(os.fspath(real.relative_to(root)))


def _walk(root: Path, top: Path, count: Counter[str]) -> Iterator[tuple[str, Path]]:
    """Give the name and the real path of each file, level by level.

    Symbolic links to directories are not followed, so there is no loop; one to a file is followed
    where it stays inside of the root. `count` takes what could not be opened or was too much.
    """
    waiting = deque([top])
    while waiting:
        folder = waiting.popleft()
        try:
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            count["unreadable"] += 1
            continue
        for entry in ordered:
            count["walked"] += 1
            if count["walked"] > MAX_WALKED:
                count["left"] += 1
                return
            path = Path(entry.path)
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not (entry.name.startswith(".") or entry.name in PASSED_BY):
                        waiting.append(path)
                    continue
                real = inside(root, entry.path) if entry.is_symlink() else path
                if stat.S_ISREG(real.stat(follow_symlinks=False).st_mode):
                    yield _name(root, path), real
            except (OSError, OutsideRootError):
                continue


def _head(path: Path, limit: int) -> tuple[bytes, int]:
    """Read the first bytes of a regular file; also give its size."""
    with os.fdopen(os.open(path, _READ), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError("it is not a regular file")
        return file.read(limit) or b"", about.st_size


def _mode(path: Path, name: str, what: str) -> int:
    """Tell what is at a path, as `stat` does.

    Raises:
        NotFound: Nothing is.
        ExecutionFailed: It may not be looked at.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFound(f"there is no {what} {name!r}") from None
    except OSError as error:
        raise ExecutionFailed(f"{name!r} cannot be looked at: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:8192]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"


@tool_fn(capabilities=READS)
def list_files(
    root: Root, path: str = ".", limit: Annotated[int, Field(ge=1, le=1000)] = 200
) -> Listing:
    """List the files below a directory, with all its subdirectories but hidden ones.

    Args:
        root: Where the agent works.
        path: The directory, relative to the root.
        limit: How many files to name; all are counted.
    """
    top = root / meant(path)
    if not stat.S_ISDIR(_mode(top, path, "directory")):
        raise NotFound(f"there is no directory {path!r}")
    count: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    files: list[str] = []
    for name, _ in _walk(root, top, count):
        kinds[Path(name).suffix.lower() or "no suffix"] += 1
        if len(files) < limit:
            files.append(name)
    return Listing(
        files=files,
        total=kinds.total(),
        kinds=dict(kinds.most_common(8)),
        unreadable=count["unreadable"],
        complete=not count["left"],
    )


@tool_fn(capabilities=READS)
def read_file(
    root: Root,
    path: str,
    start: Annotated[int, Field(ge=1)] = 1,
    lines: Annotated[int, Field(ge=1, le=400)] = 80,
) -> FileText:
    """Read some lines of a text file.

    Args:
        root: Where the agent works.
        path: The file, relative to the root.
        start: The first line to read, counted from 1.
        lines: How many lines to read.
    """
    real = root / meant(path)
    _mode(real, path, "file")
    try:
        data, size = _head(real, MAX_READ)
    except OSError as error:
        raise ExecutionFailed(f"{path!r} cannot be read: {_reason(error)}") from error
    if _is_binary(data):
        raise ExecutionFailed(f"{path!r} is a binary file of {size:,} bytes")
    all_lines = data.decode("utf-8", "replace").splitlines()
    some = all_lines[start - 1 : start - 1 + lines]
    if not some and size > len(data):
        raise ExecutionFailed(f"{path!r} is too large to read that far: {size:,} bytes")
    return FileText(
        path=path,
        first=start,
        text="\n".join(map(_cut, some)),
        size=size,
        more=len(all_lines) >= start + lines or size > len(data),
    )


@tool_fn(capabilities=READS)
def search_text(
    root: Root,
    query: Annotated[str, Field(min_length=1, max_length=200)],
    path: str = ".",
    max_results: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Matches:
    """Find the lines of text files in which some words stand; upper and lower case are alike.

    Args:
        root: Where the agent works.
        query: The words, exactly as they stand.
        path: The file or directory to search, relative to the root.
        max_results: How many lines to give.
    """
    top = root / meant(path)
    is_folder = stat.S_ISDIR(_mode(top, path, "file or directory"))
    found: list[Match] = []
    count: Counter[str] = Counter()
    wanted = query.lower()
    for name, real in _walk(root, top, count) if is_folder else [(path, top)]:
        if count["bytes"] > MAX_SEARCHED or len(found) >= max_results:
            count["left"] += 1
            break
        try:
            data, size = _head(real, MAX_READ)
        except OSError:
            count["skipped"] += 1
            continue
        count["bytes"] += len(data)
        if _is_binary(data):
            count["skipped"] += 1
            continue
        count["searched"] += 1
        count["left"] += size > len(data)
        text = data.decode("utf-8", "replace")
        if wanted in text.lower():
            for number, line in enumerate(text.splitlines(), 1):
                if wanted in line.lower():
                    found.append(Match(path=name, line=number, text=_cut(line.strip())))
    return Matches(
        matches=found[:max_results],
        searched=count["searched"],
        skipped=count["skipped"] + count["unreadable"],
        complete=not count["left"] and len(found) <= max_results,
    )


@tool_fn(capabilities=WRITES)
def write_file(root: Root, path: str, text: Annotated[str, Field(max_length=MAX_READ)]) -> Written:
    """Write a text file; one that is there already is replaced.

    Args:
        root: Where the agent works.
        path: The file, relative to the root.
        text: What the file is to hold.
    """
    real = root / meant(path)
    data = text.encode("utf-8", "replace")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (_READ & ~os.O_RDONLY)
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(real, flags, 0o666), "wb") as file:
            file.write(data)
    except OSError as error:
        raise ExecutionFailed(f"{path!r} cannot be written: {_reason(error)}") from error
    return Written(path=path, size=len(data))
