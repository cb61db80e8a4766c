"""Coerce arguments that came in a form which leaves no doubt about what is meant.

Only after validation failed, and only at the places where it failed: an object or array that came
as a string of JSON, and a `null` for a field that may be left out but has no null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from pydantic import ValidationError

from .._text.escaping import escape_unprintable
from .._text.json import cut, is_array, is_object, read_json
from .schema_reader import JsonSchema, below, branches, localized, types_in

_WANTS_CONTAINER = frozenset(
    {
        "dataclass_type",
        "dict_type",
        "frozen_set_type",
        "iterable_type",
        "list_type",
        "mapping_type",
        "model_attributes_type",
        "model_type",
        "set_type",
        "tuple_type",
    }
)


def coerce_places(data: Any, error: ValidationError, schema: Callable[[], JsonSchema]) -> list[str]:
    """Coerce what can be coerced in place; return the paths of those places."""
    coerced: list[str] = []
    for entry in error.errors(include_url=False, include_context=False):
        steps, parent, value = _walk(data, entry["loc"])
        if not steps:
            continue
        # `{"tags": "[\"a\"]"}` failed because a list was wanted and a text came: the text is the
        # list, and there is no other way to read it. A number in a text is left alone: "12" may be
        # a name.
        if isinstance(value, str) and entry["type"] in _WANTS_CONTAINER:
            container = container_in(value)
            if container is None:
                continue
            parent[steps[-1]] = container
        elif value is None and _may_be_left_out(schema(), steps):
            del parent[steps[-1]]
        else:
            continue
        coerced.append(path_of(steps))
    return coerced


def container_in(text: str) -> Any:
    """Read an object or array out of a string; None if it holds neither."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if is_object(value) or is_array(value) else None


def _walk(data: Any, loc: Sequence[int | str]) -> tuple[list[int | str], Any, Any]:
    """Follow a location as far as it leads in the data: the rest names branches of a union."""
    steps: list[int | str] = []
    parent: Any = None
    for step in loc:
        if is_object(data) or is_array(data):
            known: Any = data if is_object(data) else range(len(data))
            # pydantic writes ("filters", 0, "Range", "low") where `Range` is a member of a union:
            # what is not a key of the data is passed over.
            if step in known:
                parent, data = data, data[cast("Any", step)]
                steps.append(step)
        else:
            break
    return steps, parent, data


def _may_be_left_out(root: JsonSchema, steps: Sequence[int | str]) -> bool:
    """Whether the place is a field that is not required and has no null.

    An entry of a mapping or of an array is not a field.
    """
    root = localized(root)
    schemas = branches(root, [root])
    for step in steps[:-1]:
        schemas = branches(root, [part for schema in schemas for part in below(schema, step)])
    last = steps[-1]
    optional = [
        schema["properties"][last]
        for schema in schemas
        if last in schema.get("properties", ()) and last not in schema.get("required", ())
    ]
    return bool(optional) and not any(
        "null" in types_in(branch) for branch in branches(root, optional)
    )


def path_of(loc: Sequence[int | str]) -> str:
    """Write a place as in `filters[0].name`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = escape_unprintable(cut(step, 80))
            text += f".{name}" if text else name
    return cut(text, 200)
