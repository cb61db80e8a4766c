"""The laws of calls within a call: what was read there stands in no transcript yet."""

from __future__ import annotations

from typing import Any

from lutum_py import NeedsTools, Session
from lutum_py.execution import run_sync
from lutum_py.flow import USER, Policy
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.inner_tools import Asked, Desk, asks

NOTE: Asked = ("note", {"text": "x"})
PAY: Asked = ("pay", {"cents": 5})


def waiting(policy: Policy, *calls: Asked) -> list[tuple[str, list[str]]]:
    """The calls that wait after all else has run, each with what there is against it."""
    session, hooks = Session(), Desk.HookSet()
    session.push_user("Pay the shop")
    hooks.gate()(policy.gate(session))
    turn = ScriptedModel.tool_calls(*((f"c{n}", *call) for n, call in enumerate(calls, 1)))
    outcome = session.text_turn(ScriptedModel([turn])).tools(Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    with outcome.round.apply_hooks_sync(hooks) as plan:
        run_sync(plan, hooks=hooks)
        told: list[Any] = [each.ticket.parameters["flow"] for each in plan.suspended]
        found = [each.call.id for each in plan.suspended]
        plan.abort(session, "the test is over")
    return list(zip(found, [[one["fault"] for one in each] for each in told], strict=True))


UNTRUSTED = "something untrusted stands in the conversation"
PRIVATE = "something private stands in the conversation"
NO_READER = "may not read what stands in the conversation"


@over(
    "declare, fault",
    [
        (lambda policy: policy.clean("pay"), UNTRUSTED),
        (lambda policy: policy.sink("pay"), PRIVATE),
        (lambda policy: policy.sink("pay", "to"), NO_READER),
    ],
)
def test_a_call_within_is_asked_about_as_if_anything_had_been_read(
    declare: Any, fault: str
) -> None:
    """`clean` and `sink` always ask about it; not so about the same call of the turn."""
    policy = Policy(Desk)
    declare(policy)
    assert waiting(policy, asks([NOTE], [PAY])) == [("c1/2", [fault])]
    assert waiting(policy, NOTE, PAY) == []


def test_edges_are_of_the_conversation_that_the_plan_is_of() -> None:
    """A value within comes by the user's words, or is asked about."""
    policy = Policy(Desk)
    policy.fill("pay", "to", USER)
    said, other = ("pay", {"cents": 5, "to": "the shop"}), ("pay", {"cents": 5, "to": "eve"})
    assert waiting(policy, asks([said])) == []
    assert waiting(policy, asks([other])) == [("c1/1", ["comes by none of its edges"])]
