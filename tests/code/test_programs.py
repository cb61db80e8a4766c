"""The laws of programs: what they ask for, what they get, and how they end."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from lutum_py import (
    Reject,
    RunNormally,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.code import program_tool
from lutum_py.errors import InvalidValueError, MisuseError, ToolDefinitionError
from lutum_py.execution import run_sync
from lutum_py.tools import tool_search
from tests.code.programs import REPLAY, STATE, Shop, failed, output_of, planned, ran, result_of

BOTH = pytest.mark.parametrize("tools", [STATE, REPLAY], ids=["state", "replay"])
GATHER = "import asyncio\nx = await add(1)\nawait asyncio.gather(add(x), add(x, b=5), add(9))"


@BOTH
def test_what_is_awaited_at_once_is_one_ask(tools: type[Toolset]) -> None:
    """Calls one after the other are an ask each, those of a `gather` are one, in their order."""
    plan = run_sync(planned(GATHER, tools), hooks=tools.HookSet())
    asks = [step for step in plan.calls[0].steps if step.kind == "requested"]
    assert len(asks) == 2
    rows = plan.calls[1:]
    assert [row.id for row in rows] == ["c1/1", "c1/2", "c1/3", "c1/4"]
    assert [row.arguments for row in rows[1:]] == [
        {"a": 2, "b": 1},
        {"a": 2, "b": 5},
        {"a": 9, "b": 1},
    ]
    assert result_of(plan).output == {"output": [3, 7, 10]}


def test_a_call_that_is_not_awaited_is_not_asked_for() -> None:
    """Made and left, it is an error at the end of the program, and was never run."""
    plan = run_sync(planned("c = add(9)\nawait add(1)"), hooks=STATE.HookSet())
    assert [row.arguments for row in plan.calls[1:]] == [{"a": 1, "b": 1}]
    result = result_of(plan)
    assert result.code == "program_error"
    assert "never awaited a call of `add`" in result.model_text


@BOTH
@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        ("add(50)", "PermissionError", "too much"),
        ("add('x')", "TypeError", "a"),
        ("add(1, c=2)", "TypeError", "c"),
        ("lose('that')", "RuntimeError", "that"),
        ("lose('doubt')", "RuntimeError", "doubt"),
        ("away(1)", "NameError", "away"),
    ],
)
def test_what_a_call_raises(tools: type[Toolset], call: str, kind: str, said: str) -> None:
    """Each way in which a call is not done is an exception of its own, with the model's text.

    The mark by which a model tells a refusal is left out: an exception of its own says that.
    """
    hooks = tools.HookSet()

    @hooks.on(tools.shop.add)  # type: ignore[attr-defined]
    def little(metadata: ToolMetadata, input: Any) -> RunNormally[Any] | Reject:
        return RunNormally(input) if input.a < 10 else Reject("too much")

    code = f"try:\n  await {call}\nexcept {kind} as error:\n  x = str(error)\nx"
    plan = run_sync(planned(code, tools), hooks=hooks)
    output = result_of(plan).output["output"]
    assert said in output
    if kind != "NameError":
        told = plan.calls[1].result
        assert told is not None
        assert output == told.model_text.removeprefix("Rejected: ")
        assert told.is_success or "__lutum" not in output
    uncaught = run_sync(planned(f"1\nawait {call}", tools), hooks=hooks)
    result = result_of(uncaught)
    assert result.code == "program_error"
    assert f"{kind}: " in result.model_text
    assert re.findall(r'File "(.*)", line (\d)', result.model_text) == [("program", "2")]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("error", "cancelled", "RuntimeError"),
        ("error", "invalid_arguments", "RuntimeError"),
        ("indeterminate", "cancelled", "RuntimeError"),
        ("cancelled", None, "PermissionError"),
    ],
)
def test_what_may_have_been_done_is_never_taken_for_refused(
    status: Any, code: str | None, kind: str
) -> None:
    """A program goes by how a call ended, whatever code its result has."""
    plan = run_sync(
        planned("try: await echo(1)\nexcept Exception as error: x = type(error).__name__\nx")
    )
    plan = plan.apply_hooks_sync(STATE.HookSet())
    (call,) = plan.pending
    told: dict[str, Any] = {"name": "echo", "arguments": call.metadata.arguments, "result": "1"}
    plan.record(ToolResult(id=call.id, status=status, code=code, **told))
    assert result_of(run_sync(plan)).output == {"output": kind}


@pytest.mark.parametrize("keep", ["state", "replay"])
def test_a_tool_that_the_plan_does_not_have_is_no_fault_of_the_program(
    keep: Literal["state", "replay"],
) -> None:
    """Where `program_tool` promised a tool that does not stand beside it, its author is told how.

    The program cannot catch that, so the model is not told that it was mistaken.
    """

    class Bare(Toolset):
        run_program = tool(program_tool(Shop, keep=keep))

    code, text = failed("try:\n  await add(1)\nexcept Exception: pass", Bare)
    assert code == "execution_failed"
    assert "MisuseError: `program_tool()` lets programs call `add` (call 'c1/1')" in text
    assert "shop = toolset(Shop, off=True)" in text


@pytest.mark.parametrize(
    "code",
    [
        "x = (",
        "1/0",
        "raise ValueError('no')",
        "raise BaseException('no')",
        "def f(): return f()\nf()",
        "from nowhere import x",
        "\x00",
        "'" + "(" * 300,
        "eval('x=(')",
        "nobody",
    ],
)
def test_a_program_that_fails_is_an_error_with_what_it_printed(code: str) -> None:
    """Whatever it raises, and if it can be read at all, its model is told."""
    kind, text = failed(code)
    assert kind == "program_error"
    assert len(text) < 4000
    if "(" not in code[:5] and "\x00" not in code:
        assert failed(f"print('so far')\n{code}")[1].endswith("Printed:\nso far\n")


@pytest.mark.parametrize(
    ("code", "quoted"),
    [
        ("1/0", "    1/0\n    ~~~"),
        ("a = 1; a/0", "    a = 1; a/0\n           ~~~"),
        ("a = ''; (a + 1, 2)", "    a = ''; (a + 1, 2)\n             ~~~~~"),
        ("_ = (1/0)", "    _ = (1/0)\n         ~~~"),
        ("1/0; 2", "    1/0; 2\n    ~~~"),
        ("def f(x):\n  return 1/x\nf(0)", "    f(0)\n    ~~~~"),
    ],
)
def test_what_is_quoted_of_a_program_is_what_its_author_wrote(code: str, quoted: str) -> None:
    """What keeps the value of the last expression is not shown, and the marks stand below it."""
    assert f"\n{quoted}\n" in failed(code)[1]


def test_the_text_of_a_long_error_is_cut() -> None:
    """A traceback keeps its beginning and its end."""
    _, text = failed("raise ValueError('x' * 1000_000 + 'end')")
    assert len(text) < 3000
    assert text.endswith("end")


def test_clock_and_chance_are_the_same_at_every_try() -> None:
    """Chance goes by the call's id, and time stands still from the first step on."""
    code = (
        "import random, time\na = [random.random(), time.time()]\nawait add(1)\n"
        "[*a, random.random(), time.time()]"
    )
    first, replayed = output_of(code), output_of(code, REPLAY)
    assert (first[0], first[2]) == (replayed[0], replayed[2])
    assert first[1] == first[3]
    assert replayed[1] == replayed[3]
    other = result_of(run_sync(planned(code, id="c2"), hooks=STATE.HookSet()))
    assert other.output["output"][0] != first[0]


def test_names_are_those_that_python_can_call() -> None:
    """A toolset with a tool that no program could call is refused where it is written."""

    def named(name: str) -> type[Toolset]:
        @tool_fn(name=name)
        def anything() -> None:
            """Do nothing."""

        class Odd(Toolset):
            one = tool(anything)

        return Odd

    for name in ("get-it", "class", "print"):
        with pytest.raises(ToolDefinitionError, match=name):
            program_tool(named(name))
    with pytest.raises(ToolDefinitionError, match="reads as 'find'"):  # and would call that
        program_tool(named("\ufb01nd"))
    with pytest.raises(ToolDefinitionError, match="takes a toolset"):
        program_tool(Shop.add)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="`limits`, not 5"):
        program_tool(Shop, limits=5)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"`description`, not \['Run']"):
        program_tool(Shop, description=["Run"])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="keep='all'"):
        program_tool(Shop, keep="all")  # type: ignore[arg-type]
    program_tool(named("get_it"))


def test_a_tool_that_is_off_is_not_offered() -> None:
    """Programs get what is on of their toolset, in the description and under its name."""

    class Half(Toolset):
        add = tool(Shop.add.spec.origin)
        gone = tool(Shop.lose.spec.origin, off=True)

    class Desk(Toolset):
        half = toolset(Half, off=True)
        run_program = tool(program_tool(Half, name="calculate", description="Calculate."))

    told = Desk.run_program.definition
    assert told.name == "calculate"
    assert told.description.startswith("Calculate.\n\nasync def add(a: int, b: int = 1) -> int:")
    assert "lose" not in told.description
    assert told.idempotent
    assert ran("3").output == {"output": 3}


def test_arguments_by_position_go_as_the_signature_shows_them() -> None:
    """A parameter whose name is none in Python is given by name, wherever its schema has it."""

    @tool_fn
    def pay(sender: Annotated[str, Field(alias="from")], to: str) -> str:
        return f"{sender} pays {to}"

    class Bank(Toolset):
        pay_ = tool(pay)

    class Desk(Toolset):
        bank = toolset(Bank, off=True)
        run_program = tool(program_tool(Bank))

    assert "async def pay(to: str, **others)" in Desk.run_program.definition.description
    assert output_of("await pay('bob', **{'from': 'ann'})", Desk) == "ann pays bob"


def test_a_program_is_offered_no_search_for_deferred_tools() -> None:
    """It would tell of tools that no program can call, in any turn."""

    class Many(Toolset):
        add = tool(Shop.add.spec.origin)
        lose = tool(Shop.lose.spec.origin, deferred=True)
        search_tools = tool(tool_search())

    class Desk(Toolset):
        many = toolset(Many, off=True)
        run_program = tool(program_tool(Many))

    told = Desk.run_program.definition.description
    assert "async def add" in told
    assert "lose" not in told
    assert "search_tools" not in told
    code, text = failed("await search_tools('lose')", Desk)
    assert code == "program_error"
    assert "name 'search_tools' is not defined" in text
