"""Mistakes in running calls and in committing rounds, and what the model itself gets wrong."""

from __future__ import annotations

import contextlib
import gc
import warnings

from lutum_py import (
    Decision,
    Session,
    Suspend,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import MisuseError
from lutum_py.execution import execute_all_sync
from lutum_py.testing import ScriptedModel
from tests.likely_mistakes.desk import (
    KEY,
    OSLO,
    PAGE,
    ROME,
    Desk,
    Person,
    comes_to,
    round_of,
    suspended,
    toolset_of,
)

# Running.


@comes_to(
    """MisuseError: Tool `fetch` (call 'c3') is async: use `await call.call()` instead of
    `call.call_sync()`, or `asyncio.run(call.call())` outside of a loop."""
)
def an_async_tool_in_sync_code() -> object:
    return round_of(PAGE).expect_one().call_sync()


@comes_to(
    """MisuseError: Tool `look_up` (call 'c4') needs `db`, which the model does not see. Pass it
    where you run the call: `call.call_sync(db=...)`."""
)
def a_hidden_parameter_left_out() -> object:
    return round_of(KEY).expect_one().call_sync()


@comes_to(
    """ToolOutputError: The output of tool `look_up` has no JSON form: Unable to serialize unknown
    type: <class 'tests.likely_mistakes.desk.Person'>. Return texts, numbers, lists, dicts,
    dataclasses or pydantic models."""
)
def an_output_without_json() -> object:
    return round_of(KEY).expect_one().call_sync(db={"k": Person()})


@comes_to(
    """ToolOutputError: The output of tool `forecast` does not fit its output type `str`: Input
    should be a valid string (got {'sky': 'blue'}). Return what the tool declares, or correct the
    declared type."""
)
def an_output_of_another_type() -> object:
    return round_of(OSLO).expect_one().complete({"sky": "blue"})


@comes_to(
    """LifecycleError: Call 'c1' of tool 'forecast' is succeeded and cannot become running. That
    status is final: nothing is reachable from it. `call.retry()` lets it be tried again."""
)
def a_call_run_twice() -> object:
    call = round_of(OSLO).expect_one()
    return call.call_sync(), call.call_sync()


# Committing.


@comes_to(
    """CommitError: Cannot commit: call 'c2' of tool 'forecast' has no result. Run it or pass
    its result, or close the round with `plan.abort(session, reason)`."""
)
def a_missing_result() -> object:
    one = round_of(OSLO, ROME)
    return one.commit(Transcript(), [one.tool_calls[0].call_sync()])


@comes_to(
    """CommitError: Cannot commit: call 'c4' of tool 'look_up' was started, and has no result: its
    tool raised, was cut off, or still runs. Pass `call.fail(message)`, or
    `call.indeterminate(reason)` if nobody knows what it did, or close the round with
    `plan.abort(session, reason)`."""
)
def a_commit_after_a_tool_raised() -> object:
    one = round_of(KEY)
    with contextlib.suppress(KeyError):
        one.expect_one().call_sync(db={})
    return one.commit(Transcript())


@comes_to(
    """CommitError: Cannot commit: result 'c2' of tool 'forecast' answers no call in this round
    (open calls: ['c1']). Commit it to the round that made the call."""
)
def a_result_of_another_round() -> object:
    mine, others = round_of(OSLO), round_of(ROME)
    results = [each.expect_one().call_sync() for each in (mine, others)]
    return mine.commit(Transcript(), results)


@comes_to(
    """RoundClosedError: This round was already committed. A round ends once: use the round of a new
    turn."""
)
def a_second_commit() -> object:
    one = round_of(OSLO)
    results = [one.expect_one().call_sync()]
    return one.commit(Transcript(), results), one.commit(Transcript(), results)


@comes_to(
    """CommitError: Cannot commit: call 'c1' of tool 'forecast' is suspended. Decide about it with
    `plan.resume(decision)`, in a store with `store.decide`, or close the round with
    `plan.abort(session, reason)`."""
)
def a_commit_of_a_suspended_call() -> object:
    return suspended().commit(Transcript())


@comes_to(
    """ResourceWarning: A round with calls 'c1' was dropped while it was open. Commit it, close it
    with `plan.abort(session, reason)`, or say `round.discard()`."""
)
def a_round_left_open() -> object:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Desk.read_turn(ScriptedModel.tool_calls(OSLO))
        gc.collect()
    return f"{caught[0].category.__name__}: {caught[0].message}"


@comes_to(
    """MisuseError: A round is committed to a Session or a Transcript, not to None. Without either,
    use `plan.resolve(results)`."""
)
def no_session() -> object:
    one = round_of(OSLO)
    return one.commit(None, [one.expect_one().call_sync()])


@comes_to(
    """MisuseError: 'sunny' is no result. Make one from the call: `call.complete(output)`,
    `call.fail(message)`, or `await call.call()`."""
)
def an_output_for_a_result() -> object:
    return round_of(OSLO).commit(Transcript(), ["sunny"])


@comes_to(
    """MisuseError: Suspend takes a SuspendTicket, not 'Really?'. Write
    `Suspend(SuspendTicket(message=...))`."""
)
def a_text_for_a_ticket() -> object:
    return Suspend("Really?")  # type: ignore[arg-type]


@comes_to(
    """MisuseError: A model is an object with `respond` or `respond_sync`, not 'gpt-5'. Wrap the
    client of a provider, as in `lutum_py.models.OpenAIChat(client, 'gpt-5')`."""
)
def a_name_for_a_model() -> object:
    return Session().text_turn("gpt-5").collect_sync()  # type: ignore[arg-type]


@comes_to("MisuseError: Calls are run from a list, not from <plan of Desk>. Pass `plan.pending`.")
def a_plan_for_its_calls() -> object:
    plan = round_of(OSLO).plan()
    try:
        return execute_all_sync(plan)
    except MisuseError as error:
        raise MisuseError(str(error).replace(repr(plan), "<plan of Desk>")) from None


@comes_to(
    """MisuseError: A coroutine is no result: it has not been run. Await it first, as in `await
    call.call()` or `await asyncio.gather(...)`."""
)
def a_coroutine_for_a_result() -> object:
    one = round_of(PAGE)
    return one.commit(Transcript(), [one.expect_one().call()])


# Resuming.


@comes_to(
    """ResumeError: Decision 'd1' is for call 'c9', which is not suspended in this plan. Suspended:
    ['c1']. Pass a decision for one of these."""
)
def a_decision_for_another_call() -> object:
    return suspended().resume(Decision(call_id="c9", action="resume", decision_id="d1"))


@comes_to(
    """PlanError: The schema of tool `forecast` has changed since call 'c1' was saved: it was
    'sha256:…', it is 'sha256:…'. What was approved is not what would run; let the model call the
    tool again."""
)
def a_schema_that_changed() -> object:
    saved = round_of(OSLO).plan().dump_json()

    def of_today(city: str, days: int = 1, metric: bool = True) -> str:
        """Tell what the weather will be."""
        return f"{city} {days} {metric}"

    return toolset_of("Desk", forecast=tool(tool_fn(name="forecast")(of_today))).load_plan(saved)


# What the model is told, as it is no exception.


@comes_to(
    """There is no tool `forcast`, so nothing was run. Did you mean `forecast`? Tools on offer:
    `forecast`, `fetch`, `look_up`."""
)
def a_tool_that_the_model_made_up() -> object:
    return round_of(("c1", "forcast", {})).recoverable_tool_call_issues[0].text


@comes_to(
    """The arguments of tool `forecast` are invalid, so it was not run: - `city`: this field is
    required - `town`: there is no such field; the fields are `city`, `days` (got 'Oslo') Call it
    again with corrected arguments."""
)
def arguments_that_the_model_made_up() -> object:
    return round_of(("c1", "forecast", {"town": "Oslo"})).recoverable_tool_call_issues[0].text
