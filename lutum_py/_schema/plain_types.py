"""Types of which nothing is hidden, and the JSON schema of parameters of such types.

pydantic takes an instance of a class as it is, so that a model needs a second look that a list of
numbers does not. Most parameters are plain, and are spared all checks that exist for the others.

Their schemas are written straight, as pydantic would write them, if they leave no doubt. Those
of all others are left to pydantic, which has the last word here too: a test holds the two together.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import is_typeddict

from .signature import REQUIRED, Parameter

if TYPE_CHECKING:
    from .schema_reader import JsonSchema

_PLAIN = frozenset({str, int, float, bool, NoneType})
_UNIONS: Final = (Union, UnionType)
_CONTAINERS = frozenset({list, dict, tuple, *_UNIONS})
_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_SURELY_WHOLE: Final = 2**53
"""Integers below it are the same for every reader of JSON."""
_UNSORTED: Final = ("default", "properties")
"""Parameters whose schema pydantic leaves unsorted, since it takes their name for a keyword."""


# `list[str]`, `dict[str, int] | None` and `Literal["a"]` are plain; `datetime`, a model and a class
# of the author's are not: what validates these may run other code.
def is_plain(annotation: Any) -> bool:
    """Whether a type is made of texts, numbers, booleans, None, literals and plain containers.

    Such a type always has a core schema and a JSON schema, so neither has to be tried out.
    """
    origin = get_origin(annotation)
    if origin is None:
        # By identity: what is not a type at all, such as `[int]`, need not have a hash.
        return annotation is None or annotation is ... or any(annotation is t for t in _PLAIN)
    if origin is Annotated:
        from pydantic.fields import FieldInfo

        # What its author leaves out of what is written has to be written all the same, what is read
        # at a path alone has to be read by its name as well, and what is written under another name
        # than it is read by is looked up elsewhere.
        return is_plain(annotation.__origin__) and all(
            type(mark) is FieldInfo
            and not (mark.exclude or getattr(mark, "exclude_if", None))
            and isinstance(mark.validation_alias, str | None)
            and mark.validation_alias == mark.serialization_alias
            for mark in annotation.__metadata__
        )
    if origin is Literal:
        return all(type(value) in _PLAIN for value in get_args(annotation))
    return origin in _CONTAINERS and all(is_plain(part) for part in get_args(annotation))


def is_shallow(annotation: Any) -> bool:
    """Whether a value of a type is fixed, or a list or dict of what is fixed."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_shallow(annotation.__origin__)
    if origin in _UNIONS:
        return all(map(is_shallow, get_args(annotation)))
    if origin in (list, dict):
        return all(map(is_fixed, get_args(annotation)))
    return is_fixed(annotation)


def is_fixed(annotation: Any) -> bool:
    """Whether no value of a type can be changed in place: texts, numbers, and tuples of such."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_fixed(annotation.__origin__)
    if origin in (tuple, *_UNIONS):
        return all(is_fixed(part) for part in get_args(annotation))
    return origin not in _CONTAINERS and is_plain(annotation)


def can_carry(model: type[Any], name: str) -> bool:
    """Whether a field of a model derived from this one may be called so."""
    return not name.startswith("_") and not hasattr(model, name)


def is_model(input_type: Any) -> TypeGuard[type[BaseModel]]:
    """Whether a type is a pydantic model."""
    return isinstance(input_type, type) and issubclass(input_type, BaseModel)


def is_object_type(input_type: Any) -> bool:
    """Whether the JSON of a type is an object: of a model, a dataclass or a `TypedDict`."""
    plain: Any = type  # as a class it would narrow to a class of an unknown type
    is_class = isinstance(input_type, plain)
    return is_class and (
        is_model(input_type) or is_dataclass(input_type) or is_typeddict(input_type)
    )


def plain_schema(parameters: tuple[Parameter, ...]) -> JsonSchema | None:
    """Write the schema of an object with these fields; None if that takes pydantic.

    It does where a default may not fit its type, where a field cannot have the parameter's name,
    and where that name makes pydantic write in another order.
    """
    properties: JsonSchema = {}
    for parameter in parameters:
        name, written = parameter.name, _schema_of(parameter.annotation)
        if written is None or name in _UNSORTED or not can_carry(BaseModel, name):
            return None
        about, default = parameter.description, parameter.default
        if default is not REQUIRED:
            if not _fits(default, parameter.annotation):
                return None
            written["default"] = default
        if about is not None:
            written["description"] = about
        properties[name] = dict(sorted(written.items()))
    required = [each.name for each in parameters if each.default is REQUIRED]
    # In pydantic's order of keys, so that the digest of a tool is the same whoever wrote its
    # schema.
    return {
        "additionalProperties": False,
        "properties": properties,
        **({"required": required} if required else {}),
        "type": "object",
    }


def _schema_of(annotation: Any) -> JsonSchema | None:
    origin = get_origin(annotation)
    if origin is None:
        # By identity: what is not a type at all need not have a hash.
        name = next((name for kind, name in _NAMES.items() if kind is annotation), None)
        return None if name is None else {"type": name}
    parts = get_args(annotation)
    if origin is list and len(parts) == 1:
        items = _schema_of(parts[0])
        return None if items is None else {"items": items, "type": "array"}
    if origin is dict and len(parts) == 2 and parts[0] is str:
        values = _schema_of(parts[1])
        return None if values is None else {"additionalProperties": values, "type": "object"}
    if origin is Literal and parts and all(type(each) is str for each in parts):
        told = {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        return {**told, "type": "string"}
    return _choice_of(parts) if origin in _UNIONS else None


# `str | None` becomes `{"anyOf": [{"type": "string"}, {"type": "null"}]}`, to the letter what
# pydantic writes: the digest of a tool must not depend on who wrote its schema.
def _choice_of(parts: tuple[Any, ...]) -> JsonSchema | None:
    choices = [_schema_of(each) for each in parts if each is not NoneType]
    if any(each is None or each in choices[:at] for at, each in enumerate(choices)):
        return None  # of two that are the same on the wire, as `list` and `List` are, one is told
    if NoneType in parts:  # pydantic has it last, wherever it stands
        choices.append({"type": "null"})
    return {"anyOf": choices}


def is_surely_json(value: Any) -> bool:
    """Whether a value is in JSON what it is in Python, for every reader, as most defaults are."""
    kind: object = value.__class__
    if kind is str:
        return bool(value.isascii())
    if kind is int:
        return bool(abs(value) < _SURELY_WHOLE)
    return value is None or kind is bool or (kind is float and isfinite(value))


def _fits(default: Any, annotation: Any) -> bool:
    """Whether a default surely is of a type, and JSON."""
    if default is None:
        return True
    if not is_surely_json(default):
        return False
    kind: object = default.__class__
    origin = get_origin(annotation)
    if origin is None:
        return annotation is kind
    parts = get_args(annotation)
    if origin is Literal:
        return default in parts
    return origin in _UNIONS and any(each is kind for each in parts)
