"""The laws of a saved plan: it goes on where it was, and what was changed is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from lutum_py import (
    AssistantTurn,
    Block,
    CallStatus,
    Complete,
    Decision,
    NeedsTools,
    Reject,
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
from lutum_py._text.json import canonical_json
from lutum_py.errors import LifecycleError, PlanError, ResumeError, RoundClosedError
from tests.round_tools import (
    Receipt,
    Shop,
    add,
    adds,
    any_text,
    check_transcript,
    close,
    done,
    opened,
    turn,
)

CALLS = (
    *adds(3),
    ("p", "pay", {"amount": 20, "to": ["ann"]}),
    ("g", "pay", {"amount": 1}),
    ("a", "ask", {"question": "?"}),
    ("u", "nope", "{}"),
    ("b", "add", {"a": "x"}),
)


def hooks() -> Any:
    made = Shop.HookSet()

    @made.on(Shop.add)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        answers = {"c0": Complete(40), "c1": Reject("no")}
        return answers.get(metadata.id, RunNormally(add.Input(a=input.a, b=7)))

    @made.gate(Shop.pay)
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        if metadata.id == "g":
            return Block("never")
        ticket = SuspendTicket(
            id="s",
            action="pay",
            message="Pay?",
            parameters={"to": list(input.to)},
            response_schema={"type": ["null", "boolean"]},
            resume_mode="pass_decision_to_tool",  # type: ignore[arg-type]
        )
        return Suspend(ticket)

    return made


def planned() -> ToolRoundPlan[Any]:
    """A plan with a call in every place."""
    return opened(*CALLS).apply_hooks_sync(hooks())


def dumped(**options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(planned().dump_json(**options))
    return data


def loaded(data: Any, toolset: type[Toolset] = Shop, **options: Any) -> ToolRoundPlan[Any]:
    text = data if isinstance(data, str) else json.dumps(data)
    plan: ToolRoundPlan[Any] = toolset.load_plan(text, **options)
    return plan


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """The data under a new seal, as an editor without a key could make it."""

    def seal(part: dict[str, Any]) -> str:
        rest = {name: value for name, value in part.items() if name != "seal"}
        return hashlib.sha256(canonical_json(rest).encode()).hexdigest()

    for entry in data["calls"]:
        entry["seal"] = seal(entry)
    data["seal"] = {"kind": "sha256", "value": seal(data)}
    return data


def entry(data: dict[str, Any], call_id: str) -> dict[str, Any]:
    return next(each for each in data["calls"] if each["id"] == call_id)


def facts(plan: ToolRoundPlan[Any]) -> dict[str, Any]:
    """All that a plan knows."""

    def call(each: Any) -> Any:
        return (each.metadata, each.input, each.status, each.mended, each.digest, each.approval)

    return {
        "turn": plan._state.turn,
        "started": plan._state._started,
        "pending": [call(each) for each in plan.pending],
        "handled": [(h.metadata, h.input, h.output, h.result) for h in plan.handled],
        "rejected": [(r.metadata, r.call.input, r.reason, r.source) for r in plan.rejected],
        "suspended": [(call(s.call), s.ticket, s.digest, s.was_started) for s in plan.suspended],
        "issues": plan.recoverable_tool_call_issues,
        "decisions": plan.decisions,
        "resumed": plan.resumed,
    }


@pytest.mark.parametrize("key", [None, b"secret"])
def test_a_plan_comes_back_whole(key: bytes | None) -> None:
    """Everything that a plan knows survives being saved and loaded, with a key or without."""
    plan = planned()
    plan.resume(Decision(call_id="p", action="resume", result=False, decision_id="d"))
    before = facts(plan)
    again = loaded(plan.dump_json(key=key), key=key)
    assert facts(again) == before
    assert [call.input.b for call in again.pending if call.name == "add"] == [7]
    text = again.dump_json(key=key)
    assert loaded(text, key=key).dump_json(key=key) == text


def test_a_suspended_plan_comes_back_whole() -> None:
    """A suspended call keeps its ticket, its digest and its frozen input."""
    plan = planned()
    before = facts(plan)
    again = loaded(plan.dump_json())
    assert facts(again) == before
    with pytest.raises(LifecycleError, match="frozen"):
        again.suspended[0].call.input = {"amount": 1}
    close(again)


def test_a_loaded_plan_goes_on() -> None:
    """A plan that was loaded is decided, run and committed as it would have been before."""
    again = loaded(planned().dump_json())
    outcome = again.resume(Decision(call_id="p", action="resume", result=True, decision_id="d"))
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
        id="c2", name="add", arguments='{"a":2,"b":0}', result="9"
    )
    check_transcript(session.transcript)


def test_a_dump_closes_the_round() -> None:
    """A saved plan lives on only where it is loaded, so that nothing can be committed twice."""
    plan = planned()
    plan.dump_json()
    with pytest.raises(RoundClosedError, match="already dumped"):
        plan.resume(Decision(call_id="p", action="resume"))


def test_both_proposed_and_effective_arguments_are_kept() -> None:
    """The text has what the model sent and what would run, each schema's digest, and a version."""
    data = dumped()
    assert (data["format"], data["version"]) == ("lutum_py.plan", 1)
    proposed = {item["id"]: item["arguments"] for item in data["turn"]["items"]}
    assert proposed["c2"] == '{"a":2,"b":0}'
    assert entry(data, "c2")["input"] == {"a": 2, "b": 7}
    assert entry(data, "c2")["schema_digest"] == add.definition.digest
    assert entry(data, "p")["digest"].startswith("sha256:")
    assert data["seal"]["kind"] == "sha256"
    assert dumped(key=b"k")["seal"]["kind"] == "hmac-sha256"


def test_neither_text_nor_digest_names_a_module() -> None:
    """The same toolset under another module's name loads the plan, and the text names none."""
    text = planned().dump_json()
    assert "round_tools" not in text
    assert "lutum_py." not in text.replace("lutum_py.plan", "")
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


@pytest.mark.parametrize("where", ["pending", "suspended"])
def test_a_changed_schema_is_refused(where: str) -> None:
    """A tool whose schema changed since is named, with both digests."""
    plan = opened(*adds(1)).plan()
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


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "pending input": (lambda d: entry(d, "c2")["input"].update(a=99), "of call 'c2'"),
    "suspended input": (lambda d: entry(d, "p")["input"].update(amount=2000), "of call 'p'"),
    "ticket": (lambda d: entry(d, "p")["ticket"].update(message="Pay 1?"), "of call 'p'"),
    "result": (lambda d: entry(d, "c0")["result"].update(result="41"), "of call 'c0'"),
    "state": (lambda d: entry(d, "g").update(state="pending"), "of call 'g'"),
    "two": (
        lambda d: (entry(d, "p").update(mended=["x"]), entry(d, "c0").update(input={})),
        "of call 'p', 'c0'",
    ),
    "proposed": (
        lambda d: d["turn"]["items"][0].update(arguments="{}"),
        "do not match its seal",
    ),
    "started": (lambda d: d.update(started=["p"]), "do not match its seal"),
    "approved": (
        lambda d: d["resumed"].append(
            {"call_id": "p", "action": "resume", "decision_id": "d", "result": None}
        ),
        "do not match its seal",
    ),
    "call gone": (lambda d: d["calls"].pop(0), "do not match its seal"),
    "seal": (lambda d: d["seal"].update(value="é"), "do not match its seal"),
}


@pytest.mark.parametrize("key", [None, b"secret"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_plan_is_refused(edit: str, key: bytes | None) -> None:
    """Any edit is found, and the call that was edited is named; nothing of the plan is used."""
    change, message = EDITS[edit]
    data = dumped(key=key)
    change(data)
    with pytest.raises(PlanError, match=f"edited after it was saved.*{message}"):
        loaded(data, key=key)


@given(st.data())
def test_any_edit_is_found(data: st.DataObject) -> None:
    """Whichever value of the text is changed, the plan is refused."""
    text = PLAN_TEXT
    places = list(leaves(json.loads(text)))
    path = data.draw(st.sampled_from(places))
    changed = json.loads(text)
    place = changed
    for step in path[:-1]:
        place = place[step]
    new = data.draw(st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3))
    if canonical_json(place[path[-1]]) == canonical_json(new):
        new = "another value"
    place[path[-1]] = new
    with pytest.raises(PlanError):
        loaded(changed)


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Any:
    steps = data.items() if isinstance(data, dict) else enumerate(data)
    for step, part in steps:
        if isinstance(part, dict | list) and part:
            yield from leaves(part, (*path, step))
        else:
            yield (*path, step)


PLAN_TEXT = planned().dump_json()


def test_an_edit_under_a_new_seal_is_still_found() -> None:
    """Without a key anyone can seal anew; arguments that were not approved are refused even so."""
    for call_id in ("p", "c2"):
        data = dumped()
        changed = {"amount": 2000, "to": []} if call_id == "p" else {"a": 99, "b": 7}
        entry(data, call_id)["input"] = changed
        with pytest.raises(PlanError, match=f"arguments of call '{call_id}' of tool `.*` were edi"):
            loaded(sealed(data))


RESEALED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "unfit input": (lambda d: entry(d, "p").update(input={"amount": "x"}), "no longer fits tool"),
    "endless input": (lambda d: entry(d, "c0").update(input=None), "no longer fits tool `add`"),
    "unknown state": (lambda d: entry(d, "p").update(state="lost"), "'lost' is none that"),
    "unknown call": (lambda d: entry(d, "p").update(id="zz"), "'zz' is no call of the turn"),
    "call twice": (lambda d: d["calls"].append(d["calls"][0]), "is there twice"),
    "call missing": (lambda d: d["calls"].pop(), "not the calls of the turn"),
    "shared id": (
        lambda d: d["turn"]["items"].append(d["turn"]["items"][0]),
        "not the calls of the turn",
    ),
    "status": (lambda d: entry(d, "p").update(status="asleep"), "'asleep' is none of the known"),
    "mended": (lambda d: entry(d, "p").update(mended=[3]), "mended: expected texts only"),
    "mode": (lambda d: entry(d, "p")["ticket"].update(resume_mode="x"), "'x' is none of"),
    "source": (lambda d: entry(d, "c1").update(source="fate"), "'fate' is none of"),
    "record": (lambda d: d["decisions"][0].update(phase="x"), "phase: 'x' is none of"),
    "action": (
        lambda d: d["resumed"].append({"call_id": "p", "action": "x", "decision_id": "d"}),
        "action: 'x' is none of",
    ),
    "turn": (lambda d: d.update(turn=[]), r"\$\.turn: expected dict"),
    "reason": (lambda d: entry(d, "u").update(reason="mood"), "'mood' is none of"),
}


@pytest.mark.parametrize("case", RESEALED)
def test_nonsense_under_a_good_seal_is_told_by_its_place(case: str) -> None:
    """A text that is sealed but makes no sense is told by its place, and opens no round."""
    change, message = RESEALED[case]
    data = dumped()
    change(data)
    with pytest.raises(PlanError, match=message):
        loaded(sealed(data))


def test_the_key_has_to_be_the_same() -> None:
    """A wrong key, a missing one and one too many are told apart."""
    with_key, without = dumped(key=b"secret"), dumped()
    with pytest.raises(PlanError, match="does not fit this key: it was saved with another one"):
        loaded(with_key, key=b"guess")
    with pytest.raises(PlanError, match=r"saved with a key\. Pass the same `key=`"):
        loaded(with_key)
    with pytest.raises(PlanError, match="saved without a key, so it cannot be authenticated"):
        loaded(without, key=b"secret")
    with_key["seal"]["kind"] = "crc32"
    with pytest.raises(PlanError, match=r"\$\.seal\.kind: 'crc32' is none of the known"):
        loaded(with_key)
    with pytest.raises(ValueError, match="The key is empty"):
        loaded(without, key=b"")
    plan = planned()
    with pytest.raises(ValueError, match="The key is empty"):
        plan.dump_json(key=b"")
    close(plan)


def test_an_editor_without_the_key_cannot_seal() -> None:
    """Under a key, a text that was sealed without it is refused."""
    data = dumped(key=b"secret")
    entry(data, "p")["ticket"]["message"] = "Pay 1?"
    with pytest.raises(PlanError, match="saved without a key"):
        loaded(sealed(data), key=b"secret")
    forged = sealed(data)
    forged["seal"]["kind"] = "hmac-sha256"
    with pytest.raises(PlanError, match="does not fit this key"):
        loaded(forged, key=b"secret")


FOREIGN = {
    "": "not JSON",
    PLAN_TEXT[: len(PLAN_TEXT) // 2]: "not JSON",
    "[]": r"it is \[\]",
    '{"format": "lutum_py.transcript", "version": 1}': "`format` is 'lutum_py.transcript'",
    PLAN_TEXT.replace('"version":1', '"version":2'): "format version 2; this release reads 1",
    '{"format": "lutum_py.plan", "version": 1}': r"\$\.seal: it is missing",
    '{"format": "lutum_py.plan", "version": 1, "seal": {"kind": "sha256", "value": "0"}}': (
        r"\$\.calls: expected list, got None"
    ),
}


@pytest.mark.parametrize("text", FOREIGN, ids=range(len(FOREIGN)))
def test_what_is_no_plan_is_refused(text: str) -> None:
    """Foreign, cut and future texts are told apart."""
    with pytest.raises(PlanError, match=FOREIGN[text]):
        loaded(text)


def test_a_transcript_is_no_plan() -> None:
    """A saved transcript is refused as a plan, by its format."""
    with pytest.raises(PlanError, match=r"`format` is 'lutum_py\.transcript'"):
        loaded(Session().transcript.dump_json())


def test_what_is_not_json_is_not_saved() -> None:
    """A ticket, payload or decision that is no JSON data is an error, and the plan stays open."""
    ticket = SuspendTicket(parameters={"who": object()})
    plan = opened(*adds(1)).apply_hooks_sync(lambda call: call.suspend(ticket))
    with pytest.raises(PlanError, match="The plan holds something that is not JSON data"):
        plan.dump_json()
    close(plan)


def test_an_input_without_json_form_is_not_saved() -> None:
    """An input that has no JSON form is an error, and the plan stays open."""

    @tool_fn
    def keep(value: Any) -> None:
        """Keep a value."""

    class Attic(Toolset):
        keep_ = tool(keep)

    attic = Attic.HookSet()
    attic.on(Attic.keep_)(lambda metadata, input: RunNormally(keep.Input(value=object())))
    plan = opened(("k", "keep", {"value": 1}), toolset=Attic).apply_hooks_sync(attic)
    with pytest.raises(PlanError, match=r"no JSON form"):
        plan.dump_json()
    close(plan)


def test_an_input_changed_while_it_waits_is_not_saved() -> None:
    """A plan whose suspended input was changed in place is not saved as if nothing were."""
    plan = planned()
    plan.suspended[0].call._input.amount = 2000
    with pytest.raises(
        PlanError, match="call 'p' of tool `pay` was changed while it was suspended"
    ):
        plan.dump_json()
    close(plan)


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
    close(again)


def test_python_data_is_sealed_as_json_reads_it() -> None:
    """A payload with tuples and numbered keys is sealed as what JSON makes of it."""
    said = AssistantTurn(
        tool_calls=turn(*adds(1)).tool_calls, payload={"pair": (1, 2), 10: "ten", 9: "nine"}
    )
    outcome: Any = Shop.read_turn(said)
    again = loaded(outcome.round.plan().dump_json())
    assert again._state.turn.payload == {"pair": [1, 2], "10": "ten", "9": "nine"}
    close(again)


def test_statuses_survive() -> None:
    """A call that was started is still known to be, in another process."""
    plan = opened(*adds(2)).plan()
    plan.pending[0].move_to(CallStatus.RUNNING)
    again = loaded(plan.dump_json())
    assert [call.status for call in again.pending] == [CallStatus.RUNNING, CallStatus.NEW]
    close(again)


def test_an_approval_survives_and_still_binds() -> None:
    """A call approved before the dump keeps its decision, frozen input and idempotency key."""
    plan = planned()
    plan.resume(Decision(call_id="p", action="resume", decision_id="d"))
    key = plan.pending[1].idempotency_key
    again = loaded(plan.dump_json())
    call = again.pending[1]
    assert call.id == "p"
    assert call.approval == Decision(call_id="p", action="resume", decision_id="d")
    assert call.idempotency_key == key
    with pytest.raises(LifecycleError, match="frozen"):
        call.input = {"amount": 1}
    assert again.resume(Decision(call_id="p", action="cancel", decision_id="d")) is None
    with pytest.raises(ResumeError, match="not suspended"):
        again.resume(Decision(call_id="p", action="cancel", decision_id="e"))
    close(again)


def test_a_plan_goes_on_in_another_process() -> None:
    """What one process saved, another decides and resolves, knowing only the tools."""
    text = opened(*adds(2)).apply_hooks_sync(lambda c: c.suspend(SuspendTicket())).dump_json()
    program = """
import sys
from lutum_py import Decision, Toolset, tool, tool_fn

@tool_fn
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

class Mine(Toolset):
    plus = tool(add)

plan = Mine.load_plan(sys.stdin.read())
for waiting in plan.remaining():
    plan.resume(Decision(call_id=waiting.call.id, action="resume", digest=waiting.digest))
print([r.result for r in plan.resolve([c.call_sync() for c in plan.pending]).results])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "['0', '1']"


def test_done_results_are_given_after_loading() -> None:
    """Results that were made before the dump commit to the loaded plan: they carry the raw call."""
    plan = opened(*adds(2)).plan()
    first = plan.pending[0].call_sync()
    again = loaded(plan.dump_json())
    results = [first, *done(again.pending[1:])]
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
    assert plan.pending[0].input.count == 3
    plan.discard()
