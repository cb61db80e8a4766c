"""Which types need no trying out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from lutum_py._schema.signature import is_fixed, is_plain
from tests.cases import over


class Model(BaseModel):
    """A type that hides fields."""


PLAIN: list[Any] = [
    str,
    int | None,
    Optional[float],  # noqa: UP045 - the other spelling
    list[dict[str, bool]],
    tuple[int, ...],
    Literal["a", 1],
    Annotated[int, Field(ge=1)],
    None,
]
NOT_PLAIN: list[Any] = [
    Any,
    Model,
    list[Model],
    set[int],
    bytes,
    Callable[[int], int],
    Annotated[int, BeforeValidator(int)],
    Annotated[Model, Field(description="x")],
]


@over("annotation", PLAIN)
def test_a_plain_type_has_a_json_schema(annotation: Any) -> None:
    """What counts as plain can be validated and described without a look at its parts."""
    assert is_plain(annotation)
    assert isinstance(TypeAdapter(annotation).json_schema(), dict)


@over("annotation", NOT_PLAIN)
def test_a_type_that_may_hide_something_is_not_plain(annotation: Any) -> None:
    """Models, sets, validators and unknown types are looked at before they are trusted."""
    assert not is_plain(annotation)


@over("annotation", [str, tuple[int, ...], Annotated[str, 1], int | None, Literal[1]])
def test_a_fixed_type_has_values_that_cannot_be_changed(annotation: Any) -> None:
    """Texts, numbers and tuples of such cannot be changed in place: a hook gets no copy."""
    assert is_fixed(annotation)


@over("annotation", [list[int], tuple[list[int], ...], dict[str, int], Model, Any])
def test_what_may_be_changed_is_not_fixed(annotation: Any) -> None:
    """What holds a list, a dict, a model or anything unknown may be changed in place."""
    assert not is_fixed(annotation)
