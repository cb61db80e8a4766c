"""The laws of running a tool: where it runs, what it needs, what comes out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import CallStatus, tool_fn
from lutum_py.errors import MisuseError, ToolOutputError
from tests.declared import call_of, declare, spec_of

from .test_tool_fn import Hit, Service, ask, web_search


@tool_fn
def where() -> int:
    return threading.get_ident()


@tool_fn
async def where_async() -> int:
    return threading.get_ident()


def test_call_runs_sync_functions_in_a_thread() -> None:
    """`call` runs a sync function in a worker thread, `call_sync` and async functions run here."""
    here = threading.get_ident()
    assert asyncio.run(call_of(where).call()).output != here
    assert call_of(where).call_sync().output == here
    assert asyncio.run(call_of(where_async).call()).output == here


def test_invoke_gives_the_raw_output() -> None:
    """`invoke` and `invoke_sync` leave the answer to the program."""
    call = call_of(web_search, {"query": "q", "max_results": 1})
    assert asyncio.run(call.invoke()) == [Hit(title="q")]
    assert call.status is CallStatus.RUNNING
    call = call_of(Service.double, {"number": 2})
    assert asyncio.run(call.invoke()) == call_of(Service.double, {"number": 2}).invoke_sync() == 4


def test_call_sync_of_an_async_tool_names_the_remedy() -> None:
    """An async function cannot be run by `call_sync`, and nothing happened."""
    call = call_of(web_search, {"query": "q"})
    with pytest.raises(TypeError) as caught:
        call.call_sync()
    assert str(caught.value) == (
        "Tool `web_search` (call 'c1') is async: use `await call.call()` instead of "
        "`call.call_sync()`, or `asyncio.run(call.call())` outside of a loop."
    )
    assert call.status is CallStatus.NEW


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        (
            {},
            (
                "Tool `greet` (call 'c1') needs `self`, which the model does not see. Pass it "
                "where you run the call: `await call.call(self=...)`."
            ),
        ),
        (
            {"self": None, "name": "x"},
            (
                "Tool `greet` (call 'c1'): `name` is filled in by the model. What can be passed "
                "here: `self`."
            ),
        ),
        (
            {"self": None, "nope": 1},
            (
                "`nope` is not a parameter of the function. What can be passed here: `self`. "
                "`execution.run(plan, skipped={...})` gives each of several tools what it takes."
            ),
        ),
    ],
)
def test_wrong_hidden_arguments_are_refused(hidden: dict[str, Any], expected: str) -> None:
    """A missing or unknown hidden argument is a `TypeError`, before anything is run."""
    call = call_of(Service.greet, {"name": "Ann", "options": {}})
    with pytest.raises(TypeError) as caught:
        asyncio.run(call.call(**hidden))
    assert expected in str(caught.value)
    assert call.status is CallStatus.NEW


def test_laying_out_the_arguments_checks_them() -> None:
    """What lays the arguments out for others refuses what the call would refuse."""
    call = call_of(Service.greet, {"name": "Ann", "options": {}})
    with pytest.raises(MisuseError):
        call.spec.invocation.bind(call, call.input, {})


def test_the_whole_input_is_filled_in_by_the_model() -> None:
    """The single object that is the input cannot be passed from outside."""
    call = call_of(ask, {"text": "t"})
    with pytest.raises(MisuseError):
        call.call_sync(question=1)
    with pytest.raises(MisuseError):
        call_of(tool_fn(name="f", skip=["db"])(lambda db: db)).call_sync()


class Broken(Exception):
    """What the functions below raise."""


def test_exceptions_come_out_unchanged() -> None:
    """What the function raises is what the caller gets, and the call stays `running`."""
    error = Broken("no")

    @tool_fn
    async def fail_async() -> int:
        raise error

    @tool_fn
    def fail() -> int:
        raise error

    runs: list[Callable[[], Any]] = [
        lambda: asyncio.run(call_of(fail_async).call()),
        lambda: asyncio.run(call_of(fail).call()),
        lambda: call_of(fail).call_sync(),
    ]
    for run in runs:
        with pytest.raises(Broken) as caught:
            run()
        assert caught.value is error
        assert error.__cause__ is None
    call = call_of(fail)
    with pytest.raises(Broken):
        call.call_sync()
    assert call.status is CallStatus.RUNNING


def test_an_output_that_does_not_fit_is_an_error() -> None:
    """What the function returns is checked against what it declares."""

    @tool_fn
    def lie() -> int:
        return "x"  # type: ignore[return-value]

    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
    ):
        call_of(lie).call_sync()


def test_none_is_an_output_type() -> None:
    """A function that declares None gives null, and nothing else."""
    f = declare(globals(), "@tool_fn\ndef f(a: int) -> None:\n    return None if a else a")
    g = tool_fn(name="g")(lambda: None)
    assert call_of(f, {"a": 1}).call_sync().result == "null"
    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == [""]
    ):
        call_of(f, {"a": 0}).call_sync()
    assert g.definition.output_schema is None
    assert g.Input.__name__ == "LambdaInput"


def test_unwritten_annotations_of_none() -> None:
    """`-> None` means the same whether annotations are strings or values."""

    def quiet() -> None:
        return None

    quiet.__annotations__["return"] = None
    assert spec_of(tool_fn(quiet)).output.type is type(None)
