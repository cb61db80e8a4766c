"""`lutum inspect`: what there is to know of the tools of a toolset, as data and for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .. import ToolAvailability, ToolDef, Toolset
from .._text.json import compact_json, cut, is_array, is_object
from ..capabilities import risk_of
from ..dialects import DIALECTS
from ..errors import ToolDefinitionError
from ..schemas import UNIONS, merged_part
from ..tools import ResultCap
from ..typing import AnySelector, JsonSchema
from ._conversation_file import dialect_module
from ._loading import is_toolset
from ._screen import complain, counted, text, write_json

_ESTIMATE: Final = (
    "the characters of name, description and input schema as compact JSON, divided by 4"
)
"""How tokens are estimated: real counts differ from model to model."""
_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " entries"),
)
_BOUNDS: Final = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "matching {}",
    "format": "format {}",
}


def report_on(toolset: type[Toolset], reference: str) -> dict[str, Any]:
    """Describe a toolset and each of its tools.

    Args:
        toolset: The toolset.
        reference: How the command line named it.

    Returns:
        Plain JSON data; its keys are documented in the page on the command line.
    """
    groups = dict(_groups(toolset, ""))
    tools = [_reported(selector, groups) for selector in toolset]
    return {
        "format": "lutum_py.inspect",
        "version": 1,
        "toolset": reference,
        "name": toolset.__qualname__,
        "description": (toolset.__doc__ or "").strip(),
        "tools": tools,
        "groups": [_reported_group(path, group) for path, group in groups.items()],
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


def _groups(toolset: type[Toolset], around: str) -> Iterator[tuple[str, type[Toolset]]]:
    """Yield each nested toolset with its path, the outer ones first."""
    # Paths begin at the toolset that was named: of `app:Desk.mail`, the tool `mail.send` is `send`.
    for name, member in vars(toolset).items():
        if not name.startswith("_") and is_toolset(member):
            yield f"{around}{name}", member
            yield from _groups(member, f"{around}{name}.")


def _reported_group(path: str, group: type[Toolset]) -> dict[str, Any]:
    # A view inherits from what it is a view of, as `App.desk.mail` from `Desk.mail` and that from
    # `Mail`, the class that was declared.
    declared = group.__mro__[1 + path.count(".")]
    return {
        "path": path,
        "name": declared.__qualname__,
        "description": (group.__doc__ or "").strip(),
        "on": any(not selector.is_off for selector in group),
        "deferred": any(selector.is_deferred for selector in group),
    }


def _reported(selector: AnySelector, groups: Mapping[str, type[Toolset]]) -> dict[str, Any]:
    around = max((path for path, group in groups.items() if selector in group), key=len, default="")
    definition = selector.definition
    schema, output = definition.input_schema, definition.output_schema
    sent = {"name": definition.name, "description": definition.description, "input_schema": schema}
    stand_ins = {each: dialect_module(each).wire_name(selector.name) for each in DIALECTS}
    cap = selector.options.result_cap
    kept = isinstance(cap, ResultCap) and {
        "max_bytes": cap.max_bytes,
        "store": cap.store is not None,
    }
    return {
        "name": selector.name,
        "sent_as": {each: out for each, out in stand_ins.items() if out != selector.name},
        "path": f"{around}.{selector.path[-1]}".removeprefix("."),
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
    if strict and not module.DIALECT.is_strict:
        complain(text(f"{dialect} has no strict mode for a tool: --strict changes nothing."))
    if losses:
        complain(text(f"Not enforced by {dialect}; still checked when a call is decoded:"))
        for loss in losses:
            place = f"{loss['tool']}.{loss['path']}" if loss["path"] else loss["tool"]
            complain(text(f"  {place}: {loss['text']}"))


def type_words(schema: Any, root: Any, depth: int = 3) -> str:
    """Describe the values of a schema.

    Args:
        schema: The schema, or any schema within `root`.
        root: The document in which its references are looked up.
        depth: Levels of nesting that are shown.

    Returns:
        One line, such as `one of "asc", "desc"`.
    """
    named = _name_of(schema)
    return _words(merged_part(schema, root), root, named, depth)


def named_types(root: Any) -> dict[str, str]:
    """Describe what `type_words` only names: the objects that a document defines, by name."""
    return {
        name: type_words(part, root)
        for key in ("$defs", "definitions")
        for name, part in root.get(key, {}).items()
        if is_object(part) and part.get("properties")
    }


def _name_of(schema: Any) -> str | None:
    reference = schema.get("$ref") if is_object(schema) else None
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def _words(part: JsonSchema, root: Any, named: str | None, depth: int) -> str:
    if depth < 0:
        return "…"
    if is_array(part.get("enum")):
        return "one of " + ", ".join(cut(compact_json(v), 40) for v in part["enum"])
    if "const" in part:
        return compact_json(part["const"])
    for key in UNIONS:
        if is_array(part.get(key)):
            words = [type_words(branch, root, depth) for branch in part[key]]
            return " or ".join(dict.fromkeys(words)) or "nothing"
    kind = part.get("type")
    if is_array(kind):
        return " or ".join(_words({**part, "type": each}, root, named, depth) for each in kind)
    if kind == "array" or (kind is None and {"items", "prefixItems"} & part.keys()):
        return _array_words(part, root, depth)
    if kind == "object" or (kind is None and "properties" in part):
        return _object_words(part, root, named, depth)
    return str(kind) if isinstance(kind, str) else "anything"


def _array_words(part: JsonSchema, root: Any, depth: int) -> str:
    if is_array(part.get("prefixItems")):
        inner = ", ".join(type_words(each, root, depth - 1) for each in part["prefixItems"])
        return f"tuple ({inner})"
    if "items" not in part:
        return "list"
    inner = type_words(part["items"], root, depth - 1)
    return f"list of ({inner})" if " or " in inner else f"list of {inner}"


def _object_words(part: JsonSchema, root: Any, named: str | None, depth: int) -> str:
    properties = part.get("properties")
    if is_object(properties) and properties:
        if named is not None:
            return named
        if depth <= 0:
            return "object"
        needed = part.get("required", ())
        fields = (
            f"{name}{'' if name in needed else '?'}: {type_words(each, root, depth - 1)}"
            for name, each in properties.items()
        )
        return f"{{{', '.join(fields)}}}"
    rest = part.get("additionalProperties")
    if is_object(rest) and rest:
        return f"map of {type_words(rest, root, depth - 1)}"
    return "object"


def bounds_of(schema: Any, root: Any) -> list[str]:
    """Describe the bounds that a schema sets besides its type, such as `1 to 5 items`."""
    said = merged_part(schema, root)
    found: list[str] = []
    for least, most, what in _RANGES:
        low, high = said.get(least), said.get(most)
        if low is not None and high is not None:
            found.append(f"{low} to {high}{what}")
        elif low is not None:
            found.append(f"at least {low}{what}")
        elif high is not None:
            found.append(f"at most {high}{what}")
    found += [words.format(said[key]) for key, words in _BOUNDS.items() if key in said]
    return found
