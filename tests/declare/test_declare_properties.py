"""Laws of declarations for any signature: it declares, and its values survive the way round."""

from __future__ import annotations

import asyncio
import datetime
import enum
import json
import keyword
import pickle
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from lutum_py import Skip, ToolContext, ToolDef, ToolMetadata, Toolset, tool, tool_fn
from lutum_py.errors import InvalidArgumentsError
from tests.declared import call_of, schema_of, spec_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    name: str
    size: int = 0


class Tree(BaseModel):
    leaves: list[Leaf] = []
    below: Tree | None = None


@dataclass
class Point:
    x: int
    y: float = 0.0


class Row(TypedDict):
    key: str
    value: int


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAVES = st.builds(Leaf, name=TEXTS, size=st.integers())
DAYS = st.dates()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)

# Each annotation, with what its model accepts.
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (str, TEXTS),
    (bool, st.booleans()),
    (float, FLOATS),
    (type(None), st.none()),
    (Any, JSON),
    (object, JSON),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2)),
    (datetime.date, DAYS),
    (datetime.timedelta, st.timedeltas(min_value=datetime.timedelta(0))),
    (uuid.UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (Annotated[int, Field(ge=0, description="Not negative.")], st.integers(min_value=0)),
    (int | None, st.none() | st.integers()),
    (int | str, st.integers() | TEXTS),
    (list[int], st.lists(st.integers(), max_size=3)),
    (set[str], st.sets(TEXTS, max_size=3)),
    (tuple[int, str], st.tuples(st.integers(), TEXTS)),
    (tuple[bool, ...], st.lists(st.booleans(), max_size=3).map(tuple)),
    (dict[str, Any], st.dictionaries(TEXTS, JSON, max_size=3)),
    (dict[str, list[Leaf]], st.dictionaries(TEXTS, st.lists(LEAVES, max_size=2), max_size=2)),
    (Leaf, LEAVES),
    (list[Leaf] | None, st.none() | st.lists(LEAVES, max_size=2)),
    (
        Tree,
        st.recursive(
            st.builds(Tree, leaves=st.lists(LEAVES, max_size=2)),
            lambda inner: st.builds(Tree, below=inner),
            max_leaves=3,
        ),
    ),
    (Point, st.builds(Point, x=st.integers(), y=FLOATS)),
    (Row, st.fixed_dictionaries({"key": TEXTS, "value": st.integers()})),
]

HOSTILE = [
    "model_config",
    "model_fields_set",
    "model_fields",
    "model_dump",
    "model_",
    "_x",
    "x_",
    "__x",
    "x",
    "__",
    "_",
    "___",
    "json",
    "json_",
    "copy",
    "self_",
    "self",
    "cls",
    "input",
    "output",
    "schema",
    "validate",
    "construct",
    "dict",
    "fields",
    "field_",
    "call",
    "name",
    "id",
    "args",
    "kwargs",
    "context",
    "message",
    "mro",
    "__init__",
    "__class__",
    "__dict__",
    "__slots__",
    "__annotations__",
    "__pydantic_extra__",
    "__lutum_tool__",
    "_values",
    "print",
    "é",
    "ñandú",
    "Ünï",
    "名",
    "data",
    "value",
    "Input",
    "Call",
]
NAMES = st.sampled_from(HOSTILE) | st.from_regex(r"\A[a-zA-Z_][a-zA-Z0-9_]{0,8}\Z").filter(
    lambda name: not keyword.iskeyword(name)
)


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any], list[str]]:
    """Source of a function `f` that returns its visible parameters, what it names, and a call."""
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    kinds = [draw(st.sampled_from(KINDS)) for _ in names]
    scope: dict[str, Any] = {"tool_fn": tool_fn, "__name__": __name__}
    marks = sorted(draw(st.lists(st.integers(0, len(names)), min_size=2, max_size=2)))
    parts: list[str] = []
    values: dict[str, Any] = {}
    hidden: list[str] = []
    optional = False
    for index, (name, (kind, accepted)) in enumerate(zip(names, kinds, strict=True)):
        if index == marks[0] and index > 0:
            parts.append("/")
        if index == marks[1]:
            parts.append("*")
        is_keyword = index >= marks[1]
        how = draw(st.sampled_from(["shown"] * 5 + ["skipped", "context"]))
        optional = draw(st.booleans()) or (optional and not is_keyword)
        if how == "context" and any(scope[key] is ToolContext for key in scope):
            how = "shown"
        annotation = {"skipped": Annotated[kind, Skip()], "context": ToolContext}.get(how, kind)
        scope[f"T{index}"] = annotation
        part = f"{name}: T{index}"
        if optional:
            scope[f"D{index}"] = None if how == "context" else draw(accepted)
            part += f" = D{index}"
        parts.append(part)
        if how != "shown":
            hidden.append(name)
        elif not optional or draw(st.booleans()):
            values[name] = draw(accepted)
        else:
            values[name] = scope[f"D{index}"]
    if parts and parts[-1] == "*":
        parts.pop()
    shown = ", ".join(f"{name!r}: {name}" for name in names if name not in hidden)
    is_async = draw(st.booleans())
    source = (
        f"@tool_fn\n{'async ' if is_async else ''}def f({', '.join(parts)}):\n"
        f"    return {{{shown}}}"
    )
    return source, scope, values, hidden


def in_any_order(data: Any) -> Any:
    """Data without the order of its arrays: what was a set may come in any."""
    if isinstance(data, dict):
        return {key: in_any_order(part) for key, part in data.items()}
    if isinstance(data, list):
        return sorted(map(in_any_order, data), key=lambda part: json.dumps(part, sort_keys=True))
    return data


@given(signatures())
def test_any_signature_declares_and_its_values_survive(
    drawn: tuple[str, dict[str, Any], dict[str, Any], list[str]],
) -> None:
    """JSON → call → result → JSON gives what went in, whatever the parameters are called."""
    source, scope, values, hidden = drawn
    exec(compile(source, "<drawn>", "exec", dont_inherit=True), scope)
    f = scope["f"]
    schema = schema_of(f)
    # A lone object is the input itself; anything else is an object of the parameters.
    whole = not hasattr(f.Input, "model_config") or f.Input.__name__ != "FInput"
    expected = to_jsonable_python(values)
    if whole:
        (value,) = values.values()
        sent = to_jsonable_python(value)
    else:
        sent = expected
        assert list(schema["properties"]) == list(values)
        made = f.Input(**values)
        assert spec_of(f).arguments.read(spec_of(f).arguments.whole(made)) == made
    json.dumps(schema, allow_nan=False)
    call = call_of(f, json.dumps(sent))
    assert call.coerced == ()
    assert spec_of(f).arguments.read(spec_of(f).arguments.whole(call.input)) == call.input
    given_from_outside = dict.fromkeys(hidden)
    result = asyncio.run(call.call(**given_from_outside))
    assert in_any_order(result.output) == in_any_order(expected)
    call.input = call.input
    again = asyncio.run(call.retry().call(**given_from_outside))
    assert in_any_order(again.output) == in_any_order(expected)


@given(JSON)
def test_any_json_decodes_or_is_told(value: Any) -> None:
    """Whatever JSON comes as arguments, it becomes an input or an error, and nothing else."""

    @tool_fn
    def take(a: int = 0, b: list[Leaf] | None = None, c: Any = None) -> Any:
        return c

    class Tools(Toolset):
        take_it = tool(take)

    metadata = ToolMetadata(id="c", name="take", arguments=json.dumps(value))
    fault: InvalidArgumentsError | None = None
    try:
        call = Tools.parse_tool_call(metadata)
    except InvalidArgumentsError as error:
        fault = error
    if fault is None:
        assert value in (None, "") or isinstance(value, dict)
        assert call.metadata is metadata
    else:
        assert fault.fields
        assert len(str(fault)) < 3000


@given(st.text(max_size=200) | st.text('{}[]":,nul01e \\u', max_size=60))
def test_any_text_decodes_or_is_told(text: str) -> None:
    """Whatever text comes as arguments, it becomes an input or an error, and nothing else."""
    fault = ""
    try:
        call = call_of(OPEN, text)
    except InvalidArgumentsError as error:
        fault = str(error)
    if fault:
        assert fault.startswith("The arguments of tool `open_to_all` are invalid")
        assert len(fault) < 3000
    else:
        assert isinstance(call.input, dict)


OPEN = ToolDef.from_json_schema(name="open_to_all", input_schema={"type": "object"})


@given(st.dictionaries(TEXTS.filter(bool), JSON, max_size=4))
def test_inputs_of_any_shape_pickle(value: dict[str, Any]) -> None:
    """A call of a tool known by its schema travels with any input."""
    call = call_of(OPEN, json.dumps(value))
    back = pickle.loads(pickle.dumps(call))
    assert back.parts == call.parts
    assert back.digest == call.digest
