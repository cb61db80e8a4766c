"""The tool that runs programs: what it asks for, and what a program gets of the results."""

from __future__ import annotations

import builtins
from keyword import iskeyword
from typing import Any, Final, Literal, NotRequired
from unicodedata import normalize

from typing_extensions import TypedDict

from .._context.context import ToolContext
from .._declare.tool_fn import ToolFn, tool_fn
from .._text.json import shorten
from .._toolset import Toolset
from .._transcript.result import ToolResult
from ..errors import InvalidValueError, MisuseError, ToolDefinitionError
from ._interpreter import Answer, Asks, Program
from ._limits import ProgramLimits
from ._signatures import signature

_WORDS: Final = """\
Run a program in Python that calls tools, and get the value of its last expression.

Await each call; calls that do not need each other go at once, as in `a, b = await \
asyncio.gather(first(), second())` after `import asyncio`. A call raises PermissionError where it \
was refused, TypeError where its arguments do not fit, and RuntimeError where it failed: catch \
what you can go on without. There are no files, no network and few modules. What goes in and out \
is JSON data. The tools are:"""


class ProgramResult(TypedDict):
    """The outcome of a program.

    Attributes:
        output: The value of its last expression.
        printed: What it printed, if anything.
    """

    output: Any
    printed: NotRequired[str]


def program_tool(
    tools: type[Toolset],
    *,
    name: str = "run_program",
    description: str | None = None,
    limits: ProgramLimits | None = None,
    keep: Literal["state", "replay"] = "state",
) -> ToolFn[[str, ToolContext], ProgramResult]:
    """Make a tool that runs programs, for `tool(...)`.

    Args:
        tools: What a program may call: those that are on of a toolset that stands, under the same
            wire names, beside this tool.
        name: The name of the tool.
        description: What the model is told, in place of the usual words; the signatures of the
            tools follow in any case.
        limits: How much one program may use.
        keep: What a program leaves where it waits: `state`, its interpreter, which takes a key of
            whoever saves the plan; or `replay`, nothing, and it is run again on the results of its
            calls.

    Raises:
        ToolDefinitionError: It is not a toolset, or a tool cannot be called by its name in Python.
        InvalidValueError: `keep` is neither of the two.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn, toolset
        >>> from lutum_py.code import program_tool
        >>> @tool_fn
        ... def price(item: str) -> int:
        ...     '''Tell the price of an item, in cents.'''
        ...     return 250
        >>> class Shop(Toolset):
        ...     price = tool(price)
        >>> class Desk(Toolset):
        ...     shop = toolset(Shop, off=True)
        ...     run_program = tool(program_tool(Shop))
        >>> Desk.run_program.definition.description.splitlines()[-2]
        'async def price(item: str) -> int:'
    """
    if not (isinstance(tools, type) and issubclass(tools, Toolset)):
        raise ToolDefinitionError(
            f"`program_tool()` takes a toolset, not {shorten(tools)}. Write a class of the tools "
            "that programs may call."
        )
    if keep not in ("state", "replay"):
        raise InvalidValueError(f"`program_tool(keep={shorten(keep)})`: give 'state' or 'replay'.")
    definitions = [each.definition for each in tools.default_selectors()]
    for each in definitions:
        _check_name(tools, each.name)
    parameters = {each.name: [*each.input_schema["properties"]] for each in definitions}
    most = ProgramLimits() if limits is None else limits
    text = "\n\n".join([description or _WORDS, *map(signature, definitions)])

    @tool_fn(name=name, description=text, idempotent=True)
    def run_program(code: str, ctx: ToolContext) -> ProgramResult:
        # Chance goes by the id of the call, which is the same when the program is run again.
        program = Program(code, parameters, ctx.call_id, most, keep)
        inner = ctx.inner
        if inner is None:
            step = program.begin()
        else:
            step = program.go_on(
                inner.state or "", [list(map(_answer, each)) for each in inner.rounds]
            )
        if isinstance(step, Asks):
            ctx.ask(step.calls, state=step.state)
        made: ProgramResult = {"output": step.output}
        return {**made, "printed": step.printed} if step.printed else made

    return run_program


def _check_name(tools: type[Toolset], name: str) -> None:
    if not name.isidentifier() or iskeyword(name):
        what = "which is not a name in Python"
    elif (read := normalize("NFKC", name)) != name:
        what = f"which Python reads as {shorten(read)}"
    elif hasattr(builtins, name):
        what = "as a function of Python is"
    else:
        return
    raise ToolDefinitionError(
        f"Toolset `{tools.__qualname__}` has a tool {shorten(name)}, {what}: no program could call "
        "it. Give it another name with `name=`, or leave it out."
    )


def _answer(result: ToolResult) -> Answer:
    """Return a result as a program has it.

    Raises:
        MisuseError: The toolset of the plan has no such tool, which no program could help.
    """
    if result.is_success:
        return {"return_value": result.output}
    if (result.status, result.code) == ("rejected", "unknown_tool"):
        raise MisuseError(
            f"`program_tool()` lets programs call `{result.name}` (call {result.id!r}), and the "
            "toolset of the plan has no tool of that name. Nest in it the toolset that "
            "`program_tool()` was given, without a prefix: `shop = toolset(Shop, off=True)`."
        )
    raises: Any = "RuntimeError"  # the tool ran: its code is its own, and may be any word
    if result.status in ("rejected", "cancelled"):
        raises = "TypeError" if result.code == "invalid_arguments" else "PermissionError"
    return {"exc_type": raises, "message": result.rejection_reason or result.model_text}
