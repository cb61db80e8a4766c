"""Find out whether the written form of a type is faithful.

It is if what is read, written and read again is the same, by construction and for every value.
Most inputs are made of such types: they need no proof before a person is shown what was written.
Code of the author's (validators, serializers, an own `__init__`, factories) may do anything, so a
type that runs any is not faithful, and neither is one whose values share a JSON form with others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import SchemaValidator, to_json

from .._text.json import is_object

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


def is_faithful(core_schema: Any) -> bool:
    """Whether what is written of each value that was read from JSON is read as that value again."""
    definitions: dict[str, Any] = {}
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

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._named = definitions
        self._known: dict[str, frozenset[str]] = {}

    def of(self, schema: Any) -> frozenset[str]:
        kind: str = schema["type"]
        _refuse(any(schema.get(key) for key in _CHANGING))
        config: Mapping[str, Any] = schema.get("config") or {}
        _refuse(any(key.startswith(_CHANGING_CONFIG) for key in config))
        _refuse("allow" in (schema.get("extra_behavior"), config.get("extra_fields_behavior")))
        leaf = _LEAVES.get(kind)
        if leaf is not None:
            _refuse(kind == "decimal" and bool(schema.get("allow_inf_nan")))
            return leaf
        name = "_" + kind.replace("-", "_")
        find: Callable[[Any], frozenset[str]] | None = getattr(self, name, None)
        if find is None:
            raise _NotFaithful
        return find(schema)

    def _any(self, _: Any) -> frozenset[str]:
        return _ANY

    def _nullable(self, schema: Any) -> frozenset[str]:
        inner = self.of(schema["schema"])
        _refuse("null" in inner and inner is not _ANY)
        return inner | {"null"}

    def _default(self, schema: Any) -> frozenset[str]:
        inner = schema["schema"]
        kinds = self.of(inner)
        if "default" in schema:
            _refuse(not self._fits(schema["default"], inner))
        else:
            _refuse(schema.get("default_factory") not in (dict, list))
        return kinds

    def _fits(self, default: Any, schema: Any) -> bool:
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
        try:
            again = SchemaValidator(schema).validate_json(to_json(default))
        except ValueError:
            return False
        return type(again) is kind and repr(again) == repr(default)

    def _list(self, schema: Any) -> frozenset[str]:
        if "items_schema" in schema:
            self.of(schema["items_schema"])
        return _ARRAY

    def _tuple(self, schema: Any) -> frozenset[str]:
        for each in schema["items_schema"]:
            self.of(each)
        return _ARRAY

    def _set(self, schema: Any) -> frozenset[str]:
        # In an order of their own, so that they are sorted by what is written.
        _refuse(schema.get("items_schema", {"type": "any"})["type"] not in _KEYS)
        return self._list(schema)

    _frozenset = _set

    def _dict(self, schema: Any) -> frozenset[str]:
        _refuse(schema.get("keys_schema", {"type": "any"})["type"] not in (*_KEYS, "any"))
        for key in ("keys_schema", "values_schema"):
            if key in schema:
                self.of(schema[key])
        return _OBJECT

    def _enum(self, schema: Any) -> frozenset[str]:
        return _kinds_of([member.value for member in schema["members"]])

    def _literal(self, schema: Any) -> frozenset[str]:
        return _kinds_of(schema["expected"])

    def _union(self, schema: Any) -> frozenset[str]:
        kinds: frozenset[str] = frozenset()
        for each in schema["choices"]:
            own = self.of(each[0] if isinstance(each, tuple) else each)
            _refuse(bool(kinds & own))
            kinds |= own
        return kinds

    def _tagged_union(self, schema: Any) -> frozenset[str]:
        _refuse(not isinstance(schema["discriminator"], str))
        for each in schema["choices"].values():
            self.of(each)
        return _OBJECT

    def _model(self, schema: Any) -> frozenset[str]:
        return self.of(schema["schema"])

    _dataclass = _model

    def _fields(self, schema: Any) -> frozenset[str]:
        fields = schema["fields"]
        for each in fields.values() if is_object(fields) else fields:
            name = each.get("validation_alias")
            _refuse(name != each.get("serialization_alias") or not isinstance(name, str | None))
            _refuse(any(each.get(key) for key in (*_CHANGING, "init_only")))
            _refuse(each.get("init") is False)
            self.of(each["schema"])
        return _OBJECT

    def _model_fields(self, schema: Any) -> frozenset[str]:
        return self._fields(schema)

    _typed_dict = _dataclass_args = _model_fields

    def _definitions(self, schema: Any) -> frozenset[str]:
        return self.of(schema["schema"])

    def _definition_ref(self, schema: Any) -> frozenset[str]:
        name = schema["schema_ref"]
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
