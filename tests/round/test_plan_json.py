"""The laws of a saved plan: it goes on where it was, and what was changed is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from pydantic import Field

from lutum_py import (
    AssistantTurn,
    CallStatus,
    Complete,
    Decision,
    NeedsTools,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError, LifecycleError, PlanError, ResumeError, RoundClosedError
from tests.round.saved_plans import about, arguments, dumped, entry, loaded, planned, step
from tests.round_tools import (
    CHARGE,
    Receipt,
    Shop,
    Till,
    add,
    adds,
    any_text,
    approval,
    check_transcript,
    close,
    done,
    gated,
    opened,
    turn,
)
from tests.sample_tools import input_of


def facts(plan: ToolRoundPlan[Any]) -> dict[str, Any]:
    """All that a plan knows."""

    def call(each: Any) -> Any:
        known = (each.metadata, each.input, each.status, each.coerced, each.digest)
        return (*known, each.approval, each.resume, each.ticket, each.suspension_id)

    return {
        "pending": [call(each) for each in plan.pending],
        "handled": [(h.metadata, h.input, h.output, h.result) for h in plan.handled],
        "rejected": [(r.metadata, r.call.input, r.reason, r.source) for r in plan.rejected],
        "suspended": [(call(s.call), s.ticket, s.digest, s.was_started) for s in plan.suspended],
        "in_doubt": [call(each) for each in plan.in_doubt],
        "finished": plan.finished,
        "rows": plan.calls,
        "edits": plan.edits,
        "issues": plan.recoverable_tool_call_issues,
        "decisions": plan.decisions,
        "resumed": plan.resumed,
    }


@pytest.mark.parametrize("key", [None, b"secret"])
def test_a_plan_comes_back_whole(key: bytes | None) -> None:
    """Everything that a plan knows survives being saved and loaded, with a key or without."""
    plan = planned()
    plan.resume(approval(plan, "p", result=False, by="ann", decision_id="d"))
    before = facts(plan)
    again = loaded(plan.dump_json(key=key), key=key)
    assert facts(again) == before
    assert [input_of(call).b for call in again.pending if call.name == "add"] == [7]
    text = again.dump_json(key=key)
    assert loaded(text, key=key).dump_json(key=key) == text


def test_a_suspended_plan_comes_back_whole() -> None:
    """A suspended call keeps its ticket, its digest and its frozen input."""
    plan = planned()
    before = facts(plan)
    again = loaded(plan.dump_json())
    assert facts(again) == before
    with pytest.raises(LifecycleError):
        again.suspended[0].call.input = {"amount": 1}
    close(again)


def test_a_loaded_plan_goes_on() -> None:
    """A plan that was loaded is decided, run and committed as it would have been before."""
    again = loaded(planned().dump_json())
    outcome = again.resume(approval(again, "p", result=True, decision_id="d"))
    assert outcome is again.pending[1]
    context = ToolContext.for_call(again.pending[1])
    assert context.resume is not None
    assert (context.resume.result, context.suspension_id, context.suspension_reason) == (
        True,
        "s",
        "pay",
    )
    results = [
        again.pending[1].complete(Receipt(paid=20)),
        again.pending[0].call_sync(),
        again.pending[2].call_sync(context=ToolContext.for_call(again.pending[2])),
    ]
    session = Session()
    again.commit(session, results)
    statuses = {r.id: r.status for r in session.transcript[1:] if isinstance(r, ToolResult)}
    assert statuses == {
        "c0": "success",
        "c1": "rejected",
        "c2": "success",
        "p": "success",
        "g": "rejected",
        "a": "success",
        "u": "rejected",
        "b": "rejected",
    }
    assert session.transcript[3] == ToolResult(
        id="c2",
        name="add",
        arguments='{"a":2,"b":0}',
        result="9",
        ran_with={"a": 2, "b": 7},
    )
    check_transcript(session.transcript)


def test_a_dump_closes_the_round() -> None:
    """A saved plan lives on only where it is loaded, so that nothing can be committed twice."""
    plan = planned()
    plan.dump_json()
    with pytest.raises(RoundClosedError):
        plan.resume(Decision(call_id="p", action="cancel"))


def test_both_proposed_and_effective_arguments_are_kept() -> None:
    """The text has what the model sent and what would run, each schema's digest, and a version."""
    data = dumped()
    assert (data["format"], data["version"]) == ("lutum_py.plan", 1)
    proposed = {each["id"]: each["arguments"] for each in data["round"]["turn"]["items"]}
    assert proposed["c2"] == '{"a":2,"b":0}'
    kinds = [each["kind"] for each in entry(data, "c2")["steps"]]
    assert kinds == ["proposed", "reviewed", "changed"]
    assert step(data, "c2", "proposed")["arguments"] == {"a": 2, "b": 0}
    assert arguments(data, "c2") == {"a": 2, "b": 7}
    assert about(data, "c2")["schema_digest"] == add.definition.digest
    assert data["digests"]["p"].startswith("sha256:")
    assert data["seal"]["kind"] == "sha256"
    assert dumped(key=b"k")["seal"]["kind"] == "hmac-sha256"


def test_neither_text_nor_digest_names_a_module() -> None:
    """The same toolset under another module's name loads the plan, and the text names none."""
    text = planned().dump_json()
    assert "round_tools" not in text
    assert "lutum_py." not in text.replace("lutum_py.plan", "").replace("lutum_py.round", "")
    Elsewhere = a_toolset("Elsewhere", members(), "moved")
    close(loaded(text, Elsewhere))
    digests = {selector.name: selector.definition.digest for selector in Shop}
    assert {s.name: s.definition.digest for s in Elsewhere} == digests


def a_toolset(name: str, body: dict[str, Any], module: str = __name__) -> type[Toolset]:
    meta: Any = type(Toolset)
    made: type[Toolset] = meta(name, (Toolset,), {"__module__": module, **body})
    return made


def members() -> dict[str, Any]:
    from tests.round_tools import PayArgs, ask, shout, wipe

    return {
        "add": tool(add),
        "pay": tool(PayArgs),
        "ask": tool(ask),
        "shout": tool(shout),
        "wipe": tool(wipe),
    }


@tool_fn(name="add")
def add_strings(a: str, b: str = "") -> str:
    """Add two texts."""
    return a + b


@pytest.mark.parametrize("where", ["pending", "suspended", "in doubt"])
def test_a_changed_schema_is_refused(where: str) -> None:
    """A tool whose schema changed since is named, with both digests, where the call may be run: one
    in doubt, too, by another try.
    """
    plan = opened(*adds(1)).plan()
    if where == "in doubt":
        plan.pending[0].start()
    if where == "suspended":
        plan = plan.apply_hooks_sync(lambda call: call.suspend(SuspendTicket()))
    Other = a_toolset("Other", {**members(), "add": tool(add_strings)})
    with pytest.raises(PlanError, match=r"schema of tool `add` has changed.*'c0'") as caught:
        loaded(plan.dump_json(), Other)
    assert add.definition.digest in str(caught.value)
    assert add_strings.definition.digest in str(caught.value)


def test_a_missing_tool_is_refused() -> None:
    """A plan that needs a tool which is gone is refused, and the tool is named."""
    fewer = {name: member for name, member in members().items() if name != "pay"}
    Fewer = a_toolset("Fewer", fewer)
    with pytest.raises(PlanError, match=r"Call '[pg]'.*a tool that is gone.*'pay'"):
        loaded(dumped(), Fewer)


def test_what_is_not_json_is_not_saved() -> None:
    """A ticket, payload or decision that is no JSON data is an error, and the plan stays open."""
    ticket = SuspendTicket(parameters={"who": object()})
    plan = opened(*adds(1)).apply_hooks_sync(lambda call: call.suspend(ticket))
    with pytest.raises(PlanError):
        plan.dump_json()
    close(plan)


def test_an_input_without_json_form_is_never_taken() -> None:
    """An input that has no JSON form is an error of the hook, and the plan can be saved."""

    @tool_fn
    def keep(value: Any) -> None:
        """Keep a value."""

    class Attic(Toolset):
        keep_ = tool(keep)

    attic = Attic.HookSet()
    attic.on(Attic.keep_)(lambda metadata, input: RunNormally(keep.Input(value=object())))
    asked = opened(("k", "keep", {"value": 1}), toolset=Attic)
    with pytest.raises(HookError, match="has no JSON form"):
        asked.apply_hooks_sync(attic)
    plan = Attic.load_plan(asked.plan().dump_json())
    assert input_of(plan.pending[0]).value == 1
    close(plan)


def test_what_is_done_to_the_input_of_a_waiting_call_is_not_saved() -> None:
    """Nobody reaches what is shown for a decision: the history, and what is saved, keep it."""
    hooks = Till.HookSet()
    hooks.gate(Till.charge)(lambda metadata, input: Suspend(SuspendTicket()))
    plan = opened(CHARGE, toolset=Till).apply_hooks_sync(hooks)
    digest = plan.suspended[0].digest
    input_of(plan.suspended[0].call).slip.amount = 2000
    again = Till.load_plan(plan.dump_json())
    (waiting,) = again.suspended
    assert (waiting.digest, waiting.call.digest) == (digest, digest)
    assert input_of(waiting.call).slip.amount == 20
    close(again)


def test_the_handled_output_keeps_its_type() -> None:
    """A handled call has its typed output again, or plain data where a hook gave something else."""
    made = Shop.HookSet()

    @made.on(Shop.pay)
    def pay(metadata: ToolMetadata, input: Any) -> Any:
        return Complete(Receipt(paid=3)) if input.amount == 3 else RunNormally(input)

    @made.gate(Shop.pay)
    def deny(metadata: ToolMetadata, input: Any) -> ToolResult:
        return ToolResult(
            id=metadata.id,
            name=metadata.name,
            arguments=metadata.arguments,
            result='{"sorry": true}',
            status="error",
        )

    plan = opened(("p", "pay", {"amount": 3}), ("q", "pay", {"amount": 4}))
    again = loaded(plan.apply_hooks_sync(made).dump_json())
    assert [handled.output for handled in again.handled] == [Receipt(paid=3), {"sorry": True}]
    close(again)


@given(any_text, any_text)
def test_any_text_survives(text: str, extra: str) -> None:
    """Whatever the model sent, lone surrogates included, comes back to the character."""
    said = AssistantTurn(
        text=text,
        tool_calls=[
            ToolMetadata(id=f"c{text}", name="add", arguments=f'{{"a": 1, "b": 2}}{extra[:0]}'),
            ToolMetadata(id="u", name=extra, arguments=text),
        ],
        payload={text: [extra]},
    )
    outcome: Any = Shop.read_turn(said)
    plan = outcome.round.plan()
    before = facts(plan)
    again = loaded(
        plan.dump_json(key=b"k" + text.encode("utf-8", "replace")),
        key=b"k" + text.encode("utf-8", "replace"),
    )
    assert facts(again) == before
    assert again.abort(Session(), "seen").turn == said


def test_python_data_is_sealed_as_json_reads_it() -> None:
    """A payload with tuples and numbered keys is sealed as what JSON makes of it."""
    said = AssistantTurn(
        tool_calls=turn(*adds(1)).tool_calls, payload={"pair": (1, 2), 10: "ten", 9: "nine"}
    )
    outcome: Any = Shop.read_turn(said)
    again = loaded(outcome.round.plan().dump_json())
    turned = again.abort(Session(), "seen").turn
    assert turned.payload == {"pair": [1, 2], "10": "ten", "9": "nine"}


def test_statuses_survive() -> None:
    """A call that was started is still known to be, in another process."""
    plan = opened(*adds(2)).plan()
    plan.pending[0].start()
    again = loaded(plan.dump_json())
    assert [call.status for call in again.in_doubt] == [CallStatus.RUNNING]
    assert [call.status for call in again.pending] == [CallStatus.NEW]
    close(again)


def test_an_approval_survives_and_still_binds() -> None:
    """A call approved before the dump keeps its decision, frozen input and idempotency key."""
    plan = planned()
    decision = approval(plan, "p", decision_id="d")
    plan.resume(decision)
    key = plan.pending[1].idempotency_key
    again = loaded(plan.dump_json())
    call = again.pending[1]
    assert call.id == "p"
    assert call.approval == decision
    assert call.idempotency_key == key
    with pytest.raises(LifecycleError):
        call.input = {"amount": 1}
    assert again.resume(Decision(call_id="p", action="cancel", decision_id="d")) is None
    with pytest.raises(ResumeError):
        again.resume(Decision(call_id="p", action="cancel", decision_id="e"))
    close(again)


def test_a_plan_goes_on_in_another_process() -> None:
    """What one process saved, another decides and resolves, knowing only the tools."""
    text = opened(*adds(2)).apply_hooks_sync(lambda c: c.suspend(SuspendTicket())).dump_json()
    program = """
import sys
from lutum_py import Toolset, tool, tool_fn

@tool_fn
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

class Mine(Toolset):
    plus = tool(add)

plan = Mine.load_plan(sys.stdin.read())
for waiting in plan.suspended:
    plan.resume(waiting.approve())
print([r.result for r in plan.resolve([c.call_sync() for c in plan.pending]).results])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "['0', '1']"


def test_results_are_recorded_before_the_dump() -> None:
    """A call that ended is saved with its result, and only where the plan was told of it."""
    plan = opened(*adds(2)).plan()
    first = plan.pending[0].call_sync()
    with pytest.raises(PlanError, match=r"'c0' of tool `add` is succeeded.*`plan\.record\(outcome"):
        plan.dump_json()
    plan.record(first)
    again = loaded(plan.dump_json())
    assert again.finished == (first,)
    results = done(again.pending)
    assert [result.result for result in again.resolve(results).results] == ["0", "1"]


def test_an_input_that_reads_and_writes_different_names_comes_back() -> None:
    """A field that is read under one name and written under another is no obstacle to saving."""

    class RenamedArgs(ToolInput[str]):
        count: int = Field(validation_alias="Count", serialization_alias="COUNT")

    class Renamed(Toolset):
        renamed = tool(RenamedArgs)

    metadata = ToolMetadata(id="c1", name="renamed", arguments='{"Count":3}')
    outcome = Renamed.read_turn(AssistantTurn(tool_calls=[metadata]))
    assert isinstance(outcome, NeedsTools)
    plan = Renamed.load_plan(outcome.round.plan().dump_json())
    assert input_of(plan.pending[0]).count == 3
    plan.discard()


def test_a_suggestion_is_saved() -> None:
    """What name a model may have meant is told by a loaded plan as well."""
    plan = opened(("u", "ad", "{}")).plan()
    again = loaded(plan.dump_json())
    (issue,) = again.recoverable_tool_call_issues
    assert issue.suggestion == "add"
    again.discard()


def test_a_plan_that_is_saved_after_the_answer_keeps_the_question() -> None:
    """The tool of a call that was answered before the save reads what was asked, as before."""
    plan = opened(("a", "ask", {"question": "?"})).apply_hooks_sync(
        gated(
            SuspendTicket(
                id="s", parameters={"state": "x"}, resume_mode=ResumeMode.PASS_DECISION_TO_TOOL
            )
        )
    )
    ticket = plan.suspended[0].ticket
    plan.resume(approval(plan, "a", result=1))
    again = loaded(plan.dump_json())
    context = ToolContext.for_call(again.pending[0])
    assert context.resume is not None
    assert (context.ticket, context.resume.result) == (ticket, 1)
    close(again)


def _label(
    text: str = "", tags: tuple[str, ...] = (), by: dict[str, list[str]] | None = None
) -> str:
    """Label something."""
    return text


class Labels(Toolset):
    label = tool(tool_fn(name="label")(_label))
    ruled = tool(tool_fn(name="ruled")(_label), rule=lambda: HALVES)


HALVES: dict[str, Any] = {
    "text": "a\ud83d",
    "tags": ("\ude00",),
    "by": {"\ud83d": ["\ud83d\ude00"]},
}
COERCED = {"text": "a\ufffd", "tags": ["\ufffd"], "by": {"\ufffd": ["\U0001f600"]}}


@pytest.mark.parametrize("way", ["assigned", "copied", "by arguments", "ruled"])
def test_half_of_a_pair_that_a_program_puts_in_is_coerced_as_what_a_model_sends(way: str) -> None:
    """No saved text could hold it: what runs here is what runs after loading."""
    name = "ruled" if way == "ruled" else "label"
    outcome = Labels.read_turn(turn(("c1", name, {})))
    assert isinstance(outcome, NeedsTools)
    hooks = Labels.HookSet()

    @hooks.on(Labels.label)
    def put(metadata: ToolMetadata, input: Any) -> Any:
        if way == "copied":
            return RunNormally(input.model_copy(update=HALVES))
        return Labels.label.with_args(**HALVES) if way == "by arguments" else RunNormally(input)

    plan = outcome.round.apply_hooks_sync(hooks)
    if way == "assigned":
        plan.pending[0].input = HALVES
    assert plan.calls[0].arguments == COERCED
    loaded = Labels.load_plan(plan.dump_json())
    assert loaded.calls[0].arguments == COERCED
    assert loaded.pending[0].call_sync().output == "a\ufffd"
    loaded.discard()
