"""Turn the raw argument text of a call into its typed input.

The straight way is one call of pydantic's JSON validator. Everything that models get wrong in ways
that leave no doubt about the meaning is mended off that way, after validation failed:

- nothing at all, blanks and `null` mean `{}`;
- an object or array that came as a string of JSON is read, where a string is not accepted;
- `null` for a field that may be left out, but has no null, means left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from ._definition import JsonSchema
from ._json import compact_json, parse_json, shorten
from .errors import FieldIssue

__all__ = ["Arguments", "field_issues"]

_EMPTY = "{}"
_MAX_ISSUES = 20
_MAX_MENDING = 4
_WANTS_CONTAINER = frozenset(
    {
        "dataclass_type",
        "dict_type",
        "frozen_set_type",
        "iterable_type",
        "list_type",
        "mapping_type",
        "model_attributes_type",
        "model_type",
        "set_type",
        "tuple_type",
    }
)


class Arguments:
    """Decode, check and encode the input of one tool.

    Attributes:
        type: The input type: a pydantic model, a dataclass or a `TypedDict`.
        validate_json: Text to input, straight; raises pydantic's `ValidationError`.
    """

    __slots__ = ("_documented", "_serializer", "_validator", "adapter", "type", "validate_json")

    def __init__(
        self,
        input_type: Any,
        *,
        strict: bool = False,
        documented: tuple[type[BaseModel], ...] = (),
    ) -> None:
        self.type = input_type
        self._documented = documented
        self.adapter: TypeAdapter[Any] | None = None
        if _owns_extra_policy(input_type) and not strict:
            self._validator = input_type.__pydantic_validator__
            self._serializer = input_type.__pydantic_serializer__
        else:
            self.adapter = TypeAdapter(_Closed.around(input_type, strict=strict))
            self._validator = self.adapter.validator
            self._serializer = self.adapter.serializer
        self.validate_json: Callable[[str], Any] = self._validator.validate_json

    def decode(self, text: str) -> tuple[Any, tuple[str, ...]]:
        """Read the text.

        Returns:
            The input, and the paths of the places that had to be mended.

        Raises:
            ValidationError: The text does not fit, and no mending helps.
        """
        try:
            value, mended = self.validate_json(text), ()
        except ValidationError as error:
            value, mended = self._mend(text, error)
        # The JSON parser lets NaN and infinities through where a field takes anything.
        if "NaN" in text or "Infinity" in text:
            try:
                parse_json(text)
            except ValueError as error:
                raise _invalid_json(self.type, text, error) from None
        return value, mended

    def _mend(self, text: str, error: ValidationError) -> tuple[Any, tuple[str, ...]]:
        if text.strip() in ("", "null"):
            return self.validate_json(_EMPTY), ()
        try:
            data = from_json(text)
        except ValueError:
            raise error from None
        paths: list[str] = []
        failed = error
        for _ in range(_MAX_MENDING):
            mended = _mend_places(data, failed, self.json_schema())
            if not mended:
                break
            paths += mended
            try:
                return self.validate_json(compact_json(data)), tuple(paths)
            except ValidationError as again:
                failed = again
            except ValueError:
                break
        raise error

    def check(self, value: Any) -> Any:
        """Validate an input that a program made, through its fields.

        An instance of a model is taken apart first, because pydantic takes an instance as it is,
        also where a field of it was set to something else.

        Raises:
            ValidationError: It does not fit.
        """
        if isinstance(value, BaseModel):
            return self._validator.validate_python(_fields_of(value), by_alias=True, by_name=True)
        return self._validator.validate_python(value)

    def to_data(self, value: Any) -> Any:
        """Give an input as the plain JSON data that would decode to it."""
        return self._serializer.to_python(value, mode="json", by_alias=True, round_trip=True)

    def json_schema(self) -> JsonSchema:
        """Give the JSON schema of the input, without titles that only repeat names."""
        from ._json_schema import describe_fields, json_schema_of

        schema = json_schema_of(self.type if self.adapter is None else self.adapter)
        for model in self._documented:
            describe_fields(schema, model)
        if self.adapter is not None and "properties" in schema:
            schema["additionalProperties"] = False
        return schema


def _owns_extra_policy(input_type: Any) -> bool:
    return (
        isinstance(input_type, type)
        and issubclass(input_type, BaseModel)
        and (input_type.model_config.get("extra") is not None or input_type.__pydantic_root_model__)
    )


class _Closed:
    """Refuse unknown arguments at the top level of a type that does not say what to do with them.

    The author's class stays as it is: only the schema of this one use of it is another.
    """

    @classmethod
    def around(cls, input_type: Any, *, strict: bool) -> Any:
        from typing import Annotated

        return Annotated[input_type, cls(strict)]

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return self._close(handler.resolve_ref_schema(handler(source)))

    def _close(self, schema: Any) -> Any:
        kind = schema["type"]
        closed = dict(schema)
        if self.strict and kind == "model":
            closed["config"] = {**schema.get("config", {}), "strict": True}
        if kind in ("model-fields", "typed-dict", "dataclass-args"):
            closed.setdefault("extra_behavior", "forbid")
            if kind == "dataclass-args":
                # A dataclass always states its policy; "ignore" is what it has by default.
                closed["extra_behavior"] = "forbid"
            return closed
        if isinstance(schema.get("schema"), Mapping):
            closed["schema"] = self._close(schema["schema"])
        closed.pop("ref", None)
        return closed


def _fields_of(value: Any) -> Any:
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        if value.__pydantic_root_model__:
            return _fields_of(fields["root"])
        return {name: _fields_of(part) for name, part in fields.items()}
    if type(value) is list:
        return [_fields_of(part) for part in value]
    if type(value) is tuple:
        return tuple(_fields_of(part) for part in value)
    if type(value) is dict:
        return {key: _fields_of(part) for key, part in value.items()}
    return value


def _mend_places(data: Any, error: ValidationError, schema: JsonSchema) -> list[str]:
    """Mend what can be mended in place; return the paths of those places."""
    mended: list[str] = []
    for entry in error.errors(include_url=False, include_context=False):
        steps, parent, value = _walk(data, entry["loc"])
        if not steps:
            continue
        if isinstance(value, str) and entry["type"] in _WANTS_CONTAINER:
            try:
                value = parse_json(value)
            except ValueError:
                continue
            if not isinstance(value, dict | list):
                continue
            parent[steps[-1]] = value
        elif value is None and _may_be_left_out(schema, steps):
            del parent[steps[-1]]
        else:
            continue
        mended.append(_path(steps))
    return mended


def _walk(data: Any, loc: Sequence[int | str]) -> tuple[list[int | str], Any, Any]:
    """Follow a location as far as it leads in the data: the rest names branches of a union."""
    steps: list[int | str] = []
    parent: Any = None
    for step in loc:
        if isinstance(data, dict) and step in data:
            parent, data = data, data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            parent, data = data, data[step]
        elif isinstance(data, dict | list):
            continue
        else:
            break
        steps.append(step)
    return steps, parent, data


def _may_be_left_out(root: JsonSchema, steps: Sequence[int | str]) -> bool:
    """Whether the place is a field that is not required: an entry of a mapping is not one."""
    schemas = _branches(root, [root])
    for step in steps[:-1]:
        inner: list[Any] = []
        for schema in schemas:
            if isinstance(step, int):
                inner += [schema.get("items"), *schema.get("prefixItems", ())[step : step + 1]]
            else:
                inner.append(schema.get("properties", {}).get(step))
                inner.append(schema.get("additionalProperties"))
        schemas = _branches(root, inner)
    last = steps[-1]
    return any(
        last in schema.get("properties", ()) and last not in schema.get("required", ())
        for schema in schemas
    )


def _branches(root: JsonSchema, schemas: list[Any]) -> list[JsonSchema]:
    """List what the schemas may stand for, references and unions opened."""
    opened: list[JsonSchema] = []
    waiting = [schema for schema in schemas if isinstance(schema, dict)]
    seen: set[str] = set()
    while waiting:
        schema = waiting.pop()
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            waiting.append(root.get("$defs", {}).get(reference.rpartition("/")[2], {}))
        for key in ("anyOf", "oneOf", "allOf"):
            waiting += schema.get(key, ())
        opened.append(schema)
    return opened


def _path(loc: Sequence[int | str]) -> str:
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if len(step) <= 80 else step[:80] + "…"
            text += f".{name}" if text else name
    return text


def field_issues(
    error: ValidationError, *, known: Sequence[str] = (), redact: bool = False
) -> tuple[FieldIssue, ...]:
    """Say for each failing field where it is, what was expected and what came.

    Args:
        error: What pydantic found.
        known: The names of the top-level fields, to suggest one for an unknown name.
        redact: Hide what came.
    """
    entries = error.errors(include_url=False, include_context=False)
    issues: list[FieldIssue] = []
    for entry in entries[:_MAX_ISSUES]:
        kind, loc = entry["type"], entry["loc"]
        path, message, value = _path(loc), entry["msg"], entry["input"]
        received: str | None = shorten(value)
        if kind == "missing":
            message, received = "this field is required", None
        elif kind == "extra_forbidden":
            message = "there is no such field"
            if len(loc) == 1:
                message += _instead(str(loc[0]), known)
        issues.append(FieldIssue(path, message, None if redact else received))
    if len(entries) > _MAX_ISSUES:
        issues.append(FieldIssue("", f"and {len(entries) - _MAX_ISSUES} more"))
    return tuple(issues)


def _instead(name: str, known: Sequence[str]) -> str:
    from ._suggestion import did_you_mean

    near = did_you_mean(name, known)
    if near is not None:
        return f"; did you mean `{near}`?"
    return "; the fields are " + ", ".join(f"`{field}`" for field in known) if known else ""


def _invalid_json(input_type: Any, text: str, error: ValueError) -> ValidationError:
    return ValidationError.from_exception_data(
        getattr(input_type, "__name__", "arguments"),
        [{"type": "json_invalid", "loc": (), "input": text, "ctx": {"error": str(error)}}],
        "json",
    )
