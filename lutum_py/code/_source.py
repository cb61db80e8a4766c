"""What an interpreter is given to run: the tools, the program, and what takes its value out.

Nothing but text leaves an interpreter, and it is made in there, within the limits: a program may
hold a value that is small there and takes forever to be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import pairwise
from tokenize import (
    COMMENT,
    DEDENT,
    INDENT,
    NAME,
    NEWLINE,
    OP,
    TokenError,
    TokenInfo,
    generate_tokens,
)
from typing import Any, Final

from pydantic_core import from_json

from .._text.json import is_array, is_object
from ._limits import ProgramError, ProgramLimit, UnreadProgram

DOOR: Final = "__tool__"
"""The one function of the host; only what `prelude` wrote may call it."""

WAITING: Final = "import json\nf'{json.dumps([*map(str, __waiting__)])}'"
"""Gives, as text, the tools of calls that were never awaited."""

VALUE: Final = "import json\nf'{json.dumps(_, allow_nan=False)}'"
"""Gives, as text, the value that is kept in `_`."""

VET: Final = "raise RuntimeError\n"
"""Stands before a program that is to be read, and not run."""

_PRELUDE: Final = f"""\
__waiting__ = []
_ = None
async def __awaited__(name, given, named):
    import json
    __waiting__.remove(name)
    try:
        text = f"{{json.dumps([name, given, named], allow_nan=False)}}"
    except ValueError as error:
        raise TypeError(str(error)) from None
    return await {DOOR}(text)
"""
_TOOL: Final = """\
def {0}(*given, **named):
    __waiting__.append("{0}")
    return __awaited__("{0}", given, named)
"""
_LONGEST: Final = 100_000
_LARGEST: Final = 10_000_000


def prelude(tools: Iterable[str]) -> str:
    """Write the functions that a program calls."""
    return _PRELUDE + "".join(map(_TOOL.format, tools))


def keeping_value(code: str) -> str:
    """Write a program so that it keeps the value of its last expression, in `_`.

    If it ends with another statement, what is written is not a program.

    Raises:
        UnreadProgram: It has no end.
        ProgramError: It is too long, or returns a value outside of a function.
    """
    if len(code) > _LONGEST:
        raise ProgramLimit(f"The program is longer than {_LONGEST:,} characters.")
    start, end = _place_of_last(code)
    return f"{code}\n_ = None" if start is None else f"{code[:start]}_ = ({code[start:end]}\n)"


def _place_of_last(code: str) -> tuple[int | None, int | None]:
    """Find where the last statement begins that is in no other, and the `;` behind it, if any."""
    lines = [0]
    # What the tokens count as lines: to `splitlines`, a form feed or U+2028 ends one as well.
    for line in StringIO(code, newline=""):
        lines.append(lines[-1] + len(line))
    # By tokens and not by Python's own parser, whose version may know other grammar than the
    # interpreter has. A line break or `;` outside of blocks and brackets ends a statement.
    start, end, brackets, is_new = None, None, 0, True
    # For each open block, and for the last two lines, whether they are those of a function.
    functions, is_function, was_function = list[bool](), False, False
    try:
        # Not NUL, by which the tokenizer of Python 3.12 fails with a SystemError.
        read = StringIO(code.replace("\0", "?"), newline="").readline
        for token, after in pairwise(generate_tokens(read)):
            if token.type == INDENT:
                functions.append(was_function)
            elif token.type == DEDENT:
                functions.pop()
            elif token.type == NEWLINE:
                is_new, was_function, is_function = True, is_function, False
            elif token.type == NAME and token.string == "def":
                is_function = True
            elif token.type == NAME and token.string == "return":
                # Unlike Python, the interpreter runs it; nobody would get its value.
                if not (is_function or any(functions) or _is_end(after)):
                    raise ProgramError(
                        f"The program cannot be read: line {token.start[0]} has a `return` outside "
                        "of a function. End the program with the expression alone: its value is "
                        "the output."
                    )
            elif token.type == OP and token.string in "([{}])":
                brackets += 1 if token.string in "([{" else -1
            at = lines[token.start[0] - 1] + token.start[1]
            if token.type == OP and token.string == ";" and not brackets:
                end, is_new = at, True
            if is_new and token.string.strip() and token.string[0] not in "#;" and not functions:
                start, end, is_new = at, None, False
    except (TokenError, SyntaxError) as error:
        raise UnreadProgram(f"The program cannot be read: {error.args[0]}.") from None
    return start, end


def _is_end(token: TokenInfo) -> bool:
    """Whether a statement ends before a token."""
    return token.type in (COMMENT, NEWLINE) or token.string == ";"


def call_in(text: str, tools: Mapping[str, Sequence[str]]) -> tuple[str, dict[str, Any]]:
    """Read what a program calls, by text that it may have made itself.

    Args:
        text: What came through the door.
        tools: The names of the tools, each with those of its parameters.

    Raises:
        TypeError: It is not a call of a tool; the text says why.
    """
    sent = value_in(text)
    if not (is_array(sent) and len(sent) == 3 and is_array(sent[1]) and is_object(sent[2])):
        raise TypeError("it is not a call of a tool")
    name, given, named = sent
    if name not in tools:
        raise TypeError("it is not a call of a tool")
    parameters = tools[name]
    if len(given) > len(parameters):
        raise TypeError(f"{name}() takes {len(parameters)} arguments, and {len(given)} were given")
    made = dict(zip(parameters, given, strict=False))
    if twice := made.keys() & named.keys():
        raise TypeError(f"{name}() got {min(twice)!r} twice")
    return name, made | named


def value_in(text: str) -> Any:
    """Read a value that left a program as JSON text.

    Raises:
        TypeError: There is too much of it, or it is not JSON.
    """
    if len(text) > _LARGEST:
        raise TypeError(f"it is larger than {_LARGEST:,} characters as JSON")
    try:
        # At most 200 levels, whatever the Python.
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise TypeError(f"it is not JSON data: {error}") from None
