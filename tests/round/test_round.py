"""The laws of a round: what it tells of its turn, and how it ends once."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Finished,
    Session,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Usage,
)
from lutum_py.errors import (
    DuplicateToolCallIdError,
    MisuseError,
    RoundClosedError,
    ToolRoundArityError,
)
from lutum_py.turns import RefusalItem, TextItem
from lutum_py.typing import TextResult
from tests.cases import over
from tests.round_tools import Shop, adds, close, done, forged, needs, opened, turn
from tests.sample_tools import input_of


def answers(plan: ToolRoundPlan[Any]) -> list[ToolResult]:
    return [forged(call.metadata) for call in plan.pending]


ENDS: dict[str, Callable[[ToolRoundPlan[Any]], object]] = {
    "committed": lambda plan: plan.commit(Session(), answers(plan)),
    "resolved": lambda plan: plan.resolve(answers(plan)),
    "aborted": lambda plan: plan.abort(Session(), "stop"),
    "discarded": lambda plan: plan.discard(),
    "dumped": lambda plan: plan.dump_json(),
}
USES: dict[str, Callable[[ToolRoundPlan[Any]], object]] = {
    "apply_hooks": lambda plan: asyncio.run(plan.apply_hooks(Shop.HookSet())),
    "apply_hooks_sync": lambda plan: plan.apply_hooks_sync(Shop.HookSet()),
    "apply_after_hooks": lambda plan: asyncio.run(plan.apply_after_hooks(Shop.HookSet())),
    "apply_after_hooks_sync": lambda plan: plan.apply_after_hooks_sync(Shop.HookSet()),
    "resume": lambda plan: plan.resume(None),  # type: ignore[arg-type]
    "suspend": lambda plan: plan.suspend(None),  # type: ignore[arg-type]
    **ENDS,
}


@over("finish_reason", ["stop", "STOP", "", "end_turn"])
def test_calls_count_whatever_the_finish_reason_says(finish_reason: str) -> None:
    """A turn with calls needs tools, also where the host says that it is finished."""
    tool_round = opened(*adds(2), finish_reason=finish_reason)
    assert [input_of(call).a for call in tool_round.tool_calls] == [0, 1]
    assert tool_round.finish_reason == finish_reason
    tool_round.discard()


def test_a_round_tells_of_its_turn() -> None:
    """A round carries the turn's text, usage, model, request id and finish reason as they came."""
    usage = Usage(input_tokens=3)
    said = AssistantTurn(
        text="Adding",
        tool_calls=[ToolMetadata(id="c", name="add", arguments='{"a":1}')],
        finish_reason="tool_calls",
        usage=usage,
        model="m",
        request_id="r",
    )
    tool_round = needs(Shop.read_turn(said))
    assert tool_round.turn is said
    assert (tool_round.text, tool_round.model, tool_round.request_id) == ("Adding", "m", "r")
    assert (tool_round.usage, tool_round.finish_reason) == (usage, "tool_calls")
    assert tool_round.continue_suggestion is None
    assert repr(tool_round) == "<round of Shop: 1 calls (add)>"
    tool_round.discard()


def test_unusable_calls_suggest_going_on() -> None:
    """Any unusable call sets the continue suggestion of the round and its plan."""
    tool_round = opened(*adds(1), ("u", "nope", "{}"))
    assert [issue.reason for issue in tool_round.recoverable_tool_call_issues] == ["unknown_tool"]
    assert tool_round.continue_suggestion is not None
    plan = tool_round.plan()
    assert plan.continue_suggestion == tool_round.continue_suggestion
    assert [call.id for call in plan.pending] == ["c0"]
    tool_round.discard()


def test_what_cannot_be_used_is_counted_where_a_round_is_shown() -> None:
    """A round and its plan show how many of their calls cannot be used."""
    tool_round = opened(("u", "nope", "{}"), ("v", "nope", "{}"))
    assert repr(tool_round) == "<round of Shop: 0 calls, 2 unusable>"
    plan = tool_round.plan()
    expected = "<plan of Shop: 0 pending, 0 handled, 0 rejected, 0 suspended, 2 unusable>"
    assert repr(plan) == expected
    tool_round.discard()


def test_two_calls_with_one_id_open_no_round() -> None:
    """Two calls under one id are refused before there is a round, so nothing is left open."""
    with pytest.raises(
        DuplicateToolCallIdError, check=lambda error: error.call_id == "c"
    ) as caught:
        Shop.read_turn(turn(("c", "add", {"a": 1}), ("d", "add", {"a": 1}), ("c", "pay", {})))
    assert caught.value.call_id == "c"


def test_expect_one_gives_the_only_call() -> None:
    """`expect_one` gives the call where there is exactly one, else an error that names them."""
    one, none, many = opened(*adds(1)), opened(("u", "nope", "{}")), opened(*adds(12))
    assert one.expect_one() is one.tool_calls[0]
    with pytest.raises(ToolRoundArityError, match="exactly one usable tool call, got 0: none"):
        none.expect_one()
    with pytest.raises(ToolRoundArityError, match=r"got 12: `add` \('c0'\).*and 2 more"):
        many.expect_one()
    close(one, none, many)


def test_expect_at_most_one_allows_none() -> None:
    """`expect_at_most_one` gives the only call or None, and refuses several."""
    one, none, many = opened(*adds(1)), opened(("u", "nope", "{}")), opened(*adds(2))
    assert one.expect_at_most_one() is one.tool_calls[0]
    assert none.expect_at_most_one() is None
    with pytest.raises(ToolRoundArityError):
        many.expect_at_most_one()
    close(one, none, many)


@over("use", USES)
@over("end", ENDS)
def test_a_round_ends_once(end: str, use: str) -> None:
    """After each of its ends, a round and its plans refuse every use, and say how it ended."""
    tool_round = opened(*adds(1))
    plan = tool_round.plan()
    ENDS[end](plan)
    with pytest.raises(RoundClosedError, match=f"already {end}"):
        USES[use](plan)
    with pytest.raises(RoundClosedError, match=f"already {end}"):
        tool_round.discard()


@over(
    "use",
    [
        lambda ended: asyncio.run(ended.apply_hooks(Shop.HookSet())),
        lambda ended: ended.apply_hooks_sync(Shop.HookSet()),
        lambda ended: ended.resolve(),
        lambda ended: ended.commit(Session()),
        lambda ended: ended.abort(Session(), "stop"),
        lambda ended: ended.discard(),
    ],
)
def test_a_round_that_has_ended_refuses_each_of_its_methods(
    use: Callable[[ToolRound[Any]], object],
) -> None:
    """A round of calls that ended is as closed as its plans, also to hooks that decide nothing."""
    tool_round = opened(("u", "nope", "{}"))
    tool_round.resolve()
    with pytest.raises(RoundClosedError):
        use(tool_round)


def test_an_answer_tells_of_its_turn() -> None:
    """A text result carries what its turn says: text, refusal, usage and finish reason."""
    usage = Usage(output_tokens=2)
    items: list[Any] = [TextItem("Sorry. "), RefusalItem("I may "), RefusalItem("not.")]
    outcome = Shop.read_turn(AssistantTurn(items=items, finish_reason="stop", usage=usage))
    assert isinstance(outcome, Finished)
    said = outcome.result
    assert (said.text, said.refusal) == ("Sorry. ", "I may not.")
    assert (said.finish_reason, said.usage) == ("stop", usage)
    assert TextResult(AssistantTurn(text="Yes")).refusal is None


def test_a_round_and_its_plans_share_one_state() -> None:
    """Whichever plan of a round ends first ends them all."""
    tool_round = opened(*adds(1))
    first = tool_round.plan()
    second = first.apply_hooks_sync(Shop.HookSet())
    third = asyncio.run(tool_round.apply_hooks(Shop.HookSet()))
    assert repr(second) == "<plan of Shop: 1 pending, 0 handled, 0 rejected, 0 suspended>"
    second.resolve(done(second.pending))
    for plan in (first, second, third):
        with pytest.raises(RoundClosedError):
            plan.resolve()
    assert repr(third).endswith("0 suspended, resolved>")


def dropped(make: Callable[[], ToolRound[Any] | ToolRoundPlan[Any]]) -> list[str]:
    """The warnings of dropping what is made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thing = make()
        del thing
        gc.collect()
    return [str(entry.message) for entry in caught if entry.category is ResourceWarning]


def test_dropping_an_open_round_warns() -> None:
    """A round or plan that is dropped open is a ResourceWarning that names calls and remedies."""
    for make in (lambda: opened(*adds(2)), lambda: opened(*adds(2)).plan()):
        messages = dropped(make)
        assert len(messages) == 1
        assert "'c0', 'c1'" in messages[0]
        assert "plan.abort(session, reason)" in messages[0]


@over("end", ENDS)
def test_dropping_a_closed_round_is_silent(end: str) -> None:
    """A round that was ended may be forgotten."""

    def make() -> ToolRoundPlan[Any]:
        plan = opened(*adds(1)).plan()
        ENDS[end](plan)
        return plan

    assert dropped(make) == []


@pytest.mark.parametrize("end", [*ENDS])
def test_of_two_threads_one_ends_a_round(end: str) -> None:
    """Both found it open, and the other one is a moment earlier: nothing is committed twice."""
    plan = opened(*adds(1)).plan()
    session = Session()
    others = [lambda: plan.commit(session, [plan.pending[0].fail("no")])]

    class First(dict[str, Any]):
        def setdefault(self, name: str, default: Any = None) -> Any:
            if name == "closing" and others:
                others.pop()()
            return super().setdefault(name, default)

    plan._state.call_round.__dict__ = First(vars(plan._state.call_round))
    with pytest.raises(RoundClosedError, match="already committed"):
        ENDS[end](plan)
    assert len(session.transcript) == 2


def test_a_round_that_was_never_made_is_dropped_in_silence() -> None:
    """Who makes one by hand is told so by the class, and nothing is said of it once more."""
    make: Any = ToolRound
    with pytest.raises(TypeError, match="missing 3 required positional arguments"):
        make()
    gc.collect()


def test_a_round_is_one_object() -> None:
    """A copy of a round or plan is itself, and none is pickled: its round would end twice."""
    asked = opened(*adds(1))
    for open_thing in (asked, asked.plan()):
        assert copy.copy(open_thing) is copy.deepcopy(open_thing) is open_thing
        with pytest.raises(MisuseError, match="is not pickled"):
            pickle.dumps(open_thing)
    asked.discard()


def test_a_raw_response_is_no_turn() -> None:
    """Whoever forgets to decode a response is told how."""
    with pytest.raises(TypeError, match="Decode the provider's response first"):
        Shop.read_turn({"choices": []})  # type: ignore[call-overload]
