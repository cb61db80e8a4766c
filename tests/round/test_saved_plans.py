"""The laws of plans that an earlier release saved: each loads whole, and goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    toolset,
)
from lutum_py.errors import FieldIssue, LifecycleError, MisuseError, PlanError

from ..cases import over
from ..data.saved import (
    KEY,
    PLANS,
    PLANS_0_2,
    SESSIONS,
    Desk,
    Payee,
    Receipt,
    Transfer,
    around,
    search,
    sign,
    signs,
)
from .saved_plans import entry, sealed

DATA: Final = Path(__file__).parent.parent / "data"
RELEASES: Final = {"release_0_1": PLANS, "release_0_2": PLANS_0_2}
"""What each release saved."""
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


def text_of(name: str, release: str = "release_0_1") -> str:
    return (DATA / release / f"plan_{name}.json").read_text(encoding="utf-8")


def loaded(name: str, sealing: str = "", release: str = "release_0_1") -> ToolRoundPlan[Desk]:
    return Desk.load_plan(text_of(name + sealing, release), key=KEY if sealing else None)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Which release saved the plan."""
    return str(request.param)


def calls(plan: ToolRoundPlan[Desk]) -> list[tuple[Any, ...]]:
    """What a plan says of its pending calls."""
    return [(call.id, call.name, call.input, call.status, call.mended) for call in plan.pending]


def digests(name: str, release: str = "release_0_1") -> dict[str, str]:
    """The digest of each call, as it was saved."""
    entries = json.loads(text_of(name, release))["calls"]
    return {entry["id"]: entry["digest"] for entry in entries if "digest" in entry}


def records(plan: ToolRoundPlan[Desk]) -> list[tuple[Any, ...]]:
    """What hooks decided: of each call in order, and the calls in that of the turn.

    When hooks were asked, those releases did not save.
    """
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
    """Each kind of plan is there under both seals, and its text is of the release's version."""
    for version, (release, plans) in enumerate(RELEASES.items(), 1):
        files = (DATA / release).glob("plan_*.json")
        names = {path.stem.removeprefix("plan_") for path in files}
        assert names == {name + sealing for name in plans for sealing in ("", "_with_key")}
        for name in names:
            data = json.loads(text_of(name, release))
            assert (data["format"], data["version"]) == ("lutum_py.plan", version), name


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
        ("rewritten", "archive_search", "closing_time", "function", "run_normally", None),
        ("blocked", "transfer", guard, "gate", "block", "never on a Sunday"),
        ("waits", "transfer", guard, "gate", "suspend", "approve_payment"),
        ("late", "archive_search", decide, "hook", "run_normally", None),
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


def every_plan() -> list[tuple[str, str]]:
    return [(release, name) for release, plans in RELEASES.items() for name in plans]


@pytest.mark.parametrize(("release", "name"), every_plan())
def test_a_saved_plan_is_still_guarded(release: str, name: str) -> None:
    """The seals of an earlier release are checked: an edit is found, and another key refused."""
    edited = text_of(name, release).replace('"turn":', '"more":0,"turn":')
    with pytest.raises(PlanError):
        Desk.load_plan(edited)
    with pytest.raises(PlanError):
        Desk.load_plan(text_of(f"{name}_with_key", release), key=b"a guess")


def facts(plan: ToolRoundPlan[Desk]) -> dict[str, Any]:
    """All that a plan tells of its calls."""
    names = ("finished", "decisions", "resumed", "edits", "recoverable_tool_call_issues")
    told = {name: getattr(plan, name) for name in names}
    waiting = [(each.ticket, each.digest, each.was_started, each.by) for each in plan.suspended]
    calls = (*plan.pending, *plan.in_doubt, *(each.call for each in plan.suspended))
    open_calls = [(c.id, c.digest, c.idempotency_key, c.approval, c.resume) for c in calls]
    steps = [row.steps for row in plan.calls]
    return {**told, "waiting": waiting, "open": open_calls, "rows": plan.calls, "steps": steps}


@pytest.mark.parametrize(("release", "name"), every_plan())
def test_what_was_saved_before_is_saved_as_this_release_does(release: str, name: str) -> None:
    """A plan of an earlier release is dumped in format 3, and is the same when it is loaded."""
    text = loaded(name, "", release).dump_json()
    assert json.loads(text)["version"] == 3
    told = facts(loaded_once(text))
    again = Desk.load_plan(text)
    assert facts(again) == told == facts(closing(loaded(name, "_with_key", release)))
    assert again.dump_json() == text


def loaded_once(text: str) -> ToolRoundPlan[Desk]:
    return closing(Desk.load_plan(text))


def closing(plan: ToolRoundPlan[Desk]) -> ToolRoundPlan[Desk]:
    """The plan, closed: it still tells what it knows."""
    plan.discard()
    return plan


STATES: Final = {
    "pending": {"c1": "pending", "c2": "pending", **dict.fromkeys(("c3", "c4", "c5"), "unusable")},
    "decided": {
        "known": "handled",
        "refused": "rejected",
        "rewritten": "pending",
        "blocked": "rejected",
        "waits": "suspended",
        "late": "rejected",
    },
    "suspended_by_tool": {"s": "suspended", "c": "pending"},
    "resumed_by_tool": {"s": "pending", "c": "pending"},
    "approved": {"yes": "pending", "no": "rejected", "open": "suspended"},
    "answered": {"t": "handled"},
    "edited": {
        "person": "pending",
        "hooked": "suspended",
        "again": "pending",
        "twice": "pending",
        "blocked_then": "rejected",
        "given_then": "handled",
    },
    "edited_secret": {"user": "pending", "secrets": "pending", "waits": "suspended"},
    "asked_twice": {"both": "pending", "waits": "suspended", "edited": "pending"},
    "in_doubt": {"runs": "in_doubt", "paid": "in_doubt", "ended": "finished", "open": "pending"},
    "finished": {
        **dict.fromkeys(("fine", "replaced", "failed", "nobody"), "finished"),
        "known": "handled",
        "refused": "rejected",
    },
    "owes_after": {"ended": "finished", "open": "pending", "known": "handled"},
    "settled": {
        "gate": "handled",
        "person": "handled",
        "own": "suspended",
        "ended": "finished",
        "gone": "rejected",
    },
    "issues": {"c1": "finished", "c2": "unusable", "c3": "pending"},
    "answer_beside": {"a1": "finished", "c1": "pending"},
}


@pytest.mark.parametrize(("release", "name"), every_plan())
def test_each_call_is_in_its_place(release: str, name: str, sealing: str) -> None:
    """Each call is in the list that the release had it in, and the row says so too."""
    plan = closing(loaded(name, sealing, release))
    assert {row.id: row.state for row in plan.calls} == STATES[name]
    lists = {
        "pending": [call.id for call in plan.pending],
        "in_doubt": [call.id for call in plan.in_doubt],
        "suspended": [each.call.id for each in plan.suspended],
        "handled": [each.metadata.id for each in plan.handled],
        "rejected": [each.metadata.id for each in plan.rejected],
        "finished": [each.id for each in plan.finished],
    }
    for state, ids in lists.items():
        assert ids == [id for id, at in STATES[name].items() if at == state], state
    known = digests(name, release)
    calls = (*plan.pending, *plan.in_doubt, *(each.call for each in plan.suspended))
    assert {call.id: call.digest for call in calls} == {call.id: known[call.id] for call in calls}


def test_a_line_tells_what_an_earlier_release_kept() -> None:
    """What was decided, asked, answered and begun are steps, and only decisions have their time."""
    plan = closing(loaded("asked_twice", "", "release_0_2"))
    told = {
        row.id: [(step.kind, step.phase, step.said, step.at is None) for step in row.steps]
        for row in plan.calls
    }
    gate = [
        ("proposed", None, None, True),
        ("asked", "gate", "suspend", True),
        ("suspended", "gate", None, True),
        ("answered", None, "resume", False),
        ("begun", None, None, True),
        ("suspended", None, None, True),
    ]
    assert told["both"] == [*gate, ("answered", None, "resume", False)]
    assert told["waits"] == [*gate, ("recorded", None, "suspended", True)]
    assert {step.at for row in plan.calls for step in row.steps} == {
        None,
        "2025-03-01T12:00:00.000000+00:00",
    }


def test_the_answers_of_gate_and_tool_come_back(sealing: str) -> None:
    """Each asker has its own answer; a tool runs on with what it asked for, once."""
    plan = loaded("asked_twice", sealing, "release_0_2")
    both, edited = plan.pending
    (waiting,) = plan.suspended
    assert (waiting.was_started, waiting.ticket.id, waiting.by) == (True, "sign-1", None)
    assert [each.approval.decision_id for each in (both, edited) if each.approval] == [
        "d-both",
        "d-edited",
    ]
    assert waiting.call.approval is not None
    assert waiting.call.approval.decision_id == "d-waits-gate"
    for call, paper, answer in ((both, "lease", "signed"), (edited, "will", "other")):
        assert call.input == sign.Input(paper=paper)
        for decision_id in (f"d-{call.id}", f"d-{call.id}-gate"):
            again = Decision(call_id=call.id, action="cancel", decision_id=decision_id)
            assert plan.resume(again) is None, decision_id
        result = call.call_sync(context=ToolContext.for_call(call))
        assert result.output == f"{paper}: {answer}"
        plan.record(result)
    plan.resume(waiting.cancel("enough"))
    results = {each.id: each for each in plan.resolve().results}
    assert results["both"].message is None
    assert '[The arguments of this call were edited: paper = "will"]' in (
        results["edited"].message or ""
    )


def test_a_gate_finds_its_answer_of_before(sealing: str) -> None:
    """Hooks that are asked again let go on what was approved, and stop what was edited since."""
    plan = loaded("asked_twice", sealing, "release_0_2").apply_hooks_sync(signs("lease"))
    assert [call.id for call in plan.pending] == ["both", "edited"]
    plan = plan.apply_hooks_sync(signs("will"))
    assert [each.call.id for each in plan.suspended] == ["waits", "edited"]
    plan.discard()


def test_edits_come_back(sealing: str) -> None:
    """Of each edit a plan tells what was shown, what the person made of it, and what hooks did."""
    plan = loaded("edited", sealing, "release_0_2")
    base = {"cents": 2000, "to": [{"name": "Ann", "city": None}], "speed": "slow"}
    told = {
        edit.call_id: (
            edit.decision_id,
            {name: edit.shown[name] for name in edit.changed},
            {name: edit.edited[name] for name in edit.changed},
            {name: edit.final[name] for name in edit.changed},
        )
        for edit in plan.edits
    }
    was = {"cents": 2000}
    assert told == {
        "person": (
            "d-person",
            {"cents": 2000, "speed": "slow"},
            {"cents": 1500, "speed": "instant"},
            {"cents": 1500, "speed": "instant"},
        ),
        "hooked": ("d-hooked", was, {"cents": 9000}, {"cents": 5000}),
        "again": ("d-again", was, {"cents": 9000}, {"cents": 5000}),
        "twice": ("d-twice-2", was, {"cents": 3000}, {"cents": 3000}),
        "blocked_then": ("d-blocked_then", was, {"cents": 1}, {"cents": 1}),
        "given_then": ("d-given_then", was, {"cents": 2}, {"cents": 2}),
    }
    assert {(edit.by, edit.at) for edit in plan.edits} == {("Cleo", "2025-03-01T12:00:00+00:00")}
    assert all(edit.shown == base for edit in plan.edits)
    assert {key: each.edit is not None for key, each in plan.resumed.items()} == {
        ("person", "d-person"): True,
        ("hooked", "d-hooked"): True,
        ("again", "d-again"): True,
        ("again", "d-again-2"): False,
        ("twice", "d-twice"): True,
        ("twice", "d-twice-2"): True,
        ("blocked_then", "d-blocked_then"): True,
        ("given_then", "d-given_then"): True,
    }
    approvals = {call.id: call.approval.decision_id for call in plan.pending if call.approval}
    assert approvals == {"person": "d-person", "again": "d-again-2", "twice": "d-twice-2"}
    (waiting,) = plan.suspended
    assert (waiting.call.input, waiting.ticket) == (ANN.model_copy(update={"cents": 5000}), TICKET)
    assert waiting.call.approval is None
    for call_id, decision_id in plan.resumed:
        again = Decision(call_id=call_id, action="cancel", decision_id=decision_id)
        assert plan.resume(again) is None
    plan.resume(waiting.approve())
    paid = Receipt(paid=1, on=date(2025, 3, 1))
    results = plan.resolve([call.complete(paid) for call in plan.pending]).results
    lines = {each.id: (each.message or "").partition("]")[0] for each in results}
    said = "[The arguments of this call were edited: cents = "
    assert lines["person"] == f'{said}1500, speed = "instant"'
    assert lines["hooked"] == lines["again"] == f"{said}5000"
    assert lines["twice"] == f"{said}3000"
    assert {each.id: each.status for each in results}["blocked_then"] == "rejected"


def test_edits_of_secrets_come_back(sealing: str) -> None:
    """Secrets are masked in what an edit tells, named as changed, and what the call runs with."""
    plan = loaded("edited_secret", sealing, "release_0_2")
    plan = Desk.load_plan(plan.dump_json())
    masked = {"user": "ann", "password": "*" * 10, "pin": "*" * 10}
    assert [(edit.call_id, edit.changed, edit.shown, edit.final) for edit in plan.edits] == [
        ("user", ("user",), masked, {**masked, "user": "bob"}),
        ("secrets", ("password", "pin"), masked, masked),
    ]
    assert [step.arguments for step in plan.pending[1].steps if step.arguments] == [masked] * 2
    plan.resume(plan.suspended[0].approve())
    results = {call.id: call.call_sync().output for call in plan.pending}
    assert results == {"user": "bob: old 1234", "secrets": "ann: new 9", "waits": "ann: old 1234"}
    plan.discard()


def test_what_was_proposed_is_told_though_it_was_changed_since(sealing: str) -> None:
    """A hook's change of before is a step, behind what the model's own text says."""
    for release in RELEASES:
        plan = closing(loaded("decided", sealing, release))
        (call,) = plan.pending
        told = [step.arguments for step in call.steps if step.arguments is not None]
        expected = [{"query": "c", "limit": 10}, {"query": "c", "limit": 3}]
        # Release 0.1 did not say that a hook had changed something.
        assert told == (expected[1:] if release == "release_0_1" else expected), release


def test_calls_in_doubt_come_back(sealing: str) -> None:
    """What was at work refuses to run, keeps its approval, and is answered by who finds out."""
    plan = loaded("in_doubt", sealing, "release_0_2")
    runs, paid = plan.in_doubt
    assert {call.status for call in plan.in_doubt} == {CallStatus.RUNNING}
    assert paid.approval is not None
    assert said(paid.approval)[2] == {"note": "fine"}
    with pytest.raises(LifecycleError):
        runs.call_sync()
    plan.record(runs.indeterminate("the machine is gone."))
    plan.record(paid.complete(Receipt(paid=2000, on=date(2025, 3, 1))))
    plan.record(plan.pending[0].call_sync())
    assert {each.id: each.status for each in plan.resolve().results} == {
        "runs": "indeterminate",
        "paid": "success",
        "ended": "success",
        "open": "success",
    }


def test_results_and_who_saw_them_come_back(sealing: str) -> None:
    """Each result is as it was told, an after-hook's in its place, and no hook sees it again."""
    plan = loaded("finished", sealing, "release_0_2")
    told = {each.id: (each.status, each.output, each.code) for each in plan.finished}
    assert told == {
        "fine": ("success", [f"a {number}" for number in range(10)], None),
        "replaced": ("success", ["replaced"], None),
        "failed": ("error", None, "empty"),
        "nobody": ("indeterminate", None, None),
    }
    shown: list[str] = []
    hooks = around()
    hooks.after(Desk.archive.search)(lambda call, result: shown.append(call.id))
    plan.apply_after_hooks_sync(around())
    plan.apply_after_hooks_sync(hooks)
    assert sorted(shown) == ["failed", "fine", "known", "nobody", "replaced"]
    assert {each.id: each.output for each in plan.finished}["replaced"] == ["replaced"]
    assert len(plan.resolve().results) == 6


def test_after_hooks_that_are_owed_are_demanded(sealing: str) -> None:
    """A plan that was saved before its after-hooks were asked does not end without them."""
    plan = loaded("owes_after", sealing, "release_0_2")
    plan = Desk.load_plan(plan.dump_json())
    plan.record(plan.pending[0].call_sync())
    with pytest.raises(MisuseError):
        plan.commit(Session())
    plan.apply_after_hooks_sync(around())
    assert len(plan.commit(Session()).results) == 3


def test_before_hooks_are_not_asked_again(sealing: str) -> None:
    """A call that a before-hook has seen is not shown to it again, and to another one it is."""
    seen: list[tuple[str, str]] = []

    def noted(metadata: ToolMetadata, input: Any) -> None:
        """Have the name of the hook that was asked before."""
        seen.append(("noted", metadata.id))

    def other(metadata: ToolMetadata, input: Any) -> None:
        """Have another name."""
        seen.append(("other", metadata.id))

    hooks = Desk.HookSet()
    noted.__qualname__ = "noted"
    hooks.before(Desk.archive.search)(noted)
    hooks.before(Desk.archive.search)(other)
    plan = loaded("owes_after", sealing, "release_0_2").apply_hooks_sync(hooks)
    assert seen == [("other", "open")]
    plan.discard()


def test_how_calls_were_settled_comes_back(sealing: str) -> None:
    """Who answered or cancelled a call, and what a program asked on its own, are told as before."""
    plan = loaded("settled", sealing, "release_0_2")
    told = {
        row.id: [(step.kind, step.by, step.phase, step.said) for step in row.steps][-1]
        for row in plan.calls
    }
    gate = "settled.<locals>.<lambda>"
    assert told == {
        "gate": ("ended", gate, "gate", "success"),
        "person": ("ended", "Cleo", "decision", "success"),
        "own": ("recorded", None, None, "suspended"),
        "ended": ("recorded", None, None, "success"),
        "gone": ("ended", "Cleo", "decision", "cancelled"),
    }
    assert [(row.by, row.reason) for row in plan.calls] == [
        (gate, None),
        ("Cleo", "paid by hand"),
        (None, "Go on?"),
        (None, None),
        ("Cleo", "no"),
    ]
    assert plan.resumed["gone", "d-gone"].at == "yesterday"
    (waiting,) = plan.suspended
    assert (waiting.was_started, waiting.by) == (False, None)
    plan.resume(waiting.approve())
    plan.record(plan.pending[0].call_sync())
    assert {each.id: each.status for each in plan.resolve().results} == {
        **dict.fromkeys(("gate", "person", "own", "ended"), "success"),
        "gone": "cancelled",
    }


def test_calls_of_no_tool_come_back(sealing: str) -> None:
    """Issues have what the model is told, or the result that was given instead; answers stay."""
    plan = loaded("issues", sealing, "release_0_2")
    unknown, broken = plan.recoverable_tool_call_issues
    assert (unknown.reason, unknown.suggestion) == ("unknown_tool", "archive_search")
    assert (broken.reason, broken.metadata.arguments) == ("invalid_arguments", '{"paper": ')
    results = plan.resolve([plan.pending[0].call_sync()]).results
    assert [(each.status, each.output) for each in results[:2]] == [
        ("success", "found by hand"),
        ("rejected", broken.result.output),
    ]
    plan = loaded("answer_beside", sealing, "release_0_2")
    session = Session()
    (answer, _) = plan.commit(session, [plan.pending[0].call_sync()]).results
    assert (answer.id, answer.status) == ("a1", "success")


@pytest.mark.parametrize("name", PLANS)
def test_an_approved_call_runs_under_its_digest(name: str, sealing: str, release: str) -> None:
    """Whatever a plan holds, what is approved begins with the arguments that were approved."""
    plan = loaded(name, sealing, release)
    known = digests(name, release)
    for call in plan.pending:
        key = call.idempotency_key
        call.move_to(CallStatus.RUNNING)
        assert (call.digest, call.idempotency_key) == (known[call.id], key)
        if call.approval is not None and call.approval.digest is not None:
            assert call.approval.digest == call.digest
    plan.discard()


@pytest.mark.parametrize("name", SESSIONS)
def test_saved_sessions_come_back(name: str, sealing: str) -> None:
    """A session of release 0.2 has its id, its words and its plan; the plan goes on."""
    path = DATA / "release_0_2" / f"session_{name}{sealing}.json"
    key = KEY if sealing else None
    text = path.read_text(encoding="utf-8")
    restored = Desk.load_session(text, key=key, binding="desk 1")
    assert restored.session.id == "chat-1"
    assert [getattr(item, "text", None) for item in restored.session.transcript] == ["Pay Ann."]
    with pytest.raises(PlanError):
        Desk.load_session(text, key=b"a guess", binding="desk 1")
    if restored.plan is None:
        assert name == "alone"
        return
    again = Desk.dump_session(restored.session, restored.plan, key=key, binding="desk 1")
    plan = Desk.load_session(again, key=key, binding="desk 1").plan
    assert json.loads(again)["plan"]["version"] == 3
    assert plan is not None
    assert {row.id: row.state for row in plan.calls} == STATES[name]
    assert statuses(plan) == {"yes": "cancelled", "no": "cancelled", "open": "cancelled"}


def test_what_has_no_times_has_no_durations() -> None:
    """What ran under an older release was not timed, and nobody makes a figure up."""
    for release, name in every_plan():
        plan = loaded(name, release=release)
        assert {row.duration for row in plan.calls} == {None}, (release, name)
        plan.discard()


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> ToolRoundPlan[Desk]:
    """A plan of release 0.2 that was changed and sealed again."""
    data = json.loads(text_of(name, "release_0_2"))
    change(data)
    return Desk.load_plan(json.dumps(sealed(data)))


@over(
    "name, change, told",
    [
        (
            "edited",
            lambda data: data["edits"][0].update(call_id="nobody"),
            r"at \$: .*'nobody' is not a call of the turn",
        ),
        (
            "edited",
            lambda data: data["edits"].append(data["edits"][0]),
            r"at \$: .*'person' is not a call of the turn, or was edited twice",
        ),
        (
            "edited",
            lambda data: entry(data, "person").update(input=[1]),
            r"at \$\.calls\[0\]: no release saved this",
        ),
        (
            "decided",
            lambda data: entry(data, "rewritten").update(id="nobody"),
            r"\$\.calls\[0\]\.id: 'nobody' is not a call of the turn, or is there twice",
        ),
        (
            "decided",
            lambda data: entry(data, "rewritten").update(state="lost"),
            r"at \$\.calls\[0\]: .*this release does not know 'lost'",
        ),
    ],
)
def test_a_plan_that_says_what_cannot_be_is_refused(
    name: str, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    """Under a seal that fits, an earlier release's plan is refused with the place of its fault."""
    with pytest.raises(PlanError, match=told):
        changed(name, change)


def test_what_the_model_sent_may_be_no_json() -> None:
    """A call whose text cannot be read has the arguments that were kept, not proposed by it."""

    def spoil(data: dict[str, Any]) -> None:
        for item in data["turn"]["items"]:
            if item["id"] == "person":
                item["arguments"] = "{broken"

    plan = changed("edited", spoil)
    call = plan.pending[0]
    assert (call.id, call.metadata.arguments) == ("person", "{broken")
    assert call.input == ANN.model_copy(update={"cents": 1500, "speed": "instant"})
    (row,) = (row for row in plan.calls if row.id == "person")
    kinds = [step.kind for step in row.steps if step.kind in ("proposed", "changed")]
    assert kinds == ["proposed", "changed", "changed"]
    plan.discard()


def test_who_answered_or_refused_is_told_without_a_record() -> None:
    """Where no record fits, who is named by the call's own entry has answered or refused it."""
    plan = changed("decided", lambda data: data["decisions"].clear())
    told = {
        row.id: [(step.kind, step.by, step.phase, step.said) for step in row.steps][-1]
        for row in plan.calls
    }
    decide, guard = "deciding.<locals>.decide", "deciding.<locals>.guard"
    assert told["known"] == ("ended", decide, "hook", "success")
    assert told["refused"] == ("ended", decide, "hook", "rejected")
    assert told["blocked"] == ("ended", guard, "gate", "rejected")
    assert told["late"] == ("ended", "closing_time", "hook", "rejected")
    plan.discard()


@pytest.mark.parametrize("name", ["asked_twice", "edited"])
def test_the_steps_of_a_call_stand_in_their_order_where_times_are_missing(name: str) -> None:
    """`plan.steps` sorts by time, and keeps the order of each call where a release kept none."""
    plan = closing(loaded(name, "", "release_0_2"))
    for row in plan.calls:
        assert [step for step in plan.steps if step.call_id == row.id] == [*row.steps]
    assert any(step.at is None for step in plan.steps)


@pytest.mark.parametrize("name", ["pending", "edited"])
def test_what_an_older_release_saved_counts_as_asked(name: str) -> None:
    """Plans of before kept no question that let a call pass; they were asked, or were no plans."""
    asks: Any = type("Asks", (Toolset,), {"desk": toolset(Desk, needs_approval=True)})
    plan = asks.load_plan(text_of(name, "release_0_2"))
    assert plan.pending
    for call in plan.pending:
        assert "needs_approval" in [step.by for step in call.steps]
        call.move_to(CallStatus.RUNNING)
    plan.discard()
