"""The laws of committing a round: everything is answered, in order, or nothing changes."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    CommittedRound,
    Complete,
    HandledCall,
    Message,
    Reject,
    RunNormally,
    Session,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Transcript,
)
from lutum_py.errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    InvalidValueError,
    MismatchedArguments,
    MismatchedToolName,
    MissingResult,
    RoundClosedError,
    UnresolvedSuspension,
)
from tests.cases import over
from tests.round_tools import (
    Shop,
    add,
    adds,
    check,
    check_transcript,
    close,
    done,
    forged,
    gated,
    opened,
    turn,
)


def changed(result: ToolResult, **fields: str) -> ToolResult:
    return ToolResult(
        id=fields.get("id", result.id),
        name=fields.get("name", result.name),
        arguments=fields.get("arguments", result.arguments),
        result=result.result,
    )


def refused(plan: ToolRoundPlan[Any], results: Any) -> tuple[CommitFault, ...]:
    """The faults of a commit that is refused, by each of the ways to end a plan."""
    session = Session()
    session.push_user("Go")
    before = session.transcript.copy()
    with pytest.raises(CommitError) as by_commit:
        plan.commit(session, results)
    with pytest.raises(CommitError) as by_resolve:
        plan.resolve(results)
    assert by_resolve.value.faults == by_commit.value.faults
    assert session.transcript == before
    return by_commit.value.faults


def test_results_are_committed_in_the_order_of_the_calls() -> None:
    """A commit appends the turn and then one result for each call, in the turn's order."""
    tool_round = opened(*adds(3))
    plan = tool_round.plan()
    transcript = Transcript()
    committed = plan.commit(transcript, reversed(done(plan.pending)))
    assert [type(item).__name__ for item in transcript] == ["AssistantTurn"] + ["ToolResult"] * 3
    assert [item.result for item in committed.results] == ["0", "1", "2"]
    assert tuple(transcript) == committed.items
    check_transcript(transcript)


def test_calls_that_are_alike_are_told_apart_by_their_ids() -> None:
    """Of equal calls each gets the result of its own id, in whatever order the results come."""
    plan = opened(*((id, "add", {"a": 1}) for id in ("one", "two"))).plan()
    one, two = (forged(call.metadata, id) for id, call in zip("12", plan.pending, strict=True))
    (fault, *_) = refused(plan, [one, changed(two, id="three")])
    assert fault == MissingResult("two", "add")
    assert [each.result for each in plan.resolve([two, one]).results] == ["1", "2"]


@given(st.data())
def test_any_permutation_commits_in_call_order(data: st.DataObject) -> None:
    """In whatever order valid results come, they are committed in the order of the calls."""
    count = data.draw(st.integers(1, 8))
    order = data.draw(st.permutations(range(count)))
    plan = opened(*adds(count), ("bad", "add", {"a": "x"})).plan()
    results = done(plan.pending)
    committed = plan.resolve([results[at] for at in order])
    assert [result.id for result in committed.results] == [f"c{i}" for i in range(count)] + ["bad"]
    assert [result.result for result in committed.results[:-1]] == [str(i) for i in range(count)]
    check(committed)


class Corruption(NamedTuple):
    apply: Callable[[list[ToolResult], int], None]
    faults: Callable[[ToolResult], list[CommitFault]]


def drop(results: list[ToolResult], at: int) -> None:
    del results[at]


def double(results: list[ToolResult], at: int) -> None:
    results.append(results[at])


def stray(results: list[ToolResult], at: int) -> None:
    results.insert(at, changed(results[at], id="stray"))


def rename(results: list[ToolResult], at: int) -> None:
    results[at] = changed(results[at], name="shout")


def reargue(results: list[ToolResult], at: int) -> None:
    results[at] = changed(results[at], arguments=results[at].arguments + " ")


def settled(results: list[ToolResult], at: int) -> None:
    results.insert(at, forged(ToolMetadata(id="held", name="add", arguments='{"a":99}')))


CORRUPTIONS = [
    Corruption(drop, lambda r: [MissingResult(r.id, "add")]),
    Corruption(double, lambda r: [DuplicateResult(r.id, "add")]),
    Corruption(stray, lambda r: [ExtraResult("stray", "add")]),
    Corruption(rename, lambda r: [MismatchedToolName(r.id, "shout", "add")]),
    Corruption(
        reargue, lambda r: [MismatchedArguments(r.id, "add", r.arguments, r.arguments + " ")]
    ),
    Corruption(settled, lambda r: [ExtraResult("held", "add", (), True)]),
]


@given(st.integers(1, 6), st.data())
def test_a_single_corruption_is_reported_as_exactly_that(count: int, data: st.DataObject) -> None:
    """One thing wrong gives its one fault, changes nothing, and the coerced results commit."""
    corruption = data.draw(st.sampled_from(CORRUPTIONS))
    at = data.draw(st.integers(0, count - 1))
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def hold(metadata: ToolMetadata, input: Any) -> Any:
        return Complete(0) if metadata.id == "held" else RunNormally(input)

    plan = opened(*adds(count), ("held", "add", '{"a":99}')).apply_hooks_sync(hooks)
    good = done(plan.pending)
    bad = list(good)
    corruption.apply(bad, at)
    expected = [without_open_ids(fault) for fault in corruption.faults(good[at])]
    assert [without_open_ids(fault) for fault in refused(plan, bad)] == expected
    assert len(plan.resolve(good).results) == count + 1


def without_open_ids(fault: CommitFault) -> CommitFault:
    if isinstance(fault, ExtraResult):
        return ExtraResult(fault.id, fault.name, (), fault.settled)
    return fault


def test_all_faults_are_reported_together() -> None:
    """A commit names everything that is wrong with it, in the order of the calls, at once."""
    tool_round = opened(*adds(5), ("p", "pay", {"amount": 1}))
    plan = tool_round.apply_hooks_sync(gated(SuspendTicket(), Shop.pay))
    c0, c1, c2, c3, _ = done(plan.pending)
    faults = refused(
        plan,
        [
            c1,
            c1,
            changed(c3, name="shout", arguments="{}"),
            c2,
            changed(c0, id="stray"),
            forged(plan.suspended[0].call.metadata),
        ],
    )
    assert faults == (
        MissingResult("c0", "add"),
        DuplicateResult("c1", "add"),
        MismatchedToolName("c3", "shout", "add"),
        MismatchedArguments("c3", "add", c3.arguments, "{}"),
        MissingResult("c4", "add"),
        UnresolvedSuspension("p", "pay"),
        ExtraResult("stray", "add", tuple(f"c{i}" for i in range(5)), False),
    )
    close(plan)


def test_the_error_says_what_to_do_about_each_fault() -> None:
    """The text of a refused commit names each call with its remedy, and survives pickling."""
    plan = opened(*adds(2)).plan()
    with pytest.raises(CommitError, match="Cannot commit, for 2 reasons") as caught:
        plan.resolve([])
    assert "call 'c0' of tool 'add' has no result" in str(caught.value)
    assert "plan.abort(session, reason)" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.faults, str(again)) == (caught.value.faults, str(caught.value))
    close(plan)


def test_a_failed_commit_can_be_coerced() -> None:
    """After a refused commit the same plan commits with what was missing."""
    plan = opened(*adds(2)).plan()
    first, second = done(plan.pending)
    assert refused(plan, [first]) == (MissingResult("c1", "add"),)
    session = Session()
    plan.commit(session, [first, second])
    check_transcript(session.transcript)


def test_a_failed_commit_may_have_been_given_an_iterator() -> None:
    """Results are read once, so a generator of them is as good as a list."""
    plan = opened(*adds(3)).plan()
    committed = plan.resolve(call.call_sync() for call in plan.pending)
    assert len(committed) == 4


def test_handled_and_rejected_calls_are_results() -> None:
    """What `call.handled` and `call.reject` give may be passed where a result is wanted."""
    plan = opened(*adds(2)).plan()
    one, two = plan.pending
    committed = plan.resolve([two.reject("not now"), one.handled(7)])
    assert [r.result for r in committed.results] == ["7", '"Rejected: not now"']
    assert committed.results[1].rejection_reason == "not now"
    assert committed.results[1].status == "rejected"


def test_the_plan_adds_what_hooks_settled() -> None:
    """Calls that a hook handled or rejected need no result from the caller, and take none."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def decide(metadata: ToolMetadata, input: Any) -> Complete[int] | Reject:
        return Complete(41) if metadata.id == "c0" else Reject("no")

    plan = opened(*adds(2)).apply_hooks_sync(hooks)
    handled: HandledCall[Any, Any] = plan.handled[0]
    assert refused(plan, [handled, plan.rejected[0]]) == (
        ExtraResult("c0", "add", (), True),
        ExtraResult("c1", "add", (), True),
    )
    committed = plan.resolve()
    assert [(r.result, r.status) for r in committed.results] == [
        ("41", "success"),
        ('"Rejected: no"', "rejected"),
    ]


def test_an_issue_is_rejected_unless_answered() -> None:
    """A call that cannot be used is rejected by the plan, or gets the result that is given."""
    calls = (("u", "nope", "{}"), ("w", "wipe", {"path": "/"}), ("b", "add", {"a": "x"}))
    automatic = opened(*calls).resolve()
    assert [result.status for result in automatic.results] == ["rejected"] * 3
    assert [result.code for result in automatic.results] == [
        "unknown_tool",
        "not_available",
        "invalid_arguments",
    ]
    tool_round = opened(*calls)
    metadata = tool_round.recoverable_tool_call_issues[0].metadata
    committed = tool_round.resolve([forged(metadata, '"mine"')])
    assert [r.result for r in committed.results[:1]] == ['"mine"']
    assert [r.status for r in committed.results] == ["success", "rejected", "rejected"]


def test_a_result_for_an_issue_is_checked_like_any_other() -> None:
    """A result that stands for an automatic rejection still has to carry what the model sent."""
    tool_round = opened(("u", "nope", "{}"))
    wrong = ToolResult(id="u", name="add", arguments="[]", result="0")
    assert refused(tool_round.plan(), [wrong, wrong]) == (
        MismatchedToolName("u", "add", "nope"),
        MismatchedArguments("u", "nope", "{}", "[]"),
        DuplicateResult("u", "nope"),
    )
    close(tool_round)


def test_a_rewritten_input_leaves_the_raw_arguments() -> None:
    """A hook that rewrites the input changes what runs, not what the transcript says was sent."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(lambda metadata, input: RunNormally(add.Input(a=40, b=2)))
    plan = opened(("c", "add", '{"a":  1}')).apply_hooks_sync(hooks)
    committed = plan.resolve(done(plan.pending))
    assert committed.results[0].result == "42"
    assert committed.results[0].arguments == '{"a":  1}' == committed.turn.tool_calls[0].arguments


@over("wrong", ["result", None, 3, {"id": "c0"}])
def test_what_is_no_result_is_refused(wrong: object) -> None:
    """Something that is no result is a TypeError that says how to make one; nothing changes."""
    plan = opened(*adds(1)).plan()
    with pytest.raises(TypeError, match=r"is no result.*call\.complete\(output\)"):
        plan.resolve([wrong])  # type: ignore[list-item]
    plan.resolve(done(plan.pending))


def test_results_are_passed_in_a_list() -> None:
    """One result outside of a list, or something else in its place, is a TypeError that says so."""
    plan = opened(*adds(1)).plan()
    result = plan.pending[0].call_sync()
    wrong: Any
    for wrong in (result, None, 3):
        with pytest.raises(TypeError, match=r"Write `\[result\]`"):
            plan.resolve(wrong)
    plan.resolve([result])


def test_a_suspended_call_is_no_result() -> None:
    """A call that suspended itself is no result: that it waits is all that is wrong with it."""
    plan = opened(*adds(2)).plan()
    outcome = plan.pending[0].suspend(SuspendTicket())
    other = opened(("elsewhere", "add", {"a": 1})).plan()
    stray = other.pending[0].suspend(SuspendTicket())
    with pytest.raises(CommitError) as caught:
        plan.resolve([outcome, forged(plan.pending[1].metadata), stray])
    assert caught.value.faults == (
        UnresolvedSuspension("c0", "add"),
        ExtraResult("elsewhere", "add", ("c1",)),
    )
    close(plan, other)


@pytest.mark.parametrize("target", [None, [], "session"])
def test_only_a_transcript_takes_a_commit(target: Any) -> None:
    """A commit into something else is a TypeError that names `resolve`, and changes nothing."""
    plan = opened(*adds(1)).plan()
    results = done(plan.pending)
    with pytest.raises(TypeError, match=r"plan\.resolve\(results\)"):
        plan.commit(target, results)
    plan.resolve(results)


def test_resolve_needs_no_transcript() -> None:
    """`resolve` gives the turn with its results, validated, and ends the round."""
    tool_round = opened(*adds(2), text="Let me see")
    plan = tool_round.plan()
    committed = plan.resolve(done(plan.pending))
    assert committed.turn is tool_round.turn
    assert list(committed) == [committed.turn, *committed.results]
    assert len(committed) == 3
    with pytest.raises(RoundClosedError):
        plan.resolve([])


def test_a_round_commits_without_hooks() -> None:
    """A round can be committed, and aborted, without making a plan first."""
    session = Session()
    tool_round = opened(*adds(1))
    tool_round.commit(session, done(tool_round.tool_calls))
    other = opened(*adds(1))
    other.abort(session, "stop")
    statuses = [i.status for i in session.transcript if isinstance(i, ToolResult)]
    assert statuses == ["success", "cancelled"]


def test_a_committed_round_is_checked_when_made_by_hand() -> None:
    """A committed round that would break a transcript cannot be made."""
    said = turn(*adds(2))
    results = [forged(metadata) for metadata in said.tool_calls]
    assert list(CommittedRound(said, results)) == [said, *results]
    for wrong in ([], results[:1], results[::-1], [results[0], changed(results[1], name="x")]):
        with pytest.raises(InvalidValueError):
            CommittedRound(said, wrong)
    twice = turn(("a", "add", "{}"), ("a", "add", "{}"))
    with pytest.raises(InvalidValueError):
        CommittedRound(twice, [forged(metadata) for metadata in twice.tool_calls])


def test_a_committed_round_is_a_value() -> None:
    """Committed rounds compare by content, cannot be changed, and pickle."""
    said = turn(*adds(1))
    made = CommittedRound(said, [forged(said.tool_calls[0])])
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(AttributeError):
        made.turn = said
    assert hash(made) == hash(CommittedRound(said, made.results))


def test_five_hundred_calls_commit() -> None:
    """A turn with five hundred calls is answered like any other."""
    session = Session()
    session.push_user("Go")
    plan = opened(*adds(500)).plan()
    plan.commit(session, done(plan.pending)[::-1])
    assert len(session.transcript) == 502
    assert session.transcript[0] == Message("user", "Go")
    check_transcript(session.transcript)


def test_an_async_tool_commits_like_a_sync_one() -> None:
    """The results of awaited calls commit side by side with those of sync ones."""

    async def main() -> CommittedRound:
        plan = opened(("s", "shout", {"text": "hi"}), *adds(1)).plan()
        return plan.resolve([await call.call() for call in plan.pending])

    assert [result.model_text for result in asyncio.run(main()).results] == ["HI", "0"]
