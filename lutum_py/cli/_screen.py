"""Write to the terminal, or to whatever reads the pipe, without trusting the text."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from typing import Any, Final, TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from .._text.escaping import LINES, escape_unprintable, escape_unprintable_json
from .._text.json import exact_json
from ..errors import LutumError

_PIPED_WIDTH: Final = 100
"""Columns where no terminal says how many it has, and `COLUMNS` is not set either."""


class Failure(Exception):
    """The command cannot do its work: the text says why, and what to do about it."""


@contextmanager
def failing() -> Generator[None]:
    """Let what the library refuses end the command, in the library's own words."""
    try:
        yield
    except LutumError as error:
        raise Failure(str(error)) from error


def system_reason(error: OSError | ValueError) -> str:
    """Return the system's own word for what is wrong with a file, to end a sentence with."""
    said = error.strerror if isinstance(error, OSError) else None
    return escape_unprintable(said or str(error)).lower()


def stand_in_for_closed() -> None:
    """Put the null device in place of each standard stream that the process began without."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8"))


def text(words: str, style: str = "") -> Text:
    """Make a safe text for a table or a line; markup in it is just text."""
    return Text(escape_unprintable(words), style=style)


def counted(count: int, what: str) -> str:
    """Say how many there are: `1 tool`, `2 tools`."""
    plural = "es" if what.endswith("s") else "s"
    return f"{count} {what}{plural * (count != 1)}"


def json_text(data: Any) -> str:
    """Encode data as JSON that people read, with everything escaped that does not print."""
    return escape_unprintable_json(exact_json(data, ensure_ascii=False, indent=2))


def render(*shown: RenderableType) -> None:
    """Print to standard output, with colours and the terminal's width where there is one."""
    write(sys.stdout, _rendered(sys.stdout, *shown))


def answer(as_json: bool, data: Any, *shown: RenderableType) -> None:
    """Print what a command found, for programs or for people."""
    if as_json:
        write_json(sys.stdout, data)
    else:
        render(*shown)


def complain(*shown: RenderableType) -> None:
    """Print to standard error."""
    write(sys.stderr, _rendered(sys.stderr, *shown))


def _rendered(stream: TextIO, *shown: RenderableType) -> str:
    # Into memory, so that only `_send` ever writes to the stream, and meets what is wrong with it.
    memory = StringIO()
    console = Console(
        file=memory,
        force_terminal=stream.isatty() or None,
        markup=False,
        highlight=False,
        emoji=False,
    )
    # Rich prints nothing at all where `COLUMNS=0`.
    if (not console.is_terminal and not os.environ.get("COLUMNS")) or console.width < 1:
        console.width = _PIPED_WIDTH
    for each in shown:
        if not isinstance(each, Text):
            console.print(each)
        elif console.is_terminal:
            console.print(_hanging(each))
        else:
            console.print(each, soft_wrap=True)  # a line stays one for `grep`
    lines = memory.getvalue().split("\n")
    return "\n".join(line.rstrip() for line in lines)


def _hanging(line: Text) -> RenderableType:
    """Let what does not fit on a line stay indented as its beginning is."""
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    return Padding(line[indent:], (0, 0, 0, indent))


def write(stream: TextIO, words: str) -> None:
    """Write text; what the stream cannot encode is escaped, and a reader that left is not an error.

    Raises:
        Failure: Standard output takes no more, as on a full disk.
    """
    encoding = stream.encoding or "utf-8"
    _send(stream, stream, words.encode(encoding, "backslashreplace").decode(encoding))


def write_json(stream: TextIO, data: Any) -> None:
    """Write data as `json_text` lays it out."""
    write(stream, json_text(data) + "\n")


def write_traceback(error: BaseException) -> None:
    """Write the traceback of an exception to standard error."""
    write(sys.stderr, escape_unprintable("".join(traceback.format_exception(error)), LINES))


def write_bytes(data: bytes) -> None:
    """Write to standard output exactly what is given.

    Raises:
        Failure: It takes no more, as on a full disk.
    """
    _send(sys.stdout, sys.stdout.buffer, data)


def _send(stream: TextIO, target: Any, data: str | bytes) -> None:
    try:
        target.write(data)
        target.flush()
    except OSError as error:
        silence(stream)
        # Where standard error itself fails there is nowhere left to say so.
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            raise Failure(unwritten(error)) from error


def silence(stream: TextIO) -> None:
    """Let all that is written from here on, also by the interpreter as it ends, go nowhere."""
    # The descriptor itself is turned away: Python flushes standard output once more when it ends,
    # and would fail there with a traceback.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def unwritten(error: OSError) -> str:
    """Say that standard output takes no more."""
    return f"the output cannot be written: {system_reason(error)}."
