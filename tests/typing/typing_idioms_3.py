"""Typed idioms of lutum_py that users trust most: names, gates and policies, rules that tests call, frozen values.

Checked, never run: `mypy --strict`, `pyright`, `pyrefly check` and `ty check` report every line marked `# error`,
and no other.
"""

# pyright: reportUnusedFunction=false, reportUnusedImport=false, reportUnusedVariable=false, reportUnusedExpression=false
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, TypeAdapter
from typing_extensions import assert_type

import lutum_py
import lutum_py.typing
from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Decision,
    Finished,
    HandledCall,
    NeedsTools,
    Reject,
    RunNormally,
    Selector,
    Session,
    Suspend,
    SuspendTicket,
    ToolCall,
    ToolContext,
    ToolDecision,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    policy,
    tool,
    tool_fn,
    toolset,
)
from lutum_py import tool_fm  # error
from lutum_py.capabilities import capability_gate
from lutum_py.errors import ToolErorr  # error
from lutum_py.store import Store, Stored
from lutum_py.testing import ScriptedModle  # error
from lutum_py.typing import Restored


class User(BaseModel):
    name: str


class Order(BaseModel):
    number: int


class GetUserArgs(ToolInput[User]):
    user_id: str


class FindUserArgs(ToolInput[User | None]):
    mail: str


class PayArgs(ToolInput[Order]):
    cents: int


class Question(BaseModel):
    text: str


P = ParamSpec("P")
R = TypeVar("R")


def timed(fn: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """A decorator as users write it."""
    return fn


@tool_fn
@timed
async def fetch(url: str) -> User:
    return User(name=url)


@tool_fn
async def search(context: ToolContext, query: str, limit: int = 5) -> Order:
    """The model sends the query and the limit."""
    return Order(number=limit)


@tool_fn(skip=("db",))
def lookup(key: str, db: dict[str, str]) -> str:
    """The model sends the key."""
    return db[key]


class Helpdesk:
    @tool_fn(input=Question)
    async def ask(self, question: Question) -> User:
        return User(name=question.text)

    @tool_fn(input=Question, skip=("db",))
    def tell(self, question: Question, db: dict[str, str]) -> str:
        return db[question.text]


helpdesk = Helpdesk()


class Users(Toolset):
    get_user = tool(GetUserArgs)
    find_user = tool(FindUserArgs)


class Desk(Toolset):
    pay = tool(PayArgs)
    fetch = tool(fetch)
    search = tool(search)
    lookup = tool(lookup)
    ask = tool(helpdesk.ask)
    tell = tool(helpdesk.tell)
    users = toolset(Users)


class Other(Toolset):
    get_user = tool(GetUserArgs)


class Wrong(Toolset):
    users = toolset(User)  # error


metadata = ToolMetadata(id="c1", name="pay", arguments="{}")
hooks = Desk.HookSet()

# 1. What is misspelt is an error, and each public module is there.
lutum_py.Toolst  # error
lutum_py.stroe  # error
lutum_py.store.Stroe  # error
lutum_py.execution.exceute_all  # error
hooks.gaet(Desk.pay)  # error
Desk.pya  # error
Desk.users.get_usr  # error
hooks.register_pya_hook(lambda metadata, input: RunNormally(input))  # error
policy.gaet(Desk.pay)  # error
_store: type[Store] = lutum_py.store.Store
lutum_py.sinks.ListSink()
lutum_py.dialects.DIALECTS.keys()


# 2. Each kind of hook is typed by its selector.
@hooks.gate(Desk.pay)
def at_most(metadata: ToolMetadata, input: PayArgs) -> Block | None:
    return Block("too much") if input.cents > 100 else None


@hooks.gate(Desk.pay)
async def asked(
    metadata: ToolMetadata, input: PayArgs, decision: Decision | None
) -> Suspend | Complete[Order] | ToolResult | None:
    """A gate may be async, and may see the decision by which a call goes on."""
    return None if decision else Suspend(SuspendTicket(message=f"{input.cents}?"))


@hooks.gate()
def of_every_tool(metadata: ToolMetadata, input: object) -> Block | None:
    return Block("no") if metadata.name == "pay" else None


def made(limit: int) -> Callable[[ToolMetadata, PayArgs], Block | None]:
    """Make a gate."""
    return lambda metadata, input: Block("too much") if input.cents > limit else None


def made_for_others() -> Callable[[ToolMetadata, GetUserArgs], Block | None]:
    return lambda metadata, input: Block(input.user_id)


class Keeper:
    def look(self, metadata: ToolMetadata, input: PayArgs) -> None:
        print(input.cents)


hooks.gate()(capability_gate())
hooks.gate(Desk.pay)(capability_gate())
hooks.gate(Desk.pay)(made(100))
hooks.gate(Desk.pay)(made_for_others())  # error
hooks.before(Desk.pay)(Keeper().look)


@hooks.gate(Desk.pay)  # error
def gate_of_wrong_input(metadata: ToolMetadata, input: GetUserArgs) -> Block | None:
    return Block(input.user_id)


@hooks.gate(Desk.pay)  # error
def gate_that_rejects(metadata: ToolMetadata, input: PayArgs) -> Reject | None:
    return Reject("a gate blocks")


@hooks.gate(Desk.pay)  # error
def gate_of_wrong_output(metadata: ToolMetadata, input: PayArgs) -> Complete[User] | None:
    return Complete(User(name="x"))


@hooks.gate(Desk.pay)  # error
async def gate_of_wrong_decision(metadata: ToolMetadata, input: PayArgs, decision: str) -> Block:
    return Block(decision)


@hooks.gate()  # error
def gate_of_wrong_metadata(metadata: ToolCall[PayArgs, Order], input: object) -> Block | None:
    return None


@hooks.gate(Desk.users)
@hooks.gate(Users)
def closed(metadata: ToolMetadata, input: object) -> Block | None:
    return Block("closed") if metadata.name == "pay" else None


hooks.gate(Desk.users)(capability_gate())
hooks.on(Desk.users)  # error
hooks.describe(Desk.users)  # error


@hooks.gate(Desk.users)  # error
def gate_of_wrong_metadata_for_a_group(metadata: str, input: object) -> Block | None:
    return None


@hooks.before(Desk.pay)
async def noted(metadata: ToolMetadata, input: PayArgs) -> None:
    print(metadata.id, input.cents)


@hooks.before(Desk.pay)  # error
def before_of_wrong_input(metadata: ToolMetadata, input: Question) -> None:
    print(input.text)


@hooks.before()  # error
def before_that_decides(metadata: ToolMetadata, input: object) -> Reject:
    return Reject("nobody asks")


@hooks.after(Desk.pay)
def checked(call: ToolCall[PayArgs, Order], result: ToolResult) -> ToolResult | None:
    return call.complete(Order(number=call.input.cents)) if result.is_success else None


@hooks.before(Desk.users)
def of_a_group(metadata: ToolMetadata, input: object) -> None:
    print(metadata.id)


@hooks.after(Desk.users)
@hooks.after()
async def after_every_tool(call: AnyToolCall, result: ToolResult) -> None:
    print(call.name, result.status)


@hooks.after(Desk.pay)  # error
def after_of_wrong_call(call: ToolCall[GetUserArgs, User], result: ToolResult) -> None:
    print(call.input.user_id)


@hooks.after(Desk.pay)  # error
def after_with_wrong_answer(call: AnyToolCall, result: ToolResult) -> str:
    return result.result


@hooks.describe(Desk.pay)
def described(definition: ToolDef) -> str | None:
    return definition.description + " Only in euros."


@hooks.describe(Desk.pay)  # error
def described_by_number(definition: ToolDef) -> int:
    return 3


@hooks.describe(Desk.pay)  # error
def described_by_name(definition: str) -> str:
    return definition


# 3. What is decorated can be called as it was written, and may have two tools.
@hooks.on(Desk.pay)
def rule(metadata: ToolMetadata, input: PayArgs) -> ToolDecision[PayArgs, Order]:
    return RunNormally(input) if input.cents > 0 else Reject("nothing to pay")


@hooks.on(Desk.pay)
async def later_rule(metadata: ToolMetadata, input: PayArgs) -> Reject:
    return Reject("later")


@hooks.on_args(Desk.search)
def in_time(context: ToolContext, query: str, limit: int = 5) -> Reject | None:
    return None if limit < 10 else Reject("too many")


@hooks.on(Desk.pay)
@hooks.on(Users.get_user)
def of_two(metadata: ToolMetadata, input: PayArgs | GetUserArgs) -> Reject:
    return Reject(metadata.name)


@hooks.on(Desk.pay, Users.get_user)
def of_two_at_once(
    metadata: ToolMetadata, input: PayArgs | GetUserArgs
) -> RunNormally[PayArgs | GetUserArgs] | Reject:
    return RunNormally(input)


@hooks.on(Desk.pay, Users.get_user)
def of_any(metadata: ToolMetadata, input: BaseModel) -> Reject:
    return Reject(input.model_dump_json())


@hooks.on(Desk.pay, Users.get_user)  # error
def of_one_of_two(metadata: ToolMetadata, input: PayArgs) -> Reject:
    return Reject("never")


@hooks.on(Desk.pay, Users.get_user)  # error
def of_one_output_of_two(metadata: ToolMetadata, input: BaseModel) -> Complete[Order]:
    return Complete(Order(number=3))


@hooks.on(Desk.pay)  # error
@hooks.on(Users.get_user)
def of_the_inner_one(metadata: ToolMetadata, input: GetUserArgs) -> Reject:
    return Reject("never")


class Rules:
    @policy.on(Desk.pay)
    def pay(self, metadata: ToolMetadata, input: PayArgs) -> RunNormally[PayArgs] | Reject:
        return RunNormally(input)

    @policy.on(Desk.pay, Users.get_user)
    async def both(self, metadata: ToolMetadata, input: PayArgs | GetUserArgs) -> Reject:
        return Reject("both")

    @policy.gate(Desk.pay)
    def gate(
        self, metadata: ToolMetadata, input: PayArgs, decision: Decision | None
    ) -> Block | None:
        return None

    @policy.gate(Desk.users)
    @policy.gate()
    def every(self, metadata: ToolMetadata, input: object) -> Block | None:
        return None

    @policy.before(Desk.pay)
    def before(self, metadata: ToolMetadata, input: PayArgs) -> None:
        print(input.cents)

    @policy.after(Desk.pay)
    async def after(self, call: ToolCall[PayArgs, Order], result: ToolResult) -> ToolResult | None:
        return result

    @policy.describe(Desk.pay)
    def describe(self, definition: ToolDef) -> str:
        return definition.name

    @policy.gate(Desk.pay)  # error
    def gate_of_wrong_input(self, metadata: ToolMetadata, input: Question) -> Block | None:
        return Block(input.text)

    @policy.gate(Desk.pay)  # error
    def gate_of_wrong_answer(self, metadata: ToolMetadata, input: PayArgs) -> bool:
        return input.cents > 0

    @policy.before(Desk.pay)  # error
    def before_of_wrong_input(self, metadata: ToolMetadata, input: Question) -> None:
        print(input.text)

    @policy.after(Desk.pay)  # error
    def after_of_wrong_call(self, call: ToolCall[GetUserArgs, User], result: ToolResult) -> None:
        print(call.input.user_id)

    @policy.describe(Desk.pay)  # error
    def describe_with_nothing(self) -> str:
        return ""

    @policy.on(Desk.pay)  # error
    async def wrong_output(self, metadata: ToolMetadata, input: PayArgs) -> Complete[User]:
        return Complete(User(name="x"))


def test_rules(context: ToolContext) -> None:
    """Hooks are tested as functions."""
    paid = PayArgs(cents=3)
    assert_type(rule(metadata=metadata, input=paid), ToolDecision[PayArgs, Order])
    assert_type(asyncio.run(later_rule(metadata, input=paid)), Reject)
    assert_type(of_two(metadata=metadata, input=paid), Reject)
    assert_type(in_time(context, query="x"), Reject | None)
    assert_type(Rules().pay(metadata, input=paid), RunNormally[PayArgs] | Reject)
    assert_type(Rules().gate(metadata=metadata, input=paid, decision=None), Block | None)
    assert_type(asyncio.run(Rules().both(metadata, paid)), Reject)
    assert_type(at_most(metadata=metadata, input=paid), Block | None)
    assert_type(described(Desk.pay.definition), str | None)
    rule(metadata=metadata, input=Question(text=""))  # error
    rule(metadata=metadata, inptu=paid)  # error
    of_two(metadata, Question(text=""))  # error
    Rules().pay(metadata, Question(text=""))  # error
    at_most(metadata)  # error


# 4. Frozen values vary as what they hold.
@hooks.on(Desk.users.find_user)
def nobody(metadata: ToolMetadata, input: FindUserArgs) -> Complete[None] | Complete[User]:
    return Complete(None) if not input.mail else Complete(User(name=input.mail))


@hooks.on(Desk.users.find_user)  # error
def somebody(metadata: ToolMetadata, input: FindUserArgs) -> Complete[None] | Complete[Order]:
    return Complete(None)


def calls_of(outcome: NeedsTools[Toolset, object]) -> Sequence[AnyToolCall]:
    """A function over any round."""
    return outcome.round.tool_calls


def shown(outcome: Finished[object]) -> str:
    return repr(outcome.answer)


def of_any_plan(plan: ToolRoundPlan[Toolset]) -> int:
    return len(plan.pending)


async def over_any(session: Session) -> None:
    plain = await session.text_turn(lutum_py.testing.ScriptedModel([])).tools(Desk).collect()
    match plain:
        case NeedsTools():
            calls_of(plain)
            of_any_plan(plain.round.plan())
        case Finished():
            shown(plain)
    typed = (
        await session.text_turn(lutum_py.testing.ScriptedModel([]))
        .tools(Desk)
        .answer(Order)
        .collect()
    )
    match typed:
        case NeedsTools():
            calls_of(typed)
        case Finished():
            shown(typed)
        case _:
            calls_of(typed)  # error


def wider(
    restored: Restored[Desk],
    stored: Stored[Desk],
    handled: HandledCall[PayArgs, Order],
    run: RunNormally[PayArgs],
) -> None:
    any_restored: Restored[Toolset] = restored
    any_stored: Stored[Toolset] = stored
    any_handled: HandledCall[BaseModel, BaseModel] = handled
    any_run: RunNormally[BaseModel] = run
    no_handled: HandledCall[BaseModel, User] = handled  # error
    no_restored: Restored[Other] = restored  # error
    no_run: RunNormally[Question] = run  # error


# 5. A tool that is known by its name alone.
def by_name(served: type[Toolset], call: AnyToolCall) -> ToolResult | None:
    at_run_time = served.HookSet()

    @at_run_time.on(served.Selector.from_name("search"))
    def cleaned(metadata: ToolMetadata, input: dict[str, Any]) -> RunNormally[dict[str, Any]]:
        return RunNormally({**input, "limit": 3})

    @at_run_time.on(served.Selector.from_name("search"))  # error
    def deciding_nothing(metadata: ToolMetadata, input: dict[str, Any]) -> int:
        return 3

    at_run_time.on(Desk["pay"])
    Desk["pay"].match(call)
    for each in served:
        at_run_time.gate(each)(capability_gate())
        if (found := each.match(call)) is not None:
            return found.complete({"any": "output"})
    Desk[3]  # error
    return None


# 6. What a decorator of one's own leaves of an async function, and methods of `input=`.
async def tools_of_others(call: AnyToolCall) -> ToolResult | None:
    assert_type(await fetch("x"), User)
    assert_type(await helpdesk.ask(Question(text="x")), User)
    assert_type(helpdesk.tell(Question(text="x"), db={}), str)
    assert_type(Desk.ask, Selector[Question, User])
    assert_type(Desk.tell, Selector[Question, str])
    await fetch(3)  # error
    await helpdesk.ask("x")  # error
    if (fetched := Desk.fetch.match(call)) is not None:
        fetched.complete(Order(number=3))  # error
        return fetched.complete(User(name="x"))
    if (told := Desk.ask.match(call)) is not None:
        assert_type(told.input, Question)
        told.complete(told.input)  # error
        return told.complete(User(name=told.input.text))
    return None


# 7. Arguments as the model sends them.
async def sent(context: ToolContext) -> None:
    coroutine: Coroutine[Any, Any, Order] = search(context, query="x")
    assert_type(await coroutine, Order)
    await search(context=context, query="x")


Desk.search.with_args(query="x")
Desk.search.with_args("x", limit=3)
Desk.lookup.with_args(key="x")
Desk.search.with_args(qeury="x")  # error
Desk.search.with_args(query=3)  # error


# 8. What is of another toolset, where types can say it.
async def elsewhere(session: Session, plan: ToolRoundPlan[Other]) -> None:
    hooks.extend(Other.HookSet())  # error
    mine: ToolRoundPlan[Desk] = plan  # error
    inner: lutum_py.HookSet[Users] = hooks[Desk.users]
    session.text_turn(lutum_py.testing.ScriptedModel([])).tools(User)  # error
    session.text_turn(lutum_py.testing.ScriptedModel([])).tools(Desk())  # error


# 9. What signatures name has a public place.
def public(
    registers: lutum_py.typing.HookDecorator[[ToolMetadata, PayArgs], Reject],
    hooks: lutum_py.typing.Hooks,
) -> None:
    print(registers, hooks)


# 10. What is not for users is not offered to them.
def internals(call: AnyToolCall, outcome: NeedsTools[Desk]) -> None:
    hooks.deciding(Desk.pay)  # error
    hooks.places_for(Desk.pay)  # error
    Desk.pay.decode(call.metadata)  # error
    outcome.round.toolset.HookSet()


# 11. A call as tagged JSON.
class Job(BaseModel):
    call: Desk.Call
    by: str


def queued(text: str) -> str:
    adapter = TypeAdapter(Desk.Call)
    assert_type(adapter.validate_json(text), AnyToolCall)
    job = Job.model_validate_json(text)
    if (paid := Desk.pay.match(job.call)) is not None:
        assert_type(paid.input.cents, int)
        print(paid.input.cnts)  # error
    job.call.nmae  # error
    return adapter.dump_json(job.call).decode()
