"""Walk core schemas of pydantic, and build validators and serializers of changed ones."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Iterator
from typing import Any, Final

from .._text.json import is_object

# Of each of these pydantic says in the schema which class it is.
OBJECTS: Final = frozenset({"dataclass", "model", "typed-dict"})
NO_SCHEMA: Final = frozenset(
    {"cls", "config", "default", "expected", "members", "metadata", "serialization", "type"}
)


def is_schema(part: dict[str, Any]) -> bool:
    """Whether this is a schema: what holds fields or choices has words of their author as keys."""
    return isinstance(part.get("type"), str)


def but(schema: Any, changes: dict[str, Any]) -> Any:
    """Return the schema, or a copy where some part of it is another one."""
    is_same = all(schema.get(key) is part for key, part in changes.items())
    return schema if is_same else {**schema, **changes}


_BUILDING: Final = RLock()


def built(make: Any, schema: Any, classes: set[type[Any]]) -> Any:
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


def schema_parts(schema: Any) -> Iterator[dict[str, Any]]:
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


def classes_in(schema: Any) -> set[type[Any]]:
    """Return the classes of the objects in a core schema."""
    return {part.get("cls", dict) for part in schema_parts(schema) if part["type"] in OBJECTS}
