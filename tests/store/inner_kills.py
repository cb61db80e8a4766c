"""Workers that are killed at random while calls ask for others, up to three deep.

`python -m tests.store.inner_kills WHERE FOLDER KILLS SEED` does what `tests.store.kills` does, with
two workers and an approver. An agent asks a model for its next calls and leaves for them: payments
by a bank that knows keys or does not, and further agents. It prints what it counted, and what is
wrong, as JSON: each payment that was made twice, or by nobody's leave, each call that is lost, or
not told as it ended, and each model that was asked for a turn that was on record.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Annotated, Any, ClassVar, Final
from uuid import uuid4

from lutum_py import (
    AnyToolCall,
    Complete,
    Skip,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    Toolset,
    execution,
    tool,
    tool_fn,
)
from lutum_py.store import Store
from lutum_py.testing import ScriptedModel
from tests.store.kills import LEASE, Bank, Run, main

DEEPEST: Final = 3
MAY_PAY: Final = 500
"""What is more than this is asked about."""


class Books(Bank):
    """The same, with what models were asked for."""

    def ask_model(self, of: str, turn: int, token: int | None) -> None:
        """Put on record that a model is asked for a turn, under which claim if that is known."""
        self.enter("reviewed", of, turn, token)


@tool_fn
def pay(
    cents: int, books: Annotated[Books, Skip()], of: Annotated[str, Skip()], ctx: ToolContext
) -> str:
    """Pay by a bank that knows no keys."""
    return books.pay(None, f"{of}/{ctx.call_id}", cents)


@tool_fn(idempotent=True)
def pay_by_key(
    cents: int, books: Annotated[Books, Skip()], of: Annotated[str, Skip()], ctx: ToolContext
) -> str:
    """Pay by a bank that pays once for each key."""
    return books.pay(ctx.idempotency_key, f"{of}/{ctx.call_id}", cents)


@tool_fn(idempotent=True)
def agent(
    each: list[list[tuple[str, dict[str, Any]]]],
    books: Annotated[Books, Skip()],
    of: Annotated[str, Skip()],
    token: Annotated[Any, Skip()],
    ctx: ToolContext,
) -> list[str]:
    """Ask a model for calls, turn by turn, and tell how each of them ended."""
    rounds = () if ctx.inner is None else ctx.inner.rounds
    if len(rounds) < len(each):
        books.ask_model(f"{of}/{ctx.call_id}", len(rounds) + 1, token)
        ctx.request_calls(each[len(rounds)], state=str(len(rounds) + 1))
    results = [one for results in rounds for one in results]
    unseen = [one.id for one in results if one.name != "agent" and one.output == "paid"]
    assert not unseen, f"nobody saw the results of {unseen}"
    return [f"{one.id} {one.status}" for one in results]


class Desk(Toolset):
    pay = tool(pay)
    pay_by_key = tool(pay_by_key)
    agent = tool(agent)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
def ask(_metadata: ToolMetadata, input: Any) -> Suspend | None:
    return Suspend(SuspendTicket(message="Pay?")) if input.cents > MAY_PAY else None


@hooks.after(Desk.pay)
@hooks.after(Desk.pay_by_key)
def see(call: AnyToolCall, result: ToolResult) -> Complete[str] | None:
    return Complete("seen") if result.is_success else None


# What the processes do, again and again until they are told to stop.


def nest(random: Random, depth: int) -> tuple[str, dict[str, Any]]:
    """An agent that asks in one or two turns, so deep at most."""

    def one() -> tuple[str, dict[str, Any]]:
        if depth > 1 and random.random() < 0.4:
            return nest(random, depth - 1)
        return random.choice(("pay", "pay_by_key")), {"cents": random.randint(1, 999)}

    turns = [[one() for _ in range(random.randint(1, 3))] for _ in range(random.randint(1, 2))]
    return "agent", {"each": turns}


def produce(store: Store, random: Random) -> None:
    calls = [(f"c{at}", *nest(random, random.randint(1, DEEPEST))) for at in range(2)]
    plan = Desk.read_turn(ScriptedModel.tool_calls(*calls)).round.apply_hooks_sync(hooks)  # type: ignore[union-attr]
    store.save(uuid4().hex, plan, note="open")


def work(store: Store, books: Any, random: Random) -> bool:
    """Run a call, or all that is ready of its conversation, or end a round."""
    if threading.gettrace() is None:  # a kill may come at any line, in whichever thread
        threading.settrace(sys.gettrace())
    claim = store.claim(Desk, lease=LEASE)
    if claim is None:
        for id in store.settled():
            end(store, id)
            return True
        return False
    skipped = {"books": books, "of": claim.id, "token": claim.token}
    if claim.in_doubt and not claim.idempotent:
        doubt = claim.call.indeterminate("a worker was killed in the middle of it")
        store.finish(claim, doubt, hooks=hooks)
    elif random.random() < 0.2:
        store.release(claim)
        skipped["token"] = None
        run = store.run(claim.id, Desk, lease=LEASE, hooks=hooks, skipped=skipped)
        stored = asyncio.run(run)
        if stored.plan is not None:
            stored.plan.discard()
    else:
        outcome = execution.execute_sync(store.start(claim), skipped=skipped)
        store.finish(claim, outcome, hooks=hooks)
    return True


def end(store: Store, id: str) -> None:
    stored = store.load(id, Desk)
    if stored.plan is None:
        return
    rows = [
        [row.id, row.tool, None if row.result is None else row.result.status, row.arguments]
        for row in stored.plan.calls
    ]
    edited = {edit.call_id: edit.final["cents"] for edit in stored.plan.edits}
    results = stored.plan.resolve(stored.plan.apply_after_hooks_sync(hooks)).results
    told = {each.id: each.output for each in results}
    note = json.dumps({"rows": rows, "edited": edited, "told": told})
    store.save(id, None, note=note, version=stored.version)


def approve(store: Store, books: Bank, random: Random) -> bool:
    """Decide about one call that waits; say whether there was any."""
    waiting = store.waiting()
    if not waiting:
        return False
    one = random.choice(waiting)
    assert [each.id for each in one.ancestors] == [*_around(one.call_id)], one
    cents = one.arguments["cents"]
    decision = one.approve()
    if random.random() < 0.2:
        decision = one.cancel("no")
    elif random.random() < 0.3:
        cents += 1000
        decision = one.edit({"cents": cents})
    if decision.action == "resume":
        books.approve(f"{one.id}/{one.call_id}", cents)
    store.decide(one.id, decision, Desk, hooks=hooks)
    return True


def _around(id: str) -> Iterator[str]:
    parts = id.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


# What is to be found in the end.


def asked_for(id: str, arguments: Any) -> Iterator[tuple[str, str, int | None]]:
    """Give each call that an agent asks for, and those that they ask for: id, tool and amount."""
    number = 0
    for turn in arguments["each"]:
        for name, given in turn:
            number += 1
            yield f"{id}/{number}", name, given.get("cents")
            if name == "agent":
                yield from asked_for(f"{id}/{number}", given)


MAY_BE: Final = {
    ("pay", "success"): (1, 1),
    ("pay", "indeterminate"): (0, 1),
    ("pay", "cancelled"): (0, 0),
    ("pay_by_key", "success"): (1, 1),
    ("agent", "success"): (0, 0),
}
"""How each call may have ended, and how often it was paid then."""


class InnerRun(Run):
    """One run of this driver."""

    steps: ClassVar = {"worker": (2, work), "approver": (1, approve)}
    makes = produce
    bank = Books
    file = __file__
    lines = 6_000
    often = 0.1
    reached = (*Run.reached, "awaiting")

    def verdict(self) -> list[str]:
        """Say what is wrong."""
        return [*super().verdict(), *self.asked_again(Books(self.folder / "bank"))]

    def ids_in(self, note: Any) -> Iterable[str]:
        """Give the ids of the calls of a conversation that has ended."""
        return (row[0] for row in note["rows"])

    def faults(
        self,
        id: str,
        note: Any,
        payments: Mapping[str, list[int]],
        approved: set[tuple[Any, ...]],
    ) -> Iterator[str]:
        """Say what is wrong with a conversation that has ended."""
        found = {row[0]: tuple(row[1:3]) for row in note["rows"]}
        wanted = [
            each
            for call, _, _, arguments in note["rows"]
            if call in note["told"]
            for each in ((call, "agent", None), *asked_for(call, arguments))
        ]
        if found.keys() != {call for call, _, _ in wanted}:
            yield f"{id} has the calls {sorted(found)}"
            return
        for call, name, cents in wanted:
            self.told[" ".join(map(str, found[call]))] += 1
            self.told[f"at depth {call.count('/')}"] += 1
            final = note["edited"].get(call, cents)
            paid = payments.get(f"{id}/{call}", [])
            self.told["payments"] += len(paid)
            least, most = MAY_BE.get(found[call], (1, 0))
            if found[call][0] != name or not least <= len(paid) <= most:
                yield f"{id}/{call} is {found[call]}, and was paid {paid}"
            if set(paid) - {final}:
                yield f"{id}/{call} was to be of {final}, and was of {paid}"
            is_asked = name == "pay" and cents is not None and cents > MAY_PAY
            if paid and is_asked and (f"{id}/{call}", final) not in approved:
                yield f"{id}/{call} was paid and never approved"
        for call, told in note["told"].items():
            own = [each for each in found if each.rpartition("/")[0] == call]
            if told != [f"{each} {found[each][1]}" for each in own]:
                yield f"{id}/{call} told {told} of {own}"

    def asked_again(self, books: Books) -> list[str]:
        """Find the models that were asked again for a turn that was on record."""
        newest: Counter[str] = Counter()
        wrong: list[str] = []
        asked = sorted((row for row in books.rows("reviewed") if row[2]), key=lambda row: row[2])
        for of, turn, token in asked:
            self.told["models asked"] += 1
            if turn < newest[of]:
                wrong.append(f"{of} asked for turn {turn} under token {token}, after {newest[of]}")
            newest[of] = max(turn, newest[of])
        return wrong


if __name__ == "__main__":
    main(*sys.argv[1:], of=InnerRun)
