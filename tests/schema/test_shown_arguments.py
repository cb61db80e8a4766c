"""What is shown of arguments that have no form which could be masked."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr

from lutum_py import ToolInput, tool_fn
from tests.declared import spec_of


class Odd:
    def __repr__(self) -> str:
        return "HUNTER2"


class Held(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    odd: Any = None


class WithSecret(ToolInput[str]):
    pin: SecretStr
    held: Held = Held()


@tool_fn
def open_one(held: Held, other: int = 0) -> str:
    """Take what is no secret."""
    return ""


def test_what_has_no_json_form_is_named_by_its_type_where_it_may_hold_a_secret() -> None:
    """Python's own representation of an input is shown where nothing in it is secret, alone."""
    spec = spec_of(WithSecret)
    value = WithSecret(pin=SecretStr("HUNTER2"), held=Held(odd=Odd()))
    text = spec.arguments.whole(value)
    assert spec.shown_input(text) is None
    assert spec.shown_json(text) == "an input without a JSON form"
    plain = spec_of(open_one)
    text = plain.arguments.whole(plain.arguments.type(held=Held(odd=Odd())))
    assert plain.shown_json(text) == "an input without a JSON form"


def test_a_text_that_is_no_json_is_shown_by_its_size() -> None:
    """Where something in the input is secret, a text shows only if it can be masked."""
    spec = spec_of(WithSecret)
    assert spec.shown_text('{"pin": "HUNTER2"') == "<17 characters>"
    assert spec.shown_text('{"pin": "HUNTER2"}') == '{"pin":"**********"}'
    assert spec.shown_text('{"pin": "HUNTER2"}', fits=False) == "<18 characters>"
    assert spec_of(open_one).shown_text("{") == "{"
