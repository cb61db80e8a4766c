"""Inputs are written as JSON that holds all of them, most of them straight by pydantic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    field_serializer,
)
from typing_extensions import TypedDict

from lutum_py._schema.arguments import Arguments, InputText
from lutum_py._schema.read_back import exact_data
from tests.cases import over


class Place(BaseModel):
    name: str
    lat: float | None = None
    tags: list[str] = []


@dataclass
class Window:
    size: int
    places: list[Place]


class Options(TypedDict, total=False):
    limit: int | None
    mode: Literal["a", "b"]


class Search(BaseModel):
    near: Place | None
    by_name: dict[str, Place] = {}
    window: Window | None = None
    options: Options = {}
    at: datetime | None = None
    when: Annotated[int, AfterValidator(abs)] = Field(1, alias="wann")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=4)
PLACES = st.builds(Place, name=TEXTS, lat=st.none() | st.floats(-90, 90), tags=st.lists(TEXTS))
SEARCHES = st.builds(
    Search,
    near=st.none() | PLACES,
    by_name=st.dictionaries(TEXTS, PLACES, max_size=2),
    window=st.none()
    | st.builds(Window, size=st.integers(-(2**70), 2**70), places=st.lists(PLACES, max_size=2)),
    options=st.fixed_dictionaries({}, optional={"limit": st.none() | st.integers()}),
    at=st.none() | st.datetimes(),
    wann=st.integers(-9, 9),
)


@given(one=SEARCHES, other=SEARCHES)
def test_the_short_way_writes_what_the_long_way_writes(one: Search, other: Search) -> None:
    """Nested models, dataclasses and mappings come back as they were; equal ones have one text."""
    arguments = Arguments(Search)
    text = arguments.whole(one).json
    assert text is not None
    assert arguments.read(InputText(text)) == one
    assert (text == arguments.whole(other).json) is (one == other)
    assert arguments.to_data(one) == exact_data(arguments._plain(one), one)


def test_a_change_in_place_shows_wherever_it_is_made() -> None:
    """Deep inside of an input, a change makes another text, as does a number that JSON has not."""
    arguments = Arguments(Search)
    near, rome = Place(name="Oslo", lat=1.5), Place(name="Rome")
    given = Search(near=near, window=Window(1, [rome]), wann=1)
    texts = [arguments.whole(given).json]
    near.tags.append("x")
    texts.append(arguments.whole(given).json)
    rome.name = "Bergen"
    texts.append(arguments.whole(given).json)
    given.by_name["a"] = Place(name="")
    texts.append(arguments.whole(given).json)
    near.lat = math.inf
    texts.append(arguments.whole(given).json)
    assert len(set(texts)) == 5


class Masked(BaseModel):
    pin: SecretStr


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


class Upper(BaseModel):
    text: str

    @field_serializer("text")
    def upper(self, text: str) -> str:
        return text.upper()


def holding(inner: Any) -> type[BaseModel]:
    return type("Holding", (BaseModel,), {"__annotations__": {"inner": list[inner]}})


@over(
    "inner, value",
    [
        (Masked, Masked(pin=SecretStr("1234"))),
        (SecretStr, SecretStr("1234")),
        (set[str], {"b", "a", "c"}),
        (Any, {"c", "a", "b"}),
        (object, SecretStr("1234")),
        (RootModel[set[int]], RootModel[set[int]]({3, 1, 2})),
        (Loose, Loose(pins={"b", "a"})),  # type: ignore[call-arg]
    ],
)
def test_what_pydantic_masks_or_shuffles_goes_the_long_way(inner: Any, value: Any) -> None:
    """A type with a secret, a set, or anything at all in it is coerced: revealed, and in order."""
    arguments = Arguments(holding(inner))
    given = arguments.type(inner=[value])
    data = arguments.to_data(given)
    assert data == exact_data(arguments._plain(given), given)
    assert "**" not in str(data)
    text = arguments.whole(given).json
    assert text is not None
    assert b"**" not in text
    if isinstance(value, set):
        assert data["inner"] == [["a", "b", "c"]]


def test_what_the_author_writes_otherwise_stays_so() -> None:
    """A serializer of the author's is asked, whichever way is taken."""
    arguments = Arguments(holding(Upper))
    assert arguments.to_data(arguments.type(inner=[Upper(text="a")])) == {"inner": [{"text": "A"}]}


@over("default", [math.nan, object()])
def test_a_default_that_json_cannot_carry_is_left_out(default: Any) -> None:
    """It is there again when the text is read, since nobody gave another."""
    model = type("Odd", (BaseModel,), {"__annotations__": {"n": float, "m": int}, "n": default})
    arguments = Arguments(model)
    with_default = arguments.validate_json('{"m":1}')
    text = arguments.whole(with_default).json
    assert text == b'{"m":1}'
    again = arguments.read(InputText(text)).n
    assert again is default or again == default


@pytest.mark.parametrize("model", [Search, holding(Place)])
def test_a_half_of_a_surrogate_pair_is_written(model: type[BaseModel]) -> None:
    """A text that is no Unicode, as programs make them, has a form all the same."""
    arguments = Arguments(model)
    place = Place.model_construct(name="\ud800", lat=None, tags=[])
    held = model.model_construct(near=place, inner=[place])
    assert arguments.whole(held).json is not None
