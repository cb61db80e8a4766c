"""A Hypothesis strategy for the values of a JSON schema.

It reads the schema itself and not the pydantic types: the schema is what the model was shown, every
tool has one (also those that are known by nothing else), and names and aliases are those of the
wire. The package `hypothesis-jsonschema` does the same job for older drafts, but neither knows
`prefixItems` nor `$defs` as pydantic writes them, and is no longer kept up.

What a schema cannot say (the code of a validator), or what is not read here (`not`, `if`), is left
to the caller, who decodes each value and drops what does not fit.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, timedelta
from typing import Any, Final

from ..._schema.schema_reader import UNIONS, JsonSchema, parts_of, type_of
from ..._text.json import canonical_json, is_array, is_object
from ...dialects._schema.conjunction import conjoined
from . import st

_WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
_BYTES = st.binary(max_size=12)


def _uuids(version: int | None = None) -> st.SearchStrategy[str]:
    # The strategy knows the versions up to 5; a later one only differs in one digit.
    if version is None or version <= 5:
        return st.uuids(version=version).map(str)  # type: ignore[arg-type]
    return st.uuids(version=4).map(lambda made: f"{str(made)[:14]}{version}{str(made)[15:]}")


def _networks(version: int, length: int) -> st.SearchStrategy[str]:
    return st.ip_addresses(v=version).map(lambda address: f"{address}/{length}")  # type: ignore[arg-type]


FORMATS: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.isoformat()),
    "date": st.dates().map(lambda day: day.isoformat()),
    "time": st.times().map(lambda time: time.isoformat()),
    "duration": st.timedeltas(timedelta(0), timedelta(days=9999)).map(
        lambda delta: f"P{delta.days}DT{delta.seconds}S"
    ),
    "uuid": _uuids(),
    **{f"uuid{version}": _uuids(version) for version in (1, 3, 4, 5, 6, 7, 8)},
    "email": st.builds("{}@{}.com".format, _WORD, _WORD),
    "uri": st.builds("https://{}.com/{}".format, _WORD, _WORD),
    "hostname": st.builds("{}.{}.com".format, _WORD, _WORD),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "ipv4network": _networks(4, 32),
    "ipv6network": _networks(6, 128),
    "ipv4interface": _networks(4, 24),
    "ipv6interface": _networks(6, 64),
    "ipvanyaddress": st.ip_addresses().map(str),
    "ipvanynetwork": _networks(4, 32),
    "ipvanyinterface": _networks(4, 24),
    "base64": _BYTES.map(lambda data: base64.b64encode(data).decode("ascii")),
    "base64url": _BYTES.map(lambda data: base64.urlsafe_b64encode(data).decode("ascii")),
    "json-string": st.sampled_from(["{}", "[1,2]", '"text"', "3"]),
    "regex": st.sampled_from(["a+", "[a-z]*", "^x$"]),
}
"""Texts by format; a format that is not here says nothing about a text."""

MALFORMED: Final = frozenset(FORMATS) - {"base64", "base64url", "hostname"}
"""The formats that no reader takes a lone "(" for."""


_INFERRED = {
    **dict.fromkeys(["properties", "required", "additionalProperties"], "object"),
    **dict.fromkeys(["items", "prefixItems", "minItems", "maxItems"], "array"),
    **dict.fromkeys(["pattern", "format", "minLength", "maxLength"], "string"),
    **dict.fromkeys(["minimum", "exclusiveMinimum", "multipleOf"], "number"),
    **dict.fromkeys(["maximum", "exclusiveMaximum"], "number"),
}
_ALL_KINDS = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def opened(root: JsonSchema, schema: Any) -> JsonSchema:
    """Follow references and join `allOf`, so that the keywords stand in one object."""
    return _joined(*(parts_of(schema, root) or [{}]))


def _joined(first: JsonSchema, *others: JsonSchema) -> JsonSchema:
    # What no single object can say, such as two patterns, is left to whoever decodes the value.
    return conjoined(first, others, lambda _: None)


def branches_of(root: JsonSchema, schema: Any) -> Iterator[JsonSchema]:
    """List what a schema may stand for: each branch of its unions, with what is beside it."""
    node = opened(root, schema)
    for key in UNIONS:
        if is_array(node.get(key)):
            beside = {name: part for name, part in node.items() if name not in (key, "default")}
            tag = beside.pop("discriminator", None)
            if is_object(tag) and isinstance(tag.get("propertyName"), str):
                # Without it nobody could tell the branches apart, whatever each of them says.
                beside["required"] = [*beside.get("required", ()), tag["propertyName"]]
            for branch in node[key]:
                yield from branches_of(root, _joined(beside, opened(root, branch)))
            return
    if is_array(node.get("type")):
        for kind in node["type"]:
            yield {**node, "type": kind}
        return
    yield node


def kind_of(node: JsonSchema) -> str | None:
    """Tell the JSON type of a branch; None if it says nothing about it."""
    kind = node.get("type")
    if isinstance(kind, str):
        return kind
    return next((kind for key, kind in _INFERRED.items() if key in node), None)


def kinds_accepted(root: JsonSchema, schema: Any) -> frozenset[str]:
    """List the JSON types that a schema takes."""
    kinds: set[str] = set()
    for node in branches_of(root, schema):
        values = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
        if values is not None:
            kinds.update(map(type_of, values))
        else:
            kind = kind_of(node)
            kinds.update(_ALL_KINDS if kind is None else (kind,))
    if "number" in kinds:
        kinds.add("integer")
    return frozenset(kinds)


ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
"""Any text that JSON in UTF-8 can carry."""

_ANY_NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_ANY_VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _ANY_NUMBER | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)
_MAY_REFER: Final = frozenset({"$ref", "allOf", *UNIONS})
"""The keywords through which a schema may refer to itself and yet be read at once."""

_MORE = 3
"""So many more entries than it must have does an array or an object get at most."""


class SchemaValues:
    """Make strategies for a schema and the schemas in it.

    Args:
        root: The whole schema, in which references are looked up; see `localized`.
    """

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._by_reference: dict[str, st.SearchStrategy[Any]] = {}

    def values(self, schema: Any) -> st.SearchStrategy[Any]:
        """Return a strategy for the values of a schema."""
        if schema is False:
            return st.nothing()
        if not is_object(schema) or schema.keys().isdisjoint(_MAY_REFER):
            return self._unions(schema)
        # {"$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}} would else never
        # end, and neither would it with the reference in an `anyOf`.
        # Kept before it is read, because a schema may refer to itself.
        key = canonical_json(schema)
        if key not in self._by_reference:
            self._by_reference[key] = st.deferred(lambda: self._unions(schema))
        return self._by_reference[key]

    def _unions(self, schema: Any) -> st.SearchStrategy[Any]:
        return st.one_of([self._one(node) for node in branches_of(self._root, schema)])

    def _one(self, node: JsonSchema) -> st.SearchStrategy[Any]:
        if "const" in node:
            return st.just(node["const"])
        if is_array(node.get("enum")):
            return st.sampled_from(node["enum"]) if node["enum"] else st.nothing()
        kind = kind_of(node)
        make = self._makers().get(kind or "")
        return _ANY_VALUE if make is None else make(node)

    def _makers(self) -> dict[str, Callable[[JsonSchema], st.SearchStrategy[Any]]]:
        return {
            "null": lambda _: st.none(),
            "boolean": lambda _: st.booleans(),
            "integer": _integers,
            "number": _numbers,
            "string": _texts,
            "array": self._arrays,
            "object": self._objects,
        }

    def _arrays(self, node: JsonSchema) -> st.SearchStrategy[Any]:
        prefix = [self.values(part) for part in node.get("prefixItems", ())]
        low = node.get("minItems", 0)
        high = min(node.get("maxItems", math.inf), max(low, len(prefix)) + _MORE)
        rest = node.get("items", not prefix)
        head = st.tuples(*prefix[: int(high)]).map(list)
        if rest is False or high <= len(prefix):
            return head
        more = st.lists(
            self.values(rest),
            min_size=max(0, low - len(prefix)),
            max_size=int(high) - len(prefix),
            unique_by=canonical_json if node.get("uniqueItems") else None,
        )
        return st.tuples(head, more).map(lambda both: [*both[0], *both[1]]) if prefix else more

    def _objects(self, node: JsonSchema) -> st.SearchStrategy[Any]:
        properties: dict[str, Any] = node.get("properties", {})
        required = node.get("required", ())
        named = st.fixed_dictionaries(
            {name: self.values(properties.get(name, True)) for name in required},
            optional={
                name: self.values(part) for name, part in properties.items() if name not in required
            },
        )
        further = self._further(node, bool(properties))
        if further is None:
            return named
        low = max(0, node.get("minProperties", 0) - len(required))
        high = node.get("maxProperties", math.inf) - len(properties)
        if high < max(low, 1):
            return named
        names, inner = further
        others = st.dictionaries(
            names.filter(lambda name: name not in properties),
            inner,
            min_size=low,
            max_size=int(min(high, low + _MORE)),
        )
        # Named properties last, so that they win over one that was made up by the same name.
        return st.tuples(named, others).map(lambda both: {**both[1], **both[0]})

    def _further(
        self, node: JsonSchema, has_names: bool
    ) -> tuple[st.SearchStrategy[str], st.SearchStrategy[Any]] | None:
        """What other properties an object may have; none if the schema is silent about them."""
        patterns = node.get("patternProperties")
        if is_object(patterns) and patterns:
            pattern, inner = next(iter(patterns.items()))
            return _matching(pattern), self.values(inner)
        inner = node.get("additionalProperties", not has_names)
        if inner is False:
            return None
        names = node.get("propertyNames")
        return (ANY_TEXT if names is None else self.values(names)), self.values(inner)


def _integers(node: JsonSchema) -> st.SearchStrategy[Any]:
    step = node.get("multipleOf", 1)
    low, high = _whole_bounds(node)
    return _multiples(int(step) if step == int(step) else 1, low, high)


def _numbers(node: JsonSchema) -> st.SearchStrategy[Any]:
    lows = [node[key] for key in ("minimum", "exclusiveMinimum") if key in node]
    highs = [node[key] for key in ("maximum", "exclusiveMaximum") if key in node]
    low, high = max(lows, default=None), min(highs, default=None)
    if "multipleOf" in node:
        return _multiples(node["multipleOf"], low, high)
    floats = st.floats(
        None if low is None else float(low),
        None if high is None else float(high),
        exclude_min="exclusiveMinimum" in node,
        exclude_max="exclusiveMaximum" in node,
        allow_nan=False,
        allow_infinity=False,
    )
    return _multiples(1, *_whole_bounds(node)) | floats


def _whole_bounds(node: JsonSchema) -> tuple[int | None, int | None]:
    lows = [math.ceil(node["minimum"])] if "minimum" in node else []
    highs = [math.floor(node["maximum"])] if "maximum" in node else []
    if "exclusiveMinimum" in node:
        lows.append(math.floor(node["exclusiveMinimum"]) + 1)
    if "exclusiveMaximum" in node:
        highs.append(math.ceil(node["exclusiveMaximum"]) - 1)
    return max(lows, default=None), min(highs, default=None)


def _multiples(step: Any, low: Any, high: Any) -> st.SearchStrategy[Any]:
    """Multiples of a number from a bound to a bound; none if there is no such multiple."""
    # `-(-low // step)` rounds up where `//` rounds down: from 7 on, the first multiple of 3 is 3
    # times 3.
    least = None if low is None else int(-(-low // step))
    most = None if high is None else int(high // step)
    if least is not None and most is not None and least > most:
        return st.nothing()
    return st.integers(least, most).map(lambda count: count * step)


def _texts(node: JsonSchema) -> st.SearchStrategy[Any]:
    low, high = node.get("minLength", 0), node.get("maxLength")
    if "pattern" in node:
        texts = _matching(node["pattern"])
    elif node.get("format") in FORMATS:
        texts = FORMATS[node["format"]]
    else:
        most = low + 20 if high is None else min(high, low + 20)
        return st.text(st.characters(codec="utf-8"), min_size=low, max_size=most)
    return texts.filter(lambda text: len(text) >= low and (high is None or len(text) <= high))


def _matching(pattern: str) -> st.SearchStrategy[str]:
    # In a schema, `$` is the very end and `\d` one of ten digits.
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        pattern = pattern[:-1] + r"\Z"
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error:  # written for another engine
        return ANY_TEXT
    return st.from_regex(compiled, alphabet=st.characters(codec="utf-8"))
