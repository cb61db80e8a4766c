"""The law of callbacks, for what a store has on record: no result and no state is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import AfterValidator

from lutum_py import AnyToolCall, RunNormally, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import HookError, StoreError
from lutum_py.execution import Outcome, outcomes_of
from lutum_py.store import Store
from lutum_py.testing import ScriptedModel
from tests.inner_tools import Desk, asks, let_pass, opened


class Plain(BaseException):
    """None of the kinds that are known."""


class Down(Exception):
    """A common failure."""


ERRORS = [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, Plain, Down]
QUIET = (asyncio.CancelledError, Down)


class Raising:
    """What the output type of a test raises; None for nothing."""

    now: ClassVar[type[BaseException] | None] = None


def checked(text: str) -> str:
    if Raising.now is not None:
        raise Raising.now
    return text


@tool_fn
async def pay(cents: int) -> Annotated[str, AfterValidator(checked)]:
    """Pay an amount."""
    return "paid"


class Till(Toolset):
    pay = tool(pay)


def kept(store: Store) -> None:
    turn = ScriptedModel.tool_calls(("c1", "pay", {"cents": 1}), ("c2", "pay", {"cents": 2}))
    store.save("one", Till.read_turn(turn).round.plan())  # type: ignore[union-attr]


def ran(store: Store, toolset: Any = Till, **options: Any) -> tuple[Any, BaseException | None]:
    """What a run came to, by call id, and what it raised."""
    try:
        asyncio.run(store.run("one", toolset, limit=1, **options))
    except BaseException as error:  # noqa: BLE001 - of several classes
        return {_id(each): each for each in outcomes_of(error)}, error
    return {}, None


def _id(outcome: Any) -> str:
    return str(outcome.call.id if hasattr(outcome, "call") else outcome.id)


def states(store: Store, toolset: Any = Till) -> dict[str, str]:
    plan = store.load("one", toolset).plan
    assert plan is not None
    return {r.id: r.state if r.result is None else r.result.status for r in plan.calls}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("when", ["outcome", "closing"])
def test_a_context_that_raises_takes_no_result_off_the_record(
    store: Store, error: type[BaseException], when: str
) -> None:
    """A payment that was made is on record as made, and what was raised comes out."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        def ended(outcome: Outcome) -> None:
            if call.id == "c1" and when == "outcome":
                raise error

        yield ended
        if call.id == "c1" and when == "closing":
            raise error

    kept(store)
    outcomes, raised = ran(store, around=around)
    assert isinstance(raised, Exception if error in QUIET else error)
    assert outcomes["c1"].status == "success"
    rest = {"c2": "success"} if error in QUIET else {"c2": "pending"}
    assert states(store) == {"c1": "success", **rest}


@pytest.mark.parametrize("error", ERRORS)
def test_a_context_that_does_not_open_keeps_its_call_claimable(
    store: Store, error: type[BaseException]
) -> None:
    """What it raised comes out, nothing is on record as started, and the next run goes on."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        if call.id == "c1":
            raise error
        yield lambda _: None

    kept(store)
    outcomes, raised = ran(store, around=around)
    assert isinstance(raised, Exception if error in QUIET else error)
    assert {id: each.status for id, each in outcomes.items()} == {"c1": "cancelled"}
    assert "not executed" in outcomes["c1"].model_text
    assert states(store) == {"c1": "pending", "c2": "pending"}
    plan = store.load("one", Till).plan
    assert plan is not None
    assert "started" not in [step.kind for step in plan.pending[0].steps]
    plan.discard()
    asyncio.run(store.run("one", Till))
    assert states(store) == {"c1": "success", "c2": "success"}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["started", "ended"])
def test_a_listener_that_raises_takes_nothing_off_the_record(
    store: Store, error: type[BaseException], kind: str
) -> None:
    """No call is left as started: it has its result, or can be claimed as its tool was not."""

    def on_event(event: Any) -> None:
        if (event.kind, event.row.id) == (kind, "c1"):
            raise error

    kept(store)
    outcomes, raised = ran(store, on_event=on_event)
    if error in QUIET:
        assert raised is None
        assert states(store) == {"c1": "success", "c2": "success"}
        return
    assert isinstance(raised, error)
    told, state = ("success", "success") if kind == "ended" else ("cancelled", "pending")
    assert outcomes["c1"].status == told
    assert states(store) == {"c1": state, "c2": "pending"}


@pytest.mark.parametrize("kind", ["requested", "proposed", "decided"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_listener_that_raises_about_what_was_requested_loses_nothing(
    store: Store, error: type[BaseException], kind: str
) -> None:
    """The calls that a call requested are on record by then, and the next run goes on."""
    left = [error]

    def on_event(event: Any) -> None:
        if event.kind == kind and left:
            raise left.pop()

    store.save("one", opened(asks([("pay", {"cents": 5})])))
    if kind == "decided":  # in a later run than the one in which they were requested
        asyncio.run(store.run("one", Desk))
    _, raised = ran(store, Desk, hooks=let_pass, on_event=on_event)
    assert raised is None if error in QUIET else isinstance(raised, error)
    asyncio.run(store.run("one", Desk, hooks=let_pass))
    assert set(states(store, Desk).values()) == {"success"}


@pytest.mark.parametrize("error", ERRORS)
def test_an_output_type_that_raises_leaves_no_call_running(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """A failure of it is the error of the call; an interrupt leaves the call in doubt."""
    kept(store)
    monkeypatch.setattr(Raising, "now", error)
    _, raised = ran(store)
    monkeypatch.undo()
    if error in QUIET:
        assert raised is None
        assert states(store) == {"c1": "error", "c2": "error"}
    else:
        assert isinstance(raised, error)
        assert states(store) == {"c1": "indeterminate", "c2": "pending"}


@pytest.mark.parametrize("error", ERRORS)
def test_a_context_of_a_call_that_cannot_be_made_leaves_the_call_to_be_claimed(
    store: Store, error: type[BaseException]
) -> None:
    """It is not started, and nobody has to wait for a lease to end."""

    def context(call: AnyToolCall) -> ToolContext:
        raise error

    kept(store)
    _, raised = ran(store, context=context)
    assert isinstance(raised, Exception if error in QUIET else error)
    assert states(store) == {"c1": "pending", "c2": "pending"}
    for _ in range(2):
        claim = store.claim(Till)
        assert claim is not None
        store.release(claim)


@pytest.mark.parametrize("place", ["on", "after"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_hook_about_a_call_within_that_raises_loses_nothing(
    store: Store, error: type[BaseException], place: str
) -> None:
    """What was asked for, and what it came to, is on record, and the next run asks again."""
    hooks = Desk.HookSet()
    left = [error]

    @getattr(hooks, place)(Desk.pay)  # type: ignore[untyped-decorator]
    def once(*given: Any) -> Any:
        if left:
            raise left.pop()
        return None if place == "after" else RunNormally(given[1])

    store.save("one", opened(asks([("pay", {"cents": 5})])))
    _, raised = ran(store, Desk, hooks=hooks)
    assert isinstance(raised, HookError if error in QUIET else error)
    asyncio.run(store.run("one", Desk, hooks=hooks))
    assert set(states(store, Desk).values()) == {"success"}


def test_a_result_that_a_hook_raised_about_is_kept_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the answer to that is lost, it is repeated, and is not taken for one that came late."""
    hooks = Desk.HookSet()
    left, lost = [Down], list[str]()
    real = store._claims.write_alone

    @hooks.after(Desk.pay)
    def once(*given: Any) -> None:
        if left:
            raise left.pop()

    def loses(claim: Any, changes: Any, keeps: int | None = None) -> None:
        real(claim, changes, keeps)
        if keeps == 0 and not lost:
            lost.append(claim.call.id)
            raise StoreError("the answer was lost")

    monkeypatch.setattr(store._claims, "write_alone", loses)
    hooks.on(Desk.pay)(lambda _, given: RunNormally(given))
    store.save("one", opened(asks([("pay", {"cents": 5})])))
    _, raised = ran(store, Desk, hooks=hooks)
    assert isinstance(raised, HookError)
    assert lost == ["c1/1"]
    asyncio.run(store.run("one", Desk, hooks=hooks))
    plan = store.load("one", Desk).plan
    assert plan is not None
    kinds = [step.kind for row in plan.calls if row.id == "c1/1" for step in row.steps]
    assert (kinds.count("ended"), kinds.count("late")) == (1, 0)
    assert set(states(store, Desk).values()) == {"success"}
    plan.discard()


@pytest.mark.parametrize("step", ["claim", "asking_trees"])
@pytest.mark.parametrize("error", ERRORS)
def test_what_is_raised_while_calls_are_looked_for_comes_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str, error: type[BaseException]
) -> None:
    """A toolset whose types raise while a plan is loaded ends the run, and loses no outcome."""

    def fails(*_: Any) -> Any:
        raise error

    kept(store)
    monkeypatch.setattr(store._claims, step, fails)
    _, raised = ran(store, hooks=let_pass)
    assert isinstance(raised, Exception if error in QUIET else error)


@pytest.mark.parametrize("error", ERRORS)
def test_a_listener_of_a_hold_that_raises_keeps_what_was_found_out(
    store: Store, error: type[BaseException]
) -> None:
    """The outcome of a call in doubt is on record before its event."""

    def on_event(event: Any) -> None:
        raise error

    kept(store)
    claim = store.claim(Till, lease=0.001)
    assert claim is not None
    store.start(claim)

    async def main() -> None:
        async with store.hold("one", Till) as desk:
            await desk.run(
                on_event=lambda event: on_event(event) if event.row.id == claim.call.id else None,
                in_doubt=lambda call: call.complete("paid"),
            )

    expected: Any = nullcontext() if error in QUIET else pytest.raises(error)
    with expected:
        asyncio.run(main())
    assert states(store)[claim.call.id] == "success"


def test_a_run_that_is_thrown_away_is_closed(store: Store) -> None:
    """A loop that is gone without an end closes what ran; nothing is reported to anybody then."""
    waiting = asyncio.Event()

    @tool_fn(name="pay")
    async def hang(cents: int) -> str:
        waiting.set()
        await asyncio.Event().wait()
        return "never"

    class Hanging(Toolset):
        pay = tool(hang)

    kept(store)
    loop = asyncio.new_event_loop()
    running = loop.create_task(store.run("one", Hanging, limit=1))
    loop.run_until_complete(waiting.wait())
    tasks = [each for each in asyncio.all_tasks(loop) if "_guarded" in repr(each.get_coro())]
    for task in tasks:
        running_coroutine: Any = task.get_coro()
        running_coroutine.close()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.wait([running]))
    loop.close()
    assert len(tasks) == 1
