"""What checkers know of function tools where the function says little."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from typing_extensions import assert_type

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Reject,
    Reply,
    RunNormally,
    Selector,
    Suspend,
    ToolCall,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    Toolset,
    policy,
    tool,
    tool_fn,
)


T = TypeVar("T")


class Key(BaseModel):
    key: str


@tool_fn
def loose(key: str, limit: int = 5) -> Any:
    """Give anything."""
    return key * limit


@tool_fn
def count(key: str) -> int:
    """Count something."""
    return len(key)


@tool_fn(skip=("prices",))
async def price(prices: dict[str, int], key: str) -> int:
    """Look a price up."""
    return prices[key]


@tool_fn(skip=("prices",))
def known(prices: Any, key: str) -> bool:
    """Tell whether there is a price."""
    return key in prices


@tool_fn(skip=("prices",))
async def told(prices: dict[str, int], key: str) -> Reply[int]:
    """Look a price up, and say more of it."""
    return Reply(prices[key], message="euros")


@tool_fn
async def stored(row: dict[str, Any], table: str = "books") -> dict[str, Any]:
    """Store a row of any columns."""
    return {table: row}


@tool_fn
async def told_row(row: dict[str, Any]) -> Reply[int]:
    """Count the columns, and say more of it."""
    return Reply(len(row), message="columns")


@tool_fn
async def row_told(key: str) -> Reply[dict[str, Any]]:
    """Give a row of any columns, and say more of it."""
    return Reply({"key": key}, message="a row")


@tool_fn
async def told_at_times(row: dict[str, Any]) -> Reply[int] | None:
    """Count the columns, if there are some."""
    return Reply(len(row)) if row else None


@tool_fn
def columns(row: dict[str, Any]) -> int:
    """Count the columns."""
    return len(row)


class Shelf(Generic[T]):
    """Methods, and static ones: `self` goes, and no other parameter does."""

    def __init__(self, only: T) -> None:
        self.only = only

    @tool_fn
    def take(self, key: str) -> T:
        return self.only

    @tool_fn(input=Key, skip=("by",))
    async def find(self, key: Key, by: str) -> T:
        return self.only

    @staticmethod
    @tool_fn
    def length(key: str, factor: int = 1) -> int:
        return len(key) * factor

    @staticmethod
    @tool_fn(skip=("factor",))
    async def weight(key: str, factor: int) -> float:
        return len(key) * factor

    @staticmethod
    @tool_fn(input=Key)
    def known(key: Key) -> bool:
        return bool(key.key)

    def both(self) -> int:
        return self.length("key", factor=2) + self.length(3)  # error


shelf = Shelf(3)


class Tools(Toolset):
    take = tool(shelf.take)
    find = tool(shelf.find)
    length = tool(shelf.length)
    weight = tool(shelf.weight)
    is_known = tool(Shelf.known)
    stored = tool(stored)
    told_row = tool(told_row)
    row_told = tool(row_told)
    told_at_times = tool(told_at_times)
    columns = tool(columns)
    loose = tool(loose)
    count = tool(count)
    price = tool(price)
    known = tool(known, off=True)
    told = tool(told, needs_approval=True)


async def hidden(call: AnyToolCall) -> ToolResult:
    """A tool that hides a parameter is typed like others, whether it is async or not."""
    if priced := Tools.price.match(call):
        assert_type(await priced.invoke(prices={}), int)
        priced.complete("cheap")  # error
        return priced.complete(3)
    if asked := Tools.known.match(call):
        assert_type(asked.invoke_sync(prices={}), bool)
        return asked.complete("yes")  # error
    if said := Tools.told.match(call):
        said.complete(Reply("cheap"))  # error
        return said.complete(Reply(3))
    if put := Tools.stored.match(call):
        assert_type(await put.invoke(), dict[str, Any])
        return put.complete("nothing")  # error
    if told_in_row := Tools.told_row.match(call):
        told_in_row.complete(Reply("none"))  # error
        return told_in_row.complete(3)
    if row_in_told := Tools.row_told.match(call):
        row_in_told.complete("nothing")  # error
        return row_in_told.complete({"key": 3})
    if at_times := Tools.told_at_times.match(call):
        at_times.complete("none")  # error
        at_times.complete(Reply(3))
        return at_times.complete(None)
    return call.fail("no such tool")


async def methods() -> None:
    assert_type(Tools.find, Selector[Key, int])
    assert_type(Tools.is_known, Selector[Key, bool])
    assert_type(shelf.take("key"), int)
    assert_type(await shelf.find(Key(key="key"), by="me"), int)
    assert_type(await shelf.weight("key", 2), float)
    assert_type(shelf.known(Key(key="key")), bool)
    shelf.take()  # error
    shelf.length("key", "2")  # error
    shelf.known("key")  # error


@Tools.HookSet().on_args(Tools.length)
def long(key: str, factor: int = 1) -> Reject | None:
    """A hook of a static method has all of its parameters."""
    return None if factor < 10 else Reject(key)


run = Tools.Handlers()


@run.on(Tools.price)
async def other_price(prices: dict[str, int], key: str) -> int:
    """A handler has the parameters of the function, also those that the model does not send."""
    return len(prices)


@run.on(Tools.stored)
async def stored_elsewhere(row: dict[str, Any], table: str = "books") -> dict[str, Any]:
    """So has that of a function in which not all is known."""
    return row


@run.on(Tools.told_row)
async def told_row_elsewhere(row: dict[str, Any]) -> int:
    return len(row)


@run.on(Tools.told_row)  # error
async def of_no_told_row(row: str) -> int:
    return len(row)


@run.on(Tools.columns)
def columns_elsewhere(row: dict[str, Any]) -> int:
    return len(row)


@run.on(Tools.stored)  # error
async def of_no_row(row: str, table: str = "books") -> dict[str, Any]:
    return {table: row}


@run.on(Tools.columns)  # error
def of_no_count(row: dict[str, Any]) -> str:
    return str(row)


@run.on(Tools.price)  # error
async def of_wrong_price(prices: dict[str, int], key: str) -> str:
    return key


hooks = Tools.HookSet()


@hooks.on(Tools.count)
def lower_case(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
    """The input of a function tool is anything; a hook says so to a strict checker."""
    return RunNormally(input.model_copy(update={"key": input.key.lower()}))


@hooks.on(Tools.count)
def has_a_key(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, int]:
    """A decision of several kinds is of the tool's output."""
    return RunNormally(input) if input.key else Reject("there is no key")


@hooks.gate(Tools.count)
def not_too_long(metadata: ToolMetadata, input: Any) -> Block | None:
    """A gate blocks, or says nothing."""
    return Block("too long") if len(input.key) > 100 else None


@hooks.on_args(Tools.stored)
def without_books(row: dict[str, Any], table: str = "books") -> Reject | None:
    """A hook of its parameters, too."""
    return Reject("not the books") if table == "books" else None


@hooks.on_args(Tools.loose)
def blank(key: str, limit: int = 5) -> None:
    """A function that gives anything is a tool of its parameters still."""


@hooks.on_args(Tools.count)
def changed(key: str) -> dict[str, str]:
    """Arguments may be changed by their names."""
    return {"key": key.lower()}


@hooks.on_args(Tools.count)
def replied(key: str) -> Complete[int] | None:
    """A decision may carry a reply, as an output may."""
    return Complete(Reply(3, message="three")) if key else None


@hooks.on_args(Tools.count)
async def replied_later(key: str) -> Complete[int]:
    """So may that of an async hook."""
    return Complete(Reply(len(key)))


@hooks.on(Tools.count)
def replied_to_input(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, int]:
    """So may a hook of the input."""
    if not input.key:
        return Reject("blank")
    return Complete(Reply(3, message="three")) if len(input.key) > 3 else Complete(4)


@hooks.gate(Tools.count)
def replied_by_gate(metadata: ToolMetadata, input: Any) -> Complete[int] | Suspend | None:
    """So may a gate."""
    return Complete(Reply(3))


@hooks.before(Tools.count)
async def noted(metadata: ToolMetadata, input: Any) -> None:
    print(input.key)


@hooks.after(Tools.count)
def noted_after(call: ToolCall[Any, int], result: ToolResult) -> ToolResult | None:
    return result


class Policy:
    @policy.on(Tools.count)
    def replied(self, metadata: ToolMetadata, input: Any) -> Complete[int]:
        return Complete(Reply(3))

    @policy.gate(Tools.count)
    def long(self, metadata: ToolMetadata, input: Any) -> Block | None:
        return Block("too long") if len(input.key) > 100 else None


async def test_hooks(call: ToolCall[Any, int], result: ToolResult) -> None:
    """With an `Any` for its input, too, a hook stays the function that it is."""
    assert_type(lower_case(metadata=call.metadata, input=3), RunNormally[Any])
    assert_type(not_too_long(call.metadata, input=3), Block | None)
    assert_type(await noted(metadata=call.metadata, input=3), None)
    assert_type(noted_after(call, result=result), ToolResult | None)
    assert_type(Policy().replied(call.metadata, input=3), Complete[int])
    assert_type(Policy().long(metadata=call.metadata, input=3), Block | None)
    lower_case(call.metadata)  # error
    not_too_long(metadata=call.metadata, inptu=3)  # error
    Policy().replied(3, call.metadata)  # error


@hooks.on(Tools.count)  # error
def of_other_decision(metadata: ToolMetadata, input: Any) -> Block:
    return Block("a gate blocks")


@hooks.gate(Tools.count)  # error
def of_other_gate(metadata: ToolMetadata, input: Any) -> Reject | None:
    return Reject("a gate blocks")


number = int("3")
assert_type(Complete(Reply(number)), Complete[int])
assert_type(Complete(number), Complete[int])
assert_type(Complete(output=Reply(str(number))), Complete[str])


def kept(key: Any, reply: Reply[int]) -> Complete[int] | None:
    """Nothing has to be annotated on the way."""
    decision = Complete(reply)
    return Complete(key) if key else decision


@hooks.on_args(Tools.count)
def of_other_output(key: str) -> Complete[int]:
    return Complete(Reply(key))  # error


@hooks.on_args(Tools.count)  # error
def of_other_reply(key: str) -> Complete[str]:
    return Complete(Reply(key))
