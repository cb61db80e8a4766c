"""How much a program may use, and how one ends that gives no value."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final

from pydantic_monty import MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

from .._text.json import is_seconds, is_whole, shorten
from ..errors import InvalidValueError, ToolError

_OVER_A_LIMIT: Final = re.compile(
    r"(feed time|memory|suspension) limit (exceeded|\d+ exceeded)|exceeded its memory limit"
)
"""What the interpreter says where it stopped a program, which then cannot catch it."""

_OURS: Final = re.compile(r'  File "<python-input-0>".*\n(?:    .*\n)*')
"""A frame of the functions that stand before a program: its author never saw them."""

_KEPT: Final = re.compile(r"^(    (?:.*\W)?)_ = \((.*)$(?:\n {5}(    +[~^]+)$)?", re.MULTILINE)
"""A line in which the value of a program is kept, and the marks below: see `keeping_value`."""

_LARGEST: Final = 10**18
"""No limit is larger: the interpreter counts in 64 bits, and could run no program at all."""

_LONGEST: Final = 1000
"""Characters of the beginning and of the end of a traceback, which may quote a long line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """Bound what one program may use, from its first line to its last.

    Attributes:
        seconds: Of its own work; while its calls wait, and run, its clock stands.
        memory: Bytes of its values.
        printed: Bytes that it may print.
        calls: Calls that it may make. A plan takes 100 within one call, whatever is said here.

    Raises:
        InvalidValueError: A limit is not a number above 0, or is above 10**18.

    Example:
        >>> ProgramLimits(seconds=1).calls
        100
    """

    seconds: float = 5
    memory: int = 100_000_000
    printed: int = 100_000
    calls: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_fraction = field.name == "seconds" and is_seconds(value)
            if not (is_fraction or is_whole(value)) or not 0 < value <= _LARGEST:
                number = "number of seconds" if field.name == "seconds" else "whole number"
                raise InvalidValueError(
                    f"ProgramLimits({field.name}={shorten(value)}): give a {number} above 0, and "
                    "10**18 at most."
                )


class ProgramError(ToolError):
    """A program could not be read, raised an exception, or left a call that it never awaited."""

    code = "program_error"


class UnreadProgram(ProgramError):
    """Python finds no end of a program; the interpreter says better what is wrong, and where."""


class ProgramLimit(ProgramError):
    """A program used more than its `ProgramLimits`."""

    code = "program_limit"


class ProgramChanged(ProgramError):
    """A program that was run again did not request what it had requested; nothing was run."""

    code = "program_changed"


def failure(error: MontyError) -> ProgramError:
    """Say why the interpreter ended a program."""
    said = str(error)
    if isinstance(error, MontyRuntimeError | MontySyntaxError):
        said = error.display()  # with the lines
    said = _KEPT.sub(_as_written, _OURS.sub("", said)).replace("<python-input-2>", "program")
    if len(said) > 2 * _LONGEST:
        said = f"{said[:_LONGEST]} … {said[-_LONGEST:]}"
    is_cut_off = isinstance(error, MontyCrashedError) and error.timed_out
    is_over = is_cut_off or _OVER_A_LIMIT.search(str(error)) is not None
    return (ProgramLimit if is_over else ProgramError)(said)


def _as_written(line: re.Match[str]) -> str:
    before, last, marks = line.groups()
    if last.count(")") > last.count("("):  # the bracket is closed there, so it is the author's own
        return line[0]
    return f"{before}{last}" + (f"\n{marks}" if marks else "")


def with_printed(error: ProgramError, printed: str) -> ProgramError:
    """Add what the program had printed to what its model is told."""
    return type(error)(f"{error.reason}\n\nPrinted:\n{printed}") if printed else error
