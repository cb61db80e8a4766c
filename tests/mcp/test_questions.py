"""The laws of a server's question: it waits in the plan, and its answer goes out once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Elicit, Resolve
from mcp.types import (
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from lutum_py import (
    AssistantTurn,
    Decision,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
)
from lutum_py.context import ToolSuspended
from lutum_py.errors import ResumeError
from lutum_py.execution import execute
from lutum_py.mcp import Limits, RemoteTools, remote_tools

from .servers import REPOSITORY, Answer, Request, Served, call_of, connected, described, form, said

COUNT: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
YES: dict[str, Any] = {"type": "object", "properties": {}}


def asking(*, state: str | None = None, **requests: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests or None, request_state=state)


def once(asked: Answer) -> Any:
    """A tool that asks at its first round, and then says what it was answered."""

    async def does(request: Request, params: CallToolRequestParams) -> Answer:
        if params.input_responses is None and params.request_state is None:
            return asked
        answers = params.input_responses or {}
        told: dict[str, Any] = {"state": params.request_state}
        for key, each in answers.items():
            told[key] = each.model_dump(mode="json", exclude_none=True)
        return said(json.dumps(told))

    return does


def planned(remote: RemoteTools, arguments: str = '{"a": 1}') -> ToolRoundPlan[Any]:
    turn = AssistantTurn(tool_calls=[ToolMetadata(id="c1", name="t", arguments=arguments)])
    plan: ToolRoundPlan[Any] = remote.toolset.read_turn(turn).round.plan()  # type: ignore[union-attr]
    return plan


async def asked_by(server: Served, **options: Any) -> SuspendedCall:
    """What a call comes to whose server asks first."""
    async with connected(server) as client:
        outcome = await execute(call_of(await remote_tools(client, "Remote", **options)))
    assert isinstance(outcome, SuspendedCall)
    return outcome


SAMPLE = CreateMessageRequest(
    params=CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text="Hi"))], max_tokens=9
    )
)
URL = ElicitRequest(params=ElicitRequestURLParams(message="Log in", url="https://example.org/in"))
MADE = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}


ASKED: list[tuple[Any, str, Any, Any]] = [
    (form(COUNT, "N?"), "N?", {"n": 3}, {"action": "accept", "content": {"n": 3}}),
    (form(YES), "?", None, {"action": "accept", "content": {}}),
    (form(YES), "?", "decline", {"action": "decline"}),
    (form(COUNT), "?", "decline", {"action": "decline"}),
    (form(COUNT), "?", "cancel", {"action": "cancel"}),
    (URL, "Log in\nhttps://example.org/in", "accept", {"action": "accept"}),
    (URL, "Log in\nhttps://example.org/in", "decline", {"action": "decline"}),
    (SAMPLE, "The server asks for an answer of a model.", MADE, MADE),
    (
        ListRootsRequest(),
        "The server asks which folders it may work in.",
        {"roots": [{"uri": "file:///a"}]},
        {"roots": [{"uri": "file:///a"}]},
    ),
]


@pytest.mark.parametrize("kind", ["direct", "http"])
async def test_a_decision_answers_what_a_server_asks(kind: str) -> None:
    """Each question waits as a ticket, and the decision goes out with the server's state."""
    server = Served([described()])
    async with connected(server, kind) as client:
        remote = await remote_tools(client, "Remote")
        for request_, message, result, sent in ASKED:
            case = (message, result)
            server.does = once(asking(k=request_, state="S"))
            server.received.clear()
            plan = planned(remote)
            plan.record(await execute(plan.pending[0]))
            assert len(plan.suspended) == 1, case
            (waiting,) = plan.suspended
            ticket = waiting.ticket
            assert (ticket.action, ticket.message) == ("mcp_input", message), case
            assert ticket.resume_mode == "pass_decision_to_tool", case
            assert list(ticket.parameters["requests"]) == ["k"], case
            assert ticket.parameters["request_state"] == "S", case
            plan.resume(waiting.approve(result=result))
            plan.record(await execute(plan.pending[0]))
            (answered,) = plan.resolve().results
            told = json.loads(answered.model_text)
            assert told.pop("state") == "S", case
            assert {key: told["k"][key] for key in sent} == sent, case
            first, second = server.received
            assert (first.input_responses, first.request_state) == (None, None), case
            assert second.arguments == first.arguments == {"a": 1}, case
            assert list(second.input_responses or {}) == ["k"], case


async def test_several_questions_are_answered_by_their_keys() -> None:
    """What answers several requests is an object of one answer for each."""
    server = Served([described()], once(asking(a=form(COUNT, "A?"), b=URL)))
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        plan = planned(remote)
        plan.record(await execute(plan.pending[0]))
        (waiting,) = plan.suspended
        assert waiting.ticket.message == "A?\nLog in\nhttps://example.org/in"
        for unfit in ({"a": {"n": 1}}, {"a": {"n": "x"}, "b": "accept"}, {"n": 1}, None):
            with pytest.raises(ResumeError):
                plan.resume(waiting.approve(result=unfit))
        plan.resume(waiting.approve(result={"a": "decline", "b": "accept"}))
        plan.record(await execute(plan.pending[0]))
        (result,) = plan.resolve().results
    told = json.loads(result.model_text)
    assert (told["a"]["action"], told["b"]["action"], told["state"]) == ("decline", "accept", None)


async def test_a_state_alone_needs_no_answer() -> None:
    """A server may want only to be called again; then an approval without a result does it."""
    server = Served([described()], once(asking(state="later")))
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        plan = planned(remote)
        plan.record(await execute(plan.pending[0]))
        (waiting,) = plan.suspended
        assert waiting.ticket.message == "The server wants to be called again."
        assert waiting.ticket.response_schema is None
        plan.resume(waiting.approve())
        plan.record(await execute(plan.pending[0]))
        assert plan.resolve().results[0].model_text == '{"state": "later"}'


async def test_a_server_may_ask_again() -> None:
    """An answered call may wait once more, under another ticket, and its first round stays away."""

    async def does(request: Request, params: CallToolRequestParams) -> Answer:
        rounds = int(params.request_state or 0)
        if rounds == 2:
            return said("done")
        return asking(k=form(COUNT, f"Round {rounds}?"), state=str(rounds + 1))

    server = Served([described()], does)
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        plan, messages = planned(remote), []
        plan.record(await execute(plan.pending[0]))
        while plan.suspended:
            messages.append(plan.suspended[0].ticket.message)
            plan.resume(plan.suspended[0].approve(result={"n": len(messages)}))
            plan.record(await execute(plan.pending[0]))
        assert plan.resolve().results[0].model_text == "done"
    assert messages == ["Round 0?", "Round 1?"]
    assert [each.request_state for each in server.received] == [None, "1", "2"]


async def test_a_cancelled_question_sends_nothing() -> None:
    """`Decision(action="cancel")` ends the call here, and the server hears nothing of it."""
    server = Served([described()], once(asking(k=form(COUNT))))
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        plan = planned(remote)
        plan.record(await execute(plan.pending[0]))
        plan.resume(Decision(call_id="c1", action="cancel", reason="no time"))
        (result,) = plan.resolve().results
    assert (result.status, result.model_text) == ("cancelled", "Cancelled: no time")
    assert len(server.received) == 1


async def test_an_answer_to_something_else_is_not_sent() -> None:
    """Only a decision on the server's own question is sent as an answer to it."""
    server = Served([described()], once(asking(k=SAMPLE)))
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        call = call_of(remote)
        other = SuspendTicket(action="pay", parameters={"request_state": "not the server's"})
        decision = Decision(call_id="c1", action="resume", result={"n": 1}, digest=call.digest)
        context = ToolContext("c1", "t", resume=decision, ticket=other)
        outcome = await execute(call, context)
        assert isinstance(outcome, SuspendedCall)  # the server was asked anew, as by any first call
        for unfit in ({"role": "assistant", "content": [3], "model": "m"}, None):
            decision = outcome.approve(result=unfit)
            context = ToolContext("c1", "t", resume=decision, ticket=outcome.ticket)
            result = await execute(call_of(remote), context)
            assert isinstance(result, ToolResult)
            assert (result.status, result.code) == ("error", "mcp_error")
            assert result.model_text.endswith("The server was not told.")
    assert [each.request_state for each in server.received] == [None]


LONG = {"type": "object", "properties": {"a": {"type": "string", "title": "x" * 300}}}
NESTED: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (asking(k=form(NESTED)), "mcp_error"),
        (asking(k=form({"type": "object", "properties": {"a": {"minLength": -1}}})), "mcp_error"),
        (asking(k=form(LONG)), "result_too_large"),
        (asking(state="x" * 500), "result_too_large"),
    ],
    ids=range(4),
)
async def test_a_question_that_nobody_can_answer_is_an_error(asked: Any, code: Any) -> None:
    """A form that leads nowhere, or a question that is too long, does not wait."""
    limits = Limits(schema=300, result=400)
    async with connected(Served([described()], asked)) as client:
        outcome = await execute(call_of(await remote_tools(client, "Remote", limits=limits)))
    assert isinstance(outcome, ToolResult)
    assert (outcome.status, outcome.code) == ("error", code)


async def test_a_question_without_a_bottom_does_not_wait() -> None:
    """A form that no JSON text could hold is no answer, so nobody knows what the tool did."""
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    asked = {"resultType": "input_required", "inputRequests": {"k": _raw_form(deep)}}
    async with connected(Served([described()])) as client:
        remote = await remote_tools(client, "Remote")
        dispatcher: Any = client.session._dispatcher
        send = dispatcher.send_raw_request

        async def raw(method: str, *rest: Any) -> Any:
            return asked if method == "tools/call" else await send(method, *rest)

        dispatcher.send_raw_request = raw
        outcome = await execute(call_of(remote))
    assert isinstance(outcome, ToolResult)
    assert (outcome.status, outcome.code) == ("indeterminate", "invalid_output")
    assert "not a result of the protocol" in outcome.model_text


def _raw_form(deep: Any) -> Any:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": deep}}}
    params = {"mode": "form", "message": "?", "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


class Confirm(BaseModel):
    """What the user is asked."""

    sure: bool


def ask_first() -> Elicit[Confirm]:
    return Elicit("Sure?", Confirm)


async def wipe(path: str, answer: Annotated[Confirm, Resolve(ask_first)]) -> str:
    return f"{path}: {answer.sure}"


@pytest.mark.parametrize("kind", ["direct", "http"])
async def test_a_resolver_of_the_sdk_asks_by_a_ticket(kind: str) -> None:
    """What a server of the SDK's own framework asks for is answered by a decision."""
    functions = MCPServer("functions")
    functions.tool()(wipe)
    async with connected(functions, kind) as client:
        remote = await remote_tools(client, "Remote")
        turn = AssistantTurn(
            tool_calls=[ToolMetadata(id="c1", name="wipe", arguments='{"path": "/tmp"}')]
        )
        plan = remote.toolset.read_turn(turn).round.plan()  # type: ignore[union-attr]
        plan.record(await execute(plan.pending[0]))
        (waiting,) = plan.suspended
        assert waiting.ticket.message == "Sure?"
        plan = remote.toolset.load_plan(plan.dump_json())
        with pytest.raises(ResumeError):
            plan.resume(plan.suspended[0].approve(result={"sure": "perhaps"}))
        plan.resume(plan.suspended[0].approve(result={"sure": True}))
        plan.record(await execute(plan.pending[0]))
        assert plan.resolve().results[0].model_text == "/tmp: True"


async def test_a_question_comes_out_of_a_call_that_you_run_yourself() -> None:
    """`call.call()` lets the suspension out, and the call waits under its ticket."""
    async with connected(Served([described()], asking(k=form(COUNT, "N?")))) as client:
        call = call_of(await remote_tools(client, "Remote"))
        with pytest.raises(ToolSuspended) as caught:
            await call.call()
        waiting = call.suspend(caught.value.ticket)
    assert (waiting.was_started, waiting.ticket.message) == (True, "N?")


async def test_a_question_is_made_legible() -> None:
    """The words of a question lose what nobody sees, and end at the limit."""
    asked = asking(k=form(COUNT, "Pay\u202e\x1b[2K 5?" + "!" * 90))
    waiting = await asked_by(Served([described()], asked), limits=Limits(description=12))
    assert waiting.ticket.message == "Pay[2K 5?!!!…"
    titled = {"type": "object", "properties": {"n": {"type": "integer", "title": "Pay\u202e"}}}
    waiting = await asked_by(Served([described()], asking(k=form(titled))))
    shown = json.dumps(waiting.ticket.response_schema)
    assert '"title": "Pay"' in shown


async def test_many_words_hide_no_other_question() -> None:
    """Each question ends at the limit by itself, and an address is shown whole."""
    long = "!" * 90
    url = ElicitRequest(params=ElicitRequestURLParams(message=long, url="https://example.org/in"))
    asked = asking(a=form(COUNT, long), b=url)
    waiting = await asked_by(Served([described()], asked), limits=Limits(description=9))
    assert waiting.ticket.message == "!!!!!!!!!…\n!!!!!!!!!…\nhttps://example.org/in"


async def test_an_answer_has_to_be_of_the_form() -> None:
    """A form takes its fields, and nothing that the protocol could not carry back."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
    waiting = await asked_by(Served([described()], asking(k=form(schema))))
    async with connected(Served([described()])) as client:
        remote = await remote_tools(client, "Remote")
        plan = planned(remote, arguments="{}")
        plan.suspend(plan.pending[0].suspend(waiting.ticket))
        for unfit in ({"deep": {"a": 1}}, {"list": [1]}, "accept", None):
            with pytest.raises(ResumeError):
                plan.resume(plan.suspended[0].approve(result=unfit))
        plan.resume(plan.suspended[0].approve(result={"a": None, "b": ["x"], "c": 1.5}))
        plan.discard()


async def test_older_servers_ask_inline() -> None:
    """On the older protocol a question waits within the call, and `decline_inline` says no."""

    async def does(request: Request, params: CallToolRequestParams) -> Answer:
        answer: ElicitResult = await request.session.elicit_form(
            "Sure?",
            COUNT,
            related_request_id=request.request_id,
        )
        return said(answer.action)

    async with connected(Served([described()], does), "legacy") as client:
        assert (await call_of(await remote_tools(client, "R")).call()).model_text == "decline"


ASK = """
import asyncio, json, sys
from pathlib import Path
from lutum_py import AssistantTurn, ToolMetadata
from lutum_py.execution import execute
from lutum_py.mcp import remote_tools
from tests.mcp.test_remote_calls import by_stdio_noting

calls, saved = Path(sys.argv[1]), Path(sys.argv[2])

async def main():
    async with by_stdio_noting(calls) as client:
        remote = await remote_tools(client, "Remote")
        if not saved.exists():
            turn = AssistantTurn(tool_calls=[ToolMetadata(id="c1", name="ask", arguments="{}")])
            plan = remote.toolset.read_turn(turn).round.plan()
            plan.record(await execute(plan.pending[0]))
            saved.write_text(plan.dump_json(key=b"k"))
            return
        plan = remote.toolset.load_plan(saved.read_text(), key=b"k")
        (waiting,) = plan.suspended
        plan.resume(waiting.approve(result={"n": 3}, by="ann"))
        plan.record(await execute(plan.pending[0]))
        (result,) = plan.resolve().results
        print(result.model_text)

asyncio.run(main())
"""


def test_one_process_asks_and_another_answers(tmp_path: Path) -> None:
    """A question outlives its process, its connection and its server; nothing is sent again."""
    calls, saved = tmp_path / "calls", tmp_path / "plan.json"
    for expected in ("", '{"amount": '):
        run = subprocess.run(
            [sys.executable, "-c", ASK, str(calls), str(saved)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.startswith(expected)
    first, second = [json.loads(line) for line in calls.read_text(encoding="utf-8").splitlines()]
    assert (first["answers"], first["state"]) == ({}, None)
    assert second["state"] == "state 1"
    assert second["answers"]["amount"]["content"] == {"n": 3}
