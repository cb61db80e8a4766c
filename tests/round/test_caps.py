"""The laws of caps where a plan ends: after hooks, once, for results of every status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import (
    Complete,
    Reject,
    Session,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import CommitError
from lutum_py.tools import MemoryResults, ResultCap
from tests.round_tools import Call, check_transcript, opened

LONG = "é" * 5_000
CAP = ResultCap(1_000)


@tool_fn
def log(lines: int = 0) -> str:
    """Give a log."""
    return LONG


@tool_fn
def note(text: str) -> str:
    """Write a note."""
    return text


class Capped(Toolset, result_cap=CAP):
    log = tool(log)
    note = tool(note, result_cap=None)


def is_capped(result: ToolResult) -> bool:
    return "left out" in result.model_text and len(result.model_text.encode()) <= 1_000


def calls_of(*names: str) -> list[Call]:
    return [(f"c{at}", name, "{}") for at, name in enumerate(names)]


async def test_results_are_capped_where_the_plan_is_committed() -> None:
    """The transcript has what the model reads, capped, and the whole output of the program."""
    session = Session()
    session.push_user("Read the log.")
    plan = opened(*calls_of("log"), toolset=Capped).plan()
    result = await plan.pending[0].call()
    assert result.model_text == LONG
    committed = plan.commit(session, [result])
    assert is_capped(committed.results[0])
    assert committed.results[0].output == LONG
    assert session.transcript[-1] is committed.results[0]
    assert Transcript.load_json(session.transcript.dump_json()) == session.transcript
    check_transcript(session.transcript)


def test_resolving_and_aborting_cap_as_well() -> None:
    """Every way to end a plan that gives results gives capped ones."""
    plan = opened(*calls_of("log"), toolset=Capped).plan()
    assert is_capped(plan.resolve([plan.pending[0].complete(LONG)]).results[0])
    plan = opened(*calls_of("log", "log"), toolset=Capped).plan()
    first = plan.pending[0].complete(LONG)
    committed = plan.abort(Transcript(), LONG, [first])
    assert list(map(is_capped, committed.results)) == [True, True]
    assert [each.status for each in committed.results] == ["success", "cancelled"]


def test_results_of_every_status_are_capped() -> None:
    """A handled, a rejected, a failed call and one that cannot be used read capped too."""
    hooks = Capped.HookSet()

    @hooks.on(Capped.log)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        return Complete(LONG) if metadata.id == "c0" else Reject(LONG)

    calls = [*calls_of("log", "log", "note"), ("c3", "log", json.dumps({"lines": LONG}))]
    plan = opened(*calls, toolset=Capped).plan().apply_hooks_sync(hooks)
    issue = plan.recoverable_tool_call_issues[1].result
    too_long = ToolResult(
        id="c3", name="log", arguments=issue.arguments, result="null", message=LONG, status="error"
    )
    note_issue = plan.recoverable_tool_call_issues[0]
    assert note_issue.metadata.id == "c2"
    committed = plan.commit(Transcript(), [too_long])
    assert [is_capped(each) for each in committed.results] == [True, True, False, True]
    assert committed.results[1].rejection_reason == LONG


def test_after_hooks_see_the_whole_and_what_they_put_in_is_capped() -> None:
    """A cap comes after the hooks."""
    hooks = Capped.HookSet()
    seen: list[str] = []

    @hooks.after(Capped.log)
    def after(call: Any, result: ToolResult) -> Complete[str]:
        seen.append(result.model_text)
        return Complete(LONG * 2)

    plan = opened(*calls_of("log"), toolset=Capped).plan().apply_hooks_sync(hooks)
    results = plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(LONG)])
    assert seen == [LONG]
    assert is_capped(plan.commit(Transcript(), results).results[0])


def test_a_recorded_result_is_saved_whole() -> None:
    """What a plan keeps until its end is not capped: a dump carries the whole text."""
    plan = opened(*calls_of("log"), toolset=Capped).plan()
    plan.record(plan.pending[0].complete(LONG))
    loaded = Capped.load_plan(plan.dump_json())
    assert loaded.finished[0].model_text == LONG
    assert is_capped(loaded.commit(Transcript()).results[0])


def test_what_fails_puts_nothing_into_a_store() -> None:
    """A commit that is refused leaves the store as it was, and the plan can be used again."""
    store = MemoryResults()

    class Stored(Toolset, result_cap=ResultCap(1_000, store)):
        log = tool(log)

    plan = opened(*calls_of("log", "log"), toolset=Stored).plan()
    result = plan.pending[0].complete(LONG)
    with pytest.raises(CommitError):
        plan.commit(Transcript(), [result])
    assert len(store) == 0
    plan.commit(Transcript(), [result, plan.pending[1].complete(LONG)])
    assert len(store) == 1


def test_a_store_that_fails_leaves_everything_as_it_was() -> None:
    """Where a store raises, nothing was appended, and the plan can be committed again."""

    class Broken(MemoryResults):
        works = False

        def put(self, handle: str, text: str, /) -> None:
            if not self.works:
                raise OSError("the disk is full")
            super().put(handle, text)

    store = Broken()

    class Stored(Toolset, result_cap=ResultCap(1_000, store)):
        log = tool(log)

    transcript = Transcript()
    plan = opened(*calls_of("log"), toolset=Stored).plan()
    result = plan.pending[0].complete(LONG)
    with pytest.raises(OSError, match="the disk is full"):
        plan.commit(transcript, [result])
    assert len(transcript) == 0
    store.works = True
    assert is_capped(plan.commit(transcript, [result]).results[0])


def test_a_call_of_an_unknown_tool_has_no_cap() -> None:
    """A name that the model made up belongs to no tool, and its rejection is short anyway."""
    plan = opened(*calls_of("lgo"), toolset=Capped).plan()
    result = plan.commit(Transcript()).results[0]
    assert result.status == "rejected"
    assert result.message is None


def test_nested_tools_are_capped_under_their_names() -> None:
    """A nested tool has its cap under the name that its group gives it, also by the inner class."""

    class App(Toolset):
        inner = toolset(Capped, prefix="x_")

    plan = opened(*calls_of("x_log"), toolset=App).plan()
    assert is_capped(plan.commit(Transcript(), [plan.pending[0].complete(LONG)]).results[0])
    view: Any = App.inner
    plan = opened(*calls_of("x_log"), toolset=view).plan()
    assert is_capped(plan.commit(Transcript(), [plan.pending[0].complete(LONG)]).results[0])
