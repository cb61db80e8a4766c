"""Take an input type as arguments are to be taken, and leave the author's class as it is.

At its top level unknown arguments are refused, unless the type itself says what becomes of them;
at every level numbers are finite, and defaults are of their types. Only the core schema of this one
use of the type changes, and the validator that is built of that schema.
The idea: pydantic's core schema is a tree of plain dicts, so it is copied only along the ways that
lead to a change. The new validator is built of that copy alone: of what a class has finished for
itself pydantic would take in place of the changed part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticKnownError, SchemaSerializer, SchemaValidator
from pydantic_core.core_schema import CoreSchema, any_schema, no_info_after_validator_function

from .._text.immutable import dataclass
from .._text.json import infinity_in, is_object
from .read_back import (
    NO_SCHEMA,
    OBJECTS,
    Core,
    accepts,
    built,
    but,
    by_json_value,
    is_faithful,
    is_schema,
    schema_parts,
)
from .signature import SKIPPED, holds_skip, is_model

_FIELDS = frozenset({"dataclass-args", "model-fields", "typed-dict"})


@dataclass(frozen=True, slots=True)
class Closing:
    """Hold what reads and writes an input.

    Attributes:
        source: What the JSON schema is generated from.
        closed: Whether unknown arguments are refused although the type does not say so.
        bounded: Whether numbers are finite although the type does not say so.
        renames: Whether some field is read under one name and written under another.
        is_exact: Whether pydantic's JSON of an input holds all of it, and is the same of equal
            ones: nothing in the type is masked, without an order, or written in a way of its own.
        is_faithful: Whether what is written of an input is read as that input again, by
            construction; see `faithful`.
        holds_classes: Whether a program may put in what a text does not have, as an instance of a
            subclass.
        tracks_unset: Whether a model in it knows which of its fields were set.
        is_flat: Whether no other model in it does.
        warns: Whether pydantic may warn of what it writes; not where a list stands for an iterable,
            since a default may be another one.
        skipped: The place of a `Skip()`, which hides nothing in a schema: the names of fields; None
            if there is none.
    """

    source: type[BaseModel] | TypeAdapter[Any]
    validator: SchemaValidator
    serializer: SchemaSerializer
    closed: bool = False
    bounded: bool = False
    renames: bool = False
    is_exact: bool = True
    is_faithful: bool = True
    holds_classes: bool = False
    tracks_unset: bool = False
    is_flat: bool = False
    warns: bool = True
    skipped: tuple[str, ...] | None = None


def take_as_is(model: Any) -> Closing:
    """Take a generated model of plain fields: it already says what `close_top` would add."""
    factories = [field.default_factory for field in model.model_fields.values()]
    is_faithful = all(make in (None, list, dict) for make in factories)  # others may give anything
    validator, serializer = model.__pydantic_validator__, model.__pydantic_serializer__
    return Closing(model, validator, serializer, is_faithful=is_faithful)


def close_top(input_type: Any, *, strict: bool) -> Closing:
    """Make the validator and serializer of an input type.

    Args:
        input_type: A model, a dataclass or a `TypedDict`, perhaps with annotations.
        strict: Take fields without coercion, at every level.

    Raises:
        NameError: The type names something that is not defined yet.
        PydanticUserError: The type has no schema.
    """
    try:
        if is_model(input_type) and not input_type.__pydantic_complete__:
            input_type.model_rebuild(raise_errors=False)
            # Where something is missing all the same, this raises, and says in its text what.
            input_type.__pydantic_validator__.title  # noqa: B018
        adapter: TypeAdapter[Any] = TypeAdapter(input_type)
        core_schema: Core = adapter.core_schema
        taking = _Taking(core_schema, strict)
        changed = taking.changed(core_schema, _Around(is_top=True))
    except PydanticUserError as error:
        if error.code == "class-not-fully-defined":
            raise NameError(str(error), name=_name_in(str(error))) from error
        raise
    validator = cast("SchemaValidator", adapter.validator)
    serializer = adapter.serializer
    if changed is not core_schema:
        validator = built(SchemaValidator, changed, taking.classes)
    # What the author leaves out of what is written, by `Field(exclude=True)`, is written too: the
    # tool would get the default else, and a person would not see what the model has set.
    if taking.iterators or taking.excluded:
        serializer = built(SchemaSerializer, changed, taking.classes)
    parts = list(schema_parts(core_schema))
    skipped = _skipped_in(core_schema) if any(map(_is_skipped, parts)) else None
    if skipped is None and holds_skip(input_type):  # among what a generic class is given
        skipped = ()
    return Closing(
        source=input_type if is_model(input_type) else adapter,
        validator=validator,
        serializer=serializer,
        closed=taking.closed,
        bounded=taking.bounded,
        renames=any(map(_is_renamed, parts)),
        is_exact=all(map(_is_exact, parts)),
        is_faithful=is_faithful(core_schema),
        holds_classes=any(part["type"] in _OPEN for part in parts),
        tracks_unset=any(map(_tracks_unset, parts)),
        is_flat=core_schema["type"] == "model"
        and not core_schema.get("root_model")
        and sum(part["type"] == "model" for part in parts) == 1,
        warns=not taking.iterators,
        skipped=skipped,
    )


def _name_in(text: str) -> str:
    """Read the missing name from pydantic's text, "... you should define `Name`, then ..."."""
    return text.partition("should define `")[2].partition("`")[0] or "a type"


class _Around(NamedTuple):
    """What is said around a part of a core schema.

    Attributes:
        is_top: Whether the part is the input itself, and not a field of it.
        states_policy: Whether its class says what becomes of unknown fields.
        finite: Whether floats are finite by the config.
        allows: Whether unknown fields are kept by the config.
        validates_defaults: Whether pydantic validates defaults by the config, at each call.
    """

    is_top: bool = False
    states_policy: bool = False
    finite: bool = False
    allows: bool = False
    validates_defaults: bool = False


# The core schema of a model is nested like {"type": "model", "cls": Search, "schema": {"type":
# "model-fields", "fields": {"query": {"type": "model-field", "schema": {"type": "str"}}}}}; what is
# closed here is `extra_behavior` of the inner one. A subclass with another config would do for a
# plain model, but neither for a union of models nor for a `TypedDict`, and would be another class.
class _Taking:
    """Close the objects at the top of a core schema, and make every number in it finite.

    Attributes:
        closed: Whether there was an object to close.
        bounded: Whether there was a number that the author had not bound.
        excluded: How many fields the author leaves out of what is written.
        iterators: How many values there were that could be read only once.
        classes: The classes whose finished validators would know nothing of either.
    """

    def __init__(self, root: Core, strict: bool) -> None:
        self.closed = False
        self.bounded = False
        self.excluded = 0
        self.iterators = 0
        self.classes: set[type[Any]] = set()
        self._strict = strict
        self._definitions: dict[str, Core] = {}
        if root["type"] == "definitions":
            self._definitions = {one["ref"]: one for one in root["definitions"]}

    def changed(self, schema: Any, around: _Around) -> Any:
        """Return a core schema, or a part of one, or a changed copy of it."""
        # A part that holds nothing to change is given back as it is, and so is all above it: that
        # is how the caller sees that no validator has to be built.
        if isinstance(schema, list | tuple):
            old = cast("Sequence[Any]", schema)
            new = [self.changed(part, around) for part in old]
            same = all(one is other for one, other in zip(new, old, strict=True))
            return old if same else (tuple(new) if isinstance(schema, tuple) else new)
        if not is_object(schema):
            return schema
        if not is_schema(schema):
            named = {key: _by_name(key, part) for key, part in schema.items()}
            return but(schema, {key: self.changed(part, around) for key, part in named.items()})
        kind = schema["type"]
        if kind == "dataclass-field":
            schema = _by_name(schema["name"], schema)
        # A type that holds itself, as a tree, is under a name and is referred to. Its use at
        # the top is closed, and the same type further down stays as its author wrote it, so the
        # root becomes a copy without the name.
        if kind == "definition-ref" and around.is_top:
            referred = self._definitions[schema["schema_ref"]]
            inner = self.changed(referred, around)
            return schema if inner is referred else inner
        # A field of `Any`, or one of extra fields, may hold an infinity without a `float` in the
        # schema: there the value is looked at when it is there.
        if kind == "any":
            self.bounded = True
            return no_info_after_validator_function(_refuse_infinity, cast("CoreSchema", schema))
        if kind == "float":
            if not schema.get("allow_inf_nan", not around.finite):
                return schema
            self.bounded = True
            return {**schema, "allow_inf_nan": False}
        changes: dict[str, object] = {}
        before = self.iterators
        if kind in OBJECTS:
            config = schema.get("config", {})
            cls = schema.get("cls", dict)  # one made by hand may name none
            self.classes.add(cls)
            around = _Around(
                around.is_top,
                _states_policy(cls),
                config.get("allow_inf_nan") is False,
                config.get("extra_fields_behavior") == "allow",
                config.get("validate_default") is True,
            )
            if self._strict:
                config = changes["config"] = {**config, "strict": True}
                # Of a class that is about instances only: a program may give a dict as well.
                changes |= {} if kind == "typed-dict" else {"strict": False}
            # Before pydantic 2.14 the JSON schema names the alias all the same.
            if config.get("validate_by_alias") is False:
                by_any = {"validate_by_alias": True, "validate_by_name": True}
                changes["config"] = {**config, **by_any}
        is_top = around.is_top
        if kind in _FIELDS:
            extra = schema.get("extra_behavior", "allow" if around.allows else "ignore")
            is_open = schema.get("extra_behavior", "ignore") == "ignore"
            if is_top and is_open and not around.states_policy:
                changes["extra_behavior"] = "forbid"
                self.closed = True
            elif extra == "allow":
                extras = schema.get("extras_schema", any_schema())
                changes["extras_schema"] = self.changed(extras, _Around(finite=around.finite))
            around = _Around(finite=around.finite, validates_defaults=around.validates_defaults)
        inside = around._replace(is_top=False) if is_top else around
        for key in schema.keys() - NO_SCHEMA - changes.keys():
            changes[key] = self.changed(
                schema[key], around if key in ("schema", "choices") else inside
            )
        # One that pydantic validates at each call must not be validated before as well.
        is_left = schema.get("validate_default", around.validates_defaults)
        if kind == "default" and "default" in schema and not is_left:
            changes |= _converted(schema, self._definitions.values())
        made = but(schema, changes)
        if not _EXCLUDING.isdisjoint(made):
            self.excluded += 1
            made = {key: part for key, part in made.items() if key not in _EXCLUDING}
        # Of an `Iterable[int]` pydantic makes an iterator: whoever reads the input first, to show
        # it, to compare it, or for its digest, would leave nothing to the tool.
        if kind == "generator":
            self.iterators += 1
            made = {**made, "type": "list"}
        elif kind in ("dataclass", "model") and self.iterators > before:
            made = {**made, "revalidate_instances": "always"}  # that of a program may hold one
        # The definition of that name stays what it was, for the fields that refer to it.
        if is_top and made is not schema:
            made = {key: part for key, part in made.items() if key != "ref"}
        return by_json_value(made)


def _converted(schema: Core, definitions: Iterable[Core]) -> dict[str, object]:
    """Return what a default has to be, so that it is of its type; pydantic takes any as it is."""
    default = schema["default"]
    try:
        made = converted(accepts(schema["schema"], definitions), default)
    except Exception:  # noqa: BLE001 - a validator of the author's may raise anything
        return {}
    is_same = made is default
    return {} if is_same else {"default": made, "copy_default": not isinstance(made, Hashable)}


def converted(validator: SchemaValidator, default: object) -> object:
    """Convert a default to its type; what stands for "not given" is the author's affair.

    One that is of its type stays as it is, as in pydantic. Validators of the author's may change
    values, so the price `3` of a validator that makes cents of euros would become `300`, and
    `30000` where it is converted once more.

    Raises:
        ValidationError: It does not fit.
    """
    if default.__class__ not in _DATA:
        return default
    made = validator.validate_python(default, strict=False)
    return default if _is_of_types(default, made) else made


def _is_of_types(default: Any, made: Any) -> bool:
    """Whether a default has at each place the type that validation gives it."""
    kind: Any = made.__class__
    if not isinstance(default, kind):
        return issubclass(kind, float) and isinstance(default, int)
    if issubclass(kind, dict):
        return all(map(_is_of_types, [*default, *default.values()], [*made, *made.values()]))
    if issubclass(kind, set | frozenset):
        return all(any(_is_of_types(one, other) for other in made) for one in default)
    return not issubclass(kind, list | tuple) or all(map(_is_of_types, default, made))


# The JSON schema has no paths: what is read at `opts[0]` alone stands in it under the field's name.
def _by_name(name: str, field: Any) -> Any:
    """Let a field that has only paths be read by its name, too, by which a model is told of it."""
    alias: Any = field.get("validation_alias") if is_object(field) else None
    if alias is None or isinstance(alias, str):
        return field
    paths = [alias] if isinstance(alias[0], str) else alias
    is_told = any(len(path) == 1 for path in alias if path.__class__ is list)
    return field if is_told else {**field, "validation_alias": [[name], *paths]}


def _states_policy(cls: object) -> bool:
    """Whether the author says in the class's own config what becomes of unknown fields."""
    if is_model(cls):
        return cls.model_config.get("extra") is not None
    return getattr(cls, "__pydantic_config__", {}).get("extra") is not None


_EXCLUDING: Final = frozenset({"serialization_exclude", "serialization_exclude_if"})
_DATA: Final = frozenset({bool, bytes, dict, float, frozenset, int, list, set, str, tuple})
"""Types of defaults that may stand for a value of another type."""


# What is not in this list may hold anything, as `any` does, or what has no order, as a set. A
# secret has a serializer of its own, as has all that an author writes otherwise.
_EXACT: Final = (OBJECTS | _FIELDS).union(
    "bool bytes dataclass-field date datetime decimal default definition-ref definitions dict enum "  # noqa: SIM905 - a word each
    "float function-after function-before int list literal model-field no-info none nullable str "
    "tagged-union time timedelta tuple typed-dict-field union uuid with-info".split()
)


def _is_exact(part: dict[str, object]) -> bool:
    return part["type"] in _EXACT and "serialization" not in part and not keeps_extra(part)


def keeps_extra(part: Core) -> bool:
    """Whether unknown fields are kept in a part of a core schema."""
    config = part.get("config", {})
    return "allow" in (part.get("extra_behavior"), config.get("extra_fields_behavior"))


_OPEN: Final = frozenset({"any", "dataclass", "model"})


def _tracks_unset(part: dict[str, object]) -> bool:
    return part["type"] == "model" and not hasattr(part["cls"], "__is_of_function__")


def _is_renamed(field: dict[str, object]) -> bool:
    """Whether a field is read under one name and written under another."""
    return field.get("validation_alias") != field.get("serialization_alias")


def _is_skipped(part: Core) -> bool:
    return SKIPPED in part.get("metadata", ()) or _skipped_field(part) is not None


# A validator that stands for the whole schema of a field, as `PlainValidator` does, takes the trace
# of the mark with it, so the annotations of each class are looked at as well.
def _skipped_field(part: Core) -> str | None:
    """Return the first field of a class whose annotation has a `Skip()`; None if there is none."""
    cls: object = part.get("cls", part.get("function"))  # a named tuple is what makes it
    hints: dict[str, object] = {}
    if is_model(cls):
        hints = {name: (each.annotation, each.metadata) for name, each in cls.model_fields.items()}
    elif isinstance(cls, type):
        with suppress(NameError, TypeError):  # pydantic found what is not there, in its own way
            hints = get_type_hints(cls, include_extras=True)
    return next((name for name, hint in hints.items() if holds_skip(hint)), None)


def _skipped_in(schema: object, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Return the names of the fields that lead to the first `Skip()`; None if there is none."""
    if isinstance(schema, list | tuple):
        inner = [(each, path) for each in cast("Sequence[Any]", schema)]
    elif not is_object(schema):
        return None
    elif not is_schema(schema):
        inner = [(each, (*path, str(name))) for name, each in schema.items()]
    elif SKIPPED in schema.get("metadata", ()):
        return path
    elif (field := _skipped_field(schema)) is not None:
        return (*path, field)
    else:
        if schema["type"] == "dataclass-field":
            path = (*path, schema["name"])
        inner = [(schema[key], path) for key in sorted(schema.keys() - NO_SCHEMA)]
    found = (_skipped_in(each, names) for each, names in inner)
    return next((each for each in found if each is not None), None)


def _refuse_infinity(value: object) -> object:
    if infinity_in(value) is not None:
        raise PydanticKnownError("finite_number")
    return value
