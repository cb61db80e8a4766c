"""The law of outcomes: each belongs to the run that made it, also where a store keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import AnyToolCall, Toolset, tool, tool_fn
from lutum_py.execution import Outcome, outcomes_of
from lutum_py.store import Store
from lutum_py.testing import ScriptedModel


@tool_fn
async def pay(cents: int) -> str:
    """Pay an amount."""
    if cents < 0:
        await asyncio.Event().wait()
    return "paid"


class Till(Toolset):
    pay = tool(pay)


def kept(store: Store, id: str, *calls: tuple[str, int]) -> None:
    turn = ScriptedModel.tool_calls(*((each, "pay", {"cents": cents}) for each, cents in calls))
    store.save(id, Till.read_turn(turn).round.plan(), note="")  # type: ignore[union-attr]


async def cut_off(store: Store) -> asyncio.CancelledError:
    """What a run raises of which c1 had succeeded, and the next call never ended."""
    kept(store, "before", ("c1", 5), ("c2", -1))
    paid = asyncio.Event()

    def on_event(event: Any) -> None:
        if (event.kind, event.row.id) == ("ended", "c1"):
            paid.set()

    task = asyncio.ensure_future(store.run("before", Till, on_event=on_event, grace=0))
    await paid.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert "success" in [each.status for each in outcomes_of(caught.value)]  # type: ignore[union-attr]
    return caught.value


@pytest.mark.parametrize("id", ["c1", "other"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, asyncio.CancelledError])
def test_a_run_within_an_except_records_nothing_of_an_earlier_one(
    store: Store, id: str, error: type[BaseException]
) -> None:
    """A call that never ran has no outcome of another run on record, and is not in doubt."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        raise error
        yield lambda _: None

    stop = asyncio.run(cut_off(store))
    kept(store, "now", (id, 7))
    try:
        raise stop
    except asyncio.CancelledError:
        with pytest.raises((Exception, KeyboardInterrupt)) as caught:
            asyncio.run(store.run("now", Till, around=around))
    assert [each.status for each in outcomes_of(caught.value)] == ["cancelled"]  # type: ignore[union-attr]
    plan = store.load("now", Till).plan
    assert plan is not None
    assert [call.id for call in plan.pending] == [id]
    assert plan.finished == ()
    plan.discard()


def test_a_run_within_an_except_that_is_cancelled_records_nothing_of_an_earlier_one(
    store: Store,
) -> None:
    """So it is where the second run is cut off before its tool starts."""

    async def again() -> None:
        def on_event(event: Any) -> None:
            if event.kind == "started":
                task.cancel()

        task = asyncio.ensure_future(store.run("now", Till, on_event=on_event))
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert [each.status for each in outcomes_of(caught.value)] == ["cancelled"]  # type: ignore[union-attr]

    stop = asyncio.run(cut_off(store))
    kept(store, "now", ("c1", 7))
    try:
        raise stop
    except asyncio.CancelledError:
        asyncio.run(again())
    plan = store.load("now", Till).plan
    assert plan is not None
    assert [call.id for call in plan.pending] == ["c1"]
    assert plan.finished == ()
    plan.discard()
