"""How a validator is built apart from its class, on every release of pydantic."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from lutum_py._schema import closed_schema
from lutum_py._schema.arguments import Arguments


class Inner(BaseModel):
    number: float


class Outer(BaseModel):
    inner: Inner


@pytest.mark.parametrize("is_before_2019", [False, True])
def test_a_class_stays_as_it_is(is_before_2019: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that cannot be told to leave finished validators alone gives the same."""

    def make(schema: Any, config: Any = None, **more: Any) -> SchemaValidator:
        if is_before_2019 and more:
            raise TypeError("unexpected keyword argument '_use_prebuilt'")
        return SchemaValidator(schema, config, **more)

    monkeypatch.setattr(closed_schema, "SchemaValidator", make)
    read = Arguments(Outer).validate_json
    assert read('{"inner": {"number": 1}}') == Outer(inner=Inner(number=1))
    for text in ('{"inner": {"number": 1}, "more": 2}', '{"inner": {"number": Infinity}}'):
        with pytest.raises(ValidationError):
            read(text)
        assert Outer.model_validate_json(text)
    assert Outer.__pydantic_complete__
    assert Inner.__pydantic_complete__
