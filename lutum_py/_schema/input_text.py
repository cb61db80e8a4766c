"""The text of an input, and the instance that validating this text produces.

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
from typing import Any, Final, TypeAlias, cast, get_type_hints
from uuid import UUID

from pydantic import BaseModel

from .._text.json import LEAVES, canonical_json, is_array, is_object, parse_json

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
        self.kept: Any = NOTHING
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

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.json, self.unset, self.others, self.is_proven))


def _unpickled(*state: Any) -> InputText:
    *parts, is_proven = state
    return InputText(*parts, is_proven=is_proven)


# The same instance.


def same(one: Any, other: Any) -> bool:
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


def _same_parts(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
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
    known: dict[str, Any] = {}
    with suppress(NameError, TypeError):  # of what it does not know, a field has its own name alone
        hints = get_type_hints(of, include_extras=True)
        for each in fields(of):
            said = getattr(hints[each.name], "__metadata__", ())
            known[each.name] = next((one for one in said if hasattr(one, "validation_alias")), None)
    return {**known, **getattr(of, "__pydantic_fields__", {})}


def _places_of(value: Any, name: str) -> tuple[Path, ...]:
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


def _members(value: Any, data: Any) -> Iterator[tuple[str | int, tuple[Path, ...], Any]]:
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


def _root_of(value: Any) -> Any:
    """Return what a root model holds: in a text it stands for itself."""
    while isinstance(value, BaseModel) and value.__pydantic_root_model__:
        value = value.__dict__["root"]
    return value


def _place(data: Any, places: tuple[Path, ...]) -> Any:
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
        taken: dict[Any, None] = {}
        emptied: set[Any] = set()
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


def has_factory(value: Any, name: str | int) -> bool:
    """Whether the default of a field is made anew each time."""
    known = type(value).model_fields if isinstance(value, BaseModel) else _init_fields(value)
    made: Any = getattr(known.get(str(name)), "default_factory", None)
    return made is not None and made is not MISSING


def has_default(value: Any, name: str | int) -> bool:
    """Whether a field may stand in a text, so that its default can be written there."""
    return isinstance(value, BaseModel) or name in _init_fields(value)


def has_none(_: Any, __: str | int) -> bool:
    """Leave every default out."""
    return False


def _init_fields(value: Any) -> dict[str, Any]:
    return {each.name: each for each in fields(value) if each.init}


def _is_like(one: Any, other: Any) -> bool:
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


def changed_members(before: Any, after: Any) -> set[str]:
    """Name the members of a value that are not what they were."""
    old, new = _by_member(before), _by_member(after)
    return {name for name, part in new.items() if not same(old.get(name, NOTHING), part)}


def _by_member(value: Any) -> dict[str, Any]:
    return {str(name): part for name, _, part in _members(value, {})}


def restore(value: Any, data: Any, unset: Sequence[Path]) -> None:
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


def at_path(data: Any, path: Sequence[str | int | None]) -> Any:
    """Return what data has at a path, or `NOTHING`."""
    for step in path:
        if not (is_object(data) or is_array(data)):
            return NOTHING
        try:
            data = cast("Any", data)[step]
        except (KeyError, IndexError, TypeError):
            return NOTHING
    return data


def keeps_rest(before: Any, old: Any, after: Any, new: Any) -> bool:
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


def _apart(value: Any) -> tuple[Any, ...]:
    """Return what a value holds that is no member of it, as what a validator keeps for itself."""
    if isinstance(value, BaseModel):
        return (value.__pydantic_private__,)
    if is_dataclass(value):
        known = _fields(value)
        return (
            {name: e for name, e in getattr(value, "__dict__", {}).items() if name not in known},
        )
    return ()


def differing(one: Any, other: Any) -> list[str]:
    """Name the members in which two values differ."""
    mine, others = _by_member(one), _by_member(other)
    names = dict.fromkeys((*mine, *others))
    return [name for name in names if not same(mine.get(name, NOTHING), others.get(name, NOTHING))]
