"""The laws of what threads share, and of what they do not wait for."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, pairwise
from pathlib import Path
from threading import Barrier
from types import CodeType, ModuleType
from typing import Any, ClassVar, Final, TypeVar

import pytest
from pydantic import VERSION, BaseModel, ValidationError, create_model

import lutum_py
from lutum_py import (
    Answer,
    AssistantTurn,
    CommittedRound,
    HookSet,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.tools import tool_search
from tests.declared import call_of, spec_of

R = TypeVar("R")

THREADS = 8
ROUNDS = 25


def at_once(work: Callable[[], R]) -> list[R]:
    """Let several threads do the same at the same moment."""
    together = Barrier(THREADS)
    before = sys.getswitchinterval()

    def after_the_others() -> R:
        together.wait()
        return work()

    sys.setswitchinterval(1e-6)  # quick turns, which find what is not made at one go
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            running = [threads.submit(after_the_others) for _ in range(THREADS)]
            return [each.result() for each in running]
    finally:
        sys.setswitchinterval(before)


def function() -> Any:
    @tool_fn
    def add(a: int, b: int = 1) -> int:
        return a + b

    return add


def sums() -> Any:
    class Sums(Toolset):
        plus = tool(function())

    return Sums


def model() -> Any:
    class AddArgs(ToolInput[int]):
        a: int

    return AddArgs


def named_later() -> Any:
    @tool_fn
    def add(a: Number) -> int:
        return a.value

    class Number(BaseModel):
        value: int

    return add


NUMBERS = count()


def definition() -> ToolDef:
    """One that no other round has."""
    return ToolDef.from_json_schema(name=f"add_{next(NUMBERS)}", input_schema={"type": "object"})


METADATA = ToolMetadata(id="c1", name="add", arguments='{"a": 1}')
SHARED: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "class of calls": (sums, lambda made: type(made.parse_tool_call(METADATA))),
    "class of calls by name": (sums, lambda made: made.plus.Call),
    "class of handled calls": (function, lambda made: made.Handled),
    "free selector": (function, lambda made: spec_of(made).free_selector),
    "input model": (function, lambda made: made.Input),
    "specification of a model": (model, spec_of),
    "specification of what is named later": (named_later, spec_of),
    "toolset of definitions": (definition, lambda made: Toolset.from_definitions("Made", [made])),
    "toolset of functions": (function, lambda made: Toolset.of("Made", made)),
    "base of policies": (sums, lambda made: made.Hooks),
}


@pytest.mark.parametrize("what", SHARED)
def test_threads_that_ask_first_get_the_same(what: str) -> None:
    """Whichever threads ask for it first, there is one of it, and it stays that one."""
    make, ask = SHARED[what]
    for _ in range(ROUNDS):
        made = make()
        found = at_once(lambda made=made: ask(made))  # type: ignore[misc]
        assert {id(each) for each in found} == {id(ask(made))}


def test_a_tool_that_is_built_while_it_is_built_is_one() -> None:
    """Where annotations run code that needs the tool itself, the one that it got is the tool."""
    inner: list[Any] = []

    @tool_fn
    def add(a: made()) -> int:  # type: ignore[valid-type]
        return 0

    def made() -> type:
        if not inner:
            inner.append(None)
            inner[0] = spec_of(add)
        return int

    assert spec_of(add) is inner[0]


def test_a_model_that_is_declared_while_it_is_declared_is_one() -> None:
    """Where a schema runs code that needs the tool itself, the one that it got is the tool."""
    inner: list[Any] = []

    class AddArgs(ToolInput[int]):
        a: int

        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            if not inner:
                inner.append(None)
                inner[0] = spec_of(cls)
            return handler(schema)

    assert spec_of(AddArgs) is inner[0]
    assert spec_of(AddArgs) is inner[0]


def test_a_module_that_another_thread_loads_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool is declared and its input encoded while what it does without is still being loaded."""
    for name in ("lutum_py._context.context", "pydantic.types"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))

    @tool_fn
    def add(numbers: set[int]) -> int:
        return sum(numbers)

    call = call_of(add, {"numbers": [2, 1]})
    assert call.spec.arguments.to_data(call.input) == {"numbers": [1, 2]}


def test_no_gate_is_missed_that_a_thread_added() -> None:
    """Gates that threads add at once are all asked, also by those who looked before."""
    for _ in range(ROUNDS):
        toolset = sums()
        hooks: HookSet[Any] = toolset.HookSet()

        def add(hooks: Any = hooks, plus: Any = toolset.plus) -> int:
            hooks.gate(plus)(lambda metadata, input: None)
            return len(hooks._decisions_for(plus)[1])

        assert max(at_once(add)) == THREADS
        assert len(hooks._decisions_for(toolset.plus)[1]) == THREADS


@pytest.mark.filterwarnings("ignore:Description hook")
def test_a_tool_with_a_description_hook_is_never_without() -> None:
    """A description hook takes the place of another at one go."""
    toolset = sums()
    hooks: HookSet[Any] = toolset.HookSet()

    def replace_it() -> set[int]:
        hooks.describe(toolset.plus)(lambda definition: None)
        return {len(hooks._hooks_for(toolset.plus, "description")) for _ in range(50)}

    for _ in range(ROUNDS):
        assert at_once(replace_it) == [{1}] * THREADS


def test_threads_may_ask_one_transcript_for_what_many_toolsets_loaded() -> None:
    """However many threads read what a conversation has loaded, each gets that of its toolset."""
    for _ in range(ROUNDS):
        transcript = Transcript()
        call = ToolMetadata(id="c1", name="search_tools", arguments="{}")
        result = ToolResult(id="c1", name=call.name, arguments="{}", result='["add"]')
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))
        made = [
            Toolset.of(f"Many{place}", tool_search(), tool(function(), deferred=True))
            for place in range(20)
        ]

        def ask(transcript: Transcript = transcript, made: Any = made) -> list[str]:
            return [selector.name for each in made for selector in each.loaded_tools(transcript)]

        assert at_once(ask) == [["add"] * 20] * THREADS


def functions_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from functions_in(inner)


def test_no_value_stops_all_threads() -> None:
    """What changes its class lends itself to that, where this Python can: then no thread waits."""
    lent: dict[str, bool] = {}
    for module in sorted(Path(lutum_py.__file__).parent.glob("_*/*.py")):
        for code in functions_in(compile(module.read_text(), str(module), "exec")):
            for before, step in pairwise(dis.get_instructions(code)):
                if step.opname == "STORE_ATTR" and step.argval == "__class__":
                    lent[code.co_qualname] = "BORROW" in before.opname
    assert "AssistantTurn.__new__" in lent
    assert set(lent.values()) == {"LOAD_FAST_BORROW" in dis.opmap}


class Inside(BaseModel):
    number: float


MANY: Any = [create_model(f"Part{at}", __base__=Inside) for at in range(50)]
FIELDS: Any = {f"part_{at}": (part | None, None) for at, part in enumerate(MANY)}
Outside: Any = create_model("Outside", inside=Inside, **FIELDS)
"""Of many classes, which take long to be put out of sight."""


def test_threads_may_make_tools_of_one_class_while_it_is_used() -> None:
    """Whoever makes an answer or a tool of a class changes nothing of it for anybody else."""
    unknown = '{"inside": {"number": 1}, "more": 2}'
    infinite = '{"inside": {"number": Infinity}}'

    def used() -> object:
        for text in (unknown, infinite):
            assert Outside.model_validate_json(text).inside.number
        return Outside(inside=Inside(number=1))

    def made() -> object:
        for declared in (Answer(Outside).spec, spec_of(tool_fn(takes))):
            read = declared.arguments.validate_json
            for text in (unknown, infinite):
                with pytest.raises(ValidationError):
                    read(text)
            assert read('{"inside": {"number": 1}}').inside == Inside(number=1)
        return None

    def takes(outside: Outside) -> None:
        """Take one."""

    works = cycle([made, used])

    def next_of_both() -> object:
        return next(works)()

    for _ in range(3):
        at_once(next_of_both)
    assert Outside.__pydantic_complete__
    assert Inside.__pydantic_complete__


class Watched(type(BaseModel)):  # type: ignore[misc]
    """Remembers which attributes of its classes were set once they were made."""

    changed: ClassVar[list[str]] = []

    def __setattr__(cls, name: str, value: object) -> None:
        Watched.changed.append(name)
        super().__setattr__(name, value)


def test_a_class_is_left_as_it_is_by_what_is_made_of_it() -> None:
    """A thread that uses a class sees nothing of a tool or an answer being made of it."""
    if tuple(map(int, VERSION.split(".")[:2])) < (2, 13):
        pytest.skip("pydantic takes what a class has finished, unless it looks unfinished")

    class Seen(BaseModel, metaclass=Watched):
        number: float

    Watched.changed.clear()
    with pytest.raises(ValidationError):
        Answer(Seen).spec.arguments.validate_json('{"number": Infinity}')
    assert Watched.changed == []


FORKS: Final = """
import os, threading
from lutum_py._text.on_demand import ONCE

held, leave = threading.Event(), threading.Event()

def hold():
    with ONCE:
        held.set()
        leave.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0 if ONCE.acquire(timeout=5) else 1)
leave.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_does_not_wait_for_a_thread_that_it_has_not() -> None:
    """A lock that another thread holds while a process forks is free in the child."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "0\n"
