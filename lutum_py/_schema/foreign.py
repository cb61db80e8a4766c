"""Decode and check what is known by a JSON schema only, such as the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, LiteralString

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from .._text.json import is_array, parse_json
from ..errors import FieldIssue
from .arguments import Arguments
from .definition import ToolDef
from .field_issues import path_of
from .output import Output
from .schema_check import additional, schema_checker, words_of
from .secrets import Masking

_MAX_DETAILS = 100
"""Faults that are looked for at most: of an array of a thousand wrong entries, a few will do."""


class SchemaArguments(Arguments):
    """Decode a dict and check it against a JSON schema.

    Raises:
        MissingExtraError: The package `jsonschema` is not installed.
        ToolDefinitionError: The schema is not valid JSON schema.
    """

    def __init__(self, definition: ToolDef) -> None:
        super().__init__(dict[str, Any])
        self._schema = definition.input_schema
        self._name = definition.name
        self._checker = schema_checker(f"the arguments of tool {definition.name!r}", self._schema)
        parse = self.validate_json
        # On the instance, where other inputs have pydantic's own function: `ToolSpec.validate_json`
        # is a copy of that, so a method of the class would not be called. Keys are looked at here,
        # for a schema that takes any others takes a stand-in as one of these.
        self.validate_json = lambda text: self._checked(self.own_keys(parse(text))[0])

    def check(self, value: object, *, by_name: bool = False) -> Any:
        """Validate a dict that a program made."""
        return self._checked(super().check(value, by_name=by_name))

    def _checked(self, value: object) -> Any:
        # Raised as pydantic's error: the rest of the library reads that, masks secrets in it and
        # tells the model what is wrong.
        details = list(islice(self._details(self._checker.iter_errors(value)), _MAX_DETAILS))
        if details:
            raise ValidationError.from_exception_data(self._name, details, "json")
        return value

    def _details(self, errors: Any) -> Iterator[InitErrorDetails]:
        seen: set[Any] = set()
        for error in errors:
            loc = tuple(error.absolute_path)
            value = error.instance
            if error.validator == "required" and is_array(error.validator_value):
                # One error comes for each missing name, but none says which.
                for name in error.validator_value:
                    if name not in value and (*loc, name) not in seen:
                        seen.add((*loc, name))
                        yield {"type": "missing", "loc": (*loc, name), "input": value}
            elif error.validator == "additionalProperties":
                for name in additional(value, error.schema):
                    kind = PydanticCustomError("extra_forbidden", "there is no such field")
                    yield {"type": kind, "loc": (*loc, name), "input": value[name]}
            else:
                # The message goes in as an argument: in a template, its braces would be filled in.
                said = {"text": error.message}
                kind = PydanticCustomError(_expects_container(error), "{text}", said)
                yield {"type": kind, "loc": loc, "input": value}

    def to_data(self, value: object) -> Any:
        """Return the dict as it is."""
        return value

    def _plain(self, value: object, **_: object) -> Any:
        return value


def _expects_container(error: object) -> LiteralString:
    """Name the failure as pydantic would, so that a container sent as a string can be coerced."""
    kinds = _types_wanted(error)
    if not kinds or "string" in kinds:
        return "json_schema"
    if "array" in kinds:
        return "list_type"
    return "dict_type" if "object" in kinds else "json_schema"


def _types_wanted(error: Any) -> list[str]:
    """List the types that would have been right; none if something else is wrong."""
    if error.validator == "type":
        wanted = error.validator_value
        return [wanted] if isinstance(wanted, str) else list(wanted)
    if error.validator not in ("anyOf", "oneOf"):
        return []
    # A fault with a path is inside of a value, so that branch of the `anyOf` accepts the type. The
    # type is wrong only if every branch refuses the type itself.
    branches = [[] if one.relative_path else _types_wanted(one) for one in error.context]
    return [kind for kinds in branches for kind in kinds] if all(branches) else []


class SchemaOutput(Output):
    """Encode an output, and check it against a JSON schema if its tool declares one."""

    __slots__ = ("_checker", "_hides")

    def __init__(self, definition: ToolDef) -> None:
        super().__init__(None)
        schema = definition.output_schema
        what = f"the output of tool {definition.name!r}"
        self._checker = None if schema is None else schema_checker(what, schema)
        self._hides = Masking(schema or {}).found

    def encode(self, tool: str, value: object) -> str:
        """Return the output as JSON text.

        Raises:
            ToolOutputError: It does not fit the schema, or has no JSON form.
        """
        text = super().encode(tool, value)
        errors = () if self._checker is None else self._checker.iter_errors(parse_json(text))
        issues = tuple(
            FieldIssue(path_of(each.absolute_path), words_of(each, self._hides))
            for each in islice(errors, _MAX_DETAILS)
        )
        if issues:
            raise self._refuse(tool, issues, "does not fit its output schema")
        return text
