"""Tell whether a value fits a JSON schema: yes, no, or that it cannot be told from here.

The package `jsonschema` says so. What is not certain is left open: how an invalid schema is meant,
where a reference to another document leads, and how fractions divide, about which validators
differ. So a definite answer is always the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from .._schema.field_issues import path_of
from .._schema.schema_check import is_too_deep, validator_of
from .._text.json import compact_json, cut, is_array, shorten


class Fitting:
    """Hold values against one document, and against the schemas in it.

    Args:
        root: The document, in which references are looked up.

    Attributes:
        keywords: Every keyword that can refuse a value.

    Raises:
        MissingExtraError: The package `jsonschema` is not installed.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._validator = validator_of("one schema against another", root, multipleOf=_multiple_of)
        self.keywords: Collection[str] = self._validator.VALIDATORS
        try:
            self._validator.check_schema(root)
            self.is_valid = True
        except Exception:  # noqa: BLE001 - no valid schema, or one that is too deep
            self.is_valid = False

    def fits(self, value: Any, schema: Any) -> bool | None:
        """Tell whether a value is valid.

        Args:
            value: Plain JSON data.
            schema: The document, or any schema within it.

        Returns:
            Whether it is; None if that cannot be told.
        """
        try:
            # The first fault is enough, so the rest is not looked for.
            return next(self._faults(value, schema), None) is None if self.is_valid else None
        except BaseException as error:  # whatever the schema makes the validator raise
            if not (isinstance(error, Exception) or is_too_deep(error)):
                raise
            return None

    def misfit(self, value: Any) -> str:
        """Say in a sentence, without a full stop, why a value does not fit the document."""
        return _said(next(self._faults(value, self._root)))

    def _faults(self, value: Any, schema: Any) -> Iterator[Any]:
        faults: Iterator[Any] = self._validator.evolve(schema=schema).iter_errors(value)
        return faults


def _multiple_of(_: Any, step: Any, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, int | float) and not isinstance(value, bool):
        # Whether 0.3 is a multiple of 0.1 depends on the validator. Raising makes the answer
        # "cannot be told", which is right for each of them.
        if not (isinstance(value, int) and isinstance(step, int)):
            raise ArithmeticError(value, step)
        if value % step:
            yield ValidationError("")


_MUST: Final = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "pattern": "match {!r}",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
    "minProperties": "have at least {} entries",
    "maxProperties": "have at most {} entries",
}
_BRANCHES: Final = {"anyOf": "no", "oneOf": "not exactly one"}


def join(path: str, name: str) -> str:
    """Return the path of a property."""
    return f"{path}.{name}" if path else name


def _said(fault: Any) -> str:
    key, operand, path = fault.validator, fault.validator_value, path_of(list(fault.absolute_path))
    place = f"`{path}`" if path else "the arguments"
    if key == "required":
        missing = next(name for name in operand if name not in fault.instance)
        return f"`{join(path, missing)}` is required"
    if key == "additionalProperties" and operand is False:
        known = fault.schema.get("properties", {})
        unknown = next(name for name in fault.instance if name not in known)
        return f"`{join(path, unknown)}` is not known"
    if key == "type":
        names = operand if is_array(operand) else [operand]
        return f"{place} must be of type {' or '.join(names)}"
    if key in ("enum", "const"):
        listed = operand if key == "enum" else [operand]
        return f"{place} must be one of {cut(', '.join(map(compact_json, listed)), 80)}"
    if key in _BRANCHES:
        return f"{place} fit{'s' if path else ''} {_BRANCHES[key]} branch of `{key}`"
    if key in _MUST:
        return f"{place} must {_MUST[key].format(operand)}"
    return f"{place} {'does' if path else 'do'} not keep to `{key}`: {shorten(operand)}"
