"""The laws of plans that an earlier release saved: each loads whole, and goes on."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from lutum_py import (
    CallStatus,
    Decision,
    RecoverableToolCallIssue,
    ResumeMode,
    Session,
    SuspendTicket,
    ToolContext,
    ToolRoundPlan,
)
from lutum_py.errors import FieldIssue, PlanError
from tests.cases import over

from ..data.saved import KEY, PLANS, Desk, Payee, Receipt, Transfer, search, sign

FOLDER: Final = Path(__file__).parent.parent / "data" / "release_0_1"
TICKET: Final = SuspendTicket(
    id="pay-1",
    action="approve_payment",
    message="Pay 20 EUR to Ann?",
    parameters={"cents": 2000, "names": ["Ann"]},
    response_schema={"type": ["null", "object"], "properties": {"note": {"type": "string"}}},
)
ANN: Final = Transfer(cents=2000, to=[Payee(name="Ann")])


@pytest.fixture(params=["", "_with_key"])
def sealing(request: pytest.FixtureRequest) -> str:
    """How the plan was sealed, as its file's name says it."""
    return str(request.param)


def text_of(name: str) -> str:
    return (FOLDER / f"plan_{name}.json").read_text(encoding="utf-8")


def loaded(name: str, sealing: str = "") -> ToolRoundPlan[Desk]:
    return Desk.load_plan(text_of(name + sealing), key=KEY if sealing else None)


def calls(plan: ToolRoundPlan[Desk]) -> list[tuple[Any, ...]]:
    """What a plan says of its pending calls."""
    return [(call.id, call.name, call.input, call.status, call.mended) for call in plan.pending]


def digests(name: str) -> dict[str, str]:
    """The digest of each call, as it was saved."""
    entries = json.loads(text_of(name))["calls"]
    return {entry["id"]: entry["digest"] for entry in entries if "digest" in entry}


def records(plan: ToolRoundPlan[Desk]) -> list[tuple[Any, ...]]:
    return [tuple(record) for record in plan.decisions]


def said(decision: Decision | None) -> tuple[Any, ...]:
    """What a decision said in the first release."""
    assert decision is not None
    return (
        decision.call_id,
        decision.action,
        decision.result,
        decision.reason,
        decision.decision_id,
        decision.digest,
    )


def statuses(plan: ToolRoundPlan[Desk]) -> dict[str, str]:
    """How each call ends where the round is aborted: a started one may have done something."""
    committed = plan.abort(Session(), "closing")
    return {result.id: result.status for result in committed.results}


def test_every_saved_plan_is_read() -> None:
    """Each kind of plan is there under both seals, and its text is of version 1."""
    names = {path.stem.removeprefix("plan_") for path in FOLDER.glob("plan_*.json")}
    assert names == {name + sealing for name in PLANS for sealing in ("", "_with_key")}
    for name in names:
        data = json.loads(text_of(name))
        assert (data["format"], data["version"]) == ("lutum_py.plan", 1)


def test_a_plan_before_any_decision_comes_back(sealing: str) -> None:
    """Inputs, what was mended in them, and the issues of unusable calls are as they were saved."""
    plan = loaded("pending", sealing)
    assert calls(plan) == [
        ("c1", "archive_search", search.Input(query="näme", limit=2), CallStatus.NEW, ()),
        ("c2", "transfer", Transfer(cents=2000, to=[Payee(name="Bo")]), CallStatus.NEW, ("to",)),
    ]
    assert [call.metadata.arguments for call in plan.pending] == [
        '{"query": "näme", "limit": 2}',
        '{"cents":2000,"to":"[{\\"name\\": \\"Bo\\", \\"city\\": null}]"}',
    ]
    assert {call.id: call.digest for call in plan.pending} == digests("pending")
    assert (plan.handled, plan.rejected, plan.suspended, plan.decisions) == ((), (), (), ())
    unknown, invalid, broken = plan.recoverable_tool_call_issues
    assert unknown == RecoverableToolCallIssue(
        unknown.metadata,
        "unknown_tool",
        "There is no tool `archive_serch`, so nothing was run. Did you mean `archive_search`? "
        "Tools on offer: `transfer`, `sign`, `archive_search`.",
        (),
        "archive_search",
    )
    assert (invalid.metadata.id, invalid.reason, invalid.suggestion) == (
        "c4",
        "invalid_arguments",
        None,
    )
    assert invalid.fields == (
        FieldIssue("query", "Input should be a valid string", "3"),
        FieldIssue(
            "limit",
            "Input should be a valid integer, unable to parse string as an integer",
            "'many'",
        ),
    )
    assert invalid.text.endswith("Call it again with corrected arguments.")
    assert (broken.metadata.id, broken.metadata.arguments) == ("c5", '{"paper": ')
    assert statuses(plan) == {
        "c1": "cancelled",
        "c2": "cancelled",
        "c3": "rejected",
        "c4": "rejected",
        "c5": "rejected",
    }


def test_what_was_decided_comes_back(sealing: str) -> None:
    """Handled, rejected and suspended calls are as they were, and so is the log of decisions."""
    plan = loaded("decided", sealing)
    assert calls(plan) == [
        ("rewritten", "archive_search", search.Input(query="c", limit=3), CallStatus.NEW, ()),
    ]
    (handled,) = plan.handled
    assert (handled.metadata.id, handled.input) == ("known", search.Input(query="a", limit=10))
    assert (handled.output, handled.result.result) == (["found before"], '["found before"]')
    assert [
        (each.metadata.id, each.call.input, each.reason, each.source) for each in plan.rejected
    ] == [
        ("refused", search.Input(query="b", limit=10), "not now", "hook"),
        ("blocked", ANN, "never on a Sunday", "gate"),
        ("late", search.Input(query="e", limit=10), "we are closed", "hook"),
    ]
    assert plan.blocked == "never on a Sunday"
    (waiting,) = plan.suspended
    assert waiting.call.input == ANN.model_copy(update={"speed": "instant"})
    assert (waiting.call.id, waiting.call.status) == ("waits", CallStatus.SUSPENDED)
    assert (waiting.ticket, waiting.was_started) == (TICKET, False)
    assert waiting.digest == waiting.call.digest == digests("decided")["waits"]
    decide, guard = "deciding.<locals>.decide", "deciding.<locals>.guard"
    assert records(plan) == [
        ("known", "archive_search", decide, "hook", "complete", None),
        ("refused", "archive_search", decide, "hook", "reject", "not now"),
        ("rewritten", "archive_search", decide, "hook", "run_normally", None),
        ("blocked", "transfer", guard, "gate", "block", "never on a Sunday"),
        ("waits", "transfer", guard, "gate", "suspend", "approve_payment"),
        ("late", "archive_search", decide, "hook", "run_normally", None),
        ("rewritten", "archive_search", "closing_time", "function", "run_normally", None),
        ("late", "archive_search", "closing_time", "function", "reject", "we are closed"),
    ]
    assert statuses(plan) == {
        "known": "success",
        "refused": "rejected",
        "rewritten": "cancelled",
        "blocked": "rejected",
        "waits": "cancelled",
        "late": "rejected",
    }


def test_a_call_that_suspended_itself_comes_back(sealing: str) -> None:
    """It waits under its own ticket, and still counts as started."""
    plan = loaded("suspended_by_tool", sealing)
    assert calls(plan) == [
        ("c", "archive_search", search.Input(query="d", limit=10), CallStatus.NEW, ()),
    ]
    (waiting,) = plan.suspended
    assert waiting.ticket == SuspendTicket(
        id="sign-1", action="sign", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL
    )
    assert (waiting.call.input, waiting.was_started) == (sign.Input(paper="lease"), True)
    assert waiting.digest == digests("suspended_by_tool")["s"]
    assert plan.decisions == ()
    assert statuses(plan) == {"s": "indeterminate", "c": "cancelled"}


def test_a_decision_for_a_tool_comes_back(sealing: str) -> None:
    """A call that was started, suspended and resumed runs with the decision that it was given."""
    plan = loaded("resumed_by_tool", sealing)
    call = plan.pending[0]
    assert (call.id, call.status) == ("s", CallStatus.RESUMING)
    assert call.resume is call.approval
    assert said(call.resume) == (
        "s",
        "resume",
        {"by": "Cleo", "fine": True},
        None,
        "d-s",
        None,
    )
    assert (call.suspension_id, call.suspension_reason) == ("sign-1", "sign")
    result = call.call_sync(context=ToolContext.for_call(call))
    assert result.output == "lease: {'by': 'Cleo', 'fine': True}"
    plan.discard()
    assert statuses(loaded("resumed_by_tool", sealing)) == {"s": "indeterminate", "c": "cancelled"}


def test_approvals_come_back(sealing: str) -> None:
    """An approved call is bound to its decision, a cancelled one is rejected, one waits still."""
    plan = loaded("approved", sealing)
    digest = digests("approved")["yes"]
    assert calls(plan) == [("yes", "transfer", ANN, CallStatus.RESUMING, ())]
    call = plan.pending[0]
    assert said(call.approval) == (
        "yes",
        "resume",
        {"note": "fine"},
        "budgeted",
        "d-yes",
        digest,
    )
    assert (call.resume, call.digest) == (None, digest)
    assert (call.suspension_id, call.suspension_reason) == ("pay-1", "approve_payment")
    (rejected,) = plan.rejected
    assert (rejected.metadata.id, rejected.call.input) == ("no", ANN)
    assert (rejected.reason, rejected.source) == ("too much", "decision")
    (waiting,) = plan.suspended
    assert (waiting.call.id, waiting.call.input, waiting.ticket) == ("open", ANN, TICKET)
    guard = "deciding.<locals>.guard"
    assert records(plan) == [
        (call_id, "transfer", guard, "gate", "suspend", "approve_payment")
        for call_id in ("yes", "no", "open")
    ]
    for call_id in ("yes", "no"):
        again = Decision(call_id=call_id, action="cancel", decision_id=f"d-{call_id}")
        assert plan.resume(again) is None
    assert statuses(plan) == {"yes": "cancelled", "no": "cancelled", "open": "cancelled"}


def test_a_decision_that_was_the_output_comes_back(sealing: str) -> None:
    """A call that a decision answered has its output in the tool's own type, and commits."""
    plan = loaded("answered", sealing)
    (handled,) = plan.handled
    assert (handled.input, handled.output) == (ANN, Receipt(paid=2000, on=date(2025, 3, 1)))
    assert records(plan) == [
        ("t", "transfer", "deciding.<locals>.guard", "gate", "suspend", "approve")
    ]
    session = Session()
    (result,) = plan.commit(session).results
    assert (result.status, result.result) == ("success", '{"paid":2000,"on":"2025-03-01"}')
    assert session.transcript[0].tool_calls[0] == handled.metadata  # type: ignore[union-attr]


@over("name", PLANS)
def test_a_saved_plan_is_still_guarded(name: str) -> None:
    """The seals of an earlier release are checked: an edit is found, and another key refused."""
    edited = text_of(name).replace('"turn":', '"more":0,"turn":')
    with pytest.raises(PlanError, match="edited after it was saved"):
        Desk.load_plan(edited)
    with pytest.raises(PlanError, match="does not fit this key"):
        Desk.load_plan(text_of(f"{name}_with_key"), key=b"a guess")
