"""The law of callbacks: none of them, whatever it raises, loses a result or a state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from lutum_py import AnyToolCall, ToolContext, ToolResult, Toolset, tool, tool_fn
from lutum_py.errors import HookError, MisuseError
from lutum_py.execution import (
    ExecutionErrors,
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
    run,
    run_sync,
)
from lutum_py.store import open_store
from tests.cases import over
from tests.inner_tools import Desk as Asking
from tests.inner_tools import asks, let_pass
from tests.inner_tools import opened as asking
from tests.round_tools import close, opened

RAISES: list[type[BaseException]] = [
    asyncio.CancelledError,
    KeyboardInterrupt,
    SystemExit,
    OSError,
    GeneratorExit,
]
sent: list[str] = []
raised: list[type[BaseException]] = [OSError]


def refuse(text: str) -> str:
    """What an output type may do to its value."""
    if text == "refuse":
        raise raised[0]
    return text


@tool_fn
def send(text: str) -> Annotated[str, AfterValidator(refuse)]:
    """Send a text."""
    sent.append(text)
    return text


@tool_fn
async def post(text: str) -> str:
    """Send a text, from async code."""
    sent.append(text)
    return text


@tool_fn
def fail() -> None:
    """Fail."""
    sent.append("")
    raise ValueError("no")


class Post(Toolset):
    send = tool(send)
    post = tool(post)
    fail = tool(fail)


Ways = dict[str, Callable[..., Any]]
WAYS: Ways = {
    "execute": lambda plan, **how: asyncio.run(execute(plan.pending[0], **how)),
    "execute_all": lambda plan, **how: asyncio.run(execute_all(plan.pending, **how)),
    "run": lambda plan, **how: asyncio.run(run(plan, **how)),
    "execute_sync": lambda plan, **how: execute_sync(plan.pending[0], **how),
    "execute_all_sync": lambda plan, **how: execute_all_sync(plan.pending, **how),
    "run_sync": run_sync,
}
RUNS = ["run", "run_sync"]


def at(place: str, error: type[BaseException]) -> Any:
    """An `around` that raises at a place."""

    @contextmanager
    def around(_: AnyToolCall) -> Any:
        if place == "entry":
            raise error("mine")

        def ended(_: Any) -> None:
            if place == "outcome":
                raise error("mine")

        yield ended
        if place == "exit":
            raise error("mine")

    return around


def of(name: str, **arguments: Any) -> Any:
    sent.clear()
    return opened(("c1", name, arguments), toolset=Post).plan()


@over(
    "way, place, error",
    [(way, place, e) for way in WAYS for place in ("outcome", "exit") for e in RAISES],
)
def test_a_context_that_raises_at_its_end_loses_no_result(
    way: str, place: str, error: type[BaseException]
) -> None:
    """The error comes out, with the result of the tool that succeeded, which a plan has, too."""
    plan = of("send", text="a")
    with pytest.raises((error, ExecutionErrors)) as caught:
        WAYS[way](plan, around=at(place, error))
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert (outcome.output, sent) == ("a", ["a"])
    if way in RUNS:
        assert [each.output for each in plan.finished] == ["a"]
    close(plan)


@over("way, error", [(way, error) for way in WAYS for error in RAISES])
def test_a_context_that_does_not_open_is_no_success(way: str, error: type[BaseException]) -> None:
    """The error comes out, nothing is run, and the call of a plan stays pending."""
    plan = of("send", text="a")
    with pytest.raises((error, ExecutionErrors, MisuseError)):
        WAYS[way](plan, around=at("entry", error))
    assert sent == []
    if way in RUNS:
        assert [each.id for each in plan.pending] == ["c1"]
        assert plan.pending[0].status == "new"
    close(plan)


def listener(kind: str, error: type[BaseException]) -> Any:
    def told(event: Any) -> None:
        if event.kind == kind:
            raise error

    return told


@over(
    "way, kind, error, name",
    [
        (way, kind, error, name)
        for way in RUNS
        for kind in ("started", "ended")
        for error in RAISES
        for name in ("send", "post")
        if (way, name) != ("run_sync", "post")
    ],
)
def test_a_listener_that_raises_loses_no_state(
    way: str, kind: str, error: type[BaseException], name: str
) -> None:
    """A failure of it is logged; what ends the program comes out, and no call stays running."""
    plan = of(name, text="a")
    if error in (OSError, asyncio.CancelledError):
        WAYS[way](plan, on_event=listener(kind, error))
        expected = "success"
    else:
        with pytest.raises(error) as caught:
            WAYS[way](plan, on_event=listener(kind, error))
        expected = "indeterminate" if kind == "started" else "success"
        assert [each.status for each in outcomes_of(caught.value)] == [expected]  # type: ignore[union-attr]
    assert [each.status for each in plan.finished] == [expected]
    assert plan.pending == ()
    close(plan)


@over("way, error", [(way, error) for way in WAYS for error in RAISES])
def test_a_sink_that_raises_loses_no_result(way: str, error: type[BaseException]) -> None:
    """It is told of a call that failed when the outcome is known."""
    plan = of("fail")

    def sink(_: Any) -> None:
        raise error

    how: dict[str, Any] = {"context": lambda call: ToolContext.for_call(call, sink=sink)}
    if way.startswith("execute") and "all" not in way:
        how = {"context": ToolContext.for_call(plan.pending[0], sink=sink)}
    try:
        WAYS[way](plan, **how)
    except (KeyboardInterrupt, SystemExit, GeneratorExit) as out:
        ended: BaseException | None = out
    else:
        ended = None
    if error in (OSError, asyncio.CancelledError):  # it is logged
        assert ended is None
    else:
        assert type(ended) is error
        assert [each.status for each in outcomes_of(ended)] == ["error"]  # type: ignore[union-attr]
    if way in RUNS:
        assert [each.status for each in plan.finished] == ["error"]
    close(plan)


@over("way, error", [(way, error) for way in WAYS for error in RAISES[:3]])
def test_an_output_type_that_raises_leaves_no_call_running(
    way: str, error: type[BaseException]
) -> None:
    """What its validator raises comes out, and the call is in doubt: the tool has run."""
    plan = of("send", text="refuse")
    raised[0] = error
    with pytest.raises(error) as caught:
        WAYS[way](plan)
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert (outcome.status, sent) == ("indeterminate", ["refuse"])
    if way in RUNS:
        assert [each.status for each in plan.finished] == ["indeterminate"]
    close(plan)


def test_a_task_that_is_cancelled_stays_so_whatever_its_context_raises() -> None:
    """A cancellation goes on with the outcome when it is recorded."""

    async def main() -> None:
        plan = opened(("c1", "post", {"text": "a"}), toolset=Post).plan()

        @contextmanager
        def late(_: AnyToolCall) -> Any:
            try:
                yield print
            finally:
                raise OSError("closed")

        handlers = Post.Handlers()

        @handlers.on(Post.post)
        async def wait(text: str) -> str:
            await asyncio.Event().wait()
            return text

        task = asyncio.create_task(execute(plan.pending[0], around=late, handlers=handlers))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert [each.status for each in outcomes_of(caught.value)] == ["indeterminate"]  # type: ignore[union-attr]
        close(plan)

    asyncio.run(main())


@over("error", RAISES)
def test_an_after_hook_that_raises_about_a_call_within_loses_no_result(
    error: type[BaseException],
) -> None:
    """The error comes out, and the next run shows the result to the hooks: nothing runs twice."""
    plan = asking(asks([("pay", {"cents": 5})]))
    hooks = Asking.HookSet()
    seen: list[str] = []

    @hooks.after()
    async def shown(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(call.id)
        if len(seen) == 1:
            raise error("mine")

    with pytest.raises((error, HookError)):
        asyncio.run(run(plan, hooks=hooks))
    asyncio.run(run(plan, hooks=hooks))
    assert seen[:2] == ["c1/1", "c1/1"]
    assert [each.status for each in plan.finished] == ["success", "success"]
    close(plan)


CASES = [
    *((f"around_{place}", error) for place in ("entry", "outcome", "exit") for error in RAISES[:4]),
    *((f"on_{kind}", error) for kind in ("started", "ended", "proposed") for error in RAISES[:4]),
    *(("context", error) for error in RAISES[:4]),
    *(("output", error) for error in RAISES[:4][:3]),
]


@over("where, error", CASES)
def test_no_callback_leaves_a_call_of_a_store_running(
    where: str, error: type[BaseException]
) -> None:
    """Each call has its result on record, or can be claimed at once; the error comes out."""
    kind, _, place = where.partition("_")
    store = open_store(":memory:")
    within = where == "on_proposed"
    plan = asking(asks([("pay", {"cents": 5})])) if within else of("send", text="a")
    if where == "output":
        plan.discard()
        raised[0] = error
        plan = of("send", text="refuse")
    toolset = plan.toolset
    store.save("one", plan)

    def context(_: AnyToolCall) -> ToolContext:
        raise error

    options: dict[str, Any] = {
        "around": {"around": at(place, error)},
        "on": {"on_event": listener(place, error)},
        "context": {"context": context},
        "output": {},
    }[kind]
    is_logged = kind == "on" and error in (OSError, asyncio.CancelledError)
    try:
        asyncio.run(store.run("one", toolset, hooks=let_pass, **options))
    except BaseException as error_out:  # noqa: BLE001 - it is looked at below
        came_out: BaseException | None = error_out
    else:
        came_out = None
    assert is_logged or isinstance(came_out, error | ExecutionErrors)
    assert not is_logged or came_out is None
    loaded = store.load("one", toolset).plan
    assert loaded is not None
    assert loaded.in_doubt == ()
    assert all(each.status != "running" for each in loaded.pending)
    if place in ("outcome", "exit", "ended"):
        assert [each.status for each in loaded.finished] == ["success"]
    if where == "context":
        assert store.claim(toolset) is not None
    close(loaded)
    store.close()


@over("error", RAISES[1:3])
def test_a_listener_of_a_store_that_ends_the_program_comes_out(error: type[BaseException]) -> None:
    """What hooks decided about calls that were asked for earlier is on record all the same."""
    store = open_store(":memory:")
    store.save("one", asking(asks([("pay", {"cents": 5})])))
    asyncio.run(store.run("one", Asking))
    with pytest.raises(error):
        asyncio.run(store.run("one", Asking, hooks=let_pass, on_event=listener("decided", error)))
    loaded = store.load("one", Asking).plan
    assert loaded is not None
    assert [each.id for each in loaded.pending] == ["c1/1"]
    close(loaded)
    store.close()
