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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Final, TypeAlias

from ... import ToolMetadata, Toolset
from ..._schema.field_issues import path_of
from ..._schema.schema_reader import UNIONS, localized, parts_of, type_of
from ..._text.json import (
    canonical_json,
    compact_json,
    copy_json,
    is_array,
    is_object,
    is_whole,
    shorten,
)
from ..._toolsets.members import members_of
from ...dialects._schema.nodes import conjoined
from ...errors import InvalidArgumentsError, InvalidValueError, MisuseError
from ...typing import AnySelector, Available, JsonSchema
from . import NoSuchExample, Phase, Settings, Unsatisfiable, event, find, reject, st

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


_GONE: Any = object()
_EXACT = 2**40
"""So many steps from zero, a number still has room for half a step more."""
_WRONG: dict[str, tuple[Any, ...]] = {
    "string": ([], {"an": "object"}),
    "integer": ("not a number", [7], {"a": 1}, 0.5),
    "number": ("not a number", [0.5], {"a": 1}),
    "boolean": ("neither", [True], 7),
    "null": ("something", 1),
    "array": ("not a list", 7, True),
    "object": ("not an object", 7, [[7]]),
}
"""For each JSON type, values that are not of it in any reading."""


@dataclass(frozen=True, slots=True)
class Spoiling:
    """One way to spoil arguments.

    Attributes:
        kind: What is wrong afterwards, as in `missing_field`.
        path: Where, as in `filters[0].name`.
        steps: The same as keys and positions.
        value: What is there instead; a mark of its own where nothing does.
    """

    kind: str
    path: str
    steps: tuple[int | str, ...]
    value: Any

    def apply(self, arguments: Any) -> Any:
        """Return a spoiled copy of the arguments."""
        made = copy_json(arguments)
        parent = made
        for step in self.steps[:-1]:
            parent = parent[step]
        if self.value is _GONE:
            del parent[self.steps[-1]]
        else:
            parent[self.steps[-1]] = self.value
        return made


def spoilings(schema: JsonSchema, arguments: Any) -> Iterator[Spoiling]:
    """List the ways to spoil arguments that fit a schema."""
    yield from _inside(schema, schema, arguments, ())


def _inside(
    root: JsonSchema, schema: Any, value: Any, steps: tuple[int | str, ...]
) -> Iterator[Spoiling]:
    """Walk what is certain: below a union nobody knows which branch a value was meant for."""
    # For {"days": 3} under {"properties": {"days": {"type": "integer", "maximum": 7}}} this gives
    # among others ("wrong_type", "days", [7]) and ("out_of_range", "days", 8).
    nodes = [*branches_of(root, schema)]
    if steps:
        yield from _here(root, nodes, schema, value, steps)
    if len(nodes) != 1:
        return
    node = nodes[0]
    if is_object(value):
        yield from _object(root, node, value, steps)
    elif is_array(value):
        prefix: list[Any] = node.get("prefixItems", [])
        for at, part in enumerate(value):
            inner = prefix[at] if at < len(prefix) else node.get("items", True)
            yield from _inside(root, inner, part, (*steps, at))


def _object(
    root: JsonSchema, node: JsonSchema, value: dict[str, Any], steps: tuple[int | str, ...]
) -> Iterator[Spoiling]:
    properties: dict[str, Any] = node.get("properties", {})
    required: Sequence[str] = node.get("required", ())
    for name in required:
        if name in value:
            yield _spoiling("missing_field", (*steps, name), _GONE)
    if node.get("additionalProperties") is False and not node.get("patternProperties"):
        near = next((f"{name}_" for name in properties if f"{name}_" not in properties), "extra")
        yield _spoiling("extra_field", (*steps, near), 1)
    for name, part in properties.items():
        if name in value:
            place = (*steps, name)
            yield from _inside(root, part, value[name], place)
            if "null" not in kinds_accepted(root, part):
                kind = "null" if name in required else "null_for_optional"
                yield _spoiling(kind, place, None)


def _here(
    root: JsonSchema,
    nodes: list[JsonSchema],
    schema: Any,
    value: Any,
    steps: tuple[int | str, ...],
) -> Iterator[Spoiling]:
    kinds = kinds_accepted(root, schema)
    for wrong in _wrong_for(kinds):
        yield _spoiling("wrong_type", steps, wrong)
    if "string" not in kinds and (is_object(value) or is_array(value)):
        yield _spoiling("container_as_string", steps, compact_json(value))
    if all("enum" in node or "const" in node for node in nodes):
        for wrong in _not_among([each for node in nodes for each in _choices(node)]):
            yield _spoiling("wrong_choice", steps, wrong)
    if len(nodes) == 1:
        for wrong in _out_of_range(nodes[0], value):
            yield _spoiling("out_of_range", steps, wrong)
        if nodes[0].get("format") in MALFORMED:
            yield _spoiling("wrong_format", steps, "(")


def _wrong_for(kinds: frozenset[str]) -> Iterator[Any]:
    """Values that none of the types takes: what is wrong for each of them."""
    every = [_WRONG[kind] for kind in sorted(kinds)]
    for wrong in every[0] if every else ():
        # By type alone: of a union of `int | str`, an array is wrong for both, and 0.5 for one of
        # them only.
        if all(type(wrong) in map(type, others) for others in every):
            yield wrong


def _choices(node: JsonSchema) -> list[Any]:
    choices: list[Any] = node["enum"] if "enum" in node else [node["const"]]
    return choices


def _not_among(known: list[Any]) -> Iterator[Any]:
    texts = [choice for choice in known if isinstance(choice, str)]
    numbers = [choice for choice in known if isinstance(choice, int | float)]
    if texts:
        # One of these is not among them: there is one more than they are.
        longer = (texts[0] + "_" * count for count in range(1, len(known) + 1))
        yield next(made for made in longer if made not in known)
    elif numbers:
        yield max(numbers) + 7


def _out_of_range(node: JsonSchema, value: Any) -> Iterator[Any]:
    kind = kind_of(node)
    if kind in ("integer", "number"):
        step = 1 if kind == "integer" else 0.5
        beyond = {"minimum": -step, "maximum": step, "exclusiveMinimum": 0, "exclusiveMaximum": 0}
        for key, by in beyond.items():
            if key in node:
                yield node[key] + by
        if "multipleOf" in node:
            yield from _between_multiples(kind, node["multipleOf"], value)
    elif kind == "string" and not node.get("format"):
        if node.get("minLength", 0) > 0:
            yield "x" * (node["minLength"] - 1)
        if "maxLength" in node:
            yield "x" * (node["maxLength"] + 1)
        if "pattern" in node:
            yield "\n"
    elif is_array(value):
        if node.get("minItems", 0) > 0:
            yield value[: node["minItems"] - 1]
        if value and "maxItems" in node:
            yield [*value, *[value[-1]] * (node["maxItems"] + 1 - len(value))]


def _between_multiples(kind: str, step: Any, value: Any) -> Iterator[Any]:
    if kind == "integer" and step > 1:
        yield value + 1
    elif kind == "number" and abs(value) < _EXACT * step:
        yield value + step / 2


def _spoiling(kind: str, steps: tuple[int | str, ...], value: Any) -> Spoiling:
    return Spoiling(kind, path_of(steps), steps, value)


AnyToolset: TypeAlias = type[Toolset]
"""A toolset, as its class."""

ArgumentStrategies: TypeAlias = "Mapping[Any, st.SearchStrategy[Any]]"
"""Strategies of your own for the arguments of some tools, by selector or wire name."""

Spoken: TypeAlias = tuple[str, str]
"""A call without its id: wire name, and argument text."""

_A_FEW = Settings(max_examples=200, deadline=None, database=None, phases=[Phase.generate])
_OWN: Final = '`{"forecast": st.just({"city": "Oslo"})}`'
_COERCED = ("container_as_string", "null_for_optional")
_ODD_NAMES = ("", " ", "no such tool!", "tool\n", "ünïcode", "🔧", '"quoted"', "a/b", "x" * 200)
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""The names that every provider takes back."""
_PLAIN_NAMES = st.from_regex(PLAIN_NAME, fullmatch=True)
_PREFIXES = ("functions.", "tools:", "mcp__", "_")


class CallStrategies:
    """Make the strategies of one toolset, for the tools that a turn offers.

    Args:
        toolset: The tools.
        available: Which of them are on offer; those that are on by default.
        arguments: Strategies for tools whose arguments cannot be found by trying.
        odd_names: Whether unknown names may be such as providers refuse to take back.

    Raises:
        MisuseError: `arguments` holds something else than strategies.
    """

    def __init__(
        self,
        toolset: AnyToolset,
        available: Available,
        arguments: ArgumentStrategies,
        *,
        odd_names: bool = True,
    ) -> None:
        self._toolset = toolset
        self._odd_names = odd_names
        self._offered = members_of(toolset).offer.resolve(available)
        # By wire name: those of the user, and the others once they are asked for.
        self._arguments: dict[str, st.SearchStrategy[Any]] = {}
        # A selector of a nested toolset may stand for several tools: each gets the strategy.
        for named, strategy in _pairs(arguments):
            for selector in toolset.select(named):
                _require_strategy(selector.name, strategy)
                self._arguments[selector.name] = _fitting(selector, strategy)

    @property
    def offered(self) -> tuple[AnySelector, ...]:
        """The tools on offer."""
        return self._offered.selectors

    def kinds(self) -> dict[str, st.SearchStrategy[Spoken]]:
        """Return every kind of call that this toolset can be sent."""
        made: dict[str, st.SearchStrategy[Spoken]] = {}
        if self._offered.selectors:
            made["valid"] = self._of_each(self._valid_of)
            given = self.arguments
            made["near_miss"] = self._of_each(lambda each: _spoilt(each, given(each), False))
            made["coerced"] = self._of_each(lambda each: _spoilt(each, given(each), True))
            made["truncated"] = made["valid"].flatmap(_cut_off)
        made["unknown_tool"] = self._unknown_tool()
        if len(self._offered.selectors) < len(self._toolset):
            made["not_available"] = self._of_each(self._valid_of, offered=False)
        return made

    def arguments(self, selector: AnySelector) -> st.SearchStrategy[Any]:
        """Arguments that fit a tool, as data."""
        if selector.name not in self._arguments:
            schema = localized(selector.definition.input_schema)
            made = SchemaValues(schema).values(schema)
            self._arguments[selector.name] = _fitting(selector, made)
        return self._arguments[selector.name]

    def _unknown_tool(self) -> st.SearchStrategy[Spoken]:
        names = st.sampled_from(_ODD_NAMES) | ANY_TEXT if self._odd_names else _PLAIN_NAMES
        if len(self._toolset):
            known = st.sampled_from([selector.name for selector in self._toolset])
            names = known.flatmap(_misspelt) | names
        if not self._odd_names:
            names = names.filter(PLAIN_NAME.fullmatch)
        unknown = names.filter(lambda name: name not in self._toolset)
        return st.tuples(unknown, st.sampled_from(["{}", '{"query":"x"}', ""]))

    def _valid_of(self, selector: AnySelector) -> st.SearchStrategy[Spoken]:
        return self.arguments(selector).map(lambda data: (selector.name, compact_json(data)))

    def _of_each(
        self,
        make: Callable[[AnySelector], st.SearchStrategy[Spoken]],
        *,
        offered: bool = True,
    ) -> st.SearchStrategy[Spoken]:
        chosen = {
            each.name: make(each)
            for each in self._toolset
            if (each.name in self._offered.by_name) is offered
        }
        # Not `one_of`, which would take unions apart, and favour the tools that have them.
        return st.sampled_from(list(chosen)).flatmap(chosen.__getitem__)


def _fitting(selector: AnySelector, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return arguments.filter(lambda data: is_object(data) and fits(selector, compact_json(data)))


def _cut_off(call: Spoken) -> st.SearchStrategy[Spoken]:
    name, text = call
    return st.integers(1, len(text) - 1).map(lambda at: (name, text[:at]))


def _pairs(arguments: ArgumentStrategies) -> Iterable[tuple[Any, Any]]:
    if not isinstance(arguments, Mapping):
        raise MisuseError(
            f"`arguments` maps tools to strategies of JSON objects, as in {_OWN}; it is "
            f"{shorten(arguments)}."
        )
    return arguments.items()


def _require_strategy(tool: str, given: object) -> None:
    if not isinstance(given, st.SearchStrategy):
        raise MisuseError(
            f"`arguments` gives tool `{tool}` {shorten(given)}, which is not a strategy. Give one "
            f"of JSON objects, as in {_OWN}."
        )


def require_toolset(taker: str, given: object) -> None:
    """Make sure that something is a toolset.

    Args:
        taker: What takes it, for the message.
        given: What was given.

    Raises:
        MisuseError: It is not a toolset.
    """
    checked: Any = given
    if not (isinstance(checked, type) and issubclass(checked, Toolset)):
        raise MisuseError(
            f"{taker} takes a Toolset, not {shorten(given)}. Declare a class with `tool(...)` "
            "members."
        )


def fits(selector: AnySelector, text: str) -> bool:
    """Whether a tool takes this argument text."""
    try:
        selector._decode(ToolMetadata(id="", name=selector.name, arguments=text))
    except InvalidArgumentsError:
        return False
    return True


@st.composite
def _spoilt(
    draw: st.DrawFn, selector: AnySelector, arguments: st.SearchStrategy[Any], is_coerced: bool
) -> Spoken:
    """Spoil arguments that fit, in a way that the tool coerces, or in one that it refuses."""
    data = draw(arguments)
    text = compact_json(data)
    ways: dict[str, list[Spoiling | str]] = {}
    for spoiling in spoilings(localized(selector.definition.input_schema), data):
        if (spoiling.kind in _COERCED) is is_coerced:
            ways.setdefault(spoiling.kind, []).append(spoiling)
    if is_coerced:
        ways["arguments_as_string"] = [compact_json(text)]
        if fits(selector, ""):
            ways["nothing"] = ["", "null"]
    else:
        ways["not_an_object"] = ["[7]", "7", '"text"']
        # Three that models do send: a brace too many, Python's quotes, and a block of Markdown.
        ways["not_json"] = [f"{text}}}", f"{{'query': {text}}}", f"```json\n{text}\n```"]
    kind = draw(st.sampled_from(list(ways)))
    way = draw(st.sampled_from(ways[kind]))
    sent = way if isinstance(way, str) else compact_json(way.apply(data))
    # The tool has the last word: a validator of its own may take what the schema forbids.
    if fits(selector, sent) is not is_coerced:
        reject()
    event(f"coerced: {kind}" if is_coerced else f"near miss: {kind}")
    return selector.name, sent


def _misspelt(name: str) -> st.SearchStrategy[str]:
    places = st.integers(0, len(name) - 1)
    return st.one_of(
        places.map(lambda at: name[:at] + name[at + 1 :]),
        places.map(lambda at: name[: at + 1] + name[at:]),
        st.sampled_from([name.upper(), name.title(), name.replace("_", "-"), f"{name}s"]),
        st.sampled_from(_PREFIXES).map(lambda prefix: prefix + name),
    )


def check_arguments(
    toolset: AnyToolset, available: Available, arguments: ArgumentStrategies
) -> None:
    """Make sure that arguments that fit can be found for every tool on offer.

    Raises:
        InvalidValueError: For some tool there are none; the text names it.
    """
    made = CallStrategies(toolset, available, arguments)
    for selector in made.offered:
        try:
            find(made.arguments(selector), lambda _: True, settings=_A_FEW)
        except (NoSuchExample, Unsatisfiable):
            raise InvalidValueError(
                f"No arguments were found that tool `{selector.name}` takes. Make some that its "
                f"validators allow: `arguments={{{selector.name!r}: strategy}}`, with a "
                "strategy of JSON objects."
            ) from None


def require_count(name: str, given: object) -> None:
    """Make sure that a limit lets something through.

    Args:
        name: The parameter.
        given: What was given.

    Raises:
        MisuseError: It is not a whole number.
        InvalidValueError: It is below 1.
    """
    if not is_whole(given):
        raise MisuseError(f"`{name}` takes a whole number from 1 on, not {shorten(given)}.")
    if given < 1:
        raise InvalidValueError(
            f"`{name}` is {given}, so nothing would be tried. Give a whole number from 1 on."
        )
