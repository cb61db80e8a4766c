"""`Arguments`: reads, masks and writes the inputs of one tool.

An input is a text, and the instance that validating this text produces.

What a person, a rule, a gate and a row are shown is read from the text, and what runs is made of
it. A text is whole: of a model's own text `{"name": "x"}` it is `{"name": "x", "phone": null}` with
its defaults, and the paths of the members that were not set, `("phone",)`. An instance that is read
from it has the same `model_fields_set` as the one that was described.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from copyreg import dispatch_table
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, time
from enum import Enum
from functools import lru_cache
from operator import is_
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeAlias,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, SchemaSerializer, from_json, to_json
from typing_extensions import is_typeddict

from .._text.json import (
    LEAVES,
    canonical_json,
    compact_json,
    infinity_in,
    is_array,
    is_object,
    parse_json,
    sendable,
)
from .._text.names import OwnNames
from .._text.on_demand import ONCE
from ..errors import ToolDefinitionError
from .read_back import wire_serializer
from .schema_reader import below, branches, meant_by_name
from .signature import (
    ModelName,
    Parameter,
    Signature,
    is_fixed,
    is_model,
    is_plain,
    is_shallow,
    plain_schema,
    reason_of,
    type_name,
)

if TYPE_CHECKING:
    from .closed_schema import Closing
    from .input_model import FnInput
    from .schema_reader import JsonSchema
    from .secrets import Masking

Path: TypeAlias = tuple[str | int, ...]
"""Where a member stands in a text."""

_kind_of: Callable[[object], Any] = type
_SEQUENCES: Final[frozenset[Any]] = frozenset({list, set, frozenset, tuple})

NOTHING: Final[Any] = object()
"""Stands for what is not there."""


class InputText:
    """Hold the text of an input.

    Args:
        json: The text; None if the input has no JSON form.
        unset: The paths of the members of models that were not set, and have their defaults.
        others: Texts with fewer defaults, for an input whose defaults do not survive its
            validators; the last one has none.
        is_proven: Whether validating the text is known to give the input.
        bare: The text without the members that were not set, if these are still to be found by it,
            and how deep they stand at least: which parameters of a function were set is not kept.

    Attributes:
        kept: A copy of the instance, to make others of and to find changes by, which nobody is
            given; `NOTHING` if there is none.
        chosen: The one of the others that describes the input, once it was found.
    """

    __slots__ = ("_bare", "_unset", "chosen", "is_proven", "json", "kept", "others")

    def __init__(
        self,
        json: bytes | None,
        unset: tuple[Path, ...] = (),
        others: tuple[InputText, ...] = (),
        *,
        is_proven: bool = False,
        bare: tuple[bytes, int] | None = None,
    ) -> None:
        self.json: bytes | None = json
        self._unset: tuple[Path, ...] | None = unset if bare is None else None
        self._bare: tuple[bytes, int] | None = bare
        self.others: tuple[InputText, ...] = others
        self.is_proven: bool = is_proven
        self.kept: object = NOTHING
        self.chosen: InputText | None = None

    @property
    def unset(self) -> tuple[Path, ...]:
        """The paths of the members of models that were not set, and have their defaults."""
        unset = self._unset
        if unset is None:  # an input is written out far more often than anybody asks
            assert self._bare is not None
            bare, depth = self._bare
            found = unset_in(self.data, parse_json(bare))
            unset = self._unset = tuple([path for path in found if len(path) >= depth])
        return unset

    @property
    def data(self) -> Any:
        """The text as plain data, a copy each time; None if there is no text."""
        return None if self.json is None else parse_json(self.json)

    @property
    def set_data(self) -> Any:
        """The same without the members that were not set."""
        data = self.data
        for path in self.unset:
            del at_path(data, path[:-1])[path[-1]]
        return data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputText):
            return NotImplemented
        if self.json != other.json:
            return False
        has_bare = self._bare is not None
        return (has_bare and self._bare == other._bare) or self.unset == other.unset

    __hash__: None = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return (_unpickled, (self.json, self.unset, self.others, self.is_proven))


def _unpickled(*state: Any) -> InputText:
    *parts, is_proven = state
    return InputText(*parts, is_proven=is_proven)


# The same instance.


def same(one: object, other: object) -> bool:
    """Whether two values are the same: in classes, fields and extras, and never by `__eq__`.

    `1`, `1.0` and `True` differ, so do `0.0` and `-0.0`; NaN is NaN.

    >>> same([1, {"a": float("nan")}], [1, {"a": float("nan")}]), same(1, True)
    (True, False)
    """
    try:
        return _same(one, other)
    except (RecursionError, TypeError, AttributeError, ValueError):
        return False  # nested too deeply, or of a class that does not let anybody look into it


def _same(one: Any, other: Any) -> bool:
    kind = _kind_of(one)
    if kind is not _kind_of(other):
        return False
    if one is other:
        return True
    if kind in (str, int, bytes, bool):
        is_equal: bool = one == other
        return is_equal
    if kind is float or kind is complex:
        return repr(one) == repr(other)
    if kind in (list, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if kind is dict:
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(_same(*both) for both in pairs)
    if kind in (set, frozenset):
        return _same_set(one, other)
    if kind in (datetime, time):  # a time zone has many classes
        return bool(one.isoformat() == other.isoformat() and one.fold == other.fold)
    if kind is UUID:  # pydantic 2.12 writes another `is_safe` into those that it reads
        return bool(one.int == other.int)
    if isinstance(one, Enum):
        return False  # a member is one object
    if isinstance(one, BaseModel):
        return _same_set(_set_in(one), _set_in(other)) and _same_parts(
            {**one.__dict__, "": (one.__pydantic_extra__, one.__pydantic_private__)},
            {**other.__dict__, "": (other.__pydantic_extra__, other.__pydantic_private__)},
        )
    if is_dataclass(one):
        return _same_parts(_fields(one), _fields(other)) and _same_parts(
            getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
        )
    # What pickle would save of an object is all that it is made of.
    return _same(_saved(one), _saved(other))


def _same_parts(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)


def _same_set(one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    by_hash: dict[int, list[Any]] = {}
    for each in other:
        by_hash.setdefault(hash(each), []).append(each)
    return all(any(_same(each, like) for like in by_hash.get(hash(each), ())) for each in one)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, also those that its `__init__` does not take."""
    return {
        each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)
    }


def _saved(value: Any) -> list[Any]:
    reduce: Any = dispatch_table.get(_kind_of(value))
    made: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
    make, *rest = made
    return [make, *([*each] if isinstance(each, Iterator) else each for each in rest)]


def _set_in(model: BaseModel) -> set[str]:
    """Return the fields that were set; of a function's parameters nobody asks which."""
    return set() if getattr(model, "__is_of_function__", False) else model.model_fields_set


# A copy.


def copied(value: Any) -> Any:
    """Copy an input so that nothing that is done to the copy is done to the input.

    Models and dataclasses are copied by their fields, whatever `__deepcopy__` they have. What
    cannot be copied, such as a lock, is given as it is.
    """
    kind = _kind_of(value)
    if kind in LEAVES or isinstance(value, Enum):
        return value
    if kind in _SEQUENCES:
        return kind(map(copied, value))
    if kind is dict:
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, BaseModel):
        made = kind.__new__(kind)
        put(made, "__dict__", {name: copied(part) for name, part in value.__dict__.items()})
        put(made, "__pydantic_fields_set__", {*value.model_fields_set})
        for name in ("__pydantic_extra__", "__pydantic_private__"):
            put(made, name, copied(getattr(value, name)))
        return made
    if is_dataclass(value):
        made = kind.__new__(kind)
        for name, part in {**_fields(value), **getattr(value, "__dict__", {})}.items():
            put(made, name, copied(part))
        return made
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - each type has its own way to refuse
        return value


put: Callable[[Any, str, Any], None] = object.__setattr__
"""Set an attribute of what takes none, such as a frozen model."""


# A value beside its text.


@lru_cache(maxsize=512)
def _fields_of(cls: Hashable) -> Mapping[str, Any]:
    """Return what pydantic knows of the fields of a model or a dataclass."""
    of = cast("Any", cls)
    if issubclass(of, BaseModel):
        return cast("Mapping[str, Any]", of.model_fields)
    known: dict[str, object] = {}
    with suppress(NameError, TypeError):  # of what it does not know, a field has its own name alone
        hints = get_type_hints(of, include_extras=True)
        for each in fields(of):
            said = getattr(hints[each.name], "__metadata__", ())
            known[each.name] = next((one for one in said if hasattr(one, "validation_alias")), None)
    return {**known, **getattr(of, "__pydantic_fields__", {})}


def _places_of(value: object, name: str) -> tuple[Path, ...]:
    """Return where a field may stand in the data of its model or dataclass; at last by its name."""
    about = _fields_of(cast("Hashable", type(value))).get(name)
    if about is None:
        return ((name,),)
    # Known by what they have: pydantic's modules of fields and aliases are slow to import.
    read = about.validation_alias
    choices = getattr(read, "choices", [read])  # of an `AliasChoices`
    read_at = [tuple(getattr(each, "path", (each,))) for each in choices if each is not None]
    written = () if about.serialization_alias is None else ((about.serialization_alias,),)
    return (*read_at, *written, (name,))


def _members(value: object, data: object) -> Iterator[tuple[str | int, tuple[Path, ...], Any]]:
    """Yield the parts of a value: the name of each, its places in the data, and the part."""
    if isinstance(value, BaseModel):
        if is_object(data):
            for name, part in value.__dict__.items():
                if name in type(value).model_fields:
                    yield name, _places_of(value, name), part
            for name, part in (value.__pydantic_extra__ or {}).items():
                yield name, ((name,),), part
    elif is_dataclass(value) and not isinstance(value, type):
        if is_object(data):
            for name, part in _fields(value).items():
                yield name, _places_of(value, name), part
    elif is_object(value) and is_object(data):
        for key, part in value.items():
            if isinstance(key, str | int):
                yield str(key), ((str(key),),), part
    elif isinstance(value, list | tuple) and is_array(data):
        parts = cast("Sequence[Any]", value)
        if len(parts) == len(data):
            for at, part in enumerate(parts):
                yield at, ((at,),), part


def _root_of(value: object) -> Any:
    """Return what a root model holds: in a text it stands for itself."""
    while isinstance(value, BaseModel) and value.__pydantic_root_model__:
        value = value.__dict__["root"]
    return value


def _place(data: object, places: tuple[Path, ...]) -> Any:
    """Return the first of some places, by one name, that the data has; None if it has none."""
    return next((e[0] for e in places if len(e) == 1 and at_path(data, e) is not NOTHING), None)


class Filler:
    """Write a text out, with defaults that it leaves out, and under the names that are written.

    Args:
        fills: Whether to add the default of a field.
        renames: Whether what stands under another name of its field, or at a path, is moved, and
            the items of a set are sorted.

    Attributes:
        unset: The paths of the members of models that were not set.
    """

    def __init__(self, fills: Callable[[Any, str | int], bool], *, renames: bool = True) -> None:
        self.unset: list[Path] = []
        self._fills = fills
        self._renames = renames

    def filled(self, data: Any, value: Any, whole: Any, path: Path = ()) -> Any:
        """Fill in the data of a text.

        Args:
            data: The data.
            value: What was read from it.
            whole: The value as it is written out; `NOTHING` if it has no form.
            path: Where the value stands.
        """
        value = _root_of(value)
        if issubclass(_kind_of(value), set | frozenset) and is_array(data) and self._renames:
            return sorted(data, key=canonical_json)  # so that equal inputs have one text
        is_model = isinstance(value, BaseModel)
        is_open = is_model or is_dataclass(value)
        set_here = value.model_fields_set if is_model else ()
        made: Any = None
        taken: dict[str | int, None] = {}
        emptied: set[str | int] = set()
        for name, places, part in _members(value, data):
            made = made or ([*data] if is_array(data) else dict(data))
            at = _place(made, places)
            written_at = _place(whole, places) if _is_like(whole, data) else None
            is_unset = is_model and name in type(value).model_fields and name not in set_here
            own = NOTHING if at is None else made[at]
            if is_open and written_at is not None and at != written_at:
                if self._renames and own is NOTHING:
                    place = next((e for e in places if at_path(data, e) is not NOTHING), None)
                    if place is not None:
                        at, own = written_at, at_path(data, place)
                        emptied.add(place[0])
                elif self._renames:
                    del made[at]
                    at = written_at
                if at is None and (is_unset or not is_model) and self._fills(value, name):
                    at, own = written_at, whole[written_at]
            if at is None:
                continue
            taken[at] = None
            written = NOTHING if written_at is None else whole[written_at]
            made[at] = self.filled(own, part, written, (*path, at))
            if is_unset and not getattr(value, "__is_of_function__", False):
                self.unset.append((*path, at))
        if made is None or not (is_open and self._renames):
            return data if made is None else made
        left = {key: part for key, part in made.items() if key not in {*taken, *emptied}}
        return {**{key: made[key] for key in taken}, **left}


def unset_in(whole: Any, bare: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what the data of an input has, and not what was written without defaults.

    >>> list(unset_in({"a": 1, "b": [{"c": 2, "d": 3}]}, {"a": 1, "b": [{"c": 2}]}))
    [('b', 0, 'd')]
    """
    if whole == bare:
        return
    pairs: Any = whole.items() if is_object(whole) else enumerate(whole)
    for key, part in pairs:
        if is_object(bare) and key not in bare:
            yield (*path, key)
        else:
            yield from unset_in(part, bare[key], (*path, key))


def has_factory(value: object, name: str | int) -> bool:
    """Whether the default of a field is made anew each time."""
    known = type(value).model_fields if isinstance(value, BaseModel) else _init_fields(value)
    made: object = getattr(known.get(str(name)), "default_factory", None)
    return made is not None and made is not MISSING


def has_default(value: object, name: str | int) -> bool:
    """Whether a field may stand in a text, so that its default can be written there."""
    return isinstance(value, BaseModel) or name in _init_fields(value)


def has_none(_: object, __: str | int) -> bool:
    """Leave every default out."""
    return False


def _init_fields(value: Any) -> dict[str, Any]:
    return {each.name: each for each in fields(value) if each.init}


def _is_like(one: object, other: object) -> bool:
    if is_array(one):
        return is_array(other) and len(one) == len(other)
    return is_object(one) and is_object(other)


def replaced(data: Any, before: Any, after: Any, whole: Any) -> Any:
    """Put the members of a value that changed in place of those in its old text.

    Args:
        data: The data of the old text.
        before: What was read from it.
        after: The value.
        whole: The value as it is written out.
    """
    before, after = _root_of(before), _root_of(after)
    if same(before, after):
        return data
    if type(before) is not type(after) or not _is_like(whole, data):
        return whole
    old = {name: part for name, _, part in _members(before, data)}
    new = {name: (places, part) for name, places, part in _members(after, whole)}
    if not new or (is_array(data) and old.keys() != new.keys()):
        return whole
    made: Any = [*data] if is_array(data) else dict(data)
    for name, places, _ in _members(before, data):
        if name not in new and (at := _place(data, places)) is not None:
            del made[at]
    for name, (places, part) in new.items():
        written_at = _place(whole, places)
        at = _place(data, places)
        if written_at is None or (name in old and same(old[name], part)):
            continue
        if at is None:
            made[written_at] = whole[written_at]
        else:
            made[at] = replaced(data[at], old.get(name, NOTHING), part, whole[written_at])
    return made


def _by_member(value: object) -> dict[str, object]:
    return {str(name): part for name, _, part in _members(value, {})}


def restore(value: object, data: object, unset: Sequence[Path]) -> None:
    """Let a value that was read from a whole text know which of its members were not set."""
    for *above, last in unset:
        part, text = _root_of(value), data
        for step in above:
            at = (step,)
            found = next((e for _, places, e in _members(part, text) if at in places), NOTHING)
            part, text = _root_of(found), at_path(text, at)
        for name, places, _ in _members(part, text):
            if (last,) in places and isinstance(part, BaseModel):
                part.__pydantic_fields_set__.discard(str(name))


def at_path(data: object, path: Sequence[str | int | None]) -> Any:
    """Return what data has at a path, or `NOTHING`."""
    for step in path:
        if not (is_object(data) or is_array(data)):
            return NOTHING
        try:
            data = cast("Any", data)[step]
        except (KeyError, IndexError, TypeError):
            return NOTHING
    return data


def keeps_rest(before: object, old: object, after: object, new: object) -> bool:
    """Whether an edit of a text changed only those members of the value that it names.

    Args:
        before: What was read from the text.
        old: The data of the text.
        after: What was read from the edited text.
        new: The data of the edited text.
    """
    before, after = _root_of(before), _root_of(after)
    if same(old, new):
        return same(before, after)
    if type(before) is not type(after) or not (is_object(old) and is_object(new)):
        return True  # the edited member itself, or one leaf
    mine = {name: (places, part) for name, places, part in _members(before, old)}
    others = {name: (places, part) for name, places, part in _members(after, new)}
    if not mine and not others:
        return True
    if not all(same(e, o) for e, o in zip(_apart(before), _apart(after), strict=True)):
        return False
    for name in mine.keys() | others.keys():
        (places, part), (_, other) = (each.get(name, ((), NOTHING)) for each in (mine, others))
        places = places or others[name][0]
        texts = [at_path(e, (_place(e, places),)) for e in (old, new)]
        if not keeps_rest(part, texts[0], other, texts[1]):
            return False
    return True


def _apart(value: object) -> tuple[object, ...]:
    """Return what a value holds that is no member of it, as what a validator keeps for itself."""
    if isinstance(value, BaseModel):
        return (value.__pydantic_private__,)
    if is_dataclass(value):
        known = _fields(value)
        return (
            {name: e for name, e in getattr(value, "__dict__", {}).items() if name not in known},
        )
    return ()


def differing(one: object, other: object) -> list[str]:
    """Name the members in which two values differ."""
    mine, others = _by_member(one), _by_member(other)
    names = dict.fromkeys((*mine, *others))
    return [name for name in names if not same(mine.get(name, NOTHING), others.get(name, NOTHING))]


# Some hosts send a text that is empty, or `null`, for a tool without parameters, and a few the JSON
# of an empty text.
NO_ARGUMENTS = frozenset({"", "null", '""'})
"""What models write for no arguments at all."""


Snapshot: TypeAlias = tuple[dict[str, Any], list[tuple[str, Any, Sequence[Any]]], set[str] | None]
"""What a shallow input held: its fields; of each that may hold a list or dict its name, what it
held, and the members of that; and which were set."""


class UndescribedInput(ValueError):
    """No text describes an input: validating what is written of it gives another one.

    Attributes:
        names: The members in which the two differ.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


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
        is_faithful: Whether what is written of an input that was read is read as that again.
        is_fixed: Whether nothing can change an input in place.
        is_live: Whether the text of an input can be written whenever it is asked for.
        is_shallow: Whether nothing below its fields' own lists and dicts can be changed in place.
        is_kept: Whether a change in place is found by a copy, and not by what is written.
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
        input_type: object,
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
        self._wire: SchemaSerializer | None = None
        self.is_exact: bool = taken.is_exact
        self.keeps_names: bool = not taken.renames
        self.is_faithful: bool = taken.is_faithful
        self.is_kept: bool = not taken.is_faithful
        self.skipped: tuple[str, ...] | None = taken.skipped
        self.is_plain: bool = is_plain
        self.is_fixed: bool = is_model(input_type) and _is_frozen(input_type)
        self.is_live: bool = self.is_fixed and self.is_faithful
        open_fields = _open_fields(plain) if taken.is_faithful and is_model(plain) else None
        self.is_shallow: bool = open_fields is not None
        self._open_fields = open_fields or ()
        self.validate_json: Callable[[str], Any] = self._validator.validate_json

    def coerce(self, text: str, error: ValidationError) -> tuple[Any, tuple[str, ...], str]:
        """Read text that failed to validate, if it leaves no doubt about what is meant.

        Returns:
            The input, the paths of what was coerced, and the text as it was read.

        Raises:
            ValidationError: The error that is given, if no coercing helps.
        """
        from .field_issues import coerce_places, container_in

        # Only after validation failed, so whatever a type itself takes, such as null, is never
        # coerced.
        if text.strip() in NO_ARGUMENTS:
            return self.validate_json(_EMPTY), (), _EMPTY
        data: object = None  # in which nothing is coerced, as in a text that is no JSON
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
            coerced = coerce_places(data, failed, self._coercing_schema, lambda: self.masking)
            if not coerced and not (paths and failed is error):
                break
            paths += coerced
            try:
                read = compact_json(data)
                return self.validate_json(read), tuple(paths), read
            except ValidationError as again:
                failed = again
            except ValueError:
                break
        try:
            raise error
        finally:
            del error, failed  # else its traceback would hold this frame, and this frame the error

    def own_keys(self, data: dict[str, object]) -> tuple[dict[str, Any], list[str]]:
        """Put the keys of the schema where data has their stand-ins; say where."""
        known = OwnNames(self._coercing_schema().get("properties", ()))
        own = {key: known.own(key) for key in data}
        renamed = [name for key, name in own.items() if key != name]
        return ({own[key]: value for key, value in data.items()} if renamed else data), renamed

    def _coercing_schema(self) -> JsonSchema:
        if self._coercing is None:
            self._coercing = self.json_schema()
        return self._coercing

    def check(self, value: object, *, by_name: bool = False) -> Any:
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
            if isinstance(value, BaseModel) and checked.__class__ is value.__class__:
                # All of its fields were given; those that were not set have their defaults.
                put(checked, "__pydantic_fields_set__", {*value.model_fields_set})
        elif by_name:
            checked = self._validator.validate_python(
                _rechecked(value), by_alias=True, by_name=True
            )
        else:
            checked = self._validator.validate_python(_rechecked(value))
        self._check_finite(checked)
        return checked

    def _check_finite(self, value: Any) -> None:
        """Refuse a number without a JSON form inside of an input.

        Raises:
            ValidationError: There is one.
        """
        # What is inside was checked by its own class, which may let them through.
        if not self._taken.bounded:
            return
        found = infinity_in(self._serializer.to_python(value, by_alias=self.keeps_names))
        if found is not None:
            loc, number = found
            raise ValidationError.from_exception_data(
                self.type.__name__, [{"type": "finite_number", "loc": loc, "input": number}]
            )

    def to_data(self, value: object) -> Any:
        """Return an input as plain JSON data.

        The keys are those of the wire. Two exceptions: where the type reads one name and writes
        another they are the names of the fields, and a default that JSON cannot carry is left out.

        Equal inputs give equal data in every process: what comes of a set is sorted. What pydantic
        masks, such as a `SecretStr`, is there as it is.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        return self._exact(self._plain(value), value)

    def to_wire(self, value: object) -> Any:
        """Return an input as data under the names by which a model sends it, if others are written.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        if self._wire is None:
            source: object = self._taken.source
            slot = "__pydantic_core_schema__" if is_model(source) else "core_schema"
            self._wire = wire_serializer(getattr(source, slot))
        data = self._wire.to_python(
            value, mode="json", by_alias=True, round_trip=True, warnings=False
        )
        return self._exact(data, value)

    def _exact(self, data: object, value: object) -> Any:
        if self.is_exact:
            return data
        from .read_back import exact_data

        return exact_data(data, value)

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

    def values_of(self, data: object, name: str) -> list[Any]:
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
        return self.masking.root

    @property
    def goes_by_fields(self) -> bool:
        """Whether the keys of what `to_data` gives are the names of fields, not of the wire."""
        return self._schema is None and not self.keeps_names

    def _plain(self, value: object, *, warnings: bool = True) -> Any:
        try:
            # A default may have no JSON form, as `float("inf")` or an open file. Left out, it comes
            # back as the default when the data is read.
            data = self._dump(value, warnings=warnings)
            if infinity_in(data) is None:
                return data
        except PydanticSerializationError:
            pass
        return self._dump(value, exclude_unset=True, warnings=warnings)

    # Inputs and their texts.

    def whole(self, value: object) -> InputText:
        """Write an input out whole; one without a JSON form has no text."""
        json = self.written(value)
        if json is None or not self._taken.tracks_unset:
            return InputText(json, is_proven=self.is_faithful)
        if self._taken.is_flat and self.is_faithful and isinstance(value, BaseModel):
            names = type(value).model_fields.keys() - value.model_fields_set
            unset = tuple([(self._key_of(name),) for name in sorted(names)]) if names else ()
            return InputText(json, unset, is_proven=True)
        if self.is_faithful:  # written twice, which is much faster than to look through it here
            bare = self.written(value, exclude_unset=True)
            if bare is None or bare == json:
                return InputText(json, is_proven=True)
            depth = 2 if hasattr(value, "__is_of_function__") else 1
            return InputText(json, is_proven=True, bare=(bare, depth))
        filler = Filler(has_none)
        filler.filled(parse_json(json), value, NOTHING)
        return InputText(json, tuple(filler.unset))

    # Each hook of each call is lent the input: a copy of one level takes a fifth of the time of
    # writing it out.

    def snapshot(self, value: BaseModel) -> Snapshot:
        """Copy what a shallow input holds, to find what is changed in place by."""
        fields = value.__dict__.copy()
        parts = [(name, fields[name], _items(fields[name])) for name in self._open_fields]
        set_here = value.__pydantic_fields_set__
        return fields, parts, set_here.copy() if self._taken.tracks_unset else None

    def is_as_kept(self, value: BaseModel, kept: Snapshot) -> bool:
        """Whether a shallow input is as it was when the copy was made."""
        (fields, parts, set_here), now = kept, value.__dict__
        # By identity, which is exact, and done without a call of Python.
        if len(now) != len(fields) or not all(map(is_, now.values(), fields.values())):
            return False
        for _, held, part in parts:
            items = held if held.__class__ is list else _items(held)
            if len(items) != len(part) or not all(map(is_, items, part)):
                return False
        return set_here is None or set_here == value.__pydantic_fields_set__

    def made_of(self, kept: Snapshot) -> Any:
        """Make a shallow input as it was when the copy was made."""
        fields, parts, set_here = kept
        fields = fields.copy()
        for name, _, part in parts:
            if fields[name].__class__ is list:
                fields[name] = [*part]
            elif fields[name].__class__ is dict:
                fields[name] = dict(zip(part[::2], part[1::2], strict=True))
        made = self.type.__new__(self.type)
        put(made, "__dict__", fields)
        put(made, "__pydantic_fields_set__", {*fields} if set_here is None else {*set_here})
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    def _key_of(self, name: str) -> str:
        """Return the key under which a field is written."""
        alias: str | None = self.type.model_fields[name].serialization_alias
        return alias if alias is not None and self.keeps_names else name

    def written(self, value: object, *, exclude_unset: bool = False) -> bytes | None:
        """Write an input out, to compare it; None if it has no JSON form."""
        try:
            if self.is_exact:
                with suppress(PydanticSerializationError):  # of a default, which is left out
                    text: bytes = self._serializer.to_json(
                        value,
                        by_alias=self.keeps_names,
                        round_trip=True,
                        exclude_unset=exclude_unset,
                        warnings=False,
                    )
                    # A number that JSON has not is a null, which differs from what was there.
                    if b"null" not in text or from_json(text) == self._dump(
                        value, mode="python", exclude_unset=exclude_unset, warnings=False
                    ):
                        return text
            if exclude_unset:
                return self._bare(value).json
            return encoded(self._exact(self._plain(value, warnings=False), value))
        except (TypeError, ValueError, RecursionError):
            return None

    def proposed(self, sent: str, value: object) -> InputText:
        """Describe an input that was read from a text: the text itself, with defaults.

        Args:
            sent: The text as it was read.
            value: What was read from it.
        """
        whole = self.whole(value)
        if self.is_faithful and whole.json is not None:
            return whole
        try:
            data = parse_json(sent)
        except ValueError:  # of a NaN, perhaps, in what is ignored
            return whole
        written = NOTHING if whole.json is None else whole.data
        texts: list[InputText] = []
        # Names that are not written are known to nobody who looks an argument up.
        if not self.keeps_names and whole.json is not None:
            texts.append(whole)
        for fills, renames in _FILLING:
            filler = Filler(fills, renames=renames)
            text = encoded(filler.filled(data, value, written))
            if not texts or text != texts[-1].json:
                texts.append(InputText(text, tuple(filler.unset)))
        texts[0].others = tuple(texts[1:])
        return texts[0]

    def proof(self, text: InputText, value: object) -> tuple[InputText, Any] | None:
        """Find out whether validating the text of an input gives the input.

        Returns:
            The text that does, which may be the one without defaults, or of the input written out,
            and what it gave; None if no text does.
        """
        texts = [text, *text.others, self.whole(value)]
        while texts:
            each = texts.pop(0)
            made, differs = self._again(each, value)
            if not differs:
                each.is_proven = True
                return each, made
            if each is text and text.others:
                texts.insert(0, self._sparing(text.others[-1], value, differs))
        return None

    def _again(self, text: InputText, value: object) -> tuple[Any, set[str]]:
        """Read a text, and name the members in which what it gives is not a value."""
        try:
            made = None if text.json is None else self.read(text)
        except ValidationError as error:
            return None, {str(e["loc"][0]) for e in error.errors() if e["loc"]} or {""}
        except Exception:  # noqa: BLE001 - a validator of the author's may raise anything
            return None, {""}
        return made, set() if same(made, value) else {"", *differing(made, value)}

    def _sparing(self, sent: InputText, value: object, names: set[str]) -> InputText:
        """Write out a text that was sent with all defaults but for those of some members."""
        filler = Filler(lambda owner, name: owner is not value or name not in names)
        written = self.whole(value).data
        data = filler.filled(sent.data, value, NOTHING if written is None else written)
        return InputText(encoded(data), tuple(filler.unset))

    def take(
        self, value: object, before: InputText | None = None, *, by_name: bool = False
    ) -> tuple[Any, InputText]:
        """Take an input that a program made, and find the text that describes it.

        Args:
            value: The input, or a dict of arguments as the model sends them.
            before: The text of the input that it takes the place of, with what was read from it.
            by_name: Whether it is a dict of fields by their names, not by those of the wire.

        Returns:
            What runs, and its text.

        Raises:
            ValidationError: It does not fit.
            UndescribedInput: No text describes it.
        """
        if self.is_faithful:
            checked = self.check(value, by_name=by_name)
            text = self.whole(checked)
            if self._taken.holds_classes:
                self._prove(checked, [text])
            return checked, text
        if self._is_input(value):
            whole = self.whole(value)
            texts = [whole, self._bare(value)]
            if before is not None and before.json is not None:
                texts[1:1] = [self._replaced(before, value, whole), before]
            return self._prove(value, texts)
        made = self.check(value, by_name=by_name)
        texts = [self.whole(made), self._bare(made)]
        try:
            sent = self.proposed(to_json(value).decode(), made)
            texts[:0] = [sent, *sent.others]
        except (PydanticSerializationError, ValueError):
            pass  # what is in it has no form of its own, and may have one as a field
        return self._prove(made, texts)

    def edited(self, text: InputText, data: object) -> tuple[Any, InputText]:
        """Read the text of an input in which a person changed some members.

        Args:
            text: The text before.
            data: The data after.

        Returns:
            What runs, and its text.

        Raises:
            ValidationError: It does not fit.
        """
        before = text.data
        kept = [path for path in text.unset if same(at_path(before, path), at_path(data, path))]
        bare = InputText(encoded(data), tuple(kept), is_proven=True)
        made = self.read(bare)
        whole = self.whole(made)
        filler = Filler(has_default)
        written = NOTHING if whole.json is None else whole.data
        full = InputText(encoded(filler.filled(data, made, written)), tuple(filler.unset))
        full.others = (bare,)
        proof = (full, made) if self.is_faithful else self.proof(full, made)
        if proof is None:
            return made, bare
        full = proof[0]
        full.is_proven = True
        return made, full

    def _replaced(self, before: InputText, value: object, whole: InputText) -> InputText:
        """Put those members of an input that are not what they were into its old text."""
        try:
            written = whole.data
            if written is None:  # a member has no form, and its text may still be there
                names = set(differing(before.kept, value))
                written = self._dump(value, include=names, warnings=False)
            data = replaced(before.data, before.kept, value, written)
            filler = Filler(has_none)
            filler.filled(data, value, NOTHING)
            return InputText(encoded(data), tuple(filler.unset))
        except (TypeError, ValueError, RecursionError):
            return InputText(None)

    def _bare(self, value: object) -> InputText:
        """Write an input out without the defaults that it has, which may not survive."""
        try:
            data = self._dump(value, exclude_unset=True, warnings=False)
            return InputText(encoded(self._exact(data, value)))
        except (TypeError, ValueError, RecursionError):
            return InputText(None)

    def _is_input(self, value: Any) -> bool:
        kind = get_origin(self.type) or self.type
        return isinstance(value, dict if is_typeddict(kind) else kind)

    def _prove(self, value: object, texts: list[InputText]) -> tuple[Any, InputText]:
        """Find the first text that gives the input.

        Raises:
            ValidationError: The first does not fit, and none of the others gives it.
            UndescribedInput: None does.
        """
        raised: ValidationError | None = None
        names: list[str] = []
        for text in texts:
            if text.json is None:
                continue
            try:
                made = self.read(text)
            except ValidationError as error:
                raised = raised or error
                continue
            if same(made, value):
                text.is_proven = True
                return made, text
            found = differing(made, value)
            names = found if not names or len(found) < len(names) else names
        try:
            if raised is not None:
                raise raised
            if texts[0].json is None:
                self.to_data(value)  # which says what has no form
            self._check_finite(value)
            raise UndescribedInput(names)
        finally:
            del raised

    def sent_by_model(self, value: object, text: InputText, sent: str) -> Any:
        """Return the data of an input under the names that a model sends; `NOTHING` if none do.

        Args:
            value: The input.
            text: Its text.
            sent: What the model sent.
        """
        if self.keeps_names:
            return text.set_data
        # It is shown by other names than a model sends. Where the input written out is not read as
        # the same, what was sent is.
        for each in (compact_json(self.to_wire(value)), sent, compact_json(text.set_data)):
            with suppress(ValidationError):
                if same(self.validate_json(each), value):
                    return parse_json(each)
        return NOTHING

    def read(self, text: InputText) -> Any:
        """Make an input of its text.

        Raises:
            ValidationError: It does not fit.
        """
        assert text.json is not None
        made = self._validator.validate_json(text.json, by_alias=True, by_name=True)
        if text.unset:
            restore(made, text.data, text.unset)
        return made

    def _dump(
        self,
        value: object,
        *,
        mode: str = "json",
        exclude_unset: bool = False,
        include: set[str] | None = None,
        warnings: bool = True,
    ) -> Any:
        return self._serializer.to_python(
            value,
            mode=mode,
            by_alias=self.keeps_names,
            round_trip=True,
            exclude_unset=exclude_unset,
            include=include,
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

    def __init__(self, schema: JsonSchema, make: Callable[[], type]) -> None:
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


def function_arguments(
    model: ModelName, signature: Signature, *, strict: bool
) -> tuple[Arguments, dict[str, str] | None]:
    """Return what decodes the input of a function, and the field of each parameter.

    Args:
        model: What the model is called that has a field for each parameter.
        signature: The function's.
        strict: Take fields without coercion.

    Returns:
        The arguments, and the fields; None where one parameter is the whole input.

    Raises:
        ToolDefinitionError: A parameter cannot be a field.
    """
    parameters = signature.parameters

    def build() -> type[FnInput]:
        from .input_model import build_input_model

        return build_input_model(model, parameters, names, strict=strict)

    # Plain types, such as str and list[int], are described and decoded without a pydantic model,
    # which is then made only if somebody asks for `Input`.
    schema = plain_schema(parameters)
    if schema is not None:
        names = {parameter.name: parameter.name for parameter in parameters}
        return PlainArguments(schema, build), names
    # Making the first pydantic model costs as much as importing pydantic.
    from pydantic.fields import FieldInfo

    from .input_model import field_names, sole_input

    if sole_input(parameters) is not None:
        return _sole_argument(model.place, parameters[0], strict), None
    names = field_names(parameters)
    plain = all(
        is_plain(Annotated[each.annotation, each.default])
        if isinstance(each.default, FieldInfo)
        else is_plain(each.annotation)
        for each in parameters
    )
    return Arguments(build(), strict=strict, is_plain=plain), names


def check_input(place: str, signature: Signature, input_type: object) -> None:
    """Make sure that the one visible parameter is what `input=` says.

    Raises:
        ToolDefinitionError: Its type is another, or there are more parameters.
    """
    said = f"{place}: `input={type_name(input_type)}`"
    if not signature.parameters:
        raise ToolDefinitionError(
            f"{said} names the type of the input, but no parameter is visible to the model. Give "
            "one that type."
        )
    for parameter in signature.parameters:
        annotation = parameter.annotation
        # `Annotated[SearchArgs, Field(...)]` is `SearchArgs` to whoever wrote `input=SearchArgs`.
        plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        if plain != input_type:
            raise ToolDefinitionError(
                f"{said} is the whole input, but parameter `{parameter.name}` of type "
                f"`{type_name(plain)}` is visible to the model as well. Hide it with "
                f"`skip=({parameter.name!r},)`, or leave `input=` out."
            )
    from .input_model import sole_input

    if sole_input(signature.parameters) is None:
        raise ToolDefinitionError(
            f"{said} is not the whole input of the function. Let one parameter, without a default, "
            "have that type: a pydantic model, a dataclass or a `TypedDict`."
        )


def _sole_argument(place: str, parameter: Parameter, strict: bool) -> Arguments:
    try:
        return Arguments(parameter.annotation, strict=strict)
    except NameError:
        raise
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: parameter `{parameter.name}` of type `{type_name(parameter.annotation)}` "
            f"has no schema ({reason_of(error)}). Use types that pydantic knows."
        ) from error


_FILLING: Final = ((has_default, True), (has_factory, True), (has_none, True), (has_none, False))
"""How a text that was sent is written out, each time with less that was not sent."""


def encoded(data: object) -> bytes:
    """Write plain data as the text of an input."""
    return compact_json(data).encode("utf-8", "surrogatepass")


def _is_frozen(model: type[BaseModel]) -> bool:
    """Whether nothing of an input can be changed in place, so that it need not be copied."""
    config = model.model_config
    return (
        bool(config.get("frozen"))
        and config.get("extra") != "allow"
        and not model.__private_attributes__
        and all(is_fixed(field.annotation) for field in model.model_fields.values())
    )


def _open_fields(model: type[BaseModel]) -> tuple[str, ...] | None:
    """Return the fields that may hold a list or dict, of a model that is shallow; None of others.

    Nothing below these lists and dicts can be changed in place, and nothing beside the fields.
    """
    config = model.model_config
    fields = {name: field.annotation for name, field in model.model_fields.items()}
    if (
        config.get("extra") == "allow"
        or model.__private_attributes__
        or model.__pydantic_root_model__
        or not all(map(is_shallow, fields.values()))
    ):
        return None
    return tuple(name for name, annotation in fields.items() if not is_fixed(annotation))


def _items(part: Any) -> Sequence[Any]:
    """Return what a list or dict holds, a copy; nothing of what cannot be changed."""
    kind = part.__class__
    if kind is list:
        items: list[Any] = part.copy()
        return items
    return [each for item in part.items() for each in item] if kind is dict else ()


def fields_of(value: object) -> Any:
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
