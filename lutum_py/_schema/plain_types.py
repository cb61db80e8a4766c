"""Types of which nothing is hidden: what validates them looks at every part.

pydantic takes an instance of a class as it is, so that a model needs a second look that a list of
numbers does not. Most parameters are plain, and are spared all checks that exist for the others.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_PLAIN = frozenset({str, int, float, bool, NoneType})
_CONTAINERS = frozenset({list, dict, tuple, Union, UnionType})


# `list[str]`, `dict[str, int] | None` and `Literal["a"]` are plain; `datetime`, a model and a class
# of the author's are not: what validates these may run other code.
def is_plain(annotation: Any) -> bool:
    """Whether a type is made of texts, numbers, booleans, None, literals and plain containers.

    Such a type always has a core schema and a JSON schema, so neither has to be tried out.
    """
    origin = get_origin(annotation)
    if origin is None:
        # By identity: what is no type at all, such as `[int]`, need not have a hash.
        return annotation is None or annotation is ... or any(annotation is t for t in _PLAIN)
    if origin is Annotated:
        from pydantic.fields import FieldInfo

        marks = annotation.__metadata__
        return is_plain(annotation.__origin__) and all(type(mark) is FieldInfo for mark in marks)
    if origin is Literal:
        return all(type(value) in _PLAIN for value in get_args(annotation))
    return origin in _CONTAINERS and all(is_plain(part) for part in get_args(annotation))


def is_fixed(annotation: Any) -> bool:
    """Whether no value of a type can be changed in place: texts, numbers, and tuples of such."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_fixed(annotation.__origin__)
    if origin in (tuple, Union, UnionType):
        return all(is_fixed(part) for part in get_args(annotation))
    return origin not in _CONTAINERS and is_plain(annotation)


def can_carry(model: type[Any], name: str) -> bool:
    """Whether a field of a model derived from this one may be called so."""
    return not name.startswith("_") and not hasattr(model, name)
