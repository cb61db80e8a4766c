"""The laws of what goes into a program and out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.code import ProgramResult
from lutum_py.execution import run_sync
from tests.code.programs import REPLAY, STATE, failed, output_of, planned, ran, result_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
TREE = "x = [1]\nfor _ in range(60): x = [x, x]\n"
TUPLES = "x = (1,)\nfor _ in range(60): x = (x, x)\n"


@given(JSON)
def test_a_value_goes_through_a_tool_and_out_as_it_is(value: object) -> None:
    """What a program gives a tool, gets of it and ends with is the same JSON data."""
    assert output_of(f"x = {value!r}\nassert await echo(x) == x\nx") == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1\n2", 2),
        ("a = 1; a", 1),
        ("(1,\n2)  # two\n\n# end", [1, 2]),
        ("1, 2", [1, 2]),
        ("1; 2;", 2),
        ("[1,\n2] ;  # three", [1, 2]),
        ("if 1: 7;", None),
        ("x = 5", None),
        ("", None),
        ("# nothing", None),
        ("if 1:\n  7\nelse:\n  8", None),
        ("def f():\n  return 3\nf()\n", 3),
        ("s = '''\nfoo\n'''\ns", "\nfoo\n"),
        ('d = {"a": 1}\nf"{d[\'a\']}"', "1"),
        ("x = 'a;\\r\\nb'\r\nx", "a;\r\nb"),
        ("'ü' + \\\n 'é'", "üé"),
        *((f"s = 'a{each}b'\ns", f"a{each}b") for each in "\0\v\f\x1c\x85\u2028"),
        ("\ufeffawait add(1)\n2\n", 2),
        ("_ = 3\n_ + 1", 4),
        ("async def f(i):\n  return await add(i)\nawait f(1)", 2),
        ("for i in (1, 2):\n  x = await add(i)\nx", 3),
        ("import asyncio\nasyncio.run(add(1))", 2),
        ("f = add\nawait f(1, b=2)", 3),
        ("def f(): return 4\nf()", 4),
        ("def f():\n  # a comment\n\n  if 1:\n    return 5\nf()", 5),
        ("if 1:\n  print('early')\n  return\n7", None),
        ("return; 7", None),
        ("return  # early", None),
        ("import asyncio\nawait asyncio.gather(*map(add, [1, 2]))", [2, 3]),
    ],
)
def test_the_value_is_that_of_the_last_expression(code: str, value: object) -> None:
    """It is None where a program ends with another statement, or is empty."""
    assert output_of(code) == value


@pytest.mark.parametrize(
    "code",
    [
        "return await add(1)",
        "x = await add(1)\nif x: return x",
        "def f(): return 1\nawait add(1)\nreturn f()",
        "def f():\n  return 1\nfor i in (1, 2):\n  return f()\nawait add(1)",
    ],
)
def test_no_value_is_lost_in_a_return_outside_of_a_function(code: str) -> None:
    """The program is refused before any of its calls is made."""
    plan = run_sync(planned(code))
    assert [row.id for row in plan.calls] == ["c1"]
    result = result_of(plan)
    assert result.code == "program_error"
    assert "`return` outside of a function" in result.model_text


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = (", 1),
        ("x)", 1),
        ("x = 1\ny = (1,\nz = 2", 3),
        ("x = 1\ny = '''abc\nz", 2),
        ("if True:\n\t1\n   2", 3),
        ("x = 1\nx = = 2", 2),
    ],
)
def test_a_program_that_cannot_be_read_is_told_the_line(code: str, line: int) -> None:
    """Also one of which Python's own tokens have no end."""
    why, said = failed(code)
    assert why == "program_error"
    assert f'File "program", line {line}\n' in said
    assert "SyntaxError: " in said


def test_a_program_that_the_interpreter_alone_can_read_is_refused() -> None:
    """Where it ends is not known then, and its value would be lost."""
    # What Python's own tokens cannot read depends on its version: 3.12 and later have a limit of
    # brackets, those before see no end of the text.
    programs = {"await add(1)\n" + "(" * 201 + "1" + ")" * 201: 1, "await add(1)\n'\\\r'''\n": ""}
    unread = 0
    for code, value in programs.items():
        result = ran(code)
        if result.is_success:
            assert result.output == {"output": value}
        else:
            assert "cannot be read: " in result.model_text
            unread += 1
    assert unread > 0


def test_what_is_printed_comes_with_the_value() -> None:
    """All of it, of every step; without a print there is no such entry."""
    printing: ProgramResult = {"output": 3, "printed": "a\nb 2\n"}
    for tools in (STATE, REPLAY):
        assert ran("print('a')\nx = await add(1)\nprint('b', x)\n3", tools).output == printing
    assert ran("3").output == {"output": 3}


@pytest.mark.parametrize(
    "value",
    [
        "{1}",
        "b'x'",
        "print",
        "lambda: 1",
        "add",
        "float('nan')",
        "1e999",
        "{(1, 2): 3}",
        "1j",
        "[...]",
        "object",
        "type(1)",
        "10 ** 5000",
    ],
)
def test_what_is_no_json_data_does_not_cross(value: str) -> None:
    """A tool is not called with it: `TypeError` at that line; as the value it is an error."""
    caught = f"try:\n  await echo({value})\nexcept TypeError as error:\n  x = str(error)\nx"
    assert output_of(caught)
    code, text = failed(value)
    assert code == "program_error"
    assert "The value of the last expression cannot be given" in text


@pytest.mark.parametrize("call", ["add(1, 2, 3)", "add(1, a=2)"], ids=["too many", "twice"])
def test_arguments_go_by_the_order_of_parameters(call: str) -> None:
    """Those beyond the last, and one that comes twice, are a `TypeError`, and no call."""
    plan = run_sync(
        planned(f"try:\n  await {call}\nexcept TypeError:\n  x = 1"), hooks=STATE.HookSet()
    )
    assert [row.id for row in plan.calls] == ["c1"]
    assert result_of(plan).is_success
    assert output_of("[await add(1, 2), await add(b=3, a=1)]") == [3, 4]


def test_a_set_of_nested_tuples_never_reaches_the_host() -> None:
    """What would take for ever to be hashed, or copied, is refused in the interpreter."""
    for value in ("{x}", "{x: 1}", "[{x}]"):
        code, text = failed(f"{TUPLES}await echo({value})")
        assert (code, "TypeError" in text) == ("program_error", True)
        assert failed(f"{TUPLES}{value}")[0] == "program_error"


@pytest.mark.slow
def test_what_grows_as_it_is_written_out_is_over_the_limit() -> None:
    """A list that holds itself twice, sixty times over, costs the program its own time."""
    assert failed(f"{TREE}await echo(x)")[0] == "program_limit"
    assert failed(f"{TREE}x")[0] == "program_limit"


def test_a_value_has_at_most_200_levels() -> None:
    """What is nested deeper is no value of a call, or of a program."""
    nested = "x = []\nfor _ in range({}): x = [x]\n".format
    assert str(output_of(f"{nested(190)}await echo(x)")).count("[") == 191
    assert "TypeError" in failed(f"{nested(300)}await echo(x)")[1]
    assert "recursion" in failed(f"{nested(300)}x")[1]


def test_a_value_of_more_than_ten_million_characters_does_not_cross() -> None:
    """So much is neither given to a tool nor told to a model."""
    assert "TypeError" in failed("await echo('x' * 10_000_001)")[1]
    assert failed("'x' * 10_000_001")[0] == "program_error"
