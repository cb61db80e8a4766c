"""More typed idioms of lutum_py: inputs of function tools, handlers, policies, outcomes, final answers.

Checked, never run: `mypy --strict`, `pyright`, `pyrefly check` and `ty check` report every line marked `# error`,
and no other.
"""

# pyright: reportUnusedVariable=false
from __future__ import annotations

from typing import Literal

from pydantic import BaseModel
from typing_extensions import assert_never, assert_type

from lutum_py import (
    Answer,
    AnyToolCall,
    AssistantTurn,
    Complete,
    Finished,
    FnSelector,
    NeedsTools,
    NoAnswer,
    Reject,
    Reply,
    RunNormally,
    Selector,
    Session,
    ToolContext,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    execution,
    policy,
    tool,
    tool_fn,
)
from lutum_py.testing import ScriptedModel


class User(BaseModel):
    name: str


class GetUserArgs(ToolInput[User]):
    user_id: str


class Question(BaseModel):
    text: str


class Invoice(BaseModel):
    total: float


class Refund(BaseModel):
    reason: str


@tool_fn
async def search(query: str, limit: int = 5) -> User:
    return User(name=query * limit)


@tool_fn(input=Question, skip=("db",))
async def ask(db: dict[str, str], question: Question, context: ToolContext) -> User:
    """One parameter is the input: `input=` tells checkers so, and is checked at import."""
    return User(name=db[question.text])


@tool_fn
async def pictured(query: str) -> Reply[User]:
    """A `Reply` declares the output that it carries."""
    return Reply(User(name=query), message="as in the picture")


class Counter:
    @tool_fn
    async def bump(self, key: str, by: int = 1) -> int:
        return len(key) + by

    @tool_fn
    def peek(self, key: str) -> User:
        return User(name=key)


counter = Counter()


class AppTools(Toolset):
    get_user = tool(GetUserArgs)
    search = tool(search)
    ask = tool(ask)
    bump = tool(counter.bump)
    peek = tool(counter.peek)
    pictured = tool(pictured)


# Bound methods stay callable, and are tools of that instance.
async def methods() -> None:
    assert_type(await counter.bump("k", by=2), int)
    assert_type(counter.peek("k"), User)
    await counter.bump(3)  # error


# 1. What a function tool was called with.
assert_type(AppTools.ask, Selector[Question, User])


async def inputs(call: AnyToolCall) -> ToolResult:
    """A function of the same parameters is given the arguments; `input=` types the input."""

    async def elsewhere(query: str, limit: int = 5) -> User:
        return User(name=query[:limit])

    async def misspelt(qeury: str, limit: int = 5) -> User:
        return User(name=qeury[:limit])

    if c := AppTools.search.match(call):
        assert_type(await c.apply(elsewhere), User)
        assert_type(c.apply(lambda query, limit=5: query.upper()), str)
        c.apply(lambda query, limit=5: query.uper())  # error
        await c.apply(misspelt)  # error
        return c.complete(await c.apply(elsewhere))
    if a := AppTools.ask.match(call):
        assert_type(a.input, Question)
        print(a.input.tex)  # error
        return a.complete(Question(text="no user"))  # error
    if p := AppTools.peek.match(call):
        return p.complete(3)  # error
    if r := AppTools.pictured.match(call):
        assert_type(r.complete(User(name="x")), ToolResult)
        return r.complete(Reply(3))  # error
    match call.input:
        case GetUserArgs(user_id=user_id):
            assert_type(user_id, str)
        case Question() as question:
            print(question.tex)  # error
        case _:
            pass
    return call.fail("no such tool")


_search: FnSelector[[str, int], User]
hooks = AppTools.HookSet()


@hooks.on_args(AppTools.search)
def clipped(query: str, limit: int = 5) -> RunNormally[object] | Reject | None:
    """A hook of the function's own parameters; None goes on as it is."""
    if not query:
        return Reject("blank")
    return AppTools.search.with_args(query=query, limit=3) if limit > 3 else None


@hooks.on_args(AppTools.bump)
async def known(key: str, by: int = 1) -> Complete[int] | None:
    """The method's `self` is gone with the instance."""
    return Complete(by) if key else None


@hooks.on_args(AppTools.search)  # error
def misspelt_hook(qeury: str, limit: int = 5) -> Reject | None:
    return Reject(qeury)


@hooks.on_args(AppTools.search)  # error
def of_other_output(query: str, limit: int = 5) -> Complete[Question]:
    return Complete(Question(text=query))


AppTools.search.with_args(query="x", limit="3")  # error
AppTools.search.with_args(qeury="x")  # error


@hooks.on(AppTools.ask)
def polite(metadata: ToolMetadata, input: Question) -> ToolDecision[Question, User]:
    return RunNormally(input)


@hooks.on(AppTools.ask)  # error
def not_polite(metadata: ToolMetadata, input: Invoice) -> Reject:
    return Reject("never")


# 2. Handlers: each is typed; that none is missing is found by `complete()` at start.
run = AppTools.Handlers()


@run.on(AppTools.get_user)
async def get_user(input: GetUserArgs) -> User:
    return User(name=input.user_id)


@run.on(AppTools.search)
async def other_search(query: str, limit: int = 5) -> User:
    """In the place of the tool's own function."""
    return User(name=query[:limit])


@run.on(AppTools.get_user)  # error
async def of_wrong_input(input: Question) -> User:
    return User(name=input.text)


@run.on(AppTools.get_user)  # error
async def of_wrong_output(input: GetUserArgs) -> Question:
    return Question(text=input.user_id)


@run.on(AppTools.search)  # error
async def of_wrong_parameters(qeury: str, limit: int = 5) -> User:
    return User(name=qeury[:limit])


async def handled(call: AnyToolCall) -> None:
    assert_type(await run.complete()(call), ToolResult)


# 4. A policy whose hooks are named by selectors.
class Audit:
    @policy.on(AppTools.get_user)
    def nobody(self, metadata: ToolMetadata, input: GetUserArgs) -> ToolDecision[GetUserArgs, User]:
        return RunNormally(input)

    @policy.on(AppTools.get_user)  # error
    def somebody(self, metadata: ToolMetadata, input: Question) -> Reject:
        return Reject(input.text)

    @policy.on(AppTools.get_usr)  # error
    def misnamed(self, metadata: ToolMetadata, input: GetUserArgs) -> Reject:
        return Reject(input.user_id)


hooks.register_hooks(Audit())


# 5. What `execute_all` gives is what `commit` takes.
async def outcomes(session: Session, model: ScriptedModel) -> None:
    match await session.text_turn(model).tools(AppTools).collect():
        case NeedsTools(round):
            assert_type(round.answer, None)
            plan = await round.apply_hooks(hooks)
            options: execution.RunOptions = {"default_timeout": 30}
            results = await execution.execute_all(plan.pending, limit=2, **options)
            await execution.execute_all(plan.pending, grace="a while")  # error
            plan.commit(session, results)
            plan.commit(session, [3])  # error
        case Finished(result):
            assert_type(result.answer, str)


# 7. Final answers of a type.
async def invoice(session: Session, model: ScriptedModel) -> Invoice | None:
    while True:
        outcome = await session.text_turn(model).tools(AppTools).answer(Invoice).collect()
        match outcome:
            case NeedsTools(round):
                plan = await round.apply_hooks(hooks)
                plan.commit(session, [await run(call) for call in plan.pending])
                if round.answer is not None:
                    assert_type(round.answer, Invoice)
                    return round.answer
            case Finished(result):
                assert_type(outcome.answer, Invoice)
                assert_type(result.answer, Invoice)
                print(result.answer.totl)  # error
                return result.answer
            case NoAnswer(_, reason, text):
                assert_type(text, str)
                session.push_user(text)
            case _:
                assert_never(outcome)


async def forgotten(session: Session, model: ScriptedModel) -> Invoice:
    """That there may be no answer is not forgotten."""
    outcome = await session.text_turn(model).tools(AppTools).answer(Invoice).collect()
    match outcome:
        case NeedsTools():
            raise RuntimeError
        case Finished(result):
            return result.answer
        case _:
            assert_never(outcome)  # error


async def any_type(session: Session, model: ScriptedModel) -> None:
    """A union, a list, a literal; and an `Answer` says more."""
    turn = session.text_turn(model)
    match await turn.answer(Invoice | Refund).collect():
        case Finished(result):
            assert_type(result.answer, Invoice | Refund)
            if isinstance(result.answer, Refund):
                print(result.answer.reason)
            else:
                print(result.answer.reason)  # error
        case _:
            pass
    match await turn.tools(AppTools).answer(list[Invoice]).collect():
        case Finished(listed):
            assert_type(listed.answer, list[Invoice])
        case _:
            pass
    verdict = Answer(Literal["yes", "no"], by="format", name="verdict")
    match await turn.answer(verdict).collect():
        case Finished(said):
            assert_type(said.answer, Literal["yes", "no"])
        case _:
            pass
    Answer(Invoice, by="magic")  # error


async def streamed(session: Session, model: ScriptedModel) -> Invoice | None:
    stream = session.text_turn(model).tools(AppTools).answer(Invoice).stream()
    async for _ in stream:
        print(stream.partial)
    match stream.outcome:
        case Finished(result):
            assert_type(result.answer, Invoice)
            return result.answer
        case _:
            return None


def without_a_session(turn: AssistantTurn) -> Invoice | None:
    outcome = AppTools.read_turn(turn, answer=Invoice)
    match outcome:
        case NeedsTools(round):
            assert_type(round.answer, Invoice | None)
        case Finished(result):
            return result.answer
        case NoAnswer():
            return None
        case _:
            assert_never(outcome)
    return None


def as_before(turn: AssistantTurn) -> str:
    match AppTools.read_turn(turn):
        case NeedsTools():
            return ""
        case Finished(result):
            assert_type(result.text, str)
            return result.answer
