"""Walk core schemas of pydantic, and build validators and serializers of changed ones."""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar, cast

from pydantic import BaseModel, TypeAdapter
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    to_json,
    to_jsonable_python,
)
from pydantic_core.core_schema import no_info_before_validator_function

from .._text.json import LEAVES, canonical_json, is_array, is_object, json_key

Core: TypeAlias = Mapping[str, Any]
"""A core schema of pydantic, or a part of one."""

# Of each of these pydantic says in the schema which class it is.
OBJECTS: Final = frozenset({"dataclass", "model", "typed-dict"})
NO_SCHEMA: Final = frozenset(
    {"cls", "config", "default", "expected", "members", "metadata", "serialization", "type"}
)


def is_schema(part: dict[str, object]) -> bool:
    """Whether this is a schema: what holds fields or choices has words of their author as keys."""
    return isinstance(part.get("type"), str)


def but(schema: Core, changes: Core) -> Core:
    """Return the schema, or a copy where some part of it is another one."""
    is_same = all(schema.get(key) is part for key, part in changes.items())
    return schema if is_same else {**schema, **changes}


_BUILDING: Final = RLock()
Built = TypeVar("Built")


def built(make: Callable[..., Built], schema: Core, classes: set[type[Any]]) -> Built:
    """Build a validator or serializer from the schema alone, not of what its classes have at hand.

    pydantic takes what a class has finished for itself, whatever the schema at hand says about it,
    unless it is told not to; releases before 2.13 cannot be told. There the classes look unfinished
    meanwhile, to one thread after the other: what is built of them in others is built again.
    """
    try:
        built = make(schema, None, _use_prebuilt=False)
    except TypeError:
        with _BUILDING:
            finished = [cls for cls in classes if cls.__dict__.get("__pydantic_complete__")]
            for cls in finished:
                cls.__pydantic_complete__ = False
            try:
                built = make(schema)
            finally:
                for cls in finished:
                    cls.__pydantic_complete__ = True
    return built


def schema_parts(schema: object) -> Iterator[dict[str, Any]]:
    """Yield every schema inside of a core schema, and itself."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if is_object(part):
            if is_schema(part):
                yield part
                waiting += [part[key] for key in part.keys() - NO_SCHEMA]
            else:
                waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part


def classes_in(schema: object) -> set[type[Any]]:
    """Return the classes of the objects in a core schema."""
    return {part.get("cls", dict) for part in schema_parts(schema) if part["type"] in OBJECTS}


_LEAVES: Final[Mapping[str, frozenset[str]]] = {
    "bool": frozenset({"bool"}),
    "date": frozenset({"string"}),
    "datetime": frozenset({"string"}),
    "decimal": frozenset({"string"}),
    "float": frozenset({"number"}),
    "int": frozenset({"number"}),
    "none": frozenset({"null"}),
    "str": frozenset({"string"}),
    "time": frozenset({"string"}),
    "timedelta": frozenset({"string"}),
    "uuid": frozenset({"string"}),
}
"""The kinds of JSON in which values of each type are written."""

_ANY: Final = frozenset({"array", "bool", "null", "number", "object", "string"})
_OBJECT: Final = frozenset({"object"})
_ARRAY: Final = frozenset({"array"})
_KEYS: Final = frozenset({"date", "enum", "int", "literal", "str", "uuid"})
_PLAIN: Final = frozenset({bool, int, str, type(None)})

# Each makes of a text what it says only once, or writes it in a way of its own.
_CHANGING: Final = (
    "coerce_numbers_to_str",
    "custom_init",
    "missing",
    "now_op",
    "post_init",
    "root_model",
    "serialization",
    "serialization_exclude",
    "serialization_exclude_if",
    "strip_whitespace",
    "to_lower",
    "to_upper",
)
_CHANGING_CONFIG: Final = ("ser_json", "str_", "val_json", "coerce_")


_kind_of: Callable[[object], Any] = type


class _NotFaithful(Exception):
    """Stops the search at the first part that is not faithful."""


def is_faithful(core_schema: Core) -> bool:
    """Whether what is written of each value that was read from JSON is read as that value again."""
    definitions: dict[str, Core] = {}
    if core_schema["type"] == "definitions":
        definitions = {each["ref"]: each for each in core_schema["definitions"]}
    try:
        _Kinds(definitions).of(core_schema)
    except _NotFaithful:
        return False
    return True


class _Kinds:
    """Find out in which kinds of JSON the values of a schema are written.

    Raises:
        _NotFaithful: It cannot be told, or a value may not be read again as it was.
    """

    def __init__(self, definitions: Mapping[str, Core]) -> None:
        self._named = definitions
        self._known: dict[str, frozenset[str]] = {}

    def of(self, schema: Core) -> frozenset[str]:
        kind: str = schema["type"]
        _refuse(any(schema.get(key) for key in _CHANGING))
        config: Core = schema.get("config") or {}
        _refuse(any(key.startswith(_CHANGING_CONFIG) for key in config))
        _refuse("allow" in (schema.get("extra_behavior"), config.get("extra_fields_behavior")))
        leaf = _LEAVES.get(kind)
        if leaf is not None:
            _refuse(kind == "decimal" and bool(schema.get("allow_inf_nan")))
            return leaf
        name = "_" + kind.replace("-", "_")
        find: Callable[[Core], frozenset[str]] | None = getattr(self, name, None)
        if find is None:
            raise _NotFaithful
        return find(schema)

    def _any(self, _: object) -> frozenset[str]:
        return _ANY

    def _nullable(self, schema: Core) -> frozenset[str]:
        inner = self.of(schema["schema"])
        _refuse("null" in inner and inner is not _ANY)
        return inner | {"null"}

    def _default(self, schema: Core) -> frozenset[str]:
        inner = schema["schema"]
        kinds = self.of(inner)
        if "default" in schema:
            _refuse(not self._fits(schema["default"], inner))
        else:
            _refuse(schema.get("default_factory") not in (dict, list))
        return kinds

    def _fits(self, default: Any, schema: Core) -> bool:
        """Whether a default, which pydantic does not check, is read again as it is."""
        while schema["type"] == "nullable":
            if default is None:
                return True
            schema = schema["schema"]
        kind = _kind_of(default)
        if kind in (list, dict):
            return not default and schema["type"] == kind.__name__ and len(schema) <= 3
        if kind is tuple:
            return not default and bool(schema.get("variadic_item_index") == 0)
        if schema["type"] == "enum":
            return default in schema["members"] and kind is schema["cls"]
        if kind not in (*_PLAIN, float):
            return False
        if schema["type"] not in ("any", "bool", "float", "int", "literal", "str"):
            return False
        made: Any = schema
        try:
            again = SchemaValidator(made).validate_json(to_json(default))
        except ValueError:
            return False
        return type(again) is kind and repr(again) == repr(default)

    def _list(self, schema: Core) -> frozenset[str]:
        if "items_schema" in schema:
            self.of(schema["items_schema"])
        return _ARRAY

    def _tuple(self, schema: Core) -> frozenset[str]:
        for each in schema["items_schema"]:
            self.of(each)
        return _ARRAY

    def _set(self, schema: Core) -> frozenset[str]:
        # In an order of their own, so that they are sorted by what is written.
        _refuse(schema.get("items_schema", {"type": "any"})["type"] not in _KEYS)
        return self._list(schema)

    _frozenset = _set

    def _dict(self, schema: Core) -> frozenset[str]:
        _refuse(schema.get("keys_schema", {"type": "any"})["type"] not in (*_KEYS, "any"))
        for key in ("keys_schema", "values_schema"):
            if key in schema:
                self.of(schema[key])
        return _OBJECT

    def _enum(self, schema: Core) -> frozenset[str]:
        return _kinds_of([member.value for member in schema["members"]])

    def _literal(self, schema: Core) -> frozenset[str]:
        return _kinds_of(schema["expected"])

    def _union(self, schema: Core) -> frozenset[str]:
        kinds: frozenset[str] = frozenset()
        for each in schema["choices"]:
            own = self.of(each if is_object(each) else each[0])
            _refuse(bool(kinds & own))
            kinds |= own
        return kinds

    def _tagged_union(self, schema: Core) -> frozenset[str]:
        _refuse(not isinstance(schema["discriminator"], str))
        for each in schema["choices"].values():
            self.of(each)
        return _OBJECT

    def _model(self, schema: Core) -> frozenset[str]:
        return self.of(schema["schema"])

    _dataclass = _model

    def _fields(self, schema: Core) -> frozenset[str]:
        fields = schema["fields"]
        for each in fields.values() if is_object(fields) else fields:
            name = each.get("validation_alias")
            _refuse(name != each.get("serialization_alias") or not isinstance(name, str | None))
            _refuse(any(each.get(key) for key in (*_CHANGING, "init_only")))
            _refuse(each.get("init") is False)
            self.of(each["schema"])
        return _OBJECT

    _model_fields = _typed_dict = _dataclass_args = _fields

    def _definitions(self, schema: Core) -> frozenset[str]:
        return self.of(schema["schema"])

    def _definition_ref(self, schema: Core) -> frozenset[str]:
        name: str = schema["schema_ref"]
        if name not in self._known:
            # Only an object or array can hold itself, so that it is known what it is written as.
            self._known[name] = _OBJECT | _ARRAY
            self._known[name] = self.of(self._named[name])
        return self._known[name]


def _kinds_of(values: list[Any]) -> frozenset[str]:
    _refuse(any(type(each) not in _PLAIN for each in values))
    _refuse(len(set(values)) != len(values))  # 1 and True
    names = {bool: "bool", int: "number", str: "string", type(None): "null"}
    return frozenset(names[type(each)] for each in values)


def _refuse(wrong: object) -> None:
    if wrong:
        raise _NotFaithful


_WITH_FIELDS: Final = ("dataclass-args", "model-fields", "typed-dict")
# How a config has things written, and how it then has to have them read.
_READ_AS: Final = {"ser_json_bytes": "val_json_bytes", "ser_json_temporal": "val_temporal_unit"}
_READABLE: Final = frozenset({"base64", "hex", "seconds", "milliseconds"})


def reader_of(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """Return a validator that also takes the JSON that an adapter writes."""
    schema: object = adapter.core_schema
    changed = _changed(schema, _readable)
    if changed is schema:
        return cast("SchemaValidator", adapter.validator)
    return built(SchemaValidator, changed, classes_in(schema))


def wire_serializer(schema: object) -> SchemaSerializer:
    """Return what writes all of an input, under the names that its JSON schema has."""
    return built(SchemaSerializer, _changed(schema, _named_as_read), classes_in(schema))


def _named_as_read(schema: Core) -> Core:
    if schema["type"] not in _WITH_FIELDS:
        return schema
    fields: Any = schema["fields"]
    made = {name: _as_read(name, field) for name, field in _fields_of(fields)}
    return {**schema, "fields": made if is_object(fields) else [*made.values()]}


def _as_read(name: str, field: Core) -> Core:
    kept = {key: part for key, part in field.items() if not key.startswith("serialization_")}
    told = [path[0] for path in paths_of(name, field) if len(path) == 1]
    return {**kept, "serialization_alias": told[0] if told else name}


def told_names(schema: object, mode: str) -> dict[str, str]:
    """Return the names that a JSON schema has for the fields of a class."""
    part = next((each for each in schema_parts(schema) if each["type"] in _WITH_FIELDS), None)
    named = [] if part is None else _fields_of(part["fields"])
    as_told = {
        name: _as_read(name, field) if mode == "validation" else field for name, field in named
    }
    return {name: field.get("serialization_alias", name) for name, field in as_told.items()}


def _fields_of(fields: Any) -> list[tuple[str, Core]]:
    return [*fields.items()] if is_object(fields) else [(each["name"], each) for each in fields]


def paths_of(name: str, field: Core) -> list[list[str | int]]:
    alias = field.get("validation_alias", name)
    paths: Any = [[alias]] if isinstance(alias, str) else alias
    return [paths] if isinstance(paths[0], str) else paths


def accepts(schema: Core, definitions: Iterable[Core]) -> SchemaValidator:
    """Return a validator of a part of an input, as it stands in a core schema."""
    whole = {"type": "definitions", "schema": schema, "definitions": [*definitions]}
    return SchemaValidator(_changed(whole, by_json_value))


def _changed(schema: object, change: Callable[[Core], Core]) -> Any:
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


def _readable(schema: Core) -> Core:
    made = schema
    kind: str = schema["type"]
    config: Core = schema.get("config") or {}
    if kind == "json":
        inner: Core = made.get("schema", {"type": "any"})
        return inner
    for key, read in _READ_AS.items():
        if config.get(key) in _READABLE and config.get(read) != config[key]:
            config = {**config, read: config[key]}
            made = {**made, "config": config}
    if kind == "dataclass-field" and made.get("init") is False:
        made = {key: part for key, part in made.items() if key != "init"}
    if kind in _WITH_FIELDS:
        made = _with_names(made)
    return by_json_value(made)


def _with_names(schema: Core) -> Core:
    """Let fields be read under the names that they are written under, and no computed ones."""
    fields: Any = schema["fields"]
    named = _fields_of(fields)
    written = {name: field.get("serialization_alias", name) for name, field in named}
    # Where two fields are written under each other's names, each is read by its own alone.
    taken = {each: name for name, each in written.items()}
    changed: dict[str, Core] = {}
    for name, field in named:
        others: list[list[str | int]] = [*paths_of(name, field), [name]]
        kept = [path for path in others if len(path) > 1 or taken.get(str(path[0]), name) == name]
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


def _without(value: object, names: Iterable[str]) -> object:
    return {key: value[key] for key in value if key not in names} if is_object(value) else value


def by_json_value(schema: Core) -> Core:
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

    def named(value: object) -> object:
        is_json = value is None or isinstance(value, str | int | float) or is_array(value)
        is_plain = (is_json or is_object(value)) and not isinstance(value, Enum)
        return known.get(json_key(value), value) if is_plain else value

    return _before(named, schema)


def _before(function: Callable[[object], object], schema: Core) -> Core:
    """Put a function before a schema; what refers to the schema refers to both."""
    inner: Any = {key: part for key, part in schema.items() if key != "ref"}
    return no_info_before_validator_function(function, inner, ref=schema.get("ref"))


def _in_json(value: object) -> Any:
    """Return what pydantic writes a value as in a JSON schema; itself where that fails."""
    try:
        return to_jsonable_python(value.value if isinstance(value, Enum) else value)
    except (PydanticSerializationError, ValueError):
        return value


NOWHERE: Final[Any] = object()
"""Stands for the data of a part that was written in a way of its own, or not at all."""


def exact_data(data: Any, value: Any) -> Any:
    """Return the data with every secret of the value revealed, and every set sorted.

    Args:
        data: What the value was written as; it may be changed.
        value: The value.

    Raises:
        PydanticSerializationError: A secret stands where it cannot be revealed.
    """
    if value.__class__ in LEAVES:  # most of an input
        return data
    if _is_secret(value):
        return _revealed(data, value)
    if isinstance(value, BaseModel) and value.__pydantic_root_model__:
        return exact_data(data, value.__dict__["root"])
    # Data and value side by side: {"user": {"pin": "****"}} beside User(pin=SecretStr("1234")). The
    # parts that have no counterpart are gone through as well: a secret in them is masked for good.
    if (named := _named_parts(value, data)) is not None:
        for names, part in named:
            key = next((name for name in names if name in data), None) if is_object(data) else None
            exact = exact_data(NOWHERE if key is None else data[key], part)
            if key is not None:
                data[key] = exact
    elif isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray):
        parts: list[Any] = [*value]
        beside = is_array(data) and len(data) == len(parts)
        exact = [exact_data(data[at] if beside else NOWHERE, part) for at, part in enumerate(parts)]
        if beside and isinstance(value, set | frozenset):
            exact.sort(key=canonical_json)
        return exact if beside else data
    return data


def _revealed(data: Any, secret: Any) -> Any:
    plain = secret.get_secret_value()
    with suppress(UnicodeDecodeError, PydanticSerializationError):
        if data is not NOWHERE:
            mask, written = to_jsonable_python(secret), to_jsonable_python(plain)
            # Another text than the mask is the author's own way to write it, which is to be kept.
            return written if data == mask else data
    raise PydanticSerializationError(
        "a secret in it is written in a way from which it cannot be read back; give its field "
        "a serializer, or a type that is not a secret"
    )


def _named_parts(value: object, data: object) -> Iterable[tuple[tuple[str, ...], Any]] | None:
    """Return the parts of what has names for them, each with those that it may be written under."""
    known: Mapping[str, object] = {}
    parts: dict[str, object]
    if is_object(value):
        for key in value:
            exact_data(NOWHERE, key)  # a key is never revealed
        if not (is_object(data) and len(data) == len(value)):
            return [((), part) for part in value.values()]
        return [((_written(key),), part) for key, part in value.items()]
    if isinstance(value, BaseModel):
        known = type(value).model_fields
        parts = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    elif is_dataclass(value) and not isinstance(value, type):
        known = getattr(type(value), "__pydantic_fields__", {})
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
    else:
        return None
    return [((*_names_of(known.get(name)), name), part) for name, part in parts.items()]


def _names_of(field: object) -> list[str]:
    """Return the names that a field may be written under besides its own."""
    told = getattr(field, "serialization_alias", None), getattr(field, "validation_alias", None)
    choices = [*getattr(told[1], "choices", ()), *told]
    return [each for each in choices if isinstance(each, str)]


def _written(key: object) -> Any:
    """Return the key of a mapping as JSON has it."""
    return key if isinstance(key, str) else next(iter(to_jsonable_python({key: None})))


def _is_secret(value: object) -> bool:
    # Whoever made one has loaded these; to load them for all would cost as much as all of this.
    # Another thread may be about to: then some of them are missing.
    types = sys.modules.get("pydantic.types")
    return isinstance(value, tuple(getattr(types, name, ()) for name in _SECRETS))


_SECRETS: Final = ("Secret", "SecretStr", "SecretBytes")
