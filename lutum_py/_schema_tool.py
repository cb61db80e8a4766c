"""Tools that are known by a JSON schema only: their input is a plain dict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from ._arguments import Arguments
from ._definition import JsonSchema, ToolDef
from ._json_schema_check import schema_checker
from ._output import Output
from ._spec import ToolSpec

__all__ = ["spec_from_definition"]


class SchemaArguments(Arguments):
    """Decode a dict and check it against a JSON schema.

    Raises:
        MissingExtraError: The package `jsonschema` is not installed.
        ToolDefinitionError: The schema is not valid JSON schema.
    """

    __slots__ = ("_checker", "_name", "_schema")

    def __init__(self, definition: ToolDef) -> None:
        super().__init__(dict[str, Any])
        self._schema = definition.input_schema
        self._name = definition.name
        self._checker = schema_checker(f"the arguments of tool {definition.name!r}", self._schema)
        parse = self.validate_json

        def validate_json(text: str) -> Any:
            return self._checked(parse(text))

        self.validate_json = validate_json

    def check(self, value: Any) -> Any:
        """Validate a dict that a program made."""
        return self._checked(super().check(value))

    def _checked(self, value: Any) -> Any:
        details = list(self._details(self._checker.iter_errors(value)))
        if details:
            raise ValidationError.from_exception_data(self._name, details, "json")
        return value

    def _details(self, errors: Any) -> Iterator[InitErrorDetails]:
        for error in errors:
            loc = tuple(error.absolute_path)
            if error.validator == "required" and isinstance(error.instance, dict):
                for name in error.validator_value:
                    if name not in error.instance:
                        yield {"type": "missing", "loc": (*loc, name), "input": error.instance}
                continue
            if error.validator == "additionalProperties" and isinstance(error.instance, dict):
                for name in error.instance.keys() - error.schema.get("properties", {}).keys():
                    yield {
                        "type": PydanticCustomError("extra_forbidden", "there is no such field"),
                        "loc": (*loc, name),
                        "input": error.instance[name],
                    }
                continue
            kind = _expects_container(error)
            message = error.message.replace("{", "{{").replace("}", "}}")
            yield {
                "type": PydanticCustomError(kind, message),  # type: ignore[arg-type]
                "loc": loc,
                "input": error.instance,
            }

    def to_data(self, value: Any) -> Any:
        """Give the dict as it is."""
        return value

    def json_schema(self) -> JsonSchema:
        """Give the schema that the tool was declared with."""
        return self._schema


def _expects_container(error: Any) -> str:
    """Name the failure as pydantic would, so that a container sent as a string can be mended."""
    if error.validator == "type":
        wanted = error.validator_value
        kinds = [wanted] if isinstance(wanted, str) else list(wanted)
        if "string" not in kinds:
            if "array" in kinds:
                return "list_type"
            if "object" in kinds:
                return "dict_type"
    return "json_schema"


def spec_from_definition(definition: ToolDef) -> ToolSpec[Any, Any]:
    """Make a tool without a function of a definition."""
    words = "".join(word[:1].upper() + word[1:] for word in definition.name.split("_"))
    return ToolSpec(
        definition=definition,
        origin=definition,
        arguments=SchemaArguments(definition),
        output=Output(None),
        invocation=None,
        input_name=words if words.isidentifier() else "Schema",
        module=__name__,
        qualname=definition.name,
    )
