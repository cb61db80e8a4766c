"""Requests of conversations in which a provider's program calls: what each provider takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    Session,
    ToolDef,
    ToolResult,
    Transcript,
    TurnRequest,
    tool,
)
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import ToolDefinitionError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import Cache

from .program_wires import ANTHROPIC, BOTH, OPENAI, Payload, Shop, Wire, callers, orders
from .test_recordings import exhaust


def answered(turn: AssistantTurn, said: str = '"done"') -> CommittedRound:
    """A turn with results for its calls."""
    results = [
        ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=said)
        for call in turn.tool_calls
    ]
    return CommittedRound(turn, results)


def started(wire: Wire, *responses: Payload) -> Transcript:
    """The conversation up to the results for what the program called."""
    transcript = Transcript()
    transcript.push(Message("user", "Refund A1."))
    for each in responses or (wire.response(),):
        transcript.append_round(answered(wire.dialect.decode(each)))
    return transcript


def body_of(wire: Wire, transcript: Any, **more: Any) -> Payload:
    """The request that is sent next, with the provider's own tool."""
    extra = {"tools": [wire.tool]}
    offered = [selector.definition for selector in Shop.default_selectors()]
    request = TurnRequest(items=transcript, tools=tuple(offered), extra=extra, **more)
    body: Payload = wire.dialect.encode_request(request)
    return body


def fits_the_sdk(wire: Wire, body: Payload) -> None:
    """The types of the official SDK take the request."""
    if wire is OPENAI:
        sdk = pytest.importorskip("openai.types.responses.response_create_params")
        params: Any = sdk.ResponseCreateParamsNonStreaming
    else:
        sdk = pytest.importorskip("anthropic.types.message_create_params")
        params = sdk.MessageCreateParamsNonStreaming
    adapter: TypeAdapter[Any] = TypeAdapter(params)
    exhaust(adapter.validate_python({"model": "m", **body}))


@BOTH
def test_what_a_program_called_goes_back_in_the_form_of_its_provider(wire: Wire) -> None:
    """All comes back as it came, the result says who called, and the SDK's types take it."""
    transcript = started(wire)
    body = body_of(wire, transcript)
    fits_the_sdk(wire, body)
    assert wire.dialect.check(body) == []
    sent = body["input" if wire is OPENAI else "messages"]
    if wire is OPENAI:
        assert sent[1:3] == wire.response()["output"]
        assert sent[3]["caller"] == wire.caller
    else:
        assert sent[1]["content"] == wire.response()["content"]
        assert [block["type"] for block in sent[2]["content"]] == ["tool_result"]
        assert body["container"] == "box"
    transcript.append_turn(wire.dialect.decode(wire.done()))
    transcript.push(Message("user", "Thanks."))
    later = body_of(wire, transcript)
    fits_the_sdk(wire, later)
    assert wire.dialect.check(later) == []
    assert "container" not in later


@BOTH
def test_who_may_call_a_tool_is_said_in_the_words_of_the_provider(wire: Wire) -> None:
    """`callers=` is `allowed_callers`; a tool of which nothing is said is sent without it."""
    orders, refund, note, *_ = body_of(wire, started(wire))["tools"]
    program = "programmatic" if wire is OPENAI else "code_execution_20260521"
    assert orders["allowed_callers"] == [program]
    assert refund["allowed_callers"] == ["direct", program]
    assert "allowed_callers" not in note
    # A program reads what has a schema as JSON, and a text as it is.
    has_schema = ["output_schema" in each for each in (orders, refund, note)]
    assert has_schema == [wire is OPENAI, False, False]
    alone = wire.dialect.tools(Shop)[0]["allowed_callers"]
    assert alone == ["programmatic" if wire is OPENAI else "code_execution_20260120"]


def test_a_provider_without_programs_lets_the_model_call() -> None:
    """The tool is sent as others are, and a loss says that no program calls it."""
    request = TurnRequest(items=[Message("user", "Go")], tools=(Shop.orders.definition,))
    for dialect in (openai_chat, gemini_generate_content, bedrock_converse):
        body = dialect.encode_request(request)
        assert [loss.where for loss in body.losses] == ["tools.orders.callers"]
        assert "allowed_callers" not in str(body)


def test_anthropic_lets_no_program_call_a_strict_tool() -> None:
    """What a program may call is not in strict mode, and a loss says so; others are."""
    offered = tuple(selector.definition for selector in Shop.default_selectors())
    request = TurnRequest(items=[Message("user", "Go")], tools=offered)
    body = anthropic_messages.encode_request(request, strict=True)
    assert [tool.get("strict", False) for tool in body["tools"]] == [False, False, True]
    lost = [loss.where for loss in body.losses]
    assert lost == ["tools.orders.callers", "tools.refund.callers"]
    assert openai_responses.encode_request(request, strict=True)["tools"][0]["strict"] is True


@pytest.mark.parametrize("callers", ["program", ("programs",), ("direct",), None, 3, [[]]])
def test_callers_are_of_two_kinds(callers: Any) -> None:
    """Anything else than a list of the model and programs is refused where it is declared."""
    with pytest.raises(ToolDefinitionError, match="takes who may call a tool"):
        tool(orders, callers=callers)
    with pytest.raises(ToolDefinitionError, match="takes who may call a tool"):
        orders.definition.with_callers(callers)


def test_output_schemas_are_of_what_is_no_text() -> None:
    """The schema of an output is sent where no value of it may be a text."""

    def declared(output: Any) -> bool:
        schema: Payload = {"type": "object", "properties": {}}
        made = ToolDef(name="f", description="", input_schema=schema, output_schema=output)
        (sent,) = openai_responses.tools([made.with_callers(["program"])])
        return "output_schema" in sent

    items = {"$defs": {"a": {"type": "object"}}, "anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}
    assert declared(items)
    assert declared({"type": "array", "items": {"type": "string"}})
    assert not declared({"anyOf": [{"type": "string"}, {"type": "null"}]})
    assert not declared({})
    assert not declared(None)


@BOTH
def test_a_history_keeps_who_called(wire: Wire) -> None:
    """A request of such a conversation is read as it was, and goes on as it would have."""
    body = body_of(wire, started(wire))
    transcript, losses = wire.dialect.read_history(body)
    assert losses == []
    turn = transcript[1]
    assert isinstance(turn, AssistantTurn)
    assert callers(turn) == [wire.id]
    assert body_of(wire, transcript) == body


def test_what_the_user_says_waits_behind_the_program() -> None:
    """Beside results for a program nothing is sent: it follows the next turn, and is in no loss."""
    transcript = started(ANTHROPIC)
    transcript.push(Message("user", "And hurry."))
    body = body_of(ANTHROPIC, transcript, cache=Cache())
    assert [block["type"] for block in body["messages"][-1]["content"]] == ["tool_result"]
    assert [loss.where for loss in body.losses] == ["items[3]"]  # type: ignore[attr-defined]
    assert anthropic_messages.check(body) == []
    transcript.append_turn(anthropic_messages.decode(ANTHROPIC.done()))
    last = body_of(ANTHROPIC, transcript)["messages"][-1]
    assert last == {"role": "user", "content": [{"type": "text", "text": "And hurry."}]}


def test_what_is_ephemeral_waits_as_well() -> None:
    """A message for one request alone is not sent beside such results, and marks stay in bounds."""
    session = Session(started(ANTHROPIC))
    session.push_user("And hurry.")
    session.push_ephemeral_user("It is noon.")
    request = session.text_turn(ScriptedModel([])).tools(Shop).cache(Cache()).request()
    body = anthropic_messages.encode_request(request)
    (result,) = body["messages"][-1]["content"]
    assert result["cache_control"] == {"type": "ephemeral"}


def test_a_container_is_sent_where_something_waits_in_it() -> None:
    """It goes with the results of any call, and with a turn that paused; not after an answer."""
    box = {"container": {"id": "box"}}
    said = {"content": [{"type": "text", "text": "x"}], **box}
    for reason, sent in (("pause_turn", "box"), ("end_turn", None)):
        turn = anthropic_messages.decode({**said, "stop_reason": reason})
        body = anthropic_messages.encode_request(
            TurnRequest(items=[Message("user", "Go"), turn], extra={})
        )
        assert body.get("container") == sent
    by_model = started(ANTHROPIC, {**ANTHROPIC.direct(), **box})
    assert body_of(ANTHROPIC, by_model)["container"] == "box"
    other: Payload = {**body_of(ANTHROPIC, by_model), "container": {"id": "box", "skills": []}}
    assert body_of(ANTHROPIC, anthropic_messages.read_history(other)[0])["container"] == "box"


def test_results_for_a_program_stand_alone() -> None:
    """What else is in their message is found, and put behind the next turn that allows it."""
    transcript = started(
        ANTHROPIC, ANTHROPIC.response("c1"), ANTHROPIC.response("c2", begins=False)
    )
    transcript.append_turn(anthropic_messages.decode(ANTHROPIC.done()))
    transcript.push(Message("user", "Thanks."))
    body = body_of(ANTHROPIC, transcript)
    messages = json.loads(json.dumps(body["messages"]))
    hurry, noon = ({"type": "text", "text": text} for text in ("And hurry.", "It is noon."))
    messages[2]["content"].append(hurry)
    messages.insert(5, {"role": "user", "content": [noon]})
    found = anthropic_messages.check(messages)
    assert [(each.position, each.rule) for each in found] == [
        ("messages[2].content[1]", "result_not_alone"),
        ("messages[5].content[0]", "result_not_alone"),
    ]
    repaired, _ = anthropic_messages.repair(messages)
    assert anthropic_messages.check(repaired) == []
    assert repaired[:6] == body["messages"][:6]
    thanks = {"type": "text", "text": "Thanks."}
    assert repaired[6]["content"] == [hurry, noon, thanks]
    cut, _ = anthropic_messages.repair(messages[:3])
    assert cut == body["messages"][:3]


def test_a_turn_that_is_left_out_parts_nothing() -> None:
    """Where the turn between goes, what the user said behind it stands beside the results."""
    messages = body_of(ANTHROPIC, started(ANTHROPIC))["messages"]
    stray = {"type": "tool_result", "tool_use_id": "c9", "content": "1"}
    said = [
        {"role": "assistant", "content": [stray]},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "And hurry."},
    ]
    repaired, changes = anthropic_messages.repair([*messages, *said])
    assert repaired == [*messages, said[1]]
    assert [change.rule for change in changes] == ["orphan_result", "result_not_alone"]
    assert anthropic_messages.check(repaired) == []


def test_a_result_says_who_called() -> None:
    """An output without the caller of its call, or with another, is found and gets it."""
    body = body_of(OPENAI, started(OPENAI))
    right = body["input"][3]
    for wrong in ({}, {"caller": {"type": "program", "caller_id": "p2"}}):
        broken = [*body["input"][:3], {**right, "caller": None, **wrong}]
        (found,) = openai_responses.check(broken)
        assert (found.position, found.rule) == ("input[3].caller", "result_for_other_caller")
        assert openai_responses.repair(broken)[0][3] == right
    assert openai_responses.check([*OPENAI.direct()["output"], right]) == []


def test_another_model_gets_the_calls_without_the_program() -> None:
    """The program is the other model's own, and a call names no item that is not there."""
    request = TurnRequest(items=started(OPENAI))
    body = openai_responses.encode_request(request, model="other")
    assert [item.get("type") for item in body["input"]] == [
        None,
        "function_call",
        "function_call_output",
    ]
    assert "caller" not in str(body["input"])
    assert [loss.where for loss in body.losses] == ["items[1]"]
    assert openai_responses.check(body) == []
