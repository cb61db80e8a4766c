"""Check data against a JSON schema that is known at run time only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from .._text.json import JsonObject, cut, is_array, is_object, json_key, shorten
from ..errors import MissingExtraError, ToolDefinitionError
from .schema_reader import JsonSchema, fault_in, localized, matches_pattern
from .secrets import Masking


def schema_checker(what: str, schema: JsonObject) -> SchemaChecker:
    """Return what checks values against a schema, with the package `jsonschema`.

    Raises:
        MissingExtraError: The package is not installed.
        ToolDefinitionError: The schema itself is invalid, or cannot be checked in bounded time.
    """
    kind, schema_error = _kind_for(what, schema)
    fault = fault_in(schema)
    if fault is None:
        try:
            kind.check_schema(schema, format_checker=None)  # else `re` reads patterns
        except schema_error as error:
            raise ToolDefinitionError(
                f"Invalid JSON schema for {what}: at `{error.json_path}`, {error.message}. Correct "
                "it there."
            ) from error
        return SchemaChecker(validator_of(what, schema))
    raise ToolDefinitionError(
        f"Invalid JSON schema for {what}: at `{fault.path}`, {fault.problem}. {fault.remedy}"
    )


def validator_of(what: str, schema: Any) -> Any:
    """Return a validator for a schema that is taken as it is: using it may raise anything.

    Args:
        what: What is to be checked, for messages.
        schema: The schema.

    Raises:
        MissingExtraError: The package `jsonschema` is not installed.
    """
    kind = _bounded(_kind_for(what, schema)[0])
    from referencing.jsonschema import EMPTY_REGISTRY

    # With a registry of its own it never asks the network for what a reference names.
    return kind(localized(schema, for_validator=True), registry=EMPTY_REGISTRY)


def _kind_for(what: str, schema: Any) -> tuple[Any, Any]:
    """Return the class of validators for a schema, and what it raises for an invalid one."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
    except ImportError as error:
        raise MissingExtraError(
            f"Checking {what} needs the package jsonschema: "
            "python -m pip install 'lutum-py[jsonschema]'"
        ) from error
    # The latest is named: the package warns of a `$schema` that it does not know.
    try:
        return validator_for(schema, default=Draft202012Validator), SchemaError
    except (AttributeError, TypeError, ValueError):  # that is no address at all
        return Draft202012Validator, SchemaError


@cache
def _bounded(kind: Any) -> Any:
    """Make the class of validators that check in bounded time; one serves for all schemas."""
    from attrs import evolve
    from jsonschema import validators as untyped

    own = {
        "additionalProperties": _additional_properties,
        "const": _const,
        "enum": _enum,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "unevaluatedProperties": _unevaluated_properties,
        "uniqueItems": _unique_items,
    }
    rules = {key: _counted(key, own.get(key, rule)) for key, rule in kind.VALIDATORS.items()}
    types = kind.TYPE_CHECKER.redefine("boolean", _is_boolean)
    validators: Any = untyped
    bounded = validators.extend(kind, rules, type_checker=types)
    # The package's own goes on with a class that counts nothing, where a part names its `$schema`.
    bounded.evolve = evolve
    return bounded


def _error(said: str, **options: Any) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(said, **options)


def _unique_items(_: Any, is_wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    """Compare items by their keys: the package holds each against each."""
    if is_wanted and is_array(value) and len(set(map(_key_of, value))) < len(value):
        yield _error(f"{shorten(value)} has non-unique elements")


def _enum(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    """Look a value up among others by its key: the package holds it against each."""
    steps = _steps.get()
    keys_of = {} if steps is None else steps.keys_of
    # The schema is kept with its checker, so that the identity of a part of it is a name for it.
    known = keys_of.get(id(wanted))
    if known is None:
        known = keys_of[id(wanted)] = {json_key(each) for each in wanted}
    if _key_of(value) not in known:
        yield _error(f"{value!r} is not one of {wanted!r}")


def _const(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    if _key_of(value) != _key_of(wanted):
        yield _error(f"{wanted!r} was expected")


# The package's own rules read patterns with `re`.
def _pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
    if isinstance(value, str) and not matches_pattern(wanted, value):
        yield _error(f"{value!r} does not match {wanted!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[Any]:
    for pattern, inner in wanted.items() if is_object(value) else ():
        for name in value:
            if matches_pattern(pattern, name):
                yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def additional(value: JsonSchema, schema: JsonSchema) -> list[str]:
    """List the names in a value that a schema does not have, in their order."""
    known, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
    return [
        name
        for name in value
        if name not in known and not any(matches_pattern(pattern, name) for pattern in patterns)
    ]


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    names = additional(value, schema) if is_object(value) else []
    if is_object(wanted):
        for name in names:
            yield from validator.descend(value[name], wanted, path=name)
    elif names and wanted is False:
        yield _error(f"Additional properties are not allowed ({_listed(names)})")


def _unevaluated_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    known = _evaluated(validator, value, schema) if is_object(value) else value
    names = [
        name
        for name in (value if is_object(value) else ())
        if name not in known and not validator.evolve(schema=wanted).is_valid(value[name])
    ]
    if names:
        yield _error(f"Unevaluated properties are not allowed ({_listed(names)})")


def _listed(names: list[str]) -> str:
    return f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} unexpected"


def _evaluated(validator: Any, value: JsonSchema, schema: Any) -> set[str]:
    """Collect the names in a value that the schemas which it fits have looked at."""
    if not is_object(schema):
        return set()
    _take(1 + _breadth(value) + _breadth(schema.get("properties")))
    found = value.keys() - additional(value, schema)

    def fits(part: Any) -> bool:
        return bool(validator.evolve(schema=part).is_valid(value))

    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            inner = validator.evolve(schema=schema[keyword])
            found |= {name for name in value.keys() - found if inner.is_valid(value[name])}
    beside = [part for key in ("allOf", "anyOf", "oneOf") for part in schema.get(key, ())]
    beside = [part for part in beside if fits(part)]
    beside += [part for name, part in schema.get("dependentSchemas", {}).items() if name in value]
    if "if" in schema:
        chosen = ["if", "then"] if fits(schema["if"]) else ["else"]
        beside += [schema[key] for key in chosen if key in schema]
    for part in beside:
        found |= _evaluated(validator, value, part)
    for keyword in schema.keys() & {"$ref", "$dynamicRef", "$recursiveRef"}:
        target = _target(validator, keyword, schema[keyword])
        there = validator.evolve(schema=target.contents, _resolver=target.resolver)
        found |= _evaluated(there, value, target.contents)
    return found


def _target(validator: Any, keyword: str, reference: str) -> Any:
    if keyword == "$recursiveRef":
        from referencing.jsonschema import lookup_recursive_ref

        return lookup_recursive_ref(validator._resolver)
    return validator._resolver.lookup(reference)


# The package compares `uniqueItems` pair by pair: 10,000 items are 50 million comparisons. By keys
# it is one pass.
def _key_of(value: Any) -> Any:
    """Make the key of a value, whose parts are steps."""
    if is_object(value) or is_array(value):
        _take(_parts_in(value))
    return json_key(value)


# How many steps a check may take: enough for any schema that reads each part of a value a hundred
# times. `{"anyOf": [{...}] * 9}` nested five deep reads the innermost part 9 ** 5 times, and stops.
_AT_LEAST: Final = 20_000
_FOR_EACH_PART: Final = 100
_STEP: Final = 100
"""So many characters are looked through, or written, in a step."""


class _GivenUp(Exception):
    """A check took more steps than the sizes of the schema and the value explain."""


class _Steps:
    """Count the steps of one check.

    Attributes:
        left: How many may be taken.
        items: How many items the value has, if a keyword asks which were looked at.
        keys_of: The keys of what enums list, by the identity of the list.
    """

    __slots__ = ("items", "keys_of", "left")

    def __init__(self, left: int, keys_of: dict[int, set[Any]]) -> None:
        self.left = left
        self.items = 0
        self.keys_of = keys_of


# A context variable and no argument: the rules are called by the package, which passes none of ours
# on. A check does not await, so that no other one comes between in the same context.
_steps: ContextVar[_Steps | None] = ContextVar("steps", default=None)


def _take(count: int) -> None:
    steps = _steps.get()
    if steps is not None:
        steps.left -= count
        if steps.left < 0:
            raise _GivenUp


def _breadth(part: Any) -> int:
    """Return the steps that it takes to go once through the names or items of something."""
    if isinstance(part, str):
        return len(part) // _STEP
    return len(part) // 8 if is_object(part) or is_array(part) else 0


def _counted(keyword: str, rule: Any) -> Any:
    """Count what one keyword does with one value: what it goes through, and what it says."""
    by_pattern = keyword in ("patternProperties", "additionalProperties")

    # A generator, as the rules of the package are: it is asked for errors one by one, and the steps
    # of a rule are taken while it looks for the next, not before.
    def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        _take(1 + _breadth(value) + (0 if keyword == "enum" else _breadth(wanted)))
        if by_pattern and is_object(value):
            _take(_patterns_in(schema) * len(value))
        steps = _steps.get()
        before = 0 if steps is None else steps.items
        if steps is not None and keyword == "unevaluatedItems" and is_array(value):
            steps.items = max(before, len(value))  # how many `_is_boolean` is asked about
        try:
            # A text that quotes the value is work too: an error for each of 10,000 items, each with
            # all of them in it, would write a gigabyte.
            for error in rule(validator, wanted, value, schema) or ():
                _take(len(error.message) // _STEP)
                yield error
        finally:
            if steps is not None:
                steps.items = before

    return counted


def _patterns_in(schema: Any) -> int:
    """Count the patterns of names in a schema, long ones as several."""
    patterns = schema.get("patternProperties")
    return sum(1 + len(each) // _STEP for each in patterns) if is_object(patterns) else 0


def _is_boolean(_: Any, part: Any) -> bool:
    """Tell whether something is a boolean; if `unevaluatedItems` asks it of a schema, count that.

    For each schema that may have looked at a value, the package lists all items that it looked at,
    and then searches the list for each item.
    """
    steps = _steps.get()
    if steps is not None and steps.items and is_object(part):
        items = steps.items
        wide = sum(keyword in part for keyword in _LOOK_AT_ITEMS)
        _take(1 + wide * items // 8 * (1 + items // _STEP))
    return isinstance(part, bool)


_LOOK_AT_ITEMS: Final = ("items", "prefixItems", "contains", "unevaluatedItems")


class SchemaChecker:
    """Hold values against one schema, in a bounded number of steps.

    Unions in unions try each branch once more at each level of a value, and what was not looked at
    is found by trying all of it again: twice as often with each level. So steps are counted, of
    every keyword, and a value that needs far more of them than it has parts does not fit. Steps
    and not seconds: what fits on one machine fits on another.
    """

    __slots__ = ("_keys_of", "_validator")

    def __init__(self, validator: Any) -> None:
        self._validator = validator
        self._keys_of: dict[int, set[Any]] = {}

    def iter_errors(self, value: Any) -> Iterator[Any]:
        """Yield each fault of a value, as the package `jsonschema` tells it."""
        left = _AT_LEAST + _FOR_EACH_PART * _parts_in(value)
        _steps.set(_Steps(left, self._keys_of))
        try:
            yield from self._validator.iter_errors(value)
        except _GivenUp:
            said = "there are too many ways to read it, so the check was given up"
            yield _error(said, instance={})
        except BaseException as error:
            if not is_too_deep(error):
                raise
            said = "it is nested too deeply to be checked, so the check was given up"
            yield _error(said, instance={})
        finally:
            _steps.set(None)


def is_too_deep(error: BaseException) -> bool:
    """Whether the stack has ended, which what is in Rust below reports by an error of its own."""
    return isinstance(error, RecursionError) or type(error).__name__ == "PanicException"


def _parts_in(value: Any) -> int:
    waiting, found = [value], 0
    while waiting:
        part = waiting.pop()
        found += 1
        if isinstance(part, str):
            found += len(part) // _STEP
        elif is_object(part):
            waiting += part.values()
        elif is_array(part):
            waiting += part
    return found


def schema_faults(what: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    """Say where a value does not fit a schema; nothing if it fits.

    If the schema has secrets, nothing of the value is repeated.
    """
    checker, hides = schema_checker(what, dict(schema)), Masking(dict(schema)).found
    return [
        f"`{fault.json_path}`: {words_of(fault, hides)}" for fault in checker.iter_errors(value)
    ]


def words_of(fault: Any, hides: bool) -> str:
    """Describe a fault, without what came if the schema has secrets."""
    said = f"it is not what `{fault.validator}` allows" if hides else fault.message
    return cut(said, 400)
