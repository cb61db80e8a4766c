"""The laws of inputs that a program makes, and of values as data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import InitVar, dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict

from lutum_py import ToolInput, Toolset, tool, tool_fn
from lutum_py.errors import InvalidArgumentsError, ToolInputError
from lutum_py.execution import run_sync
from tests.cases import over
from tests.declared import call_of, refusal, schema_of, spec_of
from tests.private import InputText
from tests.round_tools import opened
from tests.schema.query_tool import Filter, query

# Inputs that a program makes.


@dataclass
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        self.z = self.x


@dataclass
class Counted:
    x: int
    start: InitVar[int] = 0


class Movement(TypedDict):
    by: list[Filter]


class Scene(ToolInput[int]):
    model_config = ConfigDict(extra="allow")
    point: Point
    filters: list[Filter] = Field(default_factory=list)
    pair: tuple[Filter, int] | None = None
    shape: Point | Filter | None = None
    weight: Any = None


@tool_fn
def plot(point: Point) -> None:
    """Plot."""


@tool_fn
def move(movement: Movement) -> None:
    """Move."""


def test_an_assigned_input_is_checked_through_its_fields() -> None:
    """An instance is not taken as it is: a field that was set to something else is found."""
    call = call_of(Scene, {"point": {"x": 1}})
    good = Scene.model_validate(
        {"point": {"x": 2}, "filters": [{"name": "n"}], "pair": [{"name": "m"}, 3], "more": 4}
    )
    call.input = good
    assert call.input == good
    assert call.input.model_extra == {"more": 4}
    broken: list[tuple[Any, str]] = [
        (Scene.model_construct(point="x"), "`point`: Input should be an object (got 'x')"),
        (Scene.model_construct(point=Point("x")), "`point.x`: Input should be a valid integer"),  # type: ignore[arg-type]
        (
            Scene.model_construct(point=Point(1), filters=[Filter.model_construct(name=3)]),
            "`filters[0].name`: Input should be a valid string (got 3)",
        ),
        (
            Scene.model_construct(point=Point(1), pair=(Filter.model_construct(name=3), 1)),
            "`pair[0].name`: Input should be a valid string (got 3)",
        ),
        (
            Scene.model_construct(point=Point(1), weight={"a": [float("nan")]}),
            "Input should be a finite number (got",
        ),
        ({"point": {"x": "y"}}, "`point.x`: Input should be a valid integer"),
        (3, "Input should be a valid dictionary or instance of Scene (got 3)"),
    ]
    for value, expected in broken:
        with pytest.raises(ToolInputError) as caught:
            call.input = value
        assert str(caught.value).startswith("This input does not fit tool `scene`: ")
        assert expected in str(caught.value)
        assert str(caught.value).endswith("Pass a valid `Scene`.")
        assert caught.value.tool == "scene"
        assert caught.value.fields
    assert call.input == good


def test_a_part_of_a_union_keeps_its_class() -> None:
    """Writing an input does not turn one member of a union into another of the same shape: where
    no text tells them apart, the input is refused.
    """

    class One(BaseModel):
        a: int

    class Two(BaseModel):
        a: int

    class Other(BaseModel):
        kind: Literal["other"] = "other"
        a: int

    class Both(ToolInput[int]):
        part: One | Two
        parts: dict[str, One | Other] | None = None

    call = call_of(Both, {"part": {"a": 1}})
    call.input = Both(part=One(a=2), parts={"x": Other(a=3)})
    assert type(call.input.part) is One
    assert type(call.input.parts["x"]) is Other
    with pytest.raises(ToolInputError, match="`part` would be different") as caught:
        call.input = Both(part=Two(a=2))
    assert [each.path for each in caught.value.fields] == ["part"]
    assert type(call.input.part) is One


def test_dataclasses_and_dicts_are_checked_too() -> None:
    """An input that is a dataclass or a dict is checked through its fields like a model."""
    call = call_of(plot, {"x": 1})
    call.input = Point(5)
    assert (call.input, call.input.z) == (Point(5), 5)
    call.input = {"x": 6}
    assert call.input == Point(6)
    wrong = Point(1)
    wrong.x = "no"  # type: ignore[assignment]
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["x"]
    ):
        call.input = wrong
    call = call_of(move, {"by": []})
    call.input = {"by": [Filter(name="n")]}
    assert call.input == {"by": [Filter(name="n")]}
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["by[0].name"]
    ):
        call.input = {"by": [Filter.model_construct(name=3)]}


def test_infinities_do_not_come_in_through_instances() -> None:
    """A part whose own class lets an infinity through does not bring it into an input."""

    class Measure(BaseModel):
        value: float

    class Weigh(ToolInput[int]):
        many: list[Measure]

    call = call_of(Weigh, {"many": []})
    with pytest.raises(
        ToolInputError,
        check=lambda error: [each.path for each in error.fields] == ["many[0].value"],
    ):
        call.input = Weigh(many=[Measure(value=float("inf"))])
    call.input = Weigh(many=[Measure(value=1)])
    assert call.input.many[0].value == 1


def test_a_root_model_is_checked_through_its_root() -> None:
    """The input of a union is taken apart down to its member."""

    class Wrapped(RootModel[Filter | Point]):
        """One or the other."""

    from lutum_py import tool_input

    declared = tool_input(output=int)(Wrapped)
    call = call_of(declared, {"name": "n"})
    call.input = Wrapped(Filter(name="m"))
    assert call.input.root == Filter(name="m")
    call.input = Wrapped(Point(3))
    assert call.input.root == Point(3)
    with pytest.raises(
        ToolInputError, check=lambda error: "Filter.name" in [each.path for each in error.fields]
    ):
        call.input = Wrapped.model_construct(Filter.model_construct(name=3))


# To data and back.


def test_defaults_that_json_cannot_carry_are_left_out() -> None:
    """An input with such a default still has data and a digest; the default comes back with it."""
    sentinel = object()

    @tool_fn
    def odd(a: int, limit: float = float("inf"), mark: Any = sentinel) -> None:
        """Have odd defaults."""

    @tool_fn
    def endless(a: int, limit: float = float("inf")) -> None:
        """Have an endless default."""

    codec = spec_of(odd).arguments
    call = call_of(odd, {"a": 1})
    assert codec.to_data(call.input) == {"a": 1}
    assert codec.read(InputText(b'{"a": 1}')).mark is sentinel
    assert call.digest.startswith("sha256:")
    assert spec_of(endless).arguments.to_data(call_of(endless, {"a": 1}).input) == {"a": 1}
    json.dumps(schema_of(endless), allow_nan=False)


def test_data_without_a_json_form_is_refused() -> None:
    """An input of what JSON cannot carry is refused, since nobody could be shown what runs."""

    class Free(ToolInput[int]):
        anything: Any = None

    call = call_of(Free)
    with pytest.raises(ToolInputError) as caught:
        call.input = Free(anything=object())
    assert str(caught.value) == (
        "This input of tool `free` has no JSON form (Unable to serialize unknown type: <class "
        "'object'>), so nobody could be shown what runs. Pass a valid `Free`, or give its types a "
        "form, as by a serializer."
    )
    assert call.input == Free()


def test_a_program_is_told_of_an_unknown_field_in_short() -> None:
    """An unknown field of an input that a program made is just that."""

    class Named(ToolInput[int]):
        name: str

    call = call_of(Named, {"name": "n"})
    with pytest.raises(ToolInputError) as caught:
        call.input = {"name": "n", "more": 1}
    (issue,) = caught.value.fields
    assert str(issue) == "`more`: there is no such field (got 1)"
    assert issue.path == "more"


def test_an_error_carries_its_fields() -> None:
    """Besides its text an error has the failing fields, and hides values when it is told to."""
    with pytest.raises(InvalidArgumentsError) as caught:
        call_of(query, {"ids": ["x"]})
    (issue,) = caught.value.fields
    assert (issue.path, issue.received) == ("ids[0]", "'x'")
    assert refusal(query, {"ids": ["x"]}, redact=True) == (
        "- `ids[0]`: Input should be a valid integer, unable to parse string as an integer"
    )


def test_what_a_dataclass_is_not_given() -> None:
    """A dataclass names its missing and unknown fields like a model."""

    @tool_fn
    def count(counted: Counted) -> None:
        """Count."""

    assert refusal(count, {"y": 1}) == (
        "- `x`: this field is required\n"
        "- `y`: there is no such field; the fields are `x`, `start` (got 1)"
    )
    assert call_of(count, {"x": 1, "start": 3}).input.x == 1


class Line(BaseModel):
    sku: str
    tags: Iterable[str] = ()


class Order(BaseModel):
    lines: Iterable[Line]


class Parcel(BaseModel):
    order: Order
    weights: Annotated[Iterable[int], Field(max_length=2)]


LINES = {"lines": [{"sku": "hat", "tags": ["a", "b"]}, {"sku": "tie", "tags": []}]}


@tool_fn
def send(parcel: Parcel, to: Iterable[str] = ()) -> list[str]:
    """Send a parcel."""
    return [*(line.sku for line in parcel.order.lines), *map(str, parcel.weights), *to]


def test_an_iterable_is_read_again_and_again() -> None:
    """Of the iterator that pydantic makes of it a digest or a question would leave nothing."""
    data = {"parcel": {"order": LINES, "weights": [3]}, "to": ["ann"]}

    class Post(Toolset):
        send = tool(send, needs_approval=True)

    plan = opened(("c1", "send", data), toolset=Post).plan()
    (waiting,) = plan.suspended
    assert waiting.arguments == data
    plan = Post.load_plan(plan.dump_json())
    plan.resume(plan.suspended[0].approve())
    (result,) = run_sync(plan).resolve().results
    assert result.output == ["hat", "tie", "3", "ann"]


def test_the_items_of_an_iterable_are_checked() -> None:
    """A wrong one is an issue, as in a list, and no exception within the tool."""
    parcel = {"order": {"lines": [{"sku": 3}]}, "weights": [1, 2, 3]}
    said = refusal(send, {"parcel": parcel})
    assert "`parcel.order.lines[0].sku`: Input should be a valid string" in said
    assert "`parcel.weights`: List should have at most 2 items" in said


def test_an_iterator_in_an_input_that_a_program_makes_is_kept() -> None:
    """That of an instance inside of the input as well, whose class has made an iterator of it."""
    call = call_of(send, {"parcel": {"order": {"lines": []}, "weights": []}})
    lines = (Line(sku=sku, tags=iter(tags)) for sku, tags in (("hat", "ab"), ("tie", "")))
    call.input = {"parcel": Parcel(order=Order(lines=lines), weights=iter([3]))}
    for _ in range(2):
        made = call.final_arguments
        assert made == {"parcel": {"order": LINES, "weights": [3]}}


LOGIN = {"user": "ann", "password": "x", "tries": 3}


class Login(BaseModel):
    user: str
    password: str = Field(exclude=True)
    tries: int = Field(default=1, exclude=True)


@tool_fn
def enter(login: Login, note: str = "", trace: Annotated[int, Field(exclude=True)] = 0) -> str:
    """Log in."""
    return f"{login.user} {login.password} {login.tries} {note} {trace}"


@over(
    "is_saved, changes",
    [(False, {}), (True, {}), (True, {"note": "b", "login": {**LOGIN, "user": "eve"}})],
)
def test_what_is_left_out_of_what_is_written_reaches_the_tool(
    is_saved: bool, changes: dict[str, Any]
) -> None:
    """An author leaves a field out of dumps: the tool gets it as sent, and whoever approves is
    shown it.
    """

    class Gate(Toolset):
        enter = tool(enter, needs_approval=True)

    plan = opened(("c1", "enter", {"login": LOGIN, "note": "a", "trace": 7}), toolset=Gate).plan()
    plan = Gate.load_plan(plan.dump_json()) if is_saved else plan
    (waiting,) = plan.suspended
    assert waiting.arguments == {"login": LOGIN, "note": "a", "trace": 7}
    plan.amend_sync(waiting.edit(changes), Gate.HookSet())
    (result,) = run_sync(plan).resolve().results
    assert result.output == ("eve x 3 b 7" if changes else "ann x 3 a 7")


def test_a_parameter_is_left_out_by_its_default_alike() -> None:
    """`= Field(exclude=True)` leaves it out of nothing that is shown or saved."""

    @tool_fn
    def unlock(code: str = Field("0000", exclude=True), tries: int = 1) -> str:
        return f"{code} {tries}"

    class Door(Toolset):
        door = tool(unlock, needs_approval=True)

    plan = opened(("c1", "unlock", {"code": "1234"}), toolset=Door).plan()
    plan = Door.load_plan(plan.dump_json())
    (waiting,) = plan.suspended
    assert waiting.arguments == {"code": "1234", "tries": 1}
    plan.resume(waiting.approve())
    (result,) = run_sync(plan).resolve().results
    assert result.output == "1234 1"


class Bounded(BaseModel):
    sku: str
    limit: float = Field(default=float("inf"), exclude=True)


class Connected(BaseModel):
    sku: str
    source: Any = Field(default_factory=object, exclude=True)


@over("kind", [Bounded, Connected])
def test_what_has_no_json_form_stays_left_out(kind: type[Any]) -> None:
    """A connection that the model holds, or a number that JSON has not, comes back as a default."""

    class Shelf(Toolset):
        put = tool(tool_fn(name="put")(putting(kind)))

    plan = opened(("c1", "put", {"line": {"sku": "hat"}, "at": 2}), toolset=Shelf).plan()
    plan = Shelf.load_plan(plan.dump_json())
    (result,) = run_sync(plan).resolve().results
    assert result.output == "hat 2"


def putting(kind: type[Any]) -> Any:
    """A function that takes a line of a kind."""

    def put(line: Any, at: int) -> str:
        return f"{line.sku} {at}"

    put.__annotations__["line"] = kind
    return put
