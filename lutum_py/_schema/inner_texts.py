"""The texts in annotations inside of containers, of which pydantic keeps nothing.

`list[Annotated[str, "A city."]]` has a text for the items. A schema and the annotation that it was
made of are gone through side by side, and each text is put where the schema has a place for it.
"""

from __future__ import annotations

import sys
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from .._text.json import is_object, shorten
from .schema_reader import JsonSchema
from .signature import ALIASES, AROUND, UNIONS, parts_of, text_in


def describe_inside(
    schema: JsonSchema, hint: Any, follow: Callable[[str], Any], place: str
) -> None:
    """Describe what is inside of a container by the texts of its annotation.

    Args:
        schema: That of the annotation; it is changed in place.
        hint: The annotation. A text about the whole of it is not looked at.
        follow: Finds what a reference leads to.
        place: Where the annotation is, to warn of a text for which the schema has no place.
    """
    for text in _tell(schema, hint, follow, ()):
        warnings.warn(
            f"{place}: the text {shorten(text)} in its annotation has no place in the schema, so "
            "it reaches no model. Describe the whole of it instead, or the field of a class.",
            UserWarning,
            stacklevel=2,
        )


def hints_of(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class's fields as values; none if they have no value here."""
    if issubclass(cls, BaseModel):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    with suppress(Exception):  # an annotation may name what only its author's function has
        return typing.get_type_hints(cls, include_extras=True)
    return {}


def _tell(
    schema: JsonSchema | None, hint: Any, follow: Callable[[str], Any], within: tuple[Any, ...]
) -> Iterator[str]:
    origin, args = get_origin(hint), get_args(hint)
    alias = origin or hint
    if isinstance(alias, ALIASES):
        if alias not in within:
            value = _value_of(alias)
            value = value[args] if args and getattr(value, "__parameters__", ()) else value
            yield from _tell(_led(schema, follow), value, follow, (*within, alias))
    elif origin is Annotated or origin in AROUND:
        yield from _tell(schema, args[0], follow, within)
    elif args and origin is not Literal:
        pairs = [*_places(schema or {}, origin, args)]
        said = [text_in(parts_of(part)) for _, part in pairs]
        # Of a union, one text is about the whole of it.
        if origin in UNIONS and len(pairs) - said.count(None) < 2:
            said = [None for _ in said]
        for (place, part), about in zip(pairs, said, strict=True):
            if about is not None and place is not None:
                place.setdefault("description", about)
            elif about is not None:
                yield about
            yield from _tell(place, part, follow, within)
        if schema is not None and schema.get("propertyNames") == {}:
            del schema["propertyNames"]


def _places(
    schema: JsonSchema, origin: Any, args: tuple[Any, ...]
) -> Iterator[tuple[JsonSchema | None, Any]]:
    """Pair each argument of a generic type with the schema that was made of it."""
    places: list[Any] = []
    if origin in UNIONS:
        args = tuple(each for each in args if each is not NoneType)
        choices: list[Any] = schema.get("anyOf") or schema.get("oneOf") or [schema]
        places = [each for each in choices if each != {"type": "null"}]
        places = places if len(places) == len(args) else []
    elif _is(tuple, origin) and args[-1] is not ...:
        places = schema.get("prefixItems", [])
    elif _is(Mapping, origin) and is_object(schema.get("additionalProperties")):
        places = [schema.setdefault("propertyNames", {}), schema["additionalProperties"]]
    else:
        args, places = args[:1], [schema.get("items")]
    for at, part in enumerate(args):
        place = places[at] if at < len(places) else None
        yield place if is_object(place) else None, part


def _is(kind: type[Any], origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def _led(schema: JsonSchema | None, follow: Callable[[str], Any]) -> JsonSchema | None:
    reference = None if schema is None else schema.get("$ref")
    return schema if reference is None else follow(reference)


def _value_of(alias: Any) -> Any:
    """Return what an alias stands for, which before Python 3.12 may be a text."""
    carrier: object = SimpleNamespace(__annotations__={"it": alias.__value__})
    names = vars(sys.modules[alias.__module__]) if alias.__module__ in sys.modules else {}
    return typing.get_type_hints(carrier, globalns=names, include_extras=True)["it"]
