"""Show the tools of a toolset as a provider is sent them."""

from __future__ import annotations

import sys

import typer

from .._declare.offer import ToolAvailability
from .._toolset import Toolset
from ..dialects._facts import facts_of
from ..errors import ToolDefinitionError
from ._conversation_file import dialect_module
from ._screen import complain, text, write_json


def print_schemas(
    toolset: type[Toolset], dialect: str, strict: bool, everything: bool, as_json: bool
) -> None:
    """Print the tools, and what the dialect cannot say of them.

    Raises:
        Exit: A tool has no form in the dialect.
    """
    module = dialect_module(dialect)
    available = ToolAvailability.all() if everything else None
    shown = [selector for selector in toolset if everything or not selector.is_off]
    try:
        tools = module.tools(toolset, available=available, strict=strict)
        losses = [
            {"tool": each.name, "path": loss.path, "text": loss.text}
            for each in shown
            for loss in module.compile(each.definition, strict=strict).losses
        ]
    except ToolDefinitionError as error:
        complain(text(f"lutum: {error}"))
        raise typer.Exit(1) from error
    if as_json:
        data = {"dialect": dialect, "strict": strict, "tools": tools, "losses": losses}
        write_json(sys.stdout, data)
        return
    write_json(sys.stdout, tools)
    hidden = [selector.name for selector in toolset if selector not in shown]
    if hidden:
        complain(text(f"Left out, because they are off (--all prints them): {', '.join(hidden)}"))
    if strict and facts_of(dialect).strictness is None:
        complain(text(f"{dialect} has no strict mode for a tool: --strict changes nothing."))
    if losses:
        complain(text(f"Not enforced by {dialect}; still checked when a call is decoded:"))
        for loss in losses:
            place = f"{loss['tool']}.{loss['path']}" if loss["path"] else loss["tool"]
            complain(text(f"  {place}: {loss['text']}"))
