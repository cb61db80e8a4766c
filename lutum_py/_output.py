"""Check a tool's output against its declared type, and encode it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from ._arguments import field_issues, fields_of
from ._closed_schema import is_model
from ._definition import JsonSchema
from ._json import cut
from ._plain_types import is_plain
from ._signature import type_name
from .errors import FieldIssue, ToolOutputError

__all__ = ["Output"]


class Output:
    """Encode the outputs of one tool.

    Attributes:
        type: The declared type, or None where anything goes.
    """

    __slots__ = ("_adapter", "_is_plain", "_serialize", "_validate", "type")

    def __init__(self, output_type: Any) -> None:
        self.type = output_type
        self._adapter: TypeAdapter[Any] | None = None
        self._validate: Any = None
        self._serialize: Any = None
        self._is_plain = is_plain(output_type)

    def _build(self) -> Any:
        output_type = self.type
        if is_model(output_type):
            self._serialize = output_type.__pydantic_serializer__.to_json
            self._validate = output_type.__pydantic_validator__.validate_python
        else:
            adapter = self.adapter
            self._serialize = adapter.serializer.to_json
            self._validate = adapter.validator.validate_python
        return self._validate

    def check(self) -> None:
        """Make sure that the type can be validated and encoded.

        Raises:
            PydanticUserError: It has no schema.
        """
        if not (self.type is None or self._is_plain or is_model(self.type)):
            self.adapter  # noqa: B018 - made now, and kept

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's adapter of the type, made on first use."""
        if self._adapter is None:
            self._adapter = TypeAdapter(self.type)
        return self._adapter

    def encode(self, tool: str, value: Any) -> str:
        """Return the output as JSON text.

        Raises:
            ToolOutputError: It does not fit the declared type, or has no JSON form.
        """
        try:
            if self.type is None:
                return to_json(value, inf_nan_mode="null").decode()
            validate = self._validate
            if validate is None:
                validate = self._build()
            valid = validate(value)
            # An instance of a model is taken as it is, whatever its fields were set to: only its
            # serializer looks. That is slow, and not needed where validation looked at all of it.
            if self._is_plain:
                return self._serialize(valid, warnings=False).decode()  # type: ignore[no-any-return]
            text: bytes = self._serialize(valid, warnings="error")
        except ValidationError as error:
            raise self._refuse(tool, field_issues(error)) from error
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise self._refuse(tool, self._issues_of(value, error)) from error
        return text.decode()

    def _issues_of(self, value: Any, error: Exception) -> tuple[FieldIssue, ...]:
        """Find the field: pydantic's serializer often knows the value only."""
        if isinstance(value, BaseModel) and self._validate is not None:
            try:
                self._validate(fields_of(value))
            except ValidationError as found:
                return field_issues(found)
        return (FieldIssue("", cut(" ".join(str(error).split()), 300)),)

    def _refuse(self, tool: str, issues: tuple[FieldIssue, ...]) -> ToolOutputError:
        fit = "has no JSON form"
        if self.type is not None:
            fit = f"does not fit its output type `{type_name(self.type)}`"
        listed = "; ".join(str(issue) for issue in issues)
        return ToolOutputError(
            f"The output of tool `{tool}` {fit}: {listed}. Return what the tool declares, or "
            "correct the declared type.",
            tool=tool,
            fields=issues,
        )

    def validate_json(self, text: str) -> Any:
        """Read an output that came as JSON text, such as a decision that stands for a result."""
        if self.type is None:
            anything: TypeAdapter[Any] = TypeAdapter(Any)
            return anything.validate_json(text)
        return self.adapter.validate_json(text)

    def json_schema(self) -> JsonSchema | None:
        """Give the JSON schema of the output; None where the type says nothing or has none."""
        if self.type is None:
            return None
        from pydantic.errors import PydanticInvalidForJsonSchema

        from ._json_schema import json_schema_of

        try:
            return json_schema_of(self.adapter, "serialization")
        except PydanticInvalidForJsonSchema:
            return None
