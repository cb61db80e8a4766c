"""The laws of what a program may use, and of what it cannot reach."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pytest

from lutum_py.code import ProgramLimits
from lutum_py.errors import InvalidValueError
from lutum_py.execution import run_sync
from tests.code.programs import failed, limited, output_of, planned, result_of

SHORT = limited(seconds=0.2)
LITTLE = limited(printed=1000, memory=20_000_000, calls=3)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "try:\n  while True: pass\nexcept BaseException: pass",
        "def f():\n  try:\n    f()\n  except RecursionError:\n    f()\nf()",
        "x = 0\nwhile True: x += 1; await echo(x) if x < 3 else None",
    ],
    ids=["endless", "caught", "recursion", "between calls"],
)
def test_a_program_has_so_many_seconds_of_its_own(code: str) -> None:
    """Whatever it does, and whatever it catches, it is stopped."""
    assert failed(code, SHORT)[0] == "program_limit"


def test_what_does_not_stop_by_itself_is_killed() -> None:
    """A single operation that looks at no clock ends with its process, and the next one runs."""
    nested = "x, y = (1,), (1,)\nfor _ in range(60): x, y = (x, x), (y, y)\nx == y"
    assert failed(nested, SHORT)[0] == "program_limit"
    assert output_of("1", SHORT) == 1


def test_the_seconds_are_those_of_all_steps() -> None:
    """What it used before it waited counts; what its calls took does not."""
    busy = "for _ in range({n}): pass\n"
    began = time.process_time()
    output_of(busy.format(n=300_000))
    assert time.process_time() >= began
    code, _ = failed("while True:\n  for _ in range(100_000): pass\n  await add(1)", SHORT)
    assert code == "program_limit"


@pytest.mark.parametrize(
    "code",
    [
        "'a' * 10**10",
        "x = [0]\nwhile True: x += x",
        "10 ** 10 ** 8",
        "try:\n  x = 'a' * 10**10\nexcept BaseException: pass",
        "x = 'y' * 19_000_000\ny = x + 'z'\ny",
    ],
)
def test_a_program_has_so_much_memory(code: str) -> None:
    """What does not fit ends it, caught or not."""
    assert failed(code, LITTLE)[0] == "program_limit"


@pytest.mark.parametrize(
    "code",
    [
        "print('x' * 2000)",
        "for _ in range(9_999): print('xxxxxxxx')",
        "print('x' * 900)\nawait add(1)\nprint('x' * 900)",
        "try:\n  print('x' * 2000)\nexcept BaseException: pass",
    ],
)
def test_a_program_may_print_so_much(code: str) -> None:
    """Counted over all its steps."""
    assert failed(code, LITTLE)[0] == "program_limit"


def test_a_program_may_make_so_many_calls() -> None:
    """At once or one after the other; none of the last ask is made."""
    many = "import asyncio\nawait asyncio.gather(*[add(i) for i in range(4)])"
    for code, made in ((many, 0), ("for i in range(4): await add(i)", 3)):
        plan = run_sync(planned(code, LITTLE), hooks=LITTLE.HookSet())
        assert len(plan.calls) == 1 + made
        assert result_of(plan).code == "program_limit"
    assert output_of("for i in range(3): x = await add(i)\nx", LITTLE) == 3


def test_a_program_turns_to_its_host_so_often() -> None:
    """Asking again and again for what it never gets ends it."""
    code = "while True:\n  try: open('x')\n  except PermissionError: pass"
    assert failed(code)[0] == "program_limit"


def test_a_long_program_is_not_read() -> None:
    """More than 100,000 characters are no program."""
    assert failed("x = 1\n" * 20_000)[0] == "program_limit"


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": 0},
        {"seconds": float("inf")},
        {"memory": 1.5},
        {"calls": True},
        {"printed": -1},
        {"seconds": "5"},
        {"seconds": 10**400},
        {"memory": 2**64},
        {"printed": 2**64},
        {"calls": sys.maxsize},
    ],
)
def test_a_limit_is_a_number_above_0_that_the_interpreter_can_count_to(
    wrong: dict[str, Any],
) -> None:
    """Any other is refused where it is given, and no program fails by the largest that is taken."""
    with pytest.raises(InvalidValueError, match=next(iter(wrong))):
        ProgramLimits(**wrong)
    most = 10**18
    assert output_of("1", limited(seconds=most, memory=most, printed=most, calls=most)) == 1


REACHES = [
    "open('/etc/passwd').read()",
    "open('x', 'w')",
    "from pathlib import Path\nPath('/etc').exists()",
    "from pathlib import Path\nlist(Path('/').iterdir())",
    "import os\nos.environ['PATH']",
    "import os\nos.getenv('PATH')",
    "import os\nos.system('true')",
    "import os\nos.listdir('/')",
    "import os\nos.urandom(8)",
    "import subprocess",
    "import socket",
    "import urllib.request",
    "import ctypes",
    "import gc",
    "import inspect",
    "import pickle",
    "import importlib",
    "import pydantic_monty",
    "import lutum_py",
    "import sys\nsys.modules",
    "__import__('os').getcwd()",
    "__builtins__",
    "globals()['x']",
    "breakpoint()",
    "input()",
    "compile('1', 'x', 'eval')",
    "().__class__.__bases__",
    "(lambda: 1).__globals__",
    "(lambda: 1).__code__",
    "add.__globals__",
    "[].__reduce__",
    "await __tool__('[\"add\", [1], {}]')",
    "exec(\"__tool__('')\")",
    "ctx",
    "code",
]


@pytest.mark.parametrize("code", REACHES)
def test_nothing_of_the_host_is_reached(code: str) -> None:
    """Files, network, modules, the environment, and Python's own ways around are not there."""
    assert failed(code)[0] == "program_error"


def test_time_and_sleep_are_not_those_of_the_host() -> None:
    """A program that sleeps goes on at once, and cannot tell how long it took."""
    began = time.monotonic()
    assert (
        output_of("import time\na = time.time()\ntime.sleep(500)\nawait add(1)\ntime.time() - a")
        == 0
    )
    assert output_of("import asyncio\nawait asyncio.sleep(500)\n1") == 1
    assert time.monotonic() - began < 400


def test_one_program_does_not_see_another() -> None:
    """Each begins with nothing but its tools."""
    assert output_of("secret = 5\nsecret") == 5
    assert failed("secret")[0] == "program_error"


def test_tools_that_a_program_replaces_are_its_own() -> None:
    """A function of the same name, or what stands behind the tools, changed: no other call comes
    of it, and no value that is not JSON.
    """
    assert output_of("def add(a): return 'mine'\nadd(1)") == "mine"
    assert failed("__waiting__ = 5\n5")[0] == "program_error"
    assert failed("__waiting__ = [{1}]\n5")[0] == "program_error"
    assert (
        output_of("async def __awaited__(*_): return 7\nx = await add(1)\n__waiting__ = []\nx") == 7
    )
    forged = "class json:\n  pass\ndef f(*_, **__): return '[1]'\njson.dumps = f\nawait add(1)"
    assert output_of(forged) == 2
    for name, given, named in (("add", 5, {}), ("add", [], 5), ("none", [], {})):
        sent = f"__waiting__.append({name!r})\nawait __awaited__({name!r}, {given}, {named})"
        assert "not a call of a tool" in failed(sent)[1]


def test_a_fork_of_a_process_that_ran_programs_says_that_it_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails at once, and does not hang; its parent goes on with its own."""
    assert output_of("await add(1)") == 2
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = "was forked" in failed("1")[1]
        finally:
            os._exit(not good)
    assert os.waitpid(child, 0)[1] == 0
    assert output_of("await add(3)") == 4
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert "was forked" in failed("1")[1]
