"""Arguments that do not fit: coerced where there is no doubt, else listed field by field.

They are coerced only after validation failed, and only at the places where it failed: an object or
array that came as a string of JSON, and a `null` for a field that may be left out but has no null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from .._text.escaping import LINES, NearestNames, escape_unprintable, names_for_message, quoted
from .._text.json import cut, is_array, is_object, read_json, shorten
from ..errors import FieldIssue
from .schema_reader import JsonSchema, below, branches, localized, types_in
from .secrets import MASK, Masking

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


def coerce_places(
    data: object,
    error: ValidationError,
    schema: Callable[[], JsonSchema],
    masking: Callable[[], Masking],
) -> list[str]:
    """Coerce what can be coerced in place; return the paths of those places, without secrets."""
    coerced: list[str] = []
    for entry in error.errors(include_url=False, include_context=False):
        steps, parent, value = _walk(data, entry["loc"])
        if not steps:
            continue
        # `{"tags": "[\"a\"]"}` failed because a list was wanted and a text came: the text is the
        # list, and there is no other way to read it. A number in a text is left alone: "12" may be
        # a name.
        if isinstance(value, str) and entry["type"] in _WANTS_CONTAINER:
            container = container_in(value)
            if container is None:
                continue
            parent[steps[-1]] = container
        elif value is None and _may_be_left_out(schema(), steps):
            del parent[steps[-1]]
        else:
            continue
        coerced.append(path_of(masking().without_keys(steps, all_keys=False)))
    return coerced


def container_in(text: str) -> Any:
    """Read an object or array out of a string; None if it holds neither."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if is_object(value) or is_array(value) else None


def _walk(data: Any, loc: Sequence[int | str]) -> tuple[list[int | str], Any, Any]:
    """Follow a location as far as it leads in the data: the rest names branches of a union."""
    steps: list[int | str] = []
    parent: Any = None
    for step in loc:
        if is_object(data) or is_array(data):
            known: Any = data if is_object(data) else range(len(data))
            # pydantic writes ("filters", 0, "Range", "low") where `Range` is a member of a union:
            # what is not a key of the data is passed over.
            if step in known:
                parent, data = data, data[cast("Any", step)]
                steps.append(step)
        else:
            break
    return steps, parent, data


def _may_be_left_out(root: JsonSchema, steps: Sequence[int | str]) -> bool:
    """Whether the place is a field that is not required and has no null.

    An entry of a mapping or of an array is not a field.
    """
    root = localized(root)
    schemas = branches(root, [root])
    for step in steps[:-1]:
        schemas = branches(root, [part for schema in schemas for part in below(schema, step)])
    last = steps[-1]
    optional = [
        schema["properties"][last]
        for schema in schemas
        if last in schema.get("properties", ()) and last not in schema.get("required", ())
    ]
    return bool(optional) and not any(
        "null" in types_in(branch) for branch in branches(root, optional)
    )


def path_of(loc: Sequence[int | str]) -> str:
    """Write a place as in `filters[0].name`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = escape_unprintable(cut(step, 80))
            text += f".{name}" if text else name
    return cut(text, 200)


_MAX_ISSUES = 20
_NOT_ALLOWED = "Input is not what the tool allows here"
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_NO_TAG = "Unable to extract tag using discriminator "


@cache
def _kinds_without_values() -> frozenset[str]:
    """List the kinds of failures whose text pydantic makes of the schema alone.

    All other texts may quote what came: those of a validator's own errors, and some of pydantic's.
    """
    return frozenset(get_args(ErrorType)) - {
        "assertion_error",
        "bytes_invalid_encoding",
        "datetime_object_invalid",
        "get_attribute_error",
        "iteration_error",
        "mapping_type",
        "timezone_offset",
        "union_tag_invalid",
        "uuid_parsing",
        "value_error",
    }


def _may_quote(entry: ErrorDetails) -> bool:
    """Whether the text of a failure may repeat what came."""
    return entry["type"] not in _kinds_without_values() or "text" in entry.get("ctx", ())


def field_issues(
    error: ValidationError,
    *,
    known: Sequence[str] = (),
    redact: bool = False,
    masking: Masking | None = None,
) -> tuple[FieldIssue, ...]:
    """Say for each failing field where it is, what was expected and what came.

    Args:
        error: What pydantic found.
        known: The names of the top-level fields, to suggest one for an unknown name.
        redact: Hide what came, also in the words of a validator, and the keys of dictionaries.
        masking: What is secret, of which nothing is repeated in any case.
    """
    has_secrets = masking is not None and masking.found
    entries = error.errors(include_url=False, include_context=redact or has_secrets)
    issues: list[FieldIssue] = []
    names: NearestNames | None = None
    # A model that sends 500 wrong items needs to know of a few. All of them would fill its window.
    for entry in entries[:_MAX_ISSUES]:
        kind, loc = entry["type"], entry["loc"]
        message, value = entry["msg"], entry["input"]
        received: str | None = shorten(value)
        shown = loc
        hides = redact
        # The place of a failure may hold a key that a model wrote, as in `headers.sk-live-1`, and
        # so may the text of it: both are looked at before anything is said.
        if masking is not None and (redact or masking.found):
            hides = redact or _may_be_secret(masking, kind, loc, value)
            shown = masking.without_keys(loc, all_keys=redact)
        if kind in ("missing", "missing_argument"):
            message, received = "this field is required", None
        elif kind in _UNKNOWN:
            message = "there is no such field"
            if len(loc) == 1:
                names = names or NearestNames(known)
                message += _instead(names.nearest(str(loc[0])), known)
        elif message.startswith(f"{_NO_TAG}'"):  # the name of a field, not that of a function
            tag = message.removeprefix(_NO_TAG).replace("'", "`")
            message = f"the field {tag} is required: it tells which kind of object this is"
        elif hides and not redact and kind == "union_tag_invalid":
            said = entry.get("ctx", {})  # the tags are those of the schema, and not what came
            message = f"Input should have {said['discriminator']} as one of {said['expected_tags']}"
        elif hides and _may_quote(entry):
            message = _NOT_ALLOWED
        issues.append(
            FieldIssue(
                path_of(shown),
                escape_unprintable(cut(message, 400), LINES),
                None if hides else received,
            )
        )
    if len(entries) > _MAX_ISSUES:
        issues.append(FieldIssue("", f"and {len(entries) - _MAX_ISSUES} more"))
    return tuple(issues)


def _may_be_secret(masking: Masking, kind: str, loc: Sequence[int | str], value: object) -> bool:
    """Whether what came somewhere may be a secret, or hold one, also if that is out of place."""
    if is_object(value) or is_array(value) or kind in _UNKNOWN or masking.hides(loc):
        return True
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _instead(near: str | None, known: Sequence[str]) -> str:
    if near is not None:
        return f"; did you mean {quoted(near)}?"
    return f"; the fields are {names_for_message(known)}" if known else ""


def hidden(
    error: ValidationError, shown: Mapping[object, Callable[[Iterable[str]], tuple[str, ...]]]
) -> ValidationError:
    """Return an error of pydantic about calls without values, and with no key in its places.

    Args:
        error: What pydantic found. The first step of a place is a tool, the third an argument.
        shown: Shows names of the arguments of each tool, without secrets.
    """
    lines: list[InitErrorDetails] = []
    for entry in error.errors(include_url=False):
        said = _NOT_ALLOWED if _may_quote(entry) else entry["msg"]
        made = PydanticCustomError("hidden", "{said}", {"said": said})
        within, name = entry["loc"][:2], map(str, entry["loc"][2:3])
        told = shown[within[0]](name) if within and within[0] in shown else name
        lines.append({"type": made, "loc": (*within, *told), "input": MASK})
    return ValidationError.from_exception_data(error.title, lines)
