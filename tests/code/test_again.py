"""The laws of a program that goes on: from its interpreter, or from its first line."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Literal

import pydantic_monty
import pytest

from lutum_py import ToolContext, ToolMetadata, ToolResult
from lutum_py.code import ProgramChanged, ProgramResult, program_tool
from lutum_py.context import ToolRequestedCalls
from lutum_py.typing import Inner
from tests.code.programs import Shop

Keep = Literal["state", "replay"]
KEEP = pytest.mark.parametrize("keep", ["state", "replay"])
CODE = "print('one')\nx = await add(1)\nprint('two')\ny = await add(x, b=2)\n[x, y]"


class Waiting:
    """A call that comes back, as `execution` hands it to its tool."""

    id = "c1"
    name = "run_program"

    def __init__(self, inner: Inner | None) -> None:
        self._record = SimpleNamespace(inner=inner)


def stepped(
    code: str, keep: Keep = "state", inner: Inner | None = None
) -> ProgramResult | tuple[Any, Any]:
    """Run one step of a program: what it asks for and leaves, or what it came to."""
    context = ToolContext.for_call(Waiting(inner))
    try:
        return program_tool(Shop, keep=keep)(code, context)
    except ToolRequestedCalls as asks:
        return asks.calls, asks.state


def came_to(*outputs: int) -> tuple[tuple[ToolResult, ...], ...]:
    """Make the results of one call an ask."""
    sent = ToolMetadata(id="c1/1", name="add", arguments="{}")
    return tuple(
        (ToolResult(id=sent.id, name=sent.name, arguments=sent.arguments, result=str(each)),)
        for each in outputs
    )


@KEEP
def test_a_program_goes_on_by_what_it_left_alone(keep: Keep) -> None:
    """Nothing of it is kept alive: its state, and what its calls came to, are all that it takes."""
    calls, state = stepped(CODE, keep)
    assert calls == [("add", {"a": 1})]
    for _ in range(2):
        calls, second = stepped(CODE, keep, Inner(state, came_to(7)))
        assert calls == [("add", {"a": 7, "b": 2})]
        assert stepped(CODE, keep, Inner(second, came_to(7, 8))) == {
            "output": [7, 8],
            "printed": "one\ntwo\n",
        }


def test_what_is_kept_is_bytes_or_a_text() -> None:
    """With the interpreter it is bytes, of some kilobytes; without, a short text."""
    _, state = stepped(CODE)
    _, text = stepped(CODE, "replay")
    assert isinstance(state, bytes)
    assert len(state) < 10_000
    assert isinstance(text, str)
    assert len(text) < 300


def test_a_state_of_another_version_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter reads what another has written."""
    asks: Any = stepped(CODE)
    state = asks[1]
    head, _, _ = state.partition(b"\n")
    other = head.replace(pydantic_monty.__version__.encode(), b"0.0.1") + b"\nnothing of it is read"
    second: Any
    calls, second = stepped(CODE, inner=Inner(other, came_to(7)))
    assert calls == [("add", {"a": 7, "b": 2})]
    assert json.loads(second.partition(b"\n")[0])["version"] == pydantic_monty.__version__
    done = stepped(CODE, inner=Inner(second, came_to(7, 8)))
    assert done == {"output": [7, 8], "printed": "one\ntwo\n"}


@pytest.mark.parametrize(
    "other",
    [
        "x = await add(2)\nawait add(x)",
        "await echo(1)",
        "await add(b=1)",
        "5",
        "add(1)\n5",
        "import asyncio\nawait asyncio.gather(add(1), add(1))",
    ],
)
def test_a_program_that_does_not_do_the_same_again_is_stopped(other: str) -> None:
    """Where it asks for anything else, or for nothing, it is an error, and asks for nothing."""
    _, state = stepped(CODE, "replay")
    with pytest.raises(ProgramChanged) as caught:
        stepped(other, "replay", Inner(state, came_to(7)))
    assert caught.value.code == "program_changed"


def test_it_may_go_another_way_behind_what_it_had_asked_for() -> None:
    """Only what was asked for is held against it."""
    _, state = stepped(CODE, "replay")
    calls, _ = stepped("await add(1)\nawait echo(5)", "replay", Inner(state, came_to(7)))
    assert calls == [("echo", {"value": 5})]


@pytest.mark.parametrize(
    "state",
    [
        None,
        "",
        "[" * 100_000,
        "{}",
        '{"at": 5, "asked": ["x"]}',
        '{"at": "now", "asked": ["x"]}',
        '{"at": "2026-01-01T00:00:00+00:00", "asked": []}',
        '{"at": "2026-01-01T00:00:00+00:00", "asked": [1]}',
        '{"at": "2026-01-01T00:00:00+00:00", "asked": 1}',
        '{"at": "2026-01-01T00:00:00+00:00", "asked": ["x"], "more": 1}',
        b"\xff\nno interpreter",
    ],
    ids=repr,
)
def test_a_state_that_is_damaged_is_said_in_plain_words(state: Any) -> None:
    """Nothing of it is run, and no name of ours is told."""
    with pytest.raises(ProgramChanged, match="is damaged") as caught:
        stepped(CODE, "replay", Inner(state, came_to(7)))
    assert "_" not in str(caught.value).replace("program_changed", "")
