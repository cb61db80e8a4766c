"""The tool that runs programs: what it requests, and what a program gets of the results.

Its description shows each tool as a program calls it: an `async def` line made of its schemas.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from keyword import iskeyword
from textwrap import indent
from typing import Any, Final, Literal, NotRequired
from unicodedata import normalize

from typing_extensions import TypedDict

from .. import ToolContext, ToolDef, ToolResult, Toolset, tool_fn
from .._text.json import is_object, shorten
from ..errors import InvalidValueError, MisuseError, ToolDefinitionError
from ..schemas import alternatives, follow, types_in
from ..typing import JsonSchema, ToolFn
from ._interpreter import Answer, Asks, Program
from ._limits import ProgramLimits

_WORDS: Final = """\
Run a program in Python that calls tools, and get the value of its last expression.

Await each call; calls that do not need each other go at once, as in `a, b = await \
asyncio.gather(first(), second())` after `import asyncio`. A call raises PermissionError where it \
was refused, TypeError where its arguments do not fit, and RuntimeError where it failed: catch \
what you can go on without. There are no files, no network and few modules. What goes in and out \
is JSON data. The tools are:"""


_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_MOST: Final = 200
"""So many parts of the schemas of one tool are written out; the others are `Any`."""


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
            wire names, beside this tool; without a search for deferred ones.
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
        MisuseError: `limits` are no `ProgramLimits`, or the description is not text.

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
    MisuseError.check(
        "program_tool", "limits", "ProgramLimits or None", limits, ProgramLimits | None
    )
    MisuseError.check("program_tool", "description", "a text or None", description, str | None)
    # No search loads a tool for a program: there it would promise what it cannot keep.
    offered = [each for each in tools.default_selectors() if not each._loads_tools]
    definitions = [each.definition for each in offered]
    for each in definitions:
        _check_name(tools, each.name)
    # By position as the signature shows them: what it does not show by name stands last.
    parameters = {
        each.name: sorted(each.input_schema["properties"], key=_is_odd) for each in definitions
    }
    most = ProgramLimits() if limits is None else limits
    text = "\n\n".join([description or _WORDS, *map(_signature, definitions)])

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
            ctx.request_calls(step.calls, state=step.state)
        made: ProgramResult = {"output": step.output}
        return {**made, "printed": step.printed} if step.printed else made

    return run_program


def _check_name(tools: type[Toolset], name: str) -> None:
    if _is_odd(name):
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


def _is_odd(name: str) -> bool:
    """Whether Python has no parameter of a name."""
    return not name.isidentifier() or iskeyword(name)


def _signature(tool: ToolDef) -> str:
    """Write a tool as the head of an async function, with what its model is told about it."""
    schema = tool.input_schema
    types = _Types(schema)
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required", ())
    written: list[str] = []
    odd: list[str] = []
    told: list[str] = [tool.description]
    for name, part in properties.items():
        default = part.get("default") if is_object(part) else None
        shown = "" if name in required else f" = {default!r}"
        if _is_odd(name):
            odd.append(f"{name!r}: {types.of(part)}{shown}")
            continue
        # Python takes no required parameter after one with a default, and JSON schemas have them
        # in any order; after a `*` it does.
        if not shown and any(" = " in each for each in written) and "*" not in written:
            written.append("*")
        written.append(f"{name}: {types.of(part)}{shown}")
        if is_object(part) and part.get("description"):
            told.append(f"{name}: {part['description']}")
    if odd:
        written.append("**others")
        told.append(f"Give by name, as in `**{{name: value}}`: {', '.join(odd)}")
    gives = _Types(tool.output_schema).of(tool.output_schema)
    head = f"async def {tool.name}({', '.join(written)}) -> {gives}:"
    words = "\n".join(filter(None, told)) or "No description."
    return f"{head}\n" + indent(f'"""{words}"""', "    ")


class _Types:
    """Writes the types that the parts of one schema stand for, as far as there are any."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _MOST

    def of(self, schema: Any, within: frozenset[str] = frozenset()) -> str:
        """Write the type of a part.

        Args:
            schema: The part.
            within: The references that led to it: a type that holds itself is written once.
        """
        self._left -= 1
        reference = schema.get("$ref") if is_object(schema) else None
        if isinstance(reference, str):
            schema = None if reference in within else follow(reference, self._root)
            within |= {reference}
        if not is_object(schema) or self._left < 0:
            return "Any"
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(map(repr, values))}]"
        written = [self.of(each, within) for each in alternatives(schema)]
        written = written or [self._one(kind, schema, within) for kind in types_in(schema)]
        return " | ".join(dict.fromkeys(written)) or "Any"

    def _one(self, kind: str, schema: JsonSchema, within: frozenset[str]) -> str:
        if kind == "array":
            parts = schema.get("prefixItems")
            if parts:
                return f"tuple[{', '.join(self.of(each, within) for each in parts)}]"
            return f"list[{self.of(schema.get('items'), within)}]"
        if kind == "object":
            fields: JsonSchema = schema.get("properties", {})
            shown = (f"{name!r}: {self.of(each, within)}" for name, each in fields.items())
            if fields:
                return f"{{{', '.join(shown)}}}"
            return f"dict[str, {self.of(schema.get('additionalProperties'), within)}]"
        return _TYPES[kind]
