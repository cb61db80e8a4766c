"""The laws of other tries: what `retry()` ran is told where its result is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import Session, SuspendTicket
from lutum_py.errors import (
    CommitError,
    HookError,
    MisuseError,
    PlanError,
)
from tests.cases import over
from tests.round.one_story import (
    FILL,
    Clock,
    Desk,
    clock,
    desk,
    fill,
    history,
    hooks,
    one,
    rewritten,
)
from tests.round_tools import close

__all__ = ["clock"]


def with_another_input(call: Any) -> Any:
    """Make a try that is run with another input."""
    tried = call.retry()
    tried.input = fill.Input(items=["x", "y"])
    return tried


TRIES: dict[str, Callable[[Any], Any]] = {
    "retried": lambda call: call.retry(),
    "again of again": lambda call: call.retry().retry(),
    "another input": with_another_input,
}


def test_a_line_tells_of_another_try_as_it_was_run(clock: Clock) -> None:
    """A result that is recorded brings the steps of its try, and the duration is that of it."""
    plan = desk().plan()
    call = one(plan)
    call.start()
    clock.now += 7
    again = call.retry()
    again.start()
    clock.now += 2
    result = again.complete(1)
    assert history(plan.steps) == ["proposed", "started"]
    plan.record(result)
    (row,) = plan.calls
    done = ["started", "ended //success", "recorded //success"]
    assert history(row.steps) == ["proposed", "started", "retried", *done]
    assert row.duration == 2
    close(plan)


def run_by_a_hook(plan: Any, *, started: bool = False) -> Any:
    """Let a hook run a call with another input, and raise: what it decided does not count."""
    results: list[Any] = []

    def run(call: Any) -> Any:
        call.input = fill.Input(items=["x", "y"])
        if started:
            one(plan).start()
        results.append(call.call_sync())
        raise ValueError("down")

    with pytest.raises(HookError):
        plan.apply_hooks_sync(run)
    return results[0]


def test_a_run_with_another_input_is_told_with_it() -> None:
    """Row and transcript say what was run, and not what the model had asked for."""
    plan = desk().plan()
    plan.record(run_by_a_hook(plan))
    (row,) = plan.calls
    assert history(row.steps)[1:3] == ["changed", "started"]
    assert row.arguments == {"items": ["x", "y"]}
    (told,) = plan.resolve().results
    assert told.ran_with == {"items": ["x", "y"]}


def changed_by_the_program(plan: Any) -> Any:
    one(plan).input = fill.Input(items=["p"])
    return plan


CHANGES: dict[str, Callable[[Any], Any]] = {
    "the program": changed_by_the_program,
    "a hook": lambda plan: plan.apply_hooks_sync(rewritten("h")),
}


@over("name", CHANGES)
def test_what_a_try_was_run_with_is_told_whatever_the_call_has_by_now(name: str) -> None:
    """The try was made before the call got another input, so its history goes back to the first."""
    plan = desk().plan()
    again = one(plan).retry()
    newer = CHANGES[name](plan)
    newer.record(again.call_sync())
    (row,) = newer.calls
    told = [step.arguments["items"] for step in row.steps if step.kind in ("proposed", "changed")]
    assert (row.arguments, told) == ({"items": ["a"]}, [["a"], [name.split()[1][0]], ["a"]])
    loaded = Desk.load_plan(newer.dump_json())
    assert loaded.calls[0].steps == row.steps
    close(loaded)


def test_a_try_of_a_newer_plan_is_told_with_its_input_in_an_older_one() -> None:
    """What a hook changed in the newer plan is what was run."""
    plan = desk().plan()
    result = one(plan.apply_hooks_sync(rewritten("h"))).retry().call_sync()
    plan.record(result)
    (row,) = plan.calls
    told = [step.arguments["items"] for step in row.steps if step.kind in ("proposed", "changed")]
    assert (row.arguments, told) == ({"items": ["h"]}, [["a"], ["h"]])
    close(plan)


def test_a_run_with_another_input_is_told_where_its_result_is_committed() -> None:
    """The transcript says what was run with, also where the plan was not told before."""
    plan = desk().plan()
    result = TRIES["another input"](one(plan)).call_sync()
    (told,) = plan.resolve([result]).results
    assert told.ran_with == {"items": ["x", "y"]}


def test_after_hooks_are_owed_another_try_of_the_same_status() -> None:
    """Each try has a result of its own, so what was seen of the first is no look at the second."""
    seen: list[str] = []
    made = hooks(after=lambda call, result: seen.append(result.model_text))
    plan = desk().apply_hooks_sync(made)
    call = one(plan)
    plan.apply_after_hooks_sync(made, [call.fail("first")])
    result = call.retry().fail("second")
    with pytest.raises(MisuseError, match="has not seen the result"):
        plan.resolve([result])
    plan.record(result)
    with pytest.raises(MisuseError, match="has not seen the result"):
        plan.resolve()
    plan.apply_after_hooks_sync(made)
    plan.resolve()
    assert seen == ["first", "second"]


@over("name", TRIES)
def test_what_another_try_began_is_not_said_to_be_not_executed(name: str) -> None:
    """A round that is given up says of such a call that nobody knows what it did."""
    plan = desk().plan()
    TRIES[name](one(plan)).start()
    (result,) = plan.abort(Session(), "stop").results
    assert result.status == "indeterminate"


@over("name", TRIES)
def test_a_try_that_was_not_begun_leaves_no_trace(name: str) -> None:
    """To make another try is to do nothing yet."""
    plan = desk().plan()
    TRIES[name](one(plan))
    (result,) = plan.abort(Session(), "stop").results
    assert result.status == "cancelled"


def test_a_try_that_was_not_begun_does_not_end_a_doubt() -> None:
    """Also where the tool had been started before, and had asked a question: that is no try."""
    plan = desk().plan()
    one(plan).start()
    plan.record(one(plan).suspend(SuspendTicket()))
    plan.resume(plan.suspended[0].approve())
    one(plan).start()
    plan = Desk.load_plan(plan.dump_json())
    one(plan).retry()
    loaded = Desk.load_plan(plan.dump_json())
    assert [row.state for row in loaded.calls] == ["in_doubt"]
    close(loaded)


def test_another_try_that_runs_is_in_doubt_in_a_saved_plan() -> None:
    """What runs on unseen by the text is not started a second time from it."""
    plan = desk().plan()
    one(plan).retry().start()
    loaded = Desk.load_plan(plan.dump_json())
    (row,) = loaded.calls
    assert (row.state, history(row.steps)) == (
        "in_doubt",
        ["proposed", "retried", "started", "abandoned"],
    )
    close(loaded)


def test_another_try_that_ended_is_recorded_before_the_plan_is_saved() -> None:
    """A result that the text would not know of is not lost in silence."""
    plan = desk().plan()
    result = one(plan).retry().call_sync()
    with pytest.raises(PlanError, match=r"`plan\.record\(outcome\)`"):
        plan.dump_json()
    plan.record(result)
    close(Desk.load_plan(plan.dump_json()))


def test_a_dry_run_that_nobody_tells_of_does_not_count() -> None:
    """What ran with another input, and was dropped, leaves the call to be run."""
    plan = desk().plan()
    run_by_a_hook(plan)
    loaded = Desk.load_plan(plan.dump_json())
    (row,) = loaded.calls
    assert (row.state, history(row.steps)) == ("pending", ["proposed"])
    close(loaded)


def test_a_try_tells_nothing_of_a_call_that_went_on_itself() -> None:
    """A call that waits, or has its result, is not changed by what one of its tries does."""
    plan = desk().plan()
    call = one(plan)
    tries = [make(call) for make in TRIES.values()]
    plan.record(call.suspend(SuspendTicket()))
    for each in tries:
        each.start()
    before = history(plan.steps)
    loaded = Desk.load_plan(plan.dump_json())
    assert history(loaded.steps) == before
    close(loaded)


def test_a_call_of_no_round_keeps_no_tries() -> None:
    """A call of no round may be tried again as often as one likes: nobody keeps these."""
    plan = desk().plan()
    call = Desk.parse_tool_call(one(plan).metadata)
    call.retry().call_sync()
    assert not call._round.tries
    close(plan)


@over("tells", ["record", "resolve"])
@over("puts", [False, True])
def test_after_hooks_see_another_try_once(tells: str, puts: bool) -> None:
    """What they saw of a retry, and perhaps replaced, is committed without asking them again."""
    seen: list[str] = []

    def look(call: Any, result: Any) -> Any:
        seen.append(result.model_text)
        return call.retry().complete(99) if puts else None

    made = hooks(after=look)
    plan = desk().apply_hooks_sync(made)
    call = one(plan)
    call.start()
    results = plan.apply_after_hooks_sync(made, [call.retry().complete(7)])
    if tells == "record":
        plan.record(results[0])
        results = []
    (result,) = plan.resolve(results).results
    assert (seen, result.output) == (["7"], 99 if puts else 7)
    tries = [step.kind for step in plan.steps].count("retried")
    assert tries == 1


def test_a_line_tells_of_a_try_that_gave_what_a_hook_had_put_for_another() -> None:
    """A result that equals the one of a hook is still that of another run."""
    made = hooks(after=lambda call, result: call.retry().complete(0) if result.is_error else None)
    plan = desk().apply_hooks_sync(made)
    call = one(plan)
    plan.apply_after_hooks_sync(made, [call.fail("first")])
    result = call.retry().complete(0)
    with pytest.raises(MisuseError, match="has not seen the result"):
        plan.resolve([result])
    assert "retried" not in history(plan.steps)
    plan.resolve(plan.apply_after_hooks_sync(made, [result]))
    assert "retried" in history(plan.steps)


def _raises(call: Any, result: Any) -> Any:
    raise ValueError("down")


REFUSED: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "after-hooks raise": (
        HookError,
        lambda plan, result: plan.apply_after_hooks_sync(hooks(after=_raises), [result]),
    ),
    "not shown": (MisuseError, lambda plan, result: plan.resolve([result])),
    "no result": (
        MisuseError,
        lambda plan, result: plan.abort(Session(), "stop", [object()]),
    ),
    "another result as well": (CommitError, lambda plan, result: plan.resolve([result, result])),
}


@over("how", REFUSED)
@over("name", TRIES)
def test_what_is_refused_leaves_the_call_as_it_was(how: str, name: str) -> None:
    """A try counts once its result was taken, and not before."""
    error, refused = REFUSED[how]
    plan = desk().apply_hooks_sync(hooks(after=lambda call, result: None))
    result = TRIES[name](one(plan)).call_sync()
    before = history(plan.steps)
    with pytest.raises(error):
        refused(plan, result)
    assert history(plan.steps) == before
    plan.discard()


def test_a_try_that_suspends_itself_waits_with_what_it_was_run_with() -> None:
    """A person sees the arguments of the run, and the decision about them counts."""
    plan = desk().plan()
    tried = TRIES["another input"](one(plan))
    tried.start()
    waits = tried.suspend(SuspendTicket())
    plan.record(waits)
    (shown,) = plan.suspended
    assert shown.arguments == waits.arguments == {"items": ["x", "y"]}
    plan.resume(waits.approve(by="ann"))
    plan.record(one(plan).call_sync())
    close(plan)


def test_a_run_with_another_input_is_another_try_of_a_call_that_was_begun() -> None:
    """The result is of what was run last, and so are the arguments that are told."""
    plan = desk().plan()
    call = one(plan)
    tried = TRIES["another input"](call)
    call.start()
    plan.record(tried.call_sync())
    (row,) = plan.calls
    done = ["changed", "started", "ended //success", "recorded //success"]
    assert history(row.steps) == ["proposed", "started", "retried", *done]
    assert row.arguments == {"items": ["x", "y"]}
    close(Desk.load_plan(plan.dump_json()))


def test_what_a_hook_ran_is_another_try_of_a_call_that_was_begun() -> None:
    """Somebody may start the call while hooks review it; both runs are told."""
    plan = desk().plan()
    plan.record(run_by_a_hook(plan, started=True))
    (row,) = plan.calls
    done = ["changed", "started", "ended //success", "recorded //success"]
    assert history(row.steps) == ["proposed", "started", "retried", *done]
    assert row.arguments == {"items": ["x", "y"]}
    close(plan)


@over("own", (False, True))
def test_a_try_that_failed_before_another_one_waits_is_over(own: bool) -> None:
    """A loop that tries again has dropped the first result, so nothing of it is to be recorded."""
    plan = desk().plan()
    call = one(plan)
    first = call.retry()
    first.start()
    first.fail("at first")
    second = call if own else call.retry()
    second.start()
    plan.record(second.suspend(SuspendTicket()))
    plan.resume(plan.suspended[0].approve())
    loaded = Desk.load_plan(plan.dump_json())
    assert (loaded.calls[0].state, one(loaded).status) == ("pending", "resuming")
    close(loaded)


def test_a_plan_that_is_not_saved_changes_nothing() -> None:
    """A call whose other try runs is in doubt before a refusal, and after it."""
    plan = desk(FILL, ("c2", "fill", {"items": ["b"]})).plan()
    plan.pending[0].start()
    plan = Desk.load_plan(plan.dump_json())
    plan.pending[0].call_sync()
    plan.in_doubt[0].retry().start()
    before = [(row, row.steps) for row in plan.calls]
    with pytest.raises(PlanError, match="the plan was not told"):
        plan.dump_json()
    assert [(row, row.steps) for row in plan.calls] == before
    close(plan)
