"""The law of schemas that are written straight: they are those that pydantic writes."""

from __future__ import annotations

import inspect
import json
import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Barrier
from typing import Annotated, Any, Dict, List, Literal, Optional, Union  # noqa: UP035

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from lutum_py import ToolContext, ToolMetadata, Toolset, tool_fn
from lutum_py._schema.arguments import Arguments
from lutum_py._schema.input_model import build_input_model, field_names
from lutum_py._schema.signature import REQUIRED, ModelName, Parameter, plain_schema, read_others
from lutum_py.errors import ToolDefinitionError
from tests.cases import over

# As values, for annotations that are made here.
LIST: Any = list
DICT: Any = dict
CHOICE: Any = Literal
EITHER: Any = Union
LEAVES: list[Any] = [str, int, float, bool]
TYPES: list[Any] = [
    *LEAVES,
    *(kind | None for kind in LEAVES),
    *(LIST[kind] for kind in LEAVES),
    *(DICT[str, kind] for kind in LEAVES),
    Literal["a"],
    Literal["a", "b"],
    Literal["a", "b"] | None,
    Literal["é"],
    Literal[1, 2],
    Literal["a", None],  # noqa: PYI061
    Literal[True],
    Literal[()],
    None,
    None | int,
    None | int | str,
    int | None | str,
    Optional[str],  # noqa: UP045
    Union[int, str],  # noqa: UP007
    bool | int | float,
    str | Literal["a"],  # noqa: PYI051
    Literal["a", "b"],
    list[str] | str,
    list[str | None],
    list[list[int]],
    list[dict[str, list[float]]],
    dict[str, dict[str, str | None]],
    dict[int, str],
    dict[str, Literal["a", "b"]],
    List[int],  # noqa: UP006
    Dict[str, int],  # noqa: UP006
    Union[list[int], List[int]],  # noqa: UP006, UP007
    Union[dict[str, int], Dict[str, int], None],  # noqa: UP006, UP007
    list[Union[list[str], List[str], int]],  # noqa: UP006, UP007
    List,  # noqa: UP006
    list,
    dict,
    tuple[int, str],
    set[int],
    Any,
    Annotated[int, Field(gt=2)],
    Annotated[str, "a remark"],
    list[Annotated[int, Field(gt=2)]],
]
DEFAULTS: list[Any] = [
    REQUIRED,
    None,
    "a",
    "é",
    "\ud800",
    "",
    0,
    -1,
    2**53 - 1,
    2**53,
    2**80,
    True,
    0.5,
    -0.0,
    1e300,
    math.nan,
    math.inf,
    [],
    [1],
    {},
    (),
    Field(default=3),
    object(),
]
ABOUT = (None, "", "What it is.", "Two\n  lines: é", "\u2028")


def from_pydantic(parameters: tuple[Parameter, ...]) -> str:
    """The schema as the model of the parameters has it."""
    fields = field_names(parameters)
    named = ModelName("Probe", __name__, "probe")
    model = build_input_model(named, parameters, fields, strict=False)
    return json.dumps(Arguments(model).json_schema())


@over("annotation", TYPES)
def test_a_schema_that_is_written_straight_is_that_of_pydantic(annotation: Any) -> None:
    """For every default and description it is the same text, or none at all."""
    for default, about in product(DEFAULTS, ABOUT):
        parameters = (Parameter("x", annotation, default, about),)
        written = plain_schema(parameters)
        if written is not None:
            assert json.dumps(written) == from_pydantic(parameters)


@pytest.mark.parametrize("name", ["default", "properties", "required", "type", "items", "examples"])
@over("annotation", TYPES)
def test_a_parameter_may_be_called_like_a_keyword(annotation: Any, name: str) -> None:
    """Its schema is written as pydantic writes it, which takes some of these names for the word."""
    for default in DEFAULTS:
        parameters = (
            Parameter("z", str, REQUIRED, "Last."),
            Parameter(name, annotation, default, "One."),
        )
        written = plain_schema(parameters)
        if written is not None:
            assert json.dumps(written) == from_pydantic(parameters)


def nested() -> st.SearchStrategy[Any]:
    """Annotations of plain types, nested and mixed."""
    words = st.lists(st.sampled_from(["a", "b", "c", "é", ""]), min_size=1, max_size=4)
    leaves = st.sampled_from(LEAVES) | words.map(lambda each: CHOICE[tuple(each)])
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(lambda each: LIST[each])
            | inner.map(lambda each: DICT[str, each])
            | inner.map(lambda each: each | None)
            | st.tuples(inner, inner).map(lambda two: EITHER[two])
        ),
        max_leaves=5,
    )


@given(
    st.dictionaries(
        st.from_regex("[a-z_]{1,6}", fullmatch=True) | st.sampled_from(["copy", "json", "schema"]),
        st.tuples(nested(), st.sampled_from(DEFAULTS), st.sampled_from(ABOUT)),
        max_size=5,
    )
)
def test_schemas_of_many_parameters_are_those_of_pydantic(taken: dict[str, Any]) -> None:
    """Whatever the parameters are, what is written straight is what pydantic writes."""
    parameters = tuple(Parameter(name, *each) for name, each in taken.items())
    written = plain_schema(parameters)
    if written is not None:
        assert json.dumps(written) == from_pydantic(parameters)


USUAL: list[tuple[Any, Any]] = [
    (str, REQUIRED),
    (int, 5),
    (float, 0.5),
    (bool, False),
    (str | None, None),
    (str | None, "a"),
    (Literal["a", "b"], "a"),
    (list[str], REQUIRED),
    (list[int] | None, None),
    (dict[str, float], REQUIRED),
]


@over("annotation, default", USUAL)
def test_usual_parameters_need_no_model(annotation: Any, default: Any) -> None:
    """Texts, numbers, choices, lists, mappings and what may be None are written straight."""
    assert plain_schema((Parameter("x", annotation, default, "What it is."),)) is not None


@over(
    "parameter",
    [
        Parameter("x", int, "a", None),
        Parameter("x", Literal["a", "b"], "c", None),
        Parameter("x", bool, 2, None),
        Parameter("x", list[int], ["a"], None),
        Parameter("x", str | None, 5, None),
    ],
)
def test_a_default_that_does_not_fit_is_left_to_pydantic(parameter: Parameter) -> None:
    """It is refused there, when the tool is declared."""
    assert plain_schema((parameter,)) is None
    with pytest.raises(ToolDefinitionError):
        from_pydantic((parameter,))


def test_the_model_is_made_with_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declaring a plain tool and offering it makes no class; its calls and `Input` share one."""
    made: list[str] = []

    def build(named: ModelName, *args: Any, **options: Any) -> Any:
        made.append(named.name)
        return build_input_model(named, *args, **options)

    monkeypatch.setattr("lutum_py._schema.input_model.build_input_model", build)

    @tool_fn
    def search(query: str, limit: int = 3) -> str:
        return query * limit

    tools = Toolset.of("Plain", search)
    assert list(tools.definitions()[0].input_schema["properties"]) == ["query", "limit"]
    assert made == []
    metadata = ToolMetadata(id="c1", name="search", arguments='{"query": "x"}')
    call: Any = tools.parse_tool_call(metadata)
    assert call.input == search.Input(query="x")
    assert made == ["SearchInput"]


def test_threads_share_one_model() -> None:
    """Threads that make the first call at the same time decode to one class."""

    @tool_fn
    def search(query: str, limit: int = 3) -> str:
        return query * limit

    together = Barrier(4)

    def ask() -> type:
        together.wait()
        return search.Input

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(ask) for _ in range(4)]
        assert len({each.result() for each in found}) == 1


def test_what_a_tool_does_not_have_it_never_has() -> None:
    """A misspelt attribute is an error before the first call and after it."""

    @tool_fn
    def search(query: str) -> str:
        return query

    spec: Any = search.__lutum_fn__()
    for _ in range(2):
        with pytest.raises(AttributeError, match="made_up"):
            _ = spec.made_up
        with pytest.raises(AttributeError, match="made_up"):
            _ = spec.arguments.made_up
        assert spec.arguments.type is search.Input


def test_pairs_of_sound_parameters_that_fail_together() -> None:
    """A model that fails as a whole is told as such."""
    sound = (Parameter("a", int, REQUIRED, None),)
    with pytest.raises(ToolDefinitionError, match=r"Tool function `f` cannot become a tool: "):
        build_input_model(ModelName("X", __name__, "f"), sound, {"a": "model_config"}, strict=False)


def test_a_handler_may_have_a_generated_signature() -> None:
    """The context of a handler is found in its signature."""

    def handle(q, other):  # type: ignore[no-untyped-def]
        return f"{q} {other}"

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given: Any = handle
    given.__signature__ = inspect.Signature(
        [
            inspect.Parameter("q", kind, annotation=str),
            inspect.Parameter("other", kind, annotation=ToolContext),
        ]
    )
    assert read_others(given, ["q"]) == ({}, "other", False)
