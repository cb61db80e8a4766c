"""Calls of the Responses API that the program answers and that are no functions: shells, patches, a
computer, an approval. They are calls of the turn as any other, and their answers have items of
their own.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Finished,
    Message,
    Session,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool_fn,
)
from lutum_py.dialects import anthropic_messages, bedrock_converse, openai_responses
from lutum_py.errors import DialectError
from lutum_py.streaming import CallCompleted, CallStarted
from lutum_py.window import View
from tests.cases import over

from .every_dialect import DIALECTS, response_of
from .responses_wire import call, message, reasoning, response, text
from .test_call_reports import every_call_is_told_once, fed
from .test_openai_responses_stream import added, done, ended

GO = {"role": "user", "content": "Go"}
PNG = Attachment.from_bytes(b"\x89PNG", "image/png")
CHECKS = [{"id": "s1", "code": "odd", "message": "Look"}]
REASON = reasoning(encrypted_content="x")


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "x1", "call_id": "c1", "status": "completed", **fields}


EXEC = {"type": "exec", "command": ["ls"], "env": {}}
COMMANDS = {"commands": ["ls", "pwd"], "max_output_length": 90}
PATCH = {"type": "update_file", "path": "a.py", "diff": "@@"}
CLICK = {"type": "click", "x": 1, "y": 2, "button": "left"}
ASKED = {"server_label": "s", "name": "remote tool!", "arguments": '{"a":1}'}
LOCAL = item("local_shell_call", action=EXEC)
SHELL = item("shell_call", action=COMMANDS)
CALLS: dict[str, tuple[dict[str, Any], Any]] = {
    "local_shell_call": (LOCAL, EXEC),
    "shell_call": (SHELL, COMMANDS),
    "apply_patch_call": (item("apply_patch_call", operation=PATCH), PATCH),
    "computer_call": (
        item("computer_call", action=CLICK, pending_safety_checks=CHECKS),
        {"action": CLICK, "pending_safety_checks": CHECKS},
    ),
    "mcp_approval_request": ({"type": "mcp_approval_request", "id": "c1", **ASKED}, ASKED),
}
KINDS = over("kind", list(CALLS))
COMPUTER = CALLS["computer_call"][0]


def result(turn: AssistantTurn, said: Any, at: int = 0, **fields: Any) -> ToolResult:
    """A result of a call of a turn."""
    of = turn.tool_calls[at]
    made = {"id": of.id, "name": of.name, "arguments": of.arguments, "result": json.dumps(said)}
    return ToolResult(**{**made, **fields})


def sent(turn: AssistantTurn, *results: ToolResult) -> Any:
    """A request in which a turn and its results go back, and the user goes on."""
    items: list[Any] = [Message("user", "Go"), turn, *results, Message("user", "And?")]
    body = openai_responses.encode_request(TurnRequest(items=items))
    assert openai_responses.check(body) == []
    return body


@KINDS
def test_a_call_of_the_program_is_a_call_of_the_turn(kind: str) -> None:
    """It has the kind of the item as its name and what it asks for as its arguments; a turn with it
    is not finished, and it is told in a stream, and loaded, like any other.
    """
    given, arguments = CALLS[kind]
    whole = response(REASON, given)
    turn = openai_responses.decode(whole)
    (made,) = turn.tool_calls
    assert (made.id, made.name, json.loads(made.arguments)) == ("c1", kind, arguments)
    told, streamed = fed(openai_responses, [added(given, 0), done(given, 0), ended(response())])
    assert streamed.tool_calls == turn.tool_calls
    every_call_is_told_once(told, streamed)
    begun = [each for each in told if isinstance(each, CallStarted | CallCompleted)]
    assert [each.index for each in begun] == [0, 0]
    outcome: Any = Toolset.read_turn(turn)
    assert not isinstance(outcome, Finished)
    session = Session()
    session.push_user("Go")
    outcome.round.commit(session)
    loaded = Transcript.load_json(session.transcript.dump_json())
    assert loaded == session.transcript


@KINDS
def test_a_call_of_a_tool_that_is_not_there_is_answered(kind: str) -> None:
    """A toolset without such a tool gives an issue that the model reads, in the right item; of a
    computer, which is answered by a picture alone, the user's side has the words.
    """
    turn = openai_responses.decode(response(REASON, CALLS[kind][0]))
    outcome: Any = Toolset.read_turn(turn)
    (issue,) = outcome.round.recoverable_tool_call_issues
    session = Session()
    session.push_user("Go")
    outcome.round.commit(session)
    body = openai_responses.encode_request(TurnRequest(items=session.transcript))
    assert openai_responses.check(body) == []
    if kind == "computer_call":
        assert body["input"] == [GO, {"role": "user", "content": f"Rejected: {issue.text}"}]
        assert "no picture answers its computer_call, which is not sent" in str(body.losses[0])
        return
    assert not body.losses
    *before, answer = body["input"]
    assert [each["type"] for each in before[1:]] == ["reasoning", kind]
    assert issue.text in json.dumps(answer)
    assert answer.get("approve", False) is False
    assert answer["type"] in (f"{kind}_output", "mcp_approval_response")


PRINTED = [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 3}}]


def exits(stdout: str, stderr: str, code: int) -> dict[str, Any]:
    outcome = {"type": "exit", "exit_code": code}
    return {
        "max_output_length": 90,
        "output": [{"stdout": stdout, "stderr": stderr, "outcome": outcome}],
    }


@over(
    "kind, said, fields, answer",
    [
        ("local_shell_call", "a.py", {}, {"output": "a.py"}),
        ("local_shell_call", "No", {"status": "error"}, {"output": "No"}),
        ("shell_call", "a.py", {}, exits("a.py", "", 0)),
        ("shell_call", "", {}, exits("", "", 0)),
        ("shell_call", "No", {"status": "error"}, exits("", "No", 1)),
        ("shell_call", PRINTED, {}, {"max_output_length": 90, "output": PRINTED}),
        ("shell_call", [{"a": 1}], {}, exits('[{"a": 1}]', "", 0)),
        ("apply_patch_call", "Done", {}, {"status": "completed", "output": "Done"}),
        ("apply_patch_call", "No", {"status": "error"}, {"status": "failed", "output": "No"}),
        (
            *("computer_call", None, {"attachments": [PNG]}),
            {
                "output": {"type": "computer_screenshot", "image_url": PNG.url},
                "acknowledged_safety_checks": CHECKS,
            },
        ),
        ("mcp_approval_request", True, {}, {"approve": True}),
        ("mcp_approval_request", {"approve": True}, {}, {"approve": True}),
        ("mcp_approval_request", "Ask later", {}, {"approve": False, "reason": "Ask later"}),
        (
            *("mcp_approval_request", True, {"status": "error"}),
            {"approve": False, "reason": "true"},
        ),
    ],
)
def test_a_result_goes_back_as_the_right_item(
    kind: str, said: Any, fields: dict[str, Any], answer: dict[str, Any]
) -> None:
    """What a tool gave is in the item that answers the call; read back, it goes out the same."""
    turn = openai_responses.decode(response(REASON, CALLS[kind][0]))
    body = sent(turn, result(turn, said, **fields))
    assert not body.losses
    made = body["input"][3]
    key = "approval_request_id" if kind == "mcp_approval_request" else "call_id"
    type_ = "mcp_approval_response" if key != "call_id" else f"{kind}_output"
    assert made == {"type": type_, key: "c1", **answer}
    read, losses = openai_responses.read_history(dict(body))
    assert not losses
    assert [type(each).__name__ for each in read][1:3] == ["AssistantTurn", "ToolResult"]
    again = openai_responses.encode_request(TurnRequest(items=read))
    assert again["input"] == body["input"]


def test_a_computer_is_answered_by_a_picture_alone() -> None:
    """Words beside the picture are a loss; a picture of a call that failed acknowledges nothing."""
    turn = openai_responses.decode(response({**COMPUTER, "pending_safety_checks": []}))
    body = sent(turn, result(turn, "Clicked", attachments=[PNG]))
    assert [str(loss) for loss in body.losses] == [
        "items[2]: a computer_call_output holds a picture and no text"
    ]
    assert "acknowledged_safety_checks" not in body["input"][2]
    body = sent(turn, result(turn, "No", attachments=[PNG], status="rejected"))
    assert body["input"][1:-1] == [{"role": "user", "content": "No"}]
    by_id = {"type": "computer_call_output", "call_id": "c1", "output": {"file_id": "f"}}
    _, losses = openai_responses.read_history([GO, COMPUTER, by_id])
    assert [loss.where for loss in losses] == ["input[2].output"]


def test_files_of_a_shell_are_named() -> None:
    """An answer that takes no files names them, and they are losses."""
    turn = openai_responses.decode(response(LOCAL))
    body = sent(turn, result(turn, "Look", attachments=[PNG]))
    assert body["input"][2]["output"].startswith("Look\n")
    assert len(body.losses) == 1


def test_a_program_with_such_tools_runs_them() -> None:
    """A tool by the name of the item takes what it asks for, and its output is the answer."""

    @tool_fn
    def shell_call(commands: list[str], max_output_length: int) -> str:
        """Run commands."""
        return f"{commands[1]} {max_output_length}"

    turn = openai_responses.decode(response(SHELL))
    outcome: Any = Toolset.of("Shell", shell_call).read_turn(turn)
    session = Session()
    session.push_user("Go")
    plan = outcome.round.plan()
    plan.commit(session, [each.call_sync() for each in plan.pending])
    body = openai_responses.encode_request(TurnRequest(items=session.transcript))
    assert body["input"][2]["output"][0]["stdout"] == "pwd 90"


@over(
    "type_, name",
    [
        ("local_shell", "local_shell_call"),
        ("shell", "shell_call"),
        ("apply_patch", "apply_patch_call"),
        ("computer", "computer_call"),
        ("computer_use_preview", "computer_call"),
        ("mcp", "mcp_approval_request"),
    ],
)
def test_the_tool_of_the_api_is_offered_in_place_of_the_function(type_: str, name: str) -> None:
    """Where it is in the request, the tool that runs its calls is no function beside it."""
    schema: Any = {"type": "object"}
    tools = tuple(
        ToolDef.from_json_schema(name=each, input_schema=schema) for each in (name, "echo")
    )
    request = TurnRequest(items=[Message("user", "Go")], tools=tools)
    names = [each["name"] for each in openai_responses.encode_request(request)["tools"]]
    assert names == [name, "echo"]
    own: Any = {"tools": [{"type": type_}]}
    request = TurnRequest(items=[Message("user", "Go")], tools=tools, extra=own)
    offered = openai_responses.encode_request(request)["tools"]
    assert [each.get("name", each["type"]) for each in offered] == ["echo", type_]


@over("first", [0, 1])
def test_results_in_any_order_are_those_of_their_calls(first: int) -> None:
    """Beside a function, the answer of a shell may stand before or after its output."""
    turn = openai_responses.decode(response(SHELL, call("c2")))
    body = sent(turn, result(turn, "a.py"), result(turn, "2", 1))
    answers = body["input"][3:5]
    assert [each["call_id"] for each in answers] == ["c1", "c2"]
    said = [*body["input"][:3], answers[first], answers[1 - first]]
    transcript, _ = openai_responses.read_history(said)
    results = [each for each in transcript if isinstance(each, ToolResult)]
    assert [(each.id, each.model_text) for each in results] == [("c1", "a.py"), ("c2", "2")]


def test_a_transcript_that_grows_is_sent_as_one_that_did_not() -> None:
    """What waits for its result is never kept as sent."""
    session = Session()
    session.push_user("Go")
    for number, kind in enumerate([*CALLS, "computer_call"]):
        given = {**CALLS[kind][0], "id": f"x{number}", "call_id": f"c{number}"}
        turn = openai_responses.decode(response(given, call(f"d{number}")))
        outcome: Any = Toolset.read_turn(turn)
        outcome.round.commit(session)
        request = TurnRequest(items=View().of(session.transcript))
        grown = openai_responses.encode_request(request)
        fresh = openai_responses.encode_request(TurnRequest(items=[*session.transcript]))
        assert grown["input"] == fresh["input"]
        assert [str(each) for each in grown.losses] == [str(each) for each in fresh.losses]


HOSTED = {**SHELL, "environment": {"type": "container_reference", "container_id": "k"}}
OUTPUT = {"type": "shell_call_output", "id": "o1", "call_id": "c1", "output": PRINTED}


@over("given", [[HOSTED], [HOSTED, OUTPUT], [SHELL, OUTPUT]])
def test_what_the_provider_ran_is_no_call(given: list[dict[str, Any]]) -> None:
    """A shell in a container, or with its answer beside it, is the provider's, and stays so."""
    turn = openai_responses.decode(response(*given, message(text("Done."))))
    assert turn.tool_calls == ()
    assert isinstance(Toolset.read_turn(turn), Finished)
    said = sent(turn)["input"]
    assert [each.get("type") for each in said[1:-1]] == [*(x["type"] for x in given), "message"]
    events = [*(done(each, at) for at, each in enumerate(given)), ended(response())]
    assert fed(openai_responses, events)[1].tool_calls == ()


def test_a_call_that_is_not_known_is_an_error() -> None:
    """A call of a kind that nobody knows is never taken for the end of a turn."""
    odd = item("camera_call", action={})
    match = r"output\[1\]: the program has to answer a camera_call, and this library does not"
    with pytest.raises(DialectError, match=match):
        openai_responses.decode(response(message(text("Hi")), odd))
    events = [done(message(text("Hi")), 0), done(odd, 1), ended(response())]
    with pytest.raises(DialectError, match="answer a camera_call") as caught:
        fed(openai_responses, events)
    so_far: Any = caught.value.turn
    assert so_far.text == "Hi"
    answer = {"type": "camera_call_output", "call_id": "c1", "output": "x"}
    assert openai_responses.decode(response(odd, answer)).tool_calls == ()


@KINDS
def test_a_call_can_get_other_arguments(kind: str) -> None:
    """What a program puts in place of the arguments goes back in the item."""
    given, arguments = CALLS[kind]
    turn = openai_responses.decode(response(given))
    first = next(iter(arguments))
    changed = {**arguments, first: "new"}
    other = turn.with_arguments("c1", json.dumps(changed))
    assert json.loads(other.tool_calls[0].arguments) == changed
    assert openai_responses.decode(other.payload) == other


@DIALECTS
@KINDS
def test_the_conversation_goes_on_at_every_provider(dialect: ModuleType, kind: str) -> None:
    """Another dialect, and another model, are sent it as a call of a function, and its result."""
    turn = openai_responses.decode(response(REASON, CALLS[kind][0]))
    items: list[Any] = [Message("user", "Go"), turn, result(turn, "Fine")]
    body = dialect.encode_request(TurnRequest(items=items), model="some-other-model")
    assert dialect.check(body) == []
    said = json.dumps(body)
    assert kind in said
    assert "Fine" in said


def test_two_calls_of_one_id_are_told_apart() -> None:
    """Each has its own answer."""
    turn = openai_responses.decode(response(SHELL, {**SHELL, "id": "x2"}))
    assert [each.id for each in turn.tool_calls] == ["c1", "c1_2"]
    said = sent(turn, result(turn, "a"), result(turn, "b", 1))["input"]
    assert [each["call_id"] for each in said[1:5]] == ["c1", "c1_2"] * 2


@over("name", ["bash", "str_replace_based_edit_tool", "computer", "memory"])
@over("module", [anthropic_messages, bedrock_converse])
def test_the_client_tools_of_anthropic_are_plain_calls(module: ModuleType, name: str) -> None:
    """They come as any other call, and go back as any other result."""
    asked = ToolMetadata(id="toolu_1", name=name, arguments='{"command":"ls"}')
    turn = module.decode(response_of(module.NAME, AssistantTurn(tool_calls=[asked])))
    assert [each.name for each in turn.tool_calls] == [name]
