"""What is secret in an input, and what may be shown of it.

Secret is what a JSON schema calls `writeOnly` or gives the format `password`, and what pydantic
has a type of secrets for. Data is checked against the schema, and a mask stands wherever a secret
may be: also if the data does not have the shape that the schema says, so that the place of a
secret below cannot be told. So what is masked may be more than a secret, and never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._text.json import copy_json, is_array, is_object
from .schema_reader import (
    ANY_KEY,
    NAMES,
    UNIONS,
    JsonSchema,
    below,
    branches,
    follow,
    localized,
    subschemas,
)

MASK: Final = "**********"
"""Stands for a secret, whatever its length, as pydantic has it."""

_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


class Masking:
    """Know the places of the secrets that a schema declares.

    Args:
        schema: The schema of an input.
        is_closed: Whether a key that the schema does not have may be another name of one that it
            has, as where a class writes itself in its own way.

    Attributes:
        found: Whether there are any secrets.
        root: The schema, with every reference written from the root.
    """

    __slots__ = ("_holding", "_is_closed", "found", "root")

    def __init__(self, schema: JsonSchema, *, is_closed: bool = False) -> None:
        self.root: JsonSchema = localized(schema)
        self._is_closed = is_closed
        self._holding = _holders(self.root)
        self.found: bool = bool(self._holding)

    def masked(self, value: object) -> Any:
        """Copy plain JSON data that fits the schema, with a mask for each secret."""
        return self._masked(value, [self.root]) if self.found else copy_json(value)

    def hides(self, loc: Iterable[str | int]) -> bool:
        """Whether a value at a place, as pydantic names it, may be a secret or hold one."""
        *way, (_, here) = self._along(loc)
        # What is in something secret is secret.
        is_inside = any(self._has_secret_keys(m) or any(map(_is_secret, m)) for _, m in way)
        return is_inside or self._may_hide(here)

    def without_keys(self, loc: Iterable[str | int], *, all_keys: bool) -> tuple[str | int, ...]:
        """Return a place with a mark for each key of a dictionary in it.

        Args:
            loc: The place, as pydantic names it.
            all_keys: Whether to hide every key; else those that are secret themselves.
        """
        made: list[str | int] = []
        is_inside = False
        for step, meant in self._along(loc):
            is_name = not isinstance(step, str) or any(_named(each, step) for each in meant)
            is_key = not is_name and any(each.get(key) for each in meant for key in ANY_KEY)
            is_secret = self._has_secret_keys(meant) and step != "[key]"
            is_secret = is_secret or (not is_name and self._has_secrets_alone(meant))
            # What is below something secret is a part of it, however deep.
            is_inside = is_inside or any(map(_is_secret, meant))
            hidden = is_secret or (is_inside and isinstance(step, str)) or (all_keys and is_key)
            made += [] if step is None else ["…" if hidden else step]
        return tuple(made)

    def hides_key(self, name: str) -> bool:
        """Whether a name of the input is a key that may be a secret."""
        return self.without_keys((name,), all_keys=False) != (name,)

    def _along(
        self, loc: Iterable[str | int]
    ) -> Iterator[tuple[str | int | None, list[JsonSchema]]]:
        """Go to a place: give each step with the schemas in front of it, at last those there.

        pydantic also names the member of a union that it tried, which is not a step into the value.
        """
        places: list[object] = [self.root]
        steps = list(loc)
        for number, step in enumerate(steps):
            meant = branches(self.root, places)
            yield step, meant
            # After `filter` in ("filter", "Range", "password"), where `Range` names a branch of a
            # union, the schema of `filter` itself stays in, for `Range` is not a step of the value.
            if found := [part for schema in meant for part in below(schema, step)]:
                stayed = [schema for schema in meant if any(key in schema for key in UNIONS)]
                places = found + stayed * (number + 1 < len(steps))
        yield None, branches(self.root, places)

    def _masked(self, value: object, schemas: list[object]) -> Any:
        meant = branches(self.root, schemas)
        # Of a dynamic reference nobody can tell, without the whole value, what it means.
        is_unclear = any(keyword in each for each in meant for keyword in _DYNAMIC)
        if value is not None and (is_unclear or any(map(_is_secret, meant))):
            return MASK
        # Nothing secret below here: what follows is copied as it is, whatever its shape.
        is_open = not self._may_hide(meant)
        if is_object(value):
            if self._has_secret_keys(meant):
                return MASK
            # The names of `dict[str, SecretStr]` are a model's, and may be what is secret.
            names: Iterable[str] = value
            if not is_open and self._has_secrets_alone(meant):
                names = [key for key in value if any(_named(each, key) for each in meant)]
            made = {key: self._part(value[key], meant, key, is_open) for key in names}
            return made if len(made) == len(value) else {**made, MASK: MASK}
        if is_array(value):
            return [self._part(part, meant, at, is_open) for at, part in enumerate(value)]
        # A plain value where the schema has an object that holds a secret: it may be the secret.
        return value if is_open or value is None or isinstance(value, bool) else MASK

    def _part(self, value: object, meant: list[JsonSchema], step: str | int, is_open: bool) -> Any:
        inner = [part for schema in meant for part in below(schema, step)]
        if inner or is_open or not self._is_closed:
            return self._masked(value, inner)
        return MASK

    def _has_secret_keys(self, schemas: Iterable[JsonSchema]) -> bool:
        return self._may_hide(each.get("propertyNames") for each in schemas)

    def _has_secrets_alone(self, schemas: Iterable[JsonSchema]) -> bool:
        """Whether what an object has under keys of its own choice may all be secret."""
        parts = (part for each in schemas for part in _any_key(each))
        return self._is_all_secret(list(parts), set())

    def _is_all_secret(self, schemas: list[object], seen: set[int]) -> bool:
        # `dict[str, list[SecretStr]]` as well: of what is under its keys, nothing can be seen.
        for each in branches(self.root, schemas):
            if id(each) in seen or id(each) not in self._holding:
                continue
            seen.add(id(each))
            items = [part for key in ("items", "prefixItems") for part in _listed(each.get(key))]
            if _is_secret(each) or self._is_all_secret([*_any_key(each), *items], seen):
                return True
        return False

    def _may_hide(self, schemas: Iterable[object]) -> bool:
        return any(id(schema) in self._holding for schema in schemas)


def _holders(root: object) -> set[int]:
    """Find the schemas at or below which something is secret, by the identities of their dicts."""
    # By identity, since two equal schemas at two places are two places. `above` leads from each
    # schema to those that hold it, so the way up from a secret is walked once.
    above: dict[int, list[int]] = {}
    secret: list[int] = []
    dynamic: list[int] = []
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        if not is_object(schema) or id(schema) in seen:
            continue
        seen.add(id(schema))
        if _is_secret(schema):
            secret.append(id(schema))
        if any(keyword in schema for keyword in _DYNAMIC):
            dynamic.append(id(schema))
        inner: list[object] = [part for _, _, part in subschemas(schema)]
        inner += [schema.get("contentSchema"), follow(schema.get("$ref"), root)]
        for part in inner:
            above.setdefault(id(part), []).append(id(schema))
        waiting += inner
    # From each secret up: `properties.login.properties.password` makes a holder of the schema of
    # `login`, and of the root.
    # What is meant by a dynamic reference depends on the value: it may be any part of the schema.
    found: set[int] = set()
    going = [*secret, *dynamic] if secret else []
    while going:
        known = going.pop()
        if known not in found:
            found.add(known)
            going += above.get(known, ())
    return found


def _is_secret(schema: JsonSchema) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _any_key(schema: JsonSchema) -> list[object]:
    """List the schemas of what is under keys that a schema does not name."""
    patterns = schema.get("patternProperties")
    others = [schema.get(key) for key in ANY_KEY if key != "patternProperties"]
    return [*others, *(patterns.values() if is_object(patterns) else ())]


def _listed(part: object) -> list[object]:
    return [*part] if is_array(part) else [part]


def _named(schema: JsonSchema, step: object) -> bool:
    return any(
        is_object(held) and step in held for held in (schema.get("properties"), schema.get(NAMES))
    )
