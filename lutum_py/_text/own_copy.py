"""Copy a value, so that what is done to it reaches nobody else."""

from __future__ import annotations

from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypeVar

from .json import LEAVES

T = TypeVar("T")


def own_copy(value: T) -> T:
    """Copy a value of any type deeply.

    What cannot be copied, such as a lock or an open file, is given as it is; a dict, list, tuple or
    set that it is in is a new one all the same.

    >>> from threading import Lock
    >>> lock = Lock()
    >>> seen = {"ids": [1], "lock": lock}
    >>> own = own_copy(seen)
    >>> own["ids"].append(2)
    >>> seen["ids"], own["lock"] is lock
    ([1], True)
    """
    if value.__class__ in LEAVES:
        return value
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - each type has its own way to refuse
        pass
    try:
        copied: T = _in_parts(value, {})
    except RecursionError:
        return value
    return copied


# `deepcopy` gives up at the first part that cannot be copied. A dict with a list and a lock would
# then be shared whole, and a hook that appends to the list would change what others read.
def _in_parts(value: Any, known: dict[int, Any]) -> Any:
    """Copy the containers that Python itself has, and in them whatever can be."""
    if id(value) in known:
        return known[id(value)]
    kind = value.__class__
    made: Any
    if kind is dict:
        # Known before its parts are copied: a dict may hold itself.
        made = known[id(value)] = {}
        made.update((key, _in_parts(part, known)) for key, part in value.items())
    elif kind is list:
        made = known[id(value)] = []
        made.extend(_in_parts(part, known) for part in value)
    elif kind in (tuple, set, frozenset):
        make: Any = kind
        made = known[id(value)] = make(_in_parts(part, known) for part in value)
    elif kind is MappingProxyType:
        made = MappingProxyType(_in_parts(dict(value), known))
    else:
        try:
            made = deepcopy(value)
        except Exception:  # noqa: BLE001 - as above
            made = value
        known[id(value)] = made
    return made
