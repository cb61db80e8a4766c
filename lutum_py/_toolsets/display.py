"""Toolsets in notebooks: each tool with its arguments and what it is for.

There is no counterpart for rich, which shows every class by its `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._call.selector import AnySelector
from .._schema.definition import ToolDef
from .._schema.schema_reader import names_in
from .._text.html import Element, as_styles, figure, group, mark, named, note, paragraph, table
from .._text.json import is_object

_MOST = 200
_MOST_ARGUMENTS = 30


def toolset_html(name: str, selectors: Sequence[AnySelector]) -> str:
    """Show the tools of a toolset as a table.

    Args:
        name: The name of the class.
        selectors: Its tools, in the order of declaration.
    """
    deferred = sum(selector.is_deferred for selector in selectors)
    off = sum(selector.is_off for selector in selectors) - deferred
    count = f"{len(selectors)} tool{'' if len(selectors) == 1 else 's'}"
    left = f", {len(selectors) - _MOST} of them not shown" if len(selectors) > _MOST else ""
    states = "".join(f", {n} {said}" for n, said in ((off, "off"), (deferred, "deferred")) if n)
    about = f"toolset of {count}{states}{left}"
    rows = [_row(selector) for selector in selectors[:_MOST]]
    shown = [table(("tool", "arguments", "what it does"), rows)] * bool(rows)
    return as_styles(figure(name, about, *shown))


def _row(selector: AnySelector) -> tuple[Element, Element, Element]:
    definition = selector.definition
    path = ".".join(selector.path)
    name = named(selector.name)
    if path != selector.name:
        name = group(name, paragraph(path, 80, label="member"))
    if selector.is_off:
        name = group(name, mark("deferred" if selector.is_deferred else "off", "plain"))
    described = paragraph(definition.description, 300)
    return name, _arguments(definition), group(described, _remarks(definition))


def _arguments(definition: ToolDef) -> Element:
    schema = definition.input_schema
    properties: dict[str, object] = schema.get("properties") or {}
    required: Iterable[str] = schema.get("required") or ()
    names = [
        f"{name}{'' if name in required else '?'}{_type(about)}"
        for name, about in properties.items()
    ]
    of_forms = [name for name in names_in(schema) if name not in properties]
    names += of_forms
    shown = names[:_MOST_ARGUMENTS]
    if len(names) > _MOST_ARGUMENTS:
        shown.append(f"… {len(names) - _MOST_ARGUMENTS} more")
    listed = paragraph("\n".join(shown), 2000, code=True) if shown else note("none")
    return group(listed, note("in several forms")) if of_forms else listed


def _type(about: object) -> str:
    kind = about.get("type") if is_object(about) else None
    return f": {kind}" if isinstance(kind, str) else ""


def _remarks(definition: ToolDef) -> Element:
    remarks = [
        definition.title or "",
        f"timeout {definition.timeout:g} s" if definition.timeout is not None else "",
        "idempotent" if definition.idempotent else "",
        f"category {definition.category}" if definition.category else "",
    ]
    return note(", ".join(filter(None, remarks)))
