"""Whatever a loop does, every transcript is valid after every step and survives being saved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lutum_py import (
    AssistantTurn,
    Block,
    Complete,
    Reject,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
    TurnRequest,
)
from lutum_py.errors import CommitError, DuplicateToolCallIdError, HookError, RoundClosedError
from lutum_py.testing import ScriptedModel
from tests.profiles import scaled
from tests.round_tools import (
    Receipt,
    Shop,
    add,
    answer,
    check_transcript,
    close,
    forged,
    needs,
    turn,
)

ARGUMENTS = {
    "sum": ("add", {"a": 1, "b": 2}),
    "bad": ("add", {"a": "x"}),
    "broken": ("add", "{"),
    "pay": ("pay", {"amount": 1}),
    "off": ("wipe", {"path": "/"}),
    "unknown": ("nope", "{}"),
}
kinds = st.lists(st.sampled_from(sorted(ARGUMENTS)), min_size=1, max_size=4)
decisions = st.sampled_from(["run", "rewrite", "complete", "reject", "block", "suspend", "raise"])


class Loops(RuleBasedStateMachine):
    """Sessions, the rounds that are open in them, and a model that refuses invalid requests."""

    def __init__(self) -> None:
        super().__init__()
        self.next: AssistantTurn | Exception = AssistantTurn()
        self.model = ScriptedModel(self.respond)
        self.sessions = [Session()]
        self.open: list[tuple[Session, ToolRoundPlan[Any]]] = []
        self.calls = 0

    def respond(self, request: TurnRequest) -> AssistantTurn:
        if isinstance(self.next, Exception):
            raise self.next
        return self.next

    def teardown(self) -> None:
        close(*(plan for _, plan in self.open))

    def session(self, data: st.DataObject) -> Session:
        return data.draw(st.sampled_from(self.sessions))

    def taken(self, data: st.DataObject) -> tuple[Session, ToolRoundPlan[Any]]:
        return self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))

    @rule(data=st.data(), ephemeral=st.booleans(), role=st.sampled_from(["system", "user"]))
    def say(self, data: st.DataObject, ephemeral: bool, role: str) -> None:
        session = self.session(data)
        getattr(session, f"push_{'ephemeral_' if ephemeral else ''}{role}")("words")

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        session = self.session(data)
        branch = session.branch()
        assert branch.transcript == session.transcript
        self.sessions.append(branch)

    @rule(data=st.data())
    def be_answered(self, data: st.DataObject) -> None:
        session = self.session(data)
        self.next = ScriptedModel.text("fine")
        before = len(session.transcript)
        assert answer(session.text_turn(self.model).tools(Shop).collect_sync()) == "fine"
        assert len(session.transcript) == before + 1
        assert len(session.request_items()) == before + 1

    @rule(data=st.data(), kinds=kinds)
    def be_asked_for_tools(self, data: st.DataObject, kinds: list[str]) -> None:
        session = self.session(data)
        before = len(session.transcript)
        calls: list[Any] = []
        for kind in kinds:
            self.calls += 1
            calls.append((f"c{self.calls}", *ARGUMENTS[kind]))
        self.next = turn(*calls, finish_reason="stop")
        tool_round = needs(session.text_turn(self.model).tools(Shop).collect_sync())
        assert len(session.transcript) == before
        self.open.append((session, tool_round.plan()))

    @rule(data=st.data(), duplicate=st.booleans())
    def fail_to_ask(self, data: st.DataObject, duplicate: bool) -> None:
        session = self.session(data)
        before, waiting = len(session.transcript), len(session.request_items())
        same = ("x", "add", {"a": 1})
        self.next = turn(same, same) if duplicate else ConnectionError("down")
        with pytest.raises((DuplicateToolCallIdError, ConnectionError)):
            session.text_turn(self.model).tools(Shop).collect_sync()
        assert (len(session.transcript), len(session.request_items())) == (before, waiting)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), decision=decisions)
    def hook(self, data: st.DataObject, decision: str) -> None:
        at = data.draw(st.integers(0, len(self.open) - 1))
        session, plan = self.open[at]
        hooks = Shop.HookSet()

        @hooks.on(Shop.add)
        def rewrite(metadata: ToolMetadata, input: Any) -> Any:
            if decision == "raise":
                raise OSError("hook")
            answers = {"complete": Complete(0), "reject": Reject("no")}
            made = add.Input(a=9) if decision == "rewrite" else input
            return answers.get(decision, RunNormally(made))

        @hooks.gate(Shop.pay)
        def gate(metadata: ToolMetadata, input: Any) -> Any:
            answers = {"block": Block("no"), "suspend": Suspend(SuspendTicket())}
            return answers.get(decision)

        counts = [len(plan.pending), len(plan.handled), len(plan.rejected), len(plan.suspended)]
        try:
            plan = plan.apply_hooks_sync(hooks)
        except HookError:
            assert decision == "raise"
        again = [len(plan.pending), len(plan.handled), len(plan.rejected), len(plan.suspended)]
        assert sum(again) == sum(counts)
        self.open[at] = (session, plan)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), fault=st.sampled_from(["extra", "missing", "twice"]))
    def fail_to_commit(self, data: st.DataObject, fault: str) -> None:
        session, plan = data.draw(st.sampled_from(self.open))
        results = [forged(call.metadata) for call in plan.pending]
        if fault == "missing" and results:
            results.pop()
        elif fault == "twice" and results:
            results.append(results[0])
        else:
            results.append(forged(ToolMetadata(id="stray", name="add", arguments="{}")))
        before = session.transcript.copy()
        with pytest.raises(CommitError):
            plan.commit(session, results)
        assert session.transcript == before

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        session, plan = data.draw(st.sampled_from(self.open))
        order = data.draw(st.permutations(plan.pending))
        self.open.remove((session, plan))
        before = len(session.transcript)
        results = []
        for call in order:
            if call.status.is_terminal:
                results.append(forged(call.metadata))
            elif call.name == "pay":
                results.append(call.complete(Receipt(paid=1)))
            else:
                results.append(call.call_sync())
        if plan.suspended:
            with pytest.raises(CommitError, match="is suspended"):
                plan.commit(session, results)
            assert len(session.transcript) == before
            self.open.append((session, plan))
            return
        committed = plan.commit(session, results)
        assert session.transcript[before:] == committed.items
        with pytest.raises(RoundClosedError):
            plan.commit(session, results)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        session, plan = self.taken(data)
        committed = plan.abort(session, "enough")
        assert session.transcript[-1] == committed.results[-1]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        session, plan = self.taken(data)
        before = len(session.transcript)
        plan.discard()
        assert len(session.transcript) == before

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def save_and_load(self, data: st.DataObject) -> None:
        session, plan = self.taken(data)
        self.open.append((session, Shop.load_plan(plan.dump_json())))

    @invariant()
    def every_transcript_is_valid(self) -> None:
        for session in self.sessions:
            check_transcript(session.transcript)


TestLoops = Loops.TestCase
TestLoops.settings = settings(max_examples=scaled(60), stateful_step_count=30)
