"""What is shown of a toolset: each tool with its arguments and what it is for.

Rich alone shows every class by its `repr`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .._call.selector import AnySelector
from .._schema.definition import ToolDef
from .._schema.schema_reader import names_in
from .._text.display import Entry, Listing, Part
from .._text.json import is_object


def toolset_listing(name: str, selectors: Sequence[AnySelector]) -> Listing:
    """Show the tools of a toolset.

    Args:
        name: The name of the class.
        selectors: Its tools, in the order of declaration.
    """
    entries = [_entry(selector) for selector in selectors]
    count = f"toolset of {len(entries)} tool{'' if len(entries) == 1 else 's'}"
    states = Counter(entry.state for entry in entries if entry.state)
    return Listing(name, ", ".join([count, *(f"{n} {of}" for of, n in states.items())]), entries)


def _entry(selector: AnySelector) -> Entry:
    definition, path = selector.definition, ".".join(selector.path)
    state = ("deferred" if selector.is_deferred else "off") if selector.is_off else ""
    member = f"member {path}" if path != selector.name else None
    about = "  ".join(filter(None, (definition.title, member)))
    parts = Part("arguments", _arguments(definition)), Part("", definition.description)
    return Entry("", selector.name, state, "", about, parts)


def _arguments(definition: ToolDef) -> str:
    schema = definition.input_schema
    properties: dict[str, object] = schema.get("properties") or {}
    required: Iterable[str] = schema.get("required") or ()
    names = [
        f"{name}{'' if name in required else '?'}{_type(about)}"
        for name, about in properties.items()
    ]
    of_forms = [name for name in names_in(schema) if name not in properties]
    return (", ".join([*names, *of_forms]) or "none") + " (in several forms)" * bool(of_forms)


def _type(about: object) -> str:
    kind = about.get("type") if is_object(about) else None
    return f": {kind}" if isinstance(kind, str) else ""
