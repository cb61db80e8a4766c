"""Places in JSON data, as `files[].id`: what is there, and what may by a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .._schema.schema_reader import JsonSchema, branches, localized, meant_by_name, types_in
from .._text.json import compact_json, is_array, is_object

Path = tuple[str, ...]
"""A place: names, `ITEMS` for each item, `KEYS` for each key."""

ITEMS: Final = "[]"
KEYS: Final = "{}"

Keys = tuple[str | int, ...]
"""Where a single value stands: names and numbers."""
_STEP: Final = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")


def path_of(text: str) -> Path:
    """Read a path; `written` says how one is written, for the error about a text that is not."""
    return tuple(_STEP.findall(text))


def written(keys: Keys) -> str:
    """Write a path or place, as in `files[0].id`."""
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys]
    return "".join(steps).replace(".[]", "[]").replace(".{}", "{}").removeprefix(".")


def values_at(
    data: Any, path: Path, keys: Keys = (), owners: tuple[Any, ...] = (), *, whole: bool = False
) -> Iterator[tuple[Keys, Any, tuple[Any, ...]]]:
    """Yield each value at a path, or below it where that is not a single value.

    Args:
        data: The data.
        path: The path.
        keys: Where the data stands itself.
        owners: In which objects.
        whole: Whether to give what is in the way of the path as well: a text in place of a
            list of texts is not to be overlooked.

    Returns:
        Where each stands, the value, and the objects that it is in, the outermost first. A key
        stands where its value does.
    """
    step, rest = (path[0], path[1:]) if path else (None, ())
    # A list fits `[]` alone, an object any other step. What does not fit is passed over, or with
    # `whole` given as it stands: a model that sends a text for a list must not get by so.
    fits = step == ITEMS if is_array(data) else is_object(data) and step != ITEMS
    if whole and not fits and data is not None:
        step, rest = None, ()
    if is_object(data):
        for key in data:
            if step == KEYS and not rest:
                yield (*keys, key), key, (*owners, data)
            elif step in (None, key, KEYS):
                yield from values_at(data[key], rest, (*keys, key), (*owners, data), whole=whole)
    elif is_array(data):
        for at, value in enumerate(data if step in (None, ITEMS) else ()):
            yield from values_at(value, rest, (*keys, at), owners, whole=whole)
    elif step is None:
        yield keys, data, owners


def text_of(value: Any) -> str:
    """Write a single value as a text, as the words of a user would have it."""
    return value if isinstance(value, str) else compact_json(value)


def texts_in(data: Any) -> Iterator[str]:
    """Yield all that can be read in JSON data: keys and values."""
    if is_object(data):
        yield from data
        data = [*data.values()]
    if is_array(data):
        for value in data:
            yield from texts_in(value)
    else:
        yield text_of(data)


# A policy that names `files[].id` for a tool without such a place would be silent forever: it is
# told where it is written. A schema that leaves it open says yes, since nothing can be proved. What
# a model knows as `recipient` may stand in data as `payee`, and a policy may have either name.
def paths_in(path: Path, schema: Any, *, by_fields: bool = False) -> list[Path]:
    """Return the paths in data that a path of any names of parameters may mean.

    Args:
        path: The path.
        schema: The schema of the data.
        by_fields: Whether the data has the names of fields, not those of the schema.

    Returns:
        The paths, by the keys of the data; none if by the schema nothing can be there. A schema
        that leaves it open has the path as it is.
    """
    root = localized(schema)
    found: list[tuple[Path, list[Any]]] = [((), [root])]
    for step in path:
        found = [
            ((*way, key), inner)
            for way, schemas in found
            for key, inner in _below(branches(root, schemas), step, by_fields).items()
        ]
    return [way for way, _ in found]


def is_default(schema: Any, value: Any) -> bool:
    """Whether a value is the default that its schema says."""
    return is_object(schema) and "default" in schema and _is_same(schema["default"], value)


def _is_same(one: Any, other: Any) -> bool:
    # By value, since the default of `share: float = 0` is 0, and what a model writes there is 0.0.
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    # In Python 1 == True, and in JSON they are two values.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _below(opened: list[JsonSchema], step: str, by_fields: bool) -> dict[str, list[Any]]:
    """Return the keys that a step may mean, each with the schemas of what is there."""
    kind, says = ("array", "items") if step == ITEMS else ("object", "properties")
    is_said = any(says in each for each in opened)
    types = [types_in(each) for each in opened if "type" in each]
    if types and not is_said and not any(kind in each for each in types):
        return {}
    found: dict[str, list[Any]] = {}
    for schema in opened:
        named = () if step in (ITEMS, KEYS) else tuple(meant_by_name(schema, step))
        for field, told, inner in named:
            found.setdefault(field if by_fields else told, []).append(inner)
        others = [] if named else [each for each in _others(schema, step) if each is not False]
        if others:
            found.setdefault(step, []).extend(others)
    return found if found or (is_said and kind == "object") else {step: []}


def _others(schema: JsonSchema, step: str) -> Iterator[Any]:
    if step == ITEMS:
        found = [schema.get("items"), *schema.get("prefixItems", ())]
    else:
        found = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        found += schema.get("properties", {}).values() if step == KEYS else ()
    yield from (each for each in found if each is not None)
