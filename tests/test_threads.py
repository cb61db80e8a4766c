"""The laws of what threads share, and of what they do not wait for."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from threading import Barrier, Event
from types import CodeType, ModuleType
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

import lutum_py
from lutum_py import HookSet, ToolDef, ToolInput, ToolMetadata, Toolset, tool, tool_fn
from lutum_py._call.spec import FnSpec
from lutum_py._schema import output
from lutum_py._text.immutable import dataclass
from lutum_py._transcript.kept import Latest
from lutum_py.errors import ToolOutputError
from tests.declared import call_of, spec_of

R = TypeVar("R")

THREADS = 8
ROUNDS = 25


@pytest.fixture(autouse=True)
def _threads_take_quick_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[], R]) -> list[R]:
    """Let several threads do the same at the same moment."""
    together = Barrier(THREADS)

    def after_the_others() -> R:
        together.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as threads:
        running = [threads.submit(after_the_others) for _ in range(THREADS)]
        return [each.result() for each in running]


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


def test_the_class_of_calls_is_made_once() -> None:
    """A thread that asks for it while another one makes it gets what that one makes."""
    own = spec_of(function())
    asked, found = Event(), []

    class Watched(FnSpec[Any, Any]):
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            asked.set()
            return super().__getattr__(name)  # type: ignore[misc]

    spec = Watched(
        definition=own.definition,
        origin=own.origin,
        arguments=own.arguments,
        output=own.output,
        invocation=own.invocation,
    )

    def make(spec: Any) -> None:
        spec._put(_make=own_make)
        asked.clear()
        found.append(other.submit(lambda: spec.call_type))
        asked.wait()
        own_make(spec)

    own_make: Any = own._make
    spec._put(_named=own._named, _make=make)
    with ThreadPoolExecutor(1) as other:
        assert spec.call_type is found[0].result()


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
    # As a thread does that waited for it.
    assert add._build() is inner[0]


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


def test_an_output_is_checked_whoever_encodes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What encodes outputs is not used before it is made to the end: a NaN never passes."""

    @tool_fn
    def measure() -> list[float]:
        return [float("nan")]

    own = output._trace_of
    refused: list[object] = []

    def meanwhile(core_schema: Any) -> Any:
        monkeypatch.setattr(output, "_trace_of", own)
        with pytest.raises(ToolOutputError, match="JSON has neither NaN nor infinities"):
            call_of(measure).call_sync()
        refused.append(core_schema)
        return own(core_schema)

    monkeypatch.setattr(output, "_trace_of", meanwhile)
    with pytest.raises(ToolOutputError, match="JSON has neither NaN nor infinities"):
        call_of(measure).call_sync()
    assert refused


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
            return len(hooks.deciding(plus)[1])

        assert max(at_once(add)) == THREADS
        assert len(hooks.deciding(toolset.plus)[1]) == THREADS


@pytest.mark.filterwarnings("ignore:Description hook")
def test_a_tool_with_a_description_hook_is_never_without() -> None:
    """A description hook takes the place of another at one go."""
    toolset = sums()
    hooks: HookSet[Any] = toolset.HookSet()

    def replace_it() -> set[int]:
        hooks.describe(toolset.plus)(lambda definition: None)
        return {len(hooks.hooks_for(toolset.plus, "description")) for _ in range(50)}

    for _ in range(ROUNDS):
        assert at_once(replace_it) == [{1}] * THREADS


def test_threads_may_keep_values_at_once() -> None:
    """However many threads put in and take out at once, the latest stay, and no more."""
    numbers = count()
    for _ in range(ROUNDS):
        kept = Latest[int](2)

        def put(kept: Latest[int] = kept) -> None:
            for _ in range(100):
                number = next(numbers)
                kept.put(number, number)
                kept.take(number - 1)

        at_once(put)
        assert len(kept) <= 2


def test_values_may_be_made_at_once() -> None:
    """Threads that are the first to use a value's class make equal values of it."""
    for _ in range(ROUNDS):

        @dataclass(frozen=True, slots=True)
        class Pair:
            left: int
            right: str = "r"

        def use(kind: Any = Pair) -> tuple[object, ...]:
            made = kind(1)
            return made, hash(made), repr(made), replace(made, left=2)

        assert set(at_once(use)) == {use()}


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
