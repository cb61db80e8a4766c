"""Gather what there is to know of the tools of a toolset, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from .._call.selector import AnySelector
from .._compat.type_words import bounds_of, named_types, type_words
from .._declare.toolset_meta import ToolsetMeta
from .._schema.capabilities import risk_of
from .._schema.definition import ToolDef
from .._schema.schema_reader import merged_part
from .._text.json import compact_json
from .._toolset import Toolset
from .._transcript.result_cap import ResultCap
from ..dialects import DIALECTS
from ..dialects._facts import facts_of

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
    start = len(toolset._path)
    tools = [_tool(selector, start) for selector in toolset]
    return {
        "format": "lutum_py.inspect",
        "version": 1,
        "toolset": reference,
        "name": toolset._origin.__qualname__,
        "description": (toolset.__doc__ or "").strip(),
        "tools": tools,
        "groups": list(_groups(toolset, start)),
        "totals": {
            "tools": len(tools),
            "on": sum(tool["on"] for tool in tools),
            "deferred": sum(tool["deferred"] for tool in tools),
            "estimated_tokens": sum(tool["estimated_tokens"] for tool in tools),
            "estimated_tokens_on": sum(tool["estimated_tokens"] for tool in tools if tool["on"]),
            "estimated_tokens_deferred": sum(
                tool["estimated_tokens"] for tool in tools if tool["deferred"]
            ),
        },
        "estimate": _ESTIMATE,
    }


def _groups(toolset: ToolsetMeta, start: int) -> Iterable[dict[str, Any]]:
    """Describe each nested toolset, the outer ones first."""
    for member in toolset._members.values():
        if not isinstance(member, AnySelector):
            yield {
                "path": ".".join(member._path[start:]),
                "name": member._origin.__qualname__,
                "description": (member.__doc__ or "").strip(),
                "on": any(not selector.is_off for selector in member),
                "deferred": any(selector.is_deferred for selector in member),
            }
            yield from _groups(member, start)


def _tool(selector: AnySelector, start: int) -> dict[str, Any]:
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
        "fields": list(_fields(definition)),
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


def _fields(definition: ToolDef) -> Iterable[dict[str, Any]]:
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
