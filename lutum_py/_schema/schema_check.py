"""Check data against a JSON schema that is known at run time only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from .._text.json import is_array, is_object, json_key, shorten
from ..errors import MissingExtraError, ToolDefinitionError
from .schema_reader import UNIONS, fault_in, localized


def schema_checker(what: str, schema: dict[str, Any]) -> SchemaChecker:
    """Return what holds values against a schema, by the package `jsonschema`.

    Raises:
        MissingExtraError: The package is not installed.
        ToolDefinitionError: The schema itself is invalid, or cannot be checked in bounded time.
    """
    kind, schema_error = _kind_for(what, schema)
    fault = fault_in(schema)
    if fault is None:
        try:
            kind.check_schema(schema)
        except schema_error as error:
            raise ToolDefinitionError(
                f"Invalid JSON schema for {what}: at `{error.json_path}`, {error.message}. Correct "
                "it there."
            ) from error
        return SchemaChecker(_validator(kind, schema))
    raise ToolDefinitionError(
        f"Invalid JSON schema for {what}: at `{fault.path}`, {fault.problem}. {fault.remedy}"
    )


def validator_of(what: str, schema: Any, **rules: Any) -> Any:
    """Return a validator for a schema that is taken as it is: using it may raise anything.

    Args:
        what: What is to be checked, for messages.
        schema: The schema.
        **rules: By keyword, what stands for the rule of the package.

    Raises:
        MissingExtraError: The package `jsonschema` is not installed.
    """
    return _validator(_kind_for(what, schema)[0], schema, **rules)


def _kind_for(what: str, schema: Any) -> tuple[Any, Any]:
    """Give the class of validators for a schema, and what it raises for an invalid one."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
    except ImportError as error:
        raise MissingExtraError(
            f"Checking {what} needs the package jsonschema: "
            "python -m pip install 'lutum-py[jsonschema]'"
        ) from error
    return validator_for(schema), SchemaError


def _validator(kind: Any, schema: Any, **rules: Any) -> Any:
    from jsonschema import validators as untyped
    from referencing.jsonschema import EMPTY_REGISTRY

    bounded = _bounded(kind)
    if rules:
        validators: Any = untyped
        bounded = validators.extend(bounded, rules)
    # With a registry of its own it never asks the network for what a reference names.
    return bounded(localized(schema), registry=EMPTY_REGISTRY)


@cache
def _bounded(kind: Any) -> Any:
    """Make the class of validators that check in bounded time; one serves for all schemas."""
    from jsonschema import validators as untyped

    rules = {key: _counted(kind.VALIDATORS[key]) for key in _BRANCHING if key in kind.VALIDATORS}
    validators: Any = untyped
    return validators.extend(kind, {**rules, "uniqueItems": _unique_items})


def _unique_items(_: Any, is_wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    """Compare items by their keys: the package holds each against each."""
    from jsonschema.exceptions import ValidationError

    if is_wanted and is_array(value) and len(set(map(json_key, value))) < len(value):
        yield ValidationError(f"{shorten(value)} has non-unique elements")


_BRANCHING: Final = ("$ref", *UNIONS)
_FOR_EACH_VALUE: Final = 10_000
_FOR_EACH_PART: Final = 200
_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


class _TooMuchWork(Exception):
    """More branches were tried than the size of the value explains."""


def _counted(rule: Any) -> Any:
    def counted(*arguments: Any) -> Any:
        left = _left.get()
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                raise _TooMuchWork
        return rule(*arguments)

    return counted


class SchemaChecker:
    """Hold values against one schema, in bounded time.

    Unions in unions try each branch once more at each level of a value: twice as often with each
    level. So the branches are counted, and a value that needs far more of them than it has parts
    does not fit.
    """

    __slots__ = ("_validator",)

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def iter_errors(self, value: Any) -> Iterator[Any]:
        """Give each fault of a value, as the package `jsonschema` tells it."""
        from jsonschema.exceptions import ValidationError

        _left.set([_FOR_EACH_VALUE + _FOR_EACH_PART * _parts_in(value)])
        try:
            yield from self._validator.iter_errors(value)
        except _TooMuchWork:
            yield ValidationError("there are too many ways to read it", instance={})
        except RecursionError:
            yield ValidationError("it is nested too deeply to be checked", instance={})
        finally:
            _left.set(None)


def _parts_in(value: Any) -> int:
    waiting, found = [value], 0
    while waiting:
        part = waiting.pop()
        found += 1
        waiting += part.values() if is_object(part) else part if is_array(part) else ()
    return found


def schema_faults(what: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    """Say where a value does not fit a schema; nothing where it fits."""
    faults = schema_checker(what, dict(schema)).iter_errors(value)
    return [f"`{fault.json_path}`: {fault.message}" for fault in faults]
