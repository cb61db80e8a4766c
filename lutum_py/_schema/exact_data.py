"""Coerce plain JSON data by the value that it came of: reveal what was masked, and sort sets.

pydantic masks a `SecretStr` in JSON, and writes a set in any order. What is stored has to be what
was there, and equal inputs have to give equal data. So the value is gone through beside its data,
by the names of its fields. If the two do not fit together, because a type is written in a way of
its own, nothing is changed; a secret that stays masked by that is an error, never a loss.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .._text.json import LEAVES, canonical_json, is_array, is_object

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


def _named_parts(value: Any, data: Any) -> Iterable[tuple[tuple[str, ...], Any]] | None:
    """Return the parts of what has names for them, each with those that it may be written under."""
    known: Any = {}
    parts: dict[str, Any]
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


def _names_of(field: Any) -> list[str]:
    """Return the names that a field may be written under besides its own."""
    told = getattr(field, "serialization_alias", None), getattr(field, "validation_alias", None)
    choices = [*getattr(told[1], "choices", ()), *told]
    return [each for each in choices if isinstance(each, str)]


def _written(key: Any) -> Any:
    """Return the key of a mapping as JSON has it."""
    return key if isinstance(key, str) else next(iter(to_jsonable_python({key: None})))


def _is_secret(value: object) -> bool:
    # Whoever made one has loaded these; to load them for all would cost as much as all of this.
    # Another thread may be about to: then some of them are missing.
    types = sys.modules.get("pydantic.types")
    return isinstance(value, tuple(getattr(types, name, ()) for name in _SECRETS))


_SECRETS: Final = ("Secret", "SecretStr", "SecretBytes")
