"""Places in JSON data, as `files[].id`, and what a schema says may stand there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .._text.json import compact_json, is_object
from .schema_reader import branches, localized, types_in

Path = tuple[str, ...]
"""A place: names, `ITEMS` for each item, `KEYS` for each key."""

ITEMS: Final = "[]"
KEYS: Final = "{}"


# A policy that names `files[].id` for a tool without such a place would be silent for ever: it is
# told where it is written. A schema that leaves it open says yes, since nothing can be proved.
def may_stand(path: Path, schema: Any) -> bool:
    """Whether data of a schema may have something at a place; so too where it does not say."""
    root = localized(schema)
    schemas: list[Any] = [root]
    for step in path:
        opened = branches(root, schemas)
        kind, says = ("array", "items") if step == ITEMS else ("object", "properties")
        is_said = any(says in each for each in opened)
        types = [types_in(each) for each in opened if "type" in each]
        if types and not is_said and not any(kind in each for each in types):
            return False
        schemas = [inner for each in opened for inner in _below(each, step)]
        if not schemas and is_said and kind == "object":
            return False
    return True


def is_default(schema: Any, value: Any) -> bool:
    """Whether a value is written just as the default that its schema says."""
    is_said = is_object(schema) and "default" in schema
    return is_said and compact_json(schema["default"]) == compact_json(value)


def _below(schema: dict[str, Any], step: str) -> Iterator[Any]:
    named, other = schema.get("properties", {}), [schema.get("additionalProperties")]
    other += schema.get("patternProperties", {}).values()
    if step == ITEMS:
        other = [schema.get("items"), *schema.get("prefixItems", ())]
    elif step == KEYS:
        other += named.values()
    elif step in named:
        other = [named[step]]
    yield from (each for each in other if each is not None and each is not False)
