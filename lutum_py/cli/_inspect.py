"""`lutum inspect`: what there is to know of the tools of a toolset, as data and for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .._call.selector import AnySelector
from .._compat.type_words import bounds_of, named_types, type_words
from .._schema.capabilities import risk_of
from .._schema.definition import ToolDef
from .._schema.schema_reader import merged_part
from .._session.toolset import Toolset
from .._text.json import compact_json, cut
from .._toolsets.members import members_of
from .._toolsets.offer import ToolAvailability
from .._transcript.result_cap import ResultCap
from ..dialects import DIALECTS
from ..dialects._facts import facts_of
from ..errors import ToolDefinitionError
from ._conversation_file import dialect_module
from ._screen import complain, counted, text, write_json

_ESTIMATE: Final = (
    "the characters of name, description and input schema as compact JSON, divided by 4"
)
"""How tokens are estimated: real counts differ from model to model."""


def report_on(toolset: type[Toolset], reference: str) -> dict[str, Any]:
    """Describe a toolset and each of its tools.

    Args:
        toolset: The toolset.
        reference: How the command line named it.

    Returns:
        Plain JSON data; its keys are documented in the page on the command line.
    """
    # Paths begin at the toolset that was named: of `app:Desk.mail`, the tool `mail.send` is `send`.
    start = len(members_of(toolset).path)
    tools = [_reported(selector, start) for selector in toolset]
    return {
        "format": "lutum_py.inspect",
        "version": 1,
        "toolset": reference,
        "name": members_of(toolset).origin.__qualname__,
        "description": (toolset.__doc__ or "").strip(),
        "tools": tools,
        "groups": list(_reported_groups(toolset, start)),
        "totals": {
            "tools": len(tools),
            "on": sum(tool["on"] for tool in tools),
            "deferred": sum(tool["deferred"] for tool in tools),
            "estimated_tokens": _tokens(tools),
            "estimated_tokens_on": _tokens(tool for tool in tools if tool["on"]),
            "estimated_tokens_deferred": _tokens(tool for tool in tools if tool["deferred"]),
        },
        "estimate": _ESTIMATE,
    }


def _tokens(tools: Iterable[dict[str, Any]]) -> int:
    return sum(tool["estimated_tokens"] for tool in tools)


def _reported_groups(toolset: type[Toolset], start: int) -> Iterable[dict[str, Any]]:
    """Describe each nested toolset, the outer ones first."""
    for member in members_of(toolset).by_key.values():
        if not isinstance(member, AnySelector):
            yield {
                "path": ".".join(members_of(member).path[start:]),
                "name": members_of(member).origin.__qualname__,
                "description": (member.__doc__ or "").strip(),
                "on": any(not selector.is_off for selector in member),
                "deferred": any(selector.is_deferred for selector in member),
            }
            yield from _reported_groups(member, start)


def _reported(selector: AnySelector, start: int) -> dict[str, Any]:
    definition = selector.definition
    schema, output = definition.input_schema, definition.output_schema
    sent = {"name": definition.name, "description": definition.description, "input_schema": schema}
    stand_ins = {each: facts_of(each).wire_name(selector.name) for each in DIALECTS}
    cap = selector.options.result_cap
    kept = isinstance(cap, ResultCap) and {
        "max_bytes": cap.max_bytes,
        "store": cap.store is not None,
    }
    return {
        "name": selector.name,
        "sent_as": {each: out for each, out in stand_ins.items() if out != selector.name},
        "path": ".".join(selector.path[start:]),
        "on": not selector.is_off,
        "deferred": selector.is_deferred,
        "summary": definition.description.strip().partition("\n\n")[0].replace("\n", " "),
        "description": definition.description,
        "fields": list(_reported_fields(definition)),
        "takes": None if "properties" in schema else type_words(schema, schema),
        "input_types": named_types(schema),
        "output": None if output is None else type_words(output, output),
        "output_types": {} if output is None else named_types(output),
        "category": definition.category,
        "capabilities": definition.capabilities.to_dict(),
        "risk": risk_of(definition.capabilities).value,
        "needs_approval": _approval(selector),
        "rules": [rule.name for rule in selector.rules],
        "timeout": definition.timeout,
        "idempotent": definition.idempotent,
        "strict": definition.strict,
        "result_cap": kept or None,
        "digest": definition.digest,
        "estimated_tokens": -(-len(compact_json(sent)) // 4),  # rounded up
        "input_schema": schema,
        "output_schema": output,
    }


def _approval(selector: AnySelector) -> str:
    if not selector.approval:
        return "never"
    return "always" if True in selector.approval else "by_input"


def _reported_fields(definition: ToolDef) -> Iterable[dict[str, Any]]:
    schema = definition.input_schema
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        said = merged_part(field, schema)
        yield {
            "name": name,
            "type": type_words(field, schema),
            "bounds": bounds_of(field, schema),
            "required": name in required,
            **({"default": said["default"]} if "default" in said else {}),
            "description": said.get("description", ""),
        }


def view_of(report: dict[str, Any]) -> RenderableType:
    """Lay out a report: a block for each tool, nested toolsets indented."""
    totals = report["totals"]
    counts = f"{counted(totals['tools'], 'tool')}, {totals['on']} on"
    deferred = ""
    if totals["deferred"]:
        counts += f", {totals['deferred']} deferred"
        deferred = f"{totals['estimated_tokens_deferred']} for those that are deferred, "
    return Group(
        text(f"{report['name']} ({report['toolset']})", "bold"),
        *([text(_first_paragraph(report["description"]))] if report["description"] else []),
        *_members(report, ""),
        text(""),
        text(
            f"{counts}. About {totals['estimated_tokens_on']} tokens for the tools that are on, "
            f"{deferred}{totals['estimated_tokens']} for all."
        ),
        text(f"Tokens are estimated: {report['estimate']}.", "dim"),
    )


def _first_paragraph(description: str) -> str:
    return " ".join(description.partition("\n\n")[0].split())


def _members(report: dict[str, Any], group: str) -> Iterator[RenderableType]:
    """Yield the blocks of one toolset: its tools, then what it nests."""
    for tool in report["tools"]:
        if tool["path"].rpartition(".")[0] == group:
            yield text("")
            yield _tool(tool)
    for inner in report["groups"]:
        path = inner["path"]
        if path.rpartition(".")[0] == group:
            state = "" if inner["on"] else f", {_state(inner)}"
            yield text("")
            yield text(f"{path}: nested toolset {inner['name']}{state}", "bold")
            body = [text(_first_paragraph(inner["description"]))] if inner["description"] else []
            yield Padding(Group(*body, *_members(report, path)), (0, 0, 0, 2))


def _tool(tool: dict[str, Any]) -> RenderableType:
    heading = Text.assemble(
        text(tool["name"], "bold cyan" if tool["on"] else "bold"),
        text(f"  {_state(tool)}, about {tool['estimated_tokens']} tokens", "dim"),
    )
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column()
    rows.add_row(text("input", "dim"), _fields(tool))
    for label, value in _rows(tool):
        rows.add_row(text(label, "dim"), text(value))
    summary = [text(tool["summary"])] if tool["summary"] else []
    return Group(heading, Padding(Group(*summary, rows), (0, 0, 0, 2)))


def _state(entry: dict[str, Any]) -> str:
    if entry["on"]:
        return "on"
    return "deferred" if entry["deferred"] else "off"


def _fields(tool: dict[str, Any]) -> RenderableType:
    if not tool["fields"]:
        return text(tool["takes"] or "nothing")
    has_descriptions = any(field["description"] for field in tool["fields"])
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(max_width=30, overflow="fold")
    table.add_column(max_width=44 if has_descriptions else None, overflow="fold")
    if has_descriptions:
        table.add_column(overflow="fold")
    for field in tool["fields"]:
        kind = field["type"] + "".join(f", {bound}" for bound in field["bounds"])
        if "default" in field:
            kind += f", default {cut(compact_json(field['default']), 40)}"
        else:
            kind += ", required" if field["required"] else ", optional"
        cells = text(field["name"]), text(kind), text(field["description"], "dim")
        table.add_row(*cells[: len(table.columns)])
    return table


_AREAS: dict[str | None, str] = {"*": "everything", None: "nothing"}


def _rows(tool: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what there is of a tool beside its fields, as pairs of a label and words."""
    # A type that is only named is told after: `with  Place = {city: text}`.
    yield from (("  with", " = ".join(named)) for named in tool["input_types"].items())
    yield "output", tool["output"] or "not declared"
    yield from (("  with", " = ".join(named)) for named in tool["output_types"].items())
    if tool["sent_as"]:
        yield "sent as", f"{next(iter(tool['sent_as'].values()))}, to {', '.join(tool['sent_as'])}"
    if tool["path"].rpartition(".")[2] != tool["name"]:
        yield "member", tool["path"]
    capabilities = tool["capabilities"]
    for effect in capabilities["effects"]:
        target = f" (of `{effect['target']}`)" if effect["target"] else ""
        dry_run = "" if effect["dry_run"] == "not_supported" else f", dry run {effect['dry_run']}"
        touched = _AREAS.get(effect["area"], effect["area"])
        undone = f"{effect['kind']}{target}, accesses {touched}: {effect['reversibility']}"
        yield "effect", f"{undone}, confirmation {effect['confirmation']}{dry_run}"
    if capabilities["effects"]:
        yield "risk", tool["risk"]
    if tool["needs_approval"] != "never":
        asked = "a function of the input says which calls"
        yield "approval", "each call" if tool["needs_approval"] == "always" else asked
    if tool["rules"]:
        yield "rules", ", ".join(tool["rules"])
    flags = [name for name, value in capabilities.items() if value is True]
    if flags:
        yield "flags", ", ".join(flags)
    if tool["category"] is not None:
        yield "category", tool["category"]
    if tool["timeout"] is not None:
        yield "timeout", f"{tool['timeout']:g} s"
    if tool["result_cap"] is not None:
        kept = ", the rest in a store" if tool["result_cap"]["store"] else ""
        yield "results", f"the model reads {tool['result_cap']['max_bytes']:,} bytes at most{kept}"
    marks = [name for name in ("idempotent", "strict") if tool[name]]
    if marks:
        yield "also", ", ".join(marks)


def print_schemas(
    toolset: type[Toolset], dialect: str, strict: bool, everything: bool, as_json: bool
) -> None:
    """Print the tools, and what the dialect cannot say about them.

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
    hidden = [selector for selector in toolset if selector not in shown]
    for why, is_deferred in (("off", False), ("deferred", True)):
        names = ", ".join(each.name for each in hidden if each.is_deferred is is_deferred)
        if names:
            complain(text(f"Left out, because they are {why} (--all prints them): {names}"))
    if strict and facts_of(dialect).strictness is None:
        complain(text(f"{dialect} has no strict mode for a tool: --strict changes nothing."))
    if losses:
        complain(text(f"Not enforced by {dialect}; still checked when a call is decoded:"))
        for loss in losses:
            place = f"{loss['tool']}.{loss['path']}" if loss["path"] else loss["tool"]
            complain(text(f"  {place}: {loss['text']}"))
