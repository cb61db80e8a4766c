"""Read values back from the JSON that pydantic wrote of them.

What pydantic writes, it does not always read: a field is written under one alias and read under
another, computed fields are written and refused, bytes are written in base64 and read as text, and
an enum of tuples is written in arrays that equal no member. The core schema is changed where the
two differ, so that one validator reads the names of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, cast

from pydantic import TypeAdapter
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    to_jsonable_python,
)
from pydantic_core.core_schema import no_info_before_validator_function

from .._text.json import is_array, is_object, json_key
from .core_schemas import NO_SCHEMA, built, but, classes_in, is_schema, schema_parts

_WITH_FIELDS: Final = ("dataclass-args", "model-fields", "typed-dict")
# How a config has things written, and how it then has to have them read.
_READ_AS: Final = {"ser_json_bytes": "val_json_bytes", "ser_json_temporal": "val_temporal_unit"}
_READABLE: Final = frozenset({"base64", "hex", "seconds", "milliseconds"})


def reader_of(adapter: TypeAdapter[Any]) -> Any:
    """Return a validator that also takes the JSON that an adapter writes."""
    schema: Any = adapter.core_schema
    changed = _changed(schema, _readable)
    if changed is schema:
        return adapter.validator
    return built(SchemaValidator, changed, classes_in(schema))


def wire_serializer(schema: Any) -> SchemaSerializer:
    """Return what writes all of an input, under the names that its JSON schema has."""
    made: SchemaSerializer = built(
        SchemaSerializer, _changed(schema, _named_as_read), classes_in(schema)
    )
    return made


def _named_as_read(schema: Any) -> Any:
    if schema["type"] not in _WITH_FIELDS:
        return schema
    fields: Any = schema["fields"]
    made = {name: _as_read(name, field) for name, field in _fields_of(fields)}
    return {**schema, "fields": made if is_object(fields) else [*made.values()]}


def _as_read(name: str, field: Any) -> Any:
    kept = {key: part for key, part in field.items() if not key.startswith("serialization_")}
    told = [path[0] for path in _paths_of(name, field) if len(path) == 1]
    return {**kept, "serialization_alias": told[0] if told else name}


def told_names(schema: Any, mode: str) -> dict[str, str]:
    """Return the names that a JSON schema has for the fields of a class."""
    part = next((each for each in schema_parts(schema) if each["type"] in _WITH_FIELDS), None)
    named = [] if part is None else _fields_of(part["fields"])
    as_told = {
        name: _as_read(name, field) if mode == "validation" else field for name, field in named
    }
    return {name: field.get("serialization_alias", name) for name, field in as_told.items()}


def _fields_of(fields: Any) -> list[tuple[str, Any]]:
    return [*fields.items()] if is_object(fields) else [(each["name"], each) for each in fields]


def _paths_of(name: str, field: Any) -> list[Any]:
    alias = field.get("validation_alias", name)
    paths: Any = [[alias]] if isinstance(alias, str) else alias
    return [paths] if isinstance(paths[0], str) else paths


def accepts(schema: Any, definitions: Any) -> SchemaValidator:
    """Return a validator of a part of an input, as it stands in a core schema."""
    whole = {"type": "definitions", "schema": schema, "definitions": [*definitions]}
    return SchemaValidator(_changed(whole, by_json_value))


def _changed(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Change each part of a core schema, from the inside out; give it back if nothing changes."""
    if isinstance(schema, list | tuple):
        old = cast("Sequence[Any]", schema)
        new = [_changed(part, change) for part in old]
        same = all(one is other for one, other in zip(new, old, strict=True))
        return old if same else (tuple(new) if isinstance(old, tuple) else new)
    if not is_object(schema):
        return schema
    inner = schema.keys() - NO_SCHEMA if is_schema(schema) else schema.keys()
    made = but(schema, {key: _changed(schema[key], change) for key in inner})
    return change(made) if is_schema(schema) else made


def _readable(schema: Any) -> Any:
    made: Any = schema
    kind: str = schema["type"]
    config: Any = schema.get("config") or {}
    if kind == "json":
        return made.get("schema", {"type": "any"})
    for key, read in _READ_AS.items():
        if config.get(key) in _READABLE and config.get(read) != config[key]:
            config = {**config, read: config[key]}
            made = {**made, "config": config}
    if kind == "dataclass-field" and made.get("init") is False:
        made = {key: part for key, part in made.items() if key != "init"}
    if kind in _WITH_FIELDS:
        made = _with_names(made)
    return by_json_value(made)


def _with_names(schema: Any) -> Any:
    """Let fields be read under the names that they are written under, and no computed ones."""
    fields: Any = schema["fields"]
    named = _fields_of(fields)
    written = {name: field.get("serialization_alias", name) for name, field in named}
    # Where two fields are written under each other's names, each is read by its own alone.
    taken = {each: name for name, each in written.items()}
    changed: dict[str, Any] = {}
    for name, field in named:
        others = [*_paths_of(name, field), [name]]
        kept = [path for path in others if len(path) > 1 or taken.get(path[0], name) == name]
        choices = [[written[name]], *kept]
        is_told = all(path == [name] for path in choices)
        changed[name] = field if is_told else {**field, "validation_alias": choices}
    new: Any = changed if is_object(fields) else [*changed.values()]
    computed = {
        each.get("alias", each["property_name"]) for each in schema.get("computed_fields", ())
    }
    made = {**schema, "fields": new} if any(changed[n] is not f for n, f in named) else schema
    if not computed:
        return made
    return _before(lambda value: _without(value, computed), made)


def _without(value: Any, names: Iterable[str]) -> Any:
    return {key: value[key] for key in value if key not in names} if is_object(value) else value


def by_json_value(schema: Any) -> Any:
    """Let a literal, an enum or a tag be named by the JSON that the JSON schema has for it."""
    kind = schema["type"]
    if kind == "tagged-union":
        choices: Mapping[Any, Any] = schema["choices"]
        told = {_in_json(tag): choice for tag, choice in choices.items() if isinstance(tag, Enum)}
        return {**schema, "choices": {**told, **choices}} if told.keys() - choices else schema
    if kind not in ("enum", "literal"):
        return schema
    values = schema["members" if kind == "enum" else "expected"]
    written = [(each, _in_json(each)) for each in values]
    # An enum is found by the values of its members, and what a literal lists by itself.
    raw = {id(each): each.value if kind == "enum" else each for each in values}
    own = [json_key(told) for each, told in written if told == raw[id(each)]]
    known = {json_key(told): each for each, told in written if json_key(told) not in own}
    if not known:
        return schema

    def named(value: Any) -> Any:
        is_json = value is None or isinstance(value, str | int | float) or is_array(value)
        is_plain = (is_json or is_object(value)) and not isinstance(value, Enum)
        return known.get(json_key(value), value) if is_plain else value

    return _before(named, schema)


def _before(function: Callable[[Any], Any], schema: Any) -> Any:
    """Put a function before a schema; what refers to the schema refers to both."""
    inner: Any = {key: part for key, part in schema.items() if key != "ref"}
    return no_info_before_validator_function(function, inner, ref=schema.get("ref"))


def _in_json(value: Any) -> Any:
    """Return what pydantic writes a value as in a JSON schema; itself where that fails."""
    try:
        return to_jsonable_python(value.value if isinstance(value, Enum) else value)
    except (PydanticSerializationError, ValueError):
        return value
