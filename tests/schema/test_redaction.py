"""The laws of redaction: no value that the model sent leaves in an error, in whoever's words."""

from __future__ import annotations

import json
import traceback
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

from lutum_py import ToolDef, ToolMetadata, tool_fn
from lutum_py.errors import InvalidArgumentsError, ToolInputError
from tests.declared import spec_of
from tests.private import decode

SECRET = "hunter2"


def quote(value: Any) -> Any:
    raise ValueError(f"{value} is not allowed")


def assure(value: Any) -> Any:
    assert not value, f"{value} is not allowed"
    return value


def invent(value: Any) -> Any:
    raise PydanticCustomError("house_rule", "{value} is not allowed", {"value": value})


def stumble(value: Any) -> Any:
    raise KeyError(value)


@tool_fn
def quoting(password: Annotated[str, AfterValidator(quote)]) -> None:
    """Take a password."""


@tool_fn
def assuring(password: Annotated[str, BeforeValidator(assure)]) -> None:
    """Take a password."""


@tool_fn
def inventing(password: Annotated[str, AfterValidator(invent)]) -> None:
    """Take a password."""


by_schema = ToolDef.from_json_schema(
    name="by_schema",
    input_schema={
        "type": "object",
        "properties": {"password": {"type": "array"}},
    },
)


def decoded(declared: Any, value: Any, *, redact: bool) -> Any:
    selector = spec_of(declared).free_selector
    arguments = json.dumps({"password": value})
    metadata = ToolMetadata(id="c1", name=selector.name, arguments=arguments)
    return decode(selector, metadata, redact=redact).call


@pytest.mark.parametrize("declared", [quoting, assuring, inventing, by_schema])
def test_a_validators_own_words_are_hidden(declared: Any) -> None:
    """What a validator or a schema says of a value is told, and hidden where values are hidden."""
    with pytest.raises(InvalidArgumentsError, match=SECRET):
        decoded(declared, SECRET, redact=False)
    with pytest.raises(InvalidArgumentsError) as caught:
        decoded(declared, SECRET, redact=True)
    assert "- `password`: Input is not what the tool allows here\n" in str(caught.value)
    assert caught.value.fields[0].received is None


@pytest.mark.parametrize("declared", [quoting, by_schema])
def test_a_traceback_hides_them_too(declared: Any) -> None:
    """A redacted error that is logged with its traceback shows no value by way of its cause."""
    with pytest.raises(InvalidArgumentsError) as caught:
        decoded(declared, SECRET, redact=True)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_broken_validator_is_named_without_its_words() -> None:
    """A validator that raises something else is named with its exception, and no value."""

    @tool_fn
    def stumbling(password: Annotated[str, AfterValidator(stumble)]) -> None:
        """Take a password."""

    with pytest.raises(ToolInputError, match="raised KeyError: 'hunter2'") as caught:
        decoded(stumbling, SECRET, redact=False)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ToolInputError, match=r"raised KeyError \(its text is hidden\)") as caught:
        decoded(stumbling, SECRET, redact=True)
    assert caught.value.__cause__ is None


def test_what_pydantic_says_of_the_type_alone_stays() -> None:
    """What is expected is told to the model also where what came is hidden."""

    @tool_fn
    def dated(password: AwareDatetime) -> None:
        """Take a time."""

    with pytest.raises(
        InvalidArgumentsError,
        check=lambda error: [each.path for each in error.fields] == ["password"],
    ) as caught:
        decoded(dated, SECRET, redact=True)
    assert SECRET not in str(caught.value)
