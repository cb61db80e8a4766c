"""Check a tool's output against its declared type, and encode it.

JSON has neither NaN nor infinities, and pydantic writes a null in their place without a word. So
text that has a null in it is laid beside the value, and refused where a number was lost. Only types
that may hold such a number are looked at, and only if the trace of one is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaValidator, from_json, to_json

from .._text.json import (
    MOST_DIGITS,
    cut,
    has_long_number,
    is_array,
    is_object,
    parse_json,
    sendable_json,
    shorten,
)
from ..errors import FieldIssue, ToolOutputError
from .arguments import fields_of, same
from .read_back import is_faithful, reader_of, schema_parts
from .signature import is_model, is_plain, parts_of, text_in, type_name

if TYPE_CHECKING:
    from .schema_reader import JsonSchema

_NO_NUMBERS = frozenset({bool, int, str, NoneType})
_TOO_MANY_DIGITS: Final = (
    f"an integer in it has more than {MOST_DIGITS:,} digits, which Python refuses to read; give "
    "it as a text, as in `hex(number)`"
)
_HALF_A_KEY: Final = (
    "a key in it holds half of a surrogate pair, which UTF-8 cannot carry; "
    "`key.encode(errors='backslashreplace').decode()` writes it otherwise"
)
_NOT_FINITE: Final = "JSON has neither NaN nor infinities; give None or a text in its place"
# What a value of these kinds is written as cannot be told from the schema.
_OPEN_KINDS = frozenset({"any", "float", "function-plain", "generator", "is-instance"})


class Output:
    """Encode the outputs of one tool.

    Attributes:
        type: The declared type, or None if anything goes.
    """

    __slots__ = (
        "_adapter",
        "_is_plain",
        "_mode",
        "_reader",
        "_serialize",
        "_trace",
        "_validate",
        "type",
    )

    def __init__(self, output_type: object) -> None:
        self.type: Any = output_type
        self._adapter: TypeAdapter[Any] | None = None
        self._validate: Callable[[object], Any] | None = None
        self._serialize: Callable[..., bytes]
        self._reader: SchemaValidator
        self._is_plain = is_plain(output_type)
        # Stands in the text wherever a number was lost; None where the type has no such number.
        self._trace: bytes | None = None
        self._mode = "python"

    def _build(self) -> Callable[[object], Any]:
        adapter = self.adapter
        # The names that the schema has, whatever a class's config says: those are the aliases.
        self._serialize = partial(adapter.serializer.to_json, by_alias=True)
        self._reader = reader_of(adapter)
        validate: Callable[[object], Any] = self._reader.validate_python
        # Worked out once for each type: an output of `list[str]` has no number that could be lost.
        self._trace, self._mode = _trace_of(adapter.core_schema)
        if not is_faithful(adapter.core_schema):
            validate = self._as_it_is
        self._validate = validate  # last: whoever finds it takes all for made
        return validate

    def check(self) -> None:
        """Make sure that the type can be validated and encoded.

        Raises:
            PydanticUserError: It has no schema.
        """
        if not (self.type is None or self._is_plain or is_model(self.type)):
            self.adapter  # noqa: B018 - made now, and kept

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's adapter of the type, or of any, made on first use."""
        if self._adapter is None:
            self._adapter = TypeAdapter(Any if self.type is None else self.type)
        return self._adapter

    def encode(self, tool: str, value: Any) -> str:
        """Return the output as JSON text; half of a surrogate pair in it becomes U+FFFD.

        Raises:
            ToolOutputError: It does not fit the declared type, or has no JSON form.
        """
        try:
            valid = value if self.type is None else (self._validate or self._build())(value)
            try:
                return self._written(tool, valid)
            except (PydanticSerializationError, UnicodeEncodeError) as error:
                # What can be gone through only once is gone by now.
                if "surrogates not allowed" not in str(error) or isinstance(valid, Iterator):
                    raise
                return self._mended(tool, valid)
        except ValidationError as error:
            from .field_issues import field_issues

            raise self._refuse(tool, field_issues(error)) from error
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise self._refuse(tool, self._issues_of(value, error)) from error

    def _written(self, tool: str, valid: Any) -> str:
        if self.type is None:
            loose = to_json(valid, inf_nan_mode="null")
            # pydantic writes `null` for NaN. Most outputs have no null in their text, so
            # nothing can be lost there, and the value need not be gone through.
            if valid.__class__ not in _NO_NUMBERS and b"null" in loose:
                plain = self.adapter.dump_python(valid, by_alias=True, warnings=False)
                self._refuse_lost(tool, plain, loose)
            return self._readable(tool, loose)
        # An instance of a model is taken as it is, whatever its fields were set to: only its
        # serializer looks. That is slow, and not needed where validation looked at all of it.
        text = self._serialize(valid, warnings=False if self._is_plain else "error")
        trace = self._trace
        if trace is not None and trace in text:
            write = self.adapter.serializer.to_python
            plain = write(valid, mode=self._mode, by_alias=True, warnings=False)
            self._refuse_lost(tool, plain, text)
        return text.decode() if len(text) <= MOST_DIGITS else self._readable(tool, text)

    # Such as the name of a file that is not UTF-8. The tool has run: the rest of its output counts.
    def _mended(self, tool: str, valid: Any) -> str:
        write = partial(self.adapter.serializer.to_python, valid, by_alias=True)
        is_checked = self.type is None or self._is_plain
        try:
            plain = sendable_json(write(mode="json", warnings=False if is_checked else "error"))
        except UnicodeEncodeError:  # it writes texts as they are
            raise self._refuse(tool, (FieldIssue("", _HALF_A_KEY),)) from None
        text = to_json(plain)
        self._refuse_lost(tool, write(mode=self._mode, warnings=False), text)
        return self._readable(tool, text)

    def _as_it_is(self, value: object) -> object:
        """Check an output, and never make another value of it that is of its type as well.

        What a tool gives is the value that a text stands for, such as bytes, and not the text of
        them: validators that read that text have no say about it.

        Raises:
            ValidationError: It does not fit.
        """
        try:
            valid = self._reader.validate_python(value)
        except ValidationError:
            if self._is_read_again(value):
                return value
            raise
        if valid is value or same(valid, value):
            return value
        try:
            self._serialize(value, warnings="error")
        except (PydanticSerializationError, ValueError, RecursionError):
            return valid  # of another type, as a dict for a model
        return value

    def _is_read_again(self, value: Any) -> bool:
        """Whether the text of an output gives it again."""
        try:
            text = self._serialize(value, warnings="error", round_trip=True)
            return same(self._reader.validate_json(text), value)
        except (ValueError, RecursionError):
            return False

    def _readable(self, tool: str, text: bytes) -> str:
        """Refuse a text that no parser here would read again; all others are as they are."""
        decoded = text.decode()
        if has_long_number(text):
            try:
                parse_json(decoded)  # the digits may be a text's
            except ValueError:
                raise self._refuse(tool, (FieldIssue("", _TOO_MANY_DIGITS),)) from None
        return decoded

    def _refuse_lost(self, tool: str, plain: object, text: bytes) -> None:
        """Refuse an output of which a number was lost: JSON has neither NaN nor infinities."""
        lost = _lost_number(plain, from_json(text), ())
        if lost is not None:
            raise self._refuse(tool, (lost,))

    def _issues_of(self, value: Any, error: Exception) -> tuple[FieldIssue, ...]:
        """Find the field: pydantic's serializer often knows the value only."""
        if isinstance(value, BaseModel) and self._validate is not None:
            try:
                self._validate(fields_of(value))
            except ValidationError as found:
                from .field_issues import field_issues

                return field_issues(found)
        return (FieldIssue("", cut(" ".join(str(error).split()), 300)),)

    def _refuse(
        self, tool: str, issues: tuple[FieldIssue, ...], fit: str = "has no JSON form"
    ) -> ToolOutputError:
        remedy = "Return texts, numbers, lists, dicts, dataclasses or pydantic models"
        if self.type is not None:
            fit = f"does not fit its output type `{type_name(self.type)}`"
            remedy = "Return what the tool declares, or correct the declared type"
        listed = "; ".join(str(issue) for issue in issues)
        return ToolOutputError(
            f"The output of tool `{tool}` {fit}: {listed}. {remedy}.",
            tool=tool,
            fields=issues,
        )

    def validate_json(self, text: str) -> Any:
        """Read an output that came as JSON text, such as a decision that stands for a result."""
        if self._validate is None:
            self._build()
        return self._reader.validate_json(text)

    def json_schema(self) -> JsonSchema | None:
        """Return the JSON schema of the output; None if the type says nothing or has none."""
        if self.type is None:
            return None
        from pydantic.errors import PydanticInvalidForJsonSchema

        from .json_schema import output_schema_of

        try:
            schema = output_schema_of(self.adapter, self.type)
        except PydanticInvalidForJsonSchema:
            return None
        about = text_in(parts_of(self.type))
        return schema if about is None else {**schema, "description": about}


def _trace_of(core_schema: object) -> tuple[bytes | None, str]:
    """Say what an encoded output has in it wherever a NaN or an infinity may have been.

    Pydantic writes them as null, and as words that are not JSON where a type's config says so.

    Returns:
        The trace, and in which mode the serializer shows what there was: one that the author wrote
        for JSON alone has to have its say.
    """
    from .closed_schema import keeps_extra

    # `b"null"` for a type with floats, `None` for `list[str]`, and the empty text, which is found
    # in every output, where NaN is written as a word.
    trace: bytes | None = None
    mode = "python"
    for part in schema_parts(core_schema):
        # What may be written of a number that JSON does not have.
        is_open = part["type"] in _OPEN_KINDS or "serialization" in part or keeps_extra(part)
        if part.get("config", {}).get("ser_json_inf_nan") == "constants":
            trace = b""
        elif trace is None and is_open:
            trace = b"null"
        if str(part.get("serialization", {}).get("when_used")).startswith("json"):
            mode = "json"
    return trace, mode


def _lost_number(plain: object, written: object, loc: tuple[int | str, ...]) -> FieldIssue | None:
    """Find a number that the text does not carry: it has a null there, or what is not JSON."""
    if isinstance(plain, float):
        if isfinite(plain) or isinstance(written, str):
            return None
        from .field_issues import path_of

        return FieldIssue(path_of(loc), _NOT_FINITE, shorten(plain))
    pairs: Iterable[tuple[int | str, object]] = ()
    others: Iterable[object] = ()
    if is_object(plain) and is_object(written):
        pairs, others = ((str(key), part) for key, part in plain.items()), written.values()
    elif isinstance(plain, list | tuple | set | frozenset) and is_array(written):
        pairs, others = enumerate(cast("Iterable[Any]", plain)), written
    for (key, part), other in zip(pairs, others, strict=False):
        if lost := _lost_number(part, other, (*loc, key)):
            return lost
    return None
