"""JSON schemas as plain data: their parts, references, patterns and faults.

Patterns are ECMAScript's, and foreign: a server writes them. Python's `re` reads another language,
and takes exponential time for some; pydantic's engine in Rust takes linear time for all that it
reads. It has neither lookaround nor back references, and refuses what would be too large: such a
pattern is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from pydantic_core import SchemaError, SchemaValidator, core_schema

from .._text.immutable import dataclass
from .._text.json import JsonObject, is_array, is_object, shorten

_WORD: Final = "0-9A-Za-z_"
_SPACE: Final = r"\t\n\x0B\x0C\r\u{FEFF}\u{2028}\u{2029}\p{Zs}"
_CLASSES: Final = {"d": "0-9", "w": _WORD, "s": _SPACE}
# What an escape means in both languages; a letter that is none of these means itself.
_SAME: Final = frozenset("fnrtvxupPkB123456789")
_OUTSIDE: Final = {".": r"[^\n\r\u{2028}\u{2029}]", "{": r"\{", "}": r"\}"}
_PAIR: Final = r"\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)"
_TOKEN: Final = rf"{_PAIR}|\\c[A-Za-z]|\\[pPu]\{{[^}}]*\}}|\\.|\{{\d+(?:,\d*)?\}}|."


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool] | None:
    r"""Return what tells whether a pattern is found in a text; None if it cannot be checked.

    >>> matcher(r"^\p{L}+$")("née"), matcher(r"(?=a)")
    (True, None)
    """
    try:
        schema = core_schema.str_schema(pattern=_in_rust(pattern), regex_engine="rust-regex")
        found: Callable[[str], bool] = SchemaValidator(schema).isinstance_python
    except (SchemaError, ValueError):
        return None
    return found


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; yes where that cannot be checked."""
    search = matcher(pattern)
    return search is None or search(text)


def _in_rust(pattern: str) -> str:
    """Write a pattern of ECMAScript as Rust reads it."""
    made: list[str] = []
    is_class = False
    for found in re.finditer(_TOKEN, pattern, re.DOTALL):
        token = found[0]
        if token[0] == "\\" and len(token) > 1:
            made.append(_escape(found, is_class))
        elif is_class:
            is_class = token != "]"
            # Rust has classes in classes, and operators between them.
            is_dash = token == "-" and made[-1] in ("[", "-")
            made.append(f"\\{token}" if token in "[&~" or is_dash else token)
        else:
            is_class = token == "["
            made.append(_OUTSIDE.get(token, token))
    text = "".join(made)
    return text.replace("[^]", r"[\s\S]").replace("[]", r"[^\s\S]")


def _escape(found: re.Match[str], is_class: bool) -> str:
    token, kind = found[0], found[0][1]
    if found[1] is not None:
        return chr(0x10000 + (int(found[1], 16) % 1024 << 10) + int(found[2], 16) % 1024)
    if kind.lower() in _CLASSES:
        inner = _CLASSES[kind.lower()]
        if is_class and kind.islower():
            return inner
        return f"[{'^' * kind.isupper()}{inner}]"
    if kind == "c" and len(token) == 3:
        return f"\\x{ord(token[2]) % 32:02X}"
    if kind == "0":
        return r"\x00"
    if kind == "b":
        return r"\x08" if is_class else r"(?-u:\b)"
    if kind == "B":
        return r"(?-u:\B)"
    if kind.isalpha() and kind.isascii() and kind not in _SAME:
        return kind
    return token if kind.isascii() else kind


JsonSchema: TypeAlias = JsonObject
Node: TypeAlias = JsonSchema | bool
Steps: TypeAlias = tuple[str | int, ...]

UNIONS: Final = ("anyOf", "oneOf")
_BRANCHES: Final = (*UNIONS, "allOf", "if", "then", "else")
_DEPENDENT: Final = ("dependentSchemas", "dependencies")
_OTHER_KEYS: Final = ("additionalProperties", "unevaluatedProperties")
ANY_KEY: Final = (*_OTHER_KEYS, "patternProperties")
_ANY_ITEM: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
# Names below the first are the author's own: a property called "items" is not a keyword.
_BY_NAME: Final = frozenset(
    {"$defs", "definitions", "properties", "patternProperties", *_DEPENDENT}
)
_ANY_NUMBER: Final = frozenset(
    {*_BRANCHES, *_OTHER_KEYS, *_ANY_ITEM, "not", "prefixItems", "propertyNames"}
)
NAMES: Final = "lutum:names"
"""A keyword of ours: for each name of a field its property, and there the fields that it is of."""
NEVER: Final[JsonSchema] = {"enum": []}
"""A part that no value fits."""
REMARKS: Final = frozenset({"title", "description", "examples", "$comment", "deprecated"})
"""Keywords that are for people: no program is to care for a change of them."""
_OF_VALUE: Final = frozenset({*_BRANCHES, *_DEPENDENT})
"""Keywords whose schemas may describe the same value as the schema with the keyword."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_MARKS: Final = {"$dynamicRef": "$dynamicAnchor", "$recursiveRef": "$recursiveAnchor"}
"""Keywords of references that mean another place, by the way there, and what marks the places."""
_OLD: Final = tuple(f"json-schema.org/draft-0{number}/" for number in (3, 4, 5, 6, 7))
_MOST: Final = 5_000
"""The most schemas that one value is checked against; nobody writes more by hand."""
_DEEPEST: Final = 50
"""So many schemas may be in each other: no reader of any provider goes deeper."""


def subschemas(schema: object) -> Iterator[tuple[str, str | int | None, Node]]:
    """Yield every schema directly inside a schema: its keyword, its name or number, and it."""
    if not is_object(schema):
        return
    for keyword, held in schema.items():
        parts: Iterable[tuple[str | int | None, Any]] = ()
        if keyword in _BY_NAME:
            parts = held.items() if is_object(held) else ()
        elif keyword in _ANY_NUMBER:
            parts = enumerate(held) if is_array(held) else [(None, held)]
        for step, part in parts:
            if is_object(part) or isinstance(part, bool):
                yield keyword, step, part


def with_subschemas(schema: JsonSchema, change: Callable[[Any], Any]) -> JsonSchema:
    """Copy a schema, with every schema directly inside of it changed."""
    copied = dict(schema)
    for keyword, held in schema.items():
        if keyword in _BY_NAME and is_object(held):
            copied[keyword] = {name: change(part) for name, part in held.items()}
        elif keyword in _ANY_NUMBER:
            copied[keyword] = [change(part) for part in held] if is_array(held) else change(held)
    return copied


def alternatives(schema: JsonSchema) -> list[Node]:
    """List the alternatives of a schema, whichever keyword holds them."""
    return [branch for key in UNIONS for branch in schema.get(key, ())]


def types_in(schema: JsonSchema) -> list[str]:
    """List the types that a schema names; none if it names none."""
    named = schema.get("type", [])
    return [*named] if is_array(named) else [named]


def type_of(value: object) -> str:
    """Name the type of a value as a schema would."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "object" if is_object(value) else "array"


def reference_to(steps: Iterable[str | int]) -> str:
    """Write the reference to a place of the same document, as in `#/$defs/a~1b`."""
    names = (str(step).replace("~", "~0").replace("/", "~1").replace("%", "%25") for step in steps)
    return "/".join(["#", *names])


def _path_of_steps(steps: Iterable[str | int]) -> str:
    """Write a place for people, as in `$.properties.a.anyOf[0]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def follow(reference: object, root: object) -> Any:
    """Return the target of a reference from the root, as in `#/$defs/a`; None if there is none.

    In a schema that has more than one identifier, references are to be made so by `localized`.
    """
    fragment = _fragment_of(reference)
    found = None if fragment is None else _descended(root, fragment)
    return None if found is None else found[1]


def branches(root: object, schemas: Iterable[object]) -> list[JsonSchema]:
    """List all schemas that may say something of one value: references and branches are opened.

    References in the root are to be made by `localized`.
    """
    # Of `{"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}` three schemas are listed: itself,
    # what `a` is, and the null. Which of them holds depends on the value; whoever asks has to be
    # right for each.
    opened: list[JsonSchema] = []
    seen: set[int] = set()
    waiting = [*schemas]
    while waiting:
        schema = waiting.pop()
        if not is_object(schema) or id(schema) in seen:
            continue
        seen.add(id(schema))
        opened.append(schema)
        waiting += [part for keyword, _, part in subschemas(schema) if keyword in _OF_VALUE]
        waiting.append(follow(schema.get("$ref"), root))
    return opened


def below(schema: JsonSchema, step: str | int) -> list[Any]:
    """List the schemas that may hold for a property, or for an item; references are not opened.

    >>> below({"properties": {"a": {"type": "integer"}}, "additionalProperties": True}, "a")
    [{'type': 'integer'}]
    """
    if isinstance(step, int):
        listed = [schema.get(keyword) for keyword in ("prefixItems", "items")]
        found = [part for held in listed if is_array(held) for part in held[step : step + 1]]
        others = [schema.get(keyword) for keyword in _ANY_ITEM]
        return found or [each for each in others if is_object(each) or each is True]
    properties, names = schema.get("properties"), schema.get(NAMES)
    known = properties if is_object(properties) else {}
    meant = [step, *(names.get(step, ()) if is_object(names) else ())]
    if found := [known[each] for each in meant if each in known]:
        return found
    patterns = schema.get("patternProperties")
    others = [*(patterns.values() if is_object(patterns) else ())]
    others += [schema[key] for key in _OTHER_KEYS if key in schema]
    return [each for each in others if each is not False]


def meant_by_name(schema: JsonSchema, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield each property that a name may mean: the name of its field, its own, and its schema.

    >>> list(meant_by_name({"properties": {"to": {"type": "string"}}}, "to"))
    [('to', 'to', {'type': 'string'})]
    """
    properties, names = schema.get("properties"), schema.get(NAMES)
    known = properties if is_object(properties) else {}
    meant = names.get(name, {}) if is_object(names) else {name: [name]} if name in known else {}
    for told, of_fields in meant.items():
        yield from ((each, told, known[told]) for each in of_fields)


def parts_of(schema: object, root: object) -> list[JsonSchema]:
    """Take a schema apart into parts without references and `allOf`; all of them have to hold.

    What leads nowhere, or back to itself, stays in a part as the keyword `$ref`. References in the
    root are to be made by `localized`.

    >>> parts_of({"$ref": "#/$defs/a", "minimum": 1}, {"$defs": {"a": {"type": "integer"}}})
    [{'minimum': 1}, {'type': 'integer'}]
    """
    return _parts(schema, root, frozenset())


def _parts(schema: object, root: object, seen: frozenset[str]) -> list[JsonSchema]:
    if schema is True:
        return []
    if not is_object(schema):
        return [NEVER] if schema is False else [{"$ref": None}]
    # Not merged into one, as `conjoined` of the dialects does, so that nothing is lost.
    plain = dict(schema)
    found: list[JsonSchema] = []
    reference = plain.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = follow(reference, root)
        if target is not None:
            del plain["$ref"]
            found += _parts(target, root, seen | {reference})
    for branch in plain.pop("allOf", ()):
        found += _parts(branch, root, seen)
    return [plain, *found] if plain else found


def merged_part(schema: object, root: object) -> JsonSchema:
    """Return all keywords of a schema in one part, for showing it; the outermost of each counts."""
    merged: JsonSchema = {}
    for part in parts_of(schema, root):
        merged = {**part, **merged}
    return merged


def names_in(root: object) -> list[str]:
    """List the names that an object may have by a schema, whichever of its branches it is of."""
    whole = localized(root)
    found = (each.get("properties", ()) for each in branches(whole, [whole]))
    return sorted({name for names in found for name in names})


def _fragment_of(reference: Any) -> str | None:
    is_pointer = isinstance(reference, str) and (reference == "#" or reference[:2] == "#/")
    return reference[1:] if is_pointer else None


def _descended(root: object, fragment: str) -> tuple[Steps, Any] | None:
    """Follow a JSON pointer, as it comes after the `#`, to a schema; give the way there, and it."""
    steps: list[str | int] = []
    found = root
    for written in fragment.split("/")[1:]:
        step: Any = unquote(written).replace("~1", "/").replace("~0", "~")
        at = int(step) if step.isdecimal() and len(step) < 10 else -1
        if is_array(found) and str(at) == step and at < len(found):
            step = at
        elif not is_object(found) or step not in found:
            return None
        steps.append(step)
        found = found[step]
    return (tuple(steps), found) if is_object(found) or isinstance(found, bool) else None


@dataclass(frozen=True, slots=True)
class _Place:
    steps: Steps
    schema: Any
    base: str
    depth: int = 1


# For instance, of `{"$id": "https://e.org/a", "properties": {"b": {"$ref": "#b"}}, "$defs": {"x":
# {"$anchor": "b"}}}` the places are (), ("properties", "b") and ("$defs", "x"), and the anchor is
# known as "https://e.org/a#b". The package `referencing` resolves the same, but only jsonschema
# brings it along, and it does not tell where in the document a reference has led.
class _Document:
    """Know every schema of a document by its place, and where the references there lead."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._is_old = is_before_2019(root)
        self._named: dict[str, Steps] = {}
        self._marked: dict[tuple[str, Any], list[Steps]] = {}
        self.places: dict[Steps, _Place] = {}
        self._walk(_Place((), root, ""))
        waiting = list(self.places.values())
        while waiting:
            for target in (each for _, meant in self.targets(waiting.pop()) for each in meant):
                # A reference may lead below a keyword that holds no schemas.
                if target not in self.places:
                    part = follow(reference_to(target), root)
                    waiting += self._walk(_Place(target, part, self.places[()].base))

    def _walk(self, first: _Place) -> list[_Place]:
        walked: list[_Place] = []
        waiting = [first]
        for found in waiting:  # which grows
            steps, schema, around, depth = found.steps, found.schema, found.base, found.depth
            said = schema if is_object(schema) else {}
            own = None if self._is_old and "$ref" in said else said.get("$id")
            base, anchor = _joined(around, own) if isinstance(own, str) else (around, None)
            self._named.setdefault(base, steps)
            # Before 2019, an identifier that is a fragment was what `$anchor` is now.
            for name in (anchor, said.get("$anchor"), said.get("$dynamicAnchor")):
                if isinstance(name, str):
                    self._named.setdefault(f"{base}#{name}", steps)
            for mark in _MARKS.values():
                if mark in said:
                    self._marked.setdefault((mark, str(said[mark])), []).append(steps)
            place = self.places[steps] = _Place(steps, schema, base, depth)
            walked.append(place)
            waiting += [
                _Place((*steps, keyword, *([] if step is None else [step])), part, base, depth + 1)
                for keyword, step, part in subschemas(schema)
            ]
        return walked

    def targets(self, place: _Place) -> Iterator[tuple[str, list[Steps]]]:
        """Yield each reference at a place, by its keyword, and what it may mean: nothing, if lost.

        A dynamic reference means the outermost place with its anchor that was passed on the way.
        """
        for keyword in _REFERENCES if is_object(place.schema) else ():
            reference = place.schema.get(keyword)
            target = self._target(reference, place.base) if isinstance(reference, str) else None
            if target is not None:
                mark = "True" if keyword == "$recursiveRef" else str(reference).partition("#")[2]
                marked = self._marked.get((_MARKS.get(keyword, ""), mark), ())
                yield keyword, [*marked] if target in marked else [target]
            elif keyword in place.schema:
                yield keyword, []

    def _target(self, reference: str, base: str) -> Steps | None:
        resource, fragment = _joined(base, reference)
        if fragment and fragment[0] != "/":
            return self._named.get(f"{resource}#{fragment}")
        begin = self._named.get(resource)
        if begin is None:
            return None
        found = _descended(self._root, reference_to(begin)[1:] + fragment)
        return None if found is None else found[0]

    def is_dynamic(self) -> bool:
        """Whether a reference means one place or another, by the way there."""
        found = (meant for place in self.places.values() for _, meant in self.targets(place))
        return any(len(meant) > 1 for meant in found)

    def localized(self) -> Any:
        """Write every reference from the root, as `localized` tells it."""
        # Most schemas write every reference as `#/$defs/a` already: those are not copied.
        if any(
            keyword != "$ref"
            or _fragment_of(place.schema[keyword]) is None
            or place.base != self.places[()].base
            for place in self.places.values()
            for keyword, meant in self.targets(place)
            if meant
        ):
            return self._copied(self._root, ())
        return self._root

    def _copied(self, value: object, steps: Steps) -> Any:
        if is_array(value):
            return [self._copied(part, (*steps, at)) for at, part in enumerate(value)]
        if not is_object(value):
            return value
        made = {key: self._copied(part, (*steps, key)) for key, part in value.items()}
        place = self.places.get(steps)
        if place is None:
            return made
        if steps and isinstance(value.get("$id"), str):
            del made["$id"]
        for keyword, meant in self.targets(place):
            written = [{"$ref": reference_to(each)} for each in meant]
            if len(written) > 1:
                # The keyword stays: what it means is narrower than all that it may mean.
                made["allOf"] = [*made.get("allOf", ()), {"anyOf": written}]
            elif written and keyword == "$ref":
                made.update(*written)
            elif written:
                del made[keyword]
                made["allOf"] = [*made.get("allOf", ()), *written]
        return made

    def beside(self, place: _Place) -> Iterator[Steps]:
        """Yield the places whose schemas are checked against the same value."""
        yield from (each for _, meant in self.targets(place) for each in meant)
        for keyword, step, _ in subschemas(place.schema):
            if keyword in _OF_VALUE or keyword == "not":
                yield (*place.steps, keyword, *([] if step is None else [step]))


def _is_plain(root: object) -> bool:
    """Whether a schema has no references, and too few parts for any fault; most are like that."""
    waiting = [root]
    for schema in waiting:  # which grows
        if len(waiting) > _DEEPEST:
            return False
        if is_object(schema) and any(keyword in schema for keyword in _REFERENCES):
            return False
        waiting += [part for _, _, part in subschemas(schema)]
    return True


def _joined(base: str, reference: str) -> tuple[str, str]:
    """Resolve a reference against an identifier; give the resource and the fragment."""
    if reference.startswith("#"):
        return base, reference[1:]
    try:
        resource, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        return reference, ""
    return resource, fragment


def localized(root: object, *, for_validator: bool = False) -> Any:
    """Return a schema in which every reference is written from the root, as in `#/$defs/a`.

    One that has identifiers and anchors inside is copied without them; any other is given back.
    Beside a reference that is dynamic stands a union of all that it may mean; a validator goes by
    the dynamic ones themselves, and for it a schema with such is given back. What leads nowhere
    stays as it is.
    """
    if not is_object(root) or _is_plain(root):
        return root
    document = _Document(root)
    return root if for_validator and document.is_dynamic() else document.localized()


def is_before_2019(root: object) -> bool:
    """Whether a schema is of a draft before 2019, in which a reference hides what is beside it."""
    named = root.get("$schema") if is_object(root) else None
    return isinstance(named, str) and any(draft in named for draft in _OLD)


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Say what keeps a schema from being checked.

    Attributes:
        path: Where, as in `$.properties.a`.
        problem: What is wrong, without a full stop.
        remedy: What to do about it.
    """

    path: str
    problem: str
    remedy: str


_SHAPES: Final = {
    **dict.fromkeys((*UNIONS, "allOf", "prefixItems"), "an array of schemas"),
    **dict.fromkeys(_BY_NAME, "an object of schemas"),
    **dict.fromkeys(("enum", "examples"), "an array"),
    **dict.fromkeys(("required",), "an array of texts"),
    **dict.fromkeys(("$id", "pattern", "format", "title", "description"), "a text"),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), "a number"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        "a number",
    ),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), "a number or a boolean"),
    "type": "a text or an array of texts",
}


def _is_shaped(keyword: str, held: object) -> bool:
    wanted = _SHAPES.get(keyword, "a schema" if keyword in _ANY_NUMBER else "")
    if keyword in ("items", "type") and is_array(held):
        wanted = _SHAPES["prefixItems" if keyword == "items" else "required"]
    if keyword == "dependencies" and is_object(held):
        held = {name: part for name, part in held.items() if not is_array(part)}
    parts: Iterable[Any] = held.values() if is_object(held) else held if is_array(held) else ()
    is_text, is_bool = isinstance(held, str), isinstance(held, bool)
    return {
        "an array": is_array(held),
        "an array of schemas": is_array(held) and all(map(_is_node, parts)),
        "an array of texts": is_array(held) and all(isinstance(part, str) for part in parts),
        "an object of schemas": is_object(held) and all(map(_is_node, parts)),
        "a schema": _is_node(held),
        "a text": is_text,
        "a text or an array of texts": is_text,
        "a number": isinstance(held, int | float) and not is_bool,
        "a number or a boolean": isinstance(held, int | float),
    }.get(wanted, True)


def _is_draft_3(root: JsonSchema) -> bool:
    return "json-schema.org/draft-03/" in str(root.get("$schema"))


def _is_node(part: object) -> bool:
    return is_object(part) or isinstance(part, bool)


def misshapen_in(root: Any) -> SchemaFault | None:
    """Find a keyword that holds what it cannot hold: whatever reads a schema relies on that."""
    for steps, schema in _places(root):
        for keyword, held in schema.items():
            is_old_flag = keyword == "required" and isinstance(held, bool) and _is_draft_3(root)
            if not (_is_shaped(keyword, held) or (is_old_flag and steps[-2:-1] == ("properties",))):
                wanted = _SHAPES.get(keyword, "a schema")
                return SchemaFault(
                    _path_of_steps(steps),
                    f"`{keyword}` holds {shorten(held)}, and should hold {wanted}",
                    "Correct it.",
                )
    return None


def _places(root: object) -> Iterator[tuple[Steps, JsonSchema]]:
    """Yield each schema in a schema, and itself, with the way there."""
    waiting: list[tuple[Steps, Any]] = [((), root)]
    for steps, schema in waiting:  # which grows
        if is_object(schema):
            yield steps, schema
        waiting += [
            ((*steps, keyword, *([] if step is None else [step])), part)
            for keyword, step, part in subschemas(schema)
        ]


def unchecked_patterns(root: object) -> Iterator[tuple[str, str]]:
    """Yield each pattern that cannot be checked, with its place, as `properties.a`."""
    for steps, schema in _places(root):
        for each in [*schema.get("patternProperties", ()), schema.get("pattern", "")]:
            if matcher(each) is None:
                yield _path_of_steps(steps)[2:], each


def fault_in(root: object) -> SchemaFault | None:
    """Find a reference that leads nowhere, or that makes checking a value endless.

    Returns:
        The first of those faults; None for a schema that any value can be checked against in time.
    """
    if _is_plain(root):
        return None
    document = _Document(root)
    for place in document.places.values():
        if place.depth > _DEEPEST:
            return SchemaFault(
                _path_of_steps(place.steps[:6]) + "…",
                f"more than {_DEEPEST} schemas stand in each other",
                "Put parts of it under `$defs`, and refer to them.",
            )
        for keyword, meant in document.targets(place):
            if not meant:
                return SchemaFault(
                    _path_of_steps(place.steps),
                    f"it refers to {shorten(place.schema[keyword])}, which is nowhere in it; "
                    "nothing is fetched",
                    "Put what is meant under `$defs`.",
                )
    return _endless(document)


def _endless(document: _Document) -> SchemaFault | None:
    """Count the schemas that are checked against one value, bottom up, and how long their chain is.

    A place that is met again below itself would be checked forever without going on in the value.
    """
    from graphlib import CycleError, TopologicalSorter

    beside = {steps: [*document.beside(place)] for steps, place in document.places.items()}
    try:
        order = [*TopologicalSorter(beside).static_order()]
    except CycleError as error:
        return SchemaFault(
            _path_of_steps(error.args[1][0]),
            "it leads back to itself without going into the value, so that checking it would not "
            "end",
            "Let each circle of references go through a property or an item.",
        )
    # For `{"anyOf": [A, B]}` with plain A and B these two come first, at (1, 1) each; it is (3, 2).
    costs: dict[Steps, tuple[int, int]] = {}
    for steps in order:
        inner = [costs[each] for each in beside.get(steps, ())]
        many = 1 + sum(count for count, _ in inner)
        deep = 1 + max((depth for _, depth in inner), default=0)
        costs[steps] = (many, deep)
        if many > _MOST or deep > _DEEPEST:
            return SchemaFault(
                _path_of_steps(steps),
                f"more than {_MOST:,} schemas, or a chain of more than {_DEEPEST} of them, "
                "would be checked against a single value",
                "Name each alternative once.",
            )
    return None
