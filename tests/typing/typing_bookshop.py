"""A bookshop whose assistant looks for books, asks people, sells, and writes receipts.

A program as a user writes one, with everything of which a checker knows the types: it is checked by
mypy (strict), pyright, pyrefly and ty, of which none has anything to say, and it is run as a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel
from typing_extensions import assert_never

from lutum_py import (
    Answer,
    AnyToolCall,
    AssistantTurn,
    Attachment,
    Complete,
    Finished,
    HookSet,
    NeedsTools,
    NoAnswer,
    Reject,
    Reply,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRound,
    Toolset,
    execution,
    policy,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.testing import ScriptedModel


class Book(BaseModel):
    isbn: str
    title: str
    cents: int


class Receipt(BaseModel):
    """What was sold."""

    isbn: str
    cents: int


class Apology(BaseModel):
    """Why nothing was sold."""

    reason: str


SHELF = {
    "1": Book(isbn="1", title="Clay", cents=1200),
    "2": Book(isbn="2", title="More clay", cents=4800),
}


# Tools: a function, an input model, a model that is the whole input, methods, a reply.
@tool_fn
async def search(query: str, limit: int = 5) -> list[Book]:
    """Look for books by their title."""
    found = [book for book in SHELF.values() if query.lower() in book.title.lower()]
    return found[:limit]


class Sell(ToolInput[Receipt]):
    """Sell one book."""

    isbn: str


class Question(BaseModel):
    text: str
    about: str | None = None


@tool_fn(input=Question, skip=("staff",))
def ask(staff: str, question: Question, context: ToolContext) -> str:
    """Ask somebody who works here."""
    return f"{staff} on {question.text!r} ({context.call_id})"


@tool_fn
def cover(isbn: str) -> Reply[Book]:
    """Show a book."""
    picture = Attachment(media_type="image", mime_type="image/png", url=f"https://x.test/{isbn}")
    return Reply(SHELF[isbn], message="as on the picture", attachments=[picture])


@dataclass
class Stock:
    """What is there of each book."""

    copies: dict[str, int] = field(default_factory=lambda: {"1": 1, "2": 0})

    @tool_fn
    async def count(self, isbn: str) -> int:
        """Count the copies of a book."""
        return self.copies.get(isbn, 0)

    @tool_fn
    def order(self, isbn: str, copies: int = 1) -> int:
        """Order copies of a book."""
        self.copies[isbn] = self.copies.get(isbn, 0) + copies
        return self.copies[isbn]


stock = Stock()


class StockTools(Toolset):
    count = tool(stock.count)
    order = tool(stock.order)


class Shop(Toolset):
    search = tool(search)
    sell = tool(Sell)
    ask = tool(ask)
    cover = tool(cover, off=True)
    stock = toolset(StockTools, prefix="stock_")


# Who does each tool. `search`, `cover` and the stock are done by their own functions.
run = Shop.Handlers()


@run.on(Shop.sell)
def sell(input: Sell) -> Receipt:
    book = SHELF[input.isbn]
    stock.copies[book.isbn] -= 1
    return Receipt(isbn=book.isbn, cents=book.cents)


@run.on(Shop.ask)
async def ask_elsewhere(input: Question, context: ToolContext, *, staff: str = "Ada") -> str:
    return await asyncio.sleep(0, f"{staff} says: {input.text.upper()}")


@run.on(Shop.stock.order)
def order_from_abroad(isbn: str, copies: int = 1) -> int:
    return stock.order(isbn, copies + 1)


# Who decides before anything runs.
def make_hooks(patience: int) -> HookSet[Shop]:
    hooks = Shop.HookSet()

    @hooks.on_args(Shop.search)
    def clipped(query: str, limit: int = 5) -> RunNormally[object] | Reject | None:
        if not query.strip():
            return Reject("say what to look for")
        return Shop.search.with_args(query, limit=3) if limit > 3 else None

    @hooks.on_args(Shop.stock.count)
    async def known(isbn: str) -> Complete[int] | None:
        return None if isbn in SHELF else Complete(0)

    @hooks.on(Shop.sell)
    def in_stock(metadata: ToolMetadata, input: Sell) -> ToolDecision[Sell, Receipt]:
        if stock.copies.get(input.isbn, 0) < 1:
            return Reject(f"{metadata.id}: there is none left")
        return RunNormally(input)

    @hooks.gate(Shop.stock.order)
    def dear(metadata: ToolMetadata, input: object) -> Suspend | None:
        return Suspend(SuspendTicket(action="order", message="Order it?")) if patience else None

    hooks.register_hooks(Manners(["idiot"]))
    return hooks


class Manners:
    """A policy: its methods are hooks of the tools that they name."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    @policy.on(Shop.ask)
    def polite(self, metadata: ToolMetadata, input: Question) -> ToolDecision[Question, str]:
        if any(word in input.text for word in self.words):
            return Complete("Nobody answers that.")
        return RunNormally(input.model_copy(update={"about": input.about or metadata.name}))

    @policy.on(Shop.sell)
    async def not_everything(
        self, metadata: ToolMetadata, input: Sell
    ) -> Reject | RunNormally[Sell]:
        return Reject("not for sale") if input.isbn == "0" else RunNormally(input)


# The loop, with an answer of a type at its end.
async def serve(session: Session, model: ScriptedModel, hooks: HookSet[Shop]) -> Receipt | Apology:
    while True:
        outcome = await session.text_turn(model).tools(Shop).answer(Receipt | Apology).collect()
        match outcome:
            case NeedsTools(round):
                await take_round(session, round, hooks)
                if round.answer is not None:
                    return round.answer
            case Finished(result):
                return result.answer
            case NoAnswer(result, reason, text):
                if reason == "refused":
                    return Apology(reason=result.refusal or result.text)
                session.push_user(text)
            case _:
                assert_never(outcome)


async def take_round(
    session: Session, round: ToolRound[Shop, Receipt | Apology], hooks: HookSet[Shop]
) -> None:
    plan = await round.apply_hooks(hooks)
    for waiting in plan.suspended:
        plan.resume(waiting.approve())
    results = await execution.execute_all(plan.pending, handlers=run.complete(), limit=4)
    plan.commit(session, results)


# The same by hand: each call is told apart, and its types are known.
async def by_hand(call: AnyToolCall) -> ToolResult:
    async def in_german(query: str, limit: int = 5) -> list[Book]:
        return await search({"ton": "clay"}.get(query, query), limit)

    if found := Shop.search.match(call):
        books = await found.apply(in_german)
        return found.complete([book for book in books if book.cents < 2000])
    if sold := Shop.sell.match(call):
        return sold.complete(Receipt(isbn=sold.input.isbn, cents=SHELF[sold.input.isbn].cents))
    if asked := Shop.ask.match(call):
        return asked.complete(f"about {asked.input.about or 'nothing'}: no idea")
    if shown := Shop.cover.match(call):
        return shown.complete(Reply(SHELF["1"], message="sold out"))
    if counted := Shop.stock.count.match(call):
        return counted.complete(await counted.invoke() + 1)
    match call.input:
        case Sell(isbn=isbn):
            return call.fail(f"{isbn} is not sold here")
        case _:
            return await call.call()


def spoken(turn: AssistantTurn) -> Literal["yes", "no", "perhaps"]:
    verdict = Answer(Literal["yes", "no"], by="format", name="verdict")
    match Shop.read_turn(turn, answer=verdict):
        case Finished(result):
            return result.answer
        case NeedsTools(round):
            round.discard()
            return "perhaps"
        case NoAnswer():
            return "perhaps"


async def streamed(session: Session, model: ScriptedModel) -> tuple[object, Receipt | None]:
    stream = session.text_turn(model).tools(Shop).answer(Receipt).stream()
    async for _ in stream:
        pass
    match stream.outcome:
        case Finished(result):
            return stream.partial, result.answer
        case NeedsTools(round):
            round.discard()
            return stream.partial, round.answer
        case NoAnswer():
            return stream.partial, None


def plainly(session: Session, model: ScriptedModel) -> str:
    """A loop without an answer of a type, sync, over tools that are put together as it runs."""
    kiosk = Toolset.of("Kiosk", cover, stock.order, prefix="kiosk_")
    while True:
        match session.text_turn(model).tools(kiosk).collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished(result):
                return result.text
