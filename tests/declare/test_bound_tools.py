"""The laws of tools that are methods of one instance."""

from __future__ import annotations

import asyncio
import pickle
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from lutum_py import FnSelector, Skip, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import MisuseError, ToolDefinitionError
from tests.declared import call_of, spec_of
from tests.sample_tools import sent


class Question(BaseModel):
    text: str


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    @tool_fn
    async def bump(self, key: str, by: int = 1) -> int:
        """Count up."""
        self.count += by
        return self.count

    @tool_fn
    def peek(self, /, key: str, db: Annotated[str, Skip()], context: ToolContext) -> str:
        return f"{key}{db}{self.count}{context.call_id}"

    @tool_fn(input=Question)
    def ask(self, question: Question) -> str:
        return f"{question.text}{self.count}"

    @tool_fn
    def typed(self: Any, key: str) -> str:
        return key


first, second = Counter(0), Counter(10)


class Tools(Toolset):
    bump = tool(first.bump)
    peek = tool(first.peek)
    ask = tool(first.ask)


def test_self_is_given_and_nobody_passes_it() -> None:
    """A bound method runs on its own instance, whatever other instances do."""
    own, other = Counter(0), Counter(10)
    for counter, expected in ((own, 2), (other, 12)):
        outcome = asyncio.run(call_of(counter.bump, {"key": "k", "by": 2}).call())
        assert outcome.output == expected
    assert (own.count, other.count) == (2, 12)
    assert call_of(own.peek, {"key": "k"}).call_sync(db="d").output == "kd2c1"
    assert call_of(own.ask, {"text": "t"}).call_sync().output == "t2"


def test_a_bound_method_is_described_as_the_function_is() -> None:
    """Name, texts and schemas are those of the function; `self` is no part of any."""
    assert Tools.bump.definition == Counter.bump.definition
    assert isinstance(Tools.bump, FnSelector)
    assert not isinstance(Tools.ask, FnSelector)
    with pytest.raises(MisuseError):
        call_of(first.peek, {"key": "k"}).call_sync(db="d", self=second)


def test_a_bound_method_stays_what_it_was() -> None:
    """Called as a method, it is one, and it compares as one."""
    counter = Counter(0)
    assert asyncio.run(counter.bump("k", by=3)) == counter.count == 3
    assert counter.bump == counter.bump
    assert Counter.peek(counter, "k", "d", ToolContext("c9", "peek")) == "kd3c9"


def test_hooks_and_applied_functions_know_no_self() -> None:
    """What has the method's parameters has those that are left of them."""
    hooks: Any = Tools.HookSet()
    hooks.on_args(Tools.bump)(lambda key, by=1: Tools.bump.with_args(key, by=by + 1))
    call: Any = Tools.parse_tool_call(sent("bump", "c1", key="k")).hook_sync(hooks)
    assert call.apply(lambda key, by: (key, by)) == ("k", 2)


def test_calls_of_bound_methods_pickle_where_the_toolset_does() -> None:
    """A toolset is found again by its name, and its calls with it."""
    call = Tools.parse_tool_call(sent("bump", "c1", key="k"))
    assert pickle.loads(pickle.dumps(call)).selector is Tools.bump
    free = pickle.loads(pickle.dumps(spec_of(first.ask).free_selector))
    assert free.definition == Counter.ask.definition


def test_a_self_that_the_model_fills_in_is_no_method() -> None:
    """An annotated `self` is an argument, so that no instance can be given for it."""
    with pytest.raises(ToolDefinitionError):
        tool(first.typed)
