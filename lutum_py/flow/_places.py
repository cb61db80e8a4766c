"""Places in JSON data, as `files[].id`: names, `[]` for each item, `{}` for each key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .._schema.data_places import ITEMS, KEYS, Path
from .._text.json import compact_json, is_array, is_object

Keys = tuple[str | int, ...]
_STEP: Final = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")


def path_of(text: str) -> Path:
    """Read a path; what is none is not `written` like that."""
    return tuple(_STEP.findall(text))


def written(keys: Keys) -> str:
    """Write a path or place, as in `files[0].id`."""
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys]
    return "".join(steps).replace(".[]", "[]").replace(".{}", "{}").removeprefix(".")


def values_at(
    data: Any, path: Path, keys: Keys = (), owners: tuple[Any, ...] = (), *, whole: bool = False
) -> Iterator[tuple[Keys, Any, tuple[Any, ...]]]:
    """Give each value at a path, or below it where that is no single value.

    Args:
        data: The data.
        path: The path.
        keys: Where the data stands itself.
        owners: In which objects.
        whole: Whether to give what stands in the way of the path as well: a text in the place of a
            list of texts is not to be overlooked.

    Returns:
        Where each stands, the value, and the objects that it stands in, the outermost first. A key
        stands where its value does.
    """
    step, rest = (path[0], path[1:]) if path else (None, ())
    # A list fits `[]` alone, an object any other step. What does not fit is passed over, or with
    # `whole` given as it stands: a model that sends a text for a list must not get by so.
    fits = step == ITEMS if is_array(data) else is_object(data) and step != ITEMS
    if whole and not fits and data is not None:
        step, rest = None, ()
    if is_object(data):
        for key in data:
            if step == KEYS and not rest:
                yield (*keys, key), key, (*owners, data)
            elif step in (None, key, KEYS):
                yield from values_at(data[key], rest, (*keys, key), (*owners, data), whole=whole)
    elif is_array(data):
        for at, value in enumerate(data if step in (None, ITEMS) else ()):
            yield from values_at(value, rest, (*keys, at), owners, whole=whole)
    elif step is None:
        yield keys, data, owners


def text_of(value: Any) -> str:
    """Write a single value as a text, as the words of a user would have it."""
    return value if isinstance(value, str) else compact_json(value)


def texts_in(data: Any) -> Iterator[str]:
    """Give all that can be read in JSON data: keys and values."""
    if is_object(data):
        yield from data
        data = [*data.values()]
    if is_array(data):
        for value in data:
            yield from texts_in(value)
    else:
        yield text_of(data)
