"""Let a model write a program that calls tools: one result in place of many; the extra `code`.

`program_tool` makes a tool of a toolset. Its programs run in Monty, a small Python interpreter in a
process of its own, which reaches nothing but these tools; see SECURITY.md. What a program awaits
are calls of the same plan, which your hooks decide about like any other. While they wait the
program is bytes in the saved plan, or nothing but the outcomes of its calls.

| a call that the program awaits | in the program |
|---|---|
| is a success | the output |
| is rejected or cancelled | `PermissionError` |
| has arguments that do not fit | `TypeError` |
| is of a function that there is not | `NameError` |
| ends in an error, or nobody knows how | `RuntimeError` |

Each exception has the text that a model would read. One that the program does not catch ends it:
an error result with the code `program_error`.
"""

from __future__ import annotations

from ..errors import MissingExtraError

try:
    from ._limits import ProgramChanged, ProgramError, ProgramLimit, ProgramLimits
    from ._tool import ProgramResult, program_tool
except ImportError as _error:
    if (_error.name or "").partition(".")[0] != "pydantic_monty":
        raise
    raise MissingExtraError(
        "lutum_py.code needs an interpreter, the package `pydantic-monty` from 1.4 on: python -m "
        "pip install 'lutum-py[code]'"
    ) from _error

__all__ = [
    "ProgramChanged",
    "ProgramError",
    "ProgramLimit",
    "ProgramLimits",
    "ProgramResult",
    "program_tool",
]
