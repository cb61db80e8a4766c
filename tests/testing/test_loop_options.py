"""The laws of what `check_loop` is given: a mistake in the call is never blamed on the loop."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import tool_fn
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.testing import LoopFailure, check_loop

from . import loops
from .samples import Small


@tool_fn
def single(text: str) -> str:
    """Say it again."""
    return text


def needs_three(session: Any, model: Any, limit: int) -> None:
    """A loop of the wrong arity."""


@pytest.mark.parametrize(
    ("loop", "toolset"),
    [(Small, loops.readme), (loops.readme, [single]), (loops.readme, None), (loops.readme, int)],
)
def test_what_is_no_toolset_is_refused(loop: Any, toolset: Any) -> None:
    """Arguments the wrong way round, a list of functions or nothing is refused with the order."""
    with pytest.raises(MisuseError):
        check_loop(loop, toolset)


@pytest.mark.parametrize("loop", [needs_three, lambda: None, len])
def test_a_loop_of_the_wrong_arity_is_refused(loop: Any) -> None:
    """A loop that does not take two arguments is told what it is called with, in either form."""
    told = (
        r"The loop is called with \(session, model\), and `.*does not take that: .*`lambda session,"
    )
    with pytest.raises(MisuseError, match=told):
        check_loop(loop, Small)
    told = r"The loop is called with \(messages, client\), and `.*`lambda messages, client: answer"
    with pytest.raises(MisuseError, match=told):
        check_loop(loop, Small, dialect="openai_chat")


def test_what_cannot_be_called_is_no_loop() -> None:
    """A loop is a function; what cannot be called is refused."""
    with pytest.raises(MisuseError):
        check_loop(5, Small)  # type: ignore[arg-type]


def test_a_loop_whose_parameters_cannot_be_told_is_tried() -> None:
    """Where Python cannot tell the parameters, the loop is run, and what it raises is shown."""
    with pytest.raises(LoopFailure, match="TypeError") as caught:
        check_loop(min, Small)
    assert caught.value.faults[0].kind == "raised"


@pytest.mark.parametrize("wrong", ["x", KeyError, [KeyError, "x"], (KeyboardInterrupt,), None])
def test_what_a_loop_may_raise_is_a_tuple_of_classes(wrong: Any) -> None:
    """Anything else than a tuple or list of exception classes is refused with the form."""
    with pytest.raises(MisuseError):
        check_loop(loops.readme, Small, may_raise=wrong)


@pytest.mark.parametrize("name", ["examples", "max_turns", "max_calls"])
def test_numbers_are_whole_and_begin_at_one(name: str) -> None:
    """Each number is refused by its name where nothing would be tried with it."""
    options: dict[str, Any] = {name: 0}
    with pytest.raises(InvalidValueError, match=f"`{name}` is 0, so nothing would be tried"):
        check_loop(loops.readme, Small, **options)
    options = {name: "many"}
    with pytest.raises(MisuseError, match=f"`{name}` takes a whole number from 1 on, not 'many'"):
        check_loop(loops.readme, Small, **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"start": []}, r"`start` takes a function that makes .*, not \[\]\. "),
        ({"settings": 100}, r"`settings` takes settings of Hypothesis, not 100\."),
        ({"arguments": {Small.forecast: 3}}, "tool `forecast` 3, which is not a strategy"),
        ({"arguments": 0}, "`arguments` maps tools to strategies"),
        ({"dialect": "openai"}, "'openai' is not a dialect"),
    ],
)
def test_options_of_another_type_are_refused_by_name(options: dict[str, Any], told: str) -> None:
    """An option that cannot work is refused before any loop is run."""
    with pytest.raises(MisuseError, match=told):
        check_loop(loops.readme, Small, **options)


def test_the_failure_is_called_as_it_is_imported() -> None:
    """What pytest calls the failure is where it can be imported from."""
    assert LoopFailure.__module__ == "lutum_py.testing"
