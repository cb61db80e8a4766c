"""Mend plain JSON data by the value that it came of: reveal what was masked, and sort sets.

pydantic masks a `SecretStr` in JSON, and writes a set in any order. What is stored has to be what
was there, and equal inputs have to give equal data. So the value is gone through beside its data,
by the names of its fields. Where the two do not fit together, because a type is written in a way of
its own, nothing is changed; a secret that stays masked by that is an error, never a loss.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .._text.json import LEAVES, canonical_json, is_array, is_object


def exact_data(data: Any, value: Any) -> Any:
    """Give the data with every secret of the value revealed, and every set sorted.

    Args:
        data: What the value was written as; it may be changed.
        value: The value.

    Raises:
        PydanticSerializationError: A secret stands where it cannot be revealed.
    """
    # Each secret that was reached puts an entry in. Where more secrets are in the value than were
    # reached, one is masked in the data for good, and the caller has to know.
    met: list[None] = []
    mended = _mend(data, value, met)
    if len(met) != sum(1 for _ in _secrets_in(value)):
        raise PydanticSerializationError(
            "a secret in it is written in a way from which it cannot be read back; give its field "
            "a serializer, or a type that is no secret"
        )
    return mended


def _mend(data: Any, value: Any, met: list[None]) -> Any:
    if value.__class__ in LEAVES:  # most of an input
        return data
    if _is_secret(value):
        return _revealed(data, value, met)
    # Data and value side by side: {"user": {"pin": "****"}} beside User(pin=SecretStr("1234")).
    named = _named_parts(value)
    if named is not None:
        if is_object(data):
            for names, part in named:
                key = next((name for name in names if name in data), None)
                if key is not None:
                    data[key] = _mend(data[key], part, met)
        return data
    if isinstance(value, BaseModel):
        return _mend(data, value.__dict__["root"], met)
    if is_object(value):
        if is_object(data) and len(data) == len(value):
            for name, part in value.items():
                key = _key_of(name)
                if key in data:
                    data[key] = _mend(data[key], part, met)
        return data
    if _is_collection(value) and is_array(data) and len(data) == len(value):
        data = [_mend(each, part, met) for each, part in zip(data, value, strict=True)]
        if isinstance(value, set | frozenset):
            data.sort(key=canonical_json)
    return data


def _revealed(data: Any, secret: Any, met: list[None]) -> Any:
    plain = secret.get_secret_value()
    try:
        mask, written = to_jsonable_python(secret), to_jsonable_python(plain)
    except (UnicodeDecodeError, PydanticSerializationError):
        return data
    met.append(None)
    # Another text than the mask is the author's own way to write it, which is to be kept.
    return written if data == mask else data


def _key_of(name: Any) -> Any:
    """Tell how JSON writes the key of a mapping."""
    return name if isinstance(name, str) else next(iter(to_jsonable_python({name: None})))


def _named_parts(value: Any) -> list[tuple[tuple[str, ...], Any]] | None:
    """List the parts of a model or dataclass, each with the names that it may be written under."""
    if isinstance(value, BaseModel) and not value.__pydantic_root_model__:
        known: Mapping[str, Any] = type(value).model_fields
        parts = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    elif is_dataclass(value) and not isinstance(value, type):
        known = getattr(type(value), "__pydantic_fields__", {})
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
    else:
        return None
    return [(_names_of(name, known.get(name)), part) for name, part in parts.items()]


def _names_of(name: str, field: Any) -> tuple[str, ...]:
    alias = getattr(field, "serialization_alias", None)
    return (name,) if alias is None else (alias, name)


def _secrets_in(value: Any) -> Iterator[None]:
    """Go through all secrets of a value, wherever they stand."""
    if value.__class__ in LEAVES:
        return
    if _is_secret(value):
        yield None
        return
    named = _named_parts(value)
    inner: Any = ()
    if named is not None:
        inner = [part for _, part in named]
    elif isinstance(value, BaseModel):
        inner = [value.__dict__["root"]]
    elif is_object(value):
        inner = [*value.keys(), *value.values()]
    elif _is_collection(value):
        inner = value
    for part in inner:
        yield from _secrets_in(part)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray)


def _is_secret(value: object) -> bool:
    # Whoever made one has loaded these; to load them for all would cost as much as all of this.
    # Another thread may be about to: then some of them are missing.
    types = sys.modules.get("pydantic.types")
    return isinstance(value, tuple(getattr(types, name, ()) for name in _SECRETS))


_SECRETS: Final = ("Secret", "SecretStr", "SecretBytes")
