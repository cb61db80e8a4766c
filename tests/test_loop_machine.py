"""Whatever a loop does, with whatever is said in it, each conversation can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    Block,
    Complete,
    Decision,
    Message,
    Reject,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    Transcript,
    TurnRequest,
    execution,
    tool,
    tool_fn,
)
from lutum_py.dialects import DIALECTS
from lutum_py.errors import (
    CommitError,
    DialectError,
    DuplicateToolCallIdError,
    HookError,
    InvalidValueError,
    LutumError,
    MisuseError,
    ResumeError,
    RoundClosedError,
    ToolConstraintError,
    ToolDefinitionError,
    ToolOutputError,
)
from lutum_py.sinks import escape_unprintable
from lutum_py.testing import ScriptedClient, ScriptedModel, assert_transcript_valid
from lutum_py.turns import AssistantItem, ReasoningItem, TextItem, ToolCallItem
from tests import hostile
from tests.profiles import scaled
from tests.round_tools import (
    PayArgs,
    Receipt,
    Shop,
    add,
    answer,
    ask,
    check_transcript,
    close,
    forged,
    needs,
    shout,
    turn,
    wipe,
)


@tool_fn
def echo(value: Any = None, a: Any = None) -> Any:
    """Give back what came."""
    return a if value is None else value


@tool_fn
def fail(value: str) -> None:
    """Fail in these words."""
    raise OSError(value)


class Desk(Toolset):
    """The tools of the shop, and two that say what they are told to."""

    add = tool(add)
    shout = tool(shout)
    pay = tool(PayArgs)
    ask = tool(ask)
    wipe = tool(wipe, off=True)
    echo = tool(echo)
    fail = tool(fail)


FIT = {
    "add": '{"a":1,"b":2}',
    "pay": '{"amount":1}',
    "ask": '{"question":"Why?"}',
    "shout": '{"text":"a"}',
    "echo": '{"value":1}',
    "fail": '{"value":"\ude00\\u001b[2K"}',
}
MODULES = {name: import_module(path) for name, path in DIALECTS.items()}


def written(turn: AssistantTurn, dialect: str, number: int) -> dict[str, Any]:
    """A turn as the response of a provider to its so many-th request."""
    client = ScriptedClient([turn], dialect, check=False)
    client.requests.extend({} for _ in range(number - 1))
    return client.create()


ways = st.sampled_from(["by hand", *MODULES])
modes = st.sampled_from([*ResumeMode])
decisions = st.sampled_from(["run", "rewrite", "complete", "reject", "block", "suspend", "raise"])
_RUN = frozenset({"add", "ask", "echo", "fail"})
LONGEST = 40
"""How many items a session may have before another one takes its place: a step takes as long."""


@contextmanager
def may_refuse(*kinds: type[LutumError]) -> Iterator[None]:
    """Let a step be refused, in words that can be shown to anyone."""
    try:
        yield
    except kinds as error:
        text = str(error)
        text.encode()
        assert escape_unprintable(text, "\n") == text


@dataclass(eq=False)
class Open:
    """A round that is open: where it goes, and what is known of its calls beside the plan."""

    session: Session
    plan: ToolRoundPlan[Any]
    toolset: type[Toolset]
    place: int
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])

    @property
    def is_there(self) -> bool:
        """Whether its conversation still ends where it was opened."""
        return len(self.session.transcript) == self.place

    @property
    def waiting(self) -> list[AnyToolCall]:
        """The calls that have no result yet."""
        return [call for call in self.plan.pending if call.id not in self.results]


class Loops(RuleBasedStateMachine):
    """Sessions, the rounds that are open in them, and a model that refuses invalid requests."""

    def __init__(self) -> None:
        super().__init__()
        self.next: AssistantTurn | Exception = AssistantTurn()
        self.model = ScriptedModel(self.respond)
        self.sessions = [Session()]
        self.toolsets: list[type[Toolset]] = [Desk]
        self.open: list[Open] = []
        self.calls = 0
        self.seen: dict[int, Any] = {}

    def respond(self, request: TurnRequest) -> AssistantTurn:
        if isinstance(self.next, Exception):
            raise self.next
        return self.next

    def teardown(self) -> None:
        close(*(each.plan for each in self.open))

    def session(self, data: st.DataObject) -> Session:
        return data.draw(st.sampled_from(self.sessions))

    def toolset(self, data: st.DataObject) -> type[Toolset]:
        return data.draw(st.sampled_from(self.toolsets))

    def round(self, data: st.DataObject) -> Open:
        return self.open[data.draw(st.integers(0, len(self.open) - 1))]

    def taken(self, data: st.DataObject) -> Open:
        return self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))

    def said(self, made: AssistantTurn, way: str) -> AssistantTurn | None:
        """Give a turn as it was made, or as a provider's response says it; None if refused."""
        self.calls += 1
        with may_refuse(DialectError):
            if way == "by hand":
                return made
            decoded: AssistantTurn = MODULES[way].decode(written(made, way, self.calls))
            return decoded
        return None

    # Declaring.

    @precondition(lambda self: len(self.toolsets) < 4)
    @rule(name=hostile.names, key=hostile.names, text=hostile.texts, as_schema=st.booleans())
    def declare(self, name: str, key: str, text: str, as_schema: bool) -> None:
        made: Any
        with may_refuse(ToolDefinitionError, InvalidValueError):
            if as_schema:
                schema = {"type": "object", "properties": {key: {"description": text}}}
                definition = ToolDef.from_json_schema(
                    name=name, input_schema=schema, description=text
                )
                made = Toolset.from_definitions("Made", [definition, *Desk.definitions()])
            else:
                meta: Any = type(Toolset)
                made = meta("Made", (Toolset,), {name: tool(echo), "add": tool(add)})
            for dialect in MODULES.values():
                encoded(dialect.tools(made))
            self.toolsets.append(made)

    # Saying and being answered.

    @rule(
        data=st.data(),
        text=hostile.texts,
        ephemeral=st.booleans(),
        role=st.sampled_from(["system", "developer", "user"]),
    )
    def say(self, data: st.DataObject, text: str, ephemeral: bool, role: str) -> None:
        session = self.session(data)
        with may_refuse(InvalidValueError):
            getattr(session, f"push_{'ephemeral_' if ephemeral else ''}{role}")(text)

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        session = self.session(data)
        branch = session.branch()
        assert branch.transcript == session.transcript
        self.sessions.append(branch)

    @rule(data=st.data())
    def load_the_transcript(self, data: st.DataObject) -> None:
        session = self.session(data)
        loaded = Transcript.load_json(session.transcript.dump_json())
        assert loaded == session.transcript
        self.sessions[self.sessions.index(session)] = again = Session(loaded)
        for each in self.open:
            if each.session is session:
                each.session = again

    @rule(data=st.data(), text=hostile.texts, thought=hostile.texts, way=ways)
    def be_answered(self, data: st.DataObject, text: str, thought: str, way: str) -> None:
        session = self.session(data)
        said = self.said(AssistantTurn(items=[ReasoningItem(thought), TextItem(text)]), way)
        if said is None:
            return
        self.next = said
        before = len(session.transcript)
        asked = session.text_turn(self.model).tools(self.toolset(data))
        if data.draw(st.booleans()):
            stream = asked.stream_sync()
            for _ in stream:
                pass
            assert answer(stream.outcome) == said.text
        else:
            assert answer(asked.collect_sync()) == said.text
        assert len(session.transcript) == before + 1
        assert len(session._request_items()) == before + 1

    @precondition(lambda self: len(self.open) < 6)
    @rule(data=st.data(), way=ways, count=st.integers(1, 4))
    def be_asked_for_tools(self, data: st.DataObject, way: str, count: int) -> None:
        session, toolset = self.session(data), self.toolset(data)
        calls: list[ToolMetadata] = []
        for _ in range(count):
            self.calls += 1
            name = data.draw(st.sampled_from(sorted(FIT)))
            id, arguments = f"c{self.calls}", FIT[name]
            match data.draw(st.integers(0, 5)):
                case 0:
                    id += data.draw(hostile.texts)
                case 1:
                    name = data.draw(hostile.names)
                case 2:
                    arguments = data.draw(hostile.arguments)
            calls.append(ToolMetadata(id=id, name=name, arguments=arguments))
        text = data.draw(hostile.texts)
        items: list[AssistantItem] = [TextItem(text), *map(ToolCallItem, calls)]
        said = self.said(AssistantTurn(items=items, finish_reason="stop"), way)
        if said is None:
            return
        self.next = said
        before = len(session.transcript)
        plan = needs(session.text_turn(self.model).tools(toolset).collect_sync()).plan()
        assert len(session.transcript) == before
        self.open.append(Open(session, plan, toolset, before))

    @rule(data=st.data(), duplicate=st.booleans())
    def fail_to_ask(self, data: st.DataObject, duplicate: bool) -> None:
        session = self.session(data)
        before, waiting = len(session.transcript), len(session._request_items())
        same = ("x", "add", {"a": 1})
        self.next = turn(same, same) if duplicate else ConnectionError("down")
        with pytest.raises((DuplicateToolCallIdError, ConnectionError)):
            session.text_turn(self.model).tools(Shop).collect_sync()
        assert (len(session.transcript), len(session._request_items())) == (before, waiting)

    @rule(data=st.data(), name=hostile.names)
    def ask_for_a_tool_by_name(self, data: st.DataObject, name: str) -> None:
        session, toolset = self.session(data), self.toolset(data)
        with may_refuse(ToolConstraintError):
            asked = session.text_turn(self.model).tools(toolset).require_tool(name)
            request = asked.prepare().request
            for dialect in MODULES.values():
                encoded(dialect.tool_choice(request.tool_choice))

    # Deciding.

    @precondition(lambda self: self.open)
    @rule(data=st.data(), decision=decisions, text=hostile.texts, value=hostile.data, mode=modes)
    def hook(
        self, data: st.DataObject, decision: str, text: str, value: str, mode: ResumeMode
    ) -> None:
        known = self.round(data)
        if known.toolset is not Desk:
            return
        plan, hooks = known.plan, Desk.HookSet()

        @hooks.on(Desk.add)
        def rewrite(metadata: ToolMetadata, input: Any) -> Any:
            if decision == "raise":
                raise OSError(text)
            answers = {"complete": Complete(0), "reject": Reject(text)}
            made = add.Input(a=9) if decision == "rewrite" else input
            return answers.get(decision, RunNormally(made))

        @hooks.on(Desk.echo)
        def replace(metadata: ToolMetadata, input: Any) -> Any:
            return Complete(hostile.DATA[value]) if decision == "complete" else RunNormally(input)

        @hooks.gate()
        def gate(metadata: ToolMetadata, input: Any) -> Any:
            if metadata.name not in ("pay", "ask", "echo"):
                return None
            ticket = SuspendTicket(id=text, action=text, message=text, resume_mode=mode)
            return {"block": Block(text), "suspend": Suspend(ticket)}.get(decision)

        counts = sum(map(len, (plan.pending, plan.handled, plan.rejected, plan.suspended)))
        with may_refuse(HookError):
            known.plan = plan = plan.apply_hooks_sync(hooks)
        again = sum(map(len, (plan.pending, plan.handled, plan.rejected, plan.suspended)))
        assert again == counts

    @precondition(lambda self: any(each.plan.suspended for each in self.open))
    @rule(data=st.data(), value=hostile.data, text=hostile.texts, is_cancelled=st.booleans())
    def decide(self, data: st.DataObject, value: str, text: str, is_cancelled: bool) -> None:
        known = data.draw(st.sampled_from([e for e in self.open if e.plan.suspended]))
        plan = known.plan
        waiting = data.draw(st.sampled_from(plan.suspended))
        decision = Decision(
            call_id=waiting.call.id,
            action="cancel" if is_cancelled else "resume",
            result=hostile.DATA[value],
            reason=text,
            digest=waiting.digest,
            ticket=waiting.ticket.id,
        )
        before = len(plan.suspended)
        with may_refuse(ResumeError):
            assert plan.resume(decision) is not None
            assert value not in hostile.NO_JSON
            assert len(plan.suspended) == before - 1
            assert plan.resume(decision) is None
            return
        assert len(plan.suspended) == before

    # Running.

    def run(self, call: AnyToolCall, toolset: type[Toolset]) -> ToolResult:
        """Run a call, or answer it where its tool cannot be run from here."""
        if toolset is not Desk:
            return call.fail("not here")
        if call.name == "pay":
            return call.complete(Receipt(paid=1))
        if call.name not in _RUN:
            return call.complete("A")
        outcome = execution.execute_sync(call)
        assert isinstance(outcome, ToolResult)
        return outcome

    @precondition(lambda self: any(each.waiting for each in self.open))
    @rule(
        data=st.data(),
        how=st.sampled_from(["run", "complete", "fail", "reject", "suspend"]),
        text=hostile.texts,
        value=hostile.data,
        is_recorded=st.booleans(),
    )
    def begin(
        self, data: st.DataObject, how: str, text: str, value: str, is_recorded: bool
    ) -> None:
        known = data.draw(st.sampled_from([each for each in self.open if each.waiting]))
        call = data.draw(st.sampled_from(known.waiting))
        if how == "suspend":
            waits = call.suspend(SuspendTicket(message=text, parameters={"of": text}))
            known.plan.suspend(waits)
            return
        result: ToolResult | None = None
        with may_refuse(ToolOutputError):
            if how == "complete":
                result = call.complete(hostile.DATA[value], message=text)
            elif how == "fail":
                result = call.fail(text, code=text)
            elif how == "reject":
                result = call.reject(text).result
            else:
                result = self.run(call, known.toolset)
        if result is not None and is_recorded:
            known.plan.record(result)
            assert result in known.plan.finished
        elif result is not None:
            known.results[call.id] = result

    # Ending.

    @precondition(lambda self: self.open)
    @rule(data=st.data(), fault=st.sampled_from(["extra", "missing", "twice"]))
    def fail_to_commit(self, data: st.DataObject, fault: str) -> None:
        known = self.round(data)
        results = [forged(call.metadata) for call in known.plan.pending]
        if fault == "missing" and results:
            results.pop()
        elif fault == "twice" and results:
            results.append(results[0])
        else:
            results.append(forged(ToolMetadata(id="stray", name="add", arguments="{}")))
        before = known.session.transcript.copy()
        with pytest.raises(CommitError if known.is_there else MisuseError):
            known.plan.commit(known.session, results)
        assert known.session.transcript == before

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        known = self.round(data)
        session, plan = known.session, known.plan
        for call in known.waiting:
            known.results[call.id] = self.run(call, known.toolset)
        results = data.draw(st.permutations(list(known.results.values())))
        before = len(session.transcript)
        if not known.is_there:
            with pytest.raises(MisuseError):
                plan.commit(session, results)
            assert len(session.transcript) == before
            self.open.remove(known)
            plan.discard()
            return
        if plan.suspended:
            with pytest.raises(CommitError, match="is suspended"):
                plan.commit(session, results)
            assert len(session.transcript) == before
            return
        self.open.remove(known)
        committed = plan.commit(session, results)
        assert session.transcript[before:] == committed.items
        with pytest.raises(RoundClosedError):
            plan.commit(session, results)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), reason=hostile.texts)
    def abort(self, data: st.DataObject, reason: str) -> None:
        known = self.taken(data)
        if not known.is_there:
            with pytest.raises(MisuseError):
                known.plan.abort(known.session, reason)
            known.plan.discard()
            return
        committed = known.plan.abort(known.session, reason, known.results.values())
        assert known.session.transcript[-1] == committed.results[-1]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        known = self.taken(data)
        before = len(known.session.transcript)
        known.plan.discard()
        assert len(known.session.transcript) == before

    @precondition(lambda self: self.open)
    @rule(data=st.data(), key=st.sampled_from([None, b"k"]))
    def save_and_load(self, data: st.DataObject, key: bytes | None) -> None:
        known = self.round(data)
        for result in known.results.values():
            known.plan.record(result)
        known.results.clear()
        known.plan = known.toolset.load_plan(known.plan.dump_json(key=key), key=key)

    # Looking, and repairing.

    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        session = self.session(data)
        shown: list[Any] = [session, session.transcript, *session.transcript[-3:]]
        for each in self.open[:2]:
            shown += [each.plan, *each.plan.pending, *each.plan.suspended]
        for each in shown:
            repr(each).encode()
            assert escape_unprintable(repr(each), "\n") == repr(each)
            if hasattr(each, "__rich__"):
                each.__rich__().plain.encode()

    @rule(data=st.data(), name=st.sampled_from([*MODULES]))
    def fix(self, data: st.DataObject, name: str) -> None:
        session, dialect = self.session(data), MODULES[name]
        if not begins_with_the_user(session):
            return
        body = dialect.encode_request(TurnRequest(items=session._request_items()))
        assert dialect.repair(body) == (body, [])
        said = next(body[key] for key in ("messages", "input", "contents") if key in body)
        del said[data.draw(st.integers(0, len(said) - 1))]
        repaired, _ = dialect.repair(body)
        encoded(repaired)
        assert not dialect.check(repaired)

    # The laws.

    @invariant()
    def every_conversation_can_go_on(self) -> None:
        for index, session in enumerate(self.sessions):
            state = (len(session.transcript), session._request_items().ephemeral)
            if self.seen.get(id(session)) == state:
                continue
            self.seen[id(session)] = state
            check_transcript(session.transcript)
            assert_transcript_valid(session)
            request = TurnRequest(items=session._request_items(), tools=Desk.definitions())
            for name, dialect in MODULES.items():
                if begins_with_the_user(session):
                    body = dialect.encode_request(request)
                    encoded(body)
                    broken = [str(each) for each in dialect.check(body)]
                    assert not broken, f"{name}: {broken}"
                else:
                    with may_refuse(InvalidValueError):
                        encoded(dialect.encode_request(request))
            if len(session.transcript) > LONGEST:
                self.sessions[index] = Session()


def encoded(body: Any) -> bytes:
    """Write data as a client does."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def begins_with_the_user(session: Session) -> bool:
    """Whether the user says something before the model does, as some providers demand."""
    for item in session._request_items():
        if not isinstance(item, Message):
            return False
        if item.role == "user" and item.text.strip():
            return True
    return False


TestLoops = Loops.TestCase
TestLoops.settings = settings(max_examples=scaled(60), stateful_step_count=30)
