"""Turn the raw argument text of a call into its typed input.

The straight way is one call of pydantic's JSON validator. Everything that models get wrong in ways
that leave no doubt about the meaning is coerced off that way, after validation failed:

- nothing at all, blanks and `null` mean `{}`;
- an object or array that came as a string of JSON is read, if a string is not accepted;
- `null` for a field that may be left out, but has no null, means left out;
- the stand-in for the key of a field, which went out since the provider refuses the key, means it.

Numbers that JSON cannot carry (NaN, infinities, and `1e400`, which becomes one) are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, SchemaSerializer, from_json

from .._text.json import compact_json, infinity_in, is_object
from .._text.on_demand import ONCE
from .._text.unicode import sendable
from .plain_types import is_fixed, is_model
from .read_back import wire_serializer
from .schema_reader import below, branches, meant_by_name
from .stand_in import OwnNames

if TYPE_CHECKING:
    from .closed_schema import Closing
    from .schema_reader import JsonSchema
    from .secrets import Masking

# Some hosts send a text that is empty, or `null`, for a tool without parameters, and a few the JSON
# of an empty text.
NO_ARGUMENTS = frozenset({"", "null", '""'})
"""What models write for no arguments at all."""

_EMPTY = "{}"
_MAX_MENDING = 4


class Arguments:
    """Decode, check and encode the input of one tool.

    Args:
        input_type: The input type, perhaps with annotations.
        strict: Take the fields of the top level without coercion.
        is_plain: Whether it is a model of ours with fields of plain types, which needs no change.

    Attributes:
        type: The input type: a pydantic model, a dataclass or a `TypedDict`.
        is_plain: Whether it has fields of plain types only, as a model of ours.
        is_exact: Whether pydantic's JSON holds all of an input, and is the same of equal ones.
        keeps_names: Whether the keys of what `to_data` gives are those of the wire, of every input.
        reads_same: Whether a text gives an equal input whenever it is read.
        skipped: The names of the fields that lead to a `Skip()`, which hides none; None if there is
            none.
        validate_json: Text to input, straight; raises pydantic's `ValidationError`.
    """

    _schema: JsonSchema | None = None
    """The schema where there is one already; None where it is made of the type."""
    _masking: Masking | None = None
    about: str = ""
    """What the schema of the input has as its description."""

    def __init__(
        self,
        input_type: Any,
        *,
        strict: bool = False,
        is_plain: bool = False,
    ) -> None:
        from .closed_schema import close_top, take_as_is

        plain = input_type
        while get_origin(plain) is Annotated:
            plain = get_args(plain)[0]
        self.type: Any = plain
        self._is_union = is_model(plain) and plain.__pydantic_root_model__
        self._coercing: JsonSchema | None = None
        taken = take_as_is(input_type) if is_plain else close_top(input_type, strict=strict)
        self._taken: Closing = taken
        self._validator = taken.validator
        self._serializer = taken.serializer
        self._whole = taken.whole
        self._wire: SchemaSerializer | None = None
        self.is_exact: bool = taken.is_exact
        self.keeps_back: bool = taken.whole is not None
        self.keeps_names: bool = not taken.renames
        self.reads_same: bool = taken.reads_same
        self.skipped: tuple[str, ...] | None = taken.skipped
        self.is_plain: bool = is_plain
        self.is_fixed: bool = is_model(input_type) and _is_frozen(input_type)
        self.validate_json: Callable[[str], Any] = self._validator.validate_json

    def coerce(self, text: str, error: ValidationError) -> tuple[Any, tuple[str, ...]]:
        """Read text that failed to validate, if it leaves no doubt about what is meant.

        Raises:
            ValidationError: The error that is given, if no coercing helps.
        """
        from .coerced_arguments import coerce_places, container_in

        # Only after validation failed, so whatever a type itself takes, such as null, is never
        # coerced.
        if text.strip() in NO_ARGUMENTS:
            return self.validate_json(_EMPTY), ()
        data: Any = None  # in which nothing is coerced, as in a text that is no JSON
        with suppress(TypeError, ValueError):  # a lone surrogate is a TypeError
            data = from_json(text)
        data, paths = self.own_keys(data) if is_object(data) else (data, [])
        failed = error
        if isinstance(data, str) and is_object(inner := container_in(data)):
            data, paths = inner, [""]
        elif self._is_union and is_object(data) and data.keys() == {"value"}:
            # A provider's strict mode takes no union at the root: dialects offer it in `value`.
            data, paths = data["value"], ["value"]
        # Again and again, since one thing may hide behind another: `{"filter": "{\"limit\":
        # null}"}` first fails for `filter`, which is a text, and once that is read, for its
        # `limit`.
        for _ in range(_MAX_MENDING):
            coerced = coerce_places(data, failed, self._coercing_schema)
            if not coerced and not (paths and failed is error):
                break
            paths += coerced
            try:
                return self.validate_json(compact_json(data)), tuple(paths)
            except ValidationError as again:
                failed = again
            except ValueError:
                break
        try:
            raise error
        finally:
            del error, failed  # else its traceback would hold this frame, and this frame the error

    def own_keys(self, data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Put the keys of the schema where data has their stand-ins; say where."""
        known = OwnNames(self._coercing_schema().get("properties", ()))
        own = {key: known.own(key) for key in data}
        renamed = [name for key, name in own.items() if key != name]
        return ({own[key]: value for key, value in data.items()} if renamed else data), renamed

    def _coercing_schema(self) -> JsonSchema:
        if self._coercing is None:
            self._coercing = self.json_schema()
        return self._coercing

    def check(self, value: Any, *, by_name: bool = False) -> Any:
        """Validate an input that a program made, through its fields.

        An instance of a model or dataclass is taken apart first, because pydantic takes an instance
        as it is, also if a field of it was set to something else.

        Args:
            value: The input.
            by_name: Whether it is a dict of fields by their names, not by those of the wire.

        Raises:
            ValidationError: It does not fit.
        """
        # `User(age=5)` whose `age` was set to "old" passes pydantic as it is, since its class has
        # checked it once. Taken apart, each field is checked as if it came over the wire.
        parts = fields_of(value)
        if parts is not value:
            checked = self._validator.validate_python(parts, by_alias=True, by_name=True)
        elif by_name:
            checked = self._validator.validate_python(
                _rechecked(value), by_alias=True, by_name=True
            )
        else:
            checked = self._validator.validate_python(_rechecked(value))
        if self._taken.bounded:
            # What is inside was checked by its own class, which may let them through.
            found = infinity_in(self._serializer.to_python(checked, by_alias=self.keeps_names))
            if found is not None:
                loc, number = found
                raise ValidationError.from_exception_data(
                    self.type.__name__, [{"type": "finite_number", "loc": loc, "input": number}]
                )
        return checked

    def to_data(self, value: Any) -> Any:
        """Return an input as the plain JSON data from which `from_data` makes it again.

        The keys are those of the wire. Two exceptions: where the type reads one name and writes
        another they are the names of the fields, and a default that JSON cannot carry is left out.

        Equal inputs give equal data in every process: what comes of a set is sorted. What pydantic
        masks, such as a `SecretStr`, is there as it is.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        data = self._plain(value) if self._whole is None else self._in_full(value)
        return self._exact(data, value)

    def to_wire(self, value: Any) -> Any:
        """Return an input as `to_data` does, under the names by which a model sends it.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        if self.keeps_names:
            return self.to_data(value)
        if self._wire is None:
            source: Any = self._taken.source
            slot = "__pydantic_core_schema__" if is_model(source) else "core_schema"
            self._wire = wire_serializer(getattr(source, slot))
        data = self._wire.to_python(
            value, mode="json", by_alias=True, round_trip=True, warnings=False
        )
        return self._exact(data, value)

    def _exact(self, data: Any, value: Any) -> Any:
        if self.is_exact:
            return data
        from .exact_data import exact_data

        return exact_data(data, value)

    def masked(self, value: Any) -> Any:
        """Copy an input as plain JSON data with what is secret in it masked; see `ToolSpec.shown`.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        # A warning of pydantic's would quote what it warns of.
        return self.masking.masked(self._plain(value, warnings=not self.masking.found))

    @property
    def masking(self) -> Masking:
        """What is secret in the input."""
        if self._masking is None and self._schema is not None:
            from .secrets import Masking

            self._masking = Masking(self._schema)
        elif self._masking is None:
            from .json_schema import masking_of

            self._masking = masking_of(self._taken.source)
        return self._masking

    # A model is told one name of each parameter, may send others, and `to_data` writes one. So
    # whatever goes by a name that a program wrote (a policy, an effect, a rule) looks it up here.
    def keys_of(self, name: str) -> dict[str, list[str]]:
        """Return the keys by which `to_data` has what a name may mean; none if no parameter has it.

        Args:
            name: Any name of a parameter: its own, one that a model may send, or one that it is
                written under.

        Returns:
            For each key the names of the fields that it may be of.
        """
        found: dict[str, list[str]] = {}
        root = self.named_schema
        for part in branches(root, [root]):
            for field, told, _ in meant_by_name(part, name):
                found.setdefault(field if self.goes_by_fields else told, []).append(field)
        return found

    def may_have(self, name: str) -> bool:
        """Whether an input may have an argument of a name; yes where a schema leaves it open."""
        root = self.named_schema
        is_open = self._schema is not None and root.get("additionalProperties") is not False
        return is_open or any(below(part, name) for part in branches(root, [root]))

    def values_of(self, data: Any, name: str) -> list[Any]:
        """Return what the data of an input has of the parameter with a name, or by that key."""
        keys = self.keys_of(name) or (name,)
        return [data[key] for key in keys if key in data] if is_object(data) else []

    def schema_at(self, key: str) -> Any:
        """Return the schema of what `to_data` has at a key; None where there is not just one."""
        meant = meant_by_name(self.named_schema, key)
        found = [
            schema
            for field, told, schema in meant
            if key == (field if self.goes_by_fields else told)
        ]
        return found[0] if len(found) == 1 else None

    @property
    def named_schema(self) -> JsonSchema:
        """The schema of the input, with all names of each field."""
        schema: JsonSchema = self.masking.root
        return schema

    @property
    def goes_by_fields(self) -> bool:
        """Whether the keys of what `to_data` gives are the names of fields, not of the wire."""
        return self._schema is None and not self.keeps_names

    def _plain(self, value: Any, *, warnings: bool = True) -> Any:
        try:
            # A default may have no JSON form, as `float("inf")` or an open file. Left out, it comes
            # back as the default when the data is read.
            data = self._dump(value, warnings=warnings)
            if infinity_in(data) is None:
                return data
        except PydanticSerializationError:
            pass
        return self._dump(value, exclude_unset=True, warnings=warnings)

    # A person is not shown what the author leaves out of what is written, as a password by
    # `Field(exclude=True)`; what is kept has it, else the tool would get the default.
    def _in_full(self, value: Any, *, warnings: bool = True) -> Any:
        with suppress(PydanticSerializationError):  # of what has no JSON form, as a connection
            data = self._dump(value, by=self._whole, warnings=warnings)
            if infinity_in(data) is None:
                return data
        return self._plain(value, warnings=warnings)

    def from_data(self, data: Any) -> Any:
        """Make an input of what `to_data` gave.

        Raises:
            ValidationError: It does not fit.
        """
        return self._validator.validate_json(compact_json(data), by_alias=True, by_name=True)

    def to_text(self, value: Any) -> bytes | None:
        """Write an input as JSON, so that one that was changed in place is told by its text.

        Returns:
            What `from_text` makes the input of again; None if it has no JSON form.
        """
        try:
            try:
                if self._whole is None:
                    text: bytes = self._serializer.to_json(
                        value, by_alias=self.keeps_names, round_trip=True, warnings=False
                    )
                    if self.is_exact and b"null" not in text:
                        return text
                    # What is masked, has no order, or is a number that JSON has not, differs now.
                    if from_json(text) == self._dump(value, mode="python", warnings=False):
                        return text
            except PydanticSerializationError:
                pass  # of a default, perhaps, which is left out
            take = self._plain if self._whole is None else self._in_full
            data = self._exact(take(value, warnings=False), value)
            return compact_json(data).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError):
            return None

    def from_text(self, text: bytes) -> Any:
        """Make an input of what `to_text` gave.

        Raises:
            ValidationError: It does not fit.
        """
        return self._validator.validate_json(text, by_alias=True, by_name=True)

    def _dump(
        self,
        value: Any,
        *,
        by: SchemaSerializer | None = None,
        mode: str = "json",
        exclude_unset: bool = False,
        warnings: bool = True,
    ) -> Any:
        return (by or self._serializer).to_python(
            value,
            mode=mode,
            by_alias=self.keeps_names,
            round_trip=True,
            exclude_unset=exclude_unset,
            warnings=warnings and self._taken.warns,
        )

    def json_schema(self) -> JsonSchema:
        """Return the JSON schema of the input, without titles that only repeat names."""
        if self._schema is not None:
            return self._schema
        from .json_schema import input_schema_of

        schema = input_schema_of(self._taken.source)
        if self._taken.closed and "properties" in schema:
            schema["additionalProperties"] = False
        return {**schema, "description": self.about} if self.about else schema


# The schema of `(city: str, days: int = 1)` can be written without pydantic, and a program may
# never see a call of the tool. So the model, which costs most of a declaration, waits for the first
# call.
class PlainArguments(Arguments):
    """Decode the input of a tool whose schema needs no model: that is made with the first call.

    Args:
        schema: The JSON schema, which nobody changes.
        make: Makes the model, whose fields are of plain types.
    """

    def __init__(self, schema: JsonSchema, make: Callable[[], type[Any]]) -> None:
        self._schema = schema
        self._make = make
        self._is_made = False
        self.is_plain = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            with ONCE:
                if not self._is_made:
                    super().__init__(self._make(), is_plain=True)
                    self._is_made = True
            return object.__getattribute__(self, name)


def _is_frozen(model: type[BaseModel]) -> bool:
    """Whether nothing of an input can be changed in place, so that it need not be copied."""
    config = model.model_config
    return (
        bool(config.get("frozen"))
        and config.get("extra") != "allow"
        and not model.__private_attributes__
        and all(is_fixed(field.annotation) for field in model.model_fields.values())
    )


def fields_of(value: Any) -> Any:
    """Take an instance apart: one level, what is inside was checked by its own class."""
    if isinstance(value, BaseModel):
        parts = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        if value.__pydantic_root_model__:
            return _rechecked(parts["root"])
        return {name: _rechecked(part) for name, part in parts.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _rechecked(getattr(value, one.name)) for one in fields(value) if one.init}
    return value


def _rechecked(value: Any) -> Any:
    """Check a part by its own class, which it keeps; what fails is taken apart, to be reported.

    Half of a surrogate pair becomes U+FFFD, as in what a model sends: no saved text could hold it.
    """
    if isinstance(value, BaseModel):
        inner = fields_of(value)
        try:
            validator = type(value).__pydantic_validator__
            return validator.validate_python(inner, by_alias=True, by_name=True)
        except ValidationError:
            return inner
    kind = type(cast("object", value))
    if kind is str:
        return sendable(value)
    if kind is list:
        return [_rechecked(part) for part in value]
    if kind is tuple:
        return tuple(_rechecked(part) for part in value)
    if kind is dict:
        return {
            sendable(key) if key.__class__ is str else key: _rechecked(part)
            for key, part in cast("dict[Any, Any]", value).items()
        }
    return fields_of(value)
